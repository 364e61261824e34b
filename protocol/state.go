package protocol

import (
	"crypto"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// Sessions can be saved after every step and loaded in another process. A saved
// state is sealed under the caller's key, for the party, the configuration and the
// version of labels.State, which changes with the structures below: whatever opens
// was made by this Save. Save, then send what the step returned; after a crash load, and
// send [Client.Output] again. Loading an older state than the last one saved
// undoes the erasure of keys and may use a round twice: do not.

// clientState holds the fields of a client that Save saves.
type clientState struct {
	Stage         stage
	Key           [keyexchange.KeySize]byte              // before Keys
	Decapsulation [keyexchange.DecapsulationKeySize]byte // before Members, with hybrid keys
	Announce      []byte
	KeysDigest    [32]byte // from Keys on, with what follows
	Announced     []byte
	Agreed        []agreedState // before Members
	Session       [32]byte
	Members       []byte // once they are known, with what follows
	Chains        []chainState
	Last          uint64
	Upload        []byte // empty where there is none
	Holders       []byte // the same
	Open          *roundState
	Output        []byte
	Kept          bool
}

type agreedState struct {
	Peer      int
	Agreement [keyexchange.AgreementSize]byte
}

type chainState struct {
	Peer  int
	Chain [keyexchange.ChainSize]byte
}

// roundState holds the saved fields of a client's round.
type roundState struct {
	Phase        phase
	Broadcast    [32]byte
	Participants []byte
	Holders      []byte
	Survivors    []byte // empty before they are known
	Context      [32]byte
	Near         []nearState
	Sealed       []wire.SealedShare
}

// nearState holds the saved fields of a neighbour. Without recovery it has the
// neighbour's index alone.
type nearState struct {
	Peer     int
	Channels [keyexchange.ChannelsSize]byte
	Recovery [32]byte
	Held     bool // the recovery share opened
}

// Save returns the client's state sealed under key, which the caller makes
// (keyexchange.GenerateSealKey) and keeps. It fails only with [ErrRandom].
//
// Keep the newest state only. A client that is loaded from an older state and submits again puts
// two inputs under the same keys: without recovery the server learns their difference. LoadClient
// cannot notice an old state.
func (c *Client) Save(key *keyexchange.SealKey) (sealed []byte, err error) {
	erasing(func() { sealed, err = c.save(key) })
	return sealed, err
}

func (c *Client) save(key *keyexchange.SealKey) ([]byte, error) {
	s := clientState{
		Stage:    c.stage,
		Announce: c.announce.Append(nil),
		Session:  c.session,
		Last:     c.last,
		Holders:  c.holders.Bytes(),
		Output:   c.output,
		Kept:     c.kept,
	}
	if c.stage == stageAnnounce {
		if _, err := c.key.AppendBinary(s.Key[:0]); err != nil {
			return nil, err
		}
	}
	if c.stage != stageReady && c.decapsulation != nil {
		if _, err := c.decapsulation.AppendBinary(s.Decapsulation[:0]); err != nil {
			return nil, err
		}
	}
	if c.topology != nil {
		s.KeysDigest, s.Announced, s.Members = c.topology.keys, c.topology.announced.Bytes(),
			c.topology.members.Bytes()
	}
	for _, peer := range sortedKeys(c.agreed) {
		saved := agreedState{Peer: peer}
		if _, err := c.agreed[peer].AppendBinary(saved.Agreement[:0]); err != nil {
			return nil, err
		}
		s.Agreed = append(s.Agreed, saved)
	}
	for _, peer := range sortedKeys(c.chains) {
		saved := chainState{Peer: peer}
		if _, err := c.chains[peer].AppendBinary(saved.Chain[:0]); err != nil {
			return nil, err
		}
		s.Chains = append(s.Chains, saved)
	}
	if c.upload != nil {
		s.Upload = c.upload.Append(nil)
	}
	if r := c.open; r != nil {
		s.Open = &roundState{
			Phase:        r.phase,
			Broadcast:    r.broadcast,
			Participants: r.participants.Bytes(),
			Holders:      r.holders.Bytes(),
			Survivors:    r.survivors.Bytes(),
			Context:      r.context,
			Sealed:       r.sealed,
		}
		for i, peer := range r.neighbours {
			near := nearState{Peer: peer}
			if c.config.recovery {
				if _, err := r.channels[i].AppendBinary(near.Channels[:0]); err != nil {
					return nil, err
				}
				if near.Held = r.recovery[i] != nil; near.Held {
					near.Recovery = *r.recovery[i]
				}
			}
			s.Open.Near = append(s.Open.Near, near)
		}
	}
	return sealGob(c.random, key, stateData(c.config, uint32(c.self)), &s)
}

// LoadClient restores the client that [Client.Save] saved under key, with the same configuration
// and identity. Send its [Client.Output] after loading. See Save for the effect of an old state. It
// fails with [ErrState], [ErrConfig] or [ErrIdentity].
func LoadClient(
	config *Config, identity crypto.Signer, random io.Reader, key *keyexchange.SealKey, state []byte,
) (client *Client, err error) {
	erasing(func() { client, err = loadClient(config, identity, random, key, state) })
	return client, err
}

func loadClient(
	config *Config, identity crypto.Signer, random io.Reader, key *keyexchange.SealKey, state []byte,
) (*Client, error) {
	c, err := newClient(config, identity, random)
	if err != nil {
		return nil, err
	}
	var s clientState
	if err := openGob(key, stateData(c.config, uint32(c.self)), state, &s); err != nil {
		return nil, err
	}
	if err := c.load(&s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	return c, nil
}

func (c *Client) load(s *clientState) error {
	announce, err := wire.ParseAnnounce(s.Announce, c.config.hybrid)
	if err != nil {
		return err
	}
	c.stage, c.announce, c.session, c.last, c.output = s.Stage, *announce, s.Session, s.Last, s.Output
	c.kept = s.Kept
	c.key = new(keyexchange.PrivateKey)
	if c.stage == stageAnnounce {
		if c.key, err = keyexchange.ParseKey(s.Key[:]); err != nil {
			return err
		}
	}
	if c.config.hybrid {
		c.decapsulation = new(keyexchange.DecapsulationKey)
	}
	if c.stage != stageReady && c.config.hybrid {
		if c.decapsulation, err = keyexchange.ParseDecapsulationKey(s.Decapsulation[:]); err != nil {
			return err
		}
	}
	if c.stage == stageAnnounce {
		return nil
	}
	announced, err := loadSet(s.Announced, c.config.parties)
	if err != nil {
		return err
	}
	c.topology = newTopology(c.config, s.KeysDigest, announced, c.self)
	if c.stage == stageEncapsulate {
		c.agreed = make(map[int]*keyexchange.Agreement)
		for _, a := range s.Agreed {
			if c.agreed[a.Peer], err = keyexchange.ParseAgreement(a.Agreement[:]); err != nil {
				return err
			}
		}
		return nil
	}
	members, err := loadSet(s.Members, c.config.parties)
	if err != nil {
		return err
	}
	c.topology.join(c.session, members)
	c.chains = make(map[int]*keyexchange.Chain)
	for _, chain := range s.Chains {
		if c.chains[chain.Peer], err = keyexchange.ParseChain(chain.Chain[:]); err != nil {
			return err
		}
	}
	if c.holders, err = loadSet(s.Holders, c.config.parties); err != nil {
		return err
	}
	if len(s.Upload) != 0 {
		if c.upload, err = wire.ParseUpload(s.Upload, c.topology.degree(c.self, c.holders)); err != nil {
			return err
		}
	}
	if s.Open != nil {
		c.open, err = loadRound(s.Open, c.config)
	}
	return err
}

func loadRound(s *roundState, config *settled) (*clientRound, error) {
	r := &clientRound{phase: s.Phase, broadcast: s.Broadcast, context: s.Context, sealed: s.Sealed}
	var err error
	if r.participants, err = loadSet(s.Participants, config.parties); err != nil {
		return nil, err
	}
	if r.holders, err = loadSet(s.Holders, config.parties); err != nil {
		return nil, err
	}
	r.terms = config.terms(r.holders.Len())
	if r.survivors, err = loadSet(s.Survivors, config.parties); err != nil {
		return nil, err
	}
	for _, near := range s.Near {
		r.neighbours = append(r.neighbours, near.Peer)
		if !config.recovery {
			continue
		}
		channels, err := keyexchange.ParseChannels(near.Channels[:])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrState, err)
		}
		r.channels = append(r.channels, channels)
		var share *[32]byte
		if near.Held {
			share = &near.Recovery
		}
		r.recovery = append(r.recovery, share)
	}
	return r, nil
}

