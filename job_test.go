package hushsum

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
)

// identities returns n identities of parties and their roster.
func identities(t testing.TB, n int) ([]crypto.Signer, *keyexchange.Roster) {
	t.Helper()
	return named(t, "party", n)
}

func named(t testing.TB, kind string, n int) ([]crypto.Signer, *keyexchange.Roster) {
	t.Helper()
	var signers []crypto.Signer
	var members []keyexchange.Entry
	for i := range n {
		seed := sha256.Sum256(fmt.Appendf(nil, "%s %d", kind, i))
		key := ed25519.NewKeyFromSeed(seed[:])
		signers = append(signers, key)
		members = append(members,
			keyexchange.Entry{Name: fmt.Sprintf("%s-%d", kind, i), Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	return signers, roster
}

func testJob() *job.Job {
	return &job.Job{
		Name:    "test",
		Rounds:  6,
		Model:   job.Model{Length: 5},
		Parties: job.Parties{DropOut: 0.3},
		Privacy: job.Privacy{Clip: 100},
	}
}

// group runs a job in one process.
type group struct {
	*testing.T
	settled *Settled
	signers []crypto.Signer
	memory  *Memory
	key     *keyexchange.SealKey

	mutex     sync.Mutex
	submitted map[uint64]map[int][][]uint64 // by round and party
	rounds    []Done[float64]
	events    []Event
}

func newJob(t *testing.T, declared *job.Job, n int) *group {
	t.Helper()
	signers, roster := identities(t, n)
	settled, err := declared.Settle(job.Files{Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	return newGroup(t, settled, signers)
}

func newGroup(t *testing.T, settled *Settled, signers []crypto.Signer) *group {
	t.Helper()
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &group{T: t, settled: settled, signers: signers, memory: new(Memory), key: key,
		submitted: make(map[uint64]map[int][][]uint64)}
}

// participant returns party i, whose vector is i+1 everywhere.
func (j *group) participant(i int, store Store) *Participant[float64] {
	p := &Participant[float64]{
		Job: j.settled, Identity: j.signers[i], Dialer: j.memory.Dialer(i), Store: store,
		Work: vectors(func(_ context.Context, _ uint64, model []float64) ([]float64, error) {
			vector := make([]float64, len(model))
			for k := range vector {
				vector[k] = float64(i + 1)
			}
			return vector, nil
		}),
		Submitted: func(round uint64, values [][]uint64) {
			j.mutex.Lock()
			defer j.mutex.Unlock()
			if j.submitted[round] == nil {
				j.submitted[round] = make(map[int][][]uint64)
			}
			var kept [][]uint64
			for _, v := range values {
				kept = append(kept, slices.Clone(v))
			}
			j.submitted[round][i] = kept
		},
	}
	if store != nil {
		p.Key = j.key
	}
	return p
}

func (j *group) coordinator(store Store) *Coordinator[float64] {
	c := &Coordinator[float64]{
		Job: j.settled, Listener: j.memory, Store: store,
		Apply: applying(func(r Done[float64], model []float64) ([]float64, error) {
			j.mutex.Lock()
			defer j.mutex.Unlock()
			j.rounds = append(j.rounds, r)
			return model, nil
		}),
		Progress: func(e Event) {
			j.mutex.Lock()
			defer j.mutex.Unlock()
			j.events = append(j.events, e)
		},
	}
	if store != nil { // parties may have lost what a step waits for
		c.Key, c.StepTime = j.key, 5*time.Second
	}
	return c
}

// check compares every sum with the submissions that should be in it.
func (j *group) check() {
	j.Helper()
	layout := j.settled.Layout()
	for _, r := range j.rounds {
		for s, segment := range layout {
			want := make([]uint64, segment.Length)
			for _, i := range r.Parties {
				for k, x := range j.submitted[r.Number][i][s] {
					want[k] = (want[k] + x) & (^uint64(0) >> (64 - segment.Bits))
				}
			}
			if !slices.Equal(want, r.Sum.Values()[s]) {
				j.Fatalf("round %d: the sum is not that of parties %v", r.Number, r.Parties)
			}
		}
	}
}

// run runs the job with parties that do not fail.
func (j *group) run(ctx context.Context, parties []*Participant[float64]) *Result[float64] {
	j.Helper()
	result, ends := j.runAll(ctx, parties)
	for i, err := range ends {
		if err != nil {
			j.Errorf("party %d: %v", i, err)
		}
	}
	return result
}

// runAll runs the job, and returns how each party ended.
func (j *group) runAll(
	ctx context.Context, parties []*Participant[float64],
) (*Result[float64], []error) {
	j.Helper()
	var wait sync.WaitGroup
	ends := make([]error, len(parties))
	for i, p := range parties {
		wait.Go(func() { _, ends[i] = p.Run(ctx) })
	}
	result, err := j.coordinator(nil).Run(ctx)
	for _, e := range j.events {
		j.Log(e)
	}
	if err != nil {
		j.Fatal(err)
	}
	wait.Wait()
	return result, ends
}

// Parties that stay: every round has a sum, of all.
func TestJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		noise  string
		budget float64
	}{"without noise": {"none", 0}, "with noise": {"discrete-gaussian", 8}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				plan := testJob()
				plan.Privacy.Noise, plan.Privacy.Epsilon = c.noise, c.budget
				j := newJob(t, plan, 7)
				ctx, cancel := context.WithTimeout(t.Context(), jobTime)
				defer cancel()
				var parties []*Participant[float64]
				for i := range j.signers {
					parties = append(parties, j.participant(i, nil))
				}
				result := j.run(ctx, parties)
				j.check()
				if result.Rounds != 6 || result.Lost != 0 || len(j.rounds) != 6 {
					t.Fatalf("%+v, %d sums\n%v", result, len(j.rounds), j.events)
				}
				for _, r := range j.rounds {
					if len(r.Parties) != 7 {
						t.Errorf("round %d has parties %v", r.Number, r.Parties)
					}
					if c.noise == "none" && math.Abs(r.Mean[0]-4) > 1e-3 {
						t.Errorf("round %d: mean %v, want 4", r.Number, r.Mean[0])
					}
				}
				spent := result.Spent
				if c.noise != "none" && (spent == nil || spent.Bare().Upper > 8 || spent.Bare().Upper < 7) {
					t.Errorf("spent %+v of 8", result.Spent)
				}
			})
		})
	}
}

