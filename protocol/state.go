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
// state is sealed under the caller's key, for the party and the configuration:
// whatever opens was made by Save, so that its inside needs no parser that
// expects malice. Save, then send what the step returned; after a crash load, and
// send [Client.Output] again. Loading an older state than the last one saved
// undoes the erasure of keys and may use a round twice: do not.

// clientState is what Save saves of a client.
type clientState struct {
	Key       []byte // during set-up
	Announce  []byte
	Session   []byte
	Peers     []int // empty during set-up
	Chains    [][]byte
	Last      uint64
	Upload    []byte
	Open      bool
	Phase     phase
	Broadcast []byte
	Sets      [2][]byte // participants, survivors
	Context   []byte
	Near      []int
	Channels  [][]byte
	Recovery  [][]byte // empty where a share did not open
	Sealed    [][]byte
	Output    []byte
}

// Save returns the client's state sealed under key. It fails only if the source
// of randomness does.
func (c *Client) Save(key *keyexchange.SealKey) ([]byte, error) {
	s := clientState{Announce: c.announce.Append(nil), Session: c.session[:], Last: c.last, Output: c.output}
	if c.chains == nil {
		private, err := c.key.Bytes()
		if err != nil {
			return nil, err
		}
		s.Key = private[:]
	}
	for _, peer := range sortedKeys(c.chains) {
		chain := c.chains[peer].Bytes()
		s.Peers, s.Chains = append(s.Peers, peer), append(s.Chains, chain[:])
	}
	if c.upload != nil {
		s.Upload = c.upload.Append(nil)
	}
	if r := c.open; r != nil {
		s.Open, s.Phase, s.Broadcast, s.Context, s.Near = true, r.phase, r.broadcast[:], r.context[:], r.neighbours
		s.Sets = [2][]byte{r.participants.Bytes(), r.survivors.Bytes()}
		for i := range r.channels {
			channels := r.channels[i].Bytes()
			s.Channels = append(s.Channels, channels[:])
			var share []byte
			if r.recovery[i] != nil {
				share = r.recovery[i][:]
			}
			s.Recovery = append(s.Recovery, share)
		}
		s.Sealed = shareBytes(r.sealed)
	}
	return sealState(c.random, key, c.config, c.self, &s)
}

