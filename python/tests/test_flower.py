"""The adapter in Flower's own records, mods, workflow and strategy."""

import numpy as np
import pytest

import flower_here

if (why := flower_here.find()) is not None:
    pytest.skip(why, allow_module_level=True)

import hushsum
from flower_net import App, Net
from hushsum import _flower, flower
from rounds import close_to, identities, job

BROKEN: set[int] = set()  # nodes whose training fails
MODEL = [np.ones((3, 2), np.float32), np.zeros(4, np.float32)]


def train(node: int, arrays: list) -> tuple[list, int]:
    """Add the node's number to all parameters, from ten times as many examples."""
    if node in BROKEN:
        raise RuntimeError("out of memory")
    return [a + np.float32(node) for a in arrays], 10 * node


def make(n: int = 10, weighted: bool = True, **fields: object):
    keys = identities(n)
    settled = job(**{**dict(name="flower", rounds=100, length=10, drop_out=0.3,
                            max_weight=10 * n if weighted else 0), **fields}).settle(keys)
    mods = {node: flower.private_sum_mod(settled, key)
            for node, key in enumerate(keys.values(), start=1)}
    net = Net(mods, train)
    return App(net, flower.PrivateSumWorkflow(settled), MODEL, list(mods)), settled, keys


def weighted_mean(nodes) -> float:
    return float(np.average(list(nodes), weights=list(nodes)))


def test_rounds() -> None:
    app, _, _ = make()
    for r in (1, 2, 3):
        model = app.round()
        want = r * weighted_mean(range(1, 11))
        assert close_to(model[0], 1 + want, 1e-2) and close_to(model[1], want, 1e-2)
        assert model[0].dtype == np.float32
    assert not app.net.raised
    assert app.workflow._number == 1  # one exchange of keys for all of them
    for results, failures in app.strategy.seen:
        assert len(results) == 10 and not failures
        # No client's own examples, metrics or parameters are in what the strategy sees.
        assert {r.num_examples for _, r in results} == {1}
        assert all(not r.metrics for _, r in results)
        assert len({r.parameters.tensors[0] for _, r in results}) == 1


def test_unweighted() -> None:
    app, _, _ = make(weighted=False)
    assert close_to(app.round()[1], 5.5, 1e-3)


@pytest.mark.parametrize("exchange, counted", [(0, False), (1, False), (2, False), (3, False),
                                               (4, True), (5, True)])
def test_a_drop_out_in_each_stage(exchange: int, counted: bool) -> None:
    """join, keys, members, train, survivors, certificate: the round gives a sum, and the
    next one has everybody."""
    app, _, _ = make()
    gone = {2, 9}
    app.net.lose = lambda at, node: at >= exchange and node in gone
    model = app.round()
    stays = [n for n in range(1, 11) if counted or n not in gone]
    want = weighted_mean(stays)
    assert close_to(model[1], want, 1e-2)
    results, failures = app.strategy.seen[-1]
    assert len(results) == len(stays) and failures
    app.net.lose = lambda at, node: False
    assert close_to(app.round()[1], want + weighted_mean(range(1, 11)), 2e-2)
    assert len(app.strategy.seen[-1][0]) == 10


def test_too_many_drop_out() -> None:
    app, _, _ = make()
    app.round()
    before = app.model()
    app.net.lose = lambda at, node: node <= 4
    model = app.round()  # the round gives nothing, and the model stays
    assert all(np.array_equal(a, b) for a, b in zip(model, before))
    results, failures = app.strategy.seen[-1]
    assert not results and any(isinstance(f, hushsum.TooFewError) for f in failures)
    app.net.lose = lambda at, node: False
    app.round()
    assert len(app.strategy.seen[-1][0]) == 10


def test_samples_and_newcomers() -> None:
    app, _, _ = make()
    app.strategy.nodes = list(range(1, 9))
    app.round()
    app.strategy.nodes = list(range(2, 9))  # some of the session: no new keys
    app.round()
    assert app.workflow._number == 1 and len(app.strategy.seen[-1][0]) == 7
    app.strategy.nodes = list(range(3, 11))  # two are new: the next session
    app.round()
    assert app.workflow._number == 2 and len(app.strategy.seen[-1][0]) == 8
    assert not app.net.raised


