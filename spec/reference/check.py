"""Checks the party against the vectors of SPEC.md §14 and SPEC-TRANSPORT.md §10.

    python3 spec/reference/check.py [folder of the project]

It prints what it has checked of each file, and what it passes over, which is the server's. It
ends with status 1 if anything differs."""

import json
import sys
from pathlib import Path

import client as party
import job
import primitives
import session as public
import transport
from pipe import Stream, frozen, integers
from primitives import H, u64, unhex

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2])
VECTORS = ROOT / "protocol" / "testdata"
SESSIONS = ("plain recovery sparse odd missing some classical scheduled whole "
            "colluders").split()


class Tally:
    """Counts what was compared in one file."""

    def __init__(self, name):
        self.name, self.checked, self.passed_over, self.wrong = name, 0, 0, []

    def same(self, got, want, about):
        self.checked += 1
        if got != want:
            self.wrong.append(f"{about}: got {shorten(got)}, want {shorten(want)}")

    def report(self):
        rest = f", {self.passed_over} of the server passed over" if self.passed_over else ""
        print(f"{self.name}: {self.checked} checked, {len(self.wrong)} wrong{rest}")
        for line in self.wrong[:20]:
            print("   ", line)
        return not self.wrong


def shorten(value):
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) < 90 else f"{text[:80]}… ({len(text)} characters)"


def outcome(call, *arguments):
    """What a call returns, or the error and whom it names."""
    try:
        return call(*arguments)
    except public.Refused as e:
        return e.name, e.party


class Session:
    """A session of the vectors, and its parties as they follow it."""

    def __init__(self, name):
        self.file = json.loads((VECTORS / name).read_text())
        self.parties = [None] * len(self.file["parties"])
        self.answers = [[] for _ in self.parties]
        self.at = 0

    def start(self):
        for i, p in enumerate(self.file["parties"]):
            config = public.config_of_json(self.file["config"])
            config.check()
            self.parties[i] = party.Client(config, unhex(p["identity_seed"]),
                                           Stream(unhex(p["random_seed"])))
            self.answers[i] = [self.parties[i].announce]

    def step(self):
        """Plays the next message. It returns what a party sends instead of it, or None."""
        m = self.file["messages"][self.at]
        data, self.at = unhex(m["message"]), self.at + 1
        if m["from"] < 0:
            if not m.get("lost"):
                answer = outcome(self.parties[m["to"]].receive, data)
                if answer is not None:
                    self.answers[m["to"]].append(answer)
            return None
        i = m["from"]
        if m["type"] == "Masked":
            round = int.from_bytes(data[34:42], "big")
            r = next(r for r in self.file["rounds"] if r["round"] == round)
            values = next(x for x in r["inputs"] if x["party"] == i)["input"]
            return outcome(self.parties[i].submit, unhex(r["broadcast"]),
                           integers(values))
        return self.answers[i].pop(0) if self.answers[i] else None


