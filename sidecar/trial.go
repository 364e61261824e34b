package sidecar

import (
	"sync"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/masking"
)

var trialCalls = map[string]handler{
	"trial.new":  newTrial,
	"trial.add":  addToTrial,
	"trial.mean": meanOfTrial,
}

// trial is a round without a protocol: vectors are clipped, rounded, given their
// parties' shares of the noise and added in the ring as in a private sum, only that
// nothing hides them on their way. For trying out what a plan does to a model.
type trial struct {
	mutex     sync.Mutex
	settled   *hushsum.Settled
	broadcast [32]byte
	next, sum *masking.Vector
	parties   int
}

func newTrial(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Settled   uint64 `json:"settled"`
		Broadcast string `json:"broadcast"`
	}
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	settled, err := lookup[*hushsum.Settled](s, with.Settled, "plan")
	if err != nil {
		return nil, nil, err
	}
	if err := pairwise(settled); err != nil {
		return nil, nil, err
	}
	t := &trial{settled: settled}
	if t.broadcast, err = parseDigest(with.Broadcast); err != nil {
		return nil, nil, err
	}
	if t.next, err = masking.NewVector(settled.Config(0).Layout); err != nil {
		return nil, nil, err
	}
	t.sum = t.next.Clone()
	id, err := s.add(t)
	return struct {
		Trial uint64 `json:"trial"`
	}{id}, nil, err
}

// trialOf returns the trial that a request with some blobs names, locked, and the kind of its
// numbers.
func trialOf(s *sidecar, r *request, blobs int) (t *trial, numbers string, err error) {
	var with struct {
		Trial   uint64 `json:"trial"`
		Numbers string `json:"numbers"`
	}
	if err := r.take(&with, blobs); err != nil {
		return nil, "", err
	}
	if t, err = lookup[*trial](s, with.Trial, "trial"); err != nil {
		return nil, "", err
	}
	t.mutex.Lock()
	return t, with.Numbers, nil
}

func addToTrial(s *sidecar, r *request) (any, [][]byte, error) {
	t, numbers, err := trialOf(s, r, 1)
	if err != nil {
		return nil, nil, err
	}
	defer t.mutex.Unlock()
	encode, err := encoding(t.settled, t.broadcast, numbers, r.blobs[0].bytes)
	if err != nil {
		return nil, nil, err
	}
	if err := encode(t.next); err != nil {
		return nil, nil, err
	}
	if err := t.sum.Add(t.next); err != nil {
		return nil, nil, err
	}
	t.parties++
	return struct {
		Parties int `json:"parties"`
	}{t.parties}, nil, nil
}

func meanOfTrial(s *sidecar, r *request) (any, [][]byte, error) {
	t, numbers, err := trialOf(s, r, 0)
	if err != nil {
		return nil, nil, err
	}
	defer t.mutex.Unlock()
	if least := t.settled.MinSurvivors(); t.parties < least {
		return nil, nil, requestError("add more vectors", "%d parties, and the plan takes at least %d",
			t.parties, least)
	}
	mean, err := meanOf(t.settled, t.broadcast, numbers, t.sum, t.parties)
	return nil, [][]byte{mean}, err
}
