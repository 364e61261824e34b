"""Taking part in a job over the network, and coordinating one."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator
from urllib.parse import urlsplit

import numpy as np

from . import _sidecar
from . import federation as _federation
from ._declared import Declared
from .accounting import Claim, _claim
from .arrays import Arrays
from .attempts import Attempts, not_finite, warn
from .errors import ConfigError, Error
from .records import Records
from .settled import Identity, Settled, seed_of, settled_of
from .training import Rows, rows_of, working


@dataclass(frozen=True)
class Done:
    """A round that gave a sum, at its coordinator.

    Attributes:
        round: of the job, from 1.
        parties: roster indices of those in the sum.
        model: what follows from the sum.
        mean: of the updates, with the noise; ``None`` in a job that trains its model itself.
        lost: how many rounds gave no sum until now.
        loss, accuracy: the means of what parties measured, and ``loss_dev``, ``accuracy_dev`` the
            standard deviations of the noise in them; ``None`` without ``metrics.share``.
        spent: what the parties have spent by now; ``None`` without noise.
    """

    round: int
    parties: list[int]
    model: Any
    mean: Any = None
    lost: int = 0
    loss: float | None = None
    accuracy: float | None = None
    loss_dev: float | None = None
    accuracy_dev: float | None = None
    spent: Claim | None = None


@dataclass(frozen=True)
class Progress:
    """A step of a job, for logs and progress bars. It has no secrets.

    Attributes:
        text: in words.
        round: of the job, from 1; 0 if it is about none.
        session: number of the session; 0 if it is about none.
        parties: roster indices of those that take part, or are in the sum.
        party: roster index of the party that it is about, at a coordinator; ``None``: none.
    """

    text: str
    round: int
    session: int
    parties: list[int]
    party: int | None = None


Train = Callable[..., Any]
"""Gets the model; returns an update of the same structure, or a tuple of an update, its
weight and metrics. If it must be given two parameters, the second is the round. Where the unit
of the job is a record it gets the model and records, and returns their gradients."""


Evaluate = Callable[[Any], tuple[float, float]]
"""Gets the model that a round begins with; returns its mean loss and accuracy on the party's
rows."""


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme == "tcp" and parts.hostname and parts.port is not None
    except ValueError:  # of a port that is none
        good = False
    if not good or parts.path:
        raise ConfigError(
            f"{url!r} is not an address of a coordinator", kind="config", field="url",
            advice="give tcp://host:port of a coordinator, or https://host:port of a server",
        )
    return parts.netloc


def _progress(event: dict[str, Any]) -> Progress:
    return Progress(event.get("text", ""), event.get("round", 0), event.get("session", 0),
                    list(event.get("parties") or ()), event.get("party"))


class _Job(_sidecar.Remote):
    """A job that runs in the sidecar and asks for what it needs."""

    def events(self) -> Iterator[tuple[dict[str, Any], list[bytearray]]]:
        ended = False
        while not ended:
            next = [self._sidecar.call("job.next", {"job": self._identifier}, writable=True)]
            ended = next[0][0]["event"] == "end"
            yield next.pop()  # whose memory this does not hold

    def answer(self, vector: _sidecar.Blob | None, **more: Any) -> None:
        blobs: list[bytes | _sidecar.Blob] = [] if vector is None else [vector]
        self._sidecar.call("job.answer", {"job": self._identifier, **more}, blobs)

    def absent(self, reason: str) -> None:
        self._sidecar.call("job.answer", {"job": self._identifier, "absent": reason})


def _state(key: bytes | None, state: str | Path | None) -> tuple[dict[str, Any], list[bytes]]:
    if state is None:
        return {}, []
    if key is None:
        raise ConfigError("a state needs a key", kind="config", field="key",
                          advice="give 32 bytes, made once by os.urandom(32) and kept in a file that "
                          "nobody else can read")
    path = Path(state).absolute()
    return {"state": str(path), "counter": str(path) + ".counter"}, [key]


def _forgets(settled: Settled, member: bool) -> str:
    """Return what one that takes part without a state loses with its process."""
    if member:
        lost = "this member forgets which rounds it has answered in"
    elif settled.committee is not None:
        lost = "this party forgets which rounds it has submitted in"
    else:
        lost = ("this party loses its place: it waits for the next session, and has forgotten "
                "which rounds it submitted in")
    return (f"without a state, if this process ends and is started again {lost}; give state, the "
            "path of a file, and key, 32 random bytes that you keep")


def join(
    job: Declared | Settled | str,
    *,
    identity: Identity,
    train: Train | None = None,
    rows: Any = None,
    evaluate: Evaluate | None = None,
    url: str | None = None,
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
    """Take part in a job of a coordinator, or in a federation of the service, to its end.

    The connection is made from here, and made again whenever it breaks.

    In a job with ``sum.protocol = "oneshot"`` members of the committee join too, with neither
    ``train`` nor ``rows``: a member helps until the job is done, and sees no vector and no model.

    Args:
        job: the same as the coordinator's; one that is not settled takes the roster and the
            committee that it names. Or ``https://host:port`` of a server of the service, which
            sends its job.
        identity: this party's, in the roster; or a member's, in the committee.
        rows: the party's data, in a job that trains its model itself: ``(features, labels)``, of
            shapes (rows, features) and (rows,), classes counted from 0. For records see ``train``.
            Each may be an array, a series or frame of pandas and what else :func:`hushsum.rows`
            reads.
        train: in any other job: called for each round with the model; its update goes into the
            private sum. If the unit of that job is a record, ``rows`` are this party's records, an
            array or a tuple of arrays with one element for each (with ``privacy.group`` the last of
            the tuple says whose it is), and ``train`` gets the model and some of them, as NumPy's
            array or a tuple of arrays: it returns their gradients, each array with one more leading
            dimension. This package draws the records, clips and sums. A gradient must depend on its
            record and the model alone; a record on which ``train`` raises adds nothing. In other
            jobs, if it raises, this party is absent in the round, or with noise submits zeros, so
            that others cannot tell. Failures go to ``progress``, the first is a ``RuntimeWarning``
            too, and if every call fails an ``Error`` is raised in the end; KeyboardInterrupt ends
            taking part. Of an exception about drawn records only type and place are told, and no
            number of records: its text may name them.
        evaluate: in a job with ``metrics.share``, called for each round before ``train``, with
            the model; it returns the mean loss (0 to 10) and accuracy on this party's rows, which
            are summed under the same noise as the updates. ``None``: ``train`` returns them, as
            ``{"loss": …, "accuracy": …}`` behind its update and weight. An exception counts as
            one of ``train``.
        progress: called for each step; https: for each round that ``train`` was called for.
        url: tcp: ``tcp://host:port`` of the :class:`Coordinator`; of a member its
            ``committee_url``.
        coordinator: tcp: its public key, 64 hexadecimal digits, received over a channel of your
            own.
        state: tcp: file that keeps what the party must not lose when its process ends; without
            one a ``UserWarning`` says what that is. Next to it is the party's book, a file that
            counts what its identity spends in all jobs whose states are in that folder.
        key: tcp: 32 random bytes that seal both, made once and kept in a file that nobody else can
            read: no other key opens them again.
        least_number: with spent, where sums are pairwise: a session number that the party has not
            used.
        spent: for a party, or over tcp a member of a committee, that lost its state for good: how
            many rounds count as spent, all that it may have submitted or helped in, at least 1.
            Without it one whose state is missing does not start.
        roster: https: file of the roster, received over a channel that the server's operator does
            not control.
        fingerprint: https: of the server's certificate, if no authority knows it.
        federation: https: its name, if the server has several.
        folder: https: of this party's state, one for each federation.
        policy: TOML file with the terms that this party insists on, as docs/service-join.md lists
            them. tcp: a bound by the month or the year takes a ``state``, for the book.
        accept: https: takes part without asking on the terminal; what was accepted is pinned in
            ``folder``, and after any change it asks again.

    Returns:
        The last model; for a federation a dictionary of arrays. A member gets ``None``.

    Raises:
        JobError: the coordinator has another job; ``field`` says where.
        Error: of kind ``"absent"``: the job is done, and this party was in none of its rounds, or
            with noise only with zeros. If that is because every call of ``train`` failed, the first
            exception is its ``__cause__``, except where ``train`` gets records that are drawn. Of
            kind ``"policy"``: the job is not within ``policy``.
        ConfigError: rows are none, as :func:`hushsum.rows` says.
    """
    tell = progress or (lambda p: None)
    if isinstance(job, str):
        if urlsplit(job).scheme != "https":
            raise ConfigError(
                f"{job!r} is not an address of a server", kind="config", field="job",
                advice="give https://host:port of a server, or the job, and its coordinator's "
                "address as url",
            )
        if train is None or not callable(train):
            raise ConfigError(
                "a function of yours makes the vectors of a federation", kind="config",
                field="train", advice="give a function that gets the model and returns an update",
            )
        if roster is None:
            raise ConfigError(
                "there is no roster", kind="config", field="roster",
                advice="give the file of the roster that the parties have agreed on",
            )
        return _federation.join(
            job, identity=identity, train=train if evaluate is None else _measuring(train, evaluate), rows=rows, roster=roster,
            fingerprint=fingerprint, federation=federation, folder=folder, policy=policy,
            accept=accept, least_number=int(least_number), spent=int(spent),
            tell=lambda r, what: tell(Progress(f"round {r}: {what}", r, 0, [])),
        )
    if url is None or coordinator is None:
        raise ConfigError(
            "a coordinator is joined with its address and its key", kind="config",
            field="url" if url is None else "coordinator",
            advice="give url=tcp://host:port and coordinator, its public key",
        )
    address = _address(url)
    settled = settled_of(job)
    member = settled.committee is not None and train is None and rows is None
    if not member:
        rows_of(settled.trains, rows, train, settled.coins is not None)
    if evaluate is not None and not settled.measures:
        raise ConfigError("the job sums no metrics", kind="config", field="evaluate",
                          advice="leave it out, or declare metrics.share")
    records = Records(rows, settled.coins) if settled.coins is not None else None
    where, keys = _state(key, state)
    if not where:
        warn(_forgets(settled, member), UserWarning)
    call = {"settled": settled.identifier, "address": address, "coordinator": coordinator,
            "least_number": int(least_number), "spent": int(spent), **where}
    numbers = _numbers(settled)
    call["numbers"] = numbers
    if policy is not None:
        call["policy"] = str(Path(policy).absolute())
    with contextlib.ExitStack() as stack:
        if member:
            call["member"] = True
        elif settled.trains:
            call["rows"] = stack.enter_context(Rows(rows))._identifier
        result, _ = settled._sidecar.call("job.join", call, [seed_of(identity), *keys])
        taking = stack.enter_context(_Job(settled._sidecar, result["job"]))
        attempts, last = Attempts(drawn=records is not None), None
        try:
            for event, blobs in taking.events():
                if event["event"] == "progress":
                    tell(_progress(event))
                    continue
                if event["event"] == "end":
                    last = settled.read(blobs[0], numbers) if blobs else None
                    continue
                round = event["round"]
                try:
                    model = settled.read(blobs[0], numbers)
                    weighs: dict[str, float] = {}
                    if records is not None and train is not None:
                        vector = _sidecar.shared(
                            records.sum(train, model, settled.structure).data)
                    else:
                        measured = None if evaluate is None else evaluate(model)
                        update, weight, metrics = _parts(working(train)(model, round))
                        vector = _checked(settled, update, numbers)
                        weighs = {**settled.weight(weight),
                                  **_measures(settled, measured, metrics)}
                        del update  # whose memory the sidecar needs
                    del model
                except Exception as err:
                    _hear(tell, round, f"absent: {attempts.said(err)}")
                    taking.absent(f"{type(err).__name__}")
                    attempts.failed(round, err)
                    continue
                blobs.clear()
                taking.answer(vector, **weighs)
                del vector
                if records is None:
                    attempts.succeeded()
                else:
                    attempts.summed(round, records, partial(_hear, tell, round))
        except Error as err:
            attempts.end(err)
        except KeyboardInterrupt:
            raise _interrupted("hushsum.join", state) from None
        attempts.end()
        return last


def _hear(tell: Callable[[Progress], None], round: int, what: str) -> None:
    tell(Progress(f"round {round}: {what}", round, 0, []))


def _interrupted(what: str, state: str | Path | None) -> KeyboardInterrupt:
    """Return an interrupt without the traceback of what waited, that says what becomes of it."""
    kept = "nothing is saved" if state is None else (
        f"the state is saved in {state}: the same call goes on")
    return KeyboardInterrupt(f"{what} was interrupted; {kept}")


def _measuring(train: Train, evaluate: Evaluate) -> Train:
    """Return a training function that returns what ``evaluate`` does behind its update."""
    run = working(train)

    def both(model: Any, round: int) -> tuple[Any, float | None, dict[str, float]]:
        loss, accuracy = evaluate(model)
        update, weight, _ = _parts(run(model, round))
        return update, weight, {"loss": float(loss), "accuracy": float(accuracy)}

    return both


def _numbers(settled: Settled) -> str:
    """Return the type in which the sidecar and this process exchange models and vectors."""
    if settled.trains or settled.coins is not None:  # a rounded sum is none of bounded records
        return "float64"
    return settled.structure.numbers


def _measures(
    settled: Settled, measured: tuple[float, float] | None, metrics: Any,
) -> dict[str, float]:
    """Return what a call says of loss and accuracy, of ``evaluate`` or ``train``."""
    if not settled.measures:
        return {}
    if measured is None and isinstance(metrics, dict) and {"loss", "accuracy"} <= metrics.keys():
        measured = metrics["loss"], metrics["accuracy"]
    if measured is None:
        raise ConfigError(
            "the job sums metrics, and nobody measured any", kind="config", field="evaluate",
            advice='give evaluate, or have train return an update, its weight and {"loss": ..., '
            '"accuracy": ...}',
        )
    loss, accuracy = (float(x) for x in measured)
    if not (np.isfinite(loss) and np.isfinite(accuracy)):
        raise ConfigError(
            "the loss or the accuracy is NaN or infinite", kind="config", field="evaluate",
            advice="look for what made it in the rows or in the model",
        )
    return {"loss": loss, "accuracy": accuracy}


def _checked(settled: Settled, update: Any, numbers: str) -> _sidecar.Blob:
    """Write a vector now, so that what is wrong with it is the training function's fault."""
    room = np.empty(settled.structure.size, np.dtype(numbers).newbyteorder("<"))
    settled.structure.write(update, room)
    if not np.isfinite(room).all():
        raise not_finite(settled.structure.not_finite(update) or "")
    return _sidecar.shared(room.data)


