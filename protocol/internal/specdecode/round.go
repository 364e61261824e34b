package specdecode

import (
	"bytes"
	"slices"

	"github.com/hushsum/hushsum/internal/labels"
)

// running is a round that is open.
type running struct {
	*round
	numbers
	holders      set
	digest       []byte // of the broadcast
	participants set
	context      []byte
	begun        []int
	received     map[int][][]uint64 // packed vectors that arrived
	shares       map[int][][]byte   // sealed, of self masks, by neighbour
	self         map[int][]byte     // b
	survivorSet  set
	signatures   map[int][]byte
	signers      []int
	revealed     map[int][]point // by owner
	commitments  map[int][]byte
}

// open opens a round and checks what the vector says of its keys (§5).
func (s *session) open(number uint64, broadcast []byte, participants set) error {
	if number == 0 || number > 1<<16 || s.done >= len(s.Rounds) || s.Rounds[s.done].Round != number {
		return fail("round %d is not in the vector", number)
	}
	r := s.Rounds[s.done]
	s.now = &running{
		round:        r,
		digest:       broadcast,
		participants: participants,
		received:     map[int][][]uint64{},
		shares:       map[int][][]byte{},
		self:         map[int][]byte{},
		signatures:   map[int][]byte{},
		revealed:     map[int][]point{},
		commitments:  map[int][]byte{},
	}
	s.now.holders = s.members
	if s.recovery {
		first := s.uploads[key(participants.all()[0], number)]
		if first == nil {
			return fail("a participant without material")
		}
		s.now.holders = first.holders
		for _, i := range participants.all() {
			if m := s.uploads[key(i, number)]; m == nil || !bytes.Equal(m.holders, first.holders) {
				return fail("the material of party %d is for others", i)
			}
		}
	}
	var err error
	if s.now.numbers, err = s.numbers(len(s.now.holders.all())); err != nil {
		return err
	}
	s.now.context = hash(labels.Context, s.id, u64(number), broadcast, s.now.holders,
		participants)
	all := s.now.holders.of(s.schedule(number))
	switch {
	case !bytes.Equal(broadcast, hash(labels.Broadcast, r.Broadcast)):
		return fail("the digest of the broadcast")
	case !bytes.Equal(s.now.context, r.Context):
		return fail("the context of round %d", number)
	case !slices.Equal(all, r.Scheduled), !slices.Equal(s.now.holders.all(), r.Holders),
		!slices.Equal(participants.all(),
			r.Participants), len(participants.of(all)) != len(participants.all()):
		return fail("the participants of round %d", number)
	case len(r.Participants) < s.now.minimum:
		return fail("too few participants")
	}
	pairs := 0
	for _, i := range r.Participants {
		pairs += len(s.now.near(s, i))
	}
	if pairs != 2*len(r.Pairs) {
		return fail("%d pairs", len(r.Pairs))
	}
	for _, p := range r.Pairs {
		if p.Low >= p.High || !slices.Contains(s.now.near(s, p.Low), p.High) || len(p.Channels) != 4 {
			return fail("a pair of round %d", number)
		}
		chain, err := s.chainKey(p.Low, p.High, number)
		if err != nil {
			return err
		}
		secret, _ := s.pairSecret(p.Low, p.High, number)
		if !bytes.Equal(chain, p.ChainKey) || !bytes.Equal(secret, p.Secret) ||
			!bytes.Equal(s.now.maskSeed(secret), p.MaskSeed) {
			return fail("the keys of parties %d and %d", p.Low, p.High)
		}
		for i, want := range p.Channels {
			from, to := p.Low, p.High
			if i%2 == 1 {
				from, to = to, from
			}
			if got, _ := s.channel(i/2, from, to, number); !bytes.Equal(got, want) {
				return fail("the channels of parties %d and %d", p.Low, p.High)
			}
		}
	}
	return nil
}

