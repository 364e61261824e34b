package hushsum

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/frames"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

func oneshotPlan() *Plan {
	return &Plan{Name: "test", Rounds: 3, Length: 5, Clip: 100, DropOut: .3, Protocol: Oneshot,
		Classical: true}
}

// committeeJob is a job whose plan has a committee.
type committeeJob struct {
	*group
	members []crypto.Signer
	network *Memory // of the members
}

func newCommitteeJob(t *testing.T, plan *Plan, n, members int) *committeeJob {
	t.Helper()
	signers, roster := identities(t, n)
	helpers, list := named(t, "member", members)
	settled, err := plan.SettleOneshot(roster, list)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &committeeJob{
		group: &group{T: t, settled: settled, signers: signers, memory: new(Memory), key: key,
			submitted: make(map[uint64]map[int][][]uint64)},
		members: helpers,
		network: new(Memory),
	}
}

func (j *committeeJob) coordinator(store Store) *Coordinator {
	c := j.group.coordinator(store)
	c.Committee = j.network
	return c
}

func (j *committeeJob) member(k int, store Store) *Member {
	m := &Member{Plan: j.settled, Identity: j.members[k], Dialer: j.network.Dialer(k), Store: store}
	if store != nil {
		m.Key = j.key
	}
	return m
}

