"""What a job is trained with: rows in the sidecar, or a function."""

from __future__ import annotations

import inspect
from typing import Any, Callable

import numpy as np

from . import _sidecar
from .errors import ConfigError
from .frames import dense, unfit
from .frames import rows as positional


class Rows(_sidecar.Remote):
    """A party's data, for jobs that train their models themselves: rows of numbers and the
    class of each, counted from 0. They go to the sidecar on this machine and to nobody else."""

    def __init__(self, data: Any) -> None:
        advice = "give (features, labels), of shapes (rows, features) and (rows,)"
        if not isinstance(data, (tuple, list)) or len(data) != 2:
            raise unfit("rows are two arrays", advice)
        x, y = (dense(positional(part)) for part in data)
        for what, a in (("features", x), ("labels", y)):
            if a.dtype.kind not in "fiub":
                raise unfit(f"the {what} are an array of {a.dtype}, and no numbers",
                            "give numbers; classes are counted from 0, as "
                            "numpy.unique(labels, return_inverse=True)[1] counts them")
        x = x.reshape(len(x), -1) if x.ndim > 1 else x
        y = y.reshape(-1) if y.shape[1:] == (1,) else y
        if x.ndim != 2 or y.shape != x.shape[:1]:
            raise unfit(f"features of shape {x.shape} do not match labels of shape {y.shape}",
                        advice)
        self.count = len(y)
        s = _sidecar.current()
        result, _ = s.call("rows.new", {"features": x.shape[1]}, [_blob(x), _blob(y)])
        super().__init__(s, result["rows"])


def _blob(a: np.ndarray) -> _sidecar.Blob:
    def write(into: memoryview) -> None:
        np.copyto(np.frombuffer(into, "<f8").reshape(a.shape), a, casting="unsafe")

    return _sidecar.Blob(8 * a.size, write)


def working(train: Any) -> Callable[[Any, int], Any]:
    """Return a training function that takes the round, whether the given one does or not."""
    try:
        parameters = inspect.signature(train).parameters.values()
    except (TypeError, ValueError):
        return lambda model, round: train(model)
    needed = sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
                 for p in parameters)
    if needed >= 2:
        return train  # type: ignore[no-any-return]
    return lambda model, round: train(model)


def rows_of(trains: bool, rows: Any, train: Any, records: bool = False) -> None:
    """Raise unless there are rows for a job that trains, and a function for another, with rows
    where it sums over records."""
    if trains and (rows is None or train is not None):
        raise ConfigError(
            "the job trains its model itself, on rows", kind="config",
            field="rows" if rows is None else "train",
            advice="give the rows, (features, labels), and no function",
        )
    if records and (rows is None or not callable(train)):
        raise ConfigError(
            "the unit of the job is a record, and a function of yours makes gradients",
            kind="config", field="rows" if rows is None else "train",
            advice="give the records as rows, and a function of the model and some of them",
        )
    if not trains and not records and (not callable(train) or rows is not None):
        raise ConfigError(
            "a function of yours makes the vectors of this job", kind="config",
            field="rows" if callable(train) else "train",
            advice="give a function that gets the model and returns an update, and no rows",
        )
