package learning_test

import (
	"fmt"

	"github.com/hushsum/hushsum/learning"
)

// Ten parties train on their own rows and average their weights in the clear.
func Example() {
	data, _, err := learning.Census(4000, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	train, test, err := data.Split(0.25, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	parties, err := train.PartitionIID(10, 300, 1)
	if err != nil {
		fmt.Println(err)
		return
	}

	model := learning.Logistic{Features: data.Features, Lambda: 1e-4}
	global := make([]float64, model.NumParams())
	for range 10 {
		sum := make([]float64, len(global))
		for _, rows := range parties {
			w := append([]float64(nil), global...)
			if err := model.Train(w, rows, 2, 50); err != nil {
				fmt.Println(err)
				return
			}
			for j := range sum {
				sum[j] += w[j]
			}
		}
		for j := range global {
			global[j] = sum[j] / float64(len(parties))
		}
	}

	result, err := model.Evaluate(global, test)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("rows tested:", result.Total())
	fmt.Println("better than the majority class:", result.MCC() > 0.4)
	// Output:
	// rows tested: 1000
	// better than the majority class: true
}
