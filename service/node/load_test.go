package node_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	jobs "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/tensor"
)

var (
	load = flag.String("load", "20x1000",
		"load tests, with commas between: parties x numbers, and x2 for two rounds, such as 1000x100000")
	loadClassical = flag.Bool("load.classical", false, "keys without ML-KEM")
	loadTLS       = flag.Bool("load.tls", false, "HTTPS in place of HTTP")
	loadTurns     = flag.Int("load.turns", 16, "parties of a load test that compute at once")
	loadSilent    = flag.Bool("load.silent", true, "one party of twenty drops out of each load test")
	loadRoom      = flag.Int("load.connections", 0,
		"connections that the server of a load test may have, 0 for what the files allow")
	loadMembers = flag.Int("load.members", 0,
		"sums of one message, with a committee of this many processes; 0: pairwise sums")
	loadCovered = flag.Bool("load.covered", false, "submissions are covered until members agree")
	loadAlone   = flag.String("load.alone", "yes", "measure the protocol alone too: yes, no or only")
)

// loadFederation writes a federation of many parties: a sparse graph from 200 on.
func loadFederation(t *testing.T, folder string, n, d, rounds int, address string) {
	t.Helper()
	prepareJob(t, folder, rounds, job{Address: address, Parties: n, Length: d, Members: *loadMembers})
	sums := "parties.drop_out = 0.1"
	switch {
	case *loadMembers > 0:
		sums += fmt.Sprintf("\nsum.protocol = \"oneshot\"\nsum.committee = \"committee.txt\"\n"+
			"sum.covered = %t\nsum.range = 1.0\nsum.fraction_bits = 18", *loadCovered)
	case n >= 200:
		sums = "parties.drop_out = 0.1\nsum.adversary = \"curious\"\nsum.sparse = true"
	case n <= 4:
		sums = "sum.recovery = true\nsum.adversary = \"curious\""
	}
	if *loadClassical {
		sums += "\nsum.classical = true"
	}
	declare(t, folder, rounds, d, "10m", sums, "")
}

