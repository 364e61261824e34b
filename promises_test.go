package hushsum

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/link"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
)

// A coordinator that has forgotten everything, after every round, gets no more submissions than the
// plan has rounds, and none for a round twice: parties count, whatever they are told.
func TestForgetfulCoordinator(t *testing.T) {
	for name, noise := range map[string]string{
		"with noise":    "discrete-gaussian",
		"without noise": "none",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				plan := testJob()
				plan.Rounds, plan.Privacy.Noise = 2, noise
				if noise != "none" {
					plan.Privacy.Epsilon = 1
				}
				j := newJob(t, plan, 5)
				forget(t, j, func(ctx context.Context, report func(Event)) error {
					c := j.coordinator(nil)
					c.Progress = report
					_, err := c.Run(ctx)
					return err
				})
			})
		})
	}
}

// A coordinator that goes on after the last round of a plan with a committee gets nothing more, nor
// does one whose broadcast has another round than the opening.
func TestOneshotGoesOn(t *testing.T) {
	plan := oneshotJob()
	plan.Rounds = 2
	j := newCommitteeJob(t, plan, 5, 5)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	config := j.settled.Oneshot()
	server, err := oneshot.NewServer(config, 0)
	if err != nil {
		t.Fatal(err)
	}
	var members []*oneshot.Member
	for _, signer := range j.members {
		m, err := oneshot.NewMember(config, signer, nil)
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, m)
	}
	p := j.participant(0, nil)
	events := make(chan Event, 16)
	p.Progress = func(e Event) { events <- e }
	go func() { _, _ = p.Run(ctx) }()
	_, conn, err := j.memory.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Receive(ctx); err != nil { // hello
		t.Fatal(err)
	}
	go func() {
		for { // what the party says of its absence, and what it offers
			if _, err := conn.Receive(ctx); err != nil {
				return
			}
		}
	}()
	for _, c := range []struct {
		said uint64 // by the broadcast
		want host.EventKind
		err  error
	}{{2, host.Absent, drive.ErrRound}, {2, host.Submitted, nil}, {3, host.Absent, drive.ErrRound}} {
		invite := server.Invite()
		for _, m := range members {
			key, err := m.Receive(invite)
			if err == nil {
				err = server.Receive(key)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		b := link.Broadcast{Round: c.said, Model: make(link.Floats[float64], plan.Model.Length)}
		began := bytesOf(t, &b)
		opening, err := server.Open(began)
		if err != nil {
			t.Fatal(err)
		}
		for _, out := range [][]byte{
			link.NewFrame(link.KindBroadcast, began),
			link.NewFrame(link.KindMessage, opening),
		} {
			if err := conn.Send(ctx, out); err != nil {
				t.Fatal(err)
			}
		}
		e := <-events
		for e.Kind == host.Connected {
			e = <-events
		}
		if e.Kind != c.want || !errors.Is(e.Err, c.err) {
			t.Errorf("round %d, whose broadcast has %d: %v, want %v, %v", server.Round(), c.said, e, c.want,
				c.err)
		}
	}
}

// forget has one coordinator after another hold a round, and counts what parties submit.
func forget(t *testing.T, j *group, coordinate func(context.Context, func(Event)) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	var mutex sync.Mutex
	rounds := make([][]uint64, len(j.signers))
	for i := range j.signers {
		p := j.participant(i, nil)
		p.Progress = func(e Event) {
			if e.Kind == host.Submitted {
				mutex.Lock()
				defer mutex.Unlock()
				rounds[i] = append(rounds[i], e.Round)
			}
		}
		go func() { _, err := p.Run(ctx); t.Log("ended", err) }()
	}
	told := false
	for times := 0; !told && times < 5; times++ {
		one, forgets := context.WithCancel(ctx)
		err := coordinate(one, func(e Event) {
			if e.Kind == host.Summed || e.Kind == host.Lost {
				forgets()
			}
		})
		forgets()
		// Once all rounds were held it learns that from the parties.
		told = errors.Is(err, ErrStalled)
		if !told && !errors.Is(err, context.Canceled) {
			t.Errorf("the coordinator ends with %v", err)
		}
	}
	if !told {
		t.Error("coordinators go on")
	}
	mutex.Lock()
	defer mutex.Unlock()
	sum := 0
	for i, of := range rounds {
		sum += len(of)
		if !slices.IsSorted(of) || len(slices.Compact(slices.Clone(of))) != len(of) ||
			len(of) > j.settled.Rounds() {
			t.Errorf("party %d submitted in rounds %d of %d", i, of, j.settled.Rounds())
		}
	}
	if sum == 0 {
		t.Error("nobody submitted")
	}
}

// A round that gives no sum, or no model, is lost, and the job goes on.
func TestLostRounds(t *testing.T) {
	broken := errors.New("the disk is full")
	for name, c := range map[string]struct {
		undecodable bool // no sum can be decoded
		apply       func(r Done[float64], model []float64) ([]float64, error)
		want        error
	}{
		"sums that do not decode": {undecodable: true},
		"an error": {apply: func(r Done[float64], model []float64) ([]float64, error) {
			return model, map[bool]error{true: broken}[r.Number == 2]
		}, want: broken},
		"NaN": {apply: func(r Done[float64], model []float64) ([]float64, error) {
			if r.Number == 2 {
				model[0] = math.NaN()
			}
			return model, nil
		}, want: ErrConfig},
		"another length": {apply: func(r Done[float64], model []float64) ([]float64, error) {
			return model[:len(model)-int(r.Number%2)], nil
		}, want: ErrConfig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				plan := testJob()
				plan.Rounds = 3
				if c.undecodable { // in an encoding that tells
					plan.Privacy.Noise, plan.Privacy.Epsilon = "discrete-gaussian", 8
				}
				j := newJob(t, plan, 5)
				ctx, cancel := context.WithTimeout(t.Context(), jobTime)
				defer cancel()
				ended := make(chan error, len(j.signers))
				for i := range j.signers {
					p := j.participant(i, nil)
					go func() {
						_, err := p.Run(ctx)
						ended <- err
					}()
				}
				coordinator := j.coordinator(nil)
				if coordinator.Apply = nil; c.apply != nil {
					coordinator.Apply = applying(c.apply)
				}
				if c.undecodable { // as after a flipped bit in a submission
					own, err := plan.Settle(job.Files{Roster: j.settled.Roster()})
					if err != nil {
						t.Fatal(err)
					}
					own.Mechanism().Encoder.Parties = 1
					coordinator.Job = own
				}
				result, err := coordinator.Run(ctx)
				if c.undecodable {
					// Every round is lost: what came of the job is told to all.
					if !errors.Is(err, ErrStalled) || result == nil || result.Lost != plan.Rounds {
						t.Errorf("%+v, %v", result, err)
					}
					for range j.signers {
						if err := <-ended; !errors.Is(err, ErrRefused) {
							t.Errorf("a party ends with %v", err)
						}
					}
					return
				}
				if err != nil || result.Rounds != plan.Rounds || result.Lost == 0 ||
					result.Lost == plan.Rounds {
					t.Errorf("%+v, %v", result, err)
				}
				for range j.signers {
					if err := <-ended; err != nil {
						t.Errorf("a party ends with %v", err)
					}
				}
				j.mutex.Lock()
				defer j.mutex.Unlock()
				for _, e := range j.events {
					if e.Kind == host.Lost && !errors.Is(e.Err, c.want) {
						t.Errorf("%v, want %v", e, c.want)
					}
				}
			})
		})
	}
}

