package textbook

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/shamir"
)

// Survivors ends the submissions (§9.9).
func (s *Server) Survivors() ([]protocol.Envelope, error) {
	r := s.open
	switch {
	case !s.Terms.Recovery, r == nil, r.step != wire.TypeMasked:
		return nil, protocol.ErrPhase
	case r.received.Len() < s.Terms.MinSurvivors:
		s.open = nil
		return nil, protocol.ErrTooFew
	}
	r.step = wire.TypeSigned
	return s.toAll(r.received, func(i int) []byte {
		m := wire.Survivors{Survivors: r.received}
		for _, owner := range r.received.Of(s.Terms.Others(i)) {
			near := r.participants.Of(s.Terms.Others(owner))
			m.Shares = append(m.Shares, r.masked[owner].Shares[slices.Index(near, i)])
		}
		return m.Append(s.header(wire.TypeSurvivors))
	}), nil
}

func (s *Server) receiveSigned(body []byte, party int) error {
	r := s.open
	body, err := sized(s.without, body, keyexchange.SignatureSize)
	if err != nil {
		return err
	}
	at, found := slices.BinarySearchFunc(r.signatures, party,
		func(entry wire.PartySignature, party int) int { return entry.Party - party })
	if found && !s.without.has(Once) {
		return protocol.ErrDuplicate
	}
	entry := wire.PartySignature{Party: party, Signature: [64]byte(body)}
	if !s.without.has(Certificates) {
		key, statement := s.Terms.Roster.Key(party), Statement(r.context, r.received)
		err := keyexchange.Verify(key, labels.Survivors, statement, &entry.Signature)
		if err != nil {
			return err
		}
	}
	if !found {
		r.signatures = slices.Insert(r.signatures, at, entry)
	}
	return nil
}

// Certificate ends the signatures (§9.11).
func (s *Server) Certificate() ([]protocol.Envelope, error) {
	r := s.open
	switch {
	case r == nil, r.step != wire.TypeSigned:
		return nil, protocol.ErrPhase
	case len(r.signatures) < s.Terms.Quorum:
		s.open = nil
		return nil, protocol.ErrTooFew
	}
	r.step = wire.TypeReveal
	return s.toAll(r.received, func(int) []byte {
		return r.signatures.Append(s.header(wire.TypeCertificate))
	}), nil
}

func (s *Server) receiveReveal(body []byte, party int) error {
	r := s.open
	if r.revealed.Has(party) && !s.without.has(Once) {
		return protocol.ErrDuplicate
	}
	m, err := wire.ParseReveal(readList(s.without, body, 36, s.Terms.Parties), s.Terms.Parties)
	if err != nil {
		return err
	}
	for i := range m {
		if m[i].Owner == party || !r.participants.Has(m[i].Owner) {
			return protocol.ErrEncoding
		}
		if _, err := shamir.ParseSecret(m[i].Share[:]); err != nil {
			return fmt.Errorf("%w: %w", protocol.ErrEncoding, err)
		}
	}
	r.revealed.Add(party)
	for i := range m {
		owner := m[i].Owner
		of := r.shares[r.purpose(owner)]
		of[owner] = append(of[owner], shamir.Share{Index: Index(party), Value: m[i].Share})
	}
	return nil
}

// purpose says which secret of a participant is rebuilt.
func (r *serverRound) purpose(owner int) keyexchange.Purpose {
	if r.received.Has(owner) {
		return keyexchange.SelfMaskShare
	}
	return keyexchange.RecoveryShare
}

// Sum ends the round and takes the masks off (§10.3).
func (s *Server) Sum() ([][]uint64, error) {
	r := s.open
	if r == nil || s.Terms.Recovery && r.step != wire.TypeReveal {
		return nil, protocol.ErrPhase
	}
	s.open = nil
	if !s.Terms.Recovery && r.received.Len() < s.Terms.Members.Len() {
		return nil, protocol.ErrMissing
	}
	for owner := range r.participants.All() {
		if !s.Terms.Recovery {
			break
		}
		secret, err := s.rebuild(r, owner)
		if err != nil {
			name := s.Terms.Roster.Name(owner)
			return nil, &protocol.PartyError{Party: owner, Name: name, Err: err}
		}
		if r.received.Has(owner) {
			seed := SelfMaskSeed(secret)
			r.sum.SubMask(&seed)
			continue
		}
		pairs, err := OpenBlob(secret, r.material[owner].Blob, s.session, s.round, owner)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", protocol.ErrMaterial, err)
		}
		for at, peer := range s.Terms.Others(owner) {
			if r.received.Has(peer) {
				seed := masking.Seed(pairs[at].MaskSeed(r.context))
				r.sum.MaskPair(&seed, owner, peer) // as the owner would have
			}
		}
	}
	return r.sum.Values(), nil
}

// rebuild makes a participant's secret from what holders revealed.
func (s *Server) rebuild(r *serverRound, owner int) (shamir.Secret, error) {
	purpose, t := r.purpose(owner), s.Terms.Threshold
	shares := slices.Clone(r.shares[purpose][owner])
	slices.SortFunc(shares, func(a, b shamir.Share) int { return int(a.Index) - int(b.Index) })
	if len(shares) < t {
		return shamir.Secret{}, protocol.ErrTooFew
	}
	accept := func(secret shamir.Secret) bool {
		committed := r.material[owner].Commitment
		if purpose == keyexchange.SelfMaskShare {
			committed = r.masked[owner].Commitment
		}
		return Commitment(purpose, s.session, s.round, owner, secret) == committed
	}
	if s.without.has(Commitments) {
		accept = nil
	}
	if s.without.has(Correction) {
		secret, err := shamir.Combine(t, shares[:t])
		if err == nil && accept != nil && !accept(secret) {
			err = protocol.ErrMaterial
		}
		return secret, err
	}
	var indices []uint32
	for _, share := range shares {
		indices = append(indices, share.Index)
	}
	combiner, err := shamir.NewCombiner(t, indices)
	if err != nil {
		return shamir.Secret{}, err
	}
	secret, wrong, err := combiner.CorrectVarTime(shares, accept)
	if err != nil {
		return shamir.Secret{}, fmt.Errorf("%w: %w", protocol.ErrMaterial, err)
	}
	for _, x := range wrong {
		s.Blamed = append(s.Blamed, int(x)-1)
	}
	return secret, nil
}
