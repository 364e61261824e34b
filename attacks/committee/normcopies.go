package committee

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/pedersen"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/oneshot/crook"
	"github.com/hushsum/hushsum/oneshot/normproof"
)

// runNormCopies has a party show an honest one's proof for its own, or what it can make of that. A
// verifier whose hashes have not what tells two statements apart says of the copy what it says of
// the original.
func runNormCopies(r *runner) error {
	n, err := newNormWorld(r.o.Seed, true)
	if err != nil {
		return err
	}
	scheme, err := crook.Scheme(n.w.config)
	if err != nil {
		return err
	}
	message, err := n.message(0)
	if err != nil {
		return err
	}
	p, err := n.cut(message)
	if err != nil {
		return err
	}
	holds := func(change func(t *normproof.Statement)) (bool, error) {
		t := n.statement(0, p)
		change(t)
		err := scheme.Verify(t, dealingOf(p.dealing), p.proof)
		if err != nil && !errors.Is(err, normproof.ErrProof) {
			return false, err
		}
		return err == nil, nil
	}
	same, err := holds(func(*normproof.Statement) {})
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name   string
		change func(t *normproof.Statement)
	}{
		{"of another party", func(t *normproof.Statement) { t.Party = parties - 1 }},
		{"of another round", func(t *normproof.Statement) { t.Context[0] ^= 1 }},
		{"of a member, for its noise", func(t *normproof.Statement) { t.Role = 1 }},
		{"of other shares", func(t *normproof.Statement) { t.Root[0] ^= 1 }},
		{"under another bound", func(t *normproof.Statement) { t.Config[0] ^= 1 }},
	} {
		copied, err := holds(c.change)
		if err != nil {
			return err
		}
		r.counts("a proof that is copied: "+c.name, "copies that pass", same, copied)
	}

	// The whole of it: an honest party's vector, dealing and proof with the cheat's own shares.
	cheat, err := n.cheat(func(own *parts) {
		copy(own.masked, p.masked)
		copy(own.dealing, p.dealing)
		copy(own.proof, p.proof)
	})
	if err != nil {
		return err
	}
	err = n.server.Receive(cheat)
	if err != nil && !errors.Is(err, oneshot.ErrProof) {
		return fmt.Errorf("a copy: %w", err)
	}
	r.counts("an honest party's vector and proof, with shares of the cheat's", "copies that pass",
		same, err == nil)

	// v' = −v_i: y and all commitments with the other sign.
	negative, err := holds(func(t *normproof.Statement) {
		for i, y := range t.Masked {
			t.Masked[i] = (n.figures.Modulus - y) % n.figures.Modulus
		}
		t.Party = parties - 1
	})
	if err != nil {
		return err
	}
	weak, strong := mirrored(false), mirrored(true)
	r.counts("the negative of an honest party's vector, with the negative of its proof",
		"vectors that cancel another", weak, strong || negative)
	r.rows[len(r.rows)-1].Note = "without: a challenge that has not what is committed to"
	return nil
}

// mirrored reports whether the negative of a proof of knowledge of a committed number holds, of
// one whose challenge is a hash over commitment and first message, or of the name of what is proved
// alone.
func mirrored(bound bool) bool {
	g := pedersen.NewGenerators("attacks", 2)
	w, blind, a, b := hashed("w"), hashed("blind"), hashed("a"), hashed("b")
	commit := func(x, y *edwards25519.Scalar) *edwards25519.Point {
		return g.SumVarTime([]*edwards25519.Scalar{x, y}, nil)
	}
	challenge := func(c, first *edwards25519.Point) *edwards25519.Scalar {
		if !bound {
			return hashed("the round's challenge")
		}
		return hashed(string(append(c.Bytes(), first.Bytes()...)))
	}
	c, first := commit(w, blind), commit(a, b)
	chi := challenge(c, first)
	z, y := a.MultiplyAdd(chi, w, a), b.MultiplyAdd(chi, blind, b)
	// Everything with the other sign, by somebody who knows neither w nor a.
	for _, p := range []*edwards25519.Point{c, first} {
		p.Negate(p)
	}
	for _, x := range []*edwards25519.Scalar{z, y} {
		x.Negate(x)
	}
	want := new(edwards25519.Point).ScalarMult(challenge(c, first), c)
	return commit(z, y).Equal(want.Add(want, first)) == 1
}

// hashed returns a scalar made from a name.
func hashed(name string) *edwards25519.Scalar {
	low, high := sha256.Sum256([]byte("low"+name)), sha256.Sum256([]byte("high"+name))
	c, err := new(edwards25519.Scalar).SetUniformBytes(append(low[:], high[:]...))
	if err != nil {
		panic("attacks: " + err.Error()) // they are 64 bytes
	}
	return c
}