// After five lost rounds in a row the job pauses, and spends no more. Once the cause is mended its
// coordinator runs again and goes on, with the same parties.
func TestPaused(t *testing.T) {
	full := errors.New("no room")
	for name, plan := range map[string]*job.Job{"pairwise": testJob(), "oneshot": oneshotJob()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), jobTime)
				defer cancel()
				plan.Rounds = 20
				j, coordinator := newEither(t, plan, new(MemoryStore))
				ended := make(chan error, len(j.signers)+len(j.members))
				for i := range j.signers {
					go func() {
						_, err := j.participant(i, nil).Run(ctx)
						ended <- err
					}()
				}
				for k := range j.members {
					go func() { ended <- j.member(k, nil).Run(ctx) }()
				}
				coordinator.Apply = applying(func(r Done[float64], model []float64) ([]float64, error) {
					if r.Number > 2 {
						return nil, full
					}
					return model, nil
				})
				result, err := coordinator.Run(ctx)
				if !errors.Is(err, ErrPaused) || !errors.Is(err, full) || result == nil ||
					result.Rounds != 7 || result.Lost != 5 {
					t.Fatalf("%+v, %v: want 7 rounds, 5 lost, and a pause", result, err)
				}
				coordinator.Apply = func(d Done[float64]) ([]float64, error) { return d.Model, nil }
				result, err = coordinator.Run(ctx)
				if err != nil || result.Rounds != 20 || result.Lost != 5 {
					t.Errorf("%+v, %v: want 20 rounds, 5 lost", result, err)
				}
				for range cap(ended) {
					if err := <-ended; err != nil {
						t.Errorf("a party or a member ends with %v", err)
					}
				}
			})
		})
	}
}

