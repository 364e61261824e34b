"""Gradients of single records with PyTorch, for jobs whose unit is a record.

It needs PyTorch 2.0 or later, or 1.13 with functorch.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Mapping

import numpy as np
import torch

from .errors import ConfigError

try:
    from torch.func import functional_call, grad, vmap  # type: ignore[import]

    _DROPS = True
except ImportError:  # before 2.0
    from functorch import grad, vmap  # type: ignore[import]
    from torch.nn.utils.stateless import functional_call

    _DROPS = False  # its vmap tosses no coins for a dropout

_Module = torch.nn.Module
# vmap and grad keep their levels in a table of the process, which PyTorch 1.13 does not lock:
# where parties are threads of one process, their calls fail with an internal assertion.
_transforming = threading.Lock()


def gradients(
    module: _Module, loss: Callable[[Any, Any], Any]
) -> Callable[[Mapping[str, np.ndarray], Any], dict[str, Any]]:
    """Return a function for ``train``: the gradient of the loss at each record.

    The model of the job has the module's parameters by their names, those of
    ``named_parameters``; a parameter that it leaves out stays as it is in the module.

    Args:
        module: what maps inputs to outputs. It must not mix the records of a batch.
        loss: of an output and a target, both of one record and with a first dimension of 1, such
            as ``torch.nn.functional.cross_entropy``.

    Raises:
        ConfigError: a layer of the module mixes records, as batch normalisation does; or drops
            numbers in training, before PyTorch 2.0.
    """
    for name, layer in module.named_modules():
        if isinstance(layer, torch.nn.modules.batchnorm._NormBase) and (
            layer.track_running_stats
            or isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)
        ):
            raise ConfigError(
                f"the layer {name or 'itself'} is a {type(layer).__name__}, which mixes records",
                kind="config", field="module",
                advice="use GroupNorm or LayerNorm: no clip bounds what one record does here",
            )
        if (isinstance(layer, torch.nn.modules.dropout._DropoutNd) and layer.training
                and 0 < layer.p < 1 and not _DROPS):
            raise ConfigError(
                f"the layer {name or 'itself'} is a {type(layer).__name__}, of which this PyTorch "
                "makes no gradients of single records", kind="config", field="module",
                advice="call module.eval() first, leave the layer out, or use PyTorch 2.0",
            )
    fixed = {name: t.detach() for of in (module.named_parameters(), module.named_buffers())
             for name, t in of}

    def one(own: dict[str, Any], rest: dict[str, Any], x: Any, y: Any) -> Any:
        output = functional_call(module, {**rest, **own}, (x.unsqueeze(0),))
        return loss(output, y.unsqueeze(0))

    each = vmap(grad(one), in_dims=(None, None, 0, 0), randomness="different")

    def of(model: Mapping[str, np.ndarray], rows: Any) -> dict[str, Any]:
        own = {}
        for name, value in model.items():
            if name not in fixed:
                raise ConfigError(
                    f"the module has no parameter {name!r}", kind="config", field="model.tensor",
                    advice="name the job's tensors as named_parameters does",
                )
            own[name] = torch.as_tensor(value).to(fixed[name])
        like = next(iter(own.values()))
        if not isinstance(rows, (tuple, list)) or len(rows) != 2:
            raise ConfigError(
                "the rows are not inputs and targets", kind="config", field="rows",
                advice="give (x, y), and in a job with privacy.group (x, y, group)",
            )
        x, y = (torch.as_tensor(part).to(like.device) for part in rows)
        if x.is_floating_point():
            x = x.to(like.dtype)
        rest = {name: t for name, t in fixed.items() if name not in own}
        with _transforming:
            return dict(each(own, rest, x, y))

    return of
