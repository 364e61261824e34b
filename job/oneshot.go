package job

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
)

// faults is how many members of a job with defaults may lie or be silent.
func (j *Job) faults() int { return cmp.Or(j.Sum.Faults, defaultFaults(j.Sum.Members)) }

// inLeague is how many members of a job with defaults may pool what they know with the server.
func (j *Job) inLeague() int { return cmp.Or(j.Sum.Colluders, j.faults()) }

// defaultFaults is how many members of a committee may lie or be silent unless it is declared: a
// sixth, so that boxes of bad parties that do not open rarely cost a round.
func defaultFaults(members int) int { return max(1, members/6) }

// noisyMembers reports whether the committee adds the noise. Where norms are bounded it does unless
// the job says otherwise: the bound on a party's vector would have to leave room for its noise, and
// there a party that cheats puts what it likes.
func (j *Job) noisyMembers() bool {
	by := j.Privacy.NoiseBy
	if by == "" && j.Oneshot() && j.Sum.Bounded {
		by = "committee"
	}
	return j.Noisy() && by == "committee"
}

// Terms returns the terms of the sums of a job with defaults whose parties are counted, but for
// what is summed: see [Fill].
func (j *Job) Terms() oneshot.Terms {
	t := oneshot.Terms{
		CommitteeNoise: j.noisyMembers(),
		MinSurvivors:   j.fewest(j.Parties.Count),
		Colluders:      j.Parties.Colluders,
		Faults:         j.faults(),
		InLeague:       j.inLeague(),
		Disputes:       j.Sum.Disputes,
		Covered:        j.Sum.Covered,
		Stale:          j.Sum.Stale,
		Groups:         j.Sum.Groups,
	}
	if j.Sum.Classical {
		t.KEM = oneshot.KEMX25519
	}
	return t
}

// Fill completes the configuration of one-message sums by what is summed: the layout of a
// submission, and its noise, nil: none. If norms are bounded each party proves that its vector with
// its noise is no longer than honest ones. Fill fails with a [ConfigError] if the noise was settled
// for sums that promise other shares of it.
func Fill(c *oneshot.Config, layout masking.Layout, m *privacy.Mechanism, bounded bool) error {
	t := &c.Terms
	for _, segment := range layout {
		t.Length += segment.Length
		// Of one party: the ring has room for the sum of all.
		t.Bits = max(t.Bits, segment.Bits-bits.Len(uint(c.Roster.Len()))+2)
	}
	if m == nil {
		return nil
	}
	switch promise, err := privacy.OfOneshot(c); {
	case err != nil:
		return err
	case !m.Promise().Serves(promise):
		return &ConfigError{
			Path: "privacy",
			Reason: fmt.Sprintf("its noise counts %d shares in a sum, and these sums promise %d",
				m.Promise().Honest(), promise.Honest()),
			Advice: "settle the noise by what privacy.OfOneshot makes of their configuration",
		}
	}
	t.Noise = m.Vector.Shares.Law
	norm, err := unitNorm(m)
	if err != nil {
		return err
	}
	// No coordinate is longer than the vector.
	t.Bits = bits.Len64(uint64(math.Ceil(norm))) + 1
	if bounded {
		if m.Signs != nil {
			norm = math.Hypot(norm, m.Signs.Sensitivity.L2)
		}
		t.Norm = int64(math.Ceil(norm * (1 + 0x1p-50)))
	}
	return nil
}

// unitNorm is the norm of a vector that is submitted, in units and before a declared weight
// multiplies it.
func unitNorm(m *privacy.Mechanism) (float64, error) {
	s, err := m.Encoder.Sensitivity()
	return s.L2, err
}

// Oneshot returns the job's configuration for package oneshot, nil unless the job has a committee.
// Its Parameters are the figures of a round. Values of a submission are those of Encode, with their
// signs.
func (s *Settled) Oneshot() *oneshot.Config {
	if s.oneshot == nil {
		return nil
	}
	out := *s.oneshot
	return &out
}

// Robustness says in sentences what parties and members that lie can still do to a job with a bound
// on norms; nil without.
func (s *Settled) Robustness() []string {
	if s.oneshot == nil {
		return nil
	}
	if s.oneshot.Norm == 0 {
		return s.medians()
	}
	f, err := s.oneshot.Parameters()
	if err != nil {
		return nil // it was settled, so that there are some
	}
	n, faults := s.oneshot.Roster.Len(), s.oneshot.Faults
	text := fmt.Sprintf("With its noise a party that lies adds a vector of at most %.3g clips to a "+
		"sum, or is refused by name", f.Factor)
	if f.MemberAdds > 0 {
		text += fmt.Sprintf("; a member adds at most %.3g by noise that it chose, which goes in once in "+
			"16 tries: else it is named, or silent and left out of 16 rounds", f.MemberAdds)
	}
	return append(s.medians(), text+fmt.Sprintf(". While the server is honest and at most %s, no "+
		"number of parties that lie keeps the others' sum from coming out; those members keep "+
		"out %d honest parties at most. Nobody is named for messages that the committee cannot "+
		"open: it takes more than %d of the %d parties to lose a round by such.",
		count(faults, "member lies or is silent", "members lie or are silent"),
		faults*(f.Disputes+1), f.Spoilers, n))
}

// medians says what medians of groups hold off.
func (s *Settled) medians() []string {
	groups, n := s.oneshot.Groups, s.oneshot.Roster.Len()
	if groups == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Each round deals the %d parties to %d groups and takes the median "+
		"of their means: have four groups for each party that may cheat, so that these hold off %s. A "+
		"group with fewer than %d parties is left out, and a round needs %d groups.", n, groups,
		count(groups/4, "such party", "such parties"), s.oneshot.MinSurvivors, groups/2+1)}
}

// quantumBits is the exponent of 2 in the cost of ML-KEM-768 to a quantum computer, as its authors
// count it (core-SVP).
const quantumBits = 165

// sayMasks says where the masks of one-message sums hold off less than the keys do.
func sayMasks(c *oneshot.Config) []string {
	figures, err := c.Parameters()
	if err != nil || figures.CoreSVPQuantum >= quantumBits {
		return nil
	}
	return []string{fmt.Sprintf("Keys are hybrid, with ML-KEM-768; the masks, modulo a number of %d "+
		"bits, are weaker against a quantum computer: 2^%.0f instead of 2^%d.",
		figures.ModulusBits, figures.CoreSVPQuantum, quantumBits)}
}
