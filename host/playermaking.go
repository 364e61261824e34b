package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/instant"
	"github.com/hushsum/hushsum/masking"
)

// This file has the program's work, which goes on next to the loop.

// making holds the program's work on a question.
type making struct {
	ask    drive.Ask
	cast   *Cast
	cancel context.CancelCauseFunc
	ended  chan struct{}
	known  bool // the loop knows that it has ended
	fill   Fill // once it has
	err    error
}

// begin has the program work on a question. What it worked on before is told to end, and waited
// for.
func (h *Player) begin(ctx context.Context, ask drive.Ask) error {
	last := h.making
	switch {
	case ask.ID.Made > 0:
		return h.submit(ctx, ask)
	case last != nil && last.ask.ID == ask.ID && (!last.known || h.instant != nil):
		return nil
	}
	asked := time.Now()
	cast, err := h.Carrier.Cast(ctx, ask.Round)
	switch {
	case errors.Is(err, ErrCast):
		h.Part.Absent(ask.ID, ask.Round, err)
		return nil
	case err != nil || cast == nil || cast.Spent: // it comes with the next message that says so
		return err
	}
	m := &making{ask: ask, cast: cast, ended: make(chan struct{})}
	life, cancel := context.WithCancelCause(h.life)
	m.cancel = cancel
	h.drop()
	h.making = m
	if ask.After > 0 {
		h.outcome.instant = true
		after := time.Duration(ask.After) - time.Since(asked)
		h.instant = time.NewTimer(after)
		deadline, stop := context.WithTimeoutCause(life, after, instant.ErrOverrun)
		context.AfterFunc(life, stop)
		life = deadline
	}
	if ask.Idle {
		m.known, h.outcome.zeros = true, ask.Round // its coin leaves the party out
		return nil
	}
	before := h.busy // one at a time, and what was told to end may take its time
	h.busy = m.ended
	h.running.Go(func() {
		defer cancel(nil)
		if before != nil {
			<-before
		}
		if m.err = context.Cause(life); m.err == nil {
			m.err = h.try(func() error { return h.make(life, m) })
		}
		close(m.ended)
		select {
		case h.made <- m:
		case <-h.life.Done():
		}
	})
	return nil
}

// ErrCast: what a round begins with is refused.
var ErrCast = errors.New("host: the model is refused")

// try does work of the program, which with noise must not end the process.
func (h *Player) try(work func() error) error {
	if !h.Quiet {
		return work()
	}
	return drive.Caught(work)
}

// make has the program make a vector. One that leaves at an instant is encoded before it, since
// that takes time too.
func (h *Player) make(ctx context.Context, m *making) error {
	fill, err := h.Program.Make(ctx, m.cast)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil || m.ask.After == 0 {
		m.fill = fill
		return err
	}
	v, err := masking.NewVector(h.Layout)
	if err == nil {
		err = fill(v, m.cast, 0)
	}
	m.fill = func(out *masking.Vector, _ *Cast, _ uint64) error {
		defer v.Erase()
		return out.Add(v)
	}
	return err
}

// end tells the part that the program has ended.
func (h *Player) end(m *making) error {
	var end *FatalError
	switch {
	case m != h.making || h.life.Err() != nil: // dropped
		return nil
	case errors.As(m.err, &end):
		return m.err
	}
	m.known = true
	m.cast.Spent = m.err == nil || h.Quiet
	if h.Buffered && m.err == nil {
		h.Part.Finished(m.ask.ID)
		return nil
	}
	if m.ask.After == 0 && !h.Buffered {
		h.making = nil
	}
	return fatal(h.Part.Answer(m.answer(m.ask, m.cast)))
}

// answer returns what the program has made, as the answer to a question.
func (m *making) answer(ask drive.Ask, in *Cast) drive.Answer {
	later := uint64(0)
	if ask.ID.Made > 0 {
		later = ask.Round - ask.ID.Made
	}
	return drive.Answer{ID: ask.ID, Round: in.Round, Broadcast: in.Digest, Err: m.err,
		Fill: func(v *masking.Vector) error { return m.fill(v, in, later) }}
}

// submit submits in a round what the program made of an earlier one.
func (h *Player) submit(ctx context.Context, ask drive.Ask) error {
	in, err := h.Carrier.Cast(ctx, ask.Round)
	switch {
	case errors.Is(err, ErrCast):
	case err != nil || in == nil:
		return err
	}
	m := h.making
	if err == nil && (m == nil || !m.known || m.ask.ID.Round != ask.ID.Made) {
		err = fmt.Errorf("%w: nothing was made in round %d", drive.ErrRound, ask.ID.Made)
	}
	if err != nil {
		h.Part.Absent(ask.ID, ask.Round, err)
		return nil
	}
	return fatal(h.Part.Answer(m.answer(ask, in)))
}

// drop has the program end what comes too late.
func (h *Player) drop() {
	if h.making != nil {
		h.making.cancel(ErrWentOn)
	}
	h.making, h.instant = nil, nil
}

// at returns the channel that tells of the instant; nil where there is none.
func (h *Player) at() <-chan time.Time {
	if h.instant == nil {
		return nil
	}
	return h.instant.C
}

// reached submits at the instant, whatever the program has done.
func (h *Player) reached() error {
	m := h.making
	h.making, h.instant = nil, nil
	a := drive.Answer{ID: m.ask.ID, Round: m.cast.Round, Broadcast: m.cast.Digest}
	if !m.known {
		m.cancel(instant.ErrOverrun)
		late := a
		late.Err = instant.ErrOverrun
		if err := h.Part.Answer(late); err != nil {
			return fatal(err)
		}
	}
	return fatal(h.Part.Instant(a))
}
