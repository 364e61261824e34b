"""Epsilon, calibration, ledgers, noise and audits."""

import json
import math
import os
import pickle
from fractions import Fraction

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
        for bound, text in ((got.epsilon, case["upper"]), (got.at_least, case["lower"])):
            want = math.inf if text == "+Inf" else float.fromhex(text)
            assert bound == want, case


def test_names_of_other_libraries() -> None:
    ours = hushsum.epsilon("gaussian", noise_multiplier=1.1, rate=0.01, rounds=100, delta=1e-6)
    opacus = hushsum.epsilon("gaussian", noise_multiplier=1.1, sample_rate=0.01, steps=100,
                             target_delta=1e-6)
    dp = hushsum.epsilon("gaussian", noise_multiplier=1.1, sampling_probability=0.01,
                         num_steps=100, delta=1e-6)
    assert ours == opacus == dp
    assert ours.epsilon >= ours.at_least > 0
    with pytest.raises(hushsum.ConfigError, match="twice"):
        hushsum.epsilon("gaussian", noise_multiplier=1, rate=1, sample_rate=1)


def test_laplace_has_a_scale_alone() -> None:
    """The standard deviation of Laplace noise is √2 times its scale, and stands for no other."""
    assert hushsum.epsilon("laplace", scale=1, sensitivity=1, delta=0).epsilon == pytest.approx(1)
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


def test_a_claim_is_said_whole() -> None:
    exact = hushsum.epsilon("gaussian", noise_multiplier=1, adversary="server")
    assert str(exact) == ("epsilon 4.3772 (at least 4.3771) at delta 1e-05 for each party, against a "
                          "server that is curious; assumes sums")
    assert exact.server == "curious" and exact.colluders == 0 and exact.committees == []
    assert exact.assumes == ("sums",) and exact.adjacency == "zero-out"
    for again in (hushsum.Claim(exact.form), hushsum.Claim(json.dumps(exact.form)),
                  pickle.loads(pickle.dumps(exact))):
        assert again == exact and str(again) == str(exact) and hash(again) == hash(exact)
    form = {**exact.form, "epsilon": 8.0, "at_least": 0.0, "server": "cheating", "colluders": "any",
            "committees": [{"list": "3f" * 32, "members": 13, "in_league": 3}], "assumes": []}
    other = hushsum.Claim(form)
    assert other != exact and other.colluders == math.inf
    assert str(other) == ("epsilon 8.0000 at delta 1e-05 for each party, against a server that cheats "
                          "with any number of parties and up to 3 of the 13 members of committee 3f3f…")
    with pytest.raises(hushsum.ConfigError, match="claim"):
        hushsum.Claim({**form, "server": "evil"})


def test_bounds_are_rounded_to_their_own_side() -> None:
    form = hushsum.epsilon("gaussian", noise_multiplier=1).form
    values = [k * 10.0**e / 7 for k in (1, 2, 3, 5, 6) for e in range(-7, 13, 2)]
    for x in values + [1.0, 2.5, 0.1, 123456.5, 999999.5]:
        words = str(hushsum.Claim({**form, "epsilon": x * 1.000001, "at_least": x})).split()
        upper, lower = Fraction(words[1]), Fraction(words[4].rstrip(")"))
        assert lower <= Fraction(repr(x)) <= upper
        assert float(upper - lower) <= max(2.1e-3 * x, 1.1e-4)
    infinite = hushsum.epsilon("gaussian", noise_multiplier=1, delta=0)
    assert infinite.epsilon == math.inf and infinite.reason
    assert str(infinite).startswith("epsilon infinite at delta 0 for each party")


def test_a_claim_is_no_number() -> None:
    """It compares with a budget that it is about, and with nothing else."""
    spent = hushsum.epsilon("gaussian", noise_multiplier=10, adversary="server")
    for wrong in (lambda: spent < 1, lambda: spent >= spent, lambda: spent + spent,
                  lambda: sum([spent]), lambda: max(spent, spent), lambda: 2 * spent):
        with pytest.raises(hushsum.StatementError) as caught:
            wrong()  # type: ignore[operator]
        assert caught.value.kind == "statement" and "within" in caught.value.advice
    with pytest.raises(TypeError):
        float(spent)  # type: ignore[arg-type]
    server = hushsum.Ledger(epsilon=1, adversary="server")
    assert spent.within(server.budget("a"))
    server.set_budget("a", epsilon=0.1)
    assert not spent.within(server.budget("a")) and server.budget("a").epsilon == 0.1
    assert str(server.budget("b")) == ("epsilon 1 at delta 1e-05 for each party, against a server "
                                       "that is curious; assumes sums")
    public = hushsum.epsilon("gaussian", noise_multiplier=10, rate=0.5)
    records = hushsum.epsilon("gaussian", noise_multiplier=10, unit="record")
    for other in (public, records):
        with pytest.raises(hushsum.StatementError, match="says nothing about"):
            other.within(server.budget("b"))
    with pytest.raises(hushsum.ConfigError, match="no Budget"):
        spent.within(1.0)  # type: ignore[arg-type]