// near returns a party's neighbours among the participants.
func (r *running) near(s *session, party int) []int {
	return r.participants.of(r.holders.of(s.neighbours(r.Round, party)))
}

// maskSeed is §5.2.
func (r *running) maskSeed(secret []byte) []byte {
	return expand(secret, labels.Mask+string(r.context), 28)
}

// masked checks a submission: it must be the input with its masks (§8, §9.6).
func (r *running) masked(s *session, party int, body *reader, lost bool) error {
	at := slices.IndexFunc(r.Inputs, func(in input) bool { return in.Party == party })
	if at < 0 || !slices.Contains(r.begun, party) || r.received[party] != nil {
		return fail("a submission of party %d", party)
	}
	in := r.Inputs[at]
	got, err := unpack(s.layout, body.take(packedSize(s.layout)))
	if err != nil {
		return err
	}
	near := r.near(s, party)
	want := zero(s.layout)
	for i := range want {
		if len(in.Input) != len(want) || len(in.Input[i]) != len(want[i]) {
			return fail("an input of the wrong length")
		}
		copy(want[i], in.Input[i])
	}
	for _, peer := range near {
		secret, err := s.pairSecret(party, peer, r.Round)
		if err != nil {
			return err
		}
		add(s.layout, want, mask(s.layout, r.maskSeed(secret)), party > peer)
	}
	if s.recovery {
		r.commitments[party] = body.take(32)
		nonce := body.take(24)
		r.shares[party] = body.sealed(nonce, len(near))
		m := body.material(s.degree(party, r.holders), r.holders)
		if body.broken {
			return fail("a short submission")
		}
		b, shares, err := s.rebuild(r.shares[party], near, r.threshold, 0, party, r.Round, r.context,
			r.commitments[party])
		if err != nil {
			return err
		}
		if err := s.checkDraws(party, r.threshold, b, nonce, shares); err != nil {
			return err
		}
		if !bytes.Equal(b, in.SelfMask) || !bytes.Equal(s.secrets[key(party, r.Round)], in.Recovery) {
			return fail("the secrets of party %d", party)
		}
		add(s.layout, want, mask(s.layout, derive(b, labels.SelfMask, 28)), false)
		if err := s.takeUpload(party, r.Round, m); err != nil {
			return err
		}
		r.self[party] = b
	}
	if err := body.end(); err != nil {
		return err
	}
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			return fail("segment %d of party %d", i, party)
		}
	}
	if !lost {
		r.received[party] = got
	}
	return nil
}

// survivors checks a list of survivors (§9.9).
func (r *running) survivors(s *session, party int, body *reader, lost bool) error {
	list, err := body.set(s.n)
	if err != nil {
		return err
	}
	if !list.has(party) || len(list.all()) != len(r.received) || len(list.all()) < r.minimum ||
		r.survivorSet != nil && !bytes.Equal(list, r.survivorSet) {
		return fail("the survivors")
	}
	for _, i := range list.all() {
		if r.received[i] == nil {
			return fail("survivor %d did not submit", i)
		}
	}
	r.survivorSet = list
	for _, owner := range list.of(r.near(s, party)) {
		if !bytes.Equal(body.take(72), r.shares[owner][slices.Index(r.near(s, owner), party)]) {
			return fail("a share of party %d", owner)
		}
	}
	if !lost {
		r.signers = append(r.signers, party)
	}
	return body.end()
}

// signature checks a signature on the survivors (§9.10).
func (r *running) signature(s *session, party int, body *reader, lost bool) error {
	sig := body.take(64)
	if err := body.end(); err != nil {
		return err
	}
	if !slices.Contains(r.signers, party) ||
		!verify(s.Config.Roster[party].Key, signed(labels.Survivors, r.context, r.survivorSet),
			sig) {
		return fail("the signature of party %d", party)
	}
	if !lost {
		r.signatures[party] = sig
	}
	return nil
}

