"""Numbers, the normal law and laws of noise on the integers, for check.py."""
import math
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction

from_digits = Context(prec=60, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)
whole = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
ROOT = from_digits.sqrt(2 * PI)
UP = Decimal(1) + Decimal("1e-40")  # more than any sum of roundings below
ULP = 2.0**-52


class Refused(Exception):
    """A step that does not hold."""


class Unreadable(Exception):
    """No derivation."""


def hold(condition, text, *values):
    if not condition:
        raise Refused(text.format(*values))


def integer(text, least=0):
    if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 60) or (
        text[0] == "0" and text != "0"
    ):
        raise Unreadable(f"{text!r} is no integer")
    hold(int(text) >= least, "{} is below {}", text, least)
    return int(text)


def real(text):
    """A float64, as a rational."""
    try:
        value = float(text) if isinstance(text, str) and len(text) < 40 else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise Unreadable(f"{text!r} is no number of 0 or more")
    return Fraction(value)


def rational(text):
    top, _, bottom = text.partition("/") if isinstance(text, str) else ("", "", "")
    return Fraction(integer(top), integer(bottom, 1))


def decimal(x):
    return Decimal(x.numerator) / Decimal(x.denominator)


def near(stated, own, what, slack=Fraction(1, 10**8)):
    """Own is an upper bound, and the stated one is not below it, nor far above."""
    own = Fraction(own)
    hold(stated >= own * (1 - Fraction(1, 10**15)), "{} is {:.12g}, and at least {:.12g} is proved",
         what, float(stated), float(own))
    hold(stated <= own * (1 + slack), "{} is {:.12g}, which is not {:.12g}", what, float(stated),
         float(own))


def root_up(x):
    """An upper bound of the root of a rational, to 2^-80."""
    scaled = (x.numerator << 160) // x.denominator + 1
    return Fraction(math.isqrt(scaled) + 1, 1 << 80)


def mills(x):
    """P[N > x] over the density at x, for x of 0 or more; the two convergents enclose it."""
    if x < 6:
        with localcontext() as c:
            c.prec += 30
            term = total = x
            k = 1
            while term > total.scaleb(-90) and term:
                k += 2
                term = term * x * x / k
                total += term
            return ((x * x / 2).exp() * ROOT / 2) - total
    terms = int(5100 / float(x * x)) + 30 if x < 1000 else 12
    ends = []
    for n in (terms, terms + 1):
        t = x
        for k in range(n, 0, -1):
            t = x + k / t
        ends.append(1 / t)
    assert abs(ends[0] - ends[1]) < ends[0].scaleb(-36)
    return max(ends)


def density(x):
    return (-x * x / 2).exp() / ROOT


def quantile(p, guess):
    """The x with P[N > x] = p, from below a half, by Newton's method."""
    x = guess
    for _ in range(60):
        m = mills(x)
        ratio = m * density(x) / p
        step = m * (ratio - 1 if abs(ratio - 1) < Decimal("0.01") else ratio.ln())
        x = max(x + step, Decimal(0))
        if abs(step) < Decimal("1e-17"):
            return x
    raise Refused("no quantile")


def gaussian_delta(mu, epsilon):
    """The curve of N(mu, 1) and N(0, 1), rounded up."""
    if epsilon < 0:  # both directions are alike
        return 1 - epsilon.exp() + epsilon.exp() * gaussian_delta(mu, -epsilon)
    a = epsilon / mu - mu / 2
    b = a + mu
    if a >= 0:
        out = density(a) * (mills(a) * UP - mills(b) / UP)
    else:
        out = 1 - density(a) * (mills(-a) + mills(b)) / UP
    return out * UP + Decimal("1e-70")


def largest_step(mass):
    """The sup of H(j+1) - H(j), H(j) = -Phi^-1(P[Z >= j]), of masses at 0, 1, 2 and so on; from
    the last on the tail is geometric (Lemma 3)."""
    ratio = mass[-1] / mass[-2]
    hold(ratio < 1, "the law does not fall")
    tails = [mass[-1] / (1 - ratio)]
    for m in reversed(mass[:-1]):
        tails.append(tails[-1] + m)
    tails.reverse()
    total = tails[0] + tails[1]
    hold(tails[-1] * 4 < total.scaleb(-190), "the table of a law ends early")
    h = quantile(tails[1] / total, Decimal("0.5"))
    step = largest = 2 * h
    for t in tails[2:] + [tails[-1] * ratio]:
        following = quantile(t / total, h + step)
        step, h = following - h, following
        largest = max(largest, step)
    return largest * (1 + Decimal("1e-14")) + Decimal("1e-15")