def check_session(name):
    """A whole session: every message of every party, keys, digests and sums."""
    tally, s = Tally(name), Session(name)
    s.start()
    f = s.file
    pairs = {(r["round"], p["low"], p["high"]): p for r in f["rounds"] for p in r["pairs"]}
    wrong = {(r["round"], w["holder"], w["owner"]) for r in f["rounds"]
             for w in r.get("wrong") or []}
    for i, p in enumerate(f["parties"]):
        tally.same(s.parties[i].private.hex(), p["x25519_private"], f"X25519 key of {i}")
    for m in f["messages"]:
        begins, i = m["type"] == "Begin" and not m.get("lost"), m["to"]
        got, about = s.step(), f"message {s.at - 1}, {m['type']} of {m['from']}"
        want = unhex(m["message"])
        if m["from"] >= 0 and m["type"] == "Reveal" and isinstance(got, bytes):
            round = int.from_bytes(want[34:42], "big")
            tally.same(got[:46], want[:46], about)
            for a, b in zip(public.cut(got[46:], 36), public.cut(want[46:], 36), strict=True):
                owner = int.from_bytes(b[:4], "big")
                tally.same(a == b, (round, m["from"], owner) not in wrong, f"{about} for {owner}")
        elif m["from"] >= 0:
            tally.same(got, want, about)
        elif begins:  # keys of the round
            c = s.parties[i]
            tally.same(c.state, "B", f"state after {about}")
            for v in c.open.near if c.open else ():
                p = pairs[c.last, min(i, v), max(i, v)]
                pair = c.pairs[v]
                info = primitives.LABEL + b"mask" + c.open.context
                tally.same(pair.key.hex(), p["chain_key"], f"chain of {i} and {v}")
                tally.same(pair.secret().hex(), p["pair_secret"], f"secret of {i} and {v}")
                tally.same(primitives.expand(pair.secret(), info, 28).hex(), p["mask_seed"],
                           f"mask seed of {i} and {v}")
    joined = [c for c in s.parties if c.session is not None]
    tally.same(public.roster_digest(joined[0].config.roster).hex(), f["roster_digest"], "roster")
    for c in joined:
        tally.same(c.config.digest.hex(), f["config_digest"], "configuration")
        tally.same(c.session.hex(), f["session_id"], "session")
        tally.same(c.topology.members, f["members"], "members")
    topology = joined[0].topology
    for r in f["rounds"]:
        scheduled = topology.scheduled(r["round"]) & set(r["holders"])
        tally.same(sorted(scheduled), r["scheduled"], "scheduled")
        context = H(b"context", joined[0].session, u64(r["round"]),
                    H(b"broadcast", unhex(r["broadcast"])),
                    public.make_set(r["holders"], len(s.parties)),
                    public.make_set(r["participants"], len(s.parties)))
        tally.same(context.hex(), r["context"], "context")
        if r.get("sum"):
            inputs = [x["input"] for x in r["inputs"] if x["party"] in r["included"]]
            total = [[str(sum(map(int, xs)) % 2**bits) for xs in zip(*segment)]
                     for segment, (_, bits) in zip(zip(*inputs), joined[0].config.layout)]
            tally.same(total, r["sum"], f"sum of round {r['round']}")
    return tally


def check_refusals():
    """Messages to refuse: the error, whom it names, and that the party is as it was."""
    tally = Tally("refusals.json")
    cases = json.loads((VECTORS / tally.name).read_text())
    mine = [c for c in cases if c["to"] >= 0]
    tally.passed_over = len(cases) - len(mine)
    for name in sorted({c["session"] for c in mine}):
        s = Session(name)
        s.start()
        for case in sorted((c for c in mine if c["session"] == name), key=lambda c: c["messages"]):
            while s.at < case["messages"]:
                s.step()
            c = s.parties[case["to"]]
            before = frozen(c)
            got = outcome(c.receive, unhex(case["message"]))
            tally.same(got, (case["error"], case["party"]), f"{name}: {case['about']}")
            tally.same(frozen(c) == before, True, f"{name}: {case['about']}: as it was")
    return tally


def check_configurations():
    tally = Tally("configurations.json")
    for v in json.loads((VECTORS / tally.name).read_text()):
        about = v["about"]
        try:
            c = public.config_of_json(v["config"])
            c.check()
        except (public.Refused, KeyError, TypeError):
            tally.same(False, v["accepted"], about)
            continue
        tally.same(True, v["accepted"], about)
        if not v["accepted"]:
            continue
        tally.same(public.roster_digest(c.roster).hex(), v["roster_digest"], about)
        tally.same(c.digest.hex(), v["config_digest"], about)
        tally.same((c.max_skip, c.max_message()), (v["max_skip"], v["max_message"]), about)
        for x in v["sizes"]:
            tally.same({"size": x["size"], **vars(c.numbers(x["size"]))}, x, about)
    return tally


