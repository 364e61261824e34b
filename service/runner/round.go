package runner

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/record"
)

// This file has the decisions of a round.

// proceed decides what is due.
func (r *Runner) proceed(ctx context.Context) error {
	if r.dirty && time.Since(r.recorded) > keepEvery {
		if err := r.record(ctx); err != nil {
			return err
		}
	}
	if r.ended != "" {
		return nil
	}
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	if err := r.form(ctx); err != nil {
		return err
	}
	if f := r.forming; f != nil && f.stage == Ready && (r.present == nil || r.present.stage == Ready) {
		if err := r.takeOver(ctx); err != nil {
			return err
		}
	}
	s := r.present
	if s == nil || s.stage != Ready && !r.over(s) {
		return nil
	}
	switch s.stage {
	case Ready:
		return r.prepare(ctx)
	case Preparing:
		return r.beginRound(ctx)
	case Submitting:
		return r.step(ctx, Signing)
	case Signing:
		return r.step(ctx, Revealing)
	case Revealing:
		return r.sum(ctx)
	}
	return nil
}

// step ends one step of a round and begins the next.
func (r *Runner) step(ctx context.Context, next Stage) error {
	err := r.series.Present().EndStep() // parties are told when they ask, see question
	if errors.Is(err, protocol.ErrTooFew) {
		return r.lose(ctx, err)
	} else if err != nil {
		return err
	}
	return r.enter(ctx, r.present, next)
}

// beginRound begins a round among those whose material is in, if they are enough and the
// budget lasts.
func (r *Runner) beginRound(ctx context.Context) error {
	s, server := r.present, r.series.Present()
	ledger, err := r.charge(server.Holders(), 1)
	if errors.Is(err, accounting.ErrBudget) {
		return r.end(ctx, "the privacy budget is spent")
	} else if err != nil {
		return err
	}
	r.round++
	r.broadcast = nil
	if _, err := rand.Read(r.fresh[:]); err != nil {
		return err
	}
	broadcast, err := r.begin()
	if err != nil {
		return err
	}
	envelopes, err := server.Begin(broadcast)
	if errors.Is(err, protocol.ErrTooFew) {
		r.round--
		r.why = fmt.Sprintf("round %d could not begin: %v", r.round+1, err)
		s.stage, s.since = Ready, time.Now()
		return nil
	} else if err != nil {
		return err
	}
	r.ledger, r.roundTime, r.why = ledger, time.Now(), ""
	if err := r.enter(ctx, s, Submitting); err != nil {
		return err
	}
	r.audit(record.Line{Event: "begun", Round: r.round, Parties: len(envelopes),
		Digest: digestOf(broadcast), Size: len(broadcast)})
	return nil
}

func digestOf(b []byte) string {
	d := sha256.Sum256(b)
	return hex.EncodeToString(d[:])
}

// charge returns the ledger as it is after so many more rounds with some parties.
func (r *Runner) charge(parties []int, rounds int) (*accounting.Ledger, error) {
	if r.ledger == nil {
		return nil, nil
	}
	b, err := r.ledger.MarshalJSON()
	if err != nil {
		return nil, err
	}
	after := new(accounting.Ledger)
	if err := after.UnmarshalJSON(b); err != nil {
		return nil, err
	}
	var names []string
	for _, i := range parties {
		names = append(names, r.names[i])
	}
	for range rounds {
		if err := after.SpendRound(r.Federation.Round(), names...); err != nil {
			return nil, err
		}
	}
	return after, nil
}

// lose ends a round without a sum.
func (r *Runner) lose(ctx context.Context, why error) error {
	r.lost++
	r.past(Past{Lost: why.Error()})
	r.why = fmt.Sprintf("round %d was lost: %v", r.round, why)
	tries := 0
	for _, p := range slices.Backward(r.history) {
		if p.Lost == "" || p.Round <= r.resumed {
			break
		}
		tries++
	}
	if tries >= mostLost {
		r.paused = true
		r.why = fmt.Sprintf("%d rounds in a row were lost, each at the cost of a round's privacy; "+
			"resume when the cause is mended. The last: %v", tries, why)
		defer r.audit(record.Line{Event: "paused", Round: r.round, Note: r.why})
	}
	if err := r.enter(ctx, r.present, Ready); err != nil {
		return err
	}
	r.audit(record.Line{Event: "lost", Round: r.round, Note: why.Error()})
	return nil
}

func (r *Runner) past(p Past) {
	p.Round, p.Session = r.round, r.present.number
	p.Began, p.Seconds = r.roundTime, time.Since(r.roundTime).Seconds()
	p.Epsilon = r.epsilon()
	r.history = append(r.history, p)
	if more := len(r.history) - mostHistory; more > 0 {
		r.history = slices.Delete(r.history, 0, more)
	}
}

// epsilon is what any party has spent at most. It is worked out once for a ledger, which is
// another after every round: people and programs ask again and again.
func (r *Runner) epsilon() float64 {
	if r.ledger == nil || r.mostOf == r.ledger {
		return r.mostSpent
	}
	r.mostSpent, r.mostOf = 0, r.ledger
	for _, client := range r.ledger.Clients() {
		if spent, err := r.ledger.Spent(client); err == nil {
			r.mostSpent = max(r.mostSpent, spent.Upper)
		}
	}
	return r.mostSpent
}

// sum ends a round with its sum, and makes the next model.
func (r *Runner) sum(ctx context.Context) error {
	server := r.series.Present()
	broadcast, err := r.begin()
	if err != nil {
		return err
	}
	sum, err := server.Sum()
	if errors.Is(err, protocol.ErrTooFew) || errors.Is(err, protocol.ErrMaterial) {
		return r.lose(ctx, err)
	} else if err != nil {
		return err
	}
	parties := server.Included()
	if r.Summed != nil {
		r.Summed(r.round, parties, sum)
	}
	model, metric, err := r.Federation.Next(r.optimizer, r.model, broadcast, sum, parties)
	if err != nil {
		return r.lose(ctx, err)
	}
	r.model = model
	r.spent = append(r.spent, r.modelRef)
	if r.modelRef, err = r.putModel(ctx); err != nil {
		return err
	}
	p := Past{Parties: len(parties), Metric: metric, Digest: r.modelRef.Digest}
	if r.Judge != nil {
		p.Accuracy = r.Judge(model)
	}
	r.past(p)
	if err := r.enter(ctx, r.present, Ready); err != nil {
		return err
	}
	r.audit(record.Line{Event: "summed", Round: r.round, Parties: len(parties),
		Epsilon: r.history[len(r.history)-1].Epsilon, Digest: r.modelRef.Digest, Size: r.modelRef.Size})
	return nil
}

// end ends the federation.
func (r *Runner) end(ctx context.Context, reason string) error {
	r.ended, r.present, r.forming = reason, nil, nil
	r.series = protocol.NewServerSeries(r.Federation.Config(1).Label, r.series.Least())
	if err := r.record(ctx); err != nil {
		return err
	}
	r.audit(record.Line{Event: "ended", Round: r.round, Epsilon: r.epsilon(), Note: reason})
	r.announce()
	return nil
}
