package normproof

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// falseTests has the cheat show tests that differ from those of its vector by numbers orthogonal to
// its key, so that all equations hold.
func falseTests(c *cheat) {
	key, n, q := c.witness.Key, c.tests.keys[0], int64(c.Modulus)
	add := func(at int, x int64) { n[at] = uint64(((int64(n[at])+x)%q + q) % q) }
	add(0, key[1])
	add(1, -key[0])
}

// TestProbe: coins take the tests that a verifier makes, and none that differ from them in a
// number; false tests that are orthogonal to known coins they would take. A proof in which nothing
// else is false is refused, by coins and without.
func TestProbe(t *testing.T) {
	for _, c := range []struct {
		modulus uint64
		length  int
	}{{0xfc001, 40}, {0x7fffffdd001, 300}, {0x3ffffffffc001, 40_000}} {
		p := tiny
		p.Modulus, p.Length = c.modulus, c.length
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		n := newInstance(s, 7, 400)
		h1, h2 := [32]byte{1}, [32]byte{2}
		made := s.fold(n.statement, &h1, &h2)
		by := s.newProbe()
		if !by.prepare(&n.statement.RingKey) || !by.agrees(n.statement, &h1, made) {
			t.Fatalf("modulus %d: tests are refused", c.modulus)
		}
		if by.prepare(&[32]byte{255}) {
			t.Error("coins of another ring")
		}
		r := rand.New(rand.NewPCG(5, 6))
		for range 20 {
			at, of := r.IntN(s.tests), r.IntN(s.Degree+1)
			number := &made.totals[at]
			if of < s.Degree {
				number = &made.keys[at][of]
			}
			before := *number
			*number = (before + 1 + r.Uint64N(s.Modulus-1)) % s.Modulus
			if by.agrees(n.statement, &h1, made) || made.same(s.fold(n.statement, &h1, &h2)) {
				t.Errorf("modulus %d: a false number passes", c.modulus)
			}
			*number = before
		}
		known := by.pairs[0].r
		by.pairs = by.pairs[:1]
		made.keys[0][0] = (made.keys[0][0] + known[1]) % s.Modulus
		made.keys[0][1] = (made.keys[0][1] + s.Modulus - known[0]) % s.Modulus
		if !by.agrees(n.statement, &h1, made) {
			t.Error("the attack does not work where coins are known")
		}
		other := s.newProbe()
		other.prepare(&n.statement.RingKey)
		if other.agrees(n.statement, &h1, made) {
			t.Error("false tests pass coins that are not known")
		}
	}

	s := tinyScheme()
	n := newInstance(s, 31, 500)
	c := &cheat{afterFold: falseTests}
	d, encoded := c.prove(t, s, n)
	p, chi, h5 := c.decoded(t, d, encoded)
	psi := folding(p, &h5)
	_, combined, err := s.parse(d)
	if err != nil {
		t.Fatal(err)
	}
	e := s.equation(c.tests, &c.h1, &c.h3, &c.h4, c.sums, c.gamma, combined)
	if !s.linear(p, e, chi, psi) || !s.combined(p, chi, psi, encoded, &h5).holds(s) {
		t.Error("something else is false")
	}
	if err := s.Verify(n.statement, d, encoded); !errors.Is(err, ErrProof) {
		t.Error(err)
	}
	errs := s.VerifyAll(1, func(int) *Claim { return &Claim{n.statement, d, encoded} })
	if !errors.Is(errs[0], ErrProof) {
		t.Error(errs[0])
	}
}

// TestProbeLaw: with one pair of coins a false test passes once in q times, counted at q = 97
// within six deviations.
func TestProbeLaw(t *testing.T) {
	p := tiny
	p.Modulus, p.Bound, p.Length = 97, 16, 40
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	n := newInstance(s, 7, 3)
	h1, h2 := [32]byte{1}, [32]byte{2}
	made := s.fold(n.statement, &h1, &h2)
	if k := len(s.newProbe().pairs); k != 7 { // each counts for six bits
		t.Errorf("%d pairs", k)
	}
	for _, number := range []*uint64{&made.keys[1][5], &made.totals[2]} {
		const tries = 97 * 30
		passed := 0
		before := *number
		*number = (before + 11) % s.Modulus
		for range tries {
			by := s.newProbe()
			by.pairs = by.pairs[:1]
			by.prepare(&n.statement.RingKey)
			if by.agrees(n.statement, &h1, made) {
				passed++
			}
		}
		*number = before
		if passed < 1 || passed > 63 {
			t.Errorf("%d of %d pass, want some 30", passed, tries)
		}
	}
}
