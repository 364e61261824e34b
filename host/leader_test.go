package host

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/drive"
)

// led is a lead that has some decisions to make, the second of which need not be saved. It has the
// same items for everybody.
type led struct {
	drive.Lead
	left   int
	free   bool // none need be saved
	asks   bool
	items  []drive.Item
	ended  bool
	kept   bool
	did    []string
	answer error
	end    string     // why the job ends with the next model
	wake   drive.Time // 0: never
	stage  drive.Stage
	next   drive.Stage
}

func (d *led) note(what string) { d.did = append(d.did, what) }

func (d *led) Tick(drive.Time) error { return nil }

func (d *led) Wake() drive.Time {
	if d.wake == 0 {
		return drive.Never
	}
	return d.wake
}

func (d *led) At(drive.Peer) drive.Standing { return drive.Standing{} }

func (d *led) Ready() (drive.Prepared, bool) {
	return drive.Prepared{Save: d.left > 0 && d.left != 2 && !d.free || d.kept,
		Notices: []drive.Notice{{Kind: drive.Begun}}}, d.left > 0
}

func (d *led) Advance(drive.Time) drive.Orders {
	d.note("advance")
	d.left--
	out := drive.Orders{Tell: true, Upload: []int{1}}
	if d.asks && d.left == 0 {
		out.Apply = &drive.Apply{Round: 7}
	}
	return out
}

func (d *led) Applied(_ drive.Time, _ uint64, err error) {
	d.note("applied")
	d.answer, d.ended = err, true
}

func (d *led) Order(_ drive.Time, o drive.Order) { d.note("order " + o.Why) }

func (d *led) Keep() { d.kept = true }

func (d *led) Status() drive.Status {
	if d.ended {
		return drive.Status{Ended: "it is over"}
	}
	return drive.Status{Stage: d.stage, Next: drive.SessionStage{Stage: d.next}}
}

func (d *led) Pending(drive.Peer) iter.Seq[drive.Item] { return slices.Values(d.items) }

// disk is a Record that takes a while, and fails at one of its saves.
type disk struct {
	of    *led
	fails int // the save that fails; 0: none
	saves int
	takes time.Duration
}

var errDisk = errors.New("the disk is full")

func (d *disk) Save(_ context.Context, _ drive.Lead) error {
	time.Sleep(d.takes)
	d.of.note("save")
	if d.saves++; d.saves == d.fails {
		return errDisk
	}
	return nil
}

// newLed makes a leader, in whose record a save takes a second.
func newLed(d *led, fails int) (*Leader, *disk) {
	record := &disk{of: d, fails: fails, takes: time.Second}
	began := time.Now()
	return NewLeader(Options{Lead: d, Record: record, Room: 100,
		Clock: func() drive.Time { return drive.Time(time.Since(began)) },
		Next: func(*drive.Apply) (func() string, error) {
			return func() string { d.note("adopt"); return d.end }, nil
		},
		Watch: func(drive.Notice) { d.note("watch") },
		Left:  func(drive.Status) time.Duration { return 0 },
	}), record
}

// What is decided is saved before anything of it is followed or told. Where it cannot be saved
// nothing is, and the leader ends. The next model is adopted before the lead is told of it.
func TestSavedBeforeItIsFollowed(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails int
		end   string
		want  []string
	}{
		{"all are saved", 0, "", []string{"save", "advance", "watch", "advance", "watch", "save",
			"advance", "watch", "adopt", "applied"}},
		{"the last fails", 2, "", []string{"save", "advance", "watch", "advance", "watch", "save"}},
		{"the model is the last", 0, "enough", []string{"save", "advance", "watch", "advance", "watch",
			"save", "advance", "watch", "adopt", "applied", "order enough"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &led{left: 3, asks: true, end: c.end}
			l, _ := newLed(d, c.fails)
			if err := l.Run(t.Context()); errors.Is(err, errDisk) != (c.fails > 0) ||
				!slices.Equal(d.did, c.want) {
				t.Errorf("%s: %v, %v", c.name, d.did, err)
			}
		})
	}
}

