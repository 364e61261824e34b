package party

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
)

// Waits after a request that failed.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
	mostSeen    = 4
	// While a step may be waiting for it, a party asks again after soonest to soonest + spread, and
	// before it counts as gone. How long a step may wait, it does not know: its leader may have died,
	// and its time stands still while the record is away.
	soonest = 500 * time.Millisecond
	spread  = 1500 * time.Millisecond
	away    = time.Minute
	fewHere = 1000 // parties; more of them would keep the nodes from coming back
)

// carrier asks a server's door what is next for a party, or for a member of the committee, and
// sends what they answer.
type carrier struct {
	federation *federation.Federation
	server     *Server
	path       string // where it asks and sends
	member     bool
	most       int64 // bytes of a message
	policy     *consent.Policy
	log        *slog.Logger
	turn       *turn
	life       context.Context
	heads      *heads  // nil: the key that signs decisions is not known
	papers     *papers // nil: a member's

	seen  []string
	dealt bool          // an item was handed out, and this connection goes on
	wait  time.Duration // after the next failure
	due   time.Time     // until when a step may be waiting
	stay  func()        // ends what says that the party is present

	mutex  sync.Mutex // guards what follows
	absent uint64     // the round that the party is absent from
	offer  uint64     // the round that it has a message of, 0: none
}

var _ host.Carrier = (*carrier)(nil)

func (p *Party) carrier() *carrier {
	c := &carrier{
		federation: p.Federation,
		server:     p.Server,
		path:       partyPath(p.Federation.ID),
		policy:     p.Policy,
		log:        p.Log,
		turn:       &turn{places: p.Turns},
		wait:       firstWait,
		stay:       func() {},
	}
	if one := p.Federation.Settled.Oneshot(); one != nil {
		c.most = int64(one.MaxMessage())
	} else {
		c.most = int64(p.Federation.Settled.Config(1).MaxMessage())
	}
	return c
}

// localError marks errors that asking again does not cure.
func localError(err error) error { return &host.FatalError{Err: err} }

// fatal reports whether asking again does not cure an error.
func fatal(err error) bool {
	var local *host.FatalError
	var refusal *RefusalError
	if errors.As(err, &refusal) {
		switch refusal.Kind {
		// Not "clock": clocks are corrected, the server's as well as this party's.
		case "stranger", "unsigned", "signature", "forgotten":
			return true
		}
	}
	return errors.As(err, &local) || errors.Is(err, ErrServer)
}

// marked returns an error as a host is to see it.
func marked(err error) error {
	if err != nil && fatal(err) {
		return localError(err)
	}
	return err
}

// Dial is a method of [host.Carrier]. Each question stands alone: the first of them is the next.
func (c *carrier) Dial(context.Context, drive.Hello) error {
	c.seen, c.dealt = nil, false
	return nil
}

// Close is a method of [host.Carrier].
func (c *carrier) Close() error { return nil }

// Away is a method of [host.Carrier]: the next question tells.
func (c *carrier) Away(_ context.Context, _ uint64, a drive.Absence) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.absent = a.Number
	return nil
}

// Offer is a method of [host.Carrier]: the next question tells.
func (c *carrier) Offer(_ context.Context, round uint64) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.offer = round
	return nil
}

// ask returns the question of a party that stands like this.
func (c *carrier) ask(s host.Standing) exchange.Ask {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	ask := exchange.Ask{
		Sessions: s.Hello.Sessions,
		Absent:   c.absent,
		Offer:    c.offer,
		Seen:     c.seen,
		Working:  s.Works || s.Waits,
	}
	if c.federation.Settled.Oneshot() == nil {
		ask.Least = s.Hello.Least
	}
	return ask
}

// see returns items that were received, with one more. It keeps the last few, which suffice.
func see(seen []string, item string) []string {
	if item == "" || slices.Contains(seen, item) {
		return seen
	}
	seen = append(slices.Clone(seen), item)
	return seen[max(0, len(seen)-mostSeen):]
}

// moment is how long a party may be silent while it is busy: steps go on without one that is silent
// for four times as long.
func (c *carrier) moment() time.Duration {
	grace := exchange.DefaultGrace(c.federation.Settled.Roster().Len())
	return min(grace, time.Duration(drive.DefaultComeBack)) / 4
}

