package oneshot

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/pedersen"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// An Envelope is a message of the server together with the member to which it is addressed.
type Envelope struct {
	To      int // committee index
	Message []byte
}

// DefaultBatch is how many parties go to the members at a time unless the server is configured
// otherwise.
const DefaultBatch = 64

// Server collects submissions and has the committee remove the key from their sum. It holds no
// long-term secret. It is not safe for concurrent use.
type Server struct {
	config   *settled
	batch    int
	round    uint64
	open     *serverRound
	included wire.Set // who was in the sum of the round when it was closed
	doubts   []uint64 // by member, until which round its noise is left out if others' is enough
}

// step names the message that the server waits for in a round.
type step uint8

const (
	stepKeys step = iota
	stepSubmissions
	stepSigned
	stepParts
	stepCovers // after stepSigned, where covers are opened before parts
)

// serverRound holds what the server keeps of the round that is open.
type serverRound struct {
	step    step
	keys    [][]byte // by member, nil where there is none
	opening []byte   // the message, from when it is made
	context [32]byte
	members wire.Set // who has a key

	candidates [][]byte // digests, by member, nil where there are none
	coin       []byte   // that draws from them, nil before

	verdicts map[int]verdict       // by dealer, of proofs that were checked ahead; it is not saved
	received wire.Set              // the parties that submitted
	waiting  []*submitted          // for a batch
	flight   []*submitted          // the batch that is with the members
	number   int                   // of that batch, or of the last
	disputes []wire.Set            // by member, of the batch in flight; empty where none came
	charges  []*big.Rat            // by member
	claims   []claim               // against parties that members' complaints convict
	excluded wire.Set              // members that disputed too much
	sum      []uint64              // of the y of those in, of each group one after the other
	keySums  []*edwards25519.Point // of their commitments to keys; nil without a bound
	chain    [32]byte
	included wire.Set
	parties  int     // how many are
	counts   []int   // and in each group
	groups   []int   // of parties, nil if there is one
	covers   []cover // in the chain's order; only if covered

	signatures wire.Certificate // by ascending member
	parts      [][]byte         // by member
	key        *unlocked        // once the parts were put together
	uncovered  wire.Set         // the dealers whose covered y are in the sum, or convict them
	opened     [][]byte         // values of covers, by member, where these are opened before parts
	order      []int32          // places in the chain by ascending dealer, once covers are taken off
}

// submitted is a submission on its way into the sum.
type submitted struct {
	party     int
	body      []byte   // of the message
	masked    [32]byte // digest of y
	statement []byte   // what the party signed
	levels    [][][32]byte
	points    *points // of P, made when first asked for; nil where members get P
}

// cover holds what the server keeps of a party in the sum until it is given its submission
// again.
type cover struct {
	party      uint32
	masked     [32]byte // digest of y
	commitment [32]byte
	stated     [32]byte // digest of its statement, if covers are opened before parts
}

// NewServer makes a server that sends batches of the given number of parties to the members, 1 to
// 1024; 0 means [DefaultBatch]. While a batch is with the members the server keeps up to the same
// number of further submissions. It fails with [ErrConfig].
func NewServer(config *Config, batch int) (*Server, error) {
	s, err := config.settle()
	if err != nil {
		return nil, err
	}
	if batch == 0 {
		batch = DefaultBatch
	}
	if batch < 1 || batch > maxBatch {
		return nil, fmt.Errorf("%w: batches of %d, want 1 to %d", ErrConfig, batch, maxBatch)
	}
	return &Server{config: s, batch: batch}, nil
}

// Round returns the number of the last round that was begun, 0 before the first.
func (s *Server) Round() uint64 { return s.round }

// Invite begins the next round and returns the message that asks all members for their keys. A
// round that is still open is given up.
func (s *Server) Invite() []byte {
	s.round++
	s.included = wire.Set{}
	c := s.config.c
	s.open = &serverRound{keys: make([][]byte, c), members: wire.NewSet(c)}
	return s.config.header(typeInvite, &s.config.digest, s.round, wire.ServerIndex)
}

