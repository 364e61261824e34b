package graph

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestHararyShapes(t *testing.T) {
	neighbours := func(n, k, i int) []int {
		g, err := Harary(span(n), k)
		if err != nil {
			t.Fatal(err)
		}
		return g.Neighbours(i)
	}
	for _, c := range []struct {
		n, k, i int
		want    []int
	}{
		{2, 1, 0, []int{1}},
		{3, 2, 1, []int{0, 2}},
		{7, 2, 0, []int{1, 6}},
		{7, 4, 0, []int{1, 2, 5, 6}},
		{8, 3, 1, []int{0, 2, 5}},
		{8, 5, 7, []int{0, 1, 3, 5, 6}},
		{4, 3, 2, []int{0, 1, 3}},
	} {
		if got := neighbours(c.n, c.k, c.i); !slices.Equal(got, c.want) {
			t.Errorf("n = %d, k = %d: neighbours of %d are %v, want %v", c.n, c.k, c.i, got, c.want)
		}
	}
	// On a shuffled ring the positions count, not the labels: 3-0-4-1-2-3.
	g, err := Harary([]int{3, 0, 4, 1, 2}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Neighbours(3); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("neighbours of 3: %v", got)
	}
}

func TestGraphProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 60).Draw(t, "n")
		k := rapid.IntRange(1, n-1).Draw(t, "k")
		if k == 1 && n > 2 {
			k = 2
		}
		if n%2 == 1 && k%2 == 1 {
			k++ // n is odd, so k was at most n−2
		}
		members := rapid.SliceOfNDistinct(rapid.IntRange(0, 1000), n, n, rapid.ID).Draw(t, "members")
		seed := testSeed(4, rapid.IntRange(0, 1000).Draw(t, "seed"))
		before := slices.Clone(members)
		g, err := NewGraph(members, k, seed)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(before, members) {
			t.Fatal("NewGraph changed its argument")
		}
		if g.Degree() != k || g.Size() != n {
			t.Fatalf("degree %d, size %d", g.Degree(), g.Size())
		}
		all := g.Members()
		if !slices.IsSorted(all) {
			t.Fatal("members are not sorted")
		}
		reached := map[int]bool{all[0]: true}
		queue := []int{all[0]}
		for _, i := range all {
			near := g.Neighbours(i)
			if len(near) != k || !slices.IsSorted(near) || len(slices.Compact(slices.Clone(near))) != k {
				t.Fatalf("neighbours of %d: %v", i, near)
			}
			for _, j := range all {
				_, isNear := slices.BinarySearch(near, j)
				if g.Adjacent(i, j) != isNear || g.Adjacent(j, i) != isNear {
					t.Fatalf("%d and %d: Adjacent disagrees with Neighbours", i, j)
				}
			}
			if g.Adjacent(i, i) || !g.Contains(i) {
				t.Fatalf("%d", i)
			}
		}
		for len(queue) > 0 {
			for _, j := range g.Neighbours(queue[0]) {
				if !reached[j] {
					reached[j] = true
					queue = append(queue, j)
				}
			}
			queue = queue[1:]
		}
		if len(reached) != n {
			t.Fatalf("reached %d of %d", len(reached), n)
		}
		// Any order of the same members is the same graph.
		rand.New(rand.NewPCG(1, 1)).Shuffle(n,
			func(i, j int) { members[i], members[j] = members[j], members[i] })
		again, err := NewGraph(members, k, seed)
		if err != nil {
			t.Fatal(err)
		}
		// Names are carried along and decide nothing: ranks give the same graph.
		ranks, err := NewGraph(span(n), k, seed)
		if err != nil {
			t.Fatal(err)
		}
		for r, i := range all {
			near := g.Neighbours(i)
			if !slices.Equal(near, again.Neighbours(i)) {
				t.Fatal("the order of the members matters")
			}
			for _, q := range ranks.Neighbours(r) {
				if !slices.Contains(near, all[q]) {
					t.Fatal("the names of the members matter")
				}
			}
		}
	})
}

// TestConnectivityIsExactlyK removes every set of parties: no k−1 cut the graph, and
// some k do, unless it is complete.
func TestConnectivityIsExactlyK(t *testing.T) {
	for n := 3; n <= 11; n++ {
		for k := 2; k < n; k++ {
			if n%2 == 1 && k%2 == 1 {
				continue
			}
			perm, err := Permutation(n, testSeed(5, n))
			if err != nil {
				t.Fatal(err)
			}
			g, err := Harary(perm, k)
			if err != nil {
				t.Fatal(err)
			}
			cutByK := false
			for removed := uint(0); removed < 1<<n; removed++ {
				switch size := bits.OnesCount(removed); {
				case size < k && !connectedWithout(g, removed):
					t.Fatalf("n = %d, k = %d: cut by %b", n, k, removed)
				case size == k && !connectedWithout(g, removed):
					cutByK = true
				}
			}
			if cutByK != (k < n-1) {
				t.Errorf("n = %d, k = %d: cut by k parties: %v", n, k, cutByK)
			}
		}
	}
}

