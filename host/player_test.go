package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/instant"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// stage is a part, its carrier, keeper and program, which do what a test says and note what they
// are asked to do.
type stage struct {
	drive.Part // nil: what a test does not expect panics
	*testing.T
	mutex sync.Mutex
	noted []string
	// on says what the part decides of an item; work is the program, saves the keeper.
	on    func(in drive.Item) (drive.Ready, drive.Out)
	work  func(ctx context.Context, c *Cast) (Fill, error)
	saves func() error
	items chan drive.Item // nil: the connection breaks
	dials int
	told  uint64                // Hello.Told
	count drive.Guard           // its guard
	asked func(stands Standing) // by Next; nil: nobody notes that
	late  drive.Item            // that has come when the context of Next ends
	ready drive.Ready
	out   drive.Out
	some  bool
}

func (s *stage) note(format string, values ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.noted = append(s.noted, fmt.Sprintf(format, values...))
}

// decide has the part decide something.
func (s *stage) decide(r drive.Ready, out drive.Out) { s.ready, s.out, s.some = r, out, true }

func (s *stage) Hello() drive.Hello             { return drive.Hello{Told: s.told} }
func (s *stage) Connected()                     { s.note("connected") }
func (s *stage) Ready() (drive.Ready, bool)     { return s.ready, s.some }
func (s *stage) Object(name string) io.WriterTo { return nil }
func (s *stage) Guard() *drive.Guard            { return &s.count }
func (s *stage) Erase()                         { s.note("erased") }
func (s *stage) Finished(id drive.AskID)        { s.note("finished %d", id.Round) }

func (s *stage) Advance() drive.Out {
	out := s.out
	s.ready, s.out, s.some = drive.Ready{}, drive.Out{}, false
	return out
}

func (s *stage) Receive(in drive.Item) error {
	if in.Kind == drive.Upload {
		return drive.ErrItem
	}
	s.note("takes %s", in.Name)
	if s.on != nil {
		s.decide(s.on(in))
	}
	return nil
}

func (s *stage) Answer(a drive.Answer) error {
	s.note("answers %d: %v", a.ID.Round, a.Err)
	if a.Err == nil {
		v, err := masking.NewVector(layout)
		if err == nil {
			err = a.Fill(v)
		}
		if err != nil {
			return err
		}
	}
	s.decide(drive.Ready{Save: true}, drive.Out{Send: []drive.Message{{Bytes: []byte("answer")}}})
	return nil
}

func (s *stage) Instant(a drive.Answer) error {
	s.note("instant of %d after %v", a.ID.Round, time.Since(began))
	return nil
}

func (s *stage) Absent(id drive.AskID, _ uint64, why error) {
	s.note("absent from %d: %v", id.Round, why)
}

func (s *stage) Dial(context.Context, drive.Hello) error {
	s.dials++
	s.note("dials")
	return nil
}

func (s *stage) Next(ctx context.Context, stands Standing) (drive.Item, error) {
	if s.asked != nil {
		s.asked(stands)
	}
	select {
	case in, open := <-s.items:
		if !open || in.Kind == 0 {
			return in, io.ErrUnexpectedEOF
		}
		return in, nil
	case <-ctx.Done():
		if late := s.late; late.Kind != 0 {
			s.late = drive.Item{}
			return late, nil
		}
		return drive.Item{}, ctx.Err()
	}
}

func (s *stage) Cast(_ context.Context, round uint64) (*Cast, error) {
	if round == 13 {
		return nil, ErrCast
	}
	return &Cast{Round: round}, nil
}

func (s *stage) Away(_ context.Context, _ uint64, away drive.Absence) error {
	s.note("away from %d", away.Number)
	return nil
}

func (s *stage) Offer(_ context.Context, round uint64) error {
	s.note("offers %d", round)
	return nil
}

func (s *stage) Send(_ context.Context, message io.WriterTo) error {
	var b bytes.Buffer
	_, err := message.WriteTo(&b)
	s.note("sends %s", b.String())
	return err
}

func (s *stage) Close() error { return nil }

func (s *stage) Make(ctx context.Context, c *Cast) (Fill, error) {
	s.note("works on %d", c.Round)
	return s.work(ctx, c)
}

// keeper keeps nothing.
type keeper struct{ *stage }

func (k keeper) Save(drive.Part) error {
	k.note("saves")
	if k.saves != nil {
		return k.saves()
	}
	return nil
}

func (k keeper) Get(string) (io.ReadCloser, error) { return nil, io.ErrNoProgress }

