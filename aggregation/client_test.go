package aggregation

import (
	"errors"
	"math"
	"slices"
	"testing"
)

func TestProximal(t *testing.T) {
	start := []float64{1, 2}
	adjust, err := Proximal(0.5, start)
	if err != nil {
		t.Fatal(err)
	}
	start[0] = 99 // it was copied
	g := []float64{10, 20}
	adjust(g, []float64{3, -2})
	if !slices.Equal(g, []float64{11, 18}) {
		t.Error(g)
	}

	// μ = 0 is federated averaging bit for bit, negative zeros included.
	adjust, err = Proximal(0, []float64{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	g = []float64{math.Copysign(0, -1), 0.1}
	adjust(g, []float64{3, -2})
	if !sameBits(g, []float64{math.Copysign(0, -1), 0.1}) {
		t.Error(g)
	}

	for _, c := range []struct {
		mu    float64
		start []float64
		want  error
	}{
		{-1, []float64{1}, ErrConfig},
		{math.NaN(), []float64{1}, ErrConfig},
		{math.Inf(1), []float64{1}, ErrConfig},
		{1, nil, ErrLength},
		{1, []float64{math.NaN()}, ErrNotFinite},
	} {
		if f, err := Proximal(c.mu, c.start); !errors.Is(err, c.want) || f != nil {
			t.Errorf("Proximal(%v, %v): %v, want %v", c.mu, c.start, err, c.want)
		}
	}
}

// Two clients with f_i = h_i/2·(w − a_i)²: SCAFFOLD goes to the minimum of the
// mean, with either option, where federated averaging with the same steps stops
// elsewhere.
func TestScaffoldConverges(t *testing.T) {
	h, a := []float64{1, 4}, []float64{-1, 2}
	const steps, rate = 5, 0.1
	optimum := (h[0]*a[0] + h[1]*a[1]) / (h[0] + h[1])
	weight := func(i int) float64 { return 1 - math.Pow(1-rate*h[i], steps) }
	drifted := (weight(0)*a[0] + weight(1)*a[1]) / (weight(0) + weight(1))
	for option, want := range []float64{drifted, optimum, optimum} {
		server := Optimizer{}
		w, c := []float64{0}, []float64{0}
		own := [][]float64{{0}, {0}}
		for range 400 {
			update, change := []float64{0}, []float64{0}
			for i := range h {
				rule := Scaffold{Server: c, Own: own[i]}
				adjust, err := rule.Adjust()
				if err != nil {
					t.Fatal(err)
				}
				y := slices.Clone(w)
				for range steps {
					g := []float64{h[i] * (y[0] - a[i])}
					adjust(g, y)
					y[0] -= rate * g[0]
				}
				update[0] += (y[0] - w[0]) / 2
				next, d := own[i], []float64{0}
				switch option {
				case 1:
					next, d, err = rule.FromGradient([]float64{h[i] * (w[0] - a[i])})
				case 2:
					next, d, err = rule.FromSteps(w, y, steps, rate)
				}
				if err != nil {
					t.Fatal(err)
				}
				own[i] = next
				change[0] += d[0] / 2
			}
			var err error
			if w, err = server.Apply(w, update, nil); err != nil {
				t.Fatal(err)
			}
			if c, err = AdvanceVariate(c, change, 2, 2); err != nil {
				t.Fatal(err)
			}
			if mean := (own[0][0] + own[1][0]) / 2; math.Abs(c[0]-mean) > 1e-12 {
				t.Fatalf("option %d: c is %v, the mean of all c_i %v", option, c[0], mean)
			}
		}
		if math.Abs(w[0]-want) > 1e-9 {
			t.Errorf("option %d: %v, want %v", option, w[0], want)
		}
	}
	if math.Abs(drifted-optimum) < 0.1 {
		t.Error("the two points are too close to tell")
	}
}

func TestScaffoldByHand(t *testing.T) {
	s := Scaffold{Server: []float64{1, 2}, Own: []float64{4, 8}}
	own, change, err := s.FromSteps([]float64{1, 1}, []float64{0, 3}, 4, 0.25)
	if err != nil || !slices.Equal(own, []float64{4, 4}) || !slices.Equal(change, []float64{0, -4}) {
		t.Error(own, change, err) // 4 − 1 + 1/1, 8 − 2 − 2/1
	}
	own, change, err = s.FromGradient([]float64{5, 5})
	if err != nil || !slices.Equal(own, []float64{5, 5}) || !slices.Equal(change, []float64{1, -3}) {
		t.Error(own, change, err)
	}
	c, err := AdvanceVariate([]float64{1, 2}, []float64{4, -8}, 3, 12)
	if err != nil || !slices.Equal(c, []float64{2, 0}) {
		t.Error(c, err)
	}

	one, nan, huge := []float64{1}, []float64{math.NaN()}, []float64{math.MaxFloat64}
	minus := []float64{-math.MaxFloat64}
	for name, c := range map[string]struct {
		call func() ([]float64, error)
		want error
	}{
		"adjust, lengths": {func() ([]float64, error) {
			_, err := s.withOwn(one).Adjust()
			return nil, err
		}, ErrLength},
		"adjust, empty": {func() ([]float64, error) { _, err := Scaffold{}.Adjust(); return nil, err }, ErrLength},
		"adjust, overflow": {func() ([]float64, error) {
			_, err := Scaffold{Server: huge, Own: minus}.Adjust()
			return nil, err
		}, ErrNotFinite},
		"gradient, lengths": {func() ([]float64, error) { x, _, err := s.FromGradient(one); return x, err }, ErrLength},
		"gradient, NaN": {func() ([]float64, error) {
			x, _, err := Scaffold{one, one}.FromGradient(nan)
			return x, err
		}, ErrNotFinite},
		"steps, none": {func() ([]float64, error) {
			x, _, err := Scaffold{one, one}.FromSteps(one, one, 0, 1)
			return x, err
		}, ErrConfig},
		"steps, rate": {func() ([]float64, error) {
			x, _, err := Scaffold{one, one}.FromSteps(one, one, 1, 0)
			return x, err
		}, ErrConfig},
		"steps, overflow": {func() ([]float64, error) {
			x, _, err := Scaffold{one, one}.FromSteps(huge, minus, 1, 1)
			return x, err
		}, ErrNotFinite},
		"steps, lengths": {func() ([]float64, error) {
			x, _, err := s.FromSteps(one, one, 1, 1)
			return x, err
		}, ErrLength},
		"advance, none":     {func() ([]float64, error) { return AdvanceVariate(one, one, 0, 1) }, ErrConfig},
		"advance, too many": {func() ([]float64, error) { return AdvanceVariate(one, one, 2, 1) }, ErrConfig},
		"advance, lengths":  {func() ([]float64, error) { return AdvanceVariate(one, s.Own, 1, 1) }, ErrLength},
		"advance, overflow": {func() ([]float64, error) { return AdvanceVariate(huge, huge, 1, 1) }, ErrNotFinite},
		"displace, beta":    {func() ([]float64, error) { return Displace(one, one, one, -1) }, ErrConfig},
		"displace, NaN":     {func() ([]float64, error) { return Displace(one, nan, one, 1) }, ErrNotFinite},
		"displace, lengths": {func() ([]float64, error) { return Displace(one, one, s.Own, 1) }, ErrLength},
		"displace, far":     {func() ([]float64, error) { return Displace(one, huge, minus, 1) }, ErrNotFinite},
	} {
		if x, err := c.call(); !errors.Is(err, c.want) || x != nil {
			t.Errorf("%s: %v, %v; want %v", name, x, err, c.want)
		}
	}
}

func (s Scaffold) withOwn(own []float64) Scaffold { s.Own = own; return s }

func TestDisplace(t *testing.T) {
	start, mean, own := []float64{1, math.Copysign(0, -1)}, []float64{2, 2}, []float64{4, -1}
	got, err := Displace(start, mean, own, 0.5)
	if err != nil || !slices.Equal(got, []float64{2, -1.5}) {
		t.Error(got, err)
	}
	// β = 0 starts where federated averaging does, bit for bit.
	got, err = Displace(start, mean, own, 0)
	if err != nil || !sameBits(got, start) {
		t.Error(got, err)
	}
	got[0] = 7
	if start[0] != 1 {
		t.Error("not a copy")
	}
}

func TestCosine(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{1, 0}, []float64{2, 0}, 1},
		{[]float64{1, 0}, []float64{0, -3}, 0},
		{[]float64{1, 1}, []float64{-4, -4}, -1},
		{[]float64{1, 0}, []float64{3, 4}, 0.6},
		{[]float64{0, 0}, []float64{3, 4}, 0},
		{[]float64{3e300, 4e300}, []float64{1e-300, 0}, 0.6},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, []float64{5e-324, 0}, math.Sqrt2 / 2},
	} {
		for _, order := range [][2][]float64{{c.x, c.y}, {c.y, c.x}} {
			if got, err := Cosine(order[0], order[1]); err != nil || math.Abs(got-c.want) > 1e-12 {
				t.Errorf("Cosine(%v, %v) = %v, %v; want %v", order[0], order[1], got, err, c.want)
			}
		}
	}
	if _, err := Cosine([]float64{1}, []float64{1, 2}); !errors.Is(err, ErrLength) {
		t.Error(err)
	}
	if _, err := Cosine([]float64{1}, []float64{math.Inf(1)}); !errors.Is(err, ErrNotFinite) {
		t.Error(err)
	}
}

