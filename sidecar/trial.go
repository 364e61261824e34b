package sidecar

import (
	"bytes"
	"context"
	"crypto/rand"
	"math"
	"slices"
	"sync"

	"github.com/hushsum/hushsum"
	declared "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/training"
)

var trialCalls = map[string]handler{
	"trial.new":   newTrial,
	"trial.begin": onTrial(beginTrial),
	"trial.add":   onTrial(addToTrial),
	"trial.end":   onTrial(endTrial),
}

// trial is a job without a protocol: vectors are clipped, rounded, given their parties' shares of
// the noise and added in the ring as in a private sum, except that nothing hides them on their way.
// It serves to try out the effect of a job on a model.
type trial struct {
	mutex     sync.Mutex
	settled   *declared.Settled
	apply     func(d declared.Done[float64]) ([]float64, error)
	model     []float64
	round     int
	broadcast [32]byte
	next, sum *masking.Vector
	drawn     []int // parties in the round
	added     []int
	submit    map[int]submit // by party, with its rows
}

// submit has a party train.
type submit func(
	ctx context.Context, r declared.Round[float64],
) (declared.Update[float64], error)

// newTrial takes the model to begin with, for a job that trains none.
func newTrial(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Settled uint64 `json:"settled"`
	}
	if err := r.takeWith(&with); err != nil {
		return nil, nil, err
	}
	settled, err := lookup[*declared.Settled](s, with.Settled, "job")
	if err != nil {
		return nil, nil, err
	}
	t := &trial{settled: settled, submit: map[int]submit{}}
	if settled.Oneshot() != nil {
		return nil, nil, fieldError("settled", "use hushsum simulate",
			"one-message sums cannot be tried here")
	}
	if err := unmeasured(settled); err != nil {
		return nil, nil, err
	}
	if settled.Hidden() > 0 {
		return nil, nil, settled.Job().Mistake("parties.hidden", "use hushsum simulate",
			"no coin is tossed here")
	}
	if settled.Trains() {
		if err = r.need(0); err == nil {
			t.model, err = training.First(settled)
		}
	} else {
		if err = r.need(1); err == nil {
			t.model, err = modelOf[float64](settled, r.blobs[0])
		}
	}
	if err == nil {
		t.apply, err = training.Apply(settled)
	}
	if err != nil {
		return nil, nil, err
	}
	if t.next, err = masking.NewVector(settled.Layout()); err != nil {
		return nil, nil, err
	}
	id, err := s.add(t)
	return struct {
		Trial uint64 `json:"trial"`
	}{id}, nil, err
}

// modelOf reads a model of a job's vectors.
func modelOf[F hushsum.Float](s *declared.Settled, b blob) ([]F, error) {
	model, err := floats[F](bytes.Clone(b.bytes))
	if err != nil {
		return nil, requestError("", "the model: %v", err)
	}
	if len(model) != s.Length() {
		return nil, requestError("", "the model has %d numbers, the job %d", len(model), s.Length())
	}
	for _, x := range model {
		if x := float64(x); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, requestError("look for what made it in training", "the model has NaN or infinity")
		}
	}
	return model, nil
}

// trialCall holds the arguments that calls on a trial have in common.
type trialCall struct {
	Trial uint64  `json:"trial"`
	Party int     `json:"party"` // from 0
	Rows  *uint64 `json:"rows"`  // of the party, if the job trains
	vectorCall
}

// onTrial finds the trial of a call, and has it work on no other call meanwhile.
func onTrial(work func(s *sidecar, t *trial, with *trialCall, r *request) (any, [][]byte, error),
) handler {
	return func(s *sidecar, r *request) (any, [][]byte, error) {
		with := new(trialCall)
		if err := r.takeWith(with); err != nil {
			return nil, nil, err
		}
		t, err := lookup[*trial](s, with.Trial, "trial")
		if err != nil {
			return nil, nil, err
		}
		t.mutex.Lock()
		defer t.mutex.Unlock()
		return work(s, t, with, r)
	}
}

// weights returns the numbers of the model that parties may change.
func (t *trial) weights() []byte { return floatBlob(slices.Clone(t.model[:t.settled.Length()])) }

