package hushsum

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hushsum/hushsum/job"
)

// atOnce runs a job of either protocol, in F, with parties that bring updates and a coordinator of
// its own, and returns what each party ends with.
func atOnce[F Float](
	t *testing.T, j *committeeJob, update func(i int) Update[F], c *Coordinator[F],
) (*Result[F], [][]F, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	c.Job, c.Listener = j.settled, j.memory
	var wait, helping sync.WaitGroup
	within, stop := context.WithCancel(ctx)
	if j.network != nil {
		c.Committee = j.network
		for k := range j.members {
			m := j.member(k, nil)
			helping.Go(func() { _ = m.Run(within) }) // or it has not heard of the end
		}
	}
	models := make([][]F, len(j.signers))
	for i := range j.signers {
		p := &Participant[F]{Job: j.settled, Identity: j.signers[i], Dialer: j.memory.Dialer(i),
			Work: func(context.Context, Round[F]) (Update[F], error) { return update(i), nil }}
		if j.settled.Job().Metrics.Share > 0 {
			p.Evaluate = func(_ context.Context, r Round[F]) (loss, accuracy float64, err error) {
				return 1 + float64(r.Model[0]), 0.5, nil
			}
		}
		wait.Go(func() { models[i], _ = p.Run(ctx) })
	}
	result, err := c.Run(ctx)
	if err != nil {
		cancel()
	}
	wait.Wait()
	stop()
	helping.Wait()
	return result, models, err
}

// ones is an update of ones.
func ones[F Float](samples int) Update[F] {
	return Update[F]{Vector: slices.Repeat([]F{1}, 5), Samples: samples}
}

// either runs a test for both protocols, in virtual time.
func either(t *testing.T, test func(t *testing.T, plan *job.Job)) {
	for name, plan := range map[string]*job.Job{"pairwise": testJob(), "one message": oneshotJob()} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, plan) }) })
	}
}

// A coordinator whose Round says stop begins no other round, and all end with that round's model;
// the rounds that were not held are not spent.
func TestRoundStops(t *testing.T) {
	either(t, func(t *testing.T, plan *job.Job) {
		plan.Rounds, plan.Parties.DropOut = 5, 0
		plan.Privacy.Noise, plan.Privacy.Epsilon = "discrete-gaussian", 8
		j, _ := newEither(t, plan, nil)
		var spent []float64
		result, models, err := atOnce(t, j, func(int) Update[float64] { return ones[float64](1) },
			&Coordinator[float64]{Round: func(d Done[float64]) (bool, error) {
				spent = append(spent, d.Spent.Bare().Upper)
				return d.Number == 2, nil
			}})
		if err != nil || result.Rounds != 2 || result.Lost != 0 || len(spent) != 2 {
			t.Fatalf("%+v, %v, %v", result, spent, err)
		}
		if got := result.Spent.Bare().Upper; got != spent[1] || !(spent[0] < got && got < 8) {
			t.Errorf("epsilon %v, after the rounds %v", got, spent)
		}
		for i, m := range models {
			if !slices.Equal(m, result.Model) {
				t.Errorf("party %d ends with %v, want %v", i, m, result.Model)
			}
		}
	})
}

