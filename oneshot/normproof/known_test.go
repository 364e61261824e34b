package normproof

import (
	"testing"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
)

// TestWeightsKnown: were the weights of equations known before the responses, wrong responses would
// make up for each other. They are made from the whole proof.
func TestWeightsKnown(t *testing.T) {
	s := tinyScheme()
	n := newInstance(s, 70, 500)
	c := new(cheat)
	d, encoded := c.prove(t, s, n)
	p, chi, h5 := c.decoded(t, d, encoded)
	known := hash(labels.OneshotProofCombine, h5[:])
	seven := small(7)
	p.blinds[ofMask].MultiplyAdd(challenge(&known, labels.OneshotProofCombine), seven,
		p.blinds[ofMask])
	p.blinds[ofSums].Subtract(p.blinds[ofSums], seven)
	if !s.combined(p, chi, folding(p, &h5), nil, &h5).holds(s) {
		t.Error("the attack does not work where weights are known")
	}
	if s.combined(p, chi, folding(p, &h5), encoded, &h5).holds(s) {
		t.Error("the weights do not depend on the responses")
	}
}

// TestFoldKnown: if the weights that fold the responses of the key were known before X and x,
// any responses would do, and so any key.
func TestFoldKnown(t *testing.T) {
	s := tinyScheme()
	n := newInstance(s, 71, 500)
	c := new(cheat)
	d, encoded := c.prove(t, s, n)
	p, chi, h5 := c.decoded(t, d, encoded)
	psi := folding(p, &h5)
	_, combined, err := s.parse(d)
	if err != nil {
		t.Fatal(err)
	}
	e := s.equation(c.tests, &c.h1, &c.h3, &c.h4, c.sums, c.gamma, combined)
	holds := func(psi *edwards25519.Scalar) bool {
		return s.linear(p, e, chi, psi) && s.combined(p, chi, psi, encoded, &h5).holds(s)
	}
	if !holds(psi) {
		t.Fatal("the proof does not hold")
	}
	half := s.Degree / 2
	p.folded[0].Add(p.folded[0], small(1)) // adds ψ·G_0 + G_half, and ψ·Λ_0 + Λ_half
	if holds(psi) {
		t.Error("other folded responses hold")
	}
	scalars := []*edwards25519.Scalar{small(0), small(0), psi}
	for range half - 1 {
		scalars = append(scalars, small(0))
	}
	more := s.points().SumVarTime(append(scalars, small(1)), nil)
	p.halfPoints[0].Add(p.halfPoints[0], more)
	x := new(edwards25519.Scalar).MultiplyAdd(psi, e.coefficients[0], e.coefficients[half])
	p.halfTests[0].Add(p.halfTests[0], x)
	if !holds(psi) {
		t.Error("the attack does not work where ψ is known")
	}
	p.halves[0] = [32]byte(p.halfPoints[0].Bytes())
	p.restEncoded = nil
	s.encodeRest(p)
	if holds(folding(p, &h5)) {
		t.Error("ψ does not depend on X and x")
	}
}
