package runner

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/record"
)

// Numbers of questions rise, from above the time at which the runner started. A question without a
// number changes nothing of that, and each peer has numbers of its own.
func TestNumbered(t *testing.T) {
	r := &Runner{parties: make([]peer, 2), members: make([]peer, 2)}
	r.clock.began = time.Unix(0, 1000)
	for i, x := range []struct {
		peer   Peer
		number uint64
		last   uint64 // of the refusal, 0: none
	}{
		{Peer{}, 999, 1000}, {Peer{}, 1000, 1000}, {Peer{}, 1001, 0}, {Peer{}, 1001, 1001},
		{Peer{}, 0, 0}, {Peer{}, 1001, 1001}, {Peer{}, 5000, 0}, {Peer{}, 4999, 5000},
		{Peer{Index: 1}, 1001, 0}, {Peer{Member: true}, 1001, 0}, {Peer{Member: true}, 1001, 1001},
		{Peer{}, 5001, 0},
	} {
		err := r.numbered(x.peer, &exchange.Ask{Number: x.number})
		var copied *CopiedError
		if errors.As(err, &copied) != (x.last > 0) || copied != nil && copied.Last != x.last {
			t.Errorf("%d: %v after %d: %v, want %d", i, x.peer, x.number, err, x.last)
		}
	}
}

