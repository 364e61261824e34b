package job

import (
	"fmt"
	"math"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
)

// Derive derives what all submissions of a party spend, which the job's noise hides. It is nil
// without noise. It fails with errors of the accountant.
func (s *Settled) Derive() (*Derivation, error) {
	if s.mechanism == nil {
		return nil, nil
	}
	x := &deriving{Settled: s, round: s.Round(), charges: s.job.charges()}
	x.Version = 1
	x.scan = true
	spent, err := x.round.Spent(accounting.ServerView, x.charges, s.budget.WithDefaults().Delta)
	if err != nil {
		return nil, err
	}
	x.scan = spent.Bare().Upper <= 200
	if x.overlong, err = s.mechanism.Encoder.Overlong(); err != nil {
		return nil, err
	}
	if r := s.mechanism.Records(); r != nil {
		x.overrun = r.Overrun()
	}
	if s.oneshot == nil {
		promise, err := s.session.Promise()
		if err != nil {
			return nil, err
		}
		x.apart = promise.Failure
	}
	x.sums()
	x.bounds()
	x.laws()
	x.coins()
	x.rounds()
	x.failures()
	x.claim(spent)
	return &x.Derivation, nil
}

// deriving is a derivation that is being made.
type deriving struct {
	Derivation
	*Settled
	round   accounting.Round
	charges int
	scan    bool
	mu      float64 // of all lanes, +Inf: not all have one
	rate    float64 // of a coin below 1, 0: there is none

	// Probabilities in one sum: that a graph falls apart, that rounding lengthens a unit's part by
	// more than is charged, and that a party draws too many records.
	apart, overlong, overrun float64
}

// sums says how many honest shares are in a sum.
func (x *deriving) sums() {
	if o := x.oneshot; o != nil {
		t, members := o.Terms, o.Committee.Len()
		x.add("sum", "one-message", values{"survivors": t.MinSurvivors, "colluders": t.Colluders,
			"members": members, "league": t.InLeague},
			values{"honest": t.MinSurvivors - t.Colluders},
			"%d − %d parties of a sum are honest, %d of %d members may be in league", t.MinSurvivors,
			t.Colluders, t.InLeague, members)
		if t.Covered {
			x.add("sum", "covered", nil, nil, "who is in a sum is settled first")
		}
		if t.Norm > 0 {
			x.add("sum", "bounded", nil, nil, "who proves no bound is in no sum")
		}
		if t.CommitteeNoise {
			x.add("sum", "dealt", values{"members": members, "faults": t.Faults, "league": t.InLeague},
				values{"honest": members - t.Faults - t.InLeague}, "%d − %d − %d shares of members", members,
				t.Faults, t.InLeague)
		}
		return
	}
	c := &x.session
	least, most := c.MinMembers, c.Roster.Len()
	given := values{"least": least, "most": most, "colluders": c.Colluders}
	r := c.Recovery
	switch {
	case r == nil:
		x.add("sum", "all-submit", given, values{"honest": least - c.Colluders},
			"all of %s or more, %d of whom collude", count(least, "party", "parties"), c.Colluders)
	case r.Degree > 0 && r.Degree < least-1:
		given["degree"] = r.Degree
		given["threshold"], given["survivors"] = r.Threshold, r.MinSurvivors
		x.add("sum", "curious-sparse", given, values{"honest": r.MinSurvivors - c.Colluders,
			"failure": x.apart},
			"degree %d, threshold %d, sessions of %d to %d: in parts 2^%.1f a round", r.Degree,
			r.Threshold, least, most, math.Log2(x.apart))
	case r.Threshold == 0:
		given["server"] = x.job.Sum.Adversary
		x.add("sum", "drawn", given, values{"survivors": x.survivors,
			"honest": x.survivors - c.Colluders},
			"rounds of %d to %d parties, %d of whom collude: sums of at least %d", least, most,
			c.Colluders, x.survivors)
	default:
		theorem := "cheating"
		if r.Adversary == protocol.CuriousServer {
			theorem = "curious"
		}
		given["threshold"], given["survivors"] = r.Threshold, r.MinSurvivors
		x.add("sum", theorem, given, values{"honest": r.MinSurvivors - c.Colluders},
			"threshold %d, sessions of %d to %d, sums of at least %d − %d honest parties", r.Threshold,
			least, most, r.MinSurvivors, c.Colluders)
	}
}

