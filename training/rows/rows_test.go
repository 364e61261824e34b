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

// The last of the rows to train on judge, and train nothing, up to 10,000 of them. What judges is
// said as it is.
func TestHoldOut(t *testing.T) {
	for n, held := range map[int]int{30: 5, 31: 5, 66_000: 10_000} {
		all := &learning.Dataset{Features: 1}
		for i := range n {
			all.X, all.Labels = append(all.X, float64(i)), append(all.Labels, i%2)
		}
		train, judging, err := holdOut(all)
		if err != nil || train.Len() != n-held || judging.Len() != held {
			t.Fatalf("of %d rows %d judge: %v", n, judging.Len(), err)
		}
		if train.X[n-held-1] != float64(n-held-1) || judging.X[0] != float64(n-held) {
			t.Errorf("of %d rows, row %v is the first that judges", n, judging.X[0])
		}
	}
	for _, c := range []struct {
		w    World
		want string
	}{
		{World{Set: MNIST}, "hold-out"},
		{World{Set: MNIST, Final: true}, "test"},
		{World{Set: Synthetic}, "test"},
		{World{Set: Adult}, "test"},
	} {
		if got := c.w.Judged(); got != c.want {
			t.Errorf("%+v is judged on %s rows", c.w, got)
		}
	}
}
