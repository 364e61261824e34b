"""One party and the server of a session: messages in, messages out."""

from __future__ import annotations

import hashlib
import io
import os
import struct
from dataclasses import dataclass
from typing import Any, Sequence, cast

import numpy as np

from . import _sidecar
from .arrays import Arrays
from .errors import ConfigError, StateError
from .settled import Identity, Settled, seed_of, settled_of

Messages = list[tuple[int, bytes]]
"""Messages of a server, each with the roster index of the party that it is for."""


class Party(_sidecar.Remote):
    """One party in one session. It answers messages; how they travel does not matter.

    Each :meth:`save` must be stored before what was made before it is sent: a party that
    is loaded from an older state could use keys twice.

    A party guards itself: it counts every :meth:`submit`, answers no round of the job twice,
    and none that the job does not have or that would take it over its epsilon, whatever the
    server asks for. All parties of one identity and job in a process count together, so that a new
    session continues where the last one stopped, even after :meth:`close`. In another process load
    the last session's party before you make the next one's.
    """

    def __init__(
        self, settled: Settled, identity: Identity, *, number: int = 1, spent: int = 0
    ) -> None:
        """Make a party.

        Args:
            settled: the job, settled for its parties.
            identity: one of the roster.
            number: of the session, 0 or more. Each is used once in a job's life.
            spent: for a party that lost its state: the last round of the job that it may have
                submitted in. All up to it count.
        """
        self._open(settled, number, spent, "party.new", [seed_of(identity)])

    def _open(
        self, settled: Settled, number: int, spent: int, call: str, blobs: Sequence[bytes]
    ) -> None:
        self.settled = settled = settled_of(settled)
        result, (self.announce,) = settled._sidecar.call(
            call, {"settled": settled.identifier, "number": number, "spent": spent}, blobs
        )
        super().__init__(settled._sidecar, result["party"])
        self.index: int = result["index"]  #: of the party in the roster
        self._take(result)

    announce: bytes  #: the first message to send; of a loaded party the last that it made

    def _take(self, result: dict[str, Any]) -> None:
        self._due: int | None = int(result["round"]) if result["due"] else None
        self._enrolled = result["enrolled"] or []
        self._unfit: str | None = result.get("unfit")

    def _call(
        self, name: str, *blobs: bytes | _sidecar.Blob, **parameters: Any
    ) -> list[bytes]:
        result, out = self._sidecar.call(
            name, {"party": self._identifier, **parameters}, blobs)
        self._take(result)
        return out

    @property
    def due(self) -> int | None:
        """The round of the session that waits for this party's :meth:`submit`, or ``None``."""
        return self._due

    @property
    def enrolled(self) -> list[int]:
        """Roster indices of the parties of the session; empty while it is set up."""
        return list(self._enrolled)

    def receive(self, message: bytes) -> bytes | None:
        """Take a message of the server and return the answer, or ``None``.

        Raises:
            MessageError: it is not due now; the party is unchanged.
        """
        out = self._call("party.receive", message)
        return out[0] if out else None

    def output(self) -> bytes:
        """Return the last message that was made, to be sent again."""
        return self._call("party.output")[0]

    def model(self, broadcast: bytes) -> Any:
        """Return the model of a broadcast of :meth:`Server.begin`."""
        return read_broadcast(self.settled, broadcast)

    def submit(
        self, broadcast: bytes, update: Arrays | None, weight: float | None = None
    ) -> bytes:
        """Clip, round, noise and mask an update for the round that is due, and count it.

        Args:
            broadcast: what the round began with. Its first 8 bytes are the round of the job.
            update: of the job's structure, in its own units. With noise, ``None`` where
                training has made none: a party that is missing from a round reveals something
                about its rows, so zeros with noise are submitted. So they are for an update
                with NaN or infinity, with a ``RuntimeWarning``.
            weight: of the update in a weighted mean, such as the number of its rows, 1 or more.

        Returns:
            The message to the server.

        Raises:
            MessageError: of kind ``"repeated"``: this party has answered the round, or a later
                one; of kind ``"round"``: the job does not have it.
            BudgetError: the round would take this party over its epsilon.
        """
        numbers = "float64" if update is None else self.settled.numbers(update)
        try:
            message = self._call(
                "party.submit", self.settled.submission(update, numbers), numbers=numbers,
                round=round_of(broadcast), broadcast=digest_of(broadcast),
                **self.settled.weight(weight),
            )[0]
            self.settled.warn(update, self._unfit)
            return message
        except ConfigError as err:
            if err.kind != "not-finite":
                raise
            path = self.settled.structure.not_finite(cast(Arrays, update)) or ""
            raise ConfigError(
                f"the update{path} has NaN or infinity", kind=err.kind, advice=err.advice,
                field=path or None,
            ) from err

    def save(self, key: bytes) -> bytes:
        """Return the state, sealed under a key of 32 bytes, with what was counted."""
        return self._call("party.save", key)[0]

    @classmethod
    def load(
        cls, settled: Settled, identity: Identity, key: bytes, state: bytes, *, number: int = 1,
        spent: int = 0,
    ) -> "Party":
        """Restore the party that was saved. Send its :attr:`announce` again.

        Raises:
            StateError: it belongs to another party, job or number, or was changed.
        """
        party = cls.__new__(cls)
        party._open(settled, number, spent, "party.load", [seed_of(identity), key, state])
        return party


