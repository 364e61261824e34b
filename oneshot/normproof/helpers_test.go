package normproof

import (
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"filippo.io/edwards25519"
)

// tiny parameters, for tests that make many proofs.
var tiny = Parameters{
	Degree: 16, Modulus: 0xfc001, Length: 40, Bound: 400_000, KeyBound: 1600,
	PerPolynomial: 2, Threshold: 3, LaneBits: 19,
}

var tinyScheme = sync.OnceValue(func() *Scheme {
	s, err := New(tiny)
	if err != nil {
		panic(err)
	}
	return s
})

// An instance is a statement with its witness.
type instance struct {
	statement *Statement
	witness   *Witness
}

// random bytes of a seed
func seeded(seed uint64) io.Reader {
	var b [32]byte
	b[0], b[1] = byte(seed), byte(seed>>8)
	return rand.NewChaCha8(b)
}

// newInstance makes a vector of about the given norm, and a key within its bound.
func newInstance(s *Scheme, seed uint64, norm float64) *instance {
	r := rand.New(rand.NewPCG(seed, 1))
	noisy := make([]int64, s.Length)
	sigma := norm / math.Sqrt(float64(s.Length))
	for i := range noisy {
		noisy[i] = int64(r.NormFloat64() * sigma)
	}
	key := make([]int64, s.Degree)
	for i := range key {
		key[i] = int64(r.NormFloat64() * 0.8 * math.Sqrt(float64(s.KeyBound)/float64(s.Degree)))
	}
	return instanceOf(s, seed, key, noisy)
}

func instanceOf(s *Scheme, seed uint64, key, noisy []int64) *instance {
	r := rand.New(rand.NewPCG(seed, 2))
	t := &Statement{Party: uint32(seed), Masked: mask(s, [32]byte{byte(seed)}, key, noisy)}
	t.RingKey = [32]byte{byte(seed)}
	t.Config, t.Context, t.Root, t.Digest = [32]byte{1}, [32]byte{2}, [32]byte{3}, [32]byte{4}
	uniform := func() *edwards25519.Scalar {
		var b [64]byte
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return fromWide(b[:])
	}
	w := &Witness{Key: key, Blind: uniform(), Noisy: noisy}
	for j := range 1 + s.polynomials {
		f := make([]*edwards25519.Scalar, s.Threshold)
		for l := range f {
			f[l] = uniform()
			i := (j-1)*s.PerPolynomial + l
			if j == 0 || l >= s.PerPolynomial {
				continue
			}
			f[l] = small(0)
			for k := min((i+1)*s.lanes, s.Degree) - 1; k >= i*s.lanes; k-- {
				f[l].MultiplyAdd(f[l], small(1<<s.LaneBits), signed(key[k]))
			}
			if i == s.scalars {
				f[l].Set(w.Blind)
			}
		}
		w.Polynomials = append(w.Polynomials, f)
	}
	return &instance{t, w}
}

// mask returns a·s + z by multiplications one by one.
func mask(s *Scheme, ringKey [32]byte, key, noisy []int64) []uint64 {
	out := make([]uint64, s.Length)
	e := s.ring.NewExpander(&ringKey)
	a := make([]uint64, s.Degree)
	f := s.ring.NewFactor(key)
	for at := 0; at < s.Length; at += s.Degree {
		e.Expand(a, at/s.Degree)
		s.ring.MulInto(a, a, f)
		copy(out[at:], a)
	}
	s.ring.AddSigned(out, noisy)
	return out
}

// prove fails the test if there is no proof.
func (n *instance) prove(t testing.TB, s *Scheme, seed uint64) (*Dealing, []byte) {
	t.Helper()
	d, proof, err := s.Prove(seeded(seed), n.statement, n.witness)
	if err != nil {
		t.Fatal(err)
	}
	return d, proof
}
