package accounting

import (
	"fmt"
	"math"
)

// A Lane is one vector of a submission: the noise of each of its coordinates, in
// integer units, and what bounds one client's part. Of the first three fields
// exactly one is above 0, the one that states noise of the round's family.
type Lane struct {
	ShareSigma    float64 // FamilyDiscreteGaussian: the parameter σ of one share
	ShareVariance float64 // FamilySkellam: the variance of one share
	SumScale      float64 // FamilyDiscreteLaplace: the scale t of all Round.Shares together

	Sensitivity Sensitivity
	// Attained is an L2 norm up to which every integer vector within Sensitivity is a client's part
	// for some input, whatever dither rounds it; 0: that of Sensitivity. What rounding may add to a
	// norm is in the bounds, but no input has it for certain, and Spent.Lower does not rely on it.
	Attained float64 `json:",omitempty"`
}

// Round states what one round of a secure-aggregation session spends: plain figures
// that the caller copies from its configuration.
type Round struct {
	Family Family
	// Statement says what an ε of these figures is about. Its unit is the one whose part the lanes
	// bound, and whose coin SecretRate describes. The zero Statement is that of a calculator.
	Statement Statement
	// Shares is m, the number of honest shares to which the noise is calibrated. No other shares
	// count, even if a sum has more: the proof for discrete Laplace noise is for exactly m shares,
	// and further shares are post-processing.
	Shares int
	// Honest is the fewest shares in a sum that nobody in league with the server can subtract: of
	// parties, or of the members of a committee who share the noise. It must be at least Shares.
	Honest int
	// Own is the parameter σ² of discrete Gaussian noise that every coordinate of a sum has in
	// addition to those shares, and that nobody against whom ε holds can take out: the noise that
	// hides keys where a committee adds the rest. ε does not rely on Own, and Spent.Lower allows for
	// it.
	Own float64 `json:",omitempty"`
	// Update is the main lane, with bounds after rounding.
	Update Lane
	// Signs is the lane of a gradient mask's signs, nil if there is none.
	Signs *Lane
	// TableDistance is the statistical distance of one sample from its law, 0 for
	// an exact sampler. It adds (1+e^ε)·N·TableDistance to δ over all N samples of
	// all honest shares, coordinates and rounds.
	TableDistance float64
	// Samples is the number of table samples drawn in one round by all honest
	// parties whose shares are in the sum, 0 with exact samplers.
	Samples float64
	// Rate is the probability that a client is in a round's schedule; 1 without sampling.
	Rate float64
	// HiddenSchedule states that the schedule is Poisson and its seed is uniform, cannot be ground
	// and is hidden from the outsider. Without it, PublicView has no amplification.
	HiddenSchedule bool
	// SecretRate is the probability that the protected unit, a party's vector or one of its records,
	// is in a submission at all, by a coin that the party tosses anew for every submission and on
	// which nothing but the masked sum depends. It amplifies in both views, also against a server
	// that cheats. 0 stands for 1, no coin.
	SecretRate float64 `json:",omitempty"`
	// Overrun is the probability in one round that a client submits something other than these
	// figures describe, such as zeros for a batch that came out too large. It adds (1+e^ε)·Overrun
	// to δ in each round.
	Overrun float64 `json:",omitempty"`
	// Failure is the probability in one round of an event that has nothing to do with any unit, and in
	// which these figures do not hold, such as a graph that falls apart. It adds Failure to δ in each
	// round (docs/privacy-proofs.md, P1).
	Failure float64 `json:",omitempty"`
	// Messages, above 1, says that the round is a band of that many sums in a row: Update bounds what
	// a client adds to all of them together, in that many times the coordinates, and the client may
	// choose each vector after it has seen the sums before. Samples counts the samples of all these
	// sums. A band has neither signs, coins nor discrete Laplace noise, and protects parties.
	Messages int `json:",omitempty"`
}

// A View names an observer of a run.
type View int

const (
	// ServerView is a server with its colluders: it knows who took part, so that only coins that
	// parties keep to themselves amplify; zero-out adjacency.
	ServerView View = iota + 1
	// PublicView is an outsider who sees released models: amplified if the schedule is hidden from
	// it. For a [Round] it uses zero-out adjacency as well, since a party brings a share of the
	// noise: a missing share shows in the variance. A release whose noise comes from elsewhere, with
	// a fixed divisor, is private under add/remove adjacency too, with the same figures.
	PublicView
)

// Of returns what a statement says in the view: against the public, [Statement.Public].
func (v View) Of(s Statement) Statement {
	if v == PublicView {
		return s.Public()
	}
	return s.stated()
}

func (v View) String() string {
	switch v {
	case ServerView:
		return "server"
	case PublicView:
		return "public"
	}
	return fmt.Sprintf("view(%d)", int(v))
}

