package training

import (
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/privacy"
)

// Records is the training of a job whose unit is a record: distributed differentially private SGD.
// In a round a party tosses a coin for each of its records, or persons, and submits minus the sum
// of the gradients of those that come up, each clipped. The server divides the sum of all by Batch
// and makes its step.
type Records struct {
	Coins  privacy.Records
	Clip   float64 // L2 norm of a unit's gradient
	Batch  int     // units that a round expects of all parties
	Lambda float64 // of L2 regularisation, which the server adds: it is no function of rows
	// Persons uses one coin, and one clip, for all rows of a person within a party; Writers of the
	// rows names the person.
	Persons bool
	// Standardise is in how many of the first sums records add the moments of their features, by
	// which the features of all later ones are standardised. A record's moments have the norm of a
	// gradient, and its coin is one as in other rounds, so that these sums spend what others do.
	Standardise int
	// Random tosses coins, the party's own; nil: crypto/rand.
	Random io.Reader
	// Seeded makes coins follow from the seed, for a training in the clear, which hides nothing.
	Seeded bool
}

// takeRecords is TakePart of a training by records. What a record does shows in the sum only: it
// does not fail for what is in a row, nor for how many are drawn.
func (l *Learner) takeRecords(round, i int, w *Work) error {
	r, rows := l.Records, l.Parties[i]
	random := r.Random
	if r.Seeded {
		var seed [32]byte
		binary.LittleEndian.PutUint64(seed[:], l.derived("coins", round, i))
		random = rand.NewChaCha8(seed)
	}
	units := r.units(rows)
	numbers, err := Draw(len(units), r.Coins.Rate, random)
	if err != nil {
		return err
	}
	var drawn [][]int
	for _, k := range numbers {
		drawn = append(drawn, units[k])
	}
	sum := make([]float64, len(l.Weights))
	if err := l.addDrawn(sum, rows, drawn); err != nil {
		return err // of the model, which is public, or rows of another form from the beginning
	}
	w.Message.Vector, w.Message.Samples = sum, 1
	for _, x := range sum {
		w.Norm += x * x
	}
	w.Norm = math.Sqrt(w.Norm)
	return nil
}

// addDrawn writes what the units drawn add to a sum: minus their gradients or, in the first rounds,
// their moments.
func (l *Learner) addDrawn(sum []float64, rows *learning.Dataset, drawn [][]int) error {
	r := l.Records
	if len(drawn) > r.Coins.Most() {
		return nil
	}
	if m, moments := l.momentsOf(); moments {
		return m.MomentSum(sum[:m.Moments()], rows, drawn, r.Clip)
	}
	if err := learning.ClippedSum(sum, l.Model, l.Weights, rows, drawn, r.Clip); err != nil {
		return err
	}
	scale(sum, -1)
	return nil
}

// Fits returns a [job.ConfigError] if rows do not say whose they are, though they have to, or are
// more than [job.Coins.Fits] takes.
func (r *Records) Fits(rows *learning.Dataset) error {
	if r.Persons && rows.Writers == nil {
		return &job.ConfigError{Path: "privacy.group", Reason: "the rows do not say whose they are",
			Advice: "begin each line with the person's name or number"}
	}
	return (&job.Coins{Count: r.Coins.Count}).Fits(len(r.units(rows)))
}

// Alone returns the training of a party without the others, in the clear: each record is drawn as
// often as in the sum.
func (r *Records) Alone(rows *learning.Dataset) *Records {
	own := *r
	own.Seeded = true
	own.Coins.Count = len(r.units(rows))
	own.Batch = max(1, int(math.Round(own.Coins.Rate*float64(own.Coins.Count))))
	return &own
}

