"""Stands for Flower where it is not there: the records, messages and functions that the adapter
and its tests use, by the names of 1.9 or by those that came with 1.18 and are today's, written
down from Flower's published source. It checks the types of what is put into records, as that
does, and carries no message over a network."""

from __future__ import annotations

import io
import pickle
import sys
import types
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

SOURCES = {"double-1.9": False, "double-1.18": True}


class Code(Enum):
    OK = 0


@dataclass
class Status:
    code: Code
    message: str


@dataclass
class Error:
    code: int
    reason: str | None = None


@dataclass
class Parameters:
    tensors: list[bytes]
    tensor_type: str


@dataclass
class FitIns:
    parameters: Parameters
    config: dict[str, Any]


@dataclass
class FitRes:
    status: Status
    parameters: Parameters
    num_examples: int
    metrics: dict[str, Any]


@dataclass
class Array:
    data: bytes
    stype: str


class Record(dict):
    """A dictionary by strings of values of some types."""

    allowed: tuple[type, ...] = ()

    def __init__(self, values: Any = ()) -> None:
        super().__init__()
        for k, v in dict(values).items():
            self[k] = v

    def __setitem__(self, key: str, value: Any) -> None:
        if type(key) is not str or not self.fits(value):
            raise TypeError(f"{key!r}: {type(value)}")
        super().__setitem__(key, value)

    def fits(self, value: Any) -> bool:
        if type(value) is list:
            return all(type(v) in self.allowed for v in value)
        return type(value) in self.allowed


class ConfigRecord(Record):
    allowed = (bool, bytes, float, int, str)


class MetricRecord(Record):
    allowed = (float, int)


class ArrayRecord(Record):
    allowed = (Array,)


def content_class(names: tuple[str, str, str]) -> type:
    """Make the class of contents and states, with three records by these names."""

    class Content:
        def __init__(self) -> None:
            for name in names:
                setattr(self, name, {})

        def __reduce__(self) -> Any:
            return _rebuild, (names, self.__dict__)

    return Content


def _rebuild(names: tuple[str, str, str], values: dict[str, Any]) -> Any:
    content = sys.modules["flwr.common"].__dict__["_content"]()
    content.__dict__.update(values)
    return content


class Metadata:
    def __init__(self, run_id: int, message_id: str, src_node_id: int, dst_node_id: int,
                 reply_to_message: str, group_id: str, ttl: float, message_type: str) -> None:
        self._src_node_id, self.dst_node_id = src_node_id, dst_node_id
        self.group_id, self.message_type = group_id, message_type

    @property
    def src_node_id(self) -> int:
        return self._src_node_id


class OldMessage:
    def __init__(self, metadata: Metadata, content: Any = None, error: Error | None = None) -> None:
        if (content is None) == (error is None):
            raise ValueError("either content or error")
        self.metadata, self.content, self.error = metadata, content, error

    def has_error(self) -> bool:
        return self.error is not None

    def _back(self) -> Metadata:
        m = self.metadata
        return Metadata(0, "", m.dst_node_id, m.src_node_id, "", m.group_id, 0.0, m.message_type)

    def create_reply(self, content: Any) -> "OldMessage":
        return OldMessage(self._back(), content)

    def create_error_reply(self, error: Error) -> "OldMessage":
        return OldMessage(self._back(), None, error)


class Message(OldMessage):
    def __init__(self, what: Any = None, dst_node_id: int | None = None,
                 message_type: str | None = None, *, content: Any = None,
                 group_id: str | None = None, reply_to: "Message | None" = None) -> None:
        content = what if content is None else content
        if reply_to is not None:
            if not (dst_node_id is message_type is group_id is None):
                raise TypeError("a reply goes where its message came from")
            metadata = reply_to._back()
        elif type(dst_node_id) is int and type(message_type) is str:
            metadata = Metadata(0, "", 0, dst_node_id, "", group_id or "", 0.0, message_type)
        else:
            raise TypeError("a message needs a node and a type")
        error = content if isinstance(content, Error) else None
        super().__init__(metadata, content if error is None else None, error)

    def create_reply(self, content: Any) -> OldMessage:
        raise DeprecationWarning("create_reply")

    def create_error_reply(self, error: Error) -> OldMessage:
        return Message(error, reply_to=self)


def ndarrays_to_parameters(arrays: list[np.ndarray]) -> Parameters:
    tensors = []
    for a in arrays:
        out = io.BytesIO()
        np.save(out, a, allow_pickle=False)
        tensors.append(out.getvalue())
    return Parameters(tensors, "numpy.ndarray")


def parameters_to_ndarrays(parameters: Parameters) -> list[np.ndarray]:
    return [np.load(io.BytesIO(t), allow_pickle=False) for t in parameters.tensors]


def parameters_to_record(parameters: Parameters, keep_input: bool) -> ArrayRecord:
    return ArrayRecord({str(i): Array(t, parameters.tensor_type)
                        for i, t in enumerate(parameters.tensors)})


def record_to_parameters(record: ArrayRecord, keep_input: bool) -> Parameters:
    arrays = list(record.values())
    return Parameters([a.data for a in arrays], arrays[0].stype if arrays else "")


@dataclass
class History:
    metrics: list[Any] = field(default_factory=list)

    def add_metrics_distributed_fit(self, server_round: int, metrics: Any) -> None:
        self.metrics.append(metrics)


class FedAvg:
    def __init__(self, **more: Any) -> None: ...

    def aggregate_fit(self, server_round: int, results: list, failures: list) -> Any:
        if not results:
            return None, {}
        weights = [r.num_examples for _, r in results]
        models = zip(*(parameters_to_ndarrays(r.parameters) for _, r in results))
        return ndarrays_to_parameters([
            np.average(m, axis=0, weights=weights).astype(m[0].dtype) for m in models]), {}


