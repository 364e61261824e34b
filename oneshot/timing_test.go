package oneshot

import (
	"bytes"
	mathrand "math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/internal/dudect"
	"github.com/hushsum/hushsum/internal/ring"
	"github.com/hushsum/hushsum/shamir"
)

// timed checks an operation.
func timed[T any](t *testing.T, name string, leaks bool, prepare func(class int) T, run func(T)) {
	t.Helper()
	dudect.Check(t, name, leaks, 1<<12, prepare, run)
}

// TestTiming: what a party does with its key, its noise and its values takes a time that
// does not depend on them: zeros, or random. Each part has a twin that differs in one
// branch, and is found out with as many measurements.
func TestTiming(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(1, 2))
	signed := func(n int, limit int64) func(class int) []int64 {
		return func(class int) []int64 {
			out := make([]int64, n)
			for i := range out { // both classes are written: fresh memory is slower
				out[i] = (random.Int64N(2*limit) - limit) * int64(class)
			}
			return out
		}
	}
	terms := Terms{Length: 4000, Bits: 20, MinSurvivors: 3, Faults: 1, KEM: KEMX25519,
		Noise: gaussian(10, 3)}
	s := must(newWorld(5, 4, terms).config.settle())
	r := s.ring
	y, public := make([]uint64, degree), make([]uint64, degree)
	r.NewExpander(new([32]byte)).Expand(public, 0)

	t.Run("ring", func(t *testing.T) {
		timed(t, "product", false, signed(degree, 40), func(key []int64) {
			r.MulInto(y, public, r.NewFactor(key))
		})
		timed(t, "sum", false, signed(degree, 1<<19), func(values []int64) {
			for range 4 {
				r.AddSigned(y, values)
			}
		})
		leaky := append([]uint64(nil), public...)
		timed(t, "sum with a branch", true, signed(degree, 1<<30), func(values []int64) {
			addBranching(r, leaky, values)
		})
	})
	t.Run("packing", func(t *testing.T) {
		var out []byte
		coefficients := func(class int) []uint64 {
			values := make([]uint64, degree)
			for i := range values {
				values[i] = random.Uint64N(r.Modulus()) * uint64(class)
			}
			return values
		}
		timed(t, "coefficients", false, coefficients, func(values []uint64) {
			out = r.AppendPacked(out[:0], values)
		})
		timed(t, "range", false, signed(s.Length, s.limit), func(values []int64) {
			if s.checkValues(values) != nil {
				t.Error("in range, and refused")
			}
		})
		timed(t, "lanes", false, signed(degree, 40), func(key []int64) { narrow.pack(key) })
		timed(t, "lanes with a branch", true, signed(degree, 40), func(key []int64) {
			packBranching(key)
		})
	})
	t.Run("sharing", func(t *testing.T) {
		coefficients := bytes.Repeat([]byte{0x5a}, 1<<14)
		secrets := func(class int) []shamir.Secret {
			return narrow.pack(signed(10*narrow.inScalar(), 40)(class))
		}
		timed(t, "shares", false, secrets, func(secrets []shamir.Secret) {
			_, err := shamir.SplitPacked(bytes.NewReader(coefficients),
				shamir.Packing{PerPolynomial: 5, Privacy: 2}, secrets, []uint32{1, 2, 3, 4, 5, 6, 7, 8})
			if err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("sampling", func(t *testing.T) {
		// Bytes that give values of one size, or of all.
		const size = 1 << 16
		source := func(class int) []byte {
			b := make([]byte, size)
			for i := range b {
				b[i] = 0x77 ^ byte(random.Uint32())*byte(class)
			}
			return b
		}
		samples := make([]int64, 512)
		timed(t, "noise", false, source, func(b []byte) {
			if err := s.noise.NewSampler(bytes.NewReader(b)).Fill(samples); err != nil {
				t.Error(err)
			}
		})
		timed(t, "noise by search", true, source, func(b []byte) { searchSamples(b, samples) })
	})
}

// addBranching is AddSigned with a branch for the sign and one for the reduction.
func addBranching(r *ring.Ring, dst []uint64, src []int64) {
	q := r.Modulus()
	for i, v := range src {
		if v < 0 {
			dst[i] += q - uint64(-v)
		} else {
			dst[i] += uint64(v)
		}
		if dst[i] >= q {
			dst[i] -= q
		}
	}
}

// packBranching is pack with a shortcut for zeros.
func packBranching(key []int64) (out []shamir.Secret) {
	for first := 0; first < len(key); first += narrow.inScalar() {
		group := key[first:min(first+narrow.inScalar(), len(key))]
		zeros := true
		for _, x := range group {
			zeros = zeros && x == 0
		}
		if zeros {
			out = append(out, shamir.Secret{})
		} else {
			out = append(out, narrow.pack(group)...)
		}
	}
	return out
}

// searchSamples draws by going through a table until a random word is below an entry.
func searchSamples(b []byte, samples []int64) {
	for i := range samples {
		word := uint16(b[2*i]) | uint16(b[2*i+1])<<8
		for bound := uint32(1000); bound < uint32(word); bound += 1000 {
			samples[i]++
		}
	}
}
