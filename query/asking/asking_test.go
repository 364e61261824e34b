package asking

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
)

const text = `name = "a"
parties = { count = 6, rows = 10 }
column = [{ name = "age", type = "whole", range = [0, 100] }]
query = [{ name = "old", kind = "count", where = "age >= 60" }]
`

// All parties answer over the job's own sum, of either protocol, and those that are away are
// missing.
func TestRun(t *testing.T) {
	for _, set := range [][]string{nil, {"sum.protocol=oneshot"},
		{"parties.drop_out=0.4", "world.drop=0.34"}} {
		j, err := job.Parse("a.toml", []byte(text), set...)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(j); err != nil {
			t.Fatal(err)
		}
		w, err := New(j, j.Names())
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := query.NewSchema(j).Read("rows", strings.NewReader("age\n"+
			strings.Repeat("70\n20\n", 12)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(context.Background(), rows.Deal(6, 1)); err != nil {
			t.Fatal(err)
		}
		cell := w.Answers[0].Cells[0]
		if len(set) < 2 && (w.Present != 6 || cell.Value != 12) ||
			len(set) == 2 && (w.Present != 4 || !(cell.Low <= 12 && 12 <= cell.High)) {
			t.Errorf("%v: %d are there, %+v", set, w.Present, cell)
		}
	}
}

// A round in one process is not lost to time, however slow its processors are: with a step time in
// which nobody answers, all do.
func TestRunWithoutTime(t *testing.T) {
	for _, protocol := range []string{"pairwise", "oneshot"} {
		j, err := job.Parse("a.toml", []byte(text), "sum.protocol="+protocol, "time.step_time=1us")
		if err != nil {
			t.Fatal(err)
		}
		w, err := New(j, j.Names())
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := query.NewSchema(j).Read("rows", strings.NewReader("age\n70\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(context.Background(), rows.Deal(6, 1)); err != nil || w.Present != 6 {
			t.Errorf("%s: %d parties are in the sum, %v", protocol, w.Present, err)
		}
	}
}

// Queries of several rounds are answered in the last, those of one round in the first, of both
// protocols.
func TestRunRounds(t *testing.T) {
	const rounds = `name = "a"
parties = { count = 6, rows = 200 }
column = [
  { name = "age", type = "whole", range = [0, 100] },
  { name = "visits", type = "whole", range = [0, 10] },
]
query = [
  { name = "old", kind = "count", where = "age >= 60" },
  { name = "rate", kind = "poisson", column = "visits", on = ["age"] },
]
`
	for _, protocol := range []string{"pairwise", "oneshot"} {
		j, err := job.Parse("a.toml", []byte(rounds), "sum.protocol="+protocol)
		if err != nil {
			t.Fatal(err)
		}
		w, err := New(j, j.Names())
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := query.NewSchema(j).Read("rows", strings.NewReader("age,visits\n"+
			strings.Repeat("70,4\n20,1\n", 120)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(context.Background(), rows.Deal(6, 1)); err != nil {
			t.Fatal(err)
		}
		if w.Answers[0].Cells[0].Value != 120 {
			t.Errorf("%s: %+v", protocol, w.Answers[0])
		}
		for i, want := range []float64{-math.Log(4) * 20 / 50, math.Log(4) / 50} {
			if c := w.Answers[1].Cells[i]; math.Abs(c.Value-want) > 1e-4 {
				t.Errorf("%s: %+v, and log rates are %v", protocol, c, want)
			}
		}
	}
}

// What is not for one machine is named.
func TestCheck(t *testing.T) {
	for _, change := range []func(j *job.Job){
		func(j *job.Job) { j.Query, j.Column = nil, nil },
		func(j *job.Job) { j.Parties.Count = 0 },
		func(j *job.Job) { j.Privacy.Before = "before.toml" },
	} {
		j, err := job.Parse("a.toml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		change(j)
		if err := Check(j); !errors.Is(err, job.ErrConfig) {
			t.Error(err)
		}
	}
	j, err := job.Parse("a.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(j, make([]string, mostParties+1)); !errors.Is(err, job.ErrConfig) {
		t.Error(err)
	}
}

// Where noise hides a record a party with more rows than all are said to have is refused, before
// anybody answers.
func TestMoreThanRecords(t *testing.T) {
	for records, want := range map[string]error{"23": query.ErrRows, "24": nil} {
		j, err := job.Parse("a.toml", []byte(text), "privacy.unit=record",
			"privacy.records="+records, "privacy.noise=discrete-gaussian", "privacy.epsilon=1")
		if err != nil {
			t.Fatal(err)
		}
		w, err := New(j, j.Names())
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := query.NewSchema(j).Read("rows", strings.NewReader("age\n"+
			strings.Repeat("70\n20\n", 12)), nil)
		if err != nil {
			t.Fatal(err)
		}
		parties := make([]*query.Rows, 6)
		for i := range parties {
			parties[i] = rows
		}
		if err := w.Run(context.Background(), parties); !errors.Is(err, want) {
			t.Errorf("%s records: %v, want %v", records, err, want)
		}
	}
}