// Skip counts all rounds up to a number as held, since members know of them; the number is not
// below [Server.Round]. [Server.Invite] then asks for keys for the next round. Skip gives up an
// open round.
func (s *Server) Skip(to uint64) {
	if to >= s.round {
		s.round, s.open, s.included = to, nil, wire.Set{}
	}
}

// Receive takes one message of a party or a member. A message that is refused, with
// one of the package's errors, changes nothing; the error is a [PartyError] or a
// [MemberError] where the sender is known.
func (s *Server) Receive(message []byte) error {
	h, body, err := s.config.parse(message)
	if err != nil {
		return err
	}
	party, ok := s.config.dealer(h.Sender)
	if ok && (h.Sender < memberSender || h.Type == typeSubmission) {
		if h.Type != typeSubmission {
			return s.config.partyError(party, fmt.Errorf("%w: %d", ErrType, h.Type))
		}
		if err := s.receiveSubmission(h, body, party); err != nil {
			if convicting(err) != nil { // it is named, with evidence
				s.doubtCheat(party)
				return err
			}
			return s.config.partyError(party, err)
		}
		return nil
	}
	if h.Sender < memberSender || h.Sender-memberSender >= uint32(s.config.c) {
		return fmt.Errorf("%w: %d", ErrSender, h.Sender)
	}
	member := int(h.Sender - memberSender)
	if err := s.receiveMember(h, body, member); err != nil {
		return s.config.memberError(member, err)
	}
	return nil
}

func (s *Server) receiveMember(h wire.Header, body []byte, member int) error {
	var receive func([]byte, int) error
	var due step
	switch h.Type {
	case typeKey:
		receive, due = s.receiveKey, stepKeys
	case typeCandidates:
		receive, due = s.receiveCandidates, stepSubmissions
	case typeDisputes:
		receive, due = s.receiveDisputes, stepSubmissions
	case typeComplaint:
		receive, due = s.receiveComplaint, stepSubmissions
	case typeSigned:
		receive, due = s.receiveSigned, stepSigned
	case typePart:
		receive, due = s.receivePart, stepParts
	case typeCovers:
		receive, due = s.receiveCovers, stepCovers
	default:
		return fmt.Errorf("%w: %d", ErrType, h.Type)
	}
	session := &s.config.digest
	if h.Type != typeKey && s.open != nil {
		session = &s.open.context
	}
	if err := s.checkRound(h, session, due); err != nil {
		return err
	}
	if h.Type != typeKey && !s.open.members.Has(member) {
		return fmt.Errorf("%w: it has no key in round %d", ErrSender, s.round)
	}
	return receive(body, member)
}

// checkRound refuses a message that is not for the open round, or not due in it.
func (s *Server) checkRound(h wire.Header, session *[32]byte, due step) error {
	switch {
	case s.open == nil || h.Round != s.round:
		return fmt.Errorf("%w: round %d is not open", ErrPhase, h.Round)
	case s.open.step != due:
		return fmt.Errorf("%w: message of type %d", ErrPhase, h.Type)
	case h.Session != *session:
		return ErrContext
	}
	return nil
}

// receiveKey takes a member's key. It is tried, since a key that cannot be sealed to
// would stop every party.
func (s *Server) receiveKey(body []byte, member int) error {
	if err := wire.Exactly(body, s.config.keyBodySize()); err != nil {
		return err
	}
	if s.open.keys[member] != nil {
		return ErrDuplicate
	}
	if err := s.config.checkKey(s.round, member, body); err != nil {
		return err
	}
	key, err := s.config.KEM.parseKey(s.config.key(body))
	if err != nil {
		return err
	}
	if _, err := seal(key, nil, nil); err != nil {
		return err
	}
	s.open.keys[member] = bytes.Clone(body)
	return nil
}

