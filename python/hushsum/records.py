"""Sums over records, for a function that returns the gradient of each: what a party submits if the
job's unit is a record and it names no model of its own."""

from __future__ import annotations

import copy
import math
import os
from typing import Any, Callable, Mapping

import numpy as np

from .arrays import Structure
from .attempts import warn
from .errors import ConfigError
from .frames import rows as positional
from .frames import dense, taken, unfit

# How many numbers of gradients are in memory at once, unless one person has more.
_NUMBERS = 4_000_000


class Coins:
    """How records are drawn and clipped, as the settled job says."""

    def __init__(self, coins: Mapping[str, Any]) -> None:
        self.count, self.most = int(coins["count"]), int(coins["most"])
        self.rate, self.clip = float(coins["rate"]), float(coins["clip"])
        self.group = str(coins.get("group", ""))

    def toss(self, units: int) -> np.ndarray:
        """Return which of this many units are drawn, by coins that are fresh and secret."""
        if self.rate >= 1:
            return np.arange(units)
        coins = np.frombuffer(os.urandom(8 * units), "<u8")
        return np.flatnonzero(coins < np.uint64(math.ldexp(self.rate, 64)))


def units(rows: Any, group: str) -> int:
    """Return how many records a party has, or groups of them."""
    most = 1 << 62
    return len(Records(rows, Coins({"count": most, "most": most, "rate": 1, "clip": 1,
                                    "group": group}))._starts) - 1


def warn_of(said: int, have: int) -> None:
    """Warn where a job on this machine says another number of records than its parties have."""
    if said and have and 10 * max(said, have) > 11 * min(said, have):
        warn(f"privacy.records is {said}, and the parties here have {have}: write that, or leave it "
             "out", RuntimeWarning)


class Records:
    """A party's records: whatever :func:`hushsum.rows` reads, or a tuple of it; with a group the
    last of the tuple says whose each record is. Nothing that this class raises says which records
    were drawn, or how many. What it keeps of the last sum does: that is for :class:`Attempts`."""

    def __init__(self, rows: Any, coins: Coins) -> None:
        self._coins = coins
        self._forget()
        rows = positional(rows)
        self._alone = not isinstance(rows, tuple)
        self._parts: list[Any] = [rows] if self._alone else list(rows)
        n = self._parts[0].shape[0]
        self._rows, self._starts = np.arange(n), np.arange(n + 1)
        if coins.group:
            if len(self._parts) < 2:
                raise unfit("the rows are no records: they do not say whose they are",
                            f"give a tuple, the last of which names the {coins.group} of each")
            number, counts = _persons(self._parts.pop(), coins.group)
            self._rows = np.argsort(number, kind="stable")
            self._starts = np.append(0, np.cumsum(counts))
        # One that is never drawn because of others would be drawn if one of these were not there,
        # so that a record moved the sum by two.
        if len(self._starts) - 1 > coins.count:
            raise ConfigError(
                f"privacy.records says that all parties together have {coins.count}, and this one "
                f"has {len(self._starts) - 1}: noise hides a record if all may be drawn",
                kind="config", field="privacy.records",
                advice="declare as many in the job, or bring fewer, chosen by what each is by "
                       "itself")

    def _forget(self) -> None:
        """Forget the last sum."""
        self.drawn = 0  # units
        self.left_out = 0  # for gradients that are not finite
        self.failed = 0  # on which the function fails alone
        self.first = 0  # row of the first of those, from 1
        self.alone: BaseException | None = None  # of that
        self.together: BaseException | None = None  # of the first call for several that failed

    def sum(self, gradients: Callable[[Any, Any], Any], model: Any,
            structure: Structure) -> np.ndarray:
        """Return minus the sum of the gradients of those that coins draw, each clipped.

        What a record adds depends on it and on the model alone: one whose gradient is not finite,
        or on which the function fails when it is called for that record alone, adds nothing, and
        is not an error.
        """
        c = self._coins
        drawn = c.toss(len(self._starts) - 1)
        total = np.zeros(structure.size)
        self._forget()
        if len(drawn) > c.most:
            return total
        self.drawn = len(drawn)
        most = max(1, _NUMBERS // max(1, structure.size))
        sizes = self._starts[drawn + 1] - self._starts[drawn]
        first = 0
        while first < len(drawn):
            ends = np.cumsum(sizes[first:])
            units = slice(first, first + max(1, int(np.searchsorted(ends, most, "right"))))
            total -= self._added(gradients, model, structure, drawn[units], sizes[units])
            first = units.stop
        return total

    def _added(self, gradients: Callable[[Any, Any], Any], model: Any, structure: Structure,
               units: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return what some units add. Where the function fails on several it is called for each
        half, down to single ones: of a few that fail, that takes few calls."""
        try:
            return self._clipped(gradients, model, structure, units, sizes)
        except KeyboardInterrupt:  # of the owner, whatever is in the rows
            raise
        except BaseException as err:  # SystemExit too: a party that ends would show
            if len(units) == 1:
                self.failed += 1
                if self.alone is None:
                    self.alone, self.first = err, int(self._rows[self._starts[units[0]]]) + 1
                return np.zeros(structure.size)
            self.together = self.together or err
        half = len(units) // 2
        total = self._added(gradients, model, structure, units[:half], sizes[:half])
        total += self._added(gradients, model, structure, units[half:], sizes[half:])
        return total

    def _clipped(self, gradients: Callable[[Any, Any], Any], model: Any, structure: Structure,
                 units: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the sum of the gradients of some units, each clipped. A function that writes to
        its model writes to a copy, which no other call gets."""
        rows = np.concatenate([self._rows[self._starts[u] : self._starts[u + 1]] for u in units])
        parts = tuple(taken(p, rows) for p in self._parts)
        made = gradients(copy.deepcopy(model),
                         parts[0] if self._alone or len(parts) == 1 else parts)
        g = np.empty((len(rows), structure.size))
        structure.write(made, g)
        with np.errstate(all="ignore"):
            if len(units) < len(rows):  # a person's is the mean over their records
                g = np.add.reduceat(g, np.cumsum(sizes) - sizes) / sizes[:, None]
            norms = np.sqrt(np.einsum("ij,ij->i", g, g))
            finite = np.isfinite(norms)
            g[~finite] = 0
            factors = np.minimum(1, self._coins.clip / np.where(finite & (norms > 0), norms, 1))
        clipped: np.ndarray = factors @ g
        self.left_out += int(np.count_nonzero(~finite))
        return clipped


def _persons(whose: Any, group: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each record's person, and how many records each person has."""
    if len(whose.shape) > 1 and whose.shape != (whose.shape[0], 1):
        raise unfit(f"the rows are no records: the {group} of each is an array of shape "
                    f"{whose.shape}", f"give one name or number for each record, as the {group}")
    names = dense(whose).reshape(-1)
    missing = names != names  # NaN, or no time
    if names.dtype.kind == "O":
        missing |= np.array([name is None for name in names], bool)
    if missing.any():
        raise unfit(f"the rows are no records: row {missing.argmax() + 1} does not say whose it is",
                    f"name the {group} of each, or leave such rows out")
    _, number, counts = np.unique(names, return_inverse=True, return_counts=True)
    return number.reshape(-1), counts
