"""Private sums in Flower, instead of SecAgg+'s mod and workflow.

Three lines of a Flower app change::

    from hushsum.flower import PrivateSumWorkflow, private_sum_mod
    client = ClientApp(client_fn=..., mods=[private_sum_mod(settled, identity)])
    workflow = DefaultWorkflow(fit_workflow=PrivateSumWorkflow(settled))

``settled`` is a job for all clients that may ever be sampled, whose ``model.length`` is that of the
model's parameters. With ``sum.max_weight`` the mean is weighted by ``num_examples``.
``privacy.clip`` bounds the change that training makes to the parameters, in L2 norm.

Clients exchange keys once. A round is held among the sampled clients that are present; a client not
yet in the session joins with the next one, which forms at the beginning of a round. A client that
drops out, at whatever stage, costs the round at most its update, as long as the job's
``min_survivors`` remain.

Unlike SecAgg+'s, the server cannot add clients or show them different models, and it does
not see ``num_examples`` and metrics of single clients unless ``share_metrics`` is set.

With noise, nothing but the sums depends on a client's rows: one whose training fails submits zeros
with noise and answers as all others do; ``share_metrics`` is refused, as are requests to evaluate
on a client's rows, or for its properties. Evaluate on public rows at the server.

It replaces SecAgg+ where Flower has it: in workflows, with strategies of ``flwr.server.strategy``
and clients of ``Client`` and ``NumPyClient``. Flower's newer strategies, of ``flwr.serverapp``,
have no workflows. The names of Flower's records are those of 1.18 and later, or of before; run with
the sources of April 2024, before 1.9, and of March 2026, 1.28.
"""

from __future__ import annotations

import hashlib
import os
import struct
from logging import ERROR, INFO, WARNING
from typing import Any, Callable, Mapping, Sequence, Union, cast

import numpy as np
from flwr.common import Context, Message, Parameters, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.common.logger import log
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD
from flwr.server.workflow.constant import Key as WorkflowKey

from . import _flower
from ._flower import ConfigRecord, Grid, MessageType, RecordDict, arrays, configs
from .arrays import Arrays
from .errors import ConfigError, Error, MessageError, TooFewError
from .party import Messages, Party, Server
from .settled import Identity, Settled

RECORD = "hushsum"  #: name of the records that carry messages and states

_JOIN, _MESSAGE, _TRAIN = "join", "message", "train"

Mod = Callable[[Message, Context, Callable[[Message, Context], Message]], Message]


def _broadcast(header: bytes, parameters: Parameters) -> bytes:
    """Return what a round begins with: a header and the digest of the parameters.

    All sides work it out from the parameters that they have, and masks follow from it: a
    server that shows clients different parameters gets nothing.
    """
    digest = hashlib.sha256()
    for tensor in parameters.tensors:
        digest.update(len(tensor).to_bytes(8, "big"))
        digest.update(tensor)
    return header + digest.digest()


def _change(trained: Parameters, start: Parameters) -> list[np.ndarray]:
    """Return by how much training has changed the parameters."""
    after, before = parameters_to_ndarrays(trained), parameters_to_ndarrays(start)
    if len(after) != len(before) or any(a.shape != b.shape for a, b in zip(after, before)):
        raise ConfigError(
            "training returned parameters of other shapes than it was given", kind="length",
            field="parameters", advice="return the model's parameters, all of them and in order",
        )
    return [a.astype(np.float64) - b for a, b in zip(after, before)]


def _flat(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.asarray(a, np.float64).ravel() for a in arrays])


