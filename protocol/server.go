package protocol

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/masking"
)

// Envelope is a message of the server together with the party to which it is addressed. Messages
// for several parties may share their bytes.
type Envelope struct {
	To      int // roster index
	Message []byte
}

// Server is the server of a session. It holds no long-term secret. It is not
// safe for concurrent use.
type Server struct {
	config *settled

	// Set-up.
	stage          stage
	session        [32]byte // the configuration's digest during set-up
	announced      wire.Set
	announcements  []*wire.Announce    // by party
	head           []byte              // of messages of keys; see listKeys
	encapsulated   wire.Set            // who has sent ciphertexts
	encapsulations []*wire.Encapsulate // by party, until the members are fixed
	// what ends set-up for members that have not been heard of since
	pending  map[int][]byte
	topology *topology // nil until the keys are out

	round uint64 // the last round that was begun or skipped

	// With recovery.
	holders  wire.Set       // whom the material for the next round is for
	terms    terms          // of a round with a given number of parties
	uploads  []*wire.Upload // by party: for its next round; nil if there is none
	excluded wire.Set       // parties that are left out
	doubts   doubts         // of whom one of two is at fault

	open     *serverRound // the round, while it lasts
	included []int        // whose inputs are in the round's sum, once that is fixed

	// intake has room for a submission that comes in pieces; nil if none has come in the
	// round.
	intake *masking.Intake
}

// step names the messages that the server waits for in a round.
type step uint8

const (
	stepMasked step = iota
	stepSigned
	stepReveal
)

// serverRound holds the state of the server in the round that is open.
type serverRound struct {
	step         step
	participants wire.Set
	broadcast    [32]byte // its digest
	context      [32]byte
	sum          *masking.Vector
	received     wire.Set // whose submissions are in

	// With recovery.
	neighbours  [][]int        // by party
	near        [][]int        // by party: the neighbours among the participants
	material    []*wire.Upload // by party: what the round began with
	commitments [][32]byte     // by party: to self masks
	shares      [][]wire.SealedShare
	survivors   wire.Set
	signatures  wire.Certificate // by ascending party
	revealed    wire.Set
	revelations []wire.Reveal // by party
}

// Receive takes one message of a party. from is the sender that the transport has authenticated: a
// message that names another sender is refused, so that no party can submit in the place of
// another.
//
// A message that is refused, with one of the package's errors, changes nothing;
// the error is a [PartyError] of from, if there is such a party.
func (s *Server) Receive(from int, message []byte) error {
	if from < 0 || from >= s.config.parties {
		return fmt.Errorf("%w: there is no party %d", ErrSender, from)
	}
	if err := s.receiveFrom(from, message); err != nil {
		return partyError(s.config.Roster, from, err)
	}
	return nil
}

func (s *Server) receiveFrom(from int, message []byte) error {
	if len(message) > s.config.most {
		return ErrOversized
	}
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		return err
	}
	if h.Sender != uint32(from) {
		return fmt.Errorf("%w: it names %d", ErrSender, int32(h.Sender))
	}
	return s.receive(h, body, from)
}

func (s *Server) receive(h wire.Header, body []byte, party int) error {
	var receive func(wire.Header, []byte, int) error
	switch h.Type {
	case wire.TypeAnnounce:
		receive = s.receiveAnnounce
	case wire.TypeEncapsulate:
		receive = s.receiveEncapsulate
	case wire.TypeMasked:
		receive = s.receiveMasked
	case wire.TypeUpload:
		receive = s.receiveUpload
	case wire.TypeSigned:
		receive = s.receiveSigned
	case wire.TypeReveal:
		receive = s.receiveReveal
	}
	if receive == nil || !s.config.has(h.Type) {
		return fmt.Errorf("%w: %v", ErrType, h.Type)
	}
	if h.Type.SetUp() {
		switch {
		case h.Session != s.config.digest:
			return ErrSession
		case h.Round != 0:
			return fmt.Errorf("%w: set-up is round 0", ErrEncoding)
		}
		return receive(h, body, party)
	}
	switch {
	case s.stage != stageReady:
		return fmt.Errorf("%w: set-up is not over", ErrPhase)
	case h.Session != s.session:
		return ErrSession
	case !s.topology.members.Has(party):
		return ErrMembers
	}
	if err := receive(h, body, party); err != nil {
		return err
	}
	delete(s.pending, party)
	return nil
}

// Begin begins the next round and returns the messages that announce it to all parties that take
// part. broadcast holds the bytes that parties need for the round, such as the model; only its
// digest is in the message, so the caller sends the broadcast itself. A round that is still open
// is given up.
//
// With recovery, the parties whose material for the round has arrived take part. If there are too
// few, Begin fails with [ErrTooFew], naming the missing parties, and no round begins: call
// [Server.Invite] and wait, or [Server.Skip]. It fails with [ErrPhase] before [Server.Keys].
func (s *Server) Begin(broadcast []byte) ([]Envelope, error) {
	return s.BeginDigest(broadcastDigest(broadcast))
}

