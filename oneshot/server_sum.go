package oneshot

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/ring"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/shamir"
)

// Close ends the submissions and returns the message that asks all members to sign which parties
// are in the sum. Submissions that still wait are dropped. Called again it returns the same
// message. It fails with [ErrTooFew] while fewer than MinSurvivors parties are in the sum, and
// with [ErrPhase] while a batch is with the members.
func (s *Server) Close() ([]byte, error) {
	if s.open == nil || s.open.step != stepSubmissions && s.open.step != stepSigned {
		return nil, fmt.Errorf("%w: no round is open for submissions", ErrPhase)
	}
	r := s.open
	if r.flight != nil {
		return nil, fmt.Errorf("%w: a batch is not settled", ErrPhase)
	}
	if err := s.config.enough(r.counts, r.parties-s.Settled()); err != nil {
		return nil, err
	}
	r.step, r.waiting = stepSigned, nil
	s.included = r.inSums(s.config)
	m := closing{batches: r.number, parties: r.counts, chain: r.chain}
	return m.append(s.config.header(typeClosing, &r.context, s.round, wire.ServerIndex)), nil
}

// full returns the groups that have a sum.
func (r *serverRound) full(c *settled) []int {
	return c.full(r.counts, len(c.members(r.included)))
}

// inSums returns the dealers in sums: those certified, but for groups that have none.
func (r *serverRound) inSums(c *settled) wire.Set {
	if c.groups() == 1 {
		return r.included
	}
	in, full := wire.NewSet(c.dealers()), r.full(c)
	for i := range r.included.All() {
		if slices.Contains(full, r.groups[i]) {
			in.Add(i)
		}
	}
	return in
}

// Included returns the parties in the sum, in ascending order, from [Server.Close]
// until the next round begins. Parties in groups that have no sum are not among them.
func (s *Server) Included() []int { return s.config.parties(s.included) }

// NoiseOf returns the members whose noise is in the sum of the open round or the last one, in
// ascending order; none before their batch is settled.
func (s *Server) NoiseOf() []int {
	in := s.included
	if s.open != nil && s.open.step > stepKeys {
		in = s.open.included
	}
	return s.config.members(in)
}

// parties returns those of a set of dealers.
func (s *settled) parties(set wire.Set) []int {
	var out []int
	for i := range set.All() {
		if i < s.n {
			out = append(out, i)
		}
	}
	return out
}

// members returns those of a set of dealers, by committee index.
func (s *settled) members(set wire.Set) []int {
	var out []int
	for i := range set.All() {
		if i >= s.n {
			out = append(out, i-s.n)
		}
	}
	return out
}

func (s *Server) receiveSigned(body []byte, member int) error {
	r := s.open
	if err := wire.Exactly(body, keyexchange.SignatureSize); err != nil {
		return err
	}
	at, found := r.signature(member)
	if found {
		return ErrDuplicate
	}
	one := wire.PartySignature{Party: member, Signature: [keyexchange.SignatureSize]byte(body)}
	signed := closingStatement(&r.context, &r.chain, r.counts)
	if err := keyexchange.Verify(s.config.Committee.Key(member), labels.OneshotClosing, signed,
		&one.Signature); err != nil {
		return err
	}
	r.signatures = slices.Insert(r.signatures, at, one)
	return nil
}

func (r *serverRound) signature(member int) (int, bool) {
	return slices.BinarySearchFunc(r.signatures, member,
		func(one wire.PartySignature, k int) int { return one.Party - k })
}

// Signed returns how many members have signed which parties are in the sum.
func (s *Server) Signed() int {
	if s.open == nil {
		return 0
	}
	return len(s.open.signatures)
}

// Certificate returns the message to all members with the signatures that have arrived; each member
// answers with its part, or with Covered and Norm by opening covers. Called again, Certificate
// includes the signatures that have arrived since. It fails with [ErrTooFew] while there are fewer
// than [Figures.Quorum] signatures, and with [ErrPhase] before [Server.Close].
func (s *Server) Certificate() ([]byte, error) {
	if s.open == nil || s.open.step < stepSigned {
		return nil, fmt.Errorf("%w: the round is not closed", ErrPhase)
	}
	r := s.open
	if len(r.signatures) < s.config.Quorum {
		return nil, fmt.Errorf("%w: %d members have signed, want %d", ErrTooFew, len(r.signatures),
			s.config.Quorum)
	}
	if r.step == stepSigned {
		r.step, r.parts = stepParts, make([][]byte, s.config.c)
		if s.config.reduces {
			r.step, r.opened = stepCovers, make([][]byte, s.config.c)
		}
		r.uncovered = wire.NewSet(s.config.dealers())
	}
	return r.signatures.Append(s.config.header(typeCertificate, &r.context, s.round,
		wire.ServerIndex)), nil
}

