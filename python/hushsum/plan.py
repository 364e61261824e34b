"""Plans: what a job is, declared once for all sides."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Mapping

import numpy as np

from . import _sidecar
from .accounting import Interval
from .arrays import Arrays, Structure, Weighting, narrow
from .errors import ConfigError


_PEM = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----")
_PKCS8 = bytes.fromhex("302e020100300506032b657004220420")  # RFC 8410, before the 32 bytes


class Identity:
    """The Ed25519 key that a party is known by. Keep it as you keep a password."""

    def __init__(self, seed: bytes) -> None:
        """Take 32 bytes that :meth:`save` saved, or a secret store kept."""
        result, _ = _sidecar.current().call("identity", {}, [bytes(seed)])
        self._seed = bytes(seed)
        self.public: str = result["public"]  #: 64 hexadecimal digits, for the roster

    @classmethod
    def generate(cls) -> "Identity":
        """Make a new identity."""
        _, (seed,) = _sidecar.current().call("identity")
        return cls(seed)

    @classmethod
    def load(cls, path: str | Path) -> "Identity":
        """Read the identity that :meth:`save` or ``hushsumd identity new`` wrote."""
        lines = Path(path).read_text().strip().splitlines()
        try:
            if (lines[0], lines[-1]) != (_PEM[0], _PEM[1]):
                raise ValueError
            der = base64.b64decode("".join(lines[1:-1]), validate=True)
            if not der.startswith(_PKCS8) or len(der) != len(_PKCS8) + 32:
                raise ValueError
        except (ValueError, IndexError):
            raise ConfigError(
                f"{path} has no Ed25519 key in PKCS #8", kind="identity",
                advice="make one with Identity.generate().save(path)",
            ) from None
        return cls(der[len(_PKCS8) :])

    def save(self, path: str | Path) -> None:
        """Write the identity to a new file that this user alone may read: PEM of PKCS #8."""
        text = base64.b64encode(_PKCS8 + self._seed).decode()
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as f:
            f.write(f"{_PEM[0]}\n{text}\n{_PEM[1]}\n")

    def __repr__(self) -> str:
        return f"Identity(public={self.public!r})"


def seed_of(identity: Identity) -> bytes:
    """Return the secret of an identity, for a call."""
    if not isinstance(identity, Identity):
        raise ConfigError(
            f"a {type(identity).__name__} is no identity", kind="identity", field="identity",
            advice="give Identity.load(path), or Identity.generate() and keep it",
        )
    return identity._seed


