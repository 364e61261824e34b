package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
)

// This file shows nodes each other's presence, and removes a node for good.

const (
	subjectNode = "hushsum.node"
	forNode     = "node"
	fileLeft    = "removed" // in the folder of a node that was removed
	leaveTime   = 25 * time.Second
)

// ErrRemoved: this node was removed from its cluster.
var ErrRemoved = errors.New("node: this node was removed from its cluster for good; to add the " +
	"machine again give it a new --folder and a new --name")

// presence holds the message that each node sends each second.
type presence struct {
	Node    string `json:"node"`
	Door    string `json:"door"`
	Version string `json:"version"`
	Seals   string `json:"seals"`
	Leads   int    `json:"leads"`
	Unable  bool   `json:"unable,omitempty"`  // its record takes no decisions
	Leaving bool   `json:"leaving,omitempty"` // it stops
	// Certificate holds the statement of its door's certificate about the next.
	Certificate *exchange.NextCertificate `json:"certificate,omitempty"`
	Removed     string                    `json:"removed,omitempty"` // a node that has to stop for good
	// Declared is the identifier of a federation that was just declared, and Knows of one that was,
	// and that this node knows by now.
	Declared string `json:"declared,omitempty"`
	Knows    string `json:"knows,omitempty"`
}

// present is a node that was heard.
type present struct {
	presence
	when time.Time
}

// here reports whether a node was heard of late, and has not stopped.
func (p *present) here() bool { return !p.Leaving && time.Since(p.when) < 3*beat }

// version is the revision that this program was built of.
var version = func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return fmt.Sprintf("%.12s", s.Value)
		}
	}
	return info.Main.Version
}()

// beats reports each second that this node is present, and finally that it stops.
func (n *Node) beats() {
	defer n.group.Done()
	for n.ctx.Err() == nil {
		n.sayHere(presence{})
		n.spread()
		if stood(n.ctx, beat) {
			n.Log.Warn("this process stood still, or its machine did: others may lead what it led")
		}
	}
	n.sayHere(presence{Leaving: true})
	n.flush()
}

// flush waits for a moment until what was published has left.
func (n *Node) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = n.conn.FlushWithContext(ctx)
}

func (n *Node) sayHere(p presence) {
	p.Node, p.Door, p.Version = n.Name, n.Advertise, version
	p.Unable = n.health.ready() != nil
	p.Seals, p.Certificate = record.KeyName(n.seals.Newest()), n.certificate.says()
	n.mutex.Lock()
	for _, e := range n.entries {
		if e.runner != nil {
			p.Leads++
		}
	}
	n.mutex.Unlock()
	b, err := json.Marshal(p)
	if err == nil {
		b, _, err = n.between.seal(forNode, "", number{}, b)
	}
	if err == nil {
		_ = n.conn.Publish(subjectNode, b)
	}
}

