package job

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"math/bits"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
)

// Protocol names the protocol that takes the sums of a [Plan].
type Protocol string

// The protocols. The zero value is Pairwise.
const (
	// Pairwise is package protocol: sessions, in which parties stay for four messages a
	// round.
	Pairwise Protocol = "pairwise"
	// Oneshot is package oneshot: a party sends one message a round, and a committee of
	// members helps.
	Oneshot Protocol = "oneshot"
)

// UnmarshalText refuses names that are not of a protocol.
func (p *Protocol) UnmarshalText(text []byte) error {
	switch q := Protocol(text); q {
	case "", Pairwise, Oneshot:
		*p = q
		return nil
	default:
		return fmt.Errorf("%w: %.40q is not a protocol, want pairwise or oneshot", ErrConfig, text)
	}
}

// faults is how many members of a job with defaults may lie or be silent.
func (j *Job) faults() int { return cmp.Or(j.Sum.Faults, max(1, (j.Sum.Members-1)/4)) }

// noisyMembers reports whether the committee adds the noise.
func (j *Job) noisyMembers() bool { return j.Noisy() && j.Privacy.NoiseBy == "committee" }

// Adders returns who adds the noise of a job with defaults instead of the parties; nil: nobody.
func (j *Job) Adders() *privacy.Committee {
	if !j.noisyMembers() {
		return nil
	}
	return &privacy.Committee{Members: j.Sum.Members, Faults: j.faults()}
}

// Terms returns the terms of the sums of a job with defaults whose parties are counted, by the
// layout of a submission and its noise, nil: none.
func (j *Job) Terms(layout masking.Layout, m *privacy.Mechanism) oneshot.Terms {
	t := oneshot.Terms{
		MinSurvivors: j.Parties.Fewest(j.Parties.Count),
		Colluders:    j.Parties.Colluders,
		Faults:       j.faults(),
		Covered:      j.Sum.Covered,
		Stale:        j.Sum.Stale,
	}
	if j.Sum.Classical {
		t.KEM = oneshot.KEMX25519
	}
	for _, segment := range layout {
		t.Length += segment.Length
		// Of one party: the ring has room for the sum of all.
		t.Bits = max(t.Bits, segment.Bits-bits.Len(uint(j.Parties.Count))+2)
	}
	if m == nil {
		return t
	}
	t.Noise, t.CommitteeNoise = m.Vector.Shares.Law, j.noisyMembers()
	// No coordinate is longer than the vector.
	t.Bits = bits.Len64(uint64(math.Ceil(m.Vector.Sensitivity.L2))) + 1
	if j.Sum.Bounded {
		norm := m.Vector.Sensitivity.L2
		if m.Signs != nil {
			norm = math.Hypot(norm, m.Signs.Sensitivity.L2)
		}
		t.Norm = int64(math.Ceil(norm * (1 + 0x1p-50)))
	}
	return t
}

// validateOneshot checks what is only for Oneshot, or not for it.
func (p *Plan) validateOneshot(bad func(field, advice, format string, a ...any) error) error {
	one := p.Protocol == Oneshot
	switch {
	case p.Protocol != "" && !one:
		return bad("Protocol", "use pairwise or oneshot", "there is no %.40q", string(p.Protocol))
	case !one && p.Faults != 0:
		return bad("Faults", "leave it out, or use Oneshot", "pairwise sums have no committee")
	case !one && p.Covered:
		return bad("Covered", "leave it out, or use Oneshot", "pairwise sums have no committee")
	case p.Faults < 0:
		return bad("Faults", "use 0 or more", "%d is not a number of members", p.Faults)
	case one && p.Noise != 0 && p.Noise != accounting.FamilyDiscreteGaussian:
		return bad("Noise", "use discrete-gaussian", "%v noise does not hide the keys of Oneshot",
			p.Noise)
	case one && p.Adversary != 0:
		return bad("Adversary", "leave it out, and see Covered", "Oneshot assumes a server that cheats")
	}
	return nil
}

// SettleOneshot works out a plan whose Protocol is [Oneshot], with its committee. It fails
// as [Plan.Settle] does, and with the errors of oneshot.Config in a [ConfigError].
func (p *Plan) SettleOneshot(roster, committee *keyexchange.Roster) (*Settled, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	switch {
	case p.Protocol != Oneshot:
		return nil, &ConfigError{Path: "Protocol", Reason: "pairwise sums have no committee",
			Advice: "call Settle"}
	case committee == nil:
		return nil, &ConfigError{Path: "committee", Reason: "there is none"}
	}
	s, err := p.settle(roster)
	if err != nil {
		return nil, err
	}
	bound, err := s.encoder.Sensitivity()
	if err != nil {
		return nil, &ConfigError{Path: "Clip", Reason: err.Error(), Err: err}
	}
	terms := oneshot.Terms{
		// No coordinate is longer than the vector.
		Bits:         bits.Len64(uint64(math.Ceil(bound.L2))) + 1,
		MinSurvivors: s.survivors,
		Colluders:    p.Colluders,
		Faults:       p.Faults,
		Covered:      p.Covered,
	}
	for _, segment := range s.layout {
		terms.Length += segment.Length
	}
	if terms.Faults == 0 {
		terms.Faults = max(1, (committee.Len()-1)/4)
	}
	if s.mechanism != nil {
		terms.Noise = s.mechanism.Vector.Shares.Law
	}
	if p.Classical {
		terms.KEM = oneshot.KEMX25519
	}
	members := committee.Digest()
	s.digest = sha256.Sum256(fmt.Appendf(nil, "hushsum/2 plan with a committee\n%x\n%x", s.digest,
		members))
	s.oneshot = &oneshot.Config{
		Label:     label(p.Name, s.digest),
		Roster:    roster,
		Committee: committee,
		Terms:     terms,
	}
	if _, err := s.oneshot.Parameters(); err != nil {
		return nil, &ConfigError{Path: "Protocol", Reason: err.Error(), Err: err}
	}
	return s, nil
}

// Oneshot returns the configuration of package oneshot, whose Parameters are the figures of
// a round; nil unless the plan has a committee. Values of a submission are those of Encode,
// with their signs.
func (s *Settled) Oneshot() *oneshot.Config {
	if s.oneshot == nil {
		return nil
	}
	out := *s.oneshot
	return &out
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
