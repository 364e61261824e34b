package masking_test

import (
	"fmt"

	"github.com/hushsum/hushsum/masking"
)

// Three parties hide their vectors with one mask per pair; the masks cancel in
// the sum. The seeds here are for show: package protocol agrees on secret ones.
func Example() {
	layout := masking.Layout{{Length: 2, Bits: 16}}
	inputs := [][]uint64{{1, 10}, {2, 20}, {3, 30}}
	seed := func(i, j int) *masking.Seed { return &masking.Seed{byte(min(i, j)), byte(max(i, j))} }

	sum, _ := masking.NewVector(layout)
	for i, input := range inputs {
		v, _ := masking.FromValues(layout, input)
		for j := range inputs {
			if i != j {
				v.MaskPair(seed(i, j), i, j)
			}
		}
		_ = sum.AddPacked(v.AppendPacked(nil)) // what travels: 16 bits a coordinate
	}
	fmt.Println(sum.Values()[0])
	// Output: [6 60]
}
