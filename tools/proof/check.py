#!/usr/bin/env python3
"""Certify the epsilon of a derivation, read as JSON from standard input.

    hushsum job check --proof FILE --json | python3 tools/proof/check.py

docs/derivations.md defines the JSON. Each step's result is worked out anew from what the step is
given, and must be that of the derivation; what a step is given must be what an earlier one gives;
and the claim's epsilon must hold at its delta, by the theorems that the steps name. Exit codes: 0
if so, 1 if a step fails, which is named, 2 for what is no derivation.

Nothing here was copied from the accountant: counts are integers, norms rationals, normal tails 60
decimal digits, and laws of losses integers that are rounded up, on a grid on which every mass is
divided between the two ends of its cell (Doroshenko et al. 2022). Of floating-point arithmetic this
program assumes that exp, log and erfc err by fewer than 4 units in the last place.
"""
import json
import math
import sys
from decimal import Decimal, localcontext, setcontext
from fractions import Fraction

from curves import (Atoms, Composed, Gaussian, Laplace, Normal, Once, Pure, Renyi, of_laplace,
                    of_outcomes, shifted)
from exact import (ULP, UP, Refused, Unreadable, decimal, density, from_digits, gaussian_delta,
                   gaussian_masses, hold, integer, mills, near, one_step, real, root_up,
                   skellam_masses)

SERVERS = ["public", "curious", "semi-malicious", "cheating"]
FAMILIES = ["discrete-gaussian", "skellam", "discrete-laplace", "gaussian"]
# Theorems that say why a step's numbers are those of the run, and have none of their own.
SILENT = {"covered", "bounded", "stale", "personal", "moving-clip", "rows", "zeros", "metrics"}
ROUNDED = 1 + Fraction(1, 1 << 51)


def least(curve, delta, epsilon):
    """The least epsilon up to the given one that a curve shows at delta."""
    if hasattr(curve, "epsilon"):
        return min(curve.epsilon(delta), epsilon)
    lo, hi = 0.0, epsilon
    for _ in range(50):
        e = (lo + hi) / 2
        lo, hi = (lo, e) if curve.delta(e) <= delta else (e, hi)
    return hi


