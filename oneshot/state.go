package oneshot

import (
	"crypto"
	"errors"
	"fmt"
	"io"
	"math/big"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/shamir"
)

// A saved state is sealed under the caller's key, for its owner, the configuration and
// the version of labels.OneshotState, which changes with the structures below: whatever opens
// was made by this Save.
// Save, then send what the step returned; after a crash load, and send Output again. An older
// state than the last one saved must not be loaded: it would answer a round twice.

// Owners of states.
const (
	ownerParty byte = iota
	ownerMember
	ownerServer
	ownerServerParts
)

type partyState struct {
	Last   uint64
	Output []byte
}

// Save returns the party's state sealed under key. It fails only if the source of
// randomness does.
func (p *Party) Save(key *keyexchange.SealKey) ([]byte, error) {
	return sealState(p.random, key, p.config, ownerParty, p.self, &partyState{p.last, p.output})
}

// LoadParty restores the party that [Party.Save] saved under key, with the same configuration and
// identity. It fails with [ErrState], [ErrConfig] or [ErrIdentity].
func LoadParty(
	config *Config, identity crypto.Signer, random io.Reader, key *keyexchange.SealKey, state []byte,
) (*Party, error) {
	p, err := NewParty(config, identity, random)
	if err != nil {
		return nil, err
	}
	var in partyState
	if err := openState(key, p.config, ownerParty, p.self, state, &in); err != nil {
		return nil, err
	}
	p.last, p.output = in.Last, in.Output
	return p, nil
}

type memberState struct {
	Round  uint64
	Used   uint64
	Output []byte
	Open   *memberRoundState
}

type memberRoundState struct {
	Phase           phase
	Private, Public []byte
	Context, Chain  [32]byte
	Seeds           values // of candidates, and
	Digests         []byte // theirs; empty where no coin
	Opening         []byte // of the opening's body is to come
	Members, Seen   []byte // sets; empty before the opening
	Batches         int
	Waiting         bool
	Pending         []pendingState
	Sum             values
	Covers          []byte
	Counts          []int
	Noises          int
	Kept            []keptState
	Guilty          []byte // a set; empty before covers are opened
}

type keptState struct {
	Dealer int
	Values values
}

type pendingState struct {
	Dealer    int
	Good      bool
	Part      values
	Cover     []byte
	Statement []byte
}

// values are those of a part. In a state they are the bytes of all, since gob writes an array as a
// number for each byte.
type values [][32]byte

func (v values) GobEncode() ([]byte, error) {
	b := make([]byte, 0, 32*len(v))
	for i := range v {
		b = append(b, v[i][:]...)
	}
	return b, nil
}

func (v *values) GobDecode(b []byte) error {
	if len(b)%32 != 0 {
		return ErrState
	}
	*v = make(values, len(b)/32)
	for i := range *v {
		copy((*v)[i][:], b[32*i:])
	}
	return nil
}

// Save returns the member's state sealed under key. The state contains the key of the round and the
// parts. It fails only if the source of randomness does.
func (m *Member) Save(key *keyexchange.SealKey) ([]byte, error) {
	out := memberState{Round: m.round, Used: m.used, Output: m.output}
	if r := m.open; r != nil {
		out.Open = &memberRoundState{
			Phase:   r.phase,
			Public:  r.public,
			Context: r.context,
			Chain:   r.chain,
			Members: r.members.Bytes(),
			Seen:    r.seen.Bytes(),
			Batches: r.batches,
			Waiting: r.waiting,
			Sum:     r.sum.Values,
			Covers:  r.covers,
			Counts:  r.counts,
			Noises:  r.noises,
			Guilty:  r.guilty.Bytes(),
		}
		if r.seeds != nil {
			out.Open.Seeds, out.Open.Digests = r.seeds, r.digests
			out.Open.Opening = r.opening.append(nil)
		}
		for _, one := range r.kept {
			out.Open.Kept = append(out.Open.Kept, keptState{one.dealer, one.values})
		}
		if r.private != nil {
			out.Open.Private = r.private.seed[:]
		}
		for i := range r.pending {
			p := &r.pending[i]
			out.Open.Pending = append(out.Open.Pending,
				pendingState{p.dealer, p.good, p.part.Values, p.cover, p.statement})
		}
	}
	return sealState(m.random, key, m.config, ownerMember, m.self, &out)
}

