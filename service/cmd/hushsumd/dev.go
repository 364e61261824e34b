package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/simulation"
)

// devOptions are dev's flags.
type devOptions struct {
	job        *job.Job
	own        *ownRows
	admin      string
	json, exit bool
}

// devMembers is how many members the committee of dev's own job has.
const devMembers = 5

// outcome is dev's last line.
type outcome struct {
	Rounds        int               `json:"rounds"` // begun
	Lost          int               `json:"lost"`   // of these, without a sum
	Accuracy      float64           `json:"accuracy"`
	ClearAccuracy float64           `json:"clear_accuracy"` // of the same training without the sum
	Spent         *accounting.Claim `json:"spent"`          // null without noise
	Seconds       float64           `json:"seconds"`
	URL           string            `json:"url"` // of the page
	Job           string            `json:"job"` // digest of the job
	// Difference is the largest of a weight from that of the same training simulated, without
	// noise; 0: they are equal to the last bit.
	Difference *float64 `json:"difference,omitempty"`
}

func dev(ctx context.Context, args []string, std streams) error {
	f := flags("dev", "dev [flags]", `
It starts the server, and parties in separate processes, on this machine; they train logistic
regression on the Adult census table, or on synthetic rows if it is not available, with noise, over
HTTPS. The page stays up until Ctrl-C, or with --exit until the last round. Nothing is left behind.

With --spec it trains what a job declares, with any of the models, rules and masks of 'hushsum
simulate', on the rows of its [world.data]. In both cases it also simulates the same training and,
if there is no noise, reports whether the results agree.`, std)
	j, err := job.Parse("dev.toml", devText)
	if err != nil {
		return err
	}
	var o devOptions
	var log, spec, data, protocol string
	f.StringVar(&spec, "spec", "", "`file` of a job that gives the number of parties, see "+
		"docs/service-begin.md")
	f.IntVar(&j.Rounds, "rounds", j.Rounds, "rounds of training")
	f.IntVar(&j.Parties.Count, "parties", j.Parties.Count, "parties, 4 to 100")
	f.Float64Var(&j.Privacy.Epsilon, "epsilon", j.Privacy.Epsilon,
		"epsilon that a party may spend over all rounds; 0: no noise")
	f.StringVar(&protocol, "protocol", "pairwise",
		"protocol of the sums: pairwise, or oneshot with a committee of 5")
	f.StringVar(&data, "data", "", "`folder` of the Adult data set, or synthetic")
	f.StringVar(&o.admin, "admin", "127.0.0.1:0", "`host:port` of the page")
	f.BoolVar(&o.json, "json", false, "print the last line as JSON")
	f.BoolVar(&o.exit, "exit", false, "exit after the last round")
	f.Uint64Var(&j.World.Seed, "seed", j.World.Seed, "of each party's rows")
	f.StringVar(&log, "log", "error", "lowest `level` that is logged")
	if err := parse(f, args, 0); err != nil {
		return err
	}
	if spec != "" {
		err = o.fromFile(f, spec, std)
	} else {
		err = o.fromFlags(j, data, protocol)
	}
	if err != nil {
		return inFile(spec, err)
	}
	l, err := logger(std.err, log)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "hushsum-dev")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	return inFile(spec, runDev(ctx, &o, folder, l, std))
}

// fromFlags takes dev's own job, with what the flags change in it.
func (o *devOptions) fromFlags(j *job.Job, data, protocol string) (err error) {
	switch protocol {
	case "pairwise":
	case "oneshot":
		j.Sum.Protocol, j.Sum.Members = protocol, devMembers
		if j.Privacy.Epsilon > 0 { // the keys of one-message sums take more bits than a submission
			j.Privacy.Bits = max(32, simulation.OneshotBits(j.Parties.Count))
		}
	default:
		return misuse("--protocol must be pairwise or oneshot")
	}
	switch p := &j.Privacy; {
	case j.Rounds < 1 || j.Rounds > 10_000:
		return misuse("--rounds must be 1 to 10000")
	case j.Parties.Count < 4 || j.Parties.Count > mostDev:
		return misuse("--parties must be 4 to %d", mostDev)
	case !(p.Epsilon >= 0) || math.IsInf(p.Epsilon, 1):
		return misuse("--epsilon must be 0 or more")
	case p.Epsilon == 0:
		*p = job.Privacy{Clip: p.Clip}
	}
	o.job = j
	o.own, err = builtinRows(j, data)
	return err
}

// fromFile takes the job from a file.
func (o *devOptions) fromFile(f *flag.FlagSet, file string, std streams) (err error) {
	var twice string
	f.Visit(func(given *flag.Flag) {
		switch given.Name {
		case "rounds", "parties", "epsilon", "data", "seed", "protocol":
			twice = given.Name
		}
	})
	if twice != "" {
		return misuse("--%s is for dev without --spec; write it in %s", twice, file)
	}
	if o.job, err = readDevJob(file); err != nil {
		return err
	}
	o.own, err = dealRows(o.job)
	return err
}

