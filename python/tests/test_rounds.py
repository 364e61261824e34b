"""Jobs, parties and servers over arrays."""

import dataclasses
import os
import pickle

import numpy as np
import pytest

import hushsum
from hushsum import _sidecar
from hushsum.party import digest_of
from rounds import Session, close_to, identities, job


def test_mean_of_arrays() -> None:
    keys = identities(10)
    session = Session(job().settle(keys), keys.values())
    mean = session.round(lambda i: np.arange(5.0) * i, model=np.ones(5))
    assert mean.parties == list(range(10))
    assert close_to(mean.model, np.arange(5) * 4.5)
    assert mean.std_dev == 0 and mean.weight is None


def test_structures() -> None:
    model = {
        "layer.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
        "layer.bias": [np.float64(1.5), np.zeros(2)],
        "steps": np.array(7),
        "scalar": 3,
    }
    keys = identities(4)
    settled = job(length=11, drop_out=0).settle(keys, like=model)
    session = Session(settled, keys.values())
    mean = session.round(lambda i: dict(reversed(list(model.items()))))  # any order of keys
    assert close_to(mean.model["layer.weight"], model["layer.weight"])
    assert mean.model["layer.bias"][1].shape == (2,)
    broadcast, _ = session.server.begin(model)
    got = session.parties[0].model(broadcast)
    assert got["layer.weight"].dtype == np.float32
    assert np.array_equal(got["layer.weight"], model["layer.weight"])
    assert got["layer.bias"][0] == 1.5 and got["scalar"] == 3.0 and got["steps"] == 7


def test_arrays_of_all_kinds() -> None:
    """What numpy can convert is taken, wherever and however it lies in memory; what has no
    more than float32 has goes as that, and the mean is of the declared type."""
    base = np.arange(1.0, 7.0).reshape(2, 3)
    kinds = [
        base, base.astype(np.float32), base.astype(np.float16), base.astype(np.int64),
        base.astype(np.uint8), base.astype(">f8"), base.astype(">i2"), np.asfortranarray(base),
        np.repeat(base, 2, axis=1)[:, ::2], base[::-1][::-1], base.astype(np.longdouble),
    ]
    frozen = base.copy()
    frozen.flags.writeable = False
    kinds.append(frozen)
    for like, dtype in ((base, np.float64), (base.astype(np.float32), np.float32)):
        keys = identities(len(kinds))
        settled = job(length=6, drop_out=0, rounds=1).settle(keys, like=like)
        session = Session(settled, keys.values())
        mean = session.round(lambda i: kinds[i]).model
        assert mean.dtype == dtype and mean.shape == (2, 3) and mean.flags.writeable
        assert close_to(mean, base, 1e-5)
    empty = job(length=3, drop_out=0).settle(keys, like={"a": np.zeros((0, 4)), "b": np.ones(3)})
    mean = Session(empty, keys.values()).round(lambda i: {"a": np.zeros((0, 4)), "b": np.ones(3)})
    assert mean.model["a"].shape == (0, 4) and close_to(mean.model["b"], 1)


def test_another_broadcast_is_refused() -> None:
    keys = identities(3)
    session = Session(job(drop_out=0).settle(keys), keys.values())
    broadcast, messages = session.server.begin(None)
    session.carry(messages)
    for p in session.parties:
        session.server.receive(p.index, p.submit(broadcast, np.ones(5)))
    session.carry(session.server.survivors())
    session.carry(session.server.certificate())
    with pytest.raises(hushsum.MessageError, match="began with"):
        session.server.sum(b"another")
    assert close_to(session.server.sum(broadcast).model, 1)


@pytest.mark.parametrize("wrong, says", [
    ({"a": np.zeros(3)}, "other keys"),
    ({"a": np.zeros(2), "b": np.zeros((2, 1))}, "shape"),
    ([np.zeros(2)], r"not a dictionary.*return \{'a': an array of shape \(2,\), 'b': an array of"),
    (np.zeros(5), r"not a dictionary.*return \{'a'"),
    ({"a": {"c": np.zeros(2)}, "b": np.zeros(3)}, r"\['a'\] is a dictionary.*shape \(2,\)"),
    ({"a": np.array(["x", "y"]), "b": np.zeros(3)}, "not of numbers"),
])
def test_wrong_structures(wrong: object, says: str) -> None:
    keys = identities(3)
    settled = job(drop_out=0).settle(keys, like={"a": np.zeros(2), "b": np.zeros(3)})
    session = Session(settled, keys.values())
    broadcast, messages = session.server.begin(None)
    session.carry(messages)
    with pytest.raises(hushsum.ConfigError, match=says):
        session.parties[0].submit(broadcast, wrong)
    assert session.parties[0].due == 1  # nothing has changed


