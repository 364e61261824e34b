package training

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/privacy"
)

// byTurns has three parties correlate next to no noise over three rounds, so that what is decoded
// shows.
func byTurns(j *job.Job) {
	j.Privacy.Noise, j.Privacy.Clip, j.Privacy.Multiplier = "discrete-gaussian", 0.5, 1e-6
	j.Privacy.Bits, j.Privacy.Factorise = 54, 3
	j.Training.Rate, j.Training.Steps = 0.5, 1
}

// thirds deals the rows of made to its parties.
func thirds(rows *learning.Dataset) []*learning.Dataset {
	var all []*learning.Dataset
	for i := range 3 {
		from, to := i*rows.Len()/3, (i+1)*rows.Len()/3
		all = append(all, &learning.Dataset{X: rows.X[from*rows.Features : to*rows.Features],
			Features: rows.Features, Labels: rows.Labels[from:to]})
	}
	return all
}

// addUp adds submissions up.
func addUp(sum, values [][]uint64) [][]uint64 {
	if sum == nil {
		return values
	}
	for s := range sum {
		for i, x := range values[s] {
			sum[s][i] += x
		}
	}
	return sum
}

// Parties take turns. Each step of the model is the update of the one whose turn it was, whoever
// was killed in between: a party begins again with what is in its store, the server with a model.
// Where a round is lost, what began in it is given up by all, and what follows is exact again.
func TestTurns(t *testing.T) {
	for name, lost := range map[string][]uint64{"none": nil, "one": {4}, "two in a row": {2, 3},
		"five": {1, 2, 3, 6, 8}} {
		t.Run(name, func(t *testing.T) {
			made, rows := made(t, byTurns)
			stores, dealt := make([]memory, 3), thirds(rows)
			model := made.sent(made.First())
			for round := uint64(1); round <= 9; round++ {
				s, err := made.Standing(model)
				if err != nil {
					t.Fatal(err)
				}
				s.Number, s.Public = round, [32]byte{byte(round)}
				turn := int(round-1) % 3
				alone, err := made.learner(s, turn, dealt[turn])
				if err != nil {
					t.Fatal(err)
				}
				want, err := alone.update(context.Background(), s.Round, turn, nil)
				if err != nil {
					t.Fatal(err)
				}
				var sum [][]uint64
				for i := range 3 {
					p, err := made.Party(i, dealt[i], &stores[i])
					if err != nil {
						t.Fatal(err)
					}
					values, err := p.Submit(context.Background(), s)
					if err != nil {
						t.Fatal(err)
					}
					sum = addUp(sum, values)
				}
				if slices.Contains(lost, round) {
					continue
				}
				optimizer := made.options.Server
				after, err := made.Advance(s, &optimizer, sum, []int{0, 1, 2})
				if err != nil {
					t.Fatal(err)
				}
				for k, x := range after.Model {
					if step := x - s.Model[k]; math.Abs(step-want.Message.Vector[k]) > 1e-4 {
						t.Fatalf("round %d, weight %d: a step of %v, want %v", round, k, step,
							want.Message.Vector[k])
					}
				}
				model = made.sent(after)
			}
		})
	}
}

// Presence and size of what a party submits follow from the number of the round: they are the same
// for rows that make no update, for rows that make a great one, and for a party that has lost what
// it kept. Asked again for one sum, it submits the same.
func TestTurnsTellNothing(t *testing.T) {
	made, rows := made(t, byTurns)
	nothing := &learning.Dataset{X: make([]float64, rows.Features), Features: rows.Features,
		Labels: []int{0}}
	var stores [3]memory
	for round := uint64(1); round <= 7; round++ {
		s := made.First()
		s.Number = round
		for past := uint64(1); past < round && past < 3; past++ {
			s.Earlier = append(s.Earlier, privacy.Decoded{Round: round - past,
				Sum: make([]float64, len(s.Model))})
		}
		for i, d := range []*learning.Dataset{rows, nothing, rows} {
			store := &stores[i]
			if i == 2 && round == 6 {
				*store = nil
			}
			p, err := made.Party(1, d, store)
			if err != nil {
				t.Fatal(err)
			}
			m, err := p.Message(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			again, err := p.Message(context.Background(), s)
			if err != nil || !slices.Equal(again.Vector, m.Vector) {
				t.Errorf("round %d: another vector for one sum, %v", round, err)
			}
			norm := 0.0
			for _, x := range m.Vector {
				norm = math.Hypot(norm, x)
			}
			offset, ok := made.options.Band.Offset(1, round)
			if m.Offset != offset || len(m.Vector) != len(s.Model) || m.Signed != nil {
				t.Errorf("round %d: offset %d of %d numbers", round, m.Offset, len(m.Vector))
			}
			if zeros := !ok || i == 2 && round > 5 && offset > 0; i != 1 && zeros != (norm == 0) ||
				norm > 0.5*(1+1e-9) {
				t.Errorf("round %d, rows %d: a norm of %v", round, i, norm)
			}
		}
	}
	broken := memory("{")
	p, err := made.Party(1, rows, &broken)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Message(context.Background(), made.First()); !errors.Is(err, ErrVariates) {
		t.Errorf("a store of something else: %v", err)
	}
}

// A standing with sums of earlier rounds comes back from its model.
func TestStandingOfTurns(t *testing.T) {
	made, _ := made(t, byTurns)
	s := made.First()
	s.Earlier = []privacy.Decoded{{Round: 4, Sum: slices.Clone(s.Model)}}
	s.Earlier[0].Sum[2] = 7
	again, err := made.Standing(made.Flat(s))
	if err != nil || fmt.Sprint(again.Earlier) != fmt.Sprint(s.Earlier) {
		t.Errorf("%v, %v, want %v", again.Earlier, err, s.Earlier)
	}
	model := made.Flat(s)
	for k := range model {
		if model[k] == 4 {
			model[k] = 99
		}
	}
	if _, err := made.Standing(model); !errors.Is(err, ErrStanding) {
		t.Errorf("round 99 of 9: %v", err)
	}
	if _, err := made.Standing(model[1:]); !errors.Is(err, ErrStanding) {
		t.Errorf("a number less: %v", err)
	}
}
