// Package ask has the command query, which asks the queries of a job about rows on this machine: it
// runs all parties here, each with its own rows, over the job's own private sum.
package ask

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/jobs"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/answers"
	"github.com/hushsum/hushsum/query/asking"
	"github.com/hushsum/hushsum/query/sources"
)

const about = `Usage: hushsum query FILE --rows SOURCE [flags]

Asks the queries that FILE, a job, declares. All parties run on this machine,
each with its own rows, and the job's private sum is all that is shared: the
printed answers are computed from that sum. --rows deals the rows of one file to
the parties in a random order, by world.seed; --folder holds a file for each
party, such as party-1.csv. Rows come from

  a file     CSV with a line that names the columns, also compressed by gzip,
             Parquet, or SQLite with --sql; 'hushsum rows' says how it is read
  an address postgres://user@host/database, all parts optional, with --sql
  env:NAME   such an address in a variable of the environment, with its password

All but CSV is read by the program hushsum-rows, next to hushsum or on PATH.
The statement of --sql is run once, and can only read. A password belongs in
such a variable, in PGPASSWORD, or in the file that PGPASSFILE names.

Rows are checked against the job's columns before anything is sent. Standard
error tells their owner what was clipped, dropped, missing or unknown, by column
and line, or by row if the source is not CSV.

With --plan nothing is asked and no rows are needed: it prints what each query
would cost and how accurate its answer would be.
`

const aboutJSON = `With --json there is one array, with an object for each query:
  name, kind    as declared
  value         a number; of a histogram, of quantiles, of a survival curve, of a
                model and of frequent words a list, of a crosstab a list of lists
  interval      least and most of the 95 % interval; lists of them, as of values
  labels        of lists: bins, times, quantiles, columns or words; of a crosstab
                those of both columns
  standard_error of a model: of its numbers as estimates, see the page
  margins       of a crosstab: value and interval of both margins
  unit          rows, or as the column says
  epsilon       what the query would spend if it were the only one; null without
                noise. All together spend at most the job's privacy.epsilon
With --plan it has, next to name, kind and epsilon:
  numbers       of the vector that is summed
  share         of the budget
  margin, of    half of the 95 % interval, and what it counts
  together      a number that queries have in common that are answered together,
                from one measurement of numbers; none: by itself
  alone         the margin that such a query would have by itself
`

func manual() *cli.Manual {
	return &cli.Manual{
		Takes:  "It takes one FILE, and flags.",
		About:  about,
		Topics: []cli.Topic{cli.JSONHelp(aboutJSON)},
		Examples: []string{
			"hushsum query examples/queries/adult.toml --plan",
			"hushsum query examples/queries/adult.toml --rows examples/queries/census.csv",
			"hushsum query study.toml --rows study.db --sql 'SELECT age, sex FROM person'",
			"hushsum query study.toml --folder rows --json --set privacy.epsilon=2",
		},
	}
}

// Command returns the command query.
func Command() cli.Command {
	return cli.Command{Name: "query",
		About: "ask declared queries about many parties' rows",
		Run:   run}
}

// asked holds the arguments of the command line.
type asked struct {
	file, folder string
	rows         sources.Source
	plan, json   bool
	set          jobs.Settings
}

func run(ctx context.Context, args []string, std cli.Streams) int {
	var v asked
	flags := flag.NewFlagSet("query", flag.ContinueOnError)
	flags.StringVar(&v.rows.Rows, "rows", "", "`SOURCE` of the rows to deal to the parties")
	flags.StringVar(&v.folder, "folder", "",
		"`FOLDER` with the rows of each party, in NAME.csv, NAME.parquet or NAME.db")
	flags.StringVar(&v.rows.SQL, "sql", "", "`STATEMENT` that selects the rows of a database")
	flags.StringVar(&v.rows.Header, "header", "",
		"`NAMES` of the columns, separated by commas, for CSV files without a header")
	flags.BoolVar(&v.plan, "plan", false, "print what it would cost and yield, and ask nothing")
	flags.Var(jobs.SetFlag{Settings: &v.set}, "set",
		"`PATH=VALUE` sets a field, overriding the file; repeatable")
	flags.BoolVar(&v.json, "json", false, "print JSON instead of tables")
	operands, code, ok := cli.ParseOperands(flags, manual(), 1, args, std)
	if !ok {
		return code
	}
	wrong := func(cause, advice string) int {
		return cli.WrongUsage(flags, &cli.Problem{Cause: cause, Advice: advice}, std)
	}
	switch {
	case len(operands) == 0:
		return wrong("which file?", "Name a job's file, or - for standard input.")
	case v.rows.Rows != "" && v.folder != "":
		return wrong("--rows and --folder both name a source of rows", "Leave one out.")
	case v.rows.Rows == "" && v.folder == "" && !v.plan:
		return wrong("whose rows?", "Add --rows SOURCE or --folder FOLDER, or --plan to ask nothing.")
	}
	v.file = operands[0]
	err := v.ask(ctx, std)
	switch {
	case err == nil:
		return cli.ExitOK
	case ctx.Err() != nil:
		return cli.Interrupted("query", std)
	case len(job.Errors(err)) > 0:
		return jobs.Failed("query", err, std)
	}
	var rows *query.RowsError
	var source *fault.Error
	switch {
	case errors.Is(err, sources.ErrSource) && errors.As(err, &source):
		err = &cli.Problem{Cause: source.Reason, Advice: cli.Sentence(source.Advice), Err: err}
	case errors.As(err, &rows):
		text := *rows
		text.Advice = ""
		err = &cli.Problem{Cause: strings.TrimPrefix(text.Error(), "table: "),
			Advice: cli.Sentence(rows.Advice), Err: err}
	}
	return cli.Failed("query", err, std)
}