func (s *Server) receivePart(body []byte, member int) error {
	c, r := s.config, s.open
	if err := wire.Exactly(body, c.partSize(len(r.full(c)), r.parties)); err != nil {
		return err
	}
	switch {
	case r.excluded.Has(member):
		return ErrExcluded
	case r.parts[member] != nil:
		return ErrDuplicate
	}
	for rest := body; len(rest) > 0; rest = rest[scalarSize:] {
		if _, err := shamir.ParseSecret(rest[:scalarSize]); err != nil {
			return fmt.Errorf("%w: %w", ErrEncoding, err)
		}
	}
	r.parts[member] = bytes.Clone(body)
	r.key = nil
	return nil
}

// Parts returns how many members have sent their parts or, with Covered and Norm until
// [Server.Reduce], how many members have sent values that open covers.
func (s *Server) Parts() int {
	n := 0
	if s.open != nil {
		parts := s.open.parts
		if s.open.step == stepCovers {
			parts = s.open.opened
		}
		for _, part := range parts {
			if part != nil {
				n++
			}
		}
	}
	return n
}

// unlocked is the sum of the keys, and what takes covers off.
type unlocked struct {
	factors []ring.Factor // of groups that have a sum
	wrong   []int         // members whose parts are wrong
	covers  *shamir.Combiner
}

// unlock puts the members' parts together.
func (s *Server) unlock() error {
	if s.open == nil || s.open.step != stepParts {
		return fmt.Errorf("%w: the round is not certified", ErrPhase)
	}
	c, r := s.config, s.open
	if r.key != nil {
		return nil
	}
	full := r.full(c)
	var shares []shamir.PackedShare
	for k, part := range r.parts {
		if part == nil {
			continue
		}
		share := shamir.PackedShare{Index: uint32(k) + 1}
		for i := range len(full) * c.Polynomials {
			share.Values = append(share.Values, [32]byte(part[i*scalarSize:]))
		}
		shares = append(shares, share)
	}
	secrets, wrong, err := shamir.CombinePackedVarTime(c.packing, c.Faults, shares)
	switch {
	case errors.Is(err, shamir.ErrTooFewShares):
		return fmt.Errorf("%w: %d members have sent parts, want %d", ErrTooFew, len(shares), c.Answers)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrParts, err)
	}
	u := &unlocked{}
	each := c.Polynomials * c.Figures.PerPolynomial // secrets of a group
	for i, g := range full {
		var commitments *edwards25519.Point
		if r.keySums != nil {
			commitments = r.keySums[g]
		}
		key, err := c.sumOfKeys(secrets[i*each:][:each], commitments)
		if err != nil {
			return err
		}
		u.factors = append(u.factors, c.ring.NewFactor(key))
	}
	for _, index := range wrong {
		u.wrong = append(u.wrong, int(index)-1)
	}
	if c.Covered && !c.reduces {
		var indices []uint32
		for i := range shares {
			if !slices.Contains(wrong, shares[i].Index) {
				indices = append(indices, shares[i].Index)
			}
		}
		if u.covers, err = shamir.NewCombiner(c.Figures.InLeague+1, indices); err != nil {
			return fmt.Errorf("%w: %w", ErrParts, err)
		}
	}
	r.key = u
	return nil
}

// sumOfKeys reads the sum of keys off the secrets that members' parts give. With a bound these have
// the sum of blinds as well, and dealers committed to both.
func (s *settled) sumOfKeys(
	secrets []shamir.Secret, commitments *edwards25519.Point,
) ([]int64, error) {
	var blind *edwards25519.Scalar
	if s.scheme != nil {
		var err error
		at := s.lanes.scalars()
		if blind, err = edwards25519.NewScalar().SetCanonicalBytes(secrets[at][:]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrParts, err)
		}
		secrets = slices.Delete(slices.Clone(secrets), at, at+1)
	}
	key, ok := s.lanes.unpackVarTime(secrets)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: the key is out of range", ErrParts)
	case s.scheme != nil && !s.scheme.Opens(commitments, key, blind):
		return nil, fmt.Errorf("%w: they are not of the keys that are in the sum", ErrParts)
	}
	return key, nil
}