def product(a, b, digits):
    """The convolution of masses of 10^-digits, by one product, rounded up."""
    w = 2 * digits + 8
    n = len(a) + len(b) - 1
    pack = lambda m: Decimal("".join([str(x).zfill(w) for x in m]))
    left = pack(a)
    text = str(whole.multiply(left, left if b is a else pack(b))).zfill(n * w)
    one = 10**digits
    return [(int(text[i : i + w]) + one - 1) // one for i in range(0, n * w, w)]


def power(one, count, times):
    out = None
    while count:
        if count & 1:
            out = one if out is None else times(out, one)
        count >>= 1
        if count:
            one = times(one, one)
    return out


def gaussian_masses(shares, variance):
    """The law of a sum of discrete Gaussians, at 0, 1, 2 and so on, to below 10^-215."""
    hold(shares * variance <= 1 << 15 and shares <= 1 << 12, "too many shares to sum exactly")
    digits = 300
    reach = math.isqrt(int(2 * 700 * variance)) + 2
    with localcontext() as c:
        c.prec = 340
        half = [(-Decimal(k * k) / (2 * decimal(variance))).exp() for k in range(reach + 1)]
        scale = Decimal(10) ** digits / (half[0] + 2 * sum(half[1:]))
        half = [int(m * scale) for m in half]

    def times(a, b):
        out = product(a, b, digits)
        cut = 0
        while out[cut] < 10**20:
            cut += 1
        return out[cut : len(out) - cut] if cut else out

    all_ = power(half[:0:-1] + half, shares, times)
    middle = len(all_) // 2
    return [Decimal(x) for x in all_[middle:] if x > 10**70]


def skellam_masses(variance):
    """The law of Skellam noise, at 0, 1, 2 and so on, up to a factor, to below 10^-215."""
    hold(variance <= 1 << 18, "variance {} is too much for a table", float(variance))
    v = decimal(variance)
    reach = 20 + int(math.sqrt(1100 * float(variance))) + (600 if variance < 200 else 300)
    ratios, following = [Decimal(0)] * (reach + 1), Decimal(0)
    for k in range(reach + 60 + 3 * math.isqrt(int(variance) + 1), 0, -1):
        following = 1 / (2 * k / v + following)
        if k <= reach:
            ratios[k] = following
    out = [Decimal(1)]
    for r in ratios[1:]:
        out.append(out[-1] * r)
        if out[-1] < Decimal("1e-215"):
            break
    return out


def closed_step(kappa):
    """Lemma 4: the square of the largest step is at most this."""
    hold(kappa < 3, "Lemma 4 asks for second differences below 3, they are {:.4g}", float(kappa))
    return 2 * kappa / (1 + (1 - kappa / 3).sqrt()) * UP


def one_step(theorem, family, shares, noise):
    """mu_1 of the sum of honest shares, by the theorem that a step names."""
    if family == "discrete-laplace":
        hold(theorem == "lemma-3", "{} is not about discrete Laplace noise", theorem)
        rho = (-1 / decimal(noise)).exp()
        return 2 * quantile(rho / (1 + rho), Decimal("0.5")) * (1 + Decimal("1e-14"))
    if family == "skellam":
        v = shares * noise
        if theorem == "lemma-3":
            return largest_step(skellam_masses(v))
        hold(theorem == "lemma-5" and v >= Fraction(12, 5), "{} is not about Skellam noise of "
             "variance {}", theorem, float(v))
        v = decimal(v)
        return closed_step(-(1 - (1 + 1 / (2 * v * v)) / v).ln()).sqrt()
    variance = noise * noise
    if theorem == "lemma-3":
        return largest_step(gaussian_masses(shares, variance))
    hold(theorem == "lemma-4", "{} is not about discrete Gaussian noise", theorem)
    hold(shares == 1 or variance >= Fraction(1, 4), "shares of parameter {} do not add up",
         float(variance))
    v = decimal(variance)
    each, n = 2 * PI * PI * v, min(shares - 1, 1000)
    tau = sum((-each * k / (k + 1)).exp() for k in range(1, n + 1)) * 10
    if shares - 1 > n:  # terms fall: the last stands for those that are left out
        tau += 10 * (shares - 1 - n) * (-each * n / (n + 1)).exp()
    return closed_step(1 / (shares * v) + 4 * tau).sqrt()
