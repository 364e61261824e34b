package runner

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/exchange"
)

// This file answers the questions of parties and takes their messages.

// Peer is a party, or a member of the committee of one-message sums.
type Peer = drive.Peer

// CopiedError refuses a question whose number is not above the last one, or not above the time at
// which this runner started, in nanoseconds since 1970: it is unknown who may have copied it.
type CopiedError struct {
	Last  uint64 // number the next question above it
	Twice bool   // two processes have asked in turn, of late
}

func (e *CopiedError) Error() string {
	return fmt.Sprintf("runner: the question is a copy, or older than one that was asked: number the "+
		"next one above %d", e.Last)
}

const (
	// twiceFor is how long two processes that have asked in turn are said to.
	twiceFor = time.Minute
	// twiceAgain is the time between two lines of the log about them.
	twiceAgain = time.Hour
)

// numbered records the number of a question, or fails with [CopiedError]. A process that asks
// after another that began later is still there: it and the other have one identity.
func (r *Runner) numbered(p Peer, ask *exchange.Ask) error {
	at, now := r.peer(p), time.Now()
	if last := max(at.number, uint64(r.clock.began.UnixNano())); ask.Number > 0 &&
		ask.Number <= last {
		return &CopiedError{last, !at.twice.IsZero() && now.Sub(at.twice) < twiceFor}
	}
	at.number = max(at.number, ask.Number)
	if ask.Process == 0 || ask.Process == at.process {
		return nil
	}
	if ask.Process == at.before {
		at.twice = now
		if at.twiceTold.IsZero() || now.Sub(at.twiceTold) > twiceAgain {
			at.twiceTold = now
			r.Log.Warn("two processes take part by the same identity: stop one of them", "name",
				r.nameOf(p))
		}
	}
	at.before, at.process = at.process, ask.Process
	return nil
}

// nameOf returns the name of a party or a member.
func (r *Runner) nameOf(p Peer) string {
	if p.Member {
		return r.sums.Committee.Name(p.Index)
	}
	return r.names[p.Index]
}

// Outgoing is the answer to a question until it is written. Message follows Shared.
type Outgoing struct {
	exchange.Next
	Shared []byte // the beginning of the message: one memory for all parties
	sent   func()
}

// Len returns the length of the message in bytes.
func (n *Outgoing) Len() int { return len(n.Shared) + len(n.Message) }

// Sent releases the message's room. Call it once the message is written or cannot be written:
// until then the party counts as present.
func (n *Outgoing) Sent() {
	if n.sent != nil {
		n.sent()
	}
}

// Next waits until there is something for a party or a member to do. When ctx ends it returns
// [exchange.Nothing]. Call the result's Sent. It fails with [ErrStopped] or [CopiedError].
func (r *Runner) Next(ctx context.Context, p Peer, ask exchange.Ask) (Outgoing, error) {
	if err := r.acquireFor(ctx, p); err != nil {
		return Outgoing{}, orNothing(ctx, err)
	}
	if err := r.numbered(p, &ask); err != nil {
		r.release()
		return Outgoing{}, err
	}
	r.peer(p).polls++
	r.connected(p, &ask)
	r.Poke()
	r.release()
	room, out := int64(0), r.out
	if p.Member {
		out = r.council
	}
	left := func() {
		out.Release(room)
		if !p.Member {
			r.crowd <- struct{}{}
		}
		<-r.lock
		if !p.Member {
			<-r.crowd
		}
		if at := r.peer(p); at.polls == 1 {
			at.polls = 0
			r.drive.Gone(r.now(), p)
		} else {
			at.polls--
		}
		r.release()
		r.Poke()
	}
	for {
		room = min(r.largest.Load(), r.OutRoom)
		if out.Acquire(ctx, room) != nil {
			room = 0
			left()
			return Outgoing{}, nil
		}
		if err := r.acquireFor(ctx, p); err != nil {
			left()
			return Outgoing{}, orNothing(ctx, err)
		}
		r.peer(p).heard = r.clock.time()
		next, again := r.next(p, &ask)
		changed := r.peer(p).wait()
		size := min(int64(next.Len()), r.OutRoom)
		if size > r.largest.Load() {
			r.largest.Store(size)
		}
		r.release()
		switch {
		case next.Kind == exchange.Nothing:
		case size <= room:
			next.sent = left
			return next, nil
		case out.TryAcquire(size - room):
			room, next.sent = size, left
			return next, nil
		default: // the first of their size: made again when there is room
			out.Release(room)
			continue
		}
		out.Release(room)
		room = 0
		var timer <-chan time.Time
		if again > 0 {
			timer = time.After(again)
		}
		select {
		case <-ctx.Done():
			left()
			return Outgoing{}, nil
		case <-changed:
		case <-timer:
		}
	}
}

