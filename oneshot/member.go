package oneshot

import (
	"crypto"
	"fmt"
	"io"
	"slices"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/shamir"
)

// A Member of the committee makes a key for each round, adds up the parts that parties seal to that
// key, and hands the sum of the parts to the server once enough members agree on the list of
// parties in the sum. It is not safe for concurrent use.
type Member struct {
	config *settled
	signer crypto.Signer
	random io.Reader
	self   int
	round  uint64 // the one that the last key was made for
	used   uint64 // the largest that was opened: none up to it is answered again
	open   *memberRound
	output []byte
}

// phase is where a member is in a round.
type phase uint8

const (
	phaseKeyed  phase = iota // its key is made
	phaseOpen                // the round is open
	phaseSigned              // it has signed who is in
	phaseLost                // it cannot answer
	phaseOpened              // it has opened covers
)

// memberRound holds what a member keeps of a round until it has answered.
type memberRound struct {
	phase   phase
	private *privateKey // nil once it is erased
	public  []byte
	context [32]byte

	// From the opening on:
	seeds   [][32]byte // of candidates, with their digests and
	digests []byte     // the keys to seal to, until the
	opening *opening   // coin: nil where no noise is drawn
	members wire.Set
	seen    wire.Set // the parties of all batches
	batches int      // that came
	pending []pendingPart
	waiting bool               // the last batch is not settled
	sum     shamir.PackedShare // of each group, one after the other
	covers  []byte             // shares of the covers of those in, in the chain's order
	kept    []keptPart         // their parts in the same order, where covers are opened before
	guilty  wire.Set           // of these dealers, those that evidence has convicted
	chain   [32]byte
	counts  []int // how many are in, in each group, members that dealt noise too
	groups  []int // of parties, nil if there is one
	noises  int   // how many members are in
}

// pendingPart holds what a member has of a party until its batch is settled.
type pendingPart struct {
	dealer    int
	good      bool
	part      shamir.PackedShare
	cover     []byte
	statement []byte
}

// NewMember makes the member of the committee to which identity belongs. Its keys come from
// random; nil means crypto/rand. It fails with [ErrConfig] or [ErrIdentity].
func NewMember(config *Config, identity crypto.Signer, random io.Reader) (*Member, error) {
	s, err := config.settle()
	if err != nil {
		return nil, err
	}
	if identity == nil {
		return nil, ErrIdentity
	}
	self, err := index(s.Committee, identity.Public())
	if err != nil {
		return nil, err
	}
	return &Member{config: s, signer: identity, random: random, self: self}, nil
}

// Index returns the member's place in the committee.
func (m *Member) Index() int { return m.self }

// Round returns the number of the round for which the member made its last key. It may go down
// until the round is opened.
func (m *Member) Round() uint64 { return m.round }

// Opened returns the number of the last round that was opened to the member, which answers neither
// that round nor an earlier round again.
func (m *Member) Opened() uint64 { return m.used }

// Output returns the member's last message, to be sent again after a crash; nil if there is none.
// The member forgets it when the next round begins.
func (m *Member) Output() []byte { return m.output }

// Abandon ends the round without an answer and erases its key and parts, as far as
// Go allows.
func (m *Member) Abandon() {
	m.output = nil
	m.erase()
}

func (m *Member) erase() {
	if m.open == nil {
		return
	}
	m.forget()
	clear(m.open.sum.Values)
	clear(m.open.covers)
	for i := range m.open.kept {
		clear(m.open.kept[i].values)
	}
	for i := range m.open.pending {
		m.open.pending[i].erase()
	}
	if m.open.private != nil {
		*m.open.private = privateKey{} // what ML-KEM made of the seed is left to the collector
	}
	m.open = nil
}

func (p *pendingPart) erase() {
	clear(p.part.Values)
	clear(p.cover)
}

