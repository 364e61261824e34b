package node_test

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/store"
)

// Of the tests of whole federations those run in bubbles (inBubble) that need neither sockets nor
// processes. With processes, which are killed, stay KillAtRandom, KillCommitteeAtRandom,
// KillCommitteeServerAtEveryStep, KillHospitalsAtRandom, KillHospitalsAsCommittee, KillAndRestore…,
// Chaos, Budget, FourWays and OneFile; with sockets, nodes of a cluster or an operator's NATS:
// Certificate…, CutOffNode, ExternalNATS, FrozenLeader, FullDisk, Hostile, Load, NetworkFaults,
// Proxies…, Strangers… and TwoClaim.
//
// Kill tests run servers and parties in processes of their own, which are this test's
// binary again, and kill them with SIGKILL. Every sum is compared bit for bit with the
// submissions that should be in it, which parties leave in files before they mask them.

var (
	killRounds = flag.Int("kill.rounds", 2, "rounds of each kill test")
	killSeed   = flag.Uint64("kill.seed", 0, "of the moments of kills; 0: the clock")
)

const roleVariable = "HUSHSUM_TEST_ROLE"

// places are how many tests run at a time, next to those that mostly wait.
var places = make(chan struct{}, 6)

// inTurn has a test run next to others, when there is a place. Tests that mostly wait are parallel
// without a place: they start at once, and the others fill what they leave of the processor.
func inTurn(t *testing.T) {
	t.Helper()
	t.Parallel()
	places <- struct{}{}
	t.Cleanup(func() { <-places })
}

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		suite.AtOnce(100) // see inTurn
		code := m.Run()
		if n := killed.Load(); n > 0 && code == 0 {
			tell(fmt.Sprintf("%d kills survived", n))
		}
		os.Exit(code)
	case "server":
		childServer()
	case "nats":
		childNATS()
	case "study":
		childStudy()
	default:
		if k, found := strings.CutPrefix(role, "asked "); found {
			childAsked(k)
			return
		}
		if k, found := strings.CutPrefix(role, "member "); found {
			childMember(k)
			return
		}
		if k, found := strings.CutPrefix(role, "several "); found {
			which, err := strconv.Atoi(k)
			child(err)
			childSeveral(which)
			return
		}
		if strings.HasPrefix(role, "load ") {
			childLoad(role)
			return
		}
		childParty(role)
	}
}

// killed counts the processes that tests have killed, and that came back.
var killed atomic.Int64

// tell prints a line. Without -v, go test shows of passing tests only that they pass;
// scripts look for this line, so it is then written to go test's own output.
func tell(line string) {
	if !testing.Verbose() {
		if out, err := parentOutput(); err == nil {
			defer out.Close()
			fmt.Fprintln(out, line)
			return
		}
	}
	fmt.Println(line)
}

// job tells the processes of a test what to do, in a file.
type job struct {
	Address string // of the door that parties use
	Parties int
	Length  int
	Members int      // of a committee, 0: sums are pairwise
	Buffer  int      // submissions of a round, 0: all that come
	Peers   []string // of a cluster's nodes
	Doors   []string
	NATS    []string // by node, of an external one
	Silence time.Duration
	Probe   time.Duration
	Step    string        // how long a step waits; empty: 10 s
	Grace   time.Duration // empty: 700 ms
	DropOut float64
	Privacy string        // of a job with a committee; empty: no noise
	Records bool          // parties train on rows, each of which epsilon protects
	Both    bool          // parties are their own committee, as declareBoth says
	Train   time.Duration // how long each party trains
	Resume  bool          // a federation that has paused
}

const jobParties = 8

// child says what went wrong in a child, and ends it.
func child(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", os.Getenv(roleVariable), err)
		os.Exit(3)
	}
}

func readJob(folder string) (j job, fed *federation.Federation) {
	b, err := os.ReadFile(filepath.Join(folder, "job.json"))
	child(err)
	child(json.Unmarshal(b, &j))
	fed, err = federation.Read(filepath.Join(folder, "federation.toml"))
	child(err)
	return j, fed
}

