package oneshot

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// complaint is the body of typeComplaint, which a member sends in place of typeDisputes if what
// some parties dealt to it does not fit what they signed:
//
//	struct {
//	    uint32 batch;
//	    opaque entries[⌈entries/8⌉];        // as in typeDisputes
//	    struct {
//	        uint32 place;                   // of an entry that is not among those
//	        opaque plain[part's plain size]; // what was in its box, but for values of the cover
//	    } opened[…];                        // by ascending place, at least one
//	} Complaint;
type complaint struct {
	number   int
	disputes wire.Set
	opened   []openedLeaf
}

// openedLeaf returns the values that the party of an entry dealt to a member.
type openedLeaf struct {
	place int
	plain []byte
}

// complaintSize is the length of the body of typeComplaint.
func (s *settled) complaintSize(entries, opened int) int {
	if s.scheme == nil {
		return 0
	}
	return 4 + (entries+7)/8 + opened*(4+s.partPlainSize())
}

func (c *complaint) append(b []byte) []byte {
	b = appendNumbered(b, c.number, c.disputes)
	for i := range c.opened {
		b = append(b, uint32Bytes(c.opened[i].place)...)
		b = append(b, c.opened[i].plain...)
	}
	return b
}

func (s *settled) parseComplaint(body []byte, entries int) (*complaint, error) {
	head := s.complaintSize(entries, 0)
	if len(body) < head {
		return nil, ErrTruncated
	}
	number, disputes, err := parseNumbered(body[:head], entries)
	if err != nil {
		return nil, err
	}
	c := &complaint{number: number, disputes: disputes}
	body = body[head:]
	size := 4 + s.partPlainSize()
	switch {
	case len(body) == 0 || len(body)%size != 0:
		return nil, fmt.Errorf("%w: a complaint of %d bytes, want a multiple of %d", ErrTruncated,
			len(body), size)
	case len(body)/size > entries:
		return nil, ErrOversized
	}
	last := -1
	for ; len(body) > 0; body = body[size:] {
		place, plain, err := parseNumber(body[:size])
		if err != nil {
			return nil, err
		}
		if place <= last || place >= entries || disputes.Has(place) {
			return nil, fmt.Errorf("%w: places of a complaint", ErrEncoding)
		}
		last = place
		c.opened = append(c.opened, openedLeaf{place, plain})
	}
	return c, nil
}

// claim shows that a party cheated, apart from the round that it did so in: its signature,
// with the proof that does not hold or the leaf that does not fit.
type claim struct {
	Party     int
	Member    int // whose leaf it is; −1: it is the proof
	Signature [keyexchange.SignatureSize]byte
	Extra     []byte
	Dealing   []byte

	Root   [32]byte // of a proof
	Packed []byte   // y
	Proof  []byte

	Masked [32]byte // of a leaf: digest of y,
	Digest [32]byte // of the proof,
	Path   [][32]byte
	Plain  []byte

	Opened []openedCover // Packed and Proof are under a cover, which these take off

	Drawn []byte // of noise: candidates, coin and seeds; Masked is dealt, and C_s, in Dealing
}

// convicts reports whether the party signed what a proof or a leaf shows to be false.
func (s *settled) convicts(context *[32]byte, c *claim) bool {
	if c.Drawn != nil {
		return s.convictsDrawn(context, c)
	}
	root, masked, digest := c.Root, c.Masked, c.Digest
	if c.Member < 0 {
		masked, digest = hash(labels.OneshotMasked, c.Packed), hash(labels.OneshotProofDigest, c.Proof)
	} else {
		root = rootOf(leaf(context, c.Party, c.Member, c.Plain), c.Member, c.Path)
	}
	if len(c.Opened) > 0 {
		var ok bool
		if root, ok = s.openedRoot(context, c); !ok {
			return false
		}
	}
	signed := statement(context, c.Party, root, masked, c.Extra,
		s.bindDigest(context, c.Party, c.Dealing, digest[:]))
	if keyexchange.Verify(s.identity(c.Party), s.statementLabel(c.Party), signed,
		&c.Signature) != nil {
		return false
	}
	if c.Member >= 0 {
		return !s.fits(context, c.Party, c.Member, root, masked, c.Extra, c.Dealing, c.Plain)
	}
	m := &submission{masked: c.Packed, extra: c.Extra, dealing: c.Dealing, proof: c.Proof}
	if len(c.Opened) > 0 {
		_, err := s.uncovers(context, c.Party, root, m, c.Opened, verify)
		return err != nil
	}
	return s.checkProof(context, c.Party, root, m, s.unpack(c.Packed), c.Proof, verify) != nil
}

