"""Jobs over the network, and simulations."""

import dataclasses
import json
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import hushsum
from rounds import close_to, identities, job


def run_job(settled, keys, coordinator, trains, progress=None, rows=False, joined=None, **more):
    """Run a coordinator and parties; return the last model and what parties returned."""
    running = hushsum.Coordinator(settled, identity=coordinator, **{"step_time": 60.0, **more})
    out: dict[str, object] = {}

    def party(name: str, key: hushsum.Identity, train) -> None:
        try:
            out[name] = hushsum.join(settled, url=running.url, identity=key,
                                     coordinator=coordinator.public,
                                     **{"rows" if rows else "train": train}, **(joined or {}))
        except hushsum.Error as e:
            out[name] = e

    threads = [threading.Thread(target=party, args=(n, k, t))
               for (n, k), t in zip(keys.items(), trains)]
    for t in threads:
        t.start()
    model = running.run(progress=progress)
    for t in threads:
        t.join(120)
    return model, out


def test_join() -> None:
    keys = identities(3)
    settled = job(rounds=3, length=6, drop_out=0).settle(
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


def test_who_is_not_here_is_said() -> None:
    """A coordinator names the parties that the first round waits for; a party speaks of itself."""
    keys = identities(3)
    settled = job(rounds=1, length=1, drop_out=0).settle(keys)
    key, steps, own = hushsum.Identity.generate(), [], []
    running = hushsum.Coordinator(settled, identity=key, step_time=60.0)
    first = threading.Event()

    def tell(step: hushsum.Progress) -> None:
        steps.append(step.text)
        first.set()

    def party(name: str) -> None:
        hushsum.join(settled, url=running.url, identity=keys[name], coordinator=key.public,
                     train=lambda m: m + 1, progress=own.append)

    threads = [threading.Thread(target=party, args=(name,))
               for name in ("party1", "party0", "party2")]
    held = threading.Thread(target=lambda: running.run(progress=tell))
    held.start()
    threads[0].start()
    assert first.wait(60)
    for t in threads[1:]:
        t.start()
    for t in (*threads, held):
        t.join(120)
    assert steps[0] == ("party 1 connected; 1 of 3 are here, a round takes 3: not here party0, "
                        "party2")
    said = {p.text for p in own}
    assert "connected" in said and not any(text.startswith("party") for text in said)


def test_an_interrupt_is_said_in_a_line(tmp_path) -> None:
    """Ctrl-C at a coordinator that waits ends with a line that says where its state is."""
    code = ("import hushsum, signal\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "i = [hushsum.Identity.generate() for _ in range(4)]\n"
            "j = hushsum.Job(name='a', rounds=1, model=hushsum.Job.Model(length=1),"
            " parties=hushsum.Job.Parties(count=3)).settle({str(n): k for n, k in enumerate(i[1:])})\n"
            f"c = hushsum.Coordinator(j, identity=i[0], state={str(tmp_path / 's')!r}, key=bytes(32))\n"
            "print('here', flush=True)\n"
            "c.run()\n")
    p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    assert p.stdout is not None and p.stdout.readline() == "here\n"
    time.sleep(0.5)  # in the midst of waiting
    p.send_signal(signal.SIGINT)
    _, said = p.communicate(timeout=60)
    assert said.splitlines()[-1] == ("KeyboardInterrupt: Coordinator.run was interrupted; the state "
                                     f"is saved in {tmp_path / 's'}: the same call goes on")
    assert "threading.py" not in said


def test_weights_and_a_rule_of_ones_own() -> None:
    keys = identities(4)
    settled = job(rounds=2, length=2, drop_out=0, max_weight=30).settle(keys)
    trains = [lambda m, i=i: (np.full(2, float(i)), 10 * i + 1, {"loss": 1.0}) for i in range(4)]
    model, _ = run_job(settled, keys, hushsum.Identity.generate(), trains,
                       apply=lambda model, mean: mean)
    assert close_to(model, np.average([0, 1, 2, 3], weights=[1, 11, 21, 30]))


def test_the_rule_of_the_job() -> None:
    """What the server does is declared, and vectors are the program's."""
    keys = identities(3)
    served = hushsum.Job.Server(rule="fedavgm", rate=0.5, beta1=0.5)
    declared = dataclasses.replace(job(rounds=3, length=2, drop_out=0), server=served)
    model, out = run_job(declared.settle(keys), keys, hushsum.Identity.generate(),
                         [lambda m: np.array([1.0, -2.0])] * 3)
    want = 0.5 * (1 + 1.5 + 1.75)
    assert close_to(model, [want, -2 * want]) and all(close_to(m, model) for m in out.values())
    tried = hushsum.simulate(dataclasses.replace(declared, parties=hushsum.Job.Parties(count=3)),
                             lambda m, data: data, [np.array([1.0, -2.0])] * 3, progress=False)
    assert close_to(tried.model, model) and close_to(tried.clear_model, model)
    with pytest.raises(hushsum.ConfigError, match="state"):
        hushsum.Coordinator(declared.settle(keys), identity=hushsum.Identity.generate(),
                            state="x", key=bytes(32))


def rows(party: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(party)
    x = r.normal(size=(40, 6))
    return x, (x[:, 0] + x[:, 1] > 0).astype(int)


@pytest.mark.parametrize("more", [
    'rule = "fedprox"\nmask = "soft"\n[server]\nrule = "fedadam"\nbeta1 = 0.9',
    'rule = "scaffold"\n[sum]\nmax_weight = 30',
    'rule = "fedga"',
    'rate = 0.5\n[privacy]\nnoise = "discrete-gaussian"\nmultiplier = 0.02\nclip = 1.0',
])
def test_a_job_that_trains(more: str, tmp_path) -> None:
    """Rows are Python's, and the sidecar trains: over the network as when it is tried out, to the
    last bit without noise."""
    text = f"""name = "trains"
rounds = 3
seed = 7
parties = {{ count = 4, roster = "roster.txt", drop_out = 0.3 }}
model = {{ name = "softmax", features = 6, classes = 2 }}
[training]
steps = 4
{more}
"""
    declared = hushsum.Job.parse(text)
    keys = identities(4)
    data = [rows(i) for i in range(4)]
    events: list[hushsum.Progress] = []
    model, out = run_job(declared.settle(keys), keys, hushsum.Identity.generate(), data, rows=True,
                         progress=events.append)
    tried = hushsum.simulate(declared, None, data, progress=False,
                             evaluate=lambda m: float(np.abs(m).max()))
    assert model.shape == (14,) and np.abs(model).max() > 0.01
    assert all(np.array_equal(m, model) for m in out.values())
    everybody = all(len(e.parties) == 4 for e in events if "summed" in e.text)
    if "noise" in more:
        assert tried.spent is not None and not np.array_equal(model, tried.model)
        assert close_to(tried.clear_model, model, 0.5)
    else:
        assert tried.spent is None and (np.array_equal(model, tried.model) or not everybody)
        assert close_to(tried.model, tried.clear_model, 1e-3)


def test_a_party_without_a_state_is_warned(tmp_path) -> None:
    """It hears what it would lose, and one with a state nothing."""
    keys = identities(2)
    settled = job(rounds=1, length=1, drop_out=0).settle(keys)
    stranger = hushsum.Identity.generate()

    def joining(of, **more):
        with warnings.catch_warnings(record=True) as said, pytest.raises(hushsum.Error):
            warnings.simplefilter("always")
            hushsum.join(of, identity=stranger, url="tcp://127.0.0.1:1",
                         coordinator=stranger.public, **more)
        return [str(w.message) for w in said if w.category is UserWarning]

    (said,) = joining(settled, train=len)
    assert "loses its place" in said and "state" in said and "key" in said
    assert joining(settled, train=len, state=tmp_path / "s", key=bytes(32)) == []
    one = hushsum.Job.parse("""name = "one"
rounds = 1
parties = { count = 3, roster = "roster.txt" }
model.length = 1
sum = { protocol = "oneshot", committee = "committee.txt", members = 4 }
""").settle(identities(3), committee=identities(4))
    (said,) = joining(one, train=len)
    assert "has submitted in" in said and "place" not in said
    (said,) = joining(one)
    assert "this member" in said


def broken(model):
    raise RuntimeError("no data today")


@pytest.mark.parametrize("protocol", ["pairwise", "oneshot"])
@pytest.mark.parametrize("noise", [{}, {"noise": "discrete-gaussian", "epsilon": 80.0}])
def test_a_party_that_always_fails(noise, protocol) -> None:
    """It hears of the first failure at once, and of all of them at the end, from the first."""
    keys = identities(5)
    declared = job(rounds=2, length=1, drop_out=0.4, clip=1.0, **noise)
    steps: list[hushsum.Progress] = []
    trains = [broken] + [lambda m: np.ones(1)] * 4
    with pytest.warns(RuntimeWarning, match="failed in round 1.*no data today.*test_jobs") as said:
        if protocol == "oneshot":
            declared = dataclasses.replace(declared, sum=hushsum.Job.Sum(
                protocol="oneshot", committee="committee.txt", members=4))
            members = {f"member-{k}": hushsum.Identity.generate() for k in range(4)}
            model, out = run_oneshot(declared, keys, members, trains, step_time=5.0)
        else:
            model, out = run_job(declared.settle(keys), keys, hushsum.Identity.generate(), trains,
                                 step_time=5.0, progress=steps.append)
    (first,) = [w for w in said if "no data today" in str(w.message)]
    assert isinstance(first.message.__cause__, RuntimeError)
    assert np.isfinite(model).all() if noise else close_to(model, 2)
    told = [s for s in steps if "absent" in s.text]
    if not noise and protocol == "pairwise":
        assert {s.party for s in told} == {0} and {s.round for s in told} == {1, 2}
    assert all(s.party is None for s in steps if "summed" in s.text)
    absent = out.pop("party0")
    assert isinstance(absent, hushsum.Error) and absent.kind == "absent" and absent.advice
    assert "each of 2 calls" in str(absent) and "no data today" in str(absent)
    assert isinstance(absent.__cause__, RuntimeError) and absent.__cause__.__traceback__
    assert all(close_to(out[n], model) for n in list(keys)[1:])


def test_a_party_that_fails_once() -> None:
    """It is warned, and has its model."""
    keys = identities(5)
    settled = job(rounds=2, length=1, drop_out=0.4).settle(keys)

    def once(model, round):
        return np.full(1, np.nan) if round == 1 else np.ones(1)

    with pytest.warns(RuntimeWarning, match="round 1.*NaN or infinity"):
        model, out = run_job(settled, keys, hushsum.Identity.generate(),
                             [once] + [lambda m: np.ones(1)] * 4, step_time=5.0)
    assert close_to(model, 2) and all(close_to(m, 2) for m in out.values())


def test_a_simulation_ends_with_what_training_raises() -> None:
    with pytest.raises(RuntimeError, match="no data today"):
        hushsum.simulate(job(count=5, roster=""), lambda model, data: broken(model), range(5),
                         progress=False)
    with pytest.raises(hushsum.Error, match="NaN"):
        hushsum.simulate(job(count=5, roster=""), lambda model, data: np.full(5, np.nan), range(5),
                         progress=False)


def test_a_job_without_a_sum_fails() -> None:
    keys = identities(3)
    settled = job(rounds=1, length=1, drop_out=0).settle(keys)
    with pytest.warns(RuntimeWarning), pytest.raises(hushsum.Error) as caught:
        run_job(settled, keys, hushsum.Identity.generate(), [broken] * 3, step_time=1.0)
    assert caught.value.kind == "stalled" and caught.value.advice


def run_oneshot(declared, keys, members, trains, states=None, **more):
    """Run a coordinator, parties and a committee; return the last model, and what joining gave."""
    settled = declared.settle(keys, committee=members)
    coordinator = hushsum.Identity.generate()
    running = hushsum.Coordinator(settled, identity=coordinator, **{"step_time": 60.0, **more})
    assert running.committee_url and running.committee_url != running.url
    out: dict[str, object] = {}

    def run(name: str, key: hushsum.Identity, url: str, train) -> None:
        where = {} if states is None else {"state": states / name, "key": bytes(32)}
        try:
            out[name] = hushsum.join(settled, url=url, identity=key, train=train,
                                     coordinator=coordinator.public, **where)
        except hushsum.Error as e:
            out[name] = e

    threads = [threading.Thread(target=run, args=(n, k, running.url, t))
               for (n, k), t in zip(keys.items(), trains)]
    threads += [threading.Thread(target=run, args=(n, k, running.committee_url, None))
                for n, k in members.items()]
    for t in threads:
        t.start()
    model = running.run()
    for t in threads:
        t.join(120)
    return model, out


def test_one_message_sums(tmp_path) -> None:
    """Each party sends one message a round, and a committee helps: without noise to the bit what
    the job comes to when it is tried out."""
    declared = hushsum.Job.parse("""name = "one"
rounds = 2
parties = { count = 5, roster = "roster.txt", drop_out = 0.2 }
model.length = 3
[sum]
protocol = "oneshot"
committee = "committee.txt"
members = 4
range = 16.0
""")
    keys = identities(5)
    members = {f"member-{k}": hushsum.Identity.generate() for k in range(4)}
    trains = [lambda m, i=i: m + np.array([i, -i, 0.25]) for i in range(5)]
    model, out = run_oneshot(declared, keys, members, trains, states=tmp_path)
    assert np.array_equal(model, [6, -6, 0.75]), model
    assert all(np.array_equal(out[n], model) for n in keys)
    assert all(out[n] is None for n in members)
    assert all((tmp_path / f"{n}.1").exists() for n in [*keys, *members])


def test_rounds_that_stay_open() -> None:
    """Rounds take the first three submissions of six parties, the slowest of which takes many rounds
    for one: all get to the end, with the same model, and slow updates count for less."""
    declared = hushsum.Job.parse("""name = "open"
rounds = 12
parties = { count = 6, roster = "roster.txt", drop_out = 0.5 }
model.length = 2
sum = { protocol = "oneshot", committee = "committee.txt", members = 4, buffer = 3, stale = 5 }
""")
    keys = identities(6)
    members = {f"member-{k}": hushsum.Identity.generate() for k in range(4)}
    made = [0] * 6

    def training(i):
        def train(model):
            time.sleep(0.01 if i < 4 else 0.2)
            made[i] += 1
            return np.ones(2)

        return train

    model, out = run_oneshot(declared, keys, members, [training(i) for i in range(6)])
    assert all(np.array_equal(out[n], model) for n in keys), out
    assert all(out[n] is None for n in members), out
    assert model[0] == model[1] and 0 < model[0] <= 12
    assert sum(made) >= 12 * 3 and min(made) >= 1, made


def test_one_message_mistakes() -> None:
    keys = identities(3)
    members = {f"m{k}": hushsum.Identity.generate() for k in range(4)}
    declared = hushsum.Job.parse("""name = "one"
rounds = 1
parties = { count = 3, roster = "roster.txt" }
model.length = 1
sum = { protocol = "oneshot", committee = "committee.txt", members = 4 }
""")
    settled = declared.settle(keys, committee=members)
    stranger = hushsum.Identity.generate()
    where = {"url": "tcp://127.0.0.1:1", "coordinator": stranger.public}
    with pytest.raises(hushsum.Error, match="committee"):
        hushsum.join(settled, identity=stranger, **where)
    with pytest.raises(hushsum.Error, match="roster"):
        hushsum.join(settled, identity=stranger, train=lambda m: m, **where)
    with pytest.raises(hushsum.ConfigError, match="function"):
        hushsum.join(job(rounds=1, length=1).settle(keys), identity=stranger, **where)


def test_another_job_is_told() -> None:
    keys = identities(3)
    coordinator = hushsum.Identity.generate()
    ours, theirs = job(drop_out=0).settle(keys), job(drop_out=0, clip=3.0).settle(keys)
    running = hushsum.Coordinator(ours, identity=coordinator)
    with pytest.raises(hushsum.JobError) as caught:
        hushsum.join(theirs, url=running.url, identity=keys["party0"],
                     coordinator=coordinator.public, train=lambda m: m)
    assert caught.value.field == "privacy.clip"
    running.close()
    with pytest.raises(hushsum.Error):
        running.run()


def test_states_outlive_processes(tmp_path) -> None:
    keys = identities(3)
    coordinator = hushsum.Identity.generate()
    settled = job(rounds=2, length=1, drop_out=0).settle(keys)
    running = hushsum.Coordinator(settled, identity=coordinator, state=tmp_path / "c",
                                  key=b"k" * 32)
    threads = [
        threading.Thread(target=hushsum.join, args=(settled,), kwargs=dict(
            url=running.url, identity=k, coordinator=coordinator.public,
            train=lambda m: np.ones(1), state=tmp_path / n, key=b"p" * 32))
        for n, k in keys.items()
    ]
    for t in threads:
        t.start()
    assert close_to(running.run(), 2)
    for t in threads:
        t.join(120)
    assert (tmp_path / "party0.1").stat().st_mode & 0o077 == 0
    for name, key in keys.items():
        assert key._seed not in (tmp_path / f"{name}.1").read_bytes()
    other = job(rounds=3, length=1, drop_out=0).settle(keys)
    with pytest.raises(hushsum.StateError, match="another job needs its own state"):
        hushsum.join(other, url=running.url, identity=keys["party0"], train=lambda m: np.ones(1),
                     coordinator=coordinator.public, state=tmp_path / "party0", key=b"p" * 32)


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
        hushsum.simulate(job(rounds=15, length=8, clip=1.0, count=20, drop_out=0, **noise), train,
                         parties, {"w": np.zeros(8)}, evaluate=evaluate, progress=False)
        for noise in ({}, {"noise": "discrete-gaussian", "epsilon": 4.0})
    ]
    quiet, noisy = runs
    assert len(quiet.scores) == len(quiet.clear_scores) == 15
    assert quiet.spent is None and noisy.spent is not None and noisy.spent.epsilon <= 4
    assert noisy.cost > quiet.cost > -1e-3
    assert quiet.std_dev == 0 < noisy.std_dev
    assert "<svg" in noisy._repr_html_() and "privacy costs" in str(noisy)
    assert f"\nspent {noisy.spent}\n" in str(noisy) and "\nspent " not in str(quiet)


def test_a_simulation_says_what_training_returned() -> None:
    weighted = job(rounds=2, length=2, count=2, drop_out=0, max_weight=200)
    with pytest.warns(RuntimeWarning) as warned:
        hushsum.simulate(weighted, lambda m, d: np.ones(2), [0, 1], progress=False)
    assert [str(w.message) for w in warned] == [
        "the job has weights up to 200, and train returned none: 1 is taken"]
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hushsum.simulate(weighted, lambda m, d: (np.ones(2), 3, {}), [0, 1], progress=False)

    plain = job(rounds=1, length=3, clip=0.0, count=2, drop_out=0)
    model = {"a": np.zeros(2), "b": np.zeros(1)}

    def bad(update, evaluate=None):
        good = {"a": np.ones(2), "b": np.ones(1)}
        with pytest.raises(hushsum.ConfigError) as caught:
            hushsum.simulate(plain, lambda m, d: update if d else good, [0, 1], model,
                             evaluate=evaluate, progress=False)
        return caught.value

    e = bad(({"a": np.ones(2), "b": np.ones(1)}, -3, {"a": 1}))
    assert "the job has no weights" in str(e) and e.field == "weight"
    e = bad({"a": np.ones(2), "b": np.array([np.nan])})
    assert str(e).startswith("parties[1]: the update['b'] has NaN or infinity")
    assert e.kind == "not-finite" and e.party == 1 and e.field == "['b']"
    e = bad({"a": np.full(2, 1e9), "b": np.ones(1)})
    assert str(e).startswith("parties[1]: a value is out of range: coordinate 0 is outside ±")
    assert "raise sum.range" in str(e) and e.kind == "range" and e.field == "sum.range"
    e = bad({"a": np.ones(2), "b": np.ones(1)}, evaluate=lambda m: "good")
    assert "evaluate returned 'good'" in str(e) and e.field == "evaluate"


def test_a_simulation_of_other_parties_than_the_job_says() -> None:
    """What the error says to write can be parsed, and runs."""
    with pytest.raises(hushsum.ConfigError, match="it says 5, and there are 3; write 3"):
        hushsum.simulate(job(count=5, roster=""), lambda model, data: np.ones(5), range(3),
                         progress=False)
    hushsum.simulate(hushsum.Job.parse(json.dumps(job(count=3, roster="", drop_out=0).to_dict())),
                     lambda model, data: np.ones(5), range(3), progress=False)


def test_models_that_are_not_the_jobs() -> None:
    tensors = hushsum.Job.parse("""
name = "tensors"
rounds = 1
parties.count = 2
model.tensor = [{ name = "w", shape = [3, 4] }, { name = "b", shape = [4] }]
""")
    for model, advice in (
        ({"w": np.zeros((2, 4)), "b": np.zeros(4)},
         r"tensor w has the shape \(3, 4\), and the model has \(2, 4\)"),
        ({"w": np.zeros((3, 4))}, "tensor b has .* does not have it"),
        ({"w": np.zeros((3, 4)), "b": np.zeros(4), "c": np.zeros(1)}, "and of no others"),
    ):
        with pytest.raises(hushsum.ConfigError, match=advice):
            hushsum.simulate(tensors, lambda m, d: m, [0, 1], model, progress=False)


def test_a_policy_and_a_book_over_tcp(tmp_path) -> None:
    """What an identity spends in its jobs adds up in a book next to their states, and its policy
    refuses the job that would be too much."""
    keys, coordinator = identities(3), hushsum.Identity.generate()
    policy = tmp_path / "policy.toml"
    policy.write_text("max_epsilon_year = 1.2\n")

    def declared(name: str) -> hushsum.Settled:
        return job(name=name, rounds=1, length=2, drop_out=0, noise="discrete-gaussian",
                   epsilon=1.0).settle(keys)

    def careful(settled: hushsum.Settled, url: str, state: str | None) -> object:
        where = {} if state is None else {"state": tmp_path / state, "key": bytes(32)}
        return hushsum.join(settled, url=url, identity=keys["party0"], policy=policy,
                            coordinator=coordinator.public, train=lambda m: m, **where)

    settled = declared("first")
    running = hushsum.Coordinator(settled, identity=coordinator, step_time=60.0)
    threads = [threading.Thread(target=careful, args=(settled, running.url, "first"))]
    for name in ("party1", "party2"):
        threads.append(threading.Thread(target=hushsum.join, args=(settled,), kwargs={
            "url": running.url, "identity": keys[name], "coordinator": coordinator.public,
            "train": lambda m: m}))
    for t in threads:
        t.start()
    running.run()
    for t in threads:
        t.join(120)
    assert (tmp_path / f"book-{keys['party0'].public[:16]}").exists()
    with pytest.raises(hushsum.Error, match="it this party may spend in a year epsilon 1.4") as e:
        careful(declared("second"), "tcp://127.0.0.1:1", "second")
    assert e.value.kind == "policy"
    with pytest.raises(hushsum.ConfigError, match="give the party a book") as e, \
            pytest.warns(UserWarning):
        careful(declared("second"), "tcp://127.0.0.1:1", None)
    assert e.value.field == "book"
    policy.write_text("max_epsilon_yeer = 1.2\n")
    with pytest.raises(hushsum.Error, match="did you mean max_epsilon_year") as e:
        careful(declared("second"), "tcp://127.0.0.1:1", "second")
    assert e.value.kind == "policy"
    policy.write_text("max_epsilon_year = 1.2\n")
    (tmp_path / f"book-{keys['party0'].public[:16]}").unlink()
    with pytest.raises(hushsum.StateError, match="restore the newest") as e:
        careful(declared("second"), "tcp://127.0.0.1:1", "second")
    assert e.value.kind == "book"


def test_rounds_are_seen_and_stop_the_job() -> None:
    """on_round sees each round's model and mean, and what it returns ends the job."""
    keys = identities(3)
    settled = job(rounds=5, length=2, drop_out=0).settle(keys)
    seen: list[hushsum.Done] = []

    def on_round(done: hushsum.Done) -> bool:
        seen.append(done)
        return done.round == 2

    model, out = run_job(settled, keys, hushsum.Identity.generate(), [lambda m: m * 0 + 1] * 3,
                         on_round=on_round)
    assert [d.round for d in seen] == [1, 2] and seen[0].parties == [0, 1, 2]
    assert close_to(seen[0].mean, 1) and close_to(seen[1].model, 2) and close_to(model, 2)
    assert seen[1].lost == 0 and seen[1].spent is None and seen[1].loss is None
    assert all(close_to(m, 2) for m in out.values())


def test_on_round_may_raise() -> None:
    """An exception of on_round comes out of run."""
    keys = identities(3)
    settled = job(rounds=2, length=2, drop_out=0).settle(keys)

    def on_round(done: hushsum.Done) -> None:
        raise OSError("the disk is full")

    own = hushsum.Identity.generate()
    running = hushsum.Coordinator(settled, identity=own, step_time=60.0, on_round=on_round)
    threads = [threading.Thread(target=joins, daemon=True, args=(settled, running, own, key))
               for key in keys.values()]
    for t in threads:
        t.start()
    with pytest.raises(OSError, match="the disk is full"):
        running.run()
    with pytest.raises(hushsum.Error):  # its job has ended
        running.run()


def joins(settled, running, own, key) -> None:
    """Take part for as long as the test lasts."""
    try:
        hushsum.join(settled, url=running.url, identity=key, coordinator=own.public,
                     train=lambda m: m + 1)
    except hushsum.Error:
        pass


def measured(rounds: int) -> hushsum.Job:
    """Return a job of four numbers that sums metrics."""
    return dataclasses.replace(job(rounds=rounds, length=4, drop_out=0, clip=1.0),
                               metrics=hushsum.Job.Metrics(share=0.5))


@pytest.mark.parametrize("by_evaluate", [True, False])
def test_metrics_are_summed(by_evaluate: bool) -> None:
    """Loss and accuracy are summed, from evaluate or behind the update."""
    keys = identities(3)
    settled = measured(2).settle(keys)
    assert settled.measures and settled.length == 4
    seen: list[hushsum.Done] = []

    def train(model):
        update = np.full(4, 0.1)
        return update if by_evaluate else (update, None, {"loss": 2.0, "accuracy": 0.25})

    more = {"evaluate": lambda model: (2.0, 0.25)} if by_evaluate else {}
    run_job(settled, keys, hushsum.Identity.generate(), [train] * 3, joined=more,
            on_round=lambda d: seen.append(d))
    assert len(seen) == 2
    for done in seen:
        assert done.loss == pytest.approx(2, abs=1e-3)
        assert done.accuracy == pytest.approx(0.25, abs=1e-3)
        assert done.loss_dev == 0


def test_a_job_that_measures_wants_metrics() -> None:
    keys = identities(3)
    settled = measured(1).settle(keys)
    with pytest.warns(RuntimeWarning, match="nobody measured"):
        with pytest.raises(hushsum.Error):
            run_job(settled, keys, hushsum.Identity.generate(), [lambda m: m + 0.1] * 3)


def test_a_float32_model_stays_one() -> None:
    """Models of float32 are exchanged as such, by parties and by the coordinator."""
    keys = identities(3)
    settled = job(rounds=2, length=6, drop_out=0).settle(
        keys, like={"w": np.zeros((2, 2), np.float32), "b": np.zeros(2, np.float32)})
    kinds = set()

    def train(model):
        kinds.update(a.dtype for a in model.values())
        return {k: np.ones_like(a) for k, a in model.items()}

    model, out = run_job(settled, keys, hushsum.Identity.generate(), [train] * 3)
    assert kinds == {np.dtype(np.float32)} and model["w"].dtype == np.float32
    assert close_to(model["w"], 2)
    for m in out.values():
        assert np.array_equal(m["b"], model["b"])
