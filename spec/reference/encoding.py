"""How a vector becomes a submission: SPEC-TRANSPORT.md §4.3 and §4.4."""

import math
import os
from fractions import Fraction

from primitives import LABEL, sha256, u32

SLACK = 2.0**-44


def clipped(vector, clip):
    """A vector of norm clip at most: §4.3."""
    norm = math.hypot(*vector)
    if norm <= clip * (1 - SLACK):
        return list(vector)
    return [x * (clip * (1 - SLACK) / norm) for x in vector]


def fixed_point(vector, fraction_bits, bits):
    """Without noise: each number to the nearest multiple of 2^-fraction_bits, ties to even."""
    return [round(Fraction(x) * 2**fraction_bits) % 2**bits for x in vector]


def signs(seed, count, first):
    """Signs of a rotation, from a place on: §4.4."""
    blocks = range(first // 256, -(-(first + count) // 256))
    stream = b"".join(sha256(LABEL + b"rotation signs" + seed + u32(i)) for i in blocks)
    at = first % 256
    return [1 - 2 * (stream[k // 8] >> k % 8 & 1) for k in range(at, at + count)]


def hadamard(v):
    """The Walsh-Hadamard matrix in natural order times v, over the square root of its length."""
    v, half = list(v), 1
    while half < len(v):
        for start in range(0, len(v), 2 * half):
            for i in range(start, start + half):
                v[i], v[i + half] = v[i] + v[i + half], v[i] - v[i + half]
        half *= 2
    root = math.sqrt(len(v))
    return [x / root for x in v]


def rotated(vector, broadcast_digest):
    """The vector, rotated as the broadcast says: §4.4."""
    seed = sha256(LABEL + b"rotation of a broadcast" + broadcast_digest)
    d = len(vector)
    block = min(1 << d.bit_length() - 1, 1 << 20)
    v = list(vector)
    for at in range(0, d - block + 1, block):
        part = [x * s for x, s in zip(v[at:at + block], signs(seed, block, at))]
        v[at:at + block] = hadamard(part)
    if d % block:
        last = signs(seed, block, -(-d // 256) * 256)
        v[d - block:] = hadamard([x * s for x, s in zip(v[d - block:], last)])
    return v


def random_below(n):
    """A uniform whole number below n."""
    size = (n.bit_length() + 7) // 8 + 16
    limit = 256**size - 256**size % n
    while True:
        x = int.from_bytes(os.urandom(size), "big")
        if x < limit:
            return x % n


def bernoulli(p):
    """True with a probability that is a Fraction."""
    return random_below(p.denominator) < p.numerator


def bernoulli_exp(x):
    """True with probability exp(-x), x ≥ 0: Canonne, Kamath, Steinke 2020, Algorithm 1."""
    while x > 1:
        if not bernoulli_exp(Fraction(1)):
            return False
        x -= 1
    k = 1
    while bernoulli(x / k):
        k += 1
    return k % 2 == 1


def discrete_laplace(t):
    """P(k) ∝ exp(-|k|/t), t whole: Algorithm 2 of the same."""
    while True:
        u = random_below(t)
        if not bernoulli_exp(Fraction(u, t)):
            continue
        v = 0
        while bernoulli_exp(Fraction(1)):
            v += 1
        x, negative = u + t * v, random_below(2)
        if x or not negative:
            return -x if negative else x


def discrete_gaussian(square):
    """P(k) ∝ exp(-k²/2σ²), σ² a Fraction: Algorithm 3 of the same."""
    t = math.isqrt(math.floor(square)) + 1
    while True:
        y = discrete_laplace(t)
        if bernoulli_exp((abs(y) - square / t)**2 / (2 * square)):
            return y


def norm_limit(clip, scale, d):
    """The greatest sum of squares of a rounded vector: §4.4."""
    c = clip * scale
    return math.floor(min((c + math.sqrt(d))**2, c * c + d / 4 + (c + math.sqrt(d) / 2))
                      * (1 + 2.0**-48))


def rounded(vector, limit):
    """Each number up with the probability of its fraction, all again if the result is too long."""
    while True:
        out = [math.floor(x) + bernoulli(Fraction(x) - math.floor(x)) for x in vector]
        if sum(x * x for x in out) <= limit:
            return out


def with_noise(vector, broadcast_digest, clip, scale, share, bits):
    """A submission with the party's share of discrete Gaussian noise: §4.4."""
    v = [x * scale for x in rotated(clipped(vector, clip), broadcast_digest)]
    whole = rounded(v, norm_limit(clip, scale, len(v)))
    return [(x + discrete_gaussian(share)) % 2**bits for x in whole]
