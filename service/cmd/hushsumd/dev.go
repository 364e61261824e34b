package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/runner"
)

// devOptions are dev's flags.
type devOptions struct {
	rounds, parties int
	epsilon         float64
	data            string
	admin           string
	spec            *spec // nil: logistic regression on a census
	json, exit      bool
	seed            uint64
}

// outcome is dev's last line.
type outcome struct {
	Rounds        int     `json:"rounds"` // begun
	Lost          int     `json:"lost"`   // of these, without a sum
	Accuracy      float64 `json:"accuracy"`
	ClearAccuracy float64 `json:"clear_accuracy"` // of the same training without the sum
	Epsilon       float64 `json:"epsilon"`        // spent, at delta 1e-5
	Seconds       float64 `json:"seconds"`
	URL           string  `json:"url"` // of the page
	// Difference is the largest of a weight from that of the same training simulated, with
	// --spec and without noise; 0: they are equal to the last bit.
	Difference *float64 `json:"difference,omitempty"`
}

func dev(ctx context.Context, args []string, std streams) error {
	f := flags("dev", "dev [flags]", `
It starts the server, and parties in processes of their own, on this machine; they train
logistic regression on the Adult census table, or synthetic rows where it is not at hand, with
noise, over HTTPS. The page stays up until Ctrl-C, or ends with the last round by --exit.
Nothing is left behind.

With --spec it trains what a file declares, by any of the models, rules, masks and splits of
'hushsum simulate', and says whether the result is that of the simulation.`, std)
	var o devOptions
	var log, specFile string
	f.StringVar(&specFile, "spec", "", "`file` that declares rows and training, see docs/service.md")
	f.IntVar(&o.rounds, "rounds", 10, "rounds of training")
	f.IntVar(&o.parties, "parties", 10, "parties, 4 to 100")
	f.Float64Var(&o.epsilon, "epsilon", 8, "what a party may spend over all rounds; 0: no noise")
	f.StringVar(&o.data, "data", "", "`folder` of the Adult data set, or synthetic")
	f.StringVar(&o.admin, "admin", "127.0.0.1:0", "`host:port` of the page")
	f.BoolVar(&o.json, "json", false, "print the last line as JSON")
	f.BoolVar(&o.exit, "exit", false, "end with the last round")
	f.Uint64Var(&o.seed, "seed", 1, "of the rows that each party has")
	f.StringVar(&log, "log", "error", "least `level` that is logged")
	if err := parse(f, args, 0); err != nil {
		return err
	}
	switch {
	case o.rounds < 1 || o.rounds > 10_000:
		return misuse("--rounds is 1 to 10000")
	case o.parties < 4 || o.parties > 100:
		return misuse("--parties is 4 to 100")
	case !(o.epsilon >= 0) || math.IsInf(o.epsilon, 1):
		return misuse("--epsilon is 0 or more")
	}
	if specFile != "" {
		var twice string
		f.Visit(func(given *flag.Flag) {
			switch given.Name {
			case "rounds", "parties", "epsilon", "data", "seed":
				twice = given.Name
			}
		})
		if twice != "" {
			return misuse("--%s is for dev without --spec; write it in %s", twice, specFile)
		}
		var err error
		if o.spec, err = readSpec(specFile); err != nil {
			return inFile(specFile, err)
		}
		o.rounds, o.parties, o.epsilon = o.spec.Rounds, o.spec.size(), o.spec.Privacy.Epsilon
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
	return runDev(ctx, &o, folder, l, std)
}

// devTraining is what every party does in a round.
func devTraining(features int) (model learning.Logistic, rate float64, steps int) {
	return learning.Logistic{Features: features, Lambda: 1e-4}, 2, 50
}

const devClip = 1

func runDev(
	ctx context.Context, o *devOptions, folder string, log *slog.Logger, std streams,
) error {
	began := time.Now()
	own, test, about, err := devRows(o)
	if err != nil {
		return err
	}
	text, roster, err := prepareDev(o, folder, own, test)
	if err != nil {
		return err
	}
	declared, err := federation.New(text, roster, nil)
	if err != nil {
		return err
	}
	seen := &devSeen{federation: declared, test: test, model: declared.Learner()}
	if seen.model == nil {
		seen.model, _, _ = devTraining(test.Features)
	}
	n, err := node.Start(ctx, node.Config{
		Folder: filepath.Join(folder, "node"),
		Name:   "dev",
		Listen: "127.0.0.1:0",
		Admin:  o.admin,
		Open:   true,
		Log:    log,
		Judge:  seen.judge,
		Summed: seen.summed,
	})
	if err != nil {
		return err
	}
	defer n.Close()
	fed, err := n.Create(ctx, text, roster, nil)
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
	fmt.Fprintf(notes, "%d parties on %s\npage   %s\ntoken  %s (to pause, resume, end)\n", o.parties,
		about, url, n.NewTokens[len(n.NewTokens)-1])
	stop, err := startParties(ctx, folder, o.parties, std.err)
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
		Epsilon: status.Epsilon,
		Seconds: time.Since(began).Seconds(),
		URL:     url,
	}
	for _, p := range status.History {
		if p.Parties > 0 {
			out.Accuracy = p.Accuracy
		}
	}
	if err := seen.compare(ctx, o, own, &out); err != nil {
		return err
	}
	if o.json {
		err = json.NewEncoder(std.out).Encode(out)
	} else {
		_, err = fmt.Fprintf(std.out, "%d rounds, %d lost; accuracy %.4f, in the clear %.4f; "+
			"epsilon %.3f of %g; %.1f s\n", out.Rounds, out.Lost, out.Accuracy, out.ClearAccuracy,
			out.Epsilon, o.epsilon, out.Seconds)
		if err == nil && out.Difference != nil {
			_, err = fmt.Fprintf(std.out, "largest difference of a weight from the simulation's: %g\n",
				*out.Difference)
		}
	}
	if err != nil || o.exit {
		return err
	}
	fmt.Fprintln(notes, "Ctrl-C ends it.")
	<-ctx.Done()
	return nil
}

