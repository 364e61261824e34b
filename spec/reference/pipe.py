"""Calls of a party over a pipe, for tests that hold two implementations against each other.

Each line of the input is a call, a JSON object, and each line of the output its answer. Bytes are
in hexadecimal digits, ring values decimal texts, as in the vectors of SPEC.md §14.

    {"call": "new", "party": NAME, "config": {…}, "identity_seed": …, "random_seed": …}
    {"call": "receive", "party": NAME, "message": …}     the party takes a message of the server
    {"call": "try", "party": NAME, "message": …}         a copy of it does, the party stays as it is
    {"call": "submit", "party": NAME, "broadcast": …, "input": [["1", …], …]}

The answer is {"answer": …} with the message that the party sends, or null, or {"error": …, "party":
…} with the name of the error and the party that it names, or null. "try" adds "changed": true to an
error if the copy is not as it was, which is a fault. A party draws from the stream of §14 of its
random_seed. What is no call is answered {"fault": …}."""

import copy
import json
import sys

import client
import session
from primitives import sha256, u64, unhex


class Stream:
    """The stream of SPEC.md §14 that a party of the vectors draws from."""

    def __init__(self, seed):
        self.seed, self.held, self.block = seed, b"", 0

    def __call__(self, k):
        while len(self.held) < k:
            self.held += sha256(self.seed + u64(self.block))
            self.block += 1
        out, self.held = self.held[:k], self.held[k:]
        return out


def frozen(x):
    """All that an object holds, to compare: functions and sources of randomness aside."""
    if isinstance(x, dict):
        return {k: frozen(v) for k, v in x.items() if not callable(v)}
    if isinstance(x, (list, tuple)):
        return [frozen(v) for v in x]
    return frozen(vars(x)) if hasattr(x, "__dict__") else x


def integers(segments):
    return [[int(x) for x in segment] for segment in segments]


class Pipe:
    def __init__(self):
        self.parties = {}

    def call(self, given):
        """The answer to a call."""
        changed = {}
        try:
            kind, name = given["call"], given["party"]
            if kind == "new":
                config = session.config_of_json(given["config"])
                config.check()
                self.parties[name] = client.Client(config, unhex(given["identity_seed"]),
                                                   Stream(unhex(given["random_seed"])))
                answer = self.parties[name].announce
            elif kind == "receive":
                answer = self.parties[name].receive(unhex(given["message"]))
            elif kind == "try":
                party = copy.deepcopy(self.parties[name])
                try:
                    answer = party.receive(unhex(given["message"]))
                except session.Refused:
                    if frozen(party) != frozen(self.parties[name]):
                        changed = {"changed": True}
                    raise
            elif kind == "submit":
                answer = self.parties[name].submit(unhex(given["broadcast"]),
                                                   integers(given["input"]))
            else:
                raise ValueError(f"no call {kind}")
        except session.Refused as e:
            return {"error": e.name, "party": e.party} | changed
        return {"answer": answer and answer.hex()}

    def run(self):
        for line in sys.stdin:
            try:
                answer = self.call(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as e:
                answer = {"fault": f"{type(e).__name__}: {e}"}
            print(json.dumps(answer), flush=True)