def test_a_new_process_goes_on() -> None:
    app, _, _ = make()
    app.round()
    flower._Client.live.clear()  # as if every client's process had been replaced
    assert close_to(app.round()[1], 2 * weighted_mean(range(1, 11)), 2e-2)
    assert not app.net.raised


def test_a_client_that_fails_in_training() -> None:
    app, _, _ = make()
    BROKEN.add(5)
    try:
        model = app.round()
    finally:
        BROKEN.clear()
    assert close_to(model[1], weighted_mean([n for n in range(1, 11) if n != 5]), 1e-2)
    assert any("out of memory" in str(f) for f in app.strategy.seen[-1][1])


def test_training_in_the_clear_is_refused() -> None:
    app, _, _ = make()
    message = app.net.create_message(_flower.RecordDict(), "train", 1, "1")
    (reply,) = app.net.send_and_receive([message])
    assert reply.has_error() and "without a private sum" in reply.error.reason


def test_another_model_for_one_client() -> None:
    """A server that shows a client another model than the rest learns nothing of it."""
    app, _, _ = make()
    inner = app.net.apps[3]

    def shown(message, context):
        record = _flower.arrays(message.content).get("fitins.parameters", None)
        if record is not None:
            first = next(iter(record))
            record[first].data = record[first].data[:-1] + b"\x01"
        return inner(message, context)

    app.net.apps[3] = shown
    app.round()
    assert len(app.strategy.seen[-1][0]) == 9
    assert any("broadcast" in str(e) for e in app.net.raised)


def test_a_server_that_begins_anew() -> None:
    """Clients answer no round twice, whatever session it is in and whoever remembers it."""
    app, settled, _ = make(rounds=3)
    app.round()
    app.round()
    before = app.model()
    flower._Client.live.clear()
    app.workflow = flower.PrivateSumWorkflow(settled, first_number=2)
    app.round()
    assert all(np.array_equal(a, b) for a, b in zip(app.model(), before))
    assert not app.strategy.seen[-1][0]
    assert all("or a later one" in str(e) for e in app.net.raised)
    app.workflow = flower.PrivateSumWorkflow(settled, first_number=3, first_round=3)
    app.round()
    assert len(app.strategy.seen[-1][0]) == 10
    app.round()  # the job has no fourth
    assert not app.strategy.seen[-1][0]


def answers(app: App, broken: set[int]) -> list[tuple[int, str, list[int], int]]:
    """Hold a round, and return all that the server has of node 5: of each message the stage, what
    it says, and how long what is random in it is."""
    seen = []

    def heard(message, context, inner=app.net.apps[5]):
        reply = inner(message, context)
        said = {name: {k: len(v) if isinstance(v, bytes) or k == "public" else v
                       for k, v in record.items()}
                for name, record in _flower.configs(reply.content).items()}
        result = {name: dict(record) for name, record in vars(reply.content).items()
                  if "metric" in name or "array" in name or "parameter" in name}
        seen.append((str(said), repr(result)))
        return reply

    app.net.apps[5] = heard
    BROKEN.update(broken)
    try:
        app.round()
    finally:
        BROKEN.clear()
    return seen


@pytest.mark.parametrize("weighted", [False, True])
def test_events_with_noise(weighted: bool) -> None:
    """A client whose training fails answers as any other, and is in the sum."""
    noisy = dict(weighted=weighted, noise="discrete-gaussian", epsilon=8.0, rounds=3, clip=1.0)
    (app, _, _), (other, _, _) = make(**noisy), make(**noisy)
    assert answers(app, {5}) == answers(other, set())
    for results, failures in app.strategy.seen:
        assert len(results) == 10 and not failures
        assert len({(r.num_examples, r.status.message, str(r.metrics)) for _, r in results}) == 1


def test_what_has_no_noise_is_refused() -> None:
    app, settled, keys = make(noise="discrete-gaussian", epsilon=8.0, rounds=3)
    with pytest.raises(hushsum.ConfigError, match="no epsilon holds"):
        flower.private_sum_mod(settled, keys["party0"], share_metrics=True)
    for kind in ("evaluate", "query"):
        message = app.net.create_message(_flower.RecordDict(), kind, 1, "1")
        (reply,) = app.net.send_and_receive([message])
        assert reply.has_error() and "no epsilon would hold" in reply.error.reason
