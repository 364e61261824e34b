package scenario

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/continuous"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
)

// mostShares is how many shares of noise the parties of a sum may add beyond one each.
const mostShares = 20_000

// codec is how the vectors of some parties become submissions and a sum their mean.
type codec struct {
	run       *run
	layout    masking.Layout
	mechanism *privacy.Mechanism // nil without noise, and with a reference law
	release   privacy.Release
	mean      aggregation.Mean // in place of the mechanism
	shares    []int            // of noise that each party adds
	parties   []*party
}

// law is a continuous law of noise.
type law interface {
	Sample(src rand.Source) (float64, error)
	Variance() float64
}

// newCodec settles how the vectors of a session are encoded, and how much noise is in
// them.
func (r *run) newCodec(parties []*party) (*codec, error) {
	c := &codec{run: r, parties: parties, shares: make([]int, len(parties))}
	if err := c.settle(); err != nil {
		return nil, err
	}
	r.layout = c.layout
	return c, nil
}

// use notes that a sum is taken by a codec: what that promises is told at the end.
func (r *run) use(c *codec) {
	if !slices.Contains(r.codecs, c) {
		r.codecs = append(r.codecs, c)
	}
}

func (c *codec) settle() error {
	r, d, n := c.run, c.run.model.NumParams(), len(c.parties)
	for i := range c.shares {
		c.shares[i] = 1
	}
	if !r.Noisy() {
		c.mean = aggregation.Mean{
			Parties:      n,
			Dimension:    d,
			Range:        r.Sum.Range,
			FractionBits: r.Sum.FractionBits,
		}
		var err error
		c.layout, err = c.mean.Layout()
		return err
	}
	var family accounting.Family
	if err := family.UnmarshalText([]byte(r.Privacy.Noise)); err != nil {
		return err
	}
	greatest := 0.
	for _, p := range c.parties {
		greatest = max(greatest, p.epsilon)
	}
	all := 0
	for i, p := range c.parties {
		// Whoever wants a smaller ε adds as much noise as all would if all wanted it.
		ratio := greatest / p.epsilon
		own := math.Ceil(ratio * ratio * (1 - 1e-9))
		if own > mostShares || all-n+int(own) > mostShares {
			return r.Mistake(r.epsilonPath(p.kind), "bring them nearer to each other",
				"budgets from %v to %v are too far apart", p.epsilon, greatest)
		}
		c.shares[i] = int(own)
		all += c.shares[i]
	}
	// A share is what it takes if all have the greatest budget.
	alike := privacy.Release{
		Contributors: privacy.Contributors{
			Parties:      n,
			MinSurvivors: r.Parties.Fewest(n),
			Colluders:    r.Parties.Colluders,
		},
		Noise:     privacy.Noise{Family: family, Clip: r.Privacy.Clip, Bits: r.Privacy.Bits},
		Dimension: d,
	}
	budget := privacy.Budget{Epsilon: greatest, Delta: r.Privacy.Delta}
	z, err := alike.Calibrate(budget, r.Rounds)
	if err != nil {
		return r.fromPrivacy(err)
	}
	honest, err := alike.Contributors.MinHonest()
	if err != nil {
		return r.fromPrivacy(err)
	}
	c.release = alike
	if all == n {
		c.release.Noise.Multiplier = z
	} else {
		total := c.honestShares(-1)
		c.release.Contributors = privacy.Contributors{Parties: all, MinSurvivors: total}
		c.release.Noise.Multiplier = z * math.Sqrt(float64(total)/float64(honest))
	}
	if c.mechanism, err = c.release.Mechanism(); err != nil {
		return r.fromPrivacy(err)
	}
	c.layout, err = c.mechanism.Layout()
	return err
}

// fromPrivacy names the job's field for that of package privacy.
func (w *world) fromPrivacy(err error) error {
	var e *privacy.ConfigError
	if !errors.As(err, &e) {
		return err
	}
	path := map[string]string{
		"Noise.Bits":                "privacy.bits",
		"Noise.Clip":                "privacy.clip",
		"Noise.Multiplier":          "privacy.epsilon",
		"Budget.Epsilon":            "privacy.epsilon",
		"Contributors.Colluders":    "parties.colluders",
		"Contributors.MinSurvivors": "parties.drop_out",
	}[e.Field]
	if path == "" {
		path = "privacy"
	}
	found := w.Mistake(path, e.Advice, "%s", e.Reason)
	found.Err = err
	return found
}

// honestShares is how many shares of noise protect a party (−1: whoever has the fewest)
// however few are in the sum, and whichever of the others collude.
func (c *codec) honestShares(party int) int { return max(1, honest(c, c.shares, party)) }

// honest adds up what all add to the noise in a sum, party (−1: nobody) for certain and of
// the others those that add the least: whoever drops out or colludes adds the most.
func honest[T int | float64](c *codec, noise []T, party int) (sum T) {
	rest := slices.Clone(noise)
	if party >= 0 {
		sum = noise[party]
		rest = slices.Delete(rest, party, party+1)
	}
	slices.Sort(rest)
	gone := len(noise) - c.run.Parties.Fewest(len(noise)) + c.run.Parties.Colluders
	for _, k := range rest[:max(0, len(rest)-gone)] {
		sum += k
	}
	return sum
}

