"""The one door for rows: whatever people hold becomes arrays, once, in the order of its positions.

Libraries are recognised by what the classes of their objects have. None of them is imported here,
and a column of a frame is never taken for a method.
"""

from __future__ import annotations

import array
import datetime
import decimal
import numbers
import os
import sys
from typing import Any, Iterable, Iterator, Mapping

import numpy as np

from .errors import ConfigError

_EXACT = 1 << 53  # up to it float64 holds every whole number
_NUMBERS = "fiub"
_PLAIN = _NUMBERS + "cUSMm"  # and complex numbers, text and times


def rows(data: Any) -> Any:
    """Return rows as arrays, in which ``array[i]`` is the row at position i.

    :func:`hushsum.join` and :func:`hushsum.simulate` read all rows by this function. Order is by
    position: an index of pandas, whatever it is, plays no part.

    Args:
        data: an array of NumPy, or of a library with ``__array__``; a series, index or frame of
            pandas; a series or frame of Polars; an array or table of PyArrow, or, where PyArrow is
            imported, an object with ``__arrow_c_stream__``; a tensor of PyTorch; a matrix of
            scipy.sparse; or a list with an element for each row. A tuple holds several of these,
            with equally many rows.

    Returns:
        An array of shape (rows, …); of a tuple, a tuple of them. A frame becomes an array of shape
        (rows, columns), of the type that holds the numbers of all its columns. A missing number
        becomes NaN, and a category becomes its value. An array is returned without a copy, and a
        sparse matrix stays sparse: in the form of its ``tocsr()``.

    Raises:
        ConfigError: data is of another type; an array is masked, or its objects are neither all
            numbers nor all text; a column of a frame has no numbers; a whole number above 2^53
            would become a float; or the arrays of a tuple have different numbers of rows.
    """
    if not isinstance(data, tuple):
        return _rows(data, "the rows")
    parts = tuple(_rows(part, f"array {i + 1} of the rows") for i, part in enumerate(data))
    if len({part.shape[0] for part in parts}) != 1:
        raise unfit("the rows are no records: their arrays are not of one length",
                    "give an array, or a tuple of arrays, with one element for each record")
    return parts


def taken(part: Any, at: np.ndarray) -> np.ndarray:
    """Return the rows at these positions of what :func:`rows` returned.

    They are next to each other in memory, however the whole array is laid out: the last bit of a
    sum depends on that.
    """
    picked = part[at]
    return np.ascontiguousarray(picked.toarray() if _is_sparse(part) else picked)


def dense(part: Any) -> np.ndarray:
    """Return what :func:`rows` returned as an array, if it is sparse."""
    return np.asarray(part.toarray() if _is_sparse(part) else part)


def named(x: Any) -> list[tuple[str, np.ndarray]] | None:
    """Return names and values of the columns of a frame, or of a series that has a name, as
    :func:`values` does; ``None``: it is neither."""
    x = _read(x)
    columns = _columns(x)
    if columns is None:
        a = None if isinstance(x, np.ndarray) else _values(x)
        name = getattr(x, "name", None)
        return None if a is None or name is None else [(str(name), a)]
    out = []
    for name, column in columns:
        if isinstance(name, tuple):
            raise ConfigError(
                f"the column {name!r} has a name of several parts", kind="rows", field="rows",
                advice="give each column one name, as frame.columns.map('_'.join) does")
        out.append((str(name), values(name, column)))
    return out


def values(name: Any, column: Any) -> np.ndarray:
    """Return an array of shape (rows,) of any column, with ``None`` or NaN for what is missing."""
    a = _values(column)
    if a is None:
        if isinstance(column, (str, bytes, Mapping, set, frozenset)) or not hasattr(
                column, "__iter__"):
            raise refused(column, f"the values of the column {name!r}")
        a = _objects(column)
    if a.ndim != 1:
        raise ConfigError(f"the column {name!r} has values of shape {a.shape}", kind="rows",
                          field="rows", advice="give one value for each row")
    return a


def texts(name: Any, column: np.ndarray) -> Iterator[str]:
    """Return each value of a column as text that is exact; nothing where it is missing."""
    for i, value in enumerate(column):
        text = _text(value)
        if text is None:
            raise ConfigError(
                f"the column {name!r} has a {type(value).__name__} in row {i + 1}", kind="rows",
                field="rows", advice="give numbers, text, dates, or None for a missing value")
        yield text


