package query

import (
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/table"
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
	// Values are the first different ones, Declared the first categories of the column, and Range the
	// least and the most of its numbers.
	Values   []string  `json:"values,omitempty"`
	Declared []string  `json:"declared,omitempty"`
	Range    []float64 `json:"range,omitempty"`
}

// Report says what was found while reading a file or a table. It is for the party alone.
type Report struct {
	File     string    `json:"file"`
	Table    bool      `json:"table,omitempty"` // lines are numbers of rows, from 1
	Rows     int       `json:"rows"`
	Findings []Finding `json:"findings"`
}

// mostLines is how many lines a finding names, and mostValues how many values.
const (
	mostLines  = 5
	mostValues = 3
)

// note counts something at a line: a value, unless it is missing.
func (r *Report) note(column *job.Column, what string, line int, text string) {
	k := slices.IndexFunc(r.Findings, func(f Finding) bool {
		return f.Column == column.Name && f.What == what
	})
	if k < 0 {
		k = len(r.Findings)
		r.Findings = append(r.Findings, Finding{Column: column.Name, What: what})
	}
	f := &r.Findings[k]
	if f.Rows++; len(f.Lines) < mostLines {
		f.Lines = append(f.Lines, line)
	}
	if what == missing || column.Type == "text" { // whose words cannot be printed
		return
	}
	if column.Numeric() {
		f.Range = column.Range
	} else if f.Declared == nil {
		f.Declared = slices.Clone(column.Categories[:min(mostLines, len(column.Categories))])
	}
	if text = strings.TrimSpace(text); len(f.Values) < mostValues && !slices.Contains(f.Values, text) {
		f.Values = append(f.Values, strings.Clone(text))
	}
}

// count returns how many rows have no value in a column.
func (r *Report) count(column string) (without int) {
	for _, f := range r.Findings {
		if f.Column == column && (f.What == missing || f.What == unknown) {
			without += f.Rows
		}
	}
	return without
}

// Read reads rows as [Schema.ReadTable] does, from CSV text whose first line names the columns,
// unless header does; file is its name, for messages. See [table.ReadCSV].
func (s *Schema) Read(file string, text io.Reader, header []string) (*Rows, *Report, error) {
	t, err := table.ReadCSV(file, text, table.Hints{Header: header})
	if err != nil {
		return nil, &Report{File: file, Findings: []Finding{}}, err
	}
	return s.ReadTable(*t)
}
