"""Objects that speak the protocols of libraries that Debian does not have, and the libraries."""

import dis
import importlib
import os
from typing import Any, Callable

import numpy as np
import pytest


def needed(module: str) -> Any:
    """Return a library, or skip: with HUSHSUM_REQUIRE_FRAMES=1 those of Debian must be there."""
    if os.environ.get("HUSHSUM_REQUIRE_FRAMES") == "1" and module.split(".")[0] in (
            "pandas", "scipy"):
        return importlib.import_module(module)
    return pytest.importorskip(module, reason=f"{module} is not installed")


def uses_argument(function: Callable) -> bool:
    """Report whether a function of one argument, such as pandas, uses it."""
    return any(i.opname == "LOAD_FAST" for i in dis.get_instructions(function))


class Chunks:
    """A column of PyArrow, or with a method ``null_count`` a series of Polars."""

    def __init__(self, values: Any, plain: str | None = None) -> None:
        self._values, self._plain = list(values), plain

    @property
    def null_count(self) -> int:
        return sum(v is None for v in self._values)

    def to_pylist(self) -> list:
        return self._values

    def __array__(self, dtype: Any = None) -> np.ndarray:
        # With missing values PyArrow and Polars return floats, which do not hold large numbers.
        if self._nulls() and not any(isinstance(v, str) for v in self._values):
            return np.array([np.nan if v is None else v for v in self._values], float)
        return np.array(self._values, dtype or self._plain)

    def _nulls(self) -> int:
        return sum(v is None for v in self._values)


class ArrowTable:
    """A table of PyArrow."""

    schema: Any = None

    def __init__(self, columns: dict) -> None:
        self._columns = {name: Chunks(values) for name, values in columns.items()}
        self.schema = type("schema", (), {"names": list(columns)})()

    @property
    def num_rows(self) -> int:
        return len(next(iter(self._columns.values()))._values)

    def column(self, i: int) -> Chunks:
        return list(self._columns.values())[i]


class Streamed:
    """What has rows for PyArrow, and no other protocol."""

    def __init__(self, columns: dict) -> None:
        self.of = columns

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise NotImplementedError


class Arrow:
    """The module, as far as it is used."""

    @staticmethod
    def table(x: Streamed) -> ArrowTable:
        return ArrowTable(x.of)


class PolarsSeries:
    """A series of Polars."""

    def __init__(self, name: str, values: Any) -> None:
        self.name, self._chunks = name, Chunks(values)

    def null_count(self) -> int:
        return self._chunks._nulls()

    def to_list(self) -> list:
        return self._chunks._values

    def __array__(self, dtype: Any = None) -> np.ndarray:
        return self._chunks.__array__(dtype)


class PolarsFrame:
    """A frame of Polars."""

    def __init__(self, columns: dict) -> None:
        self._columns = [PolarsSeries(name, values) for name, values in columns.items()]

    @property
    def columns(self) -> list:
        return [c.name for c in self._columns]

    def get_columns(self) -> list:
        return self._columns


class PolarsLazy:
    """A frame of Polars whose rows are not read yet."""

    def collect(self) -> PolarsFrame:
        raise AssertionError("it may take hours, and is the caller's to ask for")


class Tensor:
    """A tensor of PyTorch with numbers in a type that NumPy lacks if ``wide``."""

    def __init__(self, values: Any, wide: bool = False) -> None:
        self._values, self._wide = np.asarray(values), wide
        self.shape = self._values.shape

    def detach(self) -> "Tensor":
        return self

    cpu = detach

    def float(self) -> "Tensor":
        return Tensor(self._values.astype(np.float32))

    def numpy(self) -> np.ndarray:
        if self._wide:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._values

    def __array__(self, dtype: Any = None) -> np.ndarray:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


class ArrowSeries:
    """A series of pandas whose numbers are PyArrow's."""

    ndim = 1
    name = "a"

    def __init__(self, values: Any, plain: str) -> None:
        self._chunks = Chunks(values, plain)
        self.dtype = type("ArrowDtype", (), {"pyarrow_dtype": plain})()

    @property
    def iloc(self) -> Any:
        raise AssertionError("each row by itself takes too long")

    isna = to_numpy = iloc  # which in pandas are such

    @property
    def array(self) -> Any:
        return type("ArrowExtensionArray", (), {"__arrow_array__": lambda _: self._chunks})()

    def __getitem__(self, key: Any) -> Any:
        raise KeyError(f"{key} not in index")
