package textbook

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/shamir"
)

// Client is one party of a session. What it holds is exported for colluders and
// thieves.
type Client struct {
	Terms   *Terms
	Self    int
	Session [32]byte
	Private *keyexchange.PrivateKey // of the session
	Chains  map[int]*keyexchange.Chain
	Last    uint64       // no round up to this one can begin any more
	Upload  *wire.Upload // the last that was made
	Open    *Exchange    // round Last, while it lasts

	identity crypto.Signer
	random   io.Reader
	without  Defence
	announce wire.Announce
}

// Phase is how far a client has come in a round.
type Phase int

// The phases, B, M and G of §11.1, and what comes after.
const (
	Begun Phase = iota
	Submitted
	Signed
	Over
)

// Exchange holds what a client keeps of the round that it is in.
type Exchange struct {
	Phase        Phase
	Broadcast    [32]byte
	Participants wire.Set
	Context      [32]byte
	Near         []int // the other participants

	// With recovery, by the position in Near.
	Channels  []*keyexchange.Channels
	Recovery  []*[32]byte // shares of recovery keys; nil where one did not open
	Survivors wire.Set
	Sealed    []wire.SealedShare
}

// NewClient makes a party that lacks some defences. It fails as
// [protocol.NewClient] does.
func NewClient(
	config *protocol.Config, identity crypto.Signer, random io.Reader, without Defence,
) (*Client, error) {
	terms, err := NewTerms(config, without)
	if err != nil {
		return nil, err
	}
	public, _ := identity.Public().(ed25519.PublicKey)
	self, ok := terms.Roster.Index(public)
	if !ok {
		return nil, protocol.ErrIdentity
	}
	source := random
	if without.has(FreshKey) {
		seed := sha256.Sum256(public) // the same in every session
		source = bytes.NewReader(seed[:])
	}
	key, err := keyexchange.GenerateKey(source)
	if err != nil {
		return nil, err
	}
	offered, err := key.Public()
	if err != nil {
		return nil, err
	}
	signature, err := keyexchange.SignKey(identity, terms.Digest, self, offered, nil)
	if err != nil {
		return nil, err
	}
	return &Client{
		Terms:    terms,
		Self:     self,
		Session:  terms.Digest,
		Private:  key,
		identity: identity,
		random:   random,
		without:  without,
		announce: wire.Announce{Key: offered, Signature: signature},
	}, nil
}

// Announce returns the signed key (§9.4).
func (c *Client) Announce() []byte {
	return c.announce.Append(c.header(wire.TypeAnnounce, c.Terms.Digest, 0))
}

func (c *Client) header(kind wire.Type, session [32]byte, round uint64) []byte {
	h := wire.Header{Type: kind, Session: session, Round: round, Sender: uint32(c.Self)}
	return h.Append(nil)
}

// Due reports whether a round waits for an input, and which.
func (c *Client) Due() (round uint64, due bool) {
	return c.Last, c.Open != nil && c.Open.Phase == Begun
}

// Receive takes one message of the server (§11.1).
func (c *Client) Receive(message []byte) ([]byte, error) {
	h, body, err := readHeader(c.without, c.Terms.maxMessage(), message)
	if err != nil {
		return nil, err
	}
	receive, known := map[wire.Type]func(wire.Header, []byte) ([]byte, error){
		wire.TypeKeys:        c.receiveKeys,
		wire.TypeBegin:       c.receiveBegin,
		wire.TypeInvite:      c.receiveInvite,
		wire.TypeSurvivors:   c.receiveSurvivors,
		wire.TypeCertificate: c.receiveCertificate,
	}[h.Type]
	switch {
	case !known, h.Type > wire.TypeMasked && !c.Terms.Recovery:
		return nil, protocol.ErrType
	case h.Sender != wire.ServerIndex && !c.without.has(Strict):
		return nil, protocol.ErrSender
	case h.Type != wire.TypeKeys && c.Chains == nil, h.Type == wire.TypeKeys && c.Chains != nil:
		return nil, protocol.ErrPhase
	case h.Session != c.sessionOf(h.Type) && !c.without.has(Current):
		return nil, protocol.ErrSession
	}
	return receive(h, body)
}

// sessionOf returns the session that messages of a type name (§9.1).
func (c *Client) sessionOf(kind wire.Type) [32]byte {
	if kind.SetUp() {
		return c.Terms.Digest
	}
	return c.Session
}

