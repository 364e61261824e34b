package party

import (
	"context"
	"fmt"

	"github.com/hushsum/hushsum/drive"
)

// This file runs a party of a federation with sum.buffer: it trains while rounds come and go, and
// submits the result of training on a model in the round that has room for it.

// making holds a training on a round's model, and its result.
type making struct {
	id     drive.AskID
	of     *Work
	cancel context.CancelFunc
	ended  chan struct{}
	told   bool    // drive knows that it has ended
	update *Update // once it has
	err    error
}

// begin has the trainer work while the party goes on. A training already in progress is told to
// end, and begin waits for that.
func (s *sending) begin(id drive.AskID, w *Work) {
	last := s.making
	if last != nil {
		last.cancel()
	}
	ctx, cancel := context.WithCancel(s.life)
	m := &making{id: id, of: w, cancel: cancel, ended: make(chan struct{})}
	s.making = m
	s.trainings.Go(func() {
		defer cancel()
		if last != nil {
			<-last.ended
		}
		m.update, m.err = s.trainInTurn(ctx, w)
		close(m.ended)
		select {
		case s.woken <- struct{}{}:
		default:
		}
	})
}

// trainInTurn trains with a place in Turns of its own.
func (s *sending) trainInTurn(ctx context.Context, w *Work) (*Update, error) {
	if s.Turns != nil {
		select {
		case s.Turns <- struct{}{}:
			defer func() { <-s.Turns }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.train(ctx, w)
}

// finish takes the result that the trainer has reached since.
func (s *sending) finish() error {
	m := s.making
	if m == nil || m.told {
		return nil
	}
	select {
	case <-m.ended:
		m.told = true
	default:
		return nil
	}
	if m.err == nil {
		if err := s.check(m.update); err != nil {
			return localError{err}
		}
		s.party.Finished(m.id)
		return nil
	}
	why := drive.Answer{ID: m.id, Round: m.id.Round, Broadcast: opening(m.of), Err: m.err}
	if err := s.party.Answer(why); err != nil {
		return localError{err}
	}
	return nil
}

// submitMade submits in the round of w the result of training on an earlier model, weighted by how
// many rounds earlier that was begun.
func (s *sending) submitMade(ask *drive.Ask, w *Work) error {
	m := s.making
	if m == nil || !m.told || m.id.Round != ask.ID.Made {
		s.party.Absent(ask.ID, ask.Round, fmt.Errorf("%w: nothing was made in round %d", drive.ErrRound,
			ask.ID.Made))
		return nil
	}
	return s.answer(ask, w, m.update, m.err)
}

// hearing returns a context for a request that waits, which ends once the trainer has.
func (r *running) hearing(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.woken == nil {
		return ctx, func() {}
	}
	waiting, stop := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-r.woken:
			stop(errMade)
		case <-waiting.Done():
		}
	}()
	return waiting, func() { stop(nil) }
}
