package accounting_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
)

// A run of 1,000 rounds with one client in a hundred sampled and noise of the
// clipping bound's size: what an outsider may learn, proved from both sides.
func ExampleCompose() {
	run, err := accounting.Compose(accounting.Step{
		Mechanism: accounting.Sampled{Mechanism: accounting.Gaussian{NoiseMultiplier: 1}, Rate: 0.01},
		Count:     1000,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := run.Epsilon(1e-6)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.3f ≤ ε ≤ %.3f\n", b.Lower, b.Upper)
	// Output: 2.124 ≤ ε ≤ 2.125
}

func ExampleRound_Views() {
	round := accounting.Round{
		Law: accounting.LawSkellam, Shares: 80, MinSurvivors: 90, Colluders: 10,
		Update: accounting.Lane{Scale: 2e4, Sensitivity: accounting.Sensitivity{Delta2: 300, Dim: 10000}},
		Rate:   0.05, HiddenSchedule: true,
	}
	server, public, err := round.Views(20, 1e-6)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("ε(server) ≤ %.2f, ε(public) ≤ %.2f\n", server.Upper, public.Upper)
	// Output: ε(server) ≤ 5.60, ε(public) ≤ 0.54
}

// What a round spends that packages aggregation and noise put together: 80 parties,
// of whom 8 may be missing and 6 may collude, each with a share of Skellam noise of 66
// honest ones and an update clipped to norm 1, rounded for a ring of 20 bits.
func ExampleRound_Spent() {
	const parties, survivors, colluders = 80, 72, 6
	const honest = survivors - colluders
	encoder, err := aggregation.Encoder{
		Parties: parties, Dimension: 1000, Clip: 1, Bits: 20, Rotate: new([32]byte), NoiseTail: aggregation.SkellamTail,
	}.ChooseScale(8, honest) // the standard deviation of honest shares, over the sensitivity
	if err != nil {
		fmt.Println(err)
		return
	}
	bounds, err := encoder.Sensitivity()
	if err != nil {
		fmt.Println(err)
		return
	}
	each := encoder.NoiseStdDev / math.Sqrt(parties) // of one share, in units of the ring
	round := accounting.Round{
		Law: accounting.LawSkellam, Shares: honest, MinSurvivors: survivors, Colluders: colluders,
		Update: accounting.Lane{
			Scale:       each * each, // a Skellam share is stated by its variance
			Sensitivity: accounting.Sensitivity{Delta1: bounds.L1, Delta2: bounds.L2, Dim: bounds.Dimension},
		},
		// Every coordinate of every party's share comes from a table.
		TableDistance: 0x1p-100, Samples: parties * float64(bounds.Dimension),
		Rate: 1,
	}
	spent, err := round.Spent(accounting.ServerView, 20, 1e-5)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("20 rounds: ε(server) ≤ %.2f\n", spent.Upper)
	// Output: 20 rounds: ε(server) ≤ 2.45
}

// Two clients, of whom one wants to spend less, take part until a round would take
// them over their budgets. The ledger is saved between rounds.
func ExampleLedger() {
	ledger, err := accounting.NewLedger(accounting.ServerView, accounting.Target{Epsilon: 4, Delta: 1e-5})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := ledger.SetBudget("ben", accounting.Target{Epsilon: 2, Delta: 1e-5}); err != nil {
		fmt.Println(err)
		return
	}
	round := accounting.Step{Mechanism: accounting.Gaussian{NoiseMultiplier: 8}, Count: 1}
	clients := []string{"ann", "ben"}
	for rounds := 0; len(clients) > 0; {
		var over *accounting.OverBudget
		err := ledger.Spend(round, clients...)
		if errors.As(err, &over) {
			fmt.Printf("after %d rounds %s stops: ε would be %.2f\n", rounds, over.Client, over.Would)
			clients = slices.DeleteFunc(clients, func(c string) bool { return c == over.Client })
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		rounds++
		saved, err := json.Marshal(ledger)
		if err == nil {
			err = json.Unmarshal(saved, ledger)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, client := range ledger.Clients() {
		spent, err := ledger.Spent(client)
		fmt.Printf("%s has spent %.2f, %v\n", client, spent.Upper, err)
	}
	// Output:
	// after 16 rounds ben stops: ε would be 2.06
	// after 54 rounds ann stops: ε would be 4.01
	// ann has spent 3.97, <nil>
	// ben has spent 1.99, <nil>
}
