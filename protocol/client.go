package protocol

import (
	"crypto"
	"crypto/ed25519"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/shamir"
)

// Client is one party of a session. It is not safe for concurrent use.
type Client struct {
	config   *settled
	self     int
	identity crypto.Signer
	random   io.Reader

	// Set-up: the key is gone once the keys of all parties are in.
	key      *keyexchange.PrivateKey
	announce wire.Announce

	// From then on.
	session  [32]byte // the configuration's digest during set-up
	topology *topology
	chains   map[int]*keyexchange.Chain // by peer; nil during set-up
	last     uint64                     // no round up to this one can begin any more
	upload   *wire.Upload               // the last that was made, nil without recovery
	open     *clientRound               // round last, while it lasts
	output   []byte                     // the last message that was made

	vector *masking.Vector // room for submissions; zero or masked between calls
}

// phase is how far a client has come in a round.
type phase uint8

const (
	phaseBegun phase = iota
	phaseSubmitted
	phaseSigned
)

// clientRound is what a client keeps of the round that it is in.
type clientRound struct {
	phase        phase
	broadcast    [32]byte
	participants wire.Set
	context      [32]byte
	neighbours   []int // among the participants, ascending

	// With recovery, all by the position of the neighbour.
	channels  []*keyexchange.Channels
	recovery  []*[32]byte // shares of recovery keys, nil where one did not open
	survivors wire.Set
	sealed    []wire.SealedShare // of self masks, by the position among the survivors
}

// erase overwrites the secrets of the round.
func (r *clientRound) erase() {
	for i := range r.channels {
		r.channels[i].Erase()
		if r.recovery[i] != nil {
			clear(r.recovery[i][:])
		}
	}
}

// NewClient makes the party of the given identity, with a fresh key for the
// session from random (nil: crypto/rand), which it goes on reading from. It
// fails with [ErrConfig] or, if the roster does not have the identity,
// [ErrIdentity].
func NewClient(config *Config, identity crypto.Signer, random io.Reader) (*Client, error) {
	c, err := newClient(config, identity, random)
	if err != nil {
		return nil, err
	}
	if c.key, err = keyexchange.GenerateKey(random); err != nil {
		return nil, err
	}
	offered, err := c.key.Public()
	if err != nil {
		return nil, err
	}
	signature, err := keyexchange.SignKey(identity, c.session, c.self, offered)
	if err != nil {
		return nil, err
	}
	c.announce = wire.Announce{Key: offered, Signature: signature}
	return c, nil
}

// newClient makes a client without keys.
func newClient(config *Config, identity crypto.Signer, random io.Reader) (*Client, error) {
	own, err := config.settle()
	if err != nil {
		return nil, err
	}
	if identity == nil {
		return nil, fmt.Errorf("%w: there is no signer", ErrIdentity)
	}
	public, _ := identity.Public().(ed25519.PublicKey)
	self, ok := own.Roster.Index(public)
	if !ok {
		return nil, ErrIdentity
	}
	return &Client{config: own, self: self, identity: identity, random: random, session: own.digest}, nil
}

// Party returns the client's own roster index.
func (c *Client) Party() int { return c.self }

// Announce returns the client's first message: its signed key. It is the same
// whenever it is asked for.
func (c *Client) Announce() []byte {
	h := wire.Header{Type: wire.TypeAnnounce, Session: c.config.digest, Sender: uint32(c.self)}
	return c.announce.Append(h.Append(nil))
}

// Receive takes one message of the server. If there is something to answer at
// once, it returns the answer, to be sent to the server. After a message that
// begins a round, [Client.Due] is true and the next step is [Client.Submit].
//
// A message that is refused, with one of the package's errors, changes nothing.
func (c *Client) Receive(message []byte) (answer []byte, err error) {
	if len(message) > c.config.most {
		return nil, ErrOversized
	}
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		return nil, err
	}
	var receive func(wire.Header, []byte) ([]byte, error)
	switch h.Type {
	case wire.TypeKeys:
		receive = c.receiveKeys
	case wire.TypeBegin:
		receive = c.receiveBegin
	case wire.TypeInvite:
		receive = c.receiveInvite
	case wire.TypeSurvivors:
		receive = c.receiveSurvivors
	case wire.TypeCertificate:
		receive = c.receiveCertificate
	}
	if receive == nil || h.Type > wire.TypeMasked && !c.config.recovery {
		return nil, fmt.Errorf("%w: %v", ErrType, h.Type)
	}
	if h.Sender != wire.ServerIndex {
		return nil, ErrSender
	}
	session := c.session
	if h.Type == wire.TypeKeys {
		session = c.config.digest
	} else if c.chains == nil {
		return nil, fmt.Errorf("%w: the keys are not in", ErrPhase)
	}
	if h.Session != session {
		return nil, ErrSession
	}
	answer, err = receive(h, body)
	if answer != nil {
		c.output = answer
	}
	return answer, err
}

