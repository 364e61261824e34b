package protocol

import (
	"crypto/sha256"
	"fmt"
	"math/bits"
	"slices"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"

	"github.com/hushsum/hushsum/internal/graph"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// settled is a configuration that was found valid, cannot be changed any more,
// and has its defaults and its digest at hand.
type settled struct {
	Config
	parties    int // n, of the roster
	minMembers int
	maxSkip    uint64
	recovery   bool
	hybrid     bool
	byRound    bool // a schedule chooses who takes part
	sparse     bool // parties share secrets with some of the others only
	digest     [32]byte
	most       int // MaxMessage
	mostBeside int // of the messages that carry no vector
}

// terms are the numbers of a session or a round, which depend on how many parties it has.
type terms struct {
	scheduled    int // N, the parties of a round
	degree       int // h, the neighbours of each
	threshold    int // t
	quorum       int // q
	minSurvivors int // m
}

// spoilers is e, the most parties that may be at fault for blame to be sound.
func (c *settled) spoilers() int { return max(c.corruptHolders(), 1) }

// corruptHolders is how many of those that hold shares of one party's secrets may collude.
func (c *settled) corruptHolders() int {
	if c.sparse && c.Recovery.CorruptNeighbours > 0 {
		return c.Recovery.CorruptNeighbours
	}
	return c.Colluders
}

// settle checks a configuration and makes it immutable.
func (c *Config) settle() (*settled, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: there is none", ErrConfig)
	}
	fail := func(format string, args ...any) (*settled, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
	}
	if len(c.Label) > 255 {
		return fail("the label has %d bytes, at most 255 are allowed", len(c.Label))
	}
	if !utf8.ValidString(c.Label) {
		return fail("the label is not UTF-8")
	}
	if c.Roster == nil {
		return fail("there is no roster")
	}
	if err := c.Layout.Validate(); err != nil {
		return fail("%w", err)
	}
	s := &settled{
		Config:     *c,
		parties:    c.Roster.Len(),
		minMembers: c.MinMembers,
		maxSkip:    c.MaxSkip,
		hybrid:     !c.Classical,
	}
	s.Layout = slices.Clone(c.Layout)
	n := s.parties
	if s.minMembers == 0 {
		s.minMembers = n
	}
	if s.minMembers < 2 || s.minMembers > n {
		return fail("MinMembers is %d, want 2 to %d, or 0 for all", c.MinMembers, n)
	}
	if c.PerRound < 0 || c.PerRound == 1 || c.PerRound > n {
		return fail("PerRound is %d, want 2 to %d, or 0 for all", c.PerRound, n)
	}
	s.byRound = c.PerRound != 0 && c.PerRound < n
	if c.Recovery != nil {
		s.recovery = true
		recovery := *c.Recovery
		s.Recovery = &recovery
		if err := s.settleRecovery(); err != nil {
			return nil, err
		}
	}
	// Between the ends the conditions only ease or only tighten, but for the steps of
	// the defaults, which the neighbours of the ends show (SPEC.md §3.2).
	for _, size := range []int{s.minMembers, s.minMembers + 1, n - 1, n} {
		if size >= s.minMembers && size <= n {
			if _, err := s.termsOf(size); err != nil {
				return nil, err
			}
		}
	}
	if err := s.settleSkip(); err != nil {
		return nil, err
	}
	s.digest = s.computeDigest()
	s.most, s.mostBeside = s.maxMessage(s.Layout.PackedSize()), s.maxMessage(0)
	return s, nil
}

// leastSkip returns the least MaxSkip with a schedule, ⌈14·n/N⌉: the chance that a party is not
// drawn for that many rounds is (1 − N/n)^MaxSkip ≤ e^-14, less than one in a million.
func leastSkip(parties, perRound int) uint64 {
	return uint64((14*parties + perRound - 1) / perRound)
}

