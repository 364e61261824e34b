"""Declared questions about the rows of many parties: counts, means, tables, curves and models.

A job with ``[[query]]`` says what is asked; ``docs/analytics.md`` of the project says how. Rows are
a table: the path of a CSV file, a frame of pandas or Polars, a table of PyArrow, a dictionary of
columns, a list of dictionaries, or ``(connection, statement)`` of a database (PEP 249). Parquet is
read as a data frame. Order is by position, and rows are counted from 1 in messages::

    answers = hushsum.query(hushsum.Job.load("study.toml"), frame)
    print(answers)
    answers["age"].value, answers["age"].interval
"""

from __future__ import annotations

import csv
import html
import math
import os
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Sequence, overload

from . import _sidecar
from ._declared import Declared
from .accounting import Claim, _claim
from .errors import ConfigError
from .records import warn_of
from .settled import Settled, settled_of
from .tables import Table, explained, is_rows, tell


def _figure(x: float) -> str:
    """Return a number as tables have it."""
    return "unknown" if math.isnan(x) else f"{x:.6g}"


def _given(x: Any, null: float) -> Any:
    """Return numbers as they are nested, with another in place of nulls."""
    if isinstance(x, list):
        return [_given(y, null) for y in x]
    return null if x is None else x


def _ends(x: Any) -> Any:
    """Return intervals as they are nested, with infinite ends in place of nulls."""
    if len(x) == 2 and not any(isinstance(y, list) for y in x):
        return [_given(x[0], -math.inf), _given(x[1], math.inf)]
    return [_ends(y) for y in x]


@dataclass(frozen=True)
class Answer:
    """The answer of all parties' rows to a query.

    Attributes:
        name: of the query.
        kind: what is asked, as declared.
        value: a number; of a histogram, of quantiles, of a survival curve, of a model and of frequent
            words a list, of a crosstab a list of lists.
            One that cannot be known is NaN.
        interval: the least and the greatest value of the 95 % interval, as ``value`` has numbers;
            infinite where nothing bounds the number.
        unit: rows, or as the column says.
        spends: what the query would spend if it were the only one; ``None`` without noise.
        labels: of a list its bins, quantiles, times, columns or words; of a crosstab those of both
            columns.
        margins: of a crosstab, of both columns: ``value`` and ``interval``.
        standard_error: of the numbers of a model, as estimates for whomever the rows were
            drawn from.
        unknown: why a number cannot be known, and what to do about it: a text, or in a list one for
            each number, empty where it is known; ``None``: all numbers are.
        population_interval: of a survival curve, an evaluation and a C-index, the 95 % intervals for
            whomever the rows were drawn from.
        tables: of an evaluation, for each group the middles of ``scores``, and the rows with them that
            the event came to, ``events``, and did not, ``others``.
        test: of a log-rank test, ``chi_square``, ``degrees`` of freedom and ``p``.
        grid: of a survival curve, how much of the width of each interval is due to bins alone; of a
            C-index, between which values the order of rows within bins leaves it.
    """

    name: str
    kind: str
    value: Any
    interval: Any
    unit: str = ""
    spends: Claim | None = None
    labels: Any = None
    margins: Any = None
    standard_error: list[float] | None = None
    unknown: Any = None
    population_interval: list[list[float]] | None = None
    grid: list[float] | None = None
    tables: list[dict[str, Any]] | None = None
    test: dict[str, float] | None = None

    @classmethod
    def _read(cls, answer: Mapping[str, Any]) -> Answer:
        """Return the answer that the JSON form has, in which numbers that are not known are null."""
        a = dict(answer)
        if a["spends"] is not None:
            a["spends"] = Claim(a["spends"])
        a["value"] = _given(a["value"], math.nan)
        a["interval"] = _ends(a["interval"])
        if a.get("population_interval") is not None:
            a["population_interval"] = _ends(a["population_interval"])
        if a.get("standard_error") is not None:
            a["standard_error"] = _given(a["standard_error"], math.nan)
        return cls(**a)

    def rows(self) -> Iterator[tuple[str, str, float, float, float]]:
        """Return label, other label, value, least and most of each number."""
        if self.labels is None:
            yield "", "", self.value, self.interval[0], self.interval[1]
        elif self.kind == "crosstab":
            for line, values, intervals in zip(self.labels[0], self.value, self.interval):
                for label, value, (low, high) in zip(self.labels[1], values, intervals):
                    yield line, label, value, low, high
        else:
            for label, value, (low, high) in zip(self.labels, self.value, self.interval):
                yield label, "", value, low, high

    def plot(self, ax: Any = None) -> Any:
        """Draw values with their intervals, and return the axes. It needs matplotlib.

        Raises:
            ModuleNotFoundError: matplotlib is not installed.
        """
        try:
            from matplotlib import pyplot
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "Answer.plot draws with matplotlib: install it; the Debian package is "
                "python3-matplotlib", name="matplotlib",
            ) from None
        ax = ax or pyplot.subplots(layout="constrained")[1]
        labels, values, below, above = [], [], [], []
        for label, by, value, low, high in self.rows():
            labels.append(", ".join(text for text in (label, by) if text) or self.name)
            values.append(value)
            below.append(value - low)
            above.append(high - value)
        places = range(len(values))
        if self.kind in ("survival", "quantiles"):
            ax.errorbar(places, values, [below, above], fmt="o-", capsize=3)
        else:
            ax.bar(places, values, yerr=[below, above], capsize=3)
        ax.set_xticks(list(places), labels, rotation=30 if len(values) > 4 else 0, ha="right"
                      if len(values) > 4 else "center")
        ax.set_title(self.name)
        ax.set_ylabel(self.unit)
        return ax


