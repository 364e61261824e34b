package hushsum

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
)

// declaredCommittee returns a job of a file whose sums a committee takes.
func declaredCommittee(t *testing.T, text string, n, members int) *committeeJob {
	t.Helper()
	j, err := job.Parse("job.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return newCommitteeJob(t, j, n, members)
}

// race is a job in virtual time of parties that take log-normally long to train, and each have a
// point that the model is to come near: its loss is the mean square of the distances, less the
// least.
type race struct {
	*committeeJob
	points  [][]float64
	speeds  []float64 // by party, of its log
	kills   bool
	target  float64
	reached time.Duration
	ended   time.Duration
	deaths  int
	stores  []Store
	began   time.Time
	spent   []uint64 // submissions that parties have counted, by their reports
}

func newRace(t *testing.T, text string, n, members, length int) *race {
	r := &race{committeeJob: declaredCommittee(t, text, n, members), target: 0.02}
	random := rand.New(rand.NewPCG(7, 7))
	for range n {
		point := make([]float64, length)
		for k := range point {
			point[k] = 1 + 0.3*random.NormFloat64()
		}
		r.points = append(r.points, point)
		r.speeds = append(r.speeds, random.NormFloat64())
		r.stores = append(r.stores, new(MemoryStore))
	}
	r.spent = make([]uint64, n)
	return r
}

// loss returns the distance to the mean point, as a share of its value at the first model.
func (r *race) loss(model []float64) float64 {
	left, first := 0.0, 0.0
	for k := range model {
		mean := 0.0
		for _, p := range r.points {
			mean += p[k] / float64(len(r.points))
		}
		left += (model[k] - mean) * (model[k] - mean)
		first += mean * mean
	}
	return left / first
}

// again runs something, ends it at random and starts it again, until it is done.
func (r *race) again(ctx context.Context, seed uint64, run func(ctx context.Context) error) {
	random := rand.New(rand.NewPCG(seed, 3))
	for ctx.Err() == nil {
		one, end := context.WithCancel(ctx)
		if r.kills {
			life := time.Duration((5 + 40*random.ExpFloat64()) * float64(time.Second))
			one, end = context.WithTimeout(ctx, life)
		}
		err := run(one)
		end()
		switch {
		case err == nil:
			return
		case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
			r.mutex.Lock()
			r.deaths++
			r.mutex.Unlock()
		default:
			r.Error(err)
			return
		}
	}
}

// run holds the race.
func (r *race) run() *Result[float64] {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r.began = time.Now()
	var wait sync.WaitGroup
	for i := range r.signers {
		random := rand.New(rand.NewPCG(uint64(i), 5))
		wait.Go(func() {
			r.again(ctx, uint64(i), func(ctx context.Context) error {
				p := r.participant(i, r.stores[i])
				p.Work = vectors(func(ctx context.Context, _ uint64, model []float64) ([]float64, error) {
					// A party's own speed, and the luck of the round: medians of 10 s.
					takes := 10 * math.Exp(r.speeds[i]+0.25*random.NormFloat64())
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(time.Duration(takes * float64(time.Second))):
					}
					update := make([]float64, len(model))
					for k := range update {
						update[k] = 0.5 * (r.points[i][k] - model[k])
					}
					return update, nil
				})
				p.Progress = func(e Event) {
					if e.Kind == host.Submitted {
						r.mutex.Lock()
						r.spent[i]++
						r.mutex.Unlock()
					}
				}
				_, err := p.Run(ctx)
				return err
			})
		})
	}
	for k, identity := range r.members {
		store := new(MemoryStore)
		wait.Go(func() {
			r.again(ctx, 1000+uint64(k), func(ctx context.Context) error {
				m := r.member(k, store)
				m.Identity = crypto.Signer(identity)
				return m.Run(ctx)
			})
		})
	}
	var result *Result[float64]
	store := new(MemoryStore)
	r.again(ctx, 9999, func(ctx context.Context) (err error) {
		c := r.coordinator(store)
		c.StepTime = 10 * time.Minute
		own := c.Apply
		c.Apply = applying(func(round Done[float64], model []float64) ([]float64, error) {
			if own != nil {
				if _, err := own(round); err != nil {
					return nil, err
				}
			}
			next := slices.Clone(model)
			for k := range next {
				next[k] += round.Mean[k]
			}
			if r.reached == 0 && r.loss(next) <= r.target {
				r.reached = time.Since(r.began)
			}
			return next, nil
		})
		result, err = c.Run(ctx)
		return err
	})
	r.ended = time.Since(r.began)
	cancel() // who was dead does not hear that the job is over
	wait.Wait()
	return result
}

