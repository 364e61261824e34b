"""Curves of delta over epsilon, rounded up, for check.py."""
import math
from decimal import Decimal
from fractions import Fraction
from operator import mul

from exact import ULP, UP, decimal, gaussian_delta, hold, power, product

FAR = 500.0  # losses that no epsilon reaches
CELLS = 1 << 17  # of a grid: with more a derivation could take minutes


class Grid:
    """An upper bound of a law of losses: whole masses, of which 10^digits are 1, at
    (first + i)·h + shift, and one at infinity. Of the masses at its ends less than tiny goes up: to
    infinity, and to the least loss that is left."""

    def __init__(self, h, first, masses, infinite, shift, digits, tiny):
        total, end = 0, len(masses)
        while end > 1 and total + masses[end - 1] < tiny:
            end -= 1
            total += masses[end]
        infinite += total
        total = cut = 0
        while cut < end - 1 and total + masses[cut] < tiny:
            total += masses[cut]
            cut += 1
        self.h, self.first, self.masses = h, first + cut, masses[cut:end]
        self.masses[0] += total
        self.infinite, self.shift, self.digits, self.tiny = infinite, shift, digits, tiny

    def times(self, other):
        hold(len(self.masses) + len(other.masses) <= 2 * CELLS, "no grid is fine enough and has at "
             "most {} cells", 2 * CELLS)
        return Grid(self.h, self.first + other.first,
                    product(self.masses, other.masses, self.digits),
                    self.infinite + other.infinite, self.shift + other.shift, self.digits,
                    self.tiny)


class Halves:
    """The curve of two grids together, which is the mean, over the losses of one, of the other's
    curve at the rest of epsilon: the largest product need not be worked out."""

    def __init__(self, one, other):
        self.h, self.first = one.h, one.first + other.first
        self.shift, self.unit = one.shift + other.shift, 10**one.digits
        self.infinite = one.infinite + other.infinite
        self.masses = [float(m) for m in one.masses]
        # The other's mass from each point on, and its delta there, from the last point down to one
        # before which nothing is asked for.
        scale, fall = 10**36, Decimal(-self.h).exp()
        fall, rise = math.ceil(fall * UP * scale), math.ceil((1 - fall / UP) * scale)
        mass = delta = 0
        self.mass, self.paid = [], []
        for m in reversed([0] * len(one.masses) + other.masses):
            delta = (delta * fall + mass * rise) // scale + 1
            mass += m
            self.mass.append(float(mass))
            self.paid.append(float(delta))
        self.last = len(other.masses) - 1

    def delta(self, epsilon):
        x = (epsilon - self.shift) / self.h - self.first
        x -= 4 * ULP * (1 + abs(x) + abs(self.first))
        top = math.ceil(x)
        if top < 0:
            return 1.0
        start = max(0, top - self.last)
        masses, there = self.masses[start:], self.last - top + start
        mass, paid = (sum(map(mul, masses, of[there:])) for of in (self.mass, self.paid))
        before = (x - top) * self.h
        both = (paid * math.exp(before) - mass * math.expm1(before)) / self.unit + self.infinite
        return both / self.unit * (1 + (len(masses) + 16) * ULP)


def on_grid(cells, h, digits, tiny):
    """Puts cells on the ends of theirs. A cell has its number, its mass under both hypotheses, how
    far these may be off, and how far its losses may be outside of it; number None is infinity."""
    masses, infinite, shift, unit = {}, 0, 0.0, 10**digits
    up = -math.expm1(-h)
    for i, p, q, wrong_p, wrong_q, outside in cells:
        if i is None:
            infinite += math.ceil((p + wrong_p) * unit)
            continue
        e = math.exp(i * h) * (1 + 4 * ULP * (2 + abs(i * h)))
        right = (p - q * e + wrong_p + wrong_q * e + (p + q * e) * (outside + 8 * ULP)) / up
        right = min(max(right * (1 + 1e-12), 0.0) + p * outside / h, p + wrong_p)
        masses[i] = masses.get(i, 0) + math.ceil((p + wrong_p - right) * unit)
        masses[i + 1] = masses.get(i + 1, 0) + math.ceil(right * (1 + 4 * ULP) * unit)
        shift = max(shift, outside)
    first, last = min(masses), max(masses)
    out = [masses.get(i, 0) for i in range(first, last + 1)]
    return Grid(h, first, out, infinite, shift, digits, tiny)


