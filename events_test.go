package hushsum

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/link"
)

// watched is a link of which all that goes over it is noted: which frames, in which order, and how
// long.
type watched struct {
	Link
	*watch
}

type watch struct {
	Dialer
	mutex sync.Mutex
	seen  []string
}

func (w *watch) Dial(ctx context.Context) (Link, error) {
	conn, err := w.Dialer.Dial(ctx)
	return watched{conn, w}, err
}

func (l watched) note(way string, frame []byte) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	text := fmt.Sprintf("%s kind %d, %d bytes", way, frame[0], len(frame))
	if frame[0] == link.KindMessage {
		text += fmt.Sprintf(", type %d", frame[2])
	}
	l.seen = append(l.seen, text)
}

func (l watched) Send(ctx context.Context, out []byte) error {
	l.note("sends", out)
	return l.Link.Send(ctx, out)
}

func (l watched) Receive(ctx context.Context) ([]byte, error) {
	in, err := l.Link.Receive(ctx)
	if err == nil {
		l.note("gets", in)
	}
	return in, err
}

// errFew: rows make no vector.
var errFew = errors.New("a class has no rows")

type work = func(ctx context.Context, round uint64, model []float64) ([]float64, error)

func constant(x float64) work {
	return func(_ context.Context, _ uint64, model []float64) ([]float64, error) {
		return slices.Repeat([]float64{x}, len(model)), nil
	}
}

func returning(vector []float64, err error) work {
	return func(context.Context, uint64, []float64) ([]float64, error) { return vector, err }
}

// unfit are the ways in which one party's rows make no vector.
var unfit = map[string]work{
	"too few rows":   returning(nil, errFew),
	"not a number":   constant(math.NaN()),
	"overflow":       constant(math.Inf(-1)),
	"no vector":      returning(nil, nil),
	"another length": returning([]float64{1}, nil),
	"a panic": func(_ context.Context, _ uint64, model []float64) ([]float64, error) {
		return model[:len(model)+1], nil
	},
	"one round of three": func(ctx context.Context, round uint64, model []float64) ([]float64, error) {
		if round == 2 {
			return nil, errFew
		}
		return constant(1)(ctx, round, model)
	},
}

// observation holds what can be seen of a federation in which party 2 works in some way.
type observation struct {
	seen   []string // over its link
	peer   []string // over that of another party, which has a vector in every round
	others []string // what the coordinator reports
	own    []Event  // what the party's own Progress is told
	err    error    // its Run
	result *Result[float64]
	spent  uint64 // submissions that are in a sum
}

// observed runs a job, with a committee if it has one, in virtual time: no party comes late to a
// round, however busy the machine is.
func observed(t *testing.T, settled *Settled, own work) (out observation) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { out = observedOnce(t, settled, own) })
	return out
}

