package benchmarks

import (
	"testing"
	"time"

	lattigo "github.com/tuneinsight/lattigo/v6/ring"

	"github.com/hushsum/hushsum/internal/ring"
)

// BenchmarkProduct measures what a party does for each 2,048 coordinates of a sum of one message:
// a public element in transformed form times its key, back to coefficients. It is done by
// internal/ring and by lattigo's ring, and reports microseconds and lattigo's as a multiple
// of hushsum's ("×").
func BenchmarkProduct(b *testing.B) {
	const degree, q = 2048, 8589905921 // 33 bits
	ours := ring.New(degree, q)
	key, public := make([]int64, degree), make([]uint64, degree)
	for i := range key {
		key[i] = int64(i%13) - 6
	}
	ours.NewExpander(new([32]byte)).Expand(public, 0)
	factor, product := ours.NewFactor(key), make([]uint64, degree)

	theirs, err := lattigo.NewRing(degree, []uint64{q})
	if err != nil {
		b.Fatal(err)
	}
	a, s, c := theirs.NewPoly(), theirs.NewPoly(), theirs.NewPoly()
	copy(a.Coeffs[0], public)
	for i, x := range key {
		s.Coeffs[0][i] = uint64(x) + q&uint64(x>>63)
	}
	theirs.NTT(s, s)
	theirs.MForm(s, s)

	best := func(work func()) float64 {
		shortest := time.Duration(1 << 62)
		for range 200 {
			start := time.Now()
			work()
			shortest = min(shortest, time.Since(start))
		}
		return float64(shortest.Nanoseconds()) / 1e3
	}
	var one, other float64
	for b.Loop() {
		one = best(func() { ours.MulInto(product, public, factor) })
		other = best(func() {
			theirs.MulCoeffsMontgomery(a, s, c)
			theirs.INTT(c, c)
		})
	}
	b.ReportMetric(one, "µs")
	b.ReportMetric(other, "lattigo-µs")
	b.ReportMetric(other/one, "×")
	b.ReportMetric(0, "ns/op")
}
