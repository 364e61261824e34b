package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hushsum/hushsum/internal/durable"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// This file finds federations, and leads those that no other node leads.

// lead holds the message that a leader sends each second.
type lead struct {
	Node        string `json:"node"`
	Address     string `json:"address"`
	Fingerprint string `json:"fingerprint"`
	// Next is the fingerprint of a certificate that may be shown from any moment on.
	Next string `json:"next,omitempty"`
	// Claiming: it is about to lead, and reads the record.
	Claiming bool `json:"claiming,omitempty"`
	Leaving  bool `json:"leaving,omitempty"`
	// For is the node that is to lead next, if one was chosen.
	For string `json:"for,omitempty"`
}

// look finds federations, and leads those that this node may lead.
func (n *Node) look() {
	defer n.group.Done()
	for {
		ids, err := n.records.List(n.ctx)
		if err != nil && n.ctx.Err() == nil {
			n.Log.Warn("the record does not answer", "error", err.Error())
		}
		n.find(ids)
		if err == nil {
			n.mutex.Lock()
			n.looked = true
			n.mutex.Unlock()
		}
		select {
		case <-n.ctx.Done():
			return
		case <-time.After(lookAgain):
		}
	}
}

// find makes recorded federations known to this node, except those that cannot be used.
func (n *Node) find(ids []string) {
	for _, id := range ids {
		n.mutex.Lock()
		known, was := n.entries[id] != nil || n.forgotten[id] != nil, n.unread[id]
		n.mutex.Unlock()
		if known {
			continue
		}
		err := n.adopt(id)
		if n.ctx.Err() != nil {
			return
		}
		if err != nil && (was == nil || was.Error() != err.Error()) {
			n.Log.Error("a federation cannot be used", "id", id, "error", err.Error())
		}
		n.mutex.Lock()
		if n.unread[id] = err; err == nil {
			delete(n.unread, id)
		}
		n.mutex.Unlock()
	}
}

// adopt makes a recorded federation known to this node.
func (n *Node) adopt(id string) error {
	d, err := n.records.Definition(n.ctx, id)
	if err != nil {
		return err
	}
	if d.Forgotten != nil {
		if err := n.records.Settle(n.ctx, id); err != nil {
			return err
		}
		n.forgets(d)
		return nil
	}
	model, err := n.records.Initial(n.ctx, d, d.Model)
	if err != nil {
		return err
	}
	before, err := n.records.Initial(n.ctx, d, d.Before)
	if err != nil {
		return err
	}
	files := federation.Files{Text: d.Text, Roster: d.Roster, Committee: d.Committee, Model: model,
		Before: before, Succession: d.Succession}
	f, err := federation.New(files)
	if err != nil {
		return err
	}
	if f.ID != id {
		return fmt.Errorf("%w: what is recorded as %s is %s", record.ErrRecord, id, f.ID)
	}
	if f.Key, err = n.records.Public(n.ctx, id); err != nil {
		return err
	}
	if err := n.records.Look(n.ctx, id); err != nil {
		return err
	}
	n.knows(f, files)
	return nil
}

// knows makes a federation known to this node.
func (n *Node) knows(f *federation.Federation, files federation.Files) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.entries[f.ID] != nil || n.ctx.Err() != nil {
		return
	}
	parties := f.Settled.Roster().Len()
	e := &entry{federation: f, files: files, wait: exchange.Wait(parties), heard: time.Now(),
		doubt: make(chan struct{}, 1)}
	n.entries[f.ID] = e
	if parties > n.connections {
		n.Log.Warn("a federation has more parties than the door has connections: they take turns, "+
			"which is slow; let the process open more files, or set Connections",
			"federation", f.Job.Name, "parties", parties, "connections", n.connections)
	}
	n.group.Add(1)
	go n.lead(e)
}

// lead leads a federation whenever no other node does.
func (n *Node) lead(e *entry) {
	defer n.group.Done()
	for n.ctx.Err() == nil {
		if n.mayClaim(e) {
			err := n.led(e)
			if errors.Is(err, record.ErrForgotten) {
				n.leavesForgotten(e.federation.ID)
				return
			}
			if errors.Is(err, record.ErrRecord) && n.ctx.Err() == nil {
				// Asking again at once does not help; another program may.
				n.Log.Error("a record cannot be led", "federation", e.federation.Job.Name, "error",
					err.Error())
				n.mutex.Lock()
				e.unopened = err.Error()
				n.mutex.Unlock()
				select {
				case <-n.ctx.Done():
				case <-time.After(unreadable):
				}
				continue
			}
			if err != nil && n.ctx.Err() == nil {
				n.Log.Warn("this node no longer leads", "federation", e.federation.Job.Name,
					"error", err.Error())
			}
		}
		// Not all nodes at once.
		pause := 100*time.Millisecond + mathrand.N(200*time.Millisecond)
		select {
		case <-n.ctx.Done():
		case <-time.After(pause):
		}
	}
}

// keepEvidence saves proof of cheating, which others can check, in the node's folder evidence. The
// file is named by the place in the roster or the committee, since names may have slashes.
func (n *Node) keepEvidence(id string, round uint64, who string, b []byte) (string, error) {
	folder := filepath.Join(n.Folder, "evidence", id)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	name := filepath.Join(folder, fmt.Sprintf("round-%d-%s.evidence", round, who))
	return name, durable.Write(name, bytes.NewReader(b))
}

