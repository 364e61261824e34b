package protocol

import (
	"context"
	"crypto"
	"fmt"
	"io"
	"slices"

	"github.com/hushsum/hushsum/internal/cores"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// This file has how a party sets a session up with the others (SPEC.md §4).

// NewClient makes the party of the given identity, with fresh keys for the session from random
// (nil: crypto/rand). The party keeps reading from random in later rounds. It fails with
// [ErrConfig] or, if the identity is not in the roster, [ErrIdentity].
func NewClient(config *Config, identity crypto.Signer, random io.Reader) (*Client, error) {
	c, err := newClient(config, identity, random)
	if err != nil {
		return nil, err
	}
	if c.key, err = keyexchange.GenerateKey(random); err != nil {
		return nil, err
	}
	if c.announce.Key, err = c.key.Public(); err != nil {
		return nil, err
	}
	if c.config.hybrid {
		if c.decapsulation, err = keyexchange.GenerateDecapsulationKey(random); err != nil {
			return nil, err
		}
		if c.announce.Encapsulation, err = c.decapsulation.Public(); err != nil {
			return nil, err
		}
	}
	entry := keyEntry(&c.announce)
	c.announce.Signature, err = keyexchange.SignKey(identity, c.session, c.self, entry.Key,
		c.config.signedDigest(&entry))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// keyEntry returns the entry of Keys for an announcement.
func keyEntry(a *wire.Announce) wire.KeyEntry {
	e := wire.KeyEntry{Key: a.Key, Signature: a.Signature}
	if a.Encapsulation != nil {
		e.Digest = keyexchange.EncapsulationDigest(a.Encapsulation)
	}
	return e
}

// signedDigest returns the digest of its encapsulation key that a party signs.
func (c *settled) signedDigest(e *wire.KeyEntry) *[32]byte {
	if !c.hybrid {
		return nil
	}
	return &e.Digest
}

// Announce returns the client's first message: its signed keys. Every call returns the same
// message.
func (c *Client) Announce() []byte {
	return c.announce.Append(c.header(wire.TypeAnnounce, c.config.digest, 0))
}

func (c *Client) header(kind wire.Type, session [32]byte, round uint64) []byte {
	h := wire.Header{Type: kind, Session: session, Round: round, Sender: uint32(c.self)}
	return h.Append(nil)
}

// Enrolled returns the parties of the session, in ascending order, nil during set-up.
func (c *Client) Enrolled() []int {
	if c.stage != stageReady {
		return nil
	}
	return append([]int(nil), c.topology.list...)
}

// receiveKeys checks the signed keys of those that may become peers, and agrees
// on a secret with each of them, after which the private key is forgotten. With
// classical keys that ends set-up; with hybrid keys the answer carries the
// ciphertexts for higher peers.
func (c *Client) receiveKeys(h wire.Header, body []byte) ([]byte, error) {
	if c.stage != stageAnnounce {
		return nil, fmt.Errorf("%w: the keys are in", ErrPhase)
	}
	if h.Round != 0 {
		return nil, fmt.Errorf("%w: set-up is round 0", ErrEncoding)
	}
	var t *topology
	keys, err := wire.ParseKeys(body, c.config.parties, c.config.hybrid,
		func(keys *wire.Keys) (int, error) {
			if err := c.checkMembers(keys.Announced); err != nil {
				return 0, err
			}
			t = newTopology(c.config, keysDigest(c.config.digest, keys), keys.Announced, c.self)
			if !c.config.hybrid {
				return 0, nil
			}
			return len(t.higher(c.self)), nil
		})
	if err != nil {
		return nil, err
	}
	entries := make(map[int]*wire.KeyEntry)
	for i := range keys.Announced.All() {
		entries[i] = &keys.Entries[len(entries)]
	}
	if *entries[c.self] != keyEntry(&c.announce) {
		return nil, ErrOwnKey
	}
	agreed, ciphertexts, err := c.agree(t, entries, keys.Encapsulation)
	if err != nil {
		return nil, err
	}
	ready := *c
	ready.topology, ready.agreed = t, agreed
	var answer []byte
	if c.config.hybrid {
		ready.stage = stageEncapsulate
		answer, err = ready.encapsulated(ciphertexts)
	} else {
		answer, err = ready.join(t.announced)
	}
	if err != nil {
		eraseAgreed(agreed)
		return nil, err
	}
	*c = ready
	c.key.Erase()
	return answer, nil
}

// checkMembers refuses a set of parties that no session may be among.
func (c *Client) checkMembers(members wire.Set) error {
	if !members.Has(c.self) {
		return partyError(c.config.Roster, c.self, ErrMembers)
	}
	if n := members.Len(); n < c.config.minMembers {
		return fmt.Errorf("%w: a session among %d, the configuration wants %d", ErrTooFew, n,
			c.config.minMembers)
	}
	return nil
}

// agree checks what each possible peer announced, and makes a secret with it, on all cores. It
// returns the ciphertexts for higher peers, whose encapsulation keys are given. Of several peers
// whose keys are refused the error names the lowest.
func (c *Client) agree(
	t *topology, entries map[int]*wire.KeyEntry, encapsulation [][]byte,
) (map[int]*keyexchange.Agreement, [][]byte, error) {
	peers := t.peers(c.self)
	lower := len(peers) // those that this party does not encapsulate to
	if c.config.hybrid {
		lower, _ = slices.BinarySearch(peers, c.self)
	}
	made := make([]*keyexchange.Agreement, len(peers))
	keys := make([]*keyexchange.EncapsulationKey, len(peers))
	err := c.eachPeer(peers, func(k int) (err error) {
		var ek []byte
		if k >= lower {
			ek = encapsulation[k-lower]
		}
		i := peers[k]
		made[k], keys[k], err = c.agreeWith(i, entries[i], ek)
		return err
	})
	agreed := make(map[int]*keyexchange.Agreement)
	for k, a := range made {
		if a != nil {
			agreed[peers[k]] = a
		}
	}
	var ciphertexts [][]byte
	for k := lower; k < len(peers) && err == nil; k++ { // one by one, for they draw from random
		ciphertext, failed := agreed[peers[k]].Encapsulate(keys[k], c.random)
		ciphertexts = append(ciphertexts, ciphertext)
		if failed != nil {
			err = partyError(c.config.Roster, peers[k], failed)
		}
	}
	if err != nil {
		eraseAgreed(agreed)
		return nil, nil, err
	}
	return agreed, ciphertexts, nil
}

// eachPeer does work for all indices of peers, on all cores. Its error is that of the first peer
// that fails, and names it.
func (c *Client) eachPeer(peers []int, work func(k int) error) error {
	return cores.Each(context.Background(), len(peers), func(k int) error {
		if err := work(k); err != nil {
			return partyError(c.config.Roster, peers[k], err)
		}
		return nil
	}, nil)
}

// agreeWith does so with one peer; ek is its encapsulation key, which is parsed, if it is a higher
// one.
func (c *Client) agreeWith(
	peer int, entry *wire.KeyEntry, ek []byte,
) (*keyexchange.Agreement, *keyexchange.EncapsulationKey, error) {
	key, err := keyexchange.ParsePublicKey(entry.Key[:])
	if err != nil {
		return nil, nil, err
	}
	if err := keyexchange.VerifyKey(c.config.Roster, c.config.digest, peer, key,
		c.config.signedDigest(entry), &entry.Signature); err != nil {
		return nil, nil, err
	}
	if ek != nil && keyexchange.EncapsulationDigest(ek) != entry.Digest {
		return nil, nil, fmt.Errorf("%w: the encapsulation key is not the one that was signed",
			ErrSignature)
	}
	a, err := c.key.Agree(key)
	if err != nil || ek == nil {
		return a, nil, err
	}
	parsed, err := keyexchange.ParseEncapsulationKey(ek)
	if err != nil {
		a.Erase()
		return nil, nil, err
	}
	return a, parsed, nil
}

// encapsulated makes the message that carries ciphertexts to higher peers. All of them are signed
// at once: an adversary that has recorded the session and breaks X25519 later must not have been
// able to put a ciphertext of its own in the place of one.
func (c *Client) encapsulated(ciphertexts [][]byte) ([]byte, error) {
	leaves := make([][32]byte, len(ciphertexts))
	for k, to := range c.topology.higher(c.self) {
		leaves[k] = leafHash(to, ciphertexts[k])
	}
	m := wire.Encapsulate{Ciphertexts: ciphertexts}
	var err error
	m.Signature, err = keyexchange.Sign(c.identity, labels.Ciphertexts,
		ciphertextsStatement(c.topology.keys, c.self, treeRoot(leaves)))
	if err != nil {
		return nil, err
	}
	return m.Append(c.header(wire.TypeEncapsulate, c.config.digest, 0)), nil
}

// ciphertextsStatement returns the bytes that a party signs of its ciphertexts.
func ciphertextsStatement(keys [32]byte, party int, root [32]byte) []byte {
	return append(append(keys[:], uint32Bytes(party)...), root[:]...)
}

// receiveMembers learns who the session is among, takes the ciphertexts of lower
// peers, makes the chains, and forgets everything that they were made from. With
// recovery it answers with the upload for the first round.
func (c *Client) receiveMembers(h wire.Header, body []byte) ([]byte, error) {
	if c.stage != stageEncapsulate {
		return nil, fmt.Errorf("%w: members are due after the keys", ErrPhase)
	}
	if h.Round != 0 {
		return nil, fmt.Errorf("%w: set-up is round 0", ErrEncoding)
	}
	t := c.topology
	var lower []int
	m, err := wire.ParseMembers(body, c.config.parties, func(members wire.Set) ([]int, error) {
		if err := c.checkMembers(members); err != nil {
			return nil, err
		}
		if !members.Within(t.announced) {
			return nil, fmt.Errorf("%w: a party did not announce a key", ErrMembers)
		}
		var lengths []int
		lower = members.Of(t.lower(c.self))
		for _, i := range lower {
			at, of := t.place(i, c.self)
			lengths = append(lengths, pathLength(at, of))
		}
		return lengths, nil
	})
	if err != nil {
		return nil, err
	}
	// The agreements stay as they are until nothing can fail any more.
	completed := make(map[int]*keyexchange.Agreement)
	for i, a := range c.agreed {
		completed[i] = a.Clone()
	}
	if err := c.eachPeer(lower, func(k int) error {
		return c.takeCiphertext(completed[lower[k]], lower[k], &m.Lower[k])
	}); err != nil {
		eraseAgreed(completed)
		return nil, err
	}
	ready := *c
	topology := *t
	ready.topology, ready.agreed = &topology, completed
	answer, err := ready.join(m.Members)
	if err != nil {
		eraseAgreed(completed)
		return nil, err
	}
	c.eraseSetUp()
	*c = ready
	return answer, nil
}

// place returns the position of a higher peer among those that a party
// encapsulates to, and how many they are.
func (t *topology) place(party, peer int) (at, of int) {
	higher := t.higher(party)
	at, _ = slices.BinarySearch(higher, peer)
	return at, len(higher)
}

// takeCiphertext checks that a lower peer signed a ciphertext, and decapsulates it.
func (c *Client) takeCiphertext(
	a *keyexchange.Agreement, peer int, e *wire.SignedCiphertext,
) error {
	at, of := c.topology.place(peer, c.self)
	root := climb(leafHash(c.self, e.Ciphertext), at, of, e.Path)
	statement := ciphertextsStatement(c.topology.keys, peer, root)
	if err := keyexchange.Verify(c.config.Roster.Key(peer), labels.Ciphertexts, statement,
		&e.Signature); err != nil {
		return err
	}
	return a.Decapsulate(c.decapsulation, e.Ciphertext)
}

// join fixes the session among the members: it makes the chains, and erases what
// they were made from.
func (c *Client) join(members wire.Set) ([]byte, error) {
	peers := members.Of(c.topology.peers(c.self))
	if t := c.config.terms(members.Len()); len(peers) < t.threshold {
		return nil, fmt.Errorf("%w: %d of this party's neighbours are in the session, it needs %d",
			ErrTooFew, len(peers), t.threshold)
	}
	c.session = sessionID(c.topology.keys, members)
	c.topology.join(c.session, members)
	c.stage = stageReady
	c.chains = make(map[int]*keyexchange.Chain)
	for _, i := range peers {
		c.chains[i] = c.agreed[i].Chain(c.session, c.config.Roster, c.self, i)
	}
	answer, err := c.uploadAfter(0, members)
	if err != nil {
		eraseChains(c.chains)
		return nil, err
	}
	c.eraseSetUp()
	return answer, nil
}

// eraseSetUp overwrites or forgets what is secret in set-up.
func (c *Client) eraseSetUp() {
	if c.key != nil {
		c.key.Erase()
	}
	if c.decapsulation != nil {
		c.decapsulation.Erase()
	}
	eraseAgreed(c.agreed)
	c.agreed = nil
}

func eraseAgreed(agreed map[int]*keyexchange.Agreement) {
	for _, a := range agreed {
		a.Erase()
	}
}
