package simulation

import (
	"fmt"
	"math"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/noise"
)

// lanes is how a party's vectors become one submission and a sum becomes means:
// the update, and what the rules need besides. A lane that a rule has no use for
// is nil.
type lanes struct {
	noisy   *noisy             // the update with noise
	plain   *aggregation.Mean  // the update without
	signs   *aggregation.Signs // for a gradient mask
	votes   *aggregation.Signs // for an adaptive clipping norm
	control *aggregation.Mean  // SCAFFOLD's control variates
	counts  *noise.Table       // of one party's share of the noise on signs or votes
	shares  noise.Shares       // of that

	survivors survivors
}

// message is what a party sends, before it is encoded.
type message struct {
	update, control []float64
	signed, voted   []float64 // vectors whose signs are sent
}

// total is what a sum says: means, but of signs and votes the sums.
type total struct {
	update, control []float64
	signs, votes    []int64
	parties         int
}

// newLanes settles the encoding of a training.
func (t *Training) newLanes() (*lanes, error) {
	d := t.Model.NumParams()
	s, err := t.survivors()
	if err != nil {
		return nil, err
	}
	l := &lanes{survivors: s}
	vector := aggregation.Mean{Parties: s.parties, Dimension: d, Range: t.Range, FractionBits: t.FractionBits}
	if t.Client.stored() {
		control := vector
		l.control = &control
	}
	if t.Mask.Kind != aggregation.NoMask {
		l.signs = &aggregation.Signs{Parties: s.parties, Dimension: d}
	}
	if t.Clip.Adaptive != nil {
		l.votes = &aggregation.Signs{Parties: s.parties, Dimension: 1}
	}
	if t.Noise == nil {
		vector.Dimension = t.dimension()
		l.plain = &vector
		return l, nil
	}
	if err := t.addNoise(l, t.Noise.Multiplier); err != nil {
		return nil, err
	}
	return l, l.makeTables(t.Noise)
}

// dimension is how many coordinates an update is sent with.
func (t *Training) dimension() int {
	if t.MaxSamples > 0 {
		return t.Model.NumParams() + 1
	}
	return t.Model.NumParams()
}

// countNorm is what a full weight is sent as.
func (t *Training) countNorm() float64 {
	if t.Noise != nil {
		return aggregation.DefaultCountShare * t.Noise.Clip
	}
	return 1
}

// addNoise settles the noise of all lanes, z for all together, without tables.
func (t *Training) addNoise(l *lanes, z float64) error {
	main, side, err := t.multipliers(z)
	if err != nil {
		return err
	}
	bounded := *t.Noise
	if t.MaxSamples > 0 {
		bounded.Clip *= aggregation.WeightedClip(aggregation.DefaultCountShare)
	}
	m, err := l.survivors.mechanism(&bounded, t.dimension(), main)
	if err != nil {
		return err
	}
	if l.noisy, err = noisyOf(m); err != nil {
		return err
	}
	lane := l.counted()
	if lane == nil {
		return nil
	}
	stdDev := side * math.Sqrt(float64(lane.Dimension))
	l.shares = noise.Shares{Parties: l.survivors.parties, MinHonest: m.Shares.MinHonest}
	if l.shares.Law, err = lawOf(t.Noise.Law, stdDev); err != nil {
		return &OptionError{Option: "Noise", Reason: err.Error(), Err: err}
	}
	if t.Noise.Law == accounting.FamilyDiscreteGaussian {
		share := shareScale(t.Noise.Law, l.shares)
		if tau, err := accounting.SumTau(l.shares.MinHonest, share*share); err != nil || tau > .1 {
			return &OptionError{
				Option: "Noise.Law",
				Reason: fmt.Sprintf("shares of %.3g on signs or votes are too small for discrete Gaussians to add up", share),
				Advice: "use the Skellam law, whose shares add up exactly, or a larger multiplier",
				Err:    errNextToNone,
			}
		}
	}
	lane.NoiseStdDev = stdDev * math.Sqrt(float64(l.shares.Parties)/float64(l.shares.MinHonest))
	lane.NoiseFamily = t.Noise.Law
	return nil
}

// makeTables prepares the sampling of the noise.
func (l *lanes) makeTables(n *Noise) (err error) {
	if l.noisy.table, err = shareTable(l.noisy.Shares, n); err == nil && l.counted() != nil {
		l.counts, err = shareTable(l.shares, n)
	}
	return err
}

// counted returns the lane of signs or votes that has noise when there is any, or
// nil; with noise there is at most one.
func (l *lanes) counted() *aggregation.Signs {
	if l.signs != nil {
		return l.signs
	}
	return l.votes
}

// multipliers divides a noise multiplier z between the update and the lane of
// signs or votes, so that 1/z² is the sum of theirs.
func (t *Training) multipliers(z float64) (update, side float64, err error) {
	switch {
	case t.Mask.Kind != aggregation.NoMask:
		return z / math.Sqrt(1-t.SignShare), z / math.Sqrt(t.SignShare), nil
	case t.Clip.Adaptive != nil:
		// (Andrew 2021) takes a twentieth of the parties; a bit there is two votes here.
		// It is no less than what leaves the update most of the budget.
		sigma := max(float64(t.PerRound)/20, 2*z)
		update, err := aggregation.SplitMultiplier(z, sigma)
		return update, 2 * sigma, err
	}
	return z, math.Inf(1), nil
}

