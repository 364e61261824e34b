package ring

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The moduli of the tests: small, of the middle, and the largest below 2^50.
var moduli = []uint64{12289, 8589905921, 1125899906826241}

func rings(t *testing.T, f func(t *testing.T, r *Ring)) {
	for _, n := range []int{8, 64, 2048} {
		for _, q := range moduli {
			f(t, New(n, q))
		}
	}
}

// product is the schoolbook product of a and c modulo X^N + 1 and q.
func product(r *Ring, a []uint64, c []int64) []uint64 {
	q := new(big.Int).SetUint64(r.q)
	out := make([]uint64, r.n)
	sum := make([]big.Int, r.n)
	var t big.Int
	for i, x := range a {
		for j, y := range c {
			t.Mul(new(big.Int).SetUint64(x), big.NewInt(y))
			if i+j < r.n {
				sum[i+j].Add(&sum[i+j], &t)
			} else {
				sum[i+j-r.n].Sub(&sum[i+j-r.n], &t)
			}
		}
	}
	for i := range out {
		out[i] = t.Mod(&sum[i], q).Uint64()
	}
	return out
}

// TestProduct compares with the schoolbook: every unit vector at small degrees,
// random and extreme elements at all.
func TestProduct(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rings(t, func(t *testing.T, r *Ring) {
		elements := [][]uint64{make([]uint64, r.n), make([]uint64, r.n)}
		small := make([]int64, r.n)
		for i := range r.n {
			elements[0][i] = random.Uint64N(r.q)
			elements[1][i] = r.q - 1
			small[i] = random.Int64N(401) - 200
		}
		factors := [][]int64{small}
		if r.n <= 64 {
			for i := range r.n {
				unit := make([]int64, r.n)
				unit[i] = -1
				factors = append(factors, unit)
			}
		} else if testing.Short() {
			return
		}
		for _, a := range elements {
			for _, c := range factors {
				values := slices.Clone(a)
				r.ntt(values)
				got := make([]uint64, r.n)
				r.MulInto(got, values, r.NewFactor(c))
				if !slices.Equal(got, product(r, a, c)) {
					t.Fatalf("degree %d modulo %d: wrong product", r.n, r.q)
				}
			}
		}
	})
}

// TestTransform: there and back is the identity, entries are canonical, and the
// values are those at the odd powers of ψ.
func TestTransform(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	rings(t, func(t *testing.T, r *Ring) {
		for _, fill := range []func() uint64{func() uint64 { return r.q - 1 },
			func() uint64 { return random.Uint64N(r.q) }} {
			a := make([]uint64, r.n)
			for i := range a {
				a[i] = fill()
			}
			b := slices.Clone(a)
			r.ntt(b)
			if slices.Max(b) >= r.q {
				t.Fatal("the transform is not reduced")
			}
			psi := r.root()
			at, value := psi, uint64(0) // the first value is that at ψ
			for i := r.n - 1; i >= 0; i-- {
				value = r.once(r.mul(value, at) + a[i])
			}
			if b[0] != value {
				t.Fatalf("degree %d modulo %d: wrong first value", r.n, r.q)
			}
			r.inverse(b)
			if !slices.Equal(a, b) {
				t.Fatalf("degree %d modulo %d: not inverse", r.n, r.q)
			}
		}
	})
}

func TestArithmetic(t *testing.T) {
	for _, q := range moduli {
		r := New(8, q)
		big1, q1 := new(big.Int), new(big.Int).SetUint64(q)
		rapid.Check(t, func(t *rapid.T) {
			a, b := rapid.Uint64Range(0, q-1).Draw(t, "a"), rapid.Uint64Range(0, q-1).Draw(t, "b")
			big1.Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
			if got := r.mul(a, b); got != big1.Mod(big1, q1).Uint64() {
				t.Fatalf("%d·%d = %d", a, b, got)
			}
			c := r.Centred(a)
			if 2*c >= int64(q) || 2*c <= -int64(q) || (c-int64(a))%int64(q) != 0 {
				t.Fatalf("centred %d is %d", a, c)
			}
			x := []uint64{b}
			r.AddSigned(x, []int64{c})
			if x[0] != (a+b)%q {
				t.Fatal("AddSigned")
			}
			r.SubFrom(x, []uint64{a})
			if x[0] != b {
				t.Fatal("SubFrom")
			}
		})
	}
}