def test_a_dictionary_where_the_job_has_a_vector() -> None:
    with pytest.raises(hushsum.ConfigError, match=r"shape \(5,\).*return one array.*like=model"):
        hushsum.simulate(job(count=3, roster=""), lambda model, data: {"w": np.zeros(5)}, range(3),
                         progress=False)


def test_every_stage_may_lose_parties() -> None:
    keys = identities(10)
    session = Session(job().settle(keys), keys.values())
    stays = range(2, 10)
    for where in ("submitting", "signing", "revealing"):
        mean = session.round(lambda i: np.full(5, float(i)), **{where: stays})
        gone = where == "submitting"
        assert mean.parties == list(stays if gone else range(10))
        assert close_to(mean.model, np.mean(mean.parties))
    assert session.round(lambda i: np.zeros(5)).parties == list(range(10))


def test_too_few_lose_the_round_not_the_session() -> None:
    keys = identities(10)
    session = Session(job().settle(keys), keys.values())
    with pytest.raises(hushsum.TooFewError) as caught:
        session.round(lambda i: np.ones(5), submitting=range(7))
    assert caught.value.kind == "too-few" and set(caught.value.parties) == {7, 8, 9}
    assert "party7" in str(caught.value) and caught.value.advice
    assert len(session.round(lambda i: np.ones(5)).parties) == 10


def test_a_sum_of_all() -> None:
    """A job without recovery: who submits is in the sum, and all must."""
    keys = identities(3)
    session = Session(job(drop_out=0, recovery=False).settle(keys), keys.values())
    for missing in (0, 1):
        broadcast, messages = session.server.begin(None)
        session.carry(messages)
        for p in session.parties[missing:]:
            session.server.receive(p.index, p.submit(broadcast, np.ones(5)))
        if missing:
            with pytest.raises(hushsum.TooFewError) as caught:
                session.server.sum()
            assert caught.value.parties == (0,)
        else:
            assert close_to(session.server.sum().model, 1)


def test_weights() -> None:
    keys = identities(6)
    settled = job(clip=50.0, max_weight=100).settle(keys)
    session = Session(settled, keys.values())
    weights = [10, 20, 30, 40, 50, 1000]  # the last counts as 100
    mean = session.round(lambda i: np.full(5, float(i)), weight=lambda i: weights[i])
    counted = np.minimum(weights, 100)
    assert close_to(mean.model, np.average(range(6), weights=counted))
    assert mean.weight == counted.sum()
    equal = session.round(lambda i: np.full(5, np.float32(i)))  # which count as 1
    assert close_to(equal.model, 2.5) and equal.weight == 6
    long = session.round(lambda i: np.full(5, 100.0), weight=lambda i: 5)
    assert close_to(np.linalg.norm(long.model), 50)
    with pytest.raises(hushsum.ConfigError, match="weight"):
        session.round(lambda i: np.ones(5), weight=lambda i: 0)
    other = job(clip=50.0, max_weight=99).settle(keys)
    assert other.digest != settled.digest  # sides that weigh otherwise do not meet
    noisy = job(length=50, clip=1.0, noise="discrete-gaussian", epsilon=8.0, max_weight=4)
    mean = Session(noisy.settle(keys), keys.values()).round(
        lambda i: np.full(50, 0.1 * (i == 5)), weight=lambda i: 4 if i == 5 else 1)
    assert mean.weight is None and np.isfinite(mean.model).all()  # noise hides the sum of weights


def test_noise_and_epsilon() -> None:
    keys = identities(10)
    settled = job(noise="discrete-gaussian", epsilon=8.0, length=2000, clip=1.0).settle(keys)
    session = Session(settled, keys.values())
    mean = session.round(lambda i: np.zeros(2000))
    # 2,000 samples: the empirical deviation is within 10 % but for one in 10^9.
    assert np.std(mean.model) == pytest.approx(mean.std_dev, rel=0.1)
    spent = settled.spent()
    assert 7 < spent.epsilon <= 8 and spent.within(settled.budget) and spent.server == "curious"
    assert settled.spent(1).epsilon < spent.epsilon
    said = " ".join(settled.explain())
    assert "epsilon 8" in said and "Noise" in said


