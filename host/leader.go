package host

import (
	"context"
	"sync"
	"time"

	"github.com/hushsum/hushsum/drive"
)

// Record keeps what must not be lost.
type Record interface {
	// Save makes what lead.Save returns durable: the objects that are new, then the state, which
	// names them. Objects that no state needs may go afterwards. After an error nothing may follow.
	Save(ctx context.Context, lead drive.Lead) error
}

// Options configure a [Leader].
type Options struct {
	Lead   drive.Lead
	Record Record            // nil: nothing is kept
	Clock  func() drive.Time // of Lead
	// Next makes the next model of a round's sum, next to the loop, one at a time. adopt makes that
	// model the one that rounds begin with; the loop calls it. It returns why the job ends with that
	// model, "" if the job goes on.
	Next func(a *drive.Apply) (adopt func() (end string), err error)
	// Watch is shown what has happened, once it is durable.
	Watch func(n drive.Notice)
	// Left says, of a job that is paused or has ended, for how long peers may still come and hear of
	// it. Run returns once that is over.
	Left func(s drive.Status) time.Duration
	// Room is how many bytes may be on their way to peers that are made for one peer each: the
	// messages of a large roster are not made at once. One message may be longer.
	Room int
}

// Leader leads a job. It is safe for concurrent use.
type Leader struct {
	Options
	lock    chan struct{} // holds one token while free
	crowd   chan struct{} // likewise, of parties: one at a time waits for the lock
	wake    chan struct{}
	applied chan applied
	running sync.WaitGroup
	news    map[drive.Peer]chan struct{} // closed when there is something new for a peer that waits
	room    room
}

// applied holds the outcome of a sum.
type applied struct {
	round uint64
	adopt func() (end string)
	err   error
}

// shortestSleep keeps the loop from asking the time over and over.
const shortestSleep = time.Millisecond

// NewLeader makes the leader of a job. Call Run.
func NewLeader(o Options) *Leader {
	l := &Leader{
		Options: o,
		lock:    make(chan struct{}, 1),
		crowd:   make(chan struct{}, 1),
		wake:    make(chan struct{}, 1),
		applied: make(chan applied, 1),
		news:    make(map[drive.Peer]chan struct{}),
		room:    room{most: o.Room},
	}
	l.lock <- struct{}{}
	l.crowd <- struct{}{}
	return l
}

// Run leads until the job is over, the context ends, or something fails: then with that error.
// What is held is saved before Run ends with the context, so that whoever has sent it is not asked
// again. Nothing is handed out after Run has returned, and Run returns only when Next has.
func (l *Leader) Run(ctx context.Context) error {
	defer l.running.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var done *applied
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-l.wake:
		case a := <-l.applied:
			done = &a
		}
		<-l.lock // which stays taken when Run returns
		if err := ctx.Err(); err != nil {
			return l.stop(err)
		}
		l.adopt(done)
		if err := l.proceed(ctx); err != nil {
			return err
		}
		sleep := time.Hour
		if at := l.Lead.Wake(); at != drive.Never {
			sleep = min(sleep, time.Duration(at-l.Clock()))
		}
		if s := l.Lead.Status(); s.Paused || s.Ended != "" {
			left := l.Left(s)
			if left <= 0 {
				return nil
			}
			sleep = min(sleep, left)
		}
		timer.Reset(max(sleep, shortestSleep))
		l.lock <- struct{}{}
	}
}

// stop saves what is held, and returns why the leader stops.
func (l *Leader) stop(why error) error {
	l.Lead.Keep()
	if ready, _ := l.Lead.Ready(); ready.Save && l.Record != nil {
		if err := l.Record.Save(context.Background(), l.Lead); err != nil {
			return err
		}
	}
	return why
}

// adopt takes the next model, or why there is none.
func (l *Leader) adopt(a *applied) {
	if a == nil {
		return
	}
	end := ""
	if a.err == nil {
		end = a.adopt()
	}
	l.Lead.Applied(l.Clock(), a.round, a.err)
	if end != "" {
		l.Lead.Order(l.Clock(), drive.Order{Do: drive.End, Why: end})
	}
}

