"""What declared jobs do, whatever their fields are."""

from __future__ import annotations

import dataclasses
import keyword
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Sequence, TypeVar

from . import _sidecar

if TYPE_CHECKING:
    from .arrays import Arrays
    from .settled import People, Settled

_T = TypeVar("_T", bound="Declared")


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A job that is declared in a file, or here."""

    # In which the files are that it names: that of its own. Of a job that is made here it is the
    # one that is current when it is settled.
    _folder: str = dataclasses.field(default="", repr=False, compare=False)

    if TYPE_CHECKING:
        name: str

    @classmethod
    def load(cls: type[_T], path: str | os.PathLike[str]) -> _T:
        """Read a job from a file: TOML, or JSON.

        Raises:
            ConfigError: with all mistakes in the file in ``mistakes``, each with its line.
        """
        result = _parsed(Path(path).read_bytes(), os.fspath(path))
        job: _T = _built(cls, {**result["job"], "_folder": str(Path(path).absolute().parent)})
        return job

    @classmethod
    def parse(cls: type[_T], text: str | bytes) -> _T:
        """Read a job from the text of a file: TOML, or JSON after a brace."""
        result = _parsed(text.encode() if isinstance(text, str) else text)
        job: _T = _built(cls, result["job"])
        return job

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, nested as in a file.

        A zero, an empty text and ``False`` mean the default. ``json.dumps`` of it is a file.
        """
        return _plain(self)

    def digest(self) -> str:
        """Return the job's digest, 64 hexadecimal digits: the same for the same declaration
        in a simulation, in the service and from Go. It has neither ``time`` nor ``world`` in it.

        Raises:
            ConfigError: the job is not valid.
        """
        return str(self._parsed()["digest"])

    def explain(self) -> tuple[str, ...]:
        """Return what the job declares, in the sentences that ``hushsum job check`` prints.

        Raises:
            ConfigError: the job is not valid.
        """
        return tuple(self._parsed()["explain"])

    def settle(
        self, roster: "People | None" = None, *, committee: "People | None" = None,
        like: "Arrays | None" = None,
    ) -> "Settled":
        """Work the job out for its parties.

        Args:
            roster: names and public keys (64 hexadecimal digits) of all parties, in an order
                that all sides share. It must reach every party over a channel that the server
                does not control. ``None``: that of the file that the job names.
            committee: the same for the members, in a job with one-message sums.
            like: a model; vectors and means then have its structure. ``None``: that of the
                job's tensors, or arrays of shape ``(length,)``.

        Raises:
            ConfigError: the job is not valid, or impossible with that many parties.
        """
        from .settled import Settled

        return Settled(self, roster, committee=committee, like=like)

    def _text(self) -> bytes:
        return _sidecar.encode(self.to_dict())

    def _parsed(self) -> dict[str, Any]:
        return _parsed(self._text())

    def _settling(self) -> tuple[str, dict[str, Any], list[bytes]]:
        """Return the call that settles it."""
        return "job.settle", {"folder": self._folder or os.getcwd()}, [self._text()]


def _parsed(text: bytes, name: str = "") -> dict[str, Any]:
    result, _ = _sidecar.current().call("job.parse", {"name": name}, [text])
    return dict(result)


def _plain(table: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for f in dataclasses.fields(table):
        if f.name.startswith("_"):
            continue
        value = getattr(table, f.name)
        if dataclasses.is_dataclass(value):
            value = _plain(value)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            value = [_plain(v) if dataclasses.is_dataclass(v) else v for v in value]
        if value and value != f.default:
            out[f.name.rstrip("_")] = value
    return out


def _built(cls: type[Any], tree: Mapping[str, Any]) -> Any:
    """Make an instance of a class of what :func:`_plain` returns."""
    given: dict[str, Any] = {}
    for name, value in tree.items():
        inner = getattr(cls, name.capitalize(), object)
        if isinstance(value, Mapping):
            value = _built(inner, value)
        elif isinstance(value, list):
            value = tuple(_built(inner, v) if isinstance(v, Mapping) else v for v in value)
        given[name + "_" * keyword.iskeyword(name)] = value
    return cls(**given)
