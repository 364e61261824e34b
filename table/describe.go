package table

import (
	"math"
	"strings"
	"time"
)

// The types of columns.
const (
	typeWhole  = "whole"  // numbers without a fraction
	typeNumber = "number" // numbers
	typeText   = "text"
	typeTruth  = "truth" // true or false
	typeDate   = "date"
	typeEmpty  = "empty" // no row has a value
	typeNone   = "none"  // the column is refused
)

// Column describes the values of a column, of which it shows none but the least and the most.
type Column struct {
	Name      string   `json:"name"`
	Type      string   `json:"type"`
	Missing   int      `json:"missing"` // rows without a value
	Least     *float64 `json:"least,omitempty"`
	Most      *float64 `json:"most,omitempty"`
	Different int      `json:"different,omitempty"` // texts; at most as many as are counted
	Numbers   int      `json:"numbers,omitempty"`   // of the values of a text
	Other     int      `json:"other,omitempty"`     // the line or row of its first that is no number
	Refusal   *Refusal `json:"refusal,omitempty"`   // why the column cannot be read
	counts    [5]int
	seen      map[string]bool
}

// Refusal says what was refused, as an [Error] does; where it is known.
type Refusal struct {
	Line   int    `json:"line,omitempty"`
	Row    int    `json:"row,omitempty"`
	Column string `json:"column,omitempty"`
	Reason string `json:"reason"`
	Advice string `json:"advice,omitempty"`
}

// MostDifferent is how many texts of a column are told apart.
const MostDifferent = 1000

// Description says what a table holds.
type Description struct {
	Rows    int      `json:"rows"`
	Columns []Column `json:"columns"`
}

// Describe reads all rows of a table. With an error of the rows, which it returns unchanged, comes
// the description of those before it. A column that is refused does not end the rows: the error of
// the first of them is returned with the description of all.
func Describe(t *Table) (*Description, error) {
	d := &Description{Columns: make([]Column, len(t.Columns))}
	for i, name := range t.Columns {
		d.Columns[i].Name, d.Columns[i].seen = name, map[string]bool{}
	}
	var failed error
	refused := make([]*Error, len(t.Columns))
	for row, err := range t.Rows {
		if err == nil && len(row) != len(t.Columns) {
			err = t.Wrong(d.Rows+1, -1, nil, "", "it has %d values for %d columns", len(row), len(t.Columns))
		}
		if failed = err; err != nil {
			break
		}
		d.Rows++
		for i, value := range row {
			if refused[i] == nil && !d.Columns[i].add(value, d.Rows) {
				if wrong, is := value.(*Error); is {
					refused[i] = wrong
				} else {
					reason, advice := NotTaken(value)
					refused[i] = t.Wrong(d.Rows, i, value, advice, "%s", reason)
				}
			}
		}
	}
	for i, wrong := range refused {
		if wrong == nil {
			d.Columns[i].settle(d.Rows)
			continue
		}
		d.Columns[i] = Column{Name: t.Columns[i], Type: typeNone, Refusal: wrong.Refusal()}
		d.Columns[i].Refusal.Column = ""
		if failed == nil {
			failed = wrong
		}
	}
	return d, failed
}

// Places of counts.
const (
	ofWhole = iota
	ofNumbers
	ofWords
	ofTruths
	ofDates
)

// add counts a value of a row, and reports whether its type is one that columns have.
func (c *Column) add(value any, row int) bool {
	switch v := value.(type) {
	case nil:
		c.Missing++
	case *Field:
		if v.Line > 0 {
			row = v.Line
		}
		c.word(v.Text, row)
	case string:
		c.word(v, row)
	case bool:
		c.counts[ofTruths]++
	case time.Time:
		c.counts[ofDates]++
	case int64:
		c.number(float64(v))
	case uint64:
		c.number(float64(v))
	case float32:
		c.float(float64(v), row)
	case float64:
		c.float(v, row)
	default:
		return false
	}
	return true
}

// float counts a number, or what is none.
func (c *Column) float(x float64, row int) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		c.other("no finite number", row)
		return
	}
	c.number(x)
}

// number counts a number.
func (c *Column) number(x float64) {
	if x == math.Trunc(x) {
		c.counts[ofWhole]++
	} else {
		c.counts[ofNumbers]++
	}
	if c.Least == nil {
		c.Least, c.Most = &x, new(float64)
		*c.Most = x
	}
	*c.Least, *c.Most = min(*c.Least, x), max(*c.Most, x)
}

// word counts a text.
func (c *Column) word(text string, row int) {
	if text = strings.TrimSpace(text); text == "" {
		c.Missing++
	} else if x, ok := Number(text); ok {
		c.number(x)
		c.note(text)
	} else {
		c.other(text, row)
	}
}

// other counts a text that is no number.
func (c *Column) other(text string, row int) {
	if c.counts[ofWords]++; c.Other == 0 {
		c.Other = row
	}
	c.note(text)
}

// note counts different texts.
func (c *Column) note(text string) {
	if len(c.seen) < MostDifferent && !c.seen[text] {
		c.seen[strings.Clone(text)] = true
	}
}

// settle finds the type.
func (c *Column) settle(rows int) {
	numbers := c.counts[ofWhole] + c.counts[ofNumbers]
	switch {
	case c.Missing == rows:
		c.Type = typeEmpty
	case numbers+c.Missing == rows && c.counts[ofNumbers] == 0:
		c.Type = typeWhole
	case numbers+c.Missing == rows:
		c.Type = typeNumber
	case c.counts[ofTruths]+c.Missing == rows:
		c.Type = typeTruth
	case c.counts[ofDates]+c.Missing == rows:
		c.Type = typeDate
	default:
		c.Type, c.Different, c.Numbers = typeText, len(c.seen), numbers
		c.Least, c.Most = nil, nil
	}
	if c.Numbers == 0 {
		c.Other = 0
	}
}
