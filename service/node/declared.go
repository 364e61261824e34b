package node

import (
	"context"
	"strings"
	"time"
)

// This file has the nodes that are here know of a new federation before its declaration returns:
// a party may ask any of them next.

const (
	// learnTime is how long a declaration waits for other nodes at most.
	learnTime = 5 * time.Second
	learnLook = 20 * time.Millisecond
)

// learns finds a federation that another node has declared, and says so.
func (n *Node) learns(id string) {
	n.find([]string{id})
	n.mutex.Lock()
	known := n.entries[id] != nil
	n.mutex.Unlock()
	if known {
		n.sayHere(presence{Knows: id})
	}
}

// shared waits until all nodes that are here know of a federation.
func (n *Node) shared(ctx context.Context, id string) {
	if n.alone {
		return
	}
	n.mutex.Lock()
	n.know[id] = make(map[string]bool)
	n.mutex.Unlock()
	defer func() {
		n.mutex.Lock()
		defer n.mutex.Unlock()
		delete(n.know, id)
	}()
	ctx, cancel := context.WithTimeout(ctx, learnTime)
	defer cancel()
	for k := 0; ; k++ {
		missing := n.missing(id)
		if missing == nil {
			return
		}
		if k%10 == 0 { // a message may be lost
			n.sayHere(presence{Declared: id})
		}
		select {
		case <-ctx.Done():
			n.Log.Warn("a federation was declared, and other nodes do not know of it yet", "id", id,
				"nodes", strings.Join(missing, ", "))
			return
		case <-time.After(learnLook):
		}
	}
}

// missing lists the other nodes that are here and have not said that they know of a federation.
func (n *Node) missing(id string) (names []string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for name, p := range n.others {
		if name != n.Name && p.here() && !n.know[id][name] {
			names = append(names, name)
		}
	}
	return names
}
