package training

import (
	"context"
	"slices"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/privacy"
)

// This file has trainings with correlated noise: see [privacy.Band].

// Begun holds what a party made in the round in which its band began, and submits in parts. It
// is kept before a part is sent.
type Begun struct {
	Round  uint64 // 0: nothing
	Vector []float64
}

// takeTurn is TakePart where cohorts take turns: the party trains where its band begins, and keeps
// what it made until its next one. Where nothing is to be sent, it sends zeros: before its first
// band, if what it made was lost, and if the round in which it made that has no sum. Presence tells
// nothing of its rows.
func (l *Learner) takeTurn(ctx context.Context, round, i int) (w Work, err error) {
	offset, ok := l.Band.Offset(i, l.Number)
	w.Begun = l.Begun[i]
	began := l.Number - uint64(offset)
	if ok && offset == 0 && w.Begun.Round != l.Number {
		if w, err = l.update(ctx, round, i, nil); err != nil {
			return w, err
		}
		w.Begun = Begun{l.Number, w.Message.Vector}
	}
	w.Message.Offset, w.Message.Signed = offset, nil
	w.Message.Vector = w.Begun.Vector
	if !ok || w.Begun.Round != began || offset > 0 && !l.summed(began) {
		w.Message.Vector = make([]float64, len(l.Weights))
	}
	return w, nil
}

// summed reports whether a round gave a sum, as all are told. A server that lies about that spoils
// its own sums: what a party is charged for does not depend on it.
func (l *Learner) summed(round uint64) bool {
	return slices.ContainsFunc(l.Earlier, func(e privacy.Decoded) bool { return e.Round == round })
}

// Decode turns a sum's mean into the mean of what the parties made whose bands began in the round,
// and keeps what later sums are decoded with. It divides by as many of them as there would be if
// those included were a fair sample: a public number. Without a Band it does nothing.
func (l *Learner) Decode(total *job.Total) {
	if l.Band == nil {
		return
	}
	b, n := l.Band, len(l.Parties)
	sum := slices.Clone(total.Mean)
	scale(sum, float64(total.Parties))
	sum = b.Decode(l.Number, sum, l.Earlier)
	l.Earlier = append([]privacy.Decoded{{Round: l.Number, Sum: sum}}, l.Earlier...)
	l.Earlier = l.Earlier[:min(len(l.Earlier), len(b)-1)]
	cohort := (n - int((l.Number-1)%uint64(len(b))) + len(b) - 1) / len(b)
	total.Mean = slices.Clone(sum)
	scale(total.Mean, float64(n)/float64(cohort*total.Parties))
}

// Beginning returns which of some parties train in the round: all without a Band.
func (l *Learner) Beginning(parties []int) []int {
	if l.Band == nil {
		return parties
	}
	return slices.DeleteFunc(slices.Clone(parties), func(i int) bool {
		offset, ok := l.Band.Offset(i, l.Number)
		return !ok || offset > 0
	})
}
