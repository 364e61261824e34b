"""Tables of every library give the same answers, and say what of them differs from the job."""

import datetime
import decimal
import json
import sys
import warnings

import numpy as np
import pytest

import hushsum
from libraries import Arrow, ArrowTable, PolarsFrame, PolarsSeries, Streamed, needed, uses_argument
from rounds import identities
from test_rows import FRAMES, ROWS

PEOPLE = """name = "people"
parties = { count = 3, rows = 100 }
column = [
  { name = "age", type = "whole", range = [0, 100], missing = "drop" },
  { name = "weight", type = "number", range = [-4, 4] },
  { name = "group", type = "category", categories = ["1", "2", "x"], missing = "category" },
]
query = [
  { name = "old", kind = "count", where = "age >= 60" },
  { name = "age", kind = "mean", column = "age" },
  { name = "weight", kind = "sum", column = "weight" },
  { name = "both", kind = "crosstab", column = "age", by = "group", bins = 4 },
]
"""


ONE = """name = "one"
parties = { count = 2, rows = 100 }
column = [{ name = "value", TYPE }]
query = [{ name = "all", kind = "count" }]
"""
WORDS = 'type = "category", categories = ["a", "b"]'
AGE = 'type = "whole", range = [0, 100]'


def people() -> dict[str, list]:
    r = np.random.default_rng(5)
    return {"age": [None if i % 9 == 4 else int(v) for i, v in enumerate(r.integers(0, 101, ROWS))],
            "weight": r.normal(size=ROWS).tolist(),
            "group": [None if i % 8 == 3 else "12x"[i % 3] for i in range(ROWS)]}


def answered(rows) -> list:
    answers = hushsum.query(hushsum.Job.parse(PEOPLE), rows)
    return [(a.value, a.interval, a.labels) for a in answers]


@pytest.mark.parametrize("kind", FRAMES)
def test_queries_of_frames(kind) -> None:
    pandas = needed("pandas")
    if kind == "pyarrow":
        needed("pyarrow")
    columns = people()
    frame = pandas.DataFrame({"age": pandas.array(columns["age"], "Int64"),
                              "weight": columns["weight"], "group": columns["group"]})
    order = list(range(ROWS))
    if kind == "shuffled":
        order = np.random.default_rng(2).permutation(ROWS)
        frame = frame.iloc[order]
    elif kind == "filtered":
        order = [i for i in order if columns["weight"][i] > 0]
        frame = frame[frame["weight"] > 0]
    elif kind == "duplicate index":
        frame.index = np.arange(ROWS) % 7
    elif kind == "index of words":
        frame.index = [f"age {i}" for i in range(ROWS)]
    elif kind == "MultiIndex":
        frame.index = pandas.MultiIndex.from_arrays([np.arange(ROWS) % 3, np.arange(ROWS)[::-1]],
                                                    names=["age", "group"])
    elif kind == "categorical":
        frame = frame.astype({"group": "category", "age": "category", "weight": "category"})
    elif kind == "nullable":
        frame = frame.astype({"weight": "Float64", "group": "string"})
    elif kind == "sparse":
        frame["weight"] = frame["weight"].astype(pandas.SparseDtype(float, np.nan))
    elif kind == "pyarrow":
        frame = frame.astype({"age": "int64[pyarrow]", "weight": "double[pyarrow]",
                              "group": "string[pyarrow]"})
        frame = pandas.concat([frame[:7], frame[7:]])
    want = answered({name: [values[i] for i in order] for name, values in columns.items()})
    assert answered(frame) == want
    assert answered({name: frame[name] for name in frame}) == want  # labels play no part
    asked = hushsum.Queries(hushsum.Job.parse(PEOPLE).settle(identities(3)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        vectors = [asked.vector(t) for t in (
            frame, {name: [values[i] for i in order] for name, values in columns.items()})]
    assert np.array_equal(*vectors)


def test_queries_of_other_libraries(monkeypatch) -> None:
    columns = people()
    want = answered(columns)
    rows = [dict(zip(columns, row)) for row in zip(*columns.values())]
    del rows[0]["group"]  # which another row has
    columns["group"][0] = None
    assert answered(rows) == answered(columns)
    columns = people()
    assert answered(PolarsFrame(columns)) == answered(ArrowTable(columns)) == want
    assert answered({name: PolarsSeries(name, values) for name, values in columns.items()}) == want
    monkeypatch.setitem(sys.modules, "pyarrow", Arrow)
    assert answered(Streamed(columns)) == want


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_queries_of_real_libraries(library) -> None:
    module, columns = needed(library), people()
    made = module.DataFrame(columns) if library == "polars" else module.table(columns)
    assert answered(made) == answered(columns)


TIMES = ["2020-01-02T00:00", "2020-01-02T03:04:05.600", "1969-12-31T23:59:59.000001"]
DATED = ["2020-01-02", "2020-01-02 03:04:05.6", "1969-12-31 23:59:59.000001"]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", ["list", "with zones", "NumPy", "elements", "pandas",
                                  "pandas with zones", "pyarrow", "pyarrow with zones"])
