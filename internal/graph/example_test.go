package graph_test

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/internal/graph"
)

func ExampleParameters() {
	sizes := graph.Sizes{Least: 1000, Most: 1000, Survivors: 950, Colluders: 50}
	p, err := graph.Parameters(sizes, 0, 40, 20, graph.SemiMalicious)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("neighbours:", p.Neighbours, "threshold:", p.Threshold)
	// Output: neighbours: 52 threshold: 37
}

func ExampleNewGraph() {
	seed := graph.Seed(sha256.Sum256([]byte("transcript of the session, then the round")))
	scheduled := []int{2, 3, 5, 7, 11, 13, 17, 19}
	g, err := graph.NewGraph(scheduled, 4, seed)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, j := range g.Neighbours(11) {
		if !g.Adjacent(j, 11) {
			fmt.Println("never printed: neighbours are mutual")
		}
	}
	fmt.Println(len(g.Neighbours(11)), "of", g.Size()-1)
	// Output: 4 of 7
}

func ExampleDefaultThreshold() {
	// Ten parties in the complete graph: nine hold the shares of each.
	t, err := graph.DefaultThreshold(graph.Cheating, 9, 4)
	fmt.Println(t, err)
	_, err = graph.DefaultThreshold(graph.Cheating, 9, 5)
	fmt.Println(errors.Is(err, graph.ErrThresholdTooLow))
	// Output:
	// 7 <nil>
	// true
}
