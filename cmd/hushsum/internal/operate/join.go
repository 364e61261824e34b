package operate

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/people"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/answers"
	"github.com/hushsum/hushsum/query/sources"
	"github.com/hushsum/hushsum/training"
)

const joinAbout = `Usage: hushsum join FILE --identity FILE --server ADDRESS --coordinator KEY

Takes part in the job that FILE declares, which 'hushsum coordinate' runs at
ADDRESS. The coordinator learns the job's private sums, and nothing else about
this party. All sides need the same job and roster; otherwise they refuse each
other and report the difference.

This party contributes one of
  --vector  a file of numbers, .csv or .json, which is read again in each round
  --run     a program that gets {"round": N, "model": [...]} on standard input in
            each round, and prints a list of numbers
  --rows    rows: a CSV file, a Parquet file, or with --sql a SQLite file or the
            address of a PostgreSQL database. Where the job asks queries, the
            first line of CSV names the columns; where it declares how a model
            is trained, no line does, and the class is the last column. 'hushsum
            rows' says how a file is read
For a job that weights or masks vectors, {"vector": [...], "samples": N} takes
the place of the list, and for one that sums metrics {"vector": [...], "loss":
X, "accuracy": X}. What a program prints is as secret as the rows that it
comes from.

With --policy it takes part only in a job within this party's own terms, which
docs/service-join.md lists. What the policy bounds by the month or the year is
counted in a book, sealed under --key: name one --book and one --key for all
jobs of this party, those of hushsumd too.

It can be killed at any time: started again with the same command, it resumes
from its folder, which is for one party of one job. It redials until the job is
done. In a job with noise it answers a round without a vector with zeros and
noise, which only this log reports.
`

const joinJSON = `With --json there is one object:
  digest    of the job with its roster, 64 hexadecimal digits
  model     the last model, a list; not with --out
`

// joining holds the command line of a party.
type joining struct {
	side
	party
	vector, program, out string
	rows                 sources.Source
	policy, book         string
	limit                time.Duration
	least                uint64
	spent                int
}

// party holds what parties and members know of the coordinator.
type party struct{ server, coordinator string }

func (p *party) flags(f *flag.FlagSet) {
	f.StringVar(&p.server, "server", "", "`ADDRESS` of the coordinator, host:port; required")
	f.StringVar(&p.coordinator, "coordinator", "", "`KEY` of the coordinator, 64 hexadecimal digits as it "+
		"prints them, or the file of its identity; required")
}

// wrong says what is missing.
func (p *party) wrong() *cli.Problem {
	switch {
	case p.server == "":
		return &cli.Problem{Cause: "the coordinator's address is missing", Advice: "Add --server " +
			"HOST:PORT."}
	case p.coordinator == "":
		return &cli.Problem{Cause: "the coordinator's key is missing",
			Advice: "Add --coordinator KEY, as its owner gives it."}
	}
	return nil
}

// dialer returns a dialer that reaches the coordinator.
func (p *party) dialer(identity ed25519.PrivateKey) (hushsum.Dialer, error) {
	key, err := people.KeyOf(p.coordinator)
	if err != nil {
		return nil, fmt.Errorf("--coordinator: %w", err)
	}
	return &hushsum.TCPDialer{Address: p.server, Identity: identity, Coordinator: key}, nil
}

// Join returns the command join.
func Join() cli.Command {
	return cli.Command{Name: "join", About: "take part in a job across machines", Run: join}
}

