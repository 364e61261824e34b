package protocol

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// A series is a chain of sessions with one label and rising numbers. While the rounds of the
// present session go on, the next may be set up; between two rounds it takes over. Sessions share
// nothing but the identities of parties that are in both: what a thief takes of one opens nothing
// of the next. A party that is new, lost its state or was left out comes in with the next
// session, whose roster may be different, as far as each party's caller accepts its
// configuration.

// Bounds of the numbers in a series, so that a single false number does not use the series up:
// none is above MaxNumber, and a party joins no session whose number is more than MaxNumberJump
// above the least that it may use.
const (
	MaxNumber     uint64 = 1<<62 - 1
	MaxNumberJump uint64 = 1 << 40
)

// ErrNumber: the number of a session cannot be used in the series, and the error says why. If the
// number is not above all numbers that were used, take the next one. A party that has lost its
// state must be told the least number that it may use: at least one above the last session that it
// took part in. If the number is above [MaxNumber], or for a party too far above its least number,
// do not believe the party that proposed it.
var ErrNumber = errors.New("protocol: the number cannot be used in this series")

// ClientSeries is one party in a series of sessions. It is not safe for concurrent
// use.
type ClientSeries struct {
	label     string
	identity  crypto.Signer
	random    io.Reader
	least     uint64  // no session below this number may be joined any more
	present   *Client // nil before the first has begun
	formed    *Client // set up, of which a round may begin, though a successor follows it
	successor *Client // while it is set up
}

// NewClientSeries makes the party of the given identity in the series of a label, in no session
// yet. least is the least number of a session that the party may join, 0 for a new party. A party
// that has lost its state must be told one above the last number that it used, by anyone who knows
// that number, such as the server. Told too low a number, a party could be led to announce a second
// key for a session that it was in; the only harm is that it can then be shut out of that session.
func NewClientSeries(
	label string, least uint64, identity crypto.Signer, random io.Reader,
) *ClientSeries {
	return &ClientSeries{label: label, identity: identity, random: random, least: least}
}

// Succeed begins the next session, as [NewClient] does, and returns the first message of its
// set-up. It gives up an earlier successor, unless that session is set up already: the server may
// have let that session take over without this party having been told. It fails with [ErrConfig] if
// the label is not the series', with [ErrNumber], and as NewClient does.
//
// By passing its configuration the caller accepts the session: it must not take a roster on the
// server's word.
func (s *ClientSeries) Succeed(config *Config) (announce []byte, err error) {
	if err := checkSuccessor(config, s.label, s.least); err != nil {
		return nil, err
	}
	if config.Number-s.least > MaxNumberJump {
		return nil, fmt.Errorf("%w: %d is too far above %d, the least that may be used: at most %d above",
			ErrNumber, config.Number, s.least, MaxNumberJump)
	}
	next, err := NewClient(config, s.identity, s.random)
	if err != nil {
		return nil, err
	}
	switch {
	case s.successor == nil:
	case s.successor.stage == stageReady:
		s.forget(&s.formed)
		s.formed = s.successor
	default:
		s.successor.Erase()
	}
	s.successor, s.least = next, config.Number+1
	return next.Announce(), nil
}

func checkSuccessor(config *Config, label string, least uint64) error {
	switch {
	case config == nil || config.Label != label:
		return fmt.Errorf("%w: another label than the series'", ErrConfig)
	case config.Number > MaxNumber:
		return errMaxNumber(config.Number)
	case config.Number < least:
		return fmt.Errorf("%w: %d has been used, the least that may be is %d", ErrNumber, config.Number,
			least)
	}
	return nil
}

func errMaxNumber(number uint64) error {
	return fmt.Errorf("%w: %d, a number is at most %d", ErrNumber, number, MaxNumber)
}

