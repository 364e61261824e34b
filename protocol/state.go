package protocol

import (
	"bytes"
	"crypto"
	"encoding/gob"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// Sessions can be saved after every step and loaded in another process. A saved
// state is sealed under the caller's key, for the party, the configuration and the
// version of labelState, which changes with the structures below: whatever opens
// was made by this Save. Save, then send what the step returned; after a crash load, and
// send [Client.Output] again. Loading an older state than the last one saved
// undoes the erasure of keys and may use a round twice: do not.

// clientState is what Save saves of a client.
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
}

type agreedState struct {
	Peer      int
	Agreement [keyexchange.AgreementSize]byte
}

type chainState struct {
	Peer  int
	Chain [keyexchange.ChainSize]byte
}

// roundState is what a client keeps of the round that it is in.
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

// nearState is what a client keeps of a neighbour. Without recovery it is the
// neighbour alone.
type nearState struct {
	Peer     int
	Channels [keyexchange.ChannelsSize]byte
	Recovery [32]byte
	Held     bool // the recovery share opened
}

// Save returns the client's state sealed under key, which is the caller's to make
// (keyexchange.GenerateSealKey) and keep. It fails only with [ErrRandom].
//
// Keep the newest state only. A client that is loaded from an older one and submits
// again puts two inputs under the same keys: without recovery the server learns
// their difference. Loading does not notice.
func (c *Client) Save(key *keyexchange.SealKey) ([]byte, error) {
	s := clientState{
		Stage:    c.stage,
		Announce: c.announce.Append(nil),
		Session:  c.session,
		Last:     c.last,
		Holders:  c.holders.Bytes(),
		Output:   c.output,
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
	return sealState(c.random, key, c.config, uint32(c.self), &s)
}

// LoadClient makes the client again that [Client.Save] saved under key, with the
// same configuration and identity; what it has to send is [Client.Output]. See Save
// for what an old state does. It fails with [ErrState], [ErrConfig] or
// [ErrIdentity].
func LoadClient(
	config *Config, identity crypto.Signer, random io.Reader, key *keyexchange.SealKey, state []byte,
) (*Client, error) {
	c, err := newClient(config, identity, random)
	if err != nil {
		return nil, err
	}
	var s clientState
	if err := openSealed(key, c.config, uint32(c.self), state, &s); err != nil {
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

// serverState is what Save saves of a server.
type serverState struct {
	Stage         stage
	Announcements [][]byte // by party, empty where there is none
	Encapsulated  []byte
	Ciphertexts   [][]byte // by party, empty where there are none, before the members are fixed
	Members       []byte   // empty before they are fixed
	Pending       []pendingState
	Round         uint64
	Holders       []byte
	Uploads       [][]byte // by party, empty where there is none
	Excluded      []byte
	Doubts        [][2]int
	Included      []int
	Open          *openState
}

// pendingState is what ends set-up for a member that has not been heard of since.
type pendingState struct {
	Party   int
	Message []byte
}

// openState is what the server keeps of the round that is open.
type openState struct {
	Step         step
	Context      [32]byte
	Participants []byte
	Received     []byte
	Sum          []byte
	Survivors    []byte // empty before they are fixed
	Revealed     []byte // empty without recovery
	Signed       []byte
	Parties      []partyState // all of them, with recovery
}

type partyState struct {
	Material   []byte
	Commitment [32]byte
	Shares     []wire.SealedShare
	Reveal     []byte
}

// Save returns the server's state sealed under key, which keeps it from being
// changed: there is no long-term secret in it. It fails only
// with [ErrRandom].
func (s *Server) Save(key *keyexchange.SealKey) ([]byte, error) {
	out := serverState{
		Stage:        s.stage,
		Encapsulated: s.encapsulated.Bytes(),
		Round:        s.round,
		Holders:      s.holders.Bytes(),
		Excluded:     s.excluded.Bytes(),
		Doubts:       s.doubts.pairs(),
		Included:     s.included,
	}
	for i, upload := range s.uploads {
		out.Uploads = append(out.Uploads, uploadBytes(upload))
		var announcement, ciphertexts []byte
		if a := s.announcements[i]; a != nil {
			announcement = a.Append(nil)
		}
		if e := s.encapsulations[i]; e != nil {
			ciphertexts = e.Append(nil)
		}
		out.Announcements, out.Ciphertexts = append(out.Announcements, announcement),
			append(out.Ciphertexts, ciphertexts)
	}
	if s.stage == stageReady {
		out.Members = s.topology.members.Bytes()
	}
	for _, i := range sortedKeys(s.pending) {
		out.Pending = append(out.Pending, pendingState{i, s.pending[i]})
	}
	if r := s.open; r != nil {
		out.Open = &openState{
			Step:         r.step,
			Context:      r.context,
			Participants: r.participants.Bytes(),
			Received:     r.received.Bytes(),
			Sum:          r.sum.AppendPacked(nil),
			Survivors:    r.survivors.Bytes(),
			Revealed:     r.revealed.Bytes(),
			Signed:       r.signatures.Append(nil),
		}
		for i := range r.material {
			out.Open.Parties = append(out.Open.Parties, partyState{
				Material:   uploadBytes(r.material[i]),
				Commitment: r.commitments[i],
				Shares:     r.shares[i],
				Reveal:     r.revelations[i].Append(nil),
			})
		}
	}
	return sealState(nil, key, s.config, wire.ServerIndex, &out)
}

// LoadServer makes the server again that [Server.Save] saved under key, with the
// same configuration. It fails with [ErrState] or [ErrConfig].
func LoadServer(config *Config, key *keyexchange.SealKey, state []byte) (*Server, error) {
	s, err := NewServer(config)
	if err != nil {
		return nil, err
	}
	var in serverState
	if err := openSealed(key, s.config, wire.ServerIndex, state, &in); err != nil {
		return nil, err
	}
	if err := s.load(&in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	return s, nil
}

func (s *Server) load(in *serverState) (err error) {
	n := s.config.parties
	if s.excluded, err = loadSet(in.Excluded, n); err != nil {
		return err
	}
	for _, pair := range in.Doubts {
		s.doubts.add(pair[0], pair[1])
	}
	if len(in.Uploads) != n || len(in.Announcements) != n || len(in.Ciphertexts) != n {
		return fmt.Errorf("it has %d parties, want %d", len(in.Uploads), n)
	}
	if err := s.loadSetUp(in); err != nil {
		return err
	}
	for i, upload := range in.Uploads {
		if len(upload) == 0 {
			continue
		}
		if s.uploads[i], err = wire.ParseUpload(upload, s.topology.degree(i, s.holders)); err != nil {
			return err
		}
	}
	s.round, s.included = in.Round, in.Included
	if in.Open != nil {
		s.open, err = s.loadOpen(in.Open)
	}
	return err
}

func (s *Server) loadSetUp(in *serverState) (err error) {
	n := s.config.parties
	s.stage = in.Stage
	for i, announcement := range in.Announcements {
		if len(announcement) == 0 {
			continue
		}
		if s.announcements[i], err = wire.ParseAnnounce(announcement, s.config.hybrid); err != nil {
			return err
		}
		s.announced.Add(i)
	}
	if s.stage == stageAnnounce {
		return nil
	}
	s.topology = newTopology(s.config, keysDigest(s.config.digest, s.sharedKeys()), s.announced, -1)
	if s.encapsulated, err = loadSet(in.Encapsulated, n); err != nil {
		return err
	}
	for i, ciphertexts := range in.Ciphertexts {
		if len(ciphertexts) == 0 {
			continue
		}
		if s.encapsulations[i], err = wire.ParseEncapsulate(ciphertexts,
			len(s.topology.higher(i))); err != nil {
			return err
		}
	}
	if s.stage == stageEncapsulate {
		return nil
	}
	members, err := loadSet(in.Members, n)
	if err != nil {
		return err
	}
	s.join(members)
	for _, p := range in.Pending {
		s.pending[p.Party] = p.Message
	}
	holders, err := loadSet(in.Holders, n)
	if err != nil {
		return err
	}
	s.hold(holders)
	return nil
}

func (s *Server) loadOpen(in *openState) (*serverRound, error) {
	n := s.config.parties
	r := &serverRound{step: in.Step, context: in.Context}
	var err error
	for _, set := range []struct {
		to   *wire.Set
		from []byte
	}{
		{&r.participants, in.Participants},
		{&r.received, in.Received},
		{&r.survivors, in.Survivors},
		{&r.revealed, in.Revealed},
	} {
		if *set.to, err = loadSet(set.from, n); err != nil {
			return nil, err
		}
	}
	if r.sum, err = masking.ParsePacked(s.config.Layout, in.Sum); err != nil {
		return nil, err
	}
	if !s.config.recovery {
		return r, nil
	}
	if r.signatures, err = wire.ParseCertificate(in.Signed, n); err != nil {
		return nil, err
	}
	if len(in.Parties) != n {
		return nil, fmt.Errorf("its round has %d parties, want %d", len(in.Parties), n)
	}
	r.findNeighbours(s.topology, s.holders, s.round)
	for i, party := range in.Parties {
		material, err := loadUpload(party.Material, len(r.neighbours[i]))
		if err != nil {
			return nil, err
		}
		reveal, err := wire.ParseReveal(party.Reveal, n)
		if err != nil {
			return nil, err
		}
		r.material = append(r.material, material)
		r.commitments = append(r.commitments, party.Commitment)
		r.shares = append(r.shares, party.Shares)
		r.revelations = append(r.revelations, reveal)
	}
	return r, nil
}

// stateData binds a saved state to its configuration and its owner.
func stateData(config *settled, party uint32) []byte {
	d := hash(labelState, config.digest[:], uint32Bytes(int(party)))
	return d[:]
}

func sealState(
	random io.Reader, key *keyexchange.SealKey, config *settled, party uint32, state any,
) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(state); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	defer clear(b.Bytes())
	nonce, err := keyexchange.GenerateNonce(random)
	if err != nil {
		return nil, err
	}
	return keyexchange.Seal(&nonce, key, b.Bytes(), stateData(config, party))
}

func openSealed(
	key *keyexchange.SealKey, config *settled, party uint32, sealed []byte, state any,
) error {
	b, err := keyexchange.Open(key, sealed, stateData(config, party))
	if err != nil {
		return fmt.Errorf("%w: it was changed, or saved under another key, by another party or for "+
			"another configuration", ErrState)
	}
	defer clear(b)
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(state); err != nil {
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