// childServer is a server that kills itself at one step of one of its decisions, as the
// variable HUSHSUM_TEST_KILL says: the number of the decision in this process, a colon
// and the step. It may open as many files as HUSHSUM_TEST_FILES says.
func childServer() {
	folder := os.Getenv("HUSHSUM_TEST_FOLDER")
	j, _ := readJob(folder)
	if files, err := strconv.ParseUint(os.Getenv("HUSHSUM_TEST_FILES"), 10, 32); err == nil {
		child(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: files}))
	}
	at, step, _ := strings.Cut(os.Getenv("HUSHSUM_TEST_KILL"), ":")
	due, _ := strconv.Atoi(at)
	_, listen, _ := strings.Cut(j.Address, "://") // nodes of a cluster have their own, below
	decisions := 0
	c := node.Options{
		Folder:    filepath.Join(folder, "node"),
		Listen:    listen,
		Silence:   j.Silence,
		PerSecond: testRate,
		Log:       slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Summed: func(round int, parties []int, sum [][]uint64) {
			if os.Getenv("HUSHSUM_TEST_LOAD") != "" {
				return
			}
			leave(folder, fmt.Sprintf("sums/%d-%d", round, time.Now().UnixNano()), summed{parties, sum})
		},
	}
	*c.Hooks() = node.Hooks{
		Plain: !strings.HasPrefix(j.Address, "https:"),
		Grace: cmp.Or(j.Grace, 700*time.Millisecond),
		Probe: j.Probe,
		Now:   childClock(folder, "node"+os.Getenv("HUSHSUM_TEST_NODE")),
		Fault: func(now string) {
			if now == "object" {
				decisions++
			}
			if decisions == due && now == step {
				child(syscall.Kill(os.Getpid(), syscall.SIGKILL))
				select {}
			}
		},
	}
	if os.Getenv("HUSHSUM_TEST_LOAD") != "" {
		c.Hooks().Grace = 0
		c.Hooks().Connections, _ = strconv.Atoi(os.Getenv("HUSHSUM_TEST_CONNECTIONS"))
	}
	if name := os.Getenv("HUSHSUM_TEST_LOG"); name != "" {
		log, err := os.Create(name)
		child(err)
		c.Log = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if i := os.Getenv("HUSHSUM_TEST_NODE"); i != "" {
		which, err := strconv.Atoi(i)
		child(err)
		c = clusterConfig(folder, j, which, c)
	}
	n, err := node.Start(context.Background(), c)
	child(err)
	leave(folder, "fingerprint", n.Fingerprint)
	fed, files, err := federation.ReadFiles(filepath.Join(folder, "federation.toml"))
	child(err)
	if _, err := n.Create(context.Background(), *files); !errors.Is(err, record.ErrExists) {
		child(err)
	}
	stop := make(chan os.Signal, 1)
	ossignal.Notify(stop, syscall.SIGTERM)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		began := time.Now()
		s, err := n.Status(ctx, fed.ID)
		took := time.Since(began)
		cancel()
		if err == nil {
			leave(folder, "status", s)
			if j.Resume && s.State == "paused" {
				_, _ = n.Do(context.Background(), fed.ID, page.Order{What: "resume", Who: "a test"})
			}
		}
		select {
		case err := <-n.Hangs:
			child(err)
		case <-stop:
			n.Close()
			return
		case <-time.After(min(max(100*time.Millisecond, 50*took), time.Second)): // of thousands, seldom
		}
	}
}

// summed is a sum as the server leaves it.
type summed struct {
	Parties []int
	Sum     [][]uint64
}

// childParty is a party, which submits numbers that follow from its own and the round's.
func childParty(role string) {
	folder := os.Getenv("HUSHSUM_TEST_FOLDER")
	i, err := strconv.Atoi(role)
	child(err)
	j, fed := readJob(folder)
	server, identity, key := childWay(folder, fmt.Sprint("secret-", i), i, &j)
	describe(server, fed)
	p := party.Party{
		Federation: fed,
		Identity:   identity,
		Server:     server,
		Folder:     filepath.Join(folder, fmt.Sprint("party-", i)),
		Key:        key,
		Trainer:    j.trainer(folder, fed, i),
		Book:       &consent.Book{File: filepath.Join(folder, fmt.Sprint("book-", i)), Key: key},
		Log:        childLog(folder, i),
		Submitted: func(round int, values [][]uint64) {
			leave(folder, fmt.Sprintf("submissions/%d-%d", round, i), values)
		},
	}
	model, err := p.Run(context.Background())
	child(err)
	if j.Both {
		child(os.WriteFile(filepath.Join(folder, fmt.Sprint("model-", i)), model, 0o600))
	}
	leave(folder, fmt.Sprint("done-", i), true)
}

