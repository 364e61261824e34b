package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/masking"
)

// Carrier carries items and messages between a part and its coordinator, one connection at a time.
// While the player waits in Next it may call the other methods, one at a time.
type Carrier interface {
	// Dial connects, and says hello.
	Dial(ctx context.Context, h drive.Hello) error
	// Next waits for the next item. A carrier that asks for it says how the part stands.
	Next(ctx context.Context, s Standing) (drive.Item, error)
	// Cast returns what a round began with; nil if that is gone, because the round went on.
	Cast(ctx context.Context, round uint64) (*Cast, error)
	// Away tells the coordinator of a round that the party is absent from; told is the last round that
	// it has submitted in. Offer tells it of a round that the party has a submission for.
	Away(ctx context.Context, told uint64, away drive.Absence) error
	Offer(ctx context.Context, round uint64) error
	// Send sends a message.
	Send(ctx context.Context, message io.WriterTo) error
	Close() error
}

// Standing says how a part stands.
type Standing struct {
	Hello drive.Hello
	Works bool // the program works, maybe on what comes too late
	Waits bool // the open round waits for what the program makes, or for the instant
}

// Cast holds what a round began with.
type Cast struct {
	Round  uint64
	Digest [32]byte // by which the message that begins the round names it
	Model  any      // what the carrier's programs know it as
	Spent  bool     // the program has made a vector of it, and may have changed it
}

// Fill writes a submission to v. A submission in a later round than the one whose cast it was made
// from, where the job takes such, is given how many rounds later, and that round's cast.
type Fill func(v *masking.Vector, in *Cast, later uint64) error

// Program makes a party's vectors. It makes one at a time.
type Program interface {
	// Make makes a vector of a cast. ctx ends when the vector would come too late. An error says why
	// there is none; a [FatalError] ends the player.
	Make(ctx context.Context, c *Cast) (Fill, error)
}

// Keeper keeps what a part must not lose.
type Keeper interface {
	// Save saves what the part has decided: its objects, then its state, and counts what it spends.
	Save(part drive.Part) error
	// Get opens an object that the last state needs.
	Get(name string) (io.ReadCloser, error)
}

// FatalError marks errors that another connection does not mend.
type FatalError struct{ Err error }

func (e *FatalError) Error() string { return e.Err.Error() }

// Unwrap returns the error that is marked.
func (e *FatalError) Unwrap() error { return e.Err }

func fatal(err error) error {
	if err == nil {
		return nil
	}
	return &FatalError{err}
}

// ErrWentOn: the round went on without the party, whose vector comes too late.
var ErrWentOn = errors.New("host: the round went on without this party")

// Player takes part in a job: it is the loop around a drive.Part. Set the fields, then call Run.
type Player struct {
	Part    drive.Part
	Carrier Carrier
	Program Program // nil for a member
	Keeper  Keeper
	// Quiet has a panic of the program count as an error: with noise a process that ends would tell
	// others about the party's rows.
	Quiet bool
	// Buffered says that vectors are offered in whichever round has room for them.
	Buffered bool
	// Polled says that the coordinator is asked for each item, and asks again itself for what it has
	// not had: nothing is sent again because a connection is new. Once the program has ended, or an
	// instant has come, the context of the present Next ends, and Next is called anew.
	Polled bool
	// Layout is of a vector, where submissions leave at an instant.
	Layout masking.Layout
	// Watch is shown what the part reports, once that is durable. Broken is told why a connection has
	// ended, unless Run ends with that. Missing is told why a stored submission cannot be sent.
	Watch   func(drive.Report)
	Broken  func(err error)
	Missing func(session uint64, err error)
	// Hours returns a context in which a connection may be made, and items be waited for; nil: always.
	Hours func(ctx context.Context) (hours context.Context, stop context.CancelFunc, err error)
	// Pause is told why a connection has ended, in place of Broken, and returns how long to wait
	// before the next one; nil: a time that grows up to 2 s.
	Pause func(err error) time.Duration

	life    context.Context // of Run
	running sync.WaitGroup
	making  *making
	made    chan *making
	busy    chan struct{} // closed once the last work of the program has ended; nil: there was none
	instant *time.Timer
	outcome outcome
}

// Waits between two attempts to connect, which are spread from a half of them to one and a half.
const (
	firstWait   = 50 * time.Millisecond
	longestWait = 2 * time.Second
)

