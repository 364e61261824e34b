"""Holds a federation by the package's coordinator and parties, and prints the mean of each round.

Standard input has the vectors as JSON, by round and party.
"""

import json
import sys
import threading

import numpy as np

import hushsum

vectors = np.array(json.load(sys.stdin))
rounds, parties, length = vectors.shape
plan = hushsum.Plan(name="four ways", rounds=rounds, length=length, clip=1.0)
keys = {f"party-{i}": hushsum.Identity.generate() for i in range(parties)}
settled = plan.settle(keys)
own = hushsum.Identity.generate()
coordinator = hushsum.Coordinator(settled, identity=own, step_time=60.0)
failed: list[BaseException] = []


def take_part(i: int, key: hushsum.Identity) -> None:
    try:
        hushsum.join(coordinator.url, settled=settled, identity=key, coordinator=own.public,
                     train=lambda model, round: vectors[round - 1, i])
    except BaseException as err:
        failed.append(err)


threads = [threading.Thread(target=take_part, args=(i, key))
           for i, key in enumerate(keys.values())]
for t in threads:
    t.start()
means = []


def apply(model: np.ndarray, mean: np.ndarray) -> np.ndarray:
    means.append(mean.tolist())
    return model


coordinator.run(apply)
for t in threads:
    t.join()
if failed:
    raise failed[0]
json.dump(means, sys.stdout)
