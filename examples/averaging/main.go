// Averaging is federated averaging between processes: ten parties train logistic
// regression on the Adult census table (or on synthetic rows where it is not at hand),
// over TCP with TLS, with noise for ε = 8 at δ = 1e-5, while parties and the coordinator
// are killed at random moments and started again.
//
//	go run ./examples/averaging [--rounds 20] [--kill 20] [--parties 10] [--json] [-v]
//
// job.go has what a user writes. This file starts the processes, kills them, and compares
// every sum with the submissions that should be in it, which the parties of this example
// leave in files to that end. The last line says whether all sums were exact, how many
// rounds there were, how many of them were lost, and what was spent. The exit code is 1
// if a sum is not exact, a party stayed away, or too much was spent.
package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
)

var (
	rounds  = flag.Int("rounds", 20, "rounds of training")
	kills   = flag.Int("kill", 20, "processes to kill, at random moments")
	parties = flag.Int("parties", 10, "parties, 4 to 100")
	asJSON  = flag.Bool("json", false, "print the last line as JSON")
	verbose = flag.Bool("v", false, "print what the coordinator reports")
	seed    = flag.Uint64("seed", 0, "of the kills; 0: the clock")

	// Of the processes that this one starts.
	role   = flag.String("role", "", "party or coordinator")
	index  = flag.Int("index", 0, "which party")
	folder = flag.String("folder", "", "where the job's files are")
)

func main() {
	flag.Parse()
	log.SetFlags(log.Lmicroseconds)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := error(nil)
	switch *role {
	case "":
		err = all(ctx)
	case "party":
		err = runParty(ctx)
	case "coordinator":
		err = runCoordinator(ctx)
	default:
		err = fmt.Errorf("there is no role %q", *role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "averaging:", err)
		os.Exit(1)
	}
}

// outcome is the last line.
type outcome struct {
	Exact    bool             `json:"exact"`  // every sum is that of its parties' submissions
	Rounds   int              `json:"rounds"` // begun
	Lost     int              `json:"lost"`   // without a sum
	Spent    accounting.Claim `json:"spent"`
	Accuracy float64          `json:"accuracy"` // of the last model
	Killed   int              `json:"killed"`
	Absent   []int            `json:"absent"` // parties that are not in the last sum
	Seconds  float64          `json:"seconds"`
}

// record is a round as the coordinator leaves it.
type record struct {
	Number   uint64
	Parties  []int
	Sum      [][]uint64 // in the ring
	Accuracy float64
}

// all starts the processes and judges what came of them.
func all(ctx context.Context) error {
	if *parties < 4 || *parties > 100 || *rounds < 1 {
		return errors.New("use 4 to 100 parties and at least 1 round")
	}
	dir, err := os.MkdirTemp("", "averaging")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := prepare(dir); err != nil {
		return err
	}
	began := time.Now()
	s := &supervisor{dir: dir}
	killed, err := s.run(ctx)
	if err != nil {
		return err
	}
	out, err := judge(dir)
	if err != nil {
		return err
	}
	out.Killed, out.Seconds = len(killed), time.Since(began).Seconds()
	away := slices.DeleteFunc(slices.Clone(out.Absent), func(i int) bool {
		return slices.Contains(killed, i) // it has come back: run has seen its end
	})
	if *asJSON {
		err = json.NewEncoder(os.Stdout).Encode(out)
	} else {
		_, err = fmt.Printf("%d rounds, %d lost, %d processes killed; every sum exact: %v; "+
			"accuracy %.4f; %.1f s\n%v\n", out.Rounds, out.Lost, out.Killed, out.Exact, out.Accuracy,
			out.Seconds, out.Spent)
	}
	if late := len(out.Absent) - len(away); late > 0 && !*asJSON {
		fmt.Printf("%d that were killed came back after the last sum\n", late)
	}
	switch {
	case err != nil:
		return err
	case !out.Exact:
		return errors.New("a sum is not that of its parties' submissions")
	case len(away) > 0:
		return fmt.Errorf("parties %v were never killed and are not in the last sum", away)
	}
	budget, err := accounting.NewBudget(out.Spent.Statement, 8, 1e-5) // as declared below
	if err == nil {
		err = out.Spent.Within(budget)
	}
	return err
}

// declaration is the job's file, for some rounds, weights and parties.
const declaration = `name = "averaging"
rounds = %d
model.length = %d
parties = { count = %d, drop_out = 0.3 }
privacy = { noise = "discrete-gaussian", clip = 1.0, epsilon = 8.0, delta = 1e-5 }
`

