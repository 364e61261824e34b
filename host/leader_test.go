package host

import (
	"context"
	"errors"
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
	end    string // why the job ends with the next model
}

func (d *led) note(what string) { d.did = append(d.did, what) }

func (d *led) Tick(drive.Time) error { return nil }

func (d *led) Wake() drive.Time { return drive.Never }

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
	return drive.Status{}
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
