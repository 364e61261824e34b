package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/runner"
)

// cluster is some nodes in this process that are one.
type cluster struct {
	*testing.T
	ctx    context.Context
	folder string
	job    job
	each   node.Options // of every node
	nodes  []*node.Node
}

// startCluster starts this many nodes, and has room for more.
func startCluster(ctx context.Context, t *testing.T, n, room int) *cluster {
	t.Helper()
	return startClusterWith(ctx, t, n, room, node.Options{})
}

// startClusterWith starts nodes with the same options.
func startClusterWith(
	ctx context.Context, t *testing.T, n, room int, each node.Options,
) *cluster {
	t.Helper()
	each.Silence = 3 * time.Second
	c := &cluster{T: t, ctx: ctx, folder: t.TempDir(), each: each,
		nodes: make([]*node.Node, n+room)}
	prepareCluster(t, c.folder)
	for range n {
		c.job.Peers = append(c.job.Peers, freePort(t))
	}
	for range n + room {
		c.job.Doors = append(c.job.Doors, "http://"+freePort(t))
	}
	started := make(chan error, n)
	for i := range n {
		go func() { started <- c.start(i) }()
	}
	for range n {
		if err := <-started; err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *cluster) start(which int) error {
	config := clusterConfig(c.folder, c.job, which, node.With(
		c.each,
		node.Hooks{Plain: true, Grace: 700 * time.Millisecond}))
	n, err := node.Start(c.ctx, config)
	if err == nil {
		c.nodes[which] = n
		c.Cleanup(n.Close)
	}
	return err
}

// whole waits until this many nodes are there with all their copies.
func (c *cluster) whole(which, members int) *page.Nodes {
	c.Helper()
	for {
		nodes, err := c.nodes[which].Nodes(c.ctx)
		if err == nil && nodes.Members == members && nodes.Copying == 0 &&
			nodes.Missing == members-nodes.Quorum {
			return nodes
		}
		if c.ctx.Err() != nil {
			c.Fatalf("%+v: %v", nodes, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// A node that is away leads nothing, whatever it said last.
func TestNodeAwayLeadsNothing(t *testing.T) {
	inTurn(t)
	n, err := node.Start(t.Context(), plainNode(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for ago, leads := range map[time.Duration]int{0: 1, 14 * time.Second: 0} {
		n.Heard("other", 1, ago)
		nodes, err := n.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range nodes.Nodes {
			if one.Name == "other" && (one.Leads != leads || one.Here != (leads > 0)) {
				t.Errorf("heard %v ago: %+v", ago, one)
			}
		}
	}
}

// While a federation runs a fourth node is added, one that leads is removed, one that is dead is,
// and what would lose the quorum is refused. No round is lost. A removed node does not come
// back.
func TestNodesComeAndGo(t *testing.T) {
	suite.OnlyLong(t) // a cluster takes a minute
	inTurn(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c := startCluster(ctx, t, 3, 2)
	s := newSteps(ctx, t, c.nodes[0], reachAt(strings.Join(c.job.Doors, ",")), 12)
	t.Log(c.whole(0, 3).Say())
	leader := func(n *node.Node) (which int) {
		now := awaitStatus(ctx, t, n, s.fed.ID, func(s *runner.Status) bool { return s.Leader != "" })
		if _, err := fmt.Sscanf(now.Leader, "node-%d", &which); err != nil {
			t.Fatal(err)
		}
		return which
	}
	leads := leader(c.nodes[0])
	asked := (leads + 1) % 3
	other := (leads + 2) % 3
	refused := func(which int, words string) {
		t.Helper()
		o := page.NodeOrder{Name: fmt.Sprint("node-", which), Who: "ann"}
		if _, err := c.nodes[asked].RemoveNode(ctx, o); !errors.Is(err, page.ErrQuorum) ||
			!strings.Contains(err.Error(), words) {
			t.Errorf("%v lacks %q", err, words)
		}
	}
	refused(leads, "none of the 2 remaining nodes could fail, where now 1 may")
	s.round(c.nodes[asked])

	// A fourth, which asks those that were there before.
	c.job.Peers = append(c.job.Peers, freePort(t))
	if err := c.start(3); err != nil {
		t.Fatal(err)
	}
	t.Log("added: ", c.whole(asked, 4).Say())
	s.round(c.nodes[asked])
	old := uint64(9)
	o := page.NodeOrder{Name: fmt.Sprint("node-", leads), Who: "ann", Seen: &old}
	if _, err := c.nodes[asked].RemoveNode(ctx, o); !errors.Is(err, page.ErrStale) {
		t.Errorf("a number that was not seen: %v", err)
	}
	o.Seen = nil
	gone := c.nodes[leads]
	go func() { // as the command does
		if err := <-gone.Removed; errors.Is(err, node.ErrRemoved) {
			gone.Close()
		}
	}()
	began := time.Now()
	after, err := c.nodes[asked].RemoveNode(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("removed after %v: %s", time.Since(began), after.Say())
	if next := leader(c.nodes[asked]); next == leads {
		t.Error("the removed node leads")
	}
	s.round(c.nodes[asked])
	c.whole(asked, 3)
	s.round(c.nodes[asked])
	if err := c.start(leads); !errors.Is(err, node.ErrRemoved) {
		t.Errorf("a node that was removed: %v", err)
	}

	// One that is dead: the two that are left lose nothing by its removal, but have a copy less.
	c.nodes[other].Close()
	s.eventually("it is here", func() bool {
		nodes, err := c.nodes[asked].Nodes(ctx)
		return err == nil && nodes.Missing == 0
	})
	refused(3, "nothing would be decided")
	o = page.NodeOrder{Name: fmt.Sprint("node-", other), Who: "ann"}
	if after, err = c.nodes[asked].RemoveNode(ctx, o); err != nil {
		t.Fatal(err)
	}
	t.Log("removed: ", after.Say())
	s.round(c.nodes[asked])
	// It was not there when it was removed, and is told when it comes.
	if err := c.start(other); !errors.Is(err, node.ErrRemoved) {
		t.Errorf("a dead node that was removed: %v", err)
	}
	s.eventually("it is a member again", func() bool {
		nodes, err := c.nodes[asked].Nodes(ctx)
		return err == nil && nodes.Members == 2
	})
	c.job.Peers = append(c.job.Peers, freePort(t))
	if err := c.start(4); err != nil {
		t.Fatal(err)
	}
	t.Log("added: ", c.whole(asked, 3).Say())
	s.end(c.nodes[asked])
}