// stateData binds a saved state to its configuration and its owner.
func stateData(config *settled, party uint32) []byte {
	d := hash(labels.State, config.digest[:], uint32Bytes(int(party)))
	return d[:]
}

// sealGob seals a state under key; data says whose it is.
func sealGob(
	random io.Reader, key *keyexchange.SealKey, data []byte, state any,
) ([]byte, error) {
	b, err := keyexchange.SealState(random, key, data, state)
	if err != nil && !errors.Is(err, ErrRandom) {
		err = fmt.Errorf("%w: %w", ErrState, err)
	}
	return b, err
}

// openGob reads what sealGob made.
func openGob(key *keyexchange.SealKey, data, box []byte, state any) error {
	if err := keyexchange.OpenState(key, data, box, state); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return nil
}

// loadSet reads a set, which is empty bytes where it had not been made yet.
func loadSet(b []byte, n int) (wire.Set, error) {
	if len(b) == 0 {
		return wire.Set{}, nil
	}
	set, err := wire.ParseSet(b, n)
	if err != nil {
		return wire.Set{}, fmt.Errorf("%w: %w", ErrState, err)
	}
	return set, nil
}

func uploadBytes(upload *wire.Upload) []byte {
	if upload == nil {
		return nil
	}
	return upload.Append(nil)
}

// loadUpload reads an upload, which is empty bytes where there is none.
func loadUpload(b []byte, degree int) (*wire.Upload, error) {
	if len(b) == 0 {
		return nil, nil
	}
	return wire.ParseUpload(b, degree)
}