// Where Round fails Run does, and another Run asks again about the same round: nothing is lost.
func TestRoundFails(t *testing.T) {
	either(t, func(t *testing.T, plan *job.Job) {
		plan.Rounds, plan.Parties.DropOut = 3, 0
		store, full := new(MemoryStore), errors.New("the disk is full")
		j, _ := newEither(t, plan, nil)
		ctx, cancel := context.WithTimeout(t.Context(), jobTime)
		defer cancel()
		var all sync.WaitGroup
		for i := range j.signers {
			p := j.participant(i, nil)
			all.Go(func() { _, _ = p.Run(ctx) })
		}
		for k := range j.members {
			m := j.member(k, new(MemoryStore))
			all.Go(func() { _ = m.Run(ctx) })
		}
		var applied, done []uint64
		run := func() (*Result[float64], error) {
			c := &Coordinator[float64]{Job: j.settled, Listener: j.memory, Store: store, Key: j.key,
				Apply: func(d Done[float64]) ([]float64, error) {
					applied = append(applied, d.Number)
					return added(d.Model, d.Mean), nil
				},
				Round: func(d Done[float64]) (bool, error) {
					if done = append(done, d.Number); len(done) == 2 {
						return false, full
					}
					return false, nil
				}}
			if j.network != nil {
				c.Committee = j.network
			}
			return c.Run(ctx)
		}
		if _, err := run(); !errors.Is(err, full) {
			t.Fatal(err)
		}
		result, err := run()
		if err != nil || result.Rounds != 3 || result.Lost != 0 ||
			!slices.Equal(applied, []uint64{1, 2, 2, 3}) || !slices.Equal(done, applied) {
			t.Errorf("%+v, %v; Apply saw %v, Round %v", result, err, applied, done)
		}
		cancel()
		all.Wait()
	})
}

// What Evaluate measures is summed with the updates, under the same noise.
func TestEvaluate(t *testing.T) {
	either(t, func(t *testing.T, plan *job.Job) {
		plan.Rounds, plan.Parties.DropOut, plan.Metrics.Share = 2, 0, 0.5
		plan.Privacy.Noise, plan.Privacy.Epsilon, plan.Privacy.Clip = "discrete-gaussian", 1e4, 4
		j, _ := newEither(t, plan, nil)
		var seen []*job.Metric
		result, _, err := atOnce(t, j, func(int) Update[float32] { return ones[float32](1) },
			&Coordinator[float32]{Round: func(d Done[float32]) (bool, error) {
				seen = append(seen, d.Metric)
				return false, nil
			}})
		if err != nil || result.Lost > 0 || len(seen) != 2 || len(result.Model) != 5 {
			t.Fatalf("%+v, %v, %v", result, seen, err)
		}
		for i, m := range seen { // at six deviations one of 10^8 correct sums fails
			if loss := 1 + float64(i); math.Abs(m.Loss-loss) > 6*m.LossDev || m.LossDev > 1.5 ||
				math.Abs(m.Accuracy-0.5) > 6*m.AccuracyDev {
				t.Errorf("round %d: %+v, want a loss of %v", i+1, m, loss)
			}
		}
	})
	j := newJob(t, testJob(), 4)
	p := j.participant(0, nil)
	p.Evaluate = func(context.Context, Round[float64]) (float64, float64, error) { return 0, 0, nil }
	var e *ConfigError
	if _, err := p.Run(t.Context()); !errors.As(err, &e) || e.Path != "Evaluate" {
		t.Errorf("Evaluate in a job without metrics: %v", err)
	}
}

// Jobs with one message, and with weights, are for float32 too.
func TestFloat32OfEachKind(t *testing.T) {
	either(t, func(t *testing.T, plan *job.Job) {
		plan.Rounds, plan.Parties.DropOut, plan.Sum.MaxWeight = 2, 0, 4
		j, _ := newEither(t, plan, nil)
		weighed := func(i int) Update[float32] {
			u := ones[float32](1 + i%4)
			for k := range u.Vector {
				u.Vector[k] = float32(i)
			}
			return u
		}
		result, models, err := atOnce(t, j, weighed, &Coordinator[float32]{})
		want := 0 + 1*2 + 2*3 + 3*4 + 4*1. // of 11 rows
		if err != nil || result.Lost > 0 || math.Abs(float64(result.Model[0])-2*want/11) > 1e-3 {
			t.Fatalf("%+v, %v, want %v", result, err, 2*want/11)
		}
		for i, m := range models {
			if !slices.Equal(m, result.Model) {
				t.Errorf("party %d ends with %v, want %v", i, m, result.Model)
			}
		}
	})
}