// Receive takes one message of the server and returns the member's answer, nil if no answer is due.
// Save the member, then send. A message that is refused, with one of the package's errors, changes
// nothing.
func (m *Member) Receive(message []byte) ([]byte, error) {
	h, body, err := m.config.parse(message)
	if err != nil {
		return nil, err
	}
	if h.Sender != wire.ServerIndex {
		return nil, ErrSender
	}
	switch h.Type {
	case typeInvite:
		return m.receiveInvite(h, body)
	case typeOpening:
		return m.receiveOpening(h, body)
	}
	var receive func([]byte) ([]byte, error)
	var due phase
	switch h.Type {
	case typeCoin:
		receive, due = m.receiveCoin, phaseOpen
	case typeBatch:
		receive, due = m.receiveBatch, phaseOpen
	case typeSettled:
		receive, due = m.receiveSettled, phaseOpen
	case typeClosing:
		receive, due = m.receiveClosing, phaseOpen
	case typeCertificate:
		receive, due = m.receiveCertificate, phaseSigned
	case typeGuilty:
		receive, due = m.receiveGuilty, phaseOpened
	case typeReduction:
		receive, due = m.receiveReduction, phaseOpened
	default:
		return nil, fmt.Errorf("%w: %d", ErrType, h.Type)
	}
	switch {
	case m.open == nil || m.open.phase == phaseKeyed || h.Round != m.round:
		return nil, fmt.Errorf("%w: round %d is not open", ErrPhase, h.Round)
	case h.Session != m.open.context:
		return nil, ErrContext
	case m.open.phase == phaseLost:
		return nil, ErrLost
	case m.open.phase != due:
		return nil, fmt.Errorf("%w: message of type %d", ErrPhase, h.Type)
	}
	return receive(body)
}

// receiveInvite makes the key of a round, and erases what is left of another. An invitation uses
// up no number: anybody can write one, and a key that has not opened anything can be erased and
// replaced by another for its number (SPEC-ONESHOT.md §10.3).
func (m *Member) receiveInvite(h wire.Header, body []byte) ([]byte, error) {
	s := m.config
	switch {
	case h.Session != s.digest:
		return nil, ErrContext
	case h.Round <= m.used:
		return nil, fmt.Errorf("%w: round %d, and the last was %d", ErrReplay, h.Round, m.used)
	}
	if err := wire.Exactly(body, 0); err != nil {
		return nil, err
	}
	if m.open != nil && h.Round == m.round { // the answer was lost
		return m.output, nil
	}
	var seed [32]byte
	defer clear(seed[:])
	if err := entropy.Read("oneshot", m.random, seed[:]); err != nil {
		return nil, err
	}
	private, public, err := s.KEM.generate(&seed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRandom, err)
	}
	signature, err := keyexchange.Sign(m.signer, labels.OneshotKey,
		s.keyStatement(h.Round, m.self, public))
	if err != nil {
		return nil, err
	}
	m.erase()
	m.round = h.Round
	m.open = &memberRound{private: private, public: public}
	m.output = append(append(m.header(typeKey, &s.digest), public...), signature[:]...)
	return m.output, nil
}

// receiveOpening opens the round, and answers with noise if members deal it, or with candidates for
// it if there is a bound.
func (m *Member) receiveOpening(h wire.Header, body []byte) ([]byte, error) {
	s := m.config
	switch {
	case h.Session != s.digest:
		return nil, ErrContext
	case m.open == nil || h.Round != m.round:
		return nil, fmt.Errorf("%w: there is no key for round %d", ErrPhase, h.Round)
	case m.open.phase != phaseKeyed:
		return nil, ErrDuplicate
	}
	o, err := s.parseOpening(h.Round, body)
	if err != nil {
		return nil, err
	}
	if !o.members.Has(m.self) ||
		!slices.Equal(s.key(o.keys[place(o.members, m.self)]), m.open.public) {
		return nil, ErrOwnKey
	}
	r, context := m.open, s.context(h.Round, o)
	var output []byte
	switch {
	case s.audited():
		if r.seeds, r.digests, output, err = m.propose(&context); err != nil {
			return nil, err
		}
		r.opening = o
	case s.CommitteeNoise:
		random := noise.Expand(m.random)
		d := submitter{s, m.signer, random, s.n + m.self, s.dealt}
		dealt, err := d.submission(&context, o, h.Round, make([]int64, s.Length), random)
		if err != nil {
			return nil, err
		}
		output = dealt.append(m.header(typeSubmission, &context))
	}
	m.used = h.Round
	r.phase, r.context, r.members = phaseOpen, context, o.members
	r.seen = wire.NewSet(s.dealers())
	r.sum = shamir.PackedShare{Index: uint32(m.self) + 1,
		Values: make([][32]byte, s.groups()*s.Polynomials)}
	r.counts, r.groups = make([]int, s.groups()), s.groupsOf(&context)
	r.chain = r.context
	m.output = output
	return output, nil
}

// place returns how many members of the set come before k.
func place(set wire.Set, k int) int {
	n := 0
	for i := range set.All() {
		if i == k {
			break
		}
		n++
	}
	return n
}

