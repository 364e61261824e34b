"""Federations of the service, joined with a training function."""

import contextlib
import signal
import subprocess
import threading

import numpy as np
import pytest

import hushsum
from hushsum import federation, tensors
from rounds import close_to, identities

try:
    PROGRAM = federation._program()
except hushsum.SidecarError as err:
    pytest.skip(str(err), allow_module_level=True)

TOML = """
name = "python"
rounds = 3
parties.roster = "roster.txt"
sum = { adversary = "curious", recovery = true }
privacy.clip = 10.0
time.step_time = "60s"

[[model.tensor]]
name = "b"
shape = [2]

[[model.tensor]]
name = "w"
shape = [2, 3]
"""


@pytest.fixture
def site(tmp_path):
    """A server with a federation of four parties."""
    with running(tmp_path, TOML) as made:
        yield made


@contextlib.contextmanager
def running(tmp_path, declared):
    keys = identities(4)
    (tmp_path / "roster.txt").write_text(
        "".join(f"{name} {k.public}\n" for name, k in keys.items()))
    (tmp_path / "federation.toml").write_text(declared)
    process = subprocess.Popen(
        [PROGRAM, "serve", "--folder", str(tmp_path / "node"), "--listen", "127.0.0.1:0",
         "--admin", "127.0.0.1:0", "--federation", str(tmp_path / "federation.toml"),
         "--log", "error"], stdout=subprocess.PIPE, text=True)
    said = {}
    assert process.stdout is not None
    for line in process.stdout:
        fields = line.split()
        said[fields[0]] = fields[1]
        if fields[0] == "federation":
            break
    yield tmp_path, keys, said
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    finally:
        process.kill()


def test_join(site) -> None:
    folder, keys, said = site
    out: dict[str, object] = {}
    seen: set[int] = set()

    def party(i: int, name: str, key: hushsum.Identity) -> None:
        def train(model, round):
            seen.add(round)
            assert model["w"].shape == (2, 3) and model["b"].dtype == np.float32
            return {"w": np.full((2, 3), float(i)), "b": np.ones(2)}, None, {"loss": 1.0}

        out[name] = hushsum.join(
            said["door"], identity=key, train=train, roster=folder / "roster.txt",
            fingerprint=said["fingerprint"], folder=folder / name, accept=True)

    threads = [threading.Thread(target=party, args=(i, n, k)) for i, (n, k) in
               enumerate(keys.items())]
    for t in threads:
        t.start()
    for t in threads:
        t.join(300)
    assert seen == {1, 2, 3} and len(out) == 4
    for model in out.values():
        assert close_to(model["w"], 4.5, 1e-3) and close_to(model["b"], 3, 1e-3)


def test_a_party_that_always_fails(tmp_path) -> None:
    """Its training is heard of, also with noise, where the federation goes on with zeros."""
    noisy = TOML.replace("privacy.clip = 10.0", """
privacy = { noise = "discrete-gaussian", epsilon = 80.0, clip = 10.0 }""").replace(
        "rounds = 3", "rounds = 2")
    with running(tmp_path, noisy) as (folder, keys, said):
        out: dict[str, object] = {}
        steps: list[tuple[str, str]] = []

        def party(name: str, key: hushsum.Identity) -> None:
            def train(model):
                if name == "party0":
                    raise ValueError("no such column")
                made = {name: np.ones(a.shape) for name, a in model.items()}
                return np.ones(8) if name == "party1" else made

            try:
                out[name] = hushsum.join(
                    said["door"], identity=key, train=train, roster=folder / "roster.txt",
                    fingerprint=said["fingerprint"], folder=folder / name, accept=True,
                    progress=lambda p: steps.append((name, p.text)))
            except hushsum.Error as e:
                out[name] = e

        threads = [threading.Thread(target=party, args=(n, k)) for n, k in keys.items()]
        with pytest.warns(RuntimeWarning, match="round 1.*no such column.*test_federation") as told:
            for t in threads:
                t.start()
            for t in threads:
                t.join(300)
    assert len(told) == 2
    failed = out.pop("party1")
    assert isinstance(failed, hushsum.Error) and "return {'b': " in str(failed.__cause__)
    failed = out.pop("party0")
    assert isinstance(failed, hushsum.Error) and failed.kind == "absent" and failed.advice
    assert "each of 2 calls" in str(failed) and isinstance(failed.__cause__, ValueError)
    assert all(set(m) == {"b", "w"} for m in out.values())
    assert ("party2", "round 2: trained") in steps
    assert any(name == "party0" and text.startswith(
        "round 2: absent: ValueError: no such column (test_federation.py:") for name, text in steps)


def test_what_is_refused(site) -> None:
    folder, keys, said = site
    more = dict(identity=keys["party0"], train=lambda m: m, folder=folder / "p", accept=True)
    with pytest.raises(hushsum.ConfigError, match="roster"):
        hushsum.join(said["door"], **more)
    with pytest.raises(hushsum.Error, match="certificate|fingerprint"):
        hushsum.join(said["door"], roster=folder / "roster.txt", fingerprint="00" * 32, **more)
    other = folder / "other.txt"
    other.write_text("".join(f"{n} {k.public}\n" for n, k in identities(4).items()))
    with pytest.raises(hushsum.Error, match="roster"):
        hushsum.join(said["door"], roster=other, fingerprint=said["fingerprint"], **more)


def test_identities_are_those_of_the_service(tmp_path) -> None:
    made = subprocess.run([PROGRAM, "identity", "new", str(tmp_path / "a")], check=True,
                          capture_output=True, text=True).stdout.strip()
    assert hushsum.Identity.load(tmp_path / "a").public == made
    ours = hushsum.Identity.generate()
    ours.save(tmp_path / "b")
    shown = subprocess.run([PROGRAM, "identity", "show", str(tmp_path / "b")], check=True,
                           capture_output=True, text=True).stdout.strip()
    assert shown == ours.public
    (tmp_path / "c").write_text("nonsense")
    with pytest.raises(hushsum.ConfigError, match="PKCS"):
        hushsum.Identity.load(tmp_path / "c")


def test_tensors() -> None:
    arrays = {"b": np.arange(3, dtype=np.float32), "a": np.ones((2, 2)), "n": np.array(5)}
    again = tensors.read(tensors.write(arrays))
    assert list(again) == ["a", "b", "n"]
    for name, a in arrays.items():
        assert np.array_equal(again[name], a) and again[name].dtype == a.dtype
    data = tensors.write(arrays)
    for bad in (b"", data[:7], data[:40], b"\xff" * 8 + data[8:], data.replace(b"F32", b"F99"),
                data.replace(b"[0,32]", b"[0,99999]")):
        with pytest.raises(hushsum.ConfigError, match="safetensors"):
            tensors.read(bad)
