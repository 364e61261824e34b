package ask

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/query"
)

// world is a job with all its parties, on this machine.
type world struct {
	job        *job.Job
	settled    *job.Settled
	plan       *query.Plan
	parties    []crypto.Signer
	committee  []crypto.Signer
	answers    []query.Answer
	present    int    // parties in the sum
	inCallback error  // of reading the sum
	away       []bool // parties that the simulation has drop out
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

func newWorld(j *job.Job, names []string) (*world, error) {
	if len(names) > mostParties {
		return nil, j.Mistake("parties.count", "declare fewer", "more than %d do not run on one machine",
			mostParties)
	}
	j = j.Clone()
	j.Time.Start, j.Time.Pace = time.Time{}, 0 // which are for deployments
	w := &world{away: make([]bool, len(names))}
	var files job.Files
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
	w.job = w.settled.Job()
	n := int(math.Round(w.job.World.Drop * float64(len(names))))
	if len(names)-n < w.settled.MinSurvivors() {
		return nil, j.Mistake("world.drop", "write less, or more in parties.drop_out",
			"of %d parties %d are in the sum at least, and %d would be away", len(names),
			w.settled.MinSurvivors(), n)
	}
	order := rand.New(rand.NewPCG(w.job.World.Seed, 1)).Perm(len(names))
	for _, i := range order[:n] {
		w.away[i] = true
	}
	w.plan, err = query.New(w.settled)
	return w, err
}

// tellUncounted says on standard error how many rows are more than a party may bring.
func (w *world) tellUncounted(parties []*query.Rows, std cli.Streams) {
	all, more := 0, 0
	for _, own := range parties {
		all += own.Len()
		more += max(0, own.Len()-w.job.Parties.Rows)
	}
	if more > 0 {
		fmt.Fprintf(std.Err, "parties.rows: %s of %s do not count: of each party the first %s\n",
			show.Grouped(more), show.Plural(all, "row"), show.Grouped(w.job.Parties.Rows))
	}
}

// run has all parties that are there answer, over the job's private sum.
func (w *world) run(ctx context.Context, rows []*query.Rows) error {
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
			vector := w.plan.Vector(rows[i]) // before the round, whose time it is not to take
			party := hushsum.Participant{Job: w.settled, Identity: identity, Dialer: network.Dialer(i),
				Work: func(context.Context, uint64, []float64) ([]float64, error) {
					return vector, nil
				}}
			_, err := party.Run(ctx)
			failed(err)
		})
	}
	for k, identity := range w.committee {
		all.Go(func() {
			member := hushsum.Member{Job: w.settled, Identity: identity, Dialer: meetings.Dialer(k)}
			failed(member.Run(ctx))
		})
	}
	coordinator := hushsum.Coordinator{Job: w.settled, Listener: &network, Apply: w.apply}
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

// apply reads the sum. What it fails with ends the command.
func (w *world) apply(r hushsum.Round, model []float64) ([]float64, error) {
	w.present = len(r.Parties)
	w.answers, w.inCallback = w.plan.Answers(r.Mean, w.present)
	return model, nil
}
