package oneshot

import (
	"crypto/ed25519"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/cryptobyte"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/ring"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/shamir"
)

// Config holds the terms that the parties, the members and the server agree on before the first
// round. Everything is signed and sealed under the digest of the Config: sides that disagree refuse
// each other with [ErrContext].
type Config struct {
	// Label names the deployment, at most 255 bytes. Round numbers go up within a configuration;
	// give every new start a label of its own.
	Label string
	// Roster lists the parties. It must not come from the server. If it has weights, the sum is that
	// of each party's values multiplied by its weight, and a party proves that it has used no larger
	// one: see [Terms.Norm].
	Roster *keyexchange.Roster
	// Committee lists the members. It must not come from the server, and the server and those who
	// collude with it may control at most InLeague members.
	Committee *keyexchange.Roster
	Terms
}

// Parameters returns the figures that follow from the configuration. It fails with [ErrConfig].
func (c *Config) Parameters() (Figures, error) {
	if s := latest.Load(); c != nil && s != nil && s.Config == *c {
		return s.Figures, nil
	}
	d, err := c.derive()
	if err != nil {
		return Figures{}, err
	}
	return d.Figures, nil
}

// derive returns what follows from the configuration.
func (c *Config) derive() (*derived, error) {
	switch {
	case c == nil || c.Roster == nil || c.Committee == nil:
		return nil, fmt.Errorf("%w: it has no roster or no committee", ErrConfig)
	case len(c.Label) > 255:
		return nil, fmt.Errorf("%w: a label of %d bytes, want at most 255", ErrConfig, len(c.Label))
	case c.Committee.Weight(0) > 0:
		return nil, fmt.Errorf("%w: members of a committee have no weights", ErrConfig)
	}
	d, err := weighed(c.Roster.Len(), c.Committee.Len(), &c.Terms, weightsOf(c.Roster))
	if err != nil {
		return nil, err
	}
	return d, c.bothRoles()
}

// bothRoles checks that members in league are counted as colluding parties, where they are parties.
func (c *Config) bothRoles() error {
	if c.Colluders >= c.inLeague() {
		return nil
	}
	for k := range c.Committee.Len() {
		if _, both := c.Roster.Index(c.Committee.Key(k)); both {
			return fmt.Errorf("%w: %w: %s; %d members in league are then as many colluding parties, and "+
				"Colluders is %d", ErrConfig, ErrRoles, c.Committee.Name(k), c.inLeague(), c.Colluders)
		}
	}
	return nil
}

// weightsOf counts the parties of each weight, nil if they have none.
func weightsOf(roster *keyexchange.Roster) map[int]int {
	if roster.Weight(0) == 0 {
		return nil
	}
	weights := make(map[int]int)
	for i := range roster.Len() {
		weights[roster.Weight(i)]++
	}
	return weights
}

// Digest returns the digest of the configuration, with which sides can compare their configurations
// out of band. It fails with [ErrConfig].
func (c *Config) Digest() ([32]byte, error) {
	s, err := c.settle()
	if err != nil {
		return [32]byte{}, err
	}
	return s.digest, nil
}

// MaxMessage returns the length of the longest message in bytes, or 0 if the
// configuration is not valid. A transport should read no more than that.
func (c *Config) MaxMessage() int {
	s, err := c.settle()
	if err != nil {
		return 0
	}
	return s.most
}

// settled is a configuration that was found valid, with what follows from it.
type settled struct {
	Config
	derived
	digest  [32]byte
	n, c    int  // parties, members
	depth   int  // of the tree of leaves
	reduces bool // Covered with Norm: who is in is reduced once covers are open
	length  int  // coefficients of a submission: Length + Spare
	packed  int  // their bytes
	most    int
	ring    *ring.Ring
	packing shamir.Packing
	keys    *noise.Table // of the key's coefficients
	noise   *noise.Table // of a party's noise
	dealt   *noise.Table // of a member's, nil if members deal none
}

// latest is the configuration that was settled last, so that many parties in one
// process share its tables.
var latest atomic.Pointer[settled]

func (c *Config) settle() (*settled, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: there is none", ErrConfig)
	}
	if s := latest.Load(); s != nil && s.Config == *c {
		return s, nil
	}
	s, err := c.newSettled()
	if err != nil {
		return nil, err
	}
	latest.Store(s)
	return s, nil
}

