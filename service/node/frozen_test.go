package node_test

import (
	"flag"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/runner"
)

var frozenTimes = flag.Int("frozen.times", 20,
	"freezes of 60 s, of each kind of leader, with -long")

// frozenBound is how long after a freeze the next round has its sum, in the long form.
const frozenBound = 15 * time.Second

// nodesOf starts nodes of a job, and its parties, and waits for a round.
func nodesOf(t *testing.T, folder string, j job) (nodes []*process) {
	t.Helper()
	prepareJob(t, folder, chaosRounds, j)
	declare(t, folder, chaosRounds, j.Length, "30s",
		"parties.drop_out = 0.3\ntime.pace = \"300ms\"", "")
	prepareCluster(t, folder)
	for i := range j.Doors {
		p := &process{role: "server", folder: folder,
			environment: []string{fmt.Sprint("HUSHSUM_TEST_NODE=", i)}}
		p.start(t)
		t.Cleanup(func() { p.kill() })
		nodes = append(nodes, p)
	}
	startJobParties(t, folder, j.Parties)
	leaderOf(t, folder, "", 2)
	return nodes
}

// frozenJob is a job of parties that know all of some nodes.
func frozenJob(t *testing.T, nodes int) job {
	j := job{Parties: 5, Length: 20}
	for range nodes {
		j.Doors = append(j.Doors, "http://"+freePort(t))
	}
	return j
}

// freezeLeader freezes the node that leads until a round that began since has its sum, and then for
// the rest of a time. It returns after how long the next sum came, and that of a round begun since.
func freezeLeader(t *testing.T, folder string, nodes []*process, hold time.Duration,
) (next, begun time.Duration) {
	t.Helper()
	leader, s := leaderOf(t, folder, "", 0)
	frozen := nodes[leader]
	frozen.mutex.Lock()
	defer frozen.mutex.Unlock()
	signal := func(s syscall.Signal) {
		if err := frozen.command.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	began := time.Now()
	defer signal(syscall.SIGCONT)
	was := lastSum(t, folder)
	for begun == 0 {
		if time.Now().After(began.Add(2 * time.Minute)) {
			var now runner.Status
			_ = find(folder, "status", &now)
			t.Fatalf("node %d was frozen after round %d, and there is no sum: %+v", leader, was, now)
		}
		time.Sleep(20 * time.Millisecond)
		last := lastSum(t, folder)
		if next == 0 && last > was {
			next = time.Since(began)
		}
		if last > was+1 { // of the round after the one that was open
			begun = time.Since(began)
		}
	}
	time.Sleep(hold - time.Since(began))
	var now runner.Status
	err := find(folder, "status", &now)
	for end := time.Now().Add(time.Minute); now.Leader == fmt.Sprint("node-", leader) &&
		time.Now().Before(end); err = find(folder, "status", &now) { // sums come before it
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil || now.Lost > s.Lost || now.Leader == fmt.Sprint("node-", leader) {
		t.Errorf("while node %d was frozen %d rounds were lost, and %q leads: %+v, %v", leader,
			now.Lost-s.Lost, now.Leader, now.History[max(0, len(now.History)-3):], err)
	}
	return next, begun
}

// A leader is frozen, as a machine that is paused: the kernel still takes connections, and nobody
// answers. Another node leads, parties come to it while the first is still frozen, and no round is
// lost, neither then nor once the first goes on.
func TestFrozenLeader(t *testing.T) {
	t.Parallel() // it mostly waits
	folder := t.TempDir()
	at := startNATS(t)("a pass-word")
	j := frozenJob(t, 2)
	j.NATS, j.Silence = []string{at, at}, 5*time.Second
	nodes := nodesOf(t, folder, j)
	next, begun := freezeLeader(t, folder, nodes, 0)
	t.Logf("the next sum came after %.1f s, that of a round begun since after %.1f s",
		next.Seconds(), begun.Seconds())
	thawed(t, folder)
}

// thawed waits for more sums once a frozen node goes on, and compares all.
func thawed(t *testing.T, folder string) {
	t.Helper()
	var s, now runner.Status
	if err := find(folder, "status", &s); err != nil {
		t.Fatal(err)
	}
	leaderOf(t, folder, "", s.Round+5)
	_ = find(folder, "status", &now)
	if now.Lost > s.Lost {
		t.Errorf("%d rounds were lost once the node went on: %+v", now.Lost-s.Lost, now.History)
	}
	compareSums(t, folder)
}

// Leaders are frozen for a minute each, at random moments, in clusters of three and on a NATS of
// their own, with the silence of the default: the next round has its sum within 15 s of each
// freeze.
func TestFrozenLeaders(t *testing.T) {
	suite.OnlyLong(t) // it takes minutes
	inTurn(t)
	const groups = 2
	settings := []string{"a cluster of three", "two nodes on NATS"}
	took, lost := make([][]float64, len(settings)*groups), make([]int, len(settings)*groups)
	t.Run("settings", func(t *testing.T) {
		for k := range took {
			t.Run(settings[k/groups], func(t *testing.T) {
				t.Parallel()
				folder := t.TempDir()
				j := frozenJob(t, 3-k/groups)
				at := ""
				if k/groups == 1 {
					at = startNATS(t)("a pass-word")
				}
				for range j.Doors {
					if at == "" {
						j.Peers = append(j.Peers, freePort(t))
					} else {
						j.NATS = append(j.NATS, at)
					}
				}
				nodes := nodesOf(t, folder, j)
				for range max(1, *frozenTimes/groups) {
					time.Sleep(10 * time.Second) // who was frozen has caught up
					next, begun := freezeLeader(t, folder, nodes, time.Minute)
					t.Logf("the next sum came after %.1f s, that of a round begun since after %.1f s",
						next.Seconds(), begun.Seconds())
					if took[k] = append(took[k], begun.Seconds()); begun > frozenBound {
						t.Errorf("a round after %.1f s, want %v", begun.Seconds(), frozenBound)
					}
					thawed(t, folder)
				}
				var s runner.Status
				_ = find(folder, "status", &s)
				lost[k] = s.Lost
			})
		}
	})
	for k, setting := range settings {
		all := slices.Sorted(slices.Values(slices.Concat(took[k*groups : (k+1)*groups]...)))
		if len(all) > 0 {
			tell(fmt.Sprintf("%s: %d freezes of 60 s, a round after %.1f to %.1f s, half within %.1f s; "+
				"%d rounds lost", setting, len(all), all[0], all[len(all)-1], all[len(all)/2],
				lost[k*groups]+lost[k*groups+1]))
		}
	}
}
