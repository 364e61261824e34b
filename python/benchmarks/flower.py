"""Flower's SecAgg+, its published mod and workflow, next to hushsum's, in one run: every
client and the server in this process, one after another, over Flower's own records.

    HUSHSUM_FLOWER=…/src/py python3 python/benchmarks/flower.py [--clients 10 50 100]

SecAgg+ is run with every client holding shares of every other's (num_shares=1.0), as here,
and with the few shares of Flower's own example. SecAgg+ exchanges keys in every round; of
hushsum's the first round, with its exchange of keys, and a later one are shown.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import flower_here

if (why := flower_here.find()) is not None:
    sys.exit(why)

import numpy as np
from flwr.client.mod import secaggplus_mod
from flwr.server.workflow import SecAggPlusWorkflow

import hushsum
from flower_net import App, Net
from hushsum import flower

logging.getLogger("flwr").setLevel(logging.CRITICAL)


def train(node: int, arrays: list) -> tuple[list, int]:
    return [a + np.float32(node % 5) / 100 for a in arrays], 10


def app(kind: str, n: int, d: int) -> App:
    nodes = list(range(1, n + 1))
    model = [np.zeros(d, np.float32)]
    if kind == "hushsum":
        keys = {f"party{i}": hushsum.Identity.generate() for i in nodes}
        settled = hushsum.Job(
            name="benchmark", rounds=100, model=hushsum.Job.Model(length=d),
            parties=hushsum.Job.Parties(count=n, drop_out=0.3),
            sum=hushsum.Job.Sum(adversary="curious", max_weight=100),
            privacy=hushsum.Job.Privacy(clip=100.0),
        ).settle(keys)
        mods: dict[int, Any] = {i: flower.private_sum_mod(settled, k)
                                for i, k in zip(nodes, keys.values())}
        return App(Net(mods, train), flower.PrivateSumWorkflow(settled), model, nodes)
    shares, threshold = (1.0, 0.67) if kind == "SecAgg+" else (3, 2)
    return App(Net({i: secaggplus_mod for i in nodes}, train),
               SecAggPlusWorkflow(shares, threshold), model, nodes)


def measure(a: App) -> tuple[float, float, int, int]:
    """Hold a round: seconds of a client, of the server, and bytes up and down of a client."""
    net = a.net
    net.client_seconds, a.server_seconds, net.bytes_up, net.bytes_down = 0.0, 0.0, 0, 0
    a.round()
    assert not net.raised, net.raised[0]
    n = len(a.strategy.nodes)
    return net.client_seconds / n, a.server_seconds, net.bytes_up // n, net.bytes_down // n


def show(name: str, n: int, m: tuple[float, float, int, int], base: float | None) -> float:
    total = m[0] * n + m[1]
    ratio = "" if base is None else f"{base / total:8.1f} x"
    print(f"{n:4} {name:24} {1e3 * m[0]:10.1f} {m[1]:10.3f} {total:10.3f} "
          f"{m[2] / 1e6:8.2f} {m[3] / 1e6:8.2f} {ratio}", flush=True)
    return total


def drop_outs(kind: str, n: int, d: int) -> str:
    """Say for each exchange whether a round in which a client is lost from it on gives a sum,
    and a right one."""
    out = []
    for exchange in range(6 if kind == "hushsum" else 4):
        a = app(kind, n, d)
        gone = {1, 2}
        a.net.lose = lambda at, node: at >= exchange and node in gone
        try:
            model = a.round()[0]
        except Exception as err:
            out.append(f"{exchange}: {type(err).__name__}")
            continue
        moved = float(np.max(np.abs(model)))
        stays = [i for i in range(1, n + 1) if i not in gone or
                 exchange > (3 if kind == "hushsum" else 2)]
        wants = float(np.mean([i % 5 for i in stays])) / 100
        right = abs(float(np.mean(model)) - wants) < 1e-3
        out.append(f"{exchange}: {'sum' if right else 'no sum' if moved == 0 else 'wrong sum'}")
    return ", ".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, nargs="+", default=[10, 50, 100])
    parser.add_argument("--length", type=int, default=100_000)
    parser.add_argument("--without-drop-outs", action="store_true")
    parser.add_argument("--largest-alone", action="store_true",
                        help="SecAgg+ with few shares for the largest number only")
    a = parser.parse_args()
    print(f"d = {a.length:,}; a client's ms, the server's s, s of all in one process, MB of a "
          "client up and down")
    print(f"{'n':>4} {'':24} {'client ms':>10} {'server s':>10} {'all s':>10} {'MB up':>8} "
          f"{'MB down':>8}")
    began = time.time()
    for n in a.clients:
        base = show("SecAgg+, all shares", n, measure(app("SecAgg+", n, a.length)), None)
        if not a.largest_alone or n == max(a.clients):
            show("SecAgg+, 3 shares", n, measure(app("SecAgg+ few", n, a.length)), base)
        ours = app("hushsum", n, a.length)
        show("hushsum, first round", n, measure(ours), base)
        show("hushsum, later round", n, measure(ours), base)
    if not a.without_drop_outs:
        n = min(a.clients)
        print(f"two of {n} clients lost from an exchange on:")
        for kind in ("SecAgg+", "hushsum"):
            print(f"  {kind}: {drop_outs(kind, n, 1000)}")
    print(f"{time.time() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
