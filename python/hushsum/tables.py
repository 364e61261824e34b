"""Tables of rows for queries: how they go to the sidecar, and what their owner is told."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Sequence

from . import frames
from .attempts import warn
from .errors import ConfigError


@dataclass
class Table:
    """Rows of one party on their way to the sidecar: CSV text, of a file or made of a table."""

    name: str  # for messages
    text: bytes  # as CSV
    file: bool  # and messages name lines, not rows
    index: tuple[str, ...] = ()  # names of pandas' index, which holds no column

    @classmethod
    def of(cls, rows: Any, name: str) -> "Table":
        """Read a table of any kind."""
        if isinstance(rows, (str, os.PathLike)):
            path = Path(rows)
            text = path.read_bytes()
            _refuse_binary(str(path), text)
            return cls(str(path), text, True)
        index = getattr(getattr(rows, "index", None), "names", None) or ()
        return cls(name, _text(*_columns(rows)), False, tuple(map(str, index)))

    def has(self, column: str) -> bool:
        """Report whether there is a column of a name."""
        read = csv.reader(io.StringIO(self.text.decode(), newline=""))
        names: list[str] = next(read, [])
        return column in [name.strip() for name in names]


def _columns(rows: Any) -> tuple[list[str], Any]:
    """Return the names of the columns of a table, and its rows."""
    columns = frames.named(rows)
    if columns is None:
        if isinstance(rows, tuple) and len(rows) == 2 and hasattr(rows[0], "cursor"):
            names, rows = _fetched(*rows)
        elif isinstance(rows, Mapping):
            names, rows = list(rows), list(rows.values())
        elif isinstance(rows, list) and rows and is_rows(rows):
            names = list(dict.fromkeys(name for row in rows for name in row))
            rows = [[row.get(name) for row in rows] for name in names]
        else:
            raise ConfigError(
                f"a {type(rows).__name__} is not a table", kind="rows", field="rows",
                advice="give a path, a data frame, a dictionary of columns, a list of "
                "dictionaries, or (connection, statement)")
        columns = [(str(name), frames.values(name, c)) for name, c in zip(names, rows)]
    if len({len(column) for _, column in columns}) > 1:
        raise ConfigError(
            "the columns are of different lengths", kind="rows", field="rows",
            advice="give a value of each row, None where there is none",
        )
    return ([name for name, _ in columns],
            zip(*(frames.texts(name, column) for name, column in columns)))


def _fetched(connection: Any, statement: str) -> tuple[list[str], Any]:
    cursor = connection.cursor()
    cursor.execute(statement)
    names, rows = [column[0] for column in cursor.description], cursor.fetchall()
    return names, [[row[i] for row in rows] for i in range(len(names))]


def _text(names: Sequence[str], rows: Any) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows(rows)
    return out.getvalue().encode()


def explained(err: ConfigError, tables: Sequence[Table]) -> ConfigError:
    """Return an error about rows, or, where a column is the index of a frame, what to do."""
    if err.kind == "rows":
        for table in tables:
            if err.field in table.index and not table.has(err.field) and table.name in err.args[0]:
                return ConfigError(
                    f"{table.name}: {err.field} is the frame's index, which holds no column",
                    kind="rows", field=err.field, advice="give frame.reset_index()")
    return err


def tell(reports: Sequence[Mapping[str, Any]], missing: bool = False) -> None:
    """Warn, once, of values that do not count as they are in the rows, for their owner."""
    told = [text for report in reports for f, text in zip(report["findings"], report["told"])
            if missing or f["what"] != "missing"]
    if told:
        warn("; ".join(told), RuntimeWarning)


# How files begin that are no text, what they are, and what is given in their place.
_BINARY = (
    (b"PAR1", "Parquet", "a data frame, pandas.read_parquet(path) or polars.read_parquet(path),"),
    (b"PARE", "encrypted Parquet", "a data frame of its rows"),
    (b"SQLite format 3\0", "SQLite", '(sqlite3.connect(path), "SELECT …")'),
)


def _refuse_binary(name: str, text: bytes) -> None:
    """Raise where a file is no CSV text by how it begins."""
    for begins, form, instead in _BINARY:
        if text.startswith(begins):
            raise ConfigError(
                f"{name} is not a CSV file, but one of {form}", kind="rows", field="rows",
                advice=f"give {instead} instead",
            )


def is_rows(rows: list[Any]) -> bool:
    """Return whether a list has rows, and not tables: dictionaries of single values."""
    return not rows or all(
        isinstance(row, Mapping) and all(
            isinstance(value, (str, bytes)) or not hasattr(value, "__len__")
            for value in row.values())
        for row in rows)
