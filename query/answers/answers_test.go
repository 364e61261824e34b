package answers

import (
	"strings"
	"testing"

	"github.com/hushsum/hushsum/query"
)

// Numbers have as many digits as say something.
func TestFigure(t *testing.T) {
	for _, c := range []struct {
		x, width float64
		want     string
	}{
		{1234567.8, 1000, "1,234,568"}, {1234.567, 9, "1,234.6"}, {-12.34, 0.5, "-12.34"}, {0, 0, "0"},
		{2.5, 0, "2.5000"}, {-0.001, 1, "0.0"}, {1e20, 1, "1e+20"}, {7, 0, "7"},
	} {
		if got := figure(c.x, c.width); got != c.want {
			t.Errorf("%v, %v: %s, want %s", c.x, c.width, got, c.want)
		}
	}
}

// A report names the line, the value and the declared categories of what is unknown.
func TestReport(t *testing.T) {
	var b strings.Builder
	WriteReport(&b, &query.Report{File: "a/rows.csv", Findings: []query.Finding{
		{Column: "sex", What: "unknown", Rows: 9, Lines: []int{3, 5}, Values: []string{"f", "m"},
			Declared: []string{"F", "M"}},
		{Column: "dose", What: "unknown", Rows: 1, Lines: []int{4}, Values: []string{"0,5"}},
		{Column: "age", What: "clipped", Rows: 1, Lines: []int{2}, Values: []string{"400"},
			Range: []float64{18, 100}},
		{Column: "age", What: "missing", Rows: 1, Lines: []int{7}},
	}})
	const want = "rows.csv: sex: 9 values unknown, at line 3, 5 …: \"f\", \"m\", where the job " +
		"declares \"F\", \"M\"\nrows.csv: dose: 1 value unknown, at line 4: \"0,5\"\n" +
		"rows.csv: age: 1 value clipped, at line 2: \"400\", where the job declares numbers from 18 " +
		"to 100\nrows.csv: age: 1 value missing, at line 7\n"
	if b.String() != want {
		t.Errorf("%s\nwant %s", b.String(), want)
	}
}
