"""Reads a job's file, and holds it with rows of arrays: tried out, and over TCP.

Standard input has as JSON the path of the file, and each party's rows. Printed are the job's digest
and words as it is read and as it is settled, and the models, with who was in each sum over TCP.
"""

import json
import sys
import threading

import numpy as np

import hushsum

given = json.load(sys.stdin)
job = hushsum.Job.load(given["job"])
rows = [(np.array(p["x"]).reshape(len(p["y"]), -1), np.array(p["y"])) for p in given["rows"]]
keys = {f"party-{i}": hushsum.Identity.generate() for i in range(len(rows))}
helpers = {f"member-{k}": hushsum.Identity.generate() for k in range(given["members"])}
settled = job.settle(keys, committee=helpers or None)
own = hushsum.Identity.generate()
coordinator = hushsum.Coordinator(settled, identity=own)
ends: dict[str, np.ndarray] = {}
included: list[list[int]] = []


def take_part(name: str, i: int) -> None:
    ends[name] = hushsum.join(settled, url=coordinator.url, identity=keys[name],
                              coordinator=own.public, rows=rows[i])


def told(p: hushsum.Progress) -> None:
    if "summed" in p.text:
        included.append(p.parties)


def help_out(name: str) -> None:
    hushsum.join(settled, url=coordinator.committee_url, identity=helpers[name],
                 coordinator=own.public)


threads = [threading.Thread(target=take_part, args=(name, i)) for i, name in enumerate(keys)]
helping = [threading.Thread(target=help_out, args=(name,), daemon=True) for name in helpers]
for t in threads + helping:
    t.start()
model = coordinator.run(progress=told)
for t in threads:
    t.join()
assert len(ends) == len(keys) and all(np.array_equal(m, model) for m in ends.values())
tried = None if helpers else hushsum.simulate(job, None, rows, progress=False)  # which has none
json.dump({
    "digest": job.digest(), "explain": job.explain(), "settled": settled.explain(),
    "carried": model.tolist(), "included": included, "tried": tried.model.tolist() if tried else [],
}, sys.stdout)