// entriesOf returns the entries of a list of keys by their owners.
func entriesOf(keys *wire.Keys) map[int]wire.KeyEntry {
	entries := make(map[int]wire.KeyEntry)
	for i := range keys.Announced.All() {
		entries[i] = keys.Entries[len(entries)]
	}
	return entries
}

func (c *Client) receiveKeys(h wire.Header, body []byte) ([]byte, error) {
	if h.Round != 0 && !c.without.has(Strict) {
		return nil, protocol.ErrEncoding
	}
	keys, err := readKeys(c.without, body, c.Terms.Parties)
	if err != nil {
		return nil, err
	}
	members := keys.Announced
	switch {
	case !members.Has(c.Self):
		return nil, protocol.ErrMembers
	case members.Len() < c.Terms.MinMembers && !c.without.has(Members):
		return nil, protocol.ErrTooFew
	}
	terms, err := c.Terms.Among(members, c.without)
	if err != nil {
		return nil, err
	}
	entries := entriesOf(keys)
	own := wire.KeyEntry{Key: c.announce.Key, Signature: c.announce.Signature}
	if entries[c.Self] != own && !c.without.has(OwnKey) {
		return nil, protocol.ErrOwnKey
	}
	session := SessionID(c.Terms.Digest, keys)
	chains := make(map[int]*keyexchange.Chain)
	for _, i := range terms.Others(c.Self) {
		entry := entries[i]
		key, err := keyexchange.ParsePublicKey(entry.Key[:])
		if err == nil && !c.without.has(KeySignatures) {
			err = keyexchange.VerifyKey(
				c.Terms.Roster, c.Terms.Digest, i, key, nil, &entry.Signature)
		}
		if err == nil {
			chains[i], err = c.Private.NewChain(session, c.Terms.Roster, c.Self, i, key)
		}
		if err != nil {
			return nil, &protocol.PartyError{Party: i, Name: c.Terms.Roster.Name(i), Err: err}
		}
	}
	next := *c
	next.Session, next.Chains, next.Terms = session, chains, terms
	answer, err := next.uploadAfter(0)
	if err != nil {
		return nil, err
	}
	*c = next
	if !c.without.has(KeyErased) {
		c.Private.Erase()
	}
	return answer, nil
}

// keysOf returns what this party shares with a peer in a round, which is not over.
func (c *Client) keysOf(
	peer int, round uint64,
) (*keyexchange.Channels, keyexchange.PairSecret, error) {
	channels, secret, err := c.Chains[peer].Ahead(round)
	if err == nil && c.without.has(Reseeded) {
		_, secret, err = c.Chains[peer].Ahead(c.Chains[peer].Round()) // what there was at first
	}
	return channels, secret, err
}

// moveChains brings chains up to a round at least.
func (c *Client) moveChains(round uint64) error {
	if c.without.has(Ratchet | Reseeded) {
		return nil
	}
	for _, chain := range c.Chains {
		if err := chain.Skip(round); err != nil {
			return err
		}
	}
	return nil
}

// uploadAfter returns the recovery material for the round after the given one,
// made once a round (§6.5).
func (c *Client) uploadAfter(round uint64) ([]byte, error) {
	if !c.Terms.Recovery {
		return nil, nil
	}
	if c.Upload == nil || c.Upload.Round <= round {
		upload, err := c.newUpload(round + 1)
		if err != nil {
			return nil, err
		}
		c.Upload = upload
	}
	return c.Upload.Append(c.header(wire.TypeUpload, c.Session, round)), nil
}

func (c *Client) newUpload(round uint64) (*wire.Upload, error) {
	secret, err := shamir.GenerateSecret(c.random)
	if err != nil {
		return nil, err
	}
	near := c.Terms.Others(c.Self)
	channels := make([]*keyexchange.Channels, len(near))
	var pairs []byte
	for i, peer := range near {
		var pair keyexchange.PairSecret
		if channels[i], pair, err = c.keysOf(peer, round); err != nil {
			return nil, err
		}
		pairs = append(pairs, pair[:]...)
	}
	nonce, err := keyexchange.GenerateNonce(c.random)
	if err != nil {
		return nil, err
	}
	key := blobKey(secret)
	blob, err := keyexchange.Seal(&nonce, &key, pairs, blobData(c.Session, round, c.Self))
	if err != nil {
		return nil, err
	}
	const purpose = keyexchange.RecoveryShare
	shares, err := c.sealShares(&nonce, secret, near, channels, purpose, round,
		HoldersDigest(c.Terms.Members))
	if err != nil {
		return nil, err
	}
	return &wire.Upload{
		Round:      round,
		Commitment: Commitment(purpose, c.Session, round, c.Self, secret),
		Blob:       blob,
		Shares:     shares,
	}, nil
}

