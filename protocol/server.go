package protocol

import (
	"fmt"

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

// Server is the server of a session. It holds no secret of anybody. It is not
// safe for concurrent use.
type Server struct {
	config    *Config
	session   [32]byte  // the configuration's digest during set-up
	announced wire.Set  // set-up: whose keys are in
	keys      wire.Keys // set-up
	ready     bool      // set-up is over
	round     uint64    // the last round that was begun
	open      bool      // the round takes submissions
	received  wire.Set  // whose submissions are in
	sum       *masking.Vector
}

// NewServer makes the server of a session. It fails with [ErrConfig].
func NewServer(config *Config) (*Server, error) {
	own, err := config.clone()
	if err != nil {
		return nil, err
	}
	n := own.Roster.Len()
	return &Server{config: own, session: own.digest(), announced: wire.NewSet(n), keys: make(wire.Keys, n)}, nil
}

// Receive takes one message of a party. A message that is refused, with one of
// the package's errors, changes nothing; the error is a [PartyError] whenever the
// sender is known.
func (s *Server) Receive(message []byte) error {
	if len(message) > s.config.MaxMessage() {
		return ErrOversized
	}
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		return err
	}
	if h.Sender >= uint32(s.config.Roster.Len()) {
		return fmt.Errorf("%w: %d", ErrSender, h.Sender)
	}
	party := int(h.Sender)
	switch h.Type {
	case wire.TypeAnnounce:
		err = s.receiveAnnounce(h, body, party)
	case wire.TypeMasked:
		err = s.receiveMasked(h, body, party)
	default:
		err = fmt.Errorf("%w: %d", ErrType, h.Type)
	}
	if err != nil {
		return partyError(s.config.Roster, party, err)
	}
	return nil
}

func (s *Server) receiveAnnounce(h wire.Header, body []byte, party int) error {
	digest := s.config.digest()
	switch {
	case h.Session != digest:
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
	if err := keyexchange.VerifyKey(s.config.Roster, digest, party, key, &m.Signature); err != nil {
		return err
	}
	s.announced.Add(party)
	s.keys[party] = *m
	return nil
}

// Keys ends the set-up: it returns the messages that carry all keys to all
// parties. It fails with [ErrMissing], naming them, while parties have not
// announced theirs. It may be called again, for a party that lost its message.
func (s *Server) Keys() ([]Envelope, error) {
	if err := missingError(s.config.Roster, 0, s.announced.Missing()); err != nil {
		return nil, err
	}
	digest := s.config.digest()
	h := wire.Header{Type: wire.TypeKeys, Session: digest, Sender: wire.Server}
	message := s.keys.Append(h.Append(nil))
	if !s.ready {
		s.ready = true
		s.session = sessionID(digest, message[wire.HeaderSize:])
	}
	return s.toAll(message), nil
}

// Begin begins the next round and returns the messages that say so. broadcast
// is what the parties need for the round, such as the model; only its digest
// is in the message, so the caller sends the broadcast itself. A round that is
// still open is given up. It fails with [ErrPhase] before [Server.Keys].
func (s *Server) Begin(broadcast []byte) ([]Envelope, error) {
	if !s.ready {
		return nil, fmt.Errorf("%w: set-up is not over", ErrPhase)
	}
	sum, err := masking.NewVector(s.config.Layout)
	if err != nil {
		return nil, err
	}
	n := s.config.Roster.Len()
	s.round++
	s.open, s.sum, s.received = true, sum, wire.NewSet(n)
	begin := wire.Begin{Broadcast: broadcastDigest(broadcast), Participants: wire.FullSet(n)}
	h := wire.Header{Type: wire.TypeBegin, Session: s.session, Round: s.round, Sender: wire.Server}
	return s.toAll(begin.Append(h.Append(nil))), nil
}

func (s *Server) receiveMasked(h wire.Header, body []byte, party int) error {
	switch {
	case !s.ready:
		return fmt.Errorf("%w: set-up is not over", ErrPhase)
	case h.Session != s.session:
		return ErrSession
	case h.Round > s.round:
		return fmt.Errorf("%w: round %d has not begun", ErrPhase, h.Round)
	case h.Round < s.round, !s.open:
		return fmt.Errorf("%w: round %d is over", ErrStale, h.Round)
	case s.received.Has(party):
		return ErrDuplicate
	}
	if err := wire.Exactly(body, s.config.Layout.PackedSize()); err != nil {
		return err
	}
	if err := s.sum.AddPacked(body); err != nil {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	s.received.Add(party)
	return nil
}

// Round returns the number of the last round that was begun, 0 before the first.
func (s *Server) Round() uint64 { return s.round }

// Missing returns the parties whose message the server is waiting for: their
// keys during set-up, their submissions while a round is open.
func (s *Server) Missing() []int {
	switch {
	case !s.ready:
		return s.announced.Missing()
	case s.open:
		return s.received.Missing()
	}
	return nil
}

// Sum ends the round and returns the sum of all inputs, one slice per segment,
// every value modulo 2^b of its segment. Call it when [Server.Missing] is empty
// or the caller has waited long enough. It fails with [ErrMissing], naming them,
// if parties did not submit: what the others sent stays masked and is
// discarded, and the session is ready for [Server.Begin]. It fails with
// [ErrPhase] if no round is open.
func (s *Server) Sum() ([][]uint64, error) {
	if !s.open {
		return nil, fmt.Errorf("%w: no round is open", ErrPhase)
	}
	s.open = false
	if err := missingError(s.config.Roster, s.round, s.received.Missing()); err != nil {
		return nil, err
	}
	return s.sum.Values(), nil
}

func (s *Server) toAll(message []byte) []Envelope {
	envelopes := make([]Envelope, s.config.Roster.Len())
	for i := range envelopes {
		envelopes[i] = Envelope{To: i, Message: message}
	}
	return envelopes
}