@dataclass(frozen=True)
class Plan:
    """A job: rounds, in each of which the mean of the parties' vectors becomes known.

    All sides must have the same plan. Defaults are those of the library.

    Attributes:
        name: 1 to 100 printable ASCII characters; use each once for one roster.
        rounds: how many, at least 1.
        length: numbers of a vector, 1 to 2**27.
        clip: L2 norm that vectors are shortened to, in their own units.
        bits: of a coordinate on the wire, 8 to 64; 0: 32.
        noise: "discrete-gaussian", "discrete-laplace", "skellam", or None.
        epsilon: what a party may spend over all rounds, against the server; with noise.
        delta: the probability that epsilon fails; 0: 1e-5.
        drop_out: the largest part of the roster that may be missing from a sum.
        colluders: how many parties may pool all they know with the server.
        adversary: "cheating", "semi-malicious" or "curious": the server to withstand.
        classical: leaves ML-KEM out of key exchange.
        protocol: "pairwise", sessions of :class:`Party` and :class:`Server`; or "oneshot", one
            message a party with the help of a committee, see :mod:`hushsum.oneshot`.
        faults: oneshot: how many members of the committee may lie or be away; 0: a fourth.
        covered: oneshot: against a server that picks who is in by looking at submissions.
    """

    name: str
    rounds: int
    length: int
    clip: float
    bits: int = 0
    noise: str | None = None
    epsilon: float = 0.0
    delta: float = 0.0
    drop_out: float = 0.0
    colluders: int = 0
    adversary: str = "cheating"
    classical: bool = False
    protocol: str = "pairwise"
    faults: int = 0
    covered: bool = False

    def __post_init__(self) -> None:
        self._parsed()

    def _fields(self) -> dict[str, Any]:
        fields = {k: v for k, v in dataclasses.asdict(self).items() if v is not None}
        if self.adversary not in _ADVERSARIES:
            raise ConfigError(
                f"there is no adversary {self.adversary!r}", kind="config", field="adversary",
                advice=f"use one of {', '.join(_ADVERSARIES)}",
            )
        fields["adversary"] = _ADVERSARIES[self.adversary]
        if self.protocol not in ("pairwise", "oneshot"):
            raise ConfigError(
                f"there is no protocol {self.protocol!r}", kind="config", field="protocol",
                advice="use pairwise or oneshot",
            )
        if self.protocol == "pairwise":
            del fields["protocol"]
        for name in ("faults", "covered"):
            if not fields[name]:
                del fields[name]
        if self.noise is not None:
            fields["noise"] = noise_family(self.noise)
        return fields

    def _parsed(self) -> dict[str, Any]:
        result, _ = _sidecar.current().call("plan.parse", {"plan": self._fields()})
        return dict(result)

    @classmethod
    def parse(cls, text: str | bytes) -> "Plan":
        """Read a plan from its JSON form, which Go programs read too."""
        try:
            fields = json.loads(text)
        except ValueError as err:
            raise ConfigError(f"the plan is not JSON: {err}", kind="config") from err
        if not isinstance(fields, dict):
            raise ConfigError("the plan is no JSON object", kind="config")
        result, _ = _sidecar.current().call("plan.parse", {"plan": fields})
        names = {v: k for k, v in _ADVERSARIES.items()}
        result["adversary"] = names[result.get("adversary", 0)]
        return cls(**result)

    def json(self) -> str:
        """Return the JSON form."""
        return json.dumps(self._fields(), indent=2)

    def differences(self, other: "Plan") -> dict[str, tuple[Any, Any]]:
        """Return the fields in which two plans differ, with this one's value and the other's.

        What is left out counts as its default.
        """
        ours, theirs = self._parsed(), other._parsed()
        return {
            k: (ours.get(k), theirs.get(k))
            for k in sorted({*ours, *theirs})
            if ours.get(k) != theirs.get(k)
        }

    def settle(
        self,
        roster: Mapping[str, str | Identity] | Iterable[tuple[str, str]],
        *,
        committee: Mapping[str, str | Identity] | Iterable[tuple[str, str]] | None = None,
        like: Arrays | None = None,
        weighting: Weighting | None = None,
    ) -> "Settled":
        """Work the plan out for a roster.

        Args:
            roster: names and public keys (64 hexadecimal digits) of all parties, in an
                order that all sides share. It must reach every party by a way that the
                server does not control.
            committee: names and public keys of the members, of a plan of ``"oneshot"``.
            like: a model; vectors and means then have its structure. ``None``: they are
                arrays of shape ``(length,)``.
            weighting: makes means weighted ones. The length is then one more than the
                numbers of a model, for the weight.
        """
        return Settled(self, roster, committee=committee, like=like, weighting=weighting)


_NOISES = ("discrete-gaussian", "discrete-laplace", "skellam")


def noise_family(name: Any) -> str:
    """Return a family of noise that private sums can have, as calls name it."""
    family = str(name).replace("_", "-")
    if family not in _NOISES:
        raise ConfigError(
            f"there is no noise {name!r} for integers", kind="config", field="noise",
            advice=f"use one of {', '.join(_NOISES)}",
        )
    return family


_ADVERSARIES = {"cheating": 0, "semi-malicious": 1, "curious": 2}