def test_times_are_read_as_in_files(kind, missing) -> None:
    """Whatever library has them, in UTC, and whether others are missing or not."""
    plain = np.array(TIMES + ["NaT"] * missing, "M8[us]")
    zone = datetime.timezone(datetime.timedelta(hours=9))
    own = plain.tolist()
    if "with zones" in kind:
        own = [t and t.replace(tzinfo=datetime.timezone.utc).astimezone(zone) for t in own]
    if kind == "NumPy":
        own = plain
    elif kind == "elements":
        own = list(plain.astype("M8[ns]"))
    elif kind.startswith("pandas"):
        own = needed("pandas").Series(own)
        assert own.dtype.kind == "M"
    elif kind.startswith("pyarrow"):
        arrow, pandas = needed("pyarrow"), needed("pandas")
        own = arrow.array(own, arrow.timestamp("us", "Asia/Tokyo" if "zones" in kind else None))
        own = pandas.Series(pandas.arrays.ArrowExtensionArray(own))
    job = hushsum.Job.parse(ONE.replace(
        "TYPE", f'type = "category", categories = {json.dumps(DATED)}, missing = "drop"').replace(
        'kind = "count"', 'kind = "histogram", column = "value"'))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hushsum.query(job, {"value": own})["all"].value == [1, 1, 1]


@pytest.mark.parametrize("values, dtype, column, asked", [
    ([3, None, 5], "int64[pyarrow]", 'type = "whole", range = [0, 9]', "sum"),
    ([0.1, None, 0.3], "double[pyarrow]", 'type = "number", range = [0, 9]', "sum"),
    (["a", None, "b"], "string[pyarrow]", WORDS, "histogram"),
    ([True, None, False], "bool[pyarrow]", WORDS.replace('"a", "b"', '"True", "False"'),
     "histogram"),
])
def test_columns_of_pyarrow_that_lack_values(values, dtype, column, asked) -> None:
    """They are refused in the words that a list is refused in, and read as one where the job drops
    rows."""
    needed("pyarrow")
    each = [{"value": own} for own in (values, needed("pandas").Series(values, dtype=dtype))]
    job = hushsum.Job.parse(ONE.replace("TYPE", column))
    said = []
    for table in each:
        with pytest.raises(hushsum.ConfigError) as refused:
            hushsum.query(job, table)
        said.append(str(refused.value))
    assert said[0] == said[1] and "row 2: value: the value is missing" in said[0]

    job = hushsum.Job.parse(ONE.replace("TYPE", column + ', missing = "drop"').replace(
        'kind = "count"', f'kind = "{asked}", column = "value"'))
    with pytest.warns(RuntimeWarning, match="1 value missing, at row 2"):
        vectors = [hushsum.Queries(job.settle(identities(2))).vector(table) for table in each]
    assert np.array_equal(*vectors)


def test_single_precision_is_read_exactly() -> None:
    """0.1 in float32 is no 0.1, and its sum is that of the numbers that it has."""
    weights = np.linspace(-1, 1, ROWS).astype(np.float32)
    asked = hushsum.Queries(hushsum.Job.parse(ONE.replace(
        "TYPE", 'type = "number", range = [-1, 1]').replace(
        'kind = "count"', 'kind = "sum", column = "value"')).settle(identities(2)))
    want = asked.vector({"value": weights.astype(float).tolist()})
    assert np.array_equal(asked.vector({"value": weights}), want)
    assert not np.array_equal(asked.vector({"value": [str(v) for v in weights]}), want)