// Output returns the last message that [Client.Receive] or [Client.Submit]
// returned, nil before the first. It is part of what [Client.Save] saves: a
// process that comes back after a crash sends it again and never makes another
// in its place.
func (c *Client) Output() []byte { return c.output }

// receiveKeys checks the signed keys, makes the chains, and forgets the private
// key. With recovery it answers with the upload for the first round.
func (c *Client) receiveKeys(h wire.Header, body []byte) ([]byte, error) {
	if c.chains != nil {
		return nil, fmt.Errorf("%w: the keys are in", ErrPhase)
	}
	if h.Round != 0 {
		return nil, fmt.Errorf("%w: set-up is round 0", ErrEncoding)
	}
	roster := c.config.Roster
	keys, err := wire.ParseKeys(body, roster.Len())
	if err != nil {
		return nil, err
	}
	if keys[c.self] != c.announce {
		return nil, ErrOwnKey
	}
	session := sessionID(h.Session, body)
	topology := newTopology(c.config, session, c.self)
	chains := make(map[int]*keyexchange.Chain)
	for _, i := range topology.peers(c.self) {
		key, err := keyexchange.ParsePublicKey(keys[i].Key[:])
		if err == nil {
			err = keyexchange.VerifyKey(roster, h.Session, i, key, &keys[i].Signature)
		}
		if err == nil {
			chains[i], err = c.key.NewChain(session, roster, c.self, i, key)
		}
		if err != nil {
			eraseChains(chains)
			return nil, partyError(roster, i, err)
		}
	}
	ready := &Client{config: c.config, self: c.self, identity: c.identity, random: c.random,
		key: c.key, announce: c.announce, session: session, topology: topology, chains: chains}
	answer, err := ready.uploadAfter(0)
	if err != nil {
		eraseChains(chains)
		return nil, err
	}
	*c = *ready
	c.key.Erase()
	return answer, nil
}

// receiveBegin notes that a round has begun. A round that was begun earlier and
// is not over is given up.
func (c *Client) receiveBegin(h wire.Header, body []byte) ([]byte, error) {
	switch {
	case h.Round == c.last && c.last != 0:
		return nil, fmt.Errorf("%w: round %d", ErrReplay, h.Round)
	case h.Round <= c.last:
		return nil, fmt.Errorf("%w: round %d after round %d", ErrStale, h.Round, c.last)
	case h.Round-c.last-1 > c.config.maxSkip:
		return nil, fmt.Errorf("%w: round %d after round %d, at most %d may be missed", ErrSkip, h.Round, c.last, c.config.maxSkip)
	}
	neighbours := c.topology.neighbours(h.Round, c.self)
	begin, err := wire.ParseBegin(body, c.config.parties, func(participants wire.Set) int {
		if !c.config.recovery {
			return 0
		}
		return len(participants.Of(neighbours))
	})
	if err != nil {
		return nil, err
	}
	scheduled := c.topology.set(c.topology.scheduled(h.Round))
	if err := c.checkParticipants(begin.Participants, scheduled, neighbours); err != nil {
		return nil, err
	}
	if c.config.recovery && (c.upload == nil || c.upload.Round != h.Round) {
		return nil, fmt.Errorf("%w: round %d without this party's recovery material for it", ErrParticipants, h.Round)
	}
	open := &clientRound{
		broadcast:    begin.Broadcast,
		participants: begin.Participants,
		context:      roundContext(c.session, h.Round, begin),
		neighbours:   begin.Participants.Of(neighbours),
	}
	if err := c.moveChains(h.Round); err != nil {
		return nil, err
	}
	if c.config.recovery {
		c.openRecoveryShares(open, h.Round, begin.Shares)
	}
	c.closeRound()
	c.last, c.open = h.Round, open
	return nil, nil
}