// Parties and members that stay: every round has a sum, of all; with noise, no more is
// spent than the plan allows.
func TestOneshotJob(t *testing.T) {
	for name, change := range map[string]func(p *Plan){
		"without noise": func(*Plan) {},
		"covered":       func(p *Plan) { p.Covered = true },
		"hybrid":        func(p *Plan) { p.Classical = false },
		"with noise":    func(p *Plan) { p.Noise, p.Epsilon = accounting.FamilyDiscreteGaussian, 8 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := oneshotPlan()
			change(plan)
			j := newCommitteeJob(t, plan, 7, 5)
			ctx, cancel := context.WithTimeout(t.Context(), jobTime)
			defer cancel()
			var wait sync.WaitGroup
			for i := range j.signers {
				wait.Go(func() {
					if _, err := j.participant(i, nil).Run(ctx); err != nil {
						t.Errorf("party %d: %v", i, err)
					}
				})
			}
			for k := range j.members {
				wait.Go(func() {
					if err := j.member(k, nil).Run(ctx); err != nil {
						t.Errorf("member %d: %v", k, err)
					}
				})
			}
			result, err := j.coordinator(nil).Run(ctx)
			if err != nil {
				t.Fatal(err, j.events)
			}
			wait.Wait()
			noisy := plan.Noise != 0
			if !noisy {
				j.check()
			}
			if result.Rounds != 3 || result.Lost != 0 || len(j.rounds) != 3 {
				t.Fatalf("%+v, %d sums\n%v", result, len(j.rounds), j.events)
			}
			for _, r := range j.rounds {
				if len(r.Parties) != 7 {
					t.Errorf("round %d has parties %v", r.Number, r.Parties)
				}
				within := 1e-3
				if noisy { // six deviations
					within = 6 * j.settled.StdDev(7)
				}
				if math.Abs(r.Mean[0]-4) > within {
					t.Errorf("round %d: mean %v, want 4 within %v", r.Number, r.Mean[0], within)
				}
			}
			if noisy && (result.Spent == nil || result.Spent.Upper > 8 || result.Spent.Upper < 7) {
				t.Errorf("spent %+v of 8", result.Spent)
			}
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
	link, err := d.Dialer.Dial(ctx)
	return recordedLink{link, d.record}, err
}

func (l recordedLink) Send(ctx context.Context, out []byte) error {
	if out[0] == frames.KindMessage {
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
	plan := oneshotPlan()
	plan.Rounds = 8
	j := newCommitteeJob(t, plan, 7, 7)
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	dir := t.TempDir()
	sent := &record{sent: make(map[string][][]byte)}
	var wait sync.WaitGroup
	again := func(life time.Duration, run func(ctx context.Context) error) {
		for n := time.Duration(0); ctx.Err() == nil; n++ {
			one, end := context.WithTimeout(ctx, life+n*37*time.Millisecond)
			err := run(one)
			end()
			if err == nil {
				return
			}
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
				t.Error(err)
				return
			}
		}
	}
	for i := range j.signers {
		wait.Go(func() {
			again(time.Duration(1300+100*i)*time.Millisecond, func(ctx context.Context) error {
				p := j.participant(i, FileStore(filepath.Join(dir, fmt.Sprint("party", i))))
				p.Counter = FileCounter(filepath.Join(dir, fmt.Sprint("counter", i)))
				p.Dialer = recordedDialer{p.Dialer, sent}
				_, err := p.Run(ctx)
				return err
			})
		})
	}
	for k := range j.members {
		wait.Go(func() {
			again(time.Duration(1700+150*k)*time.Millisecond, func(ctx context.Context) error {
				m := j.member(k, FileStore(filepath.Join(dir, fmt.Sprint("member", k))))
				m.Dialer = recordedDialer{m.Dialer, sent}
				return m.Run(ctx)
			})
		})
	}
	var result *Result
	again(1600*time.Millisecond, func(ctx context.Context) (err error) {
		result, err = j.coordinator(FileStore(filepath.Join(dir, "coordinator"))).Run(ctx)
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
	t.Logf("%d rounds, %d lost, %d sums, %d messages sent again", result.Rounds, result.Lost,
		len(j.rounds), copies)
	if result.Rounds != 8 || copies == 0 {
		t.Errorf("%d rounds, %d copies", result.Rounds, copies)
	}
}

// Members that are not there, up to as many as Faults, and a party that never comes.
func TestOneshotAbsent(t *testing.T) {
	t.Parallel()
	plan := oneshotPlan()
	plan.Rounds, plan.Faults = 1, 2
	j := newCommitteeJob(t, plan, 7, 7)
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	var wait sync.WaitGroup
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
}

// What is wrong with a plan is said, by its field.
func TestOneshotPlan(t *testing.T) {
	_, roster := identities(t, 7)
	_, list := named(t, "member", 5)
	for _, c := range []struct {
		field  string
		change func(p *Plan)
	}{
		{"Protocol", func(p *Plan) { p.Protocol = "other" }},
		{"Protocol", func(p *Plan) { p.Protocol = Pairwise }},
		{"Faults", func(p *Plan) { p.Faults = -1 }},
		{"Protocol", func(p *Plan) { p.Faults = 2 }}, // of five members
		{"Noise", func(p *Plan) { p.Noise, p.Epsilon = accounting.FamilySkellam, 8 }},
		{"Adversary", func(p *Plan) { p.Adversary = 1 }},
		{"Faults", func(p *Plan) { p.Protocol, p.Faults = "", 1 }},
		{"Covered", func(p *Plan) { p.Protocol, p.Covered = "", true }},
		{"Protocol", func(p *Plan) { p.DropOut = .9 }}, // one survivor
	} {
		plan := oneshotPlan()
		c.change(plan)
		_, err := plan.SettleOneshot(roster, list)
		var config *ConfigError
		if !errors.As(err, &config) || config.Path != c.field {
			t.Errorf("%+v: %v, want %s", plan, err, c.field)
		}
	}
	plan := oneshotPlan()
	var config *ConfigError
	if _, err := plan.Settle(roster); !errors.As(err, &config) || config.Path != "Protocol" {
		t.Errorf("settled without a committee: %v", err)
	}
	if _, err := plan.SettleOneshot(roster, nil); !errors.As(err, &config) {
		t.Errorf("settled with no committee: %v", err)
	}
	one, err := plan.SettleOneshot(roster, list)
	if err != nil {
		t.Fatal(err)
	}
	_, other := named(t, "member", 6)
	two, err := plan.SettleOneshot(roster, other)
	if err != nil {
		t.Fatal(err)
	}
	if one.Digest() == two.Digest() {
		t.Error("the digest is not over the committee")
	}
	if _, err := ParsePlan([]byte(`{"name":"x","rounds":1,"length":1,"clip":1,` +
		`"protocol":"oneshot","faults":1}`)); err != nil {
		t.Error(err)
	}
	if _, err := ParsePlan([]byte(`{"name":"x","rounds":1,"length":1,"clip":1,` +
		`"protocol":"twoshot"}`)); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}
