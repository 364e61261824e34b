package normproof

import (
	"bytes"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"filippo.io/edwards25519"
)

// entries reads a matrix as the comment has it, one entry after the other.
func entries(h *[32]byte, first uint64, rows, columns int) [][]int64 {
	b := make([]byte, rows*columns/4)
	stream(h, first).XORKeyStream(b, b)
	out := make([][]int64, rows)
	for i := range out {
		for j := range columns {
			x := b[j*rows/4+i/4] >> (2 * (i % 4))
			out[i] = append(out[i], int64(x&1)-int64(x>>1&1))
		}
	}
	return out
}

// The three ways to multiply a matrix agree with its entries.
func TestMatrix(t *testing.T) {
	h := [32]byte{5}
	const width = 2*columns + 3
	r := rand.New(rand.NewPCG(1, 2))
	for _, count := range []int{rows, floodRows} {
		m := entries(&h, 1, count, width)
		values, weights := make([]int64, width), make([]uint64, count)
		var scalars []*edwards25519.Scalar
		for j := range values {
			values[j] = r.Int64N(1<<41) - 1<<40
		}
		for i := range weights {
			weights[i] = r.Uint64N(1 << 50)
			scalars = append(scalars, new(edwards25519.Scalar).Negate(small(weights[i])))
		}
		got := make([]int64, count)
		(&matrix{rows: count, stream: stream(&h, 1)}).times(got, values)
		for i := range got {
			want := int64(0)
			for j, v := range values {
				want += m[i][j] * v
			}
			if got[i] != want {
				t.Fatalf("row %d: %d, want %d", i, got[i], want)
			}
		}
		table := combine(weights, func(a *int64, w *uint64) { *a += int64(*w) },
			func(a *int64, w *uint64) { *a -= int64(*w) })
		sums := [][]int64{make([]int64, width)}
		(&matrix{rows: count, stream: stream(&h, 1)}).test(sums, [][][256]int64{table})
		weighed := make([]wide, width)
		for j := range weighed {
			weighed[j][0] = 3
		}
		(&matrix{rows: count, stream: stream(&h, 1)}).weigh(weighed, scalars)
		for j := range width {
			want := int64(0)
			for i, w := range weights {
				want += m[i][j] * int64(w)
			}
			if sums[0][j] != want {
				t.Fatalf("column %d: %d, want %d", j, sums[0][j], want)
			}
			if weighed[j].scalar().Equal(signed(3-want)) != 1 {
				t.Fatalf("column %d is weighed wrongly", j)
			}
		}
	}
}

// Entries are −1, 0 and 1 with probabilities ¼, ½ and ¼: a false alarm in 10^9.
func TestMatrixLaw(t *testing.T) {
	counts := map[int64]float64{}
	const width = 4000
	for _, row := range entries(&[32]byte{9}, 0, rows, width) {
		for _, x := range row {
			counts[x]++
		}
	}
	n := float64(rows * width)
	chi := 0.0
	for x, p := range map[int64]float64{-1: 0.25, 0: 0.5, 1: 0.25} {
		chi += math.Pow(counts[x]-n*p, 2) / (n * p)
	}
	if chi > 41.4 || len(counts) != 3 { // e^(−41.4/2) for two degrees of freedom
		t.Errorf("χ² is %.1f: %v", chi, counts)
	}
}

// Tests hold as integers for what a party knows, and say so of its vector alone.
func TestFold(t *testing.T) {
	p := tiny
	p.Length = 37
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	n := newInstance(s, 1, 600)
	h1, h2 := [32]byte{1}, [32]byte{2}
	tests := s.fold(n.statement, &h1, &h2)
	r := entries(&h1, 0, rows, s.Length)
	q := new(big.Int).SetUint64(s.Modulus)
	for i, tau := range tests.sums {
		left, right := new(big.Int), new(big.Int)
		add := func(sum *big.Int, a uint64, b int64) {
			sum.Add(sum, new(big.Int).Mul(new(big.Int).SetUint64(a), big.NewInt(b)))
		}
		for k, weight := range tau {
			for j, z := range n.witness.Noisy {
				add(left, weight, r[k][j]*z)
				add(right, weight, r[k][j]*int64(n.statement.Masked[j]))
			}
		}
		for j, key := range n.witness.Key {
			add(left, tests.keys[i][j], key)
		}
		if right.Mod(right, q).Uint64() != tests.totals[i] {
			t.Errorf("total %d is wrong", i)
		}
		if left.Mod(left, q).Cmp(right) != 0 {
			t.Errorf("test %d does not hold", i)
		}
	}
	for _, tau := range tests.sums {
		for _, x := range tau {
			if x >= s.Modulus || bits.Len64(x) > 20 {
				t.Fatalf("τ has %d", x)
			}
		}
	}
}

// The number of tests is the least for which a false vector passes with 2^-128 at most.
func TestCount(t *testing.T) {
	for _, c := range []struct {
		q    uint64
		want int
	}{{0xfc001, 7}, {0x7fffffdd001, 3}, {0x3ffffffa001, 4}, {0x3ffffffffc001, 3},
		{0xfff88001, 5}} { // whose fourth power is just below 2^128
		p := tiny
		p.Modulus, p.Bound = c.q, 1
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		if s.tests != c.want {
			t.Errorf("modulus %d: %d tests, want %d", c.q, s.tests, c.want)
		}
	}
}