const raceJob = `name = "race"
rounds = %d
model.length = 4
parties = { count = %d, drop_out = 0.0, colluders = 1 }
sum = { protocol = "oneshot", classical = true, range = 8.0%s }
time.step_time = "10m"
`

// Parties of very different speeds, in a job that waits for all and in one with a buffer, all of
// which are killed at random: every sum is exact, nobody is in more sums than it has counted, and
// the job with a buffer is done long before.
func TestBufferedJob(t *testing.T) {
	t.Parallel()
	n, k := suite.Size(10, 12, 200, 200), suite.Size(4, 4, 20, 20)
	rounds := suite.Size(24, 24, 60, 60)
	times := make(map[string]time.Duration)
	for name, x := range map[string]struct {
		rounds int
		sum    string
		kills  bool
	}{
		"synchronous":     {4, "", false},
		"buffer":          {rounds, fmt.Sprintf(", buffer = %d, stale = 20", k), false},
		"buffer, killed":  {rounds, fmt.Sprintf(", buffer = %d, stale = 20", k), true},
		"covered, killed": {rounds / 3, fmt.Sprintf(", buffer = %d, covered = true", k), true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRace(t, fmt.Sprintf(raceJob, x.rounds, n, x.sum), n, 5, 4)
			r.kills = x.kills
			result := r.run()
			if result == nil {
				t.Fatalf("%s: the job did not end", name)
			}
			r.check()
			in := make([]uint64, n)
			for _, round := range r.rounds {
				if x.sum != "" && len(round.Parties) != k {
					t.Errorf("%s: round %d has %d parties", name, round.Number, len(round.Parties))
				}
				for _, i := range round.Parties {
					in[i]++
				}
			}
			all := uint64(0)
			for i := range in {
				if all += r.spent[i]; in[i] > r.spent[i] {
					t.Errorf("%s: party %d is in %d sums, and has counted %d", name, i, in[i], r.spent[i])
				}
			}
			if !x.kills && len(r.rounds) != x.rounds || r.reached == 0 {
				t.Errorf("%s: %+v, %d sums, loss reached after %v", name, result, len(r.rounds), r.reached)
			}
			times[name] = r.reached
			t.Logf("%s: %d rounds, %d lost, %d deaths, %d submissions counted; parties in %d to %d sums; "+
				"loss of %v after %v, done after %v", name, result.Rounds, result.Lost, r.deaths, all,
				slices.Min(in), slices.Max(in), r.target, r.reached.Round(time.Second),
				r.ended.Round(time.Second))
		})
	}
	for _, name := range []string{"buffer", "buffer, killed"} {
		ratio := times[name].Seconds() / times["synchronous"].Seconds()
		t.Logf("%s: time to the loss ÷ synchronous: %.2f", name, ratio)
		if !(ratio < 1) {
			t.Errorf("%s: it takes %v, and %v to wait for all", name, times[name], times["synchronous"])
		}
	}
}

// Each party is charged for the rounds that it has submitted in, and the job for the one that has
// submitted most often; noise is for as many as a party may.
func TestBufferedEpsilon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRace(t, `name = "race"
rounds = 9
model.length = 4
parties = { count = 8, participations = 6 }
sum = { protocol = "oneshot", classical = true, buffer = 4 }
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 4.0 }
time.step_time = "10m"
`, 8, 5, 4)
		r.target = math.Inf(1)
		result := r.run()
		ledger, err := r.settled.Ledger()
		if err != nil {
			t.Fatal(err)
		}
		most := slices.Max(r.spent)
		if err := ledger.SpendRounds(r.settled.Round(), int(most), "one"); err != nil {
			t.Fatal(err)
		}
		want, err := ledger.Spent("one")
		if err != nil {
			t.Fatal(err)
		}
		if most > 6 || len(r.rounds) < 8 || result.Spent == nil ||
			result.Spent.Bare().Upper != want.Bare().Upper ||
			want.Bare().Upper > 8 || most == 6 && want.Bare().Upper < 7.9 {
			t.Errorf("%d sums, submissions %v: %+v, want %+v", len(r.rounds), r.spent, result.Spent, want)
		}
		t.Logf("%d sums, submissions %v, epsilon %.3f", len(r.rounds), r.spent, result.Spent.Bare().Upper)
	})
}

// What is older counts less: by the root of its age.
func TestBufferedWeight(t *testing.T) {
	m := Update[float64]{Vector: []float64{3, -6}, Signed: []float64{1}, Samples: 5}
	for rounds, want := range map[uint64]float64{0: 1, 3: 0.5, 8: 1. / 3} {
		w := m.Weighed(rounds)
		if math.Abs(w.Vector[1]+6*want) > 1e-12 || w.Signed[0] != want || w.Samples != 5 ||
			m.Vector[0] != 3 {
			t.Errorf("%d rounds: %+v", rounds, w)
		}
	}
}
