package query

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/table"
)

// checker gathers the rows of one party, and what is wrong with them.
type checker struct {
	schema  *Schema
	table   *Table
	at      []int // places of the schema's columns in the table
	report  *Report
	rows    *Rows
	block   []float64      // memory for the values of rows to come
	known   map[string]int // places of texts
	refused *RowsError     // the first row that lacks a value that the job wants
	column  *job.Column    // which wants it
}

// blockRows is how many rows have their values in one piece of memory.
const blockRows = 256

// row takes one row.
func (c *checker) row(row []any) error {
	c.report.Rows++
	if len(row) != len(c.table.Columns) {
		return c.table.Wrong(c.report.Rows, -1, nil, "", "it has %d values for %d columns", len(row),
			len(c.table.Columns))
	}
	if c.report.Rows > maxRows {
		return &RowsError{File: c.report.File, Reason: "it has more than ten million rows",
			Advice: "bring a part of them"}
	}
	n := len(c.schema.columns)
	if len(c.block) < n {
		c.block = make([]float64, blockRows*n)
	}
	values := c.block[:n:n]
	c.block = c.block[n:]
	for i := range c.schema.columns {
		column := &c.schema.columns[i]
		from := row[c.at[i]]
		text, line, ok := "", c.report.Rows, true
		if field, is := from.(*table.Field); is {
			if text = field.Text; field.Line > 0 {
				line = field.Line
			}
		} else if refused, is := from.(*table.Error); is {
			return refused
		} else if text, ok = textOf(column, from); !ok {
			reason, advice := table.NotTaken(from)
			return c.table.Wrong(c.report.Rows, c.at[i], from, advice, "%s", reason)
		}
		x, what := c.value(column, text)
		values[i] = x
		if what == "" {
			continue
		}
		c.report.note(column, what, line, text)
		if (what == missing || what == unknown) && column.Missing == "refuse" && c.refused == nil {
			reason, advice := refusal(column, what, text)
			c.refused = c.table.Wrong(c.report.Rows, c.at[i], from, advice, "%s", reason)
			c.column = column
		}
	}
	c.rows.values = append(c.rows.values, values)
	return nil
}

// refusal says why a value is refused, and what to do.
func refusal(column *job.Column, what, text string) (reason, advice string) {
	const must = "the job refuses rows without one"
	switch {
	case what == missing:
		return "the value is missing, and " + must, ""
	case column.Type == "text":
		return "the value is unknown, as it cannot be printed or is not UTF-8, and " + must, ""
	case !column.Numeric():
		return fmt.Sprintf("the value is unknown, as %s is none of %s, and %s",
			table.Quote(strings.TrimSpace(text)), table.List(column.Categories), must), ""
	}
	if x, ok := table.Number(text); ok {
		return fmt.Sprintf("the value is unknown, as %v is not a whole number, and %s", x, must), ""
	}
	why, advice := table.NotNumber(text)
	return fmt.Sprintf("the value is unknown, as %s, and %s", why, must), advice
}

// result returns the rows, unless one of them is refused. What to do about that depends on all
// rows: to drop those without a value is no help where it leaves none.
func (c *checker) result() (*Rows, *Report, error) {
	if c.refused == nil {
		return c.rows, c.report, nil
	}
	n := c.report.count(c.column.Name)
	if n > 1 && n < c.report.Rows {
		c.refused.Reason += fmt.Sprintf("; %d of %d rows are like that", n, c.report.Rows)
	}
	if n > 1 && n == c.report.Rows {
		c.refused.Reason += "; all rows are like that"
		c.refused.Advice = "see whether this is the right column, and whether the job declares it as " +
			"its values are written"
	} else if c.refused.Advice == "" {
		c.refused.Advice = `correct the row, or declare missing = "drop"`
	}
	return nil, c.report, c.refused
}

// value reads one field as value does, and of a text returns where among all it is.
func (c *checker) value(column *job.Column, text string) (x float64, what string) {
	if column.Type != "text" {
		return value(column, text)
	}
	if slices.Contains(column.Blank, strings.TrimSpace(text)) {
		return math.NaN(), missing
	}
	word, what := normalized(text, column.Longest)
	switch {
	case what == missing || what == unknown:
		return math.NaN(), what
	case what == clipped && column.Outside == "drop":
		return math.NaN(), dropped
	}
	k, found := c.known[word]
	if !found {
		if c.known == nil {
			c.known = map[string]int{}
		}
		word, k = strings.Clone(word), len(c.rows.words)
		c.known[word] = k
		c.rows.words = append(c.rows.words, word)
	}
	return float64(k), what
}

// normalized returns a text in the form in which it is compared with others: in lower case, with
// one space for all white space between words and none around them, cut to whole characters of at
// most longest bytes. A text that is not UTF-8, or contains what cannot be printed, is unknown.
// Composed characters, and the characters that compose them, stay different.
func normalized(text string, longest int) (word, what string) {
	if !utf8.ValidString(text) {
		return "", unknown
	}
	word = strings.ToLower(strings.Join(strings.Fields(text), " "))
	if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", unknown
	}
	if len(word) > longest {
		for longest > 0 && !utf8.RuneStart(word[longest]) {
			longest--
		}
		if word, what = strings.TrimRight(word[:longest], " "), clipped; word == "" {
			what = unknown // not a character fits
		}
		return word, what
	}
	if word == "" {
		what = missing
	}
	return word, what
}

// The kinds of findings.
const (
	clipped = "clipped"
	dropped = "dropped"
	missing = "missing"
	unknown = "unknown"
)

// value reads one field, and says what of it is not as it should be.
func value(c *job.Column, text string) (x float64, what string) {
	text = strings.TrimSpace(text)
	if text == "" || slices.Contains(c.Blank, text) {
		what = missing
	} else if !c.Numeric() {
		if k := slices.Index(c.Categories, text); k >= 0 {
			return float64(k), ""
		}
		what = unknown
	} else {
		var ok bool
		if x, ok = table.Number(text); !ok || c.Type == "whole" && x != math.Trunc(x) {
			what = unknown
		}
	}
	switch {
	case what != "" && c.Missing == "category":
		return float64(len(c.Categories)), what
	case what != "":
		return math.NaN(), what
	case x >= c.Range[0] && x <= c.Range[1]:
		return x, ""
	case c.Outside == "drop":
		return math.NaN(), dropped
	}
	return min(max(x, c.Range[0]), c.Range[1]), clipped
}
