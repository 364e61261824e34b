package privacy_test

import (
	"fmt"
	"math"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/privacy"
)

// A survey of five questions, each answered by a number from 0 to 1, among 300 people
// of whom 60 may be missing and 20 may collude with whoever counts. Nobody is to learn
// more of anybody than ε = 1 at δ = 10^-6 allows. The sum is taken in the open here;
// package protocol takes it under masks.
func Example() {
	survey := privacy.Release{
		Promise:   privacy.Assumed(300, 220),
		Dimension: 5,
		Noise: privacy.Noise{
			Family: accounting.FamilySkellam,
			Clip:   math.Sqrt(5), // the longest answer
			Bits:   20,
		},
	}
	budget := privacy.Budget{Epsilon: 1, Delta: 1e-6}
	var err error
	if survey.Noise.Multiplier, err = survey.Calibrate(budget, 1); err != nil {
		fmt.Println(err)
		return
	}
	m, err := survey.Mechanism()
	if err != nil {
		fmt.Println(err)
		return
	}
	layout, err := m.Layout()
	if err != nil {
		fmt.Println(err)
		return
	}
	rotation := privacy.Rotation([32]byte{1}, 1) // of something public

	// 250 people answer: 0.2 to the first question, 0.4 to the second and so on.
	const came = 250
	sum := make([]uint64, layout[0].Length)
	for range came {
		answers := []float64{0.2, 0.4, 0.6, 0.8, 1}
		submission, err := m.Encode(rotation, answers, nil, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		for j, x := range submission[0] {
			sum[j] = (sum[j] + x) % (1 << layout[0].Bits)
		}
	}

	ledger, err := budget.Ledger(accounting.Statement{}) // of every person, over all surveys
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := ledger.SpendRound(m.Round(), "ann", "ben"); err != nil {
		fmt.Println(err)
		return
	}
	mean, _, err := m.Decode(rotation, [][]uint64{sum}, came)
	if err != nil {
		fmt.Println(err)
		return
	}
	spent, err := ledger.Spent("ann")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("the noise of %d people suffices for ε = %.2f\n", m.Vector.Shares.MinHonest,
		spent.Bare().Upper)
	deviation := m.StdDev(came) / came
	fmt.Printf("each mean is off by %.3f, a standard deviation\n", deviation)
	for j, x := range mean {
		if math.Abs(x-float64(j+1)/5) > 6*deviation {
			fmt.Println("answer", j, "is further off than noise ever is:", x)
		}
	}
	// Output:
	// the noise of 220 people suffices for ε = 1.00
	// each mean is off by 0.040, a standard deviation
}

// 80 parties, of whom 8 may be missing and 6 may collude, have vectors of norm 1 in a
// ring of 20 bits, and discrete noise of eight times the sensitivity.
func ExampleMechanism_Round() {
	release := privacy.Release{
		Promise:   privacy.Assumed(80, 66),
		Dimension: 1000,
		Noise:     privacy.Noise{Family: accounting.FamilySkellam, Multiplier: 8, Clip: 1, Bits: 20},
	}
	m, err := release.Mechanism()
	if err != nil {
		fmt.Println(err)
		return
	}
	spent, err := m.Round().Spent(accounting.ServerView, 20, 1e-5)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("20 rounds: ε(server) ≤ %.2f\n", spent.Bare().Upper)
	// Output: 20 rounds: ε(server) ≤ 2.26
}
