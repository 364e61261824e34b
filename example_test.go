package hushsum_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"fmt"
	"sync"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
)

// Seven parties learn the mean of their vectors, twice, within one process. Between
// processes a TCPDialer and a TCPListener take the place of the Memory, and a FileStore
// lets any of them be killed and started again.
func Example() {
	// What all sides have: identities, their roster, and a job.
	var identities []crypto.Signer
	var members []keyexchange.Entry
	for i := range 7 {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			panic(err)
		}
		identities = append(identities, identity)
		members = append(members,
			keyexchange.Entry{Name: fmt.Sprintf("clinic-%d", i),
				Key: identity.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		panic(err)
	}
	declared, err := job.Parse("waiting-times.toml", []byte(`
		name = "waiting-times"
		rounds = 2
		model.length = 3
		parties = { count = 7, drop_out = 0.2 }
	`))
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
		parties.Go(func() {
			party := hushsum.Participant[float64]{
				Job:      settled,
				Identity: identity,
				Dialer:   network.Dialer(i),
				Work: func(_ context.Context, r hushsum.Round[float64]) (hushsum.Update[float64], error) {
					vector := []float64{float64(i), 10, float64(r.Number)}
					return hushsum.Update[float64]{Vector: vector}, nil
				},
			}
			if _, err := party.Run(context.Background()); err != nil {
				panic(err)
			}
		})
	}
	coordinator := hushsum.Coordinator[float64]{
		Job:      settled,
		Listener: &network,
		Apply: func(d hushsum.Done[float64]) ([]float64, error) {
			fmt.Printf("round %d, mean of %d parties: %.3f\n", d.Number, len(d.Parties), d.Mean)
			return d.Mean, nil
		},
	}
	if _, err := coordinator.Run(context.Background()); err != nil {
		panic(err)
	}
	parties.Wait()
	// Output:
	// round 1, mean of 7 parties: [3.000 10.000 1.000]
	// round 2, mean of 7 parties: [3.000 10.000 2.000]
}