// prepare writes what the processes are given: the job, the roster, the coordinator's
// address, and each one's identity and key.
func prepare(dir string) error {
	var members []keyexchange.Entry
	for i := range *parties + 1 { // the last is the coordinator
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return err
		}
		key, err := keyexchange.GenerateSealKey(nil)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("secret-", i)),
			slices.Concat(identity.Seed(), key[:]), 0o600); err != nil {
			return err
		}
		members = append(members,
			keyexchange.Entry{Name: fmt.Sprintf("party-%d", i), Key: identity.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members[:*parties])
	if err != nil {
		return err
	}
	text, err := roster.MarshalText()
	if err != nil {
		return err
	}
	rows, err := table()
	if err != nil {
		return err
	}
	declared := fmt.Sprintf(declaration, *rounds, rows.Features, *parties)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := free.Addr().String()
	return errors.Join(free.Close(),
		os.WriteFile(filepath.Join(dir, "roster"), text, 0o600),
		os.WriteFile(filepath.Join(dir, "job.toml"), []byte(declared), 0o600),
		os.WriteFile(filepath.Join(dir, "address"), []byte(address), 0o600),
		os.WriteFile(filepath.Join(dir, "coordinator"), members[*parties].Key, 0o600),
		os.Mkdir(filepath.Join(dir, "submissions"), 0o700),
		os.Mkdir(filepath.Join(dir, "rounds"), 0o700))
}

// table reads Adult, or makes rows like it.
func table() (*learning.Dataset, error) {
	root := os.Getenv("HUSHSUM_DATA")
	if root == "" {
		root = filepath.Join("..", "shared", "data")
	}
	rows, err := learning.ReadAdult(filepath.Join(root, "adult"))
	if errors.Is(err, fs.ErrNotExist) {
		rows, _, err = learning.Census(20_000, 1)
	}
	return rows, err
}

// split gives each party its rows, and the coordinator those of the test.
func split() (own []*learning.Dataset, test *learning.Dataset, err error) {
	rows, err := table()
	if err != nil {
		return nil, nil, err
	}
	train, test, err := rows.Split(0.25, 1)
	if err != nil {
		return nil, nil, err
	}
	own, err = train.PartitionIID(*parties, train.Len() / *parties, 1)
	return own, test, err
}

// load reads what a process is given.
func load(dir string, which int) (s site, coordinatorKey ed25519.PublicKey, err error) {
	read := func(name string) (b []byte) {
		if err == nil {
			b, err = os.ReadFile(filepath.Join(dir, name))
		}
		return b
	}
	declared, roster, secret := read("job.toml"), read("roster"), read(fmt.Sprint("secret-", which))
	address, key := read("address"), read("coordinator")
	if err != nil {
		return site{}, nil, err
	}
	if s.job, err = job.Parse("job.toml", declared); err != nil {
		return site{}, nil, err
	}
	if s.roster, err = keyexchange.ParseRoster(roster); err != nil {
		return site{}, nil, err
	}
	s.identity = ed25519.NewKeyFromSeed(secret[:32])
	sealing := keyexchange.SealKey(secret[32:])
	s.key, s.address, s.state = &sealing, string(address),
		filepath.Join(dir, fmt.Sprint("state-", which))
	return s, key, nil
}

func runParty(ctx context.Context) error {
	s, key, err := load(*folder, *index)
	if err != nil {
		return err
	}
	own, _, err := split()
	if err != nil {
		return err
	}
	return party(ctx, s, key, own[*index], func(round uint64, values [][]uint64) {
		leave(filepath.Join("submissions", fmt.Sprint(round, "-", *index)), values)
	})
}

func runCoordinator(ctx context.Context) error {
	s, _, err := load(*folder, *parties)
	if err != nil {
		return err
	}
	_, test, err := split()
	if err != nil {
		return err
	}
	result, err := coordinator(ctx, s, test, func(d hushsum.Done[float64], accuracy float64) {
		leave(filepath.Join("rounds", fmt.Sprint(d.Number)), record{
			d.Number, d.Parties, d.Sum.Values(), accuracy,
		})
	})
	if err == nil {
		leave("result", ended{result.Rounds, result.Lost, *result.Spent})
	}
	return err
}

// ended is a result, as the coordinator leaves it.
type ended struct {
	Rounds, Lost int
	Spent        accounting.Claim
}