@pytest.mark.parametrize("column, values, part, not_in", [
    (WORDS, ["a", "c", "b", "d"], 'row 2: value: the value is unknown, as "c" is none of "a", "b", '
     "and the job refuses rows without one; 2 of 4 rows are like that; correct the row, or declare "
     'missing = "drop"', "row 4"),
    (WORDS, ["A", "B"], 'row 1: value: the value is unknown, as "A" is none of "a", "b", and the '
     "job refuses rows without one; all rows are like that; see whether this is the right column",
     "drop"),
    ('type = "category", categories = [' + ", ".join(f'"{i}"' for i in range(30)) + "]", [1, 99],
     '"4", "5" and 24 more', '"6"'),
    (WORDS, ["a", None], "row 2: value: the value is missing, and the job refuses", "like that"),
    (AGE, [3, 1.5], "row 2: value: the value is unknown, as 1.5 is not a whole number", "clip"),
    (AGE, [3, "old"], 'row 2: value: the value is unknown, as "old" is not a number', "clip"),
    (AGE, [3, np.inf], 'row 2: value: the value is unknown, as "Inf" is no finite number', "clip"),
    (AGE, [np.nan, np.nan], "all rows are like that", "drop"),
])
def test_rows_that_differ_from_the_declaration(column, values, part, not_in) -> None:
    job = hushsum.Job.parse(ONE.replace("TYPE", column))
    asked = hushsum.Queries(job.settle(identities(2)))
    for ask in (lambda rows: hushsum.query(job, rows), asked.vector):
        with pytest.raises(hushsum.ConfigError) as refused:
            ask({"value": values})
        assert part in str(refused.value) and not_in not in str(refused.value)
        assert refused.value.field == "value" and refused.value.kind == "rows"


def test_the_table_that_differs_is_named(tmp_path) -> None:
    """A file by its line, though a table after it has an odd value too."""
    (tmp_path / "rows.csv").write_text("value\n3\nold\n")
    job = hushsum.Job.parse(ONE.replace("TYPE", AGE))
    bad = {"value": ["young", 3]}
    with pytest.raises(hushsum.ConfigError, match="rows.csv:3: value"):
        hushsum.query(job, [tmp_path / "rows.csv", bad])
    with pytest.raises(hushsum.ConfigError, match='table 2: row 1: value: .* "young" is not'):
        hushsum.query(job, [{"value": [3]}, bad])


def test_infinite_numbers_are_unknown_and_not_clipped() -> None:
    job = hushsum.Job.parse(ONE.replace("TYPE", AGE + ', missing = "drop"'))
    with pytest.warns(RuntimeWarning) as told:
        hushsum.query(job, {"value": [5, -np.inf, decimal.Decimal("Infinity"), 200]})
    assert [str(t.message) for t in told] == [
        'table 1: value: 2 values unknown, at row 2, 3: "-Inf", "Inf", where the job declares '
        'numbers from 0 to 100; table 1: value: 1 value clipped, at row 4: "200", where the job '
        "declares numbers from 0 to 100"]


def test_a_column_that_is_the_index() -> None:
    pandas = needed("pandas")
    frame = pandas.DataFrame({"value": [1, 2], "x": [1, 2]}).set_index("value")
    job = hushsum.Job.parse(ONE.replace("TYPE", AGE))
    with pytest.raises(hushsum.ConfigError, match=r"the frame's index.*reset_index\(\)"):
        hushsum.query(job, frame)


@pytest.mark.parametrize("make, part", [
    (lambda p: p.DataFrame({("value", "a"): [1]}), "name of several parts"),
    (lambda p: p.DataFrame({"value": [[1]]}), "column 'value' has a list in row 1"),
    (lambda p: {"value": [b"1"]}, "column 'value' has a bytes in row 1"),
    (lambda p: {"value": [datetime.timedelta(1)]}, "column 'value' has a timedelta in row 1"),
    (lambda p: {"value": np.array([1], "m8[ns]")}, "column 'value' has a timedelta64 in row 1"),
    (lambda p: {"value": "123"}, "a str is not read"),
    (lambda p: {"value": np.ones((2, 2))}, r"values of shape \(2, 2\)"),
    (lambda p: p.Series([1, 2]), "a Series is not a table"),
    (lambda p: np.ones((2, 2)), "a ndarray is not a table"),
])
def test_tables_that_are_refused(make, part) -> None:
    pandas = needed("pandas") if uses_argument(make) else None
    with pytest.raises(hushsum.ConfigError, match=part):
        hushsum.query(hushsum.Job.parse(ONE.replace("TYPE", AGE)), make(pandas))


def test_a_named_series_is_a_table_of_one_column() -> None:
    pandas = needed("pandas")
    job = hushsum.Job.parse(ONE.replace("TYPE", AGE))
    series = pandas.Series([1, 2, 3], name="value", index=[9, 9, 1])
    assert hushsum.query(job, series)["all"].value == 3