// receiveBatch opens the boxes of a batch and answers with those that are bad.
func (m *Member) receiveBatch(body []byte) ([]byte, error) {
	s, r := m.config, m.open
	number, entries, err := s.parseBatch(body)
	switch {
	case err != nil:
		return nil, err
	case number <= r.batches:
		return nil, fmt.Errorf("%w: batch %d", ErrDuplicate, number)
	case r.waiting || number != r.batches+1:
		return nil, fmt.Errorf("%w: batch %d", ErrPhase, number)
	}
	for i := range entries {
		if party := entries[i].party; (party >= s.n) != (s.CommitteeNoise && number == 1) {
			return nil, fmt.Errorf("%w: noise of members is in the first batch, parties in the others",
				ErrEncoding)
		} else if r.seen.Has(party) {
			return nil, s.partyError(party, ErrDuplicate)
		}
	}
	disputes := wire.NewSet(len(entries))
	var opened []openedLeaf
	r.pending = make([]pendingPart, len(entries))
	for i := range entries {
		r.seen.Add(entries[i].party)
		var plain []byte
		if r.pending[i], plain = m.check(&entries[i]); plain != nil {
			opened = append(opened, openedLeaf{i, plain})
		} else if !r.pending[i].good {
			disputes.Add(i)
		}
	}
	m.forget() // no coin comes any more
	r.batches, r.waiting = number, true
	if len(opened) > 0 {
		c := complaint{number, disputes, opened}
		m.output = c.append(m.header(typeComplaint, &r.context))
		return m.output, nil
	}
	m.output = appendNumbered(m.header(typeDisputes, &r.context), number, disputes)
	return m.output, nil
}

// check opens a box and checks that its party signed what is in it.
//
// Privacy rests on this, and not only correctness: if members add parts that their parties did
// not sign, the server can have parties taken out of the sum until one is left.
//
// With a bound it returns what was in the box if that convicts the party. Nothing else that was
// in a box is ever shown: an honest party's parts fit what it signed.
func (m *Member) check(e *entry) (pendingPart, []byte) {
	s, r := m.config, m.open
	if s.checkExtra(e.extra, m.round) != nil {
		return pendingPart{}, nil
	}
	plain, err := open(r.private, boxInfo(&r.context, e.party, m.self), e.box)
	if err != nil || len(plain) != s.plainSize() {
		return pendingPart{}, nil
	}
	defer clear(plain)
	part := plain[:s.partPlainSize()]
	root := rootOf(leaf(&r.context, e.party, m.self, part), m.self, e.path[:s.depth])
	if s.reduces && rootOf(coverLeaf(&r.context, e.party, m.self, plain[len(part):]),
		s.coverPlace(m.self), e.path[s.depth:]) != root {
		return pendingPart{}, nil
	}
	signed := statement(&r.context, e.party, root, e.masked, e.extra,
		s.entryDigest(&r.context, e, m.self))
	if keyexchange.Verify(s.identity(e.party), s.statementLabel(e.party), signed,
		&e.signature) != nil {
		return pendingPart{}, nil
	}
	if s.scheme != nil &&
		!s.entryFits(&r.context, e, m.self, root, part) {
		return pendingPart{}, slices.Clone(part)
	}
	p := pendingPart{
		dealer:    e.party,
		good:      true,
		statement: signed,
		part:      shamir.PackedShare{Index: r.sum.Index},
	}
	for k := range s.Polynomials {
		v := [32]byte(plain[k*scalarSize:])
		if _, err := shamir.ParseSecret(v[:]); err != nil {
			return pendingPart{}, nil
		}
		p.part.Values = append(p.part.Values, v)
	}
	if s.Covered {
		p.cover = slices.Clone(plain[s.Polynomials*scalarSize:][:scalarSize])
		if s.reduces {
			p.cover = slices.Clone(plain[len(part):])
		}
		if _, err := shamir.ParseSecret(p.cover[:scalarSize]); err != nil {
			return pendingPart{}, nil
		}
	}
	return p, nil
}