def refused(x: Any, what: str) -> ConfigError:
    """Return the error of an object that holds no rows."""
    advice = ("give an array, a frame or a series of pandas or Polars, a table of PyArrow, a "
              "tensor, a matrix of scipy.sparse, or a list; a tuple holds several of these")
    if _is_lazy(x):
        method = "collect" if _has(x, "collect") else "compute"
        advice = f"its rows are not here yet: give what its method {method} returns"
    elif isinstance(x, (str, bytes, os.PathLike)):
        advice = "read the file first, as pandas.read_csv(path) does"
    elif isinstance(x, Mapping):
        advice = "give pandas.DataFrame(rows), or a tuple of its arrays"
    elif isinstance(x, (set, frozenset, Iterator)):
        advice = "give a list, which has an order and can be read again"
    elif _has(x, "__dataframe__") or _has(x, "__arrow_c_stream__"):
        advice = "give a frame of pandas, as its method to_pandas may return"
    return unfit(f"{what} are no records: a {type(x).__name__} is not read", advice)


def unfit(reason: str, advice: str) -> ConfigError:
    """Return an error about rows."""
    return ConfigError(reason, kind="config", field="rows", advice=advice)


def is_frame(x: Any) -> bool:
    """Report whether this is a frame, a table or a series, whose elements are no rows."""
    return _has(x, "iloc") or _columns(x) is not None


def _has(x: Any, *names: str) -> bool:
    return all(hasattr(type(x), name) for name in names)


def _is_sparse(x: Any) -> bool:
    return _has(x, "tocsr", "nnz")


def _is_lazy(x: Any) -> bool:
    """Report whether an object of Dask, Polars or Spark has no rows until it is asked for them."""
    return _has(x, "collect") or _has(x, "dask")


def _read(x: Any) -> Any:
    """Return a table of an object that streams its rows, where PyArrow is there to read them."""
    arrow = sys.modules.get("pyarrow")
    if arrow is None or not _has(x, "__arrow_c_stream__") or _has(x, "__array__"):
        return x
    try:
        return x if _columns(x) is not None else arrow.table(x)
    except (TypeError, ValueError, RuntimeError):  # PyArrow before 14 reads no streams
        return x


def _columns(x: Any) -> list[tuple[Any, Any]] | None:
    """Return the names and the columns of a frame; ``None``: it is none."""
    if _is_lazy(x):
        return None
    if _has(x, "iloc") and x.ndim == 2:  # of pandas
        return [(name, x.iloc[:, i]) for i, name in enumerate(x.columns)]
    if _has(x, "get_columns"):  # of Polars
        return list(zip(x.columns, x.get_columns()))
    if _has(x, "num_rows", "schema"):  # of PyArrow
        return [(name, x.column(i)) for i, name in enumerate(x.schema.names)]
    return None


def _rows(x: Any, what: str) -> Any:
    """Return one array, or one sparse matrix."""
    if _is_sparse(x):
        if len(x.shape) == 2:
            return x.tocsr()
        x = x.toarray()
    x = _read(x)
    columns = _columns(x)
    if columns is not None:
        return _joined(x, columns, what)
    if isinstance(x, (list, tuple)):
        return _listed(x, what)
    a = _values(x)
    if a is None or a.ndim == 0:
        raise refused(x, what)
    return _typed(a, what)


