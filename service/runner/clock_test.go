package runner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/drive"
)

// A clock stands still from the first failure of the record until it is back, and then until all
// are back who were here, or had the time to come; it does so from the beginning of a write that
// fails, also of one that succeeds late.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock{began: time.Now(), time: time.Now}
		back := false
		present := func(time.Time) bool { return back }
		went := func(what string, after, want time.Duration) {
			t.Helper()
			was := c.now()
			time.Sleep(after)
			c.goes(present)
			if got := time.Duration(c.now() - was); got != want {
				t.Errorf("%s: in %v it goes on by %v, want %v", what, after, got, want)
			}
		}
		const s = time.Second
		went("at first", 5*s, 5*s)
		c.stands(false)
		went("nothing was away", 5*s, 5*s)
		c.stands(true)
		went("the record is away", 60*s, 0)
		c.stands(true)
		c.stands(false)
		went("parties are not back", comeBack-s, 0)
		c.stands(false)
		went("they had the time to come", s, 0)
		went("it goes again", 7*s, 7*s)
		c.stands(true)
		c.stands(false)
		went("the record is back", s, 0)
		c.stands(true)
		went("and away again", 60*s, 0)
		c.stands(false)
		back = true
		went("and back, as parties are", 2*s, 0)
		went("it goes again", 7*s, 7*s)
		stood := 60*s + comeBack + 63*s
		for _, x := range []struct{ before, after, stood time.Duration }{
			{-1, s, 0}, {-1, tooSlow + s, tooSlow + s}, {s, s, 2 * s}, {9 * s, s, 10 * s},
		} {
			written := c.writing()
			if x.before >= 0 {
				time.Sleep(x.before)
				c.stands(true)
			}
			time.Sleep(x.after)
			written()
			c.stands(false)
			c.goes(present)
			stood += x.stood
			if got := c.standstill(); got != stood {
				t.Errorf("%+v: it stood still for %v, want %v", x, got, stood)
			}
		}
	})
}

// A round whose parties are sent away while the record is away is not given up, however long that
// takes, and has its sum once they are back. What is lost although they had the time to come is
// told to be an outage's, and what is lost without one is not.
func TestRecordIsAway(t *testing.T) {
	l := newLed(t, `time.step_time = "20s"`)
	at := time.Now()
	l.clock.time = func() time.Time { return at }
	all := l.follow()
	looks := func(after time.Duration) drive.Status {
		t.Helper()
		at = at.Add(after)
		if err := l.looks(t.Context()); err != nil {
			t.Fatal(err)
		}
		return l.drive.Status()
	}
	begins := func(round uint64) {
		t.Helper()
		l.hold(all, round-1, func(drive.Status) {})
		for range 10 {
			for _, f := range all {
				f.connects()
			}
			if now := looks(0); now.Round == round && now.Stage == drive.Submitting {
				for i := range all {
					l.drive.Gone(l.now(), Peer{Index: i})
				}
				return
			}
		}
		t.Fatalf("round %d does not begin: %+v", round, l.drive.Status())
	}
	begins(3)
	l.Away(true)
	looks(time.Hour)
	l.Away(false)
	if now := looks(time.Second); now.Round != 3 || now.Lost > 0 || now.Stage != drive.Submitting {
		t.Fatalf("after an hour's outage: %+v", now)
	}
	begins(4)
	if past := l.history[2]; past.Lost != "" || past.Parties != parties {
		t.Errorf("the round in which the record was away: %+v", past)
	}
	l.Away(true)
	looks(time.Hour)
	l.Away(false)
	looks(comeBack)
	if now := looks(21 * time.Second); now.Lost != 1 || !l.history[3].Outage || l.outages != 1 {
		t.Errorf("nobody came back: %+v, %+v", now, l.history[3])
	}
	at = at.Add(time.Second) // after a lost round the next waits
	begins(6)
	if now := looks(21 * time.Second); now.Lost != 2 || l.history[5].Outage || l.outages != 1 {
		t.Errorf("nobody is here: %+v, %+v", now, l.history[5])
	}
}