// certificate checks a certificate (§9.11).
func (r *running) certificate(s *session, party int, body *reader, lost bool) error {
	parties, values, err := body.entries(s.n, 64)
	if err != nil {
		return err
	}
	if len(parties) < r.quorum {
		return fail("%d signatures", len(parties))
	}
	for i, signer := range parties {
		if !bytes.Equal(values[i], r.signatures[signer]) ||
			s.sparse && !slices.Contains(r.near(s, party), signer) {
			return fail("a signature of party %d", signer)
		}
	}
	return nil
}

// reveal checks revealed shares: one of every neighbour (§9.12).
func (r *running) reveal(s *session, party int, body *reader, lost bool) error {
	owners, values, err := body.entries(s.n, 32)
	if err != nil {
		return err
	}
	if near := r.near(s, party); !slices.Equal(owners, near) || !slices.Contains(r.signers, party) {
		return fail("shares of parties %d", owners)
	}
	for i, owner := range owners {
		purpose, sealed, binding := 1, s.uploads[key(owner, r.Round)].shares, holdersDigest(r.holders)
		holders := r.holders.of(s.neighbours(r.Round, owner))
		if r.survivorSet.has(owner) {
			purpose, sealed, binding, holders = 0, r.shares[owner], r.context, r.near(s, owner)
		}
		share, err := s.openShare(sealed[slices.Index(holders, party)], purpose, owner, party, r.Round,
			binding)
		if err != nil {
			return err
		}
		wrong := slices.Contains(r.Wrong, struct{ Holder, Owner int }{party, owner})
		if wrong == bytes.Equal(share, values[i]) {
			return fail("the share of party %d", owner)
		}
		if !lost && !wrong {
			r.revealed[owner] = append(r.revealed[owner], point{party, share})
		}
	}
	return nil
}

// finish ends the round as the server does, from what was revealed alone, and
// checks the sum (§10.3).
func (s *session) finish() error {
	r := s.now
	if r == nil {
		return nil
	}
	s.now = nil
	s.done++
	var included []int
	sum, plain := zero(s.layout), zero(s.layout)
	for _, in := range r.Inputs {
		if got := r.received[in.Party]; got != nil {
			included = append(included, in.Party)
			add(s.layout, sum, got, false)
			values := make([][]uint64, len(in.Input))
			for i := range values {
				values[i] = in.Input[i]
			}
			add(s.layout, plain, values, false)
		}
	}
	if !slices.Equal(included, r.Included) || len(included) != len(r.received) {
		return fail("the sum of round %d is of parties %d", r.Round, included)
	}
	if s.recovery {
		if err := s.unmask(r, sum); err != nil {
			return err
		}
	}
	for i := range sum {
		if !slices.Equal(sum[i], plain[i]) || len(r.Sum) != len(sum) || !slices.Equal(sum[i], r.Sum[i]) {
			return fail("segment %d of the sum of round %d", i, r.Round)
		}
	}
	return nil
}

// unmask takes the masks off the sum (§10.3).
func (s *session) unmask(r *running, sum [][]uint64) error {
	for _, owner := range r.Participants {
		secret, err := combine(r.revealed[owner], r.threshold)
		if err != nil {
			return err
		}
		if r.survivorSet.has(owner) {
			if !bytes.Equal(secret, r.self[owner]) {
				return fail("the self mask of party %d", owner)
			}
			add(s.layout, sum, mask(s.layout, derive(secret, labels.SelfMask, 28)), true)
			continue
		}
		blob, err := open(derive(secret, labels.BlobKey, 32), s.uploads[key(owner, r.Round)].blob,
			hash(labels.BlobPlace, s.id, u64(r.Round), u32(owner)))
		if err != nil {
			return err
		}
		neighbours := r.holders.of(s.neighbours(r.Round, owner))
		for _, peer := range r.survivorSet.of(r.near(s, owner)) {
			at := slices.Index(neighbours, peer)
			add(s.layout, sum, mask(s.layout, r.maskSeed(blob[32*at:32*at+32])), owner > peer)
		}
	}
	return nil
}