def test_save_and_load() -> None:
    keys = identities(5)
    settled = job(drop_out=0.2).settle(keys)
    session = Session(settled, keys.values())
    key = os.urandom(32)
    broadcast, messages = session.server.begin(None)
    session.carry(messages)
    first, identity = session.parties[0], list(keys.values())[0]
    message = first.submit(broadcast, np.ones(5))
    state = first.save(key)
    again = hushsum.Party.load(settled, identity, key, state)
    assert again.announce == message == again.output() and again.index == 0
    session.server.receive(0, again.announce)
    session.parties[0] = again
    for p in session.parties[1:]:
        session.server.receive(p.index, p.submit(broadcast, np.zeros(5)))
    session.server = hushsum.Server.load(settled, key, session.server.save(key))
    session.carry(session.server.survivors())
    session.carry(session.server.certificate())
    with pytest.raises(hushsum.StateError, match="broadcast"):
        session.server.sum()
    assert close_to(session.server.sum(broadcast).model, 0.2)
    for wrong in (state[:-1], state[:-1] + b"x", b""):
        with pytest.raises(hushsum.StateError):
            hushsum.Party.load(settled, identity, key, wrong)
    with pytest.raises(hushsum.StateError):
        hushsum.Party.load(settled, identity, os.urandom(32), state)
    with pytest.raises(hushsum.StateError):
        hushsum.Party.load(settled, identity, key, state, number=2)


def test_settled_jobs(tmp_path) -> None:
    keys = identities(3)
    settled = job(drop_out=0).settle(keys)
    copy = pickle.loads(pickle.dumps(settled))
    assert copy.digest == settled.digest and copy.roster == settled.roster
    assert job(drop_out=0, clip=2.0).settle(keys).digest != settled.digest
    # The roster that the file names is next to it.
    (tmp_path / "roster.txt").write_text("".join(f"{n} {k.public}\n" for n, k in keys.items()))
    (tmp_path / "job.toml").write_text(
        'name = "test"\nrounds = 4\nparties.roster = "roster.txt"\n[sum]\nrecovery = true\n'
        'adversary = "curious"\nrange = 128.0\n[privacy]\nclip = 100.0\n[model]\nlength = 5\n')
    read = hushsum.Job.load(tmp_path / "job.toml")
    assert read.digest() == job(drop_out=0).digest()
    assert read.settle().digest == settled.digest
    assert read.settle().explain()[1:] == read.explain()[1:]
    changed = dataclasses.replace(read, rounds=5)
    assert changed.settle().rounds == 5
    with pytest.raises(hushsum.ConfigError, match="roster"):
        hushsum.Job.parse((tmp_path / "job.toml").read_text()).settle()
    tensors = hushsum.Job(
        name="t", rounds=1, sum=hushsum.Job.Sum(recovery=True),
        parties=hushsum.Job.Parties(count=3),
        model=hushsum.Job.Model(tensor=[hushsum.Job.Model.Tensor(name="w", shape=[2, 2]),
                                        hushsum.Job.Model.Tensor(name="b", shape=[2])]))
    mean = Session(tensors.settle(keys), keys.values()).round(
        lambda i: {"b": np.ones(2), "w": np.full((2, 2), float(i))})
    assert close_to(mean.model["w"], 1) and close_to(mean.model["b"], 1)


def test_identities_are_kept(tmp_path) -> None:
    identity = hushsum.Identity.generate()
    identity.save(tmp_path / "key")
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0
    assert hushsum.Identity.load(tmp_path / "key").public == identity.public
    assert identity._seed.hex() not in repr(identity)
    with pytest.raises(FileExistsError):
        identity.save(tmp_path / "key")


def test_objects_are_closed() -> None:
    keys = identities(3)
    settled = job(drop_out=0).settle(keys)
    with hushsum.Party(settled, keys["party0"]) as p:
        pass
    with pytest.raises(hushsum.RequestError, match="closed"):
        p.receive(b"x")


def test_gather_and_exclude() -> None:
    keys = identities(10)
    session = Session(job().settle(keys), keys.values())
    session.carry(session.server.gather(range(8)))
    assert session.server.holders == list(range(8))
    assert session.round(lambda i: np.ones(5)).parties == list(range(8))
    session.server.exclude(3)
    assert session.server.excluded == [3]
    session.server.readmit(3)
    assert session.server.excluded == []


def ones(i: int) -> np.ndarray:
    return np.ones(5)


