package main

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/simulation"
)

// devSeen holds what dev sees of the rounds.
type devSeen struct {
	federation *federation.Federation
	test       *learning.Dataset
	noisy      bool
	job        *job.Job // of the same training, to be run without noise
	own        *ownRows

	mutex    sync.Mutex
	included [][]int   // in each sum
	last     []float64 // model
}

func newDevSeen(
	j *job.Job, fed *federation.Federation, own *ownRows,
) (*devSeen, error) {
	s := &devSeen{federation: fed, test: own.test, noisy: j.Noisy(), own: own,
		job: simulation.Exactly(j, len(own.parties))}
	_, _, err := simulation.Settle(s.job, own.dealt())
	return s, err
}

// judge tells the accuracy of a model.
func (s *devSeen) judge(model []float64) float64 {
	w := s.federation.Weights(model)
	s.mutex.Lock()
	s.last = w
	s.mutex.Unlock()
	judged, err := learning.Evaluate(s.federation.Learner(model), w, s.test)
	if err != nil {
		return 0
	}
	return judged.Accuracy()
}

func (s *devSeen) summed(_ int, parties []int, _ [][]uint64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.included = append(s.included, slices.Clone(parties))
}

// compare runs the same training without private sums, to compare.
func (s *devSeen) compare(ctx context.Context, out *outcome) error {
	s.mutex.Lock()
	last, included := s.last, s.included
	s.mutex.Unlock()
	model, equal, err := s.simulate(ctx, included)
	if err != nil {
		return err
	}
	out.ClearAccuracy = s.judge(model)
	if equal {
		out.Difference = new(float64)
		for k, w := range model {
			*out.Difference = max(*out.Difference, math.Abs(w-last[k]))
		}
	}
	return nil
}

// simulate runs the training of the job simulated: with the same parties in every sum where there
// is no noise, else in the clear. It returns the last model, and whether it is to be equal.
func (s *devSeen) simulate(
	ctx context.Context, included [][]int,
) (model []float64, equal bool, err error) {
	j, exchanges := s.job.Clone(), s.federation.Exchanges()
	rounds := len(included) / exchanges
	if j.Rounds, j.World.EvaluateEvery = max(rounds, 1), max(rounds, 1); s.noisy {
		j.World.Fidelity = simulation.Clear
	}
	settled, world, err := simulation.Settle(j, s.own.dealt())
	if err != nil {
		return nil, false, err
	}
	switch {
	case rounds == 0:
		return world.Training.Model.Init(j.Seed), false, nil
	case s.noisy:
	case exchanges == 1:
		world.Replay, equal = included, true
	default: // both sums of a step are of the same parties
		equal = !slices.ContainsFunc(included, func(who []int) bool {
			return len(who) != len(world.Parties)
		})
	}
	result, err := simulation.Run(ctx, settled, world, nil)
	if err != nil {
		return nil, false, err
	}
	return result.Model, equal && s.federation.Exact(), nil
}
