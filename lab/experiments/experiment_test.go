package experiments

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/learning"
)

// madeUp are rows in place of any data set: 16 × 16 pixels, of which 16 are around
// one point for each class, with writers; "adult" is the synthetic census.
func madeUp(set string) (train, test *learning.Dataset, err error) {
	if set == "adult" {
		train, _, err = learning.Census(400, 1)
		return train, nil, err
	}
	points := rand.New(rand.NewPCG(1, 1))
	var centre [10][16]float64
	for k := range centre {
		for j := range centre[k] {
			centre[k][j] = points.Float64()
		}
	}
	rows := func(n, firstWriter, writers int, seed uint64) *learning.Dataset {
		rng := rand.New(rand.NewPCG(seed, 2))
		d := &learning.Dataset{Features: 256}
		for i := range n {
			k := rng.IntN(10)
			for _, x := range centre[k] {
				d.Pixels = append(d.Pixels, byte(255*min(1, max(0, x+0.3*rng.NormFloat64()))))
			}
			d.Pixels = append(d.Pixels, make([]byte, 256-16)...)
			d.Labels = append(d.Labels, k)
			d.Writers = append(d.Writers, firstWriter+i%writers)
		}
		return d
	}
	return rows(1500, 0, 20, 3), rows(300, 100, 10, 4), nil
}

func tiny() Options { return Options{Seeds: 2, made: madeUp} }

// same holds for what was not measured too.
func same(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) }

func byName(t *testing.T, name string) Experiment {
	t.Helper()
	for _, e := range All() {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("no experiment %s", name)
	return Experiment{}
}

// The tiny form of every experiment is complete: each arm has its measures for each
// seed, figures have lines, progress gets to its end.
func TestTinyForms(t *testing.T) {
	arms := map[string]int{
		"convex": 12, "fashion": 12, "fashion-iid": 12, "writers": 6, "features": 12,
		"rates": 4, "ablations": 25, "clipping": 6, "clipping-many": 6, "privacy": 10,
		"noise": 2, "alignment": 7, "tickets": 18, "tickets-many": 13,
		"poisoning": 28, "poisoning-groups": 32, "rules": 30, "thresholds": 3, "alignment-iid": 6,
		"alignment-steps": 8, "features-loose": 6, "tickets-dirichlet": 10,
	}
	// The same code as others, of other sizes.
	variants := []string{"fashion-iid", "rules", "alignment-iid", "clipping-many",
		"tickets-many", "features-loose", "tickets-dirichlet"}
	for _, e := range All() {
		if slices.Contains(variants, e.Name) && !suite.Long() {
			continue
		}
		o := tiny()
		o.Seeds = suite.Size(1, 1, 2, 2)
		last, of := -1, 0
		o.Progress = func(done, all int) {
			if done < last || of != 0 && all != of {
				t.Errorf("%s: progress from %d of %d to %d of %d", e.Name, last, of, done, all)
			}
			last, of = done, all
		}
		x, err := e.Run(t.Context(), o)
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		if x.Name != e.Name || !x.Complete || last != of || of == 0 || len(x.Rows) != arms[e.Name] ||
			x.Title == "" || len(x.Settings) == 0 {
			t.Errorf("%s: %d rows, want %d, progress %d of %d", e.Name, len(x.Rows), arms[e.Name], last,
				of)
		}
		for _, r := range x.Rows {
			want := o.Seeds
			if e.Seeds == 0 || slices.Contains(r.Labels, "private") {
				want = 1
			}
			if mean, _, n := r.Mean(0); len(r.Labels) != len(x.Labels) || n != want || !(mean >= 0) {
				t.Errorf("%s: row %v of %d seeds", e.Name, r, n)
			}
			for _, v := range r.Values {
				if v != nil && len(v) != len(x.Measures) {
					t.Errorf("%s: row %v for %d measures", e.Name, r, len(x.Measures))
				}
			}
		}
		for _, f := range x.Figures {
			if len(f.Series) == 0 {
				t.Errorf("%s: figure %s is empty", e.Name, f.Name)
			}
			for _, s := range f.Series {
				for _, run := range s.Runs {
					if len(run) != len(s.X) {
						t.Errorf("%s, %s, %s: %d values for %d points", e.Name, f.Name, s.Name, len(run), len(s.X))
					}
				}
			}
		}
	}
}

// The same seeds give the same table, one at a time too, where there is no noise.
func TestDeterminedBySeed(t *testing.T) {
	e := byName(t, "convex")
	run := func(seeds int) *Table {
		o := tiny()
		o.Seeds = seeds
		x, err := e.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	a, b, one := run(2), run(2), run(1)
	for k := range a.Rows {
		for seed, v := range a.Rows[k].Values {
			if !slices.EqualFunc(v, b.Rows[k].Values[seed], same) {
				t.Errorf("%v, seed %d: %v and %v", a.Rows[k].Labels, seed+1, v, b.Rows[k].Values[seed])
			}
		}
		if !slices.EqualFunc(a.Rows[k].Values[0], one.Rows[k].Values[0], same) {
			t.Errorf("%v: seed 1 depends on how many there are", a.Rows[k].Labels)
		}
		if slices.EqualFunc(a.Rows[k].Values[0], a.Rows[k].Values[1], same) {
			t.Errorf("%v: seeds decide nothing", a.Rows[k].Labels)
		}
	}
}

// Private sums give the model of ring sums, and those that in the clear to rounding.
func TestPrivacyIsEqualToRounding(t *testing.T) {
	x, err := byName(t, "privacy").Run(t.Context(), tiny())
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"MNIST", "Adult"} {
		for _, sum := range []string{"ring", "private"} {
			if off, _, n := x.row(data, sum).Mean(3); n == 0 || !(off > 0 && off < 1e-4) {
				t.Errorf("%s, %s: off by %v", data, sum, off)
			}
		}
		if !slices.ContainsFunc(x.Notes,
			func(s string) bool {
				return strings.HasPrefix(s, data) &&
					strings.Contains(s, "bit for bit")
			}) {
			t.Errorf("%s: %q", data, x.Notes)
		}
	}
}

// A run that is ended early returns the seeds and arms that were done.
func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	o := tiny()
	o.Progress = func(done, of int) {
		if done >= of*2/3 { // rates are chosen, and the first arm of the second seed is done
			stop()
		}
	}
	x, err := byName(t, "convex").Run(ctx, o)
	if !errors.Is(err, context.Canceled) || x == nil || x.Complete || !x.Any() {
		t.Fatalf("%+v, %v", x, err)
	}
	if _, _, n := x.Rows[0].Mean(0); n != 2 {
		t.Errorf("the first arm has %d seeds", n)
	}
	if _, _, n := x.Rows[3].Mean(0); n != 1 {
		t.Errorf("the last arm has %d seeds", n)
	}
	stop()
	if x, err := byName(t, "noise").Run(ctx, tiny()); !errors.Is(err, context.Canceled) || x.Any() {
		t.Errorf("%+v, %v", x, err)
	}
}

