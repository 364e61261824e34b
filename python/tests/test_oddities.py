"""Rows as people bring them: each entry of Python reads or refuses what those of Go do.

The table, oddities.json, is Go's too (package internal/oddities)."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import hushsum
from hushsum import records
from hushsum.arrays import Structure
from libraries import needed
from rounds import identities
from test_rows import COINS

ODDITIES = json.loads((Path(__file__).parent / "oddities.json").read_text())
OF = {"float64": float, "float32": np.float32, "int64": int, "uint64": np.uint64, "text": str,
      "none": lambda _: None, "bytes": str.encode}

ASKED = """name = "xy"
parties = { count = 2, rows = 9 }
column = [
  { name = "x", type = "number", range = [0.0, 100.0] },
  { name = "y", type = "number", range = [0.0, 100.0] },
]
query = [{ name = "n", kind = "count" }, { name = "sums", kind = "sum", column = "y" }]
"""
TRAINED = """name = "trained"
rounds = 1
parties = { count = 2 }
model = { name = "logistic", features = 2, classes = 2 }
training = { batch = 2 }
"""


def said(ask) -> str:
    """Return the words of a refusal; empty: there is none."""
    try:
        ask()
    except hushsum.Error as err:
        return str(err)
    return ""


def expect(ask, want: str) -> None:
    text = said(ask)
    assert want in text and bool(want) == bool(text)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("odd", ODDITIES["files"], ids=lambda odd: odd["what"])
def test_files(odd, packed, tmp_path) -> None:
    encoding = "latin-1" if odd.get("latin1") else "utf-8"
    text = (odd["head"] + odd["rows"].removeprefix("\ufeff")).encode(encoding)
    path = tmp_path / ("rows.csv.gz" if packed else "rows.csv")
    path.write_bytes(gzip.compress(text) if packed else text)
    job, want = hushsum.Job.parse(ASKED), odd.get("want", "")
    for ask in (lambda: hushsum.query(job, path),
                lambda: hushsum.Queries(job.settle(identities(2))).vector(path)):
        expect(ask, want)
    if not want:
        answers = hushsum.query(job, path)
        assert answers["n"].value == 2 and answers["sums"].value == 6.5


@pytest.mark.parametrize("odd", ODDITIES["values"], ids=lambda odd: f"{odd['type']} {odd['text']}")
def test_values(odd) -> None:
    value, job = OF[odd["type"]](odd["text"]), hushsum.Job.parse(ASKED)
    table = {"x": [1, 3], "y": [2.5, value]}
    tables = [table, [dict(zip(table, row)) for row in zip(*table.values())]]
    try:
        tables.append(needed("pandas").DataFrame(table))
    except pytest.skip.Exception:
        pass
    for own in tables:
        for ask in (lambda: hushsum.query(job, own),
                    lambda: hushsum.Queries(job.settle(identities(2))).vector(own)):
            expect(ask, odd.get("table", odd.get("want", "")))

    rows = ([[1, 2.5], [3, value]], [0, 1])
    arrays = odd.get("arrays", "")
    expect(lambda: hushsum.rows(rows), arrays)
    expect(lambda: hushsum.simulate(hushsum.Job.parse(TRAINED), None, [rows, rows], progress=False),
           arrays or odd.get("trained", ""))
    own = records.Coins(COINS)
    expect(lambda: records.Records(rows, own).sum(lambda model, rows: rows[0], None,
                                                  Structure(np.zeros(2))), arrays)