// BeginDigest is [Server.Begin] for a broadcast that is not in one piece: broadcast is its
// digest, the sum of [NewBroadcastHash].
func (s *Server) BeginDigest(broadcast [32]byte) ([]Envelope, error) {
	if s.stage != stageReady {
		return nil, fmt.Errorf("%w: set-up is not over", ErrPhase)
	}
	round := s.round + 1
	scheduled := s.holders.Of(s.topology.scheduled(round))
	participants := s.topology.set(scheduled)
	if s.config.recovery {
		participants = s.withMaterial(round, scheduled)
		if n := participants.Len(); n < s.terms.minSurvivors {
			var absent []int
			for _, i := range scheduled {
				if !participants.Has(i) {
					absent = append(absent, i)
				}
			}
			return nil, tooFewError(s.config.Roster, round, "are ready for", n, s.terms.minSurvivors, absent)
		}
	}
	s.open, s.intake = nil, nil // before there is room for another
	sum, err := masking.NewVector(s.config.Layout)
	if err != nil {
		return nil, err
	}
	n := s.config.parties
	begin := wire.Begin{Broadcast: broadcast, Participants: participants}
	s.round = round
	s.topology.forget(round)
	s.open = &serverRound{
		participants: participants,
		broadcast:    begin.Broadcast,
		context:      roundContext(s.session, round, &begin, s.holders),
		sum:          sum,
		received:     wire.NewSet(n),
	}
	if s.config.recovery {
		s.open.material = make([]*wire.Upload, n)
		s.open.commitments = make([][32]byte, n)
		s.open.shares = make([][]wire.SealedShare, n)
		s.open.revealed = wire.NewSet(n)
		s.open.revelations = make([]wire.Reveal, n)
		for i := range participants.All() {
			s.open.material[i], s.uploads[i] = s.uploads[i], nil
		}
		s.open.findNeighbours(s.topology, s.holders, round)
	}
	s.included = nil
	var envelopes []Envelope
	var message []byte
	for i := range participants.All() {
		if message == nil || s.config.recovery {
			message = s.beginFor(i)
		}
		envelopes = append(envelopes, Envelope{To: i, Message: message})
	}
	return envelopes, nil
}

// roundHeader begins a message of the last round.
func (s *Server) roundHeader(kind wire.Type) []byte {
	h := wire.Header{Type: kind, Session: s.session, Round: s.round, Sender: wire.ServerIndex}
	return h.Append(nil)
}

// beginFor is the message that tells a participant of the open round; without recovery it
// is the same for all.
func (s *Server) beginFor(party int) []byte {
	r := s.open
	m := wire.Begin{Broadcast: r.broadcast, Participants: r.participants}
	if s.config.recovery {
		m.Shares = make([]wire.SealedShare, len(r.near[party]))
		for k, owner := range r.near[party] {
			at, _ := slices.BinarySearch(r.neighbours[owner], party)
			m.Shares[k] = r.material[owner].Shares[at]
		}
	}
	return m.Append(s.roundHeader(wire.TypeBegin))
}

// findNeighbours looks up who shares secrets with whom in the round.
func (r *serverRound) findNeighbours(topology *topology, holders wire.Set, round uint64) {
	n := topology.config.parties
	r.neighbours, r.near = make([][]int, n), make([][]int, n)
	for i := range r.participants.All() {
		r.neighbours[i] = holders.Of(topology.neighbours(round, i))
		r.near[i] = r.participants.Of(r.neighbours[i])
	}
}

