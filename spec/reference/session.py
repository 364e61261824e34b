"""The public side of a session: configuration, schedule, graph, packing. SPEC.md §2 to §9."""

from dataclasses import dataclass, field
from functools import lru_cache

from primitives import H, LABEL, L, identity_acceptable, sha256, u8, u32, u64

SERVER = 2**32 - 1
CHEATING, SEMI_MALICIOUS, CURIOUS = range(3)
(ANNOUNCE, KEYS, BEGIN, MASKED, UPLOAD, INVITE, SURVIVORS, SIGNED, CERTIFICATE, REVEAL,
 ENCAPSULATE, MEMBERS) = range(1, 13)  # §9.2


class Refused(Exception):
    """An error of §11: its name, and the party that it names, or None."""

    def __init__(self, name, party=None):
        super().__init__(name if party is None else f"{name}({party})")
        self.name, self.party = name, party


def need(condition, name, party=None):  # §11
    if not condition:
        raise Refused(name, party)


# §2.1


def roster_digest(roster):
    """The digest of a list of (name, key), or of (name, key, weight)."""
    parts = [u8(len(p[0])) + p[0].encode() + p[1] for p in roster]
    weights = [u32(p[2]) for p in roster if len(p) > 2]
    return H(b"roster", u32(len(roster)), *parts, *weights)


def check_roster(roster):  # §2.1, §2.2
    need(2 <= len(roster) <= 2**20, "ErrRosterSize")
    for name, key, *_ in roster:
        need(1 <= len(name) <= 64 and all("!" <= c <= "~" and c != "#" for c in name), "ErrName")
        need(identity_acceptable(key), "ErrIdentityKey")
    for i in range(2):
        need(len({p[i] for p in roster}) == len(roster), "ErrDuplicateIdentity")
    weights = [p[2] for p in roster if len(p) > 2]
    need(len(weights) in (0, len(roster)) and all(1 <= w <= 2**16 for w in weights), "ErrWeight")


def read_roster(text):
    """A roster file: §2.1."""
    roster = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, key, *weight = line.split(" ")
        need(len(key) == 64 and all(c in "0123456789abcdef" for c in key)
             and len(weight) <= 1 and all(w.isdecimal() for w in weight), "ErrRosterLine")
        roster.append((name, bytes.fromhex(key), *map(int, weight)))
    check_roster(roster)
    return roster


# §3


@dataclass
class Recovery:  # §3.1
    adversary: int = CHEATING
    threshold: int = 0
    min_survivors: int = 0
    degree: int = 0
    corrupt_neighbours: int = 0


@dataclass
class Numbers:
    """The numbers of a size: §3.2."""
    N: int
    h: int
    t: int
    q: int
    m: int