// While a save blocks, and once one has failed or the leader has ended, nobody is handed anything,
// and nothing that is said is heard.
func TestBlockedSaveLetsNothingOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &led{left: 1, items: []drive.Item{{Name: "a"}}}
		l, record := newLed(d, 1)
		record.takes = time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		out, heard := 0, 0
		var failed error
		wait.Go(func() { failed = l.Run(ctx) })
		synctest.Wait()
		for _, p := range []drive.Peer{{Index: 0}, {Index: 1}, {Index: 0, Member: true}} {
			wait.Go(func() {
				sent, err := l.Pending(ctx, p, map[string]bool{}, func(drive.Item, drive.Status) { out++ })
				if err == nil {
					sent()
				}
			})
			wait.Go(func() { _ = l.Do(ctx, func(drive.Lead, drive.Time) { heard++ }) })
		}
		synctest.Wait()
		if out+heard > 0 {
			t.Errorf("%d are handed something during a save, and %d are heard", out, heard)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		cancel()
		wait.Wait()
		if out+heard > 0 || !errors.Is(failed, errDisk) {
			t.Errorf("after a save that failed %d are handed something, and %d are heard; %v", out, heard,
				failed)
		}
	})
}

// A leader that is stopped saves what it holds, and lets nothing out.
func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &led{}
		l, record := newLed(d, 0)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Run(ctx); !errors.Is(err, context.Canceled) || record.saves != 1 ||
			slices.Contains(d.did, "advance") {
			t.Errorf("%v: %v", d.did, err)
		}
	})
}

// A connection is handed each item once, in order, and hears of news; what is not pending any more
// is forgotten. A decision that is not saved concerns those that it names alone.
func TestPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &led{items: []drive.Item{{Name: "a"}, {Name: "b"}}}
		l, _ := newLed(d, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() { _ = l.Run(ctx) })
		had := []map[string]bool{{}, {}}
		var got [2][]string
		for i := range got {
			wait.Go(func() {
				for {
					sent, err := l.Pending(ctx, drive.Peer{Index: i}, had[i], func(x drive.Item, _ drive.Status) {
						got[i] = append(got[i], x.Name)
					})
					if err != nil {
						return
					}
					sent()
				}
			})
		}
		synctest.Wait()
		decide := func(left int, free bool, items ...drive.Item) {
			err := l.Do(ctx, func(drive.Lead, drive.Time) {
				d.left, d.free, d.items = left, free, items
			})
			if err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		decide(0, true, drive.Item{Name: "b"}, drive.Item{Name: "c"}) // nobody is told
		if len(got[0]) != 2 || len(got[1]) != 2 {
			t.Errorf("without news: %v", got)
		}
		decide(1, true, drive.Item{Name: "b"}, drive.Item{Name: "c"})
		if len(got[0]) != 2 || len(got[1]) != 3 {
			t.Errorf("of a decision that concerns party 1: %v", got)
		}
		decide(1, false, drive.Item{Name: "b"}, drive.Item{Name: "c"})
		if want := []string{"a", "b", "c"}; !slices.Equal(got[0], want) || !slices.Equal(got[1], want) {
			t.Errorf("%v, want %v of each", got, want)
		}
		waits := l.peers[drive.Peer{}].news
		decide(1, false, drive.Item{Name: "b"}, drive.Item{Name: "c"})
		if l.peers[drive.Peer{}].news != waits {
			t.Error("a decision that changes nothing for a party has it look again")
		}
		if had[0]["a"] || !had[0]["b"] || !had[0]["c"] {
			t.Errorf("remembered: %v", had[0])
		}
		cancel()
		wait.Wait()
	})
}