func orNothing(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// next finds what a party or a member has to do, and after how long to look again.
func (r *Runner) next(p Peer, ask *exchange.Ask) (n Outgoing, again time.Duration) {
	if r.sums != nil {
		return r.inOrder(p, ask)
	}
	return r.inSession(p, ask)
}

// inSession finds the first item of a session that a party has not seen, or the last that it has
// seen, has not answered and is not working on.
func (r *Runner) inSession(p Peer, ask *exchange.Ask) (n Outgoing, again time.Duration) {
	var last []Outgoing // of each session, what it has seen
	for item := range r.drive.Pending(p) {
		found := nextOf(&item)
		k := len(last) - 1
		another := k < 0 || last[k].Session != found.Session
		if another && k >= 0 && r.again(p, &last[k], ask, &again) {
			return last[k], 0
		}
		if found.Kind == exchange.End || !slices.Contains(ask.Seen, found.Item) {
			r.asked(p, &found)
			return found, 0
		}
		if another {
			last = append(last, found)
		} else {
			last[k] = found
		}
	}
	if k := len(last) - 1; k >= 0 && r.again(p, &last[k], ask, &again) {
		return last[k], 0
	}
	return Outgoing{}, again
}

// kinds maps the kinds of drive's items to those of the answer.
var kinds = map[drive.ItemKind]exchange.Kind{
	drive.Join:   exchange.Join,
	drive.Carry:  exchange.Message,
	drive.Upload: exchange.Upload,
	drive.Last:   exchange.End,
}

func nextOf(item *drive.Item) Outgoing {
	return Outgoing{
		Next: exchange.Next{
			Kind:    kinds[item.Kind],
			Item:    item.Name,
			Session: item.Session,
			Round:   int(item.Round),
			Message: item.Own,
		},
		Shared: item.Shared,
	}
}

func (r *Runner) asked(p Peer, n *Outgoing) {
	at := r.peer(p)
	at.asked, at.askedWhen = n.Item, time.Now()
}

// again reports whether a party should get again an item that it has seen: it is not working on
// it, so that its answer was lost, with a runner that died or on the way. Otherwise again says
// when.
func (r *Runner) again(p Peer, n *Outgoing, ask *exchange.Ask, when *time.Duration) bool {
	if ask.Working {
		return false
	}
	at := r.peer(p)
	wait := resendAfter - time.Since(at.askedWhen)
	if at.asked != n.Item || wait <= 0 {
		r.asked(p, n)
		return true
	}
	if *when == 0 || wait < *when {
		*when = wait
	}
	return false
}

// ReadMessage takes a message of a party or a member, of a given size in bytes, which began to
// arrive at a given time and is now ready to be read. A copy of a message that the runner has is
// accepted like the first. It fails with [ErrStopped], [ErrEnded], or an error of package protocol
// or oneshot.
func (r *Runner) ReadMessage(
	ctx context.Context, p Peer, message io.Reader, size int64, came time.Time,
) error {
	begins, message, err := r.received(p, message, size)
	if err != nil {
		return err
	}
	if whole, ok := message.(*bytes.Buffer); ok && !p.Member {
		one := &drive.Submission{Party: p.Index, Message: whole.Bytes()}
		r.ahead.add(one)
		defer r.ahead.remove(one)
	}
	if err := r.acquireFor(ctx, p); err != nil {
		return err
	}
	defer r.release()
	if r.sums != nil && !p.Member {
		r.drive.Check(r.ahead.take())
	}
	now := r.now()
	r.heard(p)
	submission := r.submits(p, begins)
	err = r.drive.Receive(now, p, message)
	switch {
	case errors.Is(err, protocol.ErrDuplicate), errors.Is(err, oneshot.ErrDuplicate):
		return nil
	case errors.Is(err, drive.ErrEnded):
		return ErrEnded
	}
	if submission {
		r.tracing.submission(r.names[p.Index], came, r.now(), err)
	}
	if err != nil {
		r.refused++
		if errors.Is(err, oneshot.ErrProof) { // it is decided that the party is left out
			r.Poke()
		}
		return err
	}
	r.bytesIn += size
	r.Poke()
	return nil
}

// received reads the beginning of a message. A message that is held until the members of a
// committee have checked it is read whole.
func (r *Runner) received(
	p Peer, message io.Reader, size int64,
) (begins []byte, ready io.Reader, err error) {
	if r.sums == nil {
		buffered := bufio.NewReaderSize(message, 16)
		begins, _ = buffered.Peek(2)
		return begins, buffered, nil
	}
	whole := make([]byte, size)
	_, err = io.ReadFull(message, whole)
	return whole[:min(2, size)], bytes.NewBuffer(whole), err
}

// Broadcast returns to a party, or with i negative to a caller not on the roster, the beginning of
// a round: the model as a safetensors file. Round 0 stands for the last model. Broadcast fails
// with [ErrNotDue] if another round is not the present one.
func (r *Runner) Broadcast(ctx context.Context, i, round int) ([]byte, error) {
	if err := r.acquireFor(ctx, Peer{Index: i}); err != nil {
		return nil, err
	}
	defer r.release()
	if i >= 0 {
		r.heard(Peer{Index: i})
	}
	if round == 0 {
		return r.last()
	}
	if at := r.drive.Status(); round != int(at.Round) || at.Stage != drive.Submitting {
		return nil, ErrNotDue
	}
	return r.begin()
}

// after is how many rounds the model has gone through.
func (r *Runner) after() int {
	at := r.drive.Status()
	if at.Stage >= drive.Submitting {
		return int(at.Round) - 1
	}
	return int(at.Round)
}

// last returns the last model. All callers that ask between two rounds share the bytes.
func (r *Runner) last() ([]byte, error) {
	after := r.after()
	if after < int(r.drive.Status().Round) {
		return modelFile(r.Federation, r.model, after)
	}
	if r.broadcast != nil && r.of == -after {
		return r.broadcast, nil
	}
	b, err := modelFile(r.Federation, r.model, after)
	if err == nil {
		r.broadcast, r.of = b, -after
	}
	return b, err
}

// begin returns the broadcast of the present round.
func (r *Runner) begin() ([]byte, error) {
	at := r.drive.Status()
	if r.broadcast != nil && r.of == int(at.Round) {
		return r.broadcast, nil
	}
	return r.cast(at.Round, at.Fresh)
}

// cast makes the broadcast of a round. fresh varies between rounds with the same model, and the
// rotation follows from it.
func (r *Runner) cast(round uint64, fresh [32]byte) ([]byte, error) {
	b, err := r.Federation.Spec.Append(nil, r.model, map[string]string{
		"federation": r.Federation.ID,
		"round":      strconv.FormatUint(round, 10),
		"fresh":      hex.EncodeToString(fresh[:]),
	})
	if err == nil {
		r.broadcast, r.of = b, int(round)
	}
	return b, err
}

// Due reports whether a message of a party or a member is waited for, and its maximum length. It
// fails with [ErrStopped] or [ErrEnded].
func (r *Runner) Due(ctx context.Context, p Peer) (due bool, most int, err error) {
	if err := r.acquireFor(ctx, p); err != nil {
		return false, 0, err
	}
	defer r.release()
	r.heard(p)
	if r.drive.Status().Ended != "" {
		return false, 0, ErrEnded
	}
	return r.drive.At(p).Due, r.most, nil
}
