package protocol

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

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
	Broadcast    [32]byte
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
			Broadcast:    r.broadcast,
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
	return sealGob(nil, key, stateData(s.config, wire.ServerIndex), &out)
}

// LoadServer makes the server again that [Server.Save] saved under key, with the
// same configuration. It fails with [ErrState] or [ErrConfig].
func LoadServer(config *Config, key *keyexchange.SealKey, state []byte) (*Server, error) {
	s, err := NewServer(config)
	if err != nil {
		return nil, err
	}
	var in serverState
	if err := openGob(key, stateData(s.config, wire.ServerIndex), state, &in); err != nil {
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
	r := &serverRound{step: in.Step, context: in.Context, broadcast: in.Broadcast}
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
