package oneshot

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	gohash "hash"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// Types of messages. They share the header of package protocol's, in which the
// session is the configuration's digest until a round is opened, and then the round's
// context; the sender is the roster index of a party or the committee index of a
// member, as the type says.
const (
	typeInvite      wire.Type = 64 // server → members: make a key for the round
	typeKey         wire.Type = 65 // member → server: a signed key
	typeOpening     wire.Type = 66 // server → parties, members: the round's keys
	typeSubmission  wire.Type = 67 // party → server: the one message; or member → server: noise
	typeBatch       wire.Type = 68 // server → member: boxes and statements
	typeDisputes    wire.Type = 69 // member → server: which of them are bad
	typeSettled     wire.Type = 70 // server → members: which of them are in
	typeClosing     wire.Type = 71 // server → members: that is all
	typeSigned      wire.Type = 72 // member → server: a signature on who is in
	typeCertificate wire.Type = 73 // server → members: enough of those
	typePart        wire.Type = 74 // member → server: the sum of parts
	typeComplaint   wire.Type = 76 // member → server: typeDisputes, and leaves that convict

	// With Covered and Norm, between typeCertificate and typePart:
	typeCovers    wire.Type = 77 // member → server: values of covers
	typeGuilty    wire.Type = 78 // server → members: evidence on a dealer that is in
	typeReduction wire.Type = 79 // server → members: which parties are out again

	// With Norm where members deal noise, between typeOpening and theirs of typeSubmission:
	typeCandidates wire.Type = 80 // member → server: digests of what it may deal
	typeCoin       wire.Type = 81 // server → members: which of them each deals
)

// memberSender is added to a member's committee index where a header's sender is a
// member, so that no member is taken for a party.
const memberSender = 1 << 31

// maxBatch is the most parties in a batch.
const maxBatch = 1024

// openingSize is the length of the body of typeOpening with keys of the given number of
// members:
//
//	struct {
//	    opaque broadcast[32];
//	    opaque members[⌈C/8⌉];            // who has a key
//	    struct {
//	        opaque key[key size];
//	        opaque signature[64];
//	    } keys[…];                        // by ascending member
//	} Opening;
func (s *settled) openingSize(members int) int {
	return 32 + (s.c+7)/8 + members*s.keyBodySize()
}

// keyBodySize is the length of the body of typeKey: a key and its signature.
func (s *settled) keyBodySize() int { return s.KEM.keySize() + keyexchange.SignatureSize }

// opening is the body of typeOpening.
type opening struct {
	broadcast [32]byte
	members   wire.Set
	keys      [][]byte // key and signature, by ascending member
}

func (o *opening) append(b []byte) []byte {
	b = append(b, o.broadcast[:]...)
	b = append(b, o.members.Bytes()...)
	for _, key := range o.keys {
		b = append(b, key...)
	}
	return b
}

// parseOpening reads the body of an opening and checks that every key is its
// member's, that there are enough, and that each can be parsed.
func (s *settled) parseOpening(round uint64, body []byte) (*opening, error) {
	head := 32 + (s.c+7)/8
	if len(body) < head {
		return nil, ErrTruncated
	}
	members, err := wire.ParseSet(body[32:head], s.c)
	if err != nil {
		return nil, err
	}
	count := members.Len()
	if err := wire.Exactly(body, s.openingSize(count)); err != nil {
		return nil, err
	}
	if count < s.Keys {
		return nil, fmt.Errorf("%w: %d members have keys, want %d", ErrTooFew, count, s.Keys)
	}
	o := &opening{broadcast: [32]byte(body), members: members}
	body = body[head:]
	for k := range members.All() {
		key := body[:s.keyBodySize()]
		body = body[len(key):]
		if err := s.checkKey(round, k, key); err != nil {
			return nil, s.memberError(k, err)
		}
		o.keys = append(o.keys, key)
	}
	return o, nil
}

// key returns the public key of an entry of keys.
func (s *settled) key(entry []byte) []byte { return entry[:s.KEM.keySize()] }

// checkKey checks a key and its signature.
func (s *settled) checkKey(round uint64, member int, body []byte) error {
	key := s.key(body)
	signature := [keyexchange.SignatureSize]byte(body[len(key):])
	return keyexchange.Verify(s.Committee.Key(member), labels.OneshotKey,
		s.keyStatement(round, member, key),
		&signature)
}

func (s *settled) keyStatement(round uint64, member int, key []byte) []byte {
	b := make([]byte, 0, 32+8+4+len(key))
	b = append(b, s.digest[:]...)
	b = append(b, uint64Bytes(round)...)
	b = append(b, uint32Bytes(member)...)
	return append(b, key...)
}

