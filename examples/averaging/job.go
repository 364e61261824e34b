package main

import (
	"context"
	"crypto/ed25519"
	"log"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
)

// This file is all that a user writes: what a party and the coordinator each do in a
// process of its own. What they are given, an engineer has from files and key stores.

// site holds what every process of the job is given.
type site struct {
	job      *job.Job
	roster   *keyexchange.Roster
	identity ed25519.PrivateKey
	address  string               // of the coordinator
	state    string               // file for what must survive the process
	key      *keyexchange.SealKey // seals it
}

// party trains logistic regression on its own rows, and tells nobody but the sum.
func party(ctx context.Context, s site, coordinator ed25519.PublicKey, rows *learning.Dataset,
	submitted func(round uint64, values [][]uint64)) error {
	settled, err := s.job.Settle(job.Files{Roster: s.roster})
	if err != nil {
		return err
	}
	model := learning.Logistic{Features: rows.Features, Lambda: 1e-4}
	p := hushsum.Participant[float64]{
		Job:      settled,
		Identity: s.identity,
		Dialer:   &hushsum.TCPDialer{Address: s.address, Identity: s.identity, Coordinator: coordinator},
		Store:    hushsum.FileStore(s.state),
		Key:      s.key,
		Counter:  hushsum.FileCounter(s.state + ".counter"),
		Work: func(_ context.Context, r hushsum.Round[float64]) (u hushsum.Update[float64], err error) {
			weights := append([]float64(nil), r.Model...)
			if err := model.Train(weights, rows, 2, 50); err != nil {
				return u, err
			}
			for i, w := range r.Model {
				weights[i] -= w
			}
			return hushsum.Update[float64]{Vector: weights}, nil
		},
		Submitted: submitted, // for the comparison only: see main.go
	}
	_, err = p.Run(ctx)
	return err
}

// coordinator averages, and judges each model on rows that no party has.
func coordinator(ctx context.Context, s site, test *learning.Dataset,
	summed func(d hushsum.Done[float64], accuracy float64)) (*hushsum.Result[float64], error) {
	settled, err := s.job.Settle(job.Files{Roster: s.roster})
	if err != nil {
		return nil, err
	}
	listener, err := hushsum.ListenTCP(s.address, s.identity, s.roster)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	judge := learning.Logistic{Features: test.Features, Lambda: 1e-4}
	c := hushsum.Coordinator[float64]{
		Job:      settled,
		Listener: listener,
		Store:    hushsum.FileStore(s.state),
		Key:      s.key,
		Counter:  hushsum.FileCounter(s.state + ".counter"),
		StepTime: 10 * time.Second,
		Round: func(d hushsum.Done[float64]) (stop bool, err error) {
			judged, err := judge.Evaluate(d.Model, test)
			if err == nil {
				summed(d, judged.Accuracy())
			}
			return false, err
		},
		Progress: func(e hushsum.Event) { log.Print(e) },
	}
	return c.Run(ctx)
}
