package node

import (
	"cmp"
	"slices"
	"time"
)

// This file spreads federations over nodes. The node that leads most hands one over to the node
// that leads least, one after the other, as long as these differ by two: no node decides for
// others, and all count alike. A federation moves between two of its rounds, so that none is lost.

const (
	// passEvery is the time between two that a node hands over: by then all have heard how many
	// each leads.
	passEvery = 2 * beat
	// passWait is how long a federation waits for the node that it was handed to.
	passWait = 3 * beat
	// passRefused is how long a node hands nothing over after it had to take a federation back.
	passRefused = time.Minute
)

// passing names the federation that a node is about to hand over. The node's mutex guards it.
type passing struct {
	to    string // the node that the next may be handed to; empty: none
	after time.Time
}

// spread checks whether a federation should be handed over, and has the runners check.
func (n *Node) spread() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.passing.to = ""
	if n.alone || time.Now().Before(n.passing.after) {
		return
	}
	var here []presence
	for _, p := range n.others {
		if p.here() {
			here = append(here, p.presence)
		}
	}
	n.passing.to = passTo(n.Name, here)
	if n.passing.to == "" {
		return
	}
	for _, e := range n.entries {
		if e.runner != nil {
			e.runner.Poke()
		}
	}
}

// passTo returns the node that the named one should hand a federation to, or nothing. A node that
// cannot record decisions gets none, however few it leads.
func passTo(name string, here []presence) string {
	slices.SortFunc(here, func(a, b presence) int {
		return cmp.Or(cmp.Compare(a.Leads, b.Leads), cmp.Compare(a.Node, b.Node))
	})
	if len(here) == 0 || here[len(here)-1].Node != name {
		return ""
	}
	for _, p := range here {
		if here[len(here)-1].Leads-p.Leads < 2 {
			return ""
		}
		if !p.Unable {
			return p.Node
		}
	}
	return ""
}

// pass is called by runners between rounds. It returns the node to hand the federation to, once for
// each that should be handed over.
func (n *Node) pass() (to string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	to = n.passing.to
	if to != "" {
		n.passing = passing{after: time.Now().Add(passEvery)}
	}
	return to
}

// passed notes that this node hands a federation over.
func (n *Node) passed(e *entry, to string) {
	n.mutex.Lock()
	e.leader, e.heard = lead{Node: n.Name, Leaving: true, For: to}, time.Now()
	e.sendOn(nil)
	n.mutex.Unlock()
	n.tell(e.federation.ID, lead{Leaving: true, For: to})
	n.Log.Info("this node hands a federation over", "federation", e.federation.Job.Name, "to", to)
}

// takesBack notes that this node claims a federation that it had handed to a node that did not.
func (n *Node) takesBack(e *entry) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if e.leader.Node == n.Name && e.leader.For != "" {
		n.passing = passing{after: time.Now().Add(passRefused)}
		n.Log.Warn("a federation was not taken", "federation", e.federation.Job.Name, "by", e.leader.For)
	}
}
