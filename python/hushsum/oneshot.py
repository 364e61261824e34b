"""Sums to which a party sends one message and is done, with the help of a committee.

For phones, and for very many parties that appear once and vanish. The job has
``sum.protocol = "oneshot"`` and is settled with a committee::

    settled = job.settle(roster, committee=members)
    broadcast, opening = server.open(model)              # for all
    message = party.submit(opening, broadcast, update)   # a party's one message

A round of the server goes: :meth:`Server.invite`, and members answer with keys;
:meth:`Server.open`, and parties submit; :meth:`Server.batch` and :meth:`Server.settle` for
some of them at a time (before, where the committee adds noise and norms are ``bounded``,
:meth:`Server.coin`); :meth:`Server.end`, :meth:`Server.certificate` and
:meth:`Server.sum`, with members' answers in between. The transport, which must know the members,
gives what goes to all members, and what members answer, to :meth:`Member.receive` and
:meth:`Server.receive`.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from . import _sidecar
from .arrays import Arrays
from .errors import ConfigError, StateError
from .party import Mean, Messages, read_broadcast, write_broadcast
from .settled import Identity, Settled, seed_of, settled_of

__all__ = ["Member", "Party", "Server"]


class _Machine(_sidecar.Remote):
    """What parties, members and servers have in common."""

    settled: Settled
    _result: dict[str, Any]

    def _open(
        self, settled: Settled, call: str, blobs: Sequence[bytes], **parameters: int
    ) -> None:
        self.settled = settled = settled_of(settled)
        self._result, _ = settled._sidecar.call(
            call, {"settled": settled.identifier, **parameters}, blobs)
        super().__init__(settled._sidecar, self._result["object"])

    def _call(
        self, name: str, *blobs: bytes | _sidecar.Blob, writable: bool = False,
        weight: Mapping[str, int] = {},
    ) -> list[Any]:
        self._result, out = self._sidecar.call(
            "oneshot." + name, {"object": self._identifier, **weight}, blobs, writable=writable
        )
        return out

    @property
    def round(self) -> int:
        """The last round that it took part in, or began; 0 before the first."""
        return int(self._result["round"])


class Party(_Machine):
    """One party. It sends one message a round.

    Each :meth:`save` must be stored before what was made before it is sent.

    A party guards itself as :class:`hushsum.Party` does: it answers no round twice, and none
    that the job does not have.
    """

    def __init__(self, settled: Settled, identity: Identity, *, spent: int = 0) -> None:
        """Make the party of the roster that the identity belongs to.

        Args:
            settled: the job, settled with its committee.
            identity: one of the roster.
            spent: for a party that lost its state: the last round that it may have submitted
                in. All up to it count.
        """
        self._open(settled, "oneshot.party", [seed_of(identity)], spent=spent)

    @property
    def index(self) -> int:
        """Of the party in the roster."""
        return int(self._result["index"])

    def model(self, broadcast: bytes) -> Any:
        """Return the model of a broadcast of :meth:`Server.open`."""
        return read_broadcast(self.settled, broadcast)

    def submit(
        self, opening: bytes, broadcast: bytes, update: Arrays | None,
        weight: float | None = None,
    ) -> bytes:
        """Clip, round and mask an update; the masks have the party's share of the noise.

        Args:
            opening: what :meth:`Server.open` returned for this round.
            broadcast: what the round began with.
            update: of the job's structure, in its own units; ``None`` as for
                :meth:`hushsum.Party.submit`.
            weight: of the update in a weighted mean, such as the number of its rows, 1 or more.

        Returns:
            The message to the server. A round is answered once.

        Raises:
            MessageError: of kind ``"replay"`` or ``"repeated"``: this party has answered the
                round, or a later one; of kind ``"round"``: the job does not have it.
            BudgetError: the round would take this party over its epsilon.
        """
        message: bytes = self._call(
            "submit", opening, _sidecar.shared(broadcast), self.settled.submission(update),
            weight=self.settled.weight(weight))[0]
        self.settled.warn(update, self._result.get("unfit"))
        return message

    def output(self) -> bytes | None:
        """Return the last message, to be sent again; ``None`` before the first."""
        out = self._call("party.output")
        return out[0] if out else None

    def save(self, key: bytes) -> bytes:
        """Return the state, sealed under a key of 32 bytes."""
        state: bytes = self._call("party.save", key)[0]
        return state

    @classmethod
    def load(
        cls, settled: Settled, identity: Identity, key: bytes, state: bytes, *, spent: int = 0
    ) -> "Party":
        """Restore the party that was saved. All rounds up to its last one count as spent."""
        party = cls.__new__(cls)
        party._open(
            settled, "oneshot.party.load", [seed_of(identity), key, state], spent=spent)
        return party


class Member(_Machine):
    """One member of the committee.

    Each :meth:`save` must be stored before what was made before it is sent.
    """

    def __init__(self, settled: Settled, identity: Identity) -> None:
        """Make the member of the committee that the identity belongs to."""
        self._open(settled, "oneshot.member", [seed_of(identity)])

    @property
    def index(self) -> int:
        """Of the member in the committee."""
        return int(self._result["index"])

    @property
    def lost(self) -> bool:
        """Whether it lacks what it needs to answer in this round."""
        return bool(self._result.get("lost"))

    def receive(self, message: bytes) -> bytes | None:
        """Take a message of the server and return the answer, or ``None``.

        Raises:
            MessageError: it is not due now; the member is unchanged.
        """
        out = self._call("answer", message)
        return out[0] if out else None

    def output(self) -> bytes | None:
        """Return the last message, to be sent again; ``None`` if there is none."""
        out = self._call("member.output")
        return out[0] if out else None

    def save(self, key: bytes) -> bytes:
        """Return the state, sealed under a key of 32 bytes."""
        state: bytes = self._call("member.save", key)[0]
        return state

    @classmethod
    def load(cls, settled: Settled, identity: Identity, key: bytes, state: bytes) -> "Member":
        """Restore the member that was saved."""
        member = cls.__new__(cls)
        member._open(settled, "oneshot.member.load", [seed_of(identity), key, state])
        return member


class Server(_Machine):
    """The server. It learns each round's mean and nothing else."""

    def __init__(self, settled: Settled) -> None:
        """Make a server, whose rounds count from 1."""
        self._broadcast: bytes | None = None
        self._open(settled, "oneshot.server", [])

    @property
    def keys(self) -> int:
        """How many members have sent their keys."""
        return int(self._result["keys"])

    @property
    def waiting(self) -> int:
        """How many submissions wait for a batch."""
        return int(self._result["waiting"])

    @property
    def answered(self) -> int:
        """How many members have answered the batch that is with them."""
        return int(self._result["answered"])

    @property
    def signed(self) -> int:
        """How many members have signed who is in."""
        return int(self._result["signed"])

    @property
    def parts(self) -> int:
        """How many members have sent what removes the masks."""
        return int(self._result["parts"])

    @property
    def included(self) -> list[int]:
        """Roster indices of the parties in the sum, from :meth:`end` on."""
        return list(self._result["included"] or ())

    @property
    def excluded(self) -> list[int]:
        """Committee indices of members that are out of the round for disputing too much."""
        return list(self._result["excluded"] or ())

    def receive(self, message: bytes) -> None:
        """Take a message of a party or a member, as identified in the message.

        Raises:
            MessageError: it is not due now; the server is unchanged. Of kind ``"full"``: hold a
                batch, and take it again after that.
        """
        self._call("receive", _sidecar.shared(message))

    def invite(self) -> bytes:
        """Begin the next round; return the message to all members."""
        message: bytes = self._call("invite")[0]
        return message

    def open(self, model: Arrays | bytes | None = None) -> tuple[bytes, bytes]:
        """Open the round with the keys that have arrived.

        Args:
            model: what parties train from, of the job's structure; ``None``: nothing. Or
                the bytes of a broadcast of your own, different in every round.

        Returns:
            The broadcast and the opening. Parties need both, members the opening.
        """
        if isinstance(model, (bytes, bytearray)):
            broadcast = bytes(model)
        else:
            broadcast = write_broadcast(self.settled, self.round, model)
        opening: bytes = self._call("open", _sidecar.shared(broadcast))[0]
        self._broadcast = broadcast
        return broadcast, opening

    def coin(self) -> bytes:
        """Draw the noise of members in a job with ``bounded`` whose committee adds it, once members
        have answered the opening; return the message to all members. Their answers go into the
        first :meth:`batch`.

        Raises:
            TooFewError: too few members have answered the opening.
        """
        message: bytes = self._call("coin")[0]
        return message

    def batch(self) -> Messages:
        """Return what members check of submissions that wait, by committee index."""
        messages = self._call("batch")
        return list(zip(self._result.get("to") or (), messages))

    def settle(self) -> bytes:
        """End the batch; return the message to all members."""
        message: bytes = self._call("settle")[0]
        return message

    def end(self) -> bytes:
        """End the submissions; return the message to all members.

        Raises:
            TooFewError: fewer parties are in than the job's ``min_survivors``.
        """
        message: bytes = self._call("close")[0]
        return message

    def certificate(self) -> bytes:
        """End the signatures; return the message to all members."""
        message: bytes = self._call("certificate")[0]
        return message

    def uncover(self, message: bytes) -> None:
        """Add a submission again, in a job whose sums are ``covered``: every one of the parties
        ``included``, once members have sent their parts."""
        self._call("uncover", _sidecar.shared(message))

    def sum(self, broadcast: bytes | None = None) -> Mean:
        """End the round and return the mean.

        Args:
            broadcast: what the round began with; needed after :meth:`load` only.

        Raises:
            TooFewError: too few members have sent their parts; more may arrive.
            Error: of kind ``"spoilt"``: the round is lost.
        """
        broadcast = self._broadcast if broadcast is None else broadcast
        if broadcast is None:
            raise StateError(
                "the server was loaded and does not have the round's broadcast", kind="phase",
                advice="give it: sum(broadcast)",
            )
        (mean,) = self._call("sum", _sidecar.shared(broadcast), writable=True)
        parties = self.included
        return Mean(self.settled.read(mean), parties, self._result["std_dev"],
                    self._result.get("weight"))

    def save(self, key: bytes) -> bytes:
        """Return the state, sealed under a key of 32 bytes. Keep the broadcast with it."""
        state: bytes = self._call("server.save", key)[0]
        return state

    @classmethod
    def load(cls, settled: Settled, key: bytes, state: bytes) -> "Server":
        """Restore the server that was saved."""
        server = cls.__new__(cls)
        server._broadcast = None
        server._open(settled, "oneshot.server.load", [key, state])
        return server