def test_adversaries_and_mechanisms() -> None:
    public = hushsum.epsilon("gaussian", noise_multiplier=1, rate=0.1, rounds=10)
    server = hushsum.epsilon("gaussian", noise_multiplier=1, rate=0.1, rounds=10,
                             adversary="server")
    assert server.epsilon > public.epsilon
    assert hushsum.epsilon("discrete_laplace", scale=4, delta=0).epsilon == pytest.approx(0.25)
    vector = hushsum.epsilon("discrete-gaussian", noise_multiplier=1, sensitivity=50,
                             dimension=1000)
    assert vector.accountant == "PLD" and vector.neighbour == "1 coordinate by 50"
    assert hushsum.epsilon("gaussian", noise_multiplier=1, delta=0).epsilon == math.inf
    d = hushsum.delta("gaussian", noise_multiplier=1, epsilon=2.0)
    assert d.epsilon == 2 and 0 < d.delta < 0.1


def test_calibrate() -> None:
    found = hushsum.calibrate("gaussian", epsilon=1, rate=0.01, rounds=1000)
    assert found.spent.epsilon <= 1 and found.spent.at_least > 0.99
    assert hushsum.epsilon("gaussian", noise_multiplier=found.noise_multiplier, rate=0.01,
                           rounds=1000) == found.spent
    most = hushsum.calibrate("gaussian", target_epsilon=1, target_delta=1e-5, find="rounds",
                             noise_multiplier=20)
    assert most.rounds > 10 and most.spent.epsilon <= 1
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
                               rounds=k) == found.spent
    turns = hushsum.calibrate("gaussian", epsilon=1, rounds=100, factorise=20, adversary="server")
    assert turns.noise_multiplier == pytest.approx(8.34, rel=1e-3) and turns.rounds == 100
    # dp_accounting 0.6.0 has 1.3878 for the Poisson-sampled Gaussian.
    record = hushsum.epsilon("discrete-gaussian", noise_multiplier=3, sensitivity=20_000,
                             dimension=105, rate=0.1, rounds=100, adversary="server",
                             unit="record")
    assert record.epsilon == pytest.approx(1.387843, rel=0.01)
    assert record.unit == "record" and str(record).endswith(
        "for each record of a party, against a server that is curious; assumes coins, sums")
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
    ledger = hushsum.Ledger(epsilon=2.0, adversary="server", unit="record")
    ledger.spend("discrete-gaussian", ["a"], rounds=100, **parameters)
    assert ledger.spent("a") == hushsum.epsilon("discrete-gaussian", rounds=100,
                                                adversary="server", **parameters)
    assert ledger.spent("a").unit == "record"
    turns = hushsum.Ledger(epsilon=1.0, adversary="server")
    turns.spend("gaussian", ["a"], noise_multiplier=8.342, rounds=100, factorise=20)
    assert 0.999 < turns.spent("a").epsilon <= 1.0
    with pytest.raises(hushsum.ConfigError) as caught:
        turns.spend("gaussian", ["a"], noise_multiplier=8.342, unit="record")
    assert str(caught.value).startswith("unit: ")


def test_ledger() -> None:
    ledger = hushsum.Ledger(epsilon=1.0, delta=1e-5)
    ledger.spend("gaussian", ["a", "b"], noise_multiplier=10, rounds=4)
    assert ledger.clients == ["a", "b"]
    assert ledger.spent("a") == ledger.spent("b") and 0 < ledger.spent("a").epsilon < 1
    ledger.set_budget("b", epsilon=3.0)
    with pytest.raises(hushsum.BudgetError) as caught:
        ledger.spend("gaussian", ["a", "b"], noise_multiplier=1)
    assert caught.value.name == "a"
    before = ledger.save()
    assert hushsum.Ledger.load(before).save() == before
    ledger.spend("gaussian", ["b"], noise_multiplier=2)
    assert ledger.spent("b").epsilon > ledger.spent("a").epsilon
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
    assert 2 < lower < hushsum.epsilon("gaussian", noise_multiplier=0.25).epsilon
    assert hushsum.audit_one_run(1000, 200, 200, delta=1e-5) > 1
    assert hushsum.audit_one_run(1000, 200, 100, delta=1e-5) == 0