def tail(z):
    return 0.5 * math.erfc(z / math.sqrt(2)), ULP * (10 + 4 * z * z)


class Law:
    """The losses of two laws of a number, of which a coin of probability q chooses the first, with
    the unit, or else the second, against the second; or the other way round. A larger number has a
    larger loss."""

    def __init__(self, q, flipped):
        self.q, self.flipped = float(q), flipped

    def drawn(self, loss):
        return loss if self.q == 1 else math.log1p(self.q * math.expm1(min(loss, 700.0)))

    def before(self, loss):
        """The loss without the coin; -inf: there is none so low."""
        if self.q == 1:
            return loss
        v = math.expm1(loss) + self.q
        return -math.inf if v <= 0 else math.log(v / self.q)

    def range(self, tiny):
        lo, hi = (min(max(self.drawn(x), -FAR), FAR) for x in self.ends(tiny))
        return (-hi, -lo) if self.flipped else (lo, hi)

    def points(self, tiny):
        """Masses and losses, nearly: they only choose a grid's width."""
        sign = -1 if self.flipped else 1
        lo, hi = (min(max(x, -FAR), FAR) for x in self.ends(tiny))
        at = [lo + (hi - lo) * i / 500 for i in range(501)]
        above = [float(self.tails(x, 1)[1 if self.flipped else 0]) for x in at] + [0.0]
        return [(above[i] - above[i + 1], sign * self.drawn(x)) for i, x in enumerate(at)]

    def cells(self, h, tiny):
        """Masses between losses: tails are those on the side of larger losses."""
        sign = -1 if self.flipped else 1

        def tails(i):
            x = sign * i * h
            loss = self.before(x)
            if loss == -math.inf:
                return (0, 0, 0.0, 0.0, 0.0) if self.flipped else (1, 1, 0.0, 0.0, 0.0)
            mix, n, wrong, wrong_n, reach = self.tails(loss, sign)
            near_ = 0 if self.q == 1 else math.exp(-x)  # where before cancels
            off = 16 * ULP * (2 + abs(x) + abs(loss) + reach + near_)
            return (n, mix, wrong_n, wrong, off) if self.flipped else (mix, n, wrong, wrong_n, off)

        lo, hi = self.range(tiny)
        first, last = math.floor(lo / h) - 1, math.ceil(hi / h) + 1
        p, q, wp, wq, off = tails(first)
        yield first - 1, max(0.0, float(1 - p)), 0.0, wp + ULP, 0.0, 0.0
        for i in range(first, last):
            p2, q2, wp2, wq2, off2 = tails(i + 1)
            if p > p2:
                here = float(p - p2)
                yield (i, here, max(float(q - q2), 0.0), wp + wp2 + 4 * ULP * here, wq + wq2,
                       max(off, off2))
            p, q, wp, wq, off = p2, q2, wp2, wq2, off2
        yield None, float(p), float(q), wp + 4 * ULP * float(p), wq, 0.0


class Normal(Law):
    """N(mu, 1) and N(0, 1)."""

    def __init__(self, mu, q, flipped):
        super().__init__(q, flipped)
        self.mu = float(mu) * (1 + 2 * ULP)

    def ends(self, tiny):
        z = math.sqrt(2 * math.log(1 / tiny))
        return -self.mu * (z + self.mu / 2), self.mu * (z + self.mu / 2)

    def aligned(self, h):
        return h

    def tails(self, loss, sign):
        z = loss / self.mu + self.mu / 2
        n, wrong_n = tail(sign * z)
        m, wrong_m = tail(sign * (z - self.mu))
        m, other = self.q * m, (1 - self.q) * n
        wrong = m * (wrong_m + 4 * ULP * z * z) + other * wrong_n
        return m + other, n, wrong, n * wrong_n, self.mu * (abs(z) + self.mu)