// sealShares shares a secret among holders (§6.2, §6.3).
func (c *Client) sealShares(
	nonce *keyexchange.Nonce, secret shamir.Secret, holders []int,
	channels []*keyexchange.Channels, purpose keyexchange.Purpose, round uint64,
	binding [32]byte,
) ([]wire.SealedShare, error) {
	var indices []uint32
	for _, holder := range holders {
		indices = append(indices, Index(holder))
	}
	shares, err := shamir.Split(c.random, secret, c.Terms.Threshold, indices)
	if err != nil {
		return nil, err
	}
	sealed := make([]wire.SealedShare, len(holders))
	for i, holder := range holders {
		data := ShareData(purpose, c.Session, round, c.Self, holder, binding)
		key := channels[i].Key(purpose, c.Self, holder)
		box, err := keyexchange.Seal(nonce, key, shares[i].Value[:], data)
		if err != nil {
			return nil, err
		}
		sealed[i] = wire.SealedShare(box)
	}
	return sealed, nil
}

// OpenShare opens a share that an owner sealed for this party; nil if it does not
// open.
func (c *Client) OpenShare(
	sealed wire.SealedShare, owner int, channels *keyexchange.Channels,
	purpose keyexchange.Purpose, binding [32]byte,
) *[32]byte {
	data := ShareData(purpose, c.Session, c.Last, owner, c.Self, binding)
	share, err := keyexchange.Open(channels.Key(purpose, owner, c.Self), sealed[:], data)
	if err != nil {
		return nil
	}
	if _, err := shamir.ParseSecret(share); err != nil {
		return nil
	}
	return (*[32]byte)(share)
}

// Submit masks an input (§8.4) for the round that has begun.
func (c *Client) Submit(broadcast []byte, values ...[]uint64) ([]byte, error) {
	r := c.Open
	if r == nil || r.Phase != Begun && !c.without.has(Ordered) {
		return nil, protocol.ErrPhase
	}
	if BroadcastDigest(broadcast) != r.Broadcast && !c.without.has(BroadcastChecked) {
		return nil, protocol.ErrBroadcast
	}
	v, err := masking.FromValues(c.Terms.Layout, values...)
	if err != nil {
		return nil, err
	}
	var masked wire.Masked
	if c.Terms.Recovery {
		const purpose = keyexchange.SelfMaskShare
		secret, err := shamir.GenerateSecret(c.random)
		if err != nil {
			return nil, err
		}
		masked.Commitment = Commitment(purpose, c.Session, c.Last, c.Self, secret)
		nonce, err := keyexchange.GenerateNonce(c.random)
		if err != nil {
			return nil, err
		}
		masked.Nonce = nonce
		masked.Shares, err = c.sealShares(
			&nonce, secret, r.Near, r.Channels, purpose, c.Last, r.Context)
		if err != nil {
			return nil, err
		}
		if masked.Next, err = c.newUpload(c.Last + 1); err != nil {
			return nil, err
		}
		if !c.without.has(SelfMask) {
			seed := SelfMaskSeed(secret)
			v.AddMask(&seed)
		}
	}
	for _, peer := range r.Near {
		_, secret, err := c.keysOf(peer, c.Last)
		if err != nil {
			return nil, fmt.Errorf("textbook: party %d: %w", peer, err)
		}
		seed := masking.Seed(secret.MaskSeed(r.Context))
		v.MaskPair(&seed, c.Self, peer)
	}
	if err := c.moveChains(c.Last + 1); err != nil {
		return nil, err
	}
	masked.Packed = v.AppendPacked(nil)
	h := c.header(wire.TypeMasked, c.Session, c.Last)
	if !c.Terms.Recovery {
		c.Open = nil
		return append(h, masked.Packed...), nil
	}
	r.Phase, c.Upload = Submitted, masked.Next
	return masked.Append(h), nil
}
