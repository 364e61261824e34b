"""Models as vectors: arrays, or dictionaries and lists of arrays, flattened and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Mapping, Sequence, Union

import numpy as np

from ._sidecar import Blob
from .errors import ConfigError

Arrays = Union[np.ndarray, float, Mapping[str, Any], Sequence[Any]]
"""An array, a number, or a dictionary or list of these: a ``state_dict`` of PyTorch, the
``get_weights()`` of Keras, ``{"coef": m.coef_, "intercept": m.intercept_}`` of scikit-learn.
Tensors of PyTorch are taken as they are."""


def as_array(x: Any) -> np.ndarray:
    """Return an array, or the numbers of a PyTorch tensor, without a copy if possible."""
    if hasattr(x, "detach"):  # a tensor
        x = x.detach().cpu().numpy()
    if isinstance(x, np.ma.MaskedArray):
        raise ConfigError("an array has masked numbers, which would count", kind="config",
                          advice="give x.filled(0), or what is to stand for them")
    try:
        a = np.asarray(x)
    except ValueError:  # whose text has lengths, which may be how many records were drawn
        raise ConfigError("lists of different lengths are no array", kind="config",
                          advice="give lists of equal lengths") from None
    if a.dtype.kind not in "fiub":
        raise ConfigError(
            f"an array of {a.dtype} is not of numbers", kind="config",
            advice="give arrays of floats or integers",
        )
    return a


@dataclass(frozen=True)
class _Leaf:
    shape: tuple[int, ...]
    dtype: str
    scalar: bool

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Structure:
    """The shapes of a model, by which vectors and models become each other.

    Dictionaries are flattened in the order of their sorted keys, so that it does not matter
    in which order two sides have made theirs.
    """

    def __init__(self, like: Arrays) -> None:
        self._tree = self._of(like)
        self.size = sum(leaf.size for _, leaf in self._leaves(self._tree, ""))

    def _of(self, x: Any) -> Any:
        if isinstance(x, Mapping):
            return {str(k): self._of(x[k]) for k in sorted(x)}
        if isinstance(x, (list, tuple)):
            return [self._of(v) for v in x]
        a = as_array(x)
        return _Leaf(a.shape, a.dtype.str, not isinstance(x, np.ndarray) and a.shape == ())

    def _leaves(self, tree: Any, path: str) -> Any:
        if isinstance(tree, _Leaf):
            yield path, tree
        else:
            items = tree.items() if isinstance(tree, dict) else enumerate(tree)
            for k, v in items:
                yield from self._leaves(v, f"{path}[{k!r}]")

    def not_finite(self, model: Arrays) -> str | None:
        """Return where a model has NaN or infinity first, such as ``['w']``; ``None``: nowhere."""
        x = np.empty(self.size)
        at = 0
        self.write(model, x)
        for path, leaf in self._leaves(self._tree, ""):
            if not np.isfinite(x[at : at + leaf.size]).all():
                return str(path)
            at += leaf.size
        return None

    def write(self, model: Arrays, into: np.ndarray) -> None:
        """Write a model of this structure to a vector of ``size`` numbers, in one pass; or as many
        models as a matrix has rows, each array with a first dimension more."""
        end = self._write(self._tree, model, into, 0, "")
        assert end == self.size

    def _write(self, tree: Any, x: Any, into: np.ndarray, at: int, path: str) -> int:
        if isinstance(tree, _Leaf):
            if isinstance(x, Mapping):
                raise _differs(
                    path, f"is a dictionary, where the job has {_described(tree)}",
                    "return one array, such as np.concatenate([a.ravel() for a in arrays]), or "
                    "tell the job of the dictionary: settle(like=model), or [[model.tensor]] in "
                    "its file",
                )
            a = as_array(x)
            many = into.shape[:-1]
            if a.shape != many + tree.shape:
                raise _differs(path, f"has shape {a.shape}, not {tree.shape}") if not many else (
                    _differs_by_record(path, a.shape, many + tree.shape))
            with np.errstate(over="ignore"):  # infinity is refused with the name of its array
                if many:
                    into[:, at : at + tree.size] = a.reshape(*many, tree.size)
                else:
                    np.copyto(into[at : at + tree.size].reshape(tree.shape), a, casting="unsafe")
            return at + tree.size
        if isinstance(tree, dict):
            if not isinstance(x, Mapping):
                entries = ", ".join(f"{k!r}: {_described(t)}" for k, t in list(tree.items())[:8])
                more = ", …" if len(tree) > 8 else ""
                raise _differs(path, "is not a dictionary, where the job has one",
                               f"return {{{entries}{more}}}")
            if {str(k) for k in x} != tree.keys():
                odd = sorted({str(k) for k in x} ^ tree.keys())
                raise _differs(path, f"has other keys than it should: {', '.join(odd[:8])}")
            parts = [(tree[str(k)], x[k], f"{path}[{k!r}]") for k in sorted(x)]
        else:
            if not isinstance(x, (list, tuple)) or len(x) != len(tree):
                raise _differs(path, f"is not a list of {len(tree)} arrays")
            parts = [(t, v, f"{path}[{i}]") for i, (t, v) in enumerate(zip(tree, x))]
        for t, v, p in parts:
            at = self._write(t, v, into, at, p)
        return at

    def read(self, vector: np.ndarray, *, copy: bool = True) -> Any:
        """Make a model of a vector of ``size`` numbers. Its arrays are new ones, or without
        ``copy`` parts of the vector where they are of the same type."""
        model, end = self._read(self._tree, vector, 0, copy)
        assert end == vector.size
        return model

    def _read(self, tree: Any, vector: np.ndarray, at: int, copy: bool) -> tuple[Any, int]:
        if isinstance(tree, _Leaf):
            part = vector[at : at + tree.size].reshape(tree.shape)
            if tree.scalar:
                return float(part), at + tree.size
            dtype = np.dtype(tree.dtype)
            if dtype.kind != "f":
                dtype = np.dtype(np.float64)  # a mean of integers is none
            return part.astype(dtype, copy=copy), at + tree.size
        if isinstance(tree, dict):
            out: dict[str, Any] = {}
            for k, t in tree.items():
                out[k], at = self._read(t, vector, at, copy)
            return out, at
        values = []
        for t in tree:
            value, at = self._read(t, vector, at, copy)
            values.append(value)
        return values, at

    @property
    def numbers(self) -> str:
        """The type that holds every number of such a model, "float32" or "float64"."""
        leaves = (leaf for _, leaf in self._leaves(self._tree, ""))
        return "float32" if all(leaf.dtype[1:] in ("f2", "f4") for leaf in leaves) else "float64"

    def blob(self, model: Arrays, numbers: str = "float64") -> Blob:
        """Return the numbers of a model for a call, little-endian."""
        dtype = np.dtype(numbers).newbyteorder("<")
        return Blob(dtype.itemsize * self.size,
                    lambda into: self.write(model, np.frombuffer(into, dtype)))


def narrow(x: Any) -> bool:
    """Report whether float32 holds every number of a model, whatever its structure."""
    if isinstance(x, Mapping):
        return all(narrow(v) for v in x.values())
    if isinstance(x, (list, tuple)):
        return all(narrow(v) for v in x)
    return bool(np.can_cast(as_array(x).dtype, np.float32))


def _described(tree: Any) -> str:
    """Return what stands at a place of a structure, in words."""
    if isinstance(tree, dict):
        return "a dictionary"
    if isinstance(tree, list):
        return f"a list of {len(tree)}"
    return f"an array of shape {tree.shape}" if tree.shape else "a number"


def _differs_by_record(path: str, got: tuple[int, ...], want: tuple[int, ...]) -> ConfigError:
    """Return the error of gradients of another shape. How many records they are of is secret."""
    n, *each = want
    if len(got) == len(want) and got[0] == n:
        return _differs(path, f"has a gradient of shape {got[1:]} for each record, not "
                              f"{tuple(each)}")
    return _differs(path, "does not have a gradient for each record",
                    f"return an array of shape {('records', *each)}".replace("'", ""))


def _differs(
    path: str, what: str,
    advice: str = "give arrays of the shapes that the model was declared with",
) -> ConfigError:
    return ConfigError(f"the model{path} {what}", kind="length", field=path or None, advice=advice)
