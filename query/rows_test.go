package query

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
)

const read = `name = "read"
parties = { count = 2, rows = 4 }
column = [
  { name = "age", type = "whole", range = [18, 100] },
  { name = "dose", type = "number", range = [0.0, 1.0], outside = "drop", missing = "drop" },
  { name = "sex", type = "category", categories = ["F", "M"], missing = "category", blank = ["?"] },
]
query = [
  { name = "n", kind = "count" },
  { name = "dose", kind = "sum", column = "dose" },
  { name = "age", kind = "histogram", column = "age", bins = 2 },
  { name = "sexes", kind = "crosstab", column = "sex", by = "dose", by_bins = 2, where = "age < 90" },
  { name = "ages", kind = "quantiles", column = "age", at = [0.5] },
]
`

func schemaOf(t *testing.T, text string) *Schema {
	t.Helper()
	j, err := job.Parse("job.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return NewSchema(j)
}

// What is clipped, dropped, missing and unknown is told by name and line, and counts as declared.
func TestRead(t *testing.T) {
	const text = "\ufeffsex, age,other,dose\nF,20,x,0.25\nM,17,x,0.75\n\"?\",30,x,2\n" +
		"X,101,x,\nF, 40,x,nan\n"
	rows, report, err := schemaOf(t, read).Read("a.csv", strings.NewReader(text), nil)
	if err != nil || rows.Len() != 5 || report.Rows != 5 {
		t.Fatal(rows, report, err)
	}
	want := []Finding{
		{Column: "age", What: "clipped", Rows: 2, Lines: []int{3, 5}, Values: []string{"17", "101"},
			Range: []float64{18, 100}},
		{Column: "dose", What: "dropped", Rows: 1, Lines: []int{4}, Values: []string{"2"},
			Range: []float64{0, 1}},
		{Column: "sex", What: "missing", Rows: 1, Lines: []int{4}},
		{Column: "dose", What: "missing", Rows: 1, Lines: []int{5}},
		{Column: "sex", What: "unknown", Rows: 1, Lines: []int{5}, Values: []string{"X"},
			Declared: []string{"F", "M"}},
		{Column: "dose", What: "unknown", Rows: 1, Lines: []int{6}, Values: []string{"nan"},
			Range: []float64{0, 1}},
	}
	if len(report.Findings) != len(want) {
		t.Errorf("%+v", report.Findings)
	}
	for _, f := range want {
		if !slices.ContainsFunc(report.Findings, func(g Finding) bool {
			return reflect.DeepEqual(f, g)
		}) {
			t.Errorf("no %+v in %+v", f, report.Findings)
		}
	}
	// The same without a header of its own.
	_, body, _ := strings.Cut(text, "\n")
	again, _, err := schemaOf(t, read).Read("a.csv", strings.NewReader(body),
		[]string{"sex", "age", "other", "dose"})
	if err != nil || again.Len() != rows.Len() {
		t.Error(again, err)
	}
}

// Rows that are not as the job says are refused with their line, the value and what is declared.
func TestReadRefuses(t *testing.T) {
	const head = "age,sex,dose\n20,F,0.1\n"
	for _, c := range []struct {
		text, want string
		line       int
	}{
		{head + ",M,0.2\n", `age: the value is missing, and the job refuses rows without one; correct ` +
			`the row, or declare missing = "drop"`, 3},
		{head + "19.5,M,0.2\n", "age: the value is unknown, as 19.5 is not a whole number", 3},
		{head + "old,M,0.2\n", `age: the value is unknown, as "old" is not a number, and`, 3},
		{head + "1_9,M,0.2\n", `as "1_9" is not a number, and the job refuses rows without one; write ` +
			`its digits without separators`, 3},
		{head + "0x1p5,M,0.2\n", `as "0x1p5" is not a number`, 3},
		{head + "Inf,M,0.2\n", `as "Inf" is no finite number`, 3},
		{head + "1e999,M,0.2\n", `as "1e999" is too large for a number of 64 bits`, 3},
		{head + "\"19,5\",M,0.2\n", "write it with a decimal point", 3},
		{"age,sex,dose\n,F,0.1\n,M,1\n", "all rows are like that; see whether this is the right column", 2},
		{"age,dose\n20,0.1\n", `sex: there is no such column among "age", "dose"`, 1},
		{"age:sex:dose\n", `there is no such column, but one alone, "age:sex:dose"`, 1},
		{"age,sex,dose,age\n20,F,0.1,2\n", "age: it is in the header twice", 1},
		{"age,sex,dose\n20,F\n", "it has 2 values for 3 columns, separated by commas", 2},
		{head + "20,\"F,1\n30,M,0\n", "sex: a quotation mark opens here that nothing closes", 3},
		{"", "it is empty", 0},
	} {
		rows, report, err := schemaOf(t, read).Read("a.csv", strings.NewReader(c.text), nil)
		var wrong *RowsError
		if !errors.As(err, &wrong) || !errors.Is(err, ErrRows) || report == nil || rows != nil ||
			!strings.Contains(err.Error(), c.want) || wrong.Line != c.line {
			t.Errorf("%q: %v, want line %d and %q", c.text, err, c.line, c.want)
		}
		if all := strings.Contains(c.want, "all rows"); all && strings.Contains(err.Error(), "drop") {
			t.Errorf("%v: which drops all", err)
		}
	}
	strict := strings.Replace(read, `missing = "category", blank = ["?"]`, `missing = "refuse"`, 1)
	for text, want := range map[string]string{
		head + "30,f,1\n":         `sex: the value is unknown, as "f" is none of "F", "M", and`,
		head + "30,f,1\n30,m,1\n": "; 2 of 3 rows are like that; correct the row",
		"age,sex,dose\n20,f,0.1\n30,m,1\n": "all rows are like that; see whether this is the right " +
			"column, and whether the job declares it as its values are written",
	} {
		_, _, err := schemaOf(t, strict).Read("a.csv", strings.NewReader(text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Rows are dealt to all parties, each once, and alike for a seed.
func TestDeal(t *testing.T) {
	rows := &Rows{}
	for i := range 103 {
		rows.values = append(rows.values, []float64{float64(i)})
	}
	seen := map[float64]bool{}
	dealt, again := rows.Deal(10, 3), rows.Deal(10, 3)
	for i, own := range dealt {
		if own.Len() < 10 || own.Len() > 11 {
			t.Errorf("party %d has %d rows", i, own.Len())
		}
		for k, row := range own.values {
			if seen[row[0]] || again[i].values[k][0] != row[0] {
				t.Errorf("row %v", row)
			}
			seen[row[0]] = true
		}
	}
	if len(seen) != 103 {
		t.Errorf("%d rows were dealt", len(seen))
	}
}

func FuzzRead(f *testing.F) {
	j, err := job.Parse("job.toml", []byte(read))
	if err != nil {
		f.Fatal(err)
	}
	s := NewSchema(j)
	f.Add("age,sex,dose\n20,F,0.1\n")
	f.Add("age,sex,dose\n20,?,1e400\n99,M,-Inf\n")
	f.Fuzz(func(t *testing.T, text string) {
		rows, _, err := s.Read("x", strings.NewReader(text), nil)
		if err != nil {
			if !errors.Is(err, ErrRows) {
				t.Fatal(err)
			}
			return
		}
		for _, row := range rows.values {
			if row[0] < 18 || row[0] > 100 || row[1] < 0 || row[1] > 1 || row[2] < 0 || row[2] > 2 {
				t.Fatalf("%v", row)
			}
		}
	})
}

// Categories stay in the order in which they are declared, also once the job has been validated.
func TestCategoriesInOrder(t *testing.T) {
	p := planOf(t, `name = "a"
parties.count = 4
column = [{ name = "size", type = "category", categories = ["small", "large", "huge"] }]
query = [{ name = "n", kind = "histogram", column = "size" }]
`)
	answers, err := p.Answers([]float64{0.5, 0.25, 0}, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"small", "large", "huge"} {
		if c := answers[0].Cells[i]; c.Label != want || c.Value != []float64{2, 1, 0}[i] {
			t.Errorf("%+v, want %s", c, want)
		}
	}
}
