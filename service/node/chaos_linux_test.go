package node_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hushsum/hushsum/service/harness"
	"github.com/hushsum/hushsum/service/runner"
)

var chaosFor = flag.Duration("chaos.for", 0,
	"how long chaos goes on, in a cluster too; 0: each event once, in seconds")

// Servers and parties meet with whatever happens to machines, one event after the other, each
// followed by rounds that go on by themselves, and no sum is wrong: of a node that is alone, of
// two on an operator's NATS, and, given time, of a cluster of three. Each tells how many events and
// sums there were: -run TestChaos -chaos.for 1h -timeout 2h. They are no parts of one test: a part
// starts only when all tests that wait have had a place.
func TestChaosAlone(t *testing.T) { testChaos(t, chaosAlone) }

func TestChaosOnNATS(t *testing.T) { testChaos(t, chaosOnNATS) }

func TestChaosInCluster(t *testing.T) {
	if *chaosFor == 0 {
		t.Skip("it takes time: give -chaos.for")
	}
	testChaos(t, chaosInCluster)
}

func testChaos(t *testing.T, start func(*testing.T) *chaos) {
	t.Parallel() // it mostly waits
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-kill.seed %d", seed)
	c := start(t)
	c.random = rand.New(rand.NewPCG(seed, 0))
	c.run()
	o := c.finish()
	tell(fmt.Sprintf("%s: %d events, %d sums, %d wrong, %d rounds lost, %d processes ended by "+
		"themselves; after the cause had gone a decision came within %.1f s, a sum within %.1f s",
		o.Setting, o.Events, o.Sums, o.Wrong, o.Lost, o.Ended, o.Leaderless.Seconds(),
		o.Without.Seconds()))
	killed.Add(int64(o.Events))
}

// outcome counts the events of a setting, and what followed.
type outcome struct {
	Setting                   string
	Events, Sums, Wrong, Lost int
	Ended                     int           // processes, by themselves
	Leaderless                time.Duration // the longest from an event's end to a decision
	Without                   time.Duration // and to a sum of a round that began later
}

// chaos is a setting.
type chaos struct {
	t              *testing.T
	folder         string
	random         *rand.Rand
	nodes, parties []*process
	nats           *process         // an operator's, or nil
	ways           []*harness.Proxy // of each node to it
	disks          []string         // of each node, that can be filled
	events         []happening      // that can happen here
	outcome
}

// happening is something that happens, and is over after a while.
type happening struct {
	name string
	do   func(c *chaos, hold time.Duration) error
}

const (
	chaosParties = 5
	chaosSilence = 2 * time.Second
	chaosDisk    = 64 << 20
	chaosRounds  = 50_000 // that nobody sees the end of
)

func newChaos(t *testing.T, setting string, j job) *chaos {
	t.Helper()
	c := &chaos{t: t, folder: t.TempDir(), outcome: outcome{Setting: setting}}
	j.Parties, j.Length, j.Resume = chaosParties, 20, true
	j.Silence, j.Probe = chaosSilence, 500*time.Millisecond
	prepareJob(t, c.folder, chaosRounds, j)
	declare(t, c.folder, chaosRounds, j.Length, "10s", "parties.drop_out = 0.3", "")
	prepareCluster(t, c.folder)
	names := []string{"node"}
	if len(j.Doors) > 0 {
		names = nil
		for i := range j.Doors {
			names = append(names, fmt.Sprint("node-", i))
		}
	}
	for i, name := range names {
		p := &process{role: "server", folder: c.folder}
		if len(j.Doors) > 0 {
			p.environment = []string{fmt.Sprint("HUSHSUM_TEST_NODE=", i)}
		}
		c.nodes = append(c.nodes, p)
		disk := filepath.Join(c.folder, name)
		if err := os.Mkdir(disk, 0o700); err != nil {
			t.Fatal(err)
		}
		size := fmt.Sprintf("size=%d", chaosDisk)
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, size); err != nil {
			t.Logf("no disk is filled, which takes the right to mount one: %v", err)
			continue
		}
		t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
		c.disks = append(c.disks, disk)
	}
	return c
}

// begin starts all processes, and waits for a sum.
func (c *chaos) begin() *chaos {
	c.t.Helper()
	for _, p := range c.nodes {
		p.start(c.t)
		c.t.Cleanup(func() { p.kill() })
	}
	c.parties = startJobParties(c.t, c.folder, chaosParties)
	c.awaitSums(time.Now(), -1)
	return c
}

