"""Epsilon, calibration, ledgers, noise and audits."""

import json
import math
import os

import numpy as np
import pytest

import hushsum


def test_the_same_values_as_go() -> None:
    path = os.environ.get("HUSHSUM_GOLDEN_VALUES")
    if not path:
        pytest.skip("HUSHSUM_GOLDEN_VALUES names no file of values: see python/check")
    with open(path) as f:
        cases = json.load(f)
    assert len(cases) >= 90
    for case in cases:
        if case["upper"] == "error":
            with pytest.raises(hushsum.Error) as caught:
                hushsum.epsilon(**case["with"])
            assert caught.value.kind == case["lower"]
            continue
        got = hushsum.epsilon(**case["with"])
        for bound, text in ((got.upper, case["upper"]), (got.lower, case["lower"])):
            want = math.inf if text == "+Inf" else float.fromhex(text)
            assert bound == want, case


def test_names_of_other_libraries() -> None:
    ours = hushsum.epsilon("gaussian", noise_multiplier=1.1, rate=0.01, rounds=100, delta=1e-6)
    opacus = hushsum.epsilon("gaussian", noise_multiplier=1.1, sample_rate=0.01, steps=100,
                             target_delta=1e-6)
    dp = hushsum.epsilon("gaussian", noise_multiplier=1.1, sampling_probability=0.01,
                         num_steps=100, delta=1e-6)
    assert ours == opacus == dp
    assert float(ours) == ours.upper >= ours.lower > 0
    with pytest.raises(hushsum.ConfigError, match="twice"):
        hushsum.epsilon("gaussian", noise_multiplier=1, rate=1, sample_rate=1)


def test_laplace_has_a_scale_alone() -> None:
    """The standard deviation of Laplace noise is √2 times its scale, and stands for no other."""
    assert hushsum.epsilon("laplace", scale=1, sensitivity=1, delta=0).upper == pytest.approx(1)
    for mechanism in ("laplace", "discrete-laplace"):
        for name in ("standard_deviation", "variance"):
            with pytest.raises(hushsum.ConfigError, match="not the scale") as caught:
                hushsum.epsilon(mechanism, delta=0, sensitivity=1, **{name: 2.0})
            assert caught.value.field == name


def test_errors_name_the_parameter() -> None:
    for field, given in (("noise_multiplier", {"noise_multiplier": -1}), ("mechanism", {}),
                         ("rate", {"noise_multiplier": 1, "rate": 2}),
                         ("unit", {"noise_multiplier": 1, "unit": "row"})):
        with pytest.raises(hushsum.RequestError, match=f"^{field}: ") as caught:
            hushsum.epsilon("none" if field == "mechanism" else "gaussian", **given)
        assert caught.value.field == field


def test_a_lower_bound_is_said_if_there_is_one() -> None:
    exact = hushsum.epsilon("gaussian", noise_multiplier=1)
    assert exact.lower > 0 and " (at least " in str(exact)
    assert "at least" not in str(hushsum.Interval(8.0, 0.0, 1e-5))


def test_adversaries_and_mechanisms() -> None:
    public = hushsum.epsilon("gaussian", noise_multiplier=1, rate=0.1, rounds=10)
    server = hushsum.epsilon("gaussian", noise_multiplier=1, rate=0.1, rounds=10,
                             adversary="server")
    assert server.upper > public.upper
    assert hushsum.epsilon("discrete_laplace", scale=4, delta=0).upper == pytest.approx(0.25)
    vector = hushsum.epsilon("discrete-gaussian", noise_multiplier=1, sensitivity=50,
                             dimension=1000)
    assert vector.accountant == "PLD" and vector.neighbour == "1 coordinate by 50"
    assert hushsum.epsilon("gaussian", noise_multiplier=1, delta=0).upper == math.inf
    d = hushsum.delta("gaussian", noise_multiplier=1, epsilon=2.0)
    assert 0 < d.lower <= d.upper < 0.1


def test_calibrate() -> None:
    found = hushsum.calibrate("gaussian", epsilon=1, rate=0.01, rounds=1000)
    assert found.epsilon.upper <= 1 and found.epsilon.lower > 0.99
    assert hushsum.epsilon("gaussian", noise_multiplier=found.noise_multiplier, rate=0.01,
                           rounds=1000) == found.epsilon
    most = hushsum.calibrate("gaussian", target_epsilon=1, target_delta=1e-5, find="rounds",
                             noise_multiplier=20)
    assert most.rounds > 10 and most.epsilon.upper <= 1
    assert hushsum.calibrate("gaussian", epsilon=1, rounds=100, noise_multiplier=1,
                             find="rate").rate < 0.1
    with pytest.raises(hushsum.ConfigError) as caught:
        hushsum.calibrate("gaussian", epsilon=1e-9, noise_multiplier=0.1, find="rounds")
    assert caught.value.kind == "unreachable" and caught.value.advice


