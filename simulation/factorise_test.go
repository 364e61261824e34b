package simulation

import (
	"errors"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/privacy"
)

// Where six parties take turns over six rounds, three at a time in two cohorts, they are charged
// for three turns, and a mean is of those who made something.
func TestTrainingByTurns(t *testing.T) {
	var n privacy.Noise
	x := noisyBrief(&n)
	x.Rounds, x.Factorise = 6, 2
	x.Budget = privacy.Budget{Epsilon: 4}
	z, err := x.Calibrate()
	if err != nil {
		t.Fatal(err)
	}
	n.Multiplier = z
	out := train(t, x)
	m := mechanism(t, x)
	for i, r := range out.Rounds {
		want, _, err := m.Round().Views(i/2+1, privacy.DefaultDelta)
		if err != nil {
			t.Fatal(err)
		}
		if r.Server != want || len(r.Norms) != 3 || len(r.Included) != 6 {
			t.Errorf("round %d: %d updates of %d parties, spent %+v, want %+v", r.Round, len(r.Norms),
				len(r.Included), r.Server, want)
		}
	}
	if len(out.Rounds) != 6 || out.Server.Upper > 4 || out.Stopped != nil {
		t.Errorf("%d rounds, %+v", len(out.Rounds), out.Server)
	}
	// With next to no noise it is the training in the clear.
	n.Multiplier, n.Bits, x.Budget.Epsilon, x.Beside = 1e-6, 54, 0, true
	for _, r := range train(t, x).Rounds {
		if r.MaxAbsDiff > 1e-4 {
			t.Errorf("round %d is off by %v", r.Round, r.MaxAbsDiff)
		}
	}
}

// What does not go with turns is refused, and named.
func TestTurnsOptions(t *testing.T) {
	for name, change := range map[string]func(x *Options){
		"rounds":         func(x *Options) { x.Factorise = x.Rounds + 1 },
		"one":            func(x *Options) { x.Factorise = 1 },
		"negative":       func(x *Options) { x.Factorise = -2 },
		"clear":          func(x *Options) { x.Noise = nil },
		"drawn":          func(x *Options) { x.PerRound = 3 },
		"coins":          func(x *Options) { x.Hidden = 0.5 },
		"participations": func(x *Options) { x.Participations = 3 },
		"weights":        func(x *Options) { x.MaxSamples = 9 },
		"mask":           func(x *Options) { x.Mask.Kind = aggregation.HardMask },
		"quantile":       func(x *Options) { x.Clip.Adaptive = &aggregation.AdaptiveClip{Quantile: 0.5} },
	} {
		var n privacy.Noise
		x := noisyBrief(&n)
		x.Factorise = 2
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&x)
		var c *job.ConfigError
		if err := x.Validate(); !errors.As(err, &c) || !strings.HasSuffix(c.Path, "Factorise") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
