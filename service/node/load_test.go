package node_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	loadAlone = flag.String("load.alone", "yes", "measure the protocol alone too: yes, no or only")
)

// loadFederation writes a federation of many parties: a sparse graph from 200 on.
func loadFederation(t *testing.T, folder string, n, d, rounds int, address string) {
	t.Helper()
	prepareJob(t, folder, rounds, job{Address: address, Parties: n, Length: d})
	recovery := "drop_out = 0.1"
	switch {
	case n >= 200:
		recovery = "drop_out = 0.1\nadversary = \"curious\"\nsparse = true"
	case n <= 4:
		recovery = "drop_out = 0\nadversary = \"curious\""
	}
	text := fmt.Appendf(nil, `name = "load"
roster = "roster.txt"
rounds = %d
step_time = "10m"
[[model.tensor]]
name = "w"
shape = [%d]
[recovery]
%s
[privacy]
clip = 1
`, rounds, d, recovery)
	if err := os.WriteFile(filepath.Join(folder, "federation.toml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
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

// loadVector is what a party submits.
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

func runLoad(t *testing.T, n, d, rounds int) {
	folder := t.TempDir()
	address := "http://" + freePort(t)
	loadFederation(t, folder, n, d, rounds, address)
	fed, err := federation.Read(filepath.Join(folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if *loadAlone == "only" {
		setUp, round := protocolAlone(t, folder, n, d, fed)
		t.Logf("the protocol alone: set-up %.1f s, a round %.1f s; peak memory %d MB", setUp, round,
			peak(os.Getpid())>>20)
		return
	}
	server := &process{role: "server", folder: folder, environment: []string{"HUSHSUM_TEST_LOAD=1",
		"GOMAXPROCS=2"}}
	server.start(t)
	t.Cleanup(func() { server.kill() })
	began := time.Now()
	var group sync.WaitGroup
	var up, stayed atomic.Int64
	models := make(chan []byte, 1)
	turns := make(chan struct{}, 16) // each party would have a machine of its own
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for i := range n {
		group.Add(1)
		go func() {
			defer group.Done()
			ctx, leave := context.WithCancel(ctx)
			defer leave()
			p, err := loadParty(folder, i, fed, address)
			if err != nil {
				t.Error(err)
				return
			}
			p.Turns = turns
			p.Trainer = party.TrainerFunc(func(context.Context, *party.Work) (*party.Update, error) {
				if n >= 20 && i%20 == 19 {
					leave() // it is gone
					return nil, context.Canceled
				}
				return &party.Update{Vector: loadVector(i, d)}, nil
			})
			if name := os.Getenv("HUSHSUM_TEST_LOG"); name != "" {
				f, _ := os.OpenFile(name+".parties", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				p.Log = slog.New(slog.NewTextHandler(f, nil)).With("party", i)
			}
			model, err := p.Run(ctx)
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			up.Add(p.Server.Sent())
			stayed.Add(1)
			select {
			case models <- model:
			default:
			}
		}()
	}
	group.Wait()
	total := time.Since(began)
	if t.Failed() {
		return
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
	_, values, _, err := tensor.Parse(<-models)
	if err != nil {
		t.Fatal(err)
	}
	want, parties := 0., 0
	for i := range n {
		if n < 20 || i%20 != 19 {
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
			t.Errorf("round %d has %d parties, want %d", p.Round, p.Parties, parties)
		}
	}
	t.Logf("%d parties, d = %d: all %.1f s, of these rounds %.1f s; a party sends %.0f kB; "+
		"peak memory: server %d MB, all parties %d MB", n, d, total.Seconds(), seconds,
		float64(up.Load())/float64(stayed.Load())/1000, peak(server.command.Process.Pid)>>20,
		peak(os.Getpid())>>20)
	if *loadAlone == "yes" {
		setUp, round := protocolAlone(t, folder, n, d, fed)
		t.Logf("the protocol alone: set-up %.1f s, a round %.1f s; ratio of all: %.2f", setUp, round,
			total.Seconds()/(setUp+float64(rounds)*round))
	}
}

func loadParty(
	folder string, i int, fed *federation.Federation, address string,
) (*party.Party, error) {
	b, err := os.ReadFile(filepath.Join(folder, fmt.Sprint("secret-", i)))
	if err != nil {
		return nil, err
	}
	identity := ed25519.NewKeyFromSeed(b[:32])
	key := keyexchange.SealKey(b[32:])
	server, err := party.NewServer(address, "", identity)
	if err != nil {
		return nil, err
	}
	return &party.Party{
		Federation: fed,
		Identity:   identity,
		Server:     server,
		Folder:     filepath.Join(folder, fmt.Sprint("party-", i)),
		Key:        &key,
	}, nil
}

// protocolAlone holds a set-up and a round without a network: the same configuration,
// encoding and drop-outs, with as many workers as there are cores.
func protocolAlone(t *testing.T, folder string, n, d int, fed *federation.Federation,
) (setUp, round float64) {
	t.Helper()
	config := fed.Config(1)
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
	deliver := func(envelopes []protocol.Envelope, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		messages := make(map[int][]byte)
		var to []int
		for _, e := range envelopes {
			messages[e.To] = e.Message
			to = append(to, e.To)
		}
		each(to, func(i int) ([]byte, error) { return clients[i].Receive(messages[i]) })
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
	deliver(server.Keys())
	deliver(server.Members())
	setUp = time.Since(began).Seconds()
	began = time.Now()
	broadcast := make([]byte, 4*d)
	deliver(server.Begin(broadcast))
	var stay []int
	for i := range n {
		if n < 20 || i%20 != 19 {
			stay = append(stay, i)
		}
	}
	each(stay, func(i int) ([]byte, error) {
		values, err := fed.Settled.Encode(broadcast, loadVector(i, d), nil)
		if err != nil {
			return nil, err
		}
		return clients[i].Submit(broadcast, values...)
	})
	deliver(server.Survivors())
	deliver(server.Certificate())
	sum, err := server.Sum()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fed.Settled.Decode(broadcast, sum, len(stay)); err != nil {
		t.Fatal(err)
	}
	return setUp, time.Since(began).Seconds()
}
