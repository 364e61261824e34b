"""Flower's published source with what Debian has of its dependencies.

HUSHSUM_FLOWER names a folder with Flower's package ``flwr``, of 1.9 or of today, or one of
:mod:`flower_double`. Debian calls pycryptodome's package Cryptodome, and has older releases of
cryptography, protobuf and gRPC. What is missing is only used by Flower's commands and network,
of which no test takes part: it is there by name and does nothing.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from typing import Any

import flower_double

_UNUSED = ("alembic", "click", "grpc_health", "iterators", "pathspec", "requests", "rich",
           "sqlalchemy", "tomli", "tomli_w", "typer", "yaml")


class _Nothing(type):
    """A class all of whose names are itself."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


class _Anything(metaclass=_Nothing):
    """Takes any call, and returns itself: decorators, constructors and methods."""

    def __init__(self, *a: Any, **k: Any) -> None: ...

    def __call__(self, *a: Any, **k: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class _Module(types.ModuleType):
    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything


class _Unused(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what is not needed: generated stubs of gRPC, and packages that are not there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.endswith("_pb2_grpc") or name.split(".")[0] in self.missing:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def __init__(self) -> None:
        self.missing = {n for n in _UNUSED if importlib.util.find_spec(n) is None}

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None: ...


def find() -> str | None:
    """Make Flower importable, and return why it is not."""
    source = os.environ.get("HUSHSUM_FLOWER")
    if source in flower_double.SOURCES:
        flower_double.install(flower_double.SOURCES[source])
        return None
    if source:
        sys.path.insert(0, source)
    try:
        import Cryptodome.Protocol.SecretSharing  # noqa: F401
        import Cryptodome.Util.Padding  # noqa: F401
        import google.protobuf
        from cryptography.hazmat.primitives import serialization
    except ImportError as err:
        return ("Flower needs python3-pycryptodome, python3-cryptography and python3-protobuf: "
                f"{err}")
    for name in [n for n in sys.modules if n.split(".")[0] == "Cryptodome"]:
        sys.modules.setdefault("Crypto" + name[len("Cryptodome"):], sys.modules[name])
    if not hasattr(serialization, "SSHPrivateKeyTypes"):
        for kind in ("SSHPrivateKeyTypes", "SSHPublicKeyTypes"):
            setattr(serialization, kind, object)  # in annotations only
    if importlib.util.find_spec("google.protobuf.runtime_version") is None:
        check = types.ModuleType("google.protobuf.runtime_version")
        check.Domain = types.SimpleNamespace(PUBLIC=0)  # type: ignore[attr-defined]
        check.ValidateProtobufRuntimeVersion = lambda *a: None  # type: ignore[attr-defined]
        sys.modules[check.__name__] = google.protobuf.runtime_version = check
    if not any(isinstance(f, _Unused) for f in sys.meta_path):
        sys.meta_path.insert(0, _Unused())
    try:
        import flwr.client.mod  # noqa: F401
        import flwr.server.workflow  # noqa: F401
    except ImportError as err:
        return f"there is no Flower: set HUSHSUM_FLOWER to its source ({err})"
    return None