@dataclass
class Config:
    """The values of §3.1. After check() defaults are filled in, but for t and m."""
    roster: list
    layout: list  # of (length, bits)
    label: str = ""
    number: int = 0
    min_members: int = 0
    colluders: int = 0
    recovery: Recovery = None
    per_round: int = 0
    seed: bytes = bytes(32)
    max_skip: int = 0
    classical: bool = False
    digest: bytes = field(default=b"", init=False)

    @property
    def n(self):
        return len(self.roster)

    @property
    def sparse(self):
        return self.recovery is not None and self.recovery.degree < min(self.per_round, self.n) - 1

    @property
    def draws(self):
        """Whether the session is one with PerRound."""
        return self.per_round < self.n

    @property
    def most_peers(self):
        """p of §3.1."""
        return self.recovery.degree if self.sparse and not self.draws else self.n - 1

    def check(self):
        """Refuses a bad configuration, and fills in defaults: §3.1."""
        n = self.n
        check_roster(self.roster)
        need(len(self.label.encode()) <= 255 and 0 <= self.number < 2**64, "ErrConfig")
        self.min_members = self.min_members or n
        self.per_round = self.per_round or n
        need(2 <= self.min_members <= n and 2 <= self.per_round <= n, "ErrConfig")
        need(1 <= len(self.layout) <= 1024, "ErrConfig")
        need(all(x >= 1 and 1 <= b <= 64 for x, b in self.layout), "ErrConfig")
        need(sum(x for x, _ in self.layout) <= 2**28 and len(self.seed) == 32, "ErrConfig")
        need(self.colluders >= 0, "ErrConfig")
        r = self.recovery
        if r is not None:
            N = min(self.per_round, n)
            r.degree = r.degree or N - 1
            need(r.degree == N - 1 or 2 <= r.degree <= N - 2, "ErrConfig")
            need(r.adversary in (0, 1, 2), "ErrConfig")
            need(r.threshold >= 0 and r.min_survivors >= 0, "ErrConfig")
            need(r.corrupt_neighbours == 0
                 or self.sparse and 1 <= r.corrupt_neighbours <= self.colluders, "ErrConfig")
            need(not self.sparse or r.adversary != CHEATING, "ErrConfig")
        least = -(-14 * n // self.per_round) if self.draws else 1
        most = 2**27 // self.most_peers
        self.max_skip = self.max_skip or max(least, min(1000, most))
        need(least <= self.max_skip <= most, "ErrConfig")
        for size in range(self.min_members, n + 1):  # four would do, see annex A.1
            if size < self.min_members + 2 or size > n - 2:
                self.check_size(size)
        self.digest = self.config_digest()

    def check_size(self, size):
        """The conditions of §3.2."""
        x, c, r = self.numbers(size), self.colluders, self.recovery
        need(c <= x.N - 2, "ErrConfig")
        if r is None:
            return
        f = r.corrupt_neighbours or c if self.sparse else c
        if self.sparse:
            need(2 <= r.degree < x.N - 1 and not (r.degree % 2 and x.N % 2), "ErrConfig")
        need(x.t <= x.h, "ErrConfig")
        need(x.t > f if r.adversary == CURIOUS else 2 * x.t > x.h + f, "ErrConfig")
        need(max(x.t + 1, x.q) <= x.m <= x.N, "ErrConfig")

    def numbers(self, size):
        """N, h, t, q and m of a size: §3.2."""
        N, r = min(self.per_round, size), self.recovery
        h = r.degree if self.sparse else N - 1
        if r is None:
            return Numbers(N, h, 0, 0, N)
        curious = r.adversary == CURIOUS
        t = r.threshold or (h // 2 if curious else 2 * h // 3) + 1
        q = t if curious or self.sparse else (N + self.colluders) // 2 + 1
        return Numbers(N, h, t, q, r.min_survivors or max(t + 1, q))

    def config_digest(self):
        """§3.3"""
        r = self.recovery
        recovery = u8(0)
        if r is not None:
            recovery = u8(1 + r.adversary) + u32(r.degree) + u32(r.threshold) + u32(r.min_survivors)
            if r.corrupt_neighbours:
                recovery += u32(r.corrupt_neighbours)
        label = self.label.encode()
        return H(b"config", u8(len(label)) + label, u64(self.number), roster_digest(self.roster),
                 u32(self.min_members), u32(self.colluders), u8(not self.classical),
                 u64(self.max_skip), u32(self.per_round), self.seed, u32(len(self.layout)),
                 *(u32(x) + u8(b) for x, b in self.layout), recovery)

    def max_message(self):
        """MaxMessage of §12."""
        n, p, s = self.n, self.most_peers, set_size(self.n)
        x, packed = self.numbers(n), sum(-(-x * b // 8) for x, b in self.layout)
        lengths = [s + 96 * n, 32 + s + 72 * x.h, 68 * x.N, packed]
        if self.recovery is not None:
            lengths.append(packed + 136 + 128 * x.h)
        if not self.classical:
            lengths += [1280, s + 128 * n + 1184 * p,
                        s + (1152 + 32 * (p - 1).bit_length()) * p]
        return 46 + max(lengths)


def config_of_json(value):
    """A configuration in the form of §3.3."""
    known = {"label", "number", "roster", "min_members", "layout", "colluders", "recovery",
             "per_round", "seed", "max_skip", "classical"}
    need(set(value) <= known and {"roster", "layout"} <= set(value), "ErrConfig")
    rest = {k: v for k, v in value.items() if k not in ("roster", "layout", "recovery", "seed")}
    recovery = value.get("recovery")
    need(recovery is None or set(recovery) <= set(Recovery.__dataclass_fields__), "ErrConfig")
    return Config([(p["name"], bytes.fromhex(p["key"])) for p in value["roster"]],
                  [(x["length"], x["bits"]) for x in value["layout"]],
                  recovery=None if recovery is None else Recovery(**recovery),
                  seed=bytes.fromhex(value.get("seed", "00" * 32)), **rest)


# §7


def permutation(n, seed):
    """§7.1"""
    p, words, block = list(range(n)), [], 0
    for i in range(n - 1, 0, -1):
        x = i + 1
        while True:
            if not words:
                digest = H(b"permutation", u32(n), seed, u64(block))
                words = [int.from_bytes(digest[k:k + 4], "big") for k in range(0, 32, 4)]
                block += 1
            w = words.pop(0)
            if w < 2**32 - 2**32 % x:
                break
        j = w % x
        p[i], p[j] = p[j], p[i]
    return p


def ring_neighbours(parties, degree, seed, g):
    """The neighbours of each of some parties in a sparse graph: §7.4."""
    k = len(parties)
    p = permutation(k, H(b"graph", seed, u64(g)))
    steps = [d for x in range(1, degree // 2 + 1) for d in (x, -x)] + [k // 2] * (degree % 2)
    return {parties[p[j]]: {parties[p[(j + d) % k]] for d in steps} for j in range(k)}


class Topology:
    """Who is scheduled, and who are neighbours, once A and the keys digest are known."""

    def __init__(self, config, announced, keys_digest):
        self.config, self.announced = config, sorted(announced)
        self.members = self.session = None
        self.graph = None
        zero = not any(config.seed)
        self.seed = None if zero else config.seed
        if config.sparse and not config.draws:
            self.graph = ring_neighbours(self.announced, config.recovery.degree,
                                         keys_digest if zero else config.seed, 0)

    def begin(self, members, session):
        self.members, self.session = sorted(members), session
        self.seed = self.seed or session
        self.scheduled = lru_cache(64)(self._scheduled)
        self._drawn = lru_cache(16)(self._drawn)

    def possible_peers(self, u):
        """§4.1"""
        if self.graph is not None:
            return sorted(self.graph[u])
        return [v for v in self.announced if v != u]

    def higher_peers(self, u):  # §4.1
        return [v for v in self.possible_peers(u) if v > u]

    def _scheduled(self, round):
        """§7.3"""
        m, per_round = self.members, self.config.per_round
        if len(m) <= per_round:
            return frozenset(m)
        p = permutation(len(m), H(b"schedule", self.seed, u64(round)))
        return frozenset(m[i] for i in p[:per_round])

    def _drawn(self, round):
        return ring_neighbours(sorted(self.scheduled(round)), self.config.recovery.degree,
                               self.seed, round)

    def neighbours(self, u, round):
        """§7.4: the neighbours of a party in a round, ascending."""
        if u not in self.scheduled(round):
            return []
        if self.graph is not None:
            return sorted(v for v in self.graph[u] if v in self.members)
        if self.config.sparse:
            return sorted(self._drawn(round)[u])
        return sorted(self.scheduled(round) - {u})

    def next_round(self, u, round):
        """The next round of a party after this one: §7.3."""
        for r in range(round + 1, round + self.config.max_skip + 1):
            if u in self.scheduled(r):
                return r
        raise Refused("ErrSkip")


# §8


def pack(values, layout):
    """§8.3"""
    out = b""
    for v, (length, bits) in zip(values, layout):
        number = 0
        for x in reversed(v):
            number = number << bits | x
        out += number.to_bytes(-(-length * bits // 8), "little")
    return out


# §9


def set_size(n):
    return -(-n // 8)


def make_set(parties, n):
    """§9.3"""
    return sum(1 << i for i in parties).to_bytes(set_size(n), "little")


def read_set(data, n):
    """The set that data begins with, and the rest: §9.3, and "set" of §11."""
    size = set_size(n)
    need(len(data) >= size, "ErrTruncated")
    number = int.from_bytes(data[:size], "little")
    need(number >> n == 0, "ErrEncoding")
    return frozenset(i for i in range(n) if number >> i & 1), data[size:]


def need_length(data, length):
    """"Length" of §11."""
    need(len(data) >= length, "ErrTruncated")
    need(len(data) <= length, "ErrTrailing")


def header(type, session, round, sender):
    """§9.1"""
    return u8(1) + u8(type) + session + u64(round) + u32(sender)


@dataclass
class Message:
    type: int
    session: bytes
    round: int
    sender: int
    body: bytes


def read_message(data):
    """The header of a message: 1 of "every message" in §11.1."""
    need(len(data) > 0, "ErrTruncated")
    need(data[0] == 1, "ErrVersion")
    need(len(data) >= 46, "ErrTruncated")
    number = int.from_bytes
    return Message(data[1], data[2:34], number(data[34:42], "big"), number(data[42:46], "big"),
                   data[46:])


def cut(data, size):
    """Data in pieces of one size."""
    return [data[i:i + size] for i in range(0, len(data), size)]


# The tree of §4.3: RFC 9162 §2.1.1 and §2.1.3.


def tree_split(n):  # §4.3
    return 1 << (n - 1).bit_length() - 1


def tree_root(leaves):  # §4.3
    if not leaves:
        return sha256(b"")
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0])
    k = tree_split(len(leaves))
    return sha256(b"\1" + tree_root(leaves[:k]) + tree_root(leaves[k:]))


def tree_path(i, leaves):  # §4.3
    if len(leaves) == 1:
        return []
    k = tree_split(len(leaves))
    if i < k:
        return tree_path(i, leaves[:k]) + [tree_root(leaves[k:])]
    return tree_path(i - k, leaves[k:]) + [tree_root(leaves[:k])]


def path_length(i, n):  # §4.3
    if n == 1:
        return 0
    k = tree_split(n)
    return 1 + (path_length(i, k) if i < k else path_length(i - k, n - k))


def path_root(leaf, i, n, path):
    """The root that a leaf at i of n has with a path."""
    if n == 1:
        return sha256(b"\0" + leaf)
    k, (*below, last) = tree_split(n), path
    if i < k:
        return sha256(b"\1" + path_root(leaf, i, k, below) + last)
    return sha256(b"\1" + last + path_root(leaf, i - k, n - k, below))


# §6


def read_scalar(data):
    """A scalar of §6.1, or None."""
    value = int.from_bytes(data, "little")
    return value if value < L else None


def write_scalar(x):  # §6.1
    return x.to_bytes(32, "little")


def shares_of(coefficients, holders):
    """f(i + 1) for each holder i: §6.2."""
    out = {}
    for i in holders:
        value = 0
        for a in reversed(coefficients):
            value = (value * (i + 1) + a) % L
        out[i] = value
    return out


def share_data(session, round, purpose, sender, to, binding):
    """The associated data of a sealed share: §6.3."""
    return (LABEL + b"share" + session + u64(round) + u8(purpose) + u32(sender) + u32(to)
            + binding)
