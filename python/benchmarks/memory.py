"""How much memory a large model takes: one party and the server, each a process with its
sidecar, and two more parties that count for nothing.

    python3 python/benchmarks/memory.py [--length 25000000] [--job]

Of a process and its sidecar together, pages that both have counting once: the peak while
the party submits a float32 vector, and while the server takes submissions and gives the
mean, above what it had before. With --job: the peak of a party that joins a job of three
rounds over TCP, and of its coordinator.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import threading
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import hushsum
from hushsum import _sidecar

PARTIES = 3


def held() -> float:
    """MB of this process and its sidecar: their parts of what they share (Pss)."""
    total = 0
    for pid in ("self", str(_sidecar.current().process)):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1000


class Peak:
    """The most that is held within a block."""

    def __enter__(self) -> "Peak":
        self.before = self.most = held()
        self.began = time.perf_counter()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            self.most = max(self.most, held())

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self.began
        self._done.set()
        self._thread.join()

    def __str__(self) -> str:
        return (f"{self.most:7.0f} MB at the peak, {self.most - self.before:7.0f} more than before, "
                f"{self.seconds:6.1f} s")


def settle(length: int, public: list[str]) -> hushsum.Settled:
    job = hushsum.Job(
        name="memory", rounds=3, parties=hushsum.Job.Parties(count=len(public)),
        sum=hushsum.Job.Sum(adversary="curious", recovery=True),
        privacy=hushsum.Job.Privacy(noise="discrete-gaussian", epsilon=8.0, clip=1.0),
        model=hushsum.Job.Model(length=length))
    return job.settle([(f"party{i}", k) for i, k in enumerate(public)],
                      like=np.broadcast_to(np.float32(0), length))


def party(pipe: Connection, folder: str, length: int, index: int) -> None:
    identity = hushsum.Identity.generate()
    pipe.send(identity.public)
    p = hushsum.Party(settle(length, pipe.recv()), identity)
    pipe.send(p.announce)
    vector = np.ones(length if index == 0 else 1, np.float32)
    update = np.broadcast_to(vector, length)  # only the first has one of its own
    while True:
        message = pipe.recv()
        if message is None:
            return
        answer = p.receive(message)
        if p.due is None:
            pipe.send(answer)
            continue
        broadcast = pipe.recv()
        if index == 0:
            with Peak() as peak:
                masked = p.submit(broadcast, update)
            print(f"party's submit, of {vector.nbytes / 1e6:.0f} MB    {peak}", flush=True)
        else:
            masked = p.submit(broadcast, update)
        (Path(folder) / str(index)).write_bytes(masked)
        del masked
        pipe.send(None)


def joins(pipe: Connection, length: int, index: int) -> None:
    identity = hushsum.Identity.generate()
    pipe.send(identity.public)
    public, url, coordinator = pipe.recv()
    settled = settle(length, public)

    def train(model: np.ndarray) -> np.ndarray:
        return np.full(length, 1e-4, np.float32)

    with warnings.catch_warnings(), Peak() as peak:
        warnings.simplefilter("ignore")
        model = hushsum.join(settled, url=url, identity=identity, coordinator=coordinator,
                             train=train)
    assert model.dtype == np.float32
    pipe.send(f"party {index}      {peak}")


def whole_job(length: int) -> None:
    spawn = multiprocessing.get_context("spawn")
    pipes: list[Any] = []
    for i in range(PARTIES):
        ours, theirs = spawn.Pipe()
        spawn.Process(target=joins, args=(theirs, length, i), daemon=True).start()
        pipes.append(ours)
    public = [p.recv() for p in pipes]
    own = hushsum.Identity.generate()
    coordinator = hushsum.Coordinator(settle(length, public), identity=own,
                                      step_time=600.0)
    with Peak() as peak:
        for p in pipes:
            p.send((public, coordinator.url, own.public))
        model = coordinator.run()
    assert model.dtype == np.float32
    for p in pipes:
        print(p.recv())
    print(f"coordinator  {peak}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=25_000_000)
    parser.add_argument("--job", action="store_true", help="a whole job over TCP")
    a = parser.parse_args()
    if a.job:
        whole_job(a.length)
        return
    spawn = multiprocessing.get_context("spawn")
    pipes: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(PARTIES):
            ours, theirs = spawn.Pipe()
            spawn.Process(target=party, args=(theirs, folder, a.length, i), daemon=True).start()
            pipes.append(ours)
        public = [p.recv() for p in pipes]
        for p in pipes:
            p.send(public)
        server = hushsum.Server(settle(a.length, public))
        for i, p in enumerate(pipes):
            server.receive(i, p.recv())

        def carry(messages: list[tuple[int, bytes]]) -> None:
            for to, message in messages:
                pipes[to].send(message)
            for to, _ in messages:
                answer = pipes[to].recv()
                if answer is not None:
                    server.receive(to, answer)

        carry(server.keys())
        carry(server.members())
        broadcast, messages = server.begin()
        for to, message in messages:  # one after another, so that peaks do not add up
            pipes[to].send(message)
            pipes[to].send(broadcast)
            pipes[to].recv()
        sizes = [(Path(folder) / str(i)).stat().st_size for i in range(PARTIES)]
        with Peak() as peak:
            for i in range(PARTIES):
                server.receive(i, (Path(folder) / str(i)).read_bytes())
        print(f"server, submissions of {sizes[0] / 1e6:.0f} MB {peak}")
        carry(server.survivors())
        carry(server.certificate())
        with Peak() as peak:
            mean = server.sum()
        print(f"server's mean                {peak}")
        assert mean.model.dtype == np.float32
        for p in pipes:
            p.send(None)


if __name__ == "__main__":
    sys.exit(main())
