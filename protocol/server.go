package protocol

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// Envelope is a message of the server and the party that it is for. Messages
// for several parties may share their bytes.
type Envelope struct {
	To      int // roster index
	Message []byte
}

// Server is the server of a session. It holds no long-term secret. It is not
// safe for concurrent use.
type Server struct {
	config    *settled
	session   [32]byte // the configuration's digest during set-up
	announced wire.Set
	keys      wire.Keys
	topology  *topology // nil during set-up
	round     uint64    // the last round that was begun or skipped

	// With recovery.
	uploads  []*wire.Upload // by party: for its next round; nil if there is none
	excluded wire.Set       // parties that are left out
	doubts   doubts         // of whom one of two is at fault

	open     *serverRound // the round, while it lasts
	included []int        // whose inputs are in the round's sum, once that is fixed
}

// step is what the server waits for in a round.
type step uint8

const (
	stepMasked step = iota
	stepSigned
	stepReveal
)

// serverRound is what the server keeps of the round that is open.
type serverRound struct {
	step         step
	participants wire.Set
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

// NewServer makes the server of a session. It fails with [ErrConfig].
func NewServer(config *Config) (*Server, error) {
	own, err := config.settle()
	if err != nil {
		return nil, err
	}
	n := own.parties
	return &Server{
		config: own, session: own.digest, announced: wire.NewSet(n), keys: make(wire.Keys, n),
		uploads: make([]*wire.Upload, n), excluded: wire.NewSet(n), doubts: make(doubts),
	}, nil
}

// Receive takes one message of a party. A message that is refused, with one of
// the package's errors, changes nothing; the error is a [PartyError] whenever the
// sender is known.
func (s *Server) Receive(message []byte) error {
	if len(message) > s.config.most {
		return ErrOversized
	}
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		return err
	}
	if h.Sender >= uint32(s.config.parties) {
		if h.Sender == wire.ServerIndex {
			return fmt.Errorf("%w: the message is the server's own", ErrSender)
		}
		return fmt.Errorf("%w: %d", ErrSender, h.Sender)
	}
	party := int(h.Sender)
	if err := s.receive(h, body, party); err != nil {
		return partyError(s.config.Roster, party, err)
	}
	return nil
}

func (s *Server) receive(h wire.Header, body []byte, party int) error {
	var receive func(wire.Header, []byte, int) error
	switch h.Type {
	case wire.TypeAnnounce:
		return s.receiveAnnounce(h, body, party)
	case wire.TypeMasked:
		receive = s.receiveMasked
	case wire.TypeUpload:
		receive = s.receiveUpload
	case wire.TypeSigned:
		receive = s.receiveSigned
	case wire.TypeReveal:
		receive = s.receiveReveal
	}
	switch {
	case receive == nil || h.Type > wire.TypeMasked && !s.config.recovery:
		return fmt.Errorf("%w: %v", ErrType, h.Type)
	case s.topology == nil:
		return fmt.Errorf("%w: set-up is not over", ErrPhase)
	case h.Session != s.session:
		return ErrSession
	}
	return receive(h, body, party)
}

func (s *Server) receiveAnnounce(h wire.Header, body []byte, party int) error {
	switch {
	case h.Session != s.config.digest:
		return ErrSession
	case h.Round != 0:
		return fmt.Errorf("%w: set-up is round 0", ErrEncoding)
	case s.announced.Has(party):
		return ErrDuplicate
	}
	m, err := wire.ParseAnnounce(body)
	if err != nil {
		return err
	}
	key, err := keyexchange.ParsePublicKey(m.Key[:])
	if err != nil {
		return err
	}
	if err := keyexchange.VerifyKey(s.config.Roster, s.config.digest, party, key, &m.Signature); err != nil {
		return err
	}
	s.announced.Add(party)
	s.keys[party] = *m
	return nil
}

// Keys ends the exchange of keys: it returns the messages that carry all keys to
// all parties. It fails with [ErrMissing], naming them, while parties have not
// announced theirs. It may be called again, for a party that lost its message.
// With recovery the parties answer with their material for the first round.
func (s *Server) Keys() ([]Envelope, error) {
	if err := missingError(s.config.Roster, 0, s.announced.Missing()); err != nil {
		return nil, err
	}
	h := wire.Header{Type: wire.TypeKeys, Session: s.config.digest, Sender: wire.ServerIndex}
	message := s.keys.Append(h.Append(nil))
	if s.topology == nil {
		s.setUp()
	}
	envelopes := make([]Envelope, s.config.parties)
	for i := range envelopes {
		envelopes[i] = Envelope{To: i, Message: message}
	}
	return envelopes, nil
}

// setUp fixes the session, once all keys are in.
func (s *Server) setUp() {
	s.session = sessionID(s.config.digest, s.keys.Append(nil))
	s.topology = newTopology(s.config, s.session, -1)
}

