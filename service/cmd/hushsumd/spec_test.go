package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/federation"
)

const goodSpec = `name = "six"
about = "who has what"
rounds = 4
seed = 2
[data] # beside the federation
set = "synthetic"
split = "dirichlet-labels"
rows = 50
[training]
model = "mlp:4"
by_rows = true
steps = 2
rate = 0.1
[recovery]
drop_out = 0.3
[[party]]
name = "clinic"
count = 5
[[party]]
name = "other"
`

// A spec becomes a federation's file in which every line is where it was.
func TestSpec(t *testing.T) {
	s, err := parseSpec([]byte(goodSpec))
	if err != nil {
		t.Fatal(err)
	}
	own, test, _, err := s.rows()
	if err != nil {
		t.Fatal(err)
	}
	const names = "clinic-1 clinic-2 clinic-3 clinic-4 clinic-5 other"
	if len(own) != 6 || strings.Join(s.names(), " ") != names {
		t.Errorf("%d parties: %v", len(own), s.names())
	}
	for _, rows := range own {
		if rows.Len() > 50 {
			t.Errorf("%d rows", rows.Len())
		}
	}
	text := s.declared(own, test)
	f, err := federation.Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if f.Training.Rows.Features != test.Features || f.Training.Rows.Classes != 2 ||
		f.Training.Rows.Most < 1 || f.Training.Model != "mlp:4" {
		t.Errorf("%+v", f.Training)
	}
	lines, was := strings.Split(string(text), "\n"), strings.Split(goodSpec, "\n")
	for _, i := range []int{0, 2, 8, 9, 14} {
		if lines[i] != was[i] {
			t.Errorf("line %d is %q, was %q", i+1, lines[i], was[i])
		}
	}
}

// What dev cannot run is refused with its line and what to do.
func TestSpecMistakes(t *testing.T) {
	for _, c := range []struct {
		from, to string
		line     int
		want     string
	}{
		{"rounds = 4", "rouds = 4", 3, "no such field"},
		{`set = "synthetic"`, "", 5, "names no rows"},
		{`split = "dirichlet-labels"`, `split = "labels"`, 7, "label-skew"},
		{"rows = 50", "rows = -1", 8, "0 for all"},
		{"rows = 50", "test = 1.0", 8, "0.25"},
		{"rows = 50", `draw = "new"`, 8, "hushsum simulate --scenario"},
		{"[training]", "[training.rows]\nfeatures = 3\n[training]", 9, "leave it out"},
		{"name = \"six\"", "roster = \"r\"\nname = \"six\"", 1, "leave it out"},
		{"count = 5", "count = 2", 0, "4 to 100"},
		{"count = 5", "count = 100", 0, "4 to 100"},
		{"count = 5", "slow = 2.0", 18, "hushsum simulate --scenario"},
		{"[recovery]", "[[link]]\nbetween = [\"a\", \"b\"]\n[recovery]", 14, "time, distance"},
	} {
		_, err := parseSpec([]byte(strings.Replace(goodSpec, c.from, c.to, 1)))
		var wrong *federation.FileError
		if !errors.As(err, &wrong) {
			t.Errorf("%s: %v", c.to, err)
			continue
		}
		if c.line > 0 && wrong.Line != c.line || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: line %d, want %d: %v", c.to, wrong.Line, c.line, err)
		}
	}
	missing := strings.Replace(goodSpec, `"synthetic"`, `"/nowhere"`, 1)
	s, err := parseSpec([]byte(missing))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := s.rows(); err == nil || !strings.Contains(err.Error(), "HUSHSUM_DATA") {
		t.Errorf("%v", err)
	}
}
