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

// Four parties with one class each train a small network with FedProx's pull
// towards the global weights.
func ExampleSGD() {
	data, _, err := learning.Census(2000, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	parties, _, err := learning.Partition("one-class", data, nil,
		learning.PartitionOptions{Clients: 4, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	model := learning.MLP{Features: data.Features, Hidden: []int{8}, Outputs: 2}
	global := model.Init(1)
	const mu = 0.1
	local := learning.SGD{
		Rate: 0.1, Batch: 50, Epochs: 2,
		Adjust: func(gradient, w []float64) {
			for j := range gradient {
				gradient[j] += mu * (w[j] - global[j])
			}
		},
	}
	next := make([]float64, len(global))
	for i, rows := range parties {
		w := append([]float64(nil), global...)
		steps, err := local.Train(model, w, rows, uint64(i))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("batches are", local.Batch, "rows, steps cover two epochs:",
			steps == 2*((rows.Len()+49)/50))
		for j := range next {
			next[j] += w[j] / float64(len(parties))
		}
	}
	result, err := learning.Evaluate(model, next, data)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("rows tested:", result.Total())
	// Output:
	// batches are 50 rows, steps cover two epochs: true
	// batches are 50 rows, steps cover two epochs: true
	// batches are 50 rows, steps cover two epochs: true
	// batches are 50 rows, steps cover two epochs: true
	// rows tested: 2000
}
