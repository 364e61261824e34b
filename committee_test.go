package hushsum

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/link"
	"github.com/hushsum/hushsum/oneshot"
)

// openings makes openings of rounds with a committee that is all there.
type openings struct {
	*committeeJob
	ctx     context.Context
	server  *oneshot.Server
	members []*oneshot.Member
}

func newOpenings(t *testing.T) *openings {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	o := &openings{committeeJob: newCommitteeJob(t, oneshotJob(), 5, 5), ctx: ctx}
	var err error
	if o.server, err = oneshot.NewServer(o.settled.Oneshot(), 0); err != nil {
		t.Fatal(err)
	}
	for _, signer := range o.committeeJob.members {
		m, err := oneshot.NewMember(o.settled.Oneshot(), signer, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.members = append(o.members, m)
	}
	return o
}

// open opens the next round and returns the frames that say so.
func (o *openings) open() [][]byte {
	o.Helper()
	invite := o.server.Invite()
	for _, m := range o.members {
		key, err := m.Receive(invite)
		if err == nil {
			err = o.server.Receive(key)
		}
		if err != nil {
			o.Fatal(err)
		}
	}
	b := link.Broadcast{Round: o.server.Round(), Model: make(link.Floats[float64], 5)}
	began := bytesOf(o, &b)
	opening, err := o.server.Open(began)
	if err != nil {
		o.Fatal(err)
	}
	return [][]byte{
		link.NewFrame(link.KindBroadcast, began),
		link.NewFrame(link.KindMessage, opening),
	}
}

// running is a party or member that takes part, and the coordinator's end of its link.
type running struct {
	*openings
	link   Link
	ended  chan error
	cancel context.CancelFunc
	events chan Event
	took   chan []byte // messages that have come, each after it was offered
}

func (o *openings) start(network *Memory, run func(context.Context, func(Event)) error) *running {
	o.Helper()
	ctx, cancel := context.WithCancel(o.ctx)
	r := &running{
		openings: o,
		ended:    make(chan error, 1),
		cancel:   cancel,
		events:   make(chan Event, 64),
		took:     make(chan []byte, 64),
	}
	go func() { r.ended <- run(ctx, func(e Event) { r.events <- e }) }()
	var err error
	if _, r.link, err = network.Accept(o.ctx); err != nil {
		o.Fatal(err)
	}
	if in, err := r.link.Receive(o.ctx); err != nil || in[0] != link.KindHello {
		o.Fatal(err)
	}
	go r.take()
	return r
}

// party starts party 0.
func (o *openings) party(p *Participant[float64]) *running {
	return o.start(o.memory, func(ctx context.Context, report func(Event)) error {
		one := *p
		one.Progress = report
		_, err := one.Run(ctx)
		return err
	})
}

// member starts member 0.
func (o *openings) member(m *Member) *running {
	return o.start(o.network, func(ctx context.Context, report func(Event)) error {
		one := *m
		one.Progress = report
		return one.Run(ctx)
	})
}

func (r *running) send(frames ...[]byte) {
	for _, f := range frames {
		_ = r.link.Send(r.ctx, f)
	}
}

// stop ends the process.
func (r *running) stop() error {
	r.cancel()
	return <-r.ended
}

// take takes what comes, and has parties upload what they offer.
func (r *running) take() {
	for {
		in, err := r.link.Receive(r.ctx)
		if err != nil {
			return
		}
		switch in[0] {
		case link.KindOffer:
			_ = r.link.Send(r.ctx, link.NewFrame(link.KindUpload, in[1:]))
		case link.KindMessage:
			r.took <- in
		}
	}
}

// receive returns the next message.
func (r *running) receive() []byte {
	r.Helper()
	select {
	case in := <-r.took:
		return in
	case <-r.ctx.Done():
		r.Fatal("no message")
		return nil
	}
}

// event returns the next event of a kind.
func (r *running) event(kind host.EventKind) Event {
	r.Helper()
	for {
		select {
		case e := <-r.events:
			if e.Kind == kind {
				return e
			}
		case <-r.ctx.Done():
			r.Fatalf("no event of kind %v", kind)
		}
	}
}

// end ends the job.
func (r *running) end() error {
	b := link.Broadcast{Round: 3, Model: make(link.Floats[float64], 5)}
	began := bytesOf(r, &b)
	r.send(link.NewFrame(link.KindEnd, began))
	return <-r.ended
}

// A party of a job with a committee stores its submission before that leaves, and sends it again
// as it was. It was not absent if it has submitted in a round, also before it came back.
func TestParticipantOneshot(t *testing.T) {
	o := newOpenings(t)
	store := &orderedStore{order: &order{sent: make(map[string]bool)}}
	p := o.participant(0, store)
	p.Dialer = orderedDialer{p.Dialer, store.order}
	work := bare(p.Work)
	p.Work = vectors(func(ctx context.Context, round uint64, model []float64) ([]float64, error) {
		if round > 1 {
			return nil, errors.New("no more data")
		}
		return work(ctx, round, model)
	})
	first := o.open()
	for range 2 {
		r := o.party(p)
		if store.writes > 0 { // it comes back
			o.Log("it comes back")
			if in := r.receive(); !store.sent[string(in)] {
				t.Error("it comes back with another message")
			}
		}
		r.send(first...)
		in := r.receive()
		if in[0] != link.KindMessage || store.writes != 1 || len(store.sent) != 1 {
			t.Errorf("a frame of kind %d, %d writes, %d messages", in[0], store.writes, len(store.sent))
		}
		_ = r.stop()
	}
	for _, e := range store.errors {
		t.Error(e)
	}
	r := o.party(p)
	r.receive()
	r.send(o.open()...)
	r.event(host.Absent)
	if err := r.end(); err != nil {
		t.Errorf("a party that has submitted: %v", err)
	}
	// The same without a break.
	o = newOpenings(t)
	p.Store, p.Key, p.Dialer = nil, nil, o.memory.Dialer(0)
	p.Job = o.settled
	r = o.party(p)
	r.send(o.open()...)
	r.receive()
	r.send(o.open()...)
	r.event(host.Absent)
	if err := r.end(); err != nil {
		t.Errorf("a party that has submitted: %v", err)
	}
}

// A store that fails ends the party, and nothing leaves.
func TestParticipantOneshotStore(t *testing.T) {
	o := newOpenings(t)
	store := &orderedStore{order: &order{sent: make(map[string]bool), fails: 1}}
	p := o.participant(0, store)
	p.Dialer = orderedDialer{p.Dialer, store.order}
	r := o.party(p)
	r.send(o.open()...)
	if err := <-r.ended; !errors.Is(err, errDisk) || len(store.sent) != 0 {
		t.Errorf("%v, and %d messages have left", err, len(store.sent))
	}
}

// Rounds that a party says are spent it does not answer, nor numbers below its least.
func TestParticipantOneshotSpent(t *testing.T) {
	o := newOpenings(t)
	p := o.participant(0, nil)
	p.Lost = &Lost{Rounds: 2}
	r := o.party(p)
	for round := range uint64(2) {
		r.send(o.open()...)
		if e := r.event(host.Absent); e.Round != round+1 || !errors.Is(e.Err, drive.ErrRepeated) {
			t.Errorf("%v", e)
		}
	}
	r.send(o.open()...)
	if e := r.event(host.Submitted); e.Round != 3 {
		t.Errorf("%v", e)
	}
	r.receive()
	if err := r.end(); err != nil {
		t.Error(err)
	}
	for len(r.events) > 0 {
		if e := <-r.events; e.Kind == host.Absent {
			t.Errorf("%v", e)
		}
	}
}

// A member stores its answers before they leave, sends the last again as it was, gives the store
// free, and answers in no round that the job does not have.
func TestMember(t *testing.T) {
	o := newOpenings(t)
	store := &orderedStore{order: &order{sent: make(map[string]bool)}}
	counter := new(counter)
	m := &Member{Job: o.settled, Identity: o.committeeJob.members[0], Store: store, Key: o.key,
		Counter: counter, Dialer: orderedDialer{o.network.Dialer(0), store.order}}
	r := o.member(m)
	r.send(link.NewFrame(link.KindMessage, o.server.Invite()))
	key := r.receive()
	_ = r.stop()
	r = o.member(m)
	if again := r.receive(); !bytes.Equal(again, key) {
		t.Error("it comes back with another key")
	}
	for range 3 {
		o.server.Invite()
	}
	writes := store.writes
	r.send(link.NewFrame(link.KindMessage, o.server.Invite()))
	if e := r.event(host.Refused); !errors.Is(e.Err, drive.ErrRound) || e.Round != 5 {
		t.Errorf("%v", e)
	}
	_ = r.stop()
	if store.writes != writes || writes == 0 || len(store.sent) != 1 {
		t.Errorf("%d and then %d writes, %d messages", writes, store.writes, len(store.sent))
	}
	for _, e := range store.errors {
		t.Error(e)
	}
	// It never starts without the newest state.
	if err := store.MemoryStore.Save(nil); err != nil {
		t.Fatal(err)
	}
	if err := m.Run(o.ctx); !errors.Is(err, ErrOldState) {
		t.Errorf("without its state: %v", err)
	}
}

// A message to a member may come in parts, of no more bytes than the job's longest message has.
func TestMemberParts(t *testing.T) {
	o := newOpenings(t)
	m := &Member{Job: o.settled, Identity: o.committeeJob.members[0], Dialer: o.network.Dialer(0)}
	r := o.member(m)
	part := func(b []byte) []byte {
		return append([]byte{link.KindPart, link.KindMessage}, b...)
	}
	invite := o.server.Invite()
	r.send(part(invite[:7]), part(invite[7:9]), link.NewFrame(link.KindMessage, invite[9:]))
	if key := r.receive(); o.server.Receive(key[1:]) != nil {
		t.Errorf("an invitation in parts is answered by %x", key)
	}
	for _, frame := range [][]byte{{link.KindPart}, {link.KindPart, link.KindEnd, 1},
		part(make([]byte, maxMessage(o.settled)+1))} {
		_ = r.stop()
		r = o.member(m)
		r.send(frame)
		if e := r.event(host.Disconnected); !errors.Is(e.Err, ErrFrame) {
			t.Errorf("%.3x: %v", frame, e)
		}
	}
	_ = r.stop()
}

// What is short goes in one frame, and what is longer in parts.
func TestSendMessage(t *testing.T) {
	for length, want := range map[int]int{5: 1, 1 << 20: 1, 1<<20 + 1: 2} {
		var got []byte
		frames := 0
		body := make([]byte, length)
		body[length-1] = 7
		err := sendMessage(func(frame []byte) error {
			if frames++; frame[0] == link.KindPart {
				frame = frame[1:]
			}
			got = append(got, frame[1:]...)
			return nil
		}, body[:2], body[2:])
		if err != nil || frames != want || !bytes.Equal(got, body) {
			t.Errorf("%d bytes go in %d frames, want %d: %v", length, frames, want, err)
		}
	}
}

// A store that fails ends the member, and nothing leaves.
func TestMemberStore(t *testing.T) {
	o := newOpenings(t)
	store := &orderedStore{order: &order{sent: make(map[string]bool), fails: 1}}
	m := &Member{Job: o.settled, Identity: o.committeeJob.members[0], Store: store, Key: o.key,
		Dialer: orderedDialer{o.network.Dialer(0), store.order}}
	r := o.member(m)
	r.send(link.NewFrame(link.KindMessage, o.server.Invite()))
	if err := <-r.ended; !errors.Is(err, errDisk) || len(store.sent) != 0 {
		t.Errorf("%v, and %d messages have left", err, len(store.sent))
	}
}
