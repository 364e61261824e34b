package hushsum

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/link"
)

func oneshotJob() *job.Job {
	j := testJob()
	j.Rounds, j.Sum = 3, job.Sum{Protocol: "oneshot", Classical: true}
	return j
}

// committeeJob is a job with a committee.
type committeeJob struct {
	*group
	members []crypto.Signer
	network *Memory // of the members
}

func newCommitteeJob(t *testing.T, plan *job.Job, n, members int) *committeeJob {
	t.Helper()
	signers, roster := identities(t, n)
	helpers, list := named(t, "member", members)
	settled, err := plan.Settle(job.Files{Roster: roster, Committee: list})
	if err != nil {
		t.Fatal(err)
	}
	return &committeeJob{
		group:   newGroup(t, settled, signers),
		members: helpers,
		network: new(Memory),
	}
}

// newEither returns a job of five parties, with a committee of five if it takes one, and its
// coordinator.
func newEither(t *testing.T, plan *job.Job, store Store) (*committeeJob, *Coordinator[float64]) {
	t.Helper()
	if plan.Oneshot() {
		j := newCommitteeJob(t, plan, 5, 5)
		return j, j.coordinator(store)
	}
	j := &committeeJob{group: newJob(t, plan, 5)}
	return j, j.group.coordinator(store)
}

func (j *committeeJob) coordinator(store Store) *Coordinator[float64] {
	c := j.group.coordinator(store)
	c.Committee = j.network
	return c
}

func (j *committeeJob) member(k int, store Store) *Member {
	m := &Member{Job: j.settled, Identity: j.members[k], Dialer: j.network.Dialer(k), Store: store}
	if store != nil {
		m.Key = j.key
	}
	return m
}

// gathered has a coordinator close the channel once all parties are connected.
func (j *committeeJob) gathered(c *Coordinator[float64]) <-chan struct{} {
	all, here, tell := make(chan struct{}), map[int]bool{}, c.Progress
	c.Progress = func(e Event) { // never called concurrently
		tell(e)
		if e.Kind == host.Connected && !e.Member && len(here) < len(j.signers) {
			if here[e.Party] = true; len(here) == len(j.signers) {
				close(all)
			}
		}
	}
	return all
}

// help has the members run once all are there, until the job is over.
func (j *committeeJob) help(ctx context.Context, wait *sync.WaitGroup, all <-chan struct{}) {
	for k := range j.members {
		wait.Go(func() {
			select {
			case <-all:
			case <-ctx.Done():
			}
			if err := j.member(k, nil).Run(ctx); err != nil {
				j.Errorf("member %d: %v", k, err)
			}
		})
	}
}