def test_participations_bands_and_records() -> None:
    for k, z in ((20, 2.684), (10, 1.898), (2, 0.8488)):
        found = hushsum.calibrate("gaussian", epsilon=8, participations=k, of=200)
        assert found.noise_multiplier == pytest.approx(z, rel=1e-3) and found.rounds == k
        assert hushsum.epsilon("gaussian", noise_multiplier=found.noise_multiplier,
                               rounds=k) == found.epsilon
    turns = hushsum.calibrate("gaussian", epsilon=1, rounds=100, factorise=20, adversary="server")
    assert turns.noise_multiplier == pytest.approx(8.34, rel=1e-3) and turns.rounds == 100
    # dp_accounting 0.6.0 has 1.3878 for the Poisson-sampled Gaussian.
    record = hushsum.epsilon("discrete-gaussian", noise_multiplier=3, sensitivity=20_000,
                             dimension=105, rate=0.1, rounds=100, adversary="server",
                             unit="record")
    assert record.upper == pytest.approx(1.387843, rel=0.01)
    assert record.unit == "record" and "for each record, against the server" in str(record)
    rate = hushsum.calibrate("gaussian", epsilon=1, rounds=200, noise_multiplier=16, find="rate",
                             adversary="server", unit="record")
    assert 0.29 < rate.rate < 0.31
    with pytest.raises(hushsum.ConfigError, match="does not count"):
        hushsum.calibrate("gaussian", epsilon=1, noise_multiplier=16, find="rate",
                          adversary="server")
    for field, parameters in {
        "participations": {"participations": 3, "of": 2},
        "rounds": {"participations": 3, "of": 4, "rounds": 3},
        "rate": {"participations": 3, "of": 4, "rate": 0.5},
        "factorise": {"participations": 3, "of": 9, "factorise": 3},
        "unit": {"unit": "patient"},
    }.items():
        with pytest.raises(hushsum.ConfigError) as caught:
            hushsum.epsilon("gaussian", noise_multiplier=1, **parameters)
        assert str(caught.value).startswith(field + ": ") and caught.value.advice


def test_ledger_of_records_and_turns() -> None:
    parameters = dict(noise_multiplier=3, sensitivity=20_000, dimension=105, rate=0.1,
                      unit="record")
    ledger = hushsum.Ledger(epsilon=2.0, adversary="server")
    ledger.spend("discrete-gaussian", ["a"], rounds=100, **parameters)
    assert ledger.spent("a") == hushsum.epsilon("discrete-gaussian", rounds=100,
                                                adversary="server", **parameters)
    assert ledger.spent("a").unit == "record"
    turns = hushsum.Ledger(epsilon=1.0, adversary="server")
    turns.spend("gaussian", ["a"], noise_multiplier=8.342, rounds=100, factorise=20)
    assert 0.999 < turns.spent("a").upper <= 1.0
    with pytest.raises(hushsum.ConfigError) as caught:
        turns.spend("gaussian", ["a"], noise_multiplier=8.342, unit="record")
    assert str(caught.value).startswith("unit: ")


def test_ledger() -> None:
    ledger = hushsum.Ledger(epsilon=1.0, delta=1e-5)
    ledger.spend("gaussian", ["a", "b"], noise_multiplier=10, rounds=4)
    assert ledger.clients == ["a", "b"]
    assert ledger.spent("a") == ledger.spent("b") and 0 < ledger.spent("a").upper < 1
    ledger.set_budget("b", epsilon=3.0)
    with pytest.raises(hushsum.BudgetError) as caught:
        ledger.spend("gaussian", ["a", "b"], noise_multiplier=1)
    assert caught.value.name == "a"
    before = ledger.save()
    assert hushsum.Ledger.load(before).save() == before
    ledger.spend("gaussian", ["b"], noise_multiplier=2)
    assert ledger.spent("b").upper > ledger.spent("a").upper
    with pytest.raises(hushsum.StateError):
        hushsum.Ledger.load(before[:-2])


def test_noise() -> None:
    n = 200_000  # deviations are within 1 % but for one in 10^9
    for family, scale, variance in (("discrete-gaussian", 100.0, 100.0), ("skellam", 50.0, 50.0)):
        x = hushsum.sample_noise(family, scale, n)
        assert x.dtype == np.int64 and x.shape == (n,)
        assert np.var(x) == pytest.approx(variance, rel=0.02)
    share = hushsum.sample_noise("skellam", 100.0, n, parties=10)
    assert np.var(share) == pytest.approx(10, rel=0.03)
    assert len(hushsum.sample_noise("discrete-laplace", 2.0, 7, exact=True)) == 7


def test_audits() -> None:
    r = np.random.default_rng(1)
    lower = hushsum.audit_scores(r.normal(size=4000), r.normal(size=4000) + 4, delta=1e-5)
    assert 2 < lower < hushsum.epsilon("gaussian", noise_multiplier=0.25).upper
    assert hushsum.audit_one_run(1000, 200, 200, delta=1e-5) > 1
    assert hushsum.audit_one_run(1000, 200, 100, delta=1e-5) == 0
