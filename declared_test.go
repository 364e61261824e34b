package hushsum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
)

// declared returns a group that runs a job's file.
func declared(t *testing.T, text string, n int) *group {
	t.Helper()
	j, err := job.Parse("job.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return newJob(t, j, n)
}

const meanJob = `name = "mean"
rounds = 3
model.length = 5000
parties = { count = 5, drop_out = 0.2, colluders = 1 }
sum.classical = true
`

// A job of a file runs over links, without noise to the last bit, with it within
// its deviation.
func TestDeclaredJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, more := range []string{"", "privacy.clip = 1000.0\n", "sum.adversary = \"curious\"\n",
			"privacy = { noise = \"discrete-gaussian\", epsilon = 1000.0, clip = 1000.0 }\n"} {
			g := declared(t, meanJob+more, 5)
			var parties []*Participant[float64]
			for i := range 5 {
				parties = append(parties, g.participant(i, nil))
			}
			g.run(t.Context(), parties)
			g.check()
			if len(g.rounds) != 3 {
				t.Fatalf("%d rounds", len(g.rounds))
			}
			for _, r := range g.rounds {
				want, off := 3.0, 1e-9
				if g.settled.StdDev(5) > 0 {
					off = 7 * g.settled.StdDev(5)
				}
				for k, x := range r.Mean {
					if !(x >= want-off && x <= want+off) {
						t.Fatalf("%q: coordinate %d is %v, want %v within %v", more, k, x, want, off)
					}
				}
			}
		}
	})
}

// The first round waits for as many parties as the job says, for as long as it takes, and its
// coordinator says how many are missing.
func TestBeginWith(t *testing.T) {
	const late = 10 * time.Hour
	for name, text := range map[string]string{"pairwise": meanJob, "oneshot": "name = \"mean\"\n" +
		"rounds = 3\nmodel.length = 5\nparties = { count = 5, drop_out = 0.2 }\n" +
		"sum = { protocol = \"oneshot\", classical = true }\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*late)
				defer cancel()
				j, err := job.Parse("job.toml", []byte(text+"time.begin_with = 5\n"))
				if err != nil {
					t.Fatal(err)
				}
				g, coordinator := newEither(t, j, nil)
				var wait sync.WaitGroup
				defer wait.Wait()
				for k := range g.members {
					wait.Go(func() { _ = g.member(k, nil).Run(ctx) })
				}
				for i := range 5 {
					wait.Go(func() {
						if i == 4 {
							time.Sleep(late)
						}
						_, _ = g.participant(i, nil).Run(ctx)
					})
				}
				result, err := coordinator.Run(ctx)
				if err != nil || result.Lost > 0 {
					t.Fatalf("%+v, %v", result, err)
				}
				for _, r := range g.rounds {
					if len(r.Parties) != 5 {
						t.Errorf("round %d has %v", r.Number, r.Parties)
					}
				}
				if !slices.ContainsFunc(g.events, func(e Event) bool {
					return e.Kind == host.Waiting && slices.Equal(e.Parties, []int{4})
				}) {
					t.Errorf("nobody says who is missing: %v", g.events)
				}
			})
		})
	}
}

// A party whose file differs is told in which field, and one whose time differs takes part.
func TestDeclaredDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := declared(t, meanJob+"time.step_time = \"9s\"\n", 5)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := g.coordinator(nil).Run(ctx)
			ended <- err
		}()
		for field, more := range map[string]string{
			"privacy.clip": "privacy.clip = 2.0\n", "sum.range": "sum.range = 32.0\n",
		} {
			other := declared(t, meanJob+more, 5)
			p := other.participant(0, nil)
			p.Dialer = g.memory.Dialer(0)
			_, err := p.Run(ctx)
			var differs *DifferenceError
			if !errors.As(err, &differs) || differs.Field != field {
				t.Errorf("%v, want a difference in %s", err, field)
			}
		}
		same := declared(t, meanJob, 5)
		if same.settled.Digest() != g.settled.Digest() {
			t.Error("time is in the digest")
		}
		plan := newJob(t, testJob(), 5)
		p := plan.participant(0, nil)
		p.Dialer = g.memory.Dialer(0)
		if _, err := p.Run(ctx); !errors.Is(err, ErrJob) {
			t.Errorf("a party of another job: %v", err)
		}
		cancel()
		<-ended
	})
}

