"""What Flower calls its records and messages: the names of 1.9, and those since 1.18. The
adapter uses the ones that exist."""

from __future__ import annotations

from typing import Any

from flwr.common import Code, FitRes, Message, Parameters, Status

try:
    from flwr.common import ConfigRecord, RecordDict
    from flwr.common import recorddict_compat as _compat
    from flwr.server.grid import Grid

    TODAY = True
    _CONFIGS, _ARRAYS = "config_records", "array_records"
    fitins_to_content = _compat.fitins_to_recorddict
    content_to_fitins = _compat.recorddict_to_fitins
    fitres_to_content = _compat.fitres_to_recorddict
    content_to_fitres = _compat.recorddict_to_fitres
    parameters_to_record = _compat.parameters_to_arrayrecord
    record_to_parameters = _compat.arrayrecord_to_parameters
except ImportError:  # before 1.18
    from flwr.common import ConfigsRecord as ConfigRecord
    from flwr.common import RecordSet as RecordDict
    from flwr.common import recordset_compat as _compat
    from flwr.server.driver import Driver as Grid

    TODAY = False
    _CONFIGS, _ARRAYS = "configs_records", "parameters_records"
    fitins_to_content = _compat.fitins_to_recordset
    content_to_fitins = _compat.recordset_to_fitins
    fitres_to_content = _compat.fitres_to_recordset
    content_to_fitres = _compat.recordset_to_fitres
    parameters_to_record = _compat.parameters_to_parametersrecord
    record_to_parameters = _compat.parametersrecord_to_parameters

try:
    from flwr.common import MessageType
except ImportError:
    from flwr.common.constant import MessageType

__all__ = [
    "ConfigRecord", "Grid", "MessageType", "Parameters", "RecordDict", "TODAY", "arrays", "configs",
    "content_to_fitins", "content_to_fitres", "fitins_to_content", "fitres_to_content",
    "instruction", "nothing", "parameters_to_record", "record_to_parameters", "reply",
]


def configs(content: Any) -> Any:
    """Return the records of settings of a content or a state, by name."""
    return getattr(content, _CONFIGS)


def arrays(content: Any) -> Any:
    """Return the records of arrays of a content or a state, by name."""
    return getattr(content, _ARRAYS)


def nothing(like: Parameters) -> Any:
    """Return the content of a result that says no more than that training is over."""
    empty = Parameters(tensors=[], tensor_type=like.tensor_type)
    return fitres_to_content(FitRes(Status(Code.OK, ""), empty, 1, {}), keep_input=True)


def instruction(grid: Any, content: Any, node: int, group: str) -> Any:
    """Make a message of training for a node."""
    if TODAY:
        return Message(content=content, message_type=MessageType.TRAIN, dst_node_id=node,
                       group_id=group)
    return grid.create_message(content=content, message_type=MessageType.TRAIN, dst_node_id=node,
                               group_id=group)


def reply(message: Any, content: Any) -> Any:
    """Make the answer to a message."""
    return Message(content, reply_to=message) if TODAY else message.create_reply(content)