class Laplace(Law):
    """Lemma 1: discrete Laplace noise of scale t that is shifted by k, and not; outcome j of 0 to k
    has the loss (2j - k)/t."""

    def __init__(self, t, k, q, flipped):
        super().__init__(q, flipped)
        self.t, self.k, self.rate, self.rho = float(t), k, decimal(q), (-1 / decimal(t)).exp()

    def ends(self, tiny):
        return -self.k / self.t, self.k / self.t

    def aligned(self, h):
        """Near h, such that the largest loss, and others at equal distances, are on the grid."""
        top, steps = self.drawn(self.k / self.t), self.k if self.q == 1 else 1
        return h if top < h * steps else top / (steps * math.ceil(top / h / steps))

    def tails(self, loss, sign):
        j = min(max(math.ceil((loss * self.t + self.k) / 2), 0), self.k + 1)

        def before(j):  # that an outcome of noise that is shifted is below j
            rest = self.k + 1 - j
            return 0 if j == 0 else 1 if rest == 0 else self.rho**rest / (1 + self.rho)

        m, n = before(j), before(self.k + 1 - j)
        m, n = (1 - m, n) if sign > 0 else (m, 1 - n)
        return self.rate * m + (1 - self.rate) * n, n, 0.0, 0.0, self.k / self.t


class Atoms:
    """A law with a list of outcomes: (p, q) with and without the unit, and mass without bound."""

    def __init__(self, outcomes, lost, rate, flipped):
        self.outcomes, self.lost = [], float(lost)
        for p, q in outcomes:
            mix = rate * p + (1 - rate) * q
            p, q = (q, mix) if flipped else (mix, q)
            if q == 0 or not p:
                self.lost += float(p)
            elif float(p) > 0:
                self.outcomes.append((float(p), math.log(p / q) if p / q < 1e300 else None))
        self.off = 8 * ULP + 4 * ULP * max(abs(loss or 0) for _, loss in self.outcomes)

    def aligned(self, h):
        return h

    def range(self, tiny):
        losses = sorted((loss, p) for p, loss in self.outcomes if loss is not None)
        while len(losses) > 2 and losses[-1][1] < tiny:
            losses.pop()
        return max(losses[0][0], -FAR), min(losses[-1][0], FAR)

    def points(self, tiny):
        lo, hi = self.range(tiny)
        return [(p, x) for p, x in self.outcomes if x is not None and lo <= x <= hi]

    def cells(self, h, tiny):
        hi = self.range(tiny)[1]
        for p, loss in self.outcomes:
            if loss is None or loss > hi:
                yield None, p, 0.0, p * 4 * ULP, 0.0, 0.0
            else:
                i = math.floor(max(loss, -FAR) / h + 1e-9)
                part = p * math.exp(i * h - loss)  # q·e^a, by the loss itself
                yield i, p, part * math.exp(-i * h), p * 4 * ULP, 0.0, self.off
        yield None, self.lost, 0.0, self.lost * 1e-9, 0.0, 0.0


def shifted(mass, by):
    """The outcomes of noise that is shifted, of masses at 0, 1, 2 and so on."""
    n = len(mass)
    hold(by < n, "a shift of {} is beyond the law's table of {}", by, n)
    ratio = float(mass[-1] / mass[-2])
    total = mass[0] + 2 * sum(mass[1:])
    lost = float(2 * mass[-1] / total) / (1 - ratio) * 2
    at = lambda k: mass[abs(k)] / total if abs(k) < n else Decimal(0)
    lost += sum(float(at(k - by)) for k in range(n, n + by))
    return [(at(k - by), at(k)) for k in range(by - n + 1, n)], lost