class Answers(Sequence[Answer]):
    """The answers of a job, in its order; ``answers["name"]`` is one of them.

    Attributes:
        spent: what all together spend; ``None`` without noise.
        parties: how many the job has.
        present: how many are in the sum.
        reports: what reading each table found, for the owner of its rows.
    """

    def __init__(self, result: Mapping[str, Any]) -> None:
        self._all = [Answer._read(a) for a in result["answers"]]
        self.spent = None if result["spent"] is None else _claim(result["spent"])
        self.parties: int = result["parties"]
        self.present: int = result["present"]
        self.reports: list[dict[str, Any]] = result.get("reports", [])

    @overload
    def __getitem__(self, which: int | str) -> Answer: ...
    @overload
    def __getitem__(self, which: slice) -> list[Answer]: ...
    def __getitem__(self, which: int | str | slice) -> Answer | list[Answer]:
        if not isinstance(which, str):
            return self._all[which]
        for answer in self._all:
            if answer.name == which:
                return answer
        raise KeyError(f"there is no answer {which!r}: there are "
                       + ", ".join(answer.name for answer in self._all))

    def __len__(self) -> int:
        return len(self._all)

    def table(self) -> list[dict[str, Any]]:
        """Return a dictionary for each number: name, kind, unit, label, by, value, low, high, unknown
        (why it cannot be known, empty if it is), population_low and population_high (``None`` for
        kinds without), and spends, what the query would spend if it were the only one, in words."""
        out = []
        for a in self._all:
            unknown = [a.unknown] if isinstance(a.unknown, str) else a.unknown or []
            for i, (label, by, value, low, high) in enumerate(a.rows()):
                ends = a.population_interval[i] if a.population_interval else (None, None)
                out.append({
                    "name": a.name, "kind": a.kind, "unit": a.unit, "label": label, "by": by,
                    "value": value, "low": low, "high": high, "unknown": unknown[i] if unknown else "",
                    "population_low": ends[0], "population_high": ends[1],
                    "spends": "" if a.spends is None else str(a.spends)})
        return out

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`table` to a file."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            out = csv.DictWriter(file, ("name", "kind", "unit", "label", "by", "value", "low", "high",
                                        "unknown", "population_low", "population_high", "spends"))
            out.writeheader()
            out.writerows(self.table())

    def to_pandas(self) -> Any:
        """Return :meth:`table` as a data frame. It needs pandas.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "Answers.to_pandas makes a pandas data frame: install pandas; the Debian package is "
                "python3-pandas", name="pandas",
            ) from None
        return pandas.DataFrame(self.table())

    def plot(self) -> Any:
        """Draw all answers, one under the other, and return the figure. It needs matplotlib.

        Raises:
            ModuleNotFoundError: matplotlib is not installed.
        """
        first = self._all[0].plot()
        figure = first.figure
        figure.clear()
        figure.set_size_inches(7, 2.4 * len(self._all))
        for answer, ax in zip(self._all, figure.subplots(len(self._all), squeeze=False)[:, 0]):
            answer.plot(ax)
        return figure

    def _head(self) -> str:
        if self.spent is None:
            return "epsilon: none, answers are exact"
        return f"all together spend {self.spent}"

    def __str__(self) -> str:
        table, unknown = [("query", "answer", "95 % interval", "unit")], []
        for a in self._all:
            if not a.value and isinstance(a.value, list):
                table.append((a.name, "none", "no word has rows enough to stand out", ""))
            for label, by, value, low, high in a.rows():
                what = ", ".join(text for text in (a.name, label, by) if text)
                table.append((what, _figure(value), f"{low:.6g} to {high:.6g}", a.unit))
            reasons = [a.unknown] if isinstance(a.unknown, str) else a.unknown or []
            for why in dict.fromkeys(filter(None, reasons)):
                unknown.append(f"{a.name} cannot be known: {why}")
        width = [max(map(len, column)) for column in zip(*table)]
        return "\n".join([self._head()] + [
            f"{row[0]:{width[0]}}  {row[1]:>{width[1]}}  {row[2]:{width[2]}}  {row[3]}".rstrip()
            for row in table] + unknown)

    def _repr_html_(self) -> str:
        """Show a table in a notebook."""
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in (
                r["name"], r["label"], r["by"], _figure(r["value"]),
                f"{r['low']:.6g} to {r['high']:.6g}", r["unit"])) + "</tr>"
            for r in self.table()
        )
        return (f"<p>{html.escape(self._head())}</p><table><tr><th>query</th><th></th><th></th>"
                f"<th>answer</th><th>95 % interval</th><th></th></tr>{rows}</table>")


def query(job: Declared, rows: Any) -> Answers:
    """Ask the queries of a job about rows that are here: all parties run on this machine.

    The job's private sum is all that parties share, with its noise. Nothing else of a party's rows is
    in the answers.

    Args:
        job: with queries. Its parties are made up.
        rows: one table, which is dealt to the job's parties, or a list with the table of each. A
            list of dictionaries of single values is one table. Of a frame the columns count, and no
            index; ``None``, NaN and NA are missing values.

    Raises:
        ConfigError: the job is not valid, or rows do not match its columns: it names the value, its
            row, counted from 1, and what the job declares.
    """
    deal = not isinstance(rows, list) or is_rows(rows)
    tables = [Table.of(table, f"table {i + 1}") for i, table in enumerate([rows] if deal else rows)]
    try:
        result, _ = _sidecar.current().call(
            "query.ask", {"deal": deal, "files": [table.name for table in tables],
                          "tables": [not table.file for table in tables]},
            [job._text(), *(table.text for table in tables)],
        )
    except ConfigError as err:
        raise explained(err, tables) from None
    answers = Answers(result)
    privacy = getattr(job, "privacy", None)
    if privacy is not None and privacy.unit == "record":
        warn_of(privacy.records, sum(report["rows"] for report in answers.reports))
    tell(answers.reports)
    return answers


class Queries:
    """The queries of a job across machines: what a party brings to its sum, and what the
    coordinator reads from it.

    ::

        asked = hushsum.Queries(settled)
        # A party, whatever the unit of the job is; it gives join no rows. Rows that do not match
        # stop it here: in join they would make it submit zeros.
        vector = asked.vector("rows.csv")
        hushsum.join(settled, train=lambda model: vector, …)

        # Who asks: what run returns is the mean.
        coordinator = hushsum.Coordinator(settled, …)
        answers = asked.answers(coordinator.run(), parties)

    A job with a Cox or a Poisson model has several rounds: a party's vector depends on the round's
    model, and ``next`` makes the next model of the mean. Answers are read from the last model.
    """

    def __init__(self, job: Declared | Settled) -> None:
        self._settled = settled_of(job)

    def vector(self, rows: Any, model: Any = None) -> Any:
        """Return what a party with these rows brings to the sum: it is as secret as they are.

        ``model`` is that of the round, in a job of several rounds; ``None``: the first.

        Values that are clipped, dropped, unknown or missing cause a ``RuntimeWarning``.

        Raises:
            ConfigError: rows do not match the job's columns; for their owner alone.
        """
        import numpy as np

        table = Table.of(rows, "the rows")
        try:
            result, (vector,) = self._settled._sidecar.call(
                "query.vector", {"settled": self._settled.identifier, "file": table.name,
                                 "table": not table.file},
                [table.text] if model is None else
                [table.text, np.ascontiguousarray(model, "<f8").tobytes()])
        except ConfigError as err:
            raise explained(err, [table]) from None
        tell([result["report"]], missing=True)
        return np.frombuffer(vector, "<f8").copy()

    def next(self, model: Any, mean: Any, parties: int) -> Any:
        """Return the model after a round, from the round's and the mean of this many parties' vectors.

        A job of one round has none but the mean.
        """
        import numpy as np

        _, (after,) = self._settled._sidecar.call(
            "query.next", {"settled": self._settled.identifier, "parties": int(parties)},
            [np.ascontiguousarray(numbers, "<f8").tobytes() for numbers in (model, mean)])
        return np.frombuffer(after, "<f8").copy()

    def answers(self, mean: Any, parties: int) -> Answers:
        """Return the answers that the mean of this many parties' vectors gives.

        With several rounds it is the model after the last, and of whichever parties were in that.
        """
        import numpy as np

        result, _ = self._settled._sidecar.call(
            "query.answers", {"settled": self._settled.identifier, "parties": int(parties)},
            [np.ascontiguousarray(mean, "<f8").tobytes()])
        return Answers(result)