// A vector that is encoded in place gives the submission, and the mean, of one that is copied.
func TestDeclaredInPlace(t *testing.T) {
	for _, more := range []string{"", "privacy.clip = 2.0\n"} {
		g := declared(t, meanJob+more, 5)
		vector := make([]float64, 5000)
		for k := range vector {
			vector[k] = float64(k%7)/3 - 1
		}
		broadcast := []byte("broadcast")
		digest, made := job.BroadcastDigest(broadcast), Update[float64]{Vector: vector}
		values, err := g.settled.Encode(digest, made, nil)
		if err != nil {
			t.Fatal(err)
		}
		v, err := masking.NewVector(g.settled.Layout())
		if err != nil {
			t.Fatal(err)
		}
		if err := job.EncodeTo(v, g.settled, digest, made, nil); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(v.Values()), fmt.Sprint(values); got != want {
			t.Fatalf("%q: in place it is another submission", more)
		}
		total, err := g.settled.Decode(digest, values, 1)
		if err != nil {
			t.Fatal(err)
		}
		again := make([]float64, len(total.Mean))
		if _, err := job.DecodeTo(again, g.settled, digest, v, 1); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(total.Mean) != fmt.Sprint(again) {
			t.Fatalf("%q: in place it is another mean", more)
		}
	}
}

// A job that holds rounds among some draws them by the rule that all know, and holds rounds no
// faster than it says.
func TestDeclaredSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := declared(t, `name = "mean"
rounds = 3
model.length = 5000
parties = { count = 5, drop_out = 0.4, per_round = 4 }
sum = { classical = true, adversary = "curious" }
time = { pace = "200ms" }
`, 5)
		var parties []*Participant[float64]
		for i := range 5 {
			parties = append(parties, g.participant(i, nil))
		}
		g.run(t.Context(), parties)
		g.check()
		if len(g.rounds) != 3 {
			t.Fatalf("%d rounds", len(g.rounds))
		}
		for _, r := range g.rounds {
			if want := g.settled.Draw(r.Number, []int{0, 1, 2, 3, 4}, 4); !slices.Equal(r.Parties, want) {
				t.Errorf("round %d is of %v, want %v", r.Number, r.Parties, want)
			}
		}
	})
}

// Vectors of a job that weighs its means have a weight each, with noise and without.
func TestDeclaredWeights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		weight := func(party int) int { return []int{4, 1, 1, 1, 1}[party] }
		for more, off := range map[string]float64{
			"": 1e-5,
			"privacy = { noise = \"discrete-gaussian\", multiplier = 0.0001, clip = 1000.0 }\n": 0.5,
		} {
			g := declared(t, meanJob+"sum.max_weight = 4\n"+more, 5)
			var parties []*Participant[float64]
			for i := range 5 {
				p := g.participant(i, nil)
				work := bare(p.Work)
				p.Work = nil
				var e *ConfigError
				if _, err := p.Run(t.Context()); !errors.As(err, &e) || e.Path != "Work" {
					t.Fatal(err)
				}
				p.Work = func(ctx context.Context, r Round[float64]) (Update[float64], error) {
					v, err := work(ctx, r.Number, r.Model)
					return Update[float64]{Vector: v, Samples: weight(i)}, err
				}
				parties = append(parties, p)
			}
			g.run(t.Context(), parties)
			g.check()
			for _, r := range g.rounds {
				sum, weights := 0.0, 0.0
				for _, i := range r.Parties {
					w := float64(weight(i))
					sum, weights = sum+w*float64(i+1), weights+w
				}
				for k, x := range r.Mean {
					if want := sum / weights; !(x >= want-off && x <= want+off) {
						t.Fatalf("%q: coordinate %d is %v, want %v", more, k, x, want)
					}
				}
			}
		}
	})
}
