package simulation

import (
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/continuous"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
)

// codec is how the vectors of some parties become submissions and a sum their mean, as their job is
// settled.
type codec struct {
	run       *timed
	settled   *job.Settled
	layout    masking.Layout
	mechanism *privacy.Mechanism // nil without noise, and with a reference law
	parties   []*party
}

// law is a continuous law of noise.
type law interface {
	Sample(src rand.Source) (float64, error)
	Variance() float64
}

// newCodec settles the job for the sums of some parties, of a roster whose others are not there.
func (r *timed) newCodec(parties []*party, files job.Files) (*codec, error) {
	s := r.course.settled
	if files.Roster != s.Roster() || len(parties) != r.atFirst() && !r.Oneshot() {
		files.Present = len(parties)
		var err error
		if s, err = r.own(files.Roster.Len()).Settle(files); err != nil {
			return nil, err
		}
	}
	c := &codec{run: r, settled: s, layout: s.Layout(), mechanism: s.Mechanism(), parties: parties}
	r.layout = c.layout
	return c, nil
}

// newOpenCodec is newCodec of parties that need no keys of their own.
func (r *timed) newOpenCodec(parties []*party) (*codec, error) {
	if roster := r.course.settled.Roster(); roster.Len() == len(parties) {
		return r.newCodec(parties, job.Files{Roster: roster})
	}
	roster, err := job.Nobody(len(parties))
	if err != nil {
		return nil, err
	}
	return r.newCodec(parties, job.Files{Roster: roster})
}

// own returns the job of some of its parties, which have a server, or a sum, of their own.
func (w *federation) own(parties int) *job.Job {
	j := w.declared.Clone()
	j.Parties.Count, j.Parties.Group = parties, nil
	j.World, j.Time = job.World{}, job.Time{StepTime: j.Time.StepTime}
	if j.Noisy() && j.Oneshot() && !j.Sum.Bounded && j.Privacy.Bits == 0 {
		j.Privacy.Bits = OneshotBits(parties)
	}
	return j
}

// use notes that a sum is taken by a codec: what that promises is told at the end.
func (r *timed) use(c *codec) {
	if !slices.Contains(r.codecs, c) {
		r.codecs = append(r.codecs, c)
	}
}

// honest is the fewest shares of noise in a sum that protect a party: those that the session
// promises, or by a reference law its own, and those of the others who are there for certain and do
// not collude.
func (c *codec) honest() int {
	if c.mechanism != nil {
		return c.mechanism.Promise().Honest()
	}
	return max(1, c.settled.MinSurvivors()-c.settled.Colluders())
}

// least adds up the variance that a party adds to a sum and the smallest of the others', of as many
// as are there for certain: the parties that drop out or collude are taken to add the most.
func (c *codec) least(variances []float64, party int) float64 {
	rest := slices.Delete(slices.Clone(variances), party, party+1)
	slices.Sort(rest)
	sum := variances[party]
	for _, v := range rest[:c.honest()-1] {
		sum += v
	}
	return sum
}

// certified returns the ε against the server that all rounds give each party.
func (c *codec) certified() (accounting.Claim, error) {
	return c.settled.Round().Spent(accounting.ServerView, c.settled.Submissions(),
		c.run.Privacy.Delta)
}

// encode makes a party's submission of a round with a broadcast.
func (c *codec) encode(
	p *party, u job.Update[float64], broadcast [32]byte, random io.Reader,
) ([][]uint64, error) {
	u.Trained = true
	if c.run.reference() {
		u.Vector = slices.Clone(u.Vector)
		src, noise := c.run.source("noise", p.index), c.run.referenceLaw(p, len(c.parties))
		for k := range u.Vector {
			x, err := noise.Sample(src)
			if err != nil {
				return nil, err
			}
			u.Vector[k] += x
		}
	}
	return c.settled.Encode(broadcast, u, random)
}

// ownNoise returns what a party has added to its vector: noise, and the little that rounding
// did.
func (c *codec) ownNoise(made *submission) ([]float64, error) {
	values := make([][]uint64, len(made.values))
	for s := range values {
		values[s] = slices.Clone(made.values[s])
	}
	said, err := c.settled.Decode(made.broadcast, values, 1)
	if err != nil {
		return nil, err
	}
	vector := made.work.Message.Vector
	if c.mechanism != nil {
		if vector, _, err = aggregation.Clip(vector, c.run.Privacy.Clip); err != nil {
			return nil, err
		}
	}
	for k := range said.Mean {
		said.Mean[k] -= vector[k]
	}
	return said.Mean, nil
}

// sensitivity returns what the papers state for a party's own weights, 2/(rows·α) for as many
// rows as it has so far; in the mean of n parties it is an n-th of that.
func (r *timed) sensitivity(p *party) float64 {
	return 2 / (float64(r.rowsNow(p)) * r.World.Reference.Alpha)
}

// referenceLaw is a party's noise by a law of the papers, in its own vector.
func (r *timed) referenceLaw(p *party, n int) law {
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
func (c *codec) counterpart(i int) (accounting.Claim, error) {
	r, n, sensitivity := c.run, len(c.parties), c.run.sensitivity(c.parties[i])
	variances := make([]float64, n)
	for k, p := range c.parties {
		variances[k] = r.referenceLaw(p, n).Variance()
	}
	release := privacy.Release{
		Promise: privacy.Assumed(n, n),
		Noise: privacy.Noise{
			Family:     accounting.FamilyDiscreteLaplace,
			Clip:       sensitivity,
			Multiplier: math.Sqrt(c.least(variances, i)) / sensitivity,
		},
		Dimension: c.settled.Length(),
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
		return accounting.Claim{}, r.MistakeOf(err)
	}
	// The law itself, from which nobody draws: how far a table is from it does not count.
	round.TableDistance, round.Samples = 0, 0
	return round.Spent(accounting.ServerView, r.Rounds, r.Privacy.Delta)
}
