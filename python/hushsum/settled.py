"""Jobs worked out for their parties, and who these are."""

from __future__ import annotations

import base64
import os
import warnings
from pathlib import Path
from typing import Any, Iterable, Mapping, Protocol, Union, runtime_checkable

import numpy as np

from . import _sidecar
from .accounting import Budget, Claim, _claim
from .arrays import Arrays, Structure, narrow
from .errors import ConfigError
from .records import Coins


_PEM = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----")
_PKCS8 = bytes.fromhex("302e020100300506032b657004220420")  # RFC 8410, before the 32 bytes


class Identity:
    """The Ed25519 key that a party is known by. Keep it like a password."""

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
            f"a {type(identity).__name__} is not an identity", kind="identity", field="identity",
            advice="give Identity.load(path), or Identity.generate() and keep it",
        )
    return identity._seed


People = Union[Mapping[str, Union[str, Identity]], Iterable[tuple[str, str]]]
"""Names and public keys (64 hexadecimal digits), in an order that all sides share."""


@runtime_checkable
class Declares(Protocol):
    """A job that can be settled: any :class:`Job`."""

    @property
    def name(self) -> str:
        """What the job is called."""

    def _settling(self) -> tuple[str, dict[str, Any], list[bytes]]:
        """Return the call that settles it."""


def _people(which: str, given: People) -> list[dict[str, str]]:
    """Return a roster or a committee, for a call."""
    try:
        items = list(given.items() if isinstance(given, Mapping) else given)
        return [{"name": str(name), "key": key.public if isinstance(key, Identity) else str(key)}
                for name, key in items]
    except (TypeError, ValueError):
        raise ConfigError(
            f"the {which} is not a dictionary of names and public keys", kind="config", field=which,
            advice='give {"name": "64 hexadecimal digits", …}, or such pairs',
        ) from None


def _fitting(job: Any, like: Any, size: int) -> str:
    """Return what to do about a model that has more or fewer numbers than the job."""
    tensors = getattr(getattr(job, "model", None), "tensor", ())
    for t in tensors:
        shape = np.shape(like[t.name]) if isinstance(like, dict) and t.name in like else None
        if shape != tuple(t.shape):
            has = "does not have it" if shape is None else f"has {shape}"
            return (f"the job's tensor {t.name} has the shape {tuple(t.shape)}, and the model "
                    f"{has}: change one of them")
    if tensors:
        return "give a model of the tensors of the job, and of no others"
    return f"declare model.length={size}"


