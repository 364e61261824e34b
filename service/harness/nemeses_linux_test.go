package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
)

// strike is a nemesis of processes: it does something, and undoes it.
type strike struct {
	name string
	do   func(c *cluster, hold time.Duration) error
}

// startNATS starts an operator's servers, and returns their addresses.
func (c *cluster) startNATS(servers int) (at []string) {
	c.Helper()
	if servers == 0 {
		return nil
	}
	program := filepath.Join(c.folder, "nats-server")
	built, err := exec.Command("go", "build", "-o", program,
		"github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		c.Fatalf("%v: %s", err, built)
	}
	var routes []string
	for range servers {
		at, routes = append(at, c.free()), append(routes, c.free())
	}
	for i := range servers {
		folder := filepath.Join(c.folder, fmt.Sprint("nats-", i))
		if err := os.Mkdir(folder, 0o700); err != nil {
			c.Fatal(err)
		}
		text := fmt.Sprintf("server_name: nats-%d\nlisten: %q\njetstream { store_dir: %q, "+
			"sync_interval: always }\n", i, at[i], folder)
		if servers > 1 {
			text += fmt.Sprintf("cluster { name: c, listen: %q, routes: [\"nats-route://%s\"] }\n",
				routes[i], strings.Join(routes, "\", \"nats-route://"))
		}
		config := filepath.Join(folder, "server.conf")
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			c.Fatal(err)
		}
		p := &process{folder: folder, program: []string{program, "-c", config}}
		p.start(c.T)
		c.Cleanup(p.kill)
		c.nats = append(c.nats, p)
	}
	return at
}

// again kills processes, has something done, and starts them.
func (c *cluster) again(hold time.Duration, between func() error, all ...*process) error {
	for _, p := range all {
		p.kill()
	}
	var err error
	if between != nil {
		err = between()
	}
	time.Sleep(hold)
	for _, p := range all {
		p.start(c.T)
	}
	return err
}

// freezes returns the leader, which is going to be frozen.
func (c *cluster) freezes() *process {
	at := c.leader()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.thawed[at] = len(c.nodes) > 1
	return c.nodes[at]
}

// frozen stops a process for a while.
func frozen(p *process, hold time.Duration) error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(hold)
	return p.signal(syscall.SIGCONT)
}

// isolated makes a network bad for a while.
func isolated(all []*Proxy, hold time.Duration, set func(p *Proxy, bad bool)) error {
	for _, p := range all {
		set(p, true)
	}
	time.Sleep(hold)
	for _, p := range all {
		set(p, false)
	}
	return nil
}

// around returns the proxies of a node to the others, or to NATS, and those of others to it.
func (c *cluster) around(node int) (all []*Proxy) {
	all = append(all, c.between[node]...)
	for i, others := range c.between {
		if len(c.nats) > 0 || i == node {
			continue
		}
		k := node
		if node > i {
			k--
		}
		if k < len(others) { // a node that was added dials the others
			all = append(all, others[k])
		}
	}
	return all
}

// damaged damages a file of a folder.
func (c *cluster) damaged(folder string) error {
	d, is := damageIn(folder, c.random, func(name string) bool {
		return strings.HasSuffix(name, ".blk") || strings.HasSuffix(name, ".chain")
	})
	if !is {
		return errors.New("there is nothing to damage")
	}
	c.Logf("%s", d)
	return d.Do(folder)
}

func (c *cluster) folderOf(p *process) string {
	if at := filepath.Join(p.folder, "node"); len(p.program) == 0 {
		return at
	}
	return p.folder
}

// stores returns a process that stores the record.
func (c *cluster) stores() *process {
	all := c.nodes
	if len(c.nats) > 0 {
		all = c.nats
	}
	return all[c.random.IntN(len(all))]
}

