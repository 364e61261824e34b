package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/protocol"
)

// This file has what parties ask and send.

// Ask is what a party says when it asks what is next.
type Ask struct {
	Sessions []uint64 // that it has keys for
	Least    uint64   // the least number of a session that it may join
	Round    uint64   // the last round that it knows of
	Absent   uint64   // a round that it does not submit in
	Seen     []string // items that it has
	Working  bool     // it is busy with what it has, and wants to hear only what is newer
}

// Kind says what is next.
type Kind string

// The kinds.
const (
	Nothing Kind = ""        // nothing yet: ask again
	Join    Kind = "join"    // make keys for the session of this number
	Message Kind = "message" // take this message
	End     Kind = "end"     // the federation has ended; the model is the last one
)

// Next is what is next for a party.
type Next struct {
	Kind    Kind
	Item    string // name it as seen
	Session uint64
	Round   int    // of the federation, where the message begins one
	Shared  []byte // what the message begins with: one memory for all parties
	Message []byte // the rest of it
	sent    func()
}

// Len is how many bytes the message has.
func (n *Next) Len() int { return len(n.Shared) + len(n.Message) }

// Sent gives the message's room free. Call it once the message is written, or cannot be:
// until then the party counts as there.
func (n *Next) Sent() {
	if n.sent != nil {
		n.sent()
	}
}

