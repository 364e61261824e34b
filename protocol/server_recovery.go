package protocol

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/shamir"
)

// This file has what the server does so that a round survives drop-outs.

// withMaterial returns who can take part in a round: of those scheduled, the
// parties whose recovery material is in and who have, among each other, enough
// neighbours to rebuild their secrets.
func (s *Server) withMaterial(round uint64, scheduled []int) wire.Set {
	able := make([]int, 0, len(scheduled))
	for _, i := range scheduled {
		if u := s.uploads[i]; u != nil && u.Round == round && !s.excluded.Has(i) {
			able = append(able, i)
		}
	}
	near := func(i int) []int { return s.topology.neighbours(round, i) }
	return s.topology.connected(able, near, s.terms.threshold)
}

// lacksMaterial reports whether a party is a holder whose material for its next round is
// not in.
func (s *Server) lacksMaterial(party int) bool {
	if !s.holders.Has(party) || s.excluded.Has(party) {
		return false
	}
	u := s.uploads[party]
	return u == nil || u.Round <= s.round
}

// Invite returns messages that ask the parties without recovery material for their next round to
// upload it: those that dropped out, or were absent. Call it between rounds, as often as is
// useful; a party that answers before the next Begin takes part in it. It fails with [ErrPhase]
// during set-up or a round, and returns nothing in a session without recovery.
func (s *Server) Invite() ([]Envelope, error) {
	if s.stage != stageReady || s.open != nil {
		return nil, fmt.Errorf("%w: parties are invited between rounds", ErrPhase)
	}
	if !s.config.recovery {
		return nil, nil
	}
	message := s.invitation()
	var envelopes []Envelope
	for _, i := range s.Missing() {
		envelopes = append(envelopes, Envelope{To: i, Message: message})
	}
	return envelopes, nil
}

// invitation is the message that asks for material.
func (s *Server) invitation() []byte {
	return append(s.roundHeader(wire.TypeInvite), s.holders.Bytes()...)
}

// Gather begins anew with the parties that are present: it uses up a round number, and returns
// messages that ask exactly these members for recovery material, made for each other. Parties that
// answer before the next [Server.Begin] take part in that round. In the round, and in the rounds
// that follow until the next Gather, thresholds are those of a session of as many parties. Gather
// costs one round trip more than a round without it, but no exchange of keys, and MinSurvivors
// keeps its promise: any MinMembers members or more can hold a round, no matter which others are
// away.
//
// Parties that are excluded are left out. It fails with [ErrPhase] during set-up or a round, with
// [ErrMembers] if a party, which the error names, is not in the session, with [ErrTooFew] if there
// are fewer parties than MinMembers, and with [ErrConfig] in a session without recovery, with a
// sparse graph or with a schedule.
func (s *Server) Gather(present []int) ([]Envelope, error) {
	switch {
	case !s.config.gathers():
		return nil, fmt.Errorf("%w: rounds among some need recovery, a complete graph and no schedule",
			ErrConfig)
	case s.stage != stageReady || s.open != nil:
		return nil, fmt.Errorf("%w: parties are gathered between rounds", ErrPhase)
	}
	holders := wire.NewSet(s.config.parties)
	for _, i := range present {
		if !s.topology.members.Has(i) {
			if i < 0 || i >= s.config.parties {
				return nil, fmt.Errorf("%w: there is no party %d", ErrMembers, i)
			}
			return nil, partyError(s.config.Roster, i, ErrMembers)
		}
		if !s.excluded.Has(i) {
			holders.Add(i)
		}
	}
	if n := holders.Len(); n < s.config.minMembers {
		return nil, tooFewError(s.config.Roster, s.round+2, "are present for", n, s.config.minMembers,
			s.absent(holders))
	}
	s.round++
	s.hold(holders)
	clear(s.uploads)
	return s.Invite()
}

// absent returns the members that are not in a set.
func (s *Server) absent(present wire.Set) []int {
	var out []int
	for _, i := range s.topology.list {
		if !present.Has(i) {
			out = append(out, i)
		}
	}
	return out
}

// hold fixes whom recovery material is for from now on.
func (s *Server) hold(holders wire.Set) {
	s.holders, s.terms = holders, s.config.terms(holders.Len())
}

// Skip gives up the next round number, for a round whose parties do not appear. It fails with
// [ErrPhase] during set-up or a round.
func (s *Server) Skip() error {
	if s.stage != stageReady || s.open != nil {
		return fmt.Errorf("%w: rounds are skipped between rounds", ErrPhase)
	}
	s.round++
	return nil
}

