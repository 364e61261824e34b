"""A record, or a person, on which a function fails adds nothing to a sum, and moves nothing else."""

import warnings

import numpy as np
import pytest

import hushsum
from hushsum import records
from hushsum.arrays import Structure
from test_rows import joined

BAD = 1e9  # what a record has on which the functions below fail


def fails(model, rows, kind: str):
    """Return gradients, or do what a kind says if one of the rows is bad."""
    bad = rows[:, 0] == BAD
    made = {"w": model["w"] * rows[:, :2], "b": rows[:, 2]}
    if not bad.any():
        return made
    if kind == "raises":
        raise IndexError(f"of {len(rows)} records")
    if kind == "exits":
        raise SystemExit(0)
    if kind == "out of memory":
        np.empty(1 << 60)
    if kind == "ends":
        raise GeneratorExit
    if kind == "writes to its model":
        model["w"] *= 1000
        raise ValueError
    if kind == "writes to its rows":
        rows *= 1000
        raise ValueError
    if kind == "warns":
        warnings.simplefilter("error")
        np.log(-np.ones(1))
    if kind == "one gradient too few":
        return {name: g[~bad] for name, g in made.items()}
    if kind == "one too many":
        return {name: np.concatenate([g, g[:1]]) for name, g in made.items()}
    if kind == "other numbers":
        return {"w": made["w"][:, :1], "b": made["b"]}
    if kind == "other names":
        return {"w": made["w"]}
    if kind == "nothing":
        return None
    if kind == "text":
        return {"w": np.where(bad[:, None], "?", made["w"].astype(str)), "b": made["b"]}
    assert kind == "not finite"
    return {"w": made["w"], "b": np.where(bad, np.inf, made["b"])}


KINDS = ["raises", "exits", "out of memory", "ends", "writes to its model", "writes to its rows",
         "warns", "one gradient too few", "one too many", "other numbers", "other names", "nothing",
         "text", "not finite"]


def summed(kind: str, rows, drawn: np.ndarray, group: str = ""):
    """Return the sum over the units that these coins draw, and the records."""
    coins = records.Coins({"count": 1000, "rate": 0.5, "most": 1000, "clip": 1.0, "group": group})
    coins.toss = lambda units: np.flatnonzero(drawn)  # type: ignore[method-assign]
    own = records.Records(rows, coins)
    with warnings.catch_warnings():
        total = own.sum(lambda model, rows: fails(model, rows, kind), {"w": np.array([1.5, -2])},
                        Structure({"w": np.zeros(2), "b": 0.0}))
    return total, own


@pytest.mark.parametrize("kind", KINDS)
def test_the_sum_without_what_fails(kind: str) -> None:
    """It is the sum over the data set without those records, by the same coins of all others,
    whatever is asked for at once. A whole sum of zeros differs by the length of all of it."""
    for seed in range(30):
        r = np.random.default_rng(seed)
        n = int(r.integers(1, 80))
        x = r.normal(size=(n, 3)) * 2
        bad = r.random(n) < r.choice([0.02, 0.3, 1])
        bad[r.integers(n)] = True
        x[bad, 0] = BAD
        drawn = r.random(n) < 0.6
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(records, "_NUMBERS", 3 * int(r.choice([1, 7, 1000])))
            got, own = summed(kind, x, drawn)
            want, without = summed(kind, x[~bad], drawn[~bad])
        assert np.linalg.norm(got - want) < 1e-12
        assert own.failed + own.left_out == np.count_nonzero(bad & drawn)
        assert without.failed == without.left_out == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_sum_without_who_fails(kind: str) -> None:
    """One bad record of a person takes the others of that person along, and nobody else's."""
    for seed in range(10):
        r = np.random.default_rng(seed)
        who = r.integers(0, 12, 60)
        x = r.normal(size=(60, 3)) * 2
        bad = np.zeros(12, bool)
        for row in r.integers(0, 60, 2):
            x[row, 0], bad[who[row]] = BAD, True
        here = np.isin(np.arange(12), who)
        drawn = r.random(12) < 0.6
        rest = ~bad[who]
        got, own = summed(kind, (x, who), drawn[here], "patient")
        want, _ = summed(kind, (x[rest], who[rest]), drawn[here & ~bad], "patient")
        assert np.linalg.norm(got - want) < 1e-12
        assert own.failed + own.left_out == np.count_nonzero(bad & drawn)


