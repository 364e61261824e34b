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

	// Set-up: what is secret here is gone once the members are known.
	stage         stage
	key           *keyexchange.PrivateKey
	decapsulation *keyexchange.DecapsulationKey // nil with classical keys
	announce      wire.Announce
	agreed        map[int]*keyexchange.Agreement // by peer, between Keys and Members

	// From then on.
	session  [32]byte // the configuration's digest during set-up
	topology *topology
	chains   map[int]*keyexchange.Chain // by peer; nil during set-up
	last     uint64                     // no round up to this one can begin any more
	upload   *wire.Upload               // the last that was made, nil without recovery
	holders  wire.Set                   // whom it is for
	open     *clientRound               // round last, while it lasts
	output   []byte                     // the last message that was made
	kept     bool                       // but for a submission after it, which the caller keeps

	vector *masking.Vector // room for submissions; zero or masked between calls
}

// stage is how far a party or the server has come in set-up.
type stage uint8

const (
	stageAnnounce    stage = iota // until Keys
	stageEncapsulate              // with hybrid keys, until Members
	stageReady
)

// phase is how far a client has come in a round.
type phase uint8

const (
	phaseBegun phase = iota
	phaseSubmitted
	phaseSigned
)

// clientRound holds the state of a client in a round.
type clientRound struct {
	phase        phase
	broadcast    [32]byte
	participants wire.Set
	context      [32]byte
	terms        terms
	holders      wire.Set // of recovery shares; all members without recovery
	neighbours   []int    // among the participants, ascending

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
	return &Client{config: own, self: self, identity: identity, random: random, session: own.digest},
		nil
}

// Number returns the number of the session in its series, that of its [Config].
func (c *Client) Number() uint64 { return c.config.Number }

// Party returns the client's own roster index.
func (c *Client) Party() int { return c.self }

// Receive takes one message of the server. If the message calls for an answer at once, it returns
// the answer, to be sent to the server. After a message that begins a round, [Client.Due] is true
// and the next step is [Client.Submit].
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
	case wire.TypeMembers:
		receive = c.receiveMembers
	case wire.TypeBegin:
		receive = c.receiveBegin
	case wire.TypeInvite:
		receive = c.receiveInvite
	case wire.TypeSurvivors:
		receive = c.receiveSurvivors
	case wire.TypeCertificate:
		receive = c.receiveCertificate
	}
	if receive == nil || !c.config.has(h.Type) {
		return nil, fmt.Errorf("%w: %v", ErrType, h.Type)
	}
	if h.Sender != wire.ServerIndex {
		return nil, ErrSender
	}
	session := c.session
	if h.Type.SetUp() {
		session = c.config.digest
	} else if c.stage != stageReady {
		return nil, fmt.Errorf("%w: set-up is not over", ErrPhase)
	}
	if h.Session != session {
		return nil, ErrSession
	}
	answer, err = receive(h, body)
	if answer != nil {
		c.output, c.kept = answer, false
	}
	return answer, err
}

// Output returns the last message that the client has made, at first [Client.Announce]: never nil.
// [Client.Save] saves the message too: a process that restarts after a crash, or whose connection
// broke, sends it again and never makes another in its place. A server that already has the message
// refuses it. Where [Client.Kept] says so, send the submission instead.
func (c *Client) Output() []byte {
	if c.output == nil {
		return c.Announce()
	}
	return c.output
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
		return nil, fmt.Errorf("%w: round %d after round %d, at most %d may be missed", ErrSkip, h.Round,
			c.last, c.config.maxSkip)
	}
	holders := c.topology.members
	if c.config.recovery {
		if c.upload == nil || c.upload.Round != h.Round {
			return nil, fmt.Errorf("%w: round %d without this party's recovery material for it",
				ErrParticipants, h.Round)
		}
		holders = c.holders
	}
	neighbours := holders.Of(c.topology.neighbours(h.Round, c.self))
	begin, err := wire.ParseBegin(body, c.config.parties, func(participants wire.Set) int {
		if !c.config.recovery {
			return 0
		}
		return len(participants.Of(neighbours))
	})
	if err != nil {
		return nil, err
	}
	open := &clientRound{
		broadcast:    begin.Broadcast,
		participants: begin.Participants,
		context:      roundContext(c.session, h.Round, begin, holders),
		terms:        c.config.terms(holders.Len()),
		holders:      holders,
		neighbours:   begin.Participants.Of(neighbours),
	}
	if err := c.checkParticipants(h.Round, open); err != nil {
		return nil, err
	}
	if err := c.moveChains(h.Round); err != nil {
		return nil, err
	}
	if c.config.recovery {
		c.openRecoveryShares(open, h.Round, begin.Shares)
	}
	c.closeRound()
	c.last, c.open, c.kept = h.Round, open, false
	c.topology.forget(h.Round)
	return nil, nil
}

