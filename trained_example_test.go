package hushsum_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"sync"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/training"
)

const exampleJob = `
name = "example"
rounds = 3
parties = { count = 3, roster = "roster.txt" }
sum.recovery = true
model = { name = "logistic", features = 40, classes = 2 }
training = { rule = "fedprox", steps = 5, rate = 1.0 }
server = { rule = "fedadam", beta1 = 0.9 }
`

// Three parties train the model of a job, each on rows that nobody else has.
func Example_training() {
	// What all sides have: the job and the roster of its parties. job.Load reads it from its file,
	// and Files those that it names.
	declared, err := job.Parse("job.toml", []byte(exampleJob))
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
		rows, _, err := learning.Census(50, uint64(i)) // the party's own
		if err != nil {
			panic(err)
		}
		work, err := training.Submit(settled, i, rows, nil)
		if err != nil {
			panic(err)
		}
		party := hushsum.Participant[float64]{
			Job:      settled,
			Identity: identity,
			Dialer:   network.Dialer(i),
			Work:     work,
		}
		parties.Go(func() {
			if _, err := party.Run(context.Background()); err != nil {
				panic(err)
			}
		})
	}
	first, err := training.First(settled)
	if err != nil {
		panic(err)
	}
	apply, err := training.Apply(settled)
	if err != nil {
		panic(err)
	}
	coordinator := hushsum.Coordinator[float64]{Job: settled, Listener: &network, Model: first,
		Apply: apply}
	result, err := coordinator.Run(context.Background())
	if err != nil {
		panic(err)
	}
	parties.Wait()
	fmt.Printf("%d rounds, %d weights\n", result.Rounds, len(result.Model[:settled.Length()]))
	// Output: 3 rounds, 40 weights
}
