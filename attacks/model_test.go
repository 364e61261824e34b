package attacks

import (
	"errors"
	"math"
	"testing"
)

func TestAttackGradientInversion(t *testing.T) { runAttack(t, "GradientInversion") }
func TestAttackImprint(t *testing.T)           { runAttack(t, "Imprint") }
func TestAttackMembership(t *testing.T)        { runAttack(t, "Membership") }

func TestJudge(t *testing.T) {
	scores := []Scored{{3, true}, {2, true}, {2, false}, {1, false}}
	m, err := Judge(scores, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Of four pairs three are won and one is tied.
	if m.AUC != 3.5/4 || m.TPR != .5 || m.FPR != 0 || m.Members != 2 || m.Others != 2 {
		t.Errorf("%+v", m)
	}
	if m, _ := Judge(scores, .5); m.TPR != 1 || m.FPR != .5 {
		t.Errorf("%+v", m)
	}
	if _, err := Judge(scores[:2], 0); !errors.Is(err, ErrMembership) {
		t.Error(err)
	}
}

func TestPrivateAUC(t *testing.T) {
	for _, c := range []struct{ epsilon, delta, want float64 }{
		{0, 0, .5},
		{0, 1, 1},
		// Randomised response: (1, e^ε/(1+e^ε)) by two triangles, (1 + tpr − fpr)/2.
		{1, 0, (1 + math.Tanh(.5)) / 2},
		{math.Inf(1), 0, 1},
		{0, .2, 1 - .8*.8/2},
	} {
		if got := PrivateAUC(c.epsilon, c.delta); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("ε = %v, δ = %v: %v, want %v", c.epsilon, c.delta, got, c.want)
		}
	}
}

func TestInvertRow(t *testing.T) {
	for _, c := range []struct {
		update []float64
		bias   int
	}{{nil, 0}, {[]float64{1, 0}, 1}, {[]float64{1}, -1}, {[]float64{1, math.NaN()}, 1}} {
		if _, _, err := InvertRow(c.update, c.bias); !errors.Is(err, ErrInversion) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if _, err := (Imprint{Weights: []float64{1}}).Recover(nil); !errors.Is(err, ErrInversion) {
		t.Error(err)
	}
}
