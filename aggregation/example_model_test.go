package aggregation_test

import (
	"fmt"

	"github.com/hushsum/hushsum/aggregation"
)

// A model as parties are sent it.
func ExampleParseModel() {
	sent, err := aggregation.AppendModel(nil, []float64{0.5, -2})
	if err != nil {
		fmt.Println(err)
		return
	}
	weights, err := aggregation.ParseModel(sent, 2)
	fmt.Println(len(sent), weights, err)
	// Output: 16 [0.5 -2] <nil>
}
