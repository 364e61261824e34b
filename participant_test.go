package hushsum

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/link"
	"github.com/hushsum/hushsum/protocol"
)

// script is a coordinator whose steps a test takes one by one. Party 0 is under test.
type script struct {
	*group
	ctx    context.Context
	inbox  chan scripted
	links  []Link
	hellos []link.Hello
	server *protocol.Server
	casts  byte
}

// scripted is a frame that came, or the end of a connection.
type scripted struct {
	party int
	frame []byte
}

func newScript(t *testing.T, ctx context.Context) *script {
	t.Helper()
	plan := testJob()
	plan.Rounds, plan.Sum.Classical, plan.Parties.DropOut = 3, true, 0.25
	j := newJob(t, plan, 4)
	return &script{group: j, ctx: ctx, inbox: make(chan scripted, 64),
		links: make([]Link, 4), hellos: make([]link.Hello, 4)}
}

// run has a party take part until stop, which returns what its Run came to.
func (s *script) run(p *Participant[float64]) (stop func() error) {
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := p.Run(ctx)
		ended <- err
	}()
	return func() error {
		cancel()
		return <-ended
	}
}

// others has the other parties take part.
func (s *script) others() {
	s.Helper()
	for i := 1; i < 4; i++ {
		s.run(s.participant(i, nil))
		s.accept()
	}
}

