package accounting

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// The times of the reference implementations, dp_accounting and prv_accountant, are those
// of BENCHMARKS.md, one thread; they need 2.3 s and 7.2 s for the first case.
func BenchmarkEpsilon(b *testing.B) {
	for _, c := range []struct {
		name string
		m    Mechanism
		n    int
		ref  float64
	}{
		{"q=0.01,z=1,T=10000", Sampled{Gaussian{1}, 0.01}, 10000, 2.3},
		{"q=80÷1920,z=1.5,T=1000", Sampled{Gaussian{1.5}, 80.0 / 1920}, 1000, 1.3},
		{"q=1,z=1,T=100", Gaussian{1}, 100, 12.3},
		{"discrete,σ=10,T=100", DiscreteGaussian{10, 1}, 100, 0.046},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				mustEpsilon(b, 1e-5, Step{c.m, c.n})
			}
			b.ReportMetric(c.ref/(b.Elapsed().Seconds()/float64(b.N)), "×reference")
		})
	}
}

// The whole grid of reference PLD values, against the seconds recorded for each.
func BenchmarkGoldenGrid(b *testing.B) {
	records := golden(b, "pld_sampled_gaussian").Records
	ref := 0.0
	for _, r := range records {
		ref += r.WallS
	}
	b.Run(fmt.Sprintf("%dvalues", len(records)), func(b *testing.B) {
		for b.Loop() {
			for _, r := range records {
				bound(b, r)
			}
		}
		b.ReportMetric(ref/(b.Elapsed().Seconds()/float64(b.N)), "×reference")
	})
}

// Refusing a hundred thousand different laws, next to composing sixty of them, which is
// some 1,600 times less than composing all would take.
func BenchmarkRefuse(b *testing.B) {
	const many = 100000
	steps := make([]Step, many)
	for i := range steps {
		steps[i] = Step{Sampled{Gaussian{1 + float64(i)/many}, 0.01}, 1}
	}
	var some []Step
	for i := 0; i < many; i += many / 60 {
		some = append(some, steps[i])
	}
	var composed, refused time.Duration
	for b.Loop() {
		start := time.Now()
		mustEpsilon(b, 1e-6, some...)
		middle := time.Now()
		if _, err := Compose(steps...); !errors.Is(err, ErrTooLarge) {
			b.Fatal(err)
		}
		composed, refused = composed+middle.Sub(start), refused+time.Since(middle)
	}
	b.ReportMetric(refused.Seconds()/composed.Seconds(), "refused/composed")
}