var (
	killLeader = strike{"the leader is killed", func(c *cluster, hold time.Duration) error {
		return c.again(hold, nil, c.nodes[c.leader()])
	}}
	killAll = strike{"all nodes are killed", func(c *cluster, hold time.Duration) error {
		return c.again(hold, nil, c.nodes...)
	}}
	killStep = strike{"the leader is killed in a step of a decision", func(c *cluster,
		hold time.Duration) error {
		p := c.nodes[c.leader()]
		if err := p.strike(fault{1 + c.random.IntN(6), syscall.SIGKILL}); err != nil {
			return err
		}
		for range 200 {
			if over, _ := p.ended(); over {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		return c.again(hold, func() error {
			return errIgnored(os.Remove(filepath.Join(p.folder, fileFault)))
		}, p)
	}}
	freezeLeader = strike{"the leader is frozen", func(c *cluster, hold time.Duration) error {
		return frozen(c.freezes(), hold)
	}}
	freezeStep = strike{"the leader is frozen in a step of a decision", func(c *cluster,
		hold time.Duration) error {
		p := c.freezes()
		if err := p.strike(fault{1 + c.random.IntN(6), syscall.SIGSTOP}); err != nil {
			return err
		}
		time.Sleep(hold)
		return errors.Join(errIgnored(os.Remove(filepath.Join(p.folder, fileFault))),
			p.signal(syscall.SIGCONT))
	}}
	partition = strike{"the leader is isolated", func(c *cluster, hold time.Duration) error {
		return isolated(c.around(c.leader()), hold, func(p *Proxy, bad bool) { p.Silent.Store(bad) })
	}}
	oneWay = strike{"nobody is heard by the leader", func(c *cluster, hold time.Duration) error {
		return isolated(c.around(c.leader()), hold, func(p *Proxy, bad bool) { p.Mute.Store(bad) })
	}}
	slow = strike{"the leader's ways are slow", func(c *cluster, hold time.Duration) error {
		return isolated(c.around(c.leader()), hold, func(p *Proxy, bad bool) {
			p.Slow.Store(bad)
			p.Delay.Store(map[bool]int64{true: int64(50 * time.Millisecond)}[bad])
		})
	}}
	cuts = strike{"all ways are cut", func(c *cluster, _ time.Duration) error {
		for _, ways := range append(c.between, c.ways...) {
			for _, p := range ways {
				p.Cut()
			}
		}
		return nil
	}}
	partyCut = strike{"a party's ways are silent", func(c *cluster, hold time.Duration) error {
		return isolated(c.ways[c.random.IntN(parties)], hold,
			func(p *Proxy, bad bool) { p.Silent.Store(bad) })
	}}
	clock = strike{"the leader's clock is wrong", func(c *cluster, hold time.Duration) error {
		name := filepath.Join(c.nodes[c.leader()].folder, fileClock)
		if err := save(name, time.Hour); err != nil {
			return err
		}
		time.Sleep(hold)
		return os.Remove(name)
	}}
	flipStopped = strike{"a file is damaged while a store is stopped", func(c *cluster,
		hold time.Duration) error {
		p := c.stores()
		return c.again(hold, func() error { return c.damaged(c.folderOf(p)) }, p)
	}}
	flipRunning = strike{"a file is damaged while a store runs", func(c *cluster,
		hold time.Duration) error {
		p := c.stores()
		if err := c.damaged(c.folderOf(p)); err != nil {
			return err
		}
		time.Sleep(hold)
		return c.again(0, nil, p)
	}}
	fewFiles = strike{"the leader has no files left", func(c *cluster, hold time.Duration) error {
		p := c.nodes[c.leader()]
		p.mutex.Lock()
		command := p.command
		p.mutex.Unlock()
		if command == nil {
			return os.ErrProcessDone
		}
		return withoutFiles(command.Process.Pid, hold)
	}}
	fullDisk = strike{"the leader's disk is full", func(c *cluster, hold time.Duration) error {
		if c.disks == nil {
			return errors.ErrUnsupported
		}
		return filled(c.disks[c.leader()], hold)
	}}
	killNATS = strike{"NATS is killed", func(c *cluster, hold time.Duration) error {
		if len(c.nats) == 0 {
			return errors.ErrUnsupported
		}
		return c.again(hold, nil, c.nats[c.random.IntN(len(c.nats))])
	}}
	freezeNATS = strike{"NATS is frozen", func(c *cluster, hold time.Duration) error {
		if len(c.nats) == 0 {
			return errors.ErrUnsupported
		}
		return frozen(c.nats[c.random.IntN(len(c.nats))], hold)
	}}
)

// errIgnored drops that a file is gone.
func errIgnored(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// struck has a nemesis strike, and waits for a sum of a round that begins later. It returns the
// damage that a door names instead.
func (c *cluster) struck(s strike, hold time.Duration) (damage string) {
	c.Helper()
	c.Logf("%s for %v", s.name, hold)
	switch err := s.do(c, hold); {
	case errors.Is(err, errors.ErrUnsupported):
		return ""
	case errors.Is(err, os.ErrProcessDone), errors.Is(err, syscall.ESRCH): // it had ended by itself
	case err != nil:
		c.Fatalf("%s: %v", s.name, err)
	}
	return c.await(c.now().Round+1, 30*time.Second)
}

// Three nodes of a cluster: the leader is killed, and frozen for 12 s, while rounds go on.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kind{nodes: 3}, random(t))
	for _, s := range []struct {
		strike
		hold time.Duration
	}{{killLeader, time.Second}, {freezeLeader, 12 * time.Second}} {
		c.orders("pause")
		c.orders("resume")
		c.struck(s.strike, s.hold)
	}
	rounds, ops := c.finish()
	t.Logf("%d sums, %d operations, %d rounds lost", rounds, ops, c.now().Lost)
}

// all are the nemeses of processes, of which each strikes in the long form.
var all = []strike{killLeader, killAll, killStep, freezeLeader, freezeStep, partition, oneWay, slow,
	cuts, partyCut, partyFile, clock, fewFiles, fullDisk, flipStopped, flipRunning, killNATS,
	freezeNATS}

// Every nemesis strikes real nodes on every kind of record, one after the other in an order that
// follows from the seed, again and again for as long as -harness.for says.
func TestNemeses(t *testing.T) {
	suite.OnlyLong(t) // it takes minutes
	for _, k := range []kind{{nodes: 1}, {nodes: 3}, {nodes: 2, nats: 1}, {nodes: 2, nats: 3}} {
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), *lasts)
			defer cancel()
			for again := true; again; again = ctx.Err() == nil {
				strikes(t, k)
			}
		})
	}
}

// strikes has every nemesis strike a cluster once.
func strikes(t *testing.T, k kind) {
	random := random(t)
	c := newCluster(t, k, random)
	named := 0
	for _, i := range random.Perm(len(all)) {
		hold := time.Duration(1+random.IntN(12)) * time.Second
		if *lasts > 0 && random.IntN(8) == 0 {
			hold = time.Minute
		}
		if said := c.struck(all[i], hold); said != "" {
			c.Logf("a door names damage: %s", said)
			named++
			break // the operator's turn
		}
		c.orders("pause")
		c.orders("resume")
	}
	rounds, ops := c.finish()
	t.Logf("%v: %d sums, %d operations, %d rounds lost, %d times a door named damage", k, rounds, ops,
		c.now().Lost, named)
}
