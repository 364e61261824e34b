"""Sums over records, for a function that returns the gradient of each: what a party submits if the
job's unit is a record and it names no model of its own."""

from __future__ import annotations

import math
import os
from typing import Any, Callable, Mapping

import numpy as np

from .arrays import Structure, as_array
from .attempts import warn
from .errors import ConfigError

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
    """A party's records: an array, or a tuple of arrays of one length; with a group the last one
    says whose each record is."""

    def __init__(self, rows: Any, coins: Coins) -> None:
        self._coins = coins
        self.drawn, self.left_out = 0, 0  # in the last sum; of these, with gradients not finite
        parts = rows if isinstance(rows, (tuple, list)) else (rows,)
        whose, self._alone = None, not isinstance(rows, (tuple, list))
        if coins.group:
            if len(parts) < 2:
                raise _unfit("they do not say whose they are",
                             f"give a tuple, the last of which names the {coins.group} of each")
            *parts, whose = parts
        self._parts = [p if hasattr(p, "shape") else as_array(p) for p in parts]
        lengths = {len(p) if p.shape else -1 for p in self._parts}
        if len(lengths) != 1 or min(lengths) < 0 or whose is not None and len(whose) not in lengths:
            raise _unfit("their arrays are not of one length",
                         "give an array, or a tuple of arrays, with one element for each record")
        n = lengths.pop()
        self._rows, self._starts = np.arange(n), np.arange(n + 1)
        if whose is not None:
            _, number, counts = np.unique(np.asarray(whose), return_inverse=True,
                                          return_counts=True)
            self._rows = np.argsort(number.reshape(-1), kind="stable")
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

    def sum(self, gradients: Callable[[Any, Any], Any], model: Any,
            structure: Structure) -> np.ndarray:
        """Return minus the sum of the gradients of those that coins draw, each clipped.

        What a record adds depends on it and on the model alone: one whose gradient is not finite
        adds nothing, and is not an error.
        """
        c = self._coins
        drawn = c.toss(len(self._starts) - 1)
        total = np.zeros(structure.size)
        self.drawn, self.left_out = len(drawn), 0
        if len(drawn) > c.most:
            return total
        most = max(1, _NUMBERS // max(1, structure.size))
        sizes = self._starts[drawn + 1] - self._starts[drawn]
        first = 0
        while first < len(drawn):
            ends = np.cumsum(sizes[first:])
            units = slice(first, first + max(1, int(np.searchsorted(ends, most, "right"))))
            total -= self._clipped(gradients, model, structure, drawn[units], sizes[units])
            first = units.stop
        return total

    def _clipped(self, gradients: Callable[[Any, Any], Any], model: Any, structure: Structure,
                 units: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the sum of the gradients of some units, each clipped."""
        rows = np.concatenate([self._rows[self._starts[u] : self._starts[u + 1]] for u in units])
        parts = tuple(p[rows] for p in self._parts)
        made = gradients(model, parts[0] if self._alone or len(parts) == 1 else parts)
        g = np.empty((len(rows), structure.size))
        structure.write(made, g)
        with np.errstate(all="ignore"):
            if len(units) < len(rows):  # a person's is the mean over their records
                g = np.add.reduceat(g, np.cumsum(sizes) - sizes) / sizes[:, None]
            norms = np.sqrt(np.einsum("ij,ij->i", g, g))
            finite = np.isfinite(norms)
            g[~finite] = 0
            self.left_out += int(np.count_nonzero(~finite))
            factors = np.minimum(1, self._coins.clip / np.where(finite & (norms > 0), norms, 1))
        clipped: np.ndarray = factors @ g
        return clipped


def _unfit(reason: str, advice: str) -> ConfigError:
    return ConfigError(f"the rows are no records: {reason}", kind="config", field="rows",
                       advice=advice)
