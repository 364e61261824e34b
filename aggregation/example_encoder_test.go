package aggregation_test

import (
	"fmt"
	"math"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
)

// Three parties send updates of norm 1 at most, with noise that two of them alone
// bring to a noise multiplier of 1. The sum is taken in the open; package protocol
// takes it under masks.
func ExampleEncoder() {
	e := aggregation.Encoder{
		Parties:     3,
		Dimension:   3,
		Clip:        1,
		Bits:        20,
		Rotate:      &[32]byte{1, 2, 3}, // public, drawn anew for each round
		NoiseFamily: accounting.FamilyDiscreteGaussian,
	}
	e, err := e.ChooseScale(1, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	layout, err := e.Layout()
	if err != nil {
		fmt.Println(err)
		return
	}
	sensitivity, err := e.Sensitivity() // for the accountant
	if err != nil {
		fmt.Println(err)
		return
	}
	share := e.NoiseStdDev / math.Sqrt(float64(e.Parties))
	fmt.Printf("%d coordinates of %d bits\n", layout[0].Length, layout[0].Bits)
	fmt.Printf("noise of two parties over sensitivity: %.3f\n", share*math.Sqrt2/sensitivity.L2)

	sum := make([]uint64, layout[0].Length)
	for _, update := range [][]float64{{0.5, 0, -0.5}, {0.1, 0.2, 0.3}, {30, 0, 0}} {
		// The party's share: integers with standard deviation share, from package
		// noise. Zeros stand in for them, for the same output each time.
		noise := make([]int64, layout[0].Length)
		submission, err := e.Encode(update, noise, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		for i, x := range submission[0] {
			sum[i] = (sum[i] + x) % (1 << layout[0].Bits)
		}
	}
	mean, err := e.Decode([][]uint64{sum}, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f\n", mean)
	// Output:
	// 3 coordinates of 20 bits
	// noise of two parties over sensitivity: 1.000
	// [0.53 0.07 -0.07]
}