def _people(
    which: str, given: Mapping[str, str | Identity] | Iterable[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return names and public keys of a roster or a committee."""
    try:
        items = list(given.items() if isinstance(given, Mapping) else given)
        return [(str(name), key.public if isinstance(key, Identity) else str(key))
                for name, key in items]
    except (TypeError, ValueError):
        raise ConfigError(
            f"the {which} is no dictionary of names and public keys", kind="config", field=which,
            advice='give {"name": "64 hexadecimal digits", …}, or such pairs',
        ) from None


class Settled:
    """A plan worked out for a roster. Make it by :meth:`Plan.settle`.

    Attributes:
        plan: the plan.
        roster: names and public keys, in order.
        committee: the same of the members; ``None`` of a plan without.
        digest: 64 hexadecimal digits over all that the sides must agree on.
        min_survivors: the fewest parties in a sum.
        std_dev: of the noise in each number of a mean of so few, in the vectors' units.
    """

    def __init__(
        self,
        plan: Plan,
        roster: Mapping[str, str | Identity] | Iterable[tuple[str, str]],
        *,
        committee: Mapping[str, str | Identity] | Iterable[tuple[str, str]] | None = None,
        like: Arrays | None = None,
        weighting: Weighting | None = None,
    ) -> None:
        self.plan = plan
        self.roster = _people("roster", roster)
        self.committee = None if committee is None else _people("committee", committee)
        if self.committee is None and plan.protocol == "oneshot":
            raise ConfigError(
                "sums of one message take a committee", kind="config", field="committee",
                advice="settle the plan with committee={name: public key, …}",
            )
        self.weighting = weighting
        self.structure = Structure(np.zeros(plan.length - (weighting is not None))
                                   if like is None else like)
        expected = plan.length - (weighting is not None)
        if self.structure.size != expected:
            raise ConfigError(
                f"the model has {self.structure.size} numbers and the plan {plan.length}"
                + (" with one for the weight" if weighting else ""),
                kind="length", field="length",
                advice=f"use length={self.structure.size + (weighting is not None)}",
            )
        fields = plan._fields()
        if weighting is not None:
            # Sides that weight otherwise must not meet: the name is part of every key.
            fields["name"] += f" weighted {weighting.max_weight:.9g} {weighting.share:.9g}"
            fields["clip"] = weighting.norm(plan.clip)
        self._sidecar = _sidecar.current()
        lists: dict[str, Any] = {"roster": self.roster}
        if self.committee is not None:
            lists["committee"] = self.committee
        result, _ = self._sidecar.call("plan.settle", {"plan": fields, **{
            which: [{"name": n, "key": k} for n, k in people] for which, people in lists.items()}})
        self._remote = _sidecar.Remote(self._sidecar, result["settled"])
        self.digest: str = result["digest"]
        self.min_survivors: int = result["min_survivors"]
        self.std_dev: float = result["std_dev"]

    def __reduce__(self) -> Any:
        return _settle, (self.plan, self.roster, self.structure, self.weighting, self.committee)

    def __repr__(self) -> str:
        return f"<plan {self.plan.name!r} for {len(self.roster)} parties, {self.digest[:16]}>"

    @property
    def identifier(self) -> int:
        """What the sidecar knows the plan by."""
        self._sidecar.check()
        return self._remote._identifier

    def explain(self) -> str:
        """Say in words what the plan means for a party."""
        result, _ = self._sidecar.call("plan.explain", {"settled": self.identifier})
        return str(result["text"])

    def spent(self, rounds: int | None = None) -> Interval:
        """Return the epsilon that so many rounds spend of every party (default: all)."""
        n = self.plan.rounds if rounds is None else rounds
        result, _ = self._sidecar.call("plan.spent", {"settled": self.identifier, "rounds": n})
        return Interval.from_result(result, self.plan.delta or 1e-5)

    def vector(
        self, update: Arrays, weight: float | None = None, numbers: str = "float64"
    ) -> _sidecar.Blob:
        """Return what a party submits for an update, for a call."""
        if self.weighting is None:
            if weight is not None:
                raise ConfigError(
                    "the plan has no weights", kind="config", field="weight",
                    advice="settle it with weighting=hushsum.Weighting(max_weight)",
                )
            return self.structure.blob(update, numbers)
        weighting, clip = self.weighting, self.plan.clip

        def write(into: memoryview) -> None:
            x = np.frombuffer(into, "<f8")
            self.structure.write(update, x[:-1])
            weighting.write(x[:-1], 1.0 if weight is None else weight, clip, x)

        return _sidecar.Blob(8 * self.plan.length, write)

    def submission(
        self, update: Arrays | None, weight: float | None = None, numbers: str = "float64"
    ) -> _sidecar.Blob | bytes:
        """Return what :meth:`vector` does, and nothing where there is no update."""
        if update is not None:
            return self.vector(update, weight, numbers)
        if self.plan.noise is None:
            raise ConfigError(
                "there is no update, and zeros without noise would be seen in the mean",
                kind="config", field="update", advice="submit nothing in this round",
            )
        return b""

    def warn(self, update: Arrays | None, unfit: str | None) -> None:
        """Warn of an update that zeros with noise were submitted for."""
        if unfit is not None and update is not None:
            warnings.warn(
                f"the update{self.structure.not_finite(update) or ''} has NaN or infinity: zeros "
                "with noise were submitted, so that others cannot tell",
                RuntimeWarning, stacklevel=3,
            )

    def numbers(self, update: Arrays) -> str:
        """Return the type that a vector of an update goes in. Weights are worked out in
        float64."""
        return "float32" if self.weighting is None and narrow(update) else "float64"

    @property
    def mean_numbers(self) -> str:
        """The type that a mean comes in."""
        return "float64" if self.weighting is not None else self.structure.numbers

    def model(
        self, mean: bytearray, parties: int, numbers: str | None = None
    ) -> tuple[Any, float | None]:
        """Return the mean that a call has answered with, in its place, and the sum of the
        weights. Its numbers are of ``mean_numbers`` or the type that is given."""
        x = np.frombuffer(mean, np.dtype(numbers or self.mean_numbers).newbyteorder("<"))
        if self.weighting is None:
            return self.structure.read(x, copy=False), None
        least = 0.0 if self.plan.noise is None else 1.0
        x, total = self.weighting.mean(x, parties, self.plan.clip, least)
        return self.structure.read(x, copy=False), total


def _settle(
    plan: Plan, roster: list[tuple[str, str]], structure: Structure, weighting: Weighting | None,
    committee: list[tuple[str, str]] | None,
) -> Settled:
    s = Settled(plan, roster, committee=committee, weighting=weighting)
    s.structure = structure
    return s