def _values(x: Any) -> np.ndarray | None:
    """Return an array of what is no frame and no list: where it is of objects, with ``None`` for
    those that are missing; ``None``: it holds no values in an order."""
    if isinstance(x, np.ma.MaskedArray):
        raise unfit("the rows are a masked array, and masked numbers would count",
                    "give x.filled(numpy.nan), or what is to stand for them")
    if isinstance(x, np.ndarray):
        return np.asarray(x)
    if _has(x, "detach"):  # a tensor
        x = x.detach().cpu()
        x = x.to_dense() if getattr(x, "is_sparse", False) else x
        try:
            return np.asarray(x.numpy())
        except TypeError:  # of a type that NumPy lacks, such as bfloat16: float32 holds it
            return np.asarray(x.float().numpy())
    if _has(x, "to_numpy", "isna") and x.ndim == 1:
        return _of_pandas(x)
    if _has(x, "null_count", "__array__"):  # of Polars or PyArrow
        nulls = x.null_count() if callable(x.null_count) else x.null_count
        try:
            a = np.asarray(x)
            if not nulls or a.dtype.kind == "M":  # which has NaT for them
                return a
        except (TypeError, ValueError, RuntimeError):  # of a type, or times, that NumPy lacks
            pass
        return _objects(x.to_list() if _has(x, "to_list") else x.to_pylist())
    if _has(x, "__array__") and not _is_lazy(x):
        try:
            return np.asarray(x)
        except (TypeError, ValueError, RuntimeError):  # it is on another device, say
            return None
    return np.asarray(x) if isinstance(x, (range, memoryview, array.array)) else None


def _of_pandas(x: Any) -> np.ndarray:
    """Return the values of a series, an index or an extension array of pandas, by position."""
    if not _has(x, "iloc"):
        if getattr(x, "nlevels", 1) > 1:
            raise unfit("the rows are an index of several levels",
                        "give one of them, such as index.get_level_values(0)")
        x = sys.modules["pandas"].Series(x)  # pandas is there, since it has made x
    dtype = x.dtype
    if isinstance(dtype, np.dtype) or hasattr(dtype, "subtype"):  # of NumPy, or sparse
        return np.asarray(x.to_numpy())
    if hasattr(dtype, "pyarrow_dtype"):
        return np.asarray(_values(x.array.__arrow_array__()))
    missing = np.asarray(x.isna(), bool)
    if hasattr(dtype, "categories") and hasattr(x, "cat"):
        codes, categories = np.asarray(x.cat.codes), _of_pandas(x.cat.categories)
        if not missing.any():
            return np.asarray(categories[codes])
        out = np.full(len(codes), None, object)
        out[~missing] = categories.astype(object)[codes[~missing]]
        return out
    plain = getattr(dtype, "numpy_dtype", None)  # of numbers that may be missing
    if isinstance(plain, np.dtype) and plain.kind in _NUMBERS:
        if not missing.any():
            return np.asarray(x.to_numpy(dtype=plain))
        if plain.kind == "f":
            return np.asarray(x.to_numpy(dtype=plain, na_value=np.nan))
    if not missing.any():
        return np.asarray(x.to_numpy())
    out = np.array(x.astype(object).to_numpy(), object)
    out[missing] = None
    return out


def _objects(x: Iterable[Any]) -> np.ndarray:
    """Return an array of shape (elements,), whatever they are."""
    each = list(x)
    out = np.empty(len(each), object)
    for i, value in enumerate(each):
        out[i] = value
    return out


def _typed(a: np.ndarray, what: str) -> np.ndarray:
    """Return an array of one type: of numbers, with NaN for missing ones, of text or of times."""
    if a.dtype.kind in _PLAIN:
        return a
    if a.dtype.kind != "O":
        raise unfit(f"{what} are no records: they are an array of {a.dtype}",
                    "give an array for each field, in a tuple")
    flat = a.ravel()
    missing = np.fromiter(map(_is_missing, flat), bool, flat.size)
    there = list(flat[~missing])
    if there and all(isinstance(v, str) for v in there):
        return a
    for i in np.flatnonzero(~missing):
        if not _is_number(flat[i]):
            raise unfit(f"{what} are no records: row {i // (flat.size // len(a)) + 1} has a "
                        f"{type(flat[i]).__name__}, and not all are of text",
                        "give an array of numbers, or of text")
    if 0 < len(there) == flat.size and all(
            isinstance(v, (numbers.Integral, np.bool_)) for v in there):
        alike = all(isinstance(v, (bool, np.bool_)) for v in there)
        try:
            return np.array([int(v) for v in there], np.int64).astype(
                bool if alike else np.int64).reshape(a.shape)
        except OverflowError:
            raise unfit(f"{what} have whole numbers of more than 64 bits",
                        "give smaller ones, or text") from None
    for v in there:
        if isinstance(v, numbers.Integral) and abs(int(v)) > _EXACT:
            raise _inexact(what)
    out = np.full(flat.size, np.nan)
    out[~missing] = [float(v) for v in there]
    return out.reshape(a.shape)


