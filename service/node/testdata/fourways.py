"""Holds a job by the package's coordinator and parties; prints digest, words and means.

Standard input has as JSON the path of the job's file, how many members a committee has, and the
vectors by round and party.
"""

import json
import sys
import threading

import numpy as np

import hushsum

given = json.load(sys.stdin)
vectors = np.array(given["vectors"])
job = hushsum.Job.load(given["job"])
keys = {f"party-{i}": hushsum.Identity.generate() for i in range(vectors.shape[1])}
helpers = {f"member-{k}": hushsum.Identity.generate() for k in range(given["members"])}
settled = job.settle(keys, committee=helpers or None)
own = hushsum.Identity.generate()
means = []


def apply(model: np.ndarray, mean: np.ndarray) -> np.ndarray:
    means.append(mean.tolist())
    return model


coordinator = hushsum.Coordinator(settled, identity=own, apply=apply, step_time=60.0)
failed: list[BaseException] = []


def take_part(i: int, key: hushsum.Identity) -> None:
    try:
        hushsum.join(settled, url=coordinator.url, identity=key, coordinator=own.public,
                     train=lambda model, round: vectors[round - 1, i])
    except BaseException as err:
        failed.append(err)


def help_out(key: hushsum.Identity) -> None:
    hushsum.join(settled, url=coordinator.committee_url, identity=key, coordinator=own.public)


threads = [threading.Thread(target=take_part, args=(i, key))
           for i, key in enumerate(keys.values())]
helping = [threading.Thread(target=help_out, args=(key,), daemon=True) for key in helpers.values()]
for t in threads + helping:
    t.start()
coordinator.run()
for t in threads:
    t.join()
if failed:
    raise failed[0]
json.dump({"digest": job.digest(), "explain": settled.explain(), "means": means}, sys.stdout)
