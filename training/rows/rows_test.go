package rows

import (
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

func worldOf(t *testing.T, data string) World {
	t.Helper()
	j, err := job.Parse("x.toml", []byte("name = \"x\"\nrounds = 1\nparties.count = 4\n"+
		"model.name = \"logistic\"\n[world.data]\n"+data))
	if err != nil {
		t.Fatal(err)
	}
	return Of(j)
}

// Each party has the rows that the job says, and the rest of what it says is heeded.
func TestDeal(t *testing.T) {
	for data, want := range map[string]struct{ party, test int }{
		"":                        {200, 10_000},
		"split = \"shuffled\"":    {200, 10_000},
		"rows = 7":                {7, 10_000},
		"rows = 7\ntest = 0.5":    {7, 15_000},
		"rows = 9\nmost = 30_000": {9, 10_000},
	} {
		w := worldOf(t, data)
		train, test, err := w.Load()
		if err != nil {
			t.Fatal(err)
		}
		parties, test, err := w.Deal(train, test)
		if err != nil {
			t.Fatal(err)
		}
		if len(parties) != 4 || test.Len() != want.test {
			t.Errorf("%q: %d parties, %d rows to test", data, len(parties), test.Len())
		}
		for i, d := range parties {
			if d.Len() != want.party {
				t.Errorf("%q: party %d has %d rows, want %d", data, i, d.Len(), want.party)
			}
		}
	}
}

// More rows than can be made are refused before they are.
func TestTooMany(t *testing.T) {
	for _, rows := range []int{math.MaxInt / 8, 10_000_000} {
		w := World{Set: Synthetic, Parties: 1000, Rows: rows, Split: Shuffled}
		if _, _, err := w.Load(); !errors.Is(err, learning.ErrValue) {
			t.Errorf("%d: %v", rows, err)
		}
	}
}