func (s *Server) receiveUpload(h wire.Header, body []byte, party int) error {
	switch {
	case h.Round > s.round:
		return fmt.Errorf("%w: round %d has not begun", ErrPhase, h.Round)
	case h.Round < s.round:
		return fmt.Errorf("%w: %v of round %d", ErrStale, h.Type, h.Round)
	case s.excluded.Has(party), !s.holders.Has(party):
		return ErrParticipants
	}
	m, err := wire.ParseUpload(body, s.topology.degree(party, s.holders))
	if err != nil {
		return err
	}
	next, err := s.topology.next(party, s.round)
	if err != nil {
		return err
	}
	if m.Round != next {
		return fmt.Errorf("%w: recovery material for round %d, want %d", ErrEncoding, m.Round, next)
	}
	if u := s.uploads[party]; u != nil && u.Round == next {
		return ErrDuplicate
	}
	s.uploads[party] = m
	return nil
}

// Survivors ends the submissions and returns the messages that send the survivors the list of
// survivors; they answer with signatures. If there are too few survivors the round is over:
// Survivors fails with [ErrTooFew], and names the parties that did not submit. It fails with
// [ErrPhase] if no submissions are due, or without recovery.
func (s *Server) Survivors() ([]Envelope, error) {
	if err := s.endMasked(); err != nil {
		return nil, err
	}
	var envelopes []Envelope
	for i := range s.open.survivors.All() {
		envelopes = append(envelopes, Envelope{To: i, Message: s.survivorsFor(i)})
	}
	return envelopes, nil
}

// endMasked ends the submissions.
func (s *Server) endMasked() error {
	if !s.config.recovery || s.open == nil || s.open.step != stepMasked {
		return fmt.Errorf("%w: no submissions are due", ErrPhase)
	}
	if n := s.open.received.Len(); n < s.terms.minSurvivors {
		missing := s.Missing()
		s.open = nil
		return tooFewError(s.config.Roster, s.round, "submitted in", n, s.terms.minSurvivors, missing)
	}
	s.intake = nil
	s.open.step = stepSigned
	s.open.survivors = s.open.received
	s.included = slices.Collect(s.open.survivors.All())
	return nil
}

// survivorsFor is the message that tells a survivor who they are.
func (s *Server) survivorsFor(party int) []byte {
	m := wire.Survivors{Survivors: s.open.survivors}
	for _, owner := range s.open.survivors.Of(s.open.near[party]) {
		at, _ := slices.BinarySearch(s.open.near[owner], party)
		m.Shares = append(m.Shares, s.open.shares[owner][at])
	}
	return m.Append(s.roundHeader(wire.TypeSurvivors))
}

// signature returns where a party's signature is or belongs, and whether it is in.
func (s *Server) signature(party int) (at int, found bool) {
	return slices.BinarySearchFunc(s.open.signatures, party,
		func(e wire.PartySignature, party int) int { return e.Party - party })
}

func (s *Server) receiveSigned(h wire.Header, body []byte, party int) error {
	if err := s.checkRound(h, stepSigned, party); err != nil {
		return err
	}
	if err := wire.Exactly(body, keyexchange.SignatureSize); err != nil {
		return err
	}
	at, found := s.signature(party)
	if found {
		return ErrDuplicate
	}
	entry := wire.PartySignature{Party: party, Signature: [64]byte(body)}
	statement := survivorsStatement(s.open.context, s.open.survivors)
	if err := keyexchange.Verify(s.config.Roster.Key(party), labels.Survivors, statement,
		&entry.Signature); err != nil {
		return err
	}
	s.open.signatures = slices.Insert(s.open.signatures, at, entry)
	return nil
}

// Certificate ends the signatures and returns the messages that carry the signatures to the
// survivors, who answer with shares. If there are too few signatures the round is over: Certificate
// fails with [ErrTooFew], and names the parties that did not sign. It fails with [ErrPhase] if no
// signatures are due.
func (s *Server) Certificate() ([]Envelope, error) {
	if err := s.endSigned(); err != nil {
		return nil, err
	}
	var envelopes []Envelope
	var message []byte
	for i := range s.open.survivors.All() {
		if message == nil || s.config.sparse {
			message = s.certificateFor(i)
		}
		envelopes = append(envelopes, Envelope{To: i, Message: message})
	}
	return envelopes, nil
}

// endSigned ends the signatures.
func (s *Server) endSigned() error {
	if s.open == nil || s.open.step != stepSigned {
		return fmt.Errorf("%w: no signatures are due", ErrPhase)
	}
	quorum := s.terms.quorum
	if n := len(s.open.signatures); n < quorum {
		missing := s.Missing()
		s.open = nil
		return tooFewError(s.config.Roster, s.round, "signed in", n, quorum, missing)
	}
	s.open.step = stepReveal
	return nil
}

