package oneshot

import (
	"bytes"
	"fmt"

	"golang.org/x/crypto/cryptobyte"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/shamir"
)

// This file has covered sums with a bound: SPEC-ONESHOT.md §16. A proof speaks of y and is under
// the cover with it, so that it can be checked once who is in is certified. Members open covers
// then, before they add up parts; dealers whose proof does not hold are out again, by evidence that
// each member checks.

// keptPart holds the share of the key that a dealer dealt to a member.
type keptPart struct {
	dealer int
	values [][32]byte
}

// openedCover is a member's value of a dealer's cover, with the path of its leaf.
type openedCover struct {
	Member int
	Plain  []byte
	Path   [][32]byte
}

// coverLeaf commits to a member's value of a cover and to its blind.
func coverLeaf(context *[32]byte, dealer, member int, plain []byte) [32]byte {
	return hash(labels.OneshotCoverLeaf, context[:], uint32Bytes(dealer), uint32Bytes(member), plain)
}

// leafPlaces is how many places of the tree leaves are in. Those of covers have the right half.
func (s *settled) leafPlaces() int {
	if s.reduces {
		return s.coverPlace(s.c)
	}
	return s.c
}

func (s *settled) coverPlace(member int) int { return 1<<(s.depth-1) + member }

// leavesSize is the length of leaves for members of the given number.
func (s *settled) leavesSize(members int) int {
	if s.reduces {
		return 2 * 32 * members
	}
	return 32 * members
}

// appendLeaves appends those of members that have keys, and then those of covers.
func (s *settled) appendLeaves(b []byte, leaves [][32]byte, members wire.Set) []byte {
	for k := range members.All() {
		b = append(b, leaves[k][:]...)
	}
	if s.reduces {
		for k := range members.All() {
			b = append(b, leaves[s.coverPlace(k)][:]...)
		}
	}
	return b
}

// parseLeaves reads what leavesSize counts.
func (s *settled) parseLeaves(b []byte, members wire.Set) [][32]byte {
	leaves := make([][32]byte, s.leafPlaces())
	for k := range members.All() {
		leaves[k], b = [32]byte(b), b[32:]
	}
	if s.reduces {
		for k := range members.All() {
			leaves[s.coverPlace(k)], b = [32]byte(b), b[32:]
		}
	}
	return leaves
}

// pathLength is how many hashes a member gets to check its leaves by.
func (s *settled) pathLength() int {
	if s.reduces {
		return 2 * s.depth
	}
	return s.depth
}

// paths returns those of a member's leaf, and of that of the cover if it has its own.
func (s *settled) paths(levels [][][32]byte, member int) [][32]byte {
	out := path(levels, member)
	if s.reduces {
		out = append(out, path(levels, s.coverPlace(member))...)
	}
	return out
}

// guiltySize is the length of the body of typeGuilty, with which evidence ends:
//
//	struct {
//	    uint32 dealer;
//	    opaque signature[64];
//	    opaque extra[…], dealing[…];        // as in Submission
//	    opaque masked[…], proof[…];         // under their cover, as in Submission
//	    struct {
//	        uint32 member;                  // ascending
//	        opaque value[32], blind[32];
//	        opaque path[…][32];
//	    } opened[f + 1];
//	} Guilty;
func (s *settled) guiltySize() int {
	return 4 + keyexchange.SignatureSize + s.extraSize() + s.dealingSize() + s.packed + s.proofSize() +
		(s.Figures.InLeague+1)*(4+coverPlainSize+32*s.depth)
}

// appendSigned appends what a claim begins with.
func (c *claim) appendSigned(b []byte) []byte {
	b = append(append(b, uint32Bytes(c.Party)...), c.Signature[:]...)
	return append(append(b, c.Extra...), c.Dealing...)
}

// parseSigned reads it.
func (s *settled) parseSigned(c *claim, r *reader) error {
	c.Party = int(r.uint32())
	copy(c.Signature[:], r.bytes(len(c.Signature)))
	c.Extra, c.Dealing = r.bytes(s.extraSize()), r.bytes(s.dealingSize())
	switch {
	case !r.ok:
		return ErrTruncated
	case c.Party < 0 || c.Party >= s.dealers():
		return fmt.Errorf("%w: of a dealer", ErrEncoding)
	}
	return nil
}

// appendOpened appends what a claim has after that, if it is by an opened cover.
func (c *claim) appendOpened(b []byte) []byte {
	b = append(append(b, c.Packed...), c.Proof...)
	for i := range c.Opened {
		one := &c.Opened[i]
		b = append(append(b, uint32Bytes(one.Member)...), one.Plain...)
		for j := range one.Path {
			b = append(b, one.Path[j][:]...)
		}
	}
	return b
}