// context is a digest of all that the sides of a round must agree on. It is new if one
// member's key is.
func (s *settled) context(round uint64, o *opening) [32]byte {
	parts := [][]byte{s.digest[:], uint64Bytes(round), o.broadcast[:], o.members.Bytes()}
	for _, key := range o.keys {
		parts = append(parts, s.key(key))
	}
	return hash(labels.OneshotContext, parts...)
}

func broadcastDigest(broadcast []byte) [32]byte { return hash(labels.OneshotBroadcast, broadcast) }

// NewBroadcastHash returns a hash for a broadcast that is made or arrives in pieces: write the
// broadcast to the hash, and give its sum to [Server.OpenDigest] and [Party.SubmitDigest].
func NewBroadcastHash() gohash.Hash {
	h := sha256.New()
	h.Write([]byte(labels.OneshotBroadcast))
	return h
}

// submissionSize is the length of the body of typeSubmission in a round with keys of
// the given number of members:
//
//	struct {
//	    opaque masked[⌈(d + spare)·b/8⌉];   // y, packed; or covered, and the proof after it
//	    opaque commitment[32];              // to the cover; only if covered
//	    uint64 made;                        // round of the broadcast; only with Stale
//	    opaque dealing[2 + r][32];          // C_s, C_0, P; only with Norm
//	    opaque proof[proof size];           // only with Norm
//	    opaque leaves[…][32];               // by ascending member
//	    opaque coverLeaves[…][32];          // by ascending member; only if covered with Norm
//	    opaque boxes[…][box size];          // by ascending member
//	    opaque signature[64];
//	} Submission;
//
// A member's noise under audit has a tail after that:
//
//	struct {
//	    opaque seeds[15][32];               // of all candidates but the one that is dealt, in order
//	    opaque signature[64];
//	} Tail;
func (s *settled) submissionSize(members int) int {
	return s.packed + s.extraSize() + s.dealingSize() + s.proofSize() + s.leavesSize(members) +
		members*s.boxSize() + keyexchange.SignatureSize
}

// extraSize is the length of what some configurations have in a submission.
func (s *settled) extraSize() (size int) {
	if s.Covered {
		size += 32
	}
	if s.Stale > 0 {
		size += 8
	}
	return size
}

// submission is the body of typeSubmission. Its slices are parts of the body.
type submission struct {
	masked    []byte
	extra     []byte // commitment, if covered ‖ round of the broadcast, with Stale
	dealing   []byte // C_s ‖ C_0 ‖ P, and
	proof     []byte // with Norm, else empty
	leaves    []byte
	boxes     []byte
	signature [keyexchange.SignatureSize]byte
}

func (m *submission) append(b []byte) []byte {
	b = append(b, m.masked...)
	b = append(b, m.extra...)
	b = append(b, m.dealing...)
	b = append(b, m.proof...)
	b = append(b, m.leaves...)
	b = append(b, m.boxes...)
	return append(b, m.signature[:]...)
}

func (s *settled) parseSubmission(body []byte, members int) (*submission, error) {
	if err := wire.Exactly(body, s.submissionSize(members)); err != nil {
		return nil, err
	}
	m := &submission{masked: body[:s.packed]}
	body = body[s.packed:]
	m.extra, body = body[:s.extraSize()], body[s.extraSize():]
	m.dealing, body = body[:s.dealingSize()], body[s.dealingSize():]
	m.proof, body = body[:s.proofSize()], body[s.proofSize():]
	m.leaves, body = body[:s.leavesSize(members)], body[s.leavesSize(members):]
	m.boxes, body = body[:s.boxSize()*members], body[s.boxSize()*members:]
	m.signature = [keyexchange.SignatureSize]byte(body)
	return m, nil
}

// statement returns the bytes that a party signs: its context, its index, the root of its leaves,
// the digest of y, and what else there is: the commitment to its cover, the round of the
// broadcast that its input was made from, and digests of dealing and proof.
func statement(
	context *[32]byte, party int, root, masked [32]byte, extra, bound []byte,
) []byte {
	b := make([]byte, 0, 32+4+5*32+8)
	b = append(b, context[:]...)
	b = append(b, uint32Bytes(party)...)
	b = append(b, root[:]...)
	b = append(b, masked[:]...)
	b = append(b, extra...)
	return append(b, bound...)
}