def install(today: bool) -> None:
    """Make ``flwr`` importable, with these names."""
    configs, metrics, arrays = (
        ("config_records", "metric_records", "array_records") if today else
        ("configs_records", "metrics_records", "parameters_records"))
    content = content_class((configs, metrics, arrays))

    def to_ins(of: Any, keep_input: bool) -> FitIns:
        return FitIns(record_to_parameters(getattr(of, arrays)["fitins.parameters"], keep_input),
                      dict(getattr(of, configs)["fitins.config"]))

    def from_ins(ins: FitIns, keep_input: bool) -> Any:
        out = content()
        getattr(out, arrays)["fitins.parameters"] = parameters_to_record(ins.parameters, True)
        getattr(out, configs)["fitins.config"] = ConfigRecord(ins.config)
        return out

    def to_res(of: Any, keep_input: bool) -> FitRes:
        status = getattr(of, configs)["fitres.status"]
        return FitRes(
            Status(Code(status["code"]), status["message"]),
            record_to_parameters(getattr(of, arrays)["fitres.parameters"], keep_input),
            getattr(of, metrics)["fitres.num_examples"]["num_examples"],
            dict(getattr(of, configs)["fitres.metrics"]))

    def from_res(res: FitRes, keep_input: bool) -> Any:
        out = content()
        getattr(out, configs)["fitres.metrics"] = ConfigRecord(res.metrics)
        getattr(out, metrics)["fitres.num_examples"] = MetricRecord(
            {"num_examples": res.num_examples})
        getattr(out, arrays)["fitres.parameters"] = parameters_to_record(res.parameters, True)
        getattr(out, configs)["fitres.status"] = ConfigRecord(
            {"code": res.status.code.value, "message": res.status.message})
        return out

    class Context:
        def __init__(self, *a: Any) -> None:
            self.state = a[3] if today else a[0]

    class LegacyContext(Context):
        def __init__(self, of: Any, strategy: Any, client_manager: Any) -> None:
            super().__init__(*((0, 0, {}, of.state, {}) if today else (of,)))
            self.strategy, self.client_manager, self.history = strategy, client_manager, History()

    class Proxy:
        """What protobuf would make of a content."""

        def __init__(self, of: Any) -> None:
            self.of = of

        def SerializeToString(self) -> bytes:
            return pickle.dumps(self.of)

        @staticmethod
        def FromString(data: bytes) -> "Proxy":
            return Proxy(pickle.loads(data))

    class ClientProxy:
        def __init__(self, cid: str) -> None:
            self.cid = cid

    def make_ffn(app: Any, mods: list[Any]) -> Any:
        (mod,) = mods
        return lambda message, context: mod(message, context, app)

    train = types.SimpleNamespace(TRAIN="train")
    kind, old = ("recorddict", "dict") if today else ("recordset", "set")
    compat = {
        f"record{old}_to_fitins": to_ins, f"fitins_to_record{old}": from_ins,
        f"record{old}_to_fitres": to_res, f"fitres_to_record{old}": from_res,
        ("parameters_to_arrayrecord" if today else "parameters_to_parametersrecord"):
            parameters_to_record,
        ("arrayrecord_to_parameters" if today else "parametersrecord_to_parameters"):
            record_to_parameters,
    }
    serde = {f"{kind}_to_proto": Proxy, f"{kind}_from_proto": lambda p: p.of}
    net = type("Grid" if today else "Driver", (), {})
    modules: dict[str, dict[str, Any]] = {
        "flwr": {},
        "flwr.client": {},
        "flwr.client.mod": {"make_ffn": make_ffn},
        "flwr.common": {
            "Code": Code, "Context": Context, "Error": Error, "FitIns": FitIns, "FitRes": FitRes,
            "Message": Message if today else OldMessage, "Metadata": Metadata,
            "Parameters": Parameters, "Status": Status, "_content": content,
            "ndarrays_to_parameters": ndarrays_to_parameters,
            "parameters_to_ndarrays": parameters_to_ndarrays,
            **({"RecordDict": content, "ConfigRecord": ConfigRecord, "MessageType": train}
               if today else {"RecordSet": content, "ConfigsRecord": ConfigRecord}),
        },
        "flwr.common.constant": {} if today else {"MessageType": train},
        "flwr.common.logger": {"log": lambda *a, **k: None},
        f"flwr.common.{kind}_compat": compat,
        "flwr.common.serde": serde,
        "flwr.proto": {},
        f"flwr.proto.{kind}_pb2": {"RecordDict" if today else "RecordSet": Proxy},
        "flwr.server": {},
        "flwr.server.client_manager": {"SimpleClientManager": type("Manager", (), {})},
        "flwr.server.client_proxy": {"ClientProxy": ClientProxy},
        "flwr.server.compat": {},
        "flwr.server.compat.legacy_context": {"LegacyContext": LegacyContext},
        f"flwr.server.{'grid' if today else 'driver'}": {net.__name__: net},
        "flwr.server.strategy": {"FedAvg": FedAvg},
        "flwr.server.workflow": {},
        "flwr.server.workflow.constant": {
            "MAIN_CONFIGS_RECORD": "config", "MAIN_PARAMS_RECORD": "parameters",
            "Key": types.SimpleNamespace(CURRENT_ROUND="current_round", START_TIME="start_time"),
        },
    }
    for name, names in modules.items():
        module = types.ModuleType(name)
        module.__path__ = []  # type: ignore[attr-defined]
        module.__dict__.update(names)
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)