// led claims a federation and leads it, until that ends. From the claim on it says so: the record
// may take its time.
func (n *Node) led(e *entry) error {
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	id, next := e.federation.ID, ""
	var beats sync.WaitGroup
	beats.Go(func() { n.beat(ctx, e) })
	var subscription *nats.Subscription
	r, err := n.claim(ctx, e, func() bool {
		next = n.pass()
		return next != ""
	})
	if err == nil {
		subscription, err = n.conn.Subscribe(subjectAsk+id, func(m *nats.Msg) { n.reply(r, m) })
	}
	if err != nil {
		cancel()
		beats.Wait()
		n.yields(e, err)
		return err
	}
	if n.cutOff() || n.health.ready() != nil { // the door is shut until a probe succeeds
		r.Away(true)
	}
	n.mutex.Lock()
	e.runner, e.leader, e.unopened = r, lead{}, ""
	e.sendOn(nil)
	n.mutex.Unlock()
	n.Log.Info("this node leads", "federation", e.federation.Job.Name)
	n.tell(id, lead{})
	n.sayHere(presence{})
	beats.Go(func() { n.confirm(ctx, e, r) })
	err = r.Run(ctx)
	cancel()
	beats.Wait()
	_ = subscription.Unsubscribe()
	n.mutex.Lock()
	e.runner, e.outage = nil, errors.Is(err, record.ErrUnavailable)
	if !errors.Is(err, record.ErrLost) {
		e.heard = time.Time{}
	} else {
		e.heard = time.Now()
		e.loses(n.Silence)
	}
	n.mutex.Unlock()
	switch {
	case n.ctx.Err() != nil, errors.Is(err, record.ErrForgotten):
		n.tell(id, lead{Leaving: true})
	case errors.Is(err, runner.ErrPassed):
		n.passed(e, next)
		n.sayHere(presence{})
		return nil
	}
	return err
}

// claim claims a federation, and loads it.
func (n *Node) claim(ctx context.Context, e *entry, pass func() bool) (*runner.Runner, error) {
	id := e.federation.ID
	hold, err := n.records.Claim(ctx, id, n.Name)
	if err != nil {
		return nil, err
	}
	hold.Fault = n.hooks.Fault
	if lines := hold.DamagedLines(); lines > 0 {
		n.Log.Error("this node's own file of decisions has damaged lines; check its disk", "federation",
			e.federation.Job.Name, "lines", lines)
	}
	n.found(e, hold.Found)
	n.takesBack(e)
	r, err := runner.Start(ctx, runner.Options{
		Federation: e.federation,
		Records:    n.records,
		Hold:       hold,
		Node:       n.Name,
		Keys:       n.seals,
		Log:        n.Log,
		Grace:      n.hooks.Grace,
		Outage:     e.outage,
		Judge:      n.Judge,
		Traces:     n.Traces,
		Evidence: func(round uint64, who string, evidence []byte) (string, error) {
			return n.keepEvidence(id, round, who, evidence)
		},
		Summed: n.Summed,
		Pass:   pass,
	})
	return r, err
}

// confirm has a runner ask the record whether it still leads, whenever another node is heard to say
// that it does: a runner that has nothing to decide would otherwise go on for ever, and keep the
// parties that come to it.
func (n *Node) confirm(ctx context.Context, e *entry, r *runner.Runner) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-e.doubt:
			_ = n.holds(ctx, r)
			select {
			case <-ctx.Done():
			case <-time.After(beat):
			}
		}
	}
}

// holds fails unless the record says that a runner still leads.
func (n *Node) holds(ctx context.Context, r *runner.Runner) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return r.Confirm(ctx)
}

// tell tells all nodes which node leads.
func (n *Node) tell(id string, l lead) {
	l.Node, l.Address = n.Name, n.Advertise
	l.Fingerprint, l.Next = n.certificate.shown()
	b, err := json.Marshal(l)
	if err == nil {
		b, _, err = n.between.seal(forLead, id, number{}, b)
	}
	if err == nil {
		_ = n.conn.Publish(subjectLead+id, b)
		if l.Leaving {
			n.flush()
		}
	}
}

// hear notes which node leads.
func (n *Node) hear(m *nats.Msg) {
	id := strings.TrimPrefix(m.Subject, subjectLead)
	body, _, err := n.between.open(forLead, id, number{}, m.Data)
	var l lead
	if err == nil {
		err = json.Unmarshal(body, &l)
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	e := n.entries[id]
	if e == nil {
		return
	}
	if err != nil {
		n.unheard(e, err)
		return
	}
	e.late = time.Time{}
	if l.Node == n.Name {
		return
	}
	if e.runner != nil && !l.Leaving {
		select {
		case e.doubt <- struct{}{}:
		default:
		}
	}
	now := time.Now()
	if l.Claiming {
		led := e.leader.Node != "" && !e.leader.Leaving && now.Sub(e.heard) < n.Silence
		if led && l.Node != e.leader.Node {
			return // another leads, or claimed before
		}
		if l.Node != e.leader.Node || !e.leader.Claiming {
			e.claimed = now
		}
	} else if e.forward == nil || !e.forward.same(l) {
		e.sendOn(n.forwardTo(e, l))
	}
	e.leader, e.heard = l, now
}

// unheard logs a message about a leader that does not open: one that no key opens, or one that is
// late once that lasts. A node that was frozen finds what the others said meanwhile. The caller
// holds the mutex.
func (n *Node) unheard(e *entry, err error) {
	now := time.Now()
	if errors.Is(err, errOld) {
		if e.late.IsZero() {
			e.late = now
		}
		if now.Sub(e.late) < unreadable {
			n.Log.Debug("a message about the leader is late", "federation", e.federation.Job.Name)
			return
		}
	}
	if now.Sub(e.warned) > unreadable {
		e.warned = now
		n.Log.Warn("no leader was heard before this message", "federation", e.federation.Job.Name,
			"error", err.Error())
	}
}