// ask carries out the command line.
func (v *asked) ask(ctx context.Context, std cli.Streams) error {
	name, text, err := jobs.Read(v.file)
	if err != nil {
		return err
	}
	j, err := job.Parse(name, text, v.set.Texts()...)
	if err != nil {
		return err
	}
	if err := asking.Check(j); err != nil {
		return err
	}
	names := j.Names()
	var parties []*query.Rows
	if v.rows.Rows != "" || v.folder != "" {
		if parties, err = v.read(ctx, j, names, std); err != nil {
			return err
		}
		if j.PerRecord() && j.Privacy.Records == 0 {
			for _, own := range parties {
				j.Privacy.Records += own.Len()
			}
		}
	}
	w, err := asking.New(j, names)
	if err != nil {
		return err
	}
	tellUncounted(w.Job, parties, std)
	if v.plan {
		return v.showPlan(w, std)
	}
	if err := w.Run(ctx, parties); err != nil {
		return err
	}
	return v.show(w, std)
}

// read reads the rows of all parties, and reports for each source what its columns say is wrong.
func (v *asked) read(
	ctx context.Context, j *job.Job, names []string, std cli.Streams,
) ([]*query.Rows, error) {
	schema := query.NewSchema(j)
	from := func(source sources.Source) (*query.Rows, error) {
		rows, report, err := source.Read(ctx, schema)
		answers.WriteReport(std.Err, report)
		return rows, err
	}
	if v.rows.Rows != "" {
		rows, err := from(v.rows)
		if err != nil {
			return nil, err
		}
		return rows.Deal(len(names), j.World.Seed), nil
	}
	var parties []*query.Rows
	for _, name := range names {
		source := v.rows
		var err error
		if source.Rows, err = v.fileOf(name); err != nil {
			return nil, err
		}
		switch filepath.Ext(source.Rows) { // settings for the folder's other formats are left out
		case ".csv", ".gz":
			source.SQL = ""
		case ".parquet":
			source.SQL, source.Header = "", ""
		default:
			source.Header = ""
		}
		rows, err := from(source)
		if err != nil {
			return nil, err
		}
		parties = append(parties, rows)
	}
	return parties, nil
}

// fileOf finds a party's file in the folder.
func (v *asked) fileOf(party string) (found string, err error) {
	for _, extension := range sources.Extensions() {
		path := filepath.Join(v.folder, party+extension)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if found != "" {
			return "", &cli.Problem{Cause: found + " and " + path + " are both of " + party,
				Advice: "Leave one of them."}
		}
		found = path
	}
	if found == "" {
		return "", &cli.Problem{Cause: v.folder + " has no file of " + party,
			Advice: "Name it " + party + ".csv, .parquet or .db."}
	}
	return found, nil
}

// tellUncounted prints on standard error how many rows exceed parties.rows. Where noise hides a
// record they count.
func tellUncounted(j *job.Job, parties []*query.Rows, std cli.Streams) {
	all, more := 0, 0
	for _, own := range parties {
		all += own.Len()
		more += max(0, own.Len()-j.Parties.Rows)
	}
	switch {
	case more == 0:
	case j.PerRecord():
		fmt.Fprintf(std.Err, "parties.rows: parties have %s more than the %s each that the job expects, "+
			"and all count\n", show.Plural(more, "row"), show.Grouped(j.Parties.Rows))
	default:
		fmt.Fprintf(std.Err, "parties.rows: %s of %s do not count: only the first %s of each party do\n",
			show.Grouped(more), show.Plural(all, "row"), show.Grouped(j.Parties.Rows))
	}
}
