package simulation_test

import (
	"context"
	"fmt"

	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/protocol"
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

// How much noise there is in a sum of 100 parties, of whom 10 may collude and 32
// may be missing.
func ExampleOptions_Mechanism() {
	options := simulation.Defaults()
	options.Recovery = &protocol.Recovery{Colluders: 10, MinSurvivors: 68}
	noise := simulation.DefaultNoise()
	options.Noise = &noise
	mechanism, err := options.Mechanism(40)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("the shares of %d of %d parties suffice\n", mechanism.Shares.MinHonest, mechanism.Shares.Parties)
	fmt.Printf("standard deviation %.3f for updates of norm %v\n", mechanism.StdDev(), mechanism.Encoder.Clip)
	// Output:
	// the shares of 58 of 100 parties suffice
	// standard deviation 1.000 for updates of norm 1
}
