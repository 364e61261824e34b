"""Queries: rows of every kind of table, answers, and what is refused."""

import csv
import math
import runpy
import sqlite3
import threading
import tokenize
import warnings
from pathlib import Path

import numpy as np
import pytest

import hushsum
from rounds import identities

TEXT = """
name = "people"
parties = { count = 4, rows = 50 }
column = [
  { name = "age", type = "whole", range = [18, 100], unit = "years" },
  { name = "group", type = "category", categories = ["a", "b"], missing = "category" },
]
query = [
  { name = "old", kind = "count", where = "age >= 60" },
  { name = "age", kind = "mean", column = "age" },
  { name = "groups", kind = "histogram", column = "group" },
  { name = "table", kind = "crosstab", column = "age", by = "group", bins = 2 },
]
"""
ROWS = [{"age": 20 + 3 * i, "group": "ab"[i % 2] if i % 5 else None} for i in range(24)]


WORDS = """
name = "words"
parties = { count = 5, rows = 100 }
privacy = { unit = "record", records = 300, noise = "discrete-gaussian", epsilon = 8.0 }
column = [{ name = "said", type = "text", longest = 8, missing = "drop" }]
query = [{ name = "words", kind = "heavy", column = "said", top = 3 }]
"""


def test_frequent_words_come_out_and_single_ones_do_not(tmp_path):
    job = hushsum.Job.parse(WORDS)
    said = ["Ache"] * 120 + [" cough"] * 80 + [f"w{i}" for i in range(40)] + [None]
    (words,) = hushsum.query(job, {"said": said})
    assert words.labels == ["ache", "cough"] and words.kind == "heavy" and words.unit == "rows"
    assert abs(words.value[0] - 120) < 10 and words.interval[0][0] < words.value[0]

    nothing = hushsum.query(job, {"said": [f"w{i}" for i in range(40)]})
    assert nothing["words"].value == [] and nothing.table() == []
    assert "no word" in str(nothing)
    nothing.to_csv(tmp_path / "nothing.csv")
    assert (tmp_path / "nothing.csv").read_text().startswith("name,kind,unit,label")


@pytest.fixture
def job():
    return hushsum.Job.parse(TEXT)


def columns():
    return {name: [row[name] for row in ROWS] for name in ("age", "group")}


def database():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE person (age, grp)")
    connection.executemany("INSERT INTO person VALUES (:age, :group)", ROWS)
    return connection, 'SELECT age, grp AS "group" FROM person'


def file(folder):
    with open(folder / "rows.csv", "w", newline="") as out:
        writer = csv.DictWriter(out, ["age", "group"])
        writer.writeheader()
        writer.writerows(ROWS)
    return folder / "rows.csv"


def test_every_kind_of_table_says_the_same(job, tmp_path):
    tables = [ROWS, columns(), database(), file(tmp_path), str(file(tmp_path))]
    pandas = pytest.importorskip("pandas", reason="data frames take pandas") if _has_pandas() else None
    if pandas is not None:
        tables.append(pandas.DataFrame(ROWS))
    expected = sum(row["age"] for row in ROWS) / len(ROWS)
    for table in tables:
        answers = hushsum.query(job, table)
        assert answers["old"].value == sum(row["age"] >= 60 for row in ROWS)
        assert answers["age"].value == pytest.approx(expected)
        assert answers["groups"].labels == ["a", "b", "missing"]
        assert answers["groups"].value == [9, 10, 5]
        assert answers.spent is None and answers.present == answers.parties == 4
        assert {report["findings"][0]["what"] for report in answers.reports} == {"missing"}


def _has_pandas():
    try:
        import pandas  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def test_a_table_of_each_party(job):
    answers = hushsum.query(job, [columns(), ROWS, database(), {"age": [70], "group": ["b"]}])
    assert answers["old"].value == 3 * sum(row["age"] >= 60 for row in ROWS) + 1
    assert [answer.name for answer in answers] == ["old", "age", "groups", "table"]
    assert len(answers["table"].value) == 2 and len(answers["table"].margins) == 2


def test_answers_travel(job, tmp_path):
    answers = hushsum.query(job, ROWS)
    table = answers.table()
    assert len(table) == 1 + 1 + 3 + 6
    answers.to_csv(tmp_path / "answers.csv")
    with open(tmp_path / "answers.csv", newline="") as read:
        again = list(csv.DictReader(read))
    assert [row["label"] for row in again] == [row["label"] for row in table]
    assert "<table>" in answers._repr_html_()
    if _has_pandas():
        assert list(answers.to_pandas()["name"]) == [row["name"] for row in table]


