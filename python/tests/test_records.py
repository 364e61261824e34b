"""Jobs whose unit is a record, with gradients of functions in Python."""

import dataclasses
import math
import subprocess
import threading
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import hushsum
from hushsum import federation, records
from hushsum.arrays import Structure
from rounds import identities

COINS = {"count": 1000, "rate": 1.0, "most": 1000, "clip": 1.0}


def census(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of 8 features, the last of them 1, and labels that a line tells apart but for
    one in ten."""
    r = np.random.default_rng(seed)
    x = np.hstack([r.normal(size=(n, 7)) / 2, np.ones((n, 1))])
    y = (x @ np.array([3, -2, 1, 0, 0, 1, -1, 0.5]) > 0) ^ (r.random(n) < 0.1)
    return x, y.astype(int)


def logistic(model, rows):
    """Return the gradient of the logistic loss at each row."""
    x, y = rows
    return (1 / (1 + np.exp(-x @ model)) - y)[:, None] * x


def accuracy(model) -> float:
    x, y = census(4000, 99)
    return float(np.mean((x @ np.asarray(model) > 0) == y))


def text(model: str, more: str = "", rounds: int = 30, records: int = 2000, epsilon: float = 2,
         parties: str = "count = 10", after: str = "5s") -> str:
    return f"""name = "by-records"
rounds = {rounds}
parties = {{ {parties} }}
model = {{ {model} }}
training.batch = {records // 5}
server = {{ rule = "fedadam", rate = 0.3, beta1 = 0.9 }}
[privacy]
unit = "record"
records = {records}
noise = "discrete-gaussian"
epsilon = {epsilon}
clip = 1.0
submit_after = "{after}"
{more}"""


def test_the_sum_of_clipped_gradients() -> None:
    """Each adds its gradient clipped by itself; one that is not finite adds nothing."""
    x = np.random.default_rng(1).normal(size=(50, 3)) * 2
    x[7] = np.nan
    x[8, 1] = np.inf
    good = np.delete(x, (7, 8), axis=0)
    want = good * np.minimum(1, 1 / np.linalg.norm(good, axis=1))[:, None]
    for chunk in (1, 7, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(records, "_NUMBERS", 3 * chunk)
            own = records.Records(x, records.Coins(COINS))
            got = own.sum(lambda model, rows: rows * model, 1.0, Structure(np.zeros(3)))
            assert np.allclose(got, -want.sum(axis=0))
            assert own.left_out == 2


def test_gradients_that_are_not_finite_are_told_of() -> None:
    x = np.ones((40, 3))
    x[:35] = np.nan  # of 70 in all, coins of 0.2 draw one in all but 2e-7 of first rounds
    job = hushsum.Job.parse(text("length = 3", rounds=2, records=80, parties="count = 2",
                                 after="100ms"))
    with pytest.warns(RuntimeWarning, match="gradients of some records are not finite") as told:
        out = hushsum.simulate(job, lambda model, rows: rows * 1.0, [x, x], np.zeros(3),
                               progress=False)
    assert len(told) == 1 and np.isfinite(out.model).all()
    assert not any(c.isdigit() for c in str(told[0].message))  # how many were drawn is secret


def test_a_simulation_takes_a_job_without_submit_after() -> None:
    """As `hushsum simulate` does: nobody waits for an instant. Without evaluate there is no cost,
    and the result says why."""
    job = hushsum.Job.parse(text("length = 3", rounds=2, records=80, parties="count = 2")
                            .replace('submit_after = "5s"', ""))
    assert not job.privacy.submit_after
    out = hushsum.simulate(job, lambda model, rows: rows * 1.0, [np.ones((40, 3))] * 2,
                           progress=False)
    assert out.spent is not None and np.isfinite(out.model).all()
    assert "1ms" not in str(out) and "no score: simulate was given no evaluate" in str(out)
    with pytest.raises(hushsum.ConfigError, match="evaluate") as raised:
        out.cost
    assert raised.value.field == "evaluate"


@pytest.mark.parametrize("model", ["length = 3", 'name = "logistic"'])
def test_a_simulation_counts_the_records(model) -> None:
    """Where the job says none; where it says another number, that is told."""
    own = [(np.random.default_rng(i).normal(size=(40, 3)), np.arange(40) % 2) for i in range(2)]
    train = None if "name" in model else lambda model, rows: rows[0]
    said = text(model, rounds=2, records=80, parties="count = 2")
    without = said.replace("records = 80\n", "")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known, counted = (hushsum.simulate(hushsum.Job.parse(t), train, own, progress=False)
                          for t in (said, without))
    assert known.spent == counted.spent and known.std_dev == counted.std_dev
    with pytest.warns(RuntimeWarning, match="privacy.records is 100, and the parties here have 80"):
        hushsum.simulate(hushsum.Job.parse(said.replace("records = 80", "records = 100")), train,
                         own, progress=False)


def test_a_simulation_counts_persons() -> None:
    job = hushsum.Job.parse(text("length = 3", 'group = "patient"', rounds=2, records=80,
                                 parties="count = 2").replace("records = 80\n", "")
                            .replace("training.batch = 16\n", ""))
    out = hushsum.simulate(job, lambda model, rows: rows, progress=False,
                           parties=[(np.ones((40, 3)), np.arange(40) % 10)] * 2)
    assert any("20" in line for line in out.explanation if "patient" in line)


def test_persons_have_one_coin_and_one_clip() -> None:
    r = np.random.default_rng(2)
    x, who = r.normal(size=(60, 2)) * 3, r.integers(0, 9, 60).astype(str)
    coins = records.Coins({**COINS, "group": "patient"})
    means = np.array([x[who == w].mean(axis=0) for w in np.unique(who)])
    want = means * np.minimum(1, 1 / np.linalg.norm(means, axis=1))[:, None]
    for chunk in (1, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(records, "_NUMBERS", 2 * chunk)
            got = records.Records((x, who), coins).sum(
                lambda model, rows: {"w": rows}, None, Structure({"w": np.zeros(2)}))
            assert np.allclose(got, -want.sum(axis=0))


def test_coins() -> None:
    """They come up as often as declared: at 100,000 records six standard deviations are .006,
    which fair coins exceed with a probability of 2e-9. Nobody draws more than the job lets them."""
    x = np.ones((100_000, 1))

    def drawn(**more) -> float:
        coins = records.Coins({**COINS, "count": 100_000, "most": 100_000, "rate": 0.1, **more})
        return -float(records.Records(x, coins).sum(
            lambda model, rows: rows, None, Structure(np.zeros(1)))[0])

    first, second = drawn(), drawn()
    assert abs(first / 1e5 - 0.1) < 0.006 and abs(second / 1e5 - 0.1) < 0.006
    assert first != second or drawn() != first
    assert drawn(rate=1.0) == 1e5
    with pytest.raises(hushsum.ConfigError, match="together have 70, and this one has 100000"):
        drawn(count=70)
    assert drawn(most=5000) == 0
    assert records.Records(x[:0], records.Coins(COINS)).sum(
        lambda model, rows: rows, None, Structure(np.zeros(1))) == 0


def test_rows_that_are_no_records() -> None:
    coins = records.Coins(COINS)
    for rows in ((np.ones(3), np.ones(4)), 5.0, ()):
        with pytest.raises(hushsum.ConfigError, match="rows are no records"):
            records.Records(rows, coins)
    with pytest.raises(hushsum.ConfigError, match="whose"):
        records.Records(np.ones(3), records.Coins({**COINS, "group": "patient"}))
    own = records.Records(np.ones(3), coins)
    assert not own.sum(lambda model, rows: np.ones(2), None, Structure(np.zeros(2))).any()
    assert own.failed == 3 and "shape" in str(own.alone)


def test_as_the_training_of_the_job() -> None:
    """Gradients of a function and those of the job's own training come to the same: to the last
    digits in the clear with all records drawn, and within the noise of accuracies at epsilon 2."""
    own = [census(200, i) for i in range(10)]
    function = hushsum.Job.parse(text("length = 8"))
    declared = hushsum.Job.parse(text('name = "logistic"'))
    said = "\n".join(function.explain())
    assert "each record of a party" in said and "probability 0.2" in said
    a = hushsum.simulate(function, logistic, own, evaluate=accuracy, progress=False)
    b = hushsum.simulate(declared, None, own, progress=False,
                         evaluate=accuracy)
    assert a.spent is not None and b.spent is not None
    assert 1.9 < a.spent.epsilon <= 2 and math.isclose(a.spent.epsilon, b.spent.epsilon)
    # In twenty runs of each, accuracies had standard deviations of .0075 at most, and a difference
    # .0105: five of those are exceeded with a probability below 1e-6.
    assert abs(a.scores[-1] - b.scores[-1]) < 0.055 and a.scores[-1] > 0.8
    assert abs(a.clear_scores[-1] - b.clear_scores[-1]) < 0.055

    all_of_them = {"training": hushsum.Job.Training()}
    a = hushsum.simulate(dataclasses.replace(function, **all_of_them), logistic, own,
                         progress=False)
    b = hushsum.simulate(dataclasses.replace(declared, **all_of_them), None,
                         own, progress=False)
    assert np.allclose(a.clear_model, b.clear_model, atol=1e-3)


def test_ten_hospitals_join() -> None:
    """Over TCP, with gradients in NumPy. A hospital whose function fails submits zeros, and
    nobody else can tell."""
    keys = identities(10)
    job = hushsum.Job.parse(text("length = 8", parties='roster = "roster.txt", drop_out = 0.2',
                                 rounds=5, after="2s"))
    settled = job.settle(keys)
    own = {name: census(200, i) for i, name in enumerate(keys)}
    coordinator = hushsum.Identity.generate()
    running = hushsum.Coordinator(settled, identity=coordinator, step_time=60)
    out: dict[str, object] = {}
    failed = []

    def party(name: str) -> None:
        def train(model, rows):
            if name == "party3":
                raise ValueError("no rows of that class")
            return logistic(model, rows)

        out[name] = hushsum.join(
            settled, url=running.url, identity=keys[name], coordinator=coordinator.public,
            train=train, rows=own[name],
            progress=lambda p: "failed on all records: ValueError (test_records.py" in p.text and failed.append(p))

    threads = [threading.Thread(target=party, args=(n,)) for n in keys]
    for t in threads:
        t.start()
    model = running.run()
    for t in threads:
        t.join(120)
    assert failed
    assert settled.spent().epsilon <= 2
    assert sum(isinstance(m, np.ndarray) and np.array_equal(m, model)
               for m in out.values()) >= 8
    with pytest.raises(hushsum.ConfigError, match="records"):
        hushsum.join(settled, url=running.url, identity=keys["party0"],
                     coordinator=coordinator.public, train=logistic)
    assert np.all(np.isfinite(model)) and np.any(model)


def test_pytorch() -> None:
    """Its gradients of single records are those by hand, and what mixes records is refused."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("torch.func" if hasattr(torch, "func") else "functorch")
    from hushsum import torch as ours

    x, y = census(20, 3)
    module = torch.nn.Linear(8, 1, bias=False, dtype=torch.float64)
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    gradients = ours.gradients(module, lambda out, target: loss(out[:, 0], target.to(out.dtype)))
    w = np.random.default_rng(4).normal(size=8)
    got = gradients({"weight": w[None]}, (x, y))["weight"].numpy()
    assert got.shape == (20, 1, 8) and np.allclose(got[:, 0], logistic(w, (x, y)))
    with pytest.raises(hushsum.ConfigError, match="BatchNorm1d, which mixes"):
        ours.gradients(torch.nn.Sequential(torch.nn.BatchNorm1d(8)), loss)
    with pytest.raises(hushsum.ConfigError, match="no parameter 'bias'"):
        gradients({"bias": w}, (x, y))
    for rows in (x, (x,), (x, y, y)):  # the first: (x, y) without its group
        with pytest.raises(hushsum.ConfigError, match=r"\(x, y, group\)"):
            gradients({"weight": w[None]}, rows)
    if not ours._DROPS:
        for layer in (torch.nn.Dropout(0.5), torch.nn.Dropout1d(0.5), torch.nn.AlphaDropout(0.5)):
            with pytest.raises(hushsum.ConfigError, match=r", of which.*eval\(\)"):
                ours.gradients(torch.nn.Sequential(module, layer), loss)


def test_a_dropout_that_drops_nothing_has_gradients() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("torch.func" if hasattr(torch, "func") else "functorch")
    from hushsum import torch as ours

    for layer in (torch.nn.Dropout(0.5).eval(), torch.nn.Dropout(0.0)):
        module = torch.nn.Sequential(torch.nn.Linear(8, 2), layer)
        gradients = ours.gradients(module, torch.nn.functional.cross_entropy)
        model = {name: p.detach().numpy() for name, p in module.named_parameters()}
        assert gradients(model, census(20, 3))["0.weight"].shape == (20, 2, 8)


TENSORS = """tensor = [{ name = "0.weight", shape = [16, 8] }, { name = "0.bias", shape = [16] },
  { name = "2.weight", shape = [2, 16] }, { name = "2.bias", shape = [2] }], init = "uniform\""""


def perceptron() -> Callable[..., dict[str, np.ndarray]]:
    """The gradients of a perceptron in PyTorch, of the tensors above."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("torch.func" if hasattr(torch, "func") else "functorch")
    from hushsum import torch as ours

    torch.set_num_threads(1)
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    return ours.gradients(module, torch.nn.functional.cross_entropy)


def test_parties_that_are_threads_have_their_gradients() -> None:
    """As many at a time as there are hospitals below; without a lock most of these calls failed."""
    gradients, failed = perceptron(), []
    model = {name: np.full(shape, 0.1) for name, shape in
             [("0.weight", (16, 8)), ("0.bias", 16), ("2.weight", (2, 16)), ("2.bias", 2)]}

    def party(i: int) -> None:
        try:
            for _ in range(50):
                gradients(model, census(20, i))
        except RuntimeError as err:
            failed.append(err)

    threads = [threading.Thread(target=party, args=(i,)) for i in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_perceptron_learns() -> None:
    """In virtual time, so that no processor is too slow for a round."""
    x, y = census(4000, 99)

    def evaluate(model) -> float:
        hidden = np.tanh(x @ model["0.weight"].T + model["0.bias"])
        scores = hidden @ model["2.weight"].T + model["2.bias"]
        return float(np.mean(scores.argmax(axis=1) == y))

    learnt = hushsum.simulate(hushsum.Job.parse(text(TENSORS, rounds=5)), perceptron(),
                              [census(200, i) for i in range(10)], evaluate=evaluate,
                              progress=False)
    # Fifteen runs came to 0.832 with a standard deviation of 0.021: seven of those below.
    assert learnt.scores[-1] > 0.68


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_federation_of_ten_hospitals(kind: str, tmp_path) -> None:
    """Over HTTP, with a perceptron in PyTorch, or a line in NumPy. Who is too slow for a round has
    submitted zeros, so that what the model learns depends on the processor: no test of it here."""
    try:
        program = federation._program()
    except hushsum.SidecarError as err:
        pytest.skip(str(err))
    if kind == "torch":
        train, shape = perceptron(), TENSORS
    else:
        def train(model, rows):
            return {"w": logistic(model["w"], rows)}
        shape = 'tensor = [{ name = "w", shape = [8] }]'
    keys = identities(10)
    (tmp_path / "roster.txt").write_text(
        "".join(f"{name} {k.public}\n" for name, k in keys.items()))
    (tmp_path / "federation.toml").write_text(text(
        shape, rounds=5, parties='roster = "roster.txt", drop_out = 0.2', after="3s"))
    server = subprocess.Popen(
        [program, "serve", "--folder", str(tmp_path / "node"), "--listen", "127.0.0.1:0",
         "--admin", "127.0.0.1:0", "--federation", str(tmp_path / "federation.toml"),
         "--log", "error"], stdout=subprocess.PIPE, text=True)
    out: dict[str, dict[str, np.ndarray]] = {}
    try:
        said = {}
        for line in server.stdout:
            fields = line.split()
            said[fields[0]] = fields[1]
            if fields[0] == "federation":
                break

        def party(i: int, name: str) -> None:
            out[name] = hushsum.join(
                said["door"], identity=keys[name], train=train, rows=census(200, i),
                roster=tmp_path / "roster.txt", fingerprint=said["fingerprint"],
                folder=tmp_path / name, accept=True)

        threads = [threading.Thread(target=party, args=(i, n)) for i, n in enumerate(keys)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(300)
    finally:
        server.terminate()
        server.wait()
    assert len(out) == 10
    for name, model in out.items():
        for tensor, values in model.items():
            assert np.array_equal(values, out["party0"][tensor]), name
            assert np.all(np.isfinite(values)) and np.any(values)
