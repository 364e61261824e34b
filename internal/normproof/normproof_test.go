package normproof

import (
	"errors"
	"math"
	"testing"

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