// Parties and members that stay: every round has a sum, of all; with noise, no more is
// spent than the job allows. Members come last, so that no round begins without a party that is
// slow to start.
func TestOneshotJob(t *testing.T) {
	for name, change := range map[string]func(p *job.Job){
		"without noise": func(*job.Job) {},
		"covered":       func(p *job.Job) { p.Sum.Covered = true },
		"hybrid":        func(p *job.Job) { p.Sum.Classical = false },
		"with noise":    func(p *job.Job) { p.Privacy.Noise, p.Privacy.Epsilon = "discrete-gaussian", 8 },
		"noise by members": func(p *job.Job) {
			p.Privacy.Noise, p.Privacy.Epsilon = "discrete-gaussian", 8
			p.Privacy.NoiseBy, p.Sum.Covered = "committee", true
		},
		"bounded": func(p *job.Job) {
			p.Privacy.Noise, p.Privacy.Epsilon = "discrete-gaussian", 8
			p.Sum.Bounded, p.Parties.Colluders = true, 1
			p.Rounds = 1
		},
		"bounded and covered": func(p *job.Job) {
			p.Privacy.Noise, p.Privacy.Epsilon = "discrete-gaussian", 8
			p.Sum.Bounded, p.Sum.Covered, p.Parties.Colluders = true, true, 1
			p.Rounds = 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				plan := oneshotJob()
				change(plan)
				n := 7
				if plan.Sum.Bounded {
					n = 5 // proofs take long
				}
				j := newCommitteeJob(t, plan, n, 5)
				var wait sync.WaitGroup
				defer wait.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), jobTime)
				defer cancel()
				coordinator := j.coordinator(nil)
				coordinator.StepTime = jobTime // nobody is too slow
				all := j.gathered(coordinator)
				for i := range j.signers {
					wait.Go(func() {
						if _, err := j.participant(i, nil).Run(ctx); err != nil {
							t.Errorf("party %d: %v", i, err)
						}
					})
				}
				j.help(ctx, &wait, all)
				result, err := coordinator.Run(ctx)
				if err != nil {
					t.Fatal(err, j.events)
				}
				wait.Wait()
				noisy := plan.Noisy()
				if !noisy {
					j.check()
				}
				if result.Rounds != plan.Rounds || result.Lost != 0 ||
					len(j.rounds) != plan.Rounds {
					t.Fatalf("%+v, %d sums\n%v", result, len(j.rounds), j.events)
				}
				for _, r := range j.rounds {
					if len(r.Parties) != n {
						t.Errorf("round %d has parties %v", r.Number, r.Parties)
					}
					want, within := float64(n+1)/2, 1e-3
					if noisy { // six deviations
						within = 6 * j.settled.StdDev(n)
					}
					if math.Abs(r.Mean[0]-want) > within {
						t.Errorf("round %d: mean %v, want %v within %v", r.Number, r.Mean[0], want, within)
					}
				}
				if noisy && (result.Spent == nil || result.Spent.Bare().Upper > 8 ||
					result.Spent.Bare().Upper < 7) {
					t.Errorf("spent %+v of 8", result.Spent)
				}
			})
		})
	}
}

// record keeps what parties and members send, by sender, round and type.
type record struct {
	mutex sync.Mutex
	sent  map[string][][]byte
	count int
}

// lostOf is of how many messages one is lost, with its link.
const lostOf = 11

type recordedDialer struct {
	Dialer
	record *record
}

type recordedLink struct {
	Link
	record *record
}

func (d recordedDialer) Dial(ctx context.Context) (Link, error) {
	conn, err := d.Dialer.Dial(ctx)
	return recordedLink{conn, d.record}, err
}

func (l recordedLink) Send(ctx context.Context, out []byte) error {
	if out[0] == link.KindMessage {
		h, body, err := wire.ParseHeader(out[1:])
		if err != nil {
			return err
		}
		place := fmt.Sprintf("sender %x, round %d, type %d", h.Sender, h.Round, h.Type)
		if h.Type == 69 { // Disputes: one for each batch (SPEC-ONESHOT §6)
			place += fmt.Sprintf(", batch %x", body[:4])
		}
		l.record.mutex.Lock()
		l.record.sent[place] = append(l.record.sent[place], bytes.Clone(out))
		l.record.count++
		cut := l.record.count%lostOf == 0
		l.record.mutex.Unlock()
		if cut {
			return errors.Join(errors.New("the link broke"), l.Link.Close())
		}
	}
	return l.Link.Send(ctx, out)
}

// A coordinator, parties and members that are ended and started again from what they stored, at
// random moments, and links that break: every sum is exact, no party sends two submissions for a
// round number, and no member two keys, signatures or parts.
func TestOneshotRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plan := oneshotJob()
		plan.Rounds = 8
		j := newCommitteeJob(t, plan, 7, 7)
		sent := &record{sent: make(map[string][][]byte)}
		var wait sync.WaitGroup
		l := newLives(t)
		for i := range j.signers {
			store := new(slowStore)
			wait.Go(func() {
				l.run(time.Duration(1300+100*i)*time.Millisecond, func(ctx context.Context) error {
					p := j.participant(i, store)
					p.Counter = store
					p.Dialer = recordedDialer{p.Dialer, sent}
					_, err := p.Run(ctx)
					return err
				})
			})
		}
		for k := range j.members {
			store := new(slowStore)
			wait.Go(func() {
				l.run(time.Duration(1700+150*k)*time.Millisecond, func(ctx context.Context) error {
					m := j.member(k, store)
					m.Dialer = recordedDialer{m.Dialer, sent}
					return m.Run(ctx)
				})
			})
		}
		var result *Result[float64]
		store := new(slowStore)
		l.run(1600*time.Millisecond, func(ctx context.Context) (err error) {
			result, err = j.coordinator(store).Run(ctx)
			return err
		})
		wait.Wait()
		if result == nil {
			t.Fatalf("the job did not end\n%v", j.events[max(0, len(j.events)-40):])
		}
		j.check()
		copies := 0
		for place, messages := range sent.sent {
			for _, m := range messages[1:] {
				copies++
				if !bytes.Equal(m, messages[0]) {
					t.Errorf("%s: two different messages", place)
				}
			}
		}
		t.Logf("%d rounds, %d lost, %d sums, %d messages sent again, %d lives ended", result.Rounds,
			result.Lost, len(j.rounds), copies, l.ended)
		if result.Rounds != 8 || copies == 0 || l.ended < 7 {
			t.Errorf("%d rounds, %d copies, %d lives ended", result.Rounds, copies, l.ended)
		}
	})
}