// bounds says how far a unit moves each lane.
func (x *deriving) bounds() {
	e, m, shape := &x.mechanism.Encoder, x.mechanism, &x.lanes.shape
	clip, d := e.Clip, e.Dimension
	if x.job.Asks() {
		x.add("bound", "rows", nil, nil, "all rows of a party that count are within the clip")
	}
	if shape.MaxWeight > 0 {
		x.add("bound", "weight", values{"lane": "vector", "clip": shape.Clip,
			"share": aggregation.DefaultCountShare, "dimension": shape.Dimension},
			values{"clip": clip, "dimension": d}, "a weight is part of a vector of norm %.6g", clip)
	}
	given := values{"lane": "vector", "clip": clip, "scale": e.Scale, "dimension": d}
	theorem, text := "rounded-vector", fmt.Sprintf("clip %v at scale %.2f, %s", clip, e.Scale,
		count(d, "coordinate", "coordinates"))
	switch b := m.Band(); {
	case b != nil:
		theorem, given["coefficients"], given["kappa"] = "theorem-7", []float64(b), 1
		text += fmt.Sprintf(" in %d parts", len(b))
	case e.Units > 0:
		theorem, given["units"], given["kappa"] = "unit-sum", e.Units, math.Ceil(math.Sqrt(120*math.Ln2)*
			0x1p20)*0x1p-20
		text = fmt.Sprintf("of up to %s each ", count(e.Units, "unit", "units")) + text
	default:
		given["kappa"] = 1
	}
	l2, sensitive := x.round.Update.Sensitivity.L2, x.round.Update.Sensitivity.Dimension
	heaviest := 1
	if x.weights != nil {
		heaviest = slices.Max(x.weights)
		if unit, err := e.Sensitivity(); err == nil { // it was settled
			l2 = unit.L2
		}
	}
	square, l1 := squareOf(l2, sensitive)
	gives := values{"l2_squared": square, "l1": l1, "dimension": x.round.Update.Sensitivity.Dimension}
	if theorem == "unit-sum" {
		gives["overlong"] = x.overlong
	}
	x.add("bound", theorem, given, gives, "%s: Δ₂² = %v", text, square)
	if x.weights != nil {
		square, l1 = squareOf(x.round.Update.Sensitivity.L2, sensitive)
		x.add("bound", "declared-weight", values{"lane": "vector", "heaviest": heaviest},
			values{"l2_squared": square, "l1": l1, "dimension": sensitive},
			"counted up to %s: Δ₂² = %v", count(heaviest, "time", "times"), square)
	}
	if m.Signs == nil {
		return
	}
	theorem = "signs"
	if shape.Votes {
		theorem = "votes"
	}
	d = m.Signs.Sensitivity.Dimension
	x.add("bound", theorem, values{"lane": "signs", "dimension": d},
		values{"l2_squared": d, "l1": d, "dimension": d}, "%s: Δ₂² = %d", count(d, "sign", "signs"), d)
}

// laws says by which laws each lane is dominated.
func (x *deriving) laws() {
	x.law("vector", x.round.Update)
	if x.round.Signs != nil {
		x.law("signs", *x.round.Signs)
	}
}

