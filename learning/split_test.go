package learning

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// numbered has row i = (i, −i), so that rows can be recognised after shuffling.
func numbered(n int) *Dataset {
	d := &Dataset{Features: 2}
	for i := range n {
		d.X = append(d.X, float64(i), -float64(i))
		d.Labels = append(d.Labels, i%2)
	}
	return d
}

// ids lists which rows of numbered are in the given sets and checks that rows
// and labels stayed together.
func ids(t interface{ Fatalf(string, ...any) }, sets ...*Dataset) []int {
	var all []int
	for _, s := range sets {
		for i := range s.Len() {
			r := s.Row(i)
			id := int(r[0])
			if r[1] != -r[0] || s.Labels[i] != id%2 {
				t.Fatalf("row %v came with label %d", r, s.Labels[i])
			}
			all = append(all, id)
		}
	}
	return all
}

func TestSplitCoversOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(4, 200).Draw(t, "n")
		f := rapid.Float64Range(0.2, 0.8).Draw(t, "fraction")
		train, test, err := numbered(n).Split(f, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		if want := int(math.Round(f * float64(n))); test.Len() != want {
			t.Fatalf("test set has %d rows, want %d", test.Len(), want)
		}
		got := ids(t, train, test)
		slices.Sort(got)
		if !slices.Equal(got, ids(t, numbered(n))) {
			t.Fatalf("rows lost or repeated: %v", got)
		}
	})
}

func TestPartitionDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clients := rapid.IntRange(1, 12).Draw(t, "clients")
		rows := rapid.IntRange(1, 12).Draw(t, "rows")
		spare := rapid.IntRange(0, 5).Draw(t, "spare")
		parts, err := numbered(clients*rows+spare).
			PartitionIID(clients, rows, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			if p.Len() != rows {
				t.Fatalf("a party has %d rows, want %d", p.Len(), rows)
			}
		}
		got := ids(t, parts...)
		slices.Sort(got)
		if len(parts) != clients || len(slices.Compact(got)) != clients*rows {
			t.Fatalf("%d parties hold %d distinct rows", len(parts), len(slices.Compact(got)))
		}
	})
}

func TestSeedsDecide(t *testing.T) {
	d := numbered(100)
	order := func(seed uint64) []int {
		train, _, err := d.Split(0.25, seed)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := train.PartitionIID(5, 10, seed)
		if err != nil {
			t.Fatal(err)
		}
		return ids(t, parts...)
	}
	if !slices.Equal(order(1), order(1)) {
		t.Error("the same seed gave different parties")
	}
	if slices.Equal(order(1), order(2)) {
		t.Error("different seeds gave the same parties")
	}
}

func TestSplitRejects(t *testing.T) {
	d := numbered(10)
	for _, f := range []float64{0, 1, -0.5, 2, math.NaN(), math.Inf(1)} {
		if _, _, err := d.Split(f, 1); !errors.Is(err, ErrValue) {
			t.Errorf("fraction %v: %v", f, err)
		}
	}
	for _, f := range []float64{0.01, 0.99} {
		if _, _, err := d.Split(f, 1); !errors.Is(err, ErrTooFewRows) {
			t.Errorf("fraction %v of 10 rows: %v", f, err)
		}
	}
}

func TestPartitionRejects(t *testing.T) {
	d := numbered(10)
	for _, c := range [][2]int{{3, 4}, {11, 1}, {1, 11}, {math.MaxInt, 2}, {2, math.MaxInt}} {
		_, err := d.PartitionIID(c[0], c[1], 1)
		if !errors.Is(err, ErrTooFewRows) || !strings.Contains(err.Error(), "10 rows") {
			t.Errorf("%d × %d: %v", c[0], c[1], err)
		}
	}
	for _, c := range [][2]int{{0, 1}, {1, 0}, {-1, -1}} {
		if _, err := d.PartitionIID(c[0], c[1], 1); !errors.Is(err, ErrValue) {
			t.Errorf("%d × %d: %v", c[0], c[1], err)
		}
	}
}
