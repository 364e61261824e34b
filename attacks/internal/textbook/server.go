package textbook

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/shamir"
)

// Server is the server of a session, with the calls of [protocol.Server] but for
// its policies: it leaves out nobody and skips no rounds.
type Server struct {
	Terms *Terms
	// Blamed are the holders of the shares that were corrected, in the order of
	// finding.
	Blamed []int

	without   Defence
	session   [32]byte
	ready     bool // the keys are out
	announced wire.Set
	keys      []*wire.Announce // by party
	round     uint64
	uploads   []*wire.Upload // by party, for its next round
	open      *serverRound
}

type serverRound struct {
	step         wire.Type // what is due: TypeMasked, TypeSigned, TypeReveal
	participants wire.Set
	context      [32]byte
	sum          *masking.Vector
	received     wire.Set // this and what follows by party
	material     []*wire.Upload
	masked       []*wire.Masked
	signatures   wire.Certificate
	shares       map[keyexchange.Purpose][][]shamir.Share
	revealed     wire.Set
}

// NewServer makes a server that lacks some defences. It fails with
// [protocol.ErrConfig].
func NewServer(config *protocol.Config, without Defence) (*Server, error) {
	terms, err := NewTerms(config, without)
	if err != nil {
		return nil, err
	}
	n := terms.Parties
	return &Server{
		Terms:     terms,
		without:   without,
		session:   terms.Digest,
		announced: wire.NewSet(n),
		keys:      make([]*wire.Announce, n),
		uploads:   make([]*wire.Upload, n),
	}, nil
}

// Receive takes one message of a party (§11.2), which came from the given one.
func (s *Server) Receive(from int, message []byte) error {
	h, body, err := readHeader(s.without, s.Terms.maxMessage(), message)
	if err != nil {
		return err
	}
	if h.Sender >= uint32(s.Terms.Parties) || int(h.Sender) != from && !s.without.has(Sender) {
		return protocol.ErrSender
	}
	party := int(h.Sender)
	if h.Type == wire.TypeAnnounce {
		return s.receiveAnnounce(h, body, party)
	}
	receive, known := map[wire.Type]func([]byte, int) error{
		wire.TypeMasked: s.receiveMasked,
		wire.TypeUpload: s.receiveUpload,
		wire.TypeSigned: s.receiveSigned,
		wire.TypeReveal: s.receiveReveal,
	}[h.Type]
	switch {
	case !known, h.Type > wire.TypeMasked && !s.Terms.Recovery:
		return protocol.ErrType
	case !s.ready:
		return protocol.ErrPhase
	case s.without.has(Current):
		h.Session, h.Round = s.session, s.round
	}
	switch {
	case h.Session != s.session:
		return protocol.ErrSession
	case h.Round > s.round:
		return protocol.ErrPhase
	case h.Round < s.round:
		return protocol.ErrStale
	}
	if h.Type == wire.TypeUpload {
		return receive(body, party)
	}
	switch order := []wire.Type{wire.TypeMasked, wire.TypeSigned, wire.TypeReveal}; {
	case s.open == nil:
		return protocol.ErrStale
	case s.without.has(Ordered):
	case slices.Index(order, h.Type) < slices.Index(order, s.open.step):
		return protocol.ErrStale
	case h.Type != s.open.step:
		return protocol.ErrPhase
	}
	late := h.Type != wire.TypeMasked && !s.open.received.Has(party) && !s.without.has(Ordered)
	if late || !s.open.participants.Has(party) {
		return protocol.ErrParticipants
	}
	return receive(body, party)
}

func (s *Server) receiveAnnounce(h wire.Header, body []byte, party int) error {
	switch {
	case h.Session != s.Terms.Digest && !s.without.has(Current):
		return protocol.ErrSession
	case h.Round != 0 && !s.without.has(Strict):
		return protocol.ErrEncoding
	case s.announced.Has(party) && !s.without.has(Once):
		return protocol.ErrDuplicate
	}
	body, err := sized(s.without, body, wire.AnnounceSize(false))
	if err != nil {
		return err
	}
	m, err := wire.ParseAnnounce(body, false)
	if err != nil {
		return err
	}
	key, err := keyexchange.ParsePublicKey(m.Key[:])
	if err == nil && !s.without.has(KeySignatures) {
		err = keyexchange.VerifyKey(s.Terms.Roster, s.Terms.Digest, party, key, nil, &m.Signature)
	}
	if err != nil {
		return err
	}
	s.announced.Add(party)
	s.keys[party] = m
	return nil
}

// Keys ends the exchange of keys, among the parties that have announced theirs.
func (s *Server) Keys() ([]protocol.Envelope, error) {
	if s.announced.Len() < s.Terms.MinMembers && !s.without.has(Members) {
		return nil, fmt.Errorf("%w: keys of %v", protocol.ErrMissing, s.announced.Missing())
	}
	keys := &wire.Keys{Announced: s.announced}
	for i := range s.announced.All() {
		entry := wire.KeyEntry{Key: s.keys[i].Key, Signature: s.keys[i].Signature}
		keys.Entries = append(keys.Entries, entry)
	}
	if !s.ready {
		terms, err := s.Terms.Among(s.announced, s.without)
		if err != nil {
			return nil, err
		}
		s.Terms, s.session, s.ready = terms, SessionID(s.Terms.Digest, keys), true
	}
	h := wire.Header{Type: wire.TypeKeys, Session: s.Terms.Digest, Sender: wire.ServerIndex}
	return s.toAll(s.Terms.Members, func(int) []byte { return keys.Append(h.Append(nil)) }), nil
}

// Members does nothing: keys are classical.
func (s *Server) Members() ([]protocol.Envelope, error) { return nil, nil }

