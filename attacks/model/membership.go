package model

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/learning"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// ErrMembership: too few models or rows, or scores of unequal numbers.
var ErrMembership = errors.New("attacks: membership inference needs at least 4 models, with every row in some and out of some")

// Trainer trains a model on the rows that member says, out of a fixed pool, and
// returns for every row of the pool how sure the model is of its true label, as a
// logit ln(p/(1−p)), finite. It is called from several goroutines.
type trainer func(member []bool, r *rand.Rand) (logits []float64, err error)

// Shadows are models trained on random halves of a pool.
type Shadows struct {
	Member [][]bool    // per model and row
	Logits [][]float64 // likewise
}

// TrainShadows trains models, each on a half of the pool that fair coins choose.
func trainShadows(ctx context.Context, o attacks.Options, part uint64, models, pool int, train trainer) (*Shadows, error) {
	s := &Shadows{Member: make([][]bool, models), Logits: make([][]float64, models)}
	return s, o.Parallel(ctx, part, models, func(m int, r *rand.Rand) error {
		s.Member[m] = make([]bool, pool)
		for i := range pool {
			s.Member[m][i] = r.Uint64()&1 == 1
		}
		var err error
		if s.Logits[m], err = train(s.Member[m], r); err == nil && len(s.Logits[m]) != pool {
			err = ErrMembership
		}
		return err
	})
}

// Scored is a guess about one row of one model: the higher, the likelier a member.
type Scored struct {
	Score  float64
	Member bool
	Model  int // which one
}

// LiRA scores every row of every model by the likelihood ratio of its logit under
// normal laws that the other models give it, of those with the row and those without
// (Carlini 2022, the online attack). It takes one logit per row, without
// augmentation.
func (s *Shadows) LiRA() ([]Scored, error) {
	if len(s.Logits) < 4 {
		return nil, ErrMembership
	}
	var all []Scored
	for i := range s.Logits[0] {
		for target := range s.Logits {
			var in, out []float64
			for m, logits := range s.Logits {
				if m == target {
					continue
				}
				if s.Member[m][i] {
					in = append(in, logits[i])
				} else {
					out = append(out, logits[i])
				}
			}
			if len(in) < 2 || len(out) < 2 {
				return nil, ErrMembership
			}
			x := s.Logits[target][i]
			all = append(all, Scored{logNormal(x, in) - logNormal(x, out), s.Member[target][i], target})
		}
	}
	return all, nil
}

// logNormal is the log density at x of a normal law fitted to the sample.
func logNormal(x float64, sample []float64) float64 {
	mean, sd := stat.MeanStdDev(sample, nil)
	return distuv.Normal{Mu: mean, Sigma: max(sd, 1e-9)}.LogProb(x)
}

// Regress scores rows by a logistic regression of membership on the logit and its
// magnitude, which is trained on the first half of the models and applied to the
// others: the attack of the papers. Scores are of the second half only.
func (s *Shadows) Regress() ([]Scored, error) {
	half := len(s.Logits) / 2
	if half < 2 {
		return nil, ErrMembership
	}
	d := &learning.Dataset{Features: 3}
	for m := range half {
		for i, x := range s.Logits[m] {
			d.X = append(d.X, regressors(x)...)
			label := 0
			if s.Member[m][i] {
				label = 1
			}
			d.Labels = append(d.Labels, label)
		}
	}
	w := make([]float64, 3)
	if err := (learning.Logistic{Features: 3}).Train(w, d, 0.5, 300); err != nil {
		return nil, err
	}
	var all []Scored
	for m := half; m < len(s.Logits); m++ {
		for i, x := range s.Logits[m] {
			score := 0.0
			for k, v := range regressors(x) {
				score += w[k] * v
			}
			all = append(all, Scored{score, s.Member[m][i], m})
		}
	}
	return all, nil
}

// regressors are the features of a logit: squashed to (−1, 1), so that training
// converges at a fixed rate, that squared, and the constant.
func regressors(x float64) []float64 {
	y := math.Tanh(x / 4)
	return []float64{y, y * y, 1}
}

// MembershipResult is what scores of members and others show.
type Judgement struct {
	// AUC is the probability that a member has a higher score than another row, ties
	// counting half, and AUCError its standard error (Hanley, McNeil 1982). Scores of
	// one model or one row are not independent, which that does not count.
	AUC, AUCError float64
	// TPR is the share of members found at a false-positive rate of at most FPR.
	TPR, FPR        float64
	Members, Others int
	// TruePositives and FalsePositives are the counts at that threshold.
	TruePositives, FalsePositives int
}

// Judge evaluates scores, at a false-positive rate of at most fpr.
func Judge(scores []Scored, fpr float64) (Judgement, error) {
	sorted := slices.Clone(scores)
	slices.SortFunc(sorted, func(a, b Scored) int { return cmp.Compare(b.Score, a.Score) })
	var m Judgement
	for _, s := range sorted {
		if s.Member {
			m.Members++
		} else {
			m.Others++
		}
	}
	if m.Members == 0 || m.Others == 0 || !(fpr >= 0 && fpr <= 1) {
		return Judgement{}, ErrMembership
	}
	above, wins := 0, 0.0 // members with a higher score
	others := 0
	for i := 0; i < len(sorted); {
		in, out := 0, 0
		for j := i; i < len(sorted) && sorted[i].Score == sorted[j].Score; i++ {
			if sorted[i].Member {
				in++
			} else {
				out++
			}
		}
		wins += float64(out) * (float64(above) + float64(in)/2)
		above, others = above+in, others+out
		if float64(others) <= fpr*float64(m.Others) {
			m.TruePositives, m.FalsePositives = above, others
		}
	}
	n1, n0 := float64(m.Members), float64(m.Others)
	a := wins / (n1 * n0)
	q1, q2 := a/(2-a), 2*a*a/(1+a)
	m.AUC = a
	m.AUCError = math.Sqrt(max(0, a*(1-a)+(n1-1)*(q1-a*a)+(n0-1)*(q2-a*a)) / (n1 * n0))
	m.TPR, m.FPR = float64(m.TruePositives)/n1, float64(m.FalsePositives)/n0
	return m, nil
}

// PrivateAUC is the largest AUC of any attack on an (ε, δ)-differentially private
// training: the area under TPR ≤ e^ε·FPR + δ and its mirror image, which meet at
// FPR = (1−δ)/(1+e^ε).
func PrivateAUC(epsilon, delta float64) float64 {
	x := (1 - delta) / (1 + math.Exp(epsilon))
	y := 1 - x
	// From (0, δ) to (x, y), on to (1−δ, 1), then flat.
	return x*(delta+y)/2 + (1-delta-x)*(y+1)/2 + delta
}
