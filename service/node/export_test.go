package node

import (
	"context"
	"time"

	"github.com/hushsum/hushsum/service/page"
)

// With returns options with hooks.
func With(c Options, h Hooks) Options {
	*c.Hooks() = h
	return c
}

// Kill takes a node's record away, so that nothing is stored any more that was not. Close it then.
func Kill(n *Node) { n.conn.Close() }

// SayHandsOver says to all nodes that a node hands a federation over to one of them, under its key.
func SayHandsOver(n *Node, name, id string) {
	third := &Node{Options: Options{Name: name}, conn: n.conn, between: n.between}
	third.tell(id, lead{Leaving: true, For: n.Name})
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

// Hears reports whether a node hears another.
func Hears(n *Node, name string) bool { return n.hears(name) }
