package hushsum

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job"
)

// counted is a net.Listener that counts the connections that are open, and fails as often
// as it is told to before it accepts one.
type counted struct {
	net.Listener
	open, most atomic.Int64
	failures   atomic.Int64
}

type countedConn struct {
	net.Conn
	of   *counted
	once sync.Once
}

func (c *counted) Accept() (net.Conn, error) {
	if c.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	open := c.open.Add(1)
	for most := c.most.Load(); open > most && !c.most.CompareAndSwap(most, open); {
		most = c.most.Load()
	}
	return &countedConn{Conn: conn, of: c}, nil
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.of.open.Add(-1) })
	return c.Conn.Close()
}

// world is a listener of a roster, on which tests dial.
type world struct {
	testing.TB
	ctx      context.Context
	listener *TCPListener
	under    *counted
	signers  []crypto.Signer
	server   crypto.Signer
}

func newWorld(t testing.TB, n int, change func(l *TCPListener, under *counted)) *world {
	t.Helper()
	signers, roster := identities(t, n)
	server, _ := named(t, "coordinator", 2)
	l, err := newTCPListener(server[0], roster)
	if err != nil {
		t.Fatal(err)
	}
	under := new(counted)
	if under.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	l.listener = under
	if change != nil {
		change(l, under)
	}
	go l.serve()
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
	})
	return &world{t, ctx, l, under, signers, server[0]}
}

func (w *world) dialer(identity crypto.Signer) *TCPDialer {
	return &TCPDialer{
		Address:     w.listener.Address(),
		Identity:    identity,
		Coordinator: w.server.Public().(ed25519.PublicKey),
	}
}

// dial connects with a key.
func (w *world) dial(identity crypto.Signer) Link {
	w.Helper()
	link, err := w.dialer(identity).Dial(w.ctx)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = link.Close() })
	return link
}

// raw connects without TLS.
func (w *world) raw() net.Conn {
	w.Helper()
	conn, err := net.Dial("tcp", w.listener.Address())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close() })
	return conn
}

// held is how many strangers there are, and how many connections of a party.
func (w *world) held(party int) (strangers, of int) {
	w.listener.mutex.Lock()
	defer w.listener.mutex.Unlock()
	return len(w.listener.strangers), len(w.listener.parties[party])
}

// await waits until something holds.
func (w *world) await(what string, holds func() bool) {
	w.Helper()
	for !holds() {
		if w.ctx.Err() != nil {
			w.Fatalf("still not: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// noted returns what is to be reported.
func (w *world) noted(kind EventKind) Event {
	w.listener.mutex.Lock()
	defer w.listener.mutex.Unlock()
	return w.listener.away[kind]
}

// through connects a party, says hello and is accepted.
func (w *world) through(party int) (near, far Link) {
	w.Helper()
	near = w.dial(w.signers[party])
	if err := near.Send(w.ctx, []byte("hello")); err != nil {
		w.Fatal(err)
	}
	from, far, err := w.listener.Accept(w.ctx)
	if err != nil || from != party {
		w.Fatalf("party %d: %v", from, err)
	}
	w.Cleanup(func() { _ = far.Close() })
	return near, far
}

// Strangers who hold connections, whether they are silent or have begun to speak, are
// replaced, the oldest first, and no party has to wait for them to leave.
func TestStrangersReplaced(t *testing.T) {
	t.Parallel()
	for name, speak := range map[string][]byte{"silent": nil, "halting": {22, 3, 1}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3, func(l *TCPListener, _ *counted) { l.most = time.Hour })
			first := w.raw()
			_, _ = first.Write(speak)
			w.await("the first is there", func() bool { n, _ := w.held(0); return n == 1 })
			for range maxStrangers {
				conn := w.raw()
				_, _ = conn.Write(speak)
			}
			// It is the oldest, and the last makes it go.
			if n, err := first.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("the oldest: %d bytes, %v", n, err)
			}
			w.through(1)
			if n, _ := w.held(1); n > maxStrangers {
				t.Errorf("%d strangers", n)
			}
			w.await("it is noted", func() bool { return w.noted(Unfinished).Count > 0 })
			if e := w.noted(Unfinished); !errors.Is(e.Err, errCrowd) {
				t.Errorf("noted %v", e)
			}
		})
	}
}