def exponent(lanes, alpha):
    """Lemma 2: alpha - 1 times the divergence of order alpha of discrete Laplace noise."""
    g = Decimal(0)
    for scale, l1, square in lanes:
        t = decimal(scale)
        a, b, rho = (alpha - 1) / t, alpha / t, (-1 / t).exp()
        below = (1 - (-a - b).exp()) * (1 + rho)
        big, small = (1 - (-2 * b).exp()) / below, rho * (1 - (-2 * a).exp()) / below
        d = lambda k: (big * (a * k).exp() + small * (-b * k).exp()).ln() / k
        each = min(max(Fraction(square, l1), 1), l1)
        low = math.floor(each)
        v = d(Decimal(low))
        if each > low:
            v += decimal(each - low) * (d(Decimal(low + 1)) - v)
        g += l1 * v
    return g


class Renyi:
    """Rounds of discrete Laplace noise by both norms, with a coin by joint convexity at every
    order, and at whole ones by Theorem 5 of Zhu, Wang 2019."""
    name = "lemma-2"

    def __init__(self, lanes, q, rounds):
        self.lanes, self.q, self.rounds, self.known = lanes, decimal(q), rounds, {}

    def drawn(self, alpha):
        g = exponent(self.lanes, alpha)
        return g if self.q == 1 else (1 - self.q + self.q * g.exp()).ln()

    def poisson(self, n):
        q, total = self.q, (1 - self.q) ** (n - 1) * (n * self.q - self.q + 1)
        for k in range(2, n + 1):
            if k not in self.known:
                self.known[k] = exponent(self.lanes, Decimal(k)).exp()
            term = math.comb(n, k) * (1 - q) ** (n - k) * q**k * self.known[k]
            total += term if k == 2 else 3 * term
        return total.ln()

    def delta(self, epsilon):
        def at(alpha, g):
            exponent_ = g * self.rounds + (alpha - 1) * ((1 - 1 / alpha).ln() - Decimal(epsilon))
            return exponent_ - alpha.ln()

        def real_(x):
            alpha = 1 + Decimal(x).exp()
            return at(alpha, self.drawn(alpha))

        lo, hi = -6.0, 16.0
        for _ in range(36):
            a, b = lo + (hi - lo) * 0.382, lo + (hi - lo) * 0.618
            lo, hi = (lo, b) if real_(a) < real_(b) else (a, hi)
        best, self.alpha = real_(lo), 1 + Decimal(lo).exp()
        self.g = self.drawn(self.alpha)
        if self.q < 1:
            lo, hi = 2, 400
            while hi > lo:
                n = (lo + hi) // 2
                lo, hi = (lo, n) if (at(Decimal(n), self.poisson(n)) <=
                                     at(Decimal(n + 1), self.poisson(n + 1))) else (n + 1, hi)
            g = self.poisson(lo)
            if at(Decimal(lo), g) < best:
                best, self.alpha, self.g = at(Decimal(lo), g), Decimal(lo), g
        return float(min(best, Decimal(0)).exp() * UP) * (1 + 4 * ULP)

    def epsilon(self, delta):
        """By the order that was best last."""
        a = self.alpha
        out = (self.g * self.rounds - Decimal(delta).ln() - a.ln()) / (a - 1) + (1 - 1 / a).ln()
        return max(0.0, float(out) * (1 + 4 * ULP))


class Pure:
    name = "pure"

    def __init__(self, lanes, rounds):
        self.total = rounds * sum(Fraction(l1) / scale for scale, l1, _ in lanes)

    def delta(self, epsilon):
        return 0.0 if Fraction(epsilon) >= self.total else 1.0


class Gaussian:
    name = "gaussian"

    def __init__(self, mu):
        self.mu = mu

    def delta(self, epsilon):
        return float(gaussian_delta(self.mu, Decimal(epsilon))) * (1 + 2 * ULP) + 1e-300


