package hushsum

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/link"
	"github.com/hushsum/hushsum/masking"
)

// rewritten has a party's messages changed on their way: nil leaves one out.
type rewritten struct {
	Dialer
	change func(h wire.Header, message []byte) []byte
}

type rewrittenLink struct {
	Link
	change func(h wire.Header, message []byte) []byte
}

func (d rewritten) Dial(ctx context.Context) (Link, error) {
	conn, err := d.Dialer.Dial(ctx)
	return rewrittenLink{conn, d.change}, err
}

func (l rewrittenLink) Send(ctx context.Context, out []byte) error {
	if out[0] != link.KindMessage {
		return l.Link.Send(ctx, out)
	}
	h, _, err := wire.ParseHeader(out[1:])
	if err != nil {
		return err
	}
	if changed := l.change(h, out[1:]); changed != nil {
		return l.Link.Send(ctx, link.NewFrame(link.KindMessage, changed))
	}
	return nil
}

// silent has a party's messages left out but those of some types.
func silent(spoken ...wire.Type) func(wire.Header, []byte) []byte {
	return func(h wire.Header, message []byte) []byte {
		if slices.Contains(spoken, h.Type) {
			return message
		}
		return nil
	}
}

// held is a job in virtual time, which no processor's speed has a part in.
type held struct {
	*group
	ctx   context.Context
	close context.CancelFunc
	wait  sync.WaitGroup
}

// hold makes a job of some parties and runs a test of it.
func hold(t *testing.T, n, rounds int, dropOut float64, test func(h *held)) {
	synctest.Test(t, func(t *testing.T) {
		plan := testJob()
		plan.Rounds, plan.Parties.DropOut, plan.Sum.Classical = rounds, dropOut, true
		h := &held{group: newJob(t, plan, n)}
		h.ctx, h.close = context.WithCancel(t.Context())
		defer h.wait.Wait()
		defer h.close()
		test(h)
	})
}

// start has a party take part until the job is over.
func (h *held) start(p *Participant[float64]) {
	h.wait.Go(func() { _, _ = p.Run(h.ctx) })
}

// honest starts parties that do what they should.
func (h *held) honest(parties ...int) {
	for _, i := range parties {
		h.start(h.participant(i, nil))
	}
}

// count returns how many events there were that are so.
func (h *held) count(so func(e Event) bool) (n int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, e := range h.events {
		if so(e) {
			n++
		}
	}
	return n
}

func (h *held) of(kind host.EventKind) int {
	return h.count(func(e Event) bool { return e.Kind == kind })
}

// A party that spoils rounds and dials again with fresh keys, over and over, spoils no more of them
// than parties may be at fault.
func TestSpoilerComesAgain(t *testing.T) {
	hold(t, 5, 12, 0.3, func(h *held) {
		h.honest(0, 1, 2, 3)
		again := make(chan struct{}, 64)
		h.wait.Go(func() {
			for h.ctx.Err() == nil {
				ctx, cancel := context.WithCancel(h.ctx)
				p := h.participant(4, nil)
				p.Dialer = rewritten{p.Dialer, func(m wire.Header, message []byte) []byte {
					if m.Type == wire.TypeMasked {
						return h.shut(message)
					}
					return message
				}}
				h.wait.Go(func() { _, _ = p.Run(ctx) })
				select {
				case <-again:
				case <-ctx.Done():
				}
				cancel()
			}
		})
		c := h.coordinator(nil)
		report := c.Progress
		c.Progress = func(e Event) {
			report(e)
			if e.Kind == host.Lost || e.Kind == host.Summed && e.Round%4 == 0 {
				again <- struct{}{}
			}
		}
		result, err := c.Run(h.ctx)
		if err != nil || result.Rounds != 12 || result.Lost > 1 || result.Lost != h.of(host.Lost) {
			h.Errorf("%+v, %v\n%v", result, err, h.events)
		}
		if h.of(host.LeftOut) != 1 {
			h.Errorf("it was left out %d times\n%v", h.of(host.LeftOut), h.events)
		}
		h.check()
	})
}

// shut makes the shares in a submission such that they do not open.
func (h *held) shut(message []byte) []byte {
	const holders = 4
	size := h.settled.Layout().PackedSize()
	m, err := wire.ParseMasked(message[wire.HeaderSize:], size, holders, holders)
	if err != nil {
		h.Error(err)
		return message
	}
	for i := range m.Shares {
		m.Shares[i][len(m.Shares[i])-1] ^= 1
	}
	return m.Append(bytes.Clone(message[:wire.HeaderSize]))
}