// parseOpened reads it.
func (s *settled) parseOpened(c *claim, members wire.Set, r *reader) error {
	c.Member = -1
	c.Packed, c.Proof = r.bytes(s.packed), r.bytes(s.proofSize())
	last := -1
	for range s.Figures.InLeague + 1 {
		one := openedCover{Member: int(r.uint32()), Plain: r.bytes(coverPlainSize), Path: r.path(s.depth)}
		if !r.ok {
			return ErrTruncated
		}
		_, err := shamir.ParseSecret(one.Plain[:scalarSize])
		if one.Member <= last || one.Member >= s.c || !members.Has(one.Member) || err != nil {
			return fmt.Errorf("%w: of opened covers", ErrEncoding)
		}
		last = one.Member
		c.Opened = append(c.Opened, one)
	}
	return nil
}

// openedRoot returns the root that all opened leaves have, and false if they have not the same.
func (s *settled) openedRoot(context *[32]byte, c *claim) (root [32]byte, ok bool) {
	for i := range c.Opened {
		one := &c.Opened[i]
		of := rootOf(coverLeaf(context, c.Party, one.Member, one.Plain), s.coverPlace(one.Member),
			one.Path)
		if i > 0 && of != root {
			return root, false
		}
		root = of
	}
	return root, true
}

// uncovers returns packed y of a submission whose cover f + 1 members have opened. It fails if the
// dealer cheated: the values give no key that it has committed to, what they uncover is no vector
// with a proof, or the proof does not hold.
func (s *settled) uncovers(
	context *[32]byte, dealer int, root [32]byte, m *submission, opened []openedCover, by verifier,
) ([]byte, error) {
	shares := make([]shamir.Share, 0, len(opened))
	for i := range opened {
		shares = append(shares, shamir.Share{
			Index: uint32(opened[i].Member) + 1, Value: [32]byte(opened[i].Plain),
		})
	}
	key, err := shamir.Combine(s.Figures.InLeague+1, shares)
	if err != nil {
		return nil, err
	}
	if coverCommitment(context, dealer, &key) != [32]byte(m.extra) {
		return nil, ErrCover
	}
	stream := coverStream(&key)
	masked, proof := bytes.Clone(m.masked), bytes.Clone(m.proof)
	stream.XORKeyStream(masked, masked)
	stream.XORKeyStream(proof, proof)
	if err := s.ring.CheckPacked(masked, s.length); err != nil {
		return nil, err
	}
	return masked, s.checkProof(context, dealer, root, m, s.unpack(masked), proof, by)
}

// openCovers answers the certificate with the member's values of covers.
func (m *Member) openCovers() []byte {
	r := m.open
	r.phase, r.guilty = phaseOpened, wire.NewSet(m.config.dealers())
	m.output = append(m.header(typeCovers, &r.context), r.covers...)
	r.covers = nil
	return m.output
}

// receiveGuilty takes evidence on a dealer that is in. A member believes no server that somebody is
// to be left out: of an honest dealer there is no such evidence.
func (m *Member) receiveGuilty(body []byte) ([]byte, error) {
	s, r := m.config, m.open
	c, err := s.parseGuilty(body, r.members)
	if err != nil {
		return nil, err
	}
	in := false
	for i := range r.kept {
		in = in || r.kept[i].dealer == c.Party
	}
	switch {
	case !in:
		return nil, fmt.Errorf("%w: who is not in", ErrEvidence)
	case r.guilty.Has(c.Party):
		return nil, s.partyError(c.Party, ErrDuplicate)
	case !s.convicts(&r.context, c):
		return nil, ErrEvidence
	}
	r.guilty.Add(c.Party)
	return nil, nil
}

// parseGuilty reads the body of typeGuilty.
func (s *settled) parseGuilty(body []byte, members wire.Set) (*claim, error) {
	if err := wire.Exactly(body, s.guiltySize()); err != nil {
		return nil, err
	}
	c, r := &claim{}, reader{cryptobyte.String(body), true}
	if err := s.parseSigned(c, &r); err != nil {
		return nil, err
	}
	return c, s.parseOpened(c, members, &r)
}

// receiveReduction answers with the sum of parts of those that are in and not out again, once.
//
// It asks nobody who else was told of it. A dealer that is out here and in there makes answers
// differ by what it dealt itself, so that together they tell of honest parties what each alone
// does. It counts who is left, since more may be out than collude.
func (m *Member) receiveReduction(body []byte) ([]byte, error) {
	s, r := m.config, m.open
	out, err := wire.ParseSet(body, s.dealers())
	switch {
	case err != nil:
		return nil, err
	case !bytes.Equal(out.Bytes(), r.guilty.Bytes()):
		return nil, fmt.Errorf("%w: who is out is not who was convicted", ErrStatement)
	}
	left := wire.NewSet(s.dealers())
	for i := range r.kept {
		if dealer := r.kept[i].dealer; !out.Has(dealer) {
			left.Add(dealer)
		}
	}
	if err := s.checkLeft(left); err != nil {
		return nil, err
	}
	for i := range r.kept {
		one := &r.kept[i]
		part := shamir.PackedShare{Index: r.sum.Index, Values: one.values}
		if !left.Has(one.dealer) {
			continue
		}
		if err := r.sum.Add(&part); err != nil {
			panic("oneshot: " + err.Error()) // it was checked before
		}
	}
	return m.answer(nil), nil
}