func (c *Config) newSettled() (*settled, error) {
	d, err := c.derive()
	if err != nil {
		return nil, err
	}
	s := &settled{Config: *c, n: c.Roster.Len(), c: c.Committee.Len()}
	s.derived = *d
	s.reduces = s.Covered && s.scheme != nil
	s.depth = bits.Len(uint(s.c - 1))
	if s.reduces {
		s.depth++
	}
	s.length = s.Length + s.Spare
	s.packing = shamir.Packing{PerPolynomial: s.Figures.PerPolynomial, Privacy: s.Figures.InLeague}
	s.ring = ring.New(degree, s.Modulus)
	s.packed = s.ring.PackedSize(s.length)
	if s.keys, err = noise.NewTable(keyLaw()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if s.noise, err = noise.NewTable(s.share); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if s.CommitteeNoise {
		if s.dealt, err = noise.NewTable(s.member); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	s.digest = s.computeDigest()
	s.most = wire.HeaderSize + max(s.submissionSize(s.c), s.openingSize(s.c), 4+maxBatch*s.entrySize(),
		s.partSize(s.groups(), s.dealers()), s.c*(4+64), s.complaintSize(maxBatch, maxBatch))
	if s.audited() {
		s.most = max(s.most, wire.HeaderSize+s.submissionSize(s.c)+auditTailSize)
	}
	if s.reduces {
		s.most = max(s.most, wire.HeaderSize+max(s.dealers()*coverPlainSize, s.guiltySize()))
	}
	return s, nil
}

// computeDigest is over every number that the sides must agree on.
func (s *settled) computeDigest() [32]byte {
	b := cryptobyte.NewBuilder(nil)
	b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes([]byte(s.Label)) })
	roster, committee := s.Roster.Digest(), s.Committee.Digest()
	b.AddBytes(roster[:])
	b.AddBytes(committee[:])
	for _, v := range []int{s.Length, s.Bits, s.MinSurvivors, s.Colluders, s.Faults,
		s.Figures.Disputes, s.Figures.PerPolynomial} {
		b.AddUint32(uint32(v))
	}
	b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) {
		if s.Noise.Family() != 0 {
			b.AddBytes([]byte(s.Noise.Scale().RatString()))
		}
	})
	covered := uint8(0)
	if s.Covered {
		covered = 1
	}
	b.AddUint8(covered)
	b.AddUint8(uint8(s.KEM))
	if s.Stale > 0 {
		b.AddUint32(uint32(s.Stale))
	}
	if s.scheme != nil {
		b.AddUint8(1)
		b.AddUint64(s.bound)
		b.AddUint32(uint32(s.lanes))
	}
	if s.CommitteeNoise {
		b.AddUint8(2)
		if s.scheme != nil {
			b.AddUint64(s.memberBound)
			b.AddUint32(candidates)
		}
	}
	if t := s.Figures.InLeague; t != s.Faults {
		b.AddUint8(4)
		b.AddUint32(uint32(t))
	}
	if s.groups() > 1 {
		b.AddUint8(3)
		b.AddUint32(uint32(s.Groups))
	}
	return hash(labels.OneshotConfig, b.BytesOrPanic())
}

// index returns the place of a signer's key in a list.
func index(list *keyexchange.Roster, public any) (int, error) {
	key, ok := public.(ed25519.PublicKey)
	if !ok {
		return 0, fmt.Errorf("%w: it is not an Ed25519 key", ErrIdentity)
	}
	i, ok := list.Index(key)
	if !ok {
		return 0, ErrIdentity
	}
	return i, nil
}

// Times of one core by which Figures are reckoned: the shortest of some hundred on the
// machine of BENCHMARKS.md.
const (
	timePerSealHybrid = 74 * time.Microsecond
	timePerSealPlain  = 55 * time.Microsecond
	timePerOpenHybrid = 47 * time.Microsecond
	timePerOpenPlain  = 35 * time.Microsecond
	timePerVerify     = 49 * time.Microsecond
	timePerValue      = 18 * time.Nanosecond
)

// Of a proof: the least processor's time of 20 messages on a busy machine, less the plain ones'.
const (
	timePerProof      = 67 * time.Millisecond
	timePerProofValue = 680 * time.Nanosecond
)

// bytes fills in sizes and times.
func (d *derived) bytes(members int, t *Terms) {
	s := settled{
		Config:  Config{Terms: *t},
		derived: *d,
		c:       members,
		depth:   bits.Len(uint(members - 1)),
		reduces: t.Covered && t.Norm != 0,
	}
	if s.reduces {
		s.depth++
	}
	s.packed = ((t.Length+d.Spare)*d.ModulusBits + 7) / 8
	d.Up = wire.HeaderSize + s.submissionSize(members)
	d.Down = wire.HeaderSize + s.openingSize(members)
	d.MemberDown = s.entrySize()
	seal, open := timePerSealHybrid, timePerOpenHybrid
	if t.KEM == KEMX25519 {
		seal, open = timePerSealPlain, timePerOpenPlain
	}
	if s.reduces {
		d.MemberHeld = coverPlainSize + d.Polynomials*scalarSize
	} else if t.Covered {
		d.MemberHeld = scalarSize
	}
	d.PartyTime = time.Duration(members)*(seal+timePerVerify) +
		time.Duration(t.Length+d.Spare)*timePerValue
	if t.Norm != 0 {
		d.PartyTime += timePerProof + time.Duration(t.Length+d.Spare)*timePerProofValue
	}
	d.MemberTime = open + timePerVerify
}
