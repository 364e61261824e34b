"""Exceptions that say what is wrong, who is at fault and what to do about it."""

from __future__ import annotations

from typing import Any, Mapping


class Error(Exception):
    """The base class of all errors of the library.

    Attributes:
        kind: what went wrong, for programs, such as ``"too-few"``.
        reason: what is wrong, in words.
        advice: what to do about it, in words, or ``""``.
        field: which parameter is at fault, or ``None``.
        party: roster index of the party that is at fault, or ``None``.
        name: its name in the roster (of a ledger: the client), or ``None``.
        parties: roster indices of the parties that are missing, or ``()``.
        mistakes: all that is wrong with a job, in the order of its lines, or ``()``: ``line`` and
            ``column`` (0: it has no place), ``path``, ``reason`` and ``advice`` of each, and
            ``named``, the path with names of lists' elements, where they have some.
    """

    def __init__(
        self,
        text: str,
        *,
        kind: str = "failed",
        reason: str | None = None,
        advice: str = "",
        field: str | None = None,
        party: int | None = None,
        name: str | None = None,
        parties: tuple[int, ...] = (),
        mistakes: tuple[Mapping[str, Any], ...] = (),
    ) -> None:
        super().__init__(text)
        self.kind = kind
        self.reason = text if reason is None else reason
        self.advice = advice
        self.field = field
        self.party = party
        self.name = name
        self.parties = parties
        self.mistakes = mistakes

    def __str__(self) -> str:
        text = str(self.args[0])
        if self.advice and self.advice not in text:
            text += f"; {self.advice}"
        return text

    def __reduce__(self) -> Any:
        keep = {k: v for k, v in self.__dict__.items()}
        return _rebuild, (type(self), str(self.args[0]), keep)


def _rebuild(of: type[Error], text: str, fields: dict[str, Any]) -> Error:
    return of(text, **fields)


class ConfigError(Error, ValueError):
    """A parameter is outside its range, or inconsistent with the others."""


class RequestError(ConfigError):
    """A call is malformed: a wrong type, or an unknown name."""


class JobError(Error):
    """Two sides have different jobs: ``field`` says where they differ."""


class MessageError(Error):
    """A message was refused, and changed nothing."""


class TooFewError(Error):
    """Too few parties, or not all those needed: ``parties`` are missing."""


class BudgetError(Error):
    """A round would take a client, or this party, over its budget; it was not recorded."""


class StatementError(Error, TypeError):
    """Two epsilons are about different things, or are compared or added as if they were numbers."""


class StateError(Error):
    """A saved state cannot be opened, or belongs to another party, job or number."""


class SidecarError(Error):
    """The process next to this one has ended, or cannot be started."""


class ProcessError(Error):
    """An object is used in a process other than the one that made it."""


_CLASSES: dict[str, type[Error]] = {
    **dict.fromkeys(
        ("config", "bits", "length", "range", "not-finite", "counts", "identity", "unreachable",
         "unsupported", "too-large", "rows"),
        ConfigError,
    ),
    **dict.fromkeys(("request", "object"), RequestError),
    **dict.fromkeys(("job",), JobError),
    **dict.fromkeys(
        ("truncated", "trailing", "oversized", "version", "type", "session", "sender", "duplicate",
         "own-key", "encapsulation-key", "public-key", "signature", "members", "replay", "stale",
         "skip", "participants", "survivors", "certificate", "broadcast", "encoding", "context",
         "key", "lost", "excluded", "full", "number", "repeated", "round"),
        MessageError,
    ),
    **dict.fromkeys(("too-few", "missing"), TooFewError),
    **dict.fromkeys(("budget", "spent"), BudgetError),
    "statement": StatementError,
    **dict.fromkeys(("state", "store", "old-state", "locked", "ledger", "book"), StateError),
    **dict.fromkeys(("frame", "internal"), SidecarError),
}


def from_fault(fault: Mapping[str, Any]) -> Error:
    """Make the exception of an error that the sidecar has answered with."""
    kind = fault["kind"]
    # That a call is not of its form is no news to who called a function: what of it, is.
    text = fault["reason"] if kind == "request" else fault["text"]
    for package in ("hushsum", "drive", "protocol", "privacy", "accounting", "aggregation", "noise",
                    "keyexchange", "masking", "sidecar", "audit", "oneshot", "job", "query",
                    "table", "consent"):
        text = text.removeprefix(package + ": ")
    return _CLASSES.get(kind, Error)(
        text,
        kind=kind,
        reason=fault["reason"],
        advice=fault["advice"],
        field=fault.get("field"),
        party=fault.get("party"),
        name=fault.get("name"),
        parties=tuple(fault.get("parties") or ()),
        mistakes=tuple(fault.get("mistakes") or ()),
    )