// describe has a server that is up say which key signs the federation's decisions.
func describe(server *party.Server, fed *federation.Federation) {
	for fed.Key == nil {
		said, err := server.Describe(context.Background(), fed.ID)
		if err == nil {
			fed.Key, err = hex.DecodeString(said.Key)
			child(err)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// trainer makes that of a party.
func (j *job) trainer(folder string, fed *federation.Federation, i int) party.Trainer {
	if j.Records {
		return childHospital(folder, fed, i)
	}
	return party.TrainerFunc(func(_ context.Context, w *party.Work) (*party.Update, error) {
		if j.Buffer > 0 { // each at its own speed
			time.Sleep(time.Duration(20*(i+1)) * time.Millisecond)
		}
		time.Sleep(j.Train)
		return &party.Update{Vector: j.vector(w.Round, i)}, nil
	})
}

// vector returns the numbers that a party submits in a round.
func (j *job) vector(round, i int) []float64 {
	v := make([]float64, j.Length)
	for k := range v {
		v[k] = float64((round*31+i*7+k)%11-5) / 50
	}
	return v
}

// childWay reads secrets, and makes the way to the server.
func childWay(
	folder, secret string, i int, j *job,
) (*party.Server, ed25519.PrivateKey, *keyexchange.SealKey) {
	b, err := os.ReadFile(filepath.Join(folder, secret))
	child(err)
	identity := ed25519.NewKeyFromSeed(b[:32])
	key := keyexchange.SealKey(b[32:])
	address := j.Address
	if n := len(j.Doors); n > 0 {
		k := i % n
		address = strings.Join(append(slices.Clone(j.Doors[k:]), j.Doors[:k]...), ",")
	}
	pin := "" // of a server with TLS, which leaves it
	if strings.HasPrefix(address, "https:") {
		for find(folder, "fingerprint", &pin) != nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
	server, err := party.NewServer(address, pin, identity)
	child(err)
	server.Now = childClock(folder, secret)
	return server, identity, &key
}

// leave writes a file whole or not at all.
func leave(folder, name string, v any) {
	b, err := json.Marshal(v)
	child(err)
	file := store.FileStore(filepath.Join(folder, name))
	err = file.Save(b)
	for errors.Is(err, syscall.EMFILE) { // while a test takes the files away
		time.Sleep(10 * time.Millisecond)
		err = file.Save(b)
	}
	child(err)
}

func find(folder, name string, into any) error {
	b, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// prepareJob writes the files of a job.
func prepareJob(t *testing.T, folder string, rounds int, j job) {
	t.Helper()
	for _, name := range []string{"sums", "submissions"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	prepareRoster(t, folder, "roster.txt", "party-", "secret-", j.Parties)
	b, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "job.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if j.Members > 0 {
		prepareRoster(t, folder, "committee.txt", "member-", "member-secret-", j.Members)
		sum := `protocol = "oneshot", committee = "committee.txt"`
		if j.Buffer > 0 {
			sum += fmt.Sprintf(", buffer = %d", j.Buffer)
		}
		declare(t, folder, rounds, j.Length, cmp.Or(j.Step, "10s"), fmt.Sprintf(
			"parties.drop_out = %v\nsum = { %s }", cmp.Or(j.DropOut, 0.3), sum), j.Privacy)
		return
	}
	if j.Records {
		declareHospitals(t, folder, rounds)
		return
	}
	if j.Both {
		declareBoth(t, folder, rounds, "1m")
		return
	}
	declare(t, folder, rounds, j.Length, cmp.Or(j.Step, "10s"), "parties.drop_out = 0.3",
		"noise = \"discrete-gaussian\"\nepsilon = 1000")
}

// prepareRoster writes a roster of this many parties, and a file of the secrets of each.
func prepareRoster(t *testing.T, folder, file, names, secrets string, n int) {
	t.Helper()
	var entries []keyexchange.Entry
	for i := range n {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			t.Fatal(err)
		}
		key, err := keyexchange.GenerateSealKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		secret := slices.Concat(identity.Seed(), key[:])
		name := filepath.Join(folder, fmt.Sprint(secrets, i))
		if err := os.WriteFile(name, secret, 0o600); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, keyexchange.Entry{
			Name: fmt.Sprint(names, i),
			Key:  identity.Public().(ed25519.PublicKey),
		})
	}
	roster, err := keyexchange.NewRoster(entries)
	if err != nil {
		t.Fatal(err)
	}
	text, err := roster.MarshalText()
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, file), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// declare writes the federation of a vector, with more lines at the top and under [privacy].
func declare(
	t *testing.T, folder string, rounds, length int, stepTime, more, privacy string,
) {
	t.Helper()
	text := fmt.Appendf(nil, `name = "vector"
rounds = %d
model.length = %d
parties.roster = "roster.txt"
time.step_time = %q
%s
[privacy]
clip = 1.0
%s
`, rounds, length, stepTime, more, privacy)
	if err := os.WriteFile(filepath.Join(folder, "federation.toml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// freePort finds a port of loopback that nobody has at the moment, outside of those that
// the system gives to whoever asks for any: a server that is killed and started again
// would find one of these taken every few thousand times.
func freePort(t *testing.T) string {
	t.Helper()
	first, last := 20_000, 30_000
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		var low int
		if _, err := fmt.Sscan(string(b), &low); err == nil && low <= last {
			first, last = max(1100, low-10_000), low-1
		}
	}
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first)))
		if err != nil {
			continue
		}
		defer l.Close()
		address := l.Addr().String()
		if _, given := ports.LoadOrStore(address, true); !given {
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// ports are those that tests were given.
var ports sync.Map

// process is a child that is started again whenever it was killed.
type process struct {
	role, folder string
	binary       string // empty: this test's
	environment  []string
	mutex        sync.Mutex
	command      *exec.Cmd
	died         chan error // of the present one
}

func (p *process) start(t *testing.T, environment ...string) {
	t.Helper()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	c := exec.Command(cmp.Or(p.binary, os.Args[0]))
	c.Env = append(os.Environ(), roleVariable+"="+p.role, "HUSHSUM_TEST_FOLDER="+p.folder,
		"GOMAXPROCS=1")
	c.Env = append(append(c.Env, p.environment...), environment...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	died := make(chan error, 1)
	go func() { died <- c.Wait() }()
	p.command, p.died = c, died
}

// kill kills the process, and reports whether it was alive.
func (p *process) kill() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command == nil {
		return false
	}
	err := p.command.Process.Kill()
	<-p.died
	p.command = nil
	return err == nil
}

// stop has the process end as a supervisor does, and waits for it.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.died
	p.command = nil
}

// killed waits until the process has killed itself; done ends the wait.
func (p *process) killed(t *testing.T, limit time.Duration) {
	t.Helper()
	select {
	case err := <-p.died:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s ended by itself: %v", p.role, err)
		}
		p.mutex.Lock()
		p.command = nil
		p.mutex.Unlock()
	case <-time.After(limit):
		var s runner.Status
		_ = find(p.folder, "status", &s)
		t.Fatalf("%s took no decision for %v: %s, %s, round %d, %s: %+v", p.role, limit, s.State, s.Why,
			s.Round, s.Stage, s.Parties)
	}
}

func startJobParties(t *testing.T, folder string, parties int) []*process {
	t.Helper()
	var all []*process
	for i := range parties {
		p := &process{role: strconv.Itoa(i), folder: folder}
		p.start(t)
		t.Cleanup(func() { p.kill() })
		all = append(all, p)
	}
	return all
}

// awaitEnd waits until the federation has ended and all parties have the last model.
//
// How long that takes depends on the machine. What fails is standing still.
func awaitEnd(t *testing.T, folder string, parties []*process) *runner.Status {
	t.Helper()
	const limit = 3 * time.Minute
	deadline, round, done := time.Now().Add(limit), 0, 0
	for {
		var s runner.Status
		err := find(folder, "status", &s)
		was := done
		done = 0
		if err == nil && s.State == "ended" {
			for _, p := range parties {
				var yes bool
				if find(folder, "done-"+p.role, &yes) == nil {
					done++
				}
			}
			if done == len(parties) {
				return &s
			}
		}
		if s.Round > round || done > was {
			deadline, round = time.Now().Add(limit), max(round, s.Round)
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing moves for %v: %v, %s %s, round %d, parties %v", limit, err, s.State, s.Stage,
				s.Round, s.Parties)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// compareSums compares every sum with the submissions of its parties, in the federation's ring,
// and sums of one round with each other. It returns how many rounds have one.
func compareSums(t *testing.T, folder string) (rounds int) {
	t.Helper()
	rounds, wrong := wrongSums(t, folder)
	for _, w := range wrong {
		t.Error(w)
	}
	return rounds
}

// wrongSums is compareSums for who counts what is wrong.
func wrongSums(t *testing.T, folder string) (rounds int, wrong []string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(folder, "sums"))
	if err != nil {
		t.Fatal(err)
	}
	fed, err := federation.Read(filepath.Join(folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	layout := fed.Settled.Layout()
	seen := make(map[string]summed)
	for _, f := range files {
		if strings.Contains(f.Name(), ".new") {
			continue // of a server that was killed while it wrote
		}
		round, _, _ := strings.Cut(f.Name(), "-")
		var s summed
		if err := find(folder, "sums/"+f.Name(), &s); err != nil {
			t.Fatal(err)
		}
		if had, found := seen[round]; found {
			if !slices.Equal(had.Parties, s.Parties) || !slices.EqualFunc(had.Sum, s.Sum, slices.Equal) {
				wrong = append(wrong, fmt.Sprintf("round %s has two sums", round))
			}
			continue
		}
		seen[round] = s
		want := make([][]uint64, len(s.Sum))
		for l := range want {
			want[l] = make([]uint64, len(s.Sum[l]))
		}
		for _, i := range s.Parties {
			var values [][]uint64
			if err := find(folder, fmt.Sprintf("submissions/%s-%d", round, i), &values); err != nil {
				t.Fatal(err)
			}
			for l := range want {
				for k, x := range values[l] {
					want[l][k] += x
				}
			}
		}
		for l, lane := range layout {
			unused := 64 - lane.Bits
			if !slices.EqualFunc(want[l], s.Sum[l], func(x, y uint64) bool { return (x-y)<<unused == 0 }) {
				wrong = append(wrong, fmt.Sprintf("sum %d of round %s is not that of parties %v", l+1, round,
					s.Parties))
			}
		}
	}
	return len(seen), wrong
}

// The server is killed before, between and after the two writes of every decision of the
// set-up and the rounds: no decision is made twice, and everything comes to its end. Sums are so
// long that each is stored next to the states that follow it. In a bubble a kill ends all
// connections, and leaves of the server what its record has acknowledged.
func TestKillServerAtEveryStep(t *testing.T) {
	inTurn(t)
	inBubble(t, killAtEveryStep)
}

func killAtEveryStep(t *testing.T, in *network) {
	folder := t.TempDir()
	prepareJob(t, folder, *killRounds, job{Parties: jobParties, Length: 20_000})
	fed, files, err := federation.ReadFiles(filepath.Join(folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	// start starts the server, which dies at a step of its first decision.
	start := func(step string) (server *node.Node, died chan struct{}) {
		c := in.node(plainNode(filepath.Join(folder, "node")))
		c.Listen = killedAddress
		c.Hooks().Grace = 700 * time.Millisecond
		died = make(chan struct{})
		started, once := make(chan struct{}), sync.Once{}
		c.Hooks().Fault = func(now string) {
			if now == step {
				once.Do(func() {
					<-started
					in.cut()
					node.Kill(server)
					close(died)
				})
			}
		}
		c.Summed = func(round int, parties []int, sum [][]uint64) {
			leave(folder, fmt.Sprintf("sums/%d-%d", round, time.Now().UnixNano()), summed{parties, sum})
		}
		if server, err = node.Start(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		close(started)
		return server, died
	}
	server, _ := start("")
	if _, err := server.Create(t.Context(), *files); err != nil {
		t.Fatal(err)
	}
	server.Close()
	var group sync.WaitGroup
	for i := range jobParties {
		p, err := loadParty(folder, i, fed, "http://"+killedAddress)
		if err != nil {
			t.Fatal(err)
		}
		in.server(p.Server)
		p.Trainer = (&job{Length: 20_000}).trainer(folder, fed, i)
		p.Book = &consent.Book{File: filepath.Join(folder, fmt.Sprint("book-", i)), Key: p.Key}
		p.Submitted = func(round int, values [][]uint64) {
			leave(folder, fmt.Sprintf("submissions/%d-%d", round, i), values)
		}
		group.Go(func() {
			if _, err := p.Run(t.Context()); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	kills := 0
	// One session takes five decisions, each round four; then it ends.
	for decision := range 5 + 4**killRounds {
		for _, step := range killSteps(decision) {
			server, died := start(step)
			select {
			case <-died:
			case <-time.After(2 * time.Minute):
				t.Fatalf("no decision after %d kills", kills)
			}
			server.Close()
			kills++
		}
	}
	server, _ = start("")
	defer server.Close()
	status := awaitStatus(t.Context(), t, server, fed.ID, func(s *runner.Status) bool {
		return s.State == "ended"
	})
	group.Wait()
	sums := compareSums(t, folder)
	if status.Round != *killRounds || status.Lost != 0 || sums != *killRounds {
		t.Errorf("%d rounds, %d lost, %d sums: want %d, 0, %d", status.Round, status.Lost, sums,
			*killRounds, *killRounds)
	}
	for _, p := range status.History {
		if p.Parties != jobParties {
			t.Errorf("round %d has %d parties, %d stayed", p.Round, p.Parties, jobParties)
		}
	}
	killed.Add(int64(kills))
}

// killSteps returns the steps of a decision at which the server is killed: before it is made,
// twice, and after.
func killSteps(decision int) []string {
	return []string{"object", "entry", []string{"file", "sending"}[decision%2]}
}

// killedAddress is that of a server in a bubble.
const killedAddress = "127.0.0.1:8440"

// The same with processes, which a signal kills in every third of these places.
func TestKillServerProcess(t *testing.T) {
	suite.OnlyLong(t)
	inTurn(t)
	folder := t.TempDir()
	j := job{Address: "http://" + freePort(t), Parties: jobParties, Length: 20_000}
	prepareJob(t, folder, *killRounds, j)
	parties := startJobParties(t, folder, j.Parties)
	server := &process{role: "server", folder: folder}
	t.Cleanup(func() { server.kill() })
	steps, kills := record.Steps, 0
	for range 5 + 4**killRounds {
		server.start(t, "HUSHSUM_TEST_KILL=1:"+steps[kills%len(steps)])
		server.killed(t, 2*time.Minute)
		kills++
	}
	server.start(t)
	status := awaitEnd(t, folder, parties)
	if sums := compareSums(t, folder); status.Round != *killRounds || status.Lost != 0 ||
		sums != *killRounds {
		t.Errorf("%d rounds, %d lost, %d sums: want %d, 0, %d", status.Round, status.Lost, sums,
			*killRounds, *killRounds)
	}
	killed.Add(int64(kills))
}

// A backup of the record is restored, from some rounds ago: the rounds that parties know of
// count as lost, no number of a round or session is used twice, and the rest is held.
func TestKillAndRestoreBackup(t *testing.T) { killAndRestore(t, 0) }

// The same with sums of one message.
func TestKillAndRestoreCommitteeBackup(t *testing.T) { killAndRestore(t, jobMembers) }

func killAndRestore(t *testing.T, members int) {
	inTurn(t)
	folder := t.TempDir()
	rounds := 12
	j := job{Address: "http://" + freePort(t), Parties: jobParties, Length: 20, Members: members}
	prepareJob(t, folder, rounds, j)
	parties := startJobParties(t, folder, j.Parties)
	startJobMembers(t, folder, members)
	server := &process{role: "server", folder: folder}
	server.start(t)
	t.Cleanup(func() { server.kill() })
	// await waits for the sum of a round, or of a later one, and returns the last.
	await := func(round int) int {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			last := lastSum(t, folder)
			if last >= round {
				return last
			}
			if time.Now().After(deadline) {
				t.Fatalf("round %d does not come, %d was the last", round, last)
			}
		}
	}
	await(2)
	server.kill()
	was := lastSum(t, folder) // the record is of this round, or has the next begun
	backup, used := filepath.Join(folder, "backup"), filepath.Join(folder, "node")
	if err := os.CopyFS(backup, os.DirFS(used)); err != nil {
		t.Fatal(err)
	}
	// A copy keeps who may read the secrets.
	if err := os.Chmod(filepath.Join(backup, "seal.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	server.start(t)
	await(was + 4) // which parties know of
	server.kill()
	if err := errors.Join(os.RemoveAll(used), os.Rename(backup, used)); err != nil {
		t.Fatal(err)
	}
	server.start(t)
	status := awaitEnd(t, folder, parties)
	sums := compareSums(t, folder)
	if status.Round != rounds || status.Lost < 3 || sums < rounds-2 {
		t.Errorf("%d rounds, %d lost, %d sums", status.Round, status.Lost, sums)
	}
	killed.Add(2)
}

// lastSum is the last round of which a server has left a sum.
func lastSum(t *testing.T, folder string) (last int) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(folder, "sums"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		number, _, _ := strings.Cut(f.Name(), "-")
		round, err := strconv.Atoi(number)
		if err == nil && !strings.Contains(f.Name(), ".new") {
			last = max(last, round)
		}
	}
	return last
}

// Parties and the server are killed at random moments.
func TestKillAtRandom(t *testing.T) {
	inTurn(t)
	rounds, kills := atRandom()
	j := job{Address: "http://" + freePort(t), Parties: jobParties, Length: 20}
	killAtRandom(t, t.TempDir(), rounds, j, strikes{kills, 1, 500 * time.Millisecond, 0})
}

// atRandom returns how many rounds, which take a quarter of a second or less where nobody is
// killed, and how many kills at most a test has whose moments are others each time.
func atRandom() (rounds, kills int) {
	if suite.Long() {
		return 8 * *killRounds, 12 * *killRounds
	}
	return 5 * *killRounds, 6 * *killRounds
}

// strikes are kills at random moments.
type strikes struct {
	most, together int           // kills at most; parties that are killed at a time at most
	pause, away    time.Duration // at most between strikes, and until who was killed is started again
}

// killAtRandom runs a job, and returns its end and when somebody was killed.
func killAtRandom(
	t *testing.T, folder string, rounds int, j job, by strikes,
) (status *runner.Status, kills []time.Time) {
	t.Helper()
	j.Resume = true // several rounds in a row may be lost, the more the slower the machine is
	prepareJob(t, folder, rounds, j)
	parties := startJobParties(t, folder, j.Parties)
	server := &process{role: "server", folder: folder}
	server.start(t)
	t.Cleanup(func() { server.kill() })
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-kill.seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for len(kills) < by.most {
		time.Sleep(50*time.Millisecond + time.Duration(random.Int64N(int64(by.pause))))
		var s runner.Status
		if find(folder, "status", &s) == nil && (s.State == "ended" || s.Round >= rounds-1) {
			break // the last round is to have a sum
		}
		struck := []*process{server}
		if random.IntN(4) > 0 {
			struck = nil
			for _, i := range random.Perm(len(parties))[:1+random.IntN(by.together)] {
				struck = append(struck, parties[i])
			}
		}
		for _, p := range struck {
			if p.kill() {
				kills = append(kills, time.Now())
			}
		}
		time.Sleep(time.Duration(random.Int64N(int64(by.away) + 1)))
		for _, p := range struck {
			p.start(t)
		}
	}
	status = awaitEnd(t, folder, parties)
	sums := compareSums(t, folder)
	if status.Round != rounds || sums != rounds-status.Lost {
		t.Errorf("%d rounds, %d lost, %d sums", status.Round, status.Lost, sums)
	}
	if last := status.History[len(status.History)-1]; last.Parties == 0 {
		t.Errorf("the last round was lost: %s", last.Lost)
	}
	killed.Add(int64(len(kills)))
	t.Logf("%d kills, %d of %d rounds lost", len(kills), status.Lost, rounds)
	return status, kills
}