// TestPacked: packing is one-to-one, for every count around a block's end.
func TestPacked(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, q := range moduli {
		r := New(8, q)
		for n := range 140 {
			a := make([]uint64, n)
			for i := range a {
				a[i] = random.Uint64N(q)
			}
			b := r.AppendPacked([]byte("x"), a)[1:]
			number := new(big.Int) // the string of bits as one number
			for i := n - 1; i >= 0; i-- {
				number.Lsh(number, uint(r.bits)).Or(number, new(big.Int).SetUint64(a[i]))
			}
			want := number.FillBytes(make([]byte, r.PackedSize(n)))
			slices.Reverse(want)
			if !slices.Equal(b, want) {
				t.Fatalf("%d coefficients modulo %d: wrong bytes", n, q)
			}
			if err := r.CheckPacked(b, n); err != nil {
				t.Fatal(err)
			}
			sum := slices.Clone(a)
			r.AddPacked(sum, b)
			for i := range sum {
				if sum[i] != 2*a[i]%q {
					t.Fatal("wrong sum")
				}
			}
			if err := r.CheckPacked(append(b, 0), n); !errors.Is(err, ErrLength) {
				t.Fatalf("a byte more: %v", err)
			}
			if n == 0 {
				continue
			}
			if used := n * r.bits % 8; used != 0 {
				bad := slices.Clone(b)
				bad[len(bad)-1] |= 1 << used
				if err := r.CheckPacked(bad, n); !errors.Is(err, ErrCanonical) {
					t.Fatalf("padding: %v", err)
				}
			}
			a[random.IntN(n)] = q
			if err := r.CheckPacked(r.AppendPacked(nil, a), n); !errors.Is(err, ErrCanonical) {
				t.Fatalf("a coefficient of q: %v", err)
			}
		}
	}
}

// TestExpand reads the keystream in one piece, and looks at the mean: at
// five deviations it fails once in 1.7 million.
func TestExpand(t *testing.T) {
	r := New(2048, 12289) // one word in four is passed over
	key := [32]byte{7}
	got := make([]uint64, r.n)
	r.NewExpander(&key).Expand(got, 5)
	block, _ := aes.NewCipher(key[:])
	stream := make([]byte, 8*8192)
	counter := make([]byte, 16)
	counter[7] = 5
	cipher.NewCTR(block, counter).XORKeyStream(stream, stream)
	var want []uint64
	var sum float64
	for len(want) < r.n {
		if x := binary.LittleEndian.Uint64(stream) & (1<<14 - 1); x < r.q {
			want = append(want, x)
			sum += float64(x)
		}
		stream = stream[8:]
	}
	if !slices.Equal(got, want) {
		t.Fatal("wrong element")
	}
	// A uniform variable below q deviates by q/√12, the mean of N by q/√(12N).
	deviation := float64(r.q) / math.Sqrt(12*float64(r.n))
	if d := (sum/float64(r.n) - float64(r.q-1)/2) / deviation; math.Abs(d) > 5 {
		t.Errorf("the mean is off by %.1f deviations", d)
	}
}

func TestNewPanics(t *testing.T) {
	for _, c := range []struct {
		n int
		q uint64
	}{{4, 12289}, {12, 12289}, {8192, 12289}, {8, 12290}, {8, 12289 * 97}, {8, 1 << 50}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("degree %d modulo %d was taken", c.n, c.q)
				}
			}()
			New(c.n, c.q)
		}()
	}
}

func BenchmarkRing(b *testing.B) {
	r := New(2048, 8589905921)
	a := make([]uint64, r.n)
	e := r.NewExpander(new([32]byte))
	e.Expand(a, 3)
	f := r.NewFactor(make([]int64, r.n))
	p := r.AppendPacked(nil, a)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"ntt", func() { r.ntt(a) }},
		{"inverse", func() { r.inverse(a) }},
		{"expand", func() { e.Expand(a, 3) }},
		{"multiply", func() { r.MulInto(a, a, f) }},
		{"pack", func() { p = r.AppendPacked(p[:0], a) }},
		{"check", func() { _ = r.CheckPacked(p, r.n) }},
		{"add", func() { r.AddPacked(a, p) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.f()
			}
		})
	}
}

// BenchmarkPacked measures a server's work on the coefficients of a submission of 100,000 values.
func BenchmarkPacked(b *testing.B) {
	r := New(2048, moduli[1])
	values := make([]uint64, 100_000)
	for i := range values {
		values[i] = uint64(i) * 80_000
	}
	packed := r.AppendPacked(nil, values)
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			packed = r.AppendPacked(packed[:0], values)
		}
	})
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if err := r.CheckPacked(packed, len(values)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("add", func(b *testing.B) {
		for b.Loop() {
			r.AddPacked(values, packed)
		}
	})
}