func (s *stage) Save(*keyexchange.SealKey) (drive.Saved, error) { return drive.Saved{}, nil }

var (
	layout = masking.Layout{{Length: 1, Bits: 8}}
	began  time.Time // of the bubble
)

// one fills a vector.
func one(v *masking.Vector, _ *Cast, _ uint64) error { return v.Set([]uint64{1}) }

// play runs a player in a bubble, and returns its error.
func (s *stage) play(change func(h *Player), script func()) (err error) {
	s.items = make(chan drive.Item)
	h := &Player{
		Part:    s,
		Carrier: s,
		Program: s,
		Keeper:  keeper{s},
		Layout:  layout,
		Watch:   func(r drive.Report) { s.note("reports %d", r.Kind) },
		Broken:  func(err error) { s.note("broken: %v", err) },
		Missing: func(uint64, error) { s.note("missing") },
	}
	if change != nil {
		change(h)
	}
	began = time.Now()
	told := make(chan struct{})
	go func() {
		defer close(told)
		script()
	}()
	err = h.Run(s.Context())
	<-told
	return err
}

// say hands the part an item, once all that came before is dealt with.
func (s *stage) say(kind drive.ItemKind, name string) {
	s.items <- drive.Item{Kind: kind, Name: name}
	synctest.Wait()
}

// asks returns what a part decides that asks for a round.
func asks(round uint64, after drive.Time) drive.Out {
	return drive.Out{Ask: &drive.Ask{ID: drive.AskID{Round: round}, Round: round, After: after}}
}

func (s *stage) want(noted ...string) {
	s.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !slices.Equal(s.noted, noted) {
		s.Errorf("noted %q, want %q", s.noted, noted)
	}
}

// A record that takes its time lets nothing out, and one that fails ends the player.
func TestPlayerSaves(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &stage{T: t}
			s.on = func(in drive.Item) (drive.Ready, drive.Out) {
				if in.Kind == drive.Last {
					return drive.Ready{}, drive.Out{}
				}
				return drive.Ready{Save: true}, drive.Out{Offer: 3,
					Away: []drive.Absence{{Number: 2}}, Send: []drive.Message{{Bytes: []byte("m")}}}
			}
			s.saves = func() error {
				time.Sleep(time.Hour)
				if fails {
					return io.ErrShortWrite
				}
				return nil
			}
			err := s.play(nil, func() {
				s.items <- drive.Item{Kind: drive.Carry, Name: "a"}
				time.Sleep(time.Minute)
				synctest.Wait()
				s.want("dials", "connected", "takes a", "saves")
				time.Sleep(2 * time.Hour)
				if !fails {
					s.items <- drive.Item{Kind: drive.Last, Name: "end"}
				}
			})
			end := new(FatalError)
			if fails {
				if !errors.As(err, &end) || !errors.Is(err, io.ErrShortWrite) {
					t.Errorf("%v", err)
				}
				s.want("dials", "connected", "takes a", "saves", "erased")
				return
			}
			s.want("dials", "connected", "takes a", "saves", "away from 2", "offers 3", "sends m",
				"takes end", "erased")
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// What the program works on ends when it comes too late, and messages are taken meanwhile; what was
// told to end is waited for.
func TestPlayerCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t}
		s.on = func(in drive.Item) (drive.Ready, drive.Out) {
			switch in.Name {
			case "1":
				return drive.Ready{}, asks(1, 0)
			case "2":
				out := asks(2, 0)
				out.Cancel = true
				return drive.Ready{}, out
			case "end":
				return drive.Ready{}, drive.Out{Cancel: true}
			}
			return drive.Ready{}, drive.Out{}
		}
		s.work = func(ctx context.Context, c *Cast) (Fill, error) {
			<-ctx.Done()
			s.note("%d is told: %v", c.Round, context.Cause(ctx))
			time.Sleep(time.Minute)
			s.note("%d has ended", c.Round)
			return one, nil
		}
		err := s.play(nil, func() {
			for _, name := range []string{"1", "more", "1", "2"} {
				s.say(drive.Carry, name)
			}
			time.Sleep(2 * time.Minute)
			s.say(drive.Last, "end")
		})
		s.want("dials", "connected", "takes 1", "works on 1", "takes more", "takes 1", "takes 2",
			"1 is told: "+ErrWentOn.Error(), "1 has ended", "works on 2", "takes end",
			"2 is told: "+ErrWentOn.Error(), "2 has ended", "erased")
		if err != nil {
			t.Error(err)
		}
	})
}

