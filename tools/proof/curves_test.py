"""Tests of curves.py against sums over all outcomes, and against the normal law."""
import math
import unittest
from decimal import Decimal, setcontext
from fractions import Fraction

from curves import Atoms, Composed, Laplace, Normal, Once, of_laplace, of_outcomes, shifted
from exact import decimal, from_digits, gaussian_delta, product, skellam_masses


def rounds_of(pairs, rounds):
    """All outcomes of rounds, each with its masses under both hypotheses."""
    all_ = [(Decimal(1), Decimal(1))]
    for _ in range(rounds):
        all_ = [(a * p, b * q) for a, b in all_ for p, q in pairs]
    return all_


def worst(pairs, rounds, epsilon):
    e = Decimal(epsilon).exp()
    all_ = rounds_of(pairs, rounds)
    return max(sum(max(p - e * q, 0) for p, q in all_), sum(max(q - e * p, 0) for p, q in all_))


def mixed(pairs, q):
    return [(decimal(q) * p + (1 - decimal(q)) * n, n) for p, n in pairs]


def laplace(t, k):
    """The outcomes of Laplace, from the masses of the noise itself."""
    rho = (-1 / decimal(t)).exp()
    tail = lambda x: rho**x / (1 + rho)  # at x or more, x of 1 or more
    mass = lambda x: (1 - rho) / (1 + rho) * rho ** abs(x)
    return [(tail(k), 1 - tail(1)), *((mass(x - k), mass(x)) for x in range(1, k)),
            (1 - tail(1), tail(k))]


class Curves(unittest.TestCase):
    def setUp(self):
        setcontext(from_digits)

    def bounds(self, got, want, off):
        self.assertGreaterEqual(Decimal(got), want * (1 - Decimal("1e-40")))
        self.assertLess(Decimal(got), want * (1 + Decimal(off)))

    def test_laplace(self):
        for t, k, q, rounds in ((3, 4, 1, 2), (3, 4, 0.5, 3), (40, 9, 1, 2), (0.3, 1, 0.1, 4),
                                (0.3, 1, 1, 5), (7, 5, 0.9, 1), (2, 3, 0.01, 2)):
            t, q = Fraction(t), Fraction(q)
            pairs = mixed(laplace(t, k), q)
            most = float((pairs[-1][0] / pairs[-1][1]).ln()) * rounds
            for part in (0, 0.6):
                want = worst(pairs, rounds, most * part)
                grid = Composed([lambda f: Laplace(t, k, q, f)], rounds, float(want))
                for finer, off in ((1, 1e-2), (4, 1e-3)):
                    self.assertTrue(grid.refined(finer))
                    self.bounds(grid.delta(most * part), want, off)
                if rounds == 1:
                    self.bounds(Once(of_laplace(t, k), q).delta(most * part), want, 1e-12)

    def test_two_laws(self):
        a, b = laplace(Fraction(3), 4), laplace(Fraction(5), 2)
        want = worst([(p * r, q * s) for p, q in a for r, s in b], 2, 1.0)
        grid = Composed([lambda f: Laplace(Fraction(3), 4, 1, f),
                         lambda f: Laplace(Fraction(5), 2, 1, f)], 2, float(want))
        grid.refined(1)
        self.bounds(grid.delta(1.0), want, 1e-3)

    def test_outcomes(self):
        outcomes, lost = shifted(skellam_masses(Fraction(4)), 2)
        for q in (Fraction(1), Fraction(1, 3)):
            pairs = [x for x in mixed(outcomes, q) if x[0] > Decimal("1e-20")]
            want = worst(pairs, 1, 0.8)
            self.bounds(Once(of_outcomes(outcomes, lost), q).delta(0.8), want, 1e-12)
            grid = Composed([lambda f: Atoms(outcomes, lost, decimal(q), f)], 1, float(want))
            grid.refined(4)
            self.bounds(grid.delta(0.8), want, 1e-3)

    def test_normal(self):
        for mu, rounds, epsilon in ((0.3, 50, 9.0), (0.01, 101, 0.3), (2.0, 2, 14.0)):
            want = gaussian_delta(Decimal(mu) * Decimal(rounds).sqrt(), Decimal(epsilon))
            grid = Composed([lambda f: Normal(mu, 1, f)], rounds, float(want))
            grid.refined(1)
            self.bounds(grid.delta(epsilon), want, 2e-3)

    def test_product(self):
        a, b = [3, 0, 10**9, 7], [10**9, 1]
        want = [sum(a[i] * b[k - i] for i in range(4) if 0 <= k - i < 2) for k in range(5)]
        self.assertEqual(product(a, b, 9), [-(-x // 10**9) for x in want])


if __name__ == "__main__":
    unittest.main()
