package simulation

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"fmt"
	"math"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/protocol"
)

// sessionLabel keeps signatures made in a simulation from serving elsewhere.
const sessionLabel = "hushsum simulation"

// stepsAtOnce is after how many gradient steps a party looks whether the run is
// to end.
const stepsAtOnce = 50

// run is the state of a run: the server, the parties, and the models.
type run struct {
	options Options
	report  func(Round)
	model   learning.Logistic
	average aggregation.FedAvg
	rows    []*learning.Dataset // by party

	identities []crypto.Signer
	config     *protocol.Config
	server     *protocol.Server
	clients    []*protocol.Client

	summary *Summary
}

// Run trains. It calls report, if that is not nil, after every round. It fails,
// before it begins, with an [OptionError] or with learning.ErrTooFewRows if Train
// has not enough rows for all parties.
//
// A run that fails later, or that ctx ends, returns what was done until then
// beside the error: a [RoundError], which unwraps to the reason, such as
// context.Canceled, learning.ErrDiverged or aggregation.ErrSaturated. It ends
// within a few steps of training; the round that was under way is lost.
func Run(ctx context.Context, options Options, report func(Round)) (*Summary, error) {
	r, err := newRun(options, report)
	if err != nil {
		return nil, err
	}
	defer r.erase()
	if err := r.setUp(ctx); err != nil {
		return r.summary, failure(0, -1, err)
	}
	for round := 1; round <= r.options.Rounds; round++ {
		outcome, err := r.round(ctx, round)
		if err != nil {
			return r.summary, failure(round, -1, err)
		}
		r.summary.Rounds = append(r.summary.Rounds, outcome)
		if r.report != nil {
			r.report(outcome)
		}
	}
	return r.summary, nil
}

// failure names the party, or −1, with which a round failed.
func failure(round, party int, err error) error {
	if named, ok := err.(*RoundError); ok {
		return named
	}
	return &RoundError{Round: round, Party: party, Err: err}
}

func partyName(i int) string { return fmt.Sprintf("party-%d", i+1) }

// newRun checks the options, deals the rows and makes identities and roster.
// Identities are long-term keys that exist before any session, so that making
// them is no part of the cost.
func newRun(options Options, report func(Round)) (*run, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	if err := options.validateData(); err != nil {
		return nil, err
	}
	if options.Now == nil {
		options.Now = func() time.Time { return time.Time{} }
	}
	r := &run{
		options: options,
		report:  report,
		model:   learning.Logistic{Features: options.Train.Features, Lambda: options.Lambda},
	}
	r.average = options.FedAvg(r.model.NumParams())
	layout, err := r.average.Layout()
	if err != nil {
		return nil, err
	}
	if r.rows, err = options.Train.PartitionIID(options.Clients, options.RowsPerClient, options.Seed); err != nil {
		return nil, err
	}
	members := make([]keyexchange.Member, options.Clients)
	r.identities = make([]crypto.Signer, options.Clients)
	for i := range members {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, err
		}
		r.identities[i] = identity
		members[i] = keyexchange.Member{Name: partyName(i), Key: identity.Public().(ed25519.PublicKey)}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		return nil, err
	}
	r.config = &protocol.Config{Label: sessionLabel, Roster: roster, Layout: layout}
	r.clients = make([]*protocol.Client, options.Clients)
	r.summary = &Summary{
		Layout:  layout,
		Private: make([]float64, r.model.NumParams()),
		Clear:   make([]float64, r.model.NumParams()),
	}
	return r, nil
}

func (r *run) erase() {
	for _, c := range r.clients {
		if c != nil {
			c.Erase()
		}
	}
}

// each has all parties work, several at a time.
func (r *run) each(ctx context.Context, round int, work func(party int) error) error {
	progress := func(done int) {
		if r.options.Progress != nil {
			r.options.Progress(round, done)
		}
	}
	progress(0)
	return parallel(ctx, len(r.clients), func(i int) error {
		err := work(i)
		if err != nil && ctx.Err() == nil {
			return failure(round, i, err)
		}
		return err
	}, progress)
}

// setUp runs the key exchange.
func (r *run) setUp(ctx context.Context) error {
	now := r.options.Now
	n := len(r.clients)
	times := make([]time.Duration, n)
	var cost Cost

	start := now()
	server, err := protocol.NewServer(r.config)
	if err != nil {
		return err
	}
	r.server = server
	cost.Server += now().Sub(start)
	for i, identity := range r.identities {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := now()
		client, err := protocol.NewClient(r.config, identity, nil)
		if err != nil {
			return failure(0, i, err)
		}
		announce := client.Announce()
		times[i] = now().Sub(start)
		r.clients[i] = client

		start = now()
		if err := r.server.Receive(announce); err != nil {
			return failure(0, i, err)
		}
		cost.Server += now().Sub(start)
		cost.BytesUp += int64(len(announce))
	}
	start = now()
	keys, err := r.server.Keys()
	if err != nil {
		return err
	}
	cost.Server += now().Sub(start)

	err = r.each(ctx, 0, func(i int) error {
		start := now()
		_, err := r.clients[i].Receive(keys[i].Message)
		times[i] += now().Sub(start)
		return err
	})
	if err != nil {
		return err
	}
	for i := range keys {
		cost.BytesDown += int64(len(keys[i].Message))
		cost.Client += times[i]
	}
	r.summary.Setup = cost.perParty(n)
	return nil
}

