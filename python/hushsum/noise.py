"""Samples of discrete noise, from the library's samplers."""

from __future__ import annotations

import numpy as np

from . import _sidecar


def sample_noise(
    family: str, scale: float, count: int, *, parties: int = 0, min_honest: int = 0,
    exact: bool = False,
) -> np.ndarray:
    """Draw independent samples of noise on the integers.

    Args:
        family: "discrete-gaussian", "discrete-laplace" or "skellam".
        scale: its parameter in integer units: σ² of a discrete Gaussian, the variance of
            Skellam, t of discrete Laplace.
        count: how many samples.
        parties: draw one party's share among this many; 0: all of the noise.
        min_honest: how many parties' shares make up the noise; 0: all.
        exact: sample with no statistical distance, more slowly.

    Returns:
        Array of int64, shape (count,). From fresh randomness of the system.
    """
    _, (b,) = _sidecar.current().call("noise.sample", {
        "family": str(family).replace("_", "-"), "scale": float(scale), "count": int(count),
        "parties": int(parties), "min_honest": int(min_honest), "exact": bool(exact),
    })
    return np.frombuffer(b, "<i8").astype(np.int64)