// Steps are counted by how long they took, up to each bound and that included, and in all. What is
// returned stays as it is.
func TestStepTimes(t *testing.T) {
	s := new(stepTimes)
	if len(s.all()) > 0 {
		t.Error("steps of none")
	}
	s.add("submitting", time.Second)
	s.add("revealing", 5*time.Hour)
	had := s.all()
	s.add("submitting", 1500*time.Millisecond)
	if len(had) != 2 || had[0].Step != "revealing" || had[1].Step != "submitting" {
		t.Fatalf("%+v", had)
	}
	for _, x := range []struct {
		got  StepTimes
		sum  float64
		want []uint64
	}{
		{had[0], 18000, []uint64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
		{had[1], 1, []uint64{0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{s.all()[1], 2.5, []uint64{0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2}},
	} {
		if x.got.Seconds != x.sum || !slices.Equal(x.got.Within, x.want) {
			t.Errorf("%+v, want %v in %v s", x.got, x.want, x.sum)
		}
	}
}

// A step is counted once it is over, as long as it took; the wait for the next round is none.
func TestTimeSteps(t *testing.T) {
	l := newLed(t, "")
	l.hold(l.follow(), 3, func(drive.Status) {})
	for _, x := range l.steps.all() {
		if x.Step == drive.Resting.String() {
			t.Errorf("%+v", x)
		}
		if x.Step == drive.Submitting.String() && (x.Within[len(x.Within)-1] != 3 || x.Seconds <= 0) {
			t.Errorf("%+v, of 3 rounds", x)
		}
	}
}

// A model is as many numbers as there are, alone or with two vectors of the server's rule.
func TestParseModel(t *testing.T) {
	numbers := func(n int) (b []byte) {
		for i := range n {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(i)))
		}
		return b
	}
	for n, moments := range map[int]int{0: -1, 3: -1, 4: 0, 5: -1, 8: -1, 12: 2, 16: -1} {
		m, err := parseModel(numbers(n), 4)
		if (err == nil) != (moments >= 0) || err != nil && !errors.Is(err, record.ErrRecord) {
			t.Errorf("%d numbers: %v", n, err)
		}
		if err == nil && (len(m.Moments) != moments || !slices.Equal(m.Model, []float64{0, 1, 2, 3})) {
			t.Errorf("%d numbers: %+v", n, m)
		}
		if moments == 2 && (m.Moments[0][0] != 4 || m.Moments[1][3] != 11) {
			t.Errorf("%+v", m)
		}
		var out bytes.Buffer
		if written, _ := m.WriteTo(&out); err == nil &&
			(!bytes.Equal(out.Bytes(), numbers(n)) || written != int64(m.size())) {
			t.Errorf("%d numbers are written as %d bytes", n, written)
		}
	}
	if _, err := parseModel(numbers(4)[:31], 4); !errors.Is(err, record.ErrRecord) {
		t.Errorf("31 bytes: %v", err)
	}
}

// What people see of a round that is open: who is there, late, gone or left out, and whose answer
// is due; and who has ever been there, under the next leader too and where nobody leads.
func TestStatusOfRound(t *testing.T) {
	l := newLed(t, "time.step_time = \"1h\"")
	ctx := t.Context()
	all := l.follow()
	status := func() (s *Status, states []string) {
		t.Helper()
		s, err := l.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Parties {
			word := p.State
			if p.Awaited {
				word += " awaited"
			}
			states = append(states, word)
		}
		return s, states
	}
	is := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	_, got := status()
	is("before anybody came", got, "never", "never", "never", "never", "never")
	l.hold(all, 1, func(drive.Status) {})
	s, got := status() // of the next round, which is open
	const due, missed = "here awaited", "gone awaited"
	is("in a round", got, due, due, due, due, due)
	if s.State != "running" || s.Round != 2 || len(s.History) != 1 || s.Since == nil ||
		s.Until == nil || s.Until.Sub(*s.Since) != time.Hour {
		t.Errorf("%+v", s)
	}
	step := l.fed.Job.Time.StepTime
	l.fed.Job.Time.StepTime = 1
	_, got = status()
	const late = "late awaited"
	is("after half of a step's time", got, late, late, late, late, late)
	l.fed.Job.Time.StepTime = step
	if err := l.Exclude(ctx, By{Who: "ann"}, "p3"); err != nil {
		t.Fatal(err)
	}
	if err := l.Exclude(ctx, By{Who: "ann"}, "p9"); !errors.Is(err, ErrParty) {
		t.Errorf("a party that there is not: %v", err)
	}
	l.drive.Gone(l.now(), Peer{Index: 2})
	time.Sleep(exchange.DefaultGrace(parties) + 50*time.Millisecond)
	if err := l.looks(ctx); err != nil {
		t.Fatal(err)
	}
	_, got = status()
	is("one is gone, and one left out", got, due, due, missed, "left out", due)
	if _, err := l.Before(ctx); !errors.Is(err, ErrRunning) {
		t.Errorf("what a federation has spent that goes on: %v", err)
	}
	if err := l.Pause(ctx, By{Who: "ann"}); err != nil { // which is recorded, with who was seen
		t.Fatal(err)
	}
	recorded, err := RecordedStatus(ctx, l.fed, l.records)
	if err != nil || recorded.State != "paused" || recorded.Why != "by ann" || recorded.Round != 2 ||
		recorded.Recorded == nil || recorded.Decisions != l.Hold.Number() {
		t.Errorf("%+v, %v", recorded, err)
	}
	got = nil
	for _, p := range recorded.Parties {
		got = append(got, p.State)
	}
	is("where nobody leads", got, "gone", "gone", "gone", "gone", "gone")
	l.Runner = l.start("next")
	_, got = status()
	is("under the next leader", got, missed, missed, missed, "left out", missed)
}

// A copy of a message that is held is taken, and counts for nothing; what is refused is counted;
// nothing is due after the end.
func TestMessagesCounted(t *testing.T) {
	l := newLed(t, "")
	ctx := t.Context()
	all := l.follow()
	for range 2 {
		for _, f := range all {
			f.poll()
		}
		if err := l.looks(ctx); err != nil {
			t.Fatal(err)
		}
	}
	before, refused := l.bytesIn, l.refused
	if err := l.ReadMessage(ctx, Peer{}, bytes.NewReader([]byte("nonsense")), 8,
		[32]byte{}, time.Now()); err == nil ||
		l.refused != refused+1 || l.bytesIn != before {
		t.Errorf("nonsense: %v, %d refused, %d bytes", err, l.refused, l.bytesIn-before)
	}
	if err := l.EndNow(ctx, By{Who: "ann"}); err != nil {
		t.Fatal(err)
	}
	err := l.ReadMessage(context.Background(), Peer{}, bytes.NewReader([]byte("nonsense")), 8,
		[32]byte{}, time.Now())
	if !errors.Is(err, ErrEnded) || l.refused != refused+1 {
		t.Errorf("after the end: %v, %d refused", err, l.refused)
	}
	if b, err := l.Before(ctx); err != nil || b != nil {
		t.Errorf("without noise nothing is spent: %q, %v", b, err)
	}
}

// What a sum gave is taken in the round that is open alone: the federation may have been ended
// meanwhile.
func TestTakeOfAnotherRound(t *testing.T) {
	l := newLed(t, "")
	ctx := t.Context()
	other := make([]float64, l.fed.Spec.Len())
	other[0] = 7
	for _, take := range []func() error{
		func() error { return l.looks(ctx) },
		func() error {
			l.adopt(applied{round: 1, model: other, metric: new(job.Metric)})
			return nil
		},
	} {
		if err := take(); err != nil {
			t.Fatal(err)
		}
		if l.model[0] == 7 || len(l.spent) > 0 {
			t.Error("another model is taken")
		}
	}
}

// What is declared says of whom epsilon is, how much there is and against whom; without noise
// nothing of that.
func TestDeclared(t *testing.T) {
	const noise = `privacy.noise = "discrete-gaussian"
privacy.epsilon = 8.0
privacy.delta = 1e-6
`
	for more, want := range map[string]string{"": "<nil>",
		noise: "epsilon 8 at delta 1e-06 for each party, against a server that is curious with any " +
			"1 party; assumes instant"} {
		l := newLed(t, more)
		got := Declared(l.fed)
		if fmt.Sprint(got.Budget) != want || got.Spent != nil || got.Rounds != 2000 || got.Name != "led" {
			t.Errorf("%q: %+v", more, got)
		}
	}
}

// Two processes of one identity that ask in turn are told so with the refusals that their numbers
// meet, and the log names the identity, once an hour. One process that follows another is none.
func TestTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(bytes.Buffer)
		r := &Runner{parties: make([]peer, 2), names: []string{"p0", "p1"}}
		r.Log = slog.New(slog.NewTextHandler(log, nil))
		number := uint64(time.Now().UnixNano())
		r.clock.began = time.Now()
		asks := func(process uint64, twice bool, lines int) {
			t.Helper()
			number++
			p := Peer{Index: 1}
			if err := r.numbered(p, &exchange.Ask{Number: number, Process: process}); err != nil {
				t.Error(err)
			}
			var copied *CopiedError
			err := r.numbered(p, &exchange.Ask{Number: number, Process: process + 1})
			if !errors.As(err, &copied) || copied.Twice != twice {
				t.Errorf("process %d: %+v, want twice %v", process, copied, twice)
			}
			if got := strings.Count(log.String(), "name=p1"); got != lines {
				t.Errorf("process %d: %d lines, want %d", process, got, lines)
			}
		}
		for _, process := range []uint64{1, 1, 2, 2, 3, 0, 3} { // each is started after another
			asks(process, false, 0)
		}
		asks(2, true, 1)
		asks(3, true, 1)
		time.Sleep(twiceFor)
		asks(3, false, 1)
		asks(2, true, 1)
		time.Sleep(twiceAgain)
		asks(2, false, 1)
		asks(3, true, 2)
	})
}
