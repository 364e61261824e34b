package query

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

const typed = `name = "typed"
parties = { count = 2, rows = 9 }
column = [
  { name = "age", type = "whole", range = [18, 100], missing = "drop", blank = ["999"] },
  { name = "dose", type = "number", range = [0.0, 1.0], outside = "drop", missing = "drop" },
  { name = "sex", type = "category", categories = ["F", "M"], missing = "category", blank = ["?"] },
  { name = "day", type = "category", categories = ["2024-01-31", "2024-02-01 06:30:00"], missing = "drop" },
  { name = "smokes", type = "category", categories = ["False", "True"], missing = "drop" },
  { name = "grade", type = "category", categories = ["1", "2.5"], missing = "drop" },
]
query = [{ name = "n", kind = "count" }]
`

var typedColumns = []string{"other", "age", "dose", "sex", "day", "smokes", "grade"}

func tableOf(columns []string, rows ...[]any) Table {
	return Table{Name: "a.db", Columns: columns, Rows: func(yield func([]any, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}}
}

// A table gives the same rows and the same findings as CSV text of the same values, whatever types
// it has for them.
func TestReadTable(t *testing.T) {
	january := time.Date(2024, 1, 31, 0, 0, 0, 0, time.UTC)
	february := time.Date(2024, 2, 1, 6, 30, 0, 0, time.UTC)
	table := tableOf(typedColumns,
		[]any{[]byte{1}, int64(20), 0.25, "F", january, true, int64(1)},
		[]any{nil, 30.0, float32(0.1), "M", february, false, 2.5},
		[]any{nil, "40", uint64(1), "?", "2024-01-31", "True", "2.5"},
		[]any{nil, int64(999), int64(3), nil, nil, nil, float32(2.5)},
		[]any{nil, 40.5, math.NaN(), "X", january.AddDate(0, 0, 1), nil, 1.0},
		[]any{nil, int64(5), true, "", "", "", ""},
		[]any{nil, uint64(math.MaxUint64), 1e300, "F", nil, nil, nil})
	const text = "other,age,dose,sex,day,smokes,grade\n" +
		",20,0.25,F,2024-01-31,True,1\n,30,0.1,M,2024-02-01 06:30:00,False,2.5\n" +
		",40,1,?,2024-01-31,True,2.5\n,999,3,,,,2.5\n,40.5,NaN,X,2024-02-01,,1\n,5,1,,,,\n" +
		",18446744073709551615,1e+300,F,,,\n"
	s := schemaOf(t, typed)
	got, report, err := s.ReadTable(table)
	if err != nil || !report.Table || report.Rows != 7 {
		t.Fatal(report, err)
	}
	want, told, err := s.Read("a.db", strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := fmt.Sprint(got.values), fmt.Sprint(want.values); a != b {
		t.Errorf("rows\n%s, of CSV\n%s", a, b)
	}
	for i := range told.Findings {
		for k := range told.Findings[i].Lines {
			told.Findings[i].Lines[k]-- // the head is a line, and no row
		}
	}
	if !reflect.DeepEqual(report.Findings, told.Findings) {
		t.Errorf("findings\n%+v, of CSV\n%+v", report.Findings, told.Findings)
	}
}

// Tables that are not as the job says are refused with column and row, and no bytes are quoted.
func TestReadTableRefuses(t *testing.T) {
	columns := []string{"age", "dose", "sex"}
	broken := errors.New("the connection is lost")
	ends := func(yield func([]any, error) bool) {
		_ = yield([]any{int64(20), nil, nil}, nil) && yield(nil, broken)
	}
	for _, c := range []struct {
		table Table
		want  string
		row   int
	}{
		{tableOf(columns, []any{int64(20), nil, nil}, []any{nil, nil, nil}), "age: the value is missing", 2},
		{tableOf(columns, []any{"old", nil, nil}), `age: the value is unknown, as "old" is not a number`, 1},
		{tableOf(columns, []any{math.Inf(1), nil, nil}), `as "Inf" is no finite number`, 1},
		{tableOf(columns, []any{float32(math.Inf(-1)), nil, nil}), `as "-Inf" is no finite number`, 1},
		{tableOf(columns, []any{int64(20), []byte("SECRET"), nil}), "dose: the value is of a type, bytes", 1},
		{tableOf(columns, []any{time.Now(), nil, nil}), "age: the value is of a type, a date", 1},
		{tableOf(columns, []any{[]string{"SECRET"}, nil, nil}), "age: the value is of a type, []string", 1},
		{tableOf(columns, []any{int64(20)}), "it has 1 values for 3 columns", 1},
		{tableOf(columns[:2]), "sex: there is no such column", 0},
		{tableOf(append(columns, "age")), "age: there are two columns of the name", 0},
		{Table{Name: "a.db", Columns: columns, Rows: iter.Seq2[[]any, error](ends)}, broken.Error(), 0},
	} {
		rows, report, err := schemaOf(t, read).ReadTable(c.table)
		if rows != nil || report == nil || err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%v %v, want %q", report, err, c.want)
		}
		var wrong *RowsError
		if errors.As(err, &wrong) != (c.want != broken.Error()) || wrong != nil && wrong.Row != c.row {
			t.Errorf("%v, want row %d", err, c.row)
		}
	}
}
