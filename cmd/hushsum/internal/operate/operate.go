// Package operate has the commands coordinate, join and member, which run a job between processes
// over TCP with TLS, without the service: see SPEC-TRANSPORT.md.
package operate

import (
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/jobs"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
)

const codes = `Exit codes: 0 the job is done, 1 failure, 2 incorrect usage, 130
interrupted and 143 terminated, after which the same command resumes.
`

// side holds what every process of a job is given.
type side struct {
	file                     string
	set                      jobs.Settings
	identity                 string
	roster, committee, state string
	sealed, counter          string
	quiet, json              bool
}

// flags defines the flags that all sides have; folder is the default of --folder.
func (s *side) flags(f *flag.FlagSet, folder string) {
	f.StringVar(&s.identity, "identity", "", "`FILE` of your identity; required")
	f.StringVar(&s.roster, "roster", "", "`FILE` of the parties; default: the job's parties.roster")
	f.StringVar(&s.committee, "committee", "", "`FILE` of the committee's members, for a job with "+
		"one-message sums; default: the job's sum.committee")
	f.StringVar(&s.state, "folder", folder, "`FOLDER` for state that must survive this process")
	f.StringVar(&s.sealed, "key", "", "`FILE` with the key that seals it; default: seal.key in the folder")
	f.StringVar(&s.counter, "counter", "", "`FILE` outside the folder that tells an older state, "+
		"such as a backup, from the newest")
	f.Var(jobs.SetFlag{Settings: &s.set}, "set",
		"`PATH=VALUE` sets a field, overriding the job, the same on all sides; repeatable")
	f.BoolVar(&s.quiet, "quiet", false, "print no progress on standard error")
	f.BoolVar(&s.json, "json", false, "print JSON instead of text at the end")
}

// command parses arguments and runs.
func (s *side) command(
	ctx context.Context, flags *flag.FlagSet, manual *cli.Manual, args []string, std cli.Streams,
	wrong func() *cli.Problem, run func(ctx context.Context) error,
) int {
	operands, code, ok := cli.ParseOperands(flags, manual, 1, args, std)
	if !ok {
		return code
	}
	var problem *cli.Problem
	switch {
	case len(operands) == 0:
		problem = &cli.Problem{Cause: "which job?", Advice: "Name a job's file."}
	case s.identity == "":
		problem = &cli.Problem{Cause: "whose identity?",
			Advice: "Add --identity FILE; 'hushsum identity new FILE' makes one."}
	default:
		problem = wrong()
	}
	if problem != nil {
		return cli.WrongUsage(flags, problem, std)
	}
	s.file = operands[0]
	err := run(ctx)
	switch {
	case err == nil:
		return cli.ExitOK
	case ctx.Err() != nil:
		code, how := cli.InterruptedBy(ctx), "interrupted"
		if code == cli.ExitTerminated {
			how = "terminated"
		}
		cli.Complain(std.Err, "hushsum "+flags.Name(), &cli.Problem{
			Cause: how + "; the state is saved in " + s.state + ": the same command resumes"})
		return code
	case len(job.Errors(err)) > 0:
		return jobs.Failed(flags.Name(), err, std)
	}
	return cli.Failed(flags.Name(), advised(err), std)
}

// advised adds advice to errors that flags cause.
func advised(err error) error {
	text := err.Error()
	for _, name := range []string{"hushsum: ", "consent: ", "keyfile: ", "query: ", "table: ",
		"training: "} {
		text = strings.TrimPrefix(text, name)
	}
	advice := ""
	var differs *hushsum.DifferenceError
	switch {
	case errors.As(err, &differs) && differs.Field == "identity":
		advice = "Have the identity's public key added to everyone's roster, or give another --identity."
	case errors.As(err, &differs):
		advice = "All sides need the same job, roster and committee: compare what " +
			"'hushsum job check' and " +
			"'hushsum roster show' print."
	case errors.Is(err, hushsum.ErrPeer):
		advice = "Compare --server and --coordinator with what the coordinator prints when it starts."
	case errors.Is(err, hushsum.ErrOldState):
		advice = "Restore the newest --folder; a party whose state is lost gives --spent and, of " +
			"pairwise sums, --least-number; a member gives --spent."
	case errors.Is(err, hushsum.ErrStore):
		advice = "A --folder belongs to one job and identity: give another job its own --folder."
	case errors.Is(err, syscall.EADDRINUSE):
		advice = "Another program, or another coordinator, is using that port: give another --listen."
	case errors.Is(err, hushsum.ErrLocked):
		advice = "Give each process its own --folder."
	case errors.Is(err, keyfile.ErrIdentity):
		advice = "Run 'hushsum identity new FILE'."
	}
	return &cli.Problem{Cause: text, Advice: advice, Err: err}
}

// settled is a job with this side's part of it.
type settled struct {
	*job.Settled
	declared  *job.Job
	files     job.Files
	identity  ed25519.PrivateKey
	key       *keyexchange.SealKey
	store     hushsum.FileStore
	countedBy hushsum.Counter
}

// weights returns the weights of a model, without the state that rules of the job's training append
// to them.
func (s *settled) weights(model []float64) []float64 {
	if s.Trains() {
		return model[:min(len(model), s.Tensors()[0].Shape[0])]
	}
	return model
}

// settle reads the job and all files that it names, and makes the folder.
func (s *side) settle() (*settled, error) {
	name, text, err := jobs.Read(s.file)
	if err != nil {
		return nil, err
	}
	j, err := job.Parse(name, text, s.set.Texts()...)
	if err != nil {
		return nil, err
	}
	o := &settled{declared: j}
	if j.Model.File != "" || j.Privacy.Before != "" {
		path := map[bool]string{true: "model.file", false: "privacy.before"}[j.Model.File != ""]
		return nil, j.Mistake(path, "leave it out, or run the job with hushsumd",
			"only the service reads that file")
	}
	if o.files.Roster, err = s.list(s.roster, j.Parties.Roster); err != nil {
		return nil, err
	}
	if o.files.Roster == nil {
		return nil, j.Mistake("parties.roster",
			"name a file, or give --roster; see 'hushsum help roster'",
			"nothing says who the parties are")
	}
	if j.Oneshot() {
		if o.files.Committee, err = s.list(s.committee, j.Sum.Committee); err != nil {
			return nil, err
		}
		if o.files.Committee == nil {
			return nil, j.Mistake("sum.committee",
				"name a file, or give --committee; a committee is a roster",
				"nothing says who the committee's members are")
		}
	}
	if o.Settled, err = j.Settle(o.files); err != nil {
		return nil, err
	}
	if o.identity, err = keyfile.ReadIdentity(s.identity); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.state, 0o700); err != nil {
		return nil, err
	}
	sealed := s.sealed
	if sealed == "" {
		sealed = filepath.Join(s.state, "seal.key")
	}
	if o.key, err = keyfile.SealKey(sealed, s.sealed == ""); err != nil {
		return nil, err
	}
	o.store = hushsum.FileStore(filepath.Join(s.state, "state"))
	if s.counter != "" {
		o.countedBy = hushsum.FileCounter(s.counter)
	}
	return o, nil
}

// list reads a roster that a flag or the job names, nil if neither does. The job's is relative to
// the job's folder.
func (s *side) list(given, declared string) (*keyexchange.Roster, error) {
	name := given
	switch {
	case given == "" && declared == "":
		return nil, nil
	case given == "" && filepath.IsAbs(declared):
		name = declared
	case given == "":
		name = filepath.Join(filepath.Dir(s.file), declared)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	roster, err := keyexchange.ParseRoster(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return roster, nil
}