// checkParticipants refuses a round that could not keep the session's promises.
func (c *Client) checkParticipants(round uint64, open *clientRound) error {
	scheduled := c.topology.set(open.holders.Of(c.topology.scheduled(round)))
	if !open.participants.Has(c.self) {
		return partyError(c.config.Roster, c.self, ErrParticipants)
	}
	if !open.participants.Within(scheduled) {
		return fmt.Errorf("%w: a party is not scheduled, or holds no shares of this party",
			ErrParticipants)
	}
	if !c.config.recovery && !open.participants.Equal(scheduled) {
		for i := range scheduled.All() {
			if !open.participants.Has(i) {
				return partyError(c.config.Roster, i, ErrParticipants)
			}
		}
	}
	if n := open.participants.Len(); n < open.terms.minSurvivors {
		return fmt.Errorf("%w: %d take part, the session needs %d", ErrTooFew, n, open.terms.minSurvivors)
	}
	if near := len(open.neighbours); near < open.terms.threshold {
		return fmt.Errorf("%w: %d of this party's neighbours take part, the session needs %d", ErrTooFew,
			near, open.terms.threshold)
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

// Due reports whether a round has begun that waits for this party's input, and which round that
// is.
func (c *Client) Due() (round uint64, due bool) {
	return c.last, c.open != nil && c.open.phase == phaseBegun
}

// Submit masks the input for the round that has begun and returns the message that carries it; the
// keys that masked it are erased. values has one slice per segment of the layout, each value below
// 2^b of its segment. broadcast holds the bytes, such as a model, that the server sent to everybody
// for this round and from which this input was made; nil if there is no broadcast.
//
// It fails with [ErrPhase] if no round waits, [ErrBroadcast], [ErrLength],
// [ErrRange] or [ErrRandom]; the round then still waits.
func (c *Client) Submit(broadcast []byte, values ...[]uint64) ([]byte, error) {
	submission, err := c.submit(broadcastDigest(broadcast),
		func(v *masking.Vector) error { return v.Set(values...) })
	if err != nil {
		return nil, err
	}
	c.output, c.kept = submission.bytes(), false
	return c.output, nil
}

// submit is Submit and SubmitVector, but for what becomes of the message.
func (c *Client) submit(
	broadcast [32]byte, fill func(v *masking.Vector) error,
) (*Submission, error) {
	if _, due := c.Due(); !due {
		return nil, fmt.Errorf("%w: no round waits for an input", ErrPhase)
	}
	if broadcast != c.open.broadcast {
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
	if err := fill(v); err != nil {
		v.Erase()
		return nil, err
	}
	masks := masking.NewMasks(v)
	var masked wire.Masked
	var self shamir.Secret
	if c.config.recovery {
		// All that can fail comes first.
		if err := c.prepareRecovery(&masked, &self); err != nil {
			v.Erase()
			return nil, err
		}
		seed := selfMask(self)
		masks.Add(&seed)
		clear(seed[:])
		clear(self[:])
	}
	for _, peer := range c.topology.neighbours(c.last, c.self) {
		secret := c.chains[peer].Next() // of those that sit out too: the round is over for all
		if c.open.participants.Has(peer) {
			seed := masking.Seed(secret.MaskSeed(c.open.context))
			masks.Pair(&seed, c.self, peer)
			clear(seed[:])
		}
		clear(secret[:])
	}
	masks.Apply()
	out := &Submission{head: c.header(wire.TypeMasked, c.session, c.last), vector: v}
	if c.config.recovery {
		out.tail = masked.AppendRest(nil)
		c.open.phase = phaseSubmitted
		c.upload = masked.Next
	} else {
		c.open = nil
	}
	return out, nil
}

// Erase forgets all keys, best effort. The client must not be used again.
func (c *Client) Erase() {
	c.eraseSetUp()
	eraseChains(c.chains)
	c.closeRound()
}

func eraseChains(chains map[int]*keyexchange.Chain) {
	for _, chain := range chains {
		chain.Erase()
	}
}