func observedOnce(t *testing.T, settled *Settled, own work) (out observation) {
	t.Helper()
	signers, _ := identities(t, eventParties)
	j := newGroup(t, settled, signers)
	var wait, helping sync.WaitGroup
	defer wait.Wait()
	defer helping.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	coordinate := func() *Coordinator[float64] { return j.coordinator(nil) }
	within, stop := context.WithCancel(ctx)
	defer stop()
	oneshot := settled.Oneshot() != nil
	if oneshot {
		members, _ := named(t, "member", eventMembers)
		c := &committeeJob{group: j, members: members, network: new(Memory)}
		coordinate = func() *Coordinator[float64] { return c.coordinator(nil) }
		for k := range c.members {
			helping.Go(func() { _ = c.member(k, nil).Run(within) })
		}
	}
	w := make([]watch, len(j.signers))
	for i := range j.signers {
		p := j.participant(i, nil)
		w[i].Dialer = p.Dialer
		if p.Dialer = &w[i]; i == 2 {
			p.Work = vectors(own)
			p.Progress = func(e Event) { out.own = append(out.own, e) }
		}
		wait.Go(func() {
			_, err := p.Run(ctx)
			if i == 2 {
				out.err = err
			} else if err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	var err error
	if out.result, err = coordinate().Run(ctx); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	stop()
	helping.Wait()
	if !oneshot {
		j.check()
	}
	for _, r := range j.rounds {
		if slices.Contains(r.Parties, 2) {
			out.spent++
		}
	}
	for _, e := range j.events {
		if e.Kind != host.Connected && e.Kind != host.Waiting && e.Party == 2 {
			out.others = append(out.others, e.String())
		}
	}
	// Parties leave when they have the last model, and not all are heard to.
	out.others = slices.DeleteFunc(out.others, func(s string) bool {
		return strings.Contains(s, "disconnected")
	})
	out.seen = w[2].seen
	for i := range w { // a round may begin without a party
		if i != 2 && !slices.ContainsFunc(j.rounds, func(r Done[float64]) bool {
			return !slices.Contains(r.Parties, i)
		}) {
			out.peer = w[i].seen
		}
	}
	if !oneshot {
		out.peer = nil // pairwise messages are each party's own
	}
	return out
}

// eventJobs settles a job of either protocol, which all observations share.
func eventJobs(t *testing.T) map[string]*Settled {
	t.Helper()
	noisy := func(p *job.Job) *Settled {
		p.Rounds, p.Parties.DropOut, p.Privacy.Clip, p.Sum.Classical = 3, 0.2, 1, true
		p.Privacy.Noise, p.Privacy.Epsilon = "discrete-gaussian", 8
		return eventJob(t, p)
	}
	return map[string]*Settled{"pairwise": noisy(testJob()), "oneshot": noisy(oneshotJob())}
}

const eventParties, eventMembers = 5, 4

func eventJob(t *testing.T, p *job.Job) *Settled {
	t.Helper()
	_, roster := identities(t, eventParties)
	_, committee := named(t, "member", eventMembers)
	settled, err := p.Settle(job.Files{Roster: roster, Committee: committee})
	if err != nil {
		t.Fatal(err)
	}
	return settled
}

// With noise, whoever sees all that goes over a party's link sees the same of one whose rows make
// no vector and of one whose rows make one: the same frames, as long, in the same order. The
// coordinator reports the same. Only the party itself learns why. Instants are compared in virtual
// time: package simulation.
func TestEventsOfWork(t *testing.T) {
	t.Parallel()
	for name, plan := range eventJobs(t) {
		want := observed(t, plan, constant(1))
		if want.err != nil || want.spent != 3 {
			t.Fatalf("%s: %v, in %d sums", name, want.err, want.spent)
		}
		for why, own := range unfit {
			t.Run(name+", "+why, func(t *testing.T) {
				t.Parallel()
				compare(t, observed(t, plan, own), want, why != "one round of three")
			})
		}
	}
}

// compare fails the test unless others see what they are to see; all says that there was no vector
// in any round.
func compare(t *testing.T, got, want observation, all bool) {
	t.Helper()
	// Which members came first, and so how long messages are, differs from run to run.
	if got.peer != nil {
		want.seen = got.peer
	}
	if !slices.Equal(got.seen, want.seen) || !slices.Equal(got.others, want.others) {
		t.Errorf("others see\n%s\n%s\nwant\n%s\n%s",
			strings.Join(got.seen, "\n"), strings.Join(got.others, "\n"),
			strings.Join(want.seen, "\n"), strings.Join(want.others, "\n"))
	}
	blanks := 0
	for _, e := range got.own {
		if e.Kind == host.Blank && e.Err != nil {
			blanks++
		}
	}
	if got.spent != 3 || errors.Is(got.err, ErrAbsent) != all || (blanks == 3) != all {
		t.Errorf("in %d sums, %d times of zeros, %v", got.spent, blanks, got.err)
	}
}

// Without noise an absence is told, so that nobody waits; zeros would be seen in the sum.
func TestEventsInTheClear(t *testing.T) {
	t.Parallel()
	plan := testJob()
	plan.Rounds, plan.Parties.DropOut, plan.Sum.Classical = 3, 0.2, true
	settled := eventJob(t, plan)
	want, got := observed(t, settled, constant(1)), observed(t, settled, unfit["too few rows"])
	if slices.Equal(got.seen, want.seen) || got.spent != 0 || !errors.Is(got.err, ErrAbsent) {
		t.Errorf("in %d sums, %v: %q", got.spent, got.err, got.seen)
	}
}

// unmade tells of a program as a player does.
type unmade struct {
	why    error
	always bool
}

func (m unmade) Missed() (error, bool) { return m.why, m.always }

// A party whose own vectors were missing in all rounds is told that first, also where the
// coordinator ends the job for want of sums; the reason of one that has submitted comes second.
func TestBlamesItself(t *testing.T) {
	why := errors.New("a number of row 3 is missing")
	refused := fmt.Errorf("%w: no round had a sum", ErrRefused)
	for _, c := range []struct {
		missed unmade
		err    error
		absent bool
		begins error
	}{
		{unmade{nil, true}, refused, false, ErrRefused},
		{unmade{why, true}, nil, true, ErrAbsent},
		{unmade{why, true}, refused, true, ErrAbsent},
		{unmade{why, false}, refused, false, ErrRefused},
	} {
		err := blamed(c.err, c.missed)
		if errors.Is(err, ErrAbsent) != c.absent || errors.Is(err, ErrRefused) != (c.err != nil) ||
			errors.Is(err, why) != (c.missed.why != nil) ||
			!strings.HasPrefix(err.Error(), c.begins.Error()) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
