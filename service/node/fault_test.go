package node_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/harness"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
)

var (
	soakRounds  = flag.Int("soak.rounds", 6, "rounds under network faults")
	soakParties = flag.Int("soak.parties", 8, "parties under network faults")
)

// trouble changes a network at random moments until ctx ends, and is quiet while calm is.
func trouble(ctx context.Context, f *harness.Proxy, calm *atomic.Bool) {
	for ctx.Err() == nil {
		f.Delay.Store(0)
		f.Slow.Store(false)
		f.Silent.Store(false)
		kind := rand.IntN(6)
		if calm.Load() {
			kind = -1
		}
		switch kind {
		case 0:
			f.Cut()
		case 1:
			f.Delay.Store(int64(30 * time.Millisecond))
		case 2:
			f.Slow.Store(true)
		case 3:
			f.Silent.Store(true)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(100+rand.IntN(900)) * time.Millisecond):
		}
	}
	f.Silent.Store(false)
}

// Rounds under network faults, each party behind a bad network of its own: every round
// ends, every sum is that of its parties, and whoever was cut off comes back. A federation
// pauses when five rounds in a row are lost, so the network has a rest after the third.
func TestNetworkFaults(t *testing.T) {
	inTurn(t)
	folder := t.TempDir()
	address := freePort(t)
	j := job{Address: "http://" + address, Parties: *soakParties, Length: 50}
	prepareJob(t, folder, *soakRounds, j)
	fed, err := federation.Read(filepath.Join(folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	server := &process{role: "server", folder: folder}
	server.start(t)
	t.Cleanup(func() { server.kill() })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	began := time.Now()
	var group sync.WaitGroup
	var proxies []*harness.Proxy
	var calm atomic.Bool
	for i := range j.Parties {
		f := harness.NewProxy(t, address)
		proxies = append(proxies, f)
		go trouble(ctx, f, &calm)
		p, err := loadParty(folder, i, fed, "http://"+f.Address())
		if err != nil {
			t.Fatal(err)
		}
		p.Trainer = party.TrainerFunc(func(context.Context, *party.Work) (*party.Update, error) {
			return &party.Update{Vector: loadVector(i, j.Length)}, nil
		})
		p.Submitted = func(round int, values [][]uint64) {
			leave(folder, fmt.Sprintf("submissions/%d-%d", round, i), values)
		}
		group.Add(1)
		go func() {
			defer group.Done()
			if _, err := p.Run(ctx); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		}()
	}
	// What a tenth of the rounds take may be the tables' and the heap's; later growth is a
	// leak.
	var early atomic.Int64
	go func() {
		var s runner.Status
		for ctx.Err() == nil && (find(folder, "status", &s) != nil || s.Round < *soakRounds/10+1) {
			_ = sleepFor(ctx, 100*time.Millisecond)
		}
		early.Store(memory(server.command.Process.Pid, "VmRSS"))
	}()
	go func() {
		for ctx.Err() == nil {
			var s runner.Status
			if find(folder, "status", &s) == nil {
				lost := 0
				for k := len(s.History) - 1; k >= 0 && s.History[k].Parties == 0; k-- {
					lost++
				}
				calm.Store(lost >= 3)
			}
			_ = sleepFor(ctx, 100*time.Millisecond)
		}
	}()
	group.Wait()
	late := memory(server.command.Process.Pid, "VmRSS")
	var s runner.Status
	for find(folder, "status", &s) != nil || s.State != "ended" {
		time.Sleep(50 * time.Millisecond)
	}
	sums := compareSums(t, folder)
	if s.Round != *soakRounds || sums != s.Round-s.Lost {
		t.Errorf("%d rounds of %d, %d lost, %d sums", s.Round, *soakRounds, s.Lost, sums)
	}
	cuts, missed := int64(0), 0
	for _, f := range proxies {
		cuts += f.Cuts.Load()
	}
	reasons := make(map[string]int)
	for _, p := range s.History {
		if p.Parties > 0 {
			missed += j.Parties - p.Parties
		} else {
			reason, _, _ := strings.Cut(p.Lost, ";")
			reasons[reason]++
		}
	}
	if grown := late - early.Load(); grown > 100<<20 {
		t.Errorf("the server's memory grew by %d MB after a tenth of the rounds", grown>>20)
	}
	t.Logf("%d rounds of %d parties in %.0f s: %d lost, %d of %d submissions missed, %d times all "+
		"connections of a party cut; memory of the server %d MB after a tenth of the rounds, %d MB "+
		"at the end, at most %d MB; its folder has %d MB; %v", s.Round, j.Parties,
		time.Since(began).Seconds(), s.Lost, missed, (s.Round-s.Lost)*j.Parties, cuts,
		early.Load()>>20, late>>20, peak(server.command.Process.Pid)>>20,
		sizeOf(t, filepath.Join(folder, "node"))>>20, reasons)
}

func sleepFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err()
}

// sizeOf is how many bytes the files of a folder have.
func sizeOf(t *testing.T, folder string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted meanwhile
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}