// A party that takes part, and is silent at each end of a round, costs the time of two steps in
// twelve rounds: it is waited for less and less.
func TestSilentAtTheEnd(t *testing.T) {
	hold(t, 5, 12, 0.3, func(h *held) {
		h.honest(0, 1, 2, 3)
		p := h.participant(4, nil)
		p.Dialer = rewritten{p.Dialer, func(m wire.Header, message []byte) []byte {
			if m.Type == wire.TypeSigned || m.Type == wire.TypeReveal {
				return nil
			}
			return message
		}}
		h.start(p)
		c := h.coordinator(nil)
		c.StepTime = time.Hour
		result, err := c.Run(h.ctx)
		if err != nil || result.Rounds != 12 || result.Lost != 0 {
			h.Fatalf("%+v, %v\n%v", result, err, h.events)
		}
		// What takes a moment only is not told.
		if n := h.of(host.Waiting); n < 1 || n > 2 {
			h.Errorf("%d steps wait\n%v", n, h.events)
		}
		h.check()
	})
}

// With a party that is connected and silent, from one message on or from the first, rounds go on
// among the others, also if these are just enough.
func TestSilentHolder(t *testing.T) {
	for name, spoken := range map[string][]wire.Type{
		"at once":         nil,
		"after its keys":  {wire.TypeAnnounce},
		"after a session": {wire.TypeAnnounce, wire.TypeUpload},
	} {
		t.Run(name, func(t *testing.T) {
			hold(t, 4, 8, 0.25, func(h *held) {
				h.honest(0, 1, 2)
				p := h.participant(3, nil)
				p.Dialer = rewritten{p.Dialer, silent(spoken...)}
				h.start(p)
				c := h.coordinator(nil)
				c.StepTime = time.Hour
				result, err := c.Run(h.ctx)
				if err != nil || result.Rounds != 8 || result.Lost != 0 {
					h.Fatalf("%+v, %v\n%v", result, err, h.events)
				}
				if n := h.of(host.Waiting); n < 1 || n > 3 {
					h.Errorf("%d steps wait\n%v", n, h.events)
				}
				h.check()
			})
		})
	}
}

// A party that connects and joins no session causes fewer and fewer of them.
func TestJoinsNothing(t *testing.T) {
	hold(t, 4, 16, 0.25, func(h *held) {
		h.honest(0, 1, 2)
		p := h.participant(3, nil)
		p.Dialer = rewritten{p.Dialer, silent()}
		h.start(p)
		result, err := h.coordinator(nil).Run(h.ctx)
		if err != nil || result.Rounds != 16 || result.Lost != 0 {
			h.Fatalf("%+v, %v\n%v", result, err, h.events)
		}
		if n := h.of(host.Joining); n < 2 || n > 6 {
			h.Errorf("%d sessions in 16 rounds\n%v", n, h.events)
		}
	})
}

// A coordinator whose stored state is of two rounds ago, and that has no Counter to tell, learns it
// from the parties. The rounds in between count as spent and lost, and none is lost that begins
// afterwards.
func TestCoordinatorSetBack(t *testing.T) {
	hold(t, 5, 8, 0.3, func(h *held) {
		store := new(MemoryStore)
		for i := range h.signers {
			h.start(h.participant(i, new(MemoryStore)))
		}
		first, stop := context.WithCancel(h.ctx)
		defer stop()
		c := h.coordinator(store)
		report := c.Progress
		var old MemoryStore
		c.Progress = func(e Event) {
			report(e)
			if e.Kind != host.Summed {
				return
			}
			switch e.Round {
			case 2:
				copyStore(h.T, &old, store)
			case 4:
				stop()
			}
		}
		if _, err := c.Run(first); !errors.Is(err, context.Canceled) {
			h.Fatal(err)
		}
		h.events, h.rounds = nil, nil
		result, err := h.coordinator(&old).Run(h.ctx)
		if err != nil || result.Rounds != 8 {
			h.Fatalf("%+v, %v\n%v", result, err, h.events)
		}
		known := slices.IndexFunc(h.events, func(e Event) bool { return e.Kind == host.SetBack })
		if known < 0 || h.events[known].Round != 4 {
			h.Fatalf("it does not learn of round 4\n%v", h.events)
		}
		for _, e := range h.events[known:] {
			if e.Kind == host.Lost || e.Kind == host.Begun && e.Round <= 4 {
				h.Errorf("afterwards: %v", e)
			}
		}
		if len(h.rounds) != 4 || h.rounds[0].Number != 5 {
			h.Errorf("%d sums, %v", len(h.rounds), h.events)
		}
		if result.Lost < 2 { // it has not had what they summed
			h.Errorf("%d rounds are lost", result.Lost)
		}
		h.check()
	})
}

