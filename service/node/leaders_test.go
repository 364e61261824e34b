package node_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

var leadersOf = flag.String("leaders", "20x50",
	"federations x parties of each, of the test of three nodes of which one is killed")

// several are federations that are led by some nodes, with all their parties in this process.
type several struct {
	*testing.T
	folder    string
	parties   int // of each
	feds      []*federation.Federation
	mutex     sync.Mutex
	submitted map[string][][]uint64
	group     sync.WaitGroup
}

// severalIn declares federations, each of another length, by which its sums are told apart.
func severalIn(t *testing.T, n, parties int, pace string) *several {
	t.Helper()
	w := &several{T: t, folder: t.TempDir(), parties: parties,
		submitted: make(map[string][][]uint64)}
	for k := range n {
		folder := w.of(k)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		prepareJob(t, folder, chaosRounds, job{Parties: parties, Length: 20 + k})
		declare(t, folder, chaosRounds, 20+k, "1m",
			fmt.Sprintf("parties.drop_out = 0.3\ntime.pace = %q", pace), "")
		fed, err := federation.Read(filepath.Join(folder, "federation.toml"))
		if err != nil {
			t.Fatal(err)
		}
		w.feds = append(w.feds, fed)
	}
	return w
}

func folderOf(folder string, k int) string { return filepath.Join(folder, fmt.Sprint("fed-", k)) }

func (w *several) of(k int) string { return folderOf(w.folder, k) }

// whose tells of which federation a sum is.
func whose(feds []*federation.Federation, sum [][]uint64) int {
	for k, f := range feds {
		if f.Settled.Layout()[0].Length == len(sum[0]) {
			return k
		}
	}
	panic("a sum is of no federation")
}

// leavesSums leaves the sums of some federations in their folders.
func leavesSums(folder string, feds []*federation.Federation) func(int, []int, [][]uint64) {
	return func(round int, parties []int, sum [][]uint64) {
		leave(folderOf(folder, whose(feds, sum)), fmt.Sprintf("sums/%d-%d", round,
			time.Now().UnixNano()), summed{parties, sum})
	}
}

// createAll declares the federations of a folder at a node.
func createAll(n *node.Node, folder string) (feds []*federation.Federation, err error) {
	all, err := filepath.Glob(filepath.Join(folder, "fed-*"))
	if err != nil {
		return nil, err
	}
	for k := range all {
		fed, files, err := federation.ReadFiles(filepath.Join(folderOf(folder, k),
			"federation.toml"))
		if err != nil {
			return nil, err
		}
		feds = append(feds, fed)
		if n == nil {
			continue
		}
		_, err = n.Create(context.Background(), *files)
		if err != nil && !errors.Is(err, record.ErrExists) {
			return nil, err
		}
	}
	return feds, nil
}

// join has all parties take part by some addresses until ctx ends.
func (w *several) join(ctx context.Context, addresses []string) {
	w.Helper()
	for k, fed := range w.feds {
		for i := range w.parties {
			first := (k + i) % len(addresses)
			at := append(append([]string(nil), addresses[first:]...), addresses[:first]...)
			p, err := loadParty(w.of(k), i, fed, strings.Join(at, ","))
			if err != nil {
				w.Fatal(err)
			}
			p.Log = slog.New(slog.DiscardHandler)
			p.Trainer = party.TrainerFunc(func(_ context.Context, work *party.Work) (*party.Update, error) {
				v := loadVector(i, 20+k)
				v[0] = float64(work.Round%5) / 100
				return &party.Update{Vector: v}, nil
			})
			p.Submitted = func(round int, values [][]uint64) {
				w.mutex.Lock()
				defer w.mutex.Unlock()
				w.submitted[fmt.Sprintf("%d/%v/%d", k, round, i)] = values
			}
			w.group.Go(func() { _, _ = p.Run(ctx) })
		}
	}
}

// compare compares all sums with what their parties submitted.
func (w *several) compare() (sums int) {
	w.Helper()
	for k, fed := range w.feds {
		names, err := filepath.Glob(filepath.Join(w.of(k), "sums", "*"))
		if err != nil {
			w.Fatal(err)
		}
		layout := fed.Settled.Layout()
		for _, name := range names {
			if strings.Contains(name, ".new") {
				continue // of a node that was killed while it wrote
			}
			var s summed
			if err := find(filepath.Dir(name), filepath.Base(name), &s); err != nil {
				w.Fatal(err)
			}
			round, _, _ := strings.Cut(filepath.Base(name), "-")
			sums++
			for l := range s.Sum {
				for c, x := range s.Sum[l] {
					for _, i := range s.Parties {
						x -= w.submitted[fmt.Sprintf("%d/%v/%d", k, round, i)][l][c]
					}
					if x<<(64-layout[l].Bits) != 0 {
						w.Errorf("federation %d, round %s: the sum is not that of parties %v", k, round,
							s.Parties)
						break
					}
				}
			}
		}
	}
	return sums
}

// rounds adds up those that were begun, and those that were lost.
func rounds(all []runner.Status) (begun, lost int) {
	for _, s := range all {
		begun += s.Round
		lost += s.Lost
	}
	return begun, lost
}

