"""Lower bounds on epsilon, from attacks on any mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _sidecar


def _numbers(x: Any) -> bytes:
    return np.ascontiguousarray(x, "<f8").tobytes()


def audit_scores(without: Any, with_canary: Any, *, delta: float, alpha: float = 5e-7) -> float:
    """Return a lower bound on the epsilon of a mechanism that was run many times.

    Args:
        without: scores of runs without the canary, shape (n,).
        with_canary: scores of runs with it, shape (m,), larger if anything.
        delta: at which epsilon is claimed.
        alpha: error of each one-sided interval; the bound is above the truth with
            probability 2·alpha at most.
    """
    result, _ = _sidecar.current().call(
        "audit.scores", {"delta": float(delta), "alpha": float(alpha)},
        [_numbers(without), _numbers(with_canary)],
    )
    return float(result["lower"])


def audit_one_run(
    canaries: int, guesses: int, right: int, *, delta: float, confidence: float = 0.95
) -> float:
    """Return a lower bound on epsilon from one run (Steinke, Nasr, Jagielski 2023).

    Args:
        canaries: how many were each included by a fair coin.
        guesses: of how many the coin was guessed.
        right: how many guesses were right.
        delta: at which epsilon is claimed.
        confidence: of the bound.
    """
    result, _ = _sidecar.current().call("audit.one_run", {
        "canaries": int(canaries), "guesses": int(guesses), "right": int(right),
        "delta": float(delta), "confidence": float(confidence),
    })
    return float(result["lower"])
