package simulation_test

import (
	"context"
	"fmt"

	"github.com/hushsum/hushsum/aggregation"
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
	options.Recovery, options.Colluders = &protocol.Recovery{MinSurvivors: 68}, 10
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

// A budget of ε = 8 for five rounds of federated averaging with a soft gradient mask:
// the noise on the updates and on the signs is calibrated to it.
func ExampleTrain() {
	rows, _, err := learning.Census(3000, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	train, test, err := rows.Split(0.5, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	parties, _, err := learning.Partition("iid", train, nil, learning.PartitionOptions{Clients: 20, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	noise := simulation.DefaultNoise()
	noise.Epsilon = 8
	training := simulation.Training{
		Model:   learning.Softmax{Features: test.Features, Outputs: 2},
		Parties: parties, Test: test, Rounds: 5,
		Local: learning.SGD{Rate: 1, Epochs: 1},
		Mask:  aggregation.GradientMask{Kind: aggregation.SoftMask, Threshold: aggregation.DefaultThreshold},
		Sum:   simulation.Private, Noise: &noise,
	}
	if noise.Multiplier, err = training.Calibrate(); err != nil {
		fmt.Println(err)
		return
	}
	trained, err := simulation.Train(context.Background(), training, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	last := trained.Rounds[len(trained.Rounds)-1]
	fmt.Printf("%d rounds of %d parties, ε(server) at most %.1f by %s\n", len(trained.Rounds), last.Clients, last.Server.Upper, last.Server.Accountant)
	// Output: 5 rounds of 20 parties, ε(server) at most 8.0 by RDP
}
