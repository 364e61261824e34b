// Package table reads a party's rows as they are stored, for queries and for training alike: CSV
// text by [ReadCSV], and whatever else by a reader that fills a [Table]. What it cannot read
// exactly it refuses, with a place and what to do about it.
package table

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
)

// Table holds rows of columns, whatever they are stored in.
type Table struct {
	Name    string   // for messages
	Columns []string // in the order of a row's values
	// Text says how rows of CSV text are written; nil: they are of a database, or of a file of another
	// format.
	Text *Dialect

	// Rows yields rows, each with a value for every column: nil where there is none, or a string, a
	// bool, an int64, a uint64, a float32, a float64, a time.Time, or a *Field of CSV text. An *Error
	// in the place of a value refuses its column, of which later rows have nil; who wants the column
	// returns the error. The reader is done with a slice and its fields before it asks for the next,
	// and they may be used again for that. An error ends the rows.
	Rows iter.Seq2[[]any, error]
}

// Field is a value of CSV text.
type Field struct {
	Text string
	Line int // where it begins, from 1; 0: its row has a number, and no line
}

// Dialect says how CSV text is written.
type Dialect struct {
	Separator rune // 0: there is one column
	Mark      bool // a byte-order mark comes first
	Gzip      bool // it is compressed
	Named     bool // the first line names the columns
	Lines     bool // rows are lines; otherwise they have numbers
}

// ErrRows: rows are not as they should be. See [Error].
var ErrRows = errors.New("table: unusable rows")

// Error says what is wrong with rows, and where. It is [ErrRows]. It is for the party that has the
// rows: anyone else who sees it learns something about them, a value among them.
type Error struct {
	File   string
	Line   int    // from 1; 0: it is of no line
	Row    int    // of a table that has no lines, from 1; 0: it is of no row
	Column string // empty: it is of no column
	Reason string
	Advice string // what to do
}

func (e *Error) Error() string {
	where := e.File
	if e.Line > 0 {
		where += fmt.Sprintf(":%d", e.Line)
	}
	if e.Row > 0 {
		where += fmt.Sprintf(": row %d", e.Row)
	}
	if e.Column != "" {
		where += ": " + e.Column
	}
	text := fmt.Sprintf("table: %s: %s", where, e.Reason)
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

// Refusal returns the error as descriptions have it.
func (e *Error) Refusal() *Refusal {
	return &Refusal{e.Line, e.Row, e.Column, e.Reason, e.Advice}
}

// Is makes errors.Is(err, ErrRows) true.
func (e *Error) Is(target error) bool { return target == ErrRows }

// Wrong makes an error about a value of a table, which is in the given row, from 1, of a column.
func (t *Table) Wrong(row, column int, value any, advice, reason string, a ...any) *Error {
	e := &Error{File: t.Name, Row: row, Reason: fmt.Sprintf(reason, a...), Advice: advice}
	if column >= 0 {
		e.Column = t.Columns[column]
	}
	if f, ok := value.(*Field); ok && f.Line > 0 {
		e.Row, e.Line = 0, f.Line
	}
	return e
}

// NotTaken says that a column does not take values of a type, and what to do.
func NotTaken(value any) (reason, advice string) {
	name := fmt.Sprintf("%T", value)
	switch value.(type) {
	case time.Time:
		name = "a date"
	case []byte:
		name = "bytes"
	}
	return "the value is of a type, " + name + ", that the column does not take",
		"give a number or a text instead, such as the year of a date"
}

// mostQuoted is how many characters of a value a message quotes.
const mostQuoted = 40

// Quote returns a value for a message, in quotation marks and cut to a few characters.
func Quote(text string) string {
	for i := range text {
		if i >= mostQuoted {
			return strconv.Quote(text[:i]) + "…"
		}
	}
	return strconv.Quote(text)
}

// mostListed is how many words a message lists.
const mostListed = 6

// List returns words for a message, in quotation marks; of many the first few.
func List(words []string) string {
	var quoted []string
	for _, word := range words[:min(len(words), mostListed)] {
		quoted = append(quoted, Quote(word))
	}
	text := strings.Join(quoted, ", ")
	if more := len(words) - mostListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
