package simulation_test

import (
	"context"
	"fmt"

	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
)

// Ten parties train on synthetic rows for three rounds.
func Example() {
	rows, _, err := learning.Census(3000, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	options := simulation.Defaults()
	options.Clients, options.RowsPerClient, options.Rounds = 10, 100, 3
	options.Train, options.Test, err = rows.Split(0.5, 1)
	if err != nil {
		fmt.Println(err)
		return
	}

	summary, err := simulation.Run(context.Background(), options, func(r simulation.Round) {
		fmt.Printf("round %d: the sum of %d parties\n", r.Round, r.Clients)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	last := summary.Rounds[len(summary.Rounds)-1]
	fmt.Println("same classes as in the clear:", last.Private == last.Clear)
	// Output:
	// round 1: the sum of 10 parties
	// round 2: the sum of 10 parties
	// round 3: the sum of 10 parties
	// same classes as in the clear: true
}
