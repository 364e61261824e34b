package accounting_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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

// One release with Gaussian noise of multiplier 4: ε at δ = 1e-5, and δ at ε = 1.
func ExampleGaussianEpsilon() {
	epsilon, err := accounting.GaussianEpsilon(4, 1e-5)
	if err != nil {
		fmt.Println(err)
		return
	}
	delta, err := accounting.GaussianDelta(4, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("ε = %.4f, δ = %.3g\n", epsilon.Upper, delta.Upper)
	// Output: ε = 0.9263, δ = 2.92e-06
}

// Budgets in ρ add up: ten releases of discrete Gaussian noise of multiplier 10.
func ExampleZCDP() {
	one, err := accounting.GaussianZCDP(10)
	if err != nil {
		fmt.Println(err)
		return
	}
	epsilon, err := (10 * one).Epsilon(1e-6)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("ρ = %.3f, ε = %.3f\n", 10*one, epsilon)
	// Output: ρ = 0.050, ε = 1.472
}

// A thousand steps, each on 100 records of 10,000, drawn without replacement.
func ExampleFixedSizeGaussianRDP() {
	step, err := accounting.FixedSizeGaussianRDP(1, 100, 10_000, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	epsilon, order, err := step.Times(1000).Epsilon(1e-5)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("ε = %.3f, by order %v\n", epsilon, order)
	// Output: ε = 3.576, by order 6
}

func ExampleRound_Views() {
	round := accounting.Round{
		Family: accounting.FamilySkellam, Shares: 80, Honest: 80,
		Update: accounting.Lane{ShareVariance: 2e4,
			Sensitivity: accounting.Sensitivity{L2: 300, Dimension: 10000}},
		Rate: 0.05, HiddenSchedule: true,
	}
	server, public, err := round.Views(20, 1e-6)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("ε(server) ≤ %.2f, ε(public) ≤ %.2f\n", server.Bare().Upper, public.Bare().Upper)
	// Output: ε(server) ≤ 5.23, ε(public) ≤ 0.23
}

// Two clients, of whom one wants to spend less, take part until a round would take
// them over their budgets. The ledger is saved between rounds.
func ExampleLedger() {
	budget, err := accounting.NewBudget(accounting.Calculated(accounting.PartyUnit), 4, 1e-5)
	if err != nil {
		fmt.Println(err)
		return
	}
	ledger, err := accounting.NewLedger(budget)
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
		fmt.Printf("%s has spent %.2f, %v\n", client, spent.Bare().Upper, err)
	}
	// Output:
	// after 16 rounds ben stops: ε would be 2.06
	// after 54 rounds ann stops: ε would be 4.01
	// ann has spent 3.97, <nil>
	// ben has spent 1.99, <nil>
}

// A mechanism of one's own is accounted by what it may answer: the probability of each answer with a
// client and without. Thirty such answers spend less than thirty times the epsilon of one.
func ExamplePair() {
	answer := accounting.Pair{
		P: []float64{0.50, 0.30, 0.20}, // yes, no and nothing, with the client
		Q: []float64{0.40, 0.35, 0.25}, // the same without
	}
	for _, count := range []int{1, 30} {
		run, err := accounting.Compose(accounting.Step{Mechanism: answer, Count: count})
		if err != nil {
			fmt.Println(err)
			return
		}
		b, err := run.Epsilon(1e-6)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d: %.3f ≤ ε ≤ %.3f\n", count, b.Lower, b.Upper)
	}
	// Output:
	// 1: 0.223 ≤ ε ≤ 0.223
	// 30: 5.244 ≤ ε ≤ 5.244
}