// statementLabel is under what dealers sign it.
func (s *settled) statementLabel(dealer int) string {
	if dealer >= s.n {
		return labels.OneshotNoise
	}
	if s.scheme != nil {
		return labels.OneshotBoundedParty
	}
	if s.Stale > 0 {
		return labels.OneshotStale
	}
	return labels.OneshotParty
}

// checkMade checks the round of the broadcast that an input was made from, in a round.
func (s *settled) checkMade(made, round uint64) error {
	if made == 0 || made > round || round-made > uint64(s.Stale) {
		return fmt.Errorf("%w: of round %d, in round %d; at most %d rounds before are taken", ErrStale,
			made, round, s.Stale)
	}
	return nil
}

// checkExtra checks it as a submission has it.
func (s *settled) checkExtra(extra []byte, round uint64) error {
	if s.Stale == 0 {
		return nil
	}
	return s.checkMade(binary.BigEndian.Uint64(extra[len(extra)-8:]), round)
}

// entrySize is the length of an entry of typeBatch, whose body is
//
//	struct {
//	    uint32 batch;                       // from 1
//	    struct {
//	        uint32 party;
//	        opaque signature[64];
//	        opaque masked[32];              // H(y)
//	        opaque commitment[32];          // only if covered
//	        uint64 made;                    // only with Stale
//	        opaque dealing[2 + r][32];      // only with Norm: C_s, C_0, P; or, if that is shorter,
//	                                        // C_s, C_0, P(k + 1), its path[⌈log₂ C⌉]
//	        opaque proof[32];               // its digest, only with Norm
//	        opaque path[⌈log₂ C⌉][32];      // two of them, each one longer, if covered with Norm
//	        opaque box[box size];
//	    } entries[…];                       // by ascending party
//	} Batch;
func (s *settled) entrySize() int {
	return 4 + keyexchange.SignatureSize + 32 + s.extraSize() + s.entryDealingSize() +
		s.proofDigestSize() + 32*s.pathLength() + s.boxSize()
}

// entry is one party in a batch.
type entry struct {
	party     int
	signature [keyexchange.SignatureSize]byte
	masked    [32]byte
	extra     []byte // as in a submission
	dealing   []byte // as entryDealingSize has it
	proof     []byte // its digest
	path      [][32]byte
	box       []byte
}

func (e *entry) append(b []byte) []byte {
	b = append(b, uint32Bytes(e.party)...)
	b = append(b, e.signature[:]...)
	b = append(b, e.masked[:]...)
	b = append(b, e.extra...)
	b = append(b, e.dealing...)
	b = append(b, e.proof...)
	for i := range e.path {
		b = append(b, e.path[i][:]...)
	}
	return append(b, e.box...)
}

// parseBatch reads the body of a batch: its number and its entries.
func (s *settled) parseBatch(body []byte) (int, []entry, error) {
	number, body, err := parseNumber(body)
	if err != nil {
		return 0, nil, err
	}
	size := s.entrySize()
	switch {
	case len(body) == 0 || len(body)%size != 0:
		return 0, nil, fmt.Errorf("%w: a batch of %d bytes, want a multiple of %d", ErrTruncated,
			len(body), size)
	case len(body)/size > maxBatch:
		return 0, nil, ErrOversized
	}
	entries := make([]entry, 0, len(body)/size)
	last := -1
	for ; len(body) > 0; body = body[size:] {
		var e entry
		party, one, err := parseNumber(body[:size])
		if err != nil {
			return 0, nil, err
		}
		if party <= last || party >= s.dealers() {
			return 0, nil, fmt.Errorf("%w: a batch is not ascending or goes beyond the roster", ErrEncoding)
		}
		e.party, last = party, party
		e.signature, one = [keyexchange.SignatureSize]byte(one), one[keyexchange.SignatureSize:]
		e.masked, one = [32]byte(one), one[32:]
		e.extra, one = one[:s.extraSize()], one[s.extraSize():]
		e.dealing, one = one[:s.entryDealingSize()], one[s.entryDealingSize():]
		e.proof, one = one[:s.proofDigestSize()], one[s.proofDigestSize():]
		for range s.pathLength() {
			e.path, one = append(e.path, [32]byte(one)), one[32:]
		}
		e.box = one
		entries = append(entries, e)
	}
	return number, entries, nil
}

// A numbered set is the body of typeDisputes and of typeSettled: a batch's number
// and one bit for each of its entries.
//
//	struct { uint32 batch; opaque entries[⌈entries/8⌉]; } NumberedSet;
func appendNumbered(b []byte, number int, set wire.Set) []byte {
	return append(append(b, uint32Bytes(number)...), set.Bytes()...)
}

