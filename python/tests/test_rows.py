"""Rows of whatever people hold are arrays in the order of positions, and give the same sums."""

import decimal
import subprocess
import sys
import threading
import traceback
import warnings

import numpy as np
import pytest

import hushsum
from hushsum import records
from hushsum.arrays import Structure
from libraries import (
    Arrow, ArrowSeries, ArrowTable, Chunks, PolarsFrame, PolarsLazy, PolarsSeries, Streamed, Tensor,
    needed, uses_argument,
)
from rounds import identities

ROWS = 90
COINS = {"count": 10_000, "rate": 1.0, "most": 10_000, "clip": 1.0}

# What is done to a frame, and to arrays of the same rows.
FRAMES = ["plain", "shuffled", "filtered", "duplicate index", "index of words", "MultiIndex",
          "categorical", "nullable", "sparse", "pyarrow"]


def measured(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of three numbers, and a label that follows from each."""
    x = np.random.default_rng(seed).normal(size=(ROWS, 3))
    return x, (x @ [1, -1, 0.5] > 0).astype(np.int64)


def framed(kind: str, seed: int = 1):
    """Return a frame of a kind with columns a, b, c and y, and the arrays of its rows."""
    pandas = needed("pandas")
    if kind == "pyarrow":
        needed("pyarrow")
    x, y = measured(seed)
    frame = pandas.DataFrame(x, columns=list("abc"))
    frame["y"] = y
    if kind == "shuffled":
        order = np.random.default_rng(2).permutation(ROWS)
        frame, x, y = frame.iloc[order], x[order], y[order]
    elif kind == "filtered":
        kept = x[:, 0] > 0
        frame, x, y = frame[frame["a"] > 0], x[kept], y[kept]
    elif kind == "duplicate index":
        frame.index = np.arange(ROWS) % 7
    elif kind == "index of words":
        frame.index = [f"patient {i % 40}" for i in range(ROWS)]
    elif kind == "MultiIndex":
        frame.index = pandas.MultiIndex.from_arrays([np.arange(ROWS) % 3, np.arange(ROWS)[::-1]])
    elif kind == "categorical":
        frame = frame.astype({"a": "category", "y": "category"})
    elif kind == "nullable":
        frame = frame.astype({"a": "Float64", "b": "Float64", "y": "Int64"})
    elif kind == "sparse":
        frame["y"] = frame["y"].astype(pandas.SparseDtype(int, 0))
    elif kind == "pyarrow":  # in several chunks, and by another order
        frame = frame.astype(dict.fromkeys("ab", "double[pyarrow]") | {"y": "int64[pyarrow]"})
        frame = pandas.concat([frame[:7], frame[7:]]).iloc[::-1]
        x, y = x[::-1], y[::-1]
    return frame, x, y


def texts_of_arrow() -> list:
    """Return the types that text of PyArrow has in pandas."""
    arrow, pandas = needed("pyarrow"), needed("pandas")
    return ["string[pyarrow]", pandas.ArrowDtype(arrow.string()),
            pandas.ArrowDtype(arrow.large_string())]


def total(rows, **coins) -> np.ndarray:
    def gradients(model, rows):
        x, y = rows
        assert type(x) is type(y) is np.ndarray
        return (y - 0.3)[:, None] * x

    return records.Records(rows, records.Coins({**COINS, **coins})).sum(
        gradients, None, Structure(np.zeros(3)))


@pytest.mark.parametrize("kind", FRAMES)
def test_records_of_frames(kind) -> None:
    frame, x, y = framed(kind)
    want = total((x, y))
    for features in (frame[["a", "b", "c"]], x):
        for labels in (frame["y"], y, frame["y"].array):
            assert np.array_equal(total((features, labels)), want)
    assert np.array_equal(hushsum.rows(frame), np.column_stack([x, y]))
    assert np.array_equal(hushsum.rows(frame["y"]), y)
    index = hushsum.rows((frame[["a", "b", "c"]], frame["y"]))
    assert np.array_equal(index[0], x) and np.array_equal(index[1], y)


def test_drawn_records_keep_their_labels() -> None:
    """Half of them are drawn; a series took their positions for labels of its index."""
    frame, _, _ = framed("shuffled")
    wrong = []

    def gradients(model, rows):
        x, y = rows
        wrong.extend(np.flatnonzero(y != (x @ [1, -1, 0.5] > 0)))
        return x

    own = records.Records((frame[["a", "b", "c"]], frame["y"]),
                          records.Coins({**COINS, "rate": 0.5}))
    for _ in range(20):
        own.sum(gradients, None, Structure(np.zeros(3)))
    assert not wrong


def test_one_record_moves_a_sum_by_one_clip() -> None:
    """Between data sets that differ in the last row, whatever their index."""
    frame, _, _ = framed("shuffled")
    both = [total((part[["a", "b", "c"]], part["y"])) for part in (frame, frame.iloc[:-1])]
    assert 0 < np.linalg.norm(both[0] - both[1]) <= 1 + 1e-12


@pytest.mark.parametrize("kind", FRAMES)
def test_persons_of_frames(kind) -> None:
    frame, x, y = framed(kind)
    who = [f"p{i}" for i in np.arange(len(x)) % 11]
    frame = frame.assign(who=who)
    want = total((x, y, np.array(who)), group="patient")
    each = [frame["who"], frame["who"].astype("category"), frame[["who"]]["who"], who]
    if kind == "pyarrow":
        each += [frame["who"].astype(t) for t in texts_of_arrow()]
    for whose in each:
        assert np.array_equal(total((frame[["a", "b", "c"]], frame["y"], whose), group="patient"),
                              want)


@pytest.mark.parametrize("whose, part", [
    ([None, "a", "b"], "row 1 does not say whose"), ([1, 2, np.nan], "row 3 does not say whose"),
    (np.ones((3, 2)), r"shape \(3, 2\)"), (["a", "b"], "not of one length"),
])
def test_records_of_nobody(whose, part) -> None:
    with pytest.raises(hushsum.ConfigError, match=part):
        total((np.ones((3, 3)), np.ones(3), whose), group="patient")


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array"])
def test_sparse_matrices(kind) -> None:
    """They stay sparse until their rows are drawn; in the training of a job they become dense."""
    sparse = needed("scipy.sparse")
    x, y = measured()
    x[np.abs(x) < 0.7] = 0
    matrix = getattr(sparse, kind)(x)
    assert np.array_equal(total((matrix, y)), total((x, y)))
    assert hushsum.rows(matrix).nnz == matrix.nnz
    assert np.array_equal(trained([(matrix, y)] * 2), trained([(x, y)] * 2))


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_layout_in_memory_moves_no_bit() -> None:
    images = np.random.default_rng(3).normal(size=(ROWS, 20, 15))
    x = images.reshape(ROWS, 300)

    def scores(rows) -> np.ndarray:
        return records.Records(rows, records.Coins({**COINS, "clip": 1e6})).sum(
            lambda model, rows: rows.sum(axis=-1).reshape(len(rows), -1)[:, :1], None,
            Structure(np.zeros(1)))

    for other in (np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], np.matrix(x)):
        assert np.array_equal(scores(other), scores(x))
    columns_first = np.ascontiguousarray(images.transpose(0, 2, 1)).transpose(0, 2, 1)
    assert np.array_equal(scores(columns_first), scores(images))


TRAINED = """name = "trained"
rounds = 3
parties = { PARTIES }
model = { name = "logistic", features = 3, classes = 2 }
training = { batch = 20 }
"""


def trained(parties) -> np.ndarray:
    job = hushsum.Job.parse(TRAINED.replace("PARTIES", f"count = {len(parties)}"))
    return hushsum.simulate(job, None, parties, progress=False).model


@pytest.mark.filterwarnings("ignore:privacy.records is")
def test_simulations_of_frames() -> None:
    """A job that trains comes to the same model, to the bit; a function gets the same records."""
    each = [framed(kind, i) for i, kind in enumerate(FRAMES) if kind != "pyarrow" or _has_arrow()]
    frames = [(frame[["a", "b", "c"]], frame["y"]) for frame, _, _ in each]
    arrays = [(x, y) for _, x, y in each]
    assert np.array_equal(trained(frames), trained(arrays))

    job = hushsum.Job.parse(RECORDS.replace("PARTIES", f"count = {len(each)}"))
    got: list[list] = [[], []]

    def gradients(seen):
        def train(model, rows):
            seen.append(rows)
            return rows[0]
        return train

    for seen, own in zip(got, (frames, arrays)):
        hushsum.simulate(job, gradients(seen), own, np.zeros(3), progress=False)
    assert len(got[0]) == len(got[1]) == 2 * len(each)
    assert all(np.array_equal(a, b) for one, other in zip(*got) for a, b in zip(one, other))


def _has_arrow() -> bool:
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


RECORDS = """name = "by-records"
rounds = 1
parties = { PARTIES }
model.length = 3
[privacy]
unit = "record"
records = 10000
noise = "discrete-gaussian"
epsilon = 2.0
clip = 1.0
submit_after = "500ms"
"""


def joined(text: str, own: list, train=None, progress=None) -> list:
    """Return what each party's join returns, or raises."""
    keys = identities(len(own))
    settled = hushsum.Job.parse(text.replace("PARTIES", 'roster = "roster.txt"')).settle(keys)
    coordinator = hushsum.Identity.generate()
    running = hushsum.Coordinator(settled, identity=coordinator, step_time=60)
    out: list = [None] * len(own)

    def party(i: int, name: str) -> None:
        try:
            out[i] = hushsum.join(
                settled, url=running.url, identity=keys[name], coordinator=coordinator.public,
                rows=own[i], train=train and train(i), progress=progress)
        except hushsum.Error as err:
            out[i] = err

    threads = [threading.Thread(target=party, args=a) for a in enumerate(keys)]
    for t in threads:
        t.start()
    running.run()
    for t in threads:
        t.join(120)
    return out


def test_frames_join() -> None:
    """Each party with a frame of another kind: the model is that of a simulation with arrays, and a
    function gets the records that arrays have."""
    each = [framed(kind, i) for i, kind in enumerate(FRAMES) if kind != "pyarrow" or _has_arrow()]
    frames = [(frame[["a", "b", "c"]], frame["y"]) for frame, _, _ in each]
    want = trained([(x, y) for _, x, y in each])
    for model in joined(TRAINED, frames):
        assert np.array_equal(model, want)

    seen: dict[int, tuple] = {}

    def train(i: int):
        def gradients(model, rows):
            seen[i] = rows
            return rows[0]
        return gradients

    joined(RECORDS, frames, train)
    assert len(seen) == len(each)
    for i, (_, x, y) in enumerate(each):
        assert np.array_equal(seen[i][0], x) and np.array_equal(seen[i][1], y)


@pytest.mark.parametrize("kind", ["text", "own", "shape", "count", "ragged"])
def test_nothing_tells_which_records_were_drawn(kind) -> None:
    """Neither progress, warnings, nor errors, whatever the function raises with all that it knows;
    nor how many they are."""
    x, y = measured()
    x = np.vstack([x] * 45)[:3999]  # half of which is no number of anything else
    drawn, told = [], []

    def train(i: int):
        def gradients(model, rows):
            drawn.append(len(rows))
            if kind == "text":
                raise KeyError(f"rows {list(rows[:, 0])} of {len(rows)} not in index")
            if kind == "own":  # an error of this package, that the function's data make
                hushsum.rows([*rows[:, 0], f"of {len(rows)}"])
            if kind == "ragged":
                return [[1.0, 2.0, 3.0]] * (len(rows) - 1) + [[1.0]]
            return np.ones((len(rows), 7)) if kind == "shape" else np.ones((len(rows) + 1, 3))
        return gradients

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        out = joined(RECORDS.replace("model.length", "training.batch = 5000\nmodel.length"), [x, x],
                     train, told.append)
    drawn = [n for n in drawn if n > 1500]  # and by halves down to single ones
    said = [str(w.message) for w in warned if "training failed" in str(w.message)]
    assert len(said) == 2 and all(w.message.__cause__ is None for w in warned)
    for err in out:
        assert isinstance(err, hushsum.Error) and err.kind == "absent"
        assert err.__cause__ is None and "hushsum.simulate" in str(err)
        said += [str(err), *traceback.format_exception(err)]
    said += [p.text for p in told]
    if kind in ("text", "own"):
        name = "KeyError" if kind == "text" else "ConfigError"
        assert any(f"failed on all records: {name} (test_rows.py" in text for text in said)
    if kind == "shape":
        assert any("a gradient of shape (7,) for each record, not (3,)" in text for text in said)
    if kind == "count":
        assert any("shape (records, 3)" in text for text in said)
    assert len(drawn) == 2 and all(1500 < n < 2500 for n in drawn)
    for text in said:
        assert "rows [" not in text
        assert not any(str(n + more) in text for n in drawn for more in (0, 1)), text


@pytest.mark.parametrize("library", ["polars", "pyarrow", "torch"])
def test_real_libraries(library) -> None:
    x, y = measured()
    names = list("abc")
    if library == "polars":
        module = needed("polars")
        frame, labels = module.DataFrame(dict(zip(names, x.T))), module.Series("y", y)
        missing = module.Series("m", [1, None, 3])
    elif library == "pyarrow":
        module = needed("pyarrow")
        frame, labels = module.table(dict(zip(names, x.T))), module.array(y)
        missing = module.chunked_array([[1, None], [3]])
    else:
        module = needed("torch")
        frame, labels = module.tensor(x, requires_grad=True), module.tensor(y)
        missing = module.tensor([1, float("nan"), 3], dtype=module.bfloat16)
    assert np.array_equal(total((frame, labels)), total((x, y)))
    assert np.array_equal(hushsum.rows(missing), [1, np.nan, 3], equal_nan=True)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind, each", [
    ("int8", [5, -3, 0]), ("uint64", [1, 2, 2**64 - 1]), ("int64", [2**53 + 1, 0, -1]),
    ("float", [0.1, np.inf, -0.0]), ("double", [0.1, np.inf, -0.0]), ("bool", [True, False, True]),
    ("string", ["b", "a", ""]), ("timestamp[us]", ["2020-01-02", "2500-01-01", "1969-01-01"]),
])
def test_columns_of_pyarrow(kind, each, missing) -> None:
    """By themselves and in pandas they equal the same values in NumPy, or are refused alike."""
    arrow, pandas = needed("pyarrow"), needed("pandas")
    plain = np.array(each, {"float": "f4", "double": "f8", "string": "O",
                            "timestamp[us]": "M8[us]"}.get(kind, kind))
    if missing:
        nat = kind == "timestamp[us]"
        plain = np.append(plain, np.datetime64("NaT")) if nat else np.array([*plain, None], object)
    column = arrow.array(plain, kind)
    chunks = arrow.chunked_array([column[:1], column[1:]])
    series = pandas.Series(pandas.arrays.ArrowExtensionArray(chunks), index=[7] * len(plain))
    own = [column, chunks, series, series.array, pandas.Index(series)]
    if kind == "string":
        own += [column.dictionary_encode(), *(series.astype(t) for t in texts_of_arrow())]
    for x in own:
        if missing and kind in ("uint64", "int64"):
            with pytest.raises(hushsum.ConfigError, match="above 2.53"):
                hushsum.rows(x)
            continue
        got, want = hushsum.rows(x), hushsum.rows(plain)
        assert got.dtype == want.dtype
        alike = list if kind == "string" else np.ndarray.tobytes
        assert alike(got) == alike(want)


