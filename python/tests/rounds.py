"""Parties and a server in one process, for tests."""

from __future__ import annotations

from typing import Any, Callable, Iterable

import numpy as np

import hushsum


PATHS = {"count": "parties", "drop_out": "parties", "clip": "privacy", "noise": "privacy",
         "epsilon": "privacy", "bits": "privacy", "length": "model"}


def job(**changes: Any) -> hushsum.Job:
    """Return a job of vectors of five numbers that lets two of ten parties be missing. Fields are
    called by their last names; those of sums are the others."""
    tree: dict[str, Any] = {"parties": {}, "sum": {"recovery": True}, "privacy": {}, "model": {}}
    fields: dict[str, Any] = dict(name="test", rounds=4, length=5, clip=100.0, drop_out=0.2,
                                  adversary="curious", range=128.0, roster="roster.txt")
    for name, value in {**fields, **changes}.items():
        if name in ("name", "rounds", "server"):
            tree[name] = value
        elif name == "roster":
            tree["parties"][name] = value
        else:
            tree[PATHS.get(name, "sum")][name] = value
    if tree["privacy"].get("noise"):
        del tree["sum"]["range"]
    if tree["sum"].get("protocol") == "oneshot":
        tree["sum"] = {k: v for k, v in tree["sum"].items() if k not in ("recovery", "adversary")}
    made = hushsum.Job(name=tree["name"], rounds=tree["rounds"],
                       **{k: getattr(hushsum.Job, k.capitalize())(**v) for k, v in tree.items()
                          if isinstance(v, dict)})
    return made


def identities(n: int) -> dict[str, hushsum.Identity]:
    return {f"party{i}": hushsum.Identity.generate() for i in range(n)}


class Session:
    """A session whose messages are carried by calls."""

    def __init__(self, settled: hushsum.Settled, keys: Iterable[hushsum.Identity],
                 number: int = 1) -> None:
        self.server = hushsum.Server(settled, number=number)
        self.parties = [hushsum.Party(settled, k, number=number) for k in keys]
        for p in self.parties:
            self.server.receive(p.index, p.announce)
        self.carry(self.server.keys())
        self.carry(self.server.members())

    def carry(self, messages: list[tuple[int, bytes]], present: set[int] | None = None) -> None:
        for to, message in messages:
            if present is not None and to not in present:
                continue
            answer = self.parties[to].receive(message)
            if answer is not None:
                self.server.receive(to, answer)

    def round(
        self,
        update: Callable[[int], Any],
        *,
        model: Any = None,
        submitting: Iterable[int] | None = None,
        signing: Iterable[int] | None = None,
        revealing: Iterable[int] | None = None,
        weight: Callable[[int], float] | None = None,
        round: int | None = None,
    ) -> hushsum.Mean:
        everybody = range(len(self.parties))
        self.carry(self.server.invite())
        broadcast, messages = self.server.begin(model, round=round)
        self.carry(messages)
        for i in everybody if submitting is None else submitting:
            if self.parties[i].due is not None:
                w = None if weight is None else weight(i)
                self.server.receive(i, self.parties[i].submit(broadcast, update(i), w))
        self.carry(self.server.survivors(), None if signing is None else set(signing))
        signed = set(everybody if signing is None else signing)
        self.carry(self.server.certificate(), signed & set(
            everybody if revealing is None else revealing))
        return self.server.sum()


def close_to(a: Any, b: Any, tolerance: float = 1e-4) -> bool:
    return bool(np.allclose(a, b, rtol=0, atol=tolerance))
