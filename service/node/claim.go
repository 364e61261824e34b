package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/hushsum/hushsum/service/record"
)

// This file has when a node claims a federation whose leader is silent: it may have died, or be
// frozen, with its machine, by a debugger, behind a network that drops what it sends. Nodes take
// turns, so that they do not claim from each other. Who claims says so each second, as a leader
// does, since reading the record may take a while.

const (
	// stoodStill is how long a process has not run, at least, if its next beat comes that late. By
	// then other nodes do not count it as here.
	stoodStill = 3 * beat
	// claimFor is how many times Silence others wait for a node that says it is claiming.
	claimFor = 3
	// lossesWithin is how long two losses are apart, at most, of a node that has to rest.
	lossesWithin = time.Minute
)

// mayClaim reports whether the federation needs a leader, as far as this node hears, and whether it
// is this node's turn.
func (n *Node) mayClaim(e *entry) bool {
	if n.alone {
		return true
	}
	n.mutex.Lock()
	now := time.Now()
	silent, handed := now.Sub(e.heard), e.leader.For != ""
	due, turn := n.due(e), n.turn(e)
	rests := now.Before(e.rests)
	n.mutex.Unlock()
	switch {
	case rests:
		return false
	case !now.Before(due):
		return true
	case handed || silent < 2*beat:
		return false
	}
	// No node has ever led it, or this node did before it was restarted.
	name, err := n.records.Leader(n.ctx, e.federation.ID)
	return err == nil && (name == n.Name || name == "" && silent >= 2*beat+turn)
}

// due returns when this node is to claim, unless it hears more. The caller holds the mutex.
func (n *Node) due(e *entry) time.Time {
	due := e.heard.Add(n.turn(e))
	switch l := &e.leader; {
	case l.Leaving && l.For == n.Name:
		return e.heard
	case l.Leaving && l.For != "":
		return due.Add(passWait)
	case l.Leaving:
		return due
	case l.Claiming && e.claimed.Add(claimFor*n.Silence).Before(e.heard.Add(n.Silence)):
		return e.claimed.Add(claimFor*n.Silence + n.turn(e))
	}
	return due.Add(n.Silence)
}

// turn returns how much longer this node waits before it claims than the first does: half of
// Silence for each node that is here and before it, in an order that differs between federations.
// The caller holds the mutex.
func (n *Node) turn(e *entry) (wait time.Duration) {
	own := place(e, n.Name)
	for name, p := range n.others {
		if name != n.Name && name != e.leader.Node && p.here() &&
			bytes.Compare(place(e, name), own) < 0 {
			wait += n.Silence / 2
		}
	}
	return wait
}

// place returns what the order of nodes is by.
func place(e *entry, name string) []byte {
	digest := sha256.Sum256([]byte(e.federation.ID + "\n" + name))
	return digest[:]
}

// yields lets others claim what this node could not: it rests for a turn of each that is here.
func (n *Node) yields(e *entry, why error) {
	n.tell(e.federation.ID, lead{Leaving: true})
	n.mutex.Lock()
	defer n.mutex.Unlock()
	e.rests, e.outage = time.Now(), errors.Is(why, record.ErrUnavailable)
	for name, p := range n.others {
		if name != n.Name && p.here() {
			e.rests = e.rests.Add(n.Silence / 2)
		}
	}
}

// hearsAgain notes that this node was cut off from the others: their leaders have their time again.
func (n *Node) hearsAgain() {
	select {
	case n.back <- struct{}{}:
	default:
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, e := range n.entries {
		if !e.heard.IsZero() {
			e.heard = time.Now()
		}
	}
}

// loses notes that another node has claimed the federation from this one, which rests if that
// happens again and again. The caller holds the mutex.
func (e *entry) loses(silence time.Duration) {
	now := time.Now()
	if now.Sub(e.lost) > lossesWithin {
		e.losses = 0
	}
	e.lost = now
	if e.losses++; e.losses > 1 {
		e.rests = now.Add(silence << min(e.losses-1, 2))
	}
}

// beat says each second that this node claims a federation, and then that it leads it. A process
// that has stood still first asks the record whether it still does.
func (n *Node) beat(ctx context.Context, e *entry) {
	sure := true
	for ctx.Err() == nil {
		n.mutex.Lock()
		r := e.runner
		n.mutex.Unlock()
		if r != nil && !sure {
			sure = n.holds(ctx, r) == nil
		}
		if r == nil || sure {
			n.tell(e.federation.ID, lead{Claiming: r == nil})
		}
		sure = !stood(ctx, beat) && sure
	}
}

// stood waits, and reports whether the process stood still meanwhile. A machine that was suspended
// shows that by its clock alone.
func stood(ctx context.Context, wait time.Duration) bool {
	from := time.Now()
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
	now := time.Now()
	return max(now.Sub(from), now.Round(0).Sub(from.Round(0))) >= wait+stoodStill
}