@pytest.mark.parametrize("kind", ["string[pyarrow]", "int64[pyarrow]"])
def test_persons_of_pyarrow_that_are_missing(kind) -> None:
    needed("pyarrow")
    whose = needed("pandas").Series([1, 2, None], dtype="Int64").astype(kind)
    with pytest.raises(hushsum.ConfigError, match="row 3 does not say whose"):
        total((np.ones((3, 3)), np.ones(3), whose), group="patient")


def test_a_type_that_numpy_lacks() -> None:
    """PyArrow raises where it makes an array of it."""
    arrow = needed("pyarrow")
    union = arrow.UnionArray.from_sparse(arrow.array([0, 1], arrow.int8()), [
        arrow.array([1, 2]), arrow.array(["a", "b"])])
    with pytest.raises(hushsum.ConfigError, match="row 2 has a str"):
        hushsum.rows(union)
    far = arrow.array([2**54], arrow.timestamp("us", "UTC"))  # in the year 2540
    with pytest.raises(hushsum.ConfigError, match="row 1 has a datetime"):
        hushsum.rows(far)


def test_protocols_of_libraries(monkeypatch) -> None:
    x, y = measured()
    columns = {name: x[:, i].tolist() for i, name in enumerate("abc")}
    want = total((x, y))
    monkeypatch.setitem(sys.modules, "pyarrow", Arrow)
    for features in (PolarsFrame(columns), ArrowTable(columns), Streamed(columns), Tensor(x),
                     x.tolist(), [Tensor(row) for row in x], list(x), memoryview(x)):
        for labels in (PolarsSeries("y", y.tolist()), Chunks(y.tolist()), Tensor(y), y.tolist(),
                       ArrowSeries(y.tolist(), "int64")):
            assert np.array_equal(total((features, labels)), want)
    for missing in (PolarsSeries("m", [1, None, 3]), Chunks([1, None, 3]), [1, None, 3],
                    ArrowSeries([1, None, 3], "int64"), ArrowSeries([1, None, 3], "float64"),
                    [decimal.Decimal(1), None, 3], Tensor([1, np.nan, 3], wide=True)):
        assert np.array_equal(hushsum.rows(missing), [1, np.nan, 3], equal_nan=True)
    assert hushsum.rows(ArrowSeries([1, 3], "int32")).dtype == np.int32
    assert hushsum.rows(Tensor([True, False])).dtype == bool