// A crowd of honest parties is no attack: those that have begun to speak are not replaced
// at once by those that come after them.
func TestCrowdIsPatient(t *testing.T) {
	w := newWorld(t, 3, nil)
	now := time.Now()
	spoken, silent := &guest{began: now}, &guest{began: now}
	spoken.spoke.Store(true)
	if !(spoken.patience(now) > silent.patience(now)) || silent.patience(now) <= 0 {
		t.Errorf("patience with one that has spoken %v, with a silent one %v", spoken.patience(now),
			silent.patience(now))
	}
	for _, g := range []*guest{spoken, silent} {
		if later := now.Add(handshakeTime); g.patience(later) > 0 {
			t.Errorf("it never ends: %v", g.patience(later))
		}
	}
	if n, _ := w.held(0); n != 0 {
		t.Errorf("%d strangers", n)
	}
}

// Who does not say hello in time is gone, silent or not, of the roster or not.
func TestNoHello(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, func(l *TCPListener, _ *counted) { l.most = 500 * time.Millisecond })
	raw := w.raw()
	party, err := w.dialer(w.signers[1]).Dial(w.ctx)
	if _, err := raw.Read(make([]byte, 1)); err == nil {
		t.Error("a stranger is told something")
	}
	if err == nil { // or the machine was so slow that its time was over
		if _, err := party.Receive(w.ctx); err == nil || w.ctx.Err() != nil {
			t.Errorf("a party that says nothing: %v", err)
		}
		_ = party.Close()
	}
	w.await("both are gone", func() bool {
		strangers, held := w.held(1)
		return strangers == 0 && held == 0 && w.under.open.Load() == 0
	})
	if e := w.noted(Unfinished); e.Count != 2 {
		t.Errorf("noted %v", e)
	}
}

