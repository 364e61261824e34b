package simulation

import (
	"context"
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/training"
)

// census returns the rows of this many parties, and rows for tests.
func census(
	t testing.TB, rows, parties, each int,
) (dealt []*learning.Dataset, test *learning.Dataset) {
	t.Helper()
	all, _, err := learning.Census(rows, 1)
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := all.Split(0.5, 1)
	if err != nil {
		t.Fatal(err)
	}
	if dealt, err = train.PartitionIID(parties, each, 1); err != nil {
		t.Fatal(err)
	}
	return dealt, test
}

// averaging is federated averaging as it was first described: parties send their
// weights and their numbers of rows, and the same runs in the clear.
func averaging(parties []*learning.Dataset, test *learning.Dataset) Options {
	return Options{
		Model:        learning.Logistic{Features: test.Features, Lambda: 1e-4},
		Parties:      parties,
		Test:         test,
		Rounds:       3,
		Local:        learning.SGD{Rate: 2, Steps: 10},
		Models:       true,
		MaxSamples:   parties[0].Len(),
		Sum:          Private,
		FractionBits: 10,
		Beside:       true,
		Seed:         1,
	}
}

// small returns options that run in a few milliseconds.
func small(t testing.TB) Options { return averaging(census(t, 800, 5, 60)) }

// withoutModel returns what a result keeps of a round.
func withoutModel(r RoundResult) RoundResult {
	r.Model = nil
	return r
}

func TestRun(t *testing.T) {
	o := small(t)
	var reported []RoundResult
	var progress [][2]int
	o.Progress = func(round, done, of int) {
		if of != 5 {
			t.Errorf("%d of %d parties", done, of)
		}
		progress = append(progress, [2]int{round, done})
	}
	var ticks atomic.Int64
	o.Now = func() time.Time { return time.Unix(0, ticks.Add(1)*1000) }
	s, err := Run(t.Context(), o, func(r RoundResult) { reported = append(reported, withoutModel(r)) })
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(reported, s.Rounds) || len(s.Rounds) != 3 {
		t.Fatalf("%d rounds reported, %d in the summary, want 3", len(reported), len(s.Rounds))
	}
	var want [][2]int
	for round := range 4 {
		for done := range 6 {
			want = append(want, [2]int{round, done})
		}
	}
	if !slices.Equal(progress, want) {
		t.Errorf("progress %v, want %v", progress, want)
	}
	for i, r := range s.Rounds {
		if r.Round != i+1 || r.Parties != 5 || r.Samples != 300 {
			t.Errorf("round %d: %d with %d parties and %d samples", i+1, r.Round, r.Parties, r.Samples)
		}
		if r.Test.Total() != 400 || r.Clear.Total() != 400 {
			t.Errorf("round %d was judged on %d and %d rows, want 400", i+1, r.Test.Total(), r.Clear.Total())
		}
		if r.MaxAbsDiff == 0 || r.MaxAbsDiff > 1e-5 {
			t.Errorf("round %d: the models are %v apart", i+1, r.MaxAbsDiff)
		}
		if r.Largest < math.Abs(slices.MaxFunc(s.Model, compareAbs)) && i == 2 {
			t.Errorf("the largest weight of any party is %v, less than the average's", r.Largest)
		}
		if r.Cost.Train <= 0 || r.Cost.Client <= 0 || r.Cost.Server <= 0 {
			t.Errorf("round %d: durations %+v with a clock", i+1, r.Cost)
		}
		// Header, 40 weights of 25 bits, a count of 9 bits.
		layout := s.Layout.PackedSize()
		if up := r.Cost.BytesUp; up <= int64(layout) || up > int64(layout)+64 {
			t.Errorf("round %d: %d bytes up for %d bytes of values", i+1, up, layout)
		}
		if down := r.Cost.BytesDown; down <= 8*40 || down > 8*40+128 {
			t.Errorf("round %d: %d bytes down for %d bytes of model", i+1, down, 8*40)
		}
	}
	total := s.Total()
	if total.BytesUp != 3*s.Rounds[0].Cost.BytesUp || total.Client < s.Rounds[2].Cost.Client {
		t.Errorf("total %+v of rounds like %+v", total, s.Rounds[0].Cost)
	}
	if s.Setup.Client <= 0 || s.Setup.Server <= 0 || s.Setup.BytesUp < 96 ||
		s.Setup.BytesDown < 5*96 || s.Setup.Train != 0 {
		t.Errorf("set-up cost %+v", s.Setup)
	}
}

