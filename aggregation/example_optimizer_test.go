package aggregation_test

import (
	"fmt"

	"github.com/hushsum/hushsum/aggregation"
)

// One round of gradient masked averaging over sums. Three clients send updates
// and signs as two lanes of one submission; the server learns the two sums and
// holds back where the clients disagree. The sum is taken in the open here;
// package protocol takes it under masks.
func ExampleOptimizer() {
	updates := aggregation.Mean{Parties: 3, Dimension: 3, Range: 1, FractionBits: 20}
	signs := aggregation.Signs{Parties: 3, Dimension: 3}
	lanes := aggregation.Lanes{updates, signs}
	layout, err := lanes.Layout()
	if err != nil {
		fmt.Println(err)
		return
	}

	sum := [][]uint64{make([]uint64, 3), make([]uint64, 3)}
	for _, update := range [][]float64{{0.5, 0.25, 0.5}, {0.25, 0.25, 0.5}, {0.75, 0.25, -0.25}} {
		first, err := updates.Encode(update)
		if err != nil {
			fmt.Println(err)
			return
		}
		second, err := signs.Encode(update, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		submission, err := lanes.Join(first, second)
		if err != nil {
			fmt.Println(err)
			return
		}
		for s, segment := range layout {
			for i, x := range submission[s] {
				sum[s][i] = (sum[s][i] + x) % (1 << segment.Bits)
			}
		}
	}

	parts, err := lanes.Split(sum)
	if err != nil {
		fmt.Println(err)
		return
	}
	mean, err := updates.Decode(parts[0], 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	agreed, err := signs.Decode(parts[1], 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	mask := aggregation.GradientMask{Kind: aggregation.SoftMask,
		Threshold: aggregation.DefaultThreshold}
	weights, err := mask.Weights(agreed, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	server := aggregation.Optimizer{Rule: aggregation.RuleFedAvg}
	model, err := server.Apply([]float64{1, 1, 1}, mean, weights)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("mean update %.2f, weights %.2f\n", mean, weights)
	fmt.Printf("next model %.3f\n", model)
	// Output:
	// mean update [0.50 0.25 0.25], weights [1.00 1.00 0.33]
	// next model [1.500 1.250 1.083]
}
