package simulation

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/privacy"
)

// noisyBrief is a brief training with noise.
func noisyBrief() trial {
	x := brief()
	x.noise(20)
	return x
}

// A round that fails has spent all the same, and the outcome says so.
func TestFailedRoundIsCharged(t *testing.T) {
	x := noisyBrief()
	ctx, cancel := context.WithCancel(t.Context())
	out, err := x.run(ctx, func(RoundResult) { cancel() })
	if !errors.Is(err, context.Canceled) || len(out.Rounds) != 1 {
		t.Fatalf("%d rounds: %v", len(out.Rounds), err)
	}
	two, _, err := mechanism(t, x).Round().Views(2, privacy.DefaultDelta)
	if err != nil {
		t.Fatal(err)
	}
	if out.Server.Bare() != two.Bare() ||
		out.Server.Bare().Upper <= out.Rounds[0].Server.Bare().Upper {
		t.Errorf("spent %v after one round and a failed one, want %v", out.Server, two)
	}

	o := private(t, 20)
	ctx, cancel = context.WithCancel(t.Context())
	s, err := o.run(ctx, func(RoundResult) { cancel() })
	if !errors.Is(err, context.Canceled) || len(s.Rounds) != 1 ||
		s.Server.Bare().Upper <= s.Rounds[0].Server.Bare().Upper {
		t.Errorf("%d rounds, spent %v: %v", len(s.Rounds), s.Server, err)
	}
}

// Rows that do not fit are found before anything is spent.
func TestBadRowsSpendNothing(t *testing.T) {
	for name, change := range map[string]func(*World){
		"test":  func(w *World) { w.Test.Labels[0] = 7 },
		"party": func(w *World) { w.Parties[3].Labels[0] = 7 },
	} {
		x := noisyBrief()
		x.world = change
		out, err := x.run(t.Context(), nil)
		var option *job.ConfigError
		if name == "test" {
			if !errors.As(err, &option) || option.Path != "Test" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var failed *RoundError
		if !errors.As(err, &failed) || failed.Round != 0 || failed.Party != 3 {
			t.Errorf("%s: %v", name, err)
		}
		if spent := out.Server; spent.Bare().Upper != 0 {
			t.Errorf("%s: spent %v", name, spent)
		}
	}
	o := private(t, 1)
	o.test.Labels[0] = 2
	if _, err := o.run(t.Context(), nil); !errors.Is(err, job.ErrConfig) {
		t.Error(err)
	}
}

// With noise the end of a run must not tell what one party's rows are: rows on which
// training diverges are an update of zeros. Without noise they are an error.
func TestDivergenceIsNotSeen(t *testing.T) {
	wild := func(d *learning.Dataset) {
		for k := range d.X {
			d.X[k] *= 1e307
		}
	}
	for _, kind := range []string{Ring, Messages} {
		x := noisyBrief()
		x.World.Fidelity = kind
		wild(x.rows[3])
		if out := train(t, x); len(out.Rounds) != 3 || out.Rounds[2].Parties != 6 {
			t.Errorf("%v: %d rounds", kind, len(out.Rounds))
		}
		x.Privacy = job.Privacy{}
		if _, err := x.run(t.Context(), nil); !errors.Is(err, learning.ErrDiverged) {
			t.Errorf("%v without noise: %v", kind, err)
		}
	}
	o := private(t, 20)
	for _, rows := range o.rows {
		wild(rows)
	}
	if s, err := o.run(t.Context(), nil); err != nil || len(s.Rounds) != 4 {
		t.Errorf("Run: %v", err)
	}
}

// Secret coins are of Random and nothing of Seed: 4 of 20 parties over 500 rounds
// are 2,000 in all within 6 standard deviations (40 each), and each party is in 100
// rounds within 6 (9 each).
func TestSecretSchedule(t *testing.T) {
	x := noisyBrief()
	x.rows, x.test = blobs(20, 5)
	x.Parties.Hidden, x.Privacy.SubmitAfter = 0.2, time.Second
	secret := func(seed byte) *setting {
		y := x.setting(t)
		y.Random = rand.NewChaCha8([32]byte{seed})
		return y
	}
	a, b, c := secret(1), secret(1), secret(2)
	b.Seed++
	total, differ := make([]int, 20), false
	for round := 1; round <= 500; round++ {
		var drawn [3][]int
		for k, y := range []*setting{a, b, c} {
			var err error
			if drawn[k], err = (&summer{setting: y}).drawn(round, everybody(20)); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(drawn[0], drawn[1]) {
			t.Fatal("Seed has a part in the draw")
		}
		differ = differ || !slices.Equal(drawn[0], drawn[2])
		for _, i := range drawn[0] {
			total[i]++
		}
	}
	sum := 0
	for i, k := range total {
		sum += k
		if math.Abs(float64(k)-100) > 54 {
			t.Errorf("party %d is in %d of 500 rounds", i, k)
		}
	}
	if !differ || math.Abs(float64(sum)-2000) > 240 {
		t.Errorf("%d parties in 500 rounds", sum)
	}
	// By default two runs of one seed differ.
	if x.Rounds = 20; slices.EqualFunc(train(t, x).Rounds, train(t, x).Rounds,
		func(a, b RoundResult) bool { return slices.Equal(a.Included, b.Included) }) {
		t.Error("draws are repeated")
	}
	x.world = func(w *World) { w.Random = iotest.ErrReader(errors.New("no draws")) }
	if out, err := x.run(t.Context(), nil); err == nil || len(out.Rounds) > 0 {
		t.Errorf("%d rounds: %v", len(out.Rounds), err)
	}
}