// perParty turns sums over all parties into means.
func (c Cost) perParty(n int) Cost {
	c.BytesUp /= int64(n)
	c.BytesDown /= int64(n)
	c.Train /= time.Duration(n)
	c.Client /= time.Duration(n)
	return c
}

// turn is what one party did in one round.
type turn struct {
	message []byte    // to the server
	clear   []float64 // weights of the training in the clear
	largest float64   // magnitude of a weight that went into the message
	cost    Cost
}

func (r *run) round(ctx context.Context, round int) (Round, error) {
	now := r.options.Now
	n := len(r.clients)

	start := now()
	broadcast, err := aggregation.AppendModel(nil, r.summary.Private)
	if err != nil {
		return Round{}, err
	}
	begin, err := r.server.Begin(broadcast)
	if err != nil {
		return Round{}, err
	}
	cost := Cost{Server: now().Sub(start)}

	turns := make([]turn, n)
	err = r.each(ctx, round, func(i int) error {
		return r.turn(ctx, i, begin[i].Message, broadcast, &turns[i])
	})
	if err != nil {
		return Round{}, err
	}

	start = now()
	for i := range turns {
		if err := r.server.Receive(turns[i].message); err != nil {
			return Round{}, failure(round, i, err)
		}
	}
	sum, err := r.server.Sum()
	if err != nil {
		return Round{}, err
	}
	private, samples, err := r.average.Decode(sum)
	if err != nil {
		return Round{}, err
	}
	cost.Server += now().Sub(start)

	outcome := Round{Round: round, Clients: n, Samples: samples}
	for i := range turns {
		cost.add(turns[i].cost)
		outcome.LargestWeight = max(outcome.LargestWeight, turns[i].largest)
	}
	outcome.Cost = cost.perParty(n)

	inClear := r.clearAverage(turns)
	for j := range private {
		outcome.MaxAbsDiff = max(outcome.MaxAbsDiff, math.Abs(private[j]-inClear[j]))
	}
	if outcome.Private, err = r.model.Evaluate(private, r.options.Test); err != nil {
		return Round{}, err
	}
	if outcome.Clear, err = r.model.Evaluate(inClear, r.options.Test); err != nil {
		return Round{}, err
	}
	r.summary.Private, r.summary.Clear = private, inClear
	return outcome, nil
}

// turn is one party's part of a round: from the messages of the server to the
// party's submission, and the same training in the clear.
func (r *run) turn(ctx context.Context, i int, begin, broadcast []byte, t *turn) error {
	now := r.options.Now
	start := now()
	if _, err := r.clients[i].Receive(begin); err != nil {
		return err
	}
	weights, err := aggregation.ParseModel(broadcast, r.model.NumParams())
	if err != nil {
		return err
	}
	received := now()
	if err := r.train(ctx, weights, r.rows[i]); err != nil {
		return err
	}
	trained := now()
	values, err := r.average.Encode(weights, r.rows[i].Len())
	if err != nil {
		return err
	}
	if t.message, err = r.clients[i].Submit(broadcast, values...); err != nil {
		return err
	}
	submitted := now()
	t.cost = Cost{
		BytesUp:   int64(len(t.message)),
		BytesDown: int64(len(begin) + len(broadcast)),
		Train:     trained.Sub(received),
		Client:    received.Sub(start) + submitted.Sub(trained),
	}
	for _, w := range weights {
		t.largest = max(t.largest, math.Abs(w))
	}
	t.clear = append([]float64(nil), r.summary.Clear...)
	return r.train(ctx, t.clear, r.rows[i])
}

// train is gradient descent that looks up now and then.
func (r *run) train(ctx context.Context, weights []float64, rows *learning.Dataset) error {
	for left := r.options.LocalSteps; left > 0; left -= stepsAtOnce {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.model.Train(weights, rows, r.options.Rate, min(left, stepsAtOnce)); err != nil {
			return err
		}
	}
	return nil
}

// clearAverage is the average weighted by rows, in plain float64.
func (r *run) clearAverage(turns []turn) []float64 {
	mean := make([]float64, r.model.NumParams())
	total := 0.0
	for i := range turns {
		n := float64(r.rows[i].Len())
		for j, w := range turns[i].clear {
			mean[j] += n * w
		}
		total += n
	}
	for j := range mean {
		mean[j] /= total
	}
	return mean
}