@dataclass(frozen=True)
class Mean:
    """What a round gave.

    Attributes:
        model: the mean of the parties' updates, of the job's structure, with noise.
        parties: roster indices of the parties whose updates are in it.
        std_dev: of the noise in each number of the mean (unweighted), in their units.
        weight: the sum of weights; ``None`` if there are none, or noise hides it.
    """

    model: Any
    parties: list[int]
    std_dev: float
    weight: int | None


class Server(_sidecar.Remote):
    """The server of a session. It learns each round's mean and nothing else.

    A round goes: :meth:`begin`, :meth:`survivors`, :meth:`certificate`, :meth:`sum`; before
    the first come :meth:`keys` and :meth:`members`. Between two steps give what parties
    answered to :meth:`receive`, until :attr:`missing` is empty or you have waited long enough: a
    step continues without missing parties. In a job without ``parties.drop_out`` and
    ``sum.recovery`` nobody may be missing, and :meth:`sum` follows :meth:`begin`.
    """

    def __init__(self, settled: Settled, *, number: int = 1) -> None:
        self._open(settled, number, "server.new", [])

    def _open(self, settled: Settled, number: int, call: str, blobs: Sequence[bytes]) -> None:
        self.settled = settled = settled_of(settled)
        self._broadcast: str | None = None  # its digest
        self._last = 0  # round of the job that was begun
        result, _ = settled._sidecar.call(
            call, {"settled": settled.identifier, "number": number}, blobs
        )
        super().__init__(settled._sidecar, result["server"])
        self._result = result

    def _call(
        self, name: str, *blobs: bytes | _sidecar.Blob, writable: bool = False, **parameters: Any
    ) -> tuple[dict[str, Any], list[Any]]:
        self._result, out = self._sidecar.call(
            name, {"server": self._identifier, **parameters}, blobs, writable=writable
        )
        return self._result, out

    def _messages(self, name: str, *blobs: bytes | _sidecar.Blob, **parameters: Any) -> Messages:
        result, out = self._call(name, *blobs, **parameters)
        return list(zip(result.get("to") or (), out))

    def receive(self, party: int, message: bytes) -> None:
        """Take a message of the party that the transport knows sent it.

        Raises:
            MessageError: it is not due now; the server is unchanged.
        """
        self._call("server.receive", _sidecar.shared(message), party=party)

    @property
    def missing(self) -> list[int]:
        """Roster indices of the parties that the present step waits for."""
        return list(self._result["missing"] or ())

    @property
    def enrolled(self) -> list[int]:
        """Roster indices of the parties of the session; empty while it is set up."""
        return list(self._result["enrolled"] or ())

    @property
    def included(self) -> list[int]:
        """Roster indices of the parties in the sum of the last round."""
        return list(self._result["included"] or ())

    @property
    def excluded(self) -> list[int]:
        """Roster indices of the parties that spoilt rounds, or that :meth:`exclude` named."""
        return list(self._result["excluded"] or ())

    @property
    def holders(self) -> list[int]:
        """Roster indices of the parties of the next round."""
        return list(self._result["holders"] or ())

    @property
    def round(self) -> int:
        """The last round of the session that was begun; 0 before the first. :meth:`gather` and
        :meth:`skip` use up a number too."""
        return int(self._result["round"])

    def keys(self) -> Messages:
        """End the announcements, and tell the parties that announced about each other."""
        return self._messages("server.keys")

    def members(self) -> Messages:
        """End the set-up. With a classical job there is nothing to send."""
        return self._messages("server.members")

    def invite(self) -> Messages:
        """Ask parties that were absent for what the next round needs from them."""
        return self._messages("server.invite")

    def gather(self, parties: Sequence[int]) -> Messages:
        """Hold the next rounds among these parties, at least the job's ``min_survivors``."""
        return self._messages("server.gather", parties=[int(i) for i in parties])

    def begin(
        self, model: Arrays | bytes | None = None, *, round: int | None = None
    ) -> tuple[bytes, Messages]:
        """Begin a round.

        Args:
            model: what parties train from, of the job's structure; ``None``: nothing. Or
                the bytes of a broadcast of your own, different in every round, whose first 8
                bytes are the round of the job, big-endian.
            round: of the job, from 1 to the last: one that none of its sessions has
                begun, since no party answers a round twice. ``None``: the one after the last
                that this server has begun. Give it in the sessions after the first.

        Returns:
            The broadcast, which all parties of the round need, and the messages.
        """
        if isinstance(model, (bytes, bytearray)):
            broadcast, own = bytes(model), round_of(model)
            if round not in (None, own):
                raise ConfigError(
                    f"the broadcast begins with round {own}, not {round}", kind="round",
                    field="round", advice="leave it out, or begin the broadcast with it",
                )
            round = own
        else:
            round = self._last + 1 if round is None else int(round)
            broadcast = b""
        rounds = self.settled.rounds
        if not 1 <= round <= rounds:
            raise ConfigError(
                f"there is no round {round} in a job of {rounds}", kind="round", field="round",
                advice="begin broadcasts of your own with the round, 8 bytes, big-endian"
                if broadcast else "agree on another job for further rounds",
            )
        broadcast = broadcast or write_broadcast(self.settled, round, model)
        digest = digest_of(broadcast)
        messages = self._messages("server.begin", broadcast=digest)
        self._broadcast, self._last = digest, round
        return broadcast, messages

    def survivors(self) -> Messages:
        """End the submissions, and announce whose are in."""
        return self._messages("server.survivors")

    def certificate(self) -> Messages:
        """End the signatures, and pass them on."""
        return self._messages("server.certificate")

    def sum(self, broadcast: bytes | None = None) -> Mean:
        """End the round and return the mean.

        Args:
            broadcast: what the round began with; needed after :meth:`load` only.

        Raises:
            TooFewError: the round is lost; the next may begin.
        """
        digest = self._broadcast if broadcast is None else digest_of(broadcast)
        if digest is None:
            raise StateError(
                "the server was loaded and does not have the round's broadcast", kind="phase",
                advice="give it: sum(broadcast)",
            )
        result, (mean,) = self._call("server.sum", broadcast=digest, writable=True,
                                     numbers=self.settled.structure.numbers)
        if broadcast is not None:
            self._last = round_of(broadcast)
        parties = self.included
        model = self.settled.read(mean, self.settled.structure.numbers)
        return Mean(model, parties, result["std_dev"], result.get("weight"))

    def skip(self) -> None:
        """Give up the next round number, for a round whose parties do not appear."""
        self._call("server.skip")

    def exclude(self, party: int) -> None:
        """Leave a party out of the rounds that follow."""
        self._call("server.exclude", party=party)

    def readmit(self, party: int) -> None:
        """Let a party back in."""
        self._call("server.readmit", party=party)

    def save(self, key: bytes) -> bytes:
        """Return the state, sealed under a key of 32 bytes. Keep the broadcast with it."""
        sealed: bytes = self._call("server.save", key)[1][0]
        return sealed

    @classmethod
    def load(cls, settled: Settled, key: bytes, state: bytes, *, number: int = 1) -> "Server":
        """Restore the server that was saved.

        It does not know the round of the job: give it to :meth:`begin`, or the broadcast to
        :meth:`sum`. Otherwise it takes that of the session, which is right in a job's first one
        unless :meth:`gather` or :meth:`skip` have used up numbers.
        """
        server = cls.__new__(cls)
        server._open(settled, number, "server.load", [key, state])
        server._last = server.round
        return server


