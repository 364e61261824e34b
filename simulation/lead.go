package simulation

import (
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/simulation/clock"
)

// lead carries in virtual time what a lead of package drive decides: a [hub] that of a pairwise
// sum, a [committee] that of a one-message sum. Rounds follow each other as the federation has
// them: the job is paused from when a round has begun until the federation's next, and a sum is
// applied when everybody has the model that it makes.
type lead struct {
	run    *timed
	as     carrier
	place  string
	server drive.Lead
	busy   bool // with what was decided
	closed bool
	wake   *clock.Event

	// Of the round.
	begun bool
	apply *drive.Apply
	lost  error
	done  time.Duration // when it had the sum
}

// carrier is how the messages of a protocol are carried.
type carrier interface {
	// work stores what has to be, and says how long the server works for what it has decided.
	work(was, is drive.Status, ready drive.Prepared) (time.Duration, error)
	notice(n drive.Notice)
	// decided takes orders; next says that a stage has begun.
	decided(orders drive.Orders, next bool)
	pump()  // sends what is new
	after() // goes on when a decision is carried out
}

// Rounds follow each other as the federation has them.
var (
	untilNext = drive.Order{Do: drive.Pause, Why: "until the scenario's next round"}
	toNext    = drive.Order{Do: drive.Resume, Why: "the scenario's next round"}
)

// over reports whether there is a sum of the round, or will be none.
func (l *lead) over() bool { return l.apply != nil || l.lost != nil }

// next has the job go on to the federation's next round.
func (l *lead) next() {
	l.apply, l.lost, l.done = nil, nil, 0
	if l.server.Status().Paused {
		l.server.Order(l.run.now(), toNext)
	}
}

// answer tells the server that the round's sum is applied, or why it is not.
func (l *lead) answer(err error) {
	if l.apply != nil {
		l.server.Applied(l.run.now(), l.apply.Round, err)
	}
}

// close has nothing happen any more.
func (l *lead) close() {
	l.run.clock.Cancel(l.wake)
	l.closed = true
}

// proceed does what is due, as a carrier does. What a decision takes the server to work is between
// the decision and what follows from it.
func (l *lead) proceed() {
	r := l.run
	for !l.busy && !l.closed && r.failure == nil {
		was := l.server.Status()
		if err := l.server.Tick(r.now()); err != nil {
			r.fail(err)
			return
		}
		ready, decided := l.server.Ready()
		if !decided {
			l.as.pump()
			l.sleep()
			return
		}
		is := l.server.Status()
		took, err := l.as.work(was, is, ready)
		if err != nil {
			r.fail(err)
			return
		}
		next := is.Stage != was.Stage
		if took == 0 {
			l.advance(ready.Notices, next)
			continue
		}
		l.busy = true
		r.clock.After(took, func() {
			l.busy = false
			if !l.closed {
				l.advance(ready.Notices, next)
				l.proceed()
			}
		})
		return
	}
}

// advance lets go what was decided.
func (l *lead) advance(notices []drive.Notice, next bool) {
	open := !l.begun && !l.over()
	orders := l.server.Advance(l.run.now())
	for _, n := range notices {
		switch n.Kind {
		case drive.Lost:
			l.lost, l.done = n.Err, l.run.clock.Now()
		case drive.Short:
			l.run.course.note("%v", n.Err)
		default:
			l.as.notice(n)
		}
	}
	l.as.decided(orders, next)
	l.as.pump() // before the pause, which nothing leaves in
	if open && (l.begun || l.over()) {
		l.server.Order(l.run.now(), untilNext)
	}
	if orders.Apply != nil {
		l.apply, l.done = orders.Apply, l.run.clock.Now()
	}
	l.as.after()
}

// sleep has something happen when it is due.
func (l *lead) sleep() {
	l.run.clock.Cancel(l.wake)
	l.wake = nil
	if wake := l.server.Wake(); wake != drive.Never {
		l.wake = l.run.clock.After(max(time.Duration(wake-l.run.now()), 1), l.proceed)
	}
}