// ready finds out whether covers can be taken off.
func (s *Server) ready() error {
	switch {
	case !s.config.reduces:
		return s.unlock()
	case s.open == nil || s.open.step != stepCovers:
		return fmt.Errorf("%w: covers are not opened", ErrPhase)
	case s.Parts() <= s.config.Figures.InLeague:
		return fmt.Errorf("%w: %d members have opened covers, want %d", ErrTooFew, s.Parts(),
			s.config.Figures.InLeague+1)
	}
	return nil
}

// Uncover adds a covered submission to the sum: the message that [Server.Receive] took from a party
// in [Server.Included], sent a second time once the members have sent their parts. In between the
// server keeps only a digest of the message.
//
// It fails with [ErrPhase] if the round is not covered or not certified, with [ErrTooFew] or
// [ErrParts] as [Server.Sum] does, with [ErrContext] if the message differs from the first,
// [ErrDuplicate], [ErrSender] for a party that is not in the sum, and with [ErrCover], naming the
// party, if the submission does not open. The round is lost then: the sum of the keys includes that
// party's. Until enough members have sent their parts that Faults of them cannot hide a good cover,
// a submission that does not open gives [ErrParts], which names nobody.
//
// With [Terms.Norm] call Uncover once InLeague + 1 members or more have opened covers. A submission
// that does not open, or whose proof does not hold, is then no error: the party is among
// [Server.Convicted], and [Server.Reduce] has it left out of the sum. Uncover fails with
// [ErrTooFew] while members' values fit too few of the party's leaves.
func (s *Server) Uncover(message []byte) error {
	if !s.config.Covered {
		return fmt.Errorf("%w: submissions are not covered", ErrPhase)
	}
	h, body, err := s.config.parse(message)
	if err != nil {
		return err
	}
	if err := s.ready(); err != nil {
		return err
	}
	c, r := s.config, s.open
	party, _ := c.dealer(h.Sender)
	_, ok := r.placeOf(uint32(party))
	switch {
	case !ok:
		return fmt.Errorf("%w: %d is not in the sum", ErrSender, h.Sender)
	case h.Type != typeSubmission:
		return fmt.Errorf("%w: %d", ErrType, h.Type)
	case h.Round != s.round || h.Session != r.context:
		return c.partyError(party, ErrContext)
	}
	if body, _, err = c.untailed(party, body); err != nil {
		return c.partyError(party, err)
	}
	return s.uncoverOne(party, body)
}

// ReadBatch does what [Server.Uncover] does for the submissions of a batch that are in the sum, as
// written by [Server.Flight]. It skips submissions that are already uncovered.
func (s *Server) ReadBatch(batch io.Reader) error {
	if !s.config.Covered {
		return fmt.Errorf("%w: submissions are not covered", ErrPhase)
	}
	if err := s.ready(); err != nil {
		return err
	}
	r := s.open
	return s.config.readBatch(batch, r.members.Len(), func(party int, body []byte) error {
		if _, in := r.placeOf(uint32(party)); !in || r.uncovered.Has(party) {
			return nil
		}
		return s.uncoverOne(party, body)
	})
}

// placeOf returns the place of a party of the sum in the chain.
func (r *serverRound) placeOf(party uint32) (int, bool) {
	if r.order == nil {
		for i := range r.covers {
			r.order = append(r.order, int32(i))
		}
		slices.SortFunc(r.order, func(a, b int32) int {
			return cmp.Compare(r.covers[a].party, r.covers[b].party)
		})
	}
	at, ok := slices.BinarySearchFunc(r.order, party, func(place int32, party uint32) int {
		return cmp.Compare(r.covers[place].party, party)
	})
	if !ok {
		return 0, false
	}
	return int(r.order[at]), true
}

// uncoverOne uncovers the submission of a party that is in the sum.
func (s *Server) uncoverOne(party int, body []byte) error {
	c, r := s.config, s.open
	place, _ := r.placeOf(uint32(party))
	if r.uncovered.Has(party) {
		return c.partyError(party, ErrDuplicate)
	}
	m, err := c.parseSubmission(body, r.members.Len())
	if err != nil {
		return c.partyError(party, err)
	}
	if hash(labels.OneshotMasked, m.masked) != r.covers[place].masked {
		return c.partyError(party, ErrContext)
	}
	if c.reduces {
		return s.judge(party, place, m)
	}
	masked := bytes.Clone(m.masked)
	if err := r.uncover(c, place, masked); err != nil {
		if !r.key.sure(c) {
			return fmt.Errorf("%w: a cover does not open, and it may be the members' doing", ErrParts)
		}
		return c.partyError(party, fmt.Errorf("%w: %w", ErrCover, err))
	}
	c.ring.AddPacked(r.sum, masked)
	r.uncovered.Add(party)
	return nil
}