_HEADER = 40  # bytes before the model: the round, and 32 that are random
_PIECE = 1 << 20  # numbers that are looked at at a time


def digest_of(broadcast: bytes) -> str:
    """Return what names a broadcast in calls."""
    digest = hashlib.sha256(b"hushsum/1 broadcast")
    digest.update(broadcast)
    return digest.hexdigest()


def round_of(broadcast: bytes | bytearray) -> int:
    """Return the round of the job that a broadcast is of, 0 if it is too short to say."""
    return int.from_bytes(broadcast[:8], "big") if len(broadcast) >= 8 else 0


def write_broadcast(settled: Settled, round: int, model: Arrays | None) -> bytes:
    """Return a broadcast: u64 round, 32 random bytes (the rotation of the round follows
    from them), and the model's numbers as big-endian float64."""
    header = struct.pack(">Q", round) + os.urandom(32)
    if model is None or settled.structure.size == 0:
        return header
    out = io.BytesIO(header)  # which gives its bytes away without a copy
    out.seek(_HEADER + 8 * settled.structure.size - 1)
    out.write(b"\0")
    with out.getbuffer() as view:
        x = np.frombuffer(view, ">f8", offset=_HEADER)
        settled.structure.write(model, x)
        finite = all(np.isfinite(x[i : i + _PIECE]).all() for i in range(0, x.size, _PIECE))
        del x  # it holds the view
    if not finite:
        raise ConfigError(
            "the model has NaN or infinity", kind="not-finite", field="model",
            advice="look for what made it in training",
        )
    return out.getvalue()


def read_broadcast(settled: Settled, broadcast: bytes) -> Any:
    """Return the model of a broadcast, ``None`` if it has none."""
    n = len(broadcast) - _HEADER
    if n == 0:
        return None
    if n != 8 * settled.structure.size:
        raise ConfigError(
            f"a broadcast of {len(broadcast)} bytes is not of a model of "
            f"{settled.structure.size} numbers", kind="length", field="broadcast",
            advice="give what Server.begin returned",
        )
    return settled.structure.read(np.frombuffer(broadcast, ">f8", offset=_HEADER))