func parseNumbered(body []byte, entries int) (int, wire.Set, error) {
	number, body, err := parseNumber(body)
	if err != nil {
		return 0, wire.Set{}, err
	}
	set, err := wire.ParseSet(body, entries)
	return number, set, err
}

// closing is the body of typeClosing:
//
//	struct { uint32 batches; uint32 parties[groups]; opaque chain[32]; } Closing;
type closing struct {
	batches int
	parties []int // in each group
	chain   [32]byte
}

func (c *closing) append(b []byte) []byte {
	b = append(b, uint32Bytes(c.batches)...)
	for _, n := range c.parties {
		b = append(b, uint32Bytes(n)...)
	}
	return append(b, c.chain[:]...)
}

func (s *settled) parseClosing(body []byte) (*closing, error) {
	if err := wire.Exactly(body, 4+4*s.groups()+32); err != nil {
		return nil, err
	}
	c := &closing{parties: make([]int, s.groups())}
	var err error
	if c.batches, body, err = parseNumber(body); err != nil {
		return nil, err
	}
	for g := range c.parties {
		if c.parties[g], body, err = parseNumber(body); err != nil {
			return nil, err
		}
	}
	c.chain = [32]byte(body)
	return c, nil
}

// closingStatement returns the bytes that members sign: the context, which parties are in and how
// many of each group.
func closingStatement(context, chain *[32]byte, parties []int) []byte {
	b := append(make([]byte, 0, 32+32+4*len(parties)), context[:]...)
	b = append(b, chain[:]...)
	for _, n := range parties {
		b = append(b, uint32Bytes(n)...)
	}
	return b
}

// extend adds a party's statement to the chain over who is in.
func extend(chain *[32]byte, statement []byte) [32]byte {
	return hash(labels.OneshotChain, chain[:], statement)
}

// partSize is the length of the body of typePart for sums of the given numbers of groups and
// parties: for each group a value of each polynomial and, if covered, of each party's cover in the
// order of the chain.
func (s *settled) partSize(groups, parties int) int {
	size := groups * s.Polynomials * scalarSize
	if s.Covered && !s.reduces {
		size += parties * scalarSize
	}
	return size
}

// parseNumber reads a uint32 that fits an int everywhere.
func parseNumber(body []byte) (int, []byte, error) {
	if len(body) < 4 {
		return 0, nil, ErrTruncated
	}
	x := uint64(body[0])<<24 | uint64(body[1])<<16 | uint64(body[2])<<8 | uint64(body[3])
	if x >= 1<<31 {
		return 0, nil, fmt.Errorf("%w: a number of %d", ErrEncoding, x)
	}
	return int(x), body[4:], nil
}

// dealers is how many there are of those whose messages are added up: parties by roster index and,
// if members deal noise, those by committee index after them.
func (s *settled) dealers() int {
	if s.CommitteeNoise {
		return s.n + s.c
	}
	return s.n
}

// dealer returns the index that a sender of a submission has among dealers.
func (s *settled) dealer(sender uint32) (int, bool) {
	if sender >= memberSender && s.CommitteeNoise {
		sender = min(sender-memberSender, uint32(s.c)) + uint32(s.n)
	}
	return int(sender), sender < uint32(s.dealers())
}

// identity is the key that a dealer signs with.
func (s *settled) identity(dealer int) ed25519.PublicKey {
	if dealer >= s.n {
		return s.Committee.Key(dealer - s.n)
	}
	return s.Roster.Key(dealer)
}

// noises returns how many members' noise a sum has, at least: 0 if members deal none.
func (s *settled) noises() int {
	if s.CommitteeNoise {
		return s.c - s.Faults
	}
	return 0
}

// header begins a message.
func (s *settled) header(kind wire.Type, session *[32]byte, round uint64, sender uint32) []byte {
	h := wire.Header{Type: kind, Session: *session, Round: round, Sender: sender}
	return h.Append(nil)
}

func (s *settled) parse(message []byte) (wire.Header, []byte, error) {
	if len(message) > s.most {
		return wire.Header{}, nil, ErrOversized
	}
	return wire.ParseHeader(message)
}

// partyError names a dealer.
func (s *settled) partyError(party int, err error) error {
	if party >= s.n {
		return s.memberError(party-s.n, err)
	}
	return &PartyError{Party: party, Name: s.Roster.Name(party), Err: err}
}

func (s *settled) memberError(member int, err error) error {
	return &MemberError{Member: member, Name: s.Committee.Name(member), Err: err}
}
