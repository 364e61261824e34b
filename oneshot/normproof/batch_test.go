package normproof

import (
	"bytes"
	cryptorand "crypto/rand"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/pedersen"
)

// verdicts compares what VerifyAll says with what Verify says of each claim.
func verdicts(t *testing.T, s *Scheme, claims []*Claim) []error {
	t.Helper()
	calls := make([]int, len(claims))
	got := s.VerifyAll(len(claims), func(i int) *Claim {
		calls[i]++
		return claims[i]
	})
	for i, c := range claims {
		want := s.Verify(c.Statement, c.Dealing, c.Proof)
		if !errors.Is(got[i], want) || (want == nil) != (got[i] == nil) {
			t.Errorf("claim %d: %v in a batch, %v by itself", i, got[i], want)
		}
		if calls[i] != 1 {
			t.Errorf("claim %d is asked for %d times", i, calls[i])
		}
	}
	return got
}

// Any mixture of proofs that hold, that fail in scalars, in points, in both or in their encoding,
// or that have points of small order more has the verdicts that each has by itself.
func TestBatch(t *testing.T) {
	s := tinyScheme()
	identity := [32]byte{1}
	encoded := plusSmall(t, identity)
	torsion, err := pedersen.Parse(&encoded)
	if err != nil {
		t.Fatal(err)
	}
	makes := []func(seed uint64) *Claim{
		func(seed uint64) *Claim {
			n := newInstance(s, seed, 500)
			d, proof := n.prove(t, s, seed)
			return &Claim{n.statement, d, proof}
		},
		func(seed uint64) *Claim { // a small point more
			n := newInstance(s, seed, 500)
			d, proof := (&cheat{torsion: torsion}).prove(t, s, n)
			return &Claim{n.statement, d, proof}
		},
	}
	spoil := func(name string, change func(c *Claim)) {
		makes = append(makes, func(seed uint64) *Claim {
			c := makes[0](seed)
			change(c)
			return c
		})
	}
	makes = append(makes, func(seed uint64) *Claim { // another blind: points alone fail
		return wrongPoint(t, s, newInstance(s, seed, 500))
	})
	spoil("a response", func(c *Claim) { c.Proof[s.Size()-32] ^= 1 })
	spoil("the statement", func(c *Claim) { c.Statement.Party++ })
	spoil("the encoding", func(c *Claim) { c.Proof[s.Size()-1] = 255 })
	spoil("the dealing", func(c *Claim) { c.Dealing.Combined[0][0] ^= 1 })
	spoil("the shape", func(c *Claim) { c.Statement.Masked = c.Statement.Masked[1:] })
	var claims []*Claim
	for seed, one := range makes {
		claims = append(claims, one(uint64(seed)+80))
	}
	if got := verdicts(t, s, claims); got[0] != nil || got[1] != nil ||
		!errors.Is(got[2], ErrProof) || !errors.Is(got[5], ErrEncoding) || !errors.Is(got[7], ErrShape) {
		t.Error(got)
	}
	verdicts(t, s, nil)
	r := rand.New(rand.NewPCG(13, 14))
	for range 20 {
		var some []*Claim
		for range r.IntN(6) {
			some = append(some, claims[r.IntN(len(claims))])
		}
		verdicts(t, s, some)
	}
}

// Were weights of a batch known before its proofs are, proofs that fail would make up for each
// other. The weights are made from all proofs.
func TestBatchWeights(t *testing.T) {
	s := tinyScheme()
	var proofs [2]*proof
	var psi [2]*edwards25519.Scalar
	var relate [2]func() *relation
	for i := range proofs {
		n := newInstance(s, 90+uint64(i), 500)
		c := new(cheat)
		d, encoded := c.prove(t, s, n)
		p, chi, h5 := c.decoded(t, d, encoded)
		proofs[i], psi[i] = p, folding(p, &h5)
		relate[i] = func() *relation {
			p.restEncoded = nil
			s.encodeRest(p)
			return s.combined(p, chi, psi[i], s.append(nil, p), &h5)
		}
	}
	both := func() []*relation { return []*relation{relate[0](), relate[1]()} }
	if !s.together(both()).holds(s) {
		t.Fatal("two proofs do not hold")
	}
	// Blinds of the first commitment have the weight ψ in a proof, and the first proof's is 1.
	honest := s.together(both())
	weight := challenge(&honest.digest, labels.OneshotProofBatch)
	seven := small(7)
	more := new(edwards25519.Scalar).Multiply(weight, psi[1])
	proofs[0].blinds[ofKey].MultiplyAdd(more, seven, proofs[0].blinds[ofKey])
	less := new(edwards25519.Scalar).Multiply(psi[0], seven)
	proofs[1].blinds[ofKey].Subtract(proofs[1].blinds[ofKey], less)
	now := both()
	if now[0].holds(s) || now[1].holds(s) {
		t.Fatal("a proof holds that was changed")
	}
	sum := edwards25519.NewIdentityPoint()
	sum.Add(now[0].sum(s), new(edwards25519.Point).ScalarMult(weight, now[1].sum(s)))
	if !pedersen.IsSmall(sum) {
		t.Error("the attack does not work where weights are known")
	}
	if s.together(now).holds(s) {
		t.Error("the weights do not depend on the proofs")
	}
	// From differences that make up for each other by this weight to some that do by 1.
	proofs[0].blinds[ofKey].Subtract(proofs[0].blinds[ofKey],
		new(edwards25519.Scalar).Multiply(more, seven))
	proofs[0].blinds[ofKey].MultiplyAdd(psi[1], seven, proofs[0].blinds[ofKey])
	now = both()
	if !pedersen.IsSmall(new(edwards25519.Point).Add(now[0].sum(s), now[1].sum(s))) {
		t.Error("the attack does not work where weights are 1")
	}
	if s.together(now).holds(s) {
		t.Error("the weights of all proofs are the same")
	}
}

// TestCoinsOfEachBatch: what is drawn for one batch serves no other, so that nobody who has learnt
// coins by verdicts can use them.
func TestCoinsOfEachBatch(t *testing.T) {
	s := tinyScheme()
	n := newInstance(s, 41, 500)
	d, proof := n.prove(t, s, 1)
	drawn := new(bytes.Buffer)
	before := cryptorand.Reader
	cryptorand.Reader = io.TeeReader(before, drawn)
	defer func() { cryptorand.Reader = before }()
	var coins [2][]byte
	for i := range coins {
		drawn.Reset()
		errs := s.VerifyAll(1, func(int) *Claim { return &Claim{n.statement, d, proof} })
		if errs[0] != nil {
			t.Fatal(errs[0])
		}
		coins[i] = bytes.Clone(drawn.Bytes())
	}
	// Of each pair, a number of 20 bits for each coefficient of the ring, and one more.
	if least := 3 * 8 * (s.Degree + 1); len(coins[0]) < least || len(coins[1]) < least ||
		bytes.Equal(coins[0], coins[1]) {
		t.Errorf("%d and %d bytes are drawn, want %d others each", len(coins[0]), len(coins[1]), least)
	}
}
