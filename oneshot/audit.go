package oneshot

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"slices"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/shamir"
)

// This file has members' noise that is drawn under audit: SPEC-ONESHOT.md §15.6. A proof bounds the
// length of noise, and leaves its direction to the member. So a member commits to candidates, each
// of which is all that a seed gives; the server draws which of them is dealt, and sees the seeds of
// the others.

const (
	candidates    = 16 // T, of a member in a round
	seedSize      = 32
	coinSize      = 32
	digestsSize   = candidates * 32
	openedSize    = (candidates - 1) * seedSize
	drawnSize     = digestsSize + coinSize + openedSize
	auditTailSize = openedSize + keyexchange.SignatureSize
)

// silentRounds is for how many rounds the noise of a member that has seen a coin and dealt nothing
// is left out, if that of others is enough. Each try to deal noise that is not a seed's costs a
// member as many rounds, but for one in candidates.
const silentRounds = candidates

// forever is the round up to which a convicted member's noise is left out.
const forever = 1<<64 - 1

// audited reports whether members' noise is drawn under audit: where it has proofs.
func (s *settled) audited() bool { return s.memberScheme != nil }

// tailSize is the length of what a dealer's submission ends with, after its signature.
func (s *settled) tailSize(dealer int) int {
	if dealer >= s.n && s.audited() {
		return auditTailSize
	}
	return 0
}

// untailed returns a body of typeSubmission without that, and that.
func (s *settled) untailed(dealer int, body []byte) (submission, tail []byte, err error) {
	size := len(body) - s.tailSize(dealer)
	if size < 0 {
		return nil, nil, ErrTruncated
	}
	return body[:size:size], body[size:], nil
}

// dealtBy returns which candidate a coin has a member deal.
func dealtBy(context *[32]byte, coin []byte, dealer int) int {
	d := hash(labels.OneshotDrawn, context[:], uint32Bytes(dealer), coin)
	return int(d[0]) % candidates
}

// keystream reads AES-256-CTR.
type keystream struct{ cipher.Stream }

func (k keystream) Read(p []byte) (int, error) {
	clear(p)
	k.XORKeyStream(p, p)
	return len(p), nil
}

// seededBy returns what a candidate is drawn from.
func seededBy(context *[32]byte, dealer int, seed []byte) io.Reader {
	key := hash(labels.OneshotSeed, context[:], uint32Bytes(dealer), seed)
	defer clear(key[:])
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("oneshot: " + err.Error()) // an AES-256 key has 32 bytes
	}
	return keystream{cipher.NewCTR(block, make([]byte, aes.BlockSize))}
}

// candidateDigest commits to masked noise as it is sent, and to its key.
func candidateDigest(context *[32]byte, dealer int, masked *[32]byte, key []byte) [32]byte {
	return hash(labels.OneshotCandidate, context[:], uint32Bytes(dealer), masked[:], key)
}

// candidate returns the digest of all that a seed gives: [submitter.submission] draws the same from
// it, in the same order.
func (s *settled) candidate(context *[32]byte, dealer int, seed []byte) [32]byte {
	drawn := seededBy(context, dealer, seed)
	key := make([]int64, degree)
	defer clear(key)
	must := func(err error) {
		if err != nil {
			panic("oneshot: " + err.Error()) // a keystream does not fail
		}
	}
	must(s.keys.NewSampler(drawn).Fill(key))
	masked, err := s.mask(s.dealt.NewSampler(drawn), context, key, make([]int64, s.Length), nil)
	must(err)
	blind, err := shamir.GenerateSecret(drawn)
	must(err)
	defer clear(blind[:])
	if s.Covered {
		cover, err := shamir.GenerateSecret(drawn)
		must(err)
		coverStream(&cover).XORKeyStream(masked, masked)
		clear(cover[:])
	}
	scalar, err := edwards25519.NewScalar().SetCanonicalBytes(blind[:])
	must(err)
	commitment := s.memberScheme.Commit(key, scalar)
	digest := hash(labels.OneshotMasked, masked)
	return candidateDigest(context, dealer, &digest, commitment[:])
}

