"""From a job to a session: SPEC-TRANSPORT.md §3 and §4."""

import math
from decimal import Decimal
from fractions import Fraction

import encoding
from primitives import LABEL, sha256
from session import CHEATING, CURIOUS, SEMI_MALICIOUS, Config, Recovery, need, roster_digest

LONGEST = 32 << 10  # of a greeting's lines


def canonical(value):
    """The text of RFC 8785 of what JSON can say."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(canonical(n) + ":" + canonical(value[n]) for n in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, str):
        short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f",
                 "\r": "\\r"}
        return '"' + "".join(short.get(c) or (c if c >= " " else f"\\u{ord(c):04x}")
                             for c in value) + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(float(value))


def number_text(x):
    """A number as ECMAScript writes it: the fewest digits that give it back."""
    if x == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(x)).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + exponent
    if 0 < point <= 21:
        text = text.ljust(point, "0")
        text = text[:point] + ("." + text[point:] if text[point:] else "")
    elif -6 < point <= 0:
        text = "0." + "0" * -point + text
    else:
        text = text[0] + ("." + text[1:] if text[1:] else "") + f"e{point - 1:+d}"
    return "-" * sign + text


def lines_of(table, at=""):
    """A line for each value, in the order of paths: §3."""
    lines = []
    for name in sorted(table):
        value, path = table[name], at + name
        if isinstance(value, dict):
            lines += lines_of(value, path + ".")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for i, element in enumerate(value):
                lines += lines_of(element, f"{path}.{i}.")
        else:
            lines.append(f"{path} = {canonical(value)}")
    return lines


def greeting(declared):
    """The lines of a job in hello: §3."""
    lines = lines_of(declared)
    if sum(len(line.encode()) + 16 for line in lines) <= LONGEST:
        return lines
    return [f"{name} = sha256 {sha256(canonical(declared[name]).encode()).hex()}"
            for name in sorted(declared)]


def job_digest(declared):
    """§3"""
    return sha256(LABEL + b"job\n" + canonical(declared).encode())


def settled_digest(declared, roster, model=None, before=None, committee=None, multiplier=None,
                   scale=None):
    """§3: rosters as digests, model and before as the bytes of their files."""
    value = {"job": job_digest(declared).hex(), "roster": roster.hex()}
    for name, data in ("model", model), ("before", before):
        if data:
            value[name] = sha256(data).hex()
    if committee:
        value["committee"] = committee.hex()
    for name, number in ("multiplier", multiplier), ("scale", scale):
        if number is not None:
            value[name] = float(f"{number:.5e}")
    return sha256(LABEL + b"settled job\n" + canonical(value).encode())


class Settled:
    """A job of pairwise sums, worked out for a roster: §4. numbers has what "hushsum job check
    --json" prints as settled, or None: then noise and sparse graphs are beyond this program."""

    def __init__(self, declared, roster, model=None, numbers=None):
        self.declared, self.roster = declared, roster
        n, c = len(roster), self.get("parties.colluders", 0)
        need(self.get("parties.count", n) == n, "ErrConfig")
        noise = self.get("privacy.noise", "none")
        beyond = ["sum.committee", "sum.max_weight", "metrics.share", "model.name",
                  "parties.hidden", "parties.weights", "privacy.before",
                  "privacy.submit_after", "privacy.factorise", "privacy.clip_quantile"]
        if noise != "discrete-gaussian" or numbers is None:
            beyond.append("privacy.noise")
        if numbers is None:
            beyond.append("sum.sparse")
        for path in beyond:
            if self.get(path, "none") != "none":
                raise SystemExit(f"this party takes part in no job with {path}")
        self.rounds = declared["rounds"]
        self.submissions = self.get("parties.participations", 0) or self.rounds
        self.clip = self.get("privacy.clip", 0)
        self.range = self.get("sum.range", 64)
        self.fraction_bits = self.get("sum.fraction_bits", 20)
        self.length = declared["model"].get("length") or sum(
            math.prod(t["shape"]) for t in declared["model"]["tensor"])
        self.noise = None
        if numbers is None:
            self.work_out(n, c)
        else:
            self.members = numbers["min_members"]
            self.recovery = numbers["recovery"] and Recovery(**numbers["recovery"])
            self.layout = [(s["length"], s["bits"]) for s in numbers["layout"]]
            self.noise = numbers["noise"]
        multiplier = scale = None
        if self.noise:
            multiplier, scale = self.noise["multiplier"], self.noise["scale"]
        self.digest = settled_digest(declared, roster_digest(roster), model, None, None, multiplier,
                                     scale)
        self.label = f"{declared['name']} {self.digest.hex()}"

    def get(self, path, default):
        *tables, name = path.split(".")
        table = self.declared
        for part in tables:
            table = table.get(part, {})
        return table.get(name, default)

    def work_out(self, n, c):
        """The numbers of sessions on complete graphs, without noise: §4.2 and §4.3."""
        peak = math.ceil(Fraction(self.range) * 2**self.fraction_bits)
        self.layout = [(self.length, (peak * n).bit_length() + 1)]
        need(self.layout[0][1] <= 64, "ErrConfig")
        self.members, self.recovery = n, None
        if self.get("parties.drop_out", 0) == 0 and not self.get("sum.recovery", False):
            return
        adversary = {"cheating": CHEATING, "semi-malicious": SEMI_MALICIOUS,
                     "curious": CURIOUS}[self.get("sum.adversary", "cheating")]
        per_round = self.get("parties.per_round", 0)
        drawn = min(per_round or n, n)
        least = max(1, drawn - math.floor(self.get("parties.drop_out", 0) * drawn + 1e-9))
        threshold = c + 1 if adversary == CURIOUS else (n - 1 + c) // 2 + 1
        self.members, self.recovery = least, Recovery(adversary, threshold, least)
        if per_round and least <= threshold:
            self.members, self.recovery = per_round, Recovery(adversary)

    def config(self, number):
        """The configuration of a session: §4.1."""
        r = self.recovery
        config = Config(self.roster, self.layout, self.label, number, self.members,
                        self.get("parties.colluders", 0), r and Recovery(**vars(r)),
                        classical=self.get("sum.classical", False))
        config.check()
        return config

    def encode(self, vector, broadcast_digest):
        """A party's vector as a submission: §4.3, §4.4."""
        if len(vector) != self.length or not all(map(math.isfinite, vector)):
            raise ValueError(f"a vector of {len(vector)} numbers, want {self.length} finite ones")
        bits = self.layout[0][1]
        if self.noise:
            return [encoding.with_noise(vector, broadcast_digest, self.clip, self.noise["scale"],
                                        Fraction(self.noise["share"]), bits)]
        if self.clip:
            vector = encoding.clipped(vector, self.clip)
        if any(abs(x) > self.range for x in vector):
            raise ValueError(f"a number beyond the range of {self.range}")
        return [encoding.fixed_point(vector, self.fraction_bits, bits)]