// Members that are not there, up to as many as Faults, and a party that never comes.
func TestOneshotAbsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plan := oneshotJob()
		plan.Rounds, plan.Sum.Faults = 1, 2
		j := newCommitteeJob(t, plan, 7, 7)
		var wait sync.WaitGroup
		defer wait.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), jobTime)
		defer cancel()
		for i := range j.signers[:6] {
			wait.Go(func() {
				if _, err := j.participant(i, nil).Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		for k := range j.members[:5] {
			wait.Go(func() {
				if err := j.member(k, nil).Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		result, err := j.coordinator(nil).Run(ctx)
		if err != nil {
			t.Fatal(err, j.events)
		}
		wait.Wait()
		j.check()
		if result.Lost != 0 || len(j.rounds) != 1 || len(j.rounds[0].Parties) != 6 {
			t.Errorf("%+v, %v", result, j.events)
		}
	})
}

// What is wrong with a job that has a committee is said, by its field.
func TestOneshotErrors(t *testing.T) {
	_, roster := identities(t, 7)
	_, list := named(t, "member", 5)
	for _, c := range []struct {
		field  string
		change func(p *job.Job)
	}{
		{"sum.protocol", func(p *job.Job) { p.Sum.Protocol = "other" }},
		{"sum.faults", func(p *job.Job) { p.Sum.Faults = -1 }},
		{"sum.protocol", func(p *job.Job) { p.Sum.Faults = 2 }}, // of five members
		{"privacy.noise", func(p *job.Job) { p.Privacy.Noise, p.Privacy.Epsilon = "skellam", 8 }},
		{"sum.adversary", func(p *job.Job) { p.Sum.Adversary = "curious" }},
		{"sum.faults", func(p *job.Job) { p.Sum.Protocol, p.Sum.Faults = "", 1 }},
		{"sum.covered", func(p *job.Job) { p.Sum.Protocol, p.Sum.Covered = "", true }},
		{"sum.protocol", func(p *job.Job) { p.Parties.DropOut = 0.9 }}, // one survivor
		{"sum.bounded", func(p *job.Job) { p.Sum.Protocol, p.Sum.Bounded = "", true }},
		{"sum.bounded", func(p *job.Job) { p.Sum.Bounded, p.Parties.Colluders = true, 1 }}, // no noise
	} {
		plan := oneshotJob()
		c.change(plan)
		_, err := plan.Settle(job.Files{Roster: roster, Committee: list})
		var config *ConfigError
		if !errors.As(err, &config) || config.Path != c.field {
			t.Errorf("%+v: %v, want %s", plan, err, c.field)
		}
	}
	plan := oneshotJob()
	var config *ConfigError
	if _, err := plan.Settle(job.Files{Roster: roster}); !errors.As(err, &config) ||
		config.Path != "sum.committee" {
		t.Errorf("settled without a committee: %v", err)
	}
	one, err := plan.Settle(job.Files{Roster: roster, Committee: list})
	if err != nil {
		t.Fatal(err)
	}
	_, other := named(t, "member", 6)
	two, err := plan.Settle(job.Files{Roster: roster, Committee: other})
	if err != nil {
		t.Fatal(err)
	}
	if one.Digest() == two.Digest() {
		t.Error("the digest is not over the committee")
	}
}
