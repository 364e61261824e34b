package simulation_test

import (
	"context"
	"fmt"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
)

// dealt returns synthetic rows in the hands of this many parties, and rows for tests.
func dealt(parties int) ([]*learning.Dataset, *learning.Dataset, error) {
	rows, _, err := learning.Census(3000, 1)
	if err != nil {
		return nil, nil, err
	}
	train, test, err := rows.Split(0.5, 1)
	if err != nil {
		return nil, nil, err
	}
	return learning.Partition("dirichlet-quantity", train, test,
		learning.PartitionOptions{Clients: parties, Seed: 1})
}

// Ten parties with unlike numbers of rows train for three rounds through the private
// sum, next to the same training in the clear.
func Example() {
	parties, test, err := dealt(10)
	if err != nil {
		fmt.Println(err)
		return
	}
	settled, world, err := simulation.Settle(&job.Job{
		Name:     "census",
		Rounds:   3,
		Parties:  job.Parties{Count: 10},
		Sum:      job.Sum{MaxWeight: 1000},
		Model:    job.Model{Name: "logistic"},
		Training: job.Training{Rate: 2, Steps: 50},
	}, simulation.Rows{Parties: parties, Test: test})
	if err != nil {
		fmt.Println(err)
		return
	}
	show := func(r simulation.RoundResult) {
		fmt.Printf("round %d: the sum of %d parties with %d rows\n", r.Round, r.Parties, r.Samples)
	}
	result, err := simulation.Run(context.Background(), settled, world, show)
	if err != nil {
		fmt.Println(err)
		return
	}
	last := result.Final()
	fmt.Println("as accurate as in the clear:", last.Test.Accuracy() == last.Clear.Accuracy())
	// Output:
	// round 1: the sum of 10 parties with 1500 rows
	// round 2: the sum of 10 parties with 1500 rows
	// round 3: the sum of 10 parties with 1500 rows
	// as accurate as in the clear: true
}

// A budget of ε = 8 for five rounds of federated averaging with a soft gradient mask:
// the noise on the updates and on the signs is calibrated to it.
func ExampleSettle() {
	parties, test, err := dealt(20)
	if err != nil {
		fmt.Println(err)
		return
	}
	settled, world, err := simulation.Settle(&job.Job{
		Name:     "census",
		Rounds:   5,
		Parties:  job.Parties{Count: 20},
		Privacy:  job.Privacy{Noise: "discrete-gaussian", Epsilon: 8, Clip: 1, Bits: 18},
		Model:    job.Model{Name: "softmax"},
		Training: job.Training{Rate: 1, Mask: "soft"},
	}, simulation.Rows{Parties: parties, Test: test})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := simulation.Run(context.Background(), settled, world, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d rounds, ε(server) at most %.1f by %s\n", len(result.Rounds),
		result.Server.Bare().Upper,
		result.Server.Bare().Accountant)
	// Output: 5 rounds, ε(server) at most 8.0 by PLD
}
