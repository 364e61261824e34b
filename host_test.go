package hushsum

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/link"
	"github.com/hushsum/hushsum/protocol"
)

// This file has what a coordinator promises of its host, whatever takes the sums.

// carriers are the kinds of jobs, by what takes their sums.
func carriers() map[string]*job.Job {
	return map[string]*job.Job{"pairwise": testJob(), "one message": oneshotJob()}
}

// typeOpening is the message that begins a round of one-message sums (SPEC-ONESHOT.md §6).
const typeOpening wire.Type = 66

// slowDisk is a store whose writes fail from one on, after a while.
type slowDisk struct {
	MemoryStore
	saves, fails int
}

func (d *slowDisk) Save(state []byte) error {
	if d.saves++; d.fails > 0 && d.saves >= d.fails {
		time.Sleep(5 * 20 * time.Millisecond) // in which what should not leave may
		return errDisk
	}
	return d.MemoryStore.Save(state)
}

// begunDialer notes the rounds that a party is told of.
type begunDialer struct {
	Dialer
	mutex *sync.Mutex
	begun *uint64
}

type begunLink struct {
	Link
	begunDialer
}

func (d begunDialer) Dial(ctx context.Context) (Link, error) {
	conn, err := d.Dialer.Dial(ctx)
	return begunLink{conn, d}, err
}

func (l begunLink) Receive(ctx context.Context) ([]byte, error) {
	in, err := l.Link.Receive(ctx)
	if err == nil && in[0] == link.KindMessage {
		h, _, err := wire.ParseHeader(in[1:])
		if err == nil && (h.Type == wire.TypeBegin || h.Type == typeOpening) {
			l.mutex.Lock()
			defer l.mutex.Unlock()
			*l.begun = max(*l.begun, h.Round)
		}
	}
	return in, err
}

// A round begins once that is stored. A store that fails ends the job with its error, and started
// again from what is stored it goes on to its end. No round is begun twice.
func TestCoordinatorSavesFirst(t *testing.T) {
	t.Parallel()
	for name, plan := range carriers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				saves := 1
				for fails := 0; fails <= saves; fails++ {
					disk := savesFirst(t, plan, fails)
					if fails == 0 {
						saves = disk.saves
					}
				}
				if saves < 8 {
					t.Errorf("%d writes", saves)
				}
			})
		})
	}
}

// savesFirst holds a job whose coordinator has a store that fails at one of its writes, or at
// none.
func savesFirst(t *testing.T, plan *job.Job, fails int) *slowDisk {
	t.Helper()
	plan.Rounds, plan.Sum.Classical = 2, true
	disk := &slowDisk{fails: fails}
	j, coordinator := newEither(t, plan, disk)
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	var mutex sync.Mutex
	var begun uint64
	var wait sync.WaitGroup
	for i := range j.signers {
		p := j.participant(i, nil)
		p.Dialer = begunDialer{p.Dialer, &mutex, &begun}
		wait.Go(func() { _, _ = p.Run(ctx) })
	}
	for k := range j.members {
		m := j.member(k, nil)
		m.Dialer = begunDialer{m.Dialer, &mutex, &begun}
		wait.Go(func() { _ = m.Run(ctx) })
	}
	defer wait.Wait()
	defer cancel()
	_, err := coordinator.Run(ctx)
	if (fails > 0 || err != nil) && !errors.Is(err, errDisk) || fails > 0 && disk.saves != fails {
		t.Errorf("write %d of %d fails: %v", fails, disk.saves, err)
	}
	synctest.Wait()
	state, err := disk.Load()
	switch {
	case err != nil || state == nil && begun > 0:
		t.Errorf("write %d fails, nothing is stored, and round %d has begun: %v", fails, begun, err)
	case state != nil:
		stored := loaded(t, coordinator).Status().Round
		if begun > stored {
			t.Errorf("write %d fails, round %d is stored, and round %d has begun", fails, stored, begun)
		}
	}
	if fails == 0 {
		return disk
	}
	disk.fails = 0
	result, err := coordinator.Run(ctx)
	if err != nil || result.Rounds != 2 || result.Lost != 0 {
		t.Errorf("started again after write %d: %+v, %v", fails, result, err)
	}
	return disk
}

// brokenDialer has each connection but the last break in place of the frame with a number, which a
// side sends: in the midst of a body, if that is in parts.
type brokenDialer struct {
	Dialer
	mutex *sync.Mutex
	left  *int // connections that break
	after int  // frames
}

type brokenLink struct {
	Link
	left int
}

func (d brokenDialer) Dial(ctx context.Context) (Link, error) {
	conn, err := d.Dialer.Dial(ctx)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if *d.left--; err != nil || *d.left < 0 {
		return conn, err
	}
	return &brokenLink{conn, d.after}, nil
}

