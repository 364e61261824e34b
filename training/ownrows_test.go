package training

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/table"
)

// own reads training rows from CSV text without a header.
func own(text string, persons bool) (*learning.Dataset, error) {
	t, err := table.ReadCSV("rows.csv", strings.NewReader(text), table.Hints{Bare: true})
	if err != nil {
		return nil, err
	}
	return ReadRows(t, job.Model{Features: 2, Classes: 3}, persons)
}

// Rows are read strictly, and faults have their line.
func TestReadRows(t *testing.T) {
	for text, want := range map[string]string{
		"1,2,0\n3,4.5,2\n":             "",
		"\ufeff1,2,0\r\n3, 4.5 ,2\r\n": "",
		"\ufeff\"1\";2;0\n3;4.5;2":     "",
		"1\t2\t0\n\n3\t4.5\t2\n":       "",
		"":                             "it is empty",
		"1,2,0\n1,2\n":                 "rows.csv:2: it has 2 values for 3 columns",
		"1,2\n":                        "rows.csv:1: it has 2 values; the job's rows have 2 features",
		"a,b,c\n":                      `rows.csv:1: column 1: "a" is not a number; leave out the header`,
		"1,2,0\na,2,0\n":               `rows.csv:2: column 1: "a" is not a number`,
		"1,NaN,0\n":                    "column 2",
		"1,Inf,0\n":                    "column 2",
		"1_0,2,0\n":                    "column 1",
		"0x1p5,2,0\n":                  "column 1",
		"1,,0\n":                       "column 2: the value is missing",
		"1,2,3\n":                      "0 to 2",
		"1,2,-1\n":                     "0 to 2",
		"1,2,0.5\n":                    "0 to 2",
		"1\"2,2,0\n":                   "rows.csv:1: column 1: it has a quotation mark",
		"1,2,0\n\"1,2,0\n\n1":          "rows.csv:2: column 1: a quotation mark opens here",
		"1,5;2,5;0\n":                  "commas and semicolons, and either could separate values; write numbers",
	} {
		d, err := own(text, false)
		switch {
		case want == "" && (err != nil || d.Len() != 2 || d.X[3] != 4.5 || d.Labels[1] != 2):
			t.Errorf("%q: %+v %v", text, d, err)
		case want != "" && (!errors.Is(err, table.ErrRows) || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	// Where records belong to persons, each row says whose it is.
	d, err := own("ann,1,2,0\n bob,3,4,1\n\"ann\",5,6,2\n", true)
	if err != nil || !slices.Equal(d.Writers, []int{0, 1, 0}) || d.X[4] != 5 {
		t.Errorf("%+v %v", d, err)
	}
	if _, err := own("ann,1,2,0\n", false); err == nil {
		t.Error("names are read as numbers")
	}
	if _, err := own("ann,1,2,0\n ,3,4,1\n", true); err == nil ||
		!strings.Contains(err.Error(), ":2: column 1: it does not say whose") {
		t.Error(err)
	}
}

// Tables of other sources give the same rows.
func TestReadRowsOfTables(t *testing.T) {
	of := func(all ...[]any) *table.Table {
		return &table.Table{Name: "a.db", Columns: []string{"x", "y", "sick"},
			Rows: func(yield func([]any, error) bool) {
				for _, row := range all {
					if !yield(row, nil) {
						return
					}
				}
			}}
	}
	want := job.Model{Features: 2, Classes: 3}
	two := of([]any{int64(1), float32(0.1), false}, []any{"3", 4.5, uint64(2)})
	d, err := ReadRows(two, want, false)
	if err != nil || !slices.Equal(d.X, []float64{1, 0.1, 3, 4.5}) || d.Labels[1] != 2 {
		t.Errorf("%+v %v", d, err)
	}
	for told, table := range map[string]*table.Table{
		"a.db: row 2: y: the value is missing":    of([]any{1.0, 2.0, 0.0}, []any{1.0, nil, 0.0}),
		"a.db: row 1: y: \"Inf\" is no finite":    of([]any{1.0, math.Inf(1), 0.0}),
		"a.db: row 1: x: the value is of a type":  of([]any{[]byte("1"), 2.0, 0.0}),
		"a.db: row 1: sick: the class is 3":       of([]any{1.0, 2.0, int64(3)}),
		"a.db: row 1: it has 2 values; the job's": of([]any{1.0, 2.0}),
		"a.db: row 1: it has 0 values":            of([]any{}),
		"a.db: there are no rows":                 of(),
	} {
		if _, err := ReadRows(table, want, false); err == nil || !strings.Contains(err.Error(), told) {
			t.Errorf("%v, want %q", err, told)
		}
	}
}