def _listed(x: Any, what: str) -> np.ndarray:
    """Return an array of a list with an element for each row."""
    for v in {type(v): v for v in x}.values():
        if is_frame(v) or _is_sparse(v) or isinstance(v, Mapping):
            raise unfit(f"{what} are no records: a list holds rows, and an element of this one is "
                        f"a {type(v).__name__}",
                        "give several arrays in a tuple, and dictionaries as "
                        "pandas.DataFrame(rows)")
    if any(getattr(v, "shape", ()) != () for v in x):  # an array or a tensor for each row
        each = [_rows(v, what) for v in x]
        if len({v.shape for v in each}) > 1:
            raise _ragged(what)
        return np.stack(each)
    try:
        a = np.asarray(x)
    except ValueError:
        raise _ragged(what) from None
    if a.dtype.kind in "US" or a.dtype.kind == "f" and bool((np.abs(a) >= _EXACT).any()):
        _typed(np.array(x, object), what)  # as they were, before all became text, or floats
    return _typed(a, what)


def _joined(x: Any, columns: list[tuple[Any, Any]], what: str) -> np.ndarray:
    """Return one array of the columns of a frame."""
    made = []
    for name, column in columns:
        it = f"the values of the column {name!r}"
        a = _typed(values(name, column), it)
        if a.dtype.kind not in _NUMBERS:
            raise unfit(f"{it} are no numbers",
                        "give numbers in their place, such as frame[name].cat.codes or "
                        "pandas.get_dummies(frame), or leave the column out")
        made.append(a)
    if not made:
        raise unfit(f"{what} are no records: a {type(x).__name__} without columns",
                    "give the columns that training takes")
    out = np.empty((len(made[0]), len(made)), np.result_type(*(a.dtype for a in made)))
    for i, ((name, _), a) in enumerate(zip(columns, made)):
        if out.dtype.kind == "f" and a.dtype.kind in "iu" and a.size and (
                max(int(a.max()), -int(a.min())) > _EXACT):
            raise _inexact(f"the values of the column {name!r}")
        out[:, i] = a
    return out


def _ragged(what: str) -> ConfigError:
    return unfit(f"{what} are no records: a list holds rows, and these are of different shapes",
                 "give rows of one shape, and several arrays in a tuple: (features, labels)")


def _inexact(what: str) -> ConfigError:
    return unfit(f"{what} have whole numbers above 2^53, which would change as floats",
                 "give them without missing ones and without floats next to them, or as text")


def _is_missing(value: Any) -> bool:
    """Report whether a value is none: ``None``, NaN, or the NA and NaT of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (numbers.Real, decimal.Decimal)) and bool(value != value)


def _is_number(value: Any) -> bool:
    """Report whether a value is a number or a truth. NumPy calls spans of time whole numbers, of a
    unit that they do not say."""
    return isinstance(value, (numbers.Real, decimal.Decimal, np.bool_)) and not isinstance(
        value, np.timedelta64)


def _text(value: Any) -> str | None:
    """Return a value as text; ``None``: a table has no such value."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.datetime64):  # to the second at least, and to what it has
        return "" if np.isnat(value) else _moment(
            str(np.datetime_as_string(value.astype(np.result_type(value, "M8[s]")))))
    if isinstance(value, np.generic) and value.dtype.kind in _NUMBERS:
        value = value.item()
    if _is_missing(value):
        return ""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return _moment(value.isoformat())
    if isinstance(value, (float, decimal.Decimal)):
        return "-" * (value < 0) + "Inf" if abs(value) == float("inf") else str(value)
    if isinstance(value, (int, datetime.date, datetime.time)):
        return str(value)
    return str(float(value)) if _is_number(value) else None


def _moment(iso: str) -> str:
    """Return a time as files are read: a date, and unless it is midnight the time of day."""
    day, _, clock = iso.partition("T")
    if "." in clock:
        clock = clock.rstrip("0").rstrip(".")
    return day if clock == "00:00:00" else f"{day} {clock}"