// settleSkip fills in and checks MaxSkip. A party that is not drawn for longer than that is out
// of the session for good: waiting for it would lift the bound on the work that one message can
// ask of a party.
func (c *settled) settleSkip() error {
	most := mostDerivations / uint64(c.peers())
	least := uint64(1)
	if c.byRound {
		least = leastSkip(c.parties, c.PerRound)
	}
	if c.maxSkip == 0 {
		c.maxSkip = min(max(defaultMaxSkip, least), most)
	}
	switch {
	case c.maxSkip > most:
		return fmt.Errorf("%w: MaxSkip is %d; with %d chains of keys a party could be asked for more "+
			"than %d steps, so at most %d", ErrConfig, c.MaxSkip, c.peers(), mostDerivations, most)
	case least > most:
		return fmt.Errorf("%w: with %d of %d parties a round, some are not drawn for more rounds than "+
			"MaxSkip may be, %d, and are out for good; set PerRound to at least %d", ErrConfig,
			c.PerRound, c.parties, most, (14*uint64(c.parties)+most-1)/most)
	case c.maxSkip < least:
		return fmt.Errorf("%w: MaxSkip is %d; with %d of %d parties a round, some are not drawn for "+
			"longer and are out for good; set it to at least %d, or to 0 for the default", ErrConfig,
			c.maxSkip, c.PerRound, c.parties, least)
	}
	return nil
}

// settleRecovery checks what does not depend on who comes.
func (c *settled) settleRecovery() error {
	r := c.Recovery
	if r.Adversary < CheatingServer || r.Adversary > CuriousServer {
		return fmt.Errorf("%w: there is no %v", ErrConfig, r.Adversary)
	}
	most, least := c.scheduledOf(c.parties)-1, c.scheduledOf(c.minMembers)-1
	if r.Degree < 0 || r.Degree > most {
		return fmt.Errorf("%w: no graph of %d parties has degree %d", ErrConfig, most+1, r.Degree)
	}
	c.sparse = r.Degree != 0 && r.Degree < most
	switch {
	case r.CorruptNeighbours != 0 && !c.sparse:
		return fmt.Errorf("%w: CorruptNeighbours is %d; leave it zero, since in a complete graph all "+
			"Colluders are neighbours", ErrConfig, r.CorruptNeighbours)
	case r.CorruptNeighbours < 0 || r.CorruptNeighbours > c.Colluders:
		return fmt.Errorf("%w: CorruptNeighbours is %d of %d Colluders", ErrConfig, r.CorruptNeighbours,
			c.Colluders)
	case !c.sparse:
		return nil
	}
	if r.Degree < 2 {
		return fmt.Errorf("%w: no graph of %d parties has degree %d", ErrConfig, most+1, r.Degree)
	}
	if r.Degree >= least {
		return fmt.Errorf("%w: Degree is %d; a graph that is sparse for all parties must be so for %d "+
			"of them too, with a degree below %d",
			ErrConfig, r.Degree, least+1, least)
	}
	if r.Adversary == CheatingServer {
		return fmt.Errorf("%w: a sparse graph does not withstand a cheating server; leave Degree zero "+
			"or name a weaker Adversary", ErrConfig)
	}
	return nil
}

// gathers reports whether rounds may be held among some of the members.
func (c *settled) gathers() bool { return c.recovery && !c.sparse && !c.byRound }

// has reports whether a session of this kind has messages of a type.
func (c *settled) has(t wire.Type) bool {
	switch t {
	case wire.TypeAnnounce, wire.TypeKeys, wire.TypeBegin, wire.TypeMasked:
		return true
	case wire.TypeEncapsulate, wire.TypeMembers:
		return c.hybrid
	}
	return c.recovery
}

// scheduledOf returns N in a session of the given size.
func (c *settled) scheduledOf(size int) int {
	if c.PerRound == 0 {
		return size
	}
	return min(c.PerRound, size)
}

// peers returns how many parties a party may share secrets with at most.
func (c *settled) peers() int {
	if c.sparse && !c.byRound {
		return c.Recovery.Degree
	}
	return c.parties - 1
}

// terms returns the numbers for a size from minMembers to the whole roster.
func (c *settled) terms(size int) terms {
	t, err := c.termsOf(size)
	if err != nil {
		panic("protocol: " + err.Error()) // settle has checked them
	}
	return t
}