func (l *brokenLink) Send(ctx context.Context, frame []byte) error {
	if l.left--; l.left < 0 {
		_ = l.Link.Close()
		return ErrFrame
	}
	return l.Link.Send(ctx, frame)
}

// A connection that breaks at any frame costs no round: its party or member dials again, and is
// told what it has not had.
func TestCoordinatorLinksBreak(t *testing.T) {
	t.Parallel()
	for name, plan := range carriers() {
		for after := range 5 {
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { linksBreak(t, plan, after) })
			})
		}
	}
}

func linksBreak(t *testing.T, shared *job.Job, after int) {
	plan := *shared
	plan.Rounds = 2
	j, coordinator := newEither(t, &plan, nil)
	coordinator.StepTime = jobTime // nobody is too slow
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	var wait sync.WaitGroup
	var mutex sync.Mutex
	broken := func(d Dialer) Dialer {
		left := 2
		return brokenDialer{d, &mutex, &left, after}
	}
	for i := range j.signers {
		p := j.participant(i, nil)
		p.Dialer = broken(p.Dialer)
		wait.Go(func() {
			if _, err := p.Run(ctx); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	for k := range j.members {
		m := j.member(k, nil)
		m.Dialer = broken(m.Dialer)
		wait.Go(func() {
			if err := m.Run(ctx); err != nil {
				t.Errorf("member %d: %v", k, err)
			}
		})
	}
	result, err := coordinator.Run(ctx)
	if err != nil || result.Rounds != 2 || result.Lost != 0 {
		t.Errorf("%+v, %v", result, err)
	}
	wait.Wait()
	j.check()
}

// A frame may be as long as the job's longest message once a party is known, or as any frame may
// be, and no longer.
func TestFrameAfterHello(t *testing.T) {
	for name, plan := range carriers() {
		t.Run(name, func(t *testing.T) { frameAfterHello(t, plan) })
	}
}

func frameAfterHello(t *testing.T, plan *job.Job) {
	plan.Model.Length = 50_000 // messages beyond what a hello may have
	j, c := newEither(t, plan, nil)
	longest := maxFrame(j.settled) - 2
	if longest <= 1+link.MaxText {
		t.Fatalf("messages have %d bytes", longest)
	}
	gone := make(chan error, 1)
	listener, dialer := j.listen()
	c.Listener = listener
	c.Progress = func(e Event) {
		if e.Kind == host.Disconnected {
			gone <- e.Err
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = c.Run(ctx) })
	defer wait.Wait()
	defer cancel()
	for size, taken := range map[int]bool{longest + 1: true, longest + 3: false} {
		conn, err := dialer(1).Dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		hello := link.JSONFrame(link.KindHello, greetingOf(j.settled))
		if err := conn.Send(ctx, hello); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, size-1)
		err = conn.Send(ctx, link.NewFrame(link.KindMessage, body))
		if taken {
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
		}
		if err := <-gone; errors.Is(err, ErrFrame) == taken {
			t.Errorf("%d bytes where messages have %d: %v", size, longest, err)
		}
	}
}

// coordinated runs a coordinator whose events of a kind go to a channel, and returns how to connect
// to it as party 1 with a hello.
func coordinated(t *testing.T, kind host.EventKind) (
	j *committeeJob, events chan error, connect func() Link,
) {
	t.Helper()
	j, c := newEither(t, testJob(), nil)
	events = make(chan error, 3)
	listener, dialer := j.listen()
	c.Listener = listener
	c.Progress = func(e Event) {
		if e.Kind == kind {
			events <- e.Err
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = c.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wait.Wait()
	})
	return j, events, func() Link {
		conn, err := dialer(1).Dial(ctx)
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			err = conn.Send(ctx, link.JSONFrame(link.KindHello, greetingOf(j.settled)))
		}
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
}

// Who is connected and connects again is reported so, since a second process may have the identity:
// the first connection ends.
func TestConnectedTwice(t *testing.T) {
	_, came, connect := coordinated(t, host.Connected)
	first := connect()
	if err := <-came; err != nil {
		t.Errorf("the first connection is reported with %v", err)
	}
	connect()
	if err := <-came; !errors.Is(err, errTwice) {
		t.Errorf("the second connection is reported with %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	for err := error(nil); err == nil; { // what it was sent, and then the end
		_, err = first.Receive(ctx)
	}
	if ctx.Err() != nil {
		t.Error("the first connection goes on")
	}
}

// A party whose program works another session out of the job is reported with that, once it has
// announced keys for two.
func TestOtherConfiguration(t *testing.T) {
	j, refused, connect := coordinated(t, host.Refused)
	conn := connect()
	for range 2 {
		config := *j.settled.Config(1)
		config.Label += ", another"
		client, err := protocol.NewClient(&config, j.signers[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Send(t.Context(),
			link.NewFrame(link.KindMessage, client.Announce())); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-refused; !errors.Is(err, errConfiguration) {
		t.Errorf("it is reported with %v", err)
	}
}
