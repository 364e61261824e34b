"""Checks proofs of a bounded norm from SPEC-ONESHOT.md, section 13, alone, without packages.

python3 verify.py FILE reads vectors, as proofs.json has them, and mutations from standard input, one
a line: number of a vector, field, number within the field if it is a list or "-", byte, number to
xor it with. It prints a verdict a line: ok, encoding or proof. Without any it checks the vectors
and the hashes between."""

import functools
import hashlib
import hmac
import json
import sys

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)
PREFIX = "hushsum/1 oneshot proof "


class Refused(Exception):
    pass


# AES-256 (FIPS 197), by the definition.


def double(x):
    return (x << 1) ^ (0x11B if x & 0x80 else 0)


def substitution():
    box, p, q = [0] * 256, 1, 1
    while True:
        p ^= double(p)
        for shift in (1, 2, 4):
            q ^= q << shift & 0xFF
        q ^= 0x09 if q & 0x80 else 0
        x = q
        for k in (1, 2, 3, 4):
            x ^= (q << k | q >> (8 - k)) & 0xFF
        box[p] = x ^ 0x63
        if p == 1:
            box[0] = 0x63
            return box


BOX = substitution()
COLUMNS = [[], [], [], []]
for s in BOX:
    word = [double(s), s, s, double(s) ^ s]
    for k in range(4):
        COLUMNS[k].append(int.from_bytes(bytes(word[-k:] + word[:-k] if k else word), "big"))


def schedule(key):
    words = [int.from_bytes(key[i : i + 4], "big") for i in range(0, 32, 4)]
    constant = 1
    for i in range(8, 60):
        w = words[-1]
        if i % 8 == 0:
            w = (w << 8 | w >> 24) & 0xFFFFFFFF
        if i % 4 == 0:
            w = int.from_bytes(bytes(BOX[b] for b in w.to_bytes(4, "big")), "big")
        if i % 8 == 0:
            w ^= constant << 24
            constant = double(constant)
        words.append(words[-8] ^ w)
    return words


def encrypt(words, block):
    a, b = block >> 96 ^ words[0], block >> 64 & 0xFFFFFFFF ^ words[1]
    c, d = block >> 32 & 0xFFFFFFFF ^ words[2], block & 0xFFFFFFFF ^ words[3]
    c0, c1, c2, c3 = COLUMNS
    for r in range(4, 56, 4):
        a, b, c, d = (
            c0[a >> 24] ^ c1[b >> 16 & 255] ^ c2[c >> 8 & 255] ^ c3[d & 255] ^ words[r],
            c0[b >> 24] ^ c1[c >> 16 & 255] ^ c2[d >> 8 & 255] ^ c3[a & 255] ^ words[r + 1],
            c0[c >> 24] ^ c1[d >> 16 & 255] ^ c2[a >> 8 & 255] ^ c3[b & 255] ^ words[r + 2],
            c0[d >> 24] ^ c1[a >> 16 & 255] ^ c2[b >> 8 & 255] ^ c3[c & 255] ^ words[r + 3],
        )
    s = [a, b, c, d]
    out = b""
    for i in range(4):
        w = bytes((BOX[s[i] >> 24], BOX[s[i - 3] >> 16 & 255], BOX[s[i - 2] >> 8 & 255], BOX[s[i - 1] & 255]))
        out += (int.from_bytes(w, "big") ^ words[56 + i]).to_bytes(4, "big")
    return out