// Awaits reports whether a message of a member is due: its key, its answer to the batch that is
// with the members, its signature or its part.
func (s *Server) Awaits(member int) bool {
	r := s.open
	switch {
	case r == nil:
		return false
	case r.step == stepKeys:
		return r.keys[member] == nil
	case !r.members.Has(member) || r.excluded.Has(member):
		return false
	case r.step == stepSubmissions:
		return r.flight != nil && r.disputes[member].Bytes() == nil || s.awaitsNoise(member)
	case r.step == stepSigned:
		_, found := r.signature(member)
		return !found
	case r.step == stepCovers:
		return r.opened[member] == nil
	}
	return r.parts[member] == nil
}

// awaitsNoise reports whether a member's noise is due, or its candidates are.
func (s *Server) awaitsNoise(member int) bool {
	c, r := s.config, s.open
	switch {
	case !c.CommitteeNoise || r.number > 0 || r.received.Has(c.n+member):
		return false
	case c.audited() && r.coin == nil:
		return r.candidates[member] == nil
	}
	return !c.audited() || r.candidates[member] != nil
}

// AwaitsParty reports whether a party may still submit in the open round.
func (s *Server) AwaitsParty(party int) bool {
	return s.open != nil && s.open.step == stepSubmissions && !s.open.received.Has(party)
}

// Settled returns how many parties are in the sum by the settled batches.
func (s *Server) Settled() int {
	if s.open == nil {
		return 0
	}
	return s.open.parties - len(s.config.members(s.open.included))
}

// Taken returns how many parties are in the sum by the settled batches, or may yet be by the
// submissions that have arrived.
func (s *Server) Taken() int {
	if s.open == nil {
		return 0
	}
	taken := s.Settled()
	for _, list := range [][]*submitted{s.open.flight, s.open.waiting} {
		for _, sub := range list {
			if sub.party < s.config.n {
				taken++
			}
		}
	}
	return taken
}

// NoiseTaken returns how many members have dealt noise in the open round, or have sent candidates
// for it while a coin is to be drawn.
func (s *Server) NoiseTaken() int {
	switch {
	case s.open == nil:
		return 0
	case s.config.audited() && s.open.coin == nil:
		return s.proposed()
	}
	return len(s.config.members(s.open.received))
}

// Received returns the parties that have submitted in the open round, in the sum or not, in
// ascending order.
func (s *Server) Received() []int {
	if s.open == nil {
		return nil
	}
	return s.config.parties(s.open.received)
}

// Members returns the members that have keys in the open round, nil before [Server.Open].
func (s *Server) Members() []int {
	if s.open == nil || s.open.step == stepKeys {
		return nil
	}
	return slices.Collect(s.open.members.All())
}

// Keys returns how many members have sent their keys.
func (s *Server) Keys() int {
	n := 0
	if s.open != nil {
		for _, key := range s.open.keys {
			if key != nil {
				n++
			}
		}
	}
	return n
}

// Open opens the round with the keys that have arrived and returns the message for all parties
// and members. The parties make their inputs from broadcast, such as a model; only its digest is
// in the message. Called again it returns the same message.
//
// It fails with [ErrTooFew] while fewer than [Figures.Keys] members have sent keys. Wait for all
// members as long as that makes sense, since a member without a key counts among the Faults. It
// fails with [ErrPhase] before [Server.Invite].
func (s *Server) Open(broadcast []byte) ([]byte, error) {
	return s.OpenDigest(broadcastDigest(broadcast))
}