// devSeen is what dev sees of the rounds.
type devSeen struct {
	federation *federation.Federation
	model      learning.Model
	test       *learning.Dataset

	mutex    sync.Mutex
	included [][]int   // in each sum
	last     []float64 // model
}

// judge tells the accuracy of a model.
func (s *devSeen) judge(model []float64) float64 {
	w := s.federation.Weights(model)
	s.mutex.Lock()
	s.last = w
	s.mutex.Unlock()
	judged, err := learning.Evaluate(s.model, w, s.test)
	if err != nil {
		return 0
	}
	return judged.Accuracy()
}

func (s *devSeen) summed(_ int, parties []int, _ [][]uint64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.included = append(s.included, slices.Clone(parties))
}

// compare trains the same beside the private sum.
func (s *devSeen) compare(
	ctx context.Context, o *devOptions, own []*learning.Dataset, out *outcome,
) error {
	s.mutex.Lock()
	last, included := s.last, s.included
	s.mutex.Unlock()
	if o.spec == nil {
		out.ClearAccuracy = s.judge(trainClear(own, o.rounds, s.test.Features))
		return nil
	}
	model, equal, err := o.spec.beside(ctx, s.federation, own, s.test, included)
	if err != nil {
		return err
	}
	out.ClearAccuracy = s.judge(model)
	if equal {
		out.Difference = new(float64)
		for k, w := range model {
			*out.Difference = max(*out.Difference, math.Abs(w-last[k]))
		}
	}
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
					fmt.Fprintf(notes, "round %3d  %d parties  accuracy %.4f  epsilon %.3f  %.2f s\n", p.Round,
						p.Parties, p.Accuracy, p.Epsilon, p.Seconds)
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

// devSite is what a party's process is told.
type devSite struct{ Address, Fingerprint string }

// devRows reads Adult, or makes rows like it, and deals them.
func devRows(o *devOptions) (
	own []*learning.Dataset, test *learning.Dataset, about string, err error,
) {
	if o.spec != nil {
		return o.spec.rows()
	}
	dir := o.data
	if dir == "" {
		root := os.Getenv("HUSHSUM_DATA")
		if root == "" {
			root = filepath.Join("..", "shared", "data")
		}
		dir = filepath.Join(root, "adult")
	}
	about = "the Adult census table"
	var rows *learning.Dataset
	if o.data != "synthetic" {
		rows, err = learning.ReadAdult(dir)
	}
	if o.data == "synthetic" || o.data == "" && errors.Is(err, fs.ErrNotExist) {
		about = "synthetic rows"
		rows, _, err = learning.Census(20_000, o.seed)
	}
	if err != nil {
		return nil, nil, "", err
	}
	train, test, err := rows.Split(.25, o.seed)
	if err != nil {
		return nil, nil, "", err
	}
	own, err = train.PartitionIID(o.parties, train.Len()/o.parties, o.seed)
	return own, test, about, err
}

// prepareDev writes what the parties' processes are given.
func prepareDev(
	o *devOptions, folder string, own []*learning.Dataset, test *learning.Dataset,
) (text, roster []byte, err error) {
	var names []string
	if o.spec != nil {
		names = o.spec.names()
	}
	var members []keyexchange.Member
	for i, rows := range own {
		dir := partyFolder(folder, i)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, nil, err
		}
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, nil, err
		}
		if err := errors.Join(writeIdentity(filepath.Join(dir, "identity.pem"), key),
			writeRows(filepath.Join(dir, "rows"), rows)); err != nil {
			return nil, nil, err
		}
		member := keyexchange.Member{
			Name: fmt.Sprintf("party-%d", i+1),
			Key:  key.Public().(ed25519.PublicKey),
		}
		if names != nil {
			member.Name = names[i]
		}
		members = append(members, member)
	}
	list, err := keyexchange.NewRoster(members)
	if err != nil {
		return nil, nil, err
	}
	if roster, err = list.MarshalText(); err != nil {
		return nil, nil, err
	}
	if o.spec != nil {
		text = o.spec.declared(own, test)
		return text, roster, writeDeclared(folder, text, roster)
	}
	privacy := fmt.Sprintf("clip = %d\n", devClip)
	if o.epsilon > 0 {
		privacy = fmt.Sprintf("noise = \"discrete-gaussian\"\nepsilon = %g\ndelta = 1e-5\nclip = %d\n",
			o.epsilon, devClip)
	}
	text = fmt.Appendf(nil, `name = "dev"
roster = "roster.txt"
rounds = %d
step_time = "20s"

[model]
dtype = "float64"

[[model.tensor]]
name = "weights"
shape = [%d]

[recovery]
adversary = "cheating"
drop_out = 0.3

[privacy]
%s`, o.rounds, own[0].Features, privacy)
	return text, roster, writeDeclared(folder, text, roster)
}