// Receive takes one message of the server and returns the answer, if any, as [Client.Receive] does,
// for the session that the message names, see [ClientSeries.Named]. At its first Begin or Invite a
// session after the present one takes over, and the sessions before it are erased. It fails with
// [ErrSession] if the message is of no session that the party has.
func (s *ClientSeries) Receive(message []byte) (answer []byte, err error) {
	h, _, err := wire.ParseHeader(message)
	if err != nil {
		return nil, err
	}
	c := s.Named(message)
	if c == nil {
		return nil, ErrSession
	}
	answer, err = c.Receive(message)
	if err == nil && (h.Type == wire.TypeBegin || h.Type == wire.TypeInvite) {
		s.takeOver(c)
	}
	return answer, err
}

// Named returns the session that a message names, either the present session or one that may take
// over; nil if it names neither.
func (s *ClientSeries) Named(message []byte) *Client {
	h, _, err := wire.ParseHeader(message)
	if err != nil {
		return nil
	}
	for _, c := range s.Sessions() {
		if c.config.names(c.session, h.Session) {
			return c
		}
	}
	return nil
}

// takeOver makes a session the present one, and erases those before it.
func (s *ClientSeries) takeOver(c *Client) {
	if c == s.present {
		return
	}
	s.forget(&s.present)
	if c == s.successor {
		s.forget(&s.formed)
		s.successor = nil
	} else {
		s.formed = nil
	}
	s.present = c
}

// forget erases a session, if there is one.
func (s *ClientSeries) forget(c **Client) {
	if *c != nil {
		(*c).Erase()
		*c = nil
	}
}

