"""Ask ten sites how old their people are, without seeing a row of anybody's.

    python3 python/examples/query.py

The first site has made-up rows in a CSV file, the others have theirs in SQLite.
"""

import sqlite3
import tempfile
from pathlib import Path

import hushsum

job = hushsum.Job.parse("""name = "sites"
parties = { count = 10, rows = 200 }
privacy = { unit = "record", records = 2000, noise = "discrete-gaussian", epsilon = 1.0 }
column = [{ name = "age", type = "whole", range = [18, 100], unit = "years" },
          { name = "smokes", type = "category", categories = ["n", "y"] }]
query = [{ name = "smokers", kind = "count", where = "smokes = y" },
         { name = "age", kind = "mean", column = "age" },
         { name = "ages", kind = "histogram", column = "age", bins = 4 }]""")
rows = [(i // 200, 18 + 7919 * i % 73, "ynn"[i % 3]) for i in range(2000)]
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE person (site, age, smokes)")
database.executemany("INSERT INTO person VALUES (?, ?, ?)", rows)
sites = [(database, f"SELECT age, smokes FROM person WHERE site = {i}") for i in range(1, 10)]
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "0").write_text("id,age,smokes\n" + "".join("%d,%d,%s\n" % x for x in rows[:200]))
    print(hushsum.query(job, [f"{folder}/0", *sites]))