// Many that come at once are handed messages of their own one by one, though nobody knows at first
// how long these are.
func TestFirstMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &led{items: []drive.Item{{Name: "a", Own: make([]byte, 60)}}}
		l, _ := newLed(d, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() { _ = l.Run(ctx) })
		wait.Go(func() { // all of them come during that
			_ = l.Do(ctx, func(drive.Lead, drive.Time) { time.Sleep(time.Minute) })
		})
		synctest.Wait()
		handed := make(chan func(), 5)
		for i := range cap(handed) {
			wait.Go(func() {
				sent, err := l.Pending(ctx, drive.Peer{Index: i}, map[string]bool{},
					func(drive.Item, drive.Status) {})
				if err == nil {
					handed <- sent
				}
			})
		}
		synctest.Wait()
		time.Sleep(time.Hour)
		for i := range cap(handed) {
			synctest.Wait()
			if n := len(handed); n != 1 || l.Crowded() != (i < cap(handed)-1) {
				t.Errorf("message %d: %d are on their way, of 60 bytes each, in room for 100", i, n)
			}
			(<-handed)()
		}
		cancel()
		wait.Wait()
	})
}

// Messages of one peer each take room while they are on their way, as much as the longest until
// then, and others wait; one may be longer than all of the room.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := &room{most: 100}
		size, err := r.take(ctx)
		if size != 0 || err != nil || r.short(size) {
			t.Fatalf("%d, %v", size, err)
		}
		size = r.fill(size, 60)
		if !r.short(0) || r.short(60) {
			t.Error("the next need not have the room of the longest")
		}
		took := make(chan int, 2)
		for range 2 {
			go func() {
				if size, err := r.take(ctx); err == nil {
					took <- size
				}
			}()
		}
		synctest.Wait()
		if len(took) != 0 || !r.crowded() {
			t.Errorf("%d of 2 have room next to one of 60, of 100", len(took))
		}
		r.give(size)
		synctest.Wait()
		if len(took) != 1 || !r.crowded() {
			t.Errorf("%d of 2 have room, one at a time", len(took))
		}
		r.give(r.fill(<-took, 500))
		synctest.Wait()
		if len(took) != 1 || r.crowded() {
			t.Errorf("%d have room, where the longest has more than all", len(took))
		}
	})
}

// What Note is shown is not durable yet, and what it returns follows once that is, also where a
// leader is stopped.
func TestNote(t *testing.T) {
	for _, c := range []struct {
		name  string
		stops bool
		want  []string
	}{
		{"decided", false, []string{"note", "save", "advance", "durable", "watch"}},
		{"stopped", true, []string{"note", "save", "durable"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &led{left: 1}
			l, _ := newLed(d, 0)
			l.Left = nil
			l.Note = func([]drive.Notice) func() {
				d.note("note")
				return func() { d.note("durable") }
			}
			ctx, cancel := context.WithCancel(t.Context())
			if c.stops {
				cancel()
			} else {
				time.AfterFunc(time.Minute, cancel)
			}
			err := l.Run(ctx)
			if !errors.Is(err, context.Canceled) || len(d.did) < len(c.want) ||
				!slices.Equal(d.did[:len(c.want)], c.want) {
				t.Errorf("%s: %v, %v", c.name, d.did, err)
			}
		})
	}
}

// What is decided by an order is durable before Decide returns, whether or not whoever orders waits
// for that, and then follows under the same lock. What is refused changes nothing. Where anything
// is not durable the leader has stopped.
func TestDecide(t *testing.T) {
	refused, later := errors.New("it has ended"), errors.New("not twice")
	for _, c := range []struct {
		name        string
		order, then error
		fails       int // the save
		want        error
		stops       bool
		did         []string
	}{
		{name: "an order", did: []string{"order", "save", "advance", "watch", "then"}},
		{name: "refused", order: refused, want: refused, did: []string{"order"}},
		{name: "not saved", fails: 1, want: errDisk, stops: true, did: []string{"order", "save"}},
		{name: "not the rest", then: later, want: later, stops: true,
			did: []string{"order", "save", "advance", "watch", "then"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := new(led)
			l, _ := newLed(d, c.fails)
			l.Pass = func() error { return errors.New("only Run passes") }
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second/2, cancel) // in the midst of the save
			err := l.Decide(ctx, func(drive.Lead, drive.Time) error {
				d.note("order")
				d.left = 1
				return c.order
			}, func(ctx context.Context) error {
				d.note("then")
				return errors.Join(c.then, ctx.Err())
			})
			if !errors.Is(err, c.want) || !slices.Equal(d.did, c.did) {
				t.Errorf("%s: %v, %v", c.name, d.did, err)
			}
			for range 20 { // a lock that is free is taken half of the time
				err := l.Do(t.Context(), func(drive.Lead, drive.Time) {})
				if errors.Is(err, ErrStopped) != c.stops {
					t.Errorf("%s: afterwards %v", c.name, err)
				}
			}
			if c.stops {
				if err := l.Run(t.Context()); !errors.Is(err, c.want) {
					t.Errorf("%s: Run returns %v", c.name, err)
				}
			}
		})
	}
}