def _absentees(settled: Settled, here: set[int]) -> str:
    """Return whom the first round waits for, if too few parties are present."""
    if len(here) >= settled.min_survivors:
        return ""
    away = [name for i, (name, _) in enumerate(settled.roster) if i not in here]
    more = f" and {len(away) - 5} more" if len(away) > 5 else ""
    return (f"; {len(here)} of {len(settled.roster)} are here, a round takes "
            f"{settled.min_survivors}: not here {', '.join(away[:5])}{more}")


def _parts(update: Any) -> tuple[Any, float | None, Any]:
    """Return an update, its weight and its metrics."""
    if isinstance(update, tuple):
        if len(update) != 3:
            raise ConfigError(
                f"the training function returned {len(update)} values", kind="config",
                field="train", advice="return an update, or an update, its weight and metrics",
            )
        return update[0], update[1], update[2]
    return update, None, None


class Coordinator(_Job):
    """A coordinator of a job, in this process. It holds no party's secrets."""

    def __init__(
        self,
        job: Declared | Settled,
        *,
        identity: Identity,
        url: str = "tcp://127.0.0.1:0",
        committee_url: str | None = None,
        model: Arrays | None = None,
        apply: Callable[[Any, Any], Arrays] | None = None,
        on_round: Callable[[Done], Any] | None = None,
        step_time: float = 0.0,
        state: str | Path | None = None,
        key: bytes | None = None,
    ) -> None:
        """Begin to listen.

        Args:
            job: the job; one that is not settled takes the roster and the committee that it names.
            identity: the coordinator's own; parties are given its public key.
            url: where to listen, ``tcp://host:port``; port 0: any free port.
            committee_url: where to listen for the committee's members, in a job with
                ``sum.protocol = "oneshot"``; ``None``: as ``url``, at any port that is free.
            model: what the first round begins with; ``None``: zeros. A job that trains its
                model itself begins with its own.
            apply: returns the next model from the model and the mean of the updates;
                ``None``: the server's rule of the job does.
            on_round: called after each round that gave a sum, with a :class:`Done`, for checkpoints
                and early stops: if it returns true the job ends with that model. An exception ends
                :meth:`run`; run again from its state, the job asks about the same round again.
            step_time: seconds that a step waits for connected parties; 0: as the job says.
            state, key: as for :func:`join`.
        """
        settled = settled_of(job)
        self._numbers = _numbers(settled)
        start: bytes | _sidecar.Blob = (
            b"" if model is None else settled.structure.blob(model, self._numbers))
        where, keys = _state(key, state)
        if settled.committee is not None:
            where["committee"] = _address(committee_url or url.rpartition(":")[0] + ":0")
        result, _ = settled._sidecar.call(
            "job.coordinate",
            {"settled": settled.identifier, "address": _address(url),
             "step_time": float(step_time), "apply": apply is not None,
             "rounds": on_round is not None, "numbers": self._numbers, **where},
            [seed_of(identity), start, *keys],
        )
        super().__init__(settled._sidecar, result["job"])
        self.settled = settled
        self._apply, self._on_round = apply, on_round
        self._state = state
        self.url: str = "tcp://" + result["address"]  #: where it listens
        members = result.get("committee")
        #: where it listens for the committee's members; ``None``: the job has no committee
        self.committee_url: str | None = members and "tcp://" + members

    def run(self, *, progress: Callable[[Progress], None] | None = None) -> Any:
        """Hold the rounds, and return the last model.

        Args:
            progress: called for each step.

        Raises:
            Error: of kind ``"paused"``: five rounds in a row gave no sum, or nobody submitted;
                run it again, from its state, once the cause is mended. Of kind ``"stalled"``: the
                job ended without a sum.
        """
        try:
            return self._run(progress or (lambda p: None))
        except KeyboardInterrupt:
            raise _interrupted("Coordinator.run", self._state) from None
        except Exception:  # of apply or on_round, say: nobody answers any more
            self.close()
            raise

    def _run(self, tell: Callable[[Progress], None]) -> Any:
        s = self.settled
        here: set[int] = set()
        begun = False
        for event, blobs in self.events():
            if event["event"] == "progress":
                step = _progress(event)
                begun = begun or step.round > 0
                if step.text == f"party {step.party} connected":
                    here.add(step.party or 0)
                    if not begun:
                        step = replace(step, text=step.text + _absentees(s, here))
                elif step.text.startswith(f"party {step.party} disconnected"):
                    here.discard(step.party or 0)
                tell(step)
            elif event["event"] == "end":
                self.close()
                return s.read(blobs[0], self._numbers)
            elif event["event"] == "round" and self._on_round is not None:
                self.answer(None, stop=bool(self._on_round(self._done(event, blobs))))
            elif self._apply is not None:
                mean, model = (s.read(b, self._numbers) for b in blobs)
                self.answer(s.structure.blob(self._apply(model, mean), self._numbers))
        raise Error("the job ended without a model")

    def _done(self, event: dict[str, Any], blobs: list[bytearray]) -> Done:
        mean = self.settled.read(blobs[0], self._numbers) if blobs[0] else None
        spent = event.get("spent")
        return Done(
            event["round"], list(event.get("parties") or ()),
            self.settled.read(blobs[1], self._numbers), mean, event.get("lost", 0),
            spent=None if spent is None else _claim(spent), **(event.get("metric") or {}))