// LoadMember restores the member that [Member.Save] saved under key, with the same configuration
// and identity. It fails with [ErrState], [ErrConfig] or [ErrIdentity].
func LoadMember(
	config *Config, identity crypto.Signer, random io.Reader, key *keyexchange.SealKey, state []byte,
) (*Member, error) {
	m, err := NewMember(config, identity, random)
	if err != nil {
		return nil, err
	}
	var in memberState
	if err := openState(key, m.config, ownerMember, m.self, state, &in); err != nil {
		return nil, err
	}
	m.round, m.used, m.output = in.Round, in.Used, in.Output
	if in.Open != nil {
		if m.open, err = m.loadRound(in.Open); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	return m, nil
}

func (m *Member) loadRound(in *memberRoundState) (*memberRound, error) {
	index := uint32(m.self) + 1
	r := &memberRound{
		phase:   in.Phase,
		public:  in.Public,
		context: in.Context,
		chain:   in.Chain,
		batches: in.Batches,
		waiting: in.Waiting,
		sum:     shamir.PackedShare{Index: index, Values: in.Sum},
		covers:  in.Covers,
		counts:  in.Counts,
		noises:  in.Noises,
	}
	if len(in.Members) > 0 {
		r.groups = m.config.groupsOf(&r.context)
	}
	var err error
	if len(in.Seeds) > 0 {
		r.seeds, r.digests = in.Seeds, in.Digests
		if r.opening, err = m.config.parseOpening(m.round, in.Opening); err != nil {
			return nil, err
		}
	}
	if len(in.Private) != 0 {
		if r.private, err = m.config.KEM.newPrivateKey(in.Private); err != nil {
			return nil, err
		}
	}
	if r.members, err = loadSet(in.Members, m.config.c); err != nil {
		return nil, err
	}
	if r.seen, err = loadSet(in.Seen, m.config.dealers()); err != nil {
		return nil, err
	}
	if r.guilty, err = loadSet(in.Guilty, m.config.dealers()); err != nil {
		return nil, err
	}
	for _, one := range in.Kept {
		r.kept = append(r.kept, keptPart{one.Dealer, one.Values})
	}
	for _, p := range in.Pending {
		r.pending = append(r.pending,
			pendingPart{
				dealer:    p.Dealer,
				good:      p.Good,
				part:      shamir.PackedShare{Index: index, Values: p.Part},
				cover:     p.Cover,
				statement: p.Statement,
			})
	}
	return r, nil
}

type serverState struct {
	Round    uint64
	Doubts   []uint64 // by member; empty where there is none
	Included []byte   // a set
	Open     *serverRoundState
}

type serverRoundState struct {
	Step            step
	Keys            [][]byte
	Opening         []byte
	Context, Chain  [32]byte
	Members         []byte
	Received        []byte // sets; empty before the opening, and uncovered before the parts
	Excluded        []byte
	Uncovered       []byte
	Waiting, Flight []submittedState
	OnTheWay        bool // a batch is
	Number          int
	Candidates      [][]byte // by member
	Coin            []byte
	Disputes        [][]byte
	Charges         []*big.Rat
	Claims          []claim
	Sum             []uint64
	KeySums         [][]byte // none without a bound
	Included        []byte
	Parties         int
	Counts          []int
	Covers          []coverState
	Signatures      []byte
	Parts, Opened   [][]byte
}

type submittedState struct {
	Party int
	Body  []byte
}

// Save returns the server's state sealed under key, which protects it from changes. While parts
// come in the state holds the values that remove the key from the sum. It fails only if the source
// of randomness does.
func (s *Server) Save(key *keyexchange.SealKey) ([]byte, error) {
	out := s.state()
	if r := s.open; r != nil {
		for _, sub := range r.waiting {
			out.Open.Waiting = append(out.Open.Waiting, submittedState{sub.party, sub.body})
		}
		for _, sub := range r.flight {
			out.Open.Flight = append(out.Open.Flight, submittedState{sub.party, sub.body})
		}
	}
	return sealState(nil, key, s.config, ownerServer, 0, out)
}

// state returns all that is saved but submissions.
func (s *Server) state() *serverState {
	out := &serverState{Round: s.round, Doubts: s.doubts, Included: s.included.Bytes()}
	if r := s.open; r != nil {
		out.Open = &serverRoundState{
			Step:       r.step,
			Keys:       r.keys,
			Opening:    r.opening,
			Context:    r.context,
			Chain:      r.chain,
			Members:    r.members.Bytes(),
			Received:   r.received.Bytes(),
			Excluded:   r.excluded.Bytes(),
			Uncovered:  r.uncovered.Bytes(),
			Included:   r.included.Bytes(),
			Parties:    r.parties,
			Counts:     r.counts,
			OnTheWay:   r.flight != nil,
			Number:     r.number,
			Candidates: r.candidates,
			Coin:       r.coin,
			Charges:    r.charges,
			Claims:     r.claims,
			Sum:        r.sum,
			Signatures: r.signatures.Append(nil),
			Parts:      r.parts,
			Opened:     r.opened,
		}
		for _, sum := range r.keySums {
			out.Open.KeySums = append(out.Open.KeySums, sum.Bytes())
		}
		for _, d := range r.disputes {
			out.Open.Disputes = append(out.Open.Disputes, d.Bytes())
		}
		for _, one := range r.covers {
			out.Open.Covers = append(out.Open.Covers,
				coverState{one.party, one.masked, one.commitment, one.stated})
		}
	}
	return out
}

// LoadServer restores the server that [Server.Save] saved under key, with the same configuration
// and the given size of batches, as in [NewServer]. It fails with [ErrState] or [ErrConfig].
func LoadServer(
	config *Config, batch int, key *keyexchange.SealKey, state []byte,
) (*Server, error) {
	s, err := NewServer(config, batch)
	if err != nil {
		return nil, err
	}
	var in serverState
	if err := openState(key, s.config, ownerServer, 0, state, &in); err != nil {
		return nil, err
	}
	if err := s.load(&in); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) load(in *serverState) (err error) {
	s.round, s.doubts = in.Round, in.Doubts
	if s.included, err = loadSet(in.Included, s.config.dealers()); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if in.Open != nil {
		if s.open, err = s.loadRound(in.Open); err != nil {
			return fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	return nil
}

func (s *Server) loadRound(in *serverRoundState) (*serverRound, error) {
	c := s.config
	r := &serverRound{
		step:     in.Step,
		keys:     make([][]byte, c.c),
		opening:  in.Opening,
		context:  in.Context,
		chain:    in.Chain,
		number:   in.Number,
		parties:  in.Parties,
		counts:   in.Counts,
		charges:  in.Charges,
		claims:   in.Claims,
		sum:      in.Sum,
		disputes: make([]wire.Set, len(in.Disputes)),
		verdicts: make(map[int]verdict),
	}
	r.candidates = loadAnswers(in.Candidates, c.c)
	if len(in.Coin) > 0 {
		r.coin = in.Coin
	}
	for k, key := range in.Keys {
		if len(key) != 0 {
			r.keys[k] = key
		}
	}
	var err error
	for _, set := range []struct {
		to   *wire.Set
		from []byte
		n    int
	}{
		{&r.members, in.Members, c.c},
		{&r.received, in.Received, c.dealers()},
		{&r.excluded, in.Excluded, c.c},
		{&r.uncovered, in.Uncovered, c.dealers()},
		{&r.included, in.Included, c.dealers()},
	} {
		if *set.to, err = loadSet(set.from, set.n); err != nil {
			return nil, err
		}
	}
	for k, d := range in.Disputes {
		if r.disputes[k], err = loadSet(d, len(in.Flight)); err != nil {
			return nil, err
		}
	}
	if r.waiting, err = s.loadSubmitted(r, in.Waiting); err != nil {
		return nil, err
	}
	if in.OnTheWay {
		if r.flight, err = s.loadSubmitted(r, in.Flight); err != nil {
			return nil, err
		}
	}
	for _, sum := range in.KeySums {
		point, err := new(edwards25519.Point).SetBytes(sum)
		if err != nil {
			return nil, err
		}
		r.keySums = append(r.keySums, point)
	}
	if r.step > stepKeys {
		r.groups = c.groupsOf(&r.context)
	}
	for _, one := range in.Covers {
		r.covers = append(r.covers, cover{one.Party, one.Masked, one.Commitment, one.Stated})
	}
	if r.signatures, err = wire.ParseCertificate(in.Signatures, c.c); err != nil {
		return nil, err
	}
	if r.step >= stepParts {
		r.parts, r.opened = loadAnswers(in.Parts, c.c), loadAnswers(in.Opened, c.c)
	}
	return r, nil
}

// loadAnswers reads what members have answered, nil for those that have not.
func loadAnswers(in [][]byte, members int) [][]byte {
	out := make([][]byte, members)
	for k, answer := range in {
		if len(answer) != 0 {
			out[k] = answer
		}
	}
	return out
}

func (s *Server) loadSubmitted(r *serverRound, in []submittedState) ([]*submitted, error) {
	var out []*submitted
	for _, one := range in {
		sub, err := s.config.checkSubmission(s.round, &r.context, r.members, one.Party, one.Body)
		if err != nil {
			return nil, err
		}
		out = append(out, sub)
	}
	return out, nil
}

// loadSet reads a set, which is empty bytes where it had not been made yet.
func loadSet(b []byte, n int) (wire.Set, error) {
	if len(b) == 0 {
		return wire.Set{}, nil
	}
	return wire.ParseSet(b, n)
}

// stateData binds a saved state to its configuration and its owner.
func stateData(config *settled, owner byte, at int) []byte {
	d := hash(labels.OneshotState, config.digest[:], []byte{owner}, uint32Bytes(at))
	return d[:]
}

func sealState(
	random io.Reader, key *keyexchange.SealKey, config *settled, owner byte, at int, state any,
) ([]byte, error) {
	b, err := keyexchange.SealState(random, key, stateData(config, owner, at), state)
	if err != nil && !errors.Is(err, ErrRandom) {
		err = fmt.Errorf("%w: %w", ErrState, err)
	}
	return b, err
}

func openState(
	key *keyexchange.SealKey, config *settled, owner byte, at int, box []byte, state any,
) error {
	if err := keyexchange.OpenState(key, stateData(config, owner, at), box, state); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return nil
}