// leave writes a file whole or not at all.
func leave(name string, v any) {
	path := filepath.Join(*folder, name)
	b, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func find(dir, name string, into any) error {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// supervisor keeps the processes running, and kills them.
type supervisor struct {
	dir       string
	mutex     sync.Mutex
	processes map[int]*exec.Cmd // the coordinator is number *parties
}

// run starts all and waits until they have ended by themselves. It returns which it killed.
func (s *supervisor) run(ctx context.Context) (killed []int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	s.processes = make(map[int]*exec.Cmd)
	var wait sync.WaitGroup
	failed := make(chan error, *parties+1)
	for i := range *parties + 1 {
		wait.Go(func() {
			if err := s.keep(ctx, i); err != nil {
				failed <- err
				cancel()
			}
		})
	}
	done := make(chan struct{})
	go func() { wait.Wait(); close(done) }()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	rng := rand.New(rand.NewPCG(*seed, 0))
	for {
		select {
		case <-done:
			select {
			case err = <-failed:
			default:
			}
			return killed, err
		case <-time.After(time.Duration(20+rng.IntN(400)) * time.Millisecond):
		}
		// Kills are spread over the rounds. The last two are left alone, so that those that come back
		// are seen, if this machine starts them in time.
		summed, err := os.ReadDir(filepath.Join(s.dir, "rounds"))
		due := *kills * (len(summed) + 1) / max(1, *rounds-2)
		who := rng.IntN(*parties + 1)
		if err == nil && len(killed) < min(due, *kills) && len(summed) < *rounds-2 && s.kill(who) {
			killed = append(killed, who)
		}
	}
}

// kill ends a process without warning, as a loss of power would.
func (s *supervisor) kill(i int) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	process := s.processes[i]
	return process != nil && process.Process.Signal(syscall.SIGKILL) == nil
}

// keep runs one process until it ends by itself, again and again if it is killed.
func (s *supervisor) keep(ctx context.Context, i int) error {
	name := "party"
	if i == *parties {
		name = "coordinator"
	}
	for {
		process := exec.CommandContext(ctx, os.Args[0], "-role", name, "-index", fmt.Sprint(i), "-folder",
			s.dir,
			"-parties", fmt.Sprint(*parties), "-rounds", fmt.Sprint(*rounds))
		var said bytes.Buffer
		process.Stderr = &said
		if *verbose && i == *parties {
			process.Stderr = io.MultiWriter(&said, os.Stderr)
		}
		if err := process.Start(); err != nil {
			return err
		}
		s.mutex.Lock()
		s.processes[i] = process
		s.mutex.Unlock()
		err := process.Wait()
		s.mutex.Lock()
		delete(s.processes, i)
		s.mutex.Unlock()
		status, ok := process.ProcessState.Sys().(syscall.WaitStatus)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !ok || !status.Signaled():
			return fmt.Errorf("%s %d: %w\n%s", name, i, err, said.Bytes())
		}
	}
}

// judge compares sums with submissions.
func judge(dir string) (*outcome, error) {
	var result ended
	if err := find(dir, "result", &result); err != nil {
		return nil, err
	}
	out := &outcome{
		Exact:  true,
		Rounds: result.Rounds,
		Lost:   result.Lost,
		Spent:  result.Spent,
		Absent: []int{},
	}
	sums := 0
	var last record
	for number := range result.Rounds {
		var r record
		if err := find(dir, filepath.Join("rounds", fmt.Sprint(number+1)), &r); errors.Is(err,
			fs.ErrNotExist) {
			continue // lost
		} else if err != nil {
			return nil, err
		}
		sums++
		last = r
		exact, err := r.exact(dir)
		if err != nil {
			return nil, err
		}
		out.Exact = out.Exact && exact
	}
	out.Exact = out.Exact && sums == result.Rounds-result.Lost
	out.Accuracy = last.Accuracy
	for i := range *parties {
		if !slices.Contains(last.Parties, i) {
			out.Absent = append(out.Absent, i)
		}
	}
	return out, nil
}

// exact adds up, in the ring, what the parties of a round say that they submitted.
func (r *record) exact(dir string) (bool, error) {
	const bits = 32 // the job's
	var sum [][]uint64
	for _, i := range r.Parties {
		var values [][]uint64
		if err := find(dir, filepath.Join("submissions", fmt.Sprint(r.Number, "-", i)),
			&values); err != nil {
			return false, err
		}
		if sum == nil {
			sum = values
			continue
		}
		for s := range values {
			for k, x := range values[s] {
				sum[s][k] = (sum[s][k] + x) & (1<<bits - 1)
			}
		}
	}
	return slices.EqualFunc(sum, r.Sum, slices.Equal), nil
}