func (s *Server) toAll(to wire.Set, message func(party int) []byte) []protocol.Envelope {
	var envelopes []protocol.Envelope
	for i := range to.All() {
		envelopes = append(envelopes, protocol.Envelope{To: i, Message: message(i)})
	}
	return envelopes
}

func (s *Server) header(kind wire.Type) []byte {
	h := wire.Header{Type: kind, Session: s.session, Round: s.round, Sender: wire.ServerIndex}
	return h.Append(nil)
}

// Round returns the last round that was begun.
func (s *Server) Round() uint64 { return s.round }

// Invite asks the parties without material for the next round for it.
func (s *Server) Invite() ([]protocol.Envelope, error) {
	if !s.ready || s.open != nil {
		return nil, protocol.ErrPhase
	}
	to := wire.NewSet(s.Terms.Parties)
	for i := range s.Terms.Members.All() {
		if u := s.uploads[i]; s.Terms.Recovery && (u == nil || u.Round <= s.round) {
			to.Add(i)
		}
	}
	return s.toAll(to, func(int) []byte {
		return append(s.header(wire.TypeInvite), s.Terms.Members.Bytes()...)
	}), nil
}

// Begin begins the next round.
func (s *Server) Begin(broadcast []byte) ([]protocol.Envelope, error) {
	if !s.ready {
		return nil, protocol.ErrPhase
	}
	n := s.Terms.Parties
	participants := wire.SetOf(n, slices.Collect(s.Terms.Members.All()))
	for i, u := range s.uploads {
		if s.Terms.Recovery && (u == nil || u.Round != s.round+1) {
			participants.Remove(i)
		}
	}
	if participants.Len() < s.Terms.MinSurvivors {
		return nil, protocol.ErrTooFew
	}
	sum, err := masking.NewVector(s.Terms.Layout)
	if err != nil {
		return nil, err
	}
	s.round++
	digest := BroadcastDigest(broadcast)
	s.open = &serverRound{
		step:         wire.TypeMasked,
		participants: participants,
		context:      Context(s.without, s.session, s.round, digest, s.Terms.Members, participants),
		sum:          sum,
		received:     wire.NewSet(n),
		material:     s.uploads,
		masked:       make([]*wire.Masked, n),
		shares: map[keyexchange.Purpose][][]shamir.Share{
			keyexchange.SelfMaskShare: make([][]shamir.Share, n),
			keyexchange.RecoveryShare: make([][]shamir.Share, n),
		},
		revealed: wire.NewSet(n),
	}
	s.uploads = make([]*wire.Upload, n)
	return s.toAll(participants, func(i int) []byte {
		begin := wire.Begin{Broadcast: digest, Participants: participants}
		if s.Terms.Recovery {
			for _, owner := range participants.Of(s.Terms.Others(i)) {
				at := slices.Index(s.Terms.Others(owner), i)
				begin.Shares = append(begin.Shares, s.open.material[owner].Shares[at])
			}
		}
		return begin.Append(s.header(wire.TypeBegin))
	}), nil
}

func (s *Server) receiveUpload(body []byte, party int) error {
	h := s.Terms.Members.Len() - 1
	body, err := sized(s.without, body, wire.UploadSize(h))
	if err != nil {
		return err
	}
	m, err := wire.ParseUpload(body, h)
	switch {
	case err != nil:
		return err
	case m.Round != s.round+1 && !s.without.has(Strict):
		return protocol.ErrEncoding
	case s.uploads[party] != nil && s.uploads[party].Round == m.Round && !s.without.has(Once):
		return protocol.ErrDuplicate
	}
	s.uploads[party] = m
	return nil
}

func (s *Server) receiveMasked(body []byte, party int) error {
	if s.open.received.Has(party) && !s.without.has(Once) {
		return protocol.ErrDuplicate
	}
	packed := s.Terms.Layout.PackedSize()
	size, h := packed, s.Terms.Members.Len()-1
	near := s.open.participants.Of(s.Terms.Others(party))
	if s.Terms.Recovery {
		size = wire.MaskedSize(packed, len(near), h)
	}
	body, err := sized(s.without, body, size)
	if err != nil {
		return err
	}
	m := &wire.Masked{Packed: body}
	if s.Terms.Recovery {
		if m, err = wire.ParseMasked(body, packed, len(near), h); err != nil {
			return err
		}
		if m.Next.Round != s.round+1 && !s.without.has(Strict) {
			return protocol.ErrEncoding
		}
	}
	if err := s.open.sum.AddPacked(m.Packed); err != nil {
		return fmt.Errorf("%w: %w", protocol.ErrEncoding, err)
	}
	s.open.received.Add(party)
	s.open.masked[party], s.uploads[party] = m, m.Next
	return nil
}

// Snapshot describes all that a message could change.
func (s *Server) Snapshot() string {
	b := fmt.Appendf(nil, "%x %v %x %d %v",
		s.session, s.ready, s.announced.Bytes(), s.round, s.Blamed)
	for _, a := range s.keys {
		if a != nil {
			b = a.Append(b)
		}
	}
	for _, u := range s.uploads {
		if u != nil {
			b = u.Append(b)
		}
	}
	if r := s.open; r != nil {
		b = fmt.Appendf(b, "%d %x %x", r.step, r.received.Bytes(), r.revealed.Bytes())
		b = r.signatures.Append(r.sum.AppendPacked(b))
		for _, m := range r.masked {
			if m != nil && m.Next != nil {
				b = m.Append(b)
			}
		}
		for _, purpose := range []keyexchange.Purpose{
			keyexchange.SelfMaskShare, keyexchange.RecoveryShare,
		} {
			for _, shares := range r.shares[purpose] {
				for i := range shares {
					b = append(fmt.Append(b, shares[i].Index), shares[i].Value[:]...)
				}
			}
		}
	}
	return string(b)
}
