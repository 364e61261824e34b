package query

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// exactly is without noise.
var exactly = strings.Replace(jointly, `privacy = { noise = "discrete-gaussian", epsilon = 1.0 }
`, "", 1)

// TestAbsentJoint: without noise the interval of a covariance, a correlation and a curve holds the
// truth of all parties, whatever the rows are that a missing one has: of each kind that pulls one
// way, and at random.
func TestAbsentJoint(t *testing.T) {
	p := planOf(t, exactly, "parties.rows=40", "parties.drop_out=0.25", "parties.count=4")
	random := rand.New(rand.NewPCG(5, 5))
	pick := func(x ...float64) func() float64 {
		return func() float64 { return x[random.IntN(len(x))] }
	}
	among := map[string][4]func() float64{
		"one corner":    {pick(30), pick(6), pick(1), pick(1)},
		"another":       {pick(-10), pick(6), pick(24), pick(0)},
		"both ends":     {pick(-10, 30), pick(0, 6), pick(1, 24), pick(0, 1)},
		"in the middle": {pick(10), pick(3), pick(12), pick(1)},
		"anywhere": {func() float64 { return 40*random.Float64() - 10 },
			func() float64 { return 6 * random.Float64() },
			func() float64 { return 1 + math.Floor(24*random.Float64()) }, pick(0, 1)},
	}
	for name, draw := range among {
		for range 20 {
			rows, dealt := jointRows(3, 10+random.IntN(31))
			missing := random.IntN(41)
			for range missing {
				rows = append(rows, []float64{draw[0](), draw[1](), draw[2](), draw[3]()})
			}
			mean := make([]float64, p.Length())
			for _, own := range dealt {
				for i, x := range mustVector(p, own) {
					mean[i] += x / 3
				}
			}
			answers, err := p.Answers(mean, 3)
			if err != nil {
				t.Fatal(err)
			}
			truth := jointTruths(rows)
			for _, a := range answers {
				for i, c := range a.Cells {
					if want := truth[a.Name][i]; a.Kind != "linear" && !math.IsNaN(want) &&
						!(c.Low <= want+1e-9 && want-1e-9 <= c.High) {
						t.Errorf("%s, %d rows are missing: %s is %v, and %+v", name, missing, a.Name, want, c)
					}
				}
			}
		}
	}
}

// TestLinearNothing: predictors that depend on each other have no model, and the answer says so, in
// numbers that travel.
func TestLinearNothing(t *testing.T) {
	p := planOf(t, exactly)
	answers, err := p.Answers(make([]float64, p.Length()), 30)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		text, err := a.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var again Answer
		if err := again.UnmarshalJSON(text); err != nil || len(again.Cells) != len(a.Cells) {
			t.Errorf("%s: %v", text, err)
		}
		if c := a.Cells[0]; a.Kind != "survival" && c.Unknown == "" || len(again.Cells) > 0 &&
			again.Cells[0].Unknown != c.Unknown || a.Errors != nil && !math.IsNaN(a.Errors[0]) {
			t.Errorf("%+v", a)
		}
	}
}