// A coordinator that is stopped while a party is at work stores what the others have submitted: the
// next does not ask them again.
func TestStoppedInMidStep(t *testing.T) {
	hold(t, 4, 1, 0.25, func(h *held) {
		h.honest(0, 1, 2)
		p := h.participant(3, nil)
		p.Work = vectors(func(ctx context.Context, _ uint64, _ []float64) ([]float64, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		h.start(p)
		store := new(MemoryStore)
		first, stop := context.WithCancel(h.ctx)
		time.AfterFunc(time.Minute/2, stop)
		stopped := h.coordinator(store)
		stopped.StepTime = time.Hour
		if _, err := stopped.Run(first); !errors.Is(err, context.Canceled) {
			h.Fatal(err)
		}
		lead := loaded(h.T, h.coordinator(store))
		if status := lead.Status(); status.Stage != drive.Submitting {
			h.Fatalf("%+v\n%v", status, h.events)
		}
		for i := range h.signers {
			if due := lead.At(drive.Peer{Index: i}).Due; due != (i == 3) {
				h.Errorf("party %d is asked: %v", i, due)
			}
		}
	})
}

// A sum ends what was lost in a row.
func TestLostInRow(t *testing.T) {
	hold(t, 4, 12, 0.25, func(h *held) {
		h.honest(0, 1, 2, 3)
		c := h.coordinator(nil)
		c.Apply = applying(func(r Done[float64], model []float64) ([]float64, error) {
			if r.Number%5 != 0 {
				return nil, errDisk
			}
			return model, nil
		})
		result, err := c.Run(h.ctx)
		if err != nil || result.Rounds != 12 || result.Lost != 10 {
			h.Errorf("%+v, %v", result, err)
		}
	})
}

// While Apply makes a model sessions form. A coordinator that is ended meanwhile waits for Apply,
// and leaves nothing behind; one that is started again has the same sum applied again.
func TestApplyTakesLong(t *testing.T) {
	for _, long := range []int{5, 20_000} { // coordinates: the sum is in the state, or next to it
		synctest.Test(t, func(t *testing.T) {
			plan := testJob()
			plan.Rounds, plan.Parties.DropOut, plan.Sum.Classical, plan.Model.Length = 2, 0.25, true, long
			h := &held{group: newJob(t, plan, 4)}
			h.ctx, h.close = context.WithCancel(t.Context())
			defer h.wait.Wait()
			defer h.close()
			store := new(MemoryStore)
			for i := range 3 {
				h.start(h.participant(i, new(MemoryStore)))
			}
			c := h.coordinator(store)
			watched := &watchedListener{Listener: c.Listener}
			c.Listener = watched
			first, stop := context.WithCancel(h.ctx)
			defer stop()
			formed := make(chan struct{})
			report := c.Progress
			c.Progress = func(e Event) {
				report(e)
				if e.Kind == host.Formed && e.Session == 2 {
					close(formed)
				}
			}
			var sum *masking.Vector
			done := false
			c.Apply = applying(func(r Done[float64], model []float64) ([]float64, error) {
				sum = r.Sum
				h.honest(3)
				<-formed
				stop()
				time.Sleep(time.Hour)
				done = true
				return model, nil
			})
			if _, err := c.Run(first); !errors.Is(err, context.Canceled) || !done {
				t.Errorf("%v, Apply has returned: %v", err, done)
			}
			if n := watched.under.Load(); n != 0 {
				t.Errorf("%d calls are under way when it has returned", n)
			}
			c = h.coordinator(store)
			apply, times := c.Apply, 0
			c.Apply = applying(func(r Done[float64], model []float64) ([]float64, error) {
				if times++; times == 1 && (r.Number != 1 || !equalSums(r.Sum, sum)) {
					t.Errorf("round %d is applied with another sum", r.Number)
				}
				return apply(r)
			})
			result, err := c.Run(h.ctx)
			if err != nil || result.Rounds != 2 || result.Lost != 0 || times != 2 {
				t.Errorf("%+v, %v, %d sums\n%v", result, err, times, h.events)
			}
			h.check()
		})
	}
}

func equalSums(a, b *masking.Vector) bool {
	return slices.EqualFunc(a.Values(), b.Values(), slices.Equal[[]uint64])
}

// watchedListener counts the calls to it, and to its links, that are under way.
type watchedListener struct {
	Listener
	under atomic.Int32
}

type watchedLink struct {
	Link
	under *atomic.Int32
}

func (l *watchedListener) Accept(ctx context.Context) (int, Link, error) {
	l.under.Add(1)
	defer l.under.Add(-1)
	party, conn, err := l.Listener.Accept(ctx)
	return party, watchedLink{conn, &l.under}, err
}

func (l watchedLink) Send(ctx context.Context, out []byte) error {
	l.under.Add(1)
	defer l.under.Add(-1)
	return l.Link.Send(ctx, out)
}

func (l watchedLink) Receive(ctx context.Context) ([]byte, error) {
	l.under.Add(1)
	defer l.under.Add(-1)
	return l.Link.Receive(ctx)
}