// certified returns the ε against the server that all rounds give a party.
func (c *codec) certified(party int) (float64, error) {
	honest := c.honestShares(party)
	own := c.release
	if own.Contributors.Parties != len(c.shares) {
		was, err := own.Contributors.MinHonest()
		if err != nil {
			return 0, err
		}
		own.Contributors = privacy.Contributors{Parties: own.Contributors.Parties, MinSurvivors: honest}
		own.Noise.Multiplier *= math.Sqrt(float64(honest) / float64(was))
	}
	round, err := own.Round()
	if err != nil {
		return 0, c.run.fromPrivacy(err)
	}
	server, _, err := round.Views(c.run.Rounds, c.run.Privacy.Delta)
	return server.Upper, err
}

// rotation is one that no party knows before it has its rows.
func (c *codec) rotation() [32]byte {
	public := sha256.Sum256(fmt.Appendf(nil, "hushsum scenario rotation %d", c.run.seed))
	return privacy.Rotation(public, uint64(c.run.round))
}

// encode makes a party's submission.
func (c *codec) encode(i int, vector []float64, random io.Reader) ([][]uint64, error) {
	if c.mechanism == nil {
		if c.run.reference() {
			vector = slices.Clone(vector)
			src := c.run.source("noise", c.parties[i].index)
			noise := c.run.referenceLaw(c.parties[i], len(c.parties))
			for k := range vector {
				x, err := noise.Sample(src)
				if err != nil {
					return nil, err
				}
				vector[k] += x
			}
		}
		return c.mean.Encode(vector)
	}
	values, err := c.mechanism.Encode(c.rotation(), vector, nil, random)
	for range c.shares[i] - 1 {
		if err != nil {
			return nil, err
		}
		var more [][]uint64
		if more, err = c.mechanism.Blank(random); err == nil {
			for s := range values {
				for k := range values[s] {
					values[s][k] += more[s][k]
				}
			}
		}
	}
	c.cut(values)
	return values, err
}

// cut takes values modulo their rings.
func (c *codec) cut(values [][]uint64) {
	for s := range values {
		for k := range values[s] {
			values[s][k] &= ^uint64(0) >> (64 - c.layout[s].Bits)
		}
	}
}

// decode returns the mean of so many vectors.
func (c *codec) decode(sum [][]uint64, parties int) ([]float64, error) {
	if c.mechanism == nil {
		return c.mean.Decode(sum, parties)
	}
	mean, _, err := c.mechanism.Decode(c.rotation(), sum, parties)
	return mean, err
}

func copied(values [][]uint64) [][]uint64 {
	out := make([][]uint64, len(values))
	for s := range values {
		out[s] = slices.Clone(values[s])
	}
	return out
}

// ownNoise is what a party has added to its vector: noise, and the little that rounding
// did.
func (c *codec) ownNoise(vector []float64, values [][]uint64) ([]float64, error) {
	said, err := c.decode(copied(values), 1)
	if err != nil {
		return nil, err
	}
	if c.mechanism != nil {
		if vector, _, err = aggregation.Clip(vector, c.run.Privacy.Clip); err != nil {
			return nil, err
		}
	}
	for k := range said {
		said[k] -= vector[k]
	}
	return said, nil
}

// sensitivity is what the papers state for a party's own weights, 2/(rows·α) for as many
// rows as it has so far; in the mean of n parties it is an n-th of that.
func (r *run) sensitivity(p *party) float64 {
	rows := p.Rows
	if r.World.Data.Draw == drawGrowing {
		rows *= max(1, r.round)
	}
	return 2 / (float64(rows) * r.World.Reference.Alpha)
}

// referenceLaw is a party's noise by a law of the papers, in its own vector.
func (r *run) referenceLaw(p *party, n int) law {
	sensitivity := r.sensitivity(p)
	switch r.World.Reference.Law {
	case "continuous-laplace": // in the sum n of these make one Laplace variable
		return continuous.GammaDifference{Shape: 1 / float64(n), Scale: sensitivity / p.epsilon}
	case "continuous-gaussian":
		sigma := sensitivity * math.Sqrt(2*math.Log(1.25/r.Privacy.Delta)) / p.epsilon
		return continuous.Gaussian{Sigma: sigma / math.Sqrt(float64(n))}
	}
	return continuous.Staircase{
		Epsilon:     p.epsilon,
		Sensitivity: sensitivity,
		Gamma:       1 / (1 + math.Exp(p.epsilon/2)),
	}
}

// counterpart returns the ε that is certified for discrete Laplace noise as wide as what
// protects a party by a reference law, over all rounds and the whole vector, if the
// vectors are clipped to the sensitivity that the papers state. What protects it is its
// own noise and that of the others, each of which has its own budget and rows.
func (c *codec) counterpart(i int) (float64, error) {
	r, n, sensitivity := c.run, len(c.parties), c.run.sensitivity(c.parties[i])
	variances := make([]float64, n)
	for k, p := range c.parties {
		variances[k] = r.referenceLaw(p, n).Variance()
	}
	release := privacy.Release{
		Contributors: privacy.Contributors{Parties: n},
		Noise: privacy.Noise{
			Family:     accounting.FamilyDiscreteLaplace,
			Clip:       sensitivity,
			Multiplier: math.Sqrt(honest(c, variances, i)) / sensitivity,
		},
		Dimension: r.model.NumParams(),
	}
	var round accounting.Round
	var err error
	for bits := 44; bits >= 16; bits -= 4 { // the finest that can be sampled
		release.Noise.Bits = bits
		if round, err = release.Round(); err == nil {
			break
		}
	}
	if err != nil {
		return 0, r.fromPrivacy(err)
	}
	// The law itself, of which nobody draws: how far a table is from it does not count.
	round.TableDistance, round.Samples = 0, 0
	server, err := round.Spent(accounting.ServerView, r.Rounds, r.Privacy.Delta)
	return server.Upper, err
}
