package node_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
)

// Twelve parties of speeds that differ by a factor of forty in rounds that take the first four:
// no round is lost, some of what is summed was made of earlier models, the status says how many are
// in, and the server charges what parties have sent.
func TestBuffered(t *testing.T) {
	inTurn(t)
	inBubble(t, buffered)
}

func buffered(t *testing.T, in *network) {
	const parties, rounds, buffer = 12, 12, 4
	folder := t.TempDir()
	prepareJob(t, folder, rounds, job{Address: "http://127.0.0.1:1", Parties: parties, Length: 5,
		Members: jobMembers, Buffer: buffer, DropOut: 0.7,
		Privacy: "noise = \"discrete-gaussian\"\nepsilon = 500.0"})
	var lock sync.Mutex
	sums := make(map[int][]int) // parties of a round's
	s := in.small(startIn(t, folder, in.node(node.With(node.Options{
		Summed: func(round int, parties []int, _ [][]uint64) {
			lock.Lock()
			defer lock.Unlock()
			sums[round] = append([]int(nil), parties...)
		},
	}, node.Hooks{Grace: 500 * time.Millisecond}))))
	defer s.node.Close()
	for k := range jobMembers {
		s.help(context.Background(), k)
	}
	staleness := make(map[[2]int]int) // of a round's party
	sent := make([]int, parties)
	for i := range parties {
		p, err := loadParty(folder, i, s.fed, s.node.Address)
		if err != nil {
			t.Fatal(err)
		}
		in.server(p.Server)
		began := 0
		p.Trainer = party.TrainerFunc(func(ctx context.Context, w *party.Work) (*party.Update, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Duration(10+35*i) * time.Millisecond):
			}
			began = w.Round
			return &party.Update{Vector: loadVector(i, 5)}, nil
		})
		p.Submitted = func(round int, _ [][]uint64) {
			lock.Lock()
			defer lock.Unlock()
			staleness[[2]int{round, i}] = round - began
			sent[i]++
		}
		s.group.Go(func() {
			if _, err := p.Run(context.Background()); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	waits := false
	status := s.await("the end", func(s *runner.Status) bool {
		waits = waits || s.Buffer == buffer && s.Taken > 0 && s.Taken < buffer
		return s.State == "ended"
	})
	s.group.Wait()
	if status.Round != rounds || status.Lost != 0 || len(sums) != rounds {
		t.Errorf("%d rounds, %d lost, %d sums", status.Round, status.Lost, len(sums))
	}
	if !waits {
		t.Error("no status says how many submissions a round waits for")
	}
	old := 0
	for round, in := range sums {
		if len(in) < buffer {
			t.Errorf("round %d has %d parties", round, len(in))
		}
		for _, i := range in {
			old += staleness[[2]int{round, i}]
		}
	}
	if old == 0 {
		t.Error("nobody submitted what it made of an earlier model")
	}
	spent, most := s.fed.Settled.Round(), 0
	for _, n := range sent {
		most = max(most, n)
	}
	ledger, err := s.fed.Settled.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	name := s.fed.Settled.Roster().Name(0)
	if err := ledger.SpendRounds(spent, most, name); err != nil {
		t.Fatal(err)
	}
	want, err := ledger.Spent(name)
	if err != nil || math.Abs(want.Bare().Upper-epsilonOf(status)) > 1e-9 {
		t.Errorf("epsilon %v, and the party that sent most has sent %d times: %v, %v", epsilonOf(status),
			most, want, err)
	}
}