@functools.lru_cache(maxsize=64)
def keystream(key, first, length):
    words = schedule(key)
    out = []
    for i in range((length + 15) // 16):
        out.append(encrypt(words, (first << 64) + i))
    return b"".join(out)[:length]


# The curve, in extended coordinates.


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * D * p[3] * q[3] % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


IDENTITY = (0, 1, 1, 0)


def small(p):
    for _ in range(3):
        p = add(p, p)
    return p[0] % P == 0 and (p[1] - p[2]) % P == 0


def point(b):
    """The point of a canonical encoding, or None."""
    y = int.from_bytes(b, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= P:
        return None
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * v**3 * pow(u * v**7, (P - 5) // 8, P) % P
    if (v * x * x - u) % P:
        x = x * ROOT % P
    if (v * x * x - u) % P or (x == 0 and sign):
        return None
    if x % 2 != sign:
        x = P - x
    return x, y, 1, x * y % P


def combine(scalars, points):
    """The sum of points times scalars, by buckets of six bits."""
    total = IDENTITY
    for shift in range(252, -1, -6):
        for _ in range(6):
            total = add(total, total)
        buckets = [IDENTITY] * 64
        for s, p in zip(scalars, points):
            k = s >> shift & 63
            if k:
                buckets[k] = add(buckets[k], p)
        running = IDENTITY
        for k in range(63, 0, -1):
            running = add(running, buckets[k])
            total = add(total, running)
    return total


@functools.lru_cache(maxsize=None)
def generator(i):
    for attempt in range(1000):
        p = point(H("generator", u(i, 4), u(attempt, 4)))
        if p and not small(p):
            for _ in range(3):
                p = add(p, p)
            return p


# Section 13.3.


def u(x, size):
    return x.to_bytes(size, "big")


def H(word, *parts):
    return hashlib.sha256((PREFIX + word).encode() + b"".join(parts)).digest()


def scalar(word, h):
    key = hmac.digest(bytes(32), h, "sha256")
    out, last = b"", b""
    for i in (1, 2):
        last = hmac.digest(key, last + (PREFIX + word).encode() + bytes([i]), "sha256")
        out += last
    return int.from_bytes(out, "little") % L


# The entries that are not zero of the four rows of a byte.
ENTRIES = [
    [(i, 1 if b >> 2 * i & 3 == 1 else -1) for i in range(4) if b >> 2 * i & 3 in (1, 2)]
    for b in range(256)
]


@functools.lru_cache(maxsize=64)
def matrix(h, first, rows, columns):
    """Columns, each with its entries that are not zero."""
    size = rows // 4
    b = keystream(h, first, size * columns)
    return [
        [(4 * g + i, sign) for g in range(size) for i, sign in ENTRIES[b[l * size + g]]]
        for l in range(columns)
    ]


# Section 4.


@functools.lru_cache(maxsize=64)
def ring_element(key, j, n, q):
    """Coefficients of a_j, from its values."""
    bits = q.bit_length()
    values = words(key, j, bits, q, n)
    g = 2
    while pow(g, (q - 1) // 2, q) == 1 or pow(pow(g, (q - 1) // (2 * n), q), n, q) != q - 1:
        g += 1
    psi = pow(g, (q - 1) // (2 * n), q)
    levels = n.bit_length() - 1
    out = [0] * n
    for i, v in enumerate(values):
        reversed_i = int(format(i, "0%db" % levels)[::-1], 2)
        inverse = pow(psi, -(2 * reversed_i + 1), q)
        power = v * pow(n, -1, q)
        for k in range(n):
            out[k] = (out[k] + power) % q
            power = power * inverse % q
    return out


def words(key, first, bits, q, count):
    length = count + 50
    while True:  # a word in two is below q at least
        b = keystream(key, first, 8 * length)
        out = [int.from_bytes(b[i : i + 8], "little") & ((1 << bits) - 1) for i in range(0, len(b), 8)]
        out = [x for x in out if x < q]
        if len(out) >= count:
            return out[:count]
        length *= 2


@functools.lru_cache(maxsize=64)
def tests(key, h1, h2, n, q, nu, y):
    """The vectors τ and n_t, and the numbers c_t."""
    bits = q.bit_length()
    flat = words(h2, 0, bits, q, 256 * nu)
    taus = [flat[256 * t : 256 * (t + 1)] for t in range(nu)]
    r = matrix(h1, 0, 256, len(y))
    ns, cs = [], []
    for tau in taus:
        v = [sum(sign * tau[i] for i, sign in column) % q for column in r]
        cs.append(sum(a * b for a, b in zip(v, y)) % q)
        nt = [0] * n
        for at in range(0, len(y), n):
            a = ring_element(key, at // n, n, q)
            for l, x in enumerate(v[at : at + n]):
                for k in range(n):  # coefficient l of a·X^k
                    nt[k] += x * (a[l - k] if l >= k else -a[l - k + n])
        ns.append([x % q for x in nt])
    return taus, ns, cs


# Sections 13.4 and 13.5.


class Reader:
    def __init__(self, b):
        self.b = b

    def take(self, n):
        out, self.b = self.b[:n], self.b[n:]
        return out

    def point(self):
        p = point(self.take(32))
        if p is None:
            raise Refused("encoding")
        return p

    def scalar(self):
        s = int.from_bytes(self.take(32), "little")
        if s >= L:
            raise Refused("encoding")
        return s


def verify(v, values=None):
    n, q, rho = v["Degree"], v["Modulus"], v["PerPolynomial"]
    nu = 1
    while q**nu < 2**128:
        nu += 1
    bounded = n + 520 + nu
    count = bounded + 128 + rho
    proof = bytes.fromhex(v["Proof"])
    bits = q.bit_length()
    packed = (n * bits + 7) // 8
    if len(proof) != 32 * (count - n // 2 + 21) + 1920 + nu * (packed + 8):
        raise Refused("encoding")
    combined = [Reader(bytes.fromhex(c)).scalar() for c in v["Combined"]]
    if len(combined) != v["Threshold"]:
        raise Refused("encoding")
    cs, c0 = bytes.fromhex(v["KeyPoint"]), bytes.fromhex(v["MaskPoint"])
    reader = Reader(proof)
    commitments = [Reader(cs).point(), Reader(c0).point(), reader.point(), reader.point()]
    shown = reader.take(nu * (packed + 8))
    ns, totals = [], []
    for t in range(nu):
        one = shown[t * (packed + 8) : (t + 1) * (packed + 8)]
        number = int.from_bytes(one[:packed], "little")
        ns.append([number >> i * bits & ((1 << bits) - 1) for i in range(n)])
        totals.append(int.from_bytes(one[packed:], "little"))
        if number >> n * bits or max(ns[t]) >= q or totals[t] >= q:
            raise Refused("encoding")
    sums = reader.take(1920)
    f = [int.from_bytes(sums[i : i + 15], "little") for i in range(0, 1920, 15)]
    if max(f) >= 2**118:
        raise Refused("encoding")
    f = [x - 2**116 for x in f]
    firsts = reader.b[: 9 * 32]
    a = [reader.point() for _ in range(4)]
    e = [reader.point() for _ in range(4)]
    theta = reader.scalar()
    rest = reader.b[: 32 * (count - n + 10)]
    z = [None] * n + [reader.scalar() for _ in range(n, count)]
    blinds = [reader.scalar() for _ in range(6)]
    halves = [reader.point() for _ in range(2)]
    half_tests = [reader.scalar() for _ in range(2)]
    folded = [reader.scalar() for _ in range(n // 2)]

    fields = [bytes.fromhex(v[k]) for k in ("Config", "Context")]
    fields += [u(v["Party"], 4), u(v["Role"], 1), u(v["Bound"], 8), u(v["KeyBound"], 8)]
    fields += [bytes.fromhex(v[k]) for k in ("Root", "Digest", "Commitment")]
    h0 = H("dealing", *fields, cs, c0)
    gamma = scalar("gamma", h0)
    h1 = H("rows", h0, *[bytes.fromhex(c) for c in v["Combined"]])
    h2 = H("tau", h1, proof[:32])
    h3 = H("flood", h2, shown, proof[32:64])
    h4 = H("sum", h3, sums)
    omega = scalar("weight", h4)
    h5 = H("end", h4, firsts)
    chi = scalar("challenge", h5)
    h6 = H("halves", h5, rest)
    psi = scalar("fold", h6)
    if values is not None:
        values.update(H0=h0, H1=h1, H2=h2, H3=h3, H4=h4, H5=h5, H6=h6)
        values.update(Gamma=gamma, Weight=omega, Response=chi, Fold=psi)

    weight = [1]
    for _ in range(nu + 256 + 128 + rho):
        weight.append(weight[-1] * omega % L)
    coefficients = [0] * count
    total = 0
    taus, *made = tests(bytes.fromhex(v["RingKey"]), h1, h2, n, q, nu, tuple(v["Masked"]))
    if made != [ns, totals]:
        raise Refused("proof")
    for t in range(nu):
        w = weight[1 + t]
        for i in range(256):
            coefficients[n + i] += w * taus[t][i]
        for j in range(n):
            coefficients[j] += w * ns[t][j]
        coefficients[n + 520 + t] += w * q
        total += w * totals[t]
    at = 1 + nu
    for j, column in enumerate(matrix(h1, 1, 256, n)):
        for i, sign in column:
            coefficients[j] += sign * weight[at + i]
    for i in range(256):
        coefficients[n + 256 + i] -= weight[at + i]
    at += 256
    for j, column in enumerate(matrix(h3, 0, 128, bounded)):
        for i, sign in column:
            coefficients[j] += sign * weight[at + i]
    for i in range(128):
        coefficients[bounded + i] += weight[at + i]
        total += weight[at + i] * f[i]
    at += 128
    lanes = 251 // v["LaneBits"]
    for l in range(rho):
        coefficients[bounded + 128 + l] += weight[at + l]
        total += weight[at + l] * combined[l]
    for k in range(n):
        i = k // lanes
        power = pow(gamma, i // rho + 1, L)
        coefficients[k] += weight[at + i % rho] * power * 2 ** (v["LaneBits"] * (k % lanes))
    i = (n + lanes - 1) // lanes
    blind = weight[at + i % rho] * pow(gamma, i // rho + 1, L)
    key = theta + chi * total - blind * blinds[0] - sum(c * x for c, x in zip(coefficients[n:], z[n:]))
    got = sum((psi * coefficients[i] + coefficients[n // 2 + i]) * x for i, x in enumerate(folded))
    if (got - psi * key - half_tests[0] - psi * psi * half_tests[1]) % L:
        raise Refused("proof")

    blind_point, norm_point = generator(0), generator(1)
    ranges = [(0, n), (bounded + 128, count), (n, n + 520), (n + 520, bounded + 128)]
    for (first, end), first_message, c, blind in zip(ranges, a, commitments, blinds):
        scalars = [blind] + z[first:end] + [L - 1, -chi % L]
        points = [blind_point] + [generator(2 + i) for i in range(first, end)] + [first_message, c]
        if first == 0:
            scalars = [psi * blind % L] + [psi * x % L for x in folded] + folded
            scalars += [-psi % L, -psi * chi % L, L - 1, -psi * psi % L]
            points += halves
        if not small(combine(scalars, points)):
            raise Refused("proof")
    for k, bound in enumerate((v["Bound"], v["KeyBound"])):
        sums_at, squares_at = n + 256 * k, n + 512 + 4 * k
        numbers = z[sums_at : sums_at + 256] + z[squares_at : squares_at + 4]
        rest = (sum(x * x for x in numbers) - chi * chi * 256 * bound) % L
        scalars = [rest, blinds[4 + k], L - 1, -chi % L]
        if not small(combine(scalars, [norm_point, blind_point, e[2 * k], e[2 * k + 1]])):
            raise Refused("proof")


def verdict(v):
    try:
        verify(v)
    except Refused as refused:
        return str(refused)
    return "ok"


def mutated(v, field, place, byte, mask):
    v = dict(v)
    if field in ("Party", "Role", "Bound", "KeyBound"):
        v[field] ^= mask
        return v
    if field == "Masked":
        v[field] = list(v[field])
        v[field][int(place)] ^= mask
        return v
    text = v[field] if place == "-" else v[field][int(place)]
    b = bytearray.fromhex(text)
    b[byte] ^= mask
    if place == "-":
        v[field] = b.hex()
    else:
        v[field] = list(v[field])
        v[field][int(place)] = b.hex()
    return v


def main():
    with open(sys.argv[1]) as file:
        vectors = json.load(file)
    lines = [line.split() for line in sys.stdin]
    for number, field, place, byte, mask in lines:
        print(verdict(mutated(vectors[int(number)], field, place, int(byte), int(mask))))
    if lines:
        return
    for v in vectors:
        values = {}
        verify(v, values)
        for name, got in values.items():
            if isinstance(got, int):
                got = got.to_bytes(32, "little")
            assert got.hex() == v[name], (v["Name"], name)
        print("ok")


main()