func compareAbs(a, b float64) int {
	switch {
	case math.Abs(a) < math.Abs(b):
		return -1
	case math.Abs(a) > math.Abs(b):
		return 1
	}
	return 0
}

// The models do not depend on keys, clocks or the number of cores.
func TestRunIsDeterministic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var first *Result
	for _, cores := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(cores)
		s, err := Run(t.Context(), small(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = s
		}
		if !slices.Equal(s.Model, first.Model) || !slices.Equal(s.Clear, first.Clear) ||
			!reflect.DeepEqual(s.Rounds, first.Rounds) {
			t.Errorf("%d cores: another outcome", cores)
		}
		if s.Setup.Client != 0 || s.Total().Train != 0 {
			t.Errorf("durations without a clock: %+v", s.Setup)
		}
	}
	var models [2][]float64
	for seed := range models {
		o := small(t)
		o.PerRound, o.Seed = 3, uint64(seed)
		s, err := Run(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		models[seed] = s.Model
	}
	if slices.Equal(models[0], models[1]) {
		t.Error("another seed draws the same parties")
	}
}

// The private model is exactly what rounding the parties' weights by hand gives.
func TestPrivateModelByHand(t *testing.T) {
	o := small(t)
	o.Rounds, o.FractionBits = 2, 3 // coarse, so that rounding matters
	s, err := Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	model := learning.Logistic{Features: o.Test.Features, Lambda: 1e-4}
	global := make([]float64, model.NumParams())
	for range o.Rounds {
		sum := make([]float64, len(global))
		for _, part := range o.Parties {
			w := slices.Clone(global)
			if err := model.Train(w, part, o.Local.Rate, o.Local.Steps); err != nil {
				t.Fatal(err)
			}
			for j := range w {
				sum[j] += math.RoundToEven(w[j] * 60 * 8)
			}
		}
		for j := range sum {
			global[j] = sum[j] / 300 / 8
		}
	}
	if !slices.Equal(global, s.Model) {
		t.Error("the private model is not the average of the rounded updates")
	}
	if s.Rounds[1].MaxAbsDiff == 0 {
		t.Error("with three fraction bits the models should differ")
	}
}

func TestRunOptions(t *testing.T) {
	for _, c := range []struct {
		change func(*Options)
		field  string
	}{
		{func(o *Options) { *o = Options{} }, "model.name"},
		{func(o *Options) { o.Parties = o.Parties[:1] }, "parties.count"},
		{func(o *Options) { o.Parties = make([]*learning.Dataset, maxParties+1) }, "parties.count"},
		{func(o *Options) { o.Parties = append(o.Parties[:4:4], &learning.Dataset{}) }, "parties.count"},
		{func(o *Options) { o.Rounds = 0 }, "rounds"},
		{func(o *Options) { o.Local.Steps = -1 }, "training.steps"},
		{func(o *Options) { o.Local.Rate = 0 }, "training.rate"},
		{func(o *Options) { o.Local.Rate = math.NaN() }, "training.rate"},
		{func(o *Options) { o.Local.Rate = math.Inf(1) }, "training.rate"},
		{func(o *Options) { o.Local.Interrupt = func() error { return nil } }, "Local.Interrupt"},
		{func(o *Options) { o.MaxSamples = -1 }, "sum.max_weight"},
		{func(o *Options) { o.Range = -1 }, "sum.range"},
		{func(o *Options) { o.Range = math.Inf(1) }, "sum.range"},
		{func(o *Options) { o.FractionBits = -1 }, "sum.fraction_bits"},
		{func(o *Options) { o.FractionBits = 63 }, "sum.fraction_bits"},
		{func(o *Options) { o.FractionBits = 55 }, "sum.fraction_bits"}, // would wrap
		{func(o *Options) { o.Range = 1e300 }, "sum.range"},             // with any fraction bits
		{func(o *Options) { o.Test = nil }, "Test"},
		{func(o *Options) { o.Test = &learning.Dataset{X: []float64{1}, Features: 1, Labels: []int{1}} }, "Test"},
		{func(o *Options) { o.Server.Rule = aggregation.RuleMomentum }, "training.submit"},
		{func(o *Options) { o.Server.Rate = 0.5 }, "training.submit"},
		{func(o *Options) { o.Mask = masks["soft"] }, "training.submit"},
		{func(o *Options) { n := DefaultNoise(); o.Noise = &n }, "training.submit"},
		{func(o *Options) { o.Clip = training.Clipping{Kind: training.DifferenceClip, Norm: 1} }, "privacy.clip"},
	} {
		o := small(t)
		c.change(&o)
		s, err := Run(t.Context(), o, nil)
		var wrong *job.ConfigError
		if !errors.Is(err, job.ErrConfig) || !errors.As(err, &wrong) || wrong.Path != c.field ||
			s != nil && c.field != "Test" {
			t.Errorf("want an error about %s, got %v", c.field, err)
		}
	}
	o := small(t)
	o.FractionBits = 55
	if err := o.Validate(); !errors.Is(err, aggregation.ErrWrap) {
		t.Errorf("a sum that could wrap: %v, want ErrWrap", err)
	}
}

