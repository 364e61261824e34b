"""A driver that calls Flower clients in this process, and measures both sides."""

from __future__ import annotations

import time
from typing import Any, Callable, Iterable

import numpy as np
from flwr.client.mod import make_ffn
from flwr.common import (
    Code,
    Context,
    Error,
    FitRes,
    Message,
    Metadata,
    Status,
    ndarrays_to_parameters,
    parameters_to_ndarrays,
    serde,
)
from flwr.server.client_manager import SimpleClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.strategy import FedAvg
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD
from flwr.server.workflow.constant import Key
from hushsum import _flower
from hushsum._flower import ConfigRecord, Grid, RecordDict, arrays, configs

if _flower.TODAY:
    from flwr.proto.recorddict_pb2 import RecordDict as Proto

    to_proto, from_proto = serde.recorddict_to_proto, serde.recorddict_from_proto
else:
    from flwr.proto.recordset_pb2 import RecordSet as Proto

    to_proto, from_proto = serde.recordset_to_proto, serde.recordset_from_proto


def context() -> Context:
    """Return the context of a node, without anything in it."""
    if _flower.TODAY:
        return Context(1, 0, {}, RecordDict(), {})
    return Context(RecordDict())


class Proxy(ClientProxy):
    """A node, for strategies."""

    def __init__(self, node: int) -> None:
        super().__init__(str(node))
        self.node_id = node

    def get_properties(self, *a: Any, **k: Any) -> Any: ...
    def get_parameters(self, *a: Any, **k: Any) -> Any: ...
    def fit(self, *a: Any, **k: Any) -> Any: ...
    def evaluate(self, *a: Any, **k: Any) -> Any: ...
    def reconnect(self, *a: Any, **k: Any) -> Any: ...


def carried(content: RecordDict) -> tuple[RecordDict, int]:
    """Return a message's content as it arrives, and its bytes on the way."""
    sent = to_proto(content).SerializeToString()
    return from_proto(Proto.FromString(sent)), len(sent)


class Net(Grid):
    """The network: nodes with a training function and a mod each.

    Attributes:
        lose: which replies do not come: a function of the number of the exchange in the
            round, from 0, and the node.
        client_seconds: in all clients together.
        network_seconds: in turning messages into bytes and back.
        bytes_up, bytes_down: of all messages.
    """

    def __init__(self, mods: dict[int, Any], train: Callable[[int, list], tuple[list, int]]) -> None:
        self.contexts = {n: context() for n in mods}
        self.apps = {}
        for node, mod in mods.items():
            def app(message: Message, context: Context, node: int = node) -> Message:
                fitins = _flower.content_to_fitins(message.content, keep_input=True)
                arrays, examples = train(node, parameters_to_ndarrays(fitins.parameters))
                result = FitRes(Status(Code.OK, ""), ndarrays_to_parameters(arrays), examples,
                                {"loss": 1.0})
                return _flower.reply(message, _flower.fitres_to_content(result, False))

            self.apps[node] = make_ffn(app, [mod])
        self.lose: Callable[[int, int], bool] = lambda exchange, node: False
        self.exchange = 0
        self.client_seconds = self.network_seconds = 0.0
        self.bytes_up = self.bytes_down = 0
        self.raised: list[Exception] = []

    def create_message(self, content, message_type, dst_node_id, group_id, ttl=None):  # type: ignore
        if _flower.TODAY:
            return Message(content, dst_node_id, message_type, group_id=group_id)
        return Message(Metadata(0, "", 0, dst_node_id, "", group_id, ttl or 3600.0, message_type),
                       content)

    def set_run(self, run):  # type: ignore
        raise NotImplementedError

    @property
    def run(self):  # type: ignore
        raise NotImplementedError

    def get_node_ids(self) -> list[int]:
        return list(self.apps)

    def push_messages(self, messages):  # type: ignore
        raise NotImplementedError

    def pull_messages(self, message_ids):  # type: ignore
        raise NotImplementedError

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> list[Message]:
        out = []
        for message in messages:
            node = message.metadata.dst_node_id
            message.content = self.carry(message.content, up=False)
            if self.lose(self.exchange, node):
                continue
            began = time.perf_counter()
            try:
                reply = self.apps[node](message, self.contexts[node])
            except Exception as err:
                self.raised.append(err)
                reply = message.create_error_reply(Error(2, str(err)))
            self.client_seconds += time.perf_counter() - began
            reply.metadata.__dict__["_src_node_id"] = node
            if not reply.has_error():
                reply.content = self.carry(reply.content, up=True)
            out.append(reply)
        self.exchange += 1
        return out

    def carry(self, content: RecordDict, up: bool) -> RecordDict:
        began = time.perf_counter()
        out, n = carried(content)
        self.network_seconds += time.perf_counter() - began
        if up:
            self.bytes_up += n
        else:
            self.bytes_down += n
        return out


class Strategy(FedAvg):
    """FedAvg that remembers what it was given."""

    def __init__(self, nodes: list[int], **more: Any) -> None:
        super().__init__(**more)
        self.nodes = nodes
        self.seen: list[tuple[list, list]] = []

    def configure_fit(self, server_round, parameters, client_manager):  # type: ignore
        from flwr.common import FitIns

        return [(Proxy(n), FitIns(parameters, {})) for n in self.nodes]

    def aggregate_fit(self, server_round, results, failures):  # type: ignore
        self.seen.append((results, failures))
        return super().aggregate_fit(server_round, results, failures)


class App:
    """A server with a fit workflow."""

    def __init__(self, net: Net, workflow: Any, model: list[np.ndarray], nodes: list[int]) -> None:
        self.net, self.workflow = net, workflow
        self.strategy = Strategy(nodes, fraction_fit=1.0, min_fit_clients=1,
                                 min_available_clients=1)
        self.context = LegacyContext(context() if _flower.TODAY else RecordDict(),
                                     strategy=self.strategy, client_manager=SimpleClientManager())
        arrays(self.context.state)[MAIN_PARAMS_RECORD] = (
            _flower.parameters_to_record(ndarrays_to_parameters(model), False))
        self.rounds = 0
        self.server_seconds = 0.0

    def round(self) -> list[np.ndarray]:
        """Hold a round and return the model after it."""
        self.rounds += 1
        configs(self.context.state)[MAIN_CONFIGS_RECORD] = ConfigRecord(
            {Key.CURRENT_ROUND: self.rounds, Key.START_TIME: 0.0})
        self.net.exchange = 0
        net = self.net
        before = net.client_seconds + net.network_seconds
        began = time.perf_counter()
        self.workflow(net, self.context)
        elsewhere = net.client_seconds + net.network_seconds - before
        self.server_seconds += time.perf_counter() - began - elsewhere
        return self.model()

    def model(self) -> list[np.ndarray]:
        return parameters_to_ndarrays(_flower.record_to_parameters(
            arrays(self.context.state)[MAIN_PARAMS_RECORD], keep_input=True))
