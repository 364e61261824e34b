package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/signature"
)

// nodesAt asks a node for the members of the cluster, or has it remove one; nil, and why, if it
// does neither.
func (c *cluster) nodesAt(ctx context.Context, node int, remove string) (*page.Nodes, string) {
	url, method, match := "http://"+c.setups[node].Admin+"/v1/nodes", http.MethodGet, ""
	if remove != "" {
		now, why := c.nodesAt(ctx, node, "")
		if now == nil {
			return nil, why
		}
		url, method = url+"/"+remove+"/remove", http.MethodPost
		match = strconv.Quote(strconv.FormatUint(now.Revision, 10))
	}
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err == nil && remove != "" {
		r.Header.Set("If-Match", match)
		err = signature.Sign(r, nil, c.operator, time.Now())
	}
	if err != nil {
		c.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err.Error()
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	out := new(page.Nodes)
	if err != nil || answer.StatusCode != http.StatusOK || json.Unmarshal(b, out) != nil {
		return nil, string(b)
	}
	return out, ""
}

// whole waits until the cluster has so many members, each with all its copies.
func (c *cluster) whole(ctx context.Context, asked, members int) {
	c.Helper()
	for said := ""; ; time.Sleep(silence / 4) {
		now, why := c.nodesAt(ctx, asked, "")
		switch {
		case now == nil:
			said = why
		case now.Members == members && now.Copying == 0 && now.Missing == members-now.Quorum:
			return
		default:
			said = now.Say()
		}
		if ctx.Err() != nil {
			c.Fatalf("there are not %d whole members: %s", members, said)
		}
	}
}

// removes has the operator remove a node at another, and does not start it again.
func (c *cluster) removes(ctx context.Context, asked, which int) {
	c.Helper()
	name := fmt.Sprint("node-", which)
	for {
		out, why := c.nodesAt(ctx, asked, name)
		if out != nil {
			c.Logf("%s is removed: %s", name, out.Say())
			break
		}
		if ctx.Err() != nil {
			c.Fatalf("%s is not removed: %s", name, why)
		}
		time.Sleep(silence / 4)
	}
	c.nodes[which].kill()
}

// meanwhile has something done next to something else.
func (c *cluster) meanwhile(beside func() error, do func()) {
	c.Helper()
	done := make(chan error, 1)
	go func() { done <- beside() }()
	do()
	if err := <-done; err != nil {
		c.Error(err)
	}
}

// A node is added while another is isolated, the leader is removed while another is frozen, and one
// that was killed is removed: no sum is wrong, nothing goes back, and rounds go on.
func TestMembership(t *testing.T) {
	suite.OnlyLong(t) // it takes a minute
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := newCluster(t, kind{nodes: 3, room: 1}, random(t))
	const added, hold = 3, 6 * time.Second
	rests := func() {
		t.Helper()
		c.orders("pause")
		c.orders("resume")
		if said := c.await(c.now().Round+1, 30*time.Second); said != "" {
			t.Errorf("a door names damage: %s", said)
		}
	}
	leader := c.leader()
	alone, asked := (leader+1)%3, (leader+2)%3
	c.meanwhile(func() error {
		return isolated(c.around(alone), hold, func(p *Proxy, bad bool) { p.Silent.Store(bad) })
	}, func() { c.nodes[added].start(t) })
	c.whole(ctx, asked, 4)
	rests()

	leader = c.leader()
	var others []int
	for i := range c.nodes {
		if i != leader {
			others = append(others, i)
		}
	}
	c.meanwhile(func() error { return frozen(c.nodes[others[0]], hold) },
		func() { c.removes(ctx, others[1], leader) })
	c.whole(ctx, others[1], 3)
	rests()

	c.nodes[others[0]].kill()
	c.removes(ctx, others[1], others[0])
	c.whole(ctx, others[1], 2)
	rests()
	rounds, ops := c.finish()
	t.Logf("%d sums, %d operations, %d rounds lost", rounds, ops, c.now().Lost)
}
