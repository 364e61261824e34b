"""Models as safetensors files: eight bytes of length, a header in JSON, and the numbers."""

from __future__ import annotations

import json
from typing import Any, Mapping

import numpy as np

from .errors import ConfigError

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
           "I8": "i1", "U8": "u1", "BOOL": "?"}
_NAMES = {np.dtype(v): k for k, v in _DTYPES.items()}
_MAX_HEADER = 100 << 20


def _bad(why: str) -> ConfigError:
    return ConfigError(f"not a safetensors file: {why}", kind="encoding",
                       advice="give a file that the service or safetensors has written")


def read(data: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of a file, by name in the file's order."""
    if len(data) < 8:
        raise _bad("it is too short")
    n = int.from_bytes(data[:8], "little")
    if n > min(len(data) - 8, _MAX_HEADER):
        raise _bad("its header is longer than it")
    try:
        header = json.loads(data[8 : 8 + n])
        out = {}
        body = memoryview(data)[8 + n :]
        for name, about in header.items():
            if name == "__metadata__":
                continue
            dtype = np.dtype(_DTYPES[about["dtype"]])
            begin, end = (int(x) for x in about["data_offsets"])
            shape = tuple(int(x) for x in about["shape"])
            if not 0 <= begin <= end <= len(body):
                raise _bad(f"{name} is outside of it")
            out[name] = np.frombuffer(body[begin:end], dtype).reshape(shape).copy()
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        raise _bad(str(err)) from err
    return out


def write(arrays: Mapping[str, Any]) -> bytes:
    """Return the bytes of a file with these arrays, in the order of their names."""
    header: dict[str, Any] = {}
    parts, at = [], 0
    for name in sorted(arrays):
        a = np.asarray(arrays[name], order="C")
        a = a.astype(a.dtype.newbyteorder("<"), copy=False)
        if a.dtype not in _NAMES:
            a = a.astype("<f8")
        header[name] = {"dtype": _NAMES[a.dtype], "shape": list(a.shape),
                        "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
        parts.append(a.tobytes())
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)
