package runner

import (
	"sync"
	"time"

	"github.com/hushsum/hushsum/drive"
)

// clock is the time by which steps end. It never goes back. It stands still while the record is
// away, since parties are then sent away too; and then until those that were here are back, or have
// had the time to come. Times in the record are of this clock.
type clock struct {
	time  func() time.Time
	mutex sync.Mutex
	began time.Time
	since time.Time     // it stands still; zero: it goes
	back  time.Time     // the record is there again; zero: it is away, or was not
	stood time.Duration // in all, until since

	writes time.Time // a decision has been on its way to the record since then; zero: none is
}

func (c *clock) now() drive.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.since
	if now.IsZero() {
		now = c.time()
	}
	return drive.Time(c.began.UnixNano()) + drive.Time(now.Sub(c.began)-c.stood)
}

// stands has the clock stand still, as the record goes away, or notes that the record is back.
func (c *clock) stands(away bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case away && c.since.IsZero() && c.writes.IsZero():
		c.since = c.time()
	case away && c.since.IsZero(): // nothing was seen or done since
		c.since = c.writes
	case !away && !c.since.IsZero() && c.back.IsZero():
		c.back = c.time()
	}
	if away {
		c.back = time.Time{}
	}
}

// writing notes that a decision is on its way to the record, until the caller calls written. The
// time of one of which a write has failed at first does not count.
func (c *clock) writing() (written func()) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.writes = c.time()
	return func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if took := c.time().Sub(c.writes); took > tooSlow && c.since.IsZero() {
			c.stood += took
		}
		c.writes = time.Time{}
	}
}

// comeBack is how long parties take to come back, at most.
const comeBack = time.Duration(drive.DefaultComeBack)

// tooSlow is how long a decision takes, at least, of which a write has failed at first.
const tooSlow = 3 * time.Second

// goes has a clock that stands still go on, once the record is back and present says that everybody
// is who was here before, or comeBack later. It returns after how long it goes on at the latest, if
// it stands still.
func (c *clock) goes(present func(back time.Time) bool) (most time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case c.since.IsZero():
		return 0
	case c.back.IsZero():
		return time.Hour // not before the record is back
	}
	now := c.time()
	if most = comeBack - now.Sub(c.back); most > 0 && !present(c.back) {
		return most
	}
	c.stood += now.Sub(c.since)
	c.since, c.back = time.Time{}, time.Time{}
	return 0
}

// still reports whether the clock stands still.
func (c *clock) still() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return !c.since.IsZero()
}

// shown returns a time of the clock as people see it, if it is of a step that is under way.
func (c *clock) shown(t drive.Time) time.Time {
	return time.Unix(0, int64(t)).Add(c.standstill()).UTC()
}

// standstill returns how long the clock has stood still until now.
func (c *clock) standstill() time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	stood := c.stood
	if !c.since.IsZero() {
		stood += c.time().Sub(c.since)
	}
	return stood
}

// Away tells the runner that the record takes no decisions, or that it does again. Meanwhile no
// step ends because its time is over, and nobody counts as gone.
func (r *Runner) Away(away bool) {
	r.clock.stands(away)
	if !away {
		r.Poke()
	}
}

// goes has the clock go on if it may, and then the waits of steps begin anew: nobody could do
// anything. It returns what [clock.goes] does.
func (r *Runner) goes() (most time.Duration) {
	stood := r.clock.still()
	if most = r.clock.goes(r.present); stood && most == 0 {
		r.drive.Again(r.now())
	}
	r.timeSteps()
	r.sayLacks()
	return most
}

// present reports whether all that were here before the record went away ask what is next, or have
// been heard of since it is back. The caller holds the lock.
func (r *Runner) present(back time.Time) bool {
	absent := func(p Peer) bool {
		return r.drive.At(p).Here && r.peer(p).heard.Before(back) && !r.host.Asks(p)
	}
	for i := range r.parties {
		if absent(Peer{Index: i}) {
			return false
		}
	}
	for k := range r.members {
		if absent(Peer{Index: k, Member: true}) {
			return false
		}
	}
	return true
}