// termsOf fills in the defaults for a size, and checks every condition (SPEC.md
// §3.2).
func (c *settled) termsOf(size int) (terms, error) {
	fail := func(format string, args ...any) (terms, error) {
		return terms{}, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
	}
	n := c.scheduledOf(size)
	t := terms{scheduled: n, degree: n - 1, minSurvivors: n}
	if c.Colluders < 0 || c.Colluders > n-2 {
		return fail("Colluders is %d, want 0 to %d with %d parties a round", c.Colluders, n-2, n)
	}
	if !c.recovery {
		return t, nil
	}
	r := c.Recovery
	adversary, corrupt := r.Adversary.graph(), c.corruptHolders()
	if c.sparse {
		t.degree = r.Degree
		if n%2 == 1 && t.degree%2 == 1 {
			return fail("no graph of %d parties has degree %d", n, t.degree)
		}
	}
	t.threshold = r.Threshold
	if t.threshold == 0 {
		var err error
		if t.threshold, err = graph.DefaultThreshold(adversary, t.degree, corrupt); err != nil {
			return fail("the default Threshold does not withstand %d colluders of %d: %w", corrupt,
				t.degree, err)
		}
	}
	if err := graph.CheckThreshold(adversary, t.threshold, t.degree, corrupt); err != nil {
		least := corrupt + 1
		if r.Adversary != CuriousServer {
			least = (t.degree+corrupt)/2 + 1
		}
		return fail("Threshold is %d; against a %v with %d colluders and %d holders of each secret it "+
			"takes %d to %d: %w",
			t.threshold, r.Adversary, corrupt, t.degree, least, t.degree, err)
	}
	t.quorum = t.threshold
	if r.Adversary != CuriousServer && !c.sparse {
		t.quorum = (n+c.Colluders)/2 + 1
	}
	// The holders of a survivor's shares are other survivors; since t > c, at
	// least two of them are honest.
	least := max(t.threshold+1, t.quorum)
	if least > n {
		return fail("%d parties a round cannot withstand %d colluders", n, c.Colluders)
	}
	t.minSurvivors = r.MinSurvivors
	if t.minSurvivors == 0 {
		t.minSurvivors = least
	}
	if t.minSurvivors < least || t.minSurvivors > n {
		return fail("MinSurvivors is %d, want %d to %d with %d parties a round", r.MinSurvivors, least, n,
			n)
	}
	return t, nil
}

// maxMessage is the length of the longest message (SPEC.md §12), for a packed vector of
// the given size.
func (c *settled) maxMessage(packed int) int {
	t := c.terms(c.parties)
	set, h, p := (c.parties+7)/8, t.degree, c.peers()
	keys := set + c.parties*wire.KeyEntrySize(c.hybrid)
	body := max(32+set+h*wire.SealedShareSize, t.scheduled*(4+keyexchange.SignatureSize), packed)
	if c.hybrid {
		keys += p * wire.EncapsulationKeySize
		path := bits.Len(uint(p - 1))
		body = max(body, wire.AnnounceSize(true),
			set+p*(wire.CiphertextSize+path*wire.NodeSize+keyexchange.SignatureSize))
	}
	if c.recovery {
		body = max(body, wire.MaskedSize(packed, h, h))
	}
	return wire.HeaderSize + max(body, keys)
}

// computeDigest is over every number that parties and server must agree on.
func (c *settled) computeDigest() [32]byte {
	b := cryptobyte.NewBuilder(nil)
	b.AddBytes([]byte(labels.Config))
	b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes([]byte(c.Label)) })
	b.AddUint64(c.Number)
	roster := c.Roster.Digest()
	b.AddBytes(roster[:])
	b.AddUint32(uint32(c.minMembers))
	b.AddUint32(uint32(c.Colluders))
	hybrid := uint8(0)
	if c.hybrid {
		hybrid = 1
	}
	b.AddUint8(hybrid)
	b.AddUint64(c.maxSkip)
	b.AddUint32(uint32(c.scheduledOf(c.parties)))
	b.AddBytes(c.Seed[:])
	b.AddUint32(uint32(len(c.Layout)))
	for _, s := range c.Layout {
		b.AddUint32(uint32(s.Length))
		b.AddUint8(uint8(s.Bits))
	}
	if r := c.Recovery; r != nil {
		b.AddUint8(1 + uint8(r.Adversary))
		// Threshold and MinSurvivors follow from the size if they are zero.
		for _, v := range []int{c.terms(c.parties).degree, r.Threshold, r.MinSurvivors} {
			b.AddUint32(uint32(v))
		}
		if r.CorruptNeighbours > 0 {
			b.AddUint32(uint32(r.CorruptNeighbours))
		}
	} else {
		b.AddUint8(0)
	}
	return sha256.Sum256(b.BytesOrPanic())
}