// accept takes one connection and its hello.
func (s *script) accept() bool {
	s.Helper()
	party, conn, err := s.memory.Accept(s.ctx)
	if err != nil {
		return false
	}
	in, err := conn.Receive(s.ctx)
	if err != nil {
		return false
	}
	var h link.Hello
	if err := json.Unmarshal(in[1:], &h); in[0] != link.KindHello || err != nil {
		s.Fatalf("party %d begins with %q, %v", party, in, err)
	}
	s.links[party], s.hellos[party] = conn, h
	go func() {
		for {
			in, err := conn.Receive(s.ctx)
			if err == nil && in[0] == link.KindAbsent && bytes.Contains(in, []byte(`"absent":0`)) {
				continue // it says how far the job is
			}
			select {
			case s.inbox <- scripted{party, in}:
			case <-s.ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return true
}

func (s *script) send(party int, frames ...[]byte) {
	for _, f := range frames {
		_ = s.links[party].Send(s.ctx, f)
	}
}

// next is the next frame that comes; none once a connection or the test has ended.
func (s *script) next() (scripted, bool) {
	select {
	case in := <-s.inbox:
		return in, in.frame != nil
	case <-s.ctx.Done():
		return scripted{}, false
	}
}

// take gives the session what comes until it misses nobody.
func (s *script) take() bool {
	for len(s.server.Missing()) > 0 {
		in, ok := s.next()
		if !ok {
			return false
		}
		if in.frame[0] == link.KindMessage {
			_ = s.server.Receive(in.party, in.frame[1:])
		}
	}
	return true
}

// push sends all what is pending, after a broadcast if there is one.
func (s *script) push(b *link.Broadcast) {
	for i := range s.links {
		for _, m := range s.server.Pending(i) {
			if b != nil {
				_ = link.SendBody(link.KindBroadcast, b, func(f []byte) error {
					s.send(i, f)
					return nil
				})
			}
			s.send(i, link.NewFrame(link.KindMessage, m))
		}
	}
}

// end ends a step, and waits for the answers.
func (s *script) end() bool {
	s.Helper()
	if err := s.server.EndStep(); err != nil {
		s.Fatal(err)
	}
	s.push(nil)
	return s.take()
}

// form sets a session up.
func (s *script) form(number uint64) bool {
	s.Helper()
	var err error
	if s.server, err = protocol.NewServer(s.settled.Config(number)); err != nil {
		s.Fatal(err)
	}
	for i := range s.links {
		s.send(i, link.NumberFrame(link.KindJoin, number))
	}
	return s.take() && s.end()
}

// begin begins a round of the job. The broadcast leaves with its messages if cast says so.
func (s *script) begin(round uint64, cast bool) {
	s.Helper()
	s.casts++
	b := &link.Broadcast{Round: round, Fresh: [32]byte{s.casts},
		Model: make(link.Floats[float64], 5)}
	if err := b.Settle(); err != nil {
		s.Fatal(err)
	}
	if _, err := s.server.BeginDigest(b.Digest); err != nil {
		s.Fatal(err)
	}
	if !cast {
		b = nil
	}
	s.push(b)
}

// of waits for a frame of party 0. Those of others are given to the session.
func (s *script) of(kind byte) []byte {
	s.Helper()
	for {
		in, ok := s.next()
		if !ok {
			s.Fatalf("no frame of kind %d comes", kind)
		}
		if in.frame[0] == link.KindMessage {
			_ = s.server.Receive(in.party, in.frame[1:])
		}
		if in.party == 0 {
			if in.frame[0] != kind {
				s.Fatalf("a frame of kind %d, want %d", in.frame[0], kind)
			}
			return in.frame[1:]
		}
	}
}

// order is the order in which a party stores and sends.
type order struct {
	mutex  sync.Mutex
	writes int
	fails  int // the write that fails; 0: none
	saved  bool
	sent   map[string]bool
	errors []string
}

var errDisk = errors.New("the disk is full")

func (o *order) write(state bool) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.writes++
	if o.fails > 0 && o.writes >= o.fails {
		return errDisk
	}
	o.saved = o.saved || state
	return nil
}

// orderedStore tells of what is written.
type orderedStore struct {
	MemoryStore
	*order
}

func (s *orderedStore) Save(state []byte) error {
	if err := s.write(true); err != nil {
		return err
	}
	return s.MemoryStore.Save(state)
}

func (s *orderedStore) Put(name string, long io.WriterTo) error {
	if err := s.write(false); err != nil {
		return err
	}
	return s.MemoryStore.Put(name, long)
}

// orderedDialer tells of what is sent.
type orderedDialer struct {
	Dialer
	*order
}

type orderedLink struct {
	Link
	*order
}

func (d orderedDialer) Dial(ctx context.Context) (Link, error) {
	conn, err := d.Dialer.Dial(ctx)
	return orderedLink{conn, d.order}, err
}

func (l orderedLink) Send(ctx context.Context, out []byte) error {
	if out[0] == link.KindMessage {
		l.mutex.Lock()
		if !l.sent[string(out)] {
			l.sent[string(out)] = true
			if !l.saved {
				l.errors = append(l.errors, fmt.Sprintf("a message of type %d leaves unsaved", out[2]))
			}
			l.saved = false
		}
		l.mutex.Unlock()
	}
	return l.Link.Send(ctx, out)
}

// What a party makes is stored before it leaves. A store that fails ends the party with its
// error, and nothing leaves any more.
func TestParticipantSavesFirst(t *testing.T) {
	writes := 1
	for fails := 0; fails <= writes; fails++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		s := newScript(t, ctx)
		o := &order{fails: fails, sent: make(map[string]bool)}
		p := s.participant(0, &orderedStore{order: o})
		p.Dialer = orderedDialer{p.Dialer, o}
		ended := make(chan error, 1)
		go func() {
			_, err := p.Run(ctx)
			ended <- err
		}()
		s.accept()
		s.others()
		goesOn := s.form(1)
		for round := uint64(1); goesOn && round <= 2; round++ {
			s.begin(round, true)
			goesOn = s.take() && s.end() && s.end()
			if goesOn {
				if _, err := s.server.Sum(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if goesOn != (fails == 0) {
			t.Errorf("write %d fails: the job goes on %v", fails, goesOn)
		}
		if fails == 0 {
			writes = o.writes
			cancel()
		}
		if err := <-ended; fails > 0 && (!errors.Is(err, errDisk) || o.writes != fails) {
			t.Errorf("write %d of %d fails: %v", fails, o.writes, err)
		}
		cancel()
		for _, e := range o.errors {
			t.Errorf("write %d fails: %s", fails, e)
		}
	}
	if writes < 8 {
		t.Errorf("%d writes", writes)
	}
}

// A party that comes back says what it has, and sends its submission again as it was, if it
// kept one. A round that it has answered it is not asked for again.
func TestParticipantComesBack(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := newScript(t, ctx)
	store := new(MemoryStore)
	events := make(chan Event, 64)
	works := make(chan uint64, 16)
	party := func() (stop func() error) {
		p := s.participant(0, store)
		p.Progress = func(e Event) { events <- e }
		work := bare(p.Work)
		p.Work = vectors(func(ctx context.Context, round uint64, model []float64) ([]float64, error) {
			works <- round
			return work(ctx, round, model)
		})
		stop = s.run(p)
		s.accept()
		return stop
	}
	stop := party()
	s.others()
	if !s.form(1) {
		t.Fatal("no session")
	}
	s.begin(1, true)
	first := s.of(link.KindMessage)
	_ = stop()
	<-works

	stop = party()
	if h := s.hellos[0]; h.Least != 2 || !slices.Equal(h.Sessions, []uint64{1}) {
		t.Errorf("it comes back with least %d, sessions %v", h.Least, h.Sessions)
	}
	for in, ok := s.next(); ; in, ok = s.next() { // the end of its connection, and what others send
		if ok && in.party == 0 {
			if !bytes.Equal(in.frame, link.NewFrame(link.KindMessage, first)) {
				t.Errorf("another submission: %d bytes", len(in.frame))
			}
			break
		}
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
	_ = stop()

	// What is not what was kept does not leave.
	if err := store.Put(drive.SubmissionName, bytes.NewReader([]byte("something else"))); err != nil {
		t.Fatal(err)
	}
	for len(events) > 0 {
		<-events
	}
	stop = party()
	for e := range events {
		if e.Kind == host.Absent {
			if !errors.Is(e.Err, ErrStore) || e.Session != 1 {
				t.Errorf("%v", e)
			}
			break
		}
	}

	// A coordinator that begins anew does not get the round again, nor work for it.
	for !s.form(2) { // the ends of connections
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
	s.begin(1, true)
	var said link.Absence
	if err := json.Unmarshal(s.of(link.KindAbsent), &said); err != nil || said.Absent != 1 ||
		said.Told != 1 || said.Why != string(drive.Guarded) {
		t.Errorf("%+v, %v", said, err)
	}
	if len(works) > 0 {
		t.Errorf("it works for round %d", <-works)
	}
	_ = stop()
}

// A round that is asked for again without its broadcast is of that broadcast all the same.
func TestParticipantAskedAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := newScript(t, ctx)
	p := s.participant(0, nil)
	work, times := bare(p.Work), 0
	p.Work = vectors(func(ctx context.Context, round uint64, model []float64) ([]float64, error) {
		if times++; times == 1 {
			return nil, errors.New("not yet")
		}
		return work(ctx, round, model)
	})
	s.run(p)
	s.accept()
	s.others()
	if !s.form(1) {
		t.Fatal("no session")
	}
	s.begin(1, true)
	var said link.Absence
	if err := json.Unmarshal(s.of(link.KindAbsent), &said); err != nil || said.Absent != 1 ||
		said.Why != string(drive.NoVector) {
		t.Errorf("%+v, %v", said, err)
	}
	s.push(nil)
	s.of(link.KindMessage)
	if !s.take() || times != 2 {
		t.Errorf("it works %d times, and %v are missing", times, s.server.Missing())
	}
}

// What a party agrees to is the job's: its rounds, and its budget, which they use up.
func TestLimits(t *testing.T) {
	plan := testJob()
	plan.Privacy.Noise, plan.Privacy.Epsilon = "discrete-gaussian", 1
	j := newJob(t, plan, 7)
	limits, err := j.settled.Limits(nil)
	if err != nil || limits.Rounds != 6 || limits.Ledger == nil {
		t.Fatalf("%+v, %v", limits, err)
	}
	limits.Rounds, limits.Submissions = 9, 9
	guard, err := drive.NewGuard(limits, 0)
	if err != nil {
		t.Fatal(err)
	}
	for round := uint64(1); round <= 6; round++ {
		if err := guard.Charge(round); err != nil {
			t.Error(err)
		}
	}
	if err := guard.Charge(7); !errors.Is(err, accounting.ErrBudget) {
		t.Errorf("a seventh round: %v", err)
	}
}

// A party that has lost its state, and says how many rounds are spent, submits in none of them.
func TestParticipantSpent(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := newScript(t, ctx)
	p := s.participant(0, nil)
	p.Lost = &Lost{Rounds: 2, Number: 2}
	s.run(p)
	s.accept()
	s.others()
	for session := uint64(2); session <= 3; session++ {
		if !s.form(session) {
			t.Fatal("no session")
		}
		s.begin(session, true) // the round of that number too
		if session == 3 {
			s.of(link.KindMessage)
			break
		}
		var said link.Absence
		if err := json.Unmarshal(s.of(link.KindAbsent), &said); err != nil || said.Absent != 2 ||
			said.Told != 0 || said.Why != string(drive.Guarded) {
			t.Errorf("%+v, %v", said, err)
		}
	}
}