func TestBadOptions(t *testing.T) {
	for _, seeds := range []int{-1, MaxSeeds + 1} {
		o := tiny()
		o.Seeds = seeds
		if x, err := byName(t, "writers").Run(t.Context(), o); x != nil || !errors.Is(err, ErrConfig) {
			t.Errorf("%d seeds: %v, %v", seeds, x, err)
		}
	}
	for _, e := range All() {
		if e.Seeds == 0 {
			continue
		}
		if x, err := e.Run(t.Context(), Options{Data: t.TempDir()}); x != nil || err == nil {
			t.Errorf("%s without data: %v, %v", e.Name, x, err)
		}
	}
}

// t quantiles: 12.706 for two values, 3.182 for four (tables).
func TestInterval(t *testing.T) {
	for _, c := range []struct {
		values          []float64
		mean, low, high float64
	}{
		{[]float64{0, 2}, 1, 1 - 12.7062, 1 + 12.7062},
		{[]float64{1, 2, 3, 4}, 2.5, 2.5 - 3.18245*math.Sqrt(5./12), 2.5 + 3.18245*math.Sqrt(5./12)},
	} {
		i := interval(c.values)
		if i.N != len(c.values) || math.Abs(i.Mean-c.mean) > 1e-12 || math.Abs(i.Low-c.low) > 1e-3 ||
			math.Abs(i.High-c.high) > 1e-3 {
			t.Errorf("%v: %+v", c.values, i)
		}
	}
	if i := interval([]float64{3}); i.N != 1 || i.Mean != 3 || !math.IsNaN(i.Low) {
		t.Errorf("one value: %+v", i)
	}
	if i := interval(nil); i.N != 0 || !math.IsNaN(i.Mean) {
		t.Errorf("no value: %+v", i)
	}
}

