package runner

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
)

const parties = 5

// led is a federation in a record of its own, and its runner.
type led struct {
	*Runner
	t       *testing.T
	records *record.Records
	key     *keyexchange.SealKey
	fed     *federation.Federation
	folder  string
	close   func() // of the record
}

// newLed starts a runner, which does not run yet, of a federation with more in its file.
func newLed(t *testing.T, more string) *led {
	t.Helper()
	var roster strings.Builder
	for i := range parties {
		seed := make([]byte, ed25519.SeedSize)
		seed[0] = byte(i)
		key := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		fmt.Fprintf(&roster, "p%d %x\n", i, []byte(key))
	}
	l := &led{t: t}
	var err error
	l.fed, err = federation.New(federation.Files{Text: []byte(`name = "led"
parties.roster = "r"
rounds = 2000
parties.drop_out = 0.4
parties.colluders = 1
sum.adversary = "curious"
privacy.clip = 1.0
` + more + `
[[model.tensor]]
name = "w"
shape = [4]
`), Roster: []byte(roster.String())})

	if err != nil {
		t.Fatal(err)
	}
	if l.key, err = keyexchange.GenerateSealKey(nil); err != nil {
		t.Fatal(err)
	}
	l.folder = t.TempDir()
	l.open()
	d := record.Definition{ID: l.fed.ID, Text: l.fed.Text, Created: time.Now().UTC()}
	if err := l.records.Create(context.Background(), d, nil, nil); err != nil {
		t.Fatal(err)
	}
	if l.fed.Key, err = l.records.Public(context.Background(), l.fed.ID); err != nil {
		t.Fatal(err)
	}
	l.Runner = l.start("n")
	return l
}

// open opens the record of the folder.
func (l *led) open() {
	l.t.Helper()
	embedded, err := record.StartEmbedded(context.Background(),
		record.EmbeddedOptions{Folder: l.folder, Name: "n"})
	if err != nil {
		l.t.Fatal(err)
	}
	l.close = embedded.Close
	l.t.Cleanup(l.close)
	l.records, err = record.Open(context.Background(), embedded.JS, 1, record.NewKeys(*l.key))
	if err != nil {
		l.t.Fatal(err)
	}
}