def test_arrays_are_not_copied() -> None:
    x, y = measured()
    got = hushsum.rows((x, y))
    assert got[0] is x and got[1] is y
    assert hushsum.rows(np.array(["a", "b"])).tolist() == hushsum.rows(["a", "b"]).tolist()


BIG = 2**53 + 1


@pytest.mark.parametrize("make, part", [
    (lambda p: 5.0, "a float is not read; give an array"),
    (lambda p: None, "a NoneType is not read"),
    (lambda p: "rows.csv", r"a str is not read; .*read_csv"),
    (lambda p: {"a": [1]}, r"a dict is not read; .*DataFrame"),
    (lambda p: {1, 2}, "a set is not read; give a list"),
    (lambda p: iter([1, 2]), "read again"),
    (lambda p: PolarsLazy(), "a PolarsLazy is not read; its rows are not here yet.*collect"),
    (lambda p: Streamed({"a": [1]}), "a Streamed is not read; give a frame of pandas"),
    (lambda p: (), "not of one length"),
    (lambda p: ([1, 2], [1]), "not of one length"),
    (lambda p: [[1, 2], [3]], r"different shapes; .*\(features, labels\)"),
    (lambda p: [np.ones(2), np.ones(3)], "different shapes"),
    (lambda p: [1, "a"], "row 2 has a str"),
    (lambda p: [[1, 2], [3, "a"]], "row 2 has a str"),
    (lambda p: [{"a": 1}], "an element of this one is a dict"),
    (lambda p: [b"a"], "row 1 has a bytes"),
    (lambda p: [BIG, 0.5], "above 2.53"),
    (lambda p: [BIG, None], "above 2.53"),
    (lambda p: [2**70], "more than 64 bits"),
    (lambda p: [2**63, None], "above 2.53"),
    (lambda p: [np.timedelta64(1, "s"), None], "row 1 has a timedelta64"),
    (lambda p: Chunks([BIG, None]), "above 2.53"),
    (lambda p: ArrowSeries([BIG, None], "int64"), "above 2.53"),
    (lambda p: np.ma.masked_less([1, 2], 2), "masked"),
    (lambda p: np.zeros(3, [("a", int)]), "a tuple"),
    (lambda p: np.array([1, "a"], object), "row 2 has a str"),
    (lambda p: p.DataFrame({"a": [1], "g": ["x"]}), r"column 'g' are no numbers; .*cat.codes"),
    (lambda p: p.DataFrame({"a": [1], "d": p.to_datetime(["2020"])}), "column 'd' are no numbers"),
    (lambda p: p.DataFrame({"a": [[1, 2]]}), "column 'a' are no records: row 1 has a list"),
    (lambda p: p.DataFrame({"a": [BIG], "b": [0.5]}), "column 'a' have whole numbers above"),
    (lambda p: p.Series([BIG, None], dtype="Int64"), "above 2.53"),
    (lambda p: p.Series([BIG, None], dtype="Int64").astype("category"), "above 2.53"),
    (lambda p: p.DataFrame(index=[1, 2]), "without columns"),
    (lambda p: p.MultiIndex.from_tuples([(1, 2)]), "several levels"),
    (lambda p: [p.DataFrame({"a": [1]})], "a DataFrame; give several arrays in a tuple"),
    (lambda p: p.DataFrame({"a": [1]}).groupby("a"), "a DataFrameGroupBy is not read"),
])
def test_rows_that_are_refused(make, part) -> None:
    pandas = needed("pandas") if uses_argument(make) else None
    for door in (hushsum.rows, lambda rows: records.Records(rows, records.Coins(COINS))):
        with pytest.raises(hushsum.ConfigError, match=part) as refused:
            door(make(pandas))
        assert refused.value.kind == "config" and refused.value.field == "rows"
        assert refused.value.advice


