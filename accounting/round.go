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
}

// Round states what one round of a secure-aggregation session spends: plain figures
// that the caller copies from its configuration.
type Round struct {
	Family Family
	// Unit says whose part the lanes bound, and whose coin SecretRate describes.
	Unit Unit `json:",omitzero"`
	// Shares is m, the honest shares that the noise is calibrated to and the only ones that count,
	// even if more are in a sum. Only the discrete Laplace of exactly m shares is proved; further
	// ones are post-processing.
	Shares int
	// MinSurvivors is the least number of parties whose sum is ever released;
	// Colluders of them may subtract their own noise. MinSurvivors − Colluders
	// shares are counted on, and must be at least Shares.
	MinSurvivors, Colluders int
	// Committee says that members of a committee share the noise: the counts above are of these, and
	// it does not matter how many parties collude.
	Committee bool `json:",omitempty"`
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
	// SecretRate is the probability that what is protected, a party's vector or one record of it, is
	// in a submission at all, by a coin that its party tosses anew for every submission and on which
	// nothing but the masked sum depends. It amplifies in both views, also against a server that
	// cheats. 0 stands for 1, no coin.
	SecretRate float64 `json:",omitempty"`
	// Overrun is the probability in one round that a client submits something other than these
	// figures describe, such as zeros for a batch that came out too large. It adds (1+e^ε)·Overrun
	// to δ in each round.
	Overrun float64 `json:",omitempty"`
	// Messages, above 1, says that the round is a band of that many sums in a row: Update bounds
	// what a client adds to all of them together, in that many times the coordinates, and the client
	// may choose each vector after it has seen the sums before. Samples are those of all sums. A
	// band has neither signs, coins nor discrete Laplace noise, and protects parties.
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

func (v View) String() string {
	switch v {
	case ServerView:
		return "server"
	case PublicView:
		return "public"
	}
	return fmt.Sprintf("view(%d)", int(v))
}

// Spent reports what a run has spent in one view.
type Spent struct {
	// Bound is attained at its lower end by Neighbour, if that end is above 0. For vectors under
	// discrete Laplace noise the two ends are up to a tenth apart, further with sampling or an ε
	// near δ; under other noise they are within a hundredth from a standard deviation of 7 units of
	// the sum on.
	Bound
	Unit Unit
	View View
	// Accountant names the proof of the upper bound: "PLD", by the worst vector or by a Gaussian
	// that dominates all, or "RDP" where that is less.
	Accountant string
	// Neighbour says what one client adds to each sum to attain Lower, as in "40 coordinates by
	// 125", in integer units. It is empty if none is known, with Lower = 0, or if only mechanisms
	// were recorded, each of which is a pair of neighbours.
	Neighbour string
}

// Views returns ε(server) and ε(public) of the given number of rounds at delta. A client is
// assumed to take part in every round for the server's view, and to be scheduled with probability
// Rate for the public's. If its own ledger lets it submit in k of those rounds, retries included,
// rounds is k, regardless of who picks them, and Rate is 1: rounds that a server picks amplify
// nothing. Errors wrap ErrConfig or ErrTooLarge.
func (r Round) Views(rounds int, delta float64) (server, public Spent, err error) {
	if server, err = r.Spent(ServerView, rounds, delta); err != nil {
		return Spent{}, Spent{}, err
	}
	if r.rate(PublicView) == r.rate(ServerView) {
		public = server // which can take a tenth of a second
		public.View = PublicView
		return server, public, nil
	}
	if public, err = r.Spent(PublicView, rounds, delta); err != nil {
		return Spent{}, Spent{}, err
	}
	return server, public, nil
}

// Spent returns one view of Views.
func (r Round) Spent(v View, rounds int, delta float64) (Spent, error) {
	charges, err := r.charges(v, rounds)
	if err != nil {
		return Spent{}, err
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
	if _, err := r.Unit.MarshalText(); err != nil {
		return err
	}
	if r.Shares < 1 || r.Colluders < 0 || r.MinSurvivors < 1 {
		return configError("shares %d, survivors %d, colluders %d: want at least 1, 1, 0", r.Shares,
			r.MinSurvivors, r.Colluders)
	}
	if m := r.MinSurvivors - r.Colluders; m < r.Shares {
		return configError("%d survivors less %d colluders leave %d shares, noise needs %d: raise "+
			"MinSurvivors or calibrate to fewer shares", r.MinSurvivors, r.Colluders, m, r.Shares)
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
	case r.Unit != PartyUnit:
		return configError("a band of the unit %v: it protects parties", r.Unit)
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