// A run that fails says where, and returns what was done until then.
func TestRunFails(t *testing.T) {
	o := small(t)
	o.Range = 1.5
	o.Rounds = 50
	_, err := Run(t.Context(), o, nil)
	s := done(t, err)
	var failed *RoundError
	if !errors.Is(err, aggregation.ErrSaturated) || !errors.As(err, &failed) {
		t.Fatalf("weights beyond the range: %v, want ErrSaturated", err)
	}
	if failed.Party < 0 || failed.Round != len(s.Rounds)+1 ||
		!strings.Contains(err.Error(), "party-") {
		t.Errorf("%v after %d rounds", err, len(s.Rounds))
	}

	o = small(t)
	o.Model = learning.Logistic{Features: o.Test.Features, Lambda: 1e6}
	o.Local.Rate, o.Local.Steps = 1e6, 100
	if _, err := Run(t.Context(), o, nil); !errors.Is(err, learning.ErrDiverged) {
		t.Errorf("a huge rate: %v, want ErrDiverged", err)
	}
}

func TestRunIsCancelled(t *testing.T) {
	o := small(t)
	o.Rounds = 100

	// Between rounds.
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, o, func(r RoundResult) {
		if r.Round == 2 {
			cancel()
		}
	})
	s := done(t, err)
	if !errors.Is(err, context.Canceled) || len(s.Rounds) != 2 {
		t.Fatalf("cancelled after round 2: %v", err)
	}
	if slices.Equal(s.Model, make([]float64, len(s.Model))) {
		t.Error("the summary has no model")
	}

	// Between parties, in the middle of a round, and during set-up.
	for _, round := range []int{0, 2} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o.Progress = func(r, done, _ int) {
			if r == round && done == 1 {
				cancel()
			}
		}
		_, err := Run(ctx, o, nil)
		if s := done(t, err); !errors.Is(err, context.Canceled) || len(s.Rounds) != max(round-1, 0) {
			t.Errorf("cancelled in round %d: %v", round, err)
		}
	}

	// In the middle of one party's training, which would take minutes.
	o.Progress = nil
	o.Local.Steps = 1 << 30
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, o, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled in training: %v", err)
	}
}

// On Adult, the securely summed model is as good as the one in the clear.
func TestAdult(t *testing.T) {
	dir := realdata.Dir(t, "adult")
	all, err := learning.ReadAdult(dir)
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := all.Split(0.25, 1)
	if err != nil {
		t.Fatal(err)
	}
	parties, err := train.PartitionIID(100, 200, 1)
	if err != nil {
		t.Fatal(err)
	}
	o := averaging(parties, test)
	o.Rounds, o.Local.Steps = 20, 50
	s, err := Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := s.Rounds[o.Rounds-1]
	private, inClear := last.Test.MCC(), last.Clear.MCC()
	t.Logf("MCC %.4f private, %.4f in the clear; largest difference %.3g; largest weight %.2f of %v",
		private, inClear, last.MaxAbsDiff, last.Largest, 64.)
	if private < 0.45 || math.Abs(private-inClear) > 0.002 {
		t.Errorf("MCC %.4f private, %.4f in the clear; want at least .45 and within .002", private,
			inClear)
	}
	if last.Largest > 64./4 {
		t.Errorf("a weight of %.2f is too near to the range", last.Largest)
	}
	if s.Layout[0].Bits != 32 {
		t.Errorf("a coordinate takes %d bits, want 32", s.Layout[0].Bits)
	}
}