// receiveMasked takes a submission. It is added to the sum at once, so that the
// server does not keep what single parties sent.
func (s *Server) receiveMasked(h wire.Header, body []byte, party int) error {
	if err := s.checkMasked(h, party); err != nil {
		return err
	}
	size := s.config.Layout.PackedSize()
	if len(body) < size {
		return ErrTruncated
	}
	rest, err := s.parseRest(body[size:], party)
	if err != nil {
		return err
	}
	if err := s.open.sum.AddPacked(body[:size]); err != nil {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	s.take(party, rest)
	return nil
}

// checkMasked refuses a submission that is not due.
func (s *Server) checkMasked(h wire.Header, party int) error {
	if err := s.checkRound(h, stepMasked, party); err != nil {
		return err
	}
	if s.open.received.Has(party) {
		return ErrDuplicate
	}
	return nil
}

// restSize is the length of what follows the packed vector in a party's submission.
func (s *Server) restSize(party int) int {
	if !s.config.recovery {
		return 0
	}
	return wire.MaskedSize(0, len(s.open.near[party]), s.topology.degree(party, s.holders))
}

// parseRest reads what follows the packed vector: nil without recovery.
func (s *Server) parseRest(rest []byte, party int) (*wire.Masked, error) {
	if !s.config.recovery {
		return nil, wire.Exactly(rest, 0)
	}
	masked, err := wire.ParseMasked(rest, 0, len(s.open.near[party]),
		s.topology.degree(party, s.holders))
	if err != nil {
		return nil, err
	}
	next, err := s.topology.next(party, s.round) // after the length: it may be a long search
	if err != nil {
		return nil, err
	}
	if masked.Next.Round != next {
		return nil, fmt.Errorf("%w: recovery material for round %d, want %d", ErrEncoding,
			masked.Next.Round, next)
	}
	return masked, nil
}

// take notes that a party's submission is in the sum, and what came with it.
func (s *Server) take(party int, rest *wire.Masked) {
	s.open.received.Add(party)
	if rest != nil {
		s.open.commitments[party] = rest.Commitment
		s.open.shares[party] = rest.Shares
		s.uploads[party] = rest.Next
	}
}

// checkRound refuses a message that is not for the open round, or not due in it.
func (s *Server) checkRound(h wire.Header, want step, party int) error {
	switch {
	case h.Round > s.round:
		return fmt.Errorf("%w: round %d has not begun", ErrPhase, h.Round)
	case h.Round < s.round, s.open == nil, s.open.step > want:
		return fmt.Errorf("%w: %v of round %d", ErrStale, h.Type, h.Round)
	case s.open.step < want:
		return fmt.Errorf("%w: %v of round %d", ErrPhase, h.Type, h.Round)
	case !s.open.participants.Has(party), want > stepMasked && !s.open.survivors.Has(party):
		return ErrParticipants
	}
	return nil
}

// Round returns the number of the last round that was begun, 0 before the first.
func (s *Server) Round() uint64 { return s.round }

// Missing returns the parties whose message the server is waiting for: their
// keys or ciphertexts during set-up; in a round their submissions, signatures or
// shares, whatever is due; between rounds, with recovery, their material for the
// next one.
func (s *Server) Missing() []int {
	var missing []int
	for i := range s.config.parties {
		if s.Awaits(i) {
			missing = append(missing, i)
		}
	}
	return missing
}

// Awaits reports whether a party is one of [Server.Missing], without looking at others.
func (s *Server) Awaits(party int) bool {
	switch s.Step() {
	case StepAnnounce:
		return party >= 0 && party < s.config.parties && !s.announced.Has(party)
	case StepEncapsulate:
		return s.announced.Has(party) && !s.encapsulated.Has(party)
	case StepBetween:
		return s.config.recovery && s.lacksMaterial(party)
	case StepMasked:
		return s.open.participants.Has(party) && !s.open.received.Has(party)
	case StepSigned:
		_, found := s.signature(party)
		return s.open.survivors.Has(party) && !found
	default:
		return s.open.survivors.Has(party) && !s.open.revealed.Has(party)
	}
}

// Sum ends the round and returns the sum of the inputs, one slice per segment, every value modulo
// 2^b of its segment. Call it when [Server.Missing] is empty or the caller has waited long
// enough: after the submissions, or, with recovery, after the shares that follow
// [Server.Certificate]. [Server.Included] tells whose inputs are in it.
//
// Whether it fails or not, the round is over and the session goes on with [Server.Begin]. It fails
// with [ErrMissing], naming the parties that did not submit, if the session has no recovery; with
// [ErrTooFew], naming the parties that did not reveal shares, if too few did; with [ErrMaterial],
// naming the party, if a party's secrets do not rebuild. The submissions of the others stay masked
// and are discarded. It fails with [ErrPhase] if no sum is due.
func (s *Server) Sum() ([][]uint64, error) {
	sum, err := s.SumVector()
	if err != nil {
		return nil, err
	}
	return sum.Values(), nil
}

// SumVector is [Server.Sum] without a copy: it returns the vector of the sum.
func (s *Server) SumVector() (*masking.Vector, error) {
	if s.open == nil {
		return nil, fmt.Errorf("%w: no round is open", ErrPhase)
	}
	open := s.open
	if s.config.recovery {
		if open.step != stepReveal {
			return nil, fmt.Errorf("%w: the survivors are not certified", ErrPhase)
		}
		s.open = nil
		if err := s.unmask(open); err != nil {
			return nil, err
		}
		return open.sum, nil
	}
	missing := s.Missing()
	s.open, s.intake = nil, nil
	if err := missingError(s.config.Roster, s.round, missing); err != nil {
		return nil, err
	}
	s.included = slices.Collect(open.participants.All())
	return open.sum, nil
}

// Included returns the parties whose inputs are in the sum of the last round, in ascending order,
// from the moment when they are fixed until the next round begins.
func (s *Server) Included() []int { return slices.Clone(s.included) }
