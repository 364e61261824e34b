package learning

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

func dealDirichletLabels(d *Dataset, o PartitionOptions, rng *rand.Rand) ([][]int, error) {
	lists := make([][]int, o.Clients)
	for _, rows := range byClass(d, rng) {
		for c, part := range cutBy(rows, dirichlet(o.Clients, o.Concentration, rng)) {
			lists[c] = append(lists[c], part...)
		}
	}
	fillEmpty(lists)
	for _, rows := range lists {
		rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
	return lists, nil
}

func dealDirichletQuantity(d *Dataset, o PartitionOptions, rng *rand.Rand) ([][]int, error) {
	lists := cutBy(rng.Perm(d.Len()), dirichlet(o.Clients, o.Concentration, rng))
	fillEmpty(lists)
	return lists, nil
}

// dirichlet draws n proportions from the symmetric Dirichlet law. A gamma
// variable with a small shape a underflows; its logarithm, that of a gamma
// variable with shape a+1 plus log(U)/a, does not.
func dirichlet(n int, concentration float64, rng *rand.Rand) []float64 {
	gamma := distuv.Gamma{Alpha: concentration + 1, Beta: 1, Src: rng}
	p := make([]float64, n)
	for i := range p {
		p[i] = math.Log(gamma.Rand()) + math.Log(1-rng.Float64())/concentration
	}
	softmax(p)
	return p
}

// cutBy divides rows in the given proportions, which sum to 1. The result
// shares no capacity between parts.
func cutBy(rows []int, p []float64) [][]int {
	lists := make([][]int, len(p))
	var sum float64
	lo := 0
	for c := range p {
		sum += p[c]
		hi := len(rows)
		if c < len(p)-1 {
			hi = min(len(rows), int(math.Round(sum*float64(len(rows)))))
		}
		lists[c] = rows[lo:hi:hi]
		lo = hi
	}
	return lists
}

// fillEmpty moves one row of the largest list to every empty one. There are at
// least as many rows as lists.
func fillEmpty(lists [][]int) {
	for c := range lists {
		if len(lists[c]) > 0 {
			continue
		}
		big := 0
		for i := range lists {
			if len(lists[i]) > len(lists[big]) {
				big = i
			}
		}
		last := len(lists[big]) - 1
		lists[c] = []int{lists[big][last]}
		lists[big] = lists[big][:last]
	}
}
