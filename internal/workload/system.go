package workload

import "math"

// system solves X z = w, where X is AᵀA of a strategy A: weighted counts of a binary tree over
// cells, and of other sets of cells. Node 1 of the tree is the root, node k has the children 2k and
// 2k+1, and cell j is leaf size + j. All leaves that are cells have weight.
type system struct {
	cells, size int
	node        []float64 // weights
	sets        [][]int32
	weight      []float64 // of sets

	inner []float64   // of a node the sum of the inverse of what is at it and below
	part  []float64   // room
	shift []float64   // room
	bent  [][]float64 // of sets: the tree's inverse of the set, times √weight
	lower [][]float64 // Cholesky factor of what they add
}

// newSystem returns one without weights.
func newSystem(cells int, sets [][]int32) *system {
	y := &system{cells: cells, size: 1, sets: sets, weight: make([]float64, len(sets))}
	for y.size < cells {
		y.size *= 2
	}
	y.node, y.inner = make([]float64, 2*y.size), make([]float64, 2*y.size)
	y.part, y.shift = make([]float64, 2*y.size), make([]float64, 2*y.size)
	for range sets {
		y.bent, y.lower = append(y.bent, make([]float64, cells)), append(y.lower,
			make([]float64, len(sets)))
	}
	return y
}

// prepare has the weights as they are now.
func (y *system) prepare() {
	for j := range y.cells {
		y.inner[y.size+j] = 1 / y.node[y.size+j]
	}
	for k := y.size - 1; k > 0; k-- {
		below := y.inner[2*k] + y.inner[2*k+1]
		y.inner[k] = below / (1 + float64(y.node[k]*below))
	}
	w := make([]float64, y.cells)
	for s, set := range y.sets {
		clear(w)
		for _, j := range set {
			w[j] = math.Sqrt(y.weight[s])
		}
		y.tree(w, y.bent[s])
	}
	for a := range y.sets {
		root := math.Sqrt(y.weight[a])
		for b := range a + 1 {
			x := 0.0
			for _, j := range y.sets[a] {
				x += y.bent[b][j]
			}
			x = float64(x * root)
			if a == b {
				x++
			}
			for i := range b {
				x -= float64(y.lower[a][i] * y.lower[b][i])
			}
			if a == b {
				y.lower[a][a] = math.Sqrt(x)
			} else {
				y.lower[a][b] = x / y.lower[b][b]
			}
		}
	}
}

// tree solves for the tree alone. What is at a node and below is the blocks of its children and the
// node's weight in all places, so that its solution is theirs for less of w.
func (y *system) tree(w, z []float64) {
	for j, x := range w {
		y.part[y.size+j] = float64(x * y.inner[y.size+j])
	}
	for k := y.size - 1; k > 0; k-- {
		below := y.inner[2*k] + y.inner[2*k+1]
		y.part[k] = (y.part[2*k] + y.part[2*k+1]) / (1 + float64(y.node[k]*below))
	}
	y.shift[1] = 0
	for k := 1; k < y.size; k++ {
		t := y.shift[k]
		t += float64(y.node[k] * (y.part[k] - float64(t*y.inner[k])))
		y.shift[2*k], y.shift[2*k+1] = t, t
	}
	for j := range w {
		z[j] = float64((w[j] - y.shift[y.size+j]) * y.inner[y.size+j])
	}
}

// solve solves X z = w, by what sets add to the tree (Woodbury 1950).
func (y *system) solve(w, z []float64) {
	y.tree(w, z)
	c := make([]float64, len(y.sets))
	for a, set := range y.sets {
		x := 0.0
		for _, j := range set {
			x += z[j]
		}
		x = float64(x * math.Sqrt(y.weight[a]))
		for i := range a {
			x -= float64(y.lower[a][i] * c[i])
		}
		c[a] = x / y.lower[a][a]
	}
	for a := len(c) - 1; a >= 0; a-- {
		x := c[a]
		for i := a + 1; i < len(c); i++ {
			x -= float64(y.lower[i][a] * c[i])
		}
		c[a] = x / y.lower[a][a]
		for j, b := range y.bent[a] {
			z[j] -= float64(c[a] * b)
		}
	}
}

// sums puts the sums of z over the nodes of the tree in the room for them.
func (y *system) sums(z []float64) []float64 {
	for j := range y.size {
		y.part[y.size+j] = 0
		if j < y.cells {
			y.part[y.size+j] = z[j]
		}
	}
	for k := y.size - 1; k > 0; k-- {
		y.part[k] = y.part[2*k] + y.part[2*k+1]
	}
	return y.part
}

// fit has each row add a norm of 1 at most, by changing weights as little as it takes, and gives
// what is left of that to its cell.
func (y *system) fit() {
	load := y.loads()
	most := y.most(load)
	for k := 1; k < y.size; k++ {
		if y.node[k] > 0 {
			y.node[k] = float64(y.node[k]*(1-least)) / most[k]
		}
	}
	for s, set := range y.sets {
		top := 0.0
		for _, j := range set {
			top = max(top, load[j])
		}
		y.weight[s] = float64(y.weight[s]*(1-least)) / top
	}
	for j := range y.cells {
		y.node[y.size+j] = 0
	}
	for j, x := range y.loads() {
		y.node[y.size+j] = max(least, 1-x)
	}
}

// least is the least weight of a cell, and cells keep it for each row.
const least = 1e-4

// loads returns the squared norm that a row of each cell adds.
func (y *system) loads() []float64 {
	load := make([]float64, y.cells)
	for j := range load {
		for k := y.size + j; k > 0; k /= 2 {
			load[j] += y.node[k]
		}
	}
	for s, set := range y.sets {
		for _, j := range set {
			load[j] += y.weight[s]
		}
	}
	return load
}

// most returns the largest load below each node.
func (y *system) most(load []float64) []float64 {
	most := make([]float64, 2*y.size)
	copy(most[y.size:], load)
	for k := y.size - 1; k > 0; k-- {
		most[k] = max(most[2*k], most[2*k+1])
	}
	return most
}