def test_a_record_that_fails_takes_few_calls() -> None:
    """Of 1,000 records: two for each time that they are halved, and the first."""
    calls = []

    def train(model, rows):
        calls.append(len(rows))
        if (rows == BAD).any():
            raise ValueError
        return rows

    x = np.ones((1000, 1))
    x[617] = BAD
    own = records.Records(x, records.Coins({"count": 1000, "rate": 1, "most": 1000, "clip": 1}))
    assert -own.sum(train, None, Structure(np.zeros(1)))[0] == 999
    assert len(calls) <= 21 and own.failed == 1 and own.first == 618


def test_an_interrupt_is_its_owners() -> None:
    own = records.Records(np.ones((5, 1)), records.Coins(
        {"count": 1000, "rate": 1, "most": 1000, "clip": 1}))

    def train(model, rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        own.sum(train, None, Structure(np.zeros(1)))


JOB = """name = "by-records"
rounds = 2
parties = { PARTIES }
model.length = 3
[privacy]
unit = "record"
records = 80
noise = "discrete-gaussian"
multiplier = 1e-5
bits = 50
clip = 1.0
submit_after = "10s"
"""


def test_a_record_that_fails_in_a_job() -> None:
    """All draw all records, with next to no noise. The model is that of the data without it, where
    a sum of zeros made it another; of the record, its round's number of records, and the text of
    the exception nothing is told."""
    x = np.tile([0.5, -0.25, 0.5], (40, 1))
    y = x.copy()
    y[17, 0] = BAD
    told: list[hushsum.Progress] = []

    def train(i: int):
        def gradients(model, rows):
            if (rows == BAD).any():
                raise IndexError(f"{rows} are {len(rows)}")
            return rows
        return gradients

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        last = joined(JOB, [y, x], train, told.append)
    said = [str(w.message) for w in warned if "train failed" in str(w.message)]
    assert said == [t for t in said if t.startswith("in round 1 train failed on some records, which "
                                                    "add nothing: IndexError (test_units.py:")]
    assert len(said) == 1 and all(w.message.__cause__ is None for w in warned)
    said += [p.text for p in told if "failed" in p.text]
    assert len(said) == 3
    assert not any(n in text for text in said for n in ("40", "39", "18", "17", "["))
    for model in last:
        assert np.allclose(np.asarray(model), -2 * 79 / 80 * x[0], atol=1e-3)


def test_a_simulation_names_what_fails() -> None:
    """It keeps nothing from whoever has all the rows: the record, how many, the exception itself."""
    x = np.ones((40, 3))
    x[17, 0] = BAD
    job = hushsum.Job.parse(JOB.replace("PARTIES", "count = 2"))

    def train(model, rows):
        if (rows == BAD).any():
            raise IndexError("of this record")
        return rows

    with pytest.warns(RuntimeWarning, match=r"parties\[1\] train failed on 1 of 40 records, the "
                      r"first in row 18, which add nothing: IndexError: of this record") as told:
        out = hushsum.simulate(job, train, [np.ones((40, 3)), x], np.zeros(3), progress=False)
    assert len(told) == 1 and isinstance(told[0].message.__cause__, IndexError)
    assert np.isfinite(out.model).all()
    with pytest.raises(IndexError, match="of this record"):
        hushsum.simulate(job, train, [np.full((40, 3), BAD), x], np.zeros(3), progress=False)

    def several(model, rows):
        if len(rows) > 1:
            raise ValueError("one at a time")
        return rows

    with pytest.warns(RuntimeWarning, match="several records at once, and on none of them alone"):
        hushsum.simulate(job, several, [x[:5], x[:5]], np.zeros(3), progress=False)
