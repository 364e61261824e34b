package operate

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/answers"
	"github.com/hushsum/hushsum/training"
)

const coordinateAbout = `Usage: hushsum coordinate FILE --identity FILE [flags]

Runs the job that FILE declares, for parties that take part with 'hushsum join':
it forms sessions among connected parties, holds the rounds, and learns the
sums. It holds no party's secrets. Parties pin its key, which it prints when it
starts.

The next model is the present one, zeros at first, plus the mean of the parties'
vectors; or a list of numbers that the program of --apply prints for {"round":
N, "parties": N, "mean": [...], "model": [...]} on its standard input; or the
one that the job's own training makes. If the job asks queries, the answers are
printed.

It can be killed at any time: started again with the same command, it resumes
from its folder, which is for one job.
`

const coordinateJSON = `With --json there is one object:
  digest    of the job with its roster, 64 hexadecimal digits
  rounds    that were begun
  lost      of these, without a sum
  spent     what was spent at most, as "claim" of 'hushsum account --json';
            null without noise
  model     the last model, a list; not with --out, nor of queries
  answers   of queries, as hushsum query prints them
`

// coordinating holds the command line of a coordinator.
type coordinating struct {
	side
	listen, members, means, out, program string
	step                                 time.Duration
}

// Coordinate returns the command coordinate.
func Coordinate() cli.Command {
	return cli.Command{Name: "coordinate", About: "run a job across machines", Run: coordinate}
}

func coordinate(ctx context.Context, args []string, std cli.Streams) int {
	var c coordinating
	flags := flag.NewFlagSet("coordinate", flag.ContinueOnError)
	c.side.flags(flags, "hushsum-coordinator")
	flags.StringVar(&c.listen, "listen", "127.0.0.1:7433",
		"`ADDRESS` for parties; :7433 means that port on every network")
	flags.StringVar(&c.members, "listen-members", "127.0.0.1:7434", "`ADDRESS` for members of a committee")
	flags.StringVar(&c.program, "apply", "", "`COMMAND` that makes the next model, run by the shell")
	flags.StringVar(&c.means, "means", "", "`FOLDER` for the mean of each round, as round-N.json")
	flags.StringVar(&c.out, "out", "", "`FILE` for the last model, .csv or .json")
	flags.DurationVar(&c.step, "step-time", 0,
		"`TIME` that a step of a round waits for a connected party; default: as the job says, or 30s")
	manual := &cli.Manual{
		Takes:  "It takes one FILE, and flags.",
		About:  coordinateAbout,
		Topics: []cli.Topic{cli.JSONHelp(coordinateJSON)},
		Codes:  codes,
		Examples: []string{
			"hushsum coordinate job.toml --identity coordinator.pem --out mean.csv",
			"hushsum coordinate job.toml --identity coordinator.pem --listen :7433 \\",
			"  --apply ./server --means means",
		},
	}
	wrong := func() *cli.Problem {
		switch {
		case c.step < 0:
			return &cli.Problem{Cause: "--step-time: a time above 0, such as 10s"}
		case !written(c.out):
			return &cli.Problem{Cause: "--out: the name of a vector file must end with .json or .csv"}
		}
		return nil
	}
	return c.command(ctx, flags, manual, args, std, wrong,
		func(ctx context.Context) error { return c.run(ctx, std) })
}

// run runs the job to its end.
func (c *coordinating) run(ctx context.Context, std cli.Streams) error {
	o, err := c.settle()
	if err != nil {
		return err
	}
	by := hushsum.Coordinator[float64]{Job: o.Settled, Store: o.store, Key: o.key,
		Counter: o.countedBy, Folder: c.state, StepTime: c.step, Progress: c.progress(o, std)}
	if err := c.rule(ctx, &by, o, std); err != nil {
		return err
	}
	listener, err := hushsum.ListenTCP(c.listen, o.identity, o.files.Roster)
	if err != nil {
		return err
	}
	defer listener.Close()
	by.Listener = listener
	if !c.quiet {
		fmt.Fprintf(std.Err, "listening on %s, with the key\n%x\n", listener.Address(),
			[]byte(o.identity.Public().(ed25519.PublicKey)))
	}
	if o.files.Committee != nil {
		members, err := hushsum.ListenTCP(c.members, o.identity, o.files.Committee)
		if err != nil {
			return err
		}
		defer members.Close()
		by.Committee = members
		if !c.quiet {
			fmt.Fprintf(std.Err, "listening on %s for members\n", members.Address())
		}
	}
	result, err := by.Run(ctx)
	if err != nil {
		if result != nil {
			fmt.Fprintf(std.Err, "%s begun, %d lost\n", show.Plural(result.Rounds, "round"), result.Lost)
		}
		return err
	}
	return c.show(result, o, std)
}