// SCAFFOLD with updates and control variates as two lanes of one masked sum is
// SCAFFOLD in the clear, up to the rounding of the lanes: 2^-41 per value and
// round.
func TestScaffoldUnderMasks(t *testing.T) {
	h, a := [][]float64{{1, 3}, {2, 1}, {4, 1}}, [][]float64{{-1, 2}, {1, 0}, {0, 5}}
	const steps, rate = 3, 0.1
	lane := Mean{Parties: 3, Dimension: 2, Range: 64, FractionBits: 40}
	lanes := Lanes{lane, lane}
	layout, err := lanes.Layout()
	if err != nil {
		t.Fatal(err)
	}
	run := func(masked bool) (w, c []float64) {
		server := Optimizer{}
		w, c = []float64{0, 0}, []float64{0, 0}
		own := [][]float64{{0, 0}, {0, 0}, {0, 0}}
		for range 20 {
			update, change := []float64{0, 0}, []float64{0, 0}
			var submissions [][][]uint64
			for i := range own {
				rule := Scaffold{Server: c, Own: own[i]}
				adjust, err := rule.Adjust()
				if err != nil {
					t.Fatal(err)
				}
				y := slices.Clone(w)
				for range steps {
					g := []float64{h[i][0] * (y[0] - a[i][0]), h[i][1] * (y[1] - a[i][1])}
					adjust(g, y)
					for j := range y {
						y[j] -= rate * g[j]
					}
				}
				next, d, err := rule.FromSteps(w, y, steps, rate)
				if err != nil {
					t.Fatal(err)
				}
				own[i] = next
				for j := range y {
					y[j] -= w[j]
					update[j] += y[j] / 3
					change[j] += d[j] / 3
				}
				first, err := lane.Encode(y)
				if err != nil {
					t.Fatal(err)
				}
				second, err := lane.Encode(d)
				if err != nil {
					t.Fatal(err)
				}
				both, err := lanes.Join(first, second)
				if err != nil {
					t.Fatal(err)
				}
				submissions = append(submissions, both)
			}
			if masked {
				parts, err := lanes.Split(maskedTotal(t, layout, submissions))
				if err != nil {
					t.Fatal(err)
				}
				if update, err = lane.Decode(parts[0], 3); err != nil {
					t.Fatal(err)
				}
				if change, err = lane.Decode(parts[1], 3); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if w, err = server.Apply(w, update, nil); err != nil {
				t.Fatal(err)
			}
			if c, err = AdvanceVariate(c, change, 3, 3); err != nil {
				t.Fatal(err)
			}
		}
		return w, c
	}
	w, c := run(false)
	v, b := run(true)
	for j := range w {
		if math.Abs(w[j]-v[j]) > 1e-10 || math.Abs(c[j]-b[j]) > 1e-10 {
			t.Errorf("under masks %v and %v, in the clear %v and %v", v, b, w, c)
		}
	}
	if norm(w) < 0.1 {
		t.Error("nothing was learned")
	}
}
