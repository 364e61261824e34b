"""What declared jobs do, whatever their fields are."""

from __future__ import annotations

import dataclasses
import keyword
import os
from pathlib import Path
from typing import Any, Mapping, Sequence, TypeVar

from . import _sidecar

_T = TypeVar("_T", bound="Declared")


class Declared:
    """A job that is declared in a file, or here."""

    @classmethod
    def load(cls: type[_T], path: str | os.PathLike[str]) -> _T:
        """Read a job from a file: TOML, or JSON.

        Raises:
            ConfigError: with all mistakes of the file in ``mistakes``, each with its line.
        """
        result = _parsed(Path(path).read_bytes(), os.fspath(path))
        job: _T = _built(cls, result["job"])
        return job

    @classmethod
    def parse(cls: type[_T], text: str | bytes) -> _T:
        """Read a job from the text of a file: TOML, or JSON after a brace."""
        result = _parsed(text.encode() if isinstance(text, str) else text)
        job: _T = _built(cls, result["job"])
        return job

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from its default, nested as in a file.

        A zero, an empty text and ``False`` mean the default. ``json.dumps`` of it is a file.
        """
        return _plain(self)

    def digest(self) -> str:
        """Return the job's digest, 64 hexadecimal digits: the same for the same declaration
        in a simulation, in the service and from Go. It has neither ``time`` nor ``world`` in it.

        Raises:
            ConfigError: the job is not valid.
        """
        return str(_parsed(_sidecar.encode(self.to_dict()))["digest"])

    def explain(self) -> tuple[str, ...]:
        """Return what the job declares, in sentences: those of ``hushsum job check``.

        Raises:
            ConfigError: the job is not valid.
        """
        return tuple(_parsed(_sidecar.encode(self.to_dict()))["explain"])


def _parsed(text: bytes, name: str = "") -> dict[str, Any]:
    result, _ = _sidecar.current().call("job.parse", {"name": name}, [text])
    return dict(result)


def _plain(table: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for f in dataclasses.fields(table):
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
