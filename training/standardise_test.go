package training

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// smallImages makes rows of 8 × 8 random pixels, brighter with their class.
func smallImages(n int) *learning.Dataset {
	random := rand.New(rand.NewPCG(3, 3))
	d := &learning.Dataset{Features: 64}
	for i := range n {
		for range 64 {
			d.X = append(d.X, random.Float64()*float64(1+i%3))
		}
		d.Labels = append(d.Labels, i%3)
	}
	return d
}

// The first sums are of moments, and the model stays as it was; with them the features of later
// sums are standardised, by moments that anybody can compute again from all rows. A server that
// begins again with a model that was sent goes on alike.
func TestStandardise(t *testing.T) {
	made, _ := made(t, func(j *job.Job) {
		byRecords(j)
		j.Model = job.Model{Name: "scattering", Features: 64, Classes: 3}
		j.Training.Standardise = 2
		j.Server.Rule, j.Server.Beta1 = "fedavgm", 0.5
	})
	rows := smallImages(30)
	dealt := thirds(rows)
	plain := made.Model().(learning.Scattering)
	all := make([][]int, rows.Len())
	for i := range all {
		all[i] = []int{i}
	}
	moments := make([]float64, plain.Moments())
	if err := plain.MomentSum(moments, rows, all, 0.5); err != nil {
		t.Fatal(err)
	}
	for k := range moments {
		moments[k] /= 30
	}
	standard, err := plain.Standardised(moments, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	weights, momentum := plain.Init(0), plain.Init(0)
	model := made.Flat(made.First())
	for round := 1; round <= 5; round++ {
		s, err := made.Standing(model)
		if err != nil {
			t.Fatal(err)
		}
		if s.Standard.Sums != min(round-1, 2) {
			t.Fatalf("round %d: %d sums of moments", round, s.Standard.Sums)
		}
		var sum [][]uint64
		for i, d := range dealt {
			p, err := made.Party(i, d, nil)
			if err != nil {
				t.Fatal(err)
			}
			values, err := p.Submit(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			sum = addUp(sum, values)
		}
		optimizer := aggregation.Optimizer{Rule: aggregation.RuleMomentum, Rate: 2, Beta1: 0.5}
		if err := optimizer.Resume([][]float64{momentum, make([]float64, len(weights))}); err != nil {
			t.Fatal(err)
		}
		after, err := made.Advance(s, &optimizer, sum, []int{0, 1, 2})
		if err != nil {
			t.Fatal(err)
		}
		judged, err := made.Judged(after)
		if err != nil {
			t.Fatal(err)
		}
		if round <= 2 {
			if !slices.Equal(after.Model, weights) {
				t.Fatalf("round %d trains", round)
			}
			if is := judged.(learning.Scattering).Standard != nil; is != (round == 2) {
				t.Fatalf("round %d: standardised %v", round, is)
			}
		} else {
			g := make([]float64, len(weights))
			if err := learning.ClippedSum(g, standard, weights, rows, all, 0.5); err != nil {
				t.Fatal(err)
			}
			for k := range weights {
				momentum[k] = 0.5*momentum[k] - g[k]/30
				weights[k] += 2 * momentum[k]
				if math.Abs(after.Model[k]-weights[k]) > 2e-2 {
					t.Fatalf("round %d: weight %d is %v, want %v", round, k, after.Model[k], weights[k])
				}
			}
			copy(weights, after.Model) // so that small differences do not add up
			copy(momentum, optimizer.Moments()[0])
		}
		model = made.Flat(after)
	}
	for k, x := range model {
		if x == 2 { // sums of moments
			model[k] = 3
		}
	}
	if _, err := made.Standing(model); !errors.Is(err, ErrStanding) {
		t.Errorf("three sums of two: %v", err)
	}
}
