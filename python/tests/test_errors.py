"""Mistakes of all kinds: each is told in words that say what to do."""

import os
import subprocess
import sys

import numpy as np
import pytest

import hushsum
from hushsum import _sidecar
from rounds import Session, identities, job


class Workshop:
    """What mistakes are made with."""

    def __init__(self) -> None:
        self.keys = identities(4)
        self.settled = job(drop_out=0.25).settle(self.keys)
        self.session = Session(self.settled, self.keys.values())
        self.server, self.party = self.session.server, self.session.parties[0]
        self.broadcast, messages = self.server.begin(None)
        self.session.carry(messages)
        self.stranger = hushsum.Identity.generate()
        self.other = Session(self.settled, self.keys.values(), number=2)
        self.key = os.urandom(32)

    def call(self, name, parameters=None, blobs=()):
        return _sidecar.current().call(name, parameters, blobs)


@pytest.fixture(scope="module")
def w() -> Workshop:
    return Workshop()


def shared_key(w: Workshop) -> object:
    blob = _sidecar.Blob(1 << 16, lambda into: None)
    return w.call("identity", {}, [blob])


TRAINED = hushsum.Job.parse("""name = "trained"
rounds = 2
parties = { count = 2, drop_out = 0.1 }
model = { name = "logistic", features = 3, classes = 2 }
""")

EPSILON = {"mechanism": "gaussian", "noise_multiplier": 1.0}