class Settled:
    """A job worked out for its parties. Make it with :meth:`Job.settle`.

    Attributes:
        job: the job.
        roster: names and public keys, in order.
        committee: the same for the members; ``None`` for a job without one.
        digest: 64 hexadecimal digits over all that the sides must agree on.
        rounds: how many there are, each of one sum.
        length: numbers of a vector.
        trains: whether the job trains its model itself, on rows.
        weighs: whether means are weighted.
        measures: whether loss and accuracy are summed with the updates.
        max_weight: the largest weight of an update, 0 if they have none.
        min_survivors: the fewest parties in a sum.
        std_dev: of the noise in each number of a mean of so few, in the vectors' units.
        budget: what no party spends more than; ``None`` for a job without one.
    """

    def __init__(
        self,
        job: Declares,
        roster: People | None = None,
        *,
        committee: People | None = None,
        like: Arrays | None = None,
        **tryout: Any,
    ) -> None:
        if not isinstance(job, Declares):
            raise no_job(job)
        call, parameters, blobs = job._settling()
        for which, given in (("roster", roster), ("committee", committee)):
            if given is not None:
                parameters[which] = _people(which, given)
        self.job = job
        self._sidecar = _sidecar.current()
        result, _ = self._sidecar.call(call, {**parameters, **tryout}, blobs)
        self._remote = _sidecar.Remote(self._sidecar, result["settled"])
        self.roster: list[tuple[str, str]] = [(m["name"], m["key"]) for m in result["roster"]]
        members = result.get("committee")
        self.committee = None if members is None else [(m["name"], m["key"]) for m in members]
        self.digest: str = result["digest"]
        self.rounds: int = result["rounds"]
        self.length: int = result["length"]
        self.trains: bool = result["trains"]
        self.weighs: bool = result["weighs"]
        self.measures: bool = result["measures"]
        self.max_weight: int = result["max_weight"]
        self.min_survivors: int = result["min_survivors"]
        self.std_dev: float = result["std_dev"]
        self.budget = None if result["budget"] is None else Budget(result["budget"])
        self._coins = Coins(result["coins"]) if "coins" in result else None
        if like is None and "tensors" in result:
            like = {t["name"]: np.zeros(t["shape"]) for t in result["tensors"]}
        self.structure = Structure(np.zeros(self.length) if like is None else like)
        if self.structure.size != self.length:
            raise ConfigError(
                f"the model has {self.structure.size} numbers and the job {self.length}",
                kind="length", field="model",
                advice=_fitting(job, like, self.structure.size),
            )

    def __reduce__(self) -> Any:
        return _settle, (self.job, self.roster, self.structure, self.committee)

    def __repr__(self) -> str:
        return f"<job {self.job.name!r} of {len(self.roster)} parties, {self.digest[:16]}>"

    @property
    def identifier(self) -> int:
        """What the sidecar knows the job by."""
        self._sidecar.check()
        return self._remote._identifier

    def explain(self) -> tuple[str, ...]:
        """Return what the job declares, in sentences, as :meth:`Job.explain` does."""
        result, _ = self._sidecar.call("job.explain", {"settled": self.identifier})
        return tuple(result["explain"])

    def spent(self, rounds: int | None = None) -> Claim | None:
        """Return the epsilon that this many rounds spend (default: all); ``None`` without noise,
        where none holds."""
        n = self.rounds if rounds is None else rounds
        result, _ = self._sidecar.call("job.spent", {"settled": self.identifier, "rounds": n})
        return None if result["claim"] is None else _claim(result)

    @property
    def coins(self) -> Coins | None:
        """How a function of one's own draws records; ``None``: the job does it, or draws none.
        """
        return None if self.trains else self._coins

    def numbers(self, update: Arrays) -> str:
        """Return the type that a vector of an update goes in."""
        return "float32" if narrow(update) else "float64"

    @property
    def noisy(self) -> bool:
        """Whether sums have noise."""
        return self.std_dev > 0

    def submission(self, update: Arrays | None, numbers: str = "float64") -> _sidecar.Blob | bytes:
        """Return what a party submits for an update, for a call; nothing where there is none.
        """
        if update is not None:
            return self.structure.blob(update, numbers)
        if not self.noisy:
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

    def weight(self, weight: float | None) -> dict[str, int]:
        """Return what a call says of the weight of a vector."""
        if weight is None:
            return {}
        if not self.weighs:
            raise ConfigError(
                "the job has no weights", kind="config", field="weight",
                advice="leave it out, or declare sum.max_weight",
            )
        try:
            whole = int(weight)
        except (TypeError, ValueError, OverflowError):
            whole = -1
        if whole != weight or whole < 0:
            raise ConfigError(
                f"{weight!r} is not a weight", kind="config", field="weight",
                advice="give a whole number of 1 or more, such as the number of rows",
            )
        return {"weight": whole}

    def read(self, vector: bytes | bytearray, numbers: str = "float64") -> Any:
        """Return the model of a blob that a call has answered with. It is made in its place."""
        x = np.frombuffer(vector, np.dtype(numbers).newbyteorder("<"))
        return self.structure.read(x, copy=isinstance(vector, bytes))


def _settle(
    job: Declares, roster: list[tuple[str, str]], structure: Structure,
    committee: list[tuple[str, str]] | None,
) -> Settled:
    s = Settled(job, roster, committee=committee, like=np.zeros(structure.size))
    s.structure = structure
    return s


def settled_of(job: Any) -> Settled:
    """Return what is settled, or a job settled for the roster that it names."""
    if isinstance(job, Settled):
        return job
    if isinstance(job, Declares):
        return Settled(job)
    raise no_job(job)


def no_job(given: Any) -> ConfigError:
    """Return the error of what is no job."""
    advice = "give a Job, or what Job.settle returned"
    if isinstance(given, Settled):
        advice = "give the job itself, which is its attribute job"
    elif isinstance(given, (str, os.PathLike)):
        advice = "give Job.load(path); parties and servers take what its settle returns"
    return ConfigError(f"a {type(given).__name__} is not a job", kind="config", field="job",
                       advice=advice)