// OpenDigest is [Server.Open] with the digest of the broadcast, by [NewBroadcastHash].
func (s *Server) OpenDigest(broadcast [32]byte) ([]byte, error) {
	switch {
	case s.open == nil:
		return nil, fmt.Errorf("%w: no round has begun", ErrPhase)
	case s.open.step > stepKeys:
		return s.open.opening, nil
	case s.Keys() < s.config.Keys:
		return nil, fmt.Errorf("%w: %d members have sent keys, want %d", ErrTooFew, s.Keys(),
			s.config.Keys)
	}
	r := s.open
	o := &opening{broadcast: broadcast, members: r.members}
	for k, key := range r.keys {
		if key != nil {
			r.members.Add(k)
			o.keys = append(o.keys, key)
		}
	}
	r.step = stepSubmissions
	r.verdicts = make(map[int]verdict)
	r.candidates = make([][]byte, s.config.c)
	r.context = s.config.context(s.round, o)
	r.opening = o.append(s.config.header(typeOpening, &s.config.digest, s.round, wire.ServerIndex))
	r.chain = r.context
	dealers := s.config.dealers()
	r.received, r.included = wire.NewSet(dealers), wire.NewSet(dealers)
	r.excluded = wire.NewSet(s.config.c)
	r.disputes = make([]wire.Set, s.config.c)
	r.charges = make([]*big.Rat, s.config.c)
	for k := range r.charges {
		r.charges[k] = new(big.Rat)
	}
	groups := s.config.groups()
	r.sum = make([]uint64, groups*s.config.length)
	r.counts, r.groups = make([]int, groups), s.config.groupsOf(&r.context)
	if s.config.scheme != nil {
		for range groups {
			r.keySums = append(r.keySums, edwards25519.NewIdentityPoint())
		}
	}
	return r.opening, nil
}

func (s *Server) receiveSubmission(h wire.Header, body []byte, party int) error {
	if s.open == nil {
		return fmt.Errorf("%w: round %d is not open", ErrPhase, h.Round)
	}
	if err := s.checkRound(h, &s.open.context, stepSubmissions); err != nil {
		return err
	}
	c, r := s.config, s.open
	if err := s.refuses(party); err != nil {
		return err
	}
	if party < c.n && s.Waiting() == s.batch {
		return ErrFull
	}
	body, tail, err := c.untailed(party, bytes.Clone(body))
	if err != nil {
		return err
	}
	sub, err := c.checkSubmission(h.Round, &r.context, r.members, party, body)
	if err != nil {
		return err
	}
	var unfair *claim
	if len(tail) > 0 {
		if unfair, err = s.checkAudit(sub, tail); err != nil {
			return err
		}
	}
	r.received.Add(party)
	if unfair != nil {
		return s.convicted(unfair)
	}
	if c.scheme != nil && !c.reduces {
		if err := s.checkProof(sub); err != nil {
			return err // and the party is spent: each check takes the server far longer than the party
		}
	}
	r.waiting = append(r.waiting, sub)
	return nil
}

// refuses returns why a submission of a dealer is refused whatever it is, nil if it is not.
func (s *Server) refuses(dealer int) error {
	c, r := s.config, s.open
	switch {
	case r.received.Has(dealer):
		return ErrDuplicate
	case dealer >= c.n && (r.number > 0 || !r.members.Has(dealer-c.n)):
		return fmt.Errorf("%w: noise of members goes into the first batch", ErrPhase)
	case dealer >= c.n && c.audited() && (r.coin == nil || r.candidates[dealer-c.n] == nil):
		return fmt.Errorf("%w: no coin has drawn from candidates", ErrPhase)
	}
	return nil
}

// checkSubmission checks all of a submission but what is in the boxes.
func (s *settled) checkSubmission(
	round uint64, context *[32]byte, members wire.Set, party int, body []byte,
) (*submitted, error) {
	m, err := s.parseSubmission(body, members.Len())
	if err != nil {
		return nil, err
	}
	if err := s.checkExtra(m.extra, round); err != nil {
		return nil, err
	}
	if !s.Covered {
		if err := s.ring.CheckPacked(m.masked, s.length); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrEncoding, err)
		}
	}
	switch {
	case s.reduces && s.scheme.CheckDealing(parseDealing(m.dealing)) != nil,
		s.scheme != nil && !s.reduces &&
			s.scheme.CheckEncoding(parseDealing(m.dealing), m.proof) != nil:
		return nil, fmt.Errorf("%w: of dealing or proof", ErrEncoding)
	}
	levels := tree(s.parseLeaves(m.leaves, members), s.depth)
	masked := hash(labels.OneshotMasked, m.masked)
	signed := statement(context, party, levels[s.depth][0], masked, m.extra, s.bind(context, party, m))
	if err := keyexchange.Verify(s.identity(party), s.statementLabel(party), signed,
		&m.signature); err != nil {
		return nil, err
	}
	return &submitted{party: party, body: body, masked: masked, statement: signed, levels: levels}, nil
}