class _Client:
    """One client: its parties, by session, kept in the context of its node."""

    live: dict[tuple[str, int], tuple[bytes, Party]] = {}  # what this process has loaded

    def __init__(self, settled: Settled, identity: Identity, context: Context) -> None:
        self.settled, self.identity, self.context = settled, identity, context
        # What is kept is sealed under a key that follows from the identity, which the
        # application keeps, so that a new process can open it.
        self.key = hashlib.sha256(b"hushsum/1 flower state" + identity._seed).digest()
        record = configs(context.state).get(RECORD, None)
        self.kept: dict[str, Any] = dict(record) if record is not None else {}

    def party(self, number: int) -> Party:
        """Return the party in a session, from this process or loaded."""
        state = self.kept.get(f"state {number}")
        if state is None:
            raise MessageError(
                f"this client is not in session {number}", kind="session",
                advice="wait for the next session",
            )
        name = (self.identity.public, number)
        saved, party = self.live.get(name, (b"", None))
        if party is None or saved != state or not party._sidecar.alive:
            party = Party.load(self.settled, self.identity, self.key, state, number=number)
        return party

    def join(self, number: int) -> bytes:
        """Make keys for a new session. A number is used once, whoever asks."""
        if number < int(self.kept.get("least", 1)):
            if f"state {number}" in self.kept:
                return self.party(number).output()
            raise MessageError(
                f"session {number} has been used", kind="number",
                advice="begin the workflow with a first_number that no session has had",
            )
        numbers = sorted(int(k[6:]) for k in self.kept if k.startswith("state "))
        for old in numbers:
            self.party(old)  # a new process learns what was counted
        party = Party(self.settled, self.identity, number=number)
        self.kept["least"] = number + 1
        # Of earlier sessions only the last stays, until the new one begins a round.
        for old in numbers[:-1]:
            self.forget(old)
        self.keep(party, number)
        return party.announce

    def forget(self, number: int) -> None:
        self.kept.pop(f"state {number}", None)
        _, party = self.live.pop((self.identity.public, number), (b"", None))
        if party is not None:
            party.close()

    def keep(self, party: Party, number: int) -> None:
        """Save: what the party has made may be sent after that and not before."""
        state = party.save(self.key)
        self.kept[f"state {number}"] = state
        self.live[(self.identity.public, number)] = (state, party)
        configs(self.context.state)[RECORD] = ConfigRecord(self.kept)


def private_sum_mod(
    settled: Settled, identity: Union[Identity, Callable[[Context], Identity]], *,
    share_metrics: bool = False,
) -> Mod:
    """Return the mod for a ClientApp.

    Args:
        settled: the job, the same as the workflow's.
        identity: of this client, or a function that finds it from the node's context, for
            simulations in which one app serves many nodes.
        share_metrics: leaves ``num_examples`` and metrics of training in the answer, where the
            server sees each client's; not with noise, because epsilon would not hold.
    """
    if share_metrics and settled.noisy:
        raise ConfigError(
            "what is said about single clients has no noise, so that no epsilon holds",
            kind="config", field="share_metrics", advice="leave it out, or settle without noise",
        )

    def mod(
        message: Message, context: Context, call_next: Callable[[Message, Context], Message]
    ) -> Message:
        if message.metadata.message_type != MessageType.TRAIN:
            if settled.noisy:
                raise MessageError(
                    "answers about a client's rows have no noise, and no epsilon would hold",
                    kind="refused", advice="evaluate on public rows at the server, and set "
                    "fraction_evaluate=0",
                )
            return call_next(message, context)
        record = configs(message.content).get(RECORD, None)
        if record is None:
            raise MessageError(
                "the server asks for training without a private sum", kind="refused",
                advice="use PrivateSumWorkflow as the server's fit_workflow",
            )
        own = identity if isinstance(identity, Identity) else identity(context)
        client = _Client(settled, own, context)
        number, stage = cast(int, record["number"]), record["stage"]
        out: dict[str, Any] = {}
        content = RecordDict()
        if stage == _JOIN:
            out = {"message": client.join(number), "public": own.public}
        else:
            party = client.party(number)
            answer = party.receive(cast(bytes, record["message"]))
            if stage == _TRAIN:
                content, answer = _trained(client, party, message, context, call_next, answer)
                if not share_metrics:
                    content = _without_metrics(content)
            client.keep(party, number)
            if answer is not None:
                out = {"message": answer}
            if stage == _TRAIN:
                for old in [int(k[6:]) for k in client.kept if k.startswith("state ")]:
                    if old < number:
                        client.forget(old)
                configs(context.state)[RECORD] = ConfigRecord(client.kept)
        configs(content)[RECORD] = ConfigRecord(out)
        return _flower.reply(message, content)

    return mod


def _trained(
    client: _Client, party: Party, message: Message, context: Context,
    call_next: Callable[[Message, Context], Message], answer: bytes | None,
) -> tuple[RecordDict, bytes]:
    """Train, and return the answer's content and the masked update."""
    if party.due is None:
        if answer is not None:
            return RecordDict(), answer
        raise MessageError("no round has begun", kind="phase", advice="wait for the next round")
    record = configs(message.content).pop(RECORD)
    fitins = _flower.content_to_fitins(message.content, keep_input=True)
    broadcast = _broadcast(cast(bytes, record["header"]), fitins.parameters)
    content, update, weight = RecordDict(), None, None
    noisy = client.settled.noisy
    try:
        content = call_next(message, context).content
        result = _flower.content_to_fitres(content, keep_input=True)
        update = _flat(_change(result.parameters, fitins.parameters))
        if client.settled.weighs:
            weight = int(result.num_examples)
    except Exception:
        if not noisy:
            raise
        log(ERROR, "no update in this round: zeros with noise are submitted", exc_info=True)
    masked = party.submit(broadcast, cast(Union[Arrays, None], update), weight)
    if noisy:  # all clients' answers are alike
        return _flower.nothing(fitins.parameters), masked
    for parameters in arrays(content).values():
        parameters.clear()
    return content, masked