// units are the rows of each record, or person, in an order that no row decides but by where it is.
func (r *Records) units(rows *learning.Dataset) (units [][]int) {
	index := make([]int, rows.Len())
	of := make(map[int]int)
	for i := range index {
		index[i] = i
		k, known := 0, false
		if r.Persons {
			k, known = of[rows.Writers[i]]
		}
		if known {
			units[k] = append(slices.Clip(units[k]), i)
			continue
		}
		if r.Persons {
			of[rows.Writers[i]] = len(units)
		}
		units = append(units, index[i:i+1:i+1])
	}
	return units
}

// Draw returns which of n units have a coin that comes up, each with a probability of rate, or by
// less than 2^-64 below; nil: crypto/rand tosses.
func Draw(n int, rate float64, random io.Reader) (drawn []int, err error) {
	below := uint64(math.MaxUint64)
	coins := make([]byte, 8*n)
	if rate < 1 {
		below = uint64(math.Ldexp(rate, 64))
		if err := entropy.Read("training", random, coins); err != nil {
			return nil, err
		}
	}
	defer clear(coins)
	for k := range n {
		if binary.LittleEndian.Uint64(coins[8*k:]) < below {
			drawn = append(drawn, k)
		}
	}
	return drawn, nil
}

// momentsOf returns the model whose moments the next sum is of, if it is of moments.
func (l *Learner) momentsOf() (m learning.Scattering, is bool) {
	m, is = l.Model.(learning.Scattering)
	return m, is && l.Records != nil && l.Standard.Sums < l.Records.Standardise
}

// Standard holds what sums of moments have found.
type Standard struct {
	Sums int       // that there were
	Mean []float64 // of what they found; nil before the first
}

// addMoments takes what a sum has found into the mean.
func (l *Learner) addMoments(found []float64) error {
	s := &l.Standard
	next := Standard{s.Sums + 1, make([]float64, len(found))}
	for j, x := range found {
		if next.Mean[j] = x; s.Sums > 0 {
			next.Mean[j] = s.Mean[j] + (x-s.Mean[j])/float64(next.Sums)
		}
	}
	*s = next
	return l.standardise()
}

// standardise takes the standard into the model once all moments are there.
func (l *Learner) standardise() error {
	m, is := l.Model.(learning.Scattering)
	if !is || l.Records == nil || l.Standard.Sums == 0 || l.Standard.Sums < l.Records.Standardise {
		return nil
	}
	standardised, err := m.Standardised(l.Standard.Mean, l.Records.Clip)
	if err != nil {
		return aggregation.ErrNotFinite
	}
	l.Model = standardised
	return nil
}

// stepByRecords is the server's, from the mean gradients of records.
func (l *Learner) stepByRecords(mean []float64) ([]float64, error) {
	if m, moments := l.momentsOf(); moments {
		return slices.Clone(l.Weights), l.addMoments(mean[:m.Moments()])
	}
	if lambda := l.Records.Lambda; lambda > 0 {
		for j, x := range l.Weights {
			mean[j] -= lambda * x
		}
	}
	return l.Optimizer.Apply(l.Weights, mean, nil)
}

// averages reports whether the model after a round counts in the mean that is the last model.
func (o *Options) averages(round int) bool { return o.Average > 0 && round > o.Rounds-o.Average }

// averaged returns the mean of the models after the last rounds until now, model being that after
// round, and mean the one before; nil before the rounds that count.
func (o *Options) averaged(mean, model []float64, round int) []float64 {
	if !o.averages(round) {
		return nil
	}
	k := float64(round - (o.Rounds - o.Average))
	if k == 1 || mean == nil {
		return slices.Clone(model)
	}
	next := make([]float64, len(model))
	for j, x := range model {
		next[j] = mean[j] + (x-mean[j])/k
	}
	return next
}

// settleMean keeps the mean of the last rounds' models, and puts it in place of the last one;
// round is the one that made the Learner's model.
func (l *Learner) settleMean(round int) error {
	l.Mean = l.averaged(l.Mean, l.Weights, round)
	if l.Mean == nil || round < l.Rounds {
		return nil
	}
	for _, x := range l.Mean {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return aggregation.ErrNotFinite
		}
	}
	l.Weights = l.Mean
	return nil
}
