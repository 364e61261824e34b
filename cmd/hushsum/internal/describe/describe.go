// Package describe has the command rows, which says how a source of rows is read and what it holds.
package describe

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/query/sources"
	"github.com/hushsum/hushsum/table"
)

const about = `Usage: hushsum rows SOURCE [flags]

Reads the rows of SOURCE as 'hushsum query' and 'hushsum join' read them, and
says what it found: the form and how the text is written, and for each column
its type, how many rows lack a value, and the least and the most number. Nothing
leaves this machine, and no other value is shown. SOURCE is

  a file     CSV, also compressed by gzip; Parquet; SQLite, with --sql if it has
             several tables
  an address postgres://user@host/database, all parts optional, with --sql
  env:NAME   such an address in a variable of the environment, with its password

What cannot be read exactly is refused: standard error says where, and what to
do. The description then covers the rows before that place. A column that cannot
be read, such as a nested one of a Parquet file, does not end the rows: its line
says why, and a job that does not use the column reads the file. A CSV file
whose first line has numbers alone is taken to have no header, as files for
training have none; --bare says so of another.
`

const aboutJSON = `With --json there is one object:
  source        as called
  form          CSV, Parquet, SQLite or PostgreSQL
  encoding      of CSV: UTF-8
  separator     of CSV: a comma, a semicolon or a tab; "" if there is one column
  mark, gzip    of CSV: whether a byte-order mark begins it, and whether it is
                compressed
  header        of CSV: whether the first line names the columns
  sql           the statement that selected the rows, if there is one
  rows          how many were read
  columns       a list of objects:
    name
    type        whole, number, text, truth, date, empty: no row has a value, or
                none: the column cannot be read
    missing     rows without a value
    least, most of numbers
    different   of texts: how many differ, 1,000 at most
    numbers     of texts: how many are numbers, if some are
    other       then the line, or the row, of the first that is none
    refusal     why the column cannot be read, as below; missing if it can
  refusal       the first refusal, or null: line or row from 1, column, reason
                and advice, of which those that are known are there
`

func manual() *cli.Manual {
	return &cli.Manual{
		Takes:  "It takes one SOURCE, and flags.",
		About:  about,
		Topics: []cli.Topic{cli.JSONHelp(aboutJSON)},
		Codes: `Exit codes: 0 all rows were read, 1 something was refused, 2 incorrect usage, 130
interrupted, 143 ended by SIGTERM.
`,
		Examples: []string{
			"hushsum rows examples/queries/census.csv",
			"hushsum rows study.db --sql 'SELECT age, sex FROM person' --json",
		},
	}
}

// Command returns the command rows.
func Command() cli.Command {
	return cli.Command{Name: "rows", About: "say how a file of rows is read", Run: run}
}

func run(ctx context.Context, args []string, std cli.Streams) int {
	var source sources.Source
	var asJSON bool
	flags := flag.NewFlagSet("rows", flag.ContinueOnError)
	flags.StringVar(&source.SQL, "sql", "", "`STATEMENT` that selects the rows of a database")
	flags.StringVar(&source.Header, "header", "",
		"`NAMES` of the columns, separated by commas, for CSV files without a header")
	flags.BoolVar(&source.Bare, "bare", false, "the first line of a CSV file is a row")
	flags.BoolVar(&asJSON, "json", false, "print JSON instead of text")
	operands, code, ok := cli.ParseOperands(flags, manual(), 1, args, std)
	if !ok {
		return code
	}
	wrong := func(cause, advice string) int {
		return cli.WrongUsage(flags, &cli.Problem{Cause: cause, Advice: advice}, std)
	}
	switch {
	case len(operands) == 0:
		return wrong("which rows?", "Name a file, or the address of a database.")
	case source.Bare && source.Header != "":
		return wrong("--header and --bare contradict each other",
			"Leave one out.")
	}
	source.Rows = operands[0]
	d, err := source.Describe(ctx)
	if ctx.Err() != nil {
		return cli.Interrupted("rows", std)
	}
	if asJSON {
		show.JSON(std, object(source.Rows, d, err))
	} else if d != nil {
		write(&show.Screen{Std: std}, source.Rows, d)
	}
	if err == nil {
		return cli.ExitOK
	}
	var refused *table.Error
	var failed *fault.Error
	switch {
	case errors.As(err, &refused):
		bare := *refused
		bare.Advice = ""
		err = &cli.Problem{Cause: strings.TrimPrefix(bare.Error(), "table: "),
			Advice: cli.Sentence(refused.Advice), Err: err}
	case errors.As(err, &failed):
		err = &cli.Problem{Cause: failed.Reason, Advice: cli.Sentence(failed.Advice), Err: err}
	}
	return cli.Failed("rows", err, std)
}

