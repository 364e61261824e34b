package accounting_test

import (
	"fmt"
	"math"

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
	spent, err := round.Spent(accounting.Server, 20, 1e-5)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("20 rounds: ε(server) ≤ %.2f\n", spent.Upper)
	// Output: 20 rounds: ε(server) ≤ 2.45
}
