package protocol

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// serverState holds the fields of a server that Save saves.
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

// pendingState holds the messages that end set-up for a member that has not been heard of since.
type pendingState struct {
	Party   int
	Message []byte // empty: that of the one before, as with classical keys, where all have one
}

// openState holds the saved fields of the round that is open.
type openState struct {
	Step         step
	Context      [32]byte
	Broadcast    [32]byte
	Participants []byte
	Received     []byte
	Sum          []byte // nil: it is kept elsewhere, or zero
	SumDigest    []byte // SHA-256 of the one that is kept elsewhere
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

// Save returns the server's state sealed under key. The seal protects the state from changes; the
// state has no long-term secret. It fails only with [ErrRandom].
func (s *Server) Save(key *keyexchange.SealKey) ([]byte, error) {
	state := s.state()
	if s.open != nil {
		state.Open.Sum = s.open.sum.AppendPacked(nil)
	}
	return sealGob(nil, key, stateData(s.config, wire.ServerIndex), state)
}

// SaveParts is [Server.Save] without the sum, which is as long as a submission: it returns the sum
// next to the state, to be stored durably before the state, or nil if no sum has to be kept. The
// state contains the digest of the sum. Nothing in the sum is secret from the server.
//
// While submissions come in, the state is that of the round's beginning, without the submissions
// that have arrived: parties must be able to send their submissions again until the round ends, see
// the package's documentation.
func (s *Server) SaveParts(key *keyexchange.SealKey) (state []byte, sum io.WriterTo, err error) {
	out := s.state()
	switch {
	case s.open == nil:
	case s.open.step == stepMasked:
		out.Open.Received = wire.NewSet(s.config.parties).Bytes()
		for i := range s.open.received.All() {
			if s.config.recovery {
				out.Uploads[i] = nil
				out.Open.Parties[i].Commitment, out.Open.Parties[i].Shares = [32]byte{}, nil
			}
		}
	default:
		digest := sha256.New()
		if _, err := s.open.sum.WriteTo(digest); err != nil {
			return nil, nil, err
		}
		out.Open.SumDigest = digest.Sum(nil)
		sum = s.open.sum
	}
	state, err = sealGob(nil, key, stateData(s.config, wire.ServerIndex), out)
	return state, sum, err
}

// state returns all fields that are saved but the sum.
func (s *Server) state() *serverState {
	out := &serverState{
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
	var last []byte
	for _, i := range sortedKeys(s.pending) {
		message := s.pending[i]
		if bytes.Equal(message, last) {
			message = nil
		} else {
			last = message
		}
		out.Pending = append(out.Pending, pendingState{i, message})
	}
	if r := s.open; r != nil {
		out.Open = &openState{
			Step:         r.step,
			Context:      r.context,
			Broadcast:    r.broadcast,
			Participants: r.participants.Bytes(),
			Received:     r.received.Bytes(),
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
	return out
}

// LoadServer restores the server that [Server.Save] saved under key, with the same configuration.
// It fails with [ErrState] or [ErrConfig].
func LoadServer(config *Config, key *keyexchange.SealKey, state []byte) (*Server, error) {
	return ReadServer(config, key, state, nil)
}

// ReadServer restores the server that [Server.SaveParts] saved: it reads sum to its end, in pieces,
// if one was returned with the state, and sum may be nil otherwise. It fails with the errors of
// [LoadServer], also if sum differs from the sum that was returned.
func ReadServer(
	config *Config, key *keyexchange.SealKey, state []byte, sum io.Reader,
) (*Server, error) {
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
	if in.Open != nil && in.Open.Sum == nil {
		if s.open.sum, err = readSum(s.config.Layout, in.Open.SumDigest, sum); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	return s, nil
}

// readSum reads a sum that is not in the state; without a digest it is zero.
func readSum(layout masking.Layout, digest []byte, from io.Reader) (*masking.Vector, error) {
	if digest == nil {
		return masking.NewVector(layout)
	}
	if from == nil {
		return nil, errors.New("its sum was saved next to it, and is missing")
	}
	intake, err := masking.NewIntake(layout)
	if err != nil {
		return nil, err
	}
	found := sha256.New()
	if _, err := io.Copy(io.MultiWriter(intake, found), from); err != nil {
		return nil, err
	}
	if !bytes.Equal(found.Sum(nil), digest) {
		return nil, errors.New("its sum is not the one that was saved next to it")
	}
	return intake.Vector()
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
	s.listKeys()
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
	var last []byte
	for _, p := range in.Pending {
		if len(p.Message) > 0 {
			last = p.Message
		}
		s.pending[p.Party] = last
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
	if in.Sum != nil {
		if r.sum, err = masking.ParsePacked(s.config.Layout, in.Sum); err != nil {
			return nil, err
		}
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