// hearNode notes which nodes are present. A message that does not open comes from a node with
// another key, which hear reports.
func (n *Node) hearNode(m *nats.Msg) {
	body, _, err := n.between.open(forNode, "", number{}, m.Data)
	var p presence
	if err != nil || json.Unmarshal(body, &p) != nil {
		return
	}
	if p.Removed == n.Name {
		n.left()
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.others[p.Node] = &present{p, time.Now()}
	if who := n.know[p.Knows]; who != nil {
		who[p.Node] = true
	}
	if p.Declared != "" && p.Node != n.Name {
		go n.learns(p.Declared)
	}
}

// left records that this node was removed, also for its next start.
func (n *Node) left() {
	if err := os.WriteFile(n.leftFile(), []byte("removed\n"), 0o600); err != nil {
		n.Log.Error("a file was not written", "error", err.Error())
	}
	select {
	case n.Removed <- ErrRemoved:
		n.Log.Error("this node was removed: it stops")
	default:
	}
}

func (n *Node) leftFile() string { return filepath.Join(n.Folder, fileLeft) }

// mayBe fails with [ErrRemoved] if this node was removed while it did not run. By asking it has
// become a member of the cluster again, and it ceases to be one.
func (n *Node) mayBe(ctx context.Context) error {
	left, _, err := n.records.Left(ctx)
	if _, gone := left[n.Name]; err != nil || !gone {
		return err
	}
	n.left()
	if n.embedded == nil {
		return ErrRemoved
	}
	c, err := n.embedded.Cluster(ctx)
	if err != nil {
		return errors.Join(ErrRemoved, err)
	}
	for _, m := range c.Voters {
		if m.Name == n.Name {
			return errors.Join(ErrRemoved, n.embedded.Remove(ctx, m))
		}
	}
	return ErrRemoved
}

// Nodes returns the nodes of the server, and which of them decide. It fails with
// record.ErrUnavailable if no nodes decide.
func (n *Node) Nodes(ctx context.Context) (*page.Nodes, error) {
	out, _, err := n.nodes(ctx)
	return out, err
}

func (n *Node) nodes(ctx context.Context) (*page.Nodes, *record.Cluster, error) {
	_, revision, err := n.records.Left(ctx)
	if err != nil {
		return nil, nil, err
	}
	out := &page.Nodes{Revision: revision}
	index := make(map[string]*page.Node)
	n.mutex.Lock()
	for name, p := range n.others {
		if !p.here() && n.embedded == nil && time.Since(p.when) > time.Hour {
			delete(n.others, name) // nothing relies on it
			continue
		}
		one := &page.Node{Name: name, Here: p.here(), Door: p.Door, Version: p.Version,
			Seals: p.Seals, Seen: &p.when}
		if one.Here { // others may lead by now what it said last
			one.Leads = p.Leads
		}
		index[name] = one
	}
	n.mutex.Unlock()
	c := &record.Cluster{}
	switch {
	case n.alone && n.embedded != nil:
		c.Voters = []record.Voter{{Name: n.Name, Here: true}}
	case n.embedded != nil:
		if c, err = n.embedded.Cluster(ctx); err != nil {
			return nil, nil, err
		}
		for name := range index { // others have left
			if !slices.ContainsFunc(c.Voters, func(m record.Voter) bool { return m.Name == name }) {
				delete(index, name)
			}
		}
	}
	for i := range c.Voters {
		m := &c.Voters[i]
		if heard := index[m.Name]; heard == nil {
			index[m.Name] = &page.Node{Name: m.Name}
		} else if !heard.Here && n.embedded != nil && !n.alone {
			c.Away(m.Name) // NATS takes longer to miss a node
		}
		index[m.Name].Member, index[m.Name].Here = true, m.Here
	}
	out.Members, out.Quorum, out.Missing = quorum(c)
	for _, s := range c.Streams {
		if s.Current < min(out.Members, mostCopies) {
			out.Copying++
		}
	}
	for _, one := range index {
		out.Nodes = append(out.Nodes, *one)
	}
	slices.SortFunc(out.Nodes, func(a, b page.Node) int { return cmp.Compare(a.Name, b.Name) })
	return out, c, nil
}

// mostCopies is how many copies the record has.
const mostCopies = 3

// quorum returns how many members there are, how many must agree, and how many more may be away.
func quorum(c *record.Cluster) (members, decide, missing int) {
	for _, m := range c.Voters {
		if m.Here {
			missing++
		}
	}
	members = len(c.Voters)
	if members > 0 {
		decide = members/2 + 1
	}
	return members, decide, missing - decide
}

// lost describes what the removal of a member would cost: nothing, if it is empty.
func lost(c *record.Cluster, name string) (words []string) {
	after := &record.Cluster{}
	for _, m := range c.Voters {
		if m.Name != name {
			after.Voters = append(after.Voters, m)
		}
	}
	_, _, missing := quorum(c)
	members, decide, left := quorum(after)
	switch {
	case left < 0:
		words = append(words, fmt.Sprintf("%d of the %d remaining nodes would be up, and it takes %d "+
			"to decide: nothing would be decided until others come back", left+decide, members, decide))
	case left == 0 && missing > 0:
		words = append(words, fmt.Sprintf("none of the %d remaining nodes could fail, where now %d "+
			"may", members, missing))
	}
	behind := 0
	for _, s := range c.Streams {
		if !slices.Contains(s.On, name) {
			continue
		}
		current := s.Current
		if s.CurrentOn[name] {
			current--
		}
		if copies := min(len(s.On), members); current < copies/2+1 {
			behind++
		}
	}
	if behind > 0 {
		words = append(words, fmt.Sprintf("%d streams of the record would have too few whole copies: "+
			"nothing in them could be read or changed until the nodes that are behind, or away, have "+
			"caught up", behind))
	}
	return words
}

// isStale reports whether an operator saw another revision than the present one; nil is any.
func isStale(seen *uint64, present uint64) bool { return seen != nil && *seen != present }

// RemoveNode removes a node for good: a present node hands over the federations that it leads and
// stops, and the other nodes decide without it.
func (n *Node) RemoveNode(ctx context.Context, o page.NodeOrder) (*page.Nodes, error) {
	before, c, err := n.nodes(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.Voters, func(m record.Voter) bool { return m.Name == o.Name })
	words := lost(c, o.Name)
	switch {
	case isStale(o.Seen, before.Revision):
		return nil, page.ErrStale
	case n.embedded == nil || n.alone:
		return nil, fmt.Errorf("%w: no cluster of nodes has the record; just stop the node",
			page.ErrNode)
	case i < 0:
		return nil, fmt.Errorf("%w: none of the nodes is called %.60q; see hushsumd node list",
			page.ErrNode, o.Name)
	case o.Name == n.Name:
		return nil, fmt.Errorf("%w: it is the one that you are asking; ask another", page.ErrNode)
	case len(words) > 0 && !o.Force:
		return nil, fmt.Errorf("%w: %s. Add a node first, wait for those that are away, or force it",
			page.ErrQuorum, strings.Join(words, "; "))
	}
	for _, w := range words {
		n.Log.Warn("a node is removed by force", "node", o.Name, "by", o.Who, "lost", w)
	}
	if err := n.records.Leaves(ctx, o.Name, before.Revision); errors.Is(err, record.ErrLost) {
		return nil, page.ErrStale
	} else if err != nil {
		return nil, err
	}
	// It stops by itself, so that others lead before its copies are gone.
	for began := time.Now(); n.hears(o.Name) && time.Since(began) < leaveTime; {
		n.sayHere(presence{Removed: o.Name})
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(beat):
		}
	}
	if err := n.embedded.Remove(ctx, c.Voters[i]); err != nil {
		return nil, err
	}
	n.mutex.Lock()
	delete(n.others, o.Name)
	n.mutex.Unlock()
	for {
		after, c, err := n.nodes(ctx)
		if ctx.Err() != nil {
			return nil, cmp.Or(err, ctx.Err())
		}
		if err == nil && !slices.ContainsFunc(c.Voters,
			func(m record.Voter) bool { return m.Name == o.Name }) {
			return after, nil
		}
		time.Sleep(lookAgain / 4)
	}
}

func (n *Node) hears(name string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	p := n.others[name]
	return p != nil && p.here()
}