// described holds the output of --json.
type described struct {
	Source    string       `json:"source"`
	Form      sources.Form `json:"form,omitempty"`
	Encoding  string       `json:"encoding,omitempty"`
	Separator *string      `json:"separator,omitempty"`
	Mark      *bool        `json:"mark,omitempty"`
	Gzip      *bool        `json:"gzip,omitempty"`
	Header    *bool        `json:"header,omitempty"`
	SQL       string       `json:"sql,omitempty"`
	*table.Description
	Refusal *table.Refusal `json:"refusal"`
}

// object makes the output of --json.
func object(source string, d *sources.Description, err error) *described {
	out := &described{Source: source}
	if d != nil {
		out.Form, out.SQL, out.Description = d.Form, d.SQL, d.Description
		if t := d.Text; t != nil {
			out.Encoding, out.Mark, out.Gzip, out.Header = "UTF-8", &t.Mark, &t.Gzip, &t.Named
			out.Separator = new(string)
			if t.Separator != 0 {
				*out.Separator = string(t.Separator)
			}
		}
	}
	var refused *table.Error
	var failed *fault.Error
	switch {
	case errors.As(err, &refused):
		out.Refusal = refused.Refusal()
	case errors.As(err, &failed):
		out.Refusal = &table.Refusal{Reason: failed.Reason, Advice: failed.Advice}
	case err != nil:
		out.Refusal = &table.Refusal{Reason: err.Error()}
	}
	return out
}

// form says how rows are stored.
func form(d *sources.Description) string {
	t := d.Text
	if t == nil {
		return string(d.Form)
	}
	text := "CSV in UTF-8"
	if t.Mark {
		text += " with a byte-order mark"
	}
	switch t.Separator {
	case 0:
		text += ", one column"
	case ',':
		text += ", separated by commas"
	case ';':
		text += ", separated by semicolons"
	case '\t':
		text += ", separated by tabs"
	}
	if t.Gzip {
		text += ", compressed by gzip"
	}
	return text
}

// write prints a description.
func write(s *show.Screen, source string, d *sources.Description) {
	s.Field("source", "%s", source)
	s.Field("form", "%s", form(d))
	switch {
	case d.Text != nil && d.Text.Named:
		s.Field("header", "the first line names the columns")
	case d.Text != nil:
		s.Field("header", "none: the first line is a row, as files for training have it")
	case d.SQL != "":
		s.Field("sql", "%s", d.SQL)
	}
	s.Field("rows", "%s", show.Grouped(d.Rows))
	s.Printf("\n%-24s %-6s %9s  %s\n", "column", "type", "missing", "values")
	for _, c := range d.Columns {
		name := []rune(c.Name)
		if len(name) > 24 {
			name = append(name[:23], '…')
		}
		line := fmt.Sprintf("%-24s %-6s %9s  %s", string(name), c.Type, show.Grouped(c.Missing),
			values(&c))
		s.Printf("%s\n", strings.TrimRight(line, " "))
	}
}

// values says what a column has.
func values(c *table.Column) string {
	switch {
	case c.Refusal != nil:
		text := "refused: " + c.Refusal.Reason
		if c.Refusal.Row > 0 {
			text = fmt.Sprintf("refused at row %d: %s", c.Refusal.Row, c.Refusal.Reason)
		}
		return text
	case c.Least != nil:
		number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
		return number(*c.Least) + " to " + number(*c.Most)
	case c.Different == 0:
		return ""
	}
	text := show.Grouped(c.Different)
	if c.Different == table.MostDifferent {
		text += " or more"
	}
	if text += " different"; c.Numbers > 0 {
		text += fmt.Sprintf("; %s, but none at %d", show.Plural(c.Numbers, "number"), c.Other)
	}
	return text
}