// TestEdgesUniform counts every pair over many seeds. The counts are correlated (each
// party always has k edges), so a plain chi-square has the wrong scale. The covariance
// is unchanged by relabelling, hence a multiple of the identity on each of the three
// irreducible parts of the space of pairs; it is 0 on two of them (the total, and the
// degrees) and spreads the whole variance over the third, of dimension n(n−3)/2. So
// the sum of squares over its common value is a chi-square with n(n−3)/2 degrees of
// freedom, in the limit of many seeds.
func TestEdgesUniform(t *testing.T) {
	for _, c := range []struct{ n, k int }{{12, 4}, {12, 2}, {10, 5}, {15, 6}} {
		const seeds = 20_000
		counts := make([]float64, c.n*c.n)
		for s := range seeds {
			g, err := NewGraph(span(c.n), c.k, testSeed(6, s))
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.n {
				for _, j := range g.Neighbours(i) {
					counts[i*c.n+j]++
				}
			}
		}
		freedom := c.n * (c.n - 3) / 2
		pairs := float64(c.n*(c.n-1)) / 2
		p := float64(c.k) / float64(c.n-1)
		variance := seeds * p * (1 - p) * pairs / float64(freedom)
		chi := 0.0
		for i := range c.n {
			for j := range i {
				d := counts[i*c.n+j] - seeds*p
				chi += d * d / variance
			}
		}
		if limit := chiSquareLimit(freedom); chi > limit {
			t.Errorf("n = %d, k = %d: chi-square %.1f, limit %.1f", c.n, c.k, chi, limit)
		}
	}
}

// TestCorruptNeighboursFollowTheLaw checks the law behind Parameters: over all parties
// in the middle, the marked neighbours are Hyp(n, A, k) and not Hyp(n−1, A, k). The
// parties of one graph are not independent, so one party per seed is counted, each
// party equally often; that spreads the counts a little less than chi-square allows.
func TestCorruptNeighboursFollowTheLaw(t *testing.T) {
	const n, k, marked, seeds = 20, 6, 7, 30_000
	var counts [k + 1]float64
	for s := range seeds {
		g, err := NewGraph(span(n), k, testSeed(7, s))
		if err != nil {
			t.Fatal(err)
		}
		c := 0
		for _, j := range g.Neighbours(s % n) {
			if j < marked {
				c++
			}
		}
		counts[c]++
	}
	chiSquare := func(population int) float64 {
		chi := 0.0
		for x, got := range counts {
			want, _ := refPMF(population, marked, k, x).Float64()
			want *= seeds
			chi += (got - want) * (got - want) / want
		}
		return chi
	}
	limit := chiSquareLimit(k)
	if chi := chiSquare(n); chi > limit {
		t.Errorf("chi-square %.1f, limit %.1f", chi, limit)
	}
	if chi := chiSquare(n - 1); chi < 2*limit {
		t.Errorf("the test cannot tell n from n-1: chi-square %.1f, limit %.1f", chi, limit)
	}
}

func TestGraphErrors(t *testing.T) {
	for _, c := range []struct {
		members []int
		k       int
		want    error
	}{
		{nil, 0, ErrParties},
		{[]int{3}, 1, ErrParties},
		{[]int{0, 1}, 0, ErrDegree},
		{[]int{0, 1}, 2, ErrDegree},
		{[]int{0, 1, 2, 3}, -2, ErrDegree},
		{[]int{0, 1, 2, 3}, 1, ErrDegree}, // two separate pairs
		{[]int{0, 1, 2, 3}, 4, ErrDegree},
		{[]int{0, 1, 2, 3, 4}, 3, ErrParity},
		{[]int{0, 1, 1}, 2, ErrMembers},
		{[]int{0, -1, 1}, 2, ErrMembers},
	} {
		if g, err := NewGraph(c.members, c.k, Seed{}); g != nil || !errors.Is(err, c.want) {
			t.Errorf("%+v: got %v, %v", c, g, err)
		}
	}
	for _, perm := range [][]int{{0, 1, 1}, {0, 1, 3}, {-1, 0, 1}} {
		if g, err := Harary(perm, 2); g != nil || !errors.Is(err, ErrPermutation) {
			t.Errorf("%v: got %v, %v", perm, g, err)
		}
	}
}

func TestStrangers(t *testing.T) {
	g, err := NewGraph([]int{4, 8, 15, 16}, 2, Seed{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{-1, 0, 5, 99} {
		if g.Neighbours(i) != nil || g.Adjacent(i, 4) || g.Adjacent(4, i) || g.Contains(i) {
			t.Errorf("%d is not a member", i)
		}
	}
	var zero Graph
	if zero.Neighbours(0) != nil || zero.Adjacent(0, 1) || zero.Size() != 0 || zero.Degree() != 0 {
		t.Error("the zero value has members")
	}
	// Slices that are handed out are the caller's own.
	g.Members()[0], g.Neighbours(4)[0] = 99, 99
	if !g.Contains(4) || g.Contains(99) {
		t.Error("the graph changed through a slice that it handed out")
	}
}

func BenchmarkNewGraph(b *testing.B) {
	members := span(10_000)
	for b.Loop() {
		if _, err := NewGraph(members, 422, Seed{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNeighbours(b *testing.B) {
	g, err := NewGraph(span(10_000), 422, Seed{})
	if err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		g.Neighbours(i)
		i = (i + 1) % 10_000
	}
}
