package simulation

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/learning"
)

// small returns options that run in a few milliseconds.
func small(t testing.TB) Options {
	t.Helper()
	all, _, err := learning.Census(800, 1)
	if err != nil {
		t.Fatal(err)
	}
	o := Defaults()
	if o.Train, o.Test, err = all.Split(0.5, 1); err != nil {
		t.Fatal(err)
	}
	o.Clients, o.RowsPerClient, o.Rounds, o.LocalSteps = 5, 60, 3, 10
	return o
}

func TestRun(t *testing.T) {
	o := small(t)
	var reported []Round
	var progress [][2]int
	o.Progress = func(round, done int) { progress = append(progress, [2]int{round, done}) }
	var ticks atomic.Int64
	o.Now = func() time.Time { return time.Unix(0, ticks.Add(1)*1000) }
	s, err := Run(t.Context(), o, func(r Round) { reported = append(reported, r) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(reported, s.Rounds) || len(s.Rounds) != 3 {
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
		if r.Round != i+1 || r.Clients != 5 || r.Samples != 300 {
			t.Errorf("round %d: %d with %d parties and %d samples", i+1, r.Round, r.Clients, r.Samples)
		}
		if r.Private.Total() != 400 || r.Clear.Total() != 400 {
			t.Errorf("round %d was judged on %d and %d rows, want 400", i+1, r.Private.Total(), r.Clear.Total())
		}
		if r.MaxAbsDiff == 0 || r.MaxAbsDiff > 1e-5 {
			t.Errorf("round %d: the models are %v apart", i+1, r.MaxAbsDiff)
		}
		if r.LargestWeight < slices.MaxFunc(s.Private, compareAbs) && i == 2 {
			t.Errorf("the largest weight of any party is %v, less than the average's", r.LargestWeight)
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
	if s.Setup.Client <= 0 || s.Setup.Server <= 0 || s.Setup.BytesUp < 96 || s.Setup.BytesDown < 5*96 || s.Setup.Train != 0 {
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
	var first *Summary
	for _, cores := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(cores)
		s, err := Run(t.Context(), small(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = s
		}
		if !slices.Equal(s.Private, first.Private) || !slices.Equal(s.Clear, first.Clear) || !slices.Equal(s.Rounds, first.Rounds) {
			t.Errorf("%d cores: another outcome", cores)
		}
		if s.Setup.Client != 0 || s.Total().Train != 0 {
			t.Errorf("durations without a clock: %+v", s.Setup)
		}
	}
	other := small(t)
	other.Seed++
	s, err := Run(t.Context(), other, nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(s.Private, first.Private) {
		t.Error("another seed gives the same model")
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
	rows, err := o.Train.PartitionIID(o.Clients, o.RowsPerClient, o.Seed)
	if err != nil {
		t.Fatal(err)
	}
	model := learning.Logistic{Features: o.Train.Features, Lambda: o.Lambda}
	global := make([]float64, model.NumParams())
	for range o.Rounds {
		sum := make([]float64, len(global))
		for _, part := range rows {
			w := slices.Clone(global)
			if err := model.Train(w, part, o.Rate, o.LocalSteps); err != nil {
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
	if !slices.Equal(global, s.Private) {
		t.Error("the private model is not the average of the rounded updates")
	}
	if s.Rounds[1].MaxAbsDiff == 0 {
		t.Error("with three fraction bits the models should differ")
	}
}

func TestRunOptions(t *testing.T) {
	for _, c := range []struct {
		change func(*Options)
		option string
	}{
		{func(o *Options) { *o = Options{} }, "Clients"},
		{func(o *Options) { o.Clients = 1 }, "Clients"},
		{func(o *Options) { o.Clients = -3 }, "Clients"},
		{func(o *Options) { o.Clients = MaxClients + 1 }, "Clients"},
		{func(o *Options) { o.RowsPerClient = 0 }, "RowsPerClient"},
		{func(o *Options) { o.Rounds = 0 }, "Rounds"},
		{func(o *Options) { o.LocalSteps = -1 }, "LocalSteps"},
		{func(o *Options) { o.Rate = 0 }, "Rate"},
		{func(o *Options) { o.Rate = math.NaN() }, "Rate"},
		{func(o *Options) { o.Rate = math.Inf(1) }, "Rate"},
		{func(o *Options) { o.Lambda = -1 }, "Lambda"},
		{func(o *Options) { o.Lambda = math.NaN() }, "Lambda"},
		{func(o *Options) { o.Range = 0 }, "Range"},
		{func(o *Options) { o.Range = math.Inf(1) }, "Range"},
		{func(o *Options) { o.FractionBits = -1 }, "FractionBits"},
		{func(o *Options) { o.FractionBits = 63 }, "FractionBits"},
		{func(o *Options) { o.FractionBits = 55 }, "FractionBits"}, // would wrap
		{func(o *Options) { o.Range = 1e300 }, "Range"},            // with any fraction bits
		{func(o *Options) { o.Train = nil }, "Train"},
		{func(o *Options) { o.Test = nil }, "Test"},
		{func(o *Options) { o.Test = &learning.Dataset{X: []float64{1}, Features: 1, Labels: []int{1}} }, "Test"},
	} {
		o := small(t)
		c.change(&o)
		s, err := Run(t.Context(), o, nil)
		var bad *OptionError
		if s != nil || !errors.Is(err, ErrOptions) || !errors.As(err, &bad) || bad.Option != c.option {
			t.Errorf("want an error about %s, got %v", c.option, err)
		}
	}
	o := small(t)
	o.FractionBits = 55
	if err := o.Validate(); !errors.Is(err, aggregation.ErrWrap) {
		t.Errorf("a sum that could wrap: %v, want ErrWrap", err)
	}
	o = small(t)
	o.RowsPerClient = 81
	if s, err := Run(t.Context(), o, nil); s != nil || !errors.Is(err, learning.ErrTooFewRows) {
		t.Errorf("405 of 400 rows: %v, want ErrTooFewRows", err)
	}
}

// A run that fails says where, and returns what was done until then.
func TestRunFails(t *testing.T) {
	o := small(t)
	o.Range = 1.5
	o.Rounds = 50
	s, err := Run(t.Context(), o, nil)
	var failed *RoundError
	if !errors.Is(err, aggregation.ErrSaturated) || !errors.As(err, &failed) {
		t.Fatalf("weights beyond the range: %v, want ErrSaturated", err)
	}
	if failed.Party < 0 || failed.Round != len(s.Rounds)+1 || !strings.Contains(err.Error(), "party-") {
		t.Errorf("%v after %d rounds", err, len(s.Rounds))
	}

	o = small(t)
	o.Rate, o.Lambda = 1e6, 1e6
	o.LocalSteps = 100
	if _, err := Run(t.Context(), o, nil); !errors.Is(err, learning.ErrDiverged) {
		t.Errorf("a huge rate: %v, want ErrDiverged", err)
	}
}

func TestRunIsCancelled(t *testing.T) {
	o := small(t)
	o.Rounds = 100

	// Between rounds.
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Run(ctx, o, func(r Round) {
		if r.Round == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || s == nil || len(s.Rounds) != 2 {
		t.Fatalf("cancelled after round 2: %v", err)
	}
	if slices.Equal(s.Private, make([]float64, len(s.Private))) {
		t.Error("the summary has no model")
	}

	// Between parties, in the middle of a round, and during set-up.
	for _, round := range []int{0, 2} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o.Progress = func(r, done int) {
			if r == round && done == 1 {
				cancel()
			}
		}
		s, err := Run(ctx, o, nil)
		if !errors.Is(err, context.Canceled) || s == nil || len(s.Rounds) != max(round-1, 0) {
			t.Errorf("cancelled in round %d: %v", round, err)
		}
	}

	// In the middle of one party's training, which would take minutes.
	o.Progress = nil
	o.LocalSteps = 1 << 30
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, o, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled in training: %v", err)
	}
}

func TestParallel(t *testing.T) {
	// The smallest failing index wins, whoever fails first.
	for range 200 {
		err := parallel(t.Context(), 64, func(i int) error {
			if i%2 == 1 {
				return &RoundError{Party: i, Err: errors.New("odd")}
			}
			return nil
		}, nil)
		var failed *RoundError
		if !errors.As(err, &failed) || failed.Party != 1 {
			t.Fatalf("got %v, want the failure of party 1", err)
		}
	}
	if err := parallel(t.Context(), 0, nil, nil); err != nil {
		t.Errorf("nothing to do: %v", err)
	}
}

// On Adult, the securely summed model is as good as the one in the clear.
func TestAdult(t *testing.T) {
	dir := realdata.Dir(t, "adult")
	all, err := learning.ReadAdult(dir)
	if err != nil {
		t.Fatal(err)
	}
	o := Defaults()
	if o.Train, o.Test, err = all.Split(0.25, o.Seed); err != nil {
		t.Fatal(err)
	}
	s, err := Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := s.Rounds[o.Rounds-1]
	private, inClear := last.Private.MCC(), last.Clear.MCC()
	t.Logf("MCC %.4f private, %.4f in the clear; largest difference %.3g; largest weight %.2f of %v",
		private, inClear, last.MaxAbsDiff, last.LargestWeight, o.Range)
	if private < 0.45 || math.Abs(private-inClear) > 0.002 {
		t.Errorf("MCC %.4f private, %.4f in the clear; want at least .45 and within .002", private, inClear)
	}
	if last.LargestWeight > o.Range/4 {
		t.Errorf("a weight of %.2f is too near to the range %v", last.LargestWeight, o.Range)
	}
	if s.Layout[0].Bits != 32 {
		t.Errorf("a coordinate takes %d bits, want 32", s.Layout[0].Bits)
	}
}