// proceed has all decided that is due.
func (l *Leader) proceed(ctx context.Context) error {
	for {
		if err := l.Lead.Tick(l.Clock()); err != nil {
			return err
		}
		ready, some := l.Lead.Ready()
		if !some {
			return nil
		}
		if err := l.follow(ctx, ready); err != nil {
			return err
		}
	}
}

// follow saves what was decided, and lets go what follows from it.
func (l *Leader) follow(ctx context.Context, ready drive.Prepared) error {
	if ready.Save && l.Record != nil {
		if err := l.Record.Save(ctx, l.Lead); err != nil {
			return err
		}
	}
	orders := l.Lead.Advance(l.Clock())
	for _, n := range ready.Notices {
		l.Watch(n)
	}
	if a := orders.Apply; a != nil {
		l.running.Go(func() {
			adopt, err := l.Next(a)
			l.applied <- applied{a.Round, adopt, err}
		})
	}
	switch {
	case ready.Save:
		for p := range l.news {
			l.tell(p)
		}
	case orders.Tell: // among thousands, the few that it concerns
		for _, i := range orders.Upload {
			l.tell(drive.Peer{Index: i})
		}
	}
	return nil
}

// tell has the connections of a peer look again.
func (l *Leader) tell(p drive.Peer) {
	if news := l.news[p]; news != nil {
		close(news)
		delete(l.news, p)
	}
}

// take takes the lock. It fails with the context's error.
func (l *Leader) take(ctx context.Context) error {
	select {
	case <-l.lock:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeFor is take for a peer that is handed something. Of thousands of parties one at a time waits
// for the lock, so that no other is ahead of a member, of the loop, or of what is heard.
func (l *Leader) takeFor(ctx context.Context, p drive.Peer) error {
	if !p.Member {
		select {
		case <-l.crowd:
			defer func() { l.crowd <- struct{}{} }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return l.take(ctx)
}

// Do has something happen to the job, and then has the loop look. It fails with the context's
// error.
func (l *Leader) Do(ctx context.Context, do func(lead drive.Lead, now drive.Time)) error {
	if err := l.take(ctx); err != nil {
		return err
	}
	do(l.Lead, l.Clock())
	l.lock <- struct{}{}
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return nil
}

// Pending waits until there is something for a peer that its connection has not had, and calls
// hand with it, under the lock. had has the names of what the connection was handed and is pending
// still. Call sent once the item is sent or cannot be sent: its room is taken until then. Pending
// fails with the context's error.
func (l *Leader) Pending(ctx context.Context, p drive.Peer, had map[string]bool,
	hand func(item drive.Item, s drive.Status),
) (sent func(), err error) {
	for {
		size, err := l.room.take(ctx)
		if err != nil {
			return nil, err
		}
		if err := l.takeFor(ctx, p); err != nil {
			l.room.give(size)
			return nil, err
		}
		if l.room.short(size) { // others were handed longer ones since
			l.lock <- struct{}{}
			l.room.give(size)
			continue
		}
		item, found := first(l.Lead.Pending(p), had)
		if found {
			size = l.room.fill(size, len(item.Own))
			hand(item, l.Lead.Status())
		}
		news := l.news[p]
		if !found && news == nil {
			news = make(chan struct{})
			l.news[p] = news
		}
		l.lock <- struct{}{}
		if found {
			return func() { l.room.give(size) }, nil
		}
		l.room.give(size)
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// first returns the first item that a connection has not had, and notes it there. What it has had
// and is not pending any more is forgotten.
func first(pending func(yield func(drive.Item) bool), had map[string]bool) (drive.Item, bool) {
	before := make(map[string]bool)
	for item := range pending {
		if !had[item.Name] {
			had[item.Name] = true
			return item, true
		}
		before[item.Name] = true
	}
	for name := range had {
		if !before[name] {
			delete(had, name)
		}
	}
	return drive.Item{}, false
}

// Crowded reports whether somebody waits for room that others take.
func (l *Leader) Crowded() bool { return l.room.crowded() }
