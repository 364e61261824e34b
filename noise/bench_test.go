package noise

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// benchLaws are laws of standard deviation about 1, 10 and 1000.
func benchLaws(b *testing.B) map[string]Law {
	r := big.NewRat
	laws := map[string]Law{}
	add := func(name string, l Law, err error) { laws[name] = must(b, l, err) }
	for _, s := range []struct {
		name   string
		sigma2 int64
		t      *big.Rat
	}{{"1", 1, r(7, 10)}, {"10", 100, r(7, 1)}, {"1000", 1000000, r(707, 1)}} {
		l, err := DiscreteGaussian(r(s.sigma2, 1))
		add("gaussian/sigma="+s.name, l, err)
		l, err = DiscreteLaplace(s.t)
		add("laplace/sigma="+s.name, l, err)
		l, err = Skellam(r(s.sigma2, 1))
		add("skellam/sigma="+s.name, l, err)
		l, err = PolyaDifference(r(1, 100), s.t)
		add("polya-share-of-100/sigma="+s.name, l, err)
	}
	return laws
}

var benchNames = []string{
	"gaussian/sigma=1", "gaussian/sigma=10", "gaussian/sigma=1000",
	"laplace/sigma=1", "laplace/sigma=10", "laplace/sigma=1000",
	"skellam/sigma=1", "skellam/sigma=10", "skellam/sigma=1000",
	"polya-share-of-100/sigma=1", "polya-share-of-100/sigma=10", "polya-share-of-100/sigma=1000",
}

// BenchmarkSample reports ns per sample: the table path in bulk (10,240 at a
// time), the exact path, and gonum's float normal for scale.
func BenchmarkSample(b *testing.B) {
	laws := benchLaws(b)
	dst := make([]int64, 10240)
	per := func(b *testing.B, n int) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/sample")
	}
	for _, name := range benchNames {
		tb, err := NewTable(laws[name])
		if err != nil {
			b.Fatal(err)
		}
		b.Run("table/"+name, func(b *testing.B) {
			s := tb.NewSampler(nil)
			for b.Loop() {
				if err := s.Fill(dst); err != nil {
					b.Fatal(err)
				}
			}
			per(b, len(dst))
		})
		b.Run("exact/"+name, func(b *testing.B) {
			e, err := NewExact(laws[name], nil)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := e.Fill(dst[:256]); err != nil {
					b.Fatal(err)
				}
			}
			per(b, 256)
		})
	}
	b.Run("gonum-normal", func(b *testing.B) {
		n := distuv.Normal{Sigma: 10, Src: rand.NewChaCha8([32]byte{1})}
		f := make([]float64, len(dst))
		for b.Loop() {
			for i := range f {
				f[i] = n.Rand()
			}
		}
		per(b, len(f))
	})
	b.Run("gonum-laplace", func(b *testing.B) {
		n := distuv.Laplace{Scale: 7, Src: rand.NewChaCha8([32]byte{1})}
		f := make([]float64, len(dst))
		for b.Loop() {
			for i := range f {
				f[i] = n.Rand()
			}
		}
		per(b, len(f))
	})
}

// BenchmarkOne is the price of a single sample from the table path.
func BenchmarkOne(b *testing.B) {
	tb, err := NewTable(benchLaws(b)["gaussian/sigma=10"])
	if err != nil {
		b.Fatal(err)
	}
	s, dst := tb.NewSampler(nil), make([]int64, 1)
	for b.Loop() {
		if err := s.Fill(dst); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScan compares the kernels: 256 words against 100 thresholds.
func BenchmarkScan(b *testing.B) {
	table, u, idx := make([]uint64, 100), make([]uint64, block), make([]uint64, block)
	src := rand.New(rand.NewPCG(1, 2))
	for i := range u {
		u[i] = src.Uint64() >> 1
	}
	for i := range table {
		table[i] = uint64(i) << 56
	}
	for name, f := range map[string]func(idx, u, table []uint64){"kernel": scan,
		"generic": scanGeneric} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f(idx, u, table)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/block, "ns/word")
		})
	}
}

// BenchmarkBuild is the construction of a table.
func BenchmarkBuild(b *testing.B) {
	for name, l := range benchLaws(b) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := NewTable(l); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
