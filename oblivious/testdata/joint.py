"""Reads sessions of joint noise by docs/joint-noise.md alone, without packages.

python3 joint.py reads one session a line from standard input, as JSON: the configuration (label, d,
bound, coins, roster as a list of name and key) and the messages in order, all bytes in hex. It
prints a verdict a line: the sums, or "refused" and the number of the message."""

import hashlib
import json
import sys

P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)
LABEL = b"hushsum/1 joint "


class Refused(Exception):
    pass


def need(condition):
    if not condition:
        raise Refused


# The curve, in extended coordinates (X : Y : Z : T).

ZERO = (0, 1, 1, 0)


def add(p, q):
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * p[3] * q[3] * D % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def negative(p):
    return -p[0] % P, p[1], p[2], -p[3] % P


def times(k, p):
    out = ZERO
    for bit in bin(k % Q)[2:]:
        out = add(out, out)
        if bit == "1":
            out = add(out, p)
    return out


def root_of_ratio(u, v):
    """SQRT_RATIO_M1 of RFC 9496, section 4.2."""
    r = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * r * r % P
    square = check in (u % P, -u % P)
    if check in (-u % P, -u * ROOT % P):
        r = r * ROOT % P
    return square, even(r)


def even(x):
    x %= P
    return P - x if x % 2 else x


def decode(b):
    s = int.from_bytes(b, "little")
    need(s < P and s % 2 == 0 and s != 0)  # the identity is refused
    u1, u2 = (1 - s * s) % P, (1 + s * s) % P
    v = (-D * u1 * u1 - u2 * u2) % P
    square, r = root_of_ratio(1, v * u2 * u2)
    x = even(2 * s * r * u2)
    y = u1 * r * r * u2 * v % P
    t = x * y % P
    need(square and t % 2 == 0 and y != 0)
    return x, y, 1, t


def encode(p):
    x, y, z, t = p
    u1, u2 = (z + y) * (z - y) % P, x * y % P
    _, r = root_of_ratio(1, u1 * u2 * u2)
    d1, d2 = r * u1 % P, r * u2 % P
    inverse = d1 * d2 * t % P
    if t * inverse % P % 2:
        _, half = root_of_ratio(1, (-1 - D) % P)
        x, y, d = y * ROOT % P, x * ROOT % P, d1 * half % P
    else:
        d = d2
    if x * inverse % P % 2:
        y = -y % P
    return even(d * (z - y)).to_bytes(32, "little")