// Sessions returns the sessions for which the party has keys, in ascending order of their numbers:
// first the present session, if there is one, then the sessions that may take over.
func (s *ClientSeries) Sessions() []*Client {
	var out []*Client
	for _, c := range []*Client{s.present, s.formed, s.successor} {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

// names reports whether a header is of a session: by its identifier, or in set-up by
// its configuration.
func (c *settled) names(session, header [32]byte) bool {
	return header == session || header == c.digest
}

// Due reports whether a round of the present session waits for this party's input, and which
// round that is.
func (s *ClientSeries) Due() (round uint64, due bool) {
	if s.present == nil {
		return 0, false
	}
	return s.present.Due()
}

// Submit masks the input for the round of the present session that has begun, as
// [Client.Submit] does.
func (s *ClientSeries) Submit(broadcast []byte, values ...[]uint64) ([]byte, error) {
	if s.present == nil {
		return nil, fmt.Errorf("%w: no session has begun", ErrPhase)
	}
	return s.present.Submit(broadcast, values...)
}

// SubmitVector masks the input for the round of the present session that has begun, as
// [Client.SubmitVector] does.
func (s *ClientSeries) SubmitVector(
	broadcast [32]byte, fill func(v *masking.Vector) error,
) (*Submission, error) {
	if s.present == nil {
		return nil, fmt.Errorf("%w: no session has begun", ErrPhase)
	}
	return s.present.SubmitVector(broadcast, fill)
}

// Present returns the session that holds rounds now, nil before the first.
func (s *ClientSeries) Present() *Client { return s.present }

// Successor returns the session that is set up, nil if there is none.
func (s *ClientSeries) Successor() *Client { return s.successor }

// Least returns the least number that a session may have.
func (s *ClientSeries) Least() uint64 { return s.least }

// Erase forgets all keys, best effort. The series must not be used again.
func (s *ClientSeries) Erase() {
	for _, c := range s.Sessions() {
		c.Erase()
	}
}

// ServerSeries is the server of a series of sessions. It is not safe for concurrent
// use.
type ServerSeries struct {
	label     string
	least     uint64
	present   *Server
	successor *Server
}

// NewServerSeries makes the server of the series of a label, without a session yet. least has the
// meaning that it has in [NewClientSeries].
func NewServerSeries(label string, least uint64) *ServerSeries {
	return &ServerSeries{label: label, least: least}
}

// Succeed begins the next session, whose set-up is [ServerSeries.Successor]'s. It gives up a
// successor that has not taken over. It fails with [ErrConfig] and [ErrNumber].
func (s *ServerSeries) Succeed(config *Config) error {
	if err := checkSuccessor(config, s.label, s.least); err != nil {
		return err
	}
	next, err := NewServer(config)
	if err != nil {
		return err
	}
	s.successor, s.least = next, config.Number+1
	return nil
}

// ReadMessage takes one message of a party as [ServerSeries.Receive] does, read in pieces
// as [Server.ReadMessage] reads it.
func (s *ServerSeries) ReadMessage(from ed25519.PublicKey, r io.Reader) error {
	head := make([]byte, wire.HeaderSize)
	n, err := io.ReadFull(r, head)
	server, party, refused := s.receiver(from, head[:n])
	switch {
	case err != nil && refused != nil:
		return brokenOff(refused, err)
	case refused != nil:
		return refused
	}
	return server.ReadMessage(party, io.MultiReader(bytes.NewReader(head), r))
}

// Receive takes one message of the party that the transport knows by its identity, for the
// session that the message names, as [Server.Receive] does. It fails with [ErrSession] if the
// message is of no session, and with [ErrIdentity] if the party is not in the session that it
// names.
func (s *ServerSeries) Receive(from ed25519.PublicKey, message []byte) error {
	server, party, err := s.receiver(from, message)
	if err != nil {
		return err
	}
	return server.Receive(party, message)
}

// receiver returns whom a message is for, and which party it is from.
func (s *ServerSeries) receiver(
	from ed25519.PublicKey, message []byte,
) (server *Server, party int, err error) {
	h, _, err := wire.ParseHeader(message)
	if err != nil {
		return nil, 0, err
	}
	for _, server := range []*Server{s.present, s.successor} {
		if server == nil || !server.config.names(server.session, h.Session) {
			continue
		}
		party, ok := server.config.Roster.Index(from)
		if !ok {
			return nil, 0, ErrIdentity
		}
		return server, party, nil
	}
	return nil, 0, ErrSession
}

// TakeOver makes the successor the present session and discards the one before. It fails with
// [ErrPhase] while there is no successor, its set-up is not over, or a round of the present
// session is open.
func (s *ServerSeries) TakeOver() error {
	switch {
	case s.successor == nil || s.successor.stage != stageReady:
		return fmt.Errorf("%w: no successor is set up", ErrPhase)
	case s.present != nil && s.present.open != nil:
		return fmt.Errorf("%w: sessions take over between rounds", ErrPhase)
	}
	s.present, s.successor = s.successor, nil
	return nil
}

// Present returns the session that holds rounds now, nil before the first.
func (s *ServerSeries) Present() *Server { return s.present }

// Successor returns the session that is set up, nil if there is none.
func (s *ServerSeries) Successor() *Server { return s.successor }

// Least returns the least number that a session may have. A party that has lost its state must be
// told that number.
func (s *ServerSeries) Least() uint64 { return s.least }

// seriesState holds the fields of a series that Save saves. Sessions are sealed on their own.
type seriesState struct {
	Least                      uint64
	Present, Formed, Successor *sessionState // a server has no Formed
}

// sessionState is a session without its configuration, which the caller can make again from the
// number: among thousands of parties the roster would be nearly all of a state.
type sessionState struct {
	Number uint64
	State  []byte
}

// Save returns the state of the series sealed under key, as [Client.Save] does. Save,
// then send.
func (s *ClientSeries) Save(key *keyexchange.SealKey) ([]byte, error) {
	out := seriesState{Least: s.least}
	for _, c := range []struct {
		of *Client
		to **sessionState
	}{{s.present, &out.Present}, {s.formed, &out.Formed}, {s.successor, &out.Successor}} {
		if c.of == nil {
			continue
		}
		state, err := c.of.Save(key)
		if err != nil {
			return nil, err
		}
		*c.to = &sessionState{c.of.config.Number, state}
	}
	return sealGob(s.random, key, seriesData(s.label, identityOf(s.identity)), &out)
}

// LoadClientSeries restores the series that [ClientSeries.Save] saved under key. configs returns
// the configuration of the session with a given number, nil if it knows none. Send the
// [Client.Output] of each session after loading. LoadClientSeries fails with [ErrConfig] if a
// configuration is invalid, and with [ErrState] if it is not that of the saved session or the state
// is unusable.
func LoadClientSeries(
	label string, identity crypto.Signer, random io.Reader, key *keyexchange.SealKey, state []byte,
	configs func(number uint64) *Config,
) (*ClientSeries, error) {
	var in seriesState
	if err := openGob(key, seriesData(label, identityOf(identity)), state, &in); err != nil {
		return nil, err
	}
	s := NewClientSeries(label, in.Least, identity, random)
	for _, c := range []struct {
		of *sessionState
		to **Client
	}{{in.Present, &s.present}, {in.Formed, &s.formed}, {in.Successor, &s.successor}} {
		if c.of == nil {
			continue
		}
		config, err := c.of.config(configs)
		if err != nil {
			return nil, err
		}
		if *c.to, err = LoadClient(config, identity, random, key, c.of.State); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Save returns the state of the series sealed under key, as [Server.Save] does.
func (s *ServerSeries) Save(key *keyexchange.SealKey) ([]byte, error) {
	return s.save(key, (*Server).Save)
}

// SaveParts returns the state of the series sealed under key, together with the sum of the open
// round, as [Server.SaveParts] does: only the present session has rounds.
func (s *ServerSeries) SaveParts(
	key *keyexchange.SealKey,
) (state []byte, sum io.WriterTo, err error) {
	state, err = s.save(key, func(server *Server, key *keyexchange.SealKey) ([]byte, error) {
		one, beside, err := server.SaveParts(key)
		if beside != nil {
			sum = beside
		}
		return one, err
	})
	return state, sum, err
}

func (s *ServerSeries) save(
	key *keyexchange.SealKey, save func(*Server, *keyexchange.SealKey) ([]byte, error),
) ([]byte, error) {
	out := seriesState{Least: s.least}
	for _, c := range []struct {
		of *Server
		to **sessionState
	}{{s.present, &out.Present}, {s.successor, &out.Successor}} {
		if c.of == nil {
			continue
		}
		state, err := save(c.of, key)
		if err != nil {
			return nil, err
		}
		*c.to = &sessionState{c.of.config.Number, state}
	}
	return sealGob(nil, key, seriesData(s.label, nil), &out)
}

// ReadServerSeries restores the series that [ServerSeries.Save] or [ServerSeries.SaveParts] saved,
// as [ReadServer] does; configs has the meaning that it has in [LoadClientSeries].
func ReadServerSeries(
	label string, key *keyexchange.SealKey, state []byte, configs func(number uint64) *Config,
	sum io.Reader,
) (*ServerSeries, error) {
	var in seriesState
	if err := openGob(key, seriesData(label, nil), state, &in); err != nil {
		return nil, err
	}
	s := NewServerSeries(label, in.Least)
	for _, c := range []struct {
		of *sessionState
		to **Server
	}{{in.Present, &s.present}, {in.Successor, &s.successor}} {
		if c.of == nil {
			continue
		}
		config, err := c.of.config(configs)
		if err != nil {
			return nil, err
		}
		if *c.to, err = ReadServer(config, key, c.of.State, sum); err != nil {
			return nil, err
		}
		sum = nil // it is of the present session
	}
	return s, nil
}

func (s *sessionState) config(configs func(number uint64) *Config) (*Config, error) {
	if configs != nil {
		if config := configs(s.Number); config != nil {
			return config, nil
		}
	}
	return nil, fmt.Errorf("%w: the configuration of session %d is unknown", ErrState, s.Number)
}

func identityOf(identity crypto.Signer) []byte {
	if identity == nil {
		return nil
	}
	public, _ := identity.Public().(ed25519.PublicKey)
	return public
}

// seriesData binds a saved series to its label and its owner, nil for the server's.
func seriesData(label string, owner []byte) []byte {
	d := hash(labels.Series, []byte{byte(len(label))}, []byte(label), owner)
	return d[:]
}
