"""Rows that a job trains on, in the sidecar."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _sidecar
from .arrays import as_array
from .errors import ConfigError


class Rows(_sidecar.Remote):
    """What a party has, for jobs that train their models themselves: rows of numbers and the
    class of each, counted from 0. They go to the sidecar on this machine and to nobody else."""

    def __init__(self, data: Any) -> None:
        try:
            features, labels = data
        except (TypeError, ValueError):
            raise ConfigError(
                "rows are two arrays", kind="config", field="rows",
                advice="give (features, labels), of shapes (rows, features) and (rows,)",
            ) from None
        x, y = as_array(features), as_array(labels)
        x = x.reshape(len(x), -1) if x.ndim > 1 else x
        if x.ndim != 2 or y.shape != x.shape[:1]:
            raise ConfigError(
                f"features of shape {x.shape} do not go with labels of shape {y.shape}",
                kind="config", field="rows",
                advice="give arrays of shapes (rows, features) and (rows,)",
            )
        s = _sidecar.current()
        result, _ = s.call("rows.new", {"features": x.shape[1]}, [_blob(x), _blob(y)])
        super().__init__(s, result["rows"])


def _blob(a: np.ndarray) -> _sidecar.Blob:
    def write(into: memoryview) -> None:
        np.copyto(np.frombuffer(into, "<f8").reshape(a.shape), a, casting="unsafe")

    return _sidecar.Blob(8 * a.size, write)


def rows_of(trains: bool, rows: Any, train: Any) -> None:
    """Raise unless there are rows for a job that trains, and a function for another."""
    if trains and (rows is None or train is not None):
        raise ConfigError(
            "the job trains its model itself, on rows", kind="config",
            field="rows" if rows is None else "train",
            advice="give the rows, (features, labels), and no function",
        )
    if not trains and (not callable(train) or rows is not None):
        raise ConfigError(
            "a function of yours makes the vectors of this job", kind="config",
            field="rows" if callable(train) else "train",
            advice="give a function that gets the model and returns an update, and no rows",
        )