class Once:
    """One round with a coin, or q = 1: for e^epsilon above 1 - q the curve of a mixture is q times
    that of what is mixed in, and the other direction is this one at -epsilon."""
    name = "one round"

    def __init__(self, of, q):
        self.of, self.q = of, decimal(q)

    def delta(self, epsilon):
        def mixed(e):
            v = e.exp() - 1 + self.q
            return 1 - e.exp() if v <= 0 else self.q * self.of((v / self.q).ln())

        e = Decimal(epsilon)
        worst = max(mixed(e), 1 - e.exp() + e.exp() * mixed(-e))
        return float(worst * UP + Decimal("1e-50")) * (1 + 2 * ULP)


def of_outcomes(outcomes, lost):
    """The curve of a list of outcomes."""
    def delta(e):
        x = e.exp()
        return sum(max(p - x * q, 0) for p, q in outcomes) + Decimal(lost)
    return delta


def of_laplace(t, k):
    """The curve of Laplace, whose best test asks for a loss above epsilon."""
    t = decimal(t)

    def delta(e):
        j = min(max(math.floor((e * t + k) / 2) + 1, 0), k + 1)
        if j == 0:
            return 1 - e.exp()
        if j > k:
            return Decimal(0)
        return 1 - ((-(k + 1 - j) / t).exp() + (e - j / t).exp()) / (1 + (-1 / t).exp())
    return delta


class Composed:
    """Rounds of laws, on a grid, in both directions."""

    def __init__(self, makes, rounds, delta):
        self.rounds, self.tiny = rounds, delta * 1e-13 / rounds
        self.h = None
        self.digits = 22 - math.floor(math.log10(delta / rounds))
        hold(self.digits <= 60, "delta is too small for a grid")
        self.laws = [[make(flipped) for make in makes] for flipped in (False, True)]
        self.spread, self.reach = 0.0, 0.0
        for laws in self.laws:
            variance, all_ = 0.0, [law.points(self.tiny) for law in laws]
            for points in all_:
                mean = sum(m * x for m, x in points)
                variance += sum(m * (x - mean) ** 2 for m, x in points)
            self.spread = max(self.spread, math.sqrt(variance))
            self.reach = max(self.reach, self.far(all_, 1) + self.far(all_, -1))

    def far(self, laws, sign):
        """What all rounds' losses exceed, by Chernoff's bound, with a probability below tiny."""
        most = max(abs(x) for points in laws for _, x in points)
        best = math.inf
        for s in (512 / most / 2**k for k in range(24)):
            total = sum(math.log(sum(m * math.exp(sign * s * x) for m, x in points))
                        for points in laws)
            best = min(best, (self.rounds * total - math.log(self.tiny)) / s)
        return best

    def one(self, law, h):
        return on_grid(law.cells(h, self.tiny), h, self.digits,
                       int(self.tiny * 10**self.digits) + 1)

    def refined(self, finer):
        """With cells of a 64th of a round's deviation, of which there are thousands, or finer, of
        which there are CELLS at most. False: it is as fine already."""
        h = max(min(self.spread / 64, self.reach / 8192) / finer, self.reach / CELLS)
        if h == self.h:
            return False
        self.name = "grid" if h > self.reach / CELLS else "the finest grid"
        self.h, self.both = h, []
        for laws in self.laws:
            at = laws[0].aligned(h)
            one = self.one(laws[0], at)
            for law in laws[1:]:
                one = one.times(self.one(law, at))
            none = Grid(at, 0, [10**self.digits], 0, 0.0, self.digits, one.tiny)
            half = power(one, self.rounds // 2, Grid.times) or none
            self.both.append(Halves(half, half.times(one) if self.rounds % 2 else half))
        return True

    def delta(self, epsilon):
        return max(g.delta(epsilon) for g in self.both)

    def hopeless(self, epsilon, delta):
        """Whether finer cells are unlikely to show delta: the ends of its cell raise a round's mean
        of e^(s·loss) by up to s(s+1)h²/8 of it, and s = -dln(delta)/depsilon is where it counts."""
        now, step = self.delta(epsilon), 1e-4 * epsilon + 1e-9
        s = math.log(self.delta(epsilon - step) / now) / step
        return math.log(now / delta) > self.rounds * s * (s + 1) * self.h**2 / 4
