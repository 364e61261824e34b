package aggregation

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// An optimizer that goes on from another's moments makes the same models.
func TestOptimizerResume(t *testing.T) {
	rules := []Rule{RuleFedAvg, RuleMomentum, RuleFedAdagrad, RuleFedAdam, RuleFedYogi}
	for _, rule := range rules {
		first := &Optimizer{Rule: rule, Rate: 0.1}
		if rule != RuleFedAvg {
			first.Beta1 = 0.9
		}
		second := *first
		if first.Moments() != nil {
			t.Errorf("rule %d: moments before the first round", rule)
		}
		w := []float64{1, -2, 3}
		for i := range 4 {
			update := []float64{0.5, float64(i), -1}
			next, err := first.Apply(w, update, nil)
			if err != nil {
				t.Fatal(err)
			}
			again, err := second.Apply(w, update, nil)
			if err != nil || !slices.Equal(next, again) {
				t.Fatalf("rule %d, round %d: %v %v, want %v", rule, i, again, err, next)
			}
			w = next
			fresh := Optimizer{Rule: rule, Rate: 0.1, Beta1: first.Beta1}
			if err := fresh.Resume(first.Moments()); err != nil {
				t.Fatal(err)
			}
			second = fresh
		}
	}
}

func TestOptimizerResumeErrors(t *testing.T) {
	o := &Optimizer{Rule: RuleFedAdam}
	for _, c := range []struct {
		moments [][]float64
		want    error
	}{
		{[][]float64{{1}}, ErrLength},
		{[][]float64{{1}, {1, 2}}, ErrLength},
		{[][]float64{{1}, {math.NaN()}}, ErrNotFinite},
		{[][]float64{{1}, {-1}}, ErrConfig},
	} {
		if err := o.Resume(c.moments); !errors.Is(err, c.want) {
			t.Errorf("%v: %v, want %v", c.moments, err, c.want)
		}
	}
	if o.Moments() != nil {
		t.Error("a refused resume changed the optimizer")
	}
}

// Plain averaging remembers nothing but how many weights there are.
func TestOptimizerRemembersNothing(t *testing.T) {
	o := new(Optimizer)
	for _, moments := range [][][]float64{nil, {{1, 2}, {3, 4}}} {
		if err := o.Resume(moments); err != nil {
			t.Fatal(err)
		}
		if next, err := o.Apply([]float64{1, 2}, []float64{1, 1}, nil); err != nil || next[1] != 3 {
			t.Errorf("%v, %v", next, err)
		}
		if o.Moments() != nil {
			t.Errorf("it remembers %v", o.Moments())
		}
		if _, err := o.Apply([]float64{1}, []float64{1}, nil); !errors.Is(err, ErrLength) {
			t.Errorf("another number of weights: %v, want ErrLength", err)
		}
	}
}
