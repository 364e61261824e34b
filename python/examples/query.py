"""Ask ten sites how old their people are, without seeing a row of anybody's.

    python3 python/examples/query.py

Each site has made-up rows in SQLite, but for the first, which has a dictionary of columns.
"""

import random
import sqlite3

import hushsum

job = hushsum.Job.parse("""
name = "sites"
parties = { count = 10, rows = 200 }
privacy = { unit = "record", records = 2000, noise = "discrete-gaussian", epsilon = 1.0 }
column = [
  { name = "age", type = "whole", range = [18, 100], unit = "years" },
  { name = "smokes", type = "category", categories = ["no", "yes"] },
]
query = [
  { name = "smokers", kind = "count", where = "smokes = yes" },
  { name = "age", kind = "mean", column = "age" },
  { name = "ages", kind = "histogram", column = "age", bins = 4 },
]
""")
people = [[(random.randint(18, 90), random.choice(["no", "no", "yes"])) for _ in range(200)]
          for _ in range(10)]
sites = [dict(zip(("age", "smokes"), zip(*people[0])))]
for rows in people[1:]:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE person (age, smokes)")
    database.executemany("INSERT INTO person VALUES (?, ?)", rows)
    sites.append((database, "SELECT age, smokes FROM person"))
answers = hushsum.query(job, sites)
print(answers)
every = [age for rows in people for age, _ in rows]
print(f"true mean {sum(every) / len(every):.6g}, in the interval of "
      f"{answers['age'].interval[0]:.6g} to {answers['age'].interval[1]:.6g} in 95 % of runs")