// survivors returns how many parties are in a sum, and how many shares of noise can
// be counted on. With noise and Poisson sampling all parties are.
func (t *Training) survivors() (survivors, error) {
	switch {
	case t.Sum == Private:
		return survivorsOf(t.PerRound, t.Recovery, t.Colluders)
	case t.Poisson:
		return survivors{parties: len(t.Parties), least: len(t.Parties)}, nil
	}
	return survivors{parties: t.PerRound, least: t.PerRound}, nil
}

// hidden reports whether all parties submit, drawn or not.
func (t *Training) hidden() bool { return t.Poisson && t.Noise != nil }

// round returns what one round spends.
func (l *lanes) round(t *Training) accounting.Round {
	r := l.noisy.Round()
	if t.Poisson {
		r.Rate, r.HiddenSchedule = float64(t.PerRound)/float64(len(t.Parties)), true
	}
	lane := l.counted()
	if lane == nil {
		return r
	}
	bounds := accounting.Sensitivity{L1: float64(lane.Dimension), L2: math.Sqrt(float64(lane.Dimension)), Dimension: lane.Dimension}
	signs := laneOf(t.Noise.Law, shareScale(t.Noise.Law, l.shares), bounds)
	r.Signs = &signs
	r.Samples += float64(l.shares.Parties) * float64(lane.Dimension)
	return r
}

// list returns the lanes in the order of a submission.
func (l *lanes) list() aggregation.Lanes {
	var all aggregation.Lanes
	if l.noisy != nil {
		all = append(all, l.noisy.Encoder)
	} else {
		all = append(all, *l.plain)
	}
	for _, s := range []*aggregation.Signs{l.signs, l.votes} {
		if s != nil {
			all = append(all, *s)
		}
	}
	if l.control != nil {
		all = append(all, *l.control)
	}
	return all
}

func (l *lanes) layout() (masking.Layout, error) { return l.list().Layout() }

// encode makes a submission.
func (l *lanes) encode(round int, m message) ([][]uint64, error) {
	var parts [][][]uint64
	add := func(part [][]uint64, err error) error {
		parts = append(parts, part)
		return err
	}
	var err error
	if l.noisy != nil {
		err = add(l.noisy.encode(round, m.update))
	} else {
		err = add(l.plain.Encode(m.update))
	}
	if l.signs != nil && err == nil {
		err = l.addCounts(add, l.signs, m.signed)
	}
	if l.votes != nil && err == nil {
		err = l.addCounts(add, l.votes, m.voted)
	}
	if l.control != nil && err == nil {
		err = add(l.control.Encode(m.control))
	}
	if err != nil {
		return nil, err
	}
	return l.list().Join(parts...)
}

// addCounts encodes signs with the party's share of the noise.
func (l *lanes) addCounts(add func([][]uint64, error) error, lane *aggregation.Signs, vector []float64) error {
	if l.counts == nil {
		return add(lane.Encode(vector, nil))
	}
	share := make([]int64, lane.Dimension)
	defer clear(share)
	if err := l.counts.NewSampler(nil).Fill(share); err != nil {
		return err
	}
	return add(lane.Encode(vector, share))
}

// blank makes the submission of zeros, which are themselves in any encoding: the
// party's share of the noise and nothing else.
func (l *lanes) blank() ([][]uint64, error) {
	layout, err := l.layout()
	if err != nil {
		return nil, err
	}
	tables := []*noise.Table{l.noisy.table, l.counts}
	values := make([][]uint64, len(layout))
	for s, segment := range layout {
		share := make([]int64, segment.Length)
		if err := tables[s].NewSampler(nil).Fill(share); err != nil {
			return nil, err
		}
		values[s] = make([]uint64, len(share))
		for j, x := range share {
			values[s][j] = uint64(x)
		}
		clear(share)
	}
	return values, nil
}

// decode returns what a sum says, as means over the given number of parties.
func (l *lanes) decode(round int, sum [][]uint64, parties int) (m total, err error) {
	parts, err := l.list().Split(sum)
	if err != nil {
		return m, err
	}
	next := func() [][]uint64 {
		part := parts[0]
		parts = parts[1:]
		return part
	}
	if l.noisy != nil {
		m.update, err = l.noisy.encoder(round).Decode(next(), parties)
	} else {
		m.update, err = l.plain.Decode(next(), parties)
	}
	if l.signs != nil && err == nil {
		m.signs, err = l.signs.Decode(next(), parties)
	}
	if l.votes != nil && err == nil {
		m.votes, err = l.votes.Decode(next(), parties)
	}
	if l.control != nil && err == nil {
		m.control, err = l.control.Decode(next(), parties)
	}
	m.parties = parties
	return m, err
}
