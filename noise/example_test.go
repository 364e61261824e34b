package noise_test

import (
	"fmt"
	"math"
	"math/big"

	"github.com/hushsum/hushsum/noise"
)

// A hundred parties each add a share of discrete Laplace noise; eighty answers are
// guaranteed, of which ten may come from colluders.
func ExampleShares() {
	target, err := noise.DiscreteLaplace(big.NewRat(10, 1)) // sensitivity 1: ε = 0.1
	if err != nil {
		panic(err)
	}
	shares := noise.Shares{Parties: 100, MinHonest: 80 - 10, Law: target}
	party, err := shares.Party()
	if err != nil {
		panic(err)
	}
	fmt.Println("each party:", party)
	for _, answered := range []int{70, 100} {
		sum, err := shares.Sum(answered)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d shares: %v, σ = %.2f\n", answered, sum.Law, math.Sqrt(sum.Law.Variance()))
	}

	table, err := noise.NewTable(party)
	if err != nil {
		panic(err)
	}
	noiseShare := make([]int64, 10000)
	if err := table.NewSampler(nil).Fill(noiseShare); err != nil {
		panic(err)
	}
	fmt.Println("distance below 2^-100:", table.Distance() < 0x1p-100)
	// Output:
	// each party: polya-difference(1/70, 10)
	// 70 shares: discrete-laplace(10), σ = 14.14
	// 100 shares: polya-difference(10/7, 10), σ = 16.90
	// distance below 2^-100: true
}

func ExampleExact() {
	sigma2, err := noise.Rational(100)
	if err != nil {
		panic(err)
	}
	law, err := noise.DiscreteGaussian(sigma2)
	if err != nil {
		panic(err)
	}
	exact, err := noise.NewExact(law, nil)
	if err != nil {
		panic(err)
	}
	x := make([]int64, 3)
	if err := exact.Fill(x); err != nil {
		panic(err)
	}
	fmt.Println(len(x), "samples at distance", exact.Distance())
	// Output:
	// 3 samples at distance 0
}