@pytest.mark.parametrize("rows, part", [
    (([[1.0], [2.0]], ["a", "b"]), "labels are an array of .*counted from 0"),
    (np.ones((2, 3)), "rows are two arrays"), (([1, 2], [1, 2]), r"shape \(2,\) do not match"),
    (([[1.0], [2.0]], [0]), "do not match labels"),
])
def test_rows_of_a_training_job_that_are_refused(rows, part) -> None:
    with pytest.raises(hushsum.ConfigError, match=part):
        trained([rows, rows])


def test_parties_are_a_list() -> None:
    """The elements of a frame are columns, and those of a series have labels."""
    frame, x, y = framed("shuffled")
    for parties in (frame, frame["y"], {"a": (x, y)}):
        with pytest.raises(hushsum.ConfigError, match="is not a list of parties") as refused:
            hushsum.simulate(hushsum.Job.parse(TRAINED.replace("PARTIES", "count = 2")), None,
                             parties)
        assert refused.value.field == "parties"


def test_no_library_is_imported() -> None:
    code = ("import sys, hushsum\nhushsum.rows([[1.0, 2.0]])\n"
            "from hushsum import queries, records, simulation\n"
            "print(sorted({'pandas', 'scipy', 'torch', 'polars', 'pyarrow'} & set(sys.modules)))")
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout == "[]\n"