// checkLeft refuses a sum of the dealers that are left of those that are certified, with fewer
// parties than the configuration promises, or noise that fewer members dealt than are honest.
func (s *settled) checkLeft(left wire.Set) error {
	if n := len(s.parties(left)); n < s.MinSurvivors {
		return fmt.Errorf("%w: %d parties are left, want %d", ErrTooFew, n, s.MinSurvivors)
	}
	want := s.c - 2*s.Faults
	if n := len(s.members(left)); s.CommitteeNoise && n < want {
		return fmt.Errorf("%w: noise of %d members is left, want %d", ErrTooFew, n, want)
	}
	return nil
}

// receiveCovers takes a member's values of covers.
func (s *Server) receiveCovers(body []byte, member int) error {
	r := s.open
	if err := wire.Exactly(body, r.parties*coverPlainSize); err != nil {
		return err
	}
	switch {
	case r.excluded.Has(member):
		return ErrExcluded
	case r.opened[member] != nil:
		return ErrDuplicate
	}
	for rest := body; len(rest) > 0; rest = rest[coverPlainSize:] {
		if _, err := shamir.ParseSecret(rest[:scalarSize]); err != nil {
			return fmt.Errorf("%w: %w", ErrEncoding, err)
		}
	}
	r.opened[member] = bytes.Clone(body)
	return nil
}

// judge adds y of a dealer that is in to the sum, or has it convicted.
func (s *Server) judge(dealer, place int, m *submission) error {
	c, r := s.config, s.open
	levels := tree(c.parseLeaves(m.leaves, r.members), c.depth)
	root := levels[c.depth][0]
	signed := statement(&r.context, dealer, root, r.covers[place].masked, m.extra,
		c.bind(&r.context, dealer, m))
	if hash(labels.OneshotChain, signed) != r.covers[place].stated {
		return c.partyError(dealer, ErrContext)
	}
	var opened []openedCover
	for k := range c.c {
		if r.opened[k] == nil || r.excluded.Has(k) || len(opened) > c.Figures.InLeague {
			continue
		}
		plain, at := r.opened[k][place*coverPlainSize:][:coverPlainSize], c.coverPlace(k)
		if coverLeaf(&r.context, dealer, k, plain) != levels[0][at] {
			r.excluded.Add(k) // it lies
			continue
		}
		opened = append(opened, openedCover{k, plain, path(levels, at)})
	}
	if len(opened) <= c.Figures.InLeague {
		return fmt.Errorf("%w: %d members have opened a cover, want %d", ErrTooFew, len(opened),
			c.Figures.InLeague+1)
	}
	masked, err := c.uncovers(&r.context, dealer, root, m, opened, quickly)
	if err != nil {
		made := claim{
			Party: dealer, Member: -1, Signature: m.signature, Extra: bytes.Clone(m.extra),
			Dealing: bytes.Clone(m.dealing), Packed: bytes.Clone(m.masked), Proof: bytes.Clone(m.proof),
			Opened: opened,
		}
		if keyexchange.Verify(c.identity(dealer), c.statementLabel(dealer), signed,
			&m.signature) != nil { // it was changed where submissions are kept
			return c.partyError(dealer, ErrContext)
		}
		s.doubtCheat(dealer)
		r.claims = append(r.claims, made)
	} else {
		r.addVector(c, m, 0, masked)
	}
	r.uncovered.Add(dealer)
	return nil
}

// Reduce returns the messages to all members, in the order in which they must be sent, that remove
// from the sum dealers whose covered submissions are not vectors within the bound: evidence on each
// such dealer, and a last message that ends the list. Each member answers the last message with its
// part. Call it, with Covered and Norm, after [Server.Uncover] of every dealer that is in the sum.
// Called again it returns the same messages.
//
// Before that it fails with [ErrPhase]. It fails with [ErrTooFew] if fewer than MinSurvivors
// parties are left, or noise of fewer than C − 2·Faults members: the round then has no sum.
func (s *Server) Reduce() ([][]byte, error) {
	c, r := s.config, s.open
	if !c.reduces || r == nil || r.step != stepCovers && r.step != stepParts ||
		r.uncovered.Len() < r.parties {
		return nil, fmt.Errorf("%w: not all covers are off", ErrPhase)
	}
	var messages [][]byte
	out, left := wire.NewSet(c.dealers()), wire.NewSet(c.dealers())
	for i := range r.claims {
		one := &r.claims[i]
		if len(one.Opened) == 0 {
			continue
		}
		out.Add(one.Party)
		message := c.header(typeGuilty, &r.context, s.round, wire.ServerIndex)
		messages = append(messages, one.appendOpened(one.appendSigned(message)))
	}
	for dealer := range r.included.All() {
		if !out.Has(dealer) {
			left.Add(dealer)
		}
	}
	if err := c.checkLeft(left); err != nil {
		return nil, err
	}
	r.included, s.included, r.step = left, left, stepParts
	reduction := c.header(typeReduction, &r.context, s.round, wire.ServerIndex)
	return append(messages, append(reduction, out.Bytes()...)), nil
}