// Waiting returns how many parties' submissions wait for a batch.
func (s *Server) Waiting() int {
	if s.open == nil {
		return 0
	}
	waiting := 0
	for _, sub := range s.open.waiting {
		if sub.party < s.config.n {
			waiting++
		}
	}
	return waiting
}

// Batch returns, for each member, the statements and boxes of the parties that wait, or again
// those of the batch that is with the members. Send them, wait for the answers, and call
// [Server.Settle]. It fails with [ErrPhase] if no party waits.
//
// With [Terms.CommitteeNoise] the first batch has all of the members' noise that has arrived: Batch
// fails with [ErrTooFew] while fewer than C − Faults members have sent noise. Wait for all members
// as long as that makes sense. With [Terms.Norm] call [Server.Coin] before, and send its message.
func (s *Server) Batch() ([]Envelope, error) {
	if s.open == nil || s.open.step != stepSubmissions {
		return nil, fmt.Errorf("%w: no round is open for submissions", ErrPhase)
	}
	c, r := s.config, s.open
	if r.flight == nil {
		if err := s.chooseFlight(); err != nil {
			return nil, err
		}
		slices.SortFunc(r.flight, func(a, b *submitted) int { return cmp.Compare(a.party, b.party) })
		r.number++
		clear(r.disputes)
	}
	var envelopes []Envelope
	box := 0
	for k := range r.members.All() {
		message := c.header(typeBatch, &r.context, s.round, wire.ServerIndex)
		message = slices.Grow(message, 4+len(r.flight)*c.entrySize())
		message = append(message, uint32Bytes(r.number)...)
		for _, sub := range r.flight {
			m, err := c.parseSubmission(sub.body, r.members.Len())
			if err != nil {
				panic("oneshot: " + err.Error()) // it was parsed before
			}
			e := entry{
				party:     sub.party,
				signature: m.signature,
				masked:    sub.masked,
				extra:     m.extra,
				dealing:   c.entryDealing(&r.context, sub, m.dealing, k),
				proof:     proofDigest(m.proof),
				path:      c.paths(sub.levels, k),
				box:       m.boxes[box*c.boxSize():][:c.boxSize()],
			}
			message = e.append(message)
		}
		envelopes = append(envelopes, Envelope{To: k, Message: message})
		box++
	}
	return envelopes, nil
}

// receiveDisputes takes a member's list of bad boxes. An honest member's is true; of
// others it is a word against a word.
func (s *Server) receiveDisputes(body []byte, member int) error {
	r := s.open
	number, bad, err := parseNumbered(body, len(r.flight))
	switch {
	case r.flight == nil || err == nil && number != r.number:
		return fmt.Errorf("%w: no such batch is with the members", ErrPhase)
	case err != nil:
		return err
	case r.excluded.Has(member):
		return ErrExcluded
	case r.disputes[member].Bytes() != nil:
		return ErrDuplicate
	}
	r.disputes[member] = bad
	return nil
}

// Answered returns how many members have answered the batch that is with them.
func (s *Server) Answered() int {
	n := 0
	if s.open != nil {
		for _, d := range s.open.disputes {
			if d.Bytes() != nil {
				n++
			}
		}
	}
	return n
}

