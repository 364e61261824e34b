package node_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
)

// idlers are strangers that connect, say nothing, and come again seconds after they are sent away.
type idlers struct {
	group            sync.WaitGroup
	end              context.CancelFunc
	came, here, most atomic.Int64
}

func comeIdle(n int, address string) *idlers {
	var all idlers
	var ctx context.Context
	ctx, all.end = context.WithCancel(context.Background())
	for range n {
		all.group.Go(func() {
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-time.After(rand.N(10 * time.Second)):
					all.idle(ctx, address)
				}
			}
		})
	}
	return &all
}

// idle is one connection, until the other side closes it.
func (all *idlers) idle(ctx context.Context, address string) {
	dialer := net.Dialer{Timeout: time.Minute}
	c, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	all.came.Add(1)
	here := all.here.Add(1)
	for most := all.most.Load(); here > most && !all.most.CompareAndSwap(most, here); {
		most = all.most.Load()
	}
	_, _ = io.Copy(io.Discard, c)
	all.here.Add(-1)
}

func (all *idlers) leave() {
	all.end()
	all.group.Wait()
}

// Ten thousand strangers stay connected and come again whenever they are sent away, in turns with
// nobody: rounds have all 200 parties either way, none is lost, and no party's message is refused.
// It reports how long rounds take.
func TestCrowdOfStrangers(t *testing.T) {
	suite.OnlyLong(t) // minutes, and 20,000 files
	const n, d, crowd, each, blocks = 200, 1000, 10_000, 4, 4
	folder := t.TempDir()
	at := freePort(t)
	loadFederation(t, folder, n, d, each*blocks*10, "http://"+at)
	fed, err := federation.Read(filepath.Join(folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	server := &process{role: "server", folder: folder,
		environment: []string{"HUSHSUM_TEST_LOAD=1", "GOMAXPROCS=2"}}
	server.start(t)
	t.Cleanup(func() { server.kill() })
	var s runner.Status
	for find(folder, "status", &s) != nil {
		time.Sleep(50 * time.Millisecond)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := new(safeBuffer)
	var group sync.WaitGroup
	for i := range n {
		p, err := loadParty(folder, i, fed, "http://"+at)
		if err != nil {
			t.Fatal(err)
		}
		p.Log = slog.New(slog.NewTextHandler(log, nil))
		p.Trainer = party.TrainerFunc(func(context.Context, *party.Work) (*party.Update, error) {
			return &party.Update{Vector: loadVector(i, d)}, nil
		})
		group.Go(func() {
			if _, err := p.Run(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	var seconds [2][]float64 // without, with
	past := func(rounds int) {
		for deadline := time.Now().Add(10 * time.Minute); len(s.History) < rounds; {
			if time.Now().After(deadline) || t.Failed() {
				t.Fatalf("no %d rounds: %s", rounds, s.Why)
			}
			time.Sleep(50 * time.Millisecond)
			_ = find(folder, "status", &s)
		}
	}
	past(1)
	for block := range blocks {
		var all *idlers
		if block%2 == 1 {
			all = comeIdle(crowd, at)
			deadline := time.Now().Add(time.Minute) // a full queue may keep some out
			for all.came.Load() < crowd && time.Now().Before(deadline) {
				time.Sleep(50 * time.Millisecond)
			}
		}
		_ = find(folder, "status", &s)
		from := len(s.History) + 1 // the open one is of both
		past(from + each)
		for _, p := range s.History[from : from+each] {
			seconds[block%2] = append(seconds[block%2], p.Seconds)
		}
		if all != nil {
			all.leave()
			t.Logf("%d strangers at once at most, %d connections of theirs", all.most.Load(),
				all.came.Load())
		}
	}
	cancel()
	group.Wait()
	for _, p := range s.History {
		if p.Lost != "" || p.Parties != n {
			t.Errorf("round %d has %d parties of %d: %s", p.Round, p.Parties, n, p.Lost)
		}
	}
	for _, line := range strings.Split(log.String(), "\n") {
		if strings.Contains(line, "refused") || strings.Contains(line, "refuses") {
			t.Errorf("a party is refused: %s", line)
		}
	}
	middle := func(x []float64) float64 {
		slices.Sort(x)
		return (x[len(x)/2] + x[(len(x)-1)/2]) / 2
	}
	with, without := middle(seconds[1]), middle(seconds[0])
	tell(fmt.Sprintf("%d parties, %d idle strangers: a round takes %.2f s (median of %d), without "+
		"them %.2f s, %.2f times as long", n, crowd, with, len(seconds[1]), without, with/without))
	if suite.Timing() && with > 1.5*without {
		t.Error("strangers slow rounds down")
	}
}
