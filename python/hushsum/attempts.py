"""What is said of a training function that fails."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Callable

from .errors import ConfigError, Error

if TYPE_CHECKING:
    from .records import Records

_HERE = os.path.dirname(__file__)


class Attempts:
    """The calls of a party's training function. A call that fails costs the party its part of that
    round and no more, so that the first is a warning; that none succeeds is an error in the end. A
    function that gets drawn records costs the party the records on which it fails.

    Which records are drawn is secret, and so is how many, for as long as the model is used: logs
    are kept, sent to other machines and shown to colleagues. So of what a function raises there the
    type and the place are told and nothing else is kept, and of records no number, not even of
    those that failed."""

    def __init__(self, drawn: bool = False) -> None:
        self._made, self._failed = 0, 0
        self._drawn = drawn
        self._said = ""
        self._first: BaseException | None = None
        self._round = 0
        self._told: set[str] = set()

    def said(self, err: BaseException) -> str:
        """Return an exception in a line."""
        return _said(err, self._drawn)

    def succeeded(self) -> None:
        """Count a call that returned what can be submitted."""
        self._made += 1

    def failed(self, round: int, err: BaseException) -> None:
        """Count a call that did not, and warn if it is the first. Answer for the round before: a
        filter may make an exception of the warning."""
        self._made += 1
        self._failed += 1
        if not self._said:
            self._said, self._round = self.said(err), round
            self._first = None if self._drawn else err
            warn(f"training failed in round {round}, whose sum has nothing from this party: "
                 f"{self._said}; only progress hears of later failures", RuntimeWarning,
                 self._first)

    def summed(self, round: int, records: Records, tell: Callable[[str], None]) -> None:
        """Count a sum over drawn records, tell progress what has come of it, and warn of each kind
        of failure once. Answer for the round before, so that nobody else can tell."""
        err = records.alone
        if err is not None and records.failed == records.drawn:
            tell(f"train failed on all records: {self.said(err)}")
            self.failed(round, err)
            return
        self.succeeded()
        tell("trained" if err is None else
             f"train failed on some records, which add nothing: {self.said(err)}")
        self._tell(f"in round {round}", "some records, which add", records,
                   "; only progress hears of later failures")

    def simulated(self, party: int, records: Records) -> None:
        """Raise what a function raised on all records, if it has worked on none before, and warn of
        failures on some. A simulation has no secrets from the owner, who looks for such records."""
        err = records.alone
        if err is not None and records.failed == records.drawn and not self._made:
            raise err
        self._made += 1
        self._tell(f"of parties[{party}]", f"{records.failed} of {records.drawn} records, the first "
                   f"in row {records.first}, which add", records)

    def _tell(self, where: str, some: str, records: Records, more: str = "") -> None:
        """Warn of each kind of failure that a sum had, unless it was warned of before."""
        alone, together = records.alone, records.together
        if alone is not None:
            self._warn("alone", f"{where} train failed on {some} nothing: {self.said(alone)}{more}",
                       alone)
        elif together is not None:
            self._warn("together", f"{where} train failed on several records at once, and on none of "
                       f"them alone, which takes longer: {self.said(together)}", together)
        if records.left_out:
            self._warn("left out", "the gradients of some records are not finite, and add nothing; "
                       "look for NaN or infinity in the rows, and in training")

    def _warn(self, kind: str, text: str, cause: BaseException | None = None) -> None:
        if kind not in self._told:
            self._told.add(kind)
            warn(text, RuntimeWarning, None if self._drawn else cause)

    def end(self, err: Error | None = None) -> None:
        """Raise if every call failed, with the first exception as the cause; and in any case if
        the job ended with an error."""
        first = self._first
        over = err is None or err.kind == "absent"
        if over and self._said and self._made == self._failed:
            calls = "the one call" if self._made == 1 else f"each of {self._made} calls"
            raise Error(
                f"no sum has anything from this party since it joined: {calls} of its training "
                f"function failed, the first in round {self._round}: {self._said}", kind="absent",
                advice="correct the function; " + (
                    "hushsum.simulate raises what it raises" if self._drawn else
                    "the first exception is this error's __cause__"),
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


def _said(err: BaseException, drawn: bool) -> str:
    """Return an exception in a line, with the place outside of this package that raised it. Where
    records are drawn it has no text, unless no other code took part in it."""
    place, trace = "", err.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if os.path.dirname(file) != _HERE:
            place = f" ({os.path.basename(file)}:{trace.tb_lineno})"
        trace = trace.tb_next
    text = "" if drawn and (place or not isinstance(err, Error)) else f": {err}"
    return f"{type(err).__name__}{text}{place}"
