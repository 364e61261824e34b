package query

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hushsum/hushsum/job"
)

// Table holds rows of named columns that are not CSV text: of a database, or of a file of another
// format.
type Table struct {
	Name    string   // for messages
	Columns []string // in the order of a row's values

	// Rows yields rows, each with a value for every column: nil where there is none, or a string, a
	// bool, an int64, a uint64, a float32, a float64 or a time.Time. The reader is done with a slice
	// before it asks for the next, and the slice may be used again for that. An error ends the rows.
	Rows iter.Seq2[[]any, error]
}

// Columns returns the names of the columns that rows must have.
func (s *Schema) Columns() (names []string) {
	for _, c := range s.columns {
		names = append(names, c.Name)
	}
	return names
}

// ReadTable reads rows as [Schema.Read] does, with the same result as from CSV text of the same
// rows: a value counts as its text does there; nil and the empty text are missing. A bool counts
// as 1 or 0 where numbers are expected, otherwise as true or false, in upper or lower case; a
// time as its date, with the time of day unless that is midnight, where categories are expected.
// A value of another type is refused, naming its column. The error of the table's rows is
// returned unchanged.
func (s *Schema) ReadTable(t Table) (*Rows, *Report, error) {
	report := &Report{File: t.Name, Table: true, Findings: []Finding{}}
	checked := checker{schema: s, report: report, rows: &Rows{}}
	at, err := s.placesOf(t)
	if err != nil {
		return nil, report, err
	}
	for row, err := range t.Rows {
		if err != nil {
			return nil, report, err
		}
		if len(row) != len(t.Columns) {
			return nil, report, checked.wrong("", report.Rows+1,
				fmt.Sprintf("it has %d values for %d columns", len(row), len(t.Columns)), "")
		}
		err = checked.row(func(i int) (string, int, error) {
			text, ok := textOf(&s.columns[i], row[at[i]])
			if ok {
				return text, report.Rows, nil
			}
			return "", 0, checked.wrong(s.columns[i].Name, report.Rows, "the value is of a type, "+
				nameOf(row[at[i]])+", that the column does not take",
				"give a number or a text instead, such as the year of a date")
		})
		if err != nil {
			return nil, report, err
		}
	}
	return checked.result()
}

// placesOf finds the columns in those of a table.
func (s *Schema) placesOf(t Table) (at []int, err error) {
	for _, c := range s.columns {
		k := slices.Index(t.Columns, c.Name)
		switch {
		case k < 0:
			return nil, &RowsError{File: t.Name, Column: c.Name, Reason: "there is no such column",
				Advice: "use that name, or correct the name in the job"}
		case slices.Contains(t.Columns[k+1:], c.Name):
			return nil, &RowsError{File: t.Name, Column: c.Name, Reason: "there are two columns of the name",
				Advice: "leave one out"}
		}
		at = append(at, k)
	}
	return at, nil
}

// textOf writes a value for a column as a CSV file has it, and reports whether its type is one that
// the column takes.
func textOf(c *job.Column, value any) (text string, ok bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	case float32:
		return decimal(float64(v), 32), true
	case float64:
		return decimal(v, 64), true
	case bool:
		return boolean(c, v), true
	case time.Time:
		return moment(v), !c.Numeric()
	}
	return "", false
}

// decimal writes a number by the fewest digits that say it, without an exponent unless it is large.
func decimal(x float64, bits int) string {
	if math.Abs(x) < 1e21 {
		return strconv.FormatFloat(x, 'f', -1, bits)
	}
	return strconv.FormatFloat(x, 'g', -1, bits)
}

// boolean writes a truth as the column does.
func boolean(c *job.Column, v bool) string {
	if c.Numeric() {
		return map[bool]string{true: "1", false: "0"}[v]
	}
	text := strconv.FormatBool(v)
	for _, word := range c.Categories {
		if strings.EqualFold(word, text) {
			return word
		}
	}
	return text
}

// moment writes a date, with the time of day unless that is midnight.
func moment(t time.Time) string {
	if hour, minute, second := t.Clock(); hour+minute+second+t.Nanosecond() == 0 {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02 15:04:05.999999999")
}

// nameOf names the type of a value for people.
func nameOf(value any) string {
	switch value.(type) {
	case time.Time:
		return "a date"
	case []byte:
		return "bytes"
	}
	return fmt.Sprintf("%T", value)
}
