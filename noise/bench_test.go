package noise

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// benchSigmas are the standard deviations that jobs use, and some more.
var benchSigmas = []int64{1, 10, 100, 1000, 30000}

// benchLaws are the laws that sums use and the shares of which they are made, in order.
// σ is that of the law, or of the sum of which a share is one of m parts.
func benchLaws(b *testing.B, sigma int64) (names []string, laws []Law) {
	r := big.NewRat
	add := func(name string, l Law, err error) {
		names, laws = append(names, name), append(laws, must(b, l, err))
	}
	t := r(7071*sigma, 10000)
	share := func(name string, m int, sum Law, err error) {
		l, err2 := Shares{Parties: m, MinHonest: m, Law: must(b, sum, err)}.Party()
		add(fmt.Sprintf("%s-share-of-%d", name, m), l, err2)
	}
	for _, law := range []struct {
		name string
		make func() (Law, error)
	}{
		{"gaussian", func() (Law, error) { return DiscreteGaussian(r(sigma*sigma, 1)) }},
		{"skellam", func() (Law, error) { return Skellam(r(sigma*sigma, 1)) }},
		{"laplace", func() (Law, error) { return DiscreteLaplace(t) }},
	} {
		l, err := law.make()
		add(law.name, l, err)
		for _, m := range []int{2, 100} {
			l, err := law.make()
			share(law.name, m, l, err)
		}
	}
	return names, laws
}

// BenchmarkSample reports nanoseconds per sample: the table path in bulk (10,240 at a
// time) with the distance that is certified, as −log₂, the exact path, and gonum's
// floating-point samplers for scale.
func BenchmarkSample(b *testing.B) {
	dst := make([]int64, 10240)
	per := func(b *testing.B, n int) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/sample")
		b.ReportMetric(0, "ns/op")
	}
	for _, sigma := range benchSigmas {
		names, laws := benchLaws(b, sigma)
		for i, l := range laws {
			tb, err := NewTable(l)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("table/%s/sigma=%d", names[i], sigma), func(b *testing.B) {
				s := tb.NewSampler(nil)
				for b.Loop() {
					if err := s.Fill(dst); err != nil {
						b.Fatal(err)
					}
				}
				per(b, len(dst))
				b.ReportMetric(-math.Log2(tb.Distance()), "-log2-distance")
			})
			b.Run(fmt.Sprintf("exact/%s/sigma=%d", names[i], sigma), func(b *testing.B) {
				e, err := NewExact(l, nil)
				if err != nil {
					b.Skip(err) // too wide for the exact path
				}
				for b.Loop() {
					if err := e.Fill(dst[:256]); err != nil {
						b.Fatal(err)
					}
				}
				per(b, 256)
			})
		}
		for name, draw := range map[string]func() float64{
			"normal": distuv.Normal{Sigma: float64(sigma), Src: rand.NewChaCha8([32]byte{1})}.Rand,
			"laplace": distuv.Laplace{Scale: float64(sigma) / math.Sqrt2,
				Src: rand.NewChaCha8([32]byte{1})}.Rand,
		} {
			b.Run(fmt.Sprintf("gonum/%s/sigma=%d", name, sigma), func(b *testing.B) {
				f := make([]float64, len(dst))
				for b.Loop() {
					for i := range f {
						f[i] = draw()
					}
				}
				per(b, len(f))
			})
		}
	}
}

// BenchmarkOne is the price of a single sample from the table path.
func BenchmarkOne(b *testing.B) {
	l, err := DiscreteGaussian(big.NewRat(100, 1))
	tb, err2 := NewTable(must(b, l, err))
	if err2 != nil {
		b.Fatal(err2)
	}
	s, dst := tb.NewSampler(nil), make([]int64, 1)
	for b.Loop() {
		if err := s.Fill(dst); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScan compares the kernels: a block of words against 100 and 1,000 thresholds.
func BenchmarkScan(b *testing.B) {
	raw, idx := make([]byte, 0, 4*block), make([]uint32, block)
	src := rand.New(rand.NewPCG(1, 2))
	for range block {
		raw = binary.LittleEndian.AppendUint32(raw, src.Uint32())
	}
	for _, n := range []uint32{100, 1000} {
		l := &level{}
		for i := range n {
			l.sums = append(l.sums, 1<<31/n*i)
		}
		l.binned = binned(l.sums)
		for name, f := range map[string]func(){
			"kernel":  func() { scan(idx, raw, l) },
			"generic": func() { scanGeneric(idx, raw, l.sums) },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					f()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/block, "ns/word")
			})
		}
	}
}

// BenchmarkBuild is the construction of a table.
func BenchmarkBuild(b *testing.B) {
	for _, sigma := range benchSigmas {
		names, laws := benchLaws(b, sigma)
		for i, l := range laws {
			b.Run(fmt.Sprintf("%s/sigma=%d", names[i], sigma), func(b *testing.B) {
				for b.Loop() {
					if _, err := newTable(l); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
