"""What the boundary costs: a party's submit from a numpy array to bytes, next to the same
call in Go, in alternating rounds of one run.

    python3 python/benchmarks/boundary.py [--length 1000000] [--parties 10] [--rounds 5]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import hushsum

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=1_000_000)
    parser.add_argument("--parties", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--alone", action="store_true", help="without Go next to it")
    a = parser.parse_args()
    keys = {f"party{i}": hushsum.Identity.generate() for i in range(a.parties)}
    settled = hushsum.Job(
        name="boundary", rounds=1000, model=hushsum.Job.Model(length=a.length),
        parties=hushsum.Job.Parties(count=a.parties, drop_out=0.2),
        privacy=hushsum.Job.Privacy(noise="discrete-gaussian", epsilon=1000.0, clip=1.0),
    ).settle(keys)
    server = hushsum.Server(settled)
    parties = [hushsum.Party(settled, k) for k in keys.values()]

    def carry(messages: list[tuple[int, bytes]]) -> None:
        for to, m in messages:
            answer = parties[to].receive(m)
            if answer is not None:
                server.receive(to, answer)

    for p in parties:
        server.receive(p.index, p.announce)
    carry(server.keys())
    carry(server.members())
    vector = (np.arange(a.length) % 7 / 7).astype(np.float32)
    model = np.zeros(a.length)
    ours: list[float] = []
    theirs: list[float] = []
    sent = 0
    with tempfile.TemporaryDirectory() as folder:
        go = None
        if not a.alone:
            program = f"{folder}/gocall"
            subprocess.run(["go", "build", "-o", program, "./python/benchmarks/gocall"], cwd=ROOT,
                           check=True)
            go = subprocess.Popen([program, str(a.length), str(a.parties)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        for round in range(a.rounds + 1):  # the first warms up
            took = []
            broadcast, messages = server.begin(model)
            carry(messages)
            for p in parties:
                began = time.perf_counter()
                message = p.submit(broadcast, vector)
                took.append(time.perf_counter() - began)
                sent = len(message)
                server.receive(p.index, message)
            carry(server.survivors())
            carry(server.certificate())
            mean = server.sum()
            assert abs(float(np.mean(mean.model))) < 1
            beside = []
            if go is not None:
                assert go.stdin is not None and go.stdout is not None
                go.stdin.write("\n")
                go.stdin.flush()
                beside = [int(x) / 1e9 for x in go.stdout.readline().split()]
            if round > 0:
                ours += took
                theirs += beside
        if go is not None:
            assert go.stdin is not None
            go.stdin.close()
            go.wait()
    python = statistics.median(ours)
    print(f"d = {a.length:,}, n = {a.parties}, {len(ours)} submits each, {sent:,} bytes")
    print(f"from numpy to bytes  {1e3 * python:8.1f} ms")
    if theirs:
        direct = statistics.median(theirs)
        print(f"the Go call          {1e3 * direct:8.1f} ms")
        print(f"ratio                {python / direct:8.3f}")


if __name__ == "__main__":
    sys.exit(main())
