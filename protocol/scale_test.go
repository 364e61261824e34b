package protocol

import (
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/masking"
)

// parallel calls f for 0 to n − 1 on all cores.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				f(i)
			}
		})
	}
	wg.Wait()
}

// Ten thousand parties on a sparse graph, 1,000 coordinates, in one process: two
// rounds, one party in twenty dropping out of the first and coming back. It takes
// some minutes: go test ./protocol -run TenThousand -long -v. Without -long it runs
// with 300 parties.
func TestTenThousand(t *testing.T) {
	n := 300
	if *long {
		n = 10_000
	}
	p, err := Parameters(n, 0.05, 0.05, 40+60, 30, SemiMaliciousServer)
	if err != nil {
		t.Fatal(err)
	}
	signers, roster := parties(t, n)
	config := &Config{Label: "scale", Roster: roster, Layout: masking.Layout{{Length: 1000, Bits: 32}}, Recovery: &Recovery{
		Adversary: SemiMaliciousServer, Degree: p.Neighbours, Threshold: p.Threshold, Colluders: p.CorruptNeighbours, MinSurvivors: n * 9 / 10}}
	server, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	lap := func(what string) {
		t.Logf("%-22s %8.1f s", what, time.Since(start).Seconds())
		start = time.Now()
	}
	clients := make([]*Client, n)
	messages := make([][]byte, n)
	parallel(n, func(i int) {
		client, err := NewClient(config, signers[i], nil)
		if err != nil {
			t.Error(err)
			return
		}
		clients[i], messages[i] = client, client.Announce()
	})
	toServer := func() {
		for _, m := range messages {
			if m != nil {
				if err := server.Receive(m); err != nil {
					t.Fatal(err)
				}
			}
		}
		clear(messages)
	}
	toParties := func(next func() ([]Envelope, error)) {
		envelopes, err := next()
		if err != nil {
			t.Fatal(err)
		}
		parallel(len(envelopes), func(k int) {
			e := envelopes[k]
			answer, err := clients[e.To].Receive(e.Message)
			if err != nil {
				t.Errorf("party %d: %v", e.To, err)
			}
			messages[e.To] = answer
		})
	}
	toServer()
	toParties(server.Keys)
	toServer()
	lap("set-up")
	in, _ := inputs(1, config.Layout, n)
	for round := range 2 {
		toParties(server.Invite)
		toServer()
		toParties(func() ([]Envelope, error) { return server.Begin(nil) })
		parallel(n, func(i int) {
			if round == 0 && absent(i) {
				return
			}
			message, err := clients[i].Submit(nil, in[i]...)
			if err != nil {
				t.Error(err)
			}
			messages[i] = message
		})
		toServer()
		toParties(server.Survivors)
		toServer()
		toParties(server.Certificate)
		toServer()
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
