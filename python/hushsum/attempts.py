"""What is said of a training function that fails."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING

from .errors import ConfigError, Error

if TYPE_CHECKING:
    from .records import Records

_HERE = os.path.dirname(__file__)


class Attempts:
    """The calls of a party's training function. A call that fails costs the party its part of that
    round and no more, so that the first is a warning; that none succeeds is an error in the end."""

    def __init__(self) -> None:
        self._made, self._failed = 0, 0
        self._first: Exception | None = None
        self._round = 0
        self._left_out = False

    def succeeded(self) -> None:
        """Count a call that returned what can be submitted."""
        self._made += 1

    def failed(self, round: int, err: Exception) -> None:
        """Count a call that did not, and warn if it is the first. Answer for the round before: a
        filter may make an exception of the warning."""
        self._made += 1
        self._failed += 1
        if self._first is None:
            self._first, self._round = err, round
            warn(f"training failed in round {round}, whose sum has nothing from this party: "
                 f"{_said(err)}; only progress hears of later failures", RuntimeWarning, err)

    def left_out(self, round: int, records: Records | None) -> None:
        """Warn, once, that gradients of the round were not finite: such a record adds nothing.
        Answer for the round before, so that nobody else can tell."""
        if records is not None and records.left_out and not self._left_out:
            self._left_out = True
            warn(f"in round {round} the gradients of {records.left_out} of {records.drawn} records "
                 "are not finite, and add nothing; look for NaN or infinity in the rows, and in "
                 "training", RuntimeWarning)

    def end(self, err: Error | None = None) -> None:
        """Raise if every call failed, with the first exception as the cause; and in any case if
        the job ended with an error."""
        first = self._first
        over = err is None or err.kind == "absent"
        if over and first is not None and self._made == self._failed:
            calls = "the one call" if self._made == 1 else f"each of {self._made} calls"
            raise Error(
                f"no sum has anything from this party since it joined: {calls} of its training "
                f"function failed, the first in round {self._round}: {_said(first)}", kind="absent",
                advice="correct the function; the first exception is this error's __cause__",
            ) from first
        if err is not None:
            if err.__cause__ is None:
                err.__cause__ = first
            raise err


def not_finite(path: str) -> ConfigError:
    """Return the error of an update that cannot be summed."""
    return ConfigError(f"the update{path} has NaN or infinity", kind="not-finite",
                       field=path or None, advice="look for what made it in training")


def warn(text: str, category: type[Warning], cause: BaseException | None = None) -> None:
    """Warn at the line that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        level, frame = level + 1, frame.f_back
    warning = category(text)
    warning.__cause__ = cause
    warnings.warn(warning, stacklevel=level)


def _said(err: Exception) -> str:
    """Return an exception in a line, with the place outside of this package that raised it."""
    place, trace = "", err.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if os.path.dirname(file) != _HERE:
            place = f" ({os.path.basename(file)}:{trace.tb_lineno})"
        trace = trace.tb_next
    return f"{type(err).__name__}: {err}{place}"