// start claims the record for a node and starts its runner.
func (l *led) start(node string) *Runner {
	l.t.Helper()
	hold, err := l.records.Claim(context.Background(), l.fed.ID, node)
	if err != nil {
		l.t.Fatal(err)
	}
	r, err := Start(context.Background(), Options{
		Federation: l.fed,
		Records:    l.records,
		Hold:       hold,
		Node:       node,
		Keys:       record.NewKeys(*l.key),
		Log:        slog.New(slog.DiscardHandler),
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

// looks has a runner that does not run decide and record what is due.
func (l *led) looks(ctx context.Context) error {
	return l.host.Decide(ctx, func(drive.Lead, drive.Time) error { return nil }, nil)
}

// run runs a runner; what it returns with comes from the channel.
func run(t *testing.T, r *Runner) <-chan error {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(cancel)
	return ended
}

func await(t *testing.T, ended <-chan error, want error) {
	t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, want) {
			t.Errorf("it ends with %v, want %v", err, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
}

// A runner that has nothing to decide, and has lost its record, finds out when it is asked
// to, and only then.
func TestConfirm(t *testing.T) {
	l := newLed(t, "")
	ended := run(t, l.Runner)
	l.Confirm(context.Background())
	if _, err := l.Status(context.Background()); err != nil {
		t.Fatalf("nobody else has claimed: %v", err)
	}
	other := l.start("other")
	select {
	case err := <-ended:
		t.Fatalf("it ends before it is asked: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	l.Confirm(context.Background())
	await(t, ended, record.ErrLost)
	if _, err := l.Status(context.Background()); !errors.Is(err, ErrStopped) {
		t.Errorf("it still answers: %v", err)
	}
	_, err := l.Next(context.Background(), Peer{}, exchange.Ask{}, time.Hour)
	if !errors.Is(err, ErrStopped) {
		t.Errorf("a party is kept waiting: %v", err)
	}
	l.Confirm(context.Background()) // says nothing more
	if _, err := other.Status(context.Background()); err != nil {
		t.Errorf("the one that leads: %v", err)
	}
}

// An order that cannot be recorded ends the runner, also where nothing else is to be
// decided that would find out.
func TestOrderNotRecorded(t *testing.T) {
	for name, order := range map[string]func(*Runner) error{
		"pause":  func(r *Runner) error { return r.Pause(context.Background(), By{Who: "ann"}) },
		"resume": func(r *Runner) error { return r.Resume(context.Background(), By{Who: "ann"}) },
		"end":    func(r *Runner) error { return r.EndNow(context.Background(), By{Who: "ann"}) },
	} {
		l := newLed(t, "")
		ended := run(t, l.Runner)
		l.start("other")
		if err := order(l.Runner); !errors.Is(err, record.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
		await(t, ended, record.ErrLost)
	}
}

// An order is recorded whether or not the operator waits for it.
func TestOrderOutlivesItsRequest(t *testing.T) {
	for name, order := range map[string]func(context.Context, *Runner) error{
		"pause": func(ctx context.Context, r *Runner) error { return r.Pause(ctx, By{Who: "ann"}) },
		"end":   func(ctx context.Context, r *Runner) error { return r.EndNow(ctx, By{Who: "ann"}) },
	} {
		l := newLed(t, "")
		ctx, cancel := context.WithCancel(context.Background())
		l.Hold.Fault = func(string) { cancel() } // the operator goes away in the middle
		if err := order(ctx, l.Runner); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s, err := l.Status(context.Background())
		if err != nil || s.State != map[string]string{"pause": "paused", "end": "ended"}[name] {
			t.Errorf("%s: %+v %v", name, s, err)
		}
	}
}

// Orders, in what states they are taken, and what the next runner knows of them.
func TestOrders(t *testing.T) {
	l := newLed(t, "")
	ctx := context.Background()
	state := func(r *Runner) string {
		t.Helper()
		s, err := r.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(s.State + " " + s.Why)
	}
	for _, step := range []struct {
		order func(context.Context, By) error
		err   error
		state string
	}{
		{l.Pause, nil, "paused by ann"},
		{l.Pause, nil, "paused by ann"},
		{l.Resume, nil, "waiting"},
		{l.EndNow, nil, "ended ended by ann"},
		{l.EndNow, nil, "ended ended by ann"},
		{l.Pause, ErrState, "ended ended by ann"},
		{l.Resume, ErrState, "ended ended by ann"},
	} {
		if err := step.order(ctx, By{Who: "ann"}); !errors.Is(err, step.err) {
			t.Errorf("%v, want %v", err, step.err)
		}
		if got := state(l.Runner); got != step.state {
			t.Errorf("%q, want %q", got, step.state)
		}
	}
	if next := l.start("next"); state(next) != "ended ended by ann" {
		t.Errorf("the next runner has %q", state(next))
	}
	for _, i := range []int{0, parties - 1} {
		if _, _, err := l.Due(ctx, Peer{Index: i}); !errors.Is(err, ErrEnded) {
			t.Errorf("due of party %d: %v", i, err)
		}
		n, err := l.Next(ctx, Peer{Index: i}, exchange.Ask{}, time.Hour)
		if err != nil || n.Kind != exchange.End {
			t.Errorf("next of party %d: %q %v", i, n.Kind, err)
		}
		n.Sent()
	}
	if b, err := l.Broadcast(ctx, 0, 0); err != nil || len(b) == 0 {
		t.Errorf("the last model: %d bytes, %v", len(b), err)
	}
	if _, err := l.Broadcast(ctx, 0, 1); !errors.Is(err, ErrNotDue) {
		t.Errorf("the model of a round that is not: %v", err)
	}
}

// What is remembered of rounds does not grow without end.
func TestHistory(t *testing.T) {
	l := newLed(t, "")
	for round := uint64(1); round <= mostHistory+50; round++ {
		l.past(drive.Notice{Round: round, Session: 1}, Past{Parties: 4})
	}
	if n := len(l.history); n != mostHistory || l.history[0].Round != 51 ||
		l.history[n-1].Round != mostHistory+50 {
		t.Errorf("%d rounds, from %d", n, l.history[0].Round)
	}
}

// A record that was set back is made good by one party, by the head that the federation's key has
// signed: the rounds up to it count as lost, and are spent, once, in the audit log too.
func TestSetBack(t *testing.T) {
	const begun = 7
	l := newLed(t, "")
	ctx := context.Background()
	twin := l.twin()
	twin.Hold.Round = begun
	twin.orders(1)
	p, given := Peer{Index: 1}, &exchange.Given{}
	given.Lines, given.Head = twin.Lines(1)
	for _, p := range []Peer{{Index: 0}, p, {Index: 2}} {
		l.connected(p, &exchange.Ask{Least: begun + 1})
	}
	if at := l.drive.Status(); l.looks(ctx) != nil || at.Round != 0 || at.Lost != 0 {
		t.Errorf("by words: %+v", at)
	}
	if err := l.Hear(ctx, p, given.Head); !errors.Is(err, ErrBehind) {
		t.Fatalf("a head that it lacks: %v", err)
	}
	if err := l.Give(ctx, p, given); err != nil {
		t.Fatal(err)
	}
	l.Runner = l.start("m")
	decided := uint64(0)
	for range 2 { // once
		if err := l.looks(ctx); err != nil {
			t.Fatal(err)
		}
		at := l.drive.Status()
		if at.Round != begun || at.Lost != begun {
			t.Errorf("round %d, %d lost", at.Round, at.Lost)
		}
		if number := l.Hold.Number(); decided > 0 && number != decided {
			t.Errorf("%d more decisions", number-decided)
		}
		decided = l.Hold.Number()
		if err := l.Hear(ctx, Peer{Index: 2}, given.Head); err != nil {
			t.Errorf("the head that it has by now: %v", err)
		}
	}
	lines, err := l.records.LastLines(ctx, l.fed.ID, 10)
	if err != nil || !slices.ContainsFunc(lines, func(line record.Line) bool {
		return line.Event == "set back" && line.Round == begun
	}) {
		t.Errorf("the audit log does not have it: %v %v", lines, err)
	}
}

// Who is drawn for a round follows from federation and round alone, and changes with them.
func TestDraw(t *testing.T) {
	l := newLed(t, "parties.per_round = 4")
	there := []int{0, 1, 2, 3, 4}
	counts := make(map[int]int)
	var first []int
	for round := range uint64(200) {
		drawn := l.Federation.Settled.Draw(round, there, 4)
		again := l.Federation.Settled.Draw(round, there, 4)
		if !slices.Equal(drawn, again) || len(drawn) != 4 ||
			!slices.IsSorted(drawn) {
			t.Fatalf("%v, then %v", drawn, again)
		}
		if round == 0 {
			first = drawn
		}
		for _, i := range drawn {
			counts[i]++
		}
	}
	// Each is left out of 40 rounds of 200 in the mean; 12 to 68 is five deviations.
	for _, i := range there {
		if left := 200 - counts[i]; left < 12 || left > 68 {
			t.Errorf("party %d is left out %d times", i, left)
		}
	}
	draw := l.Federation.Settled.Draw
	if !slices.Equal(first, draw(0, there, 4)) || len(draw(0, there[:3], 4)) != 3 {
		t.Error("the first round is drawn otherwise, or of fewer not all")
	}
}

// A state that another program wrote is refused by name, and stays.
func TestOtherFormat(t *testing.T) {
	l := newLed(t, "")
	if err := l.Pause(context.Background(), By{Who: "ann"}); err != nil {
		t.Fatal(err)
	}
	b, err := encode(state{Format: stateFormat + 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Hold.Decide(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	hold, err := l.records.Claim(context.Background(), l.fed.ID, "next")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Start(context.Background(), Options{Federation: l.fed, Records: l.records, Hold: hold,
		Node: "next", Keys: record.NewKeys(*l.key), Log: slog.New(slog.DiscardHandler)})
	want := fmt.Sprint("format ", stateFormat+1)
	if !errors.Is(err, record.ErrRecord) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

// The model of now is one memory for all who ask, until it changes.
func TestLastModel(t *testing.T) {
	l := newLed(t, "")
	ctx := context.Background()
	first, err := l.Broadcast(ctx, -1, 0)
	if err != nil {
		t.Fatal(err)
	}
	again, err := l.Broadcast(ctx, 2, 0)
	if err != nil || &first[0] != &again[0] {
		t.Errorf("a second copy: %v", err)
	}
	l.model[0] = 1
	l.drive.Said(l.now(), Peer{Index: 0}, drive.Said{Told: 1})
	l.drive.Said(l.now(), Peer{Index: 1}, drive.Said{Told: 1})
	if err := l.looks(ctx); err != nil {
		t.Fatal(err)
	}
	after, err := l.Broadcast(ctx, 2, 0)
	if err != nil || slices.Equal(first, after) {
		t.Errorf("the model before the change: %v", err)
	}
}