// rule has the coordinator make models as the command line and the job say.
func (c *coordinating) rule(
	ctx context.Context, by *hushsum.Coordinator[float64], o *settled, std cli.Streams,
) (err error) {
	switch asks := o.declared.Asks(); {
	case c.program != "" && (asks || o.Trains()):
		return errors.New("the job says how its sums are used: leave --apply out")
	case asks:
		plan, err := query.New(o.Settled)
		if err != nil {
			return err
		}
		by.Apply = c.answers(plan)
	case o.Trains():
		if by.Model, err = training.First(o.Settled); err != nil {
			return err
		}
		by.Apply, err = training.Apply(o.Settled)
	case c.program != "":
		run := &program{line: c.program, errors: std.Err}
		by.Apply = func(d hushsum.Done[float64]) ([]float64, error) {
			next, err := run.run(ctx, struct {
				Round   uint64    `json:"round"`
				Parties int       `json:"parties"`
				Mean    []float64 `json:"mean"`
				Model   []float64 `json:"model"`
			}{d.Number, len(d.Parties), d.Mean, d.Model})
			return next.Vector, err
		}
	case o.Averages():
	case training.Remembers(o.Settled):
		return o.declared.Mistake("server.rule", "use --apply, or fedavg",
			"what the rule remembers of vectors is in no state, and a coordinator may be started again")
	default:
		by.Apply, err = training.Apply(o.Settled)
	}
	if err != nil || c.means == "" {
		return err
	}
	if err := os.MkdirAll(c.means, 0o700); err != nil {
		return err
	}
	by.Round = func(d hushsum.Done[float64]) (stop bool, err error) {
		if d.Mean == nil {
			return false, nil
		}
		return false, writeVector(filepath.Join(c.means, fmt.Sprintf("round-%d.json", d.Number)), d.Mean)
	}
	return nil
}

// answersFile holds the answers of the last sum, since a coordinator that is restarted does not
// read the sum again.
const answersFile = "answers.json"

// answers returns the function that reads the sums of a job that asks queries.
func (c *coordinating) answers(
	plan *query.Plan,
) func(d hushsum.Done[float64]) ([]float64, error) {
	return func(d hushsum.Done[float64]) ([]float64, error) {
		model, err := plan.Next(d.Model, d.Mean, len(d.Parties))
		if err != nil || int(d.Number) < plan.Rounds() {
			return model, err
		}
		all, err := plan.Answers(model, len(d.Parties))
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(all)
		if err != nil {
			return nil, err
		}
		return model, hushsum.FileStore(filepath.Join(c.state, answersFile)).Save(text)
	}
}

// show prints the result of the job.
func (c *coordinating) show(result *hushsum.Result[float64], o *settled, std cli.Streams) error {
	digest := o.Digest()
	out := struct {
		Digest  string            `json:"digest"`
		Rounds  int               `json:"rounds"`
		Lost    int               `json:"lost"`
		Spent   *accounting.Claim `json:"spent"`
		Model   []float64         `json:"model,omitempty"`
		Answers []query.Answer    `json:"answers,omitempty"`
	}{Digest: fmt.Sprintf("%x", digest), Rounds: result.Rounds, Lost: result.Lost,
		Spent: result.Spent, Model: o.weights(result.Model)}
	if o.declared.Asks() {
		text, err := os.ReadFile(filepath.Join(c.state, answersFile))
		if err == nil {
			err = strict.JSON(text, &out.Answers)
		}
		if err != nil {
			return err
		}
		out.Model = nil
	}
	if c.out != "" {
		if err := writeVector(c.out, out.Model); err != nil {
			return err
		}
		out.Model = nil
	}
	if c.json {
		show.JSON(std, out)
		return nil
	}
	s := &show.Screen{Std: std}
	s.Field("job", "%s, done", o.declared.Name)
	s.Field("rounds", "%d, of which %d were lost", out.Rounds, out.Lost)
	if result.Spent != nil {
		s.Field("spent", "%v", result.Spent)
	}
	if len(out.Answers) > 0 {
		s.Printf("\n")
		answers.Write(std.Out, out.Answers)
	}
	return nil
}