// sure reports whether a cover that does not open is its party's fault: as many of the parts in
// use as may be wrong still, Faults but for those that were found wrong, would be corrected.
func (u *unlocked) sure(c *settled) bool {
	corrected := (len(u.covers.Indices()) - c.Figures.InLeague - 1) / 2
	return corrected >= c.Faults-len(u.wrong)
}

// uncover rebuilds the key of a cover from the members' shares and removes the cover.
func (r *serverRound) uncover(c *settled, place int, masked []byte) error {
	one := &r.covers[place]
	var shares []shamir.Share
	for _, index := range r.key.covers.Indices() {
		part := r.parts[index-1]
		value := part[(c.Polynomials+place)*scalarSize:]
		shares = append(shares, shamir.Share{Index: index, Value: [32]byte(value)})
	}
	key, _, err := r.key.covers.CorrectVarTime(shares, func(key shamir.Secret) bool {
		return coverCommitment(&r.context, int(one.party), &key) == one.commitment
	})
	if err != nil {
		return err
	}
	coverStream(&key).XORKeyStream(masked, masked)
	return c.ring.CheckPacked(masked, c.length)
}

// Sum removes the key and returns the sum of the inputs, with its noise unless the sum is exact.
// With [Terms.Groups] Sum returns the sum that there would be if each party in [Server.Included]
// had submitted the median of the groups' means: see [MedianOfMeans].
// Call it when enough members have sent parts; if the round is covered, after [Server.Uncover] of
// every party in the sum, and with [Terms.Norm] after [Server.Reduce]. A sum ends the round; after
// an error the caller may wait for more parts and try again.
//
// It fails with [ErrTooFew] while fewer than [Figures.Answers] parts have arrived; with [ErrParts]
// if the parts do not fit together, because more than Faults of them are invalid or those of some
// party belong to no key; with [ErrNoise] if a party's submission does not fit the key that it
// dealt. With [Terms.Norm] no party can cause either, and ErrParts means that more than Faults
// members lie. It fails with [ErrPhase] before [Server.Certificate].
func (s *Server) Sum() ([]int64, error) {
	if err := s.unlock(); err != nil {
		return nil, err
	}
	c, r := s.config, s.open
	if c.Covered && r.uncovered.Len() < r.parties {
		return nil, fmt.Errorf("%w: %d of %d submissions are uncovered", ErrPhase, r.uncovered.Len(),
			r.parties)
	}
	full := r.full(c)
	sums, counts := make([][]int64, 0, len(full)), make([]int, 0, len(full))
	for i, g := range full {
		sum, err := r.sumOf(c, g, r.key.factors[i])
		if err != nil {
			return nil, err
		}
		sums, counts = append(sums, sum), append(counts, r.counts[g])
	}
	s.open = nil
	if c.groups() > 1 {
		return MedianOfMeans(sums, counts), nil
	}
	return sums[0], nil
}

// sumOf returns the sum of a group.
func (r *serverRound) sumOf(c *settled, group int, key ring.Factor) ([]int64, error) {
	sum := slices.Clone(r.sum[group*c.length:][:c.length])
	ringKey := hash(labels.OneshotRing, r.context[:])
	public := c.ring.NewExpander(&ringKey)
	mask := make([]uint64, degree)
	values := make([]int64, 0, c.length)
	for j := 0; len(values) < c.length; j++ {
		public.Expand(mask, j)
		c.ring.MulInto(mask, mask, key)
		block := sum[len(values):min(len(values)+degree, c.length)]
		c.ring.SubFrom(block, mask[:len(block)])
		for _, x := range block {
			values = append(values, c.ring.Centred(x))
		}
	}
	for _, v := range values[c.Length:] {
		if e := v / c.Scale; e*c.Scale != v || e > c.off || e < -c.off {
			return nil, ErrNoise
		}
	}
	values = values[:c.Length]
	if c.Scale > 1 {
		for i, v := range values {
			// The residue of v modulo T within −T/2 … T/2 − 1.
			values[i] = (v+c.Scale/2)&(c.Scale-1) - c.Scale/2
		}
	}
	return values, nil
}