MISTAKES = [
    # what, class, kind, what the words have in them
    (lambda w: job(clip=-1).digest(), hushsum.ConfigError, "config", "privacy.clip"),
    (lambda w: job(name="").digest(), hushsum.ConfigError, "config", "name"),
    (lambda w: job(length=2**40).digest(), hushsum.ConfigError, "config", "model.length"),
    (lambda w: job(noise="gaussian", epsilon=1).digest(), hushsum.ConfigError, "config",
     "gaussian"),
    (lambda w: job(epsilon=1).digest(), hushsum.ConfigError, "config", "no noise"),
    (lambda w: job(adversary="evil").digest(), hushsum.ConfigError, "config", "curious"),
    (lambda w: job(clip=float("nan")).digest(), hushsum.ConfigError, "request", "finite"),
    (lambda w: job(rounds="three").digest(), hushsum.ConfigError, "config", "rounds"),
    (lambda w: hushsum.Job.parse("{"), hushsum.ConfigError, "config", ""),
    (lambda w: job(drop_out=0.9, adversary="cheating").settle(w.keys), hushsum.ConfigError,
     "config", "less than 0.5"),
    (lambda w: job(noise="skellam", epsilon=0.01, bits=8, length=1000).settle(w.keys),
     hushsum.ConfigError, "bits", "use more bits"),
    (lambda w: job().settle({"a": "zz"}), hushsum.RequestError, "request", "hexadecimal"),
    (lambda w: job().settle({"a": w.stranger}), hushsum.ConfigError, "config", "between 2"),
    (lambda w: job().settle({"a": w.stranger, "b": w.stranger}), hushsum.ConfigError, "config",
     "its own identity"),
    (lambda w: job().settle(w.keys, like=np.zeros(6)), hushsum.ConfigError, "length", "length=6"),
    (lambda w: hushsum.Party(w.settled, w.stranger), hushsum.ConfigError, "identity", "roster"),
    (lambda w: hushsum.Identity(b"short"), hushsum.RequestError, "request", "32"),
    (shared_key, hushsum.RequestError, "request", "shared memory"),
    (lambda w: w.party.receive(b""), hushsum.MessageError, "truncated", "whole"),
    (lambda w: w.party.receive(b"hello" * 30), hushsum.MessageError, "version", "one version"),
    (lambda w: w.server.receive(0, w.party.announce[:-1]), hushsum.MessageError, None, ""),
    (lambda w: w.server.receive(0, w.other.parties[0].announce), hushsum.MessageError, "session",
     "compare job, roster"),
    (lambda w: w.server.receive(9, b""), hushsum.RequestError, "request", "0 to 3"),
    (lambda w: w.server.certificate(), hushsum.Error, "phase", "order"),
    (lambda w: w.other.parties[0].submit(b"", np.ones(5)), hushsum.Error, "phase", "order"),
    (lambda w: w.other.server.begin(np.ones(5), round=5), hushsum.ConfigError, "round",
     "a job of 4"),
    (lambda w: w.other.server.begin(np.ones(5), round=0), hushsum.ConfigError, "round",
     "a job of 4"),
    (lambda w: w.other.server.begin(b"hello, parties"), hushsum.ConfigError, "round", "8 bytes"),
    (lambda w: w.other.server.begin(b"short"), hushsum.ConfigError, "round", "8 bytes"),
    (lambda w: w.other.server.begin(bytes(7) + b"\1model", round=2), hushsum.ConfigError, "round",
     "begins with round 1"),
    (lambda w: hushsum.Party(w.settled, w.keys["party0"], number=3, spent=5),
     hushsum.RequestError, "request", "0 to the job's 4"),
    (lambda w: hushsum.Party(w.settled, w.keys["party0"], number=3, spent=-1),
     hushsum.RequestError, "request", "0 or more"),
    (lambda w: w.party.submit(b"another", np.ones(5)), hushsum.MessageError, "broadcast",
     "began with"),
    (lambda w: w.party.submit(w.broadcast, np.ones(4)), hushsum.ConfigError, "length", "shape"),
    (lambda w: w.party.submit(w.broadcast, np.full(5, np.nan)), hushsum.ConfigError, "not-finite",
     "NaN"),
    (lambda w: w.party.submit(w.broadcast, np.ones(5), 3.0), hushsum.ConfigError, "config",
     "max_weight"),
    (lambda w: hushsum.Party.load(w.settled, w.keys["party0"], w.key, b"junk"),
     hushsum.StateError, "state", "save"),
    (lambda w: hushsum.simulate(TRAINED, None, [(np.ones((2, 3)), [0, 1])] * 2, np.ones(3)),
     hushsum.ConfigError, "config", "makes its models itself"),
    (lambda w: hushsum.simulate(TRAINED, None, [(np.ones((2, 3)), [0])] * 2),
     hushsum.ConfigError, "config", "labels"),
    (lambda w: hushsum.simulate(TRAINED, None, [(np.ones((2, 3)), [0, 0.5])] * 2),
     hushsum.ConfigError, "request", "number the classes"),
    (lambda w: hushsum.simulate(TRAINED, len, [1, 2]), hushsum.ConfigError, "config", ""),
    (lambda w: hushsum.Server(TRAINED.settle(list(w.keys.items())[:2])), hushsum.ConfigError,
     "config", "trains its model itself"),
    (lambda w: hushsum.Job.parse('name = "a"\nrounds = 1\nparties.count = 4\nmodel.file = "x"')
     .settle(w.keys), hushsum.ConfigError, "config", "model.length"),
    (lambda w: hushsum.epsilon("gauss", noise_multiplier=1), hushsum.ConfigError, "request",
     "gaussian"),
    (lambda w: hushsum.epsilon("gaussian"), hushsum.ConfigError, "request",
     "not a noise multiplier"),
    (lambda w: hushsum.epsilon("gaussian", noise=1), hushsum.ConfigError, "config",
     "noise_multiplier"),
    (lambda w: hushsum.epsilon("gaussian", noise_multiplier="loud"), hushsum.ConfigError, "config",
     "not a number"),
    (lambda w: hushsum.epsilon("gaussian", noise_multiplier=1, rounds=1.5), hushsum.ConfigError,
     "config", "whole"),
    (lambda w: hushsum.epsilon("gaussian", noise_multiplier=1, rate=2), hushsum.ConfigError,
     "request", "at most 1"),
    (lambda w: hushsum.epsilon("laplace", noise_multiplier=1, rate=0.5, replace_one=True),
     hushsum.ConfigError, "request", "gaussian or discrete-laplace"),
    (lambda w: hushsum.calibrate("gaussian", epsilon=-1), hushsum.ConfigError, "request", "budget"),
    (lambda w: hushsum.calibrate("gaussian"), hushsum.ConfigError, "config", "budget"),
    (lambda w: hushsum.Ledger(epsilon=0), hushsum.ConfigError, "config", ""),
    (lambda w: hushsum.Ledger.load(b"[]"), hushsum.StateError, "ledger", "Ledger.save"),
    (lambda w: hushsum.sample_noise("gaussian", 1, 1), hushsum.ConfigError, None, "gaussian"),
    (lambda w: hushsum.audit_one_run(1, 2, 3, delta=0), hushsum.ConfigError, "counts", ""),
    (lambda w: hushsum.join(w.settled, url="http://x", identity=w.stranger, coordinator="",
                            train=lambda m: m), hushsum.ConfigError, "config", "tcp://"),
    (lambda w: hushsum.join(w.settled, url="tcp://127.0.0.1:1", identity=w.stranger,
                            coordinator=w.stranger.public, train=lambda m: m), hushsum.Error,
     "peer", "roster"),
    (lambda w: hushsum.join(w.settled, url="tcp://127.0.0.1:1", identity=w.keys["party0"],
                            coordinator="zz", train=lambda m: m), hushsum.RequestError, "request",
     "coordinator"),
    (lambda w: w.call("job.settled"), hushsum.RequestError, "request", "job.settle"),
    (lambda w: w.call("account.epsilon", {**EPSILON, "noise": 1}), hushsum.RequestError,
     "request", "no field"),
    (lambda w: w.call("account.epsilon", {**EPSILON, "rounds": "x"}), hushsum.RequestError,
     "request", "whole number"),
    (lambda w: w.call("party.output", {"party": 10**9}), hushsum.RequestError, "object", "load"),
    (lambda w: w.call("account.epsilon", {**EPSILON, "mechanism": 5}), hushsum.RequestError,
     "request", 'the field "mechanism" cannot'),
    (lambda w: w.party.submit(w.broadcast, np.ma.masked_less(np.arange(5.0), 2)),
     hushsum.ConfigError, "config", "filled"),
    (lambda w: w.party.submit(w.broadcast, np.full(5, 10, object)), hushsum.ConfigError, "config",
     "not of numbers"),
    (lambda w: w.party.submit(w.broadcast, np.full(5, 1j)), hushsum.ConfigError, "config",
     "not of numbers"),
    (lambda w: w.party.submit(w.broadcast, [[1, 2], [3]]), hushsum.ConfigError, "config",
     "equal lengths"),
    (lambda w: w.party.submit(w.broadcast, np.full(5, np.longdouble("1e4000"))),
     hushsum.ConfigError, "not-finite", "NaN or infinity"),
    (lambda w: w.settled.job.settle(["a", "b"]), hushsum.ConfigError, "config", "roster"),
    (lambda w: hushsum.Party(w.settled, "party0"), hushsum.ConfigError, "identity", "Identity"),
    (lambda w: hushsum.Server("job"), hushsum.ConfigError, "config", "settle"),
    (lambda w: hushsum.Ledger(epsilon=1).spend("gaussian", "ab", noise_multiplier=1),
     hushsum.ConfigError, "config", "['ab']"),
    (lambda w: hushsum.epsilon("gaussian", noise_multiplier=1, rounds=1e300), hushsum.ConfigError,
     "config", "too many"),
    (lambda w: hushsum.join("https://h:1", identity=w.stranger, train=None), hushsum.ConfigError,
     "config", "function"),
    (lambda w: hushsum.join("tcp://h:1", identity=w.stranger, train=len), hushsum.ConfigError,
     "config", "https://"),
    (lambda w: hushsum.join(w.settled, url="tcp://h:1", coordinator="", identity=w.stranger,
                            rows=1), hushsum.ConfigError, "config", "no rows"),
    (lambda w: hushsum.join(w.settled, url="tcp://h:99999", coordinator="", identity=w.stranger,
                            train=len), hushsum.ConfigError, "config", "tcp://host:port"),
    (lambda w: hushsum.simulate("study.toml", len, [1, 2]), hushsum.ConfigError, "config",
     "Job.load"),
    (lambda w: hushsum.simulate(w.settled, len, [1, 2]), hushsum.ConfigError, "config",
     "attribute job"),
    (lambda w: w.party.save(b"key"), hushsum.RequestError, "request", "32 random bytes"),
    (lambda w: hushsum.epsilon("gausian", noise_multiplier=1), hushsum.RequestError, "request",
     "use one of gaussian, laplace, discrete-gaussian,"),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(w: Workshop, number: int) -> None:
    make, of, kind, says = MISTAKES[number]
    with pytest.raises(hushsum.Error) as caught:
        make(w)
    e = caught.value
    print(repr(e), "|", e)
    assert isinstance(e, of)
    assert kind is None or e.kind == kind
    assert says in str(e) + e.advice
    assert e.advice or e.reason
    assert e.field is None or not isinstance(e, hushsum.RequestError) or e.field in str(e)
    for word in ("json:", "Go ", "struct", "nil", "panic", "strconv", "errors."):
        assert word not in str(e)


def test_the_party_at_fault_is_named(w: Workshop) -> None:
    with pytest.raises(hushsum.MessageError) as caught:
        w.server.receive(2, b"\2" * 200)
    assert caught.value.party == 2 and caught.value.name == "party2"
    again = __import__("pickle").loads(__import__("pickle").dumps(caught.value))
    assert again.party == 2 and str(again) == str(caught.value)


def test_the_array_at_fault_is_named() -> None:
    keys = identities(3)
    settled = job(length=3, drop_out=0).settle(keys, like={"a": np.ones(2), "b": [1.0]})
    session = Session(settled, keys.values())
    broadcast, messages = session.server.begin(None)
    session.carry(messages)
    with pytest.raises(hushsum.ConfigError, match=r"\['b'\]\[0\] has NaN") as caught:
        session.parties[0].submit(broadcast, {"a": np.ones(2), "b": [np.nan]})
    assert caught.value.kind == "not-finite" and caught.value.field == "['b'][0]"
    assert session.parties[0].due == 1


@pytest.mark.parametrize("program", ["/", "/etc/passwd", "/bin/true", "/bin/cat"])
def test_a_program_that_is_another(monkeypatch, program) -> None:
    monkeypatch.setenv("HUSHSUM_BINARY", program)
    with pytest.raises(hushsum.SidecarError, match="HUSHSUM_BINARY"):
        _sidecar.Sidecar()


def test_a_program_of_another_version(monkeypatch) -> None:
    monkeypatch.setattr(_sidecar, "VERSION", 1)
    with pytest.raises(hushsum.SidecarError, match="has version .* one version of both"):
        _sidecar.Sidecar()


def no_memory(*a: object) -> None:
    raise OSError("no room")


@pytest.mark.parametrize("where, name", [(os, "memfd_create"), (_sidecar._Memory, "take")])
def test_without_shared_memory(monkeypatch, where, name) -> None:
    """Arrays go through the frames then."""
    monkeypatch.setattr(where, name, no_memory)
    s = _sidecar.Sidecar()
    monkeypatch.setattr(_sidecar, "_current", s)
    keys = identities(3)
    session = Session(job(length=20000, drop_out=0).settle(keys), keys.values())
    assert np.allclose(session.round(lambda i: np.full(20000, i / 100)).model, 0.01, atol=1e-4)
    s.end()


def test_accounting_without_numpy() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\nimport hushsum\n"
        "assert hushsum.epsilon('gaussian', noise_multiplier=1).epsilon > 0\n"
        "assert hushsum.calibrate('gaussian', epsilon=1).noise_multiplier > 0\n"
        "hushsum.Ledger(epsilon=9).spend('gaussian', ['a'], noise_multiplier=9)\n"
        "try:\n    hushsum.Party\nexcept ImportError as err:\n    print(err)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "needs numpy" in said.stdout


def test_a_program_that_is_not_there(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HUSHSUM_BINARY", str(tmp_path / "none"))
    with pytest.raises(hushsum.SidecarError, match="HUSHSUM_BINARY"):
        _sidecar.Sidecar()
