package model

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
)

// membershipStudy holds what models are trained on: a pool of rows that belong to parties for good.
// Each model gets a random half of the pool, so that a row more or less changes the update of one
// party and nothing else.
type membershipStudy struct {
	name       string
	pool, test *learning.Dataset
	model      learning.Model
	parties    int
	job        job.Job // without noise and seed
}

// newMembershipStudy takes the optical digits, or without the data the synthetic
// census. The training fits half the pool far better than other rows.
func newMembershipStudy(o attacks.Options) (*membershipStudy, error) {
	pool := 300
	s := &membershipStudy{name: "digits", parties: 10}
	local := job.Training{Rate: 0.5, Steps: 10}
	var data *learning.Dataset
	var err error
	if o.Data == "" {
		// Two classes and few features take fewer rows and more steps to fit too well.
		pool, local = 200, job.Training{Rate: 8, Steps: 60}
		s.name, s.parties = "the synthetic census", 5
		data, _, err = learning.Census(3*pool, o.Seed)
	} else {
		data, err = learning.ReadDigits(filepath.Join(o.Data, "digits"))
	}
	if err != nil {
		return nil, err
	}
	order := o.Rand(partMembershipSplit).Perm(data.Len())
	if s.pool, err = data.Subset(order[:pool]); err != nil {
		return nil, err
	}
	if s.test, err = data.Subset(order[pool:]); err != nil {
		return nil, err
	}
	classes := 2
	for _, y := range data.Labels {
		classes = max(classes, y+1)
	}
	s.model = learning.Softmax{Features: data.Features, Outputs: classes}
	s.job = job.Job{
		Name:     "membership",
		Rounds:   10,
		Model:    job.Model{Name: "softmax"},
		Training: local,
		World:    job.World{Fidelity: simulation.Clear, EvaluateEvery: 10, SkipClear: true},
	}
	return s, nil
}

// averaging is a target of the study: how updates are averaged.
type averaging struct {
	masked bool        // by the soft gradient mask
	noise  job.Privacy // zero: none
}

// federated holds the models of a target.
type federated struct {
	*Shadows
	accuracy float64           // on test rows, a mean over models
	spent    *accounting.Claim // against the server, at privacy.DefaultDelta; nil without noise
}

// train trains models for a target. The same part gives the same rows and seeds to every
// target.
func (s *membershipStudy) train(
	ctx context.Context, o attacks.Options, part uint64, models int, target averaging,
) (*federated, error) {
	declared := s.job
	if target.masked {
		declared.Training.Mask, declared.Training.MaskThreshold = "soft", aggregation.DefaultThreshold
	}
	if declared.Privacy = target.noise; declared.Noisy() {
		declared.World.Fidelity = simulation.Ring
	}
	accuracies, spent := make(chan float64, models), make(chan accounting.Claim, models)
	trainOne := func(member []bool, r *rand.Rand) ([]float64, error) {
		own := declared
		own.Seed, own.Parties.Count = r.Uint64()>>1, s.parties // below 2^63
		parties, err := s.partition(member)
		if err != nil {
			return nil, err
		}
		settled, world, err := simulation.Settle(&own, simulation.Rows{Parties: parties, Test: s.test})
		if err != nil {
			return nil, err
		}
		trained, err := simulation.Run(ctx, settled, world, nil)
		if err != nil {
			return nil, err
		}
		accuracies <- trained.Final().Test.Accuracy()
		spent <- trained.Rounds[len(trained.Rounds)-1].Server
		return s.logits(trained.Model)
	}
	shadows, err := trainShadows(ctx, o, part, models, s.pool.Len(), trainOne)
	if err != nil {
		return nil, err
	}
	f := &federated{Shadows: shadows}
	for range models {
		f.accuracy += <-accuracies / float64(models)
		of := <-spent
		if !declared.Noisy() {
			continue
		}
		if f.spent != nil {
			if of, err = of.Or(*f.spent); err != nil {
				return nil, err
			}
		}
		f.spent = &of
	}
	return f, nil
}

// partition gives each party those of its rows that are members.
func (s *membershipStudy) partition(member []bool) ([]*learning.Dataset, error) {
	rows := make([][]int, s.parties)
	for i, included := range member {
		if included {
			rows[i%s.parties] = append(rows[i%s.parties], i)
		}
	}
	parties := make([]*learning.Dataset, s.parties)
	for i := range parties {
		var err error
		if parties[i], err = s.pool.Subset(rows[i]); err != nil {
			return nil, err
		}
	}
	return parties, nil
}

// logits returns how sure the model is of the label of each row of the pool: z_y less
// ln Σ e^z over the other classes.
func (s *membershipStudy) logits(weights []float64) ([]float64, error) {
	classes := s.model.Classes()
	scores := make([]float64, s.pool.Len()*classes)
	if err := s.model.Scores(scores, weights, s.pool); err != nil {
		return nil, err
	}
	logits := make([]float64, s.pool.Len())
	for i, label := range s.pool.Labels {
		row := scores[i*classes : (i+1)*classes]
		top, sum := math.Inf(-1), 0.0
		for k, z := range row {
			if k != label {
				top = max(top, z)
			}
		}
		for k, z := range row {
			if k != label {
				sum += math.Exp(z - top)
			}
		}
		logits[i] = row[label] - top - math.Log(sum)
	}
	return logits, nil
}