def test_no_round_is_answered_twice() -> None:
    """A server that forgets, and begins anew in another session, gets nothing; one that goes on
    gets what is left of the job."""
    keys = identities(3)
    settled = job(rounds=3, drop_out=0, noise="discrete-gaussian", epsilon=8.0).settle(keys)
    Session(settled, keys.values()).round(ones)  # whose parties are closed with it
    again = Session(settled, keys.values(), number=2)
    broadcast, messages = again.server.begin(None)
    again.carry(messages)
    before = again.parties[0].output()
    with pytest.raises(hushsum.MessageError) as caught:
        again.parties[0].submit(broadcast, np.ones(5))
    assert caught.value.kind == "repeated" and caught.value.advice
    assert again.parties[0].due == 1 and again.parties[0].output() == before
    third = Session(settled, keys.values(), number=3)
    for r in (2, 3):
        third.round(ones, round=r)
    with pytest.raises(hushsum.ConfigError, match="a job of 3"):
        third.server.begin(None)
    # A server of somebody else's makes one all the same.
    third.carry(third.server.invite())
    forged = (4).to_bytes(8, "big") + bytes(32)
    third.carry(third.server._messages("server.begin", broadcast=digest_of(forged)))
    with pytest.raises(hushsum.MessageError) as caught:
        third.parties[0].submit(forged, np.ones(5))
    assert caught.value.kind == "round"


def test_counts_are_saved(monkeypatch) -> None:
    keys = identities(3)
    identity, key = keys["party0"], os.urandom(32)
    made = job(drop_out=0)
    settled = made.settle(keys)
    session = Session(settled, keys.values())
    session.round(ones)
    state = session.parties[0].save(key)
    ours = _sidecar.current()
    fresh = _sidecar.Sidecar()  # as another process would have
    monkeypatch.setattr(_sidecar, "_current", fresh)
    try:
        settled = made.settle(keys)
        hushsum.Party.load(settled, identity, key, state)
        hushsum.Party(settled, keys["party1"], number=8, spent=2)
        session = Session(settled, keys.values(), number=2)
        broadcast, messages = session.server.begin(None)
        session.carry(messages)
        for i, refused in enumerate((True, True, False)):
            if not refused:
                session.parties[i].submit(broadcast, np.ones(5))
                continue
            with pytest.raises(hushsum.MessageError) as caught:
                session.parties[i].submit(broadcast, np.ones(5))
            assert caught.value.kind == "repeated"
    finally:
        monkeypatch.setattr(_sidecar, "_current", ours)
        fresh.end()


def test_a_loaded_server_goes_on_with_rounds() -> None:
    keys = identities(5)
    settled = job().settle(keys)
    session, key = Session(settled, keys.values()), os.urandom(32)
    session.round(ones)
    session.carry(session.server.gather(range(4)))  # which uses up a number of the session
    broadcast, messages = session.server.begin(None)
    session.carry(messages)
    assert session.server.round == 3 and broadcast[:8] == bytes(7) + b"\2"
    for p in session.parties[:4]:
        session.server.receive(p.index, p.submit(broadcast, np.ones(5)))
    session.carry(session.server.survivors())
    session.server = hushsum.Server.load(settled, key, session.server.save(key))
    session.carry(session.server.certificate())
    assert close_to(session.server.sum(broadcast).model, 1)
    assert session.server.begin(None)[0][:8] == bytes(7) + b"\3"


def test_no_update_with_noise() -> None:
    """A party that has no update submits zeros with noise, as long as any other message."""
    keys = identities(4)
    noisy = job(noise="discrete-gaussian", epsilon=8.0, clip=1.0, drop_out=0)
    session = Session(noisy.settle(keys), keys.values())
    for make in (lambda i: None, lambda i: np.full(5, np.nan), lambda i: np.full(5, -np.inf)):
        lengths = set()
        submit = session.parties[2].submit

        def noted(broadcast, update, weight, submit=submit, party=session.parties[2]):
            if update is None:
                message = submit(broadcast, update, weight)
            else:
                with pytest.warns(RuntimeWarning, match="NaN or infinity: zeros"):
                    message = submit(broadcast, update, weight)
            lengths.add(len(message))
            lengths.add(len(session.parties[1].output()))
            return message

        session.parties[2].submit = noted  # type: ignore[method-assign]
        mean = session.round(lambda i: make(i) if i == 2 else np.zeros(5))
        session.parties[2].submit = submit  # type: ignore[method-assign]
        assert mean.parties == [0, 1, 2, 3] and len(lengths) == 1
    clear = Session(job(drop_out=0).settle(keys), keys.values())
    broadcast, messages = clear.server.begin(None)
    clear.carry(messages)
    with pytest.raises(hushsum.ConfigError, match="would be seen"):
        clear.parties[0].submit(broadcast, None)
    assert clear.parties[0].due == 1
