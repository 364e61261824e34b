package aggregation_test

import (
	"fmt"

	"github.com/hushsum/hushsum/aggregation"
)

// Two parties average their models, weighted by how much data they have. The
// sum is taken in the open here; package protocol takes it under masks.
func ExampleFedAvg() {
	average := aggregation.FedAvg{Parties: 2, Dimension: 3, Range: 8, FractionBits: 16,
		MaxSamples: 1000}
	layout, err := average.Layout()
	if err != nil {
		fmt.Println(err)
		return
	}
	first, err := average.Encode([]float64{1, 0.5, -2}, 300)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := average.Encode([]float64{3, 0.5, 2}, 100)
	if err != nil {
		fmt.Println(err)
		return
	}

	sum := make([][]uint64, len(layout))
	for i, segment := range layout {
		for k := range segment.Length {
			sum[i] = append(sum[i], (first[i][k]+second[i][k])%(1<<segment.Bits))
		}
	}
	mean, samples, err := average.Decode(sum)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mean, "over", samples, "samples")
	// Output: [1.5 0.5 -1] over 400 samples
}
