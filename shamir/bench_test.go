package shamir

import (
	"fmt"
	"testing"
	"time"

	"filippo.io/edwards25519"
)

// The sizes of the benchmarks: threshold and holders.
var sizes = [][2]int{{51, 100}, {501, 1000}}

// perCall returns the best of three times of f, for the ratios that the
// benchmarks report.
func perCall(f func()) time.Duration {
	best := time.Duration(1<<63 - 1)
	for range 3 {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best
}

// report adds the ratio of the naive time to the measured one.
func report(b *testing.B, naive time.Duration) {
	b.ReportMetric(float64(naive.Nanoseconds())/(float64(b.Elapsed().Nanoseconds())/float64(b.N)),
		"x-faster-than-naive")
}

// naiveSplit is Horner's rule with edwards25519.Scalar, without drawing the
// coefficients.
func naiveSplit(coefficients []*edwards25519.Scalar, indices []uint32) []Share {
	shares := make([]Share, len(indices))
	for i, x := range indices {
		xb := encodeIndex(x)
		xs := scalar(&xb)
		acc := new(edwards25519.Scalar)
		for k := len(coefficients) - 1; k >= 0; k-- {
			acc.MultiplyAdd(acc, xs, coefficients[k])
		}
		shares[i] = Share{x, [32]byte(acc.Bytes())}
	}
	return shares
}

// scalar returns the scalar of a canonical encoding.
func scalar(b *[32]byte) *edwards25519.Scalar {
	return must(new(edwards25519.Scalar).SetCanonicalBytes(b[:]))
}

func encodeIndex(x uint32) [32]byte {
	return [32]byte{byte(x), byte(x >> 8), byte(x >> 16), byte(x >> 24)}
}

func BenchmarkSplit(b *testing.B) {
	for _, size := range sizes {
		threshold, xs := size[0], upTo(size[1])
		b.Run(fmt.Sprintf("t=%d,n=%d", threshold, len(xs)), func(b *testing.B) {
			secret := must(GenerateSecret(chacha(1)))
			coefficients := make([]*edwards25519.Scalar, threshold)
			for i := range coefficients {
				c := [32]byte(must(GenerateSecret(chacha(byte(i)))))
				coefficients[i] = scalar(&c)
			}
			naive := perCall(func() { naiveSplit(coefficients, xs) })
			for b.Loop() {
				if _, err := Split(nil, secret, threshold, xs); err != nil {
					b.Fatal(err)
				}
			}
			report(b, naive)
		})
	}
}

// BenchmarkCombine rebuilds 1,000 secrets from one set of holders. One
// iteration is one secret.
func BenchmarkCombine(b *testing.B) {
	const count = 1000
	for _, size := range sizes {
		threshold := size[0]
		xs := upTo(threshold)
		b.Run(fmt.Sprintf("t=%d", threshold), func(b *testing.B) {
			c := must(NewCombiner(threshold, xs))
			lambda := make([]*edwards25519.Scalar, threshold)
			for i := range lambda {
				l := c.lambda[i].Bytes()
				lambda[i] = scalar(&l)
			}
			all := make([][]Share, count)
			for k := range all {
				all[k] = must(Split(nil, Secret{byte(k)}, threshold, xs))
			}
			naive := perCall(func() {
				for _, shares := range all[:100] {
					sum := new(edwards25519.Scalar)
					for i := range shares {
						sum.MultiplyAdd(lambda[i], scalar(&shares[i].Value), sum)
					}
				}
			}) / 100
			k := 0
			for b.Loop() {
				if got := must(c.Combine(all[k])); got[0] != byte(k) {
					b.Fatal("wrong secret")
				}
				k = (k + 1) % count
			}
			report(b, naive)
		})
	}
}

func BenchmarkNewCombiner(b *testing.B) {
	for _, size := range sizes {
		threshold, xs := size[0], upTo(size[1])
		b.Run(fmt.Sprintf("t=%d,n=%d", threshold, len(xs)), func(b *testing.B) {
			for b.Loop() {
				must(NewCombiner(threshold, xs))
			}
		})
	}
}

func BenchmarkWithout(b *testing.B) {
	for _, size := range sizes {
		threshold, xs := size[0], upTo(size[1])
		b.Run(fmt.Sprintf("t=%d,n=%d", threshold, len(xs)), func(b *testing.B) {
			c := must(NewCombiner(threshold, xs))
			for b.Loop() {
				must(c.Without(7))
			}
		})
	}
}

// BenchmarkCorrect corrects one wrong share, and as many as can be.
func BenchmarkCorrect(b *testing.B) {
	for _, size := range sizes {
		threshold, n := size[0], size[1]
		for _, count := range []int{1, (n - threshold) / 2} {
			b.Run(fmt.Sprintf("t=%d,n=%d,wrong=%d", threshold, n, count), func(b *testing.B) {
				shares := must(Split(nil, Secret{5}, threshold, upTo(n)))
				bad, _ := corrupt(shares, intsUpTo(count))
				c := must(NewCombiner(threshold, upTo(n)))
				for b.Loop() {
					if got, _, err := c.CorrectVarTime(bad, nil); err != nil || got != (Secret{5}) {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