// receiveComplaint takes a member's word on a batch with leaves that convict parties. If one does
// not, the member lies, as the server alone can see, and is out of the round.
func (s *Server) receiveComplaint(body []byte, member int) error {
	c, r := s.config, s.open
	if c.scheme == nil {
		return fmt.Errorf("%w: %d", ErrType, typeComplaint)
	}
	m, err := c.parseComplaint(body, len(r.flight))
	switch {
	case r.flight == nil || err == nil && m.number != r.number:
		return fmt.Errorf("%w: no such batch is with the members", ErrPhase)
	case err != nil:
		return err
	case r.excluded.Has(member):
		return ErrExcluded
	case r.disputes[member].Bytes() != nil:
		return ErrDuplicate
	}
	var claims []claim
	for _, one := range m.opened {
		sub := r.flight[one.place]
		parts, err := c.parseSubmission(sub.body, r.members.Len())
		if err != nil {
			panic("oneshot: " + err.Error()) // it was parsed before
		}
		made := claim{
			Party:     sub.party,
			Member:    member,
			Signature: parts.signature,
			Extra:     append([]byte(nil), parts.extra...),
			Dealing:   append([]byte(nil), parts.dealing...),
			Masked:    sub.masked,
			Digest:    hash(labels.OneshotProofDigest, parts.proof),
			Path:      path(sub.levels, member),
			Plain:     append([]byte(nil), one.plain...),
		}
		if !c.convicts(&r.context, &made) {
			r.excluded.Add(member)
			return ErrComplaint
		}
		if !r.claimed(sub.party) {
			s.doubtCheat(sub.party)
			claims = append(claims, made)
		}
	}
	r.disputes[member] = m.disputes
	r.claims = append(r.claims, claims...)
	return nil
}

// claimed reports whether a member's complaint has convicted a party.
func (r *serverRound) claimed(party int) bool {
	for i := range r.claims {
		if r.claims[i].Party == party {
			return true
		}
	}
	return false
}

// checkProof verifies the proof of a submission that is otherwise in order. It fails with an error
// that has evidence.
func (s *Server) checkProof(sub *submitted) error {
	c, r := s.config, s.open
	m, err := c.parseSubmission(sub.body, r.members.Len())
	if err != nil {
		panic("oneshot: " + err.Error()) // it was parsed before
	}
	root := sub.levels[c.depth][0]
	ahead, known := r.verdicts[sub.party]
	holds := ahead.holds
	if !known || ahead.statement != string(sub.statement) {
		holds = c.checkProof(&r.context, sub.party, root, m, c.unpack(m.masked), m.proof,
			quickly) == nil
	}
	delete(r.verdicts, sub.party)
	if holds {
		return nil
	}
	return s.convicted(&claim{
		Party:     sub.party,
		Member:    -1,
		Signature: m.signature,
		Extra:     m.extra,
		Dealing:   m.dealing,
		Root:      root,
		Packed:    m.masked,
		Proof:     m.proof,
	})
}

// convicted returns the error that names a dealer, with evidence.
func (s *Server) convicted(c *claim) error {
	evidence := &Evidence{
		config:  &s.config.Config,
		round:   s.round,
		opening: s.open.opening[wire.HeaderSize:],
		claim:   *c,
	}
	why := ErrProof
	if c.Drawn != nil {
		why = ErrAudit
	}
	err := s.config.partyError(c.Party, why)
	switch named := err.(type) {
	case *PartyError:
		named.Evidence = evidence
	case *MemberError:
		named.Evidence = evidence
	}
	return err
}

// convicting returns the evidence of an error, nil if it has none.
func convicting(err error) *Evidence {
	switch named := err.(type) {
	case *PartyError:
		return named.Evidence
	case *MemberError:
		return named.Evidence
	}
	return nil
}

// Convicted returns an error for each party that members' complaints, or covers that they opened,
// have convicted in the open round, and for each member convicted by the noise that it dealt: a
// [PartyError] or [MemberError] with [Evidence], in the order in which they were convicted.
func (s *Server) Convicted() []error {
	var out []error
	if s.open != nil {
		for i := range s.open.claims {
			out = append(out, s.convicted(&s.open.claims[i]))
		}
	}
	return out
}
