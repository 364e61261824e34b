package query

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hushsum/hushsum/job"
)

// maxRows is the most rows that are read of a file.
const maxRows = 10_000_000

// Schema reads rows as a job's columns describe them.
type Schema struct{ columns []job.Column }

// NewSchema returns the schema of a valid job.
func NewSchema(j *job.Job) *Schema { return &Schema{j.WithDefaults().Column} }

// Rows holds the rows of one party in the form of the schema: numbers within their range, for
// categories the place of a word, and texts.
type Rows struct {
	values [][]float64 // by row and column; NaN is no value
	words  []string    // texts: a value is the place of one
}

// Len returns how many rows there are.
func (r *Rows) Len() int { return len(r.values) }

// Deal deals the rows to the given number of parties in a random order that follows from the
// seed, about equally many to each. It protects nothing, and is for simulations.
func (r *Rows) Deal(parties int, seed uint64) []*Rows {
	order := rand.New(rand.NewPCG(seed, 0x726f7773)).Perm(len(r.values))
	dealt := make([]*Rows, parties)
	for i := range dealt {
		dealt[i] = &Rows{words: r.words}
		for _, k := range order[i*len(order)/parties : (i+1)*len(order)/parties] {
			dealt[i].values = append(dealt[i].values, r.values[k])
		}
	}
	return dealt
}

// Finding says something about a column.
type Finding struct {
	Column string `json:"column"`
	What   string `json:"what"` // clipped, dropped, missing or unknown
	Rows   int    `json:"rows"`
	Lines  []int  `json:"lines"` // of the first of them; of a table, numbers of rows
}

// Report says what was found while reading a file or a table. It is for the party alone.
type Report struct {
	File     string    `json:"file"`
	Table    bool      `json:"table,omitempty"` // a [Table]: lines are numbers of rows, from 1
	Rows     int       `json:"rows"`
	Findings []Finding `json:"findings"`
}

// mostLines is how many lines a finding names.
const mostLines = 5

// note counts something at a line.
func (r *Report) note(column, what string, line int) {
	k := slices.IndexFunc(r.Findings, func(f Finding) bool {
		return f.Column == column && f.What == what
	})
	if k < 0 {
		k = len(r.Findings)
		r.Findings = append(r.Findings, Finding{Column: column, What: what})
	}
	f := &r.Findings[k]
	if f.Rows++; len(f.Lines) < mostLines {
		f.Lines = append(f.Lines, line)
	}
}

// Read reads rows from CSV text, with commas, whose first line names the columns, unless header
// does; file is its name, for messages. Columns that the schema lacks are left out. The report
// says what was clipped, dropped, missing or unknown. It fails with a [RowsError] if a column is
// missing, a row lacks a value that the job requires, or the text is not CSV; the report is
// returned with it, and has all that was found. It reads to the end in any case.
func (s *Schema) Read(file string, text io.Reader, header []string) (*Rows, *Report, error) {
	in := csv.NewReader(text)
	in.TrimLeadingSpace, in.ReuseRecord = true, true
	report, rows := &Report{File: file, Findings: []Finding{}}, &Rows{}
	broken := func(err error) error {
		wrong := &RowsError{File: file, Reason: "it cannot be read"}
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			wrong.Line, wrong.Reason = parse.Line, parse.Err.Error()
		}
		return wrong
	}
	if header == nil {
		first, err := in.Read()
		if err != nil {
			return nil, report, broken(err)
		}
		for _, name := range first {
			header = append(header, strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		}
	}
	at, err := s.places(file, header)
	if err != nil {
		return nil, report, err
	}
	in.FieldsPerRecord = len(header)
	checked := checker{schema: s, report: report, rows: rows}
	for {
		record, err := in.Read()
		if err == io.EOF {
			return checked.result()
		}
		if err != nil {
			return nil, report, broken(err)
		}
		err = checked.row(func(i int) (string, int, error) {
			line, _ := in.FieldPos(at[i])
			return record[at[i]], line, nil
		})
		if err != nil {
			return nil, report, err
		}
	}
}

// checker gathers the rows of one party, and what is wrong with them.
type checker struct {
	schema  *Schema
	report  *Report
	rows    *Rows
	known   map[string]int // places of texts
	refused *RowsError     // the first row that lacks a value that the job wants
}

// row takes one row, of which field returns the text of a column of the schema, and its line.
func (c *checker) row(field func(column int) (text string, line int, err error)) error {
	if c.report.Rows++; c.report.Rows > maxRows {
		return &RowsError{File: c.report.File, Reason: "it has more than ten million rows",
			Advice: "bring a part of them"}
	}
	values := make([]float64, len(c.schema.columns))
	for i := range c.schema.columns {
		column := &c.schema.columns[i]
		text, line, err := field(i)
		if err != nil {
			return err
		}
		x, what := c.value(column, text)
		values[i] = x
		if what == "" {
			continue
		}
		c.report.note(column.Name, what, line)
		if (what == missing || what == unknown) && column.Missing == "refuse" && c.refused == nil {
			c.refused = c.wrong(column.Name, line,
				fmt.Sprintf("the value is %s, and the job refuses rows without one", what),
				`correct the row, or declare missing = "drop"`)
		}
	}
	c.rows.values = append(c.rows.values, values)
	return nil
}

// wrong returns an error at a line, or at a row of a table.
func (c *checker) wrong(column string, line int, reason, advice string) *RowsError {
	err := &RowsError{File: c.report.File, Column: column, Reason: reason, Advice: advice}
	if c.report.Table {
		err.Row = line
	} else {
		err.Line = line
	}
	return err
}

// result returns the rows, unless one of them is refused.
func (c *checker) result() (*Rows, *Report, error) {
	if c.refused != nil {
		return nil, c.report, c.refused
	}
	return c.rows, c.report, nil
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

// places finds the columns in the header.
func (s *Schema) places(file string, header []string) (at []int, err error) {
	for _, c := range s.columns {
		k := slices.Index(header, c.Name)
		wrong := &RowsError{File: file, Line: 1, Column: c.Name}
		switch {
		case k < 0:
			wrong.Reason = "there is no such column in the header"
			wrong.Advice = "name it there, or correct the name in the job"
			return nil, wrong
		case slices.Contains(header[k+1:], c.Name):
			wrong.Reason = "it is in the header twice"
			return nil, wrong
		}
		at = append(at, k)
	}
	return at, nil
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
		var err error
		x, err = strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || c.Type == "whole" && x != math.Trunc(x) {
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