func chaosAlone(t *testing.T) *chaos {
	c := newChaos(t, "a node alone", job{Address: "http://" + freePort(t)})
	c.events = slices.Concat(ofNodes, ofParties, ofDisks)
	return c.begin()
}

func chaosOnNATS(t *testing.T) *chaos {
	at := freePort(t)
	j := job{Doors: []string{"http://" + freePort(t), "http://" + freePort(t)}}
	var ways []*harness.Proxy
	for range j.Doors {
		f := harness.NewProxy(t, at)
		ways = append(ways, f)
		j.NATS = append(j.NATS, "nats://"+f.Address())
	}
	c := newChaos(t, "two nodes on NATS", j)
	c.ways = ways
	leave(c.folder, "nats-address", at)
	c.nats = &process{role: "nats", folder: c.folder}
	c.nats.start(t)
	t.Cleanup(func() { c.nats.kill() })
	c.events = slices.Concat(ofNodes[:2], ofNATS)
	if *chaosFor > 0 {
		c.events = slices.Concat(ofNodes, ofParties, ofNATS)
	}
	return c.begin()
}

func chaosInCluster(t *testing.T) *chaos {
	var j job
	for range 3 {
		j.Peers = append(j.Peers, freePort(t))
		j.Doors = append(j.Doors, "http://"+freePort(t))
	}
	c := newChaos(t, "a cluster of three", j)
	c.events = slices.Concat(ofNodes, ofParties, ofDisks)
	return c.begin()
}

// leader is the node that led last.
func (c *chaos) leader() int {
	var which int
	if _, err := fmt.Sscanf(c.status().Leader, "node-%d", &which); err != nil {
		return 0 // alone
	}
	return min(which, len(c.nodes)-1)
}

func (c *chaos) party() *process { return c.parties[c.random.IntN(len(c.parties))] }

// again kills processes, and starts them after a while.
func (c *chaos) again(hold time.Duration, all ...*process) error {
	for _, p := range all {
		p.kill()
	}
	time.Sleep(hold)
	for _, p := range all {
		p.start(c.t)
	}
	return nil
}

// freeze stops a process for a while.
func freeze(p *process, hold time.Duration) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command == nil {
		return nil
	}
	if err := p.command.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(hold)
	return p.command.Process.Signal(syscall.SIGCONT)
}

// otherClock sets a child's clock an hour wrong for a while.
func (c *chaos) otherClock(name string, hold time.Duration) error {
	leave(c.folder, "clock-"+name, time.Hour)
	time.Sleep(hold)
	return os.Remove(filepath.Join(c.folder, "clock-"+name))
}

var ofNodes = []happening{
	{"the leader is killed", func(c *chaos, hold time.Duration) error {
		return c.again(hold, c.nodes[c.leader()])
	}},
	{"the leader is frozen", func(c *chaos, hold time.Duration) error {
		return freeze(c.nodes[c.leader()], hold+chaosSilence)
	}},
	{"all nodes are killed", func(c *chaos, hold time.Duration) error {
		return c.again(hold, c.nodes...)
	}},
	{"the leader's clock is wrong", func(c *chaos, hold time.Duration) error {
		name := "node"
		if len(c.nodes) > 1 {
			name += strconv.Itoa(c.leader())
		}
		return c.otherClock(name, hold)
	}},
	{"the leader has no files left", func(c *chaos, hold time.Duration) error {
		return c.nodes[c.leader()].noFiles(hold)
	}},
}

var ofParties = []happening{
	{"a party is killed", func(c *chaos, hold time.Duration) error {
		return c.again(hold, c.party())
	}},
	{"a party is frozen", func(c *chaos, hold time.Duration) error {
		return freeze(c.party(), hold)
	}},
	{"a party's clock is wrong", func(c *chaos, hold time.Duration) error {
		return c.otherClock("secret-"+c.party().role, hold)
	}},
}

var ofDisks = []happening{
	{"the leader's disk is full", func(c *chaos, hold time.Duration) error {
		if len(c.disks) < len(c.nodes) {
			return errors.ErrUnsupported
		}
		return fill(c.disks[c.leader()], hold)
	}},
}