// Views returns ε(server) and ε(public) of the given number of rounds at delta. A client is assumed
// to take part in every round for the server's view, and to be scheduled with probability Rate for
// the public's. If the client's own ledger lets it submit in only k of those rounds, retries
// included, pass k for rounds, regardless of who picks them, and set Rate to 1: rounds that a
// server picks amplify nothing. Errors wrap ErrConfig or ErrTooLarge.
func (r Round) Views(rounds int, delta float64) (server, public Claim, err error) {
	if server, err = r.Spent(ServerView, rounds, delta); err != nil {
		return Claim{}, Claim{}, err
	}
	if r.rate(PublicView) == r.rate(ServerView) {
		public = server // which can take a tenth of a second
		public.Statement = PublicView.Of(server.Statement)
		return server, public, nil
	}
	if public, err = r.Spent(PublicView, rounds, delta); err != nil {
		return Claim{}, Claim{}, err
	}
	return server, public, nil
}

// Spent returns one view of Views.
func (r Round) Spent(v View, rounds int, delta float64) (Claim, error) {
	charges, err := r.charges(v, rounds)
	if err != nil {
		return Claim{}, err
	}
	return spend(charges, v, delta)
}

// charges returns the charges of the given number of rounds.
func (r Round) charges(v View, rounds int) ([]charge, error) {
	if v != ServerView && v != PublicView {
		return nil, configError("unknown %v", v)
	}
	if rounds < 0 || rounds > maxCount {
		return nil, configError("%d rounds, want 0 to 2^40", rounds)
	}
	return []charge{{Round: &r, Count: rounds}}, nil
}

func (r Round) check() error {
	if !forRounds(r.Family) {
		return configError("noise of %v", r.Family)
	}
	if r.Statement.adjacency != ZeroOut {
		return configError("a round by %v neighbours: sums of a session are by zero-out ones",
			r.Statement.adjacency)
	}
	if r.Shares < 1 {
		return configError("shares is %d, want at least 1", r.Shares)
	}
	if r.Honest < r.Shares {
		return configError("%d honest shares are in a sum, noise needs %d: have more survivors, or "+
			"calibrate to fewer shares", r.Honest, r.Shares)
	}
	if err := checkRate(r.Rate); err != nil {
		return err
	}
	if !(r.SecretRate >= 0 && r.SecretRate <= 1) {
		return configError("secret rate is %v, want 0 < rate ≤ 1, or 0 for 1", r.SecretRate)
	}
	if !(r.Overrun >= 0 && r.Overrun < 1) {
		return configError("overrun is %v, want a probability below 1", r.Overrun)
	}
	if !(r.Failure >= 0 && r.Failure < 1) {
		return configError("failure is %v, want a probability below 1", r.Failure)
	}
	if !(r.TableDistance >= 0 && r.TableDistance < 1) || !(r.Samples >= 0) ||
		math.IsInf(r.Samples, 1) {
		return configError("table distance %v over %v samples: want a distance below 1 and a "+
			"finite count", r.TableDistance, r.Samples)
	}
	if r.TableDistance > 0 && r.Samples == 0 {
		return configError("table distance %v over no samples: say how many samples of a table a "+
			"round draws", r.TableDistance)
	}
	if err := r.checkBand(); err != nil {
		return err
	}
	for _, l := range r.lanes() {
		if err := l.checkNoise(r.Family); err != nil {
			return err
		}
		if _, err := l.Sensitivity.check(); err != nil {
			return err
		}
		if !(l.Attained >= 0) || math.IsInf(l.Attained, 1) {
			return configError("attained norm is %v, want 0 or more", l.Attained)
		}
	}
	if !(r.Own >= 0) || math.IsInf(r.Own, 1) || r.Own > 0 && r.Family != FamilyDiscreteGaussian {
		return configError("own noise is %v next to %v noise: want 0 or more, next to discrete Gaussian "+
			"noise", r.Own, r.Family)
	}
	return nil
}

// checkBand refuses what nobody has proved of a band: see docs/privacy-proofs.md, Theorem 7.
func (r Round) checkBand() error {
	switch {
	case r.Messages < 0:
		return configError("messages is %d, want 0 or more", r.Messages)
	case r.Messages < 2:
		return nil
	case r.Family == FamilyDiscreteLaplace:
		return configError("a band of %v noise: its budget is an L2 norm, use Gaussian or Skellam noise",
			r.Family)
	case r.Statement.unit != PartyUnit:
		return configError("a band of the unit %v: it protects parties", r.Statement.unit)
	case r.Rate != 1 || r.rate(ServerView) != 1:
		return configError("a band with a rate: one coin for each of its sums amplifies nothing")
	case r.Signs != nil:
		return configError("a band with signs: each of its sums would spend them anew")
	case r.Update.Sensitivity.Dimension < r.Messages:
		return configError("a band of %d sums in %d coordinates: count those of all sums", r.Messages,
			r.Update.Sensitivity.Dimension)
	}
	return nil
}

// checkNoise sees that the noise is stated once, in the unit of its family.
func (l Lane) checkNoise(f Family) error {
	units := []struct {
		family Family
		name   string
		noise  float64
	}{
		{FamilyDiscreteGaussian, "ShareSigma", l.ShareSigma},
		{FamilySkellam, "ShareVariance", l.ShareVariance},
		{FamilyDiscreteLaplace, "SumScale", l.SumScale},
	}
	for _, u := range units {
		if u.family == f {
			if err := checkPositive(u.name, u.noise); err != nil {
				return err
			}
		} else if u.noise != 0 {
			return configError("%s is %v, which does not state %v noise", u.name, u.noise, f)
		}
	}
	return nil
}