class Derivation:
    def __init__(self):
        self.server, self.colluders, self.committee = None, None, None
        self.honest, self.graph, self.needs = None, None, set()
        self.lanes, self.laws = {}, {}
        self.unit, self.rate, self.overrun = "party", Fraction(1), Fraction(0)
        self.rounds = self.band = self.units = None
        self.overlong, self.survivors, self.bounded = Fraction(0), 0, False
        self.lost = {}

    def numbers(self, step, given, gives):
        """What a step is given and gives, which must have exactly these names."""
        for part, names in (("given", given), ("gives", gives)):
            got = step.get(part, {})
            if not isinstance(got, dict) or sorted(got) != sorted(names.split()):
                raise Unreadable(f"step {step['n']}: {part} has {sorted(got)}, want {names}")
        return step.get("given", {}), step.get("gives", {})

    # ---- how many honest shares are in a sum

    def sum_all_submit(self, step):
        g, r = self.numbers(step, "least most colluders", "honest")
        least, _, c = self.sizes(g)
        hold(c <= least - 2, "{} of {} parties collude", c, least)
        self.promise("cheating", c, integer(r["honest"]), least - c)

    def sizes(self, g):
        least, most = integer(g["least"], 2), integer(g["most"], 2)
        hold(least <= most, "no session has {} to {} parties", least, most)
        return least, most, integer(g["colluders"])

    def promise(self, server, colluders, stated, honest):
        hold(honest >= 1, "no honest party is certain to be in a sum")
        hold(stated == honest, "{} honest shares, and {} are proved", stated, honest)
        self.server, self.colluders, self.honest = server, colluders, honest

    def sum_curious(self, step):
        self.complete(step, "curious")

    def sum_cheating(self, step):
        self.complete(step, "cheating")

    def complete(self, step, server):
        g, r = self.numbers(step, "least most threshold survivors colluders", "honest")
        least, most, c = self.sizes(g)
        t, m = integer(g["threshold"]), integer(g["survivors"])
        for n in (least, most):  # every condition is strictest at an end
            self.certified(server, n, t, m, c)
        self.promise(server, c, integer(r["honest"]), m - c)

    def certified(self, server, n, t, m, c):
        h, q = n - 1, t
        hold(c <= n - 2 and t <= h, "{} holders, threshold {}, {} colluders", h, t, c)
        if server == "curious":
            hold(t > c, "{} colluders reach the threshold {}", c, t)
        else:
            q = (n + c) // 2 + 1
            hold(2 * t > h + c, "threshold {} of {} holders and {} colluders", t, h, c)
        hold(max(t + 1, q) <= m <= n, "sums of {} of {}, threshold {}, quorum {}", m, n, t, q)

    def sum_drawn(self, step):
        g, r = self.numbers(step, "server least most colluders", "survivors honest")
        least, most, c = self.sizes(g)
        hold(g["server"] in ("curious", "cheating", "semi-malicious"), "there is no such server")
        fewest = most
        for n in range(least, most + 1):
            h = n - 1
            t = h // 2 + 1 if g["server"] == "curious" else 2 * h // 3 + 1
            m = max(t + 1, t if g["server"] == "curious" else (n + c) // 2 + 1)
            self.certified("curious" if g["server"] == "curious" else "cheating", n, t, m, c)
            fewest = min(fewest, m)
        hold(integer(r["survivors"]) == fewest, "sums of {}, and of {} there may be",
             r["survivors"], fewest)
        self.promise(g["server"], c, integer(r["honest"]), fewest - c)

    def sum_curious_sparse(self, step):
        g, r = self.numbers(step, "least most degree threshold survivors colluders",
                            "honest failure")
        least, most, c = self.sizes(g)
        k, t, m = (integer(g[name]) for name in ("degree", "threshold", "survivors"))
        hold(2 <= k < least and 1 <= t <= k and c < m <= least, "degree {}, threshold {}", k, t)
        apart = surrounded = Fraction(0)
        for n in range(least, most + 1):
            gone = n - m + c  # dropped out or corrupt
            all_ = math.comb(n, k)
            cut = Fraction(n * max(n - k - 1, 0) * math.comb(gone, k), 2 * all_)
            near_ = sum(math.comb(c, x) * math.comb(n - c, k - x) for x in range(t, min(c, k) + 1))
            apart, surrounded = max(apart, cut), max(surrounded, Fraction(n * near_, all_))
        near(real(r["failure"]), apart + surrounded, "the probability of a round in parts",
             Fraction(1, 10**6))
        self.graph, self.needs = real(r["failure"]), {"graph"}
        self.promise("curious", c, integer(r["honest"]), m - c)

    def sum_one_message(self, step):
        g, r = self.numbers(step, "survivors colluders members league", "honest")
        m, c = integer(g["survivors"]), integer(g["colluders"])
        self.members(g)
        self.survivors = m
        hold(m - c >= 2, "{} of {} parties collude", c, m)
        self.promise("cheating", c, integer(r["honest"]), m - c)

    def members(self, g):
        members, league = integer(g["members"]), integer(g["league"], 1)
        hold(league + 2 < members, "{} of {} members are in league", league, members)
        hold(self.committee in (None, (members, league)), "there are two committees")
        self.committee = members, league
        return members, league

    def sum_dealt(self, step):
        g, r = self.numbers(step, "members faults league", "honest")
        members, league = self.members(g)
        faults = integer(g["faults"], 1)
        hold(faults <= league < members - 2 * faults, "{} of {} members are at fault, {} in league",
             faults, members, league)
        self.promise("cheating", "any", integer(r["honest"]), members - faults - league)

    def sum_assumed(self, step):
        g, r = self.numbers(step, "shares", "honest")
        self.promise("cheating", "any", integer(r["honest"]), integer(g["shares"], 1))
        self.needs = {"sums"}

    # ---- by how much a unit moves it

    def lane(self, name, **values):
        """A lane's numbers: those that are known must be these."""
        if name not in ("vector", "signs"):
            raise Unreadable(f"{name!r} is no lane")
        of = self.lanes.setdefault(name, {})
        for key, value in values.items():
            hold(of.setdefault(key, value) == value, "{} of the {} is {}, and was {}", key, name,
                 value, of[key])
        return of

    def bound_weight(self, step):
        g, r = self.numbers(step, "lane clip share dimension", "clip dimension")
        of = self.lane(g["lane"], clip=real(g["clip"]), dimension=integer(g["dimension"], 1))
        share = real(g["share"])
        clip, d = real(r["clip"]), integer(r["dimension"])
        near(clip, of["clip"] * (1 + share * share / 2), "the clip with a weight")
        hold(d == of["dimension"] + 1, "a weight is one coordinate more")
        self.lanes[g["lane"]] = {"clip": clip, "dimension": d}

    def norms(self, step, lane, l2_squared, slack=Fraction(0)):
        """Of integer vectors the L1 norm is at most the square, and the root of it times d."""
        r = step["gives"]
        d, square, l1 = (integer(r[name], 1) for name in ("dimension", "l2_squared", "l1"))
        own = math.floor(l2_squared)
        hold(own <= square <= own + 1 + own * slack, "the square of the norm is {}, and at most {} "
             "is proved", square, own)
        most = min(square, math.isqrt(square * d))
        hold(l1 == most, "the L1 norm is {}, and at most {} is proved", l1, most)
        self.lanes[lane] = {"l2_squared": square, "l1": l1, "dimension": d}

    def bound_rounded_vector(self, step):
        g, _ = self.numbers(step, "lane clip scale dimension kappa", "l2_squared l1 dimension")
        self.lane(g["lane"], clip=real(g["clip"]), dimension=integer(g["dimension"], 1))
        hold(step["gives"]["dimension"] == g["dimension"], "rounding adds no coordinate")
        square = self.rounded(real(g["clip"]), g)
        self.norms(step, g["lane"], square, Fraction(1, 1 << 45))

    def rounded(self, clip, g):
        d, c, kappa = integer(g["dimension"], 1), clip * real(g["scale"]), real(g["kappa"])
        root = root_up(Fraction(d))
        return min((c + root) ** 2, c * c + Fraction(d, 4) + kappa * (c + root / 2))

    def bound_declared_weight(self, step):
        g, r = self.numbers(step, "lane heaviest", "l2_squared l1 dimension")
        of = self.lane(g["lane"])
        hold("l2_squared" in of, "nothing bounds what is weighted")
        hold(integer(r["dimension"]) == of["dimension"], "a weight adds no coordinate")
        self.norms(step, g["lane"], integer(g["heaviest"], 1) ** 2 * of["l2_squared"],
                   Fraction(1, 1 << 45))

    def bound_theorem_7(self, step):
        g, _ = self.numbers(step, "lane clip scale dimension kappa coefficients",
                            "l2_squared l1 dimension")
        self.lane(g["lane"], clip=real(g["clip"]), dimension=integer(g["dimension"], 1))
        if not isinstance(g["coefficients"], list) or len(g["coefficients"]) < 2:
            raise Unreadable("coefficients are no list")
        band = [real(x) for x in g["coefficients"]]
        hold(sum(c * c for c in band) <= 1 + Fraction(1, 10**9), "the band is longer than a vector")
        self.band = len(band)
        hold(integer(step["gives"]["dimension"]) == self.band * integer(g["dimension"]),
             "a band has the coordinates of {} sums", self.band)
        # A part is clipped to the float64 product, which its rounding is held to.
        square = sum(math.floor(self.rounded(real(g["clip"]) * c / ROUNDED, g)) for c in band)
        self.norms(step, g["lane"], square, Fraction(1, 1 << 38))

    def bound_unit_sum(self, step):
        g, _ = self.numbers(step, "lane clip scale dimension units kappa",
                            "l2_squared l1 dimension overlong")
        self.lane(g["lane"], clip=real(g["clip"]), dimension=integer(g["dimension"], 1))
        hold(step["gives"]["dimension"] == g["dimension"], "rounding adds no coordinate")
        n, d = integer(g["units"], 1), integer(g["dimension"])
        self.units = n
        room = 1 + Fraction(n * n, 1 << 50) + Fraction(n, 1 << 42) + Fraction(1, 1 << 40)
        clip, root = real(g["clip"]) * real(g["scale"]) * room, root_up(Fraction(d))
        kappa = real(g["kappa"])
        always, square = (clip + root) ** 2, clip**2 + Fraction(d, 4) + kappa * (clip + root / 2)
        self.overlong = real(step["gives"]["overlong"])
        if square < always:  # but for a probability over the dither, P5
            hold(0 < self.overlong < 1 and kappa**2 >=
                 Fraction(-2 * decimal(self.overlong).ln()) * ROUNDED, "kappa is too small")
        self.norms(step, g["lane"], min(square, always), Fraction(1, 1 << 38))

    def bound_signs(self, step):
        g, _ = self.numbers(step, "lane dimension", "l2_squared l1 dimension")
        self.lane(g["lane"], dimension=integer(g["dimension"], 1))
        hold(step["gives"]["dimension"] == g["dimension"], "signs add no coordinate")
        self.norms(step, g["lane"], Fraction(integer(g["dimension"])))

    bound_votes = bound_signs

    def bound_declared(self, step):
        norm = "l1" if "l1" in step.get("given", {}) else "l2"
        g, _ = self.numbers(step, f"lane {norm} dimension", "l2_squared l1 dimension")
        hold("sums" in self.needs, "a norm is declared, and not proved")
        hold(step["gives"]["dimension"] == g["dimension"], "nothing adds a coordinate")
        self.norms(step, g["lane"], real(g[norm]) ** 2 * ROUNDED)

    # ---- laws

    def law(self, step):
        theorem = step["theorem"]
        if theorem == "gaussian":
            g, r = self.numbers(step, "lane multiplier", "mu")
            hold("sums" in self.needs, "continuous noise is in no sum")
            self.lane(g["lane"], dimension=1)
            mu = 1 / real(g["multiplier"])
            near(real(r["mu"]), mu, "mu")
            self.laws[g["lane"]] = {"mu": decimal(mu)}
            return
        gives = {"one-coordinate": "shift", "lemma-1": "shift", "lemma-2": ""}.get(theorem, "mu")
        g, r = self.numbers(step, "lane family honest noise l2_squared l1 dimension", gives)
        of = self.lane(g["lane"])
        for name in ("l2_squared", "l1", "dimension"):
            hold(of.get(name) == integer(g[name], 1), "{} is {}, and the bound gives {}", name,
                 g[name], of.get(name))
        honest, noise, family = integer(g["honest"], 1), real(g["noise"]), g["family"]
        hold(honest == self.honest, "{} shares, and the sum has {}", honest, self.honest)
        hold(family in FAMILIES and noise > 0, "there is no such noise")
        square, l1, d = of["l2_squared"], of["l1"], of["dimension"]
        out = {"family": family, "honest": honest, "noise": noise}
        if gives == "mu":
            norm = min(decimal(Fraction(square)).sqrt(), Decimal(l1))
            with localcontext() as c:
                c.prec = 45
                own = one_step(theorem, family, honest, noise)
            out["mu"] = own * norm
            near(real(r["mu"]), Fraction(own * norm), "mu")
            if theorem == "lemma-3" and family != "discrete-laplace":
                self.needs_cut = True
        elif gives == "shift":
            hold(family == "discrete-laplace" or theorem == "one-coordinate" and d == 1,
                 "{} is not about this law", theorem)
            shift = l1 if family == "discrete-laplace" else min(math.isqrt(square), l1)
            hold(integer(r["shift"], 1) == shift, "the shift is {}, and {} is proved", r["shift"],
                 shift)
            out["shift"] = shift
        else:
            hold(theorem == "lemma-2" and family == "discrete-laplace",
                 "{} is not about this law", theorem)
            out["both"] = noise, l1, square
        known = self.laws.setdefault(g["lane"], {})
        for name in out:
            hold(name not in known or known[name] == out[name], "the lane has two laws")
        known.update(out)

    needs_cut = False

    # ---- coins, rounds and failures

    def coin_public(self, step):
        hold("sums" in self.needs, "only of sums that nobody runs is the schedule hidden")
        self.coin_hidden(step)
        self.server = "public"

    def coin_theorem_6(self, step):
        if "sums" in self.needs:
            self.unit = "record"
            return self.coin_hidden(step)
        g, r = self.numbers(step, "records batch units", "rate overrun")
        n, batch, most = (integer(g[x], 1) for x in ("records", "batch", "units"))
        hold(batch <= n, "a coin comes up with probability {}/{}", batch, n)
        self.unit, self.rate = "record", real(r["rate"])
        self.needs |= {"coins"} if self.rate < 1 else set()
        near(self.rate, Fraction(batch, n), "the rate", Fraction(1, 10**14))
        hold(self.units == most, "the bound is of up to {} records", self.units)
        own = Decimal(0)
        if most < n:
            seen, q = Decimal(most + 1) / n, Decimal(batch) / n
            hold(seen > q, "more than {} are drawn at least as often as not", most)
            own = seen * (seen / q).ln()
            if seen < 1:
                own += (1 - seen) * ((1 - seen) / (1 - q)).ln()
            own = (-n * own).exp()
        self.overrun = real(r["overrun"])
        near(self.overrun, Fraction(own), "the probability of an overrun", Fraction(1, 10**5))

    def coin_hidden(self, step):
        g, r = self.numbers(step, "rate", "advantage")
        self.rate = real(g["rate"])
        hold(0 < self.rate <= 1 and all("mu" in x for x in self.laws.values()), "there is no coin")
        self.needs |= set() if "sums" in self.needs else {"coins"}
        own = decimal(self.rate) * (1 - 2 * mills(self.mu() / 2) * density(self.mu() / 2))
        near(real(r["advantage"]), Fraction(own), "what a round shows of a party")

    def rounds_equal(self, step):
        g, _ = self.numbers(step, "submissions", self.total())
        self.times(step, integer(g["submissions"]))

    def rounds_seldom(self, step):
        g, _ = self.numbers(step, "rounds submissions", self.total())
        hold(integer(g["submissions"]) <= integer(g["rounds"]), "there are {} rounds", g["rounds"])
        self.times(step, integer(g["submissions"]))

    def rounds_theorem_7(self, step):
        assumed = " band" if "sums" in self.needs else ""
        g, r = self.numbers(step, "rounds" + assumed, ("charges " + self.total()).strip())
        if assumed:
            self.band = integer(g["band"], 2)
        hold(self.band, "there is no band")
        own = -(-integer(g["rounds"]) // self.band)
        hold(integer(r["charges"]) == own, "{} charges, and {} are proved", r["charges"], own)
        self.times(step, own)

    def total(self):
        return "mu" if self.rate == 1 and all("mu" in x for x in self.laws.values()) else ""

    def times(self, step, rounds):
        hold(rounds <= 1 << 40, "more than 2^40 rounds")
        hold(self.laws and self.laws.keys() == self.lanes.keys(), "a lane has no law")
        self.rounds = rounds
        if self.total():
            near(real(step["gives"]["mu"]), Fraction(self.mu() * Decimal(rounds).sqrt()), "mu")

    def mu(self):
        return sum(x["mu"] ** 2 for x in self.laws.values()).sqrt() * UP

    def failure(self, step):
        theorem = step["theorem"]
        names = {"tables": "parties coordinates distance rounds",
                 "one-message": "parties members length bounded rounds"}
        each = {"graph": self.graph, "unit-sum": self.overlong, "overrun": self.overrun}
        if theorem not in (*names, *each) or theorem in self.lost:
            raise Unreadable(f"step {step['n']}: no such failure, or twice")
        g, r = self.numbers(step, names.get(theorem, "failure rounds"), "probability")
        times = integer(g["rounds"])
        hold(self.rounds is not None, "nothing says how many rounds there are")
        rounds = self.rounds * (self.band or 1 if theorem in each else 1)
        hold(times == rounds, "{} rounds, and there are {}", times, rounds)
        if theorem == "tables":
            d, parties = integer(g["coordinates"]), integer(g["parties"])
            all_ = sum(x["dimension"] for x in self.lanes.values())
            hold(d == all_ and parties >= self.honest, "{} coordinates of {} parties, and there "
                 "are {} of {}", d, parties, all_, self.honest)
            hold(real(g["distance"]) >= Fraction(1, 1 << 100), "no table is so near to its law")
            own = parties * d * real(g["distance"]) * times
        elif theorem == "one-message":
            n, members, d = (integer(g[x], 1) for x in ("parties", "members", "length"))
            hold(self.committee and members == self.committee[0] and n >= self.survivors and
                 d == self.lanes["vector"]["dimension"] and g["bounded"] in ("0", "1"),
                 "these are no numbers of the sum")
            # N and spare coordinates of the ring; proofs that honest dealers may miss (§13.6).
            own = (n + members) * (Fraction(2048 + d + 64, 1 << 100) +
                                   Fraction(integer(g["bounded"]), 1 << 57)) * times
            hold(g["bounded"] == "1" or not self.bounded, "members prove bounds")
        else:
            hold(real(g["failure"]) == each[theorem], "in a round that has another probability")
            own = each[theorem] * times
        near(real(r["probability"]), own, "the probability")
        self.lost[theorem] = real(r["probability"])

    # ---- what is claimed

    def claim(self, c):
        hold(self.rounds is not None, "nothing says how many rounds there are")
        for name, p in (("graph", self.graph), ("unit-sum", self.overlong),
                        ("overrun", self.overrun), ("one-message", self.committee)):
            hold(not p or name in self.lost, "delta does not have what may fail: {}", name)
        hold("tables" in self.lost or "sums" in self.needs, "samplers are not exact")
        self.statement(c)
        epsilon, delta = c["epsilon"], Fraction(c["delta"])
        hold(not self.needs_cut or epsilon <= 200 and delta >= Fraction(1, 10**60),
             "the scan of a law says nothing of epsilon {} at delta {}", epsilon, float(delta))
        flat = sum(p for name, p in self.lost.items() if name in ("graph", "unit-sum"))
        either = sum(p for name, p in self.lost.items() if name not in ("graph", "unit-sum"))

        def left(e):
            out = delta * (1 - Fraction(1, 10**12) * self.needs_cut) - flat
            return float(out - Fraction(1 + Decimal(e).exp() * UP) * either) * (1 - 4 * ULP)

        hold(left(epsilon) > 0, "failures use up delta")
        by, of = "nothing", 1.0
        for curve in self.curves(epsilon, left(epsilon)):
            by, of = curve.name, curve.delta(epsilon)
            if of <= left(epsilon):  # less is lost at a smaller epsilon
                return least(curve, left(epsilon), epsilon), by
        raise Refused(f"epsilon {epsilon!r} at delta {float(delta)!r} is not certified: by {by} "
                      f"delta is {of:.12g} there, and {left(epsilon):.12g} is left")

    def curves(self, epsilon, delta):
        laws, q, n = list(self.laws.values()), self.rate, self.rounds
        if all("mu" in x for x in laws):
            yield Gaussian(self.mu() * Decimal(n).sqrt() * UP)
        if all("both" in x for x in laws):
            lanes = [x["both"] for x in laws]
            yield Pure(lanes, n)
            yield Renyi(lanes, q, n)
        options = []  # the laws of a round, and the curve of one of them without a coin
        if all("mu" in x for x in laws) and q < 1:
            mu = self.mu()
            options.append(([lambda flipped: Normal(mu, q, flipped)],
                            lambda e: gaussian_delta(mu, e)))
        if all("shift" in x for x in laws) and (len(laws) == 1 or q == 1):
            try:
                makes, curves = zip(*(self.shift(x) for x in laws))
                options.append((makes, curves[0] if len(laws) == 1 else None))
            except Refused:
                pass  # a law is too wide for a table: others may be enough
        for _, of in options:
            if n == 1 and of:
                yield Once(of, q)
        grids = [Composed(makes, n, delta) for makes, _ in options]
        for finer in (1, 4, 16, 64):
            for grid in list(grids):
                refined = grid.refined(finer)
                if refined:
                    yield grid
                if not refined or grid.hopeless(epsilon, delta):
                    grids.remove(grid)

    def shift(self, x):
        """A law of losses in one coordinate, and the curve of one round without a coin."""
        family, m, noise, by = (x[k] for k in ("family", "honest", "noise", "shift"))
        if family == "discrete-laplace":
            return lambda f: Laplace(noise, by, self.rate, f), of_laplace(noise, by)
        outcomes = shifted(skellam_masses(m * noise) if family == "skellam" else
                           gaussian_masses(m, noise * noise), by)
        return lambda f: Atoms(*outcomes, decimal(self.rate), f), of_outcomes(*outcomes)

    def statement(self, c):
        """What is claimed must follow from what the sum promises."""
        hold(c["unit"] == self.unit or self.unit == "record" and c["unit"] != "party",
             "the unit is {}, and a {} is proved", c["unit"], self.unit)
        hold(c["adjacency"] == "zero-out" or
             c["adjacency"] == "add-remove" and "sums" in self.needs,
             "nothing is proved about adjacency {}", c["adjacency"])
        hold(c["server"] in SERVERS and SERVERS.index(c["server"]) <= SERVERS.index(self.server),
             "the server is {}, and {} is proved", c["server"], self.server)
        hold(self.colluders == "any" or
             c["colluders"] != "any" and c["colluders"] <= self.colluders,
             "{} colluders, and {} are proved", c["colluders"], self.colluders)
        trusted = [(x["members"], x["in_league"]) for x in c["committees"]]
        hold(all(self.committee and x[0] == self.committee[0] and x[1] <= self.committee[1]
                 for x in trusted) and (self.committee is None or trusted),
             "committees {}, and {} is proved", trusted, self.committee)
        hold(self.needs <= set(c["assumes"]), "{} is assumed, and not said",
             sorted(self.needs - set(c["assumes"])))


def unique(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise Unreadable("a name stands twice")
    return dict(pairs)


CLAIM = {"epsilon": float, "delta": float, "unit": str, "adjacency": str,
         "server": str, "committees": list, "assumes": list}


def check(text):
    """The claim, this program's own epsilon and by which curve."""
    try:
        d = json.loads(text, object_pairs_hook=unique, parse_int=float)
    except (ValueError, RecursionError) as e:
        raise Unreadable(str(e)) from e
    if not isinstance(d, dict) or sorted(d) != ["derivation", "steps"] or d["derivation"] != 1:
        raise Unreadable("want derivation 1 and its steps")
    steps, of = d["steps"], Derivation()
    if not isinstance(steps, list) or not 1 <= len(steps) <= 100:
        raise Unreadable("want 1 to 100 steps")
    for n, step in enumerate(steps, 1):
        if not (isinstance(step, dict) and step.get("n") == n and
                isinstance(step.get("kind"), str)):
            raise Unreadable(f"step {n} is none, or out of order")
        step["n"] = n
        try:
            if step["kind"] == "claim":
                if n != len(steps) or sorted(step) != ["claim", "kind", "n"]:
                    raise Unreadable("the claim comes last")
                return (step["claim"], *of.claim(readable(step["claim"])))
            one(of, step)
        except (Refused, ArithmeticError, AssertionError, IndexError, MemoryError,
                ValueError) as e:
            what = e if isinstance(e, Refused) else f"cannot be worked out: {e!r}"
            raise Refused(" ".join([f"step {n}", step["kind"], step.get("theorem", "")]).strip() +
                          f": {what}") from e
    raise Unreadable("nothing is claimed")


def one(of, step):
    names = {"n", "kind", "theorem", "where", "words", "given", "gives"}
    theorem, kind = step.get("theorem"), step["kind"]
    if not set(step) <= names or not isinstance(theorem, str):
        raise Unreadable(f"step {step['n']} has other names than {sorted(names)}")
    if theorem in SILENT and kind in ("sum", "bound"):
        of.numbers(step, "", "")
        of.bounded |= theorem == "bounded"
        return
    method = {"law": of.law, "failure": of.failure}.get(kind) or getattr(
        of, f"{kind}_{theorem.replace('-', '_')}", None)
    if kind not in ("sum", "bound", "law", "coin", "rounds", "failure") or method is None:
        raise Unreadable(f"step {step['n']}: nothing is known of {kind} {theorem}")
    if of.rounds is not None and kind != "failure":
        raise Unreadable(f"step {step['n']}: {kind} comes before the rounds")
    method(step)


def readable(c):
    if not isinstance(c, dict) or set(c) - {"accountant", "neighbour", "reason"} != {
            *CLAIM, "colluders", "at_least"}:
        raise Unreadable("the claim has other names")
    for name, kind in CLAIM.items():
        if not isinstance(c[name], kind):
            raise Unreadable(f"{name} of the claim is {c[name]!r}")
    if not (0 <= c["epsilon"] <= 1e6 and 0 < c["delta"] < 1):
        raise Unreadable("the claim has no epsilon or no delta")
    if c["colluders"] != "any" and not isinstance(c["colluders"], float):
        raise Unreadable("colluders are no number")
    return c


def verdict(text):
    """The exit code for a derivation, and why."""
    setcontext(from_digits)
    try:
        claim, own, curve = check(text)
    except Refused as e:
        return 1, f"refused: {e}"
    except (Unreadable, KeyError, TypeError, AttributeError) as e:
        return 2, f"unreadable: {e}"
    return 0, (f"certified: epsilon {claim['epsilon']!r} at delta {claim['delta']!r}; "
               f"at most {own!r} by this program, {curve}")


def main():
    code, words = verdict(sys.stdin.buffer.read(1 << 20))
    print(words)
    return code


if __name__ == "__main__":
    sys.exit(main())
