"""Jobs over the network, and simulations."""

import threading

import numpy as np
import pytest

import hushsum
from rounds import close_to, identities, plan


def run_job(settled, keys, coordinator, trains, step_time=60.0, **more):
    """Run a coordinator and parties; return the last model and what parties returned."""
    job = hushsum.Coordinator(settled, identity=coordinator, step_time=step_time)
    out: dict[str, object] = {}

    def party(name: str, key: hushsum.Identity, train) -> None:
        try:
            out[name] = hushsum.join(job.url, settled=settled, identity=key,
                                     coordinator=coordinator.public, train=train)
        except hushsum.Error as e:
            out[name] = e

    threads = [threading.Thread(target=party, args=(n, k, t))
               for (n, k), t in zip(keys.items(), trains)]
    for t in threads:
        t.start()
    model = job.run(**more)
    for t in threads:
        t.join(120)
    return model, out


def test_join() -> None:
    keys = identities(3)
    settled = plan(rounds=3, length=6, drop_out=0).settle(
        keys, like={"w": np.zeros((2, 2)), "b": np.zeros(2)})
    seen = []

    def train(model, round):
        seen.append(round)
        return {"w": np.ones((2, 2)), "b": model["b"] * 0 + round}

    steps = []
    model, out = run_job(settled, keys, hushsum.Identity.generate(), [train] * 3,
                         progress=steps.append)
    assert close_to(model["w"], 3) and close_to(model["b"], 6)
    for m in out.values():
        assert close_to(m["w"], model["w"])
    assert set(seen) == {1, 2, 3}
    assert any("summed" in s.text for s in steps)


def test_weights_and_a_rule_of_ones_own() -> None:
    keys = identities(4)
    settled = plan(rounds=2, length=3, drop_out=0).settle(
        keys, weighting=hushsum.Weighting(max_weight=30))
    trains = [lambda m, i=i: (np.full(2, float(i)), 10 * i, {"loss": 1.0}) for i in range(4)]
    model, _ = run_job(settled, keys, hushsum.Identity.generate(), trains,
                       apply=lambda model, mean: mean)
    assert close_to(model, np.average([0, 1, 2, 3], weights=[0, 10, 20, 30]), 1e-2)


def test_a_party_that_fails_is_absent() -> None:
    keys = identities(5)
    settled = plan(rounds=2, length=1, drop_out=0.4).settle(keys)

    def broken(model):
        raise RuntimeError("no data today")

    steps: list[hushsum.Progress] = []
    model, out = run_job(settled, keys, hushsum.Identity.generate(),
                         [broken] + [lambda m: np.ones(1)] * 4, step_time=5.0,
                         progress=steps.append)
    assert close_to(model, 2)
    told = [s for s in steps if "absent" in s.text]
    assert {s.party for s in told} == {0} and {s.round for s in told} == {1, 2}
    assert all(s.party is None for s in steps if "summed" in s.text)
    absent = out.pop("party0")
    assert isinstance(absent, hushsum.Error) and absent.kind == "absent" and absent.advice
    assert all(close_to(m, 2) for m in out.values())


def test_a_job_without_a_sum_fails() -> None:
    keys = identities(3)
    settled = plan(rounds=1, length=1, drop_out=0).settle(keys)

    def broken(model):
        raise RuntimeError("no data today")

    with pytest.raises(hushsum.Error) as caught:
        run_job(settled, keys, hushsum.Identity.generate(), [broken] * 3, step_time=1.0)
    assert caught.value.kind == "stalled" and caught.value.advice


def test_another_plan_is_told() -> None:
    keys = identities(3)
    coordinator = hushsum.Identity.generate()
    ours, theirs = plan(drop_out=0).settle(keys), plan(drop_out=0, clip=3.0).settle(keys)
    job = hushsum.Coordinator(ours, identity=coordinator)
    with pytest.raises(hushsum.PlanError) as caught:
        hushsum.join(job.url, settled=theirs, identity=keys["party0"],
                     coordinator=coordinator.public, train=lambda m: m)
    assert caught.value.field == "clip"
    job.close()
    with pytest.raises(hushsum.Error):
        job.run()


def test_states_outlive_processes(tmp_path) -> None:
    keys = identities(3)
    coordinator = hushsum.Identity.generate()
    settled = plan(rounds=2, length=1, drop_out=0).settle(keys)
    job = hushsum.Coordinator(settled, identity=coordinator, state=tmp_path / "c", key=b"k" * 32)
    threads = [
        threading.Thread(target=hushsum.join, args=(job.url,), kwargs=dict(
            settled=settled, identity=k, coordinator=coordinator.public,
            train=lambda m: np.ones(1), state=tmp_path / n, key=b"p" * 32))
        for n, k in keys.items()
    ]
    for t in threads:
        t.start()
    assert close_to(job.run(), 2)
    for t in threads:
        t.join(120)
    assert (tmp_path / "party0").stat().st_mode & 0o077 == 0
    for name, key in keys.items():
        assert key._seed not in (tmp_path / name).read_bytes()


def test_simulate() -> None:
    r = np.random.default_rng(0)
    truth = r.normal(size=8)
    parties = []
    for _ in range(20):
        x = r.normal(size=(50, 8))
        parties.append((x, x @ truth))

    def train(model, data):
        x, y = data
        return {"w": 0.3 * x.T @ (y - x @ model["w"]) / len(y)}

    def evaluate(model):
        return -float(np.sum((model["w"] - truth) ** 2))

    runs = [
        hushsum.simulate(train, parties, {"w": np.zeros(8)}, rounds=15, clip=1.0, noise=noise,
                         epsilon=4.0, evaluate=evaluate, progress=False)
        for noise in (None, "discrete-gaussian")
    ]
    quiet, noisy = runs
    assert len(quiet.scores) == len(quiet.clear_scores) == 15
    assert quiet.epsilon is None and noisy.epsilon is not None and noisy.epsilon.upper <= 4
    assert noisy.cost > quiet.cost > -1e-3
    assert quiet.std_dev == 0 < noisy.std_dev
    assert "<svg" in noisy._repr_html_() and "privacy costs" in str(noisy)