// beginTrial begins the next round. It takes the model, if that differs from the last round's.
func beginTrial(_ *sidecar, t *trial, _ *trialCall, r *request) (any, [][]byte, error) {
	if t.round >= t.settled.Rounds() {
		return nil, nil, requestError("", "the job has %d rounds", t.settled.Rounds())
	}
	if len(r.blobs) > 0 {
		if len(r.blobs) > 1 || t.settled.Trains() {
			return nil, nil, requestError("leave it out", "the job makes its models itself")
		}
		model, err := modelOf[float64](t.settled, r.blobs[0])
		if err != nil {
			return nil, nil, err
		}
		t.model = model
	}
	if _, err := rand.Read(t.broadcast[:]); err != nil {
		return nil, nil, err
	}
	t.round++
	n := t.settled.Roster().Len()
	t.drawn = make([]int, n)
	for i := range t.drawn {
		t.drawn[i] = i
	}
	if sample := t.settled.PerRound(); sample > 0 {
		t.drawn = t.settled.Draw(uint64(t.round), t.drawn, sample)
	}
	t.sum, t.added = nil, nil
	return struct {
		Round   int   `json:"round"`
		Parties []int `json:"parties"`
	}{t.round, t.drawn}, [][]byte{t.weights()}, nil
}

// addToTrial takes a party's vector, or has it train.
func addToTrial(s *sidecar, t *trial, with *trialCall, r *request) (any, [][]byte, error) {
	if !slices.Contains(t.drawn, with.Party) || slices.Contains(t.added, with.Party) {
		return nil, nil, fieldError("party", "add each party of the round once",
			"%d is not awaited in round %d", with.Party, t.round)
	}
	err := t.encode(s, with, r)
	if err != nil {
		return nil, nil, err
	}
	if t.sum == nil {
		t.sum = t.next.Clone()
	} else if err := t.sum.Add(t.next); err != nil {
		return nil, nil, err
	}
	t.added = append(t.added, with.Party)
	return nil, nil, nil
}

// encode makes a submission.
func (t *trial) encode(s *sidecar, with *trialCall, r *request) error {
	if !t.settled.Trains() {
		if err := r.need(1); err != nil {
			return err
		}
		encode, err := with.encoding(t.settled, t.broadcast, r.blobs[0].bytes)
		if err != nil {
			return err
		}
		return encode(t.next)
	}
	if err := r.need(0); err != nil {
		return err
	}
	if t.submit[with.Party] == nil {
		rows, err := lookup[*learning.Dataset](s, or(with.Rows, 0), "rows")
		if err != nil {
			return err
		}
		if t.submit[with.Party], err = training.Submit(t.settled, with.Party, rows, nil); err != nil {
			return err
		}
	}
	begun := declared.Round[float64]{Number: uint64(t.round), Model: slices.Clone(t.model)}
	made, err := t.submit[with.Party](s.ctx, begun)
	if err != nil {
		return err
	}
	return declared.EncodeTo(t.next, t.settled, t.broadcast, made, nil)
}

// endTrial ends the round, and answers with the model that it makes, and with the mean if the job
// trains none.
func endTrial(_ *sidecar, t *trial, with *trialCall, r *request) (any, [][]byte, error) {
	if err := r.need(0); err != nil {
		return nil, nil, err
	}
	if least := t.settled.MinSurvivors(); len(t.added) < least {
		return nil, nil, requestError("add more vectors", "%d parties, and the job takes at least %d",
			len(t.added), least)
	}
	slices.Sort(t.added)
	done := declared.Done[float64]{Number: uint64(t.round), Parties: t.added, Sum: t.sum,
		Broadcast: t.broadcast, Model: t.model}
	var mean []byte
	if !t.settled.Trains() {
		total, err := t.settled.Decode(t.broadcast, t.sum.Values(), len(t.added))
		if err != nil {
			return nil, nil, err
		}
		done.Mean, mean = total.Mean, floatBlob(slices.Clone(total.Mean))
	}
	model, err := t.apply(done)
	if err != nil {
		return nil, nil, err
	}
	t.model, t.drawn, t.sum = model, nil, nil
	blobs := [][]byte{t.weights()}
	if mean != nil {
		blobs = append(blobs, mean)
	}
	return nil, blobs, nil
}
