package protocol

import (
	"errors"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/masking"
)

// parallel calls work for 0 to n − 1 on all cores.
func parallel(n int, work func(i int) error) error {
	var wg sync.WaitGroup
	failures := make([]error, runtime.GOMAXPROCS(0))
	for w := range failures {
		wg.Go(func() {
			for i := w; i < n && failures[w] == nil; i += len(failures) {
				failures[w] = work(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(failures...)
}

// Ten thousand parties on a sparse graph, 1,000 coordinates, in one process: two
// rounds, one party in twenty dropping out of the first and coming back. It takes
// some minutes: go test ./protocol -run TenThousand -longest -v. Otherwise it runs
// with 200 parties.
func TestTenThousand(t *testing.T) {
	n := 200
	if suite.Longest() {
		n = 10_000
	}
	p, err := Parameters(Sizes{n, n, n * 95 / 100, n / 20}, 0, 40+60, 30, SemiMaliciousServer)
	if err != nil {
		t.Fatal(err)
	}
	signers, roster := parties(t, n)
	config := &Config{
		Label:     "scale",
		Roster:    roster,
		Layout:    masking.Layout{{Length: 1000, Bits: 32}},
		Colluders: n / 20,
		Recovery: &Recovery{
			Adversary:    SemiMaliciousServer,
			Degree:       p.Neighbours,
			Threshold:    p.Threshold,
			MinSurvivors: n * 95 / 100,

			CorruptNeighbours: p.CorruptNeighbours,
		},
	}
	server, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	lap := func(what string) {
		t.Logf("%-22s %8.1f s", what, time.Since(start).Seconds())
		start = time.Now()
	}
	c := Carrier[*Server, *Client]{Config: config, Server: server, Clients: make([]*Client, n),
		Each: parallel}
	err = parallel(n, func(i int) (err error) {
		c.Clients[i], err = NewClient(config, signers[i], nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetUp(); err != nil {
		t.Fatal(err)
	}
	lap("set-up")
	in, _ := inputs(1, config.Layout, n)
	for round := range 2 {
		if err := c.Begin(nil); err != nil {
			t.Fatal(err)
		}
		err := c.Submit(nil, func(i int) ([][]uint64, error) {
			if round == 0 && absent(i) {
				return nil, nil
			}
			return in[i], nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Certify(); err != nil {
			t.Fatal(err)
		}
		lap("parties, one round")
		sum, err := server.Sum()
		if err != nil {
			t.Fatal(err)
		}
		lap("server, unmasking")
		want := n
		if round == 0 {
			want = n - n/20
		}
		if len(server.Included()) != want || !equal(sum, sumOf(config.Layout, in, server.Included())) {
			t.Fatalf("round %d: wrong sum of %d", round+1, len(server.Included()))
		}
	}
	t.Logf("%d parties, k = %d, t = %d, %s", n, p.Neighbours, p.Threshold, peakMemory())
}

// peakMemory tells the process's largest resident set, where the system says so.
func peakMemory() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "memory unknown"
	}
	peak := regexp.MustCompile(`VmHWM:\s*(\d+ kB)`).FindStringSubmatch(string(status))
	if peak == nil {
		return "memory unknown"
	}
	return "at most " + strings.TrimSpace(peak[1]) + " resident"
}
