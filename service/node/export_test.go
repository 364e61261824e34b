package node

import (
	"context"
	"time"

	"github.com/hushsum/hushsum/service/page"
)

// SayLeaves says to all nodes, under the key of one of them, that a node leaves a federation.
func SayLeaves(n *Node, name, id string) {
	third := &Node{Options: Options{Name: name}, conn: n.conn, between: n.between}
	third.say(id, true)
}

// Unled has the node not know any more that it leads a federation, nor anybody else.
func (n *Node) Unled(id string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	e := n.entries[id]
	e.runner, e.leader, e.heard = nil, lead{}, time.Time{}
}

// Heard has another node have said that it leads something, some time ago.
func (n *Node) Heard(name string, leads int, ago time.Duration) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.others[name] = &present{presence{Node: name, Leads: leads}, time.Now().Add(-ago)}
}

// Health returns what the page shows of the node.
func (n *Node) Health(ctx context.Context) *page.Health { return shows{n}.Health(ctx) }
