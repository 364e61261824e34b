package model

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/learning"
)

// ErrMembership: too few models or rows, or scores of unequal numbers.
var ErrMembership = errors.New("model: membership inference needs at least 4 models, " +
	"with every row in some and out of some")

// Shadows are models trained on random halves of one pool of rows.
type Shadows struct {
	// Member says per model and row of the pool whether the row was in the training.
	Member [][]bool
	// Logits says likewise how sure the model is of the row's true label, as ln(p/(1−p)),
	// finite.
	Logits [][]float64
}

// trainer trains a model on the rows of a pool that member says, and returns its logits
// as Shadows has them. It is called from several goroutines.
type trainer func(member []bool, r *rand.Rand) (logits []float64, err error)

// trainShadows trains models, each on a half of the pool that fair coins choose.
func trainShadows(
	ctx context.Context, o attacks.Options, part uint64, models, pool int, train trainer,
) (*Shadows, error) {
	s := &Shadows{Member: make([][]bool, models), Logits: make([][]float64, models)}
	err := o.Parallel(ctx, part, models, func(model int, r *rand.Rand) error {
		member := make([]bool, pool)
		for i := range member {
			member[i] = r.Uint64()&1 == 1
		}
		logits, err := train(member, r)
		if err == nil && len(logits) != pool {
			err = ErrMembership
		}
		s.Member[model], s.Logits[model] = member, logits
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// LiRA scores every row of every model by the likelihood ratio of its logit under
// normal laws that the other models give it, of those with the row and those without
// (Carlini 2022, the online attack). It takes one logit per row, without
// augmentation. It fails with [ErrMembership].
func (s *Shadows) LiRA() ([]Scored, error) {
	if len(s.Logits) < 4 {
		return nil, ErrMembership
	}
	var scores []Scored
	for row := range s.Logits[0] {
		for target := range s.Logits {
			var with, without []float64
			for model, logits := range s.Logits {
				if model == target {
					continue
				}
				if s.Member[model][row] {
					with = append(with, logits[row])
				} else {
					without = append(without, logits[row])
				}
			}
			if len(with) < 2 || len(without) < 2 {
				return nil, ErrMembership
			}
			logit := s.Logits[target][row]
			scores = append(scores, Scored{
				Score:  logNormal(logit, with) - logNormal(logit, without),
				Member: s.Member[target][row],
				Model:  target,
			})
		}
	}
	return scores, nil
}

// logNormal returns the log density at x of a normal law fitted to the sample.
func logNormal(x float64, sample []float64) float64 {
	mean, deviation := stat.MeanStdDev(sample, nil)
	return distuv.Normal{Mu: mean, Sigma: max(deviation, 1e-9)}.LogProb(x)
}

// Regress scores rows by a logistic regression of membership on the logit and its
// magnitude, which is trained on the first half of the models and applied to the
// others: the attack of "Gradient Masked Averaging". Scores are of the second half only.
// It fails with [ErrMembership].
func (s *Shadows) Regress() ([]Scored, error) {
	half := len(s.Logits) / 2
	if half < 2 {
		return nil, ErrMembership
	}
	training := &learning.Dataset{Features: 3}
	for model := range half {
		for row, logit := range s.Logits[model] {
			training.X = append(training.X, regressors(logit)...)
			label := 0
			if s.Member[model][row] {
				label = 1
			}
			training.Labels = append(training.Labels, label)
		}
	}
	weights := make([]float64, 3)
	const rate, steps = 0.5, 300
	if err := (learning.Logistic{Features: 3}).Train(weights, training, rate, steps); err != nil {
		return nil, err
	}
	var scores []Scored
	for model := half; model < len(s.Logits); model++ {
		for row, logit := range s.Logits[model] {
			score := 0.0
			for k, v := range regressors(logit) {
				score += weights[k] * v
			}
			scores = append(scores, Scored{
				Score:  score,
				Member: s.Member[model][row],
				Model:  model,
			})
		}
	}
	return scores, nil
}

// regressors returns the features of a logit: squashed to (−1, 1), so that training
// converges at a fixed rate, that squared, and the constant.
func regressors(logit float64) []float64 {
	squashed := math.Tanh(logit / 4)
	return []float64{squashed, squashed * squashed, 1}
}
