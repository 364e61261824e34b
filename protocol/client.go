package protocol

import (
	"crypto"
	"crypto/ed25519"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// Client is one party of a session. It is not safe for concurrent use.
type Client struct {
	config *Config
	self   int

	// Set-up: gone once the keys of all parties are in.
	key      *keyexchange.PrivateKey
	announce wire.Announce

	session [32]byte             // the configuration's digest during set-up
	chains  []*keyexchange.Chain // by party, nil for self; nil during set-up
	last    uint64               // the last round that was begun, 0 for none
	begun   *wire.Begin          // of round last, until it is submitted
}

// NewClient makes the party of the given identity, with a fresh key for the
// session from random (nil: crypto/rand). It fails with [ErrConfig] or, if the
// roster does not have the identity, [ErrIdentity].
func NewClient(config *Config, identity crypto.Signer, random io.Reader) (*Client, error) {
	own, err := config.clone()
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
	key, err := keyexchange.GenerateKey(random)
	if err != nil {
		return nil, err
	}
	offered, err := key.Public()
	if err != nil {
		return nil, err
	}
	c := &Client{config: own, self: self, key: key, session: own.digest()}
	signature, err := keyexchange.SignKey(identity, c.session, self, offered)
	if err != nil {
		return nil, err
	}
	c.announce = wire.Announce{Key: offered, Signature: signature}
	return c, nil
}

// Party returns the client's own roster index.
func (c *Client) Party() int { return c.self }

// Announce returns the client's first message: its signed key. It is the same
// whenever it is asked for.
func (c *Client) Announce() []byte {
	h := wire.Header{Type: wire.TypeAnnounce, Session: c.config.digest(), Sender: uint32(c.self)}
	return c.announce.Append(h.Append(nil))
}

// Receive takes one message of the server. If there is something to answer at
// once, it returns the answer, to be sent to the server. After a message that
// begins a round, [Client.Due] is true and the next step is [Client.Submit].
//
// A message that is refused, with one of the package's errors, changes nothing.
func (c *Client) Receive(message []byte) (answer []byte, err error) {
	if len(message) > c.config.MaxMessage() {
		return nil, ErrOversized
	}
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		return nil, err
	}
	switch h.Type {
	case wire.TypeKeys, wire.TypeBegin:
	default:
		return nil, fmt.Errorf("%w: %d", ErrType, h.Type)
	}
	if h.Sender != wire.Server {
		return nil, ErrSender
	}
	if h.Type == wire.TypeKeys {
		return nil, c.receiveKeys(h, body)
	}
	return nil, c.receiveBegin(h, body)
}

// receiveKeys checks all signed keys, makes the chains, and forgets the private
// key.
func (c *Client) receiveKeys(h wire.Header, body []byte) error {
	if h.Session != c.config.digest() {
		return ErrSession
	}
	if c.chains != nil {
		return fmt.Errorf("%w: the keys are in", ErrPhase)
	}
	if h.Round != 0 {
		return fmt.Errorf("%w: set-up is round 0", ErrEncoding)
	}
	roster := c.config.Roster
	keys, err := wire.ParseKeys(body, roster.Len())
	if err != nil {
		return err
	}
	if keys[c.self] != c.announce {
		return ErrOwnKey
	}
	session := sessionID(h.Session, body)
	chains := make([]*keyexchange.Chain, len(keys))
	for i := range keys {
		if i == c.self {
			continue
		}
		key, err := keyexchange.ParsePublicKey(keys[i].Key[:])
		if err == nil {
			err = keyexchange.VerifyKey(roster, h.Session, i, key, &keys[i].Signature)
		}
		if err == nil {
			chains[i], err = c.key.NewChain(session, roster, c.self, i, key)
		}
		if err != nil {
			eraseChains(chains)
			return partyError(roster, i, err)
		}
	}
	c.session, c.chains = session, chains
	c.key.Erase()
	return nil
}

// receiveBegin notes that a round has begun. A round that was begun earlier and
// not submitted is given up.
func (c *Client) receiveBegin(h wire.Header, body []byte) error {
	if c.chains == nil {
		return fmt.Errorf("%w: the keys are not in", ErrPhase)
	}
	if h.Session != c.session {
		return ErrSession
	}
	switch {
	case h.Round == c.last && c.last != 0:
		return fmt.Errorf("%w: round %d", ErrReplay, h.Round)
	case h.Round <= c.last:
		return fmt.Errorf("%w: round %d after round %d", ErrStale, h.Round, c.last)
	case h.Round-c.last-1 > c.config.maxSkip():
		return fmt.Errorf("%w: round %d after round %d, at most %d may be missed", ErrSkip, h.Round, c.last, c.config.maxSkip())
	}
	begin, err := wire.ParseBegin(body, c.config.Roster.Len())
	if err != nil {
		return err
	}
	if missing := begin.Participants.Missing(); missing != nil {
		return partyError(c.config.Roster, missing[0], ErrParticipants)
	}
	c.last, c.begun = h.Round, begin
	return nil
}

// Due reports whether a round has begun that waits for this party's input, and
// which.
func (c *Client) Due() (round uint64, due bool) { return c.last, c.begun != nil }

// Submit masks the input for the round that has begun and returns the message
// that carries it; the keys that masked it are erased. values has one slice per
// segment of the layout, each value below 2^b of its segment. broadcast is what
// the server sent to everybody for this round and this input was made from,
// such as the model (nil if there is none).
//
// It fails with [ErrPhase] if no round waits, [ErrBroadcast], [ErrLength] or
// [ErrRange]; the round then still waits.
func (c *Client) Submit(broadcast []byte, values ...[]uint64) ([]byte, error) {
	if c.begun == nil {
		return nil, fmt.Errorf("%w: no round waits for an input", ErrPhase)
	}
	if broadcastDigest(broadcast) != c.begun.Broadcast {
		return nil, ErrBroadcast
	}
	v, err := masking.FromValues(c.config.Layout, values...)
	if err != nil {
		return nil, err
	}
	context := roundContext(c.session, c.last, c.begun)
	for peer, chain := range c.chains {
		if chain == nil {
			continue
		}
		// Begin refuses rounds behind the chain.
		if err := chain.Skip(c.last); err != nil {
			return nil, err
		}
		secret := chain.Next()
		seed := masking.Seed(secret.MaskSeed(context))
		v.MaskPair(&seed, c.self, peer)
		clear(secret[:])
		clear(seed[:])
	}
	c.begun = nil
	h := wire.Header{Type: wire.TypeMasked, Session: c.session, Round: c.last, Sender: uint32(c.self)}
	return v.AppendPacked(h.Append(make([]byte, 0, wire.HeaderSize+c.config.Layout.PackedSize()))), nil
}

// Erase forgets all keys, best effort. The client must not be used again.
func (c *Client) Erase() {
	c.key.Erase()
	eraseChains(c.chains)
}

func eraseChains(chains []*keyexchange.Chain) {
	for _, chain := range chains {
		if chain != nil {
			chain.Erase()
		}
	}
}
