package host

import (
	"context"
	"errors"
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

// ErrStopped: this leader leads no more, and hands nothing out; ask the one that leads now.
var ErrStopped = errors.New("host: this leader has stopped; ask the one that leads now")

// Options configure a [Leader], which calls all of them but Next under its lock.
type Options struct {
	Lead   drive.Lead
	Record Record            // nil: nothing is kept
	Clock  func() drive.Time // of Lead
	// Next makes the next model of a round's sum, next to the loop, one at a time. adopt makes that
	// model the one that rounds begin with; the loop calls it. It returns why the job ends with that
	// model, "" if the job goes on.
	Next func(a *drive.Apply) (adopt func() (end string), err error)
	// Watch is shown what has happened, once it is durable; may be nil.
	Watch func(n drive.Notice)
	// Note is shown what was decided before it is saved, so that Record can save what follows from
	// it, and returns what to do once it is durable; may be nil.
	Note func(decided []drive.Notice) (durable func())
	// Left says, of a job that is paused or has ended, for how long peers may still come and hear of
	// it. Run returns once that is over; nil: it never does for that reason.
	Left func(s drive.Status) time.Duration
	// Stands is asked, before anything is decided, for how long at most Clock stands still, if it
	// does: nothing comes due before that. nil: Clock never does.
	Stands func() (most time.Duration)
	// Pass is asked between rounds, when all that was decided is durable. If it returns an error Run
	// ends with that, as it does with a context's; nil: Run never ends for that reason.
	Pass func() error
	// Room is how many bytes may be on their way to parties, and as many to members, that are made
	// for one peer each: the messages of a large roster are not made at once. One message may be
	// longer.
	Room int
}

// Leader leads a job. It is safe for concurrent use.
type Leader struct {
	Options
	lock    chan struct{} // holds one token while free
	crowd   chan struct{} // likewise, of parties: one at a time waits for the lock
	wake    chan struct{}
	applied chan applied  // at most one model at a time is made
	stopped chan struct{} // closed by Stop
	why     error         // of Stop
	ended   bool          // by Stop: the lock stays taken
	stands  time.Duration // what Stands returned last
	running sync.WaitGroup
	peers   map[drive.Peer]*peer
	rooms   map[bool]*room // of messages to parties, and to members
}

// applied holds the outcome of a sum.
type applied struct {
	round uint64
	adopt func() (end string)
	err   error
}

const (
	shortestSleep = time.Millisecond // keeps the loop from asking the time over and over
	longestSleep  = time.Hour
	lastSave      = 5 * time.Second // that a leader's last save may take
)

// NewLeader makes the leader of a job. Call Run.
func NewLeader(o Options) *Leader {
	l := &Leader{
		Options: o,
		lock:    make(chan struct{}, 1),
		crowd:   make(chan struct{}, 1),
		wake:    make(chan struct{}, 1),
		applied: make(chan applied, 1),
		stopped: make(chan struct{}),
		peers:   make(map[drive.Peer]*peer),
		rooms:   make(map[bool]*room),
	}
	for _, members := range []bool{false, true} {
		l.rooms[members] = &room{most: o.Room, stopped: l.stopped}
	}
	l.lock <- struct{}{}
	l.crowd <- struct{}{}
	return l
}

// Run leads until the job is over, the context ends, Pass has it end, or something fails: then with
// that error. What is held is saved before Run ends with the context or for Pass, so that whoever
// has sent it is not asked again. Nothing is handed out after Run has returned, whoever waits hears
// [ErrStopped], and Run returns only when Next has.
func (l *Leader) Run(ctx context.Context) error {
	defer l.running.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-l.wake:
		case <-l.stopped:
		}
		if l.take(context.Background()) != nil {
			return l.why
		}
		err, over, sleep := ctx.Err(), false, longestSleep
		if err != nil {
			err = l.last(err)
		} else if err = l.proceed(ctx, l.Pass); err == nil {
			sleep, over = l.sleep()
		}
		if err != nil || over {
			l.Stop(err)
			return err
		}
		timer.Reset(max(sleep, shortestSleep))
		l.give()
	}
}

// sleep returns for how long nothing is due, or that the job is over.
func (l *Leader) sleep() (sleep time.Duration, over bool) {
	sleep = longestSleep
	if l.stands > 0 {
		sleep = min(sleep, l.stands)
	} else if at := l.Lead.Wake(); at != drive.Never {
		sleep = min(sleep, time.Duration(at-l.Clock()))
	}
	if s := l.Lead.Status(); l.Left != nil && (s.Paused || s.Ended != "") {
		left := l.Left(s)
		return min(sleep, left), left <= 0
	}
	return sleep, false
}

// Stop has Run end with an error. From then on nobody is handed anything, and nothing is heard.
// Call it where the lock is held: within Do or With, or in one of the [Options].
func (l *Leader) Stop(why error) {
	if !l.ended {
		l.ended, l.why = true, why
		close(l.stopped)
	}
}

// Stopped is closed once the leader has stopped: whoever waits for Run from within Next waits for
// that.
func (l *Leader) Stopped() <-chan struct{} { return l.stopped }

