package protocol

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// This file has what the server does in set-up (SPEC.md §4).

// NewServer makes the server of a session. It fails with [ErrConfig].
func NewServer(config *Config) (*Server, error) {
	own, err := config.settle()
	if err != nil {
		return nil, err
	}
	n := own.parties
	return &Server{
		config:         own,
		session:        own.digest,
		announced:      wire.NewSet(n),
		announcements:  make([]*wire.Announce, n),
		encapsulated:   wire.NewSet(n),
		encapsulations: make([]*wire.Encapsulate, n),
		pending:        make(map[int][]byte),
		uploads:        make([]*wire.Upload, n),
		excluded:       wire.NewSet(n),
		doubts:         make(doubts),
	}, nil
}

func (s *Server) receiveAnnounce(_ wire.Header, body []byte, party int) error {
	switch {
	case s.announced.Has(party):
		return ErrDuplicate
	case s.stage != stageAnnounce:
		return fmt.Errorf("%w: the keys are out", ErrStale)
	}
	m, err := wire.ParseAnnounce(body, s.config.hybrid)
	if err != nil {
		return err
	}
	key, err := keyexchange.ParsePublicKey(m.Key[:])
	if err != nil {
		return err
	}
	if s.config.hybrid {
		if _, err := keyexchange.ParseEncapsulationKey(m.Encapsulation); err != nil {
			return err
		}
	}
	entry := keyEntry(m)
	if err := keyexchange.VerifyKey(s.config.Roster, s.config.digest, party, key,
		s.config.signedDigest(&entry), &m.Signature); err != nil {
		return err
	}
	s.announced.Add(party)
	s.announcements[party] = m
	return nil
}

// Keys ends the announcements: it returns the messages that carry the keys of all parties that have
// announced to each of them; with hybrid keys these parties answer with ciphertexts. Other parties
// stay out of the session. While fewer than MinMembers parties have announced, Keys fails with
// [ErrTooFew], naming the missing parties, and changes nothing.
//
// With classical keys that ends set-up, and with recovery the parties answer with their material
// for the first round. Keys may be called again for parties that lost the message: it returns the
// same messages for the parties that have not answered. It fails with [ErrPhase] once
// [Server.Members] has ended set-up.
func (s *Server) Keys() ([]Envelope, error) {
	if err := s.endAnnouncements(); err != nil {
		return nil, err
	}
	if s.stage == stageReady {
		return s.unheard(), nil
	}
	var envelopes []Envelope
	for _, i := range s.Missing() {
		for _, message := range s.Pending(i) {
			envelopes = append(envelopes, Envelope{To: i, Message: message})
		}
	}
	return envelopes, nil
}

// endAnnouncements is Keys without its messages, which Pending makes
// one by one. Hybrid keys of n parties are a message of its own for each, of 128n bytes
// and more: 13 GB for ten thousand, which no server need hold at once.
func (s *Server) endAnnouncements() error {
	switch {
	case s.stage == stageReady && s.config.hybrid:
		return fmt.Errorf("%w: set-up is over", ErrPhase)
	case s.stage != stageAnnounce:
		return nil
	}
	if n := s.announced.Len(); n < s.config.minMembers {
		return tooFewError(s.config.Roster, 0, "announced keys", n, s.config.minMembers,
			s.announced.Missing())
	}
	shared := s.listKeys()
	s.stage = stageEncapsulate
	if !s.config.hybrid {
		s.join(s.announced)
		message := shared.Append(s.setUpHeader(wire.TypeKeys))
		for i := range s.announced.All() {
			s.pending[i] = message
		}
	}
	return nil
}

// listKeys fixes who has announced, and returns what all are told of them; with hybrid
// keys it is kept, until the members are fixed, for the messages that begin with it.
func (s *Server) listKeys() *wire.Keys {
	shared := s.sharedKeys()
	s.topology = newTopology(s.config, keysDigest(s.config.digest, shared), s.announced, -1)
	if s.config.hybrid {
		s.head = shared.AppendShared(s.setUpHeader(wire.TypeKeys))
	}
	return shared
}

// encapsulationKeysFor returns the end of the message of hybrid keys for a party.
func (s *Server) encapsulationKeysFor(party int) []byte {
	higher := s.topology.higher(party)
	keys := make([]byte, 0, len(higher)*keyexchange.EncapsulationKeySize)
	for _, peer := range higher {
		keys = append(keys, s.announcements[peer].Encapsulation...)
	}
	return keys
}

// sharedKeys is the part of Keys that is the same for all.
func (s *Server) sharedKeys() *wire.Keys {
	keys := &wire.Keys{Hybrid: s.config.hybrid, Announced: s.announced}
	for i := range s.announced.All() {
		keys.Entries = append(keys.Entries, keyEntry(s.announcements[i]))
	}
	return keys
}

func (s *Server) setUpHeader(kind wire.Type) []byte {
	h := wire.Header{Type: kind, Session: s.config.digest, Sender: wire.ServerIndex}
	return h.Append(nil)
}