// checkParticipants refuses a round that could not keep the session's promises.
func (c *Client) checkParticipants(participants, scheduled wire.Set, neighbours []int) error {
	if !participants.Has(c.self) {
		return partyError(c.config.Roster, c.self, ErrParticipants)
	}
	if !participants.Within(scheduled) {
		return fmt.Errorf("%w: a party is not scheduled", ErrParticipants)
	}
	if !c.config.recovery && !participants.Equal(scheduled) {
		for i := range scheduled.All() {
			if !participants.Has(i) {
				return partyError(c.config.Roster, i, ErrParticipants)
			}
		}
	}
	if n := participants.Len(); n < c.config.minSurvivors {
		return fmt.Errorf("%w: %d take part, the session needs %d", ErrTooFew, n, c.config.minSurvivors)
	}
	if near := len(participants.Of(neighbours)); near < c.config.threshold {
		return fmt.Errorf("%w: %d of this party's neighbours take part, the session needs %d", ErrTooFew, near, c.config.threshold)
	}
	return nil
}

// moveChains brings all chains up to a round, which erases the keys of those
// before it.
func (c *Client) moveChains(round uint64) error {
	for _, chain := range c.chains {
		if err := chain.Skip(round); err != nil {
			return err // no chain is ahead of a round that may begin
		}
	}
	return nil
}

// closeRound erases what the client keeps of the round that it is in.
func (c *Client) closeRound() {
	if c.open != nil {
		c.open.erase()
		c.open = nil
	}
}

// Due reports whether a round has begun that waits for this party's input, and
// which.
func (c *Client) Due() (round uint64, due bool) {
	return c.last, c.open != nil && c.open.phase == phaseBegun
}

// Submit masks the input for the round that has begun and returns the message
// that carries it; the keys that masked it are erased. values has one slice per
// segment of the layout, each value below 2^b of its segment. broadcast is what
// the server sent to everybody for this round and this input was made from,
// such as the model (nil if there is none).
//
// It fails with [ErrPhase] if no round waits, [ErrBroadcast], [ErrLength],
// [ErrRange] or [ErrRandom]; the round then still waits.
func (c *Client) Submit(broadcast []byte, values ...[]uint64) ([]byte, error) {
	if _, due := c.Due(); !due {
		return nil, fmt.Errorf("%w: no round waits for an input", ErrPhase)
	}
	if broadcastDigest(broadcast) != c.open.broadcast {
		return nil, ErrBroadcast
	}
	if c.vector == nil {
		room, err := masking.NewVector(c.config.Layout)
		if err != nil {
			return nil, err
		}
		c.vector = room
	}
	v := c.vector
	if err := v.Set(values...); err != nil {
		return nil, err
	}
	var masked wire.Masked
	var self shamir.Secret
	if c.config.recovery {
		// All that can fail comes first.
		if err := c.prepareRecovery(&masked, &self); err != nil {
			v.Erase()
			return nil, err
		}
		seed := selfMask(self)
		v.AddMask(&seed)
		clear(seed[:])
		clear(self[:])
	}
	for _, peer := range c.topology.neighbours(c.last, c.self) {
		secret := c.chains[peer].Next() // of those that sit out too: the round is over for all
		if c.open.participants.Has(peer) {
			seed := masking.Seed(secret.MaskSeed(c.open.context))
			v.MaskPair(&seed, c.self, peer)
			clear(seed[:])
		}
		clear(secret[:])
	}
	h := wire.Header{Type: wire.TypeMasked, Session: c.session, Round: c.last, Sender: uint32(c.self)}
	size := wire.HeaderSize + c.config.Layout.PackedSize()
	if c.config.recovery {
		size = wire.HeaderSize + wire.MaskedSize(c.config.Layout.PackedSize(), len(c.open.neighbours), c.config.degree)
	}
	message := v.AppendPacked(h.Append(make([]byte, 0, size)))
	if c.config.recovery {
		message = masked.AppendRest(message)
		c.open.phase = phaseSubmitted
		c.upload = masked.Next
	} else {
		c.open = nil
	}
	c.output = message
	return message, nil
}

// Erase forgets all keys, best effort. The client must not be used again.
func (c *Client) Erase() {
	if c.key != nil {
		c.key.Erase()
	}
	eraseChains(c.chains)
	c.closeRound()
}

func eraseChains(chains map[int]*keyexchange.Chain) {
	for _, chain := range chains {
		chain.Erase()
	}
}