var ofNATS = []happening{
	{"NATS is killed", func(c *chaos, hold time.Duration) error {
		return c.again(hold, c.nats)
	}},
	{"NATS is frozen", func(c *chaos, hold time.Duration) error {
		return freeze(c.nats, hold)
	}},
	{"the leader is isolated", func(c *chaos, hold time.Duration) error {
		way := c.ways[c.leader()]
		way.Silent.Store(true)
		time.Sleep(hold + chaosSilence)
		way.Silent.Store(false)
		return nil
	}},
	{"all ways to NATS are cut", func(c *chaos, _ time.Duration) error {
		for _, way := range c.ways {
			way.Cut()
		}
		return nil
	}},
}

// noFiles lets a process open no file for a while.
func (p *process) noFiles(hold time.Duration) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command == nil {
		return nil
	}
	pid := p.command.Process.Pid
	var was unix.Rlimit
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err == nil {
		err = unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &was)
	}
	if err != nil {
		return err
	}
	none := unix.Rlimit{Cur: min(uint64(len(open)), was.Cur), Max: was.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &none, nil); err != nil {
		return err
	}
	time.Sleep(hold)
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &was, nil)
}

// fill fills a disk for a while.
func fill(disk string, hold time.Duration) error {
	ballast, err := os.Create(filepath.Join(disk, "ballast"))
	if err != nil {
		return err
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = ballast.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	time.Sleep(hold)
	return errors.Join(ballast.Close(), os.Remove(ballast.Name()))
}

// run has each event happen once, or any of them for a time.
func (c *chaos) run() {
	for end, k := time.Now().Add(*chaosFor), 0; ; k++ {
		due := k % len(c.events)
		hold := time.Duration(100+c.random.IntN(300)) * time.Millisecond
		switch {
		case *chaosFor > 0 && time.Now().After(end), *chaosFor == 0 && k >= len(c.events):
			return
		case *chaosFor > 0:
			due = c.random.IntN(len(c.events))
			hold = time.Duration(c.random.ExpFloat64() * float64(2*time.Second))
		}
		e := c.events[due]
		c.t.Logf("event %d: %s for %.1f s", c.Events+1, e.name, hold.Seconds())
		err := e.do(c, hold)
		if errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			c.t.Fatalf("%s: %v", e.name, err)
		}
		c.Events++
		gone := time.Now()
		decided, summed := c.awaitSums(gone, c.Events)
		c.t.Logf("event %d: a decision after %.1f s, a sum after %.1f s", c.Events, decided.Seconds(),
			summed.Seconds())
		c.Leaderless = max(c.Leaderless, decided)
		c.Without = max(c.Without, summed)
	}
}

func (c *chaos) status() (s runner.Status) {
	_ = find(c.folder, "status", &s)
	return s
}

// awaitSums waits until a round has a sum that begins after a moment, and starts processes again
// that have ended by themselves. It returns after how long there was a decision, and the sum.
func (c *chaos) awaitSums(from time.Time, event int) (decided, summed time.Duration) {
	c.t.Helper()
	before := c.status()
	for deadline := from.Add(4 * time.Minute); time.Now().Before(deadline); {
		for _, p := range slices.Concat(c.nodes, c.parties) {
			c.supervise(p)
		}
		now := c.status()
		if decided == 0 && now.Decisions > before.Decisions {
			decided = time.Since(from)
		}
		if now.Round-now.Lost > before.Round-before.Lost+1 {
			return decided, time.Since(from)
		}
		time.Sleep(20 * time.Millisecond)
	}
	now := c.status()
	c.t.Fatalf("%s, event %d: no sum for four minutes; before round %d, %s, now round %d, %s, led by "+
		"%q", c.Setting, event, before.Round, before.Stage, now.Round, now.Stage, now.Leader)
	return 0, 0
}

// supervise starts a process again that has ended by itself.
func (c *chaos) supervise(p *process) {
	select {
	case err := <-p.died:
		c.t.Logf("%s ended: %v", p.role, err)
		c.Ended++
		p.start(c.t)
	default:
	}
}

// finish ends all processes and compares all sums.
func (c *chaos) finish() outcome {
	for _, p := range slices.Concat(c.nodes, c.parties) {
		p.kill()
	}
	c.Lost = c.status().Lost
	sums, wrong := wrongSums(c.t, c.folder)
	for _, w := range wrong {
		c.t.Errorf("%s: %s", c.Setting, w)
	}
	c.Sums, c.Wrong = sums, len(wrong)
	return c.outcome
}