// writeDeclared writes what the parties' processes work out for themselves.
func writeDeclared(folder string, text, roster []byte) error {
	return errors.Join(
		os.WriteFile(filepath.Join(folder, "federation.toml"), text, 0o600),
		os.WriteFile(filepath.Join(folder, "roster.txt"), roster, 0o600))
}

func partyFolder(folder string, i int) string {
	return filepath.Join(folder, fmt.Sprint("party-", i+1))
}

// startParties starts the parties' processes. Each ends when its standard input does, and
// so with this process, however that ends.
func startParties(
	ctx context.Context, folder string, parties int, errs io.Writer,
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
	for i := range parties {
		c := exec.CommandContext(ctx, self, devPartyName, folder, fmt.Sprint(i))
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
				fmt.Fprintf(errs, "party %d ended: %v\n", i+1, err)
			}
		}()
	}
	return stop, nil
}

// trainClear is the same training without the private sum, for comparison.
func trainClear(own []*learning.Dataset, rounds, features int) []float64 {
	model, rate, steps := devTraining(features)
	w := make([]float64, features)
	for range rounds {
		mean := make([]float64, features)
		for _, rows := range own {
			trained := append([]float64(nil), w...)
			if model.Train(trained, rows, rate, steps) != nil {
				return w
			}
			for i := range trained {
				trained[i] -= w[i]
			}
			clipped, _, err := aggregation.Clip(trained, devClip)
			if err != nil {
				return w
			}
			for i, x := range clipped {
				mean[i] += x / float64(len(own))
			}
		}
		for i, x := range mean {
			w[i] += x
		}
	}
	return w
}

// readFederation works out what dev declared.
func readFederation(folder string) (*federation.Federation, error) {
	text, err := os.ReadFile(filepath.Join(folder, "federation.toml"))
	if err != nil {
		return nil, err
	}
	roster, err := os.ReadFile(filepath.Join(folder, "roster.txt"))
	if err != nil {
		return nil, err
	}
	return federation.New(text, roster, nil)
}