// A coordinator and parties that are ended and started again from what they stored, at
// random moments: every sum is exact, and everybody takes part in the end.
func TestJobRestarts(t *testing.T) {
	t.Parallel()
	plan := testJob()
	plan.Rounds = 30
	restarts(t, plan)
}

// The same with models and submissions that are sent in parts, and kept next to the state.
func TestLongJobRestarts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes much")
	}
	plan := testJob()
	plan.Rounds, plan.Model.Length = 5, 300_000
	restarts(t, plan)
}

func restarts(t *testing.T, plan *job.Job) {
	t.Helper()
	restartsOf(t, plan, func(int) bool { return false },
		func(ctx context.Context, _ *group, c *Coordinator[float64]) (*Result[float64], error) {
			return c.Run(ctx)
		})
}

// restartsOf has parties and coordinator hold models otherwise: narrow names the parties that work
// in float32.
func restartsOf(t *testing.T, plan *job.Job, narrow func(i int) bool, coordinate func(
	ctx context.Context, j *group, c *Coordinator[float64]) (*Result[float64], error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, plan, 7)
		var wait sync.WaitGroup
		l := newLives(t)
		for i := range j.signers {
			store := new(slowStore)
			wait.Go(func() {
				l.run(time.Duration(2000+300*i)*time.Millisecond, func(ctx context.Context) error {
					p := j.participant(i, store)
					p.Counter = store
					work := bare(p.Work)
					p.Work = vectors(func(ctx context.Context, n uint64, model []float64) ([]float64, error) {
						time.Sleep(rand.N(700 * time.Millisecond)) // its life may end meanwhile
						return work(ctx, n, model)
					})
					if i == 6 {
						p.Store, p.Key, p.Counter = nil, nil, nil // it loses everything each time
					}
					_, err := runs(ctx, p, narrow(i))
					return err
				})
			})
		}
		var result *Result[float64]
		store := new(slowStore)
		l.run(2500*time.Millisecond, func(ctx context.Context) (err error) {
			result, err = coordinate(ctx, j, j.coordinator(store))
			return err
		})
		wait.Wait()
		if result == nil {
			t.Fatalf("the job did not end\n%v", j.events[max(0, len(j.events)-40):])
		}
		j.check()
		t.Logf("%d rounds, %d lost, %d sums, %d lives ended", result.Rounds, result.Lost, len(j.rounds),
			l.ended)
		if result.Rounds != plan.Rounds || result.Lost > plan.Rounds/2 || l.ended < 7 {
			t.Errorf("%d rounds, %d lost, %d lives ended", result.Rounds, result.Lost, l.ended)
		}
	})
}

// lives has processes of a job live for a time, over and over.
type lives struct {
	*testing.T
	ctx   context.Context
	mutex sync.Mutex
	ended int // before the process was done
}

func newLives(t *testing.T) *lives {
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	t.Cleanup(cancel)
	return &lives{T: t, ctx: ctx}
}

// run runs a process and starts it again when its life has ended, each time for a longer one,
// until it is done.
func (l *lives) run(life time.Duration, process func(ctx context.Context) error) {
	for ; l.ctx.Err() == nil; life += 37 * time.Millisecond {
		one, end := context.WithTimeout(l.ctx, life)
		err := process(one)
		end()
		switch {
		case err == nil:
			return
		case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
			l.mutex.Lock()
			l.ended++
			l.mutex.Unlock()
		default:
			l.Error(err)
			return
		}
	}
}

// slowStore is a Store and a Counter in memory. Its writes take a while, in virtual time, before
// anything is written and after: an end can come before a write, and between a write and what
// follows from it.
type slowStore struct {
	MemoryStore
	number uint64
}

func (s *slowStore) Save(state []byte) error {
	defer linger()
	linger()
	return s.MemoryStore.Save(state)
}

func (s *slowStore) Put(name string, long io.WriterTo) error {
	defer linger()
	linger()
	return s.MemoryStore.Put(name, long)
}

func (s *slowStore) Value() (uint64, error) { return s.number, nil }

func (s *slowStore) Advance(to uint64) error {
	defer linger()
	linger()
	s.number = to
	return nil
}

// bytesOf returns the bytes of what writes itself.
func bytesOf(t testing.TB, from io.WriterTo) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := from.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func linger() { time.Sleep(rand.N(20 * time.Millisecond)) }

// jobTime ends a job that does not end by itself, on however busy a machine.
const jobTime = 4 * time.Minute
