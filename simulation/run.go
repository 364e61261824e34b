package simulation

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
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
	average aggregation.FedAvg  // without noise
	noisy   *noisy              // with noise, else nil
	rows    []*learning.Dataset // by party

	identities []crypto.Signer
	config     *protocol.Config
	server     *protocol.Server
	clients    []*protocol.Client
	drops      *dropOuts

	shown   [2]int // the round and the number that Progress was last called with
	summary *Summary
}

// Run trains. It calls report, if that is not nil, after every round. A round that
// has too few parties to unmask anything, with recovery, is lost and no failure:
// the next one begins from the same model. Run fails, before it begins, with an [OptionError] or with learning.ErrTooFewRows if Train
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
		outcome, err := r.playRound(ctx, round)
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
		shown:   [2]int{-1},
		options: options,
		report:  report,
		model:   learning.Logistic{Features: options.Train.Features, Lambda: options.Lambda},
	}
	layout, err := r.encoding()
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
	r.config = &protocol.Config{Label: sessionLabel, Roster: roster, Layout: layout, Recovery: options.Recovery}
	r.drops = newDropOuts(&options)
	r.clients = make([]*protocol.Client, options.Clients)
	r.summary = &Summary{
		Layout:  layout,
		Private: make([]float64, r.model.NumParams()),
		Clear:   make([]float64, r.model.NumParams()),
	}
	return r, nil
}

// encoding settles how parties encode what they submit.
func (r *run) encoding() (layout masking.Layout, err error) {
	dimension := r.model.NumParams()
	r.average = r.options.FedAvg(dimension)
	if r.noisy, err = newNoisy(&r.options, dimension); err != nil {
		return nil, err
	}
	if r.noisy != nil {
		return r.noisy.Encoder.Layout()
	}
	return r.average.Layout()
}

func (r *run) erase() {
	for _, c := range r.clients {
		if c != nil {
			c.Erase()
		}
	}
}

// each calls work for 0 to n − 1, several at a time; work says which party it was.
// index is the step of the round that this is, −1 for one that Progress does not
// show.
func (r *run) each(ctx context.Context, round, index, n int, work func(i int) (party int, err error)) error {
	steps := 1
	if r.options.Recovery != nil && round > 0 {
		steps = 3 // submit, sign, reveal
	}
	progress := func(done int) {
		if r.options.Progress == nil || index < 0 {
			return
		}
		parties := len(r.clients)
		now := [2]int{round, (index*parties + done*parties/max(n, 1)) / steps}
		if now != r.shown {
			r.options.Progress(now[0], now[1])
			r.shown = now
		}
	}
	progress(0)
	return parallel(ctx, n, func(i int) error {
		party, err := work(i)
		if err != nil && ctx.Err() == nil {
			return failure(round, party, err)
		}
		return err
	}, progress)
}

// setUp runs the key exchange and, with recovery, takes the material for the
// first round.
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

	uploads := make([][]byte, n)
	err = r.each(ctx, 0, 0, n, func(i int) (int, error) {
		start := now()
		upload, err := r.clients[i].Receive(keys[i].Message)
		times[i] += now().Sub(start)
		uploads[i] = upload
		return i, err
	})
	if err != nil {
		return err
	}
	for i := range keys {
		cost.BytesDown += int64(len(keys[i].Message))
		cost.Client += times[i]
		if uploads[i] == nil {
			continue
		}
		start := now()
		if err := r.server.Receive(uploads[i]); err != nil {
			return failure(0, i, err)
		}
		cost.Server += now().Sub(start)
		cost.BytesUp += int64(len(uploads[i]))
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
