package simulation

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// noisyJob is small with noise, in which one of five may be missing.
func noisyJob() *job.Job {
	s := smallJob()
	s.Privacy = job.Privacy{Noise: "discrete-gaussian", Epsilon: 8, Clip: 1}
	recovers(s, 0.2, "curious")
	return s
}

// changed returns rows of which those that are dealt to one party are others.
func changed(rows Rows, s *job.Job, party int, change func(x []float64, label int) int) Rows {
	train := *rows.Train
	train.X, train.Labels = slices.Clone(train.X), slices.Clone(train.Labels)
	each := s.World.Data.Rows
	order := rand.New(rand.NewPCG(s.Seed, 1)).Perm(train.Len()) // as deal has it
	for _, i := range order[party*each : (party+1)*each] {
		x := train.X[i*train.Features : (i+1)*train.Features]
		train.Labels[i] = change(x, train.Labels[i])
	}
	return Rows{Train: &train, Test: rows.Test}
}

// visible tells what all but the party itself see of a run: who was there, what was sent and when,
// in virtual time. The sums, which noise is for, are not in it.
func visible(r *Result) string {
	var b strings.Builder
	for _, up := range r.SetUps {
		fmt.Fprintln(&b, up)
	}
	for _, one := range r.Rounds {
		fmt.Fprintln(&b, one.Round, one.Began, one.Took, one.Received, one.Included, one.Lost, one.Gone)
		for _, p := range one.Each {
			fmt.Fprintln(&b, " ", p.Party, p.Received, p.Included, p.Took, p.Work, p.Sent, p.Got, p.Left)
		}
	}
	for _, p := range r.Privacy {
		fmt.Fprintln(&b, p)
	}
	return b.String()
}

// Federations that differ in what one party's rows are: all messages, their lengths and their
// instants are the same, whatever training makes of the rows.
func TestEventsOfRowsInTime(t *testing.T) {
	rows := dataRows(t)
	for _, fidelity := range []string{Messages, "ring"} {
		s := noisyJob()
		s.World.Fidelity = fidelity
		want := simulate(t, s, rows)
		for name, change := range map[string]func(x []float64, label int) int{
			"zeros":      func(x []float64, label int) int { clear(x); return label },
			"one class":  func([]float64, int) int { return 1 },
			"all others": func(x []float64, label int) int { slices.Reverse(x); return 1 - label },
			"overflow": func(x []float64, label int) int {
				for i := range x {
					x[i] = math.Copysign(1.7e308, x[i])
				}
				return label
			},
		} {
			got := simulate(t, s, changed(rows, s, 2, change))
			if visible(got) != visible(want) {
				t.Errorf("%s, %s: others see\n%swant\n%s", fidelity, name, visible(got), visible(want))
			}
			diverged := slices.ContainsFunc(got.Notes, func(note string) bool {
				return strings.Contains(note, "p-3 diverged, and it submitted zeros with noise")
			})
			if diverged != (name == "overflow") {
				t.Errorf("%s: %q", name, got.Notes)
			}
			if got.Rounds[3].Test.MCC() == want.Rounds[3].Test.MCC() {
				t.Errorf("%s: the rows are not in the model", name)
			}
		}
		// Without noise the run says what is wrong, with whom.
		s.Privacy, s.World.Fidelity = job.Privacy{}, fidelity
		_, err := runJob(t.Context(), s, changed(rows, s, 2, func(x []float64, label int) int {
			for i := range x {
				x[i] = 1.7e308
			}
			return label
		}), nil)
		if !errors.Is(err, learning.ErrDiverged) {
			t.Errorf("%s, without noise: %v", fidelity, err)
		}
	}
}

// Who leaves by convergence tells of its rows without noise: with noise that is refused, and with a
// law of the papers nothing is certified.
func TestEventsOfLeaving(t *testing.T) {
	s := noisyJob()
	s.World.Tolerance = 0.4
	var wrong *job.ConfigError
	if _, err := runJob(t.Context(), s, dataRows(t), nil); !errors.As(err, &wrong) ||
		wrong.Path != "world.tolerance" {
		t.Errorf("%v", err)
	}
	s = smallJob()
	s.Training.Lambda, s.World.Fidelity = 0.01, "ring"
	s.World.Reference = job.Reference{Law: "continuous-laplace", Epsilon: 1}
	if p := simulate(t, s, dataRows(t)).Privacy[0]; math.IsInf(p.Certified.Bare().Upper, 1) {
		t.Errorf("nobody may leave, and %v is certified", p.Certified.Bare().Upper)
	}
	s.World.Tolerance = 1e-9
	if p := simulate(t, s, dataRows(t)).Privacy[0]; !math.IsInf(p.Certified.Bare().Upper, 1) {
		t.Errorf("who is there follows from rows, and %v is certified", p.Certified.Bare().Upper)
	}
}

// A public schedule, crashes and joiners that are declared are the same whatever rows are: nobody
// is chosen, or goes, by a loss or a norm.
func TestEventsOfSchedule(t *testing.T) {
	rows := dataRows(t)
	s := noisyJob()
	s.World.Data.Rows = 50
	set(s, who{Name: "p", Place: "here", Count: 4},
		who{Name: "late", Place: "here", Count: 2, Joins: 2},
		who{Name: "frail", Place: "here", Count: 1,
			Crash: []job.Crash{{Round: 3, At: atSubmit, Back: 4}}})
	s.Time.StepTime = 5 * time.Second
	want := visible(simulate(t, s, rows))
	got := visible(simulate(t, s, changed(rows, s, 1, func(x []float64, label int) int {
		slices.Reverse(x)
		return 1 - label
	})))
	if got != want {
		t.Errorf("others see\n%swant\n%s", got, want)
	}
}
