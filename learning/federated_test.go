package learning

import (
	"math"
	"testing"

	"github.com/hushsum/hushsum/internal/realdata"
)

// averaged runs federated averaging in the clear: 100 parties with 200 rows each
// from a 75 % training split, 20 rounds of 50 local steps, equal weights. It
// returns the outcome on the test split, the largest weight of any party and the
// largest change that one party made to a weight in one round.
func averaged(
	t testing.TB, d *Dataset, m Logistic, rate float64, seed uint64,
) (c Confusion, weight, change float64) {
	t.Helper()
	train, test, err := d.Split(0.25, seed)
	if err != nil {
		t.Fatal(err)
	}
	parties, err := train.PartitionIID(100, 200, seed)
	if err != nil {
		t.Fatal(err)
	}
	w := make([]float64, m.NumParams())
	local := make([]float64, len(w))
	sum := make([]float64, len(w))
	for range 20 {
		clear(sum)
		for _, p := range parties {
			copy(local, w)
			if err := m.Train(local, p, rate, 50); err != nil {
				t.Fatal(err)
			}
			for j, x := range local {
				sum[j] += x
				weight = max(weight, math.Abs(x))
				change = max(change, math.Abs(x-w[j]))
			}
		}
		for j := range w {
			w[j] = sum[j] / float64(len(parties))
		}
	}
	if c, err = m.Evaluate(w, test); err != nil {
		t.Fatal(err)
	}
	return c, weight, change
}

// One rate and one lambda serve both tables. Rows have a norm of at most √2, so
// descent is certain up to a rate of almost 4; 2 leaves room for label-skewed
// parties and keeps the weights small. The seeds are not those on which the two
// were chosen.
const (
	fedRate   = 2
	fedLambda = 1e-4
)

func checkFederated(t *testing.T, d *Dataset, seeds int) {
	t.Helper()
	for seed := range uint64(seeds) {
		m := Logistic{Features: d.Features, Lambda: fedLambda}
		c, weight, change := averaged(t, d, m, fedRate, 1000+seed)
		t.Logf("seed %d: accuracy %.4f, MCC %.4f, largest weight %.2f, largest change %.2f",
			1000+seed, c.Accuracy(), c.MCC(), weight, change)
		if c.MCC() < 0.45 || weight > 8 {
			t.Errorf("seed %d: MCC %.4f, want at least .45; largest weight %.2f, want at most 8", 1000+seed,
				c.MCC(), weight)
		}
	}
}

func TestFederatedAdult(t *testing.T) {
	d, err := ReadAdult(realdata.Dir(t, "adult"))
	if err != nil {
		t.Fatal(err)
	}
	checkFederated(t, d, 1)
}

func TestFederatedCensus(t *testing.T) {
	d, _ := mustCensus(t, 27000, 3)
	checkFederated(t, d, 1)
}
