package normproof

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/pedersen"
	"github.com/hushsum/hushsum/internal/suite"
)

// Proofs of vectors within the bound hold, for parameters of all kinds.
func TestHonest(t *testing.T) {
	for name, change := range map[string]func(*Parameters){
		"tiny":             func(*Parameters) {},
		"one value":        func(p *Parameters) { p.Length = 1 },
		"whole blocks":     func(p *Parameters) { p.Length = 48 },
		"50 bits":          func(p *Parameters) { p.Modulus = 0x3ffffffffc001 },
		"43 bits":          func(p *Parameters) { p.Modulus = 0x7fffffdd001 },
		"many secrets":     func(p *Parameters) { p.PerPolynomial, p.Threshold = 7, 12 },
		"lanes of 20 bits": func(p *Parameters) { p.LaneBits = 20 },
		"one secret":       func(p *Parameters) { p.PerPolynomial, p.Threshold, p.Degree = 1, 2, 64 },
		"largest bound":    func(p *Parameters) { p.Bound, p.Modulus = 1<<64-1, 0x3ffffffffc001 },
	} {
		p := tiny
		change(&p)
		s, err := New(p)
		if err != nil {
			t.Fatal(name, err)
		}
		n := newInstance(s, 7, 0.8*math.Sqrt(float64(p.Bound)))
		d, proof := n.prove(t, s, 1)
		if err := s.Verify(n.statement, d, proof); err != nil || len(proof) != s.Size() {
			t.Errorf("%s: %v, %d bytes", name, err, len(proof))
		}
	}
}

// Every length around whole blocks, with -long for every way to deal a small key.
func TestSizes(t *testing.T) {
	most, longest := 2, 10
	if suite.Long() {
		most, longest = 5, 20
	}
	for secrets := 1; secrets <= most; secrets++ {
		for length := 1; length <= longest; length++ {
			p := tiny
			p.Degree, p.Length, p.LaneBits = 8, length, 19+length*7
			p.LaneBits = min(p.LaneBits, 62)
			p.PerPolynomial, p.Threshold = secrets, secrets+1+length%3
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			n := newInstance(s, uint64(length), 500)
			d, proof := n.prove(t, s, 1)
			if err := s.Verify(n.statement, d, proof); err != nil {
				t.Errorf("%+v: %v", p, err)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	s := tinyScheme()
	n := newInstance(s, 3, 5000)
	if _, _, err := s.Prove(seeded(1), n.statement, n.witness); !errors.Is(err, ErrLimit) {
		t.Errorf("a vector eight times too long: %v", err)
	}
}

// TestEdges: the ends of ranges are within them, and what is beyond is not.
func TestEdges(t *testing.T) {
	for _, c := range []struct {
		change func(p *Parameters)
		good   bool
	}{
		{func(p *Parameters) { p.LaneBits = 10 }, true},
		{func(p *Parameters) { p.LaneBits = 9 }, false},
		{func(p *Parameters) { p.LaneBits = 62 }, true},
		{func(p *Parameters) { p.LaneBits = 63 }, false},
		{func(p *Parameters) { p.Threshold = 255 }, true},
		{func(p *Parameters) { p.Threshold = 256 }, false},
		{func(p *Parameters) { p.PerPolynomial = 3 }, false},
		{func(p *Parameters) { p.PerPolynomial = 0 }, false},
		{func(p *Parameters) { p.Length = 1 }, true},
		{func(p *Parameters) { p.Length = 0 }, false},
		{func(p *Parameters) { p.Bound = 0 }, false},
		{func(p *Parameters) { p.KeyBound = 1 << 32 }, true},
		{func(p *Parameters) { p.KeyBound = 1<<32 + 1 }, false},
		{func(p *Parameters) { p.Degree = 4 }, false},
		{func(p *Parameters) { p.Degree = 24 }, false},
		{func(p *Parameters) { p.Modulus -= 32 }, false},
		{func(p *Parameters) { p.Bound = p.Modulus * p.Modulus / (wrap * wrap) }, true},
		{func(p *Parameters) { p.Bound = p.Modulus*p.Modulus/(wrap*wrap) + 1 }, false},
	} {
		p := tiny
		c.change(&p)
		if _, err := New(p); (err == nil) != c.good || err != nil && !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// TestTestVectors: numbers of test vectors are below the modulus, and each comes as often.
func TestTestVectors(t *testing.T) {
	s := &Scheme{Parameters: Parameters{Modulus: 17}, tests: 40}
	var count [17]int
	for _, v := range s.testVectors(&[32]byte{5}) {
		for _, x := range v {
			count[x]++ // beyond 16 there is no place
		}
	}
	// χ² of 16 degrees of freedom is beyond 64 with a probability of 1e-7; the vectors are fixed.
	want, sum := 40*rows/17., 0.
	for _, n := range count {
		sum += (float64(n) - want) * (float64(n) - want) / want
	}
	if sum > 64 {
		t.Errorf("χ² is %.1f: %d", sum, count)
	}
}

// TestOpens: the sum of commitments to keys opens to the sum of the keys and of their blinds, and
// to nothing else.
func TestOpens(t *testing.T) {
	s := tinyScheme()
	total := edwards25519.NewIdentityPoint()
	key, blind := make([]int64, s.Degree), small(0)
	for seed := range uint64(3) {
		n := newInstance(s, 61+seed, 500)
		d, _ := n.prove(t, s, seed)
		point, err := pedersen.Parse(&d.Key)
		if err != nil {
			t.Fatal(err)
		}
		total.Add(total, point)
		for i, x := range n.witness.Key {
			key[i] += x
		}
		blind.Add(blind, n.witness.Blind)
	}
	low := edwards25519.NewIdentityPoint() // and a point of order 2, (0, −1)
	encoded := bytes.Repeat([]byte{0xff}, 32)
	encoded[0], encoded[31] = 0xec, 0x7f
	if _, err := low.SetBytes(encoded); err != nil {
		t.Fatal(err)
	}
	for _, sum := range []*edwards25519.Point{total, low.Add(low, total)} {
		if !s.Opens(sum, key, blind) {
			t.Fatal("the sum does not open")
		}
	}
	if s.Opens(total, key, new(edwards25519.Scalar).Add(blind, small(1))) {
		t.Error("another blind opens the sum")
	}
	if s.Opens(total, key[1:], blind) {
		t.Error("a shorter key opens the sum")
	}
	key[7]++
	if s.Opens(total, key, blind) {
		t.Error("another key opens the sum")
	}
}