// even waits until the nodes lead equally many federations, give or take one, and all of these have
// had this many more rounds. The node that is gone leads none of them. It returns after how long
// each had a leader, and after how long the nodes led equally many.
func (w *several) even(nodes, more int, gone string, seen func() []runner.Status,
) (led, even time.Duration) {
	w.Helper()
	began := time.Now()
	var before []runner.Status
	for deadline := began.Add(8 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		all := seen()
		leads := make(map[string]int)
		for _, s := range all {
			if s.Leader != "" && s.Leader != gone {
				leads[s.Leader]++
			}
		}
		total, least, most := 0, len(w.feds), 0
		for _, n := range leads {
			total, least, most = total+n, min(least, n), max(most, n)
		}
		if total == len(w.feds) && led == 0 {
			led = time.Since(began)
		}
		if total == len(w.feds) && len(leads) == nodes && most-least <= 1 {
			if before == nil {
				before, even = all, time.Since(began)
			}
			went := 0
			for k := range all {
				if all[k].Round >= before[k].Round+more {
					went++
				}
			}
			if went == len(all) {
				return led, even
			}
		}
		if time.Now().After(deadline) {
			w.Fatalf("federations by leader: %v, want them on %d nodes", leads, nodes)
		}
	}
}

// All federations are declared at one of three nodes, which hands them over until all lead as
// many; then one ends, and the others lead its own. Rounds go on meanwhile, and none is lost.
func TestLeadersSpread(t *testing.T) {
	inTurn(t)
	w := severalIn(t, 4, 4, "100ms")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	at := startNATS(t)("a pass-word")
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*node.Node
	var addresses []string
	for i := range 3 {
		c := plainNode(t.TempDir())
		c.Name, c.NATS = fmt.Sprint("node-", i), at
		c.Hooks().Key, c.Hooks().Grace = key, 700*time.Millisecond
		c.Summed = leavesSums(w.folder, w.feds)
		n, err := node.Start(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		nodes, addresses = append(nodes, n), append(addresses, n.Address)
	}
	if _, err := createAll(nodes[0], w.folder); err != nil {
		t.Fatal(err)
	}
	parties, leave := context.WithCancel(ctx)
	defer leave()
	w.join(parties, addresses)
	var which atomic.Int64
	seen := func() []runner.Status {
		out := make([]runner.Status, len(w.feds))
		for k, fed := range w.feds {
			if s, err := nodes[which.Load()].Status(ctx, fed.ID); err == nil {
				out[k] = *s
			}
		}
		return out
	}
	w.even(3, 2, "", seen)
	which.Store(1)
	nodes[0].Close()
	w.even(2, 2, "node-0", seen)
	leave()
	w.group.Wait()
	if begun, lost := rounds(seen()); lost > 0 {
		t.Errorf("%d of %d rounds are lost", lost, begun)
	}
	t.Logf("%d sums", w.compare())
}

// The same with 20 federations of 50 parties that come when all are led, on a cluster of three
// processes of which one is killed.
func TestLeadersOfMany(t *testing.T) {
	suite.OnlyLong(t) // a thousand parties
	feds, parties := 0, 0
	if _, err := fmt.Sscanf(*leadersOf, "%dx%d", &feds, &parties); err != nil || feds < 3 {
		t.Fatalf("-leaders %q", *leadersOf)
	}
	w := severalIn(t, feds, parties, "20s")
	var j job
	for range 3 {
		j.Peers = append(j.Peers, freePort(t))
		j.Doors = append(j.Doors, "http://"+freePort(t))
	}
	prepareCluster(t, w.folder)
	leave(w.folder, "several", j)
	var nodes []*process
	for i := range 3 {
		p := &process{role: fmt.Sprint("several ", i), folder: w.folder}
		p.start(t)
		t.Cleanup(func() { p.kill() })
		nodes = append(nodes, p)
	}
	witness := 0
	seen := func() (out []runner.Status) {
		if find(w.folder, fmt.Sprint("seen-", witness), &out) != nil {
			out = make([]runner.Status, len(w.feds))
		}
		return out
	}
	led, even := w.even(3, 0, "", seen)
	t.Logf("each has a leader after %.1f s, three nodes lead as many after %.1f s", led.Seconds(),
		even.Seconds())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.join(ctx, j.Doors)
	w.even(3, 2, "", seen)
	begun, lost := rounds(seen())
	t.Logf("%d rounds, %d lost", begun, lost)
	witness = 1
	nodes[0].kill()
	led, even = w.even(2, 2, "node-0", seen)
	cancel()
	w.group.Wait()
	begun, lost = rounds(seen())
	sums := w.compare()
	t.Logf("a node is killed: each has a leader after %.1f s, two nodes lead as many after %.1f s; "+
		"%d rounds, %d lost, %d sums", led.Seconds(), even.Seconds(), begun, lost, sums)
	if lost > 0 {
		t.Errorf("%d rounds are lost", lost)
	}
}

// childSeveral is a node of several federations.
func childSeveral(which int) {
	folder := os.Getenv("HUSHSUM_TEST_FOLDER")
	var j job
	child(find(folder, "several", &j))
	feds, err := createAll(nil, folder)
	child(err)
	n, err := node.Start(context.Background(), clusterConfig(folder, j, which, node.With(node.Options{
		Summed: leavesSums(folder, feds),
		Log:    slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}, node.Hooks{Plain: true})))
	child(err)
	if which == 0 {
		_, err = createAll(n, folder)
		child(err)
	}
	for {
		out := make([]runner.Status, len(feds))
		for k, fed := range feds {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			if s, err := n.Status(ctx, fed.ID); err == nil {
				out[k] = runner.Status{Leader: s.Leader, Round: s.Round, Lost: s.Lost}
			}
			cancel()
		}
		leave(folder, fmt.Sprint("seen-", which), out)
		time.Sleep(100 * time.Millisecond)
	}
}
