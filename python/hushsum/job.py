"""Taking part in a job over the network, and coordinating one."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator
from urllib.parse import urlsplit

import numpy as np

from . import _sidecar
from . import federation as _federation
from .arrays import Arrays
from .errors import ConfigError, Error
from .party import pairwise
from .plan import Identity, Settled, seed_of


@dataclass(frozen=True)
class Progress:
    """A step of a job, for logs and progress bars. It has no secrets.

    Attributes:
        text: in words.
        round: of the job, from 1; 0 if it is about none.
        session: number of the session; 0 if it is about none.
        parties: roster indices of those who take part, or are in the sum.
        party: roster index of the party that it is about, at a coordinator; ``None``: none.
    """

    text: str
    round: int
    session: int
    parties: list[int]
    party: int | None = None


Train = Callable[[Any], Any]
"""Gets the model; returns an update of the same structure, or a tuple of an update, its
weight and metrics. If it must be given two parameters, the second is the round."""


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme == "tcp" and parts.hostname and parts.port is not None
    except ValueError:  # of a port that is none
        good = False
    if not good or parts.path:
        raise ConfigError(
            f"{url!r} is no address of a coordinator", kind="config", field="url",
            advice="give tcp://host:port of a coordinator, or https://host:port of a server",
        )
    return parts.netloc


def _progress(event: dict[str, Any]) -> Progress:
    return Progress(event.get("text", ""), event.get("round", 0), event.get("session", 0),
                    list(event.get("parties") or ()), event.get("party"))


class _Job(_sidecar.Remote):
    """A job that runs in the sidecar and asks for what it needs."""

    def events(self) -> Iterator[tuple[dict[str, Any], list[bytes]]]:
        while True:
            event, blobs = self._sidecar.call("job.next", {"job": self._identifier})
            yield event, blobs
            if event["event"] == "end":
                return

    def answer(self, vector: _sidecar.Blob) -> None:
        self._sidecar.call("job.answer", {"job": self._identifier}, [vector])

    def absent(self, reason: str) -> None:
        self._sidecar.call("job.answer", {"job": self._identifier, "absent": reason})


def _state(key: bytes | None, state: str | Path | None) -> tuple[dict[str, Any], list[bytes]]:
    if state is None:
        return {}, []
    if key is None:
        raise ConfigError("a state takes a key", kind="config", field="key",
                          advice="give 32 random bytes that you keep, such as os.urandom(32)")
    path = Path(state).absolute()
    return {"state": str(path), "counter": str(path) + ".counter"}, [key]


def join(
    url: str,
    *,
    identity: Identity,
    train: Train,
    settled: Settled | None = None,
    coordinator: str | None = None,
    state: str | Path | None = None,
    key: bytes | None = None,
    least_number: int = 0,
    spent: int = 0,
    roster: str | Path | None = None,
    fingerprint: str | None = None,
    federation: str | None = None,
    folder: str | Path = "hushsum-party",
    policy: str | Path | None = None,
    accept: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Any:
    """Take part in a federation of the service, or in a job of a coordinator, to its end.

    The connection goes out from here, and is made again whenever it breaks.

    Args:
        url: ``https://host:port`` of a server of the service, or ``tcp://host:port`` of a
            :class:`Coordinator`.
        identity: this party's, of the roster.
        train: called for each round with the model; its update goes into the private sum.
            If it raises, this party is absent in the round, or with noise submits zeros, so
            that others cannot tell; the error goes to ``progress``; KeyboardInterrupt ends taking part.
        progress: is told of each step.
        settled: tcp: the plan; the coordinator must have the same.
        coordinator: tcp: its public key, 64 hexadecimal digits, got by a way of your own.
        state: tcp: file that keeps what the party must not lose when its process ends.
        key: tcp: 32 bytes that seal it.
        least_number: for a party that lost its state: a session number that it has not used.
        spent: for a party that lost its state for good: how many rounds count as spent, all
            that it may have submitted in, at least 1. It takes a ``least_number``. Without it
            a party whose state is not there does not start.
        roster: https: file of the roster, got by a way that the server's operator does not
            control.
        fingerprint: https: of the server's certificate, if no authority knows it.
        federation: https: its name, if the server has several.
        folder: https: of this party's state, one for each federation.
        policy: https: TOML file of what this party insists on.
        accept: https: takes part without asking on the terminal; what was accepted is
            pinned in ``folder``, and any change asks again.

    Returns:
        The last model; of a federation a dictionary of arrays.

    Raises:
        PlanError: the coordinator has another plan; ``field`` says where.
        Error: of kind ``"absent"``: the job is done, and this party was in none of its rounds,
            or with noise with zeros only.
    """
    if not callable(train):
        raise ConfigError(
            f"a {type(train).__name__} does not train", kind="config", field="train",
            advice="give a function that gets the model and returns an update",
        )
    takes_round = _parameters(train) >= 2
    tell = progress or (lambda p: None)

    def work(model: Any, round: int) -> Any:
        return train(model, round) if takes_round else train(model)  # type: ignore[call-arg]

    if urlsplit(url).scheme == "https":
        if roster is None:
            raise ConfigError(
                "there is no roster", kind="config", field="roster",
                advice="give the file of the roster that the parties have agreed on",
            )
        return _federation.join(
            url, identity=identity, train=work, roster=roster, fingerprint=fingerprint,
            federation=federation, folder=folder, policy=policy, accept=accept,
            least_number=int(least_number), spent=int(spent),
            absent=lambda r, why: tell(Progress(f"round {r}: absent: {why}", r, 0, [])),
        )
    address = _address(url)
    if settled is None or coordinator is None:
        raise ConfigError(
            "a coordinator is joined with settled and coordinator", kind="config",
            field="settled" if settled is None else "coordinator",
            advice="give the plan and the coordinator's public key, or an https:// address",
        )
    where, keys = _state(key, state)
    call = {"settled": settled.identifier, "address": address, "coordinator": coordinator,
            "least_number": int(least_number), "spent": int(spent), **where}
    result, _ = settled._sidecar.call("job.join", call, [seed_of(identity), *keys])
    job = _Job(settled._sidecar, result["job"])
    try:
        for event, blobs in job.events():
            if event["event"] == "progress":
                tell(_progress(event))
            elif event["event"] == "end":
                return settled.structure.read(_model_part(settled, blobs[0]))
            else:
                model = settled.structure.read(_model_part(settled, blobs[0]))
                try:
                    vector = _checked(settled.vector(*_parts(work(model, event["round"]))))
                except Exception as err:
                    tell(Progress(f"round {event['round']}: absent: {err}", event["round"], 0, []))
                    job.absent(f"{type(err).__name__}")
                    continue
                job.answer(vector)
    finally:
        job.close()
    raise Error("the job ended without a model")


def _checked(vector: _sidecar.Blob) -> _sidecar.Blob:
    """Write a vector now, so that what is wrong with it is the training function's fault."""
    room = np.empty(vector.nbytes // 8)
    vector.write(room.data.cast("B"))
    return _sidecar.shared(room.data)


def _model_part(settled: Settled, blob: bytes) -> np.ndarray:
    x = np.frombuffer(blob, "<f8")
    return x[: settled.structure.size]


def _parts(update: Any) -> tuple[Any, float | None]:
    """Return an update and its weight. Metrics are the training function's own affair."""
    if isinstance(update, tuple):
        if len(update) != 3:
            raise ConfigError(
                f"the training function returned {len(update)} values", kind="config",
                field="train", advice="return an update, or an update, its weight and metrics",
            )
        return update[0], update[1]
    return update, None


def _parameters(f: Callable[..., Any]) -> int:
    """Count the parameters that a function must be given."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return 1
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
               for p in parameters)


class Coordinator(_Job):
    """A coordinator of a job, in this process. It has no secret of any party."""

    def __init__(
        self,
        settled: Settled,
        *,
        identity: Identity,
        url: str = "tcp://127.0.0.1:0",
        model: Arrays | None = None,
        step_time: float = 30.0,
        state: str | Path | None = None,
        key: bytes | None = None,
    ) -> None:
        """Begin to listen.

        Args:
            settled: the plan.
            identity: the coordinator's own, whose public key parties are told.
            url: where to listen, ``tcp://host:port``; port 0: any that is free.
            model: what the first round begins with; ``None``: zeros.
            step_time: seconds that a step waits for parties that are connected.
            state, key: as for :func:`join`.
        """
        pairwise(settled)  # a committee takes a coordinator of Go's
        start = np.zeros(settled.plan.length)
        if model is not None:
            settled.structure.write(model, start[: settled.structure.size])
        where, keys = _state(key, state)
        result, _ = settled._sidecar.call(
            "job.coordinate",
            {"settled": settled.identifier, "address": _address(url),
             "step_time": float(step_time), "apply": True, **where},
            [seed_of(identity), start.astype("<f8").tobytes(), *keys],
        )
        super().__init__(settled._sidecar, result["job"])
        self.settled = settled
        self.url: str = "tcp://" + result["address"]  #: where it listens

    def run(
        self,
        apply: Callable[[Any, Any], Arrays] | None = None,
        *,
        progress: Callable[[Progress], None] | None = None,
    ) -> Any:
        """Hold the rounds, and return the last model.

        Args:
            apply: returns the next model from the model and the mean of the updates;
                ``None``: their sum.
            progress: is told of each step.

        Raises:
            Error: of kind ``"stalled"``: round after round gave no sum.
        """
        s, tell = self.settled, progress or (lambda p: None)
        for event, blobs in self.events():
            if event["event"] == "progress":
                tell(_progress(event))
            elif event["event"] == "end":
                self.close()
                return s.structure.read(_model_part(s, blobs[0]))
            else:
                mean, _ = s.model(bytearray(blobs[0]), len(event["parties"]), "float64")
                model = s.structure.read(_model_part(s, blobs[1]))
                following = np.zeros(s.plan.length)
                if apply is None:
                    s.structure.write(mean, following[: s.structure.size])
                    following[: s.structure.size] += _model_part(s, blobs[1])
                else:
                    s.structure.write(apply(model, mean), following[: s.structure.size])
                self.answer(_sidecar.shared(following.astype("<f8").data))
        raise Error("the job ended without a model")
