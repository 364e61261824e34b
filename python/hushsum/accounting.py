"""How much privacy noisy rounds spend: certified intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from . import _sidecar
from .errors import ConfigError

DELTA = 1e-5  #: where none is given


@dataclass(frozen=True)
class Interval:
    """A certified interval: the true value is from ``lower`` to ``upper``.

    Claim ``upper``, which is also what ``float()`` gives.

    Attributes:
        upper: upper bound; ``math.inf`` if none is proved, for ``reason``.
        lower: lower bound of the same; 0 if none is proved.
        delta: the delta at which an epsilon holds.
        adversary: "public", which sees what is released, or "server", which sees who took part.
        unit: whom it protects, each "party" or each "record" of a party.
        accountant: what proves it, "PLD" or "RDP".
        reason: why ``upper`` is infinite, or "".
        neighbour: the vector of one client that attains ``lower``, as in
            "40 coordinates by 125", or "" if none is named.
    """

    upper: float
    lower: float
    delta: float | None = None
    adversary: str = "public"
    accountant: str = "PLD"
    reason: str = ""
    neighbour: str = ""
    unit: str = "party"

    @classmethod
    def from_result(cls, r: Mapping[str, Any], delta: float | None) -> "Interval":
        """Make the interval of what the sidecar answered."""
        return cls(
            upper=math.inf if r["upper"] is None else float(r["upper"]),
            lower=math.inf if r["lower"] is None else float(r["lower"]),
            delta=delta,
            adversary=r.get("adversary", ""),
            accountant=r.get("accountant", ""),
            reason=r.get("reason", ""),
            neighbour=r.get("neighbour", ""),
            unit=r.get("unit", "party"),
        )

    def __float__(self) -> float:
        return self.upper

    def __str__(self) -> str:
        at = "" if self.delta is None else f" at delta {self.delta:g}"
        least = f" (at least {self.lower:.6g})" if self.lower else ""
        text = f"at most {self.upper:.6g}{least}{at}"
        text += f", for each {self.unit}, against the {self.adversary}"
        return text + (f": {self.reason}" if self.reason else f" ({self.accountant})")


# What users of dp_accounting, Opacus and others call the same.
_SAME = {
    "sample_rate": "rate",
    "sampling_probability": "rate",
    "sampling_prob": "rate",
    "steps": "rounds",
    "num_steps": "rounds",
    "target_epsilon": "epsilon",
    "target_delta": "delta",
    "standard_deviation": "scale",
}
_COUNTS = ("rounds", "participations", "of", "factorise", "dimension", "shares")
_TAKEN = frozenset({
    "noise_multiplier", "scale", "variance", "rate", "rounds", "participations", "of", "factorise",
    "sensitivity", "dimension", "shares", "replace_one", "unit", "adversary",
})


def _run(mechanism: str, given: Mapping[str, Any], more: frozenset[str]) -> dict[str, Any]:
    """Return the parameters of a call, by their names."""
    out: dict[str, Any] = {"mechanism": mechanism}
    for name, value in given.items():
        if "laplace" in mechanism and value is not None and name in ("standard_deviation", "variance"):
            raise ConfigError(
                f"{name} is not the scale of a Laplace law", kind="config", field=name,
                advice="give its scale: of the continuous law the standard deviation over √2",
            )
        name = _SAME.get(name, name)
        if name not in _TAKEN | more:
            raise ConfigError(
                f"there is no parameter {name}", kind="config", field=name,
                advice=f"use {', '.join(sorted(_TAKEN | more))}",
            )
        if value is None:
            continue
        if name in out:
            raise ConfigError(f"{name} is given twice, under two names", kind="config", field=name)
        if name in _COUNTS:
            value = _whole(name, value)
        elif name not in ("replace_one", "unit", "adversary"):
            value = _number(name, value)
        out[name] = value
    return out


def _number(name: str, value: Any) -> float:
    try:
        x = float(value)
    except (TypeError, ValueError) as err:
        raise ConfigError(
            f"{name}: {value!r} is not a number", kind="config", field=name, advice="give a number"
        ) from err
    if not math.isfinite(x):
        raise ConfigError(
            f"{name}: {x} is not finite", kind="config", field=name, advice="give a finite number"
        )
    return x


def _whole(name: str, value: Any) -> int:
    x = _number(name, value)
    if abs(x) > 2**53:
        raise ConfigError(f"{name}: {x:g} is too many", kind="config", field=name)
    if x != int(x):
        raise ConfigError(
            f"{name}: {value!r} is not whole", kind="config", field=name,
            advice="give a whole number",
        )
    return int(x)


def epsilon(mechanism: str, *, delta: float | None = None, **parameters: Any) -> Interval:
    """Return the epsilon that rounds of a noisy sum spend at ``delta``.

    Args:
        mechanism: "gaussian", "laplace", "discrete-gaussian", "discrete-laplace" or
            "skellam".
        delta: the probability that epsilon fails to hold, 0 to below 1; default 1e-5.
        noise_multiplier: noise over sensitivity. Or ``scale``, the noise itself in the
            units of ``sensitivity`` (the standard deviation; of Laplace's b or t), or
            ``variance``, its square; of Laplace's ``scale`` alone.
        rate: the probability that a client is in a round (Poisson sampling); also
            ``sample_rate``, ``sampling_probability``. Default 1.
        rounds: with fresh noise each; also ``steps``, ``num_steps``. Default 1.
        participations: instead of ``rounds``, the most rounds that a client submits in, by its
            own ledger and no matter who picks them, out of ``of`` rounds.
        factorise: over how many rounds a client's vector is submitted in parts, with noise that
            is correlated over them; it is charged once for all of them. ``sensitivity`` bounds
            the norm of all parts together.
        sensitivity: by how much one client changes the sum (L2; L1 for Laplace).
        dimension: coordinates, for vectors under discrete Gaussian or Skellam noise.
        shares: how many discrete Gaussians add up to the noise.
        replace_one: replace a client, instead of adding or removing it.
        unit: whom it protects, "party" or "record". A coin that its party keeps secret decides
            whether a record is in a round, so that ``rate`` helps against the server too.
        adversary: "public", or "server", which sees who took part: then there is no
            amplification, except with ``unit="record"``.

    >>> float(epsilon("gaussian", noise_multiplier=1, delta=1e-5)) < 4.38
    True
    """
    p = _run(mechanism, {**parameters, "delta": delta}, frozenset({"delta"}))
    result, _ = _sidecar.current().call("account.epsilon", p)
    return Interval.from_result(result, p.get("delta", DELTA))


def delta(mechanism: str, *, epsilon: float, **parameters: Any) -> Interval:
    """Return the delta at which rounds of a noisy sum stay within ``epsilon``.

    Other parameters are those of :func:`epsilon`.
    """
    p = _run(mechanism, {**parameters, "epsilon": epsilon}, frozenset({"epsilon"}))
    result, _ = _sidecar.current().call("account.delta", p)
    return Interval.from_result(result, None)


@dataclass(frozen=True)
class Calibration:
    """What keeps rounds within a budget, and what they then spend."""

    noise_multiplier: float
    rounds: int
    rate: float
    epsilon: Interval


def calibrate(
    mechanism: str, *, epsilon: float | None = None, delta: float | None = None,
    find: str = "noise_multiplier", **parameters: Any,
) -> Calibration:
    """Find the least ``noise_multiplier``, the most ``rounds`` or the highest ``rate`` that
    keeps a budget. The other two, and the other parameters, are as in :func:`epsilon`.

    Args:
        epsilon: the budget, above 0; also ``target_epsilon``.
        delta: at which it holds; also ``target_delta``; default 1e-5.
        find: "noise_multiplier", "rounds" or "rate".
    """
    names = frozenset({"epsilon", "delta"})
    p = _run(mechanism, {**parameters, "epsilon": epsilon, "delta": delta}, names)
    if "epsilon" not in p:
        raise ConfigError("there is no epsilon", kind="config", field="epsilon",
                          advice="give the budget, such as epsilon=1")
    if find in p:
        raise ConfigError(
            f"{find} is given, and to be found", kind="config", field=find, advice="leave it out"
        )
    result, _ = _sidecar.current().call("account.calibrate", {**p, "find": find})
    return Calibration(
        result["noise_multiplier"], result["rounds"], result["rate"],
        Interval.from_result(result, p.get("delta", DELTA)),
    )


class Ledger(_sidecar.Remote):
    """What every client has spent; it refuses the round that would overspend."""

    def __init__(self, *, epsilon: float, delta: float = 1e-5, adversary: str = "public") -> None:
        """Make an empty ledger.

        Args:
            epsilon, delta: the budget of every client that does not have its own.
            adversary: against whom it holds, "public" or "server".
        """
        s = _sidecar.current()
        result, _ = s.call("ledger.new", {
            "epsilon": _number("epsilon", epsilon), "delta": _number("delta", delta),
            "adversary": adversary,
        })
        super().__init__(s, result["ledger"])
        self.adversary: str = result["adversary"]

    @classmethod
    def load(cls, state: bytes) -> "Ledger":
        """Restore the ledger that :meth:`save` saved."""
        s = _sidecar.current()
        result, _ = s.call("ledger.load", {}, [state])
        ledger = cls.__new__(cls)
        _sidecar.Remote.__init__(ledger, s, result["ledger"])
        ledger.adversary = result["adversary"]
        return ledger

    def _call(self, name: str, **parameters: Any) -> tuple[Any, list[bytes]]:
        return self._sidecar.call(name, {"ledger": self._identifier, **parameters})

    def spend(self, mechanism: str, clients: Sequence[str], **parameters: Any) -> None:
        """Record rounds for clients; parameters are those of :func:`epsilon`.

        Raises:
            BudgetError: ``name`` would overspend, and nothing was recorded.
        """
        if isinstance(clients, (str, bytes)):
            raise ConfigError(
                f"clients: {clients!r} is one, not a list of them", kind="config", field="clients",
                advice=f"give [{clients!r}]",
            )
        self._call("ledger.spend", clients=[str(c) for c in clients],
                   run=_run(mechanism, parameters, frozenset()))

    def spent(self, client: str) -> Interval:
        """Return what a client has spent at its budget's delta."""
        result, _ = self._call("ledger.spent", client=client)
        return Interval.from_result(result, result["budget_delta"])

    @property
    def clients(self) -> list[str]:
        """The clients that have spent anything, sorted."""
        result, _ = self._call("ledger.spent")
        return list(result["clients"])

    def set_budget(self, client: str, *, epsilon: float, delta: float = 1e-5) -> None:
        """Give a client its own budget."""
        self._call("ledger.budget", client=client, epsilon=_number("epsilon", epsilon),
                   delta=_number("delta", delta))

    def save(self) -> bytes:
        """Return the ledger as JSON; equal ledgers give equal bytes."""
        return self._call("ledger.save")[1][0]