// A leader passes between rounds alone: while no round is open, no session forms, and nothing that
// was decided is unsaved. What is held is saved first.
func TestPass(t *testing.T) {
	passes := errors.New("another leads")
	for _, c := range []struct {
		name        string
		stage, next drive.Stage
		left        int
		pass        bool
	}{
		{"at first", 0, 0, 0, true},
		{"between rounds", drive.Resting, drive.Resting, 0, true},
		{"in a round", drive.Submitting, 0, 0, false},
		{"a model is made", drive.Applying, 0, 0, false},
		{"a session forms", drive.Resting, drive.Announcing, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &led{stage: c.stage, next: c.next}
			l, record := newLed(d, 0)
			l.Pass = func() error { return passes }
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := l.Run(ctx)
			if errors.Is(err, passes) != c.pass || record.saves != 1 || !d.kept {
				t.Errorf("%s: %v, %d saves", c.name, err, record.saves)
			}
			if err := l.Do(t.Context(), func(drive.Lead, drive.Time) {}); !errors.Is(err, ErrStopped) {
				t.Errorf("%s: afterwards %v", c.name, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // what is decided is saved, and followed, before
		d := &led{left: 1}
		l, _ := newLed(d, 0)
		l.Pass = func() error { return passes }
		want := []string{"save", "advance", "watch", "save"}
		if err := l.Run(t.Context()); !errors.Is(err, passes) || !slices.Equal(d.did, want) {
			t.Errorf("%v, %v", d.did, err)
		}
	})
}

// While the clock stands still nothing comes due, until Poke or for as long as it may stand.
func TestStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &led{wake: 1}
		l, _ := newLed(d, 0)
		asked, stands := 0, 10*time.Minute
		l.Stands = func() time.Duration {
			asked++
			return stands
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() { _ = l.Run(ctx) })
		looked := func(when string, want int, do func()) {
			t.Helper()
			synctest.Wait()
			_ = l.With(ctx, nobody, func(drive.Lead, drive.Time) error {
				if asked != want {
					t.Errorf("%s it has looked %d times, want %d", when, asked, want)
				}
				do()
				return nil
			})
		}
		nothing := func() {}
		for k, want := range []int{1, 1, 2, 2, 3} {
			looked(fmt.Sprint(5*k, " minutes later"), want, nothing)
			time.Sleep(5*time.Minute + time.Millisecond)
		}
		looked("before it is poked", 3, func() {
			stands, d.wake = 0, l.Clock()+drive.Time(time.Minute)
		})
		l.Poke()
		looked("once it is poked", 4, nothing)
		time.Sleep(time.Minute - time.Millisecond)
		looked("before anything is due", 4, func() { d.wake = 0 })
		time.Sleep(time.Millisecond)
		looked("when something is due", 5, nothing)
		cancel()
		wait.Wait()
	})
}

// A last save that hangs ends.
func TestLastSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newLed(&led{}, 0)
		l.Record = hanging{}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		err := l.Run(ctx)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != lastSave {
			t.Errorf("%v after %v", err, took)
		}
	})
}

type hanging struct{}

func (hanging) Save(ctx context.Context, _ drive.Lead) error {
	<-ctx.Done()
	return ctx.Err()
}
