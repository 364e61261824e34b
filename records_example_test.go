package hushsum_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/training"
)

const recordsJob = `
name = "by-records"
rounds = 3
model.length = 2
parties = { count = 3, roster = "roster.txt" }
training.batch = 1500      # of the records below a round draws half
server.rate = 4.0
[privacy]
unit = "record"
records = 3000             # of all parties, as far as that is public
noise = "discrete-gaussian"
epsilon = 2.0
clip = 1.0
submit_after = "200ms"
`

// row is a record: two measurements, and whether the patient is ill.
type row struct {
	x   [2]float64
	ill float64
}

// gradients returns the Work of a party whose model is of its own making, here a logistic
// regression, in a job that protects each record: epsilon holds if this does what Coins says.
func gradients(
	coins *job.Coins, rows []row,
) func(ctx context.Context, r hushsum.Round[float64]) (hushsum.Update[float64], error) {
	return func(_ context.Context, round hushsum.Round[float64]) (hushsum.Update[float64], error) {
		model := round.Model
		update, drawn := make([]float64, len(model)), 0
		for _, r := range rows[:min(len(rows), coins.Count)] {
			if !toss(coins.Rate) {
				continue
			}
			drawn++
			z := model[0]*r.x[0] + model[1]*r.x[1]
			miss := 1/(1+math.Exp(-z)) - r.ill
			gradient := [2]float64{miss * r.x[0], miss * r.x[1]}
			norm := math.Hypot(gradient[0], gradient[1])
			if math.IsNaN(norm) || math.IsInf(norm, 0) {
				continue // such a record adds nothing
			}
			clipped := min(1, coins.Clip/norm)
			for k, g := range gradient {
				update[k] -= clipped * g
			}
		}
		if drawn > coins.Most {
			clear(update)
		}
		return hushsum.Update[float64]{Vector: update}, nil
	}
}

// toss throws a fresh and secret coin, which comes up with this probability.
func toss(rate float64) bool {
	var coin [8]byte
	_, _ = rand.Read(coin[:]) // it never fails
	return rate >= 1 || float64(binary.LittleEndian.Uint64(coin[:])>>11) < rate*(1<<53)
}

// Three parties train a model of their own making, with an epsilon for each of their records.
func Example_records() {
	declared, err := job.Parse("job.toml", []byte(recordsJob))
	if err != nil {
		panic(err)
	}
	var identities []ed25519.PrivateKey
	var members []keyexchange.Entry
	for i := range 3 {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			panic(err)
		}
		identities = append(identities, identity)
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("clinic-", i),
			Key: identity.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		panic(err)
	}
	settled, err := declared.Settle(job.Files{Roster: roster})
	if err != nil {
		panic(err)
	}

	var network hushsum.Memory
	var parties sync.WaitGroup
	for i, identity := range identities {
		var rows []row // the party's own
		for k := range 1000 {
			x := [2]float64{math.Sin(float64(k + i)), math.Cos(float64(3*k + i))}
			rows = append(rows, row{x, map[bool]float64{true: 1}[x[0] > x[1]]})
		}
		party := hushsum.Participant[float64]{
			Job:      settled,
			Identity: identity,
			Dialer:   network.Dialer(i),
			Work:     gradients(settled.Coins(), rows),
		}
		parties.Go(func() {
			if _, err := party.Run(context.Background()); err != nil {
				panic(err)
			}
		})
	}
	apply, err := training.Apply(settled) // the job's server.rule and server.rate
	if err != nil {
		panic(err)
	}
	coordinator := hushsum.Coordinator[float64]{Job: settled, Listener: &network, Apply: apply}
	result, err := coordinator.Run(context.Background())
	if err != nil {
		panic(err)
	}
	parties.Wait()
	fmt.Printf("%d rounds, epsilon %.2f of each record\n", result.Rounds, result.Spent.Bare().Upper)
	fmt.Printf("ill if x0 > x1: %v\n", result.Model[0] > 0 && result.Model[1] < 0)
	// Output:
	// 3 rounds, epsilon 2.00 of each record
	// ill if x0 > x1: true
}