def check_calls():
    """Scripts of calls, as far as they are a party's."""
    tally = Tally("calls.json")
    for script in json.loads((VECTORS / tally.name).read_text()):
        parties = [party.Series(script["label"], unhex(p["identity_seed"]),
                                Stream(unhex(p["random_seed"]))) for p in script["parties"]]
        for k, step in enumerate(script["steps"]):
            if step["at"] < 0:
                tally.passed_over += 1
                continue
            about = f"{script['label']}, step {k}, {step['call']} at {step['at']}"
            p = parties[step["at"]]
            if step["call"] == "Succeed":
                config = public.config_of_json(script["configs"][step["session"]])
                got = outcome(lambda: config.check() or p.succeed(config))
            elif step["call"] == "Receive":
                got = outcome(p.receive, unhex(step["message"]))
            else:
                got = outcome(p.submit, step["broadcast"].encode(),
                              integers(step["input"]))
            want = unhex(step["answer"]) if "answer" in step else None
            if "error" in step:
                want = step["error"], step.get("names")
            tally.same(got, want, about)
            if "least" in step:
                tally.same(p.least, step["least"], about)
    return tally


def check_parts():
    tally = Tally("parts.json")
    f = json.loads((VECTORS / tally.name).read_text())
    for v in f["permutations"]:
        tally.same(public.permutation(v["n"], unhex(v["seed"])), v["permutation"], "permutation")
    for v in f["expansions"]:
        layout = [tuple(x) for x in v["layout"]]
        masks = primitives.mask(unhex(v["seed"]), layout)
        tally.same([[str(x) for x in m] for m in masks], v["masks"], "masks")
        tally.same(public.pack(masks, layout).hex(), v["packed"], "packing")
    for v in f["sealed_shares"]:
        data = public.share_data(unhex(v["session"]), v["round"], v["purpose"], v["from"], v["to"],
                                 unhex(v["binding"]))
        key, nonce, share = (unhex(v[x]) for x in ("channel_key", "nonce", "share"))
        sealed = nonce + primitives.seal(key, nonce, share, data)
        tally.same(sealed.hex(), v["sealed"], "sealed share")
        tally.same(primitives.unseal(key, nonce, sealed[24:], data), share, "opened share")
    check_keys(tally, f["keys"])
    for v in f["trees"]:
        leaves = [primitives.u32(to) + unhex(ct) for to, ct in zip(v["to"], v["ciphertexts"])]
        tally.same(public.tree_root(leaves).hex(), v["root"], "root of a tree")
        for i, path in enumerate(v["paths"]):
            tally.same([x.hex() for x in public.tree_path(i, leaves)], path, "path")
            tally.same(public.path_length(i, len(leaves)), len(path), "length of a path")
            root = public.path_root(leaves[i], i, len(leaves), [unhex(x) for x in path])
            tally.same(root.hex(), v["root"], "root by a path")
    return tally


def check_keys(tally, keys):
    rules = {"identity": primitives.identity_acceptable, "x25519": primitives.x25519_acceptable}
    for v in keys:
        tally.same(rules[v["kind"]](unhex(v["key"])), v["accepted"], v["about"])


def check_edges():
    tally = Tally("edges.json")
    f = json.loads((VECTORS / tally.name).read_text())
    for v in f["decapsulations"]:
        c = unhex(v["ciphertext"])
        _, dk = primitives.kem_keys(unhex(v["mlkem_seed"]))
        secret = primitives.kem_decapsulate(dk, c).hex() if len(c) == 1088 else ""
        tally.same(secret, v.get("secret", ""), v["about"])
    for v in f["signatures"]:
        label = v["label"].encode()
        message = primitives.u8(len(label)) + label + unhex(v["statement"])
        accepted = primitives.verify_raw(unhex(v["key"]), message, unhex(v["signature"]))
        tally.same(v["accepted"] in ("either", "yes" if accepted else "no"), True, v["about"])
    check_keys(tally, f["identities"])
    return tally