def edwards(b):
    """A point of Ed25519 (RFC 8032, section 5.1.3)."""
    y = int.from_bytes(b, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    need(y < P)
    square, x = root_of_ratio(y * y - 1, D * y * y + 1)
    need(square and not (x == 0 and sign))
    x = even(x)
    return (P - x if sign else x, y, 1, (P - x if sign else x) * y % P)


G = edwards((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def compress(p):
    inverse = pow(p[2], -1, P)
    x, y = p[0] * inverse % P, p[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def verify(key, message, signature):
    s = int.from_bytes(signature[32:], "little")
    need(s < Q)
    k = hashlib.sha512(signature[:32] + key + message).digest()
    k = int.from_bytes(k, "little") % Q
    need(compress(add(times(s, G), negative(times(k, edwards(key))))) == signature[:32])


# The page.


def h(label, *parts):
    return hashlib.sha256(LABEL + label + b"".join(parts)).digest()


def scalar_hash(label, *parts):
    return int.from_bytes(hashlib.sha512(LABEL + label + b"".join(parts)).digest(), "little") % Q


def u32(x):
    return x.to_bytes(4, "big")


def scalar(b):
    s = int.from_bytes(b, "little")
    need(s < Q)
    return s


def pieces(b, size):
    return [b[i : i + size] for i in range(0, len(b), size)]


def difference(p, q):
    return add(p, negative(q))


def turn(label, t, party, public, old, body):
    need(len(body) == 288 * len(old))
    moves, responses = body[: 192 * len(old)], body[192 * len(old) :]
    c = scalar_hash(label, t, u32(party), moves)
    new = []
    for (a, b), move, response in zip(old, pieces(moves, 192), pieces(responses, 96)):
        a1, b1, k0a, k0b, k1a, k1b = [decode(x) for x in pieces(move, 32)]
        e0, z0, z1 = [scalar(x) for x in pieces(response, 32)]
        for e, z, k, x in (
            (e0, z0, (k0a, k0b), (difference(a1, a), difference(b1, b))),
            (c - e0, z1, (k1a, k1b), (add(a1, a), difference(add(b1, b), G))),
        ):
            need(encode(difference(times(z, G), times(e, x[0]))) == encode(k[0]))
            need(encode(difference(times(z, public), times(e, x[1]))) == encode(k[1]))
        new.append((a1, b1))
    return new


class Session:
    def __init__(self, v):
        self.keys = [bytes.fromhex(e["key"]) for e in v["roster"]]
        self.n, self.d, self.bound, self.coins = len(self.keys), v["d"], v["bound"], v["coins"]
        roster = b"hushsum/1 roster" + u32(self.n)
        for e in v["roster"]:
            roster += bytes([len(e["name"])]) + e["name"].encode() + bytes.fromhex(e["key"])
        self.t0 = self.t = h(
            b"config", hashlib.sha256(roster).digest(), u32(self.d), self.bound.to_bytes(8, "big"),
            u32(len(self.coins)), *[u32(m) for m in self.coins], v["label"].encode())
        self.input_weights, left = [], self.bound
        while left:
            self.input_weights.append(min(2 ** len(self.input_weights), left))
            left -= self.input_weights[-1]
        self.coin_weights = [2**j for j, m in enumerate(self.coins) for _ in range(m)]

    def message(self, kind, party, text):
        """Takes one message and returns its body."""
        m = bytes.fromhex(text)
        head = b"\1" + bytes([kind]) + self.t0 + u32(party)
        need(m[: len(head)] == head and len(m) >= len(head) + 64)
        body = m[len(head) : -64]
        label = LABEL + b"message"
        verify(self.keys[party], bytes([len(label)]) + label + head + self.t +
               hashlib.sha256(body).digest(), m[-64:])
        return body

    def run(self, messages, at):
        """Reads all messages; at counts those that are taken."""
        everybody, zero = range(self.n), (ZERO, ZERO)

        def step(kind, take, parties=everybody):
            bodies = []
            for i in parties:
                need(at[0] < len(messages))
                bodies.append(self.message(kind, i, messages[at[0]]))
                take(i, bodies[-1])
                at[0] += 1
            return [h(b"body", body) for body in bodies], bodies[0]

        shares = {}

        def key(i, body):
            need(len(body) == 96)
            pk, c, z = decode(body[:32]), scalar(body[32:64]), scalar(body[64:])
            k = encode(difference(times(z, G), times(c, pk)))
            need(c == scalar_hash(b"proof of a key", self.t, u32(i), body[:32], k))
            shares[i] = pk

        digests, _ = step(1, key)
        self.t = h(b"keys", self.t, *digests)
        public = ZERO
        for pk in shares.values():
            public = add(public, pk)

        inputs = {}

        def take_input(i, body):
            inputs[i] = turn(b"proof of an input", self.t, i, public,
                             [zero] * (self.d * len(self.input_weights)), body)

        digests, _ = step(2, take_input)
        self.t = h(b"inputs", self.t, *digests)

        coins = [zero] * (self.d * len(self.coin_weights))
        for i in everybody:
            after = {}

            def take_turn(i, body):
                after[i] = turn(b"proof of a turn", self.t, i, public, coins, body)

            _, body = step(3, take_turn, [i])
            coins = after[i]
            self.t = h(b"turn", self.t, u32(i), body)

        step(4, lambda i, body: need(body == b""))

        sums = [[ZERO, ZERO] for _ in range(self.d)]
        for bits, weights in [(coins, self.coin_weights)] + [
                (inputs[i], self.input_weights) for i in everybody]:
            for j, bit in enumerate(bits):
                for half in (0, 1):
                    s = sums[j // len(weights)]
                    s[half] = add(s[half], times(weights[j % len(weights)], bit[half]))

        opened = [s[1] for s in sums]

        def share(i, body):
            need(len(body) == 32 * self.d + 64)
            all_d = body[: 32 * self.d]
            parts = [decode(x) for x in pieces(all_d, 32)]
            c, z = scalar(body[32 * self.d : -32]), scalar(body[-32:])
            r = h(b"weights of a share", self.t, u32(i), all_d)
            m = combined = ZERO
            for k, part in enumerate(parts):
                rho = int.from_bytes(h(b"weights of a share", r, u32(k))[:16], "little")
                m, combined = add(m, times(rho, sums[k][0])), add(combined, times(rho, part))
                opened[k] = difference(opened[k], part)
            k1 = encode(difference(times(z, G), times(c, shares[i])))
            k2 = encode(difference(times(z, m), times(c, combined)))
            need(c == scalar_hash(b"proof of a share", self.t, u32(i), k1, k2, all_d))

        step(5, share)
        need(at[0] == len(messages))
        values = []
        for p in opened:
            most = self.n * self.bound + sum(self.coin_weights)
            v, target, p = 0, encode(p), ZERO
            while encode(p) != target:
                need(v < most)
                v, p = v + 1, add(p, G)
            values.append(v)
        return values


for line in sys.stdin:
    vector = json.loads(line)
    taken = [0]
    try:
        print(*Session(vector).run(vector["messages"], taken))
    except Refused:
        print("refused", taken[0])