// LoadClient makes the client again that [Client.Save] saved under key, with the
// same configuration and identity. It fails with [ErrState], [ErrConfig] or
// [ErrIdentity].
func LoadClient(config *Config, identity crypto.Signer, random io.Reader, key *keyexchange.SealKey, state []byte) (*Client, error) {
	c, err := newClient(config, identity, random)
	if err != nil {
		return nil, err
	}
	var s clientState
	if err := openState(key, c.config, c.self, state, &s); err != nil {
		return nil, err
	}
	announce, err := wire.ParseAnnounce(s.Announce)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	c.announce, c.last, c.output = *announce, s.Last, s.Output
	c.session = [32]byte(s.Session)
	c.key = new(keyexchange.PrivateKey)
	if s.Key != nil {
		c.key, err = keyexchange.RestoreKey([32]byte(s.Key))
		return c, err
	}
	c.topology = newTopology(c.config, c.session, c.self)
	c.chains = make(map[int]*keyexchange.Chain)
	for i, peer := range s.Peers {
		c.chains[peer] = keyexchange.RestoreChain([40]byte(s.Chains[i]))
	}
	if s.Upload != nil {
		if c.upload, err = wire.ParseUpload(s.Upload, c.config.degree); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	if !s.Open {
		return c, nil
	}
	r := &clientRound{phase: s.Phase, broadcast: [32]byte(s.Broadcast), context: [32]byte(s.Context), neighbours: s.Near}
	if r.participants, err = loadSet(s.Sets[0], c.config.parties); err != nil {
		return nil, err
	}
	if r.survivors, err = loadSet(s.Sets[1], c.config.parties); err != nil {
		return nil, err
	}
	for i := range s.Channels {
		r.channels = append(r.channels, keyexchange.RestoreChannels([128]byte(s.Channels[i])))
		var share *[32]byte
		if len(s.Recovery[i]) != 0 {
			share = (*[32]byte)(s.Recovery[i])
		}
		r.recovery = append(r.recovery, share)
	}
	r.sealed = loadShares(s.Sealed)
	c.open = r
	return c, nil
}

// serverState is what Save saves of a server.
type serverState struct {
	Announced []byte
	Keys      []byte
	Ready     bool
	Round     uint64
	Uploads   [][]byte // by party, empty where there is none
	Excluded  []byte
	Included  []int
	Open      bool
	Step      step
	Sets      [4][]byte // participants, received, survivors, revealed
	Context   []byte
	Sum       []byte
	Material  [][]byte // by party
	Commits   [][]byte // by party
	Shares    [][][]byte
	Signed    []byte
	Revealed  [][]byte // by party
}

// Save returns the server's state sealed under key, which keeps it from being
// changed: there is no long-term secret in it. It fails only if the source of
// randomness does.
func (s *Server) Save(key *keyexchange.SealKey) ([]byte, error) {
	out := serverState{Announced: s.announced.Bytes(), Keys: s.keys.Append(nil), Ready: s.topology != nil,
		Round: s.round, Uploads: uploadBytes(s.uploads), Excluded: s.excluded.Bytes(), Included: s.included}
	if r := s.open; r != nil {
		out.Open, out.Step, out.Context = true, r.step, r.context[:]
		out.Sets = [4][]byte{r.participants.Bytes(), r.received.Bytes(), r.survivors.Bytes(), r.revealed.Bytes()}
		out.Sum = r.sum.AppendPacked(nil)
		out.Signed = r.signatures.Append(nil)
		out.Material = uploadBytes(r.material)
		for i := range r.commitments {
			out.Commits = append(out.Commits, r.commitments[i][:])
			out.Shares = append(out.Shares, shareBytes(r.shares[i]))
			out.Revealed = append(out.Revealed, r.revelations[i].Append(nil))
		}
	}
	return sealState(nil, key, s.config, wire.Server, &out)
}

// LoadServer makes the server again that [Server.Save] saved under key, with the
// same configuration. It fails with [ErrState] or [ErrConfig].
func LoadServer(config *Config, key *keyexchange.SealKey, state []byte) (*Server, error) {
	s, err := NewServer(config)
	if err != nil {
		return nil, err
	}
	var in serverState
	if err := openState(key, s.config, wire.Server, state, &in); err != nil {
		return nil, err
	}
	n := s.config.parties
	bad := func(err error) (*Server, error) { return nil, fmt.Errorf("%w: %w", ErrState, err) }
	if s.announced, err = loadSet(in.Announced, n); err != nil {
		return nil, err
	}
	if s.excluded, err = loadSet(in.Excluded, n); err != nil {
		return nil, err
	}
	if s.keys, err = wire.ParseKeys(in.Keys, n); err != nil {
		return bad(err)
	}
	s.round, s.included = in.Round, in.Included
	if s.uploads, err = loadUploads(in.Uploads, s.config.degree); err != nil {
		return nil, err
	}
	if in.Ready {
		s.setUp()
	}
	if !in.Open {
		return s, nil
	}
	r := &serverRound{step: in.Step, context: [32]byte(in.Context)}
	for i, set := range []*wire.Set{&r.participants, &r.received, &r.survivors, &r.revealed} {
		if *set, err = loadSet(in.Sets[i], n); err != nil {
			return nil, err
		}
	}
	if r.sum, err = masking.ParsePacked(s.config.Layout, in.Sum); err != nil {
		return bad(err)
	}
	if s.config.recovery {
		if r.material, err = loadUploads(in.Material, s.config.degree); err != nil {
			return nil, err
		}
		if r.signatures, err = wire.ParseCertificate(in.Signed, n); err != nil {
			return bad(err)
		}
		for i := range n {
			r.commitments = append(r.commitments, [32]byte(in.Commits[i]))
			r.shares = append(r.shares, loadShares(in.Shares[i]))
			reveal, err := wire.ParseReveal(in.Revealed[i], n)
			if err != nil {
				return bad(err)
			}
			r.revelations = append(r.revelations, reveal)
		}
		r.findNeighbours(s.topology, s.round)
	}
	s.open = r
	return s, nil
}

// stateData binds a saved state to its configuration and its owner.
func stateData(config *settled, party int) []byte {
	d := hash(labelState, config.digest[:], uint32Bytes(party))
	return d[:]
}

func sealState(random io.Reader, key *keyexchange.SealKey, config *settled, party int, state any) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(state); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	defer clear(b.Bytes())
	nonce, err := keyexchange.NewNonce(random)
	if err != nil {
		return nil, err
	}
	return keyexchange.Seal(&nonce, key, b.Bytes(), stateData(config, party))
}

func openState(key *keyexchange.SealKey, config *settled, party int, sealed []byte, state any) error {
	b, err := keyexchange.Open(key, sealed, stateData(config, party))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
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

func shareBytes(shares []wire.SealedShare) [][]byte {
	var out [][]byte
	for i := range shares {
		out = append(out, shares[i][:])
	}
	return out
}

func loadShares(in [][]byte) []wire.SealedShare {
	var out []wire.SealedShare
	for i := range in {
		out = append(out, wire.SealedShare(in[i]))
	}
	return out
}

func uploadBytes(uploads []*wire.Upload) [][]byte {
	out := make([][]byte, len(uploads))
	for i, u := range uploads {
		if u != nil {
			out[i] = u.Append(nil)
		}
	}
	return out
}

func loadUploads(in [][]byte, degree int) ([]*wire.Upload, error) {
	out := make([]*wire.Upload, len(in))
	for i, b := range in {
		if len(b) == 0 {
			continue
		}
		u, err := wire.ParseUpload(b, degree)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrState, err)
		}
		out[i] = u
	}
	return out, nil
}