func runDev(
	ctx context.Context, o *devOptions, folder string, log *slog.Logger, std streams,
) error {
	began := time.Now()
	declared, files, err := prepareDev(folder, o.job, o.own)
	if err != nil {
		return err
	}
	seen, err := newDevSeen(o.job, declared, o.own)
	if err != nil {
		return err
	}
	n, err := node.Start(ctx, node.Options{
		Folder: filepath.Join(folder, "node"),
		Name:   "dev",
		Listen: "127.0.0.1:0",
		Admin:  o.admin,
		Open:   true,
		Log:    log,
		Judge:  seen.judge,
		Summed: seen.summed,
		// All its parties are on this machine.
		PerSecond: 10_000,
	})
	if err != nil {
		return err
	}
	defer n.Close()
	fed, err := n.Create(ctx, *files)
	if err != nil {
		return err
	}
	site := devSite{Address: n.Address, Fingerprint: n.Fingerprint}
	b, err := json.Marshal(site)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "site.json"), b, 0o600); err != nil {
		return err
	}
	notes := std.out
	if o.json {
		notes = std.err
	}
	url := n.Page + "/federations/" + fed.ID
	parties := len(o.own.parties)
	fmt.Fprintf(notes, "%d parties on %s\njob    %s\npage   %s\ntoken  %s (to pause, resume, end)\n",
		parties, o.own.about, fed.JobDigest, url, n.NewTokens[len(n.NewTokens)-1])
	members := 0
	if one := fed.Settled.Oneshot(); one != nil {
		members = one.Committee.Len()
		fmt.Fprintf(notes, "one message a party and round, with a committee of %d\n", members)
	}
	stop, err := startProcesses(ctx, folder, parties, members, std.err)
	if err != nil {
		return err
	}
	defer stop()
	status, err := follow(ctx, n, fed.ID, notes)
	if err != nil {
		return err
	}
	out := outcome{
		Rounds:  status.Round,
		Lost:    status.Lost,
		Spent:   status.Spent,
		Seconds: time.Since(began).Seconds(),
		URL:     url,
		Job:     fed.JobDigest,
	}
	for _, p := range status.History {
		if p.Parties > 0 {
			out.Accuracy = p.Accuracy
		}
	}
	if err := seen.compare(ctx, &out); err != nil {
		return err
	}
	epsilon := "no noise, no epsilon"
	if out.Spent != nil {
		epsilon = out.Spent.String()
	}
	if o.json {
		err = json.NewEncoder(std.out).Encode(out)
	} else {
		err = wrap(std.out, "%d rounds, %d lost; accuracy %.4f, in the clear %.4f; %.1f s; %s",
			out.Rounds, out.Lost, out.Accuracy, out.ClearAccuracy, out.Seconds, epsilon)
		if err == nil && out.Difference != nil {
			_, err = fmt.Fprintf(std.out, "largest difference between a weight and the simulation's: %g\n",
				*out.Difference)
		}
	}
	if err != nil || o.exit {
		return err
	}
	fmt.Fprintln(notes, "Press Ctrl-C to stop.")
	<-ctx.Done()
	return nil
}

// follow prints the rounds until the federation ends.
func follow(
	ctx context.Context, n *node.Node, id string, notes io.Writer,
) (*runner.Status, error) {
	told := 0
	for {
		s, err := n.Status(ctx, id)
		if err == nil {
			for _, p := range s.History[min(told, len(s.History)):] {
				if p.Parties > 0 {
					spent := ""
					if p.Share > 0 {
						spent = fmt.Sprintf("  %.1f %% of the budget", 100*p.Share)
					}
					fmt.Fprintf(notes, "round %3d  %d parties  accuracy %.4f%s  %.2f s\n", p.Round, p.Parties,
						p.Accuracy, spent, p.Seconds)
				} else {
					fmt.Fprintf(notes, "round %3d  lost: %s\n", p.Round, p.Lost)
				}
			}
			told = len(s.History)
			if s.State == "ended" {
				return s, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// devSite tells a party's process how to reach the server.
type devSite struct{ Address, Fingerprint string }

func partyFolder(folder string, i int) string {
	return filepath.Join(folder, fmt.Sprint("party-", i+1))
}

func memberFolder(folder string, k int) string {
	return filepath.Join(folder, fmt.Sprint("member-", k+1))
}

// startProcesses starts the processes of the parties and of the committee. Each ends when its
// standard input does, and so with this process, however that ends.
func startProcesses(
	ctx context.Context, folder string, parties, members int, errs io.Writer,
) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	stop = func() {
		cancel()
		group.Wait()
	}
	for i := range parties + members {
		role, number := devPartyName, i
		if i >= parties {
			role, number = devMemberName, i-parties
		}
		c := exec.CommandContext(ctx, self, role, folder, fmt.Sprint(number))
		c.Stderr = errs
		c.Env = append(os.Environ(), "GOMAXPROCS=1")
		c.WaitDelay = 5 * time.Second
		pipe, err := c.StdinPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			stop()
			return nil, err
		}
		group.Add(1)
		go func() {
			defer group.Done()
			defer pipe.Close()
			if err := c.Wait(); err != nil && ctx.Err() == nil {
				fmt.Fprintf(errs, "%s %d ended: %v\n", role, number+1, err)
			}
		}()
	}
	return stop, nil
}