// receiveSettled adds the parts of those that are in. Without a good part of one of
// them the member is of no more use in this round.
func (m *Member) receiveSettled(body []byte) ([]byte, error) {
	r := m.open
	number, in, err := parseNumbered(body, len(r.pending))
	switch {
	case err == nil && number < r.batches, err == nil && number == r.batches && !r.waiting:
		return nil, fmt.Errorf("%w: batch %d", ErrDuplicate, number)
	case !r.waiting || err == nil && number != r.batches:
		return nil, fmt.Errorf("%w: batch %d", ErrPhase, number)
	case err != nil:
		return nil, err
	}
	m.output = nil
	for i := range in.All() {
		if !r.pending[i].good {
			context := r.context
			m.erase()
			m.open = &memberRound{phase: phaseLost, context: context}
			return nil, nil
		}
	}
	for i := range in.All() {
		p := &r.pending[i]
		group := groupOf(r.groups, p.dealer)
		sum := r.sumOf(group, m.config.Polynomials)
		if m.config.reduces {
			r.kept = append(r.kept, keptPart{p.dealer, p.part.Values})
			p.part.Values = nil
		} else if err := sum.Add(&p.part); err != nil {
			panic("oneshot: " + err.Error()) // both were checked
		}
		r.covers = append(r.covers, p.cover...)
		r.chain = extend(&r.chain, p.statement)
		r.counts[group]++
		if m.config.CommitteeNoise && r.batches == 1 {
			r.noises++
		}
	}
	for i := range r.pending {
		r.pending[i].erase()
	}
	r.pending, r.waiting = nil, false
	return nil, nil
}

// sumOf returns the sum of a group, whose values are those of all sums.
func (r *memberRound) sumOf(group, polynomials int) *shamir.PackedShare {
	return &shamir.PackedShare{Index: r.sum.Index,
		Values: r.sum.Values[group*polynomials:][:polynomials]}
}

// Lost reports whether the member lacks a part of a party that is in the sum, so that
// it cannot answer in this round.
func (m *Member) Lost() bool { return m.open != nil && m.open.phase == phaseLost }

// receiveClosing signs who is in, once a round number.
func (m *Member) receiveClosing(body []byte) ([]byte, error) {
	s, r := m.config, m.open
	c, err := s.parseClosing(body)
	switch {
	case err != nil:
		return nil, err
	case r.waiting || c.batches > r.batches:
		return nil, fmt.Errorf("%w: batches are missing or not settled", ErrPhase)
	case c.batches != r.batches || !slices.Equal(c.parties, r.counts) || c.chain != r.chain:
		return nil, ErrStatement
	case r.noises < s.noises():
		return nil, fmt.Errorf("%w: noise of %d members, want %d", ErrTooFew, r.noises, s.noises())
	}
	if err := s.enough(r.counts, r.noises); err != nil {
		return nil, err
	}
	signature, err := keyexchange.Sign(m.signer, labels.OneshotClosing,
		closingStatement(&r.context, &r.chain, r.counts))
	if err != nil {
		return nil, err
	}
	r.phase = phaseSigned
	m.output = append(m.header(typeSigned, &r.context), signature[:]...)
	return m.output, nil
}

// receiveCertificate answers with the sum of parts, once, and erases it; or with values of covers,
// where these are opened before.
func (m *Member) receiveCertificate(body []byte) ([]byte, error) {
	s, r := m.config, m.open
	if err := s.checkCertificate(body, r.members,
		closingStatement(&r.context, &r.chain, r.counts)); err != nil {
		return nil, err
	}
	if s.reduces {
		return m.openCovers(), nil
	}
	return m.answer(r.covers), nil
}

// answer returns the sum of parts, with what is revealed next to it, and erases the round.
func (m *Member) answer(covers []byte) []byte {
	r := m.open
	out := m.header(typePart, &r.context)
	for _, g := range m.config.full(r.counts, r.noises) {
		for _, v := range r.sumOf(g, m.config.Polynomials).Values {
			out = append(out, v[:]...)
		}
	}
	out = append(out, covers...)
	m.erase()
	m.output = out
	return out
}

// checkCertificate checks that enough members signed the statement. Two such certificates of one
// round number have an honest signer in common, which signs only one.
func (s *settled) checkCertificate(body []byte, members wire.Set, statement []byte) error {
	certificate, err := wire.ParseCertificate(body, s.c)
	if err != nil {
		return err
	}
	for i := range certificate {
		one := &certificate[i]
		if !members.Has(one.Party) {
			return s.memberError(one.Party, ErrCertificate)
		}
		if keyexchange.Verify(s.Committee.Key(one.Party), labels.OneshotClosing, statement,
			&one.Signature) != nil {
			return s.memberError(one.Party, ErrCertificate)
		}
	}
	if len(certificate) < s.Quorum {
		return fmt.Errorf("%w: %d signatures, want %d", ErrCertificate, len(certificate), s.Quorum)
	}
	return nil
}

func (m *Member) header(kind wire.Type, session *[32]byte) []byte {
	return m.config.header(kind, session, m.round, memberSender+uint32(m.self))
}
