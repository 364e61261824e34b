package runner

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
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

// Next returns what there is for a party or a member to do, and waits for that if there is nothing
// yet. After the wait, or when ctx ends, it returns [exchange.Nothing]. Call the result's Sent. It
// fails with [ErrStopped] or [CopiedError].
func (r *Runner) Next(
	ctx context.Context, p Peer, ask exchange.Ask, wait time.Duration,
) (Outgoing, error) {
	var n Outgoing
	sent, err := r.host.Poll(ctx, p, question(&ask, wait), func(drive.Lead, drive.Time) error {
		if err := r.numbered(p, &ask); err != nil {
			return err
		}
		r.connected(p, &ask)
		return nil
	}, func(item drive.Item, _ drive.Status) { n = nextOf(&item) })
	n.sent = sent
	var copied *CopiedError
	if errors.Is(err, host.ErrNothing) || ctx.Err() != nil && !errors.As(err, &copied) {
		err = nil
	}
	return n, err
}

// question returns what a leader needs to know of a question.
func question(ask *exchange.Ask, wait time.Duration) host.Question {
	q := host.Question{Had: make(map[string]bool), Offer: ask.Offer, Working: ask.Working, Wait: wait}
	for _, item := range ask.Seen {
		q.Had[item] = true
	}
	return q
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

// ReadMessage takes a message of a party or a member, of a given size in bytes and with a given
// SHA-256, which began to arrive at a given time and is now ready to be read. A copy of a message
// that the runner has is accepted like the first. It fails with [ErrStopped], [ErrEnded], or an
// error of package protocol or oneshot.
func (r *Runner) ReadMessage(
	ctx context.Context, p Peer, message io.Reader, size int64, digest [32]byte, came time.Time,
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
	return r.host.With(ctx, p, func(lead drive.Lead, _ drive.Time) error {
		if r.sums != nil && !p.Member {
			lead.Check(r.ahead.take())
		}
		r.heard(p)
		submission := r.submits(p, begins)
		err := lead.Receive(r.now(), p, message)
		if submission && err == nil {
			r.receipts.submitted(p.Index, digest)
		}
		return r.counts(p, submission, size, came, err)
	})
}

// counts counts a message that was taken or refused, and returns what its sender is told.
func (r *Runner) counts(p Peer, submission bool, size int64, came time.Time, err error) error {
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
func (r *Runner) Broadcast(ctx context.Context, i, round int) (file []byte, err error) {
	err = r.host.With(ctx, Peer{Index: i}, func(lead drive.Lead, _ drive.Time) error {
		if i >= 0 {
			r.heard(Peer{Index: i})
		}
		if round == 0 {
			file, err = r.last()
			return err
		}
		if at := lead.Status(); round != int(at.Round) || at.Stage != drive.Submitting {
			return ErrNotDue
		}
		file, err = r.begin()
		return err
	})
	return file, err
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
	err = r.host.With(ctx, p, func(lead drive.Lead, _ drive.Time) error {
		r.heard(p)
		if lead.Status().Ended != "" {
			return ErrEnded
		}
		due, most = lead.At(p).Due, r.most
		return nil
	})
	return due, most, err
}
