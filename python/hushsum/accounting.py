"""How much privacy noisy rounds spend: certified claims."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Mapping, NoReturn, Sequence

from . import _sidecar
from .errors import BudgetError, ConfigError, StatementError

class _Said:
    """What an epsilon is about, in the form that all programs of the project write."""

    def __init__(self, form: Mapping[str, Any] | str, words: str | None = None) -> None:
        """Take the JSON of one, as a text or a dictionary."""
        self._form: dict[str, Any] = json.loads(form) if isinstance(form, str) else dict(form)
        self._words = words or self._say()

    def _say(self) -> str:
        result, _ = _sidecar.current().call("claim.words", {self._name: self._form})
        words: str = result["words"]
        return words

    _name = ""

    @property
    def form(self) -> dict[str, Any]:
        """The JSON of it, as a dictionary."""
        return dict(self._form)

    @property
    def delta(self) -> float:
        """The probability that epsilon fails to hold."""
        return float(self._form["delta"])

    @property
    def unit(self) -> str:
        """Whom epsilon protects: "party", "record", or as in "records of each patient"."""
        return str(self._form["unit"])

    @property
    def adjacency(self) -> str:
        """How neighbours differ: "zero-out", "add-remove" or "replace-one"."""
        return str(self._form["adjacency"])

    @property
    def server(self) -> str:
        """Against whom it holds, from the weakest: "public", which sees released sums alone, or a
        server that is "curious", "semi-malicious" or "cheating"."""
        return str(self._form["server"])

    @property
    def colluders(self) -> float:
        """How many parties may help the server; ``math.inf`` for any number."""
        some = self._form["colluders"]
        return math.inf if some == "any" else int(some)

    @property
    def committees(self) -> list[dict[str, Any]]:
        """The committees that it rests on: the digest of each ``list``, how many ``members`` it
        has, and how many of these may be ``in_league`` with the server."""
        return [dict(c) for c in self._form["committees"]]

    @property
    def assumes(self) -> tuple[str, ...]:
        """What it assumes, by names that ``docs/privacy.md`` of the project explains."""
        return tuple(self._form["assumes"])

    def __str__(self) -> str:
        return self._words

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._form!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._form == getattr(other, "_form")

    def __hash__(self) -> int:
        return hash(json.dumps(self._form, sort_keys=True))

    def __reduce__(self) -> Any:
        return type(self), (self._form, self._words)

    def _refuse(self, other: object) -> NoReturn:
        raise StatementError(
            "an epsilon is no number to compare or to add: it says something of a unit, against an "
            "adversary, at a delta", kind="statement",
            advice="use Claim.within(budget), or a Ledger to add rounds up",
        )

    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refuse


class Budget(_Said):
    """An epsilon that was declared ahead, with its delta and what it is about.

    :attr:`Settled.budget` and :meth:`Ledger.budget` have one.
    """

    _name = "budget"

    @property
    def epsilon(self) -> float:
        """The most that may be spent."""
        return float(self._form["epsilon"])


class Claim(_Said):
    """An epsilon that is certified, with all that it is about.

    It neither compares nor adds: :meth:`within` holds it against a budget, and a :class:`Ledger`
    adds rounds up.
    """

    _name = "claim"

    @property
    def epsilon(self) -> float:
        """The upper bound, to be claimed; ``math.inf`` if none is proved, for ``reason``."""
        x = self._form["epsilon"]
        return math.inf if x is None else float(x)

    @property
    def at_least(self) -> float:
        """A lower bound of the same; 0 if none is proved."""
        x = self._form["at_least"]
        return math.inf if x is None else float(x)

    @property
    def accountant(self) -> str:
        """What proves the bounds, "PLD", "RDP" or "Gaussian"."""
        return str(self._form.get("accountant", ""))

    @property
    def neighbour(self) -> str:
        """The vector of one party that attains ``at_least``, as in "40 coordinates by 125", or ""
        if none is named."""
        return str(self._form.get("neighbour", ""))

    @property
    def reason(self) -> str:
        """Why ``epsilon`` is infinite, or ""."""
        return str(self._form.get("reason", ""))

    def within(self, budget: Budget) -> bool:
        """Return whether the claim is within a budget.

        Raises:
            StatementError: they are about different units or adversaries, or the claim assumes
                more: then neither says anything about the other.
        """
        if not isinstance(budget, Budget):
            raise ConfigError(f"{budget!r} is no Budget", kind="config", field="budget",
                              advice="give Settled.budget, or that of a Ledger")
        try:
            _sidecar.current().call("claim.within", {"claim": self._form, "budget": budget._form})
        except BudgetError:
            return False
        return True


def _claim(result: Mapping[str, Any]) -> Claim:
    """Make the claim that the sidecar has answered with."""
    return Claim(result["claim"], result["words"])


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


def epsilon(mechanism: str, *, delta: float | None = None, **parameters: Any) -> Claim:
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

    >>> print(epsilon("gaussian", noise_multiplier=1, delta=1e-5, adversary="server"))
    epsilon 4.3772 (at least 4.3771) at delta 1e-05 for each party, against a server that is \
curious; assumes sums
    """
    p = _run(mechanism, {**parameters, "delta": delta}, frozenset({"delta"}))
    result, _ = _sidecar.current().call("account.epsilon", p)
    return _claim(result)


def delta(mechanism: str, *, epsilon: float, **parameters: Any) -> Claim:
    """Return the claim that rounds of a noisy sum stay within ``epsilon``, with the least ``delta``
    that is certified.

    Other parameters are those of :func:`epsilon`.
    """
    p = _run(mechanism, {**parameters, "epsilon": epsilon}, frozenset({"epsilon"}))
    result, _ = _sidecar.current().call("account.delta", p)
    return _claim(result)


@dataclass(frozen=True)
class Calibration:
    """What keeps rounds within a budget, and what they then spend."""

    noise_multiplier: float
    rounds: int
    rate: float
    spent: Claim


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
        result["noise_multiplier"], result["rounds"], result["rate"], _claim(result),
    )


class Ledger(_sidecar.Remote):
    """What every client has spent; it refuses the round that would overspend."""

    def __init__(self, *, epsilon: float, delta: float = 1e-5, adversary: str = "public",
                 unit: str = "party") -> None:
        """Make an empty ledger.

        Args:
            epsilon, delta: the budget of every client that does not have its own.
            adversary: against whom it holds, "public" or "server".
            unit: whom it protects, "party" or "record": it refuses rounds of the other.
        """
        s = _sidecar.current()
        result, _ = s.call("ledger.new", {
            "epsilon": _number("epsilon", epsilon), "delta": _number("delta", delta),
            "adversary": adversary, "unit": unit,
        })
        super().__init__(s, result["ledger"])

    @classmethod
    def load(cls, state: bytes) -> "Ledger":
        """Restore the ledger that :meth:`save` saved."""
        s = _sidecar.current()
        result, _ = s.call("ledger.load", {}, [state])
        ledger = cls.__new__(cls)
        _sidecar.Remote.__init__(ledger, s, result["ledger"])
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

    def spent(self, client: str) -> Claim:
        """Return what a client has spent at its budget's delta."""
        result, _ = self._call("ledger.spent", client=client)
        return _claim(result)

    def budget(self, client: str) -> Budget:
        """Return a client's budget."""
        result, _ = self._call("ledger.spent", client=client)
        return Budget(result["budget"])

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
