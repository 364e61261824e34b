package simulation

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
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

// trial is a job, the rows of its parties, and what a test changes in its world.
type trial struct {
	job.Job
	rows  []*learning.Dataset
	test  *learning.Dataset
	world func(w *World) // nil: nothing
}

func (x trial) settle() (*job.Settled, World, error) {
	x.Parties.Count = len(x.rows)
	s, w, err := Settle(&x.Job, Rows{Parties: x.rows, Test: x.test})
	if err == nil && x.world != nil {
		x.world(&w)
	}
	return s, w, err
}

func (x trial) run(ctx context.Context, report func(RoundResult)) (*Result, error) {
	s, w, err := x.settle()
	if err != nil {
		return nil, err
	}
	return Run(ctx, s, w, report)
}

func (x trial) setting(t testing.TB) *setting {
	t.Helper()
	s, w, err := x.settle()
	if err != nil {
		t.Fatal(err)
	}
	o, err := newSetting(s, w)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// averaging is federated averaging as it was first described: parties send their
// weights and their numbers of rows, and the same runs in the clear.
func averaging(parties []*learning.Dataset, test *learning.Dataset) trial {
	return trial{rows: parties, test: test, Job: job.Job{
		Name:     "averaging",
		Rounds:   3,
		Seed:     1,
		Sum:      job.Sum{MaxWeight: parties[0].Len(), FractionBits: 10},
		Model:    job.Model{Name: "logistic"},
		Training: job.Training{Steps: 10, Rate: 2, Lambda: 1e-4, Submit: "weights"},
	}}
}

// small returns a trial of a few milliseconds.
func small(t testing.TB) trial { return averaging(census(t, 800, 5, 60)) }

// withoutModel returns what a result keeps of a round.
func withoutModel(r RoundResult) RoundResult {
	r.Model = nil
	return r
}

func TestRun(t *testing.T) {
	o := small(t)
	var reported []RoundResult
	var progress [][2]int
	var ticks atomic.Int64
	o.world = func(w *World) {
		w.Progress = func(round, done, of int) {
			if of != 5 {
				t.Errorf("%d of %d parties", done, of)
			}
			progress = append(progress, [2]int{round, done})
		}
		w.Now = func() time.Time { return time.Unix(0, ticks.Add(1)*1000) }
	}
	s, err := o.run(t.Context(), func(r RoundResult) { reported = append(reported, withoutModel(r)) })
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
		s, err := small(t).run(t.Context(), nil)
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
		o.Parties.PerRound, o.Sum.Recovery, o.Seed = 3, true, uint64(seed)
		s, err := o.run(t.Context(), nil)
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
	o.Rounds, o.Sum.FractionBits = 2, 3 // coarse, so that rounding matters
	s, err := o.run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	model := learning.Logistic{Features: o.test.Features, Lambda: 1e-4}
	global := make([]float64, model.NumParams())
	for range o.Rounds {
		sum := make([]float64, len(global))
		for _, part := range o.rows {
			w := slices.Clone(global)
			if err := model.Train(w, part, o.Training.Rate, o.Training.Steps); err != nil {
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

// What a world alone can have wrong is refused, and named.
func TestWorldRefused(t *testing.T) {
	in := func(change func(w *World)) func(x *trial) {
		return func(x *trial) { x.world = change }
	}
	replay := func(lists ...[]int) func(x *trial) {
		return func(x *trial) {
			x.World.Fidelity, x.world = Ring, func(w *World) { w.Replay = lists }
		}
	}
	for name, c := range map[string]struct {
		path   string
		change func(x *trial)
	}{
		"a party": {"parties.count", func(x *trial) { x.rows = x.rows[:1] }},
		"many": {"parties.count", func(x *trial) {
			x.rows = make([]*learning.Dataset, maxParties+1)
		}},
		"no rows": {"parties.count", func(x *trial) {
			x.rows = append(x.rows[:4:4], &learning.Dataset{})
		}},
		"no test": {"Test", func(x *trial) { x.test = nil }},
		"others":  {"parties.count", in(func(w *World) { w.Parties = w.Parties[:3] })},
		"a model": {"model.name", in(func(w *World) { w.Training.Model = learning.MLP{} })},
		"adjust": {"Training", in(func(w *World) {
			w.Training.Local.Adjust = func(_, _ []float64) {}
		})},
		"interrupt": {"Training", in(func(w *World) {
			w.Training.Local.Interrupt = func() error { return nil }
		})},
		"coins":    {"Random", in(func(w *World) { w.Random = rand.NewChaCha8([32]byte{}) })},
		"messages": {"Replay", in(func(w *World) { w.Replay = [][]int{{0}, {1}, {2}} })},
		"short":    {"Replay", replay([]int{0}, []int{1})},
		"twice":    {"Replay", replay([]int{0, 0}, []int{1, 2}, []int{1, 2})},
		"noise": {"Replay", func(x *trial) {
			*x = noisy(t, someNoise)
			replay([]int{0}, []int{1}, []int{2})(x)
		}},
	} {
		x := small(t)
		c.change(&x)
		_, err := x.run(t.Context(), nil)
		var wrong *job.ConfigError
		if !errors.As(err, &wrong) || wrong.Path != c.path {
			t.Errorf("%s: want an error about %s, got %v", name, c.path, err)
		}
	}
	x := small(t)
	x.Sum.Range = 1e300
	if _, _, err := x.settle(); !errors.Is(err, aggregation.ErrWrap) {
		t.Errorf("a sum that could wrap: %v, want ErrWrap", err)
	}
}

// A run that fails says where, and returns what was done until then.
func TestRunFails(t *testing.T) {
	o := small(t)
	o.Sum.Range = 1.5
	o.Rounds = 50
	s, err := o.run(t.Context(), nil)
	var failed *RoundError
	if !errors.Is(err, aggregation.ErrSaturated) || !errors.As(err, &failed) {
		t.Fatalf("weights beyond the range: %v, want ErrSaturated", err)
	}
	if failed.Party < 0 || failed.Round != len(s.Rounds)+1 ||
		!strings.Contains(err.Error(), "party-") {
		t.Errorf("%v after %d rounds", err, len(s.Rounds))
	}

	o = small(t)
	o.Training.Lambda, o.Training.Rate, o.Training.Steps = 1e6, 1e6, 100
	if _, err := o.run(t.Context(), nil); !errors.Is(err, learning.ErrDiverged) {
		t.Errorf("a huge rate: %v, want ErrDiverged", err)
	}
}

func TestRunIsCancelled(t *testing.T) {
	o := small(t)
	o.Rounds = 100

	// Between rounds.
	ctx, cancel := context.WithCancel(t.Context())
	s, err := o.run(ctx, func(r RoundResult) {
		if r.Round == 2 {
			cancel()
		}
	})
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
		o.world = func(w *World) {
			w.Progress = func(r, done, _ int) {
				if r == round && done == 1 {
					cancel()
				}
			}
		}
		s, err := o.run(ctx, nil)
		if !errors.Is(err, context.Canceled) || len(s.Rounds) != max(round-1, 0) {
			t.Errorf("cancelled in round %d: %v", round, err)
		}
	}

	// In the middle of one party's training, which would take minutes.
	o.world = func(w *World) { w.Training.Local.Steps = 1 << 30 }
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := o.run(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
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
	o.Rounds, o.Training.Steps = 20, 50
	s, err := o.run(t.Context(), nil)
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