// memory is how much memory a process has, in bytes, as a field of its status says: VmHWM
// is the most that it had, VmRSS what it has; 0 where that is not told.
func memory(pid int, field string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(b), "\n") {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == field+":" {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// peak is the most memory that a process had, in bytes.
func peak(pid int) int64 { return memory(pid, "VmHWM") }

// processorSeconds is how long the processor worked for a process, 0 where that is not told: fields
// 14 and 15 of its stat, in hundredths of a second. The name of the program, before them, may have
// spaces, and ends with the last bracket.
func processorSeconds(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return float64(user+system) / 100
}

// loadVector returns the vector that a party submits.
func loadVector(i, d int) []float64 {
	v := make([]float64, d)
	x := float64(i%7-3) / 4 / math.Sqrt(float64(d))
	for k := range v {
		v[k] = x
	}
	return v
}

// TestLoad holds rounds over real HTTP: the server in a process of its own, all parties in
// this one, each with its own connections; one in twenty drops out when it is asked to
// train. The mean is compared with that of those who stayed. It reports times, bytes and
// memory, and the ratio to the same without HTTP, record and files.
func TestLoad(t *testing.T) {
	inTurn(t)
	for _, size := range strings.Split(*load, ",") {
		t.Run(size, func(t *testing.T) {
			n, d, rounds := 0, 0, 1
			if _, err := fmt.Sscanf(size+"x1", "%dx%dx%d", &n, &d, &rounds); err != nil || n < 2 || d < 1 {
				t.Fatalf("-load %q", size)
			}
			runLoad(t, n, d, rounds)
		})
	}
}

// loadEnvironment is added to the server's.
var loadEnvironment []string

// runLoad returns the most memory that the server had, in bytes.
func runLoad(t *testing.T, n, d, rounds int) (serverPeak int64) {
	t.Helper()
	folder := t.TempDir()
	address := "http://" + freePort(t)
	if *loadTLS {
		address = strings.Replace(address, "http:", "https:", 1)
	}
	loadFederation(t, folder, n, d, rounds, address)
	fed, err := federation.Read(filepath.Join(folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if *loadAlone == "only" {
		setUp, round := protocolAlone(t, folder, n, d, fed)
		t.Logf("the protocol alone: set-up %.1f s, a round %.1f s; peak memory %d MB", setUp, round,
			peak(os.Getpid())>>20)
		return 0
	}
	server := &process{role: "server", folder: folder, environment: append([]string{
		"HUSHSUM_TEST_LOAD=1", "GOMAXPROCS=2",
		fmt.Sprint("HUSHSUM_TEST_CONNECTIONS=", *loadRoom)}, loadEnvironment...)}
	server.start(t)
	t.Cleanup(func() { server.kill() })
	var pin string
	for *loadTLS && find(folder, "fingerprint", &pin) != nil {
		time.Sleep(50 * time.Millisecond)
	}
	startJobMembers(t, folder, *loadMembers)
	began := time.Now()
	all := loadParties(t, folder, fed, address, n)
	total := time.Since(began)
	if len(all.Errors) > 0 {
		t.Fatalf("%d parties failed: %s", len(all.Errors), all.Errors[0])
	}
	var s runner.Status
	for find(folder, "status", &s) != nil || s.State != "ended" {
		time.Sleep(50 * time.Millisecond)
	}
	for _, p := range s.History {
		if p.Lost != "" {
			t.Fatalf("round %d was lost after %.1f s: %s", p.Round, p.Seconds, p.Lost)
		}
	}
	_, values, _, err := tensor.Parse(all.Model)
	if err != nil {
		t.Fatal(err)
	}
	want, parties := 0., 0
	for i := range n {
		if stays(i, n) {
			want += loadVector(i, 1)[0] / math.Sqrt(float64(d))
			parties++
		}
	}
	want *= float64(rounds) / float64(parties)
	for k, x := range values {
		if math.Abs(x-want) > 1e-3/math.Sqrt(float64(d))*float64(rounds) {
			t.Fatalf("coordinate %d is %v, want %v", k, x, want)
		}
	}
	seconds := 0.
	for _, p := range s.History {
		seconds += p.Seconds
		if p.Parties != parties {
			t.Errorf("round %d, of session %d, has %d parties, want %d", p.Round, p.Session, p.Parties,
				parties)
		}
	}
	serverPeak = peak(server.command.Process.Pid)
	t.Logf("%d parties, d = %d: all %.1f s, of these rounds %.1f s; a party sends %.0f kB; "+
		"the server %.1f s of the processor; peak memory: server %d MB, processes of parties %d MB",
		n, d, total.Seconds(), seconds, float64(all.Sent)/float64(all.Stayed)/1000,
		processorSeconds(server.command.Process.Pid), serverPeak>>20, all.Peaks)
	if *loadMembers > 0 {
		t.Logf("a submission and its keys take %.1f kB; %d MB came in", float64(fed.Up())/1000,
			s.BytesIn>>20)
		return serverPeak
	}
	if *loadAlone == "yes" {
		server.kill() // the machine and its memory are the protocol's
		setUp, round := protocolAlone(t, folder, n, d, fed)
		t.Logf("the protocol alone: set-up %.1f s, a round %.1f s; peak memory %d MB; ratio of all: %.2f",
			setUp, round, peak(os.Getpid())>>20, total.Seconds()/(setUp+float64(rounds)*round))
	}
	return serverPeak
}

// The server's memory has tables of parties in it, and not their submissions: three times
// as many parties take less than half a submission more for each that is added. How much a
// process took at most depends on when it looked for garbage, so it is measured up to four
// times; a server that held submissions would take all of them each time.
func TestMemoryOfServer(t *testing.T) {
	suite.OnlyLong(t) // the memory of processes is another each time
	if runtime.GOOS != "linux" {
		t.Skip("it reads /proc")
	}
	const few, many, d = 20, 60, 500_000
	alone, turns := *loadAlone, *loadTurns
	defer func() { *loadAlone, *loadTurns, loadEnvironment = alone, turns, nil }()
	// No more bodies are on their way at once among many than among few, and garbage is not
	// let grow as large as what is held.
	*loadAlone, *loadTurns, loadEnvironment = "no", 2, []string{"GOGC=20"}
	for try := 1; ; try++ {
		grown := runLoad(t, many, d, 1) - runLoad(t, few, d, 1)
		t.Logf("%d MB more for %d more parties, whose submissions have %d MB", grown>>20, many-few,
			(many-few)*4*d>>20)
		if grown <= (many-few)*4*d/2 {
			return
		}
		if try == 4 {
			t.Fatal("the server's memory grows with the submissions")
		}
	}
}

// stays tells who does not drop out.
func stays(i, n int) bool { return !*loadSilent || n < 20 || i%20 != 19 }

// loaded is how parties of one process fared.
type loaded struct {
	Sent   int64 // bytes, of those who stayed
	Stayed int
	Model  []byte
	Errors []string
	Peaks  []int64 // MB of each process
}

// inProcess is how many parties one process has: each takes two files at times.
const inProcess = 2500

// loadParties has all parties take part, in this process if they are few.
func loadParties(t *testing.T, folder string, fed *federation.Federation, address string, n int,
) loaded {
	t.Helper()
	if n <= inProcess {
		out := loadSome(folder, fed, address, 0, n, n)
		out.Peaks = []int64{peak(os.Getpid()) >> 20}
		return out
	}
	var all loaded
	var children []*process
	for from := 0; from < n; from += inProcess {
		c := &process{folder: folder, role: fmt.Sprintf("load %d %d %d %t", from,
			min(from+inProcess, n), *loadTurns, *loadSilent)}
		c.start(t, "GOMAXPROCS=2")
		t.Cleanup(func() { c.kill() })
		children = append(children, c)
	}
	for k, c := range children {
		if err := <-c.died; err != nil {
			t.Fatalf("process %d of parties: %v", k, err)
		}
		c.died <- nil // for kill
		var one loaded
		if err := find(folder, fmt.Sprint("loaded-", k*inProcess), &one); err != nil {
			t.Fatal(err)
		}
		all.Sent += one.Sent
		all.Stayed += one.Stayed
		all.Model = one.Model
		all.Errors = append(all.Errors, one.Errors...)
		all.Peaks = append(all.Peaks, one.Peaks...)
	}
	return all
}

// childLoad is a process with some of the parties.
func childLoad(role string) {
	folder := os.Getenv("HUSHSUM_TEST_FOLDER")
	j, fed := readJob(folder)
	var from, to int
	_, err := fmt.Sscanf(role, "load %d %d %d %t", &from, &to, loadTurns, loadSilent)
	child(err)
	out := loadSome(folder, fed, j.Address, from, to, j.Parties)
	out.Peaks = []int64{peak(os.Getpid()) >> 20}
	leave(folder, fmt.Sprint("loaded-", from), out)
}

// loadSome has parties from one to another take part until the federation ends. They
// compute in turns, since each would have a machine of its own; the server sees the same.
func loadSome(folder string, fed *federation.Federation, address string, from, to, n int,
) (out loaded) {
	var group sync.WaitGroup
	var mutex sync.Mutex
	turns := make(chan struct{}, *loadTurns)
	for i := from; i < to; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			model, sent, err := loadOne(folder, fed, address, i, n, turns)
			mutex.Lock()
			defer mutex.Unlock()
			switch {
			case err == nil:
				out.Sent += sent
				out.Stayed++
				out.Model = model
			case !errors.Is(err, context.Canceled):
				out.Errors = append(out.Errors, fmt.Sprintf("party %d: %v", i, err))
			}
		}()
	}
	group.Wait()
	return out
}

func loadOne(folder string, fed *federation.Federation, address string, i, n int,
	turns chan struct{},
) (model []byte, sent int64, err error) {
	ctx, drop := context.WithCancel(context.Background())
	defer drop()
	p, err := loadParty(folder, i, fed, address)
	if err != nil {
		return nil, 0, err
	}
	p.Turns = turns
	p.Trainer = party.TrainerFunc(func(context.Context, *party.Work) (*party.Update, error) {
		if !stays(i, n) {
			drop()
			return nil, context.Canceled
		}
		return &party.Update{Vector: loadVector(i, fed.Spec.Len())}, nil
	})
	model, err = p.Run(ctx)
	return model, p.Server.Sent(), err
}

func loadParty(
	folder string, i int, fed *federation.Federation, address string,
) (*party.Party, error) {
	p, err := loadPeer(folder, fmt.Sprint("secret-", i), fed, address)
	if err == nil {
		p.Folder = filepath.Join(folder, fmt.Sprint("party-", i))
	}
	return p, err
}

// loadPeer makes a party, or what a member has of one, of a file of secrets.
func loadPeer(
	folder, secret string, fed *federation.Federation, address string,
) (*party.Party, error) {
	b, err := os.ReadFile(filepath.Join(folder, secret))
	if err != nil {
		return nil, err
	}
	identity := ed25519.NewKeyFromSeed(b[:32])
	key := keyexchange.SealKey(b[32:])
	pin := "" // of a server with TLS, which leaves it
	if strings.HasPrefix(address, "https:") {
		if err := find(folder, "fingerprint", &pin); err != nil {
			return nil, err
		}
	}
	server, err := party.NewServer(address, pin, identity)
	if err != nil {
		return nil, err
	}
	return &party.Party{
		Federation: fed,
		Identity:   identity,
		Server:     server,
		Key:        &key,
	}, nil
}

// protocolAlone holds a set-up and a round without a network: the same configuration,
// encoding and drop-outs, with as many workers as there are cores.
func protocolAlone(t *testing.T, folder string, n, d int, fed *federation.Federation,
) (setUp, round float64) {
	t.Helper()
	config := fed.Settled.Config(1)
	server, err := protocol.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	clients := make([]*protocol.Client, n)
	began := time.Now()
	var mutex sync.Mutex
	each := func(todo []int, do func(i int) ([]byte, error)) {
		work := make(chan int)
		var group sync.WaitGroup
		for range 2 {
			group.Add(1)
			go func() {
				defer group.Done()
				for i := range work {
					answer, err := do(i)
					if err == nil && answer != nil {
						mutex.Lock()
						err = server.Receive(i, answer)
						mutex.Unlock()
					}
					if err != nil {
						t.Error(err)
					}
				}
			}()
		}
		for _, i := range todo {
			work <- i
		}
		close(work)
		group.Wait()
	}
	// Messages are made one by one: together they are n times as long as the longest.
	deliver := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		each(server.Missing(), func(i int) (answer []byte, err error) {
			mutex.Lock()
			messages := server.Pending(i)
			mutex.Unlock()
			for _, m := range messages {
				if answer, err = clients[i].Receive(m); err != nil {
					return nil, err
				}
			}
			return answer, nil
		})
	}
	everybody := make([]int, n)
	for i := range everybody {
		everybody[i] = i
	}
	each(everybody, func(i int) ([]byte, error) {
		p, err := loadParty(folder, i, fed, "http://127.0.0.1:1")
		if err != nil {
			return nil, err
		}
		c, err := protocol.NewClient(config, p.Identity, nil)
		if err != nil {
			return nil, err
		}
		clients[i] = c
		return c.Announce(), nil
	})
	deliver(server.EndStep())
	if !config.Classical {
		deliver(server.EndStep())
	}
	setUp = time.Since(began).Seconds()
	began = time.Now()
	broadcast := make([]byte, 4*d)
	_, err = server.Begin(broadcast)
	deliver(err)
	var stay []int
	for i := range n {
		if stays(i, n) {
			stay = append(stay, i)
		}
	}
	each(stay, func(i int) ([]byte, error) {
		values, err := fed.Settled.Encode(jobs.BroadcastDigest(broadcast),
			jobs.Update[float64]{Vector: loadVector(i, d)}, nil)
		if err != nil {
			return nil, err
		}
		return clients[i].Submit(broadcast, values...)
	})
	deliver(server.EndStep())
	deliver(server.EndStep())
	sum, err := server.Sum()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fed.Settled.Decode(jobs.BroadcastDigest(broadcast), sum, len(stay)); err != nil {
		t.Fatal(err)
	}
	return setUp, time.Since(began).Seconds()
}