def test_figures(job, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    answers = hushsum.query(job, ROWS)
    answers.plot().savefig(tmp_path / "answers.png")
    assert (tmp_path / "answers.png").stat().st_size > 10_000


def test_what_cannot_be_known_is_in_the_table(tmp_path):
    job = hushsum.Job.parse(TEXT.replace(", rows = 50", "").replace(
        "column = [", 'privacy = { unit = "record", records = 24, noise = "discrete-gaussian", '
        "epsilon = 0.01 }\ncolumn = [", 1))
    answers = hushsum.query(job, ROWS)
    mean = next(row for row in answers.table() if row["name"] == "age")
    assert math.isnan(mean["value"]) and mean["unknown"].startswith("noise hides")
    assert mean["population_low"] is None
    answers.to_csv(tmp_path / "answers.csv")
    with open(tmp_path / "answers.csv", newline="") as read:
        rows = list(csv.DictReader(read))
    assert [row["unknown"] for row in rows] == [row["unknown"] for row in answers.table()]


def test_noise_and_its_price():
    job = hushsum.Job.parse(TEXT.replace(", rows = 50", "").replace(
        "column = [", 'privacy = { unit = "record", noise = "discrete-gaussian", epsilon = 2.0 }\n'
        "column = [", 1))
    answers = hushsum.query(job, ROWS)
    assert 1.9 < answers.spent.epsilon <= 2 and answers["old"].spends.epsilon < 2
    assert str(answers).startswith(f"all together spend {answers.spent}\n")
    low, high = answers["old"].interval
    assert low <= answers["old"].value <= high and high > low


def test_between_machines(job):
    """What parties bring, added up by whatever carries it, gives the answers."""
    roster = [(f"party-{i + 1}", hushsum.Identity.generate().public) for i in range(4)]
    settled = job.settle(roster)
    asked = hushsum.Queries(settled)
    vectors = [asked.vector(ROWS[i::4]) for i in range(4)]
    answers = asked.answers(np.mean(vectors, axis=0), 4)
    assert answers["old"].value == sum(row["age"] >= 60 for row in ROWS)
    assert answers["groups"].value == [9, 10, 5]


@pytest.mark.parametrize("unit", ["record", "party"])
def test_three_parties_join_and_a_coordinator_reads(unit):
    """Whoever epsilon protects: a function of each party answers, and the last model is the mean."""
    text = TEXT.replace("count = 4", "count = 3")
    if unit == "record":
        text = text.replace(", rows = 50 }", """ }
privacy = { unit = "record", records = 24, noise = "discrete-gaussian", epsilon = 50.0 }""")
    declared = hushsum.Job.parse(text)
    keys = identities(3)
    settled = declared.settle(keys)
    asked, coordinator = hushsum.Queries(settled), hushsum.Identity.generate()
    running = hushsum.Coordinator(settled, identity=coordinator, step_time=60)

    def party(i, name):
        vector = asked.vector(ROWS[i::3])
        hushsum.join(settled, url=running.url, identity=keys[name], coordinator=coordinator.public,
                     train=lambda model: vector)

    threads = [threading.Thread(target=party, args=a) for a in enumerate(keys)]
    for t in threads:
        t.start()
    answers = asked.answers(running.run(), 3)
    for t in threads:
        t.join(120)
    old = answers["old"]
    assert bool(old.spends) == (unit == "record") and answers.present == 3
    # Six standard deviations: exceeded with a probability of 2e-9.
    margin = 6 * (old.interval[1] - old.interval[0]) / 2 / 1.96
    assert abs(old.value - sum(row["age"] >= 60 for row in ROWS)) <= margin + 1e-9 < 12


def test_rows_that_are_in_no_file_are_named_by_number(job, tmp_path):
    """By line only in a file, whose header is its first."""
    bad = [{**row, "age": "old"} if i == 5 else row for i, row in enumerate(ROWS)]
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE person (age, grp)")
    connection.executemany("INSERT INTO person VALUES (:age, :group)", bad)
    path = tmp_path / "rows.csv"
    path.write_text("age,group\n" + "".join(f"{r['age']},{r['group'] or ''}\n" for r in bad))
    tables = [bad, {name: [row[name] for row in bad] for name in ("age", "group")},
              (connection, 'SELECT age, grp AS "group" FROM person'), path]
    for table, where in zip(tables, ["table 1: row 6: age"] * 3 + ["rows.csv:7: age"]):
        with pytest.raises(hushsum.ConfigError, match=where):
            hushsum.query(job, table)
    with pytest.raises(hushsum.ConfigError, match="row 6: age"):
        hushsum.Queries(job.settle(identities(4))).vector(bad)
    with pytest.raises(hushsum.ConfigError, match="no such column") as refused:
        hushsum.query(job, [{"years": 3}])
    assert "header" not in str(refused.value)


def test_values_that_are_clipped_are_told_of(job):
    """Once for all tables, as the command does; nothing is told of others."""
    odd = [{**ROWS[0], "age": 400}, {**ROWS[1], "group": "c"}, *ROWS]
    said = ('table 1: age: 1 value clipped, at row 1: "400", where the job declares numbers from 18 '
            'to 100; table 1: group: 1 value unknown, at row 2: "c", where the job declares "a", "b"')
    with pytest.warns(RuntimeWarning) as told:
        hushsum.query(job, odd)
    assert [str(t.message) for t in told] == [said]
    with pytest.warns(RuntimeWarning, match="the rows: age: 1 value clipped, at row 1"):
        hushsum.Queries(job.settle(identities(4))).vector(odd)
    with pytest.warns(RuntimeWarning, match="the rows: group: 1 value missing, at row 1"):
        hushsum.Queries(job.settle(identities(4))).vector([{**ROWS[0], "group": None}])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hushsum.query(job, ROWS)


def test_other_numbers_of_records_are_told_of():
    said = ["a"] * 240
    with pytest.warns(RuntimeWarning, match="privacy.records is 300, and the parties here have 240"):
        hushsum.query(hushsum.Job.parse(WORDS), {"said": said})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hushsum.query(hushsum.Job.parse(WORDS.replace("records = 300", "records = 250")),
                      {"said": said})


@pytest.mark.parametrize("rows, field, part", [
    ([{"years": 3}], "age", "no such column"),
    ({"age": [1, 2], "group": ["a"]}, "rows", "different lengths"),
    ({"age": ["old"], "group": ["a"]}, "age", 'row 1: age: the value is unknown, as "old" is not'),
    (7, "rows", "a int is not a table"),
    ([], "rows", "a list is not a table"),
    ([{"age": [30], "group": ["a"]}] * 3, "rows", "3 tables do not match 4 parties"),
])
def test_refusals(job, rows, field, part):
    with pytest.raises(hushsum.Error) as refused:
        hushsum.query(job, rows)
    assert part in str(refused.value)
    if field != "rows":
        assert refused.value.field == field and isinstance(refused.value, hushsum.ConfigError)


@pytest.mark.parametrize("name, begins, part", [
    ("rows.parquet", b"PAR1", "pandas.read_parquet(path)"), ("rows", b"PARE", "encrypted Parquet"),
    ("rows.db", b"SQLite format 3\0", "sqlite3.connect(path)"),
])
def test_files_that_are_no_text(job, tmp_path, name, begins, part):
    """They are refused for what they are, not read as CSV."""
    (tmp_path / name).write_bytes(begins + bytes(range(256)))
    for rows in (tmp_path / name, [ROWS] * 3 + [str(tmp_path / name)]):
        with pytest.raises(hushsum.ConfigError) as refused:
            hushsum.query(job, rows)
        assert part in str(refused.value) and name in str(refused.value)
        assert refused.value.field == "rows" and refused.value.kind == "rows"


def test_answers_are_a_table(job):
    """The columns of a table begin at the same places in all lines."""
    answers = hushsum.query(job, ROWS)
    _, head, *lines = str(answers).splitlines()
    assert head.split() == ["query", "answer", "95", "%", "interval", "unit"]
    assert len(lines) == len(answers.table())
    places = [head.index(name) for name in ("95", "unit")]
    for line, row in zip(lines, answers.table()):
        assert line.startswith(row["name"]) and f"{row['value']:.6g}" in line
        assert all(line[at - 2:at] == "  " and line[at] != " " for at in places), line


def test_the_example_is_short(capsys):
    """It has at most 20 lines of code, and prints its answers."""
    path = Path(__file__).parent.parent / "examples" / "query.py"
    skipped = {tokenize.ENCODING, tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT,
               tokenize.DEDENT, tokenize.ENDMARKER}
    lines = set()
    with open(path, "rb") as text:
        for i, token in enumerate(tokenize.tokenize(text.readline)):
            if token.type not in skipped and i > 1:  # the first text says what it is
                lines.update(range(token.start[0], token.end[0] + 1))
    assert len(lines) <= 20
    runpy.run_path(str(path))
    assert {"smokers", "age", "ages, 18"} <= {
        line.split("  ")[0].split(" to ")[0] for line in capsys.readouterr().out.splitlines()}


def test_a_job_without_queries():
    with pytest.raises(hushsum.ConfigError, match="asks nothing"):
        hushsum.query(hushsum.Job.parse('name = "a"\nrounds = 1\nparties.count = 3\nmodel.length = 2'), ROWS)


def test_no_such_answer(job):
    with pytest.raises(KeyError, match="there are old, age"):
        hushsum.query(job, ROWS)["young"]