// Next waits until there is something for a party to do, or ctx ends, when it returns
// Nothing. Call the result's Sent. It fails with [ErrStopped].
func (r *Runner) Next(ctx context.Context, i int, ask Ask) (Next, error) {
	if err := r.acquire(ctx); err != nil {
		return Next{}, orNothing(ctx, err)
	}
	p := &r.parties[i]
	p.polls++
	p.seen, p.sessions, p.told, p.least = time.Now(), ask.Sessions, ask.Round, ask.Least
	p.absent = ask.Absent
	r.poke()
	r.release()
	room := int64(0)
	left := func() {
		r.out.Release(room)
		<-r.lock
		p.polls--
		p.seen = time.Now()
		r.release()
		r.poke()
	}
	for {
		room = min(r.largest.Load(), r.OutRoom)
		if r.out.Acquire(ctx, room) != nil {
			room = 0
			left()
			return Next{}, nil
		}
		if err := r.acquire(ctx); err != nil {
			left()
			return Next{}, orNothing(ctx, err)
		}
		next, again := r.next(i, ask)
		changed := r.changed
		size := min(int64(next.Len()), r.OutRoom)
		if size > r.largest.Load() {
			r.largest.Store(size)
		}
		r.release()
		switch {
		case next.Kind == Nothing:
		case size <= room:
			next.sent = left
			return next, nil
		case r.out.TryAcquire(size - room):
			room, next.sent = size, left
			return next, nil
		default: // the first of their size: made again when there is room
			r.out.Release(room)
			continue
		}
		r.out.Release(room)
		room = 0
		var timer <-chan time.Time
		if again > 0 {
			timer = time.After(again)
		}
		select {
		case <-ctx.Done():
			left()
			return Next{}, nil
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

// next finds what a party has to do, and after what time to look again.
func (r *Runner) next(i int, ask Ask) (n Next, again time.Duration) {
	if r.ended != "" {
		return Next{Kind: End, Item: "end", Round: r.round}, 0
	}
	p := &r.parties[i]
	for _, s := range r.sessions() {
		if s == r.present && r.absent(i) {
			continue
		}
		found, seen := r.question(s, i, &ask)
		if found.Kind == Nothing {
			continue
		}
		if !seen {
			p.asked, p.askedWhen = found.Item, time.Now()
			return found, 0
		}
		if ask.Working {
			continue
		}
		// It has the question and is not at work on it: the answer was lost, with a
		// runner that died or on the way.
		wait := resendAfter - time.Since(p.askedWhen)
		if p.asked != found.Item || wait <= 0 {
			p.asked, p.askedWhen = found.Item, time.Now()
			return found, 0
		}
		if again == 0 || wait < again {
			again = wait
		}
	}
	return Next{}, again
}

// question returns the first question of a session that a party has not seen, or the last
// of those that it has seen and not answered.
func (r *Runner) question(s *session, i int, ask *Ask) (found Next, seen bool) {
	server := r.server(s)
	has := slices.Contains(ask.Sessions, s.number)
	if s.stage == Announcing {
		item := fmt.Sprintf("%d.join", s.number)
		if ask.Least <= s.number && !has || has && server.Awaits(i) {
			found = Next{Kind: Join, Item: item, Session: s.number}
		}
		return found, slices.Contains(ask.Seen, item)
	}
	if !has {
		return Next{}, false
	}
	for shared, message := range server.PendingParts(i) {
		digest := sha256.Sum256(message) // what is shared is the session's
		found = Next{
			Kind:    Message,
			Item:    fmt.Sprintf("%d.%x", s.number, digest[:8]),
			Session: s.number,
			Shared:  shared,
			Message: message,
		}
		if server.Step() == protocol.StepMasked {
			found.Round = r.round
		}
		if !slices.Contains(ask.Seen, found.Item) {
			return found, false
		}
	}
	return found, true
}

// ReadMessage takes a message of a party, of so many bytes, which are all there to be read. A
// copy of one that it has is taken like the first. It fails with [ErrStopped], [ErrEnded],
// or an error of package protocol.
func (r *Runner) ReadMessage(ctx context.Context, i int, message io.Reader, size int64) error {
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.release()
	r.parties[i].seen = time.Now()
	if r.ended != "" {
		return ErrEnded
	}
	err := r.series.ReadMessage(r.Federation.Settled.Roster().Key(i), message)
	switch {
	case errors.Is(err, protocol.ErrDuplicate):
		return nil
	case err != nil:
		r.refused++
		return err
	}
	r.bytesIn += size
	r.dirty, r.heard = true, time.Now()
	r.poke()
	return nil
}

// Broadcast returns to a party, or to nobody of the roster with i negative, what a round
// began with: the model as a safetensors file. It fails with [ErrNotDue] if that round is
// not the present one, 0 standing for the last model.
func (r *Runner) Broadcast(ctx context.Context, i, round int) ([]byte, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.release()
	if i >= 0 {
		r.parties[i].seen = time.Now()
	}
	if round == 0 {
		return r.last()
	}
	if round != r.round || r.present == nil || r.present.stage != Submitting {
		return nil, ErrNotDue
	}
	return r.begin()
}

// last returns the last model. All who ask between two rounds share the bytes.
func (r *Runner) last() ([]byte, error) {
	if r.present != nil && r.present.stage >= Submitting {
		return modelFile(r.Federation, r.model, r.round-1)
	}
	if r.broadcast != nil && r.of == -r.round {
		return r.broadcast, nil
	}
	b, err := modelFile(r.Federation, r.model, r.round)
	if err == nil {
		r.broadcast, r.of = b, -r.round
	}
	return b, err
}

// begin returns the broadcast of the present round. What varies between rounds with the
// same model is fresh, which the rotation follows from.
func (r *Runner) begin() ([]byte, error) {
	if r.broadcast != nil && r.of == r.round {
		return r.broadcast, nil
	}
	b, err := r.Federation.Spec.Append(nil, r.model, map[string]string{
		"federation": r.Federation.ID,
		"round":      strconv.Itoa(r.round),
		"fresh":      hex.EncodeToString(r.fresh[:]),
	})
	if err == nil {
		r.broadcast, r.of = b, r.round
	}
	return b, err
}

// Due reports whether a message of a party is waited for, and how long it can be at
// most. It fails with [ErrStopped] or [ErrEnded].
func (r *Runner) Due(ctx context.Context, i int) (due bool, most int, err error) {
	if err := r.acquire(ctx); err != nil {
		return false, 0, err
	}
	defer r.release()
	r.parties[i].seen = time.Now()
	if r.ended != "" {
		return false, 0, ErrEnded
	}
	for _, s := range r.sessions() {
		due = due || r.server(s).Awaits(i)
	}
	return due, r.most, nil
}