// Settle ends the batch that is with the members: parties that nobody disputes are in the sum, the
// others are not. Settle returns the message that tells all members which parties are in the sum.
// It fails with [ErrPhase] if no batch is out.
//
// The members that dispute a party share one charge, unless more than Faults members dispute it,
// since the party then lies; a member charged with more than [Figures.Disputes] is out of the
// round. So f lying members shut out at most f·(Disputes + 1) honest parties, and as many parties
// as [Figures.Spoilers] cost no round by boxes that do not open. Parties that a complaint convicts
// are out, and cost nobody a charge.
//
// From the batch of members' noise, with [Terms.CommitteeNoise], Settle takes the noise of at least
// C − Faults members none of whom disputes the noise of another; any other member that disputes
// their noise is out of the round. It fails with [ErrTooFew] if there is no such set of members,
// which means that more than Faults members lie. It takes a set without those that were convicted
// in noise of an earlier round, or silent after a coin of the last 16 rounds, if there is one.
func (s *Server) Settle() ([]byte, error) {
	if s.open == nil || s.open.step != stepSubmissions || s.open.flight == nil {
		return nil, fmt.Errorf("%w: no batch is with the members", ErrPhase)
	}
	c, r := s.config, s.open
	in := wire.NewSet(len(r.flight))
	if c.CommitteeNoise && r.number == 1 {
		if err := s.settleNoise(in); err != nil {
			return nil, err
		}
		return s.settled(in), nil
	}
	most := big.NewRat(int64(c.Figures.Disputes), 1)
	for i, sub := range r.flight {
		if r.claimed(sub.party) {
			continue
		}
		var disputants []int
		for k := range r.members.All() {
			if !r.excluded.Has(k) && r.disputes[k].Has(i) {
				disputants = append(disputants, k)
			}
		}
		if len(disputants) == 0 {
			in.Add(i)
			r.add(c, sub)
		} else if len(disputants) <= c.Faults {
			share := big.NewRat(1, int64(len(disputants)))
			for _, k := range disputants {
				if r.charges[k].Add(r.charges[k], share).Cmp(most) > 0 {
					r.excluded.Add(k)
				}
			}
		}
	}
	return s.settled(in), nil
}

// settled ends the batch and returns the message that tells of it.
func (s *Server) settled(in wire.Set) []byte {
	r := s.open
	r.flight = nil
	clear(r.disputes)
	return appendNumbered(s.config.header(typeSettled, &r.context, s.round, wire.ServerIndex),
		r.number, in)
}

// addVector adds packed y of a submission to the sum of its group, and its commitment to the key.
func (r *serverRound) addVector(c *settled, m *submission, group int, packed []byte) {
	c.ring.AddPacked(r.sum[group*c.length:][:c.length], packed)
	if c.scheme == nil {
		return
	}
	key, err := pedersen.Parse((*[32]byte)(m.dealing))
	if err != nil {
		panic("oneshot: " + err.Error()) // it was parsed before
	}
	r.keySums[group].Add(r.keySums[group], key)
}

// add puts a submission into the sum.
func (r *serverRound) add(c *settled, sub *submitted) {
	m, err := c.parseSubmission(sub.body, r.members.Len())
	if err != nil {
		panic("oneshot: " + err.Error()) // it was parsed before
	}
	if c.Covered {
		one := cover{party: uint32(sub.party), masked: sub.masked, commitment: [32]byte(m.extra)}
		if c.reduces {
			one.stated = hash(labels.OneshotChain, sub.statement)
		}
		r.covers = append(r.covers, one)
	} else {
		r.addVector(c, m, groupOf(r.groups, sub.party), m.masked)
	}
	r.chain = extend(&r.chain, sub.statement)
	r.included.Add(sub.party)
	r.parties++
	r.counts[groupOf(r.groups, sub.party)]++
}

// Excluded returns the members that are out of the round because they disputed too much, or
// disputed noise of members that is in the sum, in ascending order.
func (s *Server) Excluded() []int {
	var out []int
	if s.open != nil && s.open.step > stepKeys {
		out = slices.Collect(s.open.excluded.All())
	}
	return out
}