// propose draws a member's candidates and returns the message that commits to them.
func (m *Member) propose(context *[32]byte) (seeds [][32]byte, digests, message []byte, err error) {
	s := m.config
	seeds = make([][32]byte, candidates)
	for t := range seeds {
		if err := entropy.Read("oneshot", m.random, seeds[t][:]); err != nil {
			return nil, nil, nil, err
		}
	}
	all := make([][32]byte, candidates)
	each(candidates, func(t int) { all[t] = s.candidate(context, s.n+m.self, seeds[t][:]) })
	for t := range all {
		digests = append(digests, all[t][:]...)
	}
	return seeds, digests, append(m.header(typeCandidates, context), digests...), nil
}

// receiveCoin answers with the candidate that the coin draws, and with the seeds of the others. It
// answers once: two coins would show all seeds.
func (m *Member) receiveCoin(body []byte) ([]byte, error) {
	s, r := m.config, m.open
	if err := wire.Exactly(body, coinSize); err != nil {
		return nil, err
	}
	if r.seeds == nil {
		return nil, fmt.Errorf("%w: a coin", ErrDuplicate)
	}
	dealer := s.n + m.self
	at := dealtBy(&r.context, body, dealer)
	d := submitter{s, m.signer, seededBy(&r.context, dealer, r.seeds[at][:]), dealer, s.dealt}
	dealt, err := d.submission(&r.context, r.opening, m.round, make([]int64, s.Length),
		noise.Expand(m.random))
	switch {
	case errors.Is(err, ErrMissed):
		m.forget() // it deals none, and is one of the Faults
		m.output = nil
		return nil, nil
	case err != nil:
		return nil, err
	}
	drawn := slices.Concat(r.digests, body)
	opened := make([]byte, 0, openedSize)
	for t := range r.seeds {
		if t != at {
			opened = append(opened, r.seeds[t][:]...)
		}
	}
	masked := hash(labels.OneshotMasked, dealt.masked)
	signature, err := keyexchange.Sign(m.signer, labels.OneshotAudit,
		auditStatement(&r.context, dealer, append(drawn, opened...), &masked, dealt.dealing))
	if err != nil {
		return nil, err
	}
	m.forget()
	message := dealt.append(m.header(typeSubmission, &r.context))
	m.output = append(append(message, opened...), signature[:]...)
	return m.output, nil
}

// forget erases candidates.
func (m *Member) forget() {
	r := m.open
	for t := range r.seeds {
		clear(r.seeds[t][:])
	}
	r.seeds, r.digests, r.opening = nil, nil, nil
}

// auditStatement returns what a member signs once it has seen the coin: digests of its candidates,
// the coin, the seeds that are shown, and what it deals.
func auditStatement(
	context *[32]byte, dealer int, drawn []byte, masked *[32]byte, dealing []byte,
) []byte {
	return slices.Concat(context[:], uint32Bytes(dealer), drawn, masked[:], dealing[:32])
}

// drawnFairly reports whether noise is the candidate that the coin has drawn, and the others come
// of their seeds.
func (s *settled) drawnFairly(
	context *[32]byte, dealer int, drawn []byte, masked *[32]byte, dealing []byte,
) bool {
	digests, coin, opened := drawn[:digestsSize], drawn[digestsSize:][:coinSize],
		drawn[digestsSize+coinSize:]
	at := dealtBy(context, coin, dealer)
	fair := make([]bool, candidates)
	each(candidates, func(t int) {
		var is [32]byte
		switch {
		case t == at:
			is = candidateDigest(context, dealer, masked, dealing[:32])
		case t < at:
			is = s.candidate(context, dealer, opened[t*seedSize:][:seedSize])
		default:
			is = s.candidate(context, dealer, opened[(t-1)*seedSize:][:seedSize])
		}
		fair[t] = is == [32]byte(digests[32*t:])
	})
	return !slices.Contains(fair, false)
}

// receiveCandidates takes a member's digests, before there is a coin.
func (s *Server) receiveCandidates(body []byte, member int) error {
	r := s.open
	switch err := wire.Exactly(body, digestsSize); {
	case !s.config.audited():
		return fmt.Errorf("%w: %d", ErrType, typeCandidates)
	case err != nil:
		return err
	case r.coin != nil:
		return fmt.Errorf("%w: the coin is drawn", ErrPhase)
	case r.candidates[member] != nil:
		return ErrDuplicate
	}
	r.candidates[member] = slices.Clone(body)
	return nil
}

