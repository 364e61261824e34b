// Package asking asks the queries of a job of rows at hand: it runs all parties in this process,
// each with its own rows, over the job's own private sum.
package asking

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/query"
)

// World is a job with all its parties, in this process. It asks once.
type World struct {
	Job     *job.Job
	Plan    *query.Plan
	Parties int // of the job
	Present int // in the sum, once it has run
	Answers []query.Answer

	settled    *job.Settled
	parties    []crypto.Signer
	committee  []crypto.Signer
	inCallback error    // of reading the sum
	away       []bool   // parties that the simulation has drop out
	refused    []string // parties whose message was refused: with sum.bounded, for their proofs

	dial func(party int, d hushsum.Dialer) hushsum.Dialer // of tests; nil: d
}

// Check says what in a job does not allow asking on one machine.
func Check(j *job.Job) error {
	switch {
	case !j.Asks():
		return j.Mistake("query", "write [[query]], or train with hushsum simulate",
			"the job asks nothing")
	case j.Size() == 0:
		return j.Mistake("parties.count", "write how many parties there are",
			"here a roster is made, and none is read")
	case j.Privacy.Before != "":
		return j.Mistake("privacy.before", "leave it out", "nothing was spent before")
	}
	return nil
}

// people makes identities, and their roster.
func people(names []string) (signers []crypto.Signer, roster *keyexchange.Roster, err error) {
	var list []keyexchange.Entry
	for _, name := range names {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, nil, err
		}
		signers = append(signers, identity)
		list = append(list, keyexchange.Entry{Name: name, Key: identity.Public().(ed25519.PublicKey)})
	}
	roster, err = keyexchange.NewRoster(list)
	return signers, roster, err
}

// mostParties is how many run on one machine at a time, each with its connection.
const mostParties = 10_000

// New makes the parties of a job that Check accepts; names lists all of them.
func New(j *job.Job, names []string) (*World, error) {
	if len(names) > mostParties {
		return nil, j.Mistake("parties.count", "declare fewer", "more than %d do not run on one machine",
			mostParties)
	}
	j = j.Clone()
	j.Time.Start, j.Time.Pace = time.Time{}, 0 // which are for deployments
	w := &World{Parties: len(names), away: make([]bool, len(names))}
	files := job.Files{MadeUp: true}
	var err error
	if w.parties, files.Roster, err = people(names); err != nil {
		return nil, err
	}
	if j.Oneshot() {
		var members []string
		for k := range j.WithDefaults().Sum.Members {
			members = append(members, fmt.Sprint("member-", k+1))
		}
		if w.committee, files.Committee, err = people(members); err != nil {
			return nil, err
		}
	}
	if w.settled, err = j.Settle(files); err != nil {
		return nil, err
	}
	w.Job = w.settled.Job()
	n := int(math.Round(w.Job.World.Drop * float64(len(names))))
	if len(names)-n < w.settled.MinSurvivors() {
		return nil, j.Mistake("world.drop", "write less, or more in parties.drop_out",
			"of %d parties %d are in the sum at least, and %d would be away", len(names),
			w.settled.MinSurvivors(), n)
	}
	order := rand.New(rand.NewPCG(w.Job.World.Seed, 1)).Perm(len(names))
	for _, i := range order[:n] {
		w.away[i] = true
	}
	if w.Plan, err = query.New(w.settled); err != nil {
		return nil, err
	}
	return w, nil
}

// noTime, which is drive.Never, has steps wait for the parties that are there and for no others: a
// party that is there answers, or fails and ends the query, however long the processor takes.
const noTime = time.Duration(math.MaxInt64)

// Run lets all parties that are there answer, over the job's private sum. It fails with a
// [query.RowsError], before any party answers, if one has more rows than may count.
func (w *World) Run(ctx context.Context, rows []*query.Rows) error {
	for i, own := range rows {
		if err := w.Plan.Check(fmt.Sprintf("the rows of party %d", i+1), own); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var network, meetings hushsum.Memory
	var all sync.WaitGroup
	failed := func(err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			cancel(err)
		}
	}
	for i, identity := range w.parties {
		if w.away[i] {
			continue
		}
		all.Go(func() {
			vectors, err := w.Plan.Vectors(rows[i])
			if err != nil {
				failed(err)
				return
			}
			party := hushsum.Participant[float64]{Job: w.settled, Identity: identity,
				Dialer: network.Dialer(i),
				Work: func(_ context.Context, r hushsum.Round[float64]) (hushsum.Update[float64], error) {
					vector, err := vectors(r.Model)
					return hushsum.Update[float64]{Vector: vector, Samples: 1}, err
				}}
			if w.dial != nil {
				party.Dialer = w.dial(i, party.Dialer)
			}
			_, err = party.Run(ctx)
			failed(err)
		})
	}
	for k, identity := range w.committee {
		all.Go(func() {
			member := hushsum.Member{Job: w.settled, Identity: identity, Dialer: meetings.Dialer(k)}
			failed(member.Run(ctx))
		})
	}
	coordinator := hushsum.Coordinator[float64]{Job: w.settled, Listener: &network, Apply: w.apply,
		StepTime: noTime, Progress: w.told}
	if w.committee != nil {
		coordinator.Committee = &meetings
	}
	_, err := coordinator.Run(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(err)
	}
	all.Wait()
	return errors.Join(err, w.inCallback)
}

// told notes who is refused.
func (w *World) told(e hushsum.Event) {
	name := w.settled.Roster().Name(max(0, e.Party))
	if e.Kind == host.Refused && e.Party >= 0 && !slices.Contains(w.refused, name) {
		w.refused = append(w.refused, name)
	}
}

// apply reads the sum. What it fails with ends the command.
func (w *World) apply(d hushsum.Done[float64]) ([]float64, error) {
	w.Present = len(d.Parties)
	model, err := w.Plan.Next(d.Model, d.Mean, w.Present)
	if err == nil && int(d.Number) == w.Plan.Rounds() {
		w.Answers, err = w.Plan.Answers(model, w.Present)
	}
	w.inCallback = err
	return model, err
}