def _without_metrics(content: RecordDict) -> RecordDict:
    """Leave what the server needs of a result, and nothing that tells of one client."""
    if not arrays(content) and not configs(content):
        return content
    result = _flower.content_to_fitres(content, keep_input=True)
    result.num_examples, result.metrics = 1, {}
    result.parameters = Parameters(tensors=[], tensor_type=result.parameters.tensor_type)
    return _flower.fitres_to_content(result, keep_input=True)


class PrivateSumWorkflow:
    """The fit workflow of a server. Give it to DefaultWorkflow, and keep it for all rounds."""

    def __init__(
        self, settled: Settled, *, timeout: float | None = None, first_number: int = 1,
        first_round: int = 1,
    ) -> None:
        """Make the workflow.

        Args:
            settled: the job, as clients have it.
            timeout: seconds that each stage waits for answers; ``None``: until all arrive.
            first_number: number of the first session; above all that these clients have used.
            first_round: first of the job's rounds; above all that these clients have answered.
                Clients answer no round twice, and each one that is begun counts.
        """
        self.settled = settled
        self.timeout = timeout
        self._number = first_number - 1
        self._held = first_round - 1  # the last round of the job that was begun
        self._server: Server | None = None
        self._nodes: dict[int, int] = {}  # roster index by node
        self._failures: list[BaseException] = []
        self._indices = {key: i for i, (_, key) in enumerate(settled.roster)}

    def __call__(self, grid: Grid, context: Context) -> None:
        """Hold one round."""
        if not isinstance(context, LegacyContext):
            raise TypeError(f"Expect a LegacyContext, but get {type(context).__name__}.")
        main = configs(context.state)[MAIN_CONFIGS_RECORD]
        current = cast(int, main[WorkflowKey.CURRENT_ROUND])
        parameters = _flower.record_to_parameters(
            arrays(context.state)[MAIN_PARAMS_RECORD], keep_input=True
        )
        instructions = context.strategy.configure_fit(current, parameters, context.client_manager)
        if not instructions:
            log(INFO, "configure_fit: no clients selected, cancel")
            return
        proxies = {proxy.node_id: proxy for proxy, _ in instructions}
        self._failures = []
        results: list[tuple[Any, Any]] = []
        try:
            mean, contents = self._round(grid, str(current), dict(
                (proxy.node_id, fitins) for proxy, fitins in instructions), parameters)
            summed = _applied(parameters, mean)
            for node, content in contents.items():
                result = _flower.content_to_fitres(content, keep_input=True)
                result.parameters = summed
                results.append((proxies[node], result))
        except TooFewError as err:
            log(ERROR, "round %s gives no sum: %s", current, err)
            self._failures.append(err)
        except Error as err:
            log(ERROR, "round %s gives no sum: %s (%s)", current, err, err.kind)
            self._failures.append(err)
            self._server = None  # another session with the next round
        log(INFO, "aggregate_fit: received %s results and %s failures", len(results),
            len(self._failures))
        following, metrics = context.strategy.aggregate_fit(
            current, results, cast(Any, self._failures))
        if following:
            arrays(context.state)[MAIN_PARAMS_RECORD] = (
                _flower.parameters_to_record(following, True))
            context.history.add_metrics_distributed_fit(server_round=current, metrics=metrics)

    # One round, and what it takes before it.

    def _round(
        self, grid: Grid, group: str, fitins: Mapping[int, Any], parameters: Parameters
    ) -> tuple[np.ndarray, dict[int, RecordDict]]:
        server = self._among(grid, group, list(fitins))
        nodes = {i: node for node, i in self._nodes.items()}
        header = struct.pack(">Q", self._held + 1) + os.urandom(32)
        broadcast = _broadcast(header, parameters)
        _, messages = server.begin(broadcast)
        self._held += 1

        def training(index: int) -> RecordDict:
            content = _flower.fitins_to_content(fitins[nodes[index]], True)
            if fitins[nodes[index]].parameters.tensors != parameters.tensors:
                raise ConfigError(
                    "the strategy gives clients different parameters", kind="config",
                    field="strategy", advice="use a strategy that gives all the same model",
                )
            return content

        contents = self._deliver(grid, group, messages, _TRAIN, training, header)
        self._deliver(grid, group, server.survivors())
        self._deliver(grid, group, server.certificate())
        mean = server.sum(broadcast)
        included = {nodes[i] for i in mean.parties}
        return np.asarray(mean.model), {n: c for n, c in contents.items() if n in included}

    def _among(self, grid: Grid, group: str, nodes: list[int]) -> Server:
        """Return the server of a session that all of the nodes are in, those that are there."""
        server = self._server
        if server is not None:
            wanted = sorted(self._nodes[n] for n in nodes if n in self._nodes)
            known = len(wanted) == len(nodes) and set(wanted) <= set(server.enrolled)
            if known and len(wanted) >= self.settled.min_survivors:
                if server.missing:  # among them who lost what ended set-up
                    self._deliver(grid, group, server.members())
                if server.holders != wanted:
                    self._deliver(grid, group, server.gather(wanted))
                elif server.missing:
                    self._deliver(grid, group, server.invite())
                return server
        return self._new_session(grid, group, nodes)

    def _new_session(self, grid: Grid, group: str, nodes: list[int]) -> Server:
        self._number += 1
        if self._server is not None:
            self._server.close()
        server = self._server = Server(self.settled, number=self._number)
        replies = self._send(grid, group, {n: (RecordDict(), {"stage": _JOIN}) for n in nodes})
        for node, content in replies.items():
            record = configs(content)[RECORD]
            index = self._indices.get(cast(str, record["public"]))
            if index is None:
                self._fail(node, "its identity is not in the roster")
                continue
            try:
                server.receive(index, cast(bytes, record["message"]))
            except MessageError as err:
                self._fail(node, str(err))
            else:
                self._nodes[node] = index
        self._deliver(grid, group, server.keys())
        self._deliver(grid, group, server.members())
        return server

    # Carrying messages.

    def _deliver(
        self, grid: Grid, group: str, messages: Messages, stage: str = _MESSAGE,
        content: Callable[[int], RecordDict] | None = None, header: bytes = b"",
    ) -> dict[int, RecordDict]:
        """Carry messages to clients and their answers back; return the answers' contents."""
        nodes = {i: node for node, i in self._nodes.items()}
        out = {}
        for index, message in messages:
            settings: dict[str, Any] = {"stage": stage, "message": message}
            if stage == _TRAIN:
                settings["header"] = header
            body = RecordDict() if content is None else content(index)
            out[nodes[index]] = (body, settings)
        replies = self._send(grid, group, out)
        assert self._server is not None
        good = {}
        for node, reply in replies.items():
            answer = configs(reply)[RECORD].get("message", None)
            try:
                if answer is not None:
                    self._server.receive(self._nodes[node], cast(bytes, answer))
            except MessageError as err:
                self._fail(node, str(err))
                continue
            good[node] = reply
        return good

    def _send(
        self, grid: Grid, group: str, out: Mapping[int, tuple[RecordDict, dict[str, Any]]]
    ) -> dict[int, RecordDict]:
        messages = []
        for node, (content, settings) in out.items():
            configs(content)[RECORD] = ConfigRecord({**settings, "number": self._number})
            messages.append(_flower.instruction(grid, content, node, group))
        if not messages:
            return {}
        answers = list(grid.send_and_receive(messages, timeout=self.timeout))
        good = {}
        for answer in answers:
            node = answer.metadata.src_node_id
            if answer.has_error():
                self._fail(node, answer.error.reason or f"error {answer.error.code}")
            elif RECORD not in configs(answer.content):
                self._fail(node, "it does not use private_sum_mod")
            else:
                good[node] = answer.content
        for node in out.keys() - {a.metadata.src_node_id for a in answers}:
            self._fail(node, "no answer")
        return good

    def _fail(self, node: int, reason: str) -> None:
        log(WARNING, "client %s: %s", node, reason)
        self._failures.append(RuntimeError(f"client {node}: {reason}"))


def _applied(parameters: Parameters, mean: np.ndarray) -> Parameters:
    """Return the parameters with the mean of the changes added."""
    out, at = [], 0
    for a in parameters_to_ndarrays(parameters):
        change = mean[at : at + a.size].reshape(a.shape)
        out.append((a + change).astype(a.dtype))
        at += a.size
    return ndarrays_to_parameters(out)