// Coin draws which of its candidates each member deals as noise, and returns the message that tells
// all members. Save the server before the message is sent. The coin comes from random; nil means
// crypto/rand. Called again it returns the same message. Wait for all members as long as that makes
// sense: who has no candidates by then deals no noise.
//
// It fails with [ErrTooFew] while fewer than C − Faults members have sent candidates, and with
// [ErrPhase] if the round is not open for submissions, or has no such noise: it takes
// [Terms.CommitteeNoise] with [Terms.Norm].
func (s *Server) Coin(random io.Reader) ([]byte, error) {
	c, r := s.config, s.open
	switch {
	case !c.audited() || r == nil || r.step != stepSubmissions:
		return nil, fmt.Errorf("%w: no noise is drawn", ErrPhase)
	case r.coin == nil && s.proposed() < c.noises():
		return nil, fmt.Errorf("%w: %d members have sent candidates, want %d", ErrTooFew,
			s.proposed(), c.noises())
	case r.coin == nil:
		coin := make([]byte, coinSize)
		if err := entropy.Read("oneshot", random, coin); err != nil {
			return nil, err
		}
		r.coin = coin
	}
	return append(c.header(typeCoin, &r.context, s.round, wire.ServerIndex), r.coin...), nil
}

// proposed returns how many members have sent candidates.
func (s *Server) proposed() (n int) {
	for _, digests := range s.open.candidates {
		if digests != nil {
			n++
		}
	}
	return n
}

// checkAudit checks what a member's noise ends with. It fails with [ErrSignature], which leaves no
// trace, or with [ErrAudit] and evidence.
func (s *Server) checkAudit(sub *submitted, tail []byte) (evidence *claim, err error) {
	c, r := s.config, s.open
	m, err := c.parseSubmission(sub.body, r.members.Len())
	if err != nil {
		panic("oneshot: " + err.Error()) // it was parsed before
	}
	drawn := slices.Concat(r.candidates[sub.party-c.n], r.coin, tail[:openedSize])
	made := &claim{
		Party:     sub.party,
		Member:    -1,
		Signature: [keyexchange.SignatureSize]byte(tail[openedSize:]),
		Masked:    sub.masked,
		Dealing:   slices.Clone(m.dealing[:32]),
		Drawn:     drawn,
	}
	if keyexchange.Verify(c.identity(sub.party), labels.OneshotAudit,
		auditStatement(&r.context, sub.party, drawn, &sub.masked, m.dealing), &made.Signature) != nil {
		return nil, ErrSignature
	}
	if c.drawnFairly(&r.context, sub.party, drawn, &sub.masked, m.dealing) {
		return nil, nil
	}
	return made, nil
}

// convictsDrawn reports whether a member signed candidates which show that it drew no noise.
func (s *settled) convictsDrawn(context *[32]byte, c *claim) bool {
	return s.audited() && c.Party >= s.n &&
		keyexchange.Verify(s.identity(c.Party), labels.OneshotAudit,
			auditStatement(context, c.Party, c.Drawn, &c.Masked, c.Dealing), &c.Signature) == nil &&
		!s.drawnFairly(context, c.Party, c.Drawn, &c.Masked, c.Dealing)
}

// doubtCheat doubts a member that was convicted in what it dealt, from now on.
func (s *Server) doubtCheat(dealer int) {
	if dealer >= s.config.n {
		s.doubt(dealer-s.config.n, forever)
	}
}

// doubt has a member's noise left out up to a round, if that of others is enough.
func (s *Server) doubt(member int, until uint64) {
	if s.doubts == nil {
		s.doubts = make([]uint64, s.config.c)
	}
	s.doubts[member] = max(s.doubts[member], until)
}

// doubted reports whether a member's noise is left out of the open round, if that of others is
// enough.
func (s *Server) doubted(member int) bool {
	return s.doubts != nil && s.doubts[member] >= s.round
}

// doubtSilent doubts members that have seen what the coin draws and not dealt it.
func (s *Server) doubtSilent() {
	for k, digests := range s.open.candidates {
		if digests != nil && !s.open.received.Has(s.config.n+k) {
			s.doubt(k, s.round+silentRounds)
		}
	}
}
