package query

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/table"
)

// Table holds rows of named columns.
type Table = table.Table

// Columns returns the names of the columns that rows must have.
func (s *Schema) Columns() (names []string) {
	for _, c := range s.columns {
		names = append(names, c.Name)
	}
	return names
}

// ReadTable reads rows. Columns that the schema lacks are left out. A value counts as its text
// does: nil and the empty text are missing, a bool is 1 or 0 where numbers are expected, otherwise
// true or false, in upper or lower case, and a time is its date, with the time of day unless that
// is midnight, where categories are expected. A value of another type is refused, naming its
// column. The report says what was clipped, dropped, missing or unknown. It fails with a
// [RowsError] if a column is missing or a row lacks a value that the job requires; the report is
// returned with it, and has all that was found, since all rows are read in any case. The error of
// the table's rows is returned unchanged.
func (s *Schema) ReadTable(t Table) (*Rows, *Report, error) {
	report := &Report{File: t.Name, Table: t.Text == nil || !t.Text.Lines, Findings: []Finding{}}
	at, err := s.placesOf(t)
	if err != nil {
		return nil, report, err
	}
	checked := checker{schema: s, table: &t, at: at, report: report, rows: &Rows{}}
	for row, err := range t.Rows {
		if err == nil {
			err = checked.row(row)
		}
		if err != nil {
			return nil, report, err
		}
	}
	return checked.result()
}

// placesOf finds the columns in those of a table.
func (s *Schema) placesOf(t Table) (at []int, err error) {
	wrong := func(c *job.Column, advice, reason string) *RowsError {
		e := &RowsError{File: t.Name, Column: c.Name, Reason: reason, Advice: advice}
		if t.Text != nil && t.Text.Lines {
			e.Line = 1
		}
		return e
	}
	for i := range s.columns {
		c := &s.columns[i]
		k := slices.Index(t.Columns, c.Name)
		switch {
		case k < 0:
			return nil, wrong(c, "use that name, or correct the name in the job",
				"there is no such column"+among(&t))
		case slices.Contains(t.Columns[k+1:], c.Name):
			return nil, wrong(c, "leave one out", "there are two columns of the name")
		}
		at = append(at, k)
	}
	return at, nil
}

// among says which columns a text has, and what separates them.
func among(t *Table) string {
	switch {
	case t.Text == nil || len(t.Columns) == 0:
		return ""
	case t.Text.Separator == 0:
		return ", but one alone, " + table.List(t.Columns)
	}
	return " among " + table.List(t.Columns)
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
// Infinities have words, which are no numbers to who reads the text.
func decimal(x float64, bits int) string {
	switch {
	case math.IsInf(x, 1):
		return "Inf"
	case math.Abs(x) < 1e21:
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
