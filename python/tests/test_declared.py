"""Declared jobs: read, written, and the same as in Go."""

import dataclasses
import json
import pickle
import typing
from pathlib import Path

import pytest

import hushsum
from hushsum import Job, _sidecar

FIRST = """name = "first"
rounds = 20
parties.count = 10
model.name = "logistic"
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0 }
"""

LISTS = """name = "lists"
rounds = 20
model.name = "logistic"
parties.drop_out = 0.2
training.lambda = 0.25
time.pace = "90m"
[[parties.group]]
name = "clinic"
count = 4
[[parties.group]]
name = "phone"
[[world.party]]
name = "clinic-2"
compute = ["1s", "500ms"]
crash = [{ round = 3, at = "sign" }]
"""

TYPES = {
    "text": str, "time": str, "instant": str, "whole number": int, "number": float,
    "true or false": bool, "list of texts": typing.Sequence[str],
    "list of whole numbers": typing.Sequence[int],
    "list of numbers": typing.Sequence[float], "list of times": typing.Sequence[str],
}


def attributes(cls: type, at: str = "") -> dict[str, tuple[type, dataclasses.Field, str]]:
    """Return the fields of a class and those within it: type, field and docstring by path."""
    within = {name: c for name, c in vars(cls).items() if isinstance(c, type)}
    hints = typing.get_type_hints(cls, localns=within)
    out = {}
    for f in dataclasses.fields(cls):
        if f.name.startswith("_"):
            continue
        name = at + f.name.rstrip("_")
        inner = within.get(f.name.capitalize())
        if inner is None:
            out[name] = (hints[f.name], f, " ".join((cls.__doc__ or "").split()))
        elif hints[f.name] is inner:
            out |= attributes(inner, name + ".")
        else:
            assert hints[f.name] == typing.Sequence[inner]
            out |= attributes(inner, name + "[].")
    return out


def test_classes_are_those_of_the_table() -> None:
    table, _ = _sidecar.current().call("job.fields")
    ours = attributes(Job)
    assert list(sorted(ours)) == sorted(f["path"] for f in table["fields"])
    for row in table["fields"]:
        hint, field, doc = ours[row["path"]]
        assert row["sentence"] in doc, row["path"]
        assert (field.default is dataclasses.MISSING) == row["required"], row["path"]
        if row["kind"] == "word":
            words = typing.get_args(hint)
            assert [w for w in words if w] == row["words"], row["path"]
            assert row["required"] or field.default in words, row["path"]
        else:
            assert hint == TYPES[row["kind"]], row["path"]


def test_made_in_python_and_read_from_a_file(tmp_path: Path) -> None:
    made = Job(
        name="first", rounds=20, parties=Job.Parties(count=10), model=Job.Model(name="logistic"),
        privacy=Job.Privacy(noise="discrete-gaussian", epsilon=8, clip=1, delta=0.0),
    )
    assert made.to_dict() == {
        "name": "first", "rounds": 20, "parties": {"count": 10}, "model": {"name": "logistic"},
        "privacy": {"noise": "discrete-gaussian", "epsilon": 8, "clip": 1},
    }
    read = Job.parse(FIRST)
    assert read.privacy.delta == 1e-5
    assert len(read.digest()) == 64 and read.digest() == made.digest()
    assert read.explain() == made.explain() and "round" in read.explain()[0]
    file = tmp_path / "first.json"
    file.write_text(json.dumps(made.to_dict()))
    assert Job.load(file) == read == pickle.loads(pickle.dumps(read))
    assert dataclasses.replace(read, seed=7).digest() != read.digest()


def test_lists_and_a_name_that_python_keeps() -> None:
    job = Job.parse(LISTS)
    crash = Job.World.Party.Crash(round=3, at="sign")
    assert job.parties.group == (Job.Parties.Group(name="clinic", count=4),
                                 Job.Parties.Group(name="phone"))
    assert job.world.party[0].crash == (crash,) and job.world.party[0].compute == ("1s", "500ms")
    assert job.training.lambda_ == 0.25 and job.time.pace == "1h30m0s"
    assert Job.parse(json.dumps(job.to_dict())) == job
    assert hash(job) == hash(Job.parse(LISTS))
    other = dataclasses.replace(job, parties=Job.Parties(group=[Job.Parties.Group(name="clinic"),
                                                                Job.Parties.Group(name="phone")]))
    with pytest.raises(hushsum.ConfigError, match="clinic-2"):
        other.digest()


def test_all_mistakes_are_told(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('name = "x"\nrounds = 0\nprivacy.epsilon = "much"\nepsilom = 2\n')
    with pytest.raises(hushsum.ConfigError) as caught:
        Job.load(file)
    assert [(m["line"], m["path"]) for m in caught.value.mistakes] == [
        (2, "rounds"), (3, "privacy.epsilon"), (4, "epsilom")]
    assert all(m["reason"] and m["advice"] for m in caught.value.mistakes)
    assert caught.value.field == "rounds" and f"{file}:3: privacy.epsilon: " in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).mistakes == caught.value.mistakes
    with pytest.raises(hushsum.ConfigError, match="UTF-8"):
        Job.parse(b'name = "\xff"')
    with pytest.raises(hushsum.ConfigError, match="rounds: it is missing"):
        Job(name="x", rounds=0).digest()
    with pytest.raises(TypeError):
        Job(name="x", rounds=1, epsilon=2)  # type: ignore[call-arg]