// A key that is not in the roster is told so: its dialer fails for good.
func TestUnknownKey(t *testing.T) {
	w := newWorld(t, 3, nil)
	strangers, _ := named(t, "stranger", 2)
	link := w.dial(strangers[0])
	if err := link.Send(w.ctx, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := link.Receive(w.ctx); !errors.Is(err, ErrPeer) {
		t.Errorf("%v", err)
	}
	_ = link.Close()
	w.await("it is gone", func() bool { n, _ := w.held(0); return n == 0 })
	w.await("it is noted", func() bool { return w.noted(Unknown).Count == 1 })
	if e := w.noted(Unknown); !errors.Is(e.Err, ErrPeer) {
		t.Errorf("noted %v", e)
	}
	soon, end := context.WithTimeout(w.ctx, 50*time.Millisecond)
	defer end()
	if party, _, err := w.listener.Accept(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it was accepted as party %d: %v", party, err)
	}
}

// A party that the coordinator's roster does not have does not dial for ever.
func TestParticipantUnknown(t *testing.T) {
	w := newWorld(t, 7, nil)
	j := newJob(t, testJob(), 8) // with a roster of one more
	p := j.participant(7, nil)
	p.Dialer = w.dialer(j.signers[7])
	if _, err := p.Run(w.ctx); !errors.Is(err, ErrPeer) {
		t.Errorf("%v", err)
	}
}

// A party that holds connections without hello replaces its own, and nobody else's; of those
// that said hello the newest stay.
func TestHoldingParty(t *testing.T) {
	w := newWorld(t, 3, func(l *TCPListener, _ *counted) { l.most = time.Hour })
	other, far := w.through(2)
	greeted, _ := w.through(1)
	for range 5 * maxOfParty {
		w.dial(w.signers[1])
		if _, n := w.held(1); n > maxOfParty {
			t.Fatalf("%d connections", n)
		}
	}
	w.await("as many as may be", func() bool { _, n := w.held(1); return n == maxOfParty })
	w.await("none of strangers", func() bool { n, _ := w.held(1); return n == 0 })
	if err := greeted.Send(w.ctx, []byte("I am here")); err != nil {
		t.Errorf("the one that said hello: %v", err)
	}
	for range 2 * maxOfParty {
		w.through(1)
	}
	if _, n := w.held(1); n > maxOfParty {
		t.Errorf("%d connections", n)
	}
	if _, err := greeted.Receive(w.ctx); err == nil {
		t.Error("the oldest is still there")
	}
	if err := other.Send(w.ctx, []byte("and I")); err != nil {
		t.Errorf("another party's: %v", err)
	}
	for _, want := range []string{"hello", "and I"} {
		if got, err := far.Receive(w.ctx); string(got) != want || err != nil {
			t.Errorf("another party's: %q, %v", got, err)
		}
	}
	// What is closed leaves its place.
	_ = far.Close()
	w.await("its place is free", func() bool { _, n := w.held(2); return n == 0 })
}

// A first frame is short: nobody makes room for a long one of who is not known yet.
func TestLongHello(t *testing.T) {
	w := newWorld(t, 3, nil)
	for size, ok := range map[int]bool{maxHello: true, maxHello + 1: false, 1 << 30: false} {
		link := w.dial(w.signers[1])
		head := binary.BigEndian.AppendUint32(nil, uint32(size))
		body := make([]byte, min(size, maxHello))
		_, err := link.(*connLink).conn.Write(append(head, body...))
		if ok && err != nil {
			t.Fatal(err)
		}
		if ok {
			_, far, err := w.listener.Accept(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := far.Receive(w.ctx); len(b) != size || err != nil {
				t.Errorf("%d bytes of %d, %v", len(b), size, err)
			}
			_ = far.Close()
		} else if _, err := link.Receive(w.ctx); err == nil {
			t.Errorf("%d bytes are taken", size)
		}
	}
	w.await("both are noted", func() bool { return w.noted(Unfinished).Count == 2 })
	if e := w.noted(Unfinished); !errors.Is(e.Err, ErrFrame) {
		t.Errorf("noted %v", e)
	}
}

// That there are no descriptors for a while ends nothing, and is noted.
func TestNoDescriptors(t *testing.T) {
	w := newWorld(t, 3, func(_ *TCPListener, under *counted) { under.failures.Store(3) })
	w.through(1)
	if e := w.noted(Strained); e.Count != 3 || !errors.Is(e.Err, syscall.EMFILE) {
		t.Errorf("noted %v", e)
	}
	// A closed listener says so, and not the end of a wait.
	if err := w.listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.listener.Accept(w.ctx); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// What is reported comes by numbers, and not more than the reader takes.
func TestTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, nil)
	for range 1000 {
		w.listener.note(Unknown, ErrPeer)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	to := make(chan Event, 4)
	go w.listener.tell(ctx, to)
	if e := <-to; e.Kind != Unknown || e.Count != 1000 || !errors.Is(e.Err, ErrPeer) {
		t.Errorf("%v", e)
	}
	if e := w.noted(Unknown); e.Count != 0 {
		t.Errorf("it is told again: %v", e)
	}
}

// pause is how long one whose connection was closed waits before it dials again: a second,
// but not all at once.
func pause() time.Duration { return time.Second/2 + rand.N(time.Second) }

// strangers keep connections open that say nothing, n at a time, and dial again when they are
// closed. They end with the context.
func (w *world) strangers(ctx context.Context, wait *sync.WaitGroup, n int) {
	for range n {
		wait.Go(func() {
			for ctx.Err() == nil {
				var d net.Dialer
				conn, err := d.DialContext(ctx, "tcp", w.listener.Address())
				if err == nil {
					stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
					_, _ = io.Copy(io.Discard, conn)
					stop()
					_ = conn.Close()
				}
				select {
				case <-ctx.Done():
				case <-time.After(pause()):
				}
			}
		})
	}
}

// holder keeps connections of a party open, with TLS and without hello.
func (w *world) holder(ctx context.Context, wait *sync.WaitGroup, party, n int) {
	config, err := tlsConfig(w.signers[party], func(ed25519.PublicKey) error { return nil })
	if err != nil {
		w.Fatal(err)
	}
	for range n {
		wait.Go(func() {
			for ctx.Err() == nil {
				d := tls.Dialer{Config: config}
				conn, err := d.DialContext(ctx, "tcp", w.listener.Address())
				if err == nil {
					stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
					_, _ = io.Copy(io.Discard, conn)
					stop()
					_ = conn.Close()
				}
				select {
				case <-ctx.Done():
				case <-time.After(pause()):
				}
			}
		})
	}
}

// crowdedJob runs ten rounds among ten of eleven parties, with strangers or without, and
// returns how long the rounds took, with the time until the parties were there and without.
func crowdedJob(
	t testing.TB, strangers int,
) (w *world, whole, rounds time.Duration, result *Result) {
	t.Helper()
	plan := testJob()
	plan.Rounds, plan.Model.Length = 10, 1000
	w = newWorld(t, 11, nil)
	_, roster := identities(t, 11)
	settled, err := plan.Settle(job.Files{Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	crowd, leave := context.WithCancel(w.ctx)
	defer leave()
	var wait sync.WaitGroup
	if strangers > 0 {
		w.strangers(crowd, &wait, strangers)
		w.holder(crowd, &wait, 10, 50)
		w.await("the table is full", func() bool {
			n, held := w.held(10)
			return n >= maxStrangers-1 && held == maxOfParty
		})
	}
	var parties sync.WaitGroup
	began := time.Now()
	for i := range 10 {
		p := &Participant{
			Job:      settled,
			Identity: w.signers[i],
			Dialer:   w.dialer(w.signers[i]),
			Work: func(_ context.Context, _ uint64, model []float64) ([]float64, error) {
				return make([]float64, len(model)), nil
			},
		}
		parties.Go(func() {
			if _, err := p.Run(w.ctx); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	var first, last time.Time
	told := make(map[EventKind]int)
	c := &Coordinator{
		Job:      settled,
		Listener: w.listener,
		Progress: func(e Event) {
			told[e.Kind]++
			switch now := time.Now(); {
			case e.Kind == Begun && first.IsZero():
				first = now
			case e.Kind == Summed:
				last = now
			}
			if n, held := w.held(10); n > maxStrangers || held > maxOfParty {
				t.Errorf("%d strangers, %d of the party that holds", n, held)
			}
		},
	}
	result, err = c.Run(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	parties.Wait()
	leave()
	wait.Wait()
	if strangers > 0 && told[Unfinished] == 0 && w.noted(Unfinished).Count == 0 {
		t.Error("nobody says that connections were turned away")
	}
	return w, last.Sub(began), last.Sub(first), result
}

// A thousand idle strangers, and a party that holds connections, keep nobody out: all rounds
// are held, and the listener holds as many connections as it may.
func TestThousandStrangers(t *testing.T) {
	if testing.Short() {
		t.Skip("opens a thousand connections")
	}
	w, _, _, result := crowdedJob(t, 1000)
	if result.Rounds != 10 || result.Lost != 0 {
		t.Errorf("%d rounds, %d lost", result.Rounds, result.Lost)
	}
	most := int64(maxStrangers + 1 + 11*maxOfParty) // one more waits for room
	if got := w.under.most.Load(); got > most || got < maxStrangers {
		t.Errorf("%d connections at a time, want %d at most", got, most)
	}
}

// Rounds with a thousand strangers against rounds without: the ratios of their times, with
// and without the time until the parties are there, and the memory in use after the rounds.
func BenchmarkStrangers(b *testing.B) {
	var crowded, alone, crowdedRounds, aloneRounds float64
	var memory runtime.MemStats
	for b.Loop() {
		_, whole, rounds, _ := crowdedJob(b, 0)
		alone, aloneRounds = alone+whole.Seconds(), aloneRounds+rounds.Seconds()
		_, whole, rounds, _ = crowdedJob(b, 1000)
		crowded, crowdedRounds = crowded+whole.Seconds(), crowdedRounds+rounds.Seconds()
		runtime.ReadMemStats(&memory)
	}
	b.ReportMetric(crowded/alone, "ratio")
	b.ReportMetric(crowdedRounds/aloneRounds, "ratio-rounds")
	b.ReportMetric(alone/float64(b.N), "s-alone")
	b.ReportMetric(float64(memory.HeapInuse+memory.StackInuse)/1e6, "MB-in-use")
}
