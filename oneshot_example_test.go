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

// people makes n identities and their list.
func people(kind string, n int) ([]crypto.Signer, *keyexchange.Roster) {
	var identities []crypto.Signer
	var list []keyexchange.Entry
	for i := range n {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			panic(err)
		}
		identities = append(identities, identity)
		list = append(list, keyexchange.Entry{Name: fmt.Sprintf("%s-%d", kind, i),
			Key: identity.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(list)
	if err != nil {
		panic(err)
	}
	return identities, roster
}

// Seven phones learn the mean of their vectors, each with one message, with the help of a
// committee of four. Between processes TCPDialers and two TCPListeners take the place of
// the Memories.
func Example_oneshot() {
	phones, roster := people("phone", 7)
	helpers, committee := people("member", 4)
	declared := &job.Job{
		Name:    "steps-a-day",
		Rounds:  1,
		Sum:     job.Sum{Protocol: "oneshot"},
		Parties: job.Parties{DropOut: 0.2},
		Model:   job.Model{Length: 2},
	}
	settled, err := declared.Settle(job.Files{Roster: roster, Committee: committee})
	if err != nil {
		panic(err)
	}

	var network, meetings hushsum.Memory
	var all sync.WaitGroup
	for i, identity := range phones {
		all.Go(func() {
			phone := hushsum.Participant[float64]{
				Job:      settled,
				Identity: identity,
				Dialer:   network.Dialer(i),
				Work: func(context.Context, hushsum.Round[float64]) (hushsum.Update[float64], error) {
					return hushsum.Update[float64]{Vector: []float64{float64(i), 10}}, nil
				},
			}
			if _, err := phone.Run(context.Background()); err != nil {
				panic(err)
			}
		})
	}
	for k, identity := range helpers {
		all.Go(func() {
			member := hushsum.Member{Job: settled, Identity: identity, Dialer: meetings.Dialer(k)}
			if err := member.Run(context.Background()); err != nil {
				panic(err)
			}
		})
	}
	coordinator := hushsum.Coordinator[float64]{
		Job:       settled,
		Listener:  &network,
		Committee: &meetings,
		Apply: func(d hushsum.Done[float64]) ([]float64, error) {
			fmt.Printf("mean of %d phones: %.3f\n", len(d.Parties), d.Mean)
			return d.Mean, nil
		},
	}
	if _, err := coordinator.Run(context.Background()); err != nil {
		panic(err)
	}
	all.Wait()
	// Output:
	// mean of 7 phones: [3.000 10.000]
}