// certificateFor is the message that carries the signatures to a survivor: on a complete
// graph the same for all.
func (s *Server) certificateFor(party int) []byte {
	quorum := s.terms.quorum
	if !s.config.sparse {
		return s.open.signatures[:quorum].Append(s.roundHeader(wire.TypeCertificate))
	}
	// Of its neighbours only; a party with too few of them goes without.
	var signatures wire.Certificate
	for _, peer := range s.open.near[party] {
		at, found := s.signature(peer)
		if found && len(signatures) < quorum {
			signatures = append(signatures, s.open.signatures[at])
		}
	}
	return signatures.Append(s.roundHeader(wire.TypeCertificate))
}

func (s *Server) receiveReveal(h wire.Header, body []byte, party int) error {
	if err := s.checkRound(h, stepReveal, party); err != nil {
		return err
	}
	if s.open.revealed.Has(party) {
		return ErrDuplicate
	}
	m, err := wire.ParseReveal(body, s.config.parties)
	if err != nil {
		return err
	}
	for i := range m {
		if _, near := slices.BinarySearch(s.open.near[party], m[i].Owner); !near {
			return fmt.Errorf("%w: a share of party %d, which the sender does not hold", ErrEncoding,
				m[i].Owner)
		}
		if _, err := shamir.ParseSecret(m[i].Share[:]); err != nil {
			return fmt.Errorf("%w: %w", ErrEncoding, err)
		}
	}
	s.open.revealed.Add(party)
	s.open.revelations[party] = m
	return nil
}

// Exclude leaves a party out of the rounds that follow, until it is readmitted. The server excludes
// parties that spoil rounds by itself, see [Server.Excluded]; a caller may have other reasons, such
// as inputs that spoil the model. The party stays in the open round. Exclude ignores a party that
// is not in the session.
func (s *Server) Exclude(party int) {
	if party >= 0 && party < s.config.parties {
		s.excluded.Add(party)
		s.uploads[party] = nil
	}
}

// Excluded returns the parties that the server leaves out, in ascending order: those
// of [Server.Exclude], and those that spoilt rounds or tried to.
//
// Let e be c, at least 1. As long as at most e parties of the session are at fault, the server
// names nobody else: it names an owner whose recovery blob does not open, or whose secret does not
// rebuild although e invalid shares could have been corrected; and it names a party that has dealt
// or revealed invalid shares, or dealt or claimed shares that do not open, if otherwise more than e
// other parties would have to be at fault. And as long as in each round t + 2e neighbours of every
// party reveal, a party that spoils a round is among the parties named after that round, so that at
// most e rounds are spoilt. SPEC.md §10.4 has the theorem.
func (s *Server) Excluded() []int { return slices.Collect(s.excluded.All()) }

// Readmit lets an excluded party back in, and forgets the evidence against it: the party is invited
// again, and takes part once it has uploaded new material. An honest mistake costs one more round;
// a party that cheats will do so again.
func (s *Server) Readmit(party int) {
	if party >= 0 && party < s.config.parties {
		s.excluded.Remove(party)
		s.doubts.forget(party)
	}
}

// Doubts returns the pairs of parties in which the server knows at least one party to be at fault,
// each pair once with the lower party first, in ascending order. [Server.Excluded] follows from
// these pairs, and [Server.Doubt] carries them to another session with the same roster.
func (s *Server) Doubts() [][2]int { return s.doubts.pairs() }

// Doubt adds pairs from [Server.Doubts] of another session with the same roster, and excludes the
// parties that these pairs and the pairs of this session together show to be at fault. So a liar
// gains nothing by a new session. Doubt fails with [ErrMembers], and adds no pair, if the roster
// lacks a party or a pair names one party twice.
func (s *Server) Doubt(pairs [][2]int) error {
	for _, pair := range pairs {
		for _, party := range pair {
			if party < 0 || party >= s.config.parties {
				return fmt.Errorf("%w: there is no party %d", ErrMembers, party)
			}
		}
		if pair[0] == pair[1] {
			return fmt.Errorf("%w: a pair of party %d and itself", ErrMembers, pair[0])
		}
	}
	for _, pair := range pairs {
		s.doubts.add(pair[0], pair[1])
	}
	named, _ := s.doubts.named(s.config.spoilers())
	for _, party := range named {
		s.Exclude(party)
	}
	return nil
}