class Wire(transport.Connection):
    """A connection that only keeps what is sent."""

    def __init__(self):
        self.parts, self.sent = None, b""

    def send_frame(self, frame):
        self.sent += primitives.u32(len(frame)) + frame

    def made(self, kind, body):
        """The bytes of a body, as JSON unless it is bytes."""
        self.sent = b""
        (self.send if isinstance(body, bytes) else self.send_json)(kind, body)
        return self.sent.hex()


def roster_of(file):
    return [(f"party-{i}", primitives.identity_public(unhex(seed)))
            for i, seed in enumerate(file["identities"])]


def check_transport():
    """SPEC-TRANSPORT.md §10: frames, the digests of jobs, and what they say in hello."""
    tally = Tally("transport.json")
    f = json.loads((ROOT / "testdata" / tally.name).read_text())
    roster = public.roster_digest(roster_of(f))
    tally.same(roster.hex(), f["roster"], "roster")
    for v in f["jobs"]:
        about, declared = v["about"], v["declared"]
        tally.same(job.job_digest(declared).hex(), v["digest"], about)
        settled = job.settled_digest(declared, roster, unhex(v.get("model", "")), None,
                                     unhex(v.get("committee", "")), v.get("multiplier"),
                                     v.get("scale"))
        tally.same(settled.hex(), v["settled"], f"{about}: settled")
        tally.same(job.greeting(declared), v["job"], f"{about}: lines")
        if "numbers" in v:
            worked = job.Settled(declared, roster_of(f), unhex(v.get("model", "")))
            tally.same(worked.digest.hex(), v["settled"], f"{about}: digest")
            tally.same({"min_members": worked.members, "noise": None,
                        "recovery": worked.recovery and vars(worked.recovery),
                        "layout": [{"length": x, "bits": b} for x, b in worked.layout]},
                       v["numbers"], f"{about}: numbers")
            tally.same(worked.config(7).digest,
                       job.Settled(declared, roster_of(f), unhex(v.get("model", "")),
                                   v["numbers"]).config(7).digest, f"{about}: configuration")
    wire = Wire()
    hello = {"job": f["job"], "roster": f["roster"], "digest": f["digest"]}
    number, body = primitives.u64, unhex(f["frames"][3]["bytes"])[5:]
    ours = {"hello of a party in session 3": (1, hello | {"sessions": [3], "least": 4}),
            "join session 4": (3, number(4)),
            "broadcast of round 2": (5, body), "end after round 2": (6, body),
            "absence from round 3": (8, {"told": 2, "absent": 3, "why": "no vector"}),
            "absence from none": (8, {"told": 2, "absent": 0, "why": ""}),
            "offer for round 3": (9, number(3)), "upload in round 3": (10, number(3))}
    for v in f["frames"]:
        frame = unhex(v["bytes"])[4:]
        tally.same(len(frame), int(v["bytes"][:8], 16), f"{v['about']}: length")
        if v["about"] in ours:
            tally.same(wire.made(*ours[v["about"]]), v["bytes"], v["about"])
        whole = wire.join(frame, 1000)
        if frame[0] in (transport.BROADCAST, transport.END):
            cast = transport.Cast(whole)
            tally.same((cast.round, cast.digest.hex(), cast.model), (2, f["broadcast"], [0.5, -1]),
                       v["about"])
        if frame[0] == transport.REFUSAL:
            tally.same(str(transport.read_refusal(whole)),
                       "privacy.epsilon: the coordinator has 8, this party 1", v["about"])
    tally.passed_over = len(f["refused"])
    return tally


def main():
    tallies = [check_session(f"{name}.json") for name in SESSIONS]
    tallies += [check_refusals(), check_configurations(), check_calls(), check_parts(),
                check_edges(), check_transport()]
    good = [t.report() for t in tallies]
    print(f"{sum(t.checked for t in tallies)} checked, {sum(len(t.wrong) for t in tallies)} wrong")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
