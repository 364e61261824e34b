package party

import (
	"context"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/service/exchange"
)

// sending is a party that sends one message a round: it announces the message, and sends it when
// the server has room.
type sending struct {
	*running
	offer  uint64  // the round that it has a message of, 0: none
	making *making // with sum.buffer, what the trainer is at, or has made
}

func (s *sending) load() error {
	if err := s.loadParty(); err != nil {
		return err
	}
	s.party.Connected()
	return s.proceed(context.Background()) // which sends nothing yet
}

func (s *sending) ask() exchange.Ask {
	return exchange.Ask{Round: s.party.Hello().Told, Absent: s.absent, Offer: s.offer, Seen: s.seen,
		Working: s.making != nil && !s.making.told}
}

// take handles what is next.
func (s *sending) take(next *exchange.Next) (err error) {
	switch next.Kind {
	case exchange.Message:
		err = s.party.Receive(drive.Item{Kind: drive.Carry, Own: next.Message})
	case exchange.Upload:
		err = s.party.Receive(drive.Item{Kind: drive.Upload, Round: uint64(next.Round)})
	case exchange.End:
	default:
		return errNext(next)
	}
	if err != nil {
		return localError{err}
	}
	return nil
}

// proceed carries out what the party has decided: it saves, then sends, then trains.
func (s *sending) proceed(ctx context.Context) error {
	for {
		if err := s.finish(); err != nil {
			return err
		}
		ready, some := s.party.Ready()
		if !some {
			return nil
		}
		if ready.Save {
			if err := s.save(); err != nil {
				return err
			}
			if err := s.count(); err != nil {
				return err
			}
		}
		for _, one := range ready.Reports {
			s.tell(one)
		}
		if err := s.leave(ctx, s.party.Advance()); err != nil {
			return err
		}
	}
}

// leave sends what may be sent, and trains.
func (s *sending) leave(ctx context.Context, out drive.Out) error {
	for _, away := range out.Away {
		s.absent = away.Number // which the next question tells
	}
	if out.Offer != 0 {
		s.offer = out.Offer // which the next question tells
	}
	for _, m := range out.Send {
		s.rest()
		taken, err := s.post(ctx, m.Bytes)
		if err != nil {
			return err
		}
		if !taken { // and the same would not be
			s.absent = s.offer
		}
		s.offer = 0
	}
	if out.Ask == nil || out.Ask.Round == s.absent {
		return nil
	}
	return s.work(ctx, out.Ask)
}

// work trains for a round, and makes the party's message from the result.
func (s *sending) work(ctx context.Context, ask *drive.Ask) error {
	w, refused, err := s.begun(ctx, int(ask.Round))
	switch {
	case err != nil:
		return err
	case refused != nil:
		s.party.Absent(ask.ID, ask.Round, refused)
		return nil
	case w == nil: // the round went on
		return nil
	}
	if ask.ID.Made > 0 {
		return s.submitMade(ask, w)
	}
	if s.Federation.Settled.Buffer() > 0 {
		s.begin(ask.ID, w)
		return nil
	}
	update, err := s.train(s.working, w)
	switch cause := context.Cause(s.working); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && cause != nil: // the round is over
		s.party.Absent(ask.ID, ask.Round, cause)
		return nil
	case err == nil:
		if err := s.check(update); err != nil {
			return localError{err}
		}
	}
	return s.answer(ask, w, update, err)
}

// opening returns the digest by which an opening names the beginning of a round.
func opening(w *Work) [32]byte {
	digest := oneshot.NewBroadcastHash()
	_, _ = digest.Write(w.File) // a hash takes all
	return [32]byte(digest.Sum(nil))
}

// answer makes the message of an update, or of zeros where there is a reason for them.
func (s *sending) answer(ask *drive.Ask, w *Work, update *Update, why error) error {
	rounds := uint64(0)
	if ask.ID.Made > 0 {
		rounds = ask.Round - ask.ID.Made
	}
	answer := drive.Answer{ID: ask.ID, Round: ask.Round, Broadcast: opening(w), Err: why}
	answer.Fill = func(v *masking.Vector) error {
		values, err := s.values(update, w, rounds)
		if err != nil {
			return err
		}
		return set(v, values)
	}
	if err := s.party.Answer(answer); err != nil {
		return localError{err}
	}
	return nil
}

// values encodes an update that was begun a given number of rounds before, without noise, which is
// in the mask.
func (s *sending) values(update *Update, w *Work, rounds uint64) ([][]uint64, error) {
	settled, digest := s.Federation.Settled, job.BroadcastDigest(w.File)
	switch {
	case update.Message != nil:
		return settled.Encode(digest, update.Message.Weighed(rounds), s.random)
	case update.Values != nil:
		return update.Values, nil
	}
	made := job.Update[float64]{Vector: update.Vector, Loss: update.Loss, Accuracy: update.Accuracy}
	return settled.Encode(digest, made.Weighed(rounds), s.random)
}
