package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/drive"
)

// polled is a stage whose carrier asks for each item, and notes what it says with each question.
func polled(t *testing.T) *stage {
	s := &stage{T: t}
	s.asked = func(stands Standing) {
		s.note("asks, told %d, works %t, waits %t", stands.Hello.Told, stands.Works, stands.Waits)
	}
	return s
}

// wantAsked is stage.want, but for when the program begins, which a question may come before.
func (s *stage) wantAsked(noted ...string) {
	s.Helper()
	s.mutex.Lock()
	s.noted = slices.DeleteFunc(s.noted, func(one string) bool {
		return strings.HasPrefix(one, "works on")
	})
	s.mutex.Unlock()
	s.want(noted...)
}

// A coordinator that is asked hears with each question how the part stands, and the question is
// asked anew once the program has ended and its answer has left, not before. Nothing is sent again
// because a connection is new, and what broke says how long to wait.
func TestPlayerPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := polled(t)
		s.on = func(in drive.Item) (drive.Ready, drive.Out) {
			if in.Name == "1" {
				return drive.Ready{}, asks(1, 0)
			}
			return drive.Ready{}, drive.Out{}
		}
		s.work = func(context.Context, *Cast) (Fill, error) {
			time.Sleep(time.Hour)
			return one, nil
		}
		s.saves = func() error {
			s.told = 1
			time.Sleep(time.Minute)
			return nil
		}
		err := s.play(func(h *Player) {
			h.Polled, h.Broken = true, nil
			h.Pause = func(err error) time.Duration {
				s.note("pauses: %v", err)
				return 24 * time.Hour
			}
		}, func() {
			s.say(drive.Carry, "1")
			time.Sleep(2 * time.Hour)
			s.say(0, "")
			time.Sleep(23 * time.Hour)
			synctest.Wait()
			s.note("a day")
			s.say(drive.Last, "end")
		})
		s.wantAsked("dials", "asks, told 0, works false, waits false", "takes 1",
			"asks, told 0, works true, waits true", "answers 1: <nil>", "saves",
			"sends answer", "asks, told 1, works false, waits false", "pauses: unexpected EOF", "a day",
			"dials", "asks, told 1, works false, waits false", "takes end", "erased")
		if err != nil {
			t.Error(err)
		}
	})
}

// An item that has come before a question ends, or while it ends, is not lost.
func TestPlayerAskedAnew(t *testing.T) {
	for _, before := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := polled(t)
			s.on = func(in drive.Item) (drive.Ready, drive.Out) {
				if in.Name == "1" {
					return drive.Ready{}, asks(1, 0)
				}
				return drive.Ready{}, drive.Out{}
			}
			s.work = func(context.Context, *Cast) (Fill, error) {
				time.Sleep(time.Hour)
				return one, nil
			}
			s.saves = func() error {
				item := drive.Item{Kind: drive.Carry, Name: "2"}
				if before {
					s.items <- item
				} else {
					s.late = item
				}
				time.Sleep(time.Minute)
				return nil
			}
			err := s.play(func(h *Player) { h.Polled = true }, func() {
				s.say(drive.Carry, "1")
				time.Sleep(2 * time.Hour)
				s.say(drive.Last, "end")
			})
			s.wantAsked("dials", "asks, told 0, works false, waits false", "takes 1",
				"asks, told 0, works true, waits true", "answers 1: <nil>", "saves", "sends answer",
				"takes 2", "asks, told 0, works false, waits false", "takes end", "erased")
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A program that is told to end works until it has ended; one that is done, in a job whose
// submissions leave at an instant, is waited for until then.
func TestPlayerStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := polled(t)
		s.on = func(in drive.Item) (drive.Ready, drive.Out) {
			switch in.Name {
			case "1":
				return drive.Ready{}, asks(1, 0)
			case "2":
				return drive.Ready{}, drive.Out{Cancel: true}
			case "3":
				return drive.Ready{}, asks(3, drive.Minute)
			}
			return drive.Ready{}, drive.Out{}
		}
		s.work = func(ctx context.Context, c *Cast) (Fill, error) {
			if c.Round == 1 {
				<-ctx.Done()
				time.Sleep(time.Hour)
			}
			time.Sleep(time.Second)
			return one, nil
		}
		err := s.play(func(h *Player) { h.Polled = true }, func() {
			for _, name := range []string{"1", "2"} {
				s.say(drive.Carry, name)
			}
			time.Sleep(2 * time.Hour)
			s.say(drive.Carry, "3")
			time.Sleep(time.Hour)
			s.say(drive.Last, "end")
		})
		none, works := "asks, told 0, works false, waits false", "asks, told 0, works true, waits true"
		s.wantAsked("dials", none, "takes 1", works, "takes 2",
			"asks, told 0, works true, waits false", none, "takes 3", works,
			"answers 3: <nil>", "saves", "sends answer", "asks, told 0, works false, waits true",
			fmt.Sprintf("instant of 3 after %v", 2*time.Hour+time.Minute), none, "takes end", "erased")
		if err != nil {
			t.Error(err)
		}
	})
}

// Of a player whose program never made a vector the last reason is known; of one whose did, or that
// has submitted earlier, there is none.
func TestPlayerMissed(t *testing.T) {
	blank := drive.Report{Kind: drive.Blank, Round: 1, Err: io.ErrNoProgress}
	missed := drive.Report{Kind: drive.Missed, Round: 1, Err: io.ErrShortBuffer}
	submitted := drive.Report{Kind: drive.Submitted, Round: 1}
	for _, c := range []struct {
		reports []drive.Report
		count   int
		instant bool
		idle    uint64
		want    error
	}{
		{nil, 0, false, 0, nil},
		{[]drive.Report{missed}, 0, false, 0, io.ErrShortBuffer},
		{[]drive.Report{blank}, 1, false, 0, io.ErrNoProgress},
		{[]drive.Report{blank}, 2, false, 0, nil},
		{[]drive.Report{blank, submitted}, 2, false, 0, nil},
		{[]drive.Report{missed, submitted}, 1, false, 0, nil},
		{[]drive.Report{missed, submitted}, 1, true, 0, io.ErrShortBuffer},
		{[]drive.Report{submitted}, 1, true, 1, nil},
	} {
		guard, err := drive.NewGuard(drive.Limits{Rounds: 3}, uint64(c.count))
		if err != nil {
			t.Fatal(err)
		}
		h := &Player{Part: &stage{count: *guard}, outcome: outcome{instant: c.instant, zeros: c.idle}}
		for _, r := range c.reports {
			h.outcome.count(r)
		}
		if why, always := h.Missed(); always && !errors.Is(why, c.want) || !always && c.want != nil {
			t.Errorf("%+v: %v, always %v", c, why, always)
		}
	}
}