// unheard returns the messages that end set-up, for the members that have not sent
// anything since.
func (s *Server) unheard() []Envelope {
	var envelopes []Envelope
	for _, i := range sortedKeys(s.pending) {
		envelopes = append(envelopes, Envelope{To: i, Message: s.pending[i]})
	}
	return envelopes
}

func (s *Server) receiveEncapsulate(_ wire.Header, body []byte, party int) error {
	switch {
	case s.stage == stageAnnounce:
		return fmt.Errorf("%w: the keys are not out", ErrPhase)
	case !s.announced.Has(party):
		return ErrMembers
	case s.encapsulated.Has(party):
		return ErrDuplicate
	case s.stage == stageReady:
		return fmt.Errorf("%w: the members are fixed", ErrStale)
	}
	higher := s.topology.higher(party)
	m, err := wire.ParseEncapsulate(body, len(higher))
	if err != nil {
		return err
	}
	statement := ciphertextsStatement(s.topology.keys, party,
		treeRoot(leavesOf(higher, m.Ciphertexts)))
	if err := keyexchange.Verify(s.config.Roster.Key(party), labels.Ciphertexts, statement,
		&m.Signature); err != nil {
		return err
	}
	s.encapsulated.Add(party)
	s.encapsulations[party] = m
	return nil
}

// leavesOf returns the leaves of the hash tree over ciphertexts.
func leavesOf(to []int, ciphertexts [][]byte) [][32]byte {
	leaves := make([][32]byte, len(to))
	for k := range to {
		leaves[k] = leafHash(to[k], ciphertexts[k])
	}
	return leaves
}

// Members ends set-up with hybrid keys: it returns the messages that tell the parties that have
// sent ciphertexts that they are the session's members, with the ciphertexts that others have made
// for them. With recovery the members answer with their material for the first round. In a sparse
// graph parties with too few neighbours among the members are left out.
//
// While fewer than MinMembers parties have sent ciphertexts, Members fails with [ErrTooFew], naming
// the missing parties, and changes nothing; before [Server.Keys] it fails with [ErrPhase]. Members
// may be called again for parties that lost the message: it returns the same messages for members
// that have not sent anything since. In a session with classical keys it returns nothing.
func (s *Server) Members() ([]Envelope, error) {
	if s.stage == stageAnnounce {
		return nil, fmt.Errorf("%w: the keys are not out", ErrPhase)
	}
	if !s.config.hybrid {
		return nil, nil
	}
	if s.stage == stageReady {
		return s.unheard(), nil
	}
	members := s.connectedMembers()
	if n := members.Len(); n < s.config.minMembers {
		return nil, tooFewError(s.config.Roster, 0, "sent ciphertexts", n, s.config.minMembers,
			s.Missing())
	}
	lower := make([][]wire.SignedCiphertext, s.config.parties) // by recipient
	for i := range members.All() {
		higher, m := s.topology.higher(i), s.encapsulations[i]
		if len(higher) == 0 {
			continue
		}
		_, paths := treePaths(leavesOf(higher, m.Ciphertexts))
		for k, to := range higher {
			if members.Has(to) {
				lower[to] = append(lower[to], wire.SignedCiphertext{
					Ciphertext: m.Ciphertexts[k],
					Path:       paths[k],
					Signature:  m.Signature,
				})
			}
		}
	}
	for i := range members.All() {
		m := wire.Members{Members: members, Lower: lower[i]}
		s.pending[i] = m.Append(s.setUpHeader(wire.TypeMembers))
		lower[i] = nil
	}
	s.join(members)
	clear(s.encapsulations)
	return s.unheard(), nil
}

// connectedMembers returns who can be a member: all who have sent ciphertexts,
// but for parties that have too few neighbours among them.
func (s *Server) connectedMembers() wire.Set {
	var present []int
	for i := range s.encapsulated.All() {
		present = append(present, i)
	}
	if !s.config.sparse || s.config.byRound {
		return s.topology.set(present)
	}
	threshold := s.config.terms(s.config.minMembers).threshold // of every size in a sparse graph
	return s.topology.connected(present, s.topology.peers, threshold)
}

// join fixes the session among the members.
func (s *Server) join(members wire.Set) {
	s.session = sessionID(s.topology.keys, members)
	s.topology.join(s.session, members)
	s.head, s.stage = nil, stageReady
	s.hold(members)
}

// Enrolled returns the parties of the session, in ascending order, nil during set-up.
func (s *Server) Enrolled() []int {
	if s.stage != stageReady {
		return nil
	}
	return append([]int(nil), s.topology.list...)
}

// Holders returns the parties for which recovery material of the next round is made, in ascending
// order: the members, or the parties of the last [Server.Gather]; nil during set-up or without
// recovery.
func (s *Server) Holders() []int {
	if s.stage != stageReady || !s.config.recovery {
		return nil
	}
	return slices.Collect(s.holders.All())
}