// A party that has nothing to submit says so, and is not waited for. One that never had anything
// learns that it took part in nothing.
func TestAbsenceTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plan := testJob()
		plan.Rounds = 3
		j := newJob(t, plan, 5)
		ctx, cancel := context.WithTimeout(t.Context(), jobTime)
		defer cancel()
		ended := make(chan error, 2)
		for i := range j.signers {
			p := j.participant(i, nil)
			if i == 2 {
				p.Work = vectors(func(context.Context, uint64, []float64) ([]float64, error) {
					return []float64{1, 2, math.NaN(), 4, 5}, nil
				})
			}
			go func() {
				_, err := p.Run(ctx)
				if i == 2 || i == 3 {
					ended <- err
				}
			}()
		}
		coordinator := j.coordinator(nil)
		coordinator.StepTime = time.Hour // longer than the job may take
		result, err := coordinator.Run(ctx)
		if err != nil || result.Lost > 0 {
			t.Fatalf("%+v, %v", result, err)
		}
		one, other := <-ended, <-ended
		if one == nil {
			one, other = other, one
		}
		if !errors.Is(one, ErrAbsent) || other != nil {
			t.Errorf("parties end with %v and %v, want one that was absent", one, other)
		}
		absent := 0
		for _, e := range j.events {
			if e.Kind == host.Absent && e.Party == 2 {
				absent++
			}
		}
		if absent != plan.Rounds {
			t.Errorf("the coordinator reports %d absences, want %d", absent, plan.Rounds)
		}
	})
}

// Numbers of sessions follow the word of more parties than may lie, and go on by a bounded step.
func TestNumbersBelieved(t *testing.T) {
	const far = 1 << 61
	const numberJump = 1 << 20
	plan := testJob()
	plan.Sum.Classical = true
	j := newJob(t, plan, 4)
	for _, c := range []believed{
		{0, 0, []uint64{0}, 1},
		{0, 4, []uint64{0, 0, 3}, 5},
		{0, 4, []uint64{9, 7, 3}, 7}, // one party alone is never followed
		{1, 4, []uint64{9, 7, 3}, 7},
		{2, 4, []uint64{9, 7, 3}, 5},
		{3, 4, []uint64{9, 7, 3}, 5},
		{0, 4, []uint64{1, math.MaxUint64, 3}, 5},
		{0, 4, []uint64{far, math.MaxUint64, 3}, 5 + numberJump},
		{2, 4, []uint64{far, math.MaxUint64, 3}, 5},
		{1, 4, []uint64{far, math.MaxUint64, 3}, 5 + numberJump},
		{0, 1<<62 - 2, []uint64{math.MaxUint64, math.MaxUint64}, 1<<62 - 1},
	} {
		c.check(t, j)
	}
}

// believed holds what parties say of their numbers, and which is the next.
type believed struct {
	colluders int
	own       uint64
	least     []uint64
	want      uint64
}

func (b *believed) check(t *testing.T, j *group) {
	t.Helper()
	c := newCoordinator(j.coordinator(nil))
	config, err := c.Job.Lead(job.Timing{})
	if err != nil {
		t.Fatal(err)
	}
	config.Broadcast = c.begins
	config.Colluders = b.colluders
	lead, err := drive.ResumeServer(config, c.now(), drive.Recorded{},
		protocol.NewServerSeries(config.Label, b.own+1))
	if err != nil {
		t.Fatal(err)
	}
	for i := range j.signers { // who says nothing says 0
		var h drive.Hello
		if i < len(b.least) {
			h.Least = b.least[i]
		}
		lead.Connected(c.now(), drive.Peer{Index: i}, h)
	}
	if err := lead.Tick(c.now()); err != nil {
		t.Fatal(err)
	}
	r, _ := lead.Ready()
	if n := r.Notices[0]; n.Kind != drive.Forms || n.Session != b.want {
		t.Errorf("%d colluders, number %d, told %d: %v %d, want %d", b.colluders, b.own, b.least,
			n.Kind, n.Session, b.want)
	}
	if len(r.Notices) > 1 {
		t.Errorf("%d colluders, number %d, told %d: %d notices", b.colluders, b.own, b.least,
			len(r.Notices))
	}
}