// Lanes fill 251 bits of a scalar, and no more.
func TestLanes(t *testing.T) {
	for width, want := range map[int]int{11: 22, 19: 13, 20: 12, 21: 11, 23: 10, 25: 10, 62: 4} {
		p := tiny
		p.LaneBits = width
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		if s.lanes != want {
			t.Errorf("%d bits: %d lanes, want %d", width, s.lanes, want)
		}
	}
}

// All small numbers, all with factors of 4, and random ones of every length are four squares.
func TestFourSquares(t *testing.T) {
	check := func(n *big.Int) {
		t.Helper()
		four, err := fourSquares(seeded(n.Uint64()), n)
		sum := new(big.Int)
		for _, x := range four {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(x), big.NewInt(x)))
		}
		if err != nil || sum.Cmp(n) != 0 {
			t.Fatalf("%v: %v, %v", n, four, err)
		}
	}
	for n := range int64(3000) {
		check(big.NewInt(n))
	}
	r := rand.New(rand.NewPCG(3, 4))
	for length := range 72 {
		n := new(big.Int).Lsh(big.NewInt(1), uint(length))
		check(n) // a power of 2
		check(n.Sub(n, big.NewInt(1)))
		low := new(big.Int).SetUint64(r.Uint64())
		check(n.And(n, low.Lsh(low, uint(r.IntN(9)))))
	}
}

// ±1 for entries would let through a vector that is as long as vectors can be: with (q−1)/2
// everywhere a sum of evenly many is ±1 half of times as many. With zeros among the entries half of
// all sums are as far from zero as can be.
func TestSigns(t *testing.T) {
	const length, q = 400, 0xfc001
	size := func(m [][]int64) float64 {
		norm := 0.0
		for _, row := range m {
			sum := int64(0)
			for _, x := range row {
				sum += x * ((q - 1) / 2)
			}
			if sum = (sum%q + q) % q; sum > q/2 {
				sum -= q
			}
			norm += float64(sum) * float64(sum)
		}
		return math.Sqrt(norm)
	}
	m := entries(&[32]byte{3}, 0, rows, length)
	ternary := size(m)
	r := rand.New(rand.NewPCG(5, 6))
	for _, row := range m {
		for j := range row {
			row[j] = 2*r.Int64N(2) - 1
		}
	}
	if signs := size(m); signs > 15*math.Sqrt(length) || ternary < 15*q/wrap {
		t.Errorf("sums of norm %.0f with signs alone, %.0f with zeros", signs, ternary)
	}
}

// An integer of 320 bits is reduced modulo the order as big integers are, near multiples of the
// order and of 2^252 too, where the result is corrected.
func TestWide(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	order := new(big.Int).Lsh(big.NewInt(1), 252)
	order.Add(order, new(big.Int).Add(
		new(big.Int).Lsh(new(big.Int).SetUint64(excess[1]), 64), new(big.Int).SetUint64(excess[0])))
	try := func(x *big.Int) {
		t.Helper()
		modulo := new(big.Int).Mod(x, new(big.Int).Lsh(big.NewInt(1), 320))
		var w wide
		for i := range w {
			w[i] = new(big.Int).Rsh(modulo, uint(64*i)).Uint64()
		}
		want := make([]byte, 32)
		new(big.Int).Mod(x, order).FillBytes(want)
		slices.Reverse(want)
		if got := w.scalar().Bytes(); !bytes.Equal(got, want) {
			t.Fatalf("%v is %x, want %x", x, got, want)
		}
	}
	one := big.NewInt(1)
	random := func() *big.Int {
		x := new(big.Int)
		for range 4 {
			x.Lsh(x, 64).Add(x, new(big.Int).SetUint64(r.Uint64()))
		}
		return x.Mod(x, order)
	}
	for range 2000 {
		quotient := big.NewInt(r.Int64() >> r.IntN(63))
		if r.IntN(2) == 0 {
			quotient.Neg(quotient)
		}
		for _, unit := range []*big.Int{order, new(big.Int).Lsh(one, 252)} {
			x := new(big.Int).Mul(quotient, unit)
			if x.BitLen() > 315 {
				continue
			}
			for _, more := range []*big.Int{new(big.Int), one, big.NewInt(-1),
				random()} {
				try(new(big.Int).Add(x, more))
			}
		}
	}
	for range 200 {
		w := wide{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}
		x, v := r.Uint64()>>14, new(big.Int)
		for i := 3; i >= 0; i-- {
			v.Lsh(v, 64).Add(v, new(big.Int).SetUint64(w[i]))
		}
		v.Mul(v, new(big.Int).SetUint64(x))
		sum := wide{5}
		sum.addTimes(&w, x)
		v.Add(v, big.NewInt(5))
		for i := range sum {
			if sum[i] != new(big.Int).Rsh(v, uint(64*i)).Uint64() {
				t.Fatalf("word %d of a product", i)
			}
		}
	}
}
