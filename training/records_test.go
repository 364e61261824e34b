package training

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// byRecords has a job's unit be a record, and nearly no noise.
func byRecords(j *job.Job) {
	j.Privacy = job.Privacy{Unit: "record", Records: 30, Noise: "discrete-gaussian", Multiplier: 1e-3,
		Clip: 0.5, Bits: 50, SubmitAfter: time.Second}
	j.Server.Rate = 2
}

// zeros is a source for which every coin comes up.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// With all records drawn, a round is a step of gradient descent over all parties' records, each
// gradient clipped, divided by the public number of records; regularisation is the server's.
func TestStepOverRecords(t *testing.T) {
	for name, change := range map[string]func(j *job.Job){
		"records":                            func(j *job.Job) {},
		"regularised":                        func(j *job.Job) { j.Training.Lambda = 0.3 },
		"persons":                            func(j *job.Job) { j.Privacy.Group = "patient" },
		"more records than all parties have": func(j *job.Job) { j.Privacy.Records = 500 },
		"averaged":                           func(j *job.Job) { j.Server.Average = 0.5 },
	} {
		made, rows := made(t, func(j *job.Job) {
			byRecords(j)
			change(j)
		})
		parties := make([]*learning.Dataset, 3)
		for i := range parties {
			all := []int{}
			for k := range 5 + i {
				all = append(all, 10*i+k)
			}
			parties[i], _ = rows.Subset(all)
			parties[i].Writers = []int{7, 8, 7, 9, 9, 1, 2}[:5+i]
		}
		r := made.options.Records
		s := made.First()
		weights := slices.Clone(s.Model)
		var mean []float64
		for round := 1; round <= 9; round++ {
			want := make([]float64, len(weights))
			var sum [][]uint64
			for i, d := range parties {
				units := r.units(d)
				if persons := 3 + max(0, i); r.Persons && len(units) != persons || !r.Persons &&
					len(units) != d.Len() {
					t.Fatalf("%s: %v", name, units)
				}
				g := make([]float64, len(weights))
				if err := learning.ClippedSum(g, made.Model(), weights, d, units, 0.5); err != nil {
					t.Fatal(err)
				}
				for j := range g {
					want[j] -= g[j] / float64(r.Batch)
				}
				p, err := made.Party(i, d, nil)
				if err != nil {
					t.Fatal(err)
				}
				values, err := p.Submit(context.Background(), s)
				if err != nil {
					t.Fatal(err)
				}
				if sum == nil {
					sum = values
					continue
				}
				for j, x := range values[0] {
					sum[0][j] += x
				}
			}
			optimizer := made.options.Server
			var err error
			if s, err = made.Advance(s, &optimizer, sum, []int{0, 1, 2}); err != nil {
				t.Fatal(err)
			}
			for j := range weights {
				weights[j] += 2 * (want[j] - r.Lambda*weights[j])
			}
			if round > 4 && made.options.Average > 0 {
				if mean == nil {
					mean = make([]float64, len(weights))
				}
				for j := range mean {
					mean[j] += weights[j] / 5
				}
			}
			if round == 9 && mean != nil {
				weights = mean
			}
			for j := range weights {
				if math.Abs(s.Model[j]-weights[j]) > 1e-3 {
					t.Fatalf("%s, round %d: weight %d is %v, want %v", name, round, j, s.Model[j], weights[j])
				}
			}
			if s, err = made.Standing(made.Flat(s)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Coins come up as often as is declared, each by itself and anew in every round. All coins of the
// test together are off by 6 standard deviations with a probability of 2e-9.
func TestCoins(t *testing.T) {
	made, rows := made(t, func(j *job.Job) {
		byRecords(j)
		j.Training.Batch, j.Privacy.Records = 30, 100
	})
	units := made.options.Records.units(rows)
	const times = 2000
	drawn, seen := 0, make([]int, len(units))
	for range times {
		got, err := Draw(len(units), made.options.Records.Coins.Rate, nil)
		if err != nil {
			t.Fatal(err)
		}
		drawn += len(got)
		for _, unit := range got {
			seen[units[unit][0]]++
		}
	}
	off := func(got, of float64) float64 { return math.Abs(got-0.3*of) / math.Sqrt(of*0.21) }
	if z := off(float64(drawn), float64(times*len(units))); z > 6 {
		t.Errorf("%d drawn, off by %v standard deviations", drawn, z)
	}
	for i, n := range seen {
		if z := off(float64(n), times); z > 6.5 {
			t.Errorf("record %d came up %d times, off by %v standard deviations", i, n, z)
		}
	}
	if _, err := Draw(len(units), 0.5, errReader{}); err == nil {
		t.Error("a source that fails draws")
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

// A party that draws more than there is time for sends zeros; one that has more records than all
// parties by the job takes no part, as not all of them could be drawn.
func TestOverrun(t *testing.T) {
	rows, _, err := learning.Census(300, 1)
	if err != nil {
		t.Fatal(err)
	}
	sum := func(batch, records int) (norm float64) {
		made, _ := made(t, func(j *job.Job) {
			byRecords(j)
			j.Training.Batch, j.Privacy.Records = batch, records
		})
		made.options.Records.Random = zeros{}
		p, err := made.Party(0, rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Message(context.Background(), made.First())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range m.Vector {
			norm = math.Hypot(norm, x)
		}
		return norm
	}
	if got := sum(10, 1000); got != 0 {
		t.Errorf("300 drawn where 10 of 1,000 are expected: a sum of norm %v", got)
	}
	made, _ := made(t, func(j *job.Job) {
		byRecords(j)
		j.Training.Batch, j.Privacy.Records = 5, 299
	})
	var wrong *job.ConfigError
	if _, err := made.Party(0, rows, nil); !errors.As(err, &wrong) || wrong.Path != "privacy.records" {
		t.Errorf("a party with 300 records where all have 299: %v", err)
	}
}

// Rows that do not say whose they are have no persons.
func TestPersons(t *testing.T) {
	made, rows := made(t, func(j *job.Job) {
		byRecords(j)
		j.Privacy.Group = "patient"
	})
	var wrong *job.ConfigError
	if _, err := made.Party(0, rows, nil); !errors.As(err, &wrong) || wrong.Path != "privacy.group" {
		t.Errorf("%v", err)
	}
}