// owned is the round with lanes of its own.
func (r Round) owned() Round {
	if r.Signs != nil {
		signs := *r.Signs
		r.Signs = &signs
	}
	return r
}

// inputs bounds the integer vectors that are certain to be a client's part for some input.
func (l Lane) inputs() (Sensitivity, error) {
	s := l.Sensitivity
	if l.Attained > 0 {
		s.L2 = math.Min(s.L2, l.Attained)
	}
	return s.check()
}

func (r Round) lanes() []Lane {
	if r.Signs == nil {
		return []Lane{r.Update}
	}
	return []Lane{r.Update, *r.Signs}
}

// rate is the sampling rate that counts in a view.
func (r Round) rate(v View) float64 {
	q := 1.0
	if r.SecretRate > 0 {
		q = r.SecretRate
	}
	if v == PublicView && r.HiddenSchedule {
		q *= r.Rate
	}
	return q
}

// unsampled is the round to those who know who is in it.
func (r Round) unsampled() Round {
	r.Rate, r.SecretRate = 1, 1
	return r
}

// steps returns the round as one-dimensional mechanisms, or ok = false if its
// vectors have no one-dimensional worst case.
func (r Round) steps(v View) (out []Step, ok bool) {
	var ms []Mechanism
	for _, l := range r.lanes() {
		s, err := l.Sensitivity.check()
		if err != nil {
			return nil, false
		}
		switch {
		case r.Family == FamilyDiscreteLaplace && s.L1 <= 1<<20:
			ms = append(ms, laplaceVector(l.SumScale, s.L1))
		case r.Family == FamilySkellam && s.Dimension == 1 && s.L2 <= 1<<20:
			norm := integerNorm(math.Min(s.L1, s.L2)) // of one coordinate they are one
			ms = append(ms, Skellam{float64(r.Shares) * l.ShareVariance, norm})
		case r.Family == FamilyDiscreteGaussian && s.Dimension == 1 && s.L2 <= 1<<20:
			norm := integerNorm(math.Min(s.L1, s.L2))
			theta, known := shareTheta(r.Shares, l.ShareSigma*l.ShareSigma)
			switch {
			case r.Shares == 1:
				ms = append(ms, DiscreteGaussian{l.ShareSigma, norm})
			case known && float64(r.Shares)*theta.variance < smallSum:
				ms = append(ms, shareSum{theta, norm})
			default:
				return nil, false
			}
		default:
			return nil, false
		}
	}
	q := r.rate(v)
	if len(ms) > 1 && q < 1 {
		// Both lanes are sampled together; two sampled steps would not be.
		return nil, false
	}
	for _, m := range ms {
		out = append(out, Step{Sampled{m, q}, 1})
	}
	return out, true
}

// normalSteps returns the round as a Gaussian that dominates it, or ok = false. All lanes
// together are one, so that they are sampled together. scan and cut are those of [Lane.normal].
func (r Round) normalSteps(v View, scan bool) (out []Step, cut, ok bool) {
	mu := 0.0
	for _, l := range r.lanes() {
		x, c, err := l.normal(r.Family, r.Shares, scan)
		if err != nil {
			return nil, false, false
		}
		mu, cut = math.Hypot(mu, x), cut || c
	}
	z := 1 / mu * (1 - 1e-12)
	if !(z > 0) || math.IsInf(z, 1) {
		return nil, false, false
	}
	return []Step{{Sampled{Gaussian{z}, r.rate(v)}, 1}}, cut, true
}

// spreads reports whether the round is of vectors for which the L1 norm alone, or one
// coordinate alone, is not the worst case.
func (r Round) spreads() bool {
	if r.Family != FamilyDiscreteLaplace {
		return false
	}
	for _, l := range r.lanes() {
		s, err := l.Sensitivity.check()
		if err == nil && integerNorm(s.L1) > integerNorm(s.L2) {
			return true
		}
	}
	return false
}

// rdp returns the Rényi curve of one round in a view, at orders (nil: the default).
func (r Round) rdp(v View, orders []float64) (RDP, error) {
	total, err := NewRDP(orders, func(float64) float64 { return 0 })
	if err != nil {
		return RDP{}, err
	}
	for _, l := range r.lanes() {
		var c RDP
		switch r.Family {
		case FamilyDiscreteGaussian:
			c, err = DistributedGaussianRDP(r.Shares, l.ShareSigma*l.ShareSigma, l.Sensitivity, orders)
		case FamilySkellam:
			c, err = SkellamRDP(float64(r.Shares)*l.ShareVariance, l.Sensitivity, orders)
		default:
			var s Sensitivity
			if s, err = l.Sensitivity.check(); err == nil {
				c, err = laplaceVectorRDP(l.SumScale, s, orders)
			}
		}
		if err != nil {
			return RDP{}, err
		}
		if total, err = total.Plus(c); err != nil {
			return RDP{}, err
		}
	}
	return total.Poisson(r.rate(v))
}