// Begin begins the next round and returns the messages that say so, to all who
// take part. broadcast is what the parties need for the round, such as the
// model; only its digest is in the message, so the caller sends the broadcast
// itself. A round that is still open is given up.
//
// With recovery, those take part whose material for the round is in. If they are
// too few it fails with [ErrTooFew], naming who is missing, and no round begins:
// call [Server.Invite] and wait, or [Server.Skip]. It fails with [ErrPhase]
// before [Server.Keys].
func (s *Server) Begin(broadcast []byte) ([]Envelope, error) {
	if s.topology == nil {
		return nil, fmt.Errorf("%w: set-up is not over", ErrPhase)
	}
	round := s.round + 1
	scheduled := s.topology.scheduled(round)
	participants := s.topology.set(scheduled)
	if s.config.recovery {
		participants = s.withMaterial(round, scheduled)
		if n := participants.Len(); n < s.config.minSurvivors {
			var absent []int
			for _, i := range scheduled {
				if !participants.Has(i) {
					absent = append(absent, i)
				}
			}
			return nil, tooFewError(s.config.Roster, round, "are ready for", n, s.config.minSurvivors, absent)
		}
	}
	sum, err := masking.NewVector(s.config.Layout)
	if err != nil {
		return nil, err
	}
	n := s.config.parties
	begin := wire.Begin{Broadcast: broadcastDigest(broadcast), Participants: participants}
	s.round = round
	s.open = &serverRound{
		participants: participants,
		context:      roundContext(s.session, round, &begin),
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
		s.open.findNeighbours(s.topology, round)
	}
	s.included = nil
	h := wire.Header{Type: wire.TypeBegin, Session: s.session, Round: round, Sender: wire.ServerIndex}
	message := begin.Append(h.Append(nil))
	var envelopes []Envelope
	for i := range participants.All() {
		if s.config.recovery {
			begin.Shares = make([]wire.SealedShare, len(s.open.near[i]))
			for k, owner := range s.open.near[i] {
				at, _ := slices.BinarySearch(s.open.neighbours[owner], i)
				begin.Shares[k] = s.open.material[owner].Shares[at]
			}
			message = begin.Append(h.Append(nil))
		}
		envelopes = append(envelopes, Envelope{To: i, Message: message})
	}
	return envelopes, nil
}

// findNeighbours looks up who shares secrets with whom in the round.
func (r *serverRound) findNeighbours(topology *topology, round uint64) {
	n := topology.config.parties
	r.neighbours, r.near = make([][]int, n), make([][]int, n)
	for i := range r.participants.All() {
		r.neighbours[i] = topology.neighbours(round, i)
		r.near[i] = r.participants.Of(r.neighbours[i])
	}
}

// receiveMasked takes a submission. It is added to the sum at once, so that the
// server does not keep what single parties sent.
func (s *Server) receiveMasked(h wire.Header, body []byte, party int) error {
	if err := s.checkRound(h, stepMasked, party); err != nil {
		return err
	}
	if s.open.received.Has(party) {
		return ErrDuplicate
	}
	size := s.config.Layout.PackedSize()
	masked := &wire.Masked{Packed: body}
	if s.config.recovery {
		next, err := s.topology.next(party, s.round)
		if err != nil {
			return err
		}
		if masked, err = wire.ParseMasked(body, size, len(s.open.near[party]), s.config.degree); err != nil {
			return err
		}
		if masked.Next.Round != next {
			return fmt.Errorf("%w: recovery material for round %d, want %d", ErrEncoding, masked.Next.Round, next)
		}
	} else if err := wire.Exactly(body, size); err != nil {
		return err
	}
	if err := s.open.sum.AddPacked(masked.Packed); err != nil {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	s.open.received.Add(party)
	if s.config.recovery {
		s.open.commitments[party] = masked.Commitment
		s.open.shares[party] = masked.Shares
		s.uploads[party] = masked.Next
	}
	return nil
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
// keys during set-up; in a round their submissions, signatures or shares,
// whatever is due; between rounds, with recovery, their material for the next
// one.
func (s *Server) Missing() []int {
	if s.topology == nil {
		return s.announced.Missing()
	}
	if s.open == nil {
		if !s.config.recovery {
			return nil
		}
		return s.withoutMaterial(s.round + 1)
	}
	waiting := s.open.survivors
	have := s.open.revealed.Has
	switch s.open.step {
	case stepMasked:
		waiting, have = s.open.participants, s.open.received.Has
	case stepSigned:
		have = func(i int) bool { _, found := s.signature(i); return found }
	}
	var missing []int
	for i := range waiting.All() {
		if !have(i) {
			missing = append(missing, i)
		}
	}
	return missing
}

// Sum ends the round and returns the sum of the inputs, one slice per segment,
// every value modulo 2^b of its segment. Call it when [Server.Missing] is empty
// or the caller has waited long enough: after the submissions, or, with recovery,
// after the shares that follow [Server.Certificate]. [Server.Included] says whose
// inputs are in it.
//
// Whether it fails or not, the round is over and the session goes on with
// [Server.Begin]. It fails with [ErrMissing], naming them, if parties did not
// submit and the session has no recovery; with [ErrTooFew] if too few revealed
// shares, naming who did not; with [ErrMaterial], naming the party, if a party's
// secrets do not rebuild. What the others sent stays masked and is discarded. It fails with
// [ErrPhase] if no sum is due.
func (s *Server) Sum() ([][]uint64, error) {
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
		return open.sum.Values(), nil
	}
	missing := s.Missing()
	s.open = nil
	if err := missingError(s.config.Roster, s.round, missing); err != nil {
		return nil, err
	}
	s.included = slices.Collect(open.participants.All())
	return open.sum.Values(), nil
}

// Included returns the parties whose inputs are in the sum of the last round, in
// ascending order, from when that is fixed until the next round begins.
func (s *Server) Included() []int { return slices.Clone(s.included) }