func join(ctx context.Context, args []string, std cli.Streams) int {
	var j joining
	flags := flag.NewFlagSet("join", flag.ContinueOnError)
	j.side.flags(flags, "hushsum-party")
	j.party.flags(flags)
	flags.StringVar(&j.vector, "vector", "", "`FILE` of numbers, .csv or .json")
	flags.StringVar(&j.program, "run", "", "`COMMAND` for each round, run by the shell")
	flags.DurationVar(&j.limit, "run-time", 10*time.Minute, "longest `TIME` that it may take")
	flags.StringVar(&j.rows.Rows, "rows", "", "`FILE` of this party's rows, or postgres://…")
	flags.StringVar(&j.rows.SQL, "sql", "", "`STATEMENT` that selects its rows from a database")
	flags.StringVar(&j.rows.Header, "header", "",
		"`NAMES` of the columns, separated by commas, for queries of a CSV file without a header")
	flags.StringVar(&j.out, "out", "", "`FILE` for the last model, .csv or .json")
	flags.StringVar(&j.policy, "policy", "", "TOML `FILE` with the terms that this party insists on")
	flags.StringVar(&j.book, "book", "", "`FILE` of what this party spends in all its jobs; default: "+
		"book in the folder")
	flags.IntVar(&j.spent, "spent", 0, "`ROUNDS` to count as spent, if the folder is lost for good")
	flags.Uint64Var(&j.least, "least-number", 0, "with --spent: `NUMBER` above those of all "+
		"sessions so far, as the coordinator reports it")
	manual := &cli.Manual{
		Takes:  "It takes one FILE, and flags.",
		About:  joinAbout,
		Topics: []cli.Topic{cli.JSONHelp(joinJSON)},
		Codes:  codes,
		Examples: []string{
			"hushsum join job.toml --identity north.pem --server sums.example.org:7433 \\",
			"  --coordinator 3d40...660c --vector north.csv",
			"hushsum join job.toml --identity north.pem --server 127.0.0.1:7433 \\",
			"  --coordinator coordinator.pem --run './train north'",
		},
	}
	wrong := func() *cli.Problem {
		sources := 0
		for _, given := range []string{j.vector, j.program, j.rows.Rows} {
			if given != "" {
				sources++
			}
		}
		problem := j.party.wrong()
		switch {
		case problem != nil:
			return problem
		case sources != 1:
			return &cli.Problem{Cause: "nothing says what this party contributes",
				Advice: "Give one of --vector, --run and --rows."}
		case !written(j.out):
			return &cli.Problem{Cause: "--out: the name of a vector file must end with .json or .csv"}
		}
		return nil
	}
	return j.command(ctx, flags, manual, args, std, wrong,
		func(ctx context.Context) error { return j.run(ctx, std) })
}

// run takes part until the job is done.
func (j *joining) run(ctx context.Context, std cli.Streams) error {
	o, err := j.settle()
	if err != nil {
		return err
	}
	number, found := o.files.Roster.Index(o.identity.Public().(ed25519.PublicKey))
	if !found {
		return &cli.Problem{Cause: "this identity's key is not in the roster",
			Advice: "Have it added to everyone's roster, or give another --identity."}
	}
	p := hushsum.Participant[float64]{
		Job: o.Settled, Identity: o.identity, Store: o.store, Key: o.key, Counter: o.countedBy,
		Progress: j.partyProgress(std),
	}
	if j.spent != 0 || j.least != 0 {
		p.Lost = &hushsum.Lost{Rounds: j.spent, Number: j.least}
	}
	p.Book = &consent.Book{File: cmp.Or(j.book, filepath.Join(j.state, "book")), Key: o.key}
	if j.policy != "" {
		if p.Policy, err = consent.ReadPolicy(j.policy); err != nil {
			return err
		}
	}
	if p.Dialer, err = j.dialer(o.identity); err != nil {
		return err
	}
	if err := j.source(ctx, &p, o, number, std); err != nil {
		return err
	}
	model, err := p.Run(ctx)
	if err != nil {
		return err
	}
	model = o.weights(model)
	if j.out != "" {
		if err := writeVector(j.out, model); err != nil {
			return err
		}
		model = nil
	}
	if j.json {
		digest := o.Digest()
		show.JSON(std, struct {
			Digest string    `json:"digest"`
			Model  []float64 `json:"model,omitempty"`
		}{fmt.Sprintf("%x", digest), model})
		return nil
	}
	fmt.Fprintln(std.Out, "the job is done")
	return nil
}

