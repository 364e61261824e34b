"""A party of a job with pairwise sums, by the pages alone.

    python3 spec/reference/party.py --job declared.json --roster roster.txt \
        --identity north.pem --coordinator HOST:PORT --key KEY --vector vector.json

--job names a file with what "hushsum job check --json" prints of a job, or its declared alone, which does for a
job without noise and sparse graphs; --key is the coordinator's, 64 hexadecimal digits; --vector is
a file with a list of numbers, which the party submits in each round. It prints the last model as
JSON. --submitted is a file to which it writes what it submits, before it is masked, for tests.

    python3 spec/reference/party.py --pipe

reads calls, one JSON object a line, and answers each with a line: see pipe.py.

The program is a reference: it keeps no state and no account of epsilon, and is not constant time. A
party that is started again for a job takes --least, one more than the number of the last
session that it was in, and --spent, the last round in which it submitted."""

import argparse
import json
import os
import sys
import time

import client
import job
import pipe
import session
import transport
from primitives import unhex


class Party:
    """A party of a job, over one connection after another: SPEC-TRANSPORT.md §5."""

    def __init__(self, settled, identity, vector, least=0, spent=0, report=lambda text: None,
                 shown=lambda round, values: None):
        self.settled, self.identity, self.vector = settled, identity, vector
        self.series = client.Series(settled.label, identity, os.urandom, least)
        self.told, self.guarded = 0, spent  # the last round submitted in for sure, or perhaps
        self.count = spent  # of submissions
        self.casts = []  # the last two
        self.report, self.shown = report, shown

    def sessions(self):
        return [c for c in (self.series.present, self.series.successor) if c is not None]

    def longest(self):
        """The longest body in parts that can come: a message, or a broadcast."""
        messages = [c.config.max_message() for c in self.sessions()]
        return max(messages + [40 + 8 * self.settled.length])

    def run(self, address, key):
        """Takes part until the job is over, and returns the last model."""
        wait = 0.05
        while True:
            connection = None
            try:
                connection = transport.Connection(address, self.identity, key)
                self.greet(connection)
                while True:
                    kind, body = connection.receive(self.longest())
                    wait = 0.05
                    model = self.take(connection, kind, body)
                    if model is not None:
                        return model
            except (OSError, transport.FrameError) as e:
                self.report(f"disconnected: {e}")
            finally:
                if connection is not None:
                    connection.close()
            time.sleep(wait)
            wait = min(2 * wait, 2)

    def greet(self, connection):
        """Hello, what the party has submitted last, and its last messages: §3, §5."""
        connection.send_json(transport.HELLO, {
            "job": job.greeting(self.settled.declared),
            "roster": session.roster_digest(self.settled.roster).hex(),
            "digest": self.settled.digest.hex(),
            "sessions": sorted(c.config.number for c in self.sessions()),
            "least": self.series.least})
        if self.told:
            self.absent(connection, 0, "")
        for c in self.sessions():
            connection.send(transport.MESSAGE, c.output)

    def absent(self, connection, round, why):
        connection.send_json(transport.ABSENCE, {"told": self.told, "absent": round, "why": why})

    def take(self, connection, kind, body):
        """Takes a body. It returns the last model once the job is over."""
        if kind == transport.REFUSAL:
            raise transport.read_refusal(body)
        elif kind == transport.JOIN:
            self.join(connection, transport.read_number(body))
        elif kind in (transport.BROADCAST, transport.END):
            cast = transport.Cast(body)
            if len(cast.model) != self.settled.length:
                raise transport.FrameError("a model of another length")
            if kind == transport.END:
                return cast.model
            self.casts = self.casts[-1:] + [cast]
        elif kind == transport.MESSAGE:
            self.message(connection, body)
        else:
            raise transport.FrameError(f"kind {kind}")
        return None

    def join(self, connection, number):
        """§5: a session forms."""
        for c in self.sessions():
            if c.config.number == number:
                connection.send(transport.MESSAGE, c.output)
                return
        try:
            config = self.settled.config(number)
            connection.send(transport.MESSAGE, self.series.succeed(config))
        except session.Refused as e:
            if e.name != "ErrNumber":
                raise
            self.report(f"session {number} refused: {e}")

    def message(self, connection, data):
        """§5: a message, and what becomes of one that is refused."""
        try:
            c, _ = self.series.named(data)
        except session.Refused:
            return  # of a session that is over
        try:
            answer = self.series.receive(data)
        except session.Refused as e:
            if e.name not in ("ErrReplay", "ErrPhase"):
                self.report(f"message refused: {e}")
                return
            answer = c.output  # the coordinator asks again
        if c.state == "B":
            self.submit(connection, c)
        elif answer is not None:
            connection.send(transport.MESSAGE, answer)

    def submit(self, connection, c):
        """Submits the vector, if the guard lets the round pass: §5."""
        cast = next((x for x in reversed(self.casts) if x.digest == c.open.digest), None)
        if cast is None:
            self.report("no broadcast has the digest of Begin")
            return
        s, zeros = self.settled, [0.0] * self.settled.length
        if not self.guarded < cast.round <= s.rounds or self.count >= s.submissions:
            self.absent(connection, cast.round, "guarded")
            return
        try:
            values = s.encode(self.vector(cast), cast.digest)
        except (ValueError, OSError) as e:
            self.report(f"no vector: {e}")
            if not s.noise:
                self.absent(connection, cast.round, "no vector")
                return
            values = s.encode(zeros, cast.digest)  # an absence would tell of the party's rows
        self.shown(cast.round, values)
        masked = c.submit_digest(cast.digest, values)
        self.told = self.guarded = cast.round
        self.count += 1
        connection.send(transport.MESSAGE, masked)


def read_vector(path):
    """A list of numbers, as JSON."""
    with open(path, encoding="utf-8") as file:
        return [float(x) for x in json.load(file)]


def main():
    flags = argparse.ArgumentParser(description="A party of a job with pairwise sums.")
    for name in "job roster identity coordinator key vector model submitted".split():
        flags.add_argument("--" + name)
    flags.add_argument("--least", type=int, default=0)
    flags.add_argument("--spent", type=int, default=0)
    flags.add_argument("--pipe", action="store_true")
    given = flags.parse_args()
    if given.pipe:
        pipe.Pipe().run()
        return
    with open(given.job, encoding="utf-8") as file:
        declared = json.load(file)
    with open(given.roster, encoding="utf-8") as file:
        roster = session.read_roster(file.read())
    model = None
    if given.model:
        with open(given.model, "rb") as file:
            model = file.read()
    settled = job.Settled(declared.get("declared", declared), roster, model,
                          declared.get("settled"))

    def shown(round, values):
        if given.submitted:
            with open(given.submitted, "a", encoding="utf-8") as out:
                print(json.dumps({"round": round, "values": values}), file=out)

    party = Party(settled, transport.read_identity(given.identity),
                  lambda cast: read_vector(given.vector), given.least, given.spent,
                  lambda text: print(text, file=sys.stderr, flush=True), shown)
    try:
        last = party.run(given.coordinator, unhex(given.key))
    except transport.RefusalError as e:
        sys.exit(f"refused: {e}")
    print(json.dumps(last))


if __name__ == "__main__":
    main()