// A finding never says more than its interval.
func TestFindings(t *testing.T) {
	published := 0.015
	for _, c := range []struct {
		differences []float64
		expected    int
		published   *float64
		verdict     Verdict
		says        string
	}{
		{[]float64{0.014, 0.016, 0.015}, 1, &published, Seen, "x: +1.50 points, 95 % interval +1.25 to " +
			"+1.75 over 3 seeds; published +1.50. The published effect is seen."},
		{[]float64{0.004, 0.006, 0.005}, 1, &published, Seen, "seen, but its size is outside the interval."},
		{[]float64{0.004, 0.006, 0.005}, 1, nil, Seen, "effect is seen."},
		{[]float64{0.014, -0.016, 0.015}, 1, &published, Open, "contains 0 and the effect."},
		{[]float64{0.014, -0.016, 0.015}, 1, nil, Open, "contains 0."},
		{[]float64{0.001, -0.001, 0.0005}, 1, &published, Refuted, "its size is outside the interval."},
		{[]float64{-0.014, -0.016, -0.015}, 1, &published, Refuted, "its size is outside the interval."},
		{[]float64{-0.014, -0.016, -0.015}, 1, nil, Refuted, "the difference has the other sign."},
		{[]float64{-0.014, -0.016, -0.015}, -1, &published, Seen, "size is outside the interval."},
		{[]float64{0.014}, 1, &published, Open, "One seed says nothing about the published effect."},
		{nil, 1, &published, Open, "x: not run."},
		{[]float64{0.014, 0.016, 0.015}, 0, &published, None, "published +1.50."},
	} {
		f := Finding{Claim: "x", Percent: true, Measured: interval(c.differences), Expected: c.expected,
			Published: c.published}
		if f.Verdict() != c.verdict || !strings.HasSuffix(f.String(), c.says) {
			t.Errorf("%v: %s, %q", c.differences, f.Verdict(), f.String())
		}
	}
}

// On a few real digits the arms of convex learn.
func TestRealData(t *testing.T) {
	dir := realdata.Dir(t, "mnist")
	o := Options{Seeds: 1,
		made: func(string) (train, test *learning.Dataset, err error) { return learning.ReadMNIST(dir) }}
	x, err := byName(t, "convex").Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range x.Rows {
		if a, _, _ := r.Mean(0); a < 0.15 {
			t.Errorf("%v: accuracy %v", r.Labels, a)
		}
	}
}

// memory is a store that counts.
type memory struct {
	kept        map[string][]byte
	loads, hits int
}

func (m *memory) Load(key string) ([]byte, bool) {
	text, ok := m.kept[key]
	m.loads++
	if ok {
		m.hits++
	}
	return text, ok
}

func (m *memory) Save(key string, outcome []byte) error {
	m.kept[key] = outcome
	return nil
}

// A run that was ended early goes on where it was, and gives the table of one that was
// not, figures included.
func TestStore(t *testing.T) {
	e := byName(t, "convex")
	whole, err := e.Run(t.Context(), tiny())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	o := tiny()
	m := &memory{kept: map[string][]byte{}}
	o.Store = m
	o.Progress = func(done, of int) {
		if done >= of/2 {
			stop()
		}
	}
	if _, err := e.Run(ctx, o); !errors.Is(err, context.Canceled) || len(m.kept) == 0 {
		t.Fatalf("%d kept, %v", len(m.kept), err)
	}
	before := len(m.kept)
	o.Progress = nil
	again, err := e.Run(t.Context(), o)
	if err != nil || m.hits != before || len(m.kept) <= before {
		t.Fatalf("%d of %d kept outcomes were used: %v", m.hits, before, err)
	}
	for k := range whole.Rows {
		for seed, v := range whole.Rows[k].Values {
			for i, x := range v {
				if !same(x, again.Rows[k].Values[seed][i]) {
					t.Errorf("%v, seed %d: %v and %v", whole.Rows[k].Labels, seed+1, v, again.Rows[k].Values[seed])
				}
			}
		}
	}
	for f := range whole.Figures {
		for k, s := range whole.Figures[f].Series {
			if !slices.EqualFunc(s.Runs, again.Figures[f].Series[k].Runs, slices.Equal) {
				t.Errorf("figure %s, %s: another line", whole.Figures[f].Name, s.Name)
			}
		}
	}
	// Other settings are other outcomes.
	longer := o
	m.hits = 0
	longer.Seeds = 1
	if _, err := byName(t, "alignment").Run(t.Context(), longer); err != nil || m.hits != 0 {
		t.Errorf("%d outcomes of another experiment were used: %v", m.hits, err)
	}
}

// The list says whose table each is.
func TestPapers(t *testing.T) {
	for _, e := range All() {
		if (e.Paper == "") != (e.Table == "") {
			t.Errorf("%s: paper %q, table %q", e.Name, e.Paper, e.Table)
		}
	}
}