// Run takes part until the job is over. It dials again whenever the connection breaks, and what the
// program works on outlives a connection. Run fails with the context's error, and with a
// [FatalError].
func (h *Player) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer h.Part.Erase()
	defer h.running.Wait()
	defer cancel()
	h.life, h.made = ctx, make(chan *making)
	if ready, _ := h.Part.Ready(); ready.Save { // that a state is lost, say, before anything leaves
		if err := h.Keeper.Save(h.Part); err != nil {
			return fatal(err)
		}
	}
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		began := time.Now()
		done, err := h.connection(ctx)
		var end *FatalError
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &end):
			return err
		}
		if time.Since(began) > longestWait {
			wait = firstWait
		}
		pause := wait/2 + rand.N(wait)
		if h.Pause != nil {
			pause = h.Pause(err)
		} else {
			h.Broken(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// arrival is an item, or the end of a connection.
type arrival struct {
	item drive.Item
	err  error
	anew bool // the question is to be asked anew
}

// connection dials, takes what comes, and answers, until the connection breaks or the job is done.
func (h *Player) connection(ctx context.Context) (done bool, err error) {
	hours, stop := ctx, context.CancelFunc(func() {})
	if h.Hours != nil {
		if hours, stop, err = h.Hours(ctx); err != nil {
			return false, err
		}
	}
	defer stop()
	hours, cancel := context.WithCancel(hours)
	in := make(chan arrival)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	if err := h.Carrier.Dial(hours, h.Part.Hello()); err != nil {
		return false, err
	}
	defer h.Carrier.Close()
	if !h.Polled {
		h.Part.Connected()
	}
	var again context.CancelFunc // ends the Next that is under way; nil: there is none
	for stale := false; ; {
		if err := h.proceed(ctx); err != nil || done {
			return done, err
		}
		over := hours.Done()
		if h.working() { // what has begun may end after them
			over = ctx.Done()
		}
		switch {
		case again == nil: // the next item is read once the last has been dealt with
			again = h.read(hours, &reading, in)
		case stale:
			again()
		}
		stale = false
		select {
		case <-over:
			return false, context.Cause(hours)
		case a := <-in:
			switch {
			case a.anew:
				again = nil
				continue
			case a.err != nil && hours.Err() != nil && h.working():
				continue // and reads no more
			case a.err != nil:
				return false, a.err
			}
			again = nil
			done = a.item.Kind == drive.Last
			if err = h.Part.Receive(a.item); err != nil && !errors.Is(err, drive.ErrItem) {
				err = fatal(err)
			}
		case m := <-h.made:
			stale, err = h.Polled, h.end(m)
		case <-h.at():
			stale, err = h.Polled, h.reached()
		}
		if err != nil {
			return false, err
		}
	}
}

// read waits for the next item, next to the loop, until hours end or again is called.
func (h *Player) read(
	hours context.Context, reading *sync.WaitGroup, in chan<- arrival,
) (again context.CancelFunc) {
	s := Standing{Hello: h.Part.Hello(), Works: h.works(), Waits: h.working()}
	asking, again := context.WithCancel(hours)
	reading.Go(func() {
		item, err := h.Carrier.Next(asking, s)
		a := arrival{item, err, err != nil && asking.Err() != nil && hours.Err() == nil}
		again()
		select {
		case in <- a:
		case <-hours.Done():
		}
	})
	return again
}

// working reports whether the program works on what the open round waits for.
func (h *Player) working() bool { return h.making != nil && !h.Buffered }

// works reports whether the program works, maybe on what comes too late.
func (h *Player) works() bool {
	if m := h.making; m != nil && !m.known {
		return true
	}
	select {
	case <-h.busy:
		return false
	default:
		return h.busy != nil
	}
}

// proceed does what the part has decided: it saves, then sends, then has the program work.
func (h *Player) proceed(ctx context.Context) error {
	for {
		ready, decided := h.Part.Ready()
		if !decided {
			return nil
		}
		if ready.Save {
			if err := h.Keeper.Save(h.Part); err != nil {
				return fatal(err)
			}
		}
		for _, one := range ready.Reports {
			h.outcome.count(one)
			h.Watch(one)
		}
		if err := h.leave(ctx, h.Part.Advance()); err != nil {
			return err
		}
	}
}

// leave sends what may leave, and has the program work.
func (h *Player) leave(ctx context.Context, out drive.Out) error {
	if out.Cancel {
		h.drop()
	}
	for _, away := range out.Away {
		if err := h.Carrier.Away(ctx, h.Part.Hello().Told, away); err != nil {
			return err
		}
	}
	if out.Offer != 0 {
		if err := h.Carrier.Offer(ctx, out.Offer); err != nil {
			return err
		}
	}
	for _, m := range out.Send {
		if err := h.send(ctx, m); err != nil {
			return err
		}
	}
	if out.Ask == nil {
		return nil
	}
	return h.begin(ctx, *out.Ask)
}

// send sends a message, which may be the submission that was made last.
func (h *Player) send(ctx context.Context, m drive.Message) error {
	if m.Bytes != nil {
		return h.Carrier.Send(ctx, bytes.NewBuffer(m.Bytes))
	}
	if made := h.Part.Object(drive.SubmissionName); made != nil {
		return h.Carrier.Send(ctx, made)
	}
	stored, err := h.Keeper.Get(drive.SubmissionName)
	if err != nil { // the round goes on without this party
		h.Missing(m.Session, err)
		return nil
	}
	defer stored.Close()
	return h.Carrier.Send(ctx, reader{stored})
}

// reader is a reader as what is sent.
type reader struct{ io.Reader }

func (r reader) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, r.Reader) }