// What the program works on outlives a connection, and its answer leaves over the next one.
func TestPlayerOutlives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t}
		s.on = func(in drive.Item) (drive.Ready, drive.Out) {
			if in.Name == "1" {
				return drive.Ready{}, asks(1, 0)
			}
			return drive.Ready{}, drive.Out{}
		}
		s.work = func(ctx context.Context, c *Cast) (Fill, error) {
			time.Sleep(time.Hour)
			return one, ctx.Err()
		}
		err := s.play(nil, func() {
			s.say(drive.Carry, "1")
			s.say(0, "")             // the connection breaks
			s.say(drive.Upload, "x") // and is of no use: no part takes that
			time.Sleep(2 * time.Hour)
			s.say(drive.Last, "end")
		})
		s.want("dials", "connected", "takes 1", "works on 1", "broken: unexpected EOF", "dials",
			"connected", "broken: "+drive.ErrItem.Error(), "dials", "connected", "answers 1: <nil>", "saves",
			"sends answer", "takes end", "erased")
		if err != nil {
			t.Error(err)
		}
	})
}

// A submission leaves at its instant: with what is done by then, and without what overruns it,
// which keeps the next waiting.
func TestPlayerInstants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t}
		s.on = func(in drive.Item) (drive.Ready, drive.Out) {
			out := asks(uint64(len(in.Name)), drive.Minute)
			out.Ask.Idle = in.Name == "xxx"
			if in.Kind == drive.Last {
				out = drive.Out{}
			}
			return drive.Ready{}, out
		}
		s.work = func(ctx context.Context, c *Cast) (Fill, error) {
			time.Sleep([]time.Duration{0, time.Second, 100 * time.Second, 0, 0}[c.Round])
			if late := c.Round == 2; errors.Is(context.Cause(ctx), instant.ErrOverrun) != late {
				t.Errorf("in round %d it is told: %v", c.Round, context.Cause(ctx))
			}
			return one, nil
		}
		var player *Player
		err := s.play(func(h *Player) { player = h },
			func() {
				for _, name := range []string{"x", "xx", "xxx", "xxxx"} {
					s.say(drive.Carry, name)
					time.Sleep(time.Second)
					s.say(drive.Carry, name) // asked again, it is asked once
					time.Sleep(time.Minute)
				}
				s.say(drive.Last, "end")
			})
		var instants []string
		for _, one := range s.noted {
			if len(one) > 7 && (one[:7] == "instant" || one[:7] == "answers" || one[:5] == "works") {
				instants = append(instants, one)
			}
		}
		s.noted = instants
		overrun := "training was not done by privacy.submit_after"
		s.want("works on 1", "answers 1: <nil>", "instant of 1 after 1m0s", "works on 2",
			"answers 2: "+overrun, "instant of 2 after 2m1s", "instant of 3 after 3m2s",
			"works on 4", "answers 4: <nil>", "instant of 4 after 4m3s")
		if err != nil || player.outcome.zeros != 3 { // the party's coin left it out in that round
			t.Errorf("%v, zeros in round %d", err, player.outcome.zeros)
		}
	})
}

// A panic of the program ends the process, but where that would tell of rows; its own FatalError
// ends the player.
func TestPlayerPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t}
		s.on = func(in drive.Item) (drive.Ready, drive.Out) {
			return drive.Ready{}, asks(uint64(len(in.Name)), 0)
		}
		s.work = func(_ context.Context, c *Cast) (Fill, error) {
			if c.Round == 2 {
				return nil, &FatalError{io.ErrClosedPipe}
			}
			panic("no rows")
		}
		err := s.play(func(h *Player) { h.Quiet = true }, func() {
			s.say(drive.Carry, "xxxxxxxxxxxxx") // its cast is refused
			s.say(drive.Carry, "x")
			s.say(drive.Carry, "xx")
		})
		s.want("dials", "connected", "takes xxxxxxxxxxxxx", "absent from 13: "+ErrCast.Error(), "takes x",
			"works on 1", "answers 1: drive: the program panicked: no rows", "saves", "sends answer",
			"takes xx", "works on 2", "erased")
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	})
}

// That a state is lost is saved before anything else happens.
func TestPlayerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t}
		s.decide(drive.Ready{Save: true}, drive.Out{})
		if err := s.play(nil, func() { s.say(drive.Last, "end") }); err != nil {
			t.Error(err)
		}
		if !slices.Equal(s.noted[:2], []string{"saves", "dials"}) {
			t.Errorf("%q", s.noted)
		}
	})
}