func (x *deriving) law(name string, l accounting.Lane) {
	square, l1 := squareOf(l.Sensitivity.L2, l.Sensitivity.Dimension)
	noise := l.ShareSigma + l.ShareVariance + l.SumScale // one of them is above 0
	shares := count(x.round.Shares, "share", "shares")
	what := map[accounting.Family]string{
		accounting.FamilyDiscreteGaussian: fmt.Sprintf("%s of σ %.2f", shares, noise),
		accounting.FamilySkellam:          fmt.Sprintf("%s of variance %.2f", shares, noise),
		accounting.FamilyDiscreteLaplace:  fmt.Sprintf("%s, t %.2f together", shares, noise),
	}[x.round.Family]
	found := false
	for _, p := range x.round.Dominations(l, x.scan) {
		given := values{"lane": name, "family": x.round.Family, "honest": x.round.Shares,
			"noise": noise, "l2_squared": square, "l1": l1, "dimension": l.Sensitivity.Dimension}
		switch {
		case p.Mu > 0:
			x.add("law", p.Theorem, given, values{"mu": p.Mu}, "%s: μ = %.6g a round", what, p.Mu)
			x.mu, found = math.Hypot(x.mu, p.Mu), true
		case p.Shift > 0:
			x.add("law", p.Theorem, given, values{"shift": p.Shift}, "%s: a shift by %d", what, p.Shift)
		default:
			x.add("law", p.Theorem, given, nil, "%s: by both norms", what)
		}
	}
	if !found {
		x.mu = math.Inf(1)
	}
}

// coins says with which probability a unit is in a submission.
func (x *deriving) coins() {
	if q := x.round.SecretRate; q < 1 {
		x.rate = q
	}
	if r := x.mechanism.Records(); r != nil {
		x.add("coin", "theorem-6", values{"records": r.Count, "batch": x.job.Batch(),
			"units": r.Most()}, values{"rate": r.Rate, "overrun": r.Overrun()},
			"each of %s is drawn with probability %.4g", count(r.Count, "record", "records"), r.Rate)
	} else if q := x.rate; q > 0 {
		x.add("coin", "hidden", values{"rate": q},
			values{"advantage": q * math.Erf(x.mu/math.Sqrt(8)) * (1 + 0x1p-40)},
			"a party is in a sum with probability %v", q)
	}
}

// rounds says how often a unit is in a sum.
func (x *deriving) rounds() {
	all := x.Rounds()
	switch b := len(x.Band()); {
	case b > 0:
		x.composed("theorem-7", values{"rounds": all}, values{"charges": x.charges}, fmt.Sprintf(
			"%s of %d rounds in %d", count(x.charges, "band", "bands"), b, all))
	case x.charges < all:
		x.composed("seldom", values{"rounds": all, "submissions": x.charges}, values{}, fmt.Sprintf(
			"%s of %d", count(x.charges, "submission", "submissions"), all))
	default:
		x.composed("equal", values{"submissions": x.charges}, values{},
			count(x.charges, "submission", "submissions"))
	}
}

// failures says with which probability none of that is so.
func (x *deriving) failures() {
	r, times := &x.round, float64(x.charges)
	up := func(p float64) float64 { return p * (1 + 0x1p-48) }
	coordinates := r.Update.Sensitivity.Dimension
	if r.Signs != nil {
		coordinates += r.Signs.Sensitivity.Dimension
	}
	p := up(r.TableDistance * r.Samples * times)
	x.add("failure", "tables", values{"parties": x.mechanism.Vector.Shares.Parties,
		"coordinates": coordinates, "distance": r.TableDistance, "rounds": x.charges},
		values{"probability": p}, "δ − (1 + e^ε)·%.2g", p)
	if o := x.oneshot; o != nil {
		given := values{"parties": o.Roster.Len(), "members": o.Committee.Len(), "bounded": 0,
			"length": x.mechanism.Encoder.Dimension, "rounds": x.charges}
		if o.Terms.Norm > 0 {
			given["bounded"] = 1
		}
		p = up(oneshot.Distance(o.Roster.Len(), o.Committee.Len(), x.mechanism.Encoder.Dimension,
			o.Terms.Norm > 0) * times)
		x.add("failure", "one-message", given, values{"probability": p}, "δ − (1 + e^ε)·%.2g", p)
	}
	for _, f := range []struct {
		theorem string
		each    float64
		factor  string
	}{{"graph", x.apart, ""}, {"unit-sum", x.overlong, ""}, {"overrun", x.overrun, "(1 + e^ε)·"}} {
		if f.each == 0 {
			continue
		}
		sums := x.charges * max(1, r.Messages)
		p = up(f.each * float64(sums))
		x.add("failure", f.theorem, values{"failure": f.each, "rounds": sums},
			values{"probability": p}, "δ − %s%.2g", f.factor, p)
	}
}
