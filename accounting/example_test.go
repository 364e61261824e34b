package accounting_test

import (
	"fmt"

	"github.com/hushsum/hushsum/accounting"
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