// last saves what is held, and returns why the leader stops.
func (l *Leader) last(why error) error {
	l.Lead.Keep()
	ready, _ := l.Lead.Ready()
	ctx, cancel := context.WithTimeout(context.Background(), lastSave)
	defer cancel()
	durable, err := l.save(ctx, ready)
	if err != nil {
		return err
	}
	durable()
	return why
}

// adopt takes the next model, or why there is none.
func (l *Leader) adopt() {
	select {
	case a := <-l.applied:
		end := ""
		if a.err == nil {
			end = a.adopt()
		}
		l.Lead.Applied(l.Clock(), a.round, a.err)
		if end != "" {
			l.Lead.Order(l.Clock(), drive.Order{Do: drive.End, Why: end})
		}
	default:
	}
}

// proceed has all decided that is due.
func (l *Leader) proceed(ctx context.Context, pass func() error) error {
	if l.Stands != nil {
		l.stands = l.Stands()
	}
	l.adopt()
	for {
		if pass != nil && l.rests() {
			if why := pass(); why != nil {
				return l.last(why)
			}
		}
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

// rests reports whether no round is open, no session forms, and nothing decided is unsaved.
func (l *Leader) rests() bool {
	if _, some := l.Lead.Ready(); some {
		return false
	}
	resting := func(s drive.Stage) bool { return s == 0 || s == drive.Resting }
	s := l.Lead.Status()
	return s.Ended != "" || resting(s.Stage) && resting(s.Next.Stage)
}

// save makes what was decided durable, and returns what to do then.
func (l *Leader) save(ctx context.Context, ready drive.Prepared) (durable func(), err error) {
	durable = func() {}
	if l.Note != nil {
		durable = l.Note(ready.Notices)
	}
	if ready.Save && l.Record != nil {
		err = l.Record.Save(ctx, l.Lead)
	}
	return durable, err
}

// follow saves what was decided, and lets go what follows from it.
func (l *Leader) follow(ctx context.Context, ready drive.Prepared) error {
	durable, err := l.save(ctx, ready)
	if err != nil {
		return err
	}
	orders := l.Lead.Advance(l.Clock())
	durable()
	for _, n := range ready.Notices {
		if l.Watch != nil {
			l.Watch(n)
		}
	}
	if a := orders.Apply; a != nil {
		l.running.Go(func() {
			adopt, err := l.Next(a)
			l.applied <- applied{a.Round, adopt, err}
			l.Poke()
		})
	}
	switch {
	case ready.Save:
		l.tellAll()
	case orders.Tell: // among thousands, the few that it concerns
		for _, i := range orders.Upload {
			l.tell(drive.Peer{Index: i})
		}
	}
	return nil
}

// Poke has the loop look whether anything is due.
func (l *Leader) Poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take takes the lock. It fails with the context's error, or with [ErrStopped].
func (l *Leader) take(ctx context.Context) error {
	select {
	case <-l.lock:
		return nil
	case <-l.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeFor is take for a peer. Of thousands of parties one at a time waits for the lock, so that no
// other is ahead of a member, of the loop, or of an operator.
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

// give gives the lock back, but for that of a leader that has stopped.
func (l *Leader) give() {
	if !l.ended {
		l.lock <- struct{}{}
	}
}

// With calls a function under the lock, in a peer's turn, and does not have the loop look: see
// Poke. It fails with the function's error, with the context's, or with [ErrStopped].
func (l *Leader) With(
	ctx context.Context, p drive.Peer, do func(lead drive.Lead, now drive.Time) error,
) error {
	if err := l.takeFor(ctx, p); err != nil {
		return err
	}
	defer l.give()
	return do(l.Lead, l.Clock())
}

// nobody's turn is the next, as that of a member.
var nobody = drive.Peer{Member: true}

// Do has something happen to the job, in nobody's turn, and then has the loop look. It fails with
// the context's error, or with [ErrStopped].
func (l *Leader) Do(ctx context.Context, do func(lead drive.Lead, now drive.Time)) error {
	err := l.With(ctx, nobody, func(lead drive.Lead, now drive.Time) error {
		do(lead, now)
		return nil
	})
	if err == nil {
		l.Poke()
	}
	return err
}

// Decide is Do for what has to be decided, and durable, before it returns, whether or not the
// context ends meanwhile; afterwards, unless it is nil, then is called, under the same lock. Where
// any of that fails the leader stops, and Decide and Run return why. An error of do refuses: Decide
// returns it, and nothing else happens.
func (l *Leader) Decide(ctx context.Context, do func(lead drive.Lead, now drive.Time) error,
	then func(ctx context.Context) error,
) error {
	defer l.Poke()
	return l.With(ctx, nobody, func(lead drive.Lead, now drive.Time) error {
		if err := do(lead, now); err != nil {
			return err
		}
		ctx := context.WithoutCancel(ctx)
		err := l.proceed(ctx, nil)
		if err == nil && then != nil {
			err = then(ctx)
		}
		if err != nil {
			l.Stop(err)
		}
		return err
	})
}