// source has the participant contribute what the command line says.
func (j *joining) source(
	ctx context.Context, p *hushsum.Participant[float64], o *settled, number int, std cli.Streams,
) error {
	switch asks, trains := o.declared.Asks(), o.Trains(); {
	case j.rows.Rows != "" && asks:
		plan, err := query.New(o.Settled)
		if err != nil {
			return err
		}
		own, err := answers.ReadRows(std.Err, o.declared, plan,
			func(s *query.Schema) (*query.Rows, *query.Report, error) { return j.rows.Read(ctx, s) })
		if err != nil {
			return err
		}
		vectors, err := plan.Vectors(own)
		if err != nil {
			return err
		}
		p.Work = func(_ context.Context, r hushsum.Round[float64]) (hushsum.Update[float64], error) {
			vector, err := vectors(r.Model)
			return hushsum.Update[float64]{Vector: vector, Samples: 1}, err
		}
		return nil
	case j.rows.Header != "":
		return errors.New("--header is for jobs that ask queries; leave it out")
	case j.rows.SQL != "" && !trains:
		return errors.New("--sql is for jobs that ask queries or declare training; leave it out")
	case j.rows.Rows != "" && trains:
		own, err := j.rows.ReadTraining(ctx, o.declared)
		if err != nil {
			return err
		}
		p.Work, err = training.Submit(o.Settled, number, own,
			hushsum.FileStore(filepath.Join(j.state, "variates")))
		return err
	case j.rows.Rows != "":
		return errors.New("the job neither asks queries nor declares training: give --vector or --run " +
			"instead of --rows")
	case asks || trains:
		return errors.New("the job says how rows are used: give --rows instead of --vector or --run")
	}
	bring := func(context.Context, uint64, []float64) (contribution, error) {
		return readVector(j.vector)
	}
	if j.program != "" {
		run := &program{line: j.program, limit: j.limit, errors: std.Err}
		bring = func(ctx context.Context, round uint64, model []float64) (contribution, error) {
			return run.run(ctx, struct {
				Round uint64    `json:"round"`
				Model []float64 `json:"model"`
			}{round, model})
		}
	} else if err := o.checkVector(j.vector); err != nil { // before others wait for it
		return err
	}
	p.Work = func(
		ctx context.Context, r hushsum.Round[float64],
	) (u hushsum.Update[float64], err error) {
		c, err := bring(ctx, r.Number, r.Model)
		if err != nil {
			return u, err
		}
		return c.update(o.declared)
	}
	return nil
}

// checkVector fails if the job has no use for a file's vector.
func (s *settled) checkVector(name string) error {
	c, err := readVector(name)
	if err != nil {
		return err
	}
	of := s.Job()
	switch most := of.MaxRows(); {
	case len(c.Vector) != s.Length():
		return fmt.Errorf("%s has %d numbers, and the job takes %d", name, len(c.Vector), s.Length())
	case most > 0 && c.Samples < 1:
		return fmt.Errorf("%s: samples is %d, and the job weighs means: give 1 or more", name, c.Samples)
	case of.Metrics.Share > 0 && (c.Loss == nil || c.Accuracy == nil):
		_, err := c.update(of)
		return fmt.Errorf("%s: %w", name, err)
	case s.Mechanism() != nil: // clips, whatever the numbers are
		return nil
	}
	vector := c.Vector
	if clip := of.Privacy.Clip; clip > 0 {
		if vector, _, err = aggregation.Clip(vector, clip); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for i, x := range vector {
		if math.Abs(x) > of.Sum.Range {
			return fmt.Errorf("%s: number %d is outside ±%v, the job's sum.range: all sides need a job "+
				"with a larger one", name, i+1, of.Sum.Range)
		}
	}
	return nil
}
