package model

import (
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/accounting"
)

func TestJudge(t *testing.T) {
	scores := []Scored{{3, true, 0}, {2, true, 0}, {2, false, 0}, {1, false, 0}}
	m, err := Judge(scores, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Of four pairs three are won and one is tied.
	if m.AUC != 3.5/4 || m.TPR != 0.5 || m.FPR != 0 || m.Members != 2 || m.Others != 2 {
		t.Errorf("%+v", m)
	}
	if m, _ := Judge(scores, 0.5); m.TPR != 1 || m.FPR != 0.5 {
		t.Errorf("%+v", m)
	}
	if _, err := Judge(scores[:2], 0); !errors.Is(err, ErrMembership) {
		t.Error(err)
	}
}

func TestPrivateAUC(t *testing.T) {
	for _, c := range []struct{ epsilon, delta, want float64 }{
		{0, 0, 0.5},
		{0, 1, 1},
		// Randomised response: (1, e^ε/(1+e^ε)) by two triangles, (1 + tpr − fpr)/2.
		{1, 0, (1 + math.Tanh(0.5)) / 2},
		{math.Inf(1), 0, 1},
		{0, 0.2, 1 - 0.8*0.8/2},
	} {
		if got := PrivateAUC(c.epsilon, c.delta); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("ε = %v, δ = %v: %v, want %v", c.epsilon, c.delta, got, c.want)
		}
	}
}

// A row in or out of a client is two steps from the client that submits zero: for
// Gaussian noise the exact curve at twice the sensitivity is below.
func TestRowBound(t *testing.T) {
	for _, sigma := range []float64{1, 4, 20} {
		step := func(sensitivity float64) *accounting.Composition {
			mechanism := accounting.Gaussian{NoiseMultiplier: sigma / sensitivity}
			c, err := accounting.Compose(accounting.Step{Mechanism: mechanism, Count: 1})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		one, err := step(1).Epsilon(1e-5)
		if err != nil {
			t.Fatal(err)
		}
		epsilon, delta := rowBound(one.Upper, 1e-5)
		two, err := step(2).Epsilon(delta)
		if err != nil || two.Lower > epsilon {
			t.Errorf("σ = %v: %v, %v at δ = %v, the bound is %v", sigma, two, err, delta, epsilon)
		}
	}
	if epsilon, delta := rowBound(0, 0.1); epsilon != 0 || delta != 0.2 {
		t.Errorf("ε = 0: %v, %v", epsilon, delta)
	}
}