// Next is a method of [host.Carrier]: it asks what is next, until there is something.
func (c *carrier) Next(ctx context.Context, s host.Standing) (drive.Item, error) {
	c.stay() // what came last has been dealt with
	c.papers.submitted(s.Hello.Told)
	if c.dealt {
		c.wait, c.dealt = firstWait, false
		c.heads.fetch(c.life)
	}
	if !s.Works {
		c.turn.rest()
	}
	ask := c.ask(s)
	if s.Waits { // a result within the moment leaves without another question
		if err := sleep(ctx, c.moment()); err != nil {
			return drive.Item{}, err
		}
	}
	for {
		asked := time.Now()
		ask.Seen = c.seen
		next, err := c.question(ctx, ask, s.Waits)
		switch {
		case err != nil && s.Waits && ctx.Err() == nil && !fatal(err):
			if err := sleep(ctx, time.Second); err != nil { // the program goes on meanwhile
				return drive.Item{}, err
			}
		case err != nil:
			return drive.Item{}, marked(err)
		case next.Kind == exchange.Nothing:
			c.wait = firstWait
			// A server that answers this without waiting is asked ten times a second at most.
			if err := sleep(ctx, firstWait-time.Since(asked)); err != nil {
				return drive.Item{}, err
			}
		default:
			c.dealt = true
			return c.item(&next)
		}
	}
}

// question asks once. What is begun within the hours of the party's policy may end later.
func (c *carrier) question(
	ctx context.Context, ask exchange.Ask, waits bool,
) (next exchange.Next, err error) {
	if !waits {
		_, stop, err := c.policy.Hours(ctx)
		if err != nil {
			return next, err
		}
		stop()
	}
	seen := c.seen
	// A place is taken before the message is read: those that wait would otherwise hold their
	// messages.
	next, err = c.server.next(ctx, c.path, ask, c.most, c.heads.note(), func(next *exchange.Next,
		told *exchange.Told,
	) error {
		if err := c.heads.take(ctx, told); err != nil {
			return err
		}
		c.due = time.Now().Add(time.Duration(c.federation.Job.Time.StepTime) + away)
		c.seen = see(c.seen, next.Item)
		ask.Seen = c.seen
		c.present(ask)
		return c.turn.take(ctx)
	})
	if err != nil {
		c.seen = seen // what was being read is asked for again
		c.stay()
	}
	var refusal *RefusalError
	if errors.As(err, &refusal) && refusal.Kind == "behind" && c.heads != nil {
		c.log.Warn("the server's record was set back: this party gives it what it lacks")
		err = errors.Join(err, c.heads.give(ctx, refusal.head))
	}
	return next, err
}

// item returns what is next as an item.
func (c *carrier) item(next *exchange.Next) (in drive.Item, err error) {
	in = drive.Item{
		Name:    next.Item,
		Session: next.Session,
		Round:   uint64(next.Round),
		Own:     next.Message,
	}
	sender := c.federation.Settled.Oneshot() != nil && !c.member
	c.papers.begins(c.life, in.Round)
	switch {
	case next.Kind == exchange.Message:
		in.Kind = drive.Carry
	case next.Kind == exchange.End:
		in.Kind = drive.Last
	case next.Kind == exchange.Join && !c.member && !sender:
		in.Kind = drive.Join
	case next.Kind == exchange.Upload && sender:
		in.Kind = drive.Upload
	default: // which a server of this federation never says
		err = localError(fmt.Errorf("%w: it says %.20q is next", ErrServer, next.Kind))
	}
	return in, err
}

// present tells the server that this party is present while it is busy with an item for more than a
// moment, by a request that stays open, until stay is called. What is next can wait meanwhile.
func (c *carrier) present(ask exchange.Ask) {
	ctx, cancel := context.WithCancel(c.life)
	ask.Working = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait := c.moment(); sleep(ctx, wait) == nil; {
			next, err := c.server.next(ctx, c.path, ask, c.most, nil, nil)
			switch {
			case err != nil:
				wait = time.Second
			case next.Kind == exchange.Nothing:
				wait = firstWait
			default:
				ask.Seen, wait = see(ask.Seen, next.Item), c.moment()
			}
		}
	}()
	c.stay = func() {
		cancel()
		<-done
		c.stay = func() {}
	}
}

// pause is [host.Player.Pause].
func (c *carrier) pause(err error) time.Duration {
	c.stay()
	c.turn.restIdle()
	// Spread out, so that not all parties come back at once.
	pause := c.wait/2 + rand.N(c.wait)
	if n := c.federation.Settled.Roster().Len(); c.awaited(err, n) {
		pause = soonest + rand.N(min(spread, (exchange.DefaultGrace(n)-soonest)/2))
	}
	c.log.Warn("asking again", "error", err.Error(), "in", pause.Round(time.Millisecond).String())
	c.wait = min(2*c.wait, longestWait)
	return pause
}

// awaited reports whether a step may wait for the party, one of a given number, although no node
// could help it.
func (c *carrier) awaited(err error, parties int) bool {
	var refusal *RefusalError
	return time.Now().Before(c.due) && parties <= fewHere &&
		(!errors.As(err, &refusal) || refusal.Status >= http.StatusInternalServerError)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
