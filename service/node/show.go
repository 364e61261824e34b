package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// This file holds a node's view of federations, whether or not their leaders answer.

const (
	showTime  = time.Second      // for a leader to answer, and for the record
	readAgain = 10 * time.Second // what is recorded of one that has no leader
)

// shown holds the figures of a federation that were shown last.
type shown struct {
	mutex  sync.Mutex
	last   *runner.Status // nil: nothing yet
	unread string         // why the record does not say, if it is damaged
	when   time.Time      // it was true
	looked time.Time      // at the record
}

// shows is the node as its page sees it.
type shows struct{ *Node }

// Status returns the status that a federation's leader reports, or the last recorded status.
func (s shows) Status(ctx context.Context, id string) (*runner.Status, error) {
	s.mutex.Lock()
	e := s.entries[id]
	s.mutex.Unlock()
	if e == nil {
		if gone := s.wasForgotten(id); gone != nil {
			return statusOf(id, gone), nil
		}
		return nil, record.ErrNone
	}
	short, cancel := context.WithTimeout(ctx, showTime)
	defer cancel()
	out, err := s.Node.Status(short, id)
	switch {
	case err == nil:
		e.shown.keep(out)
		return out, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return s.recorded(ctx, e), nil
}

// keep keeps a leader's report.
func (s *shown) keep(status *runner.Status) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.last, s.when, s.looked = status, time.Now(), time.Time{}
}

// recorded returns the last figures of a federation whose leader does not answer, or that has none.
func (n *Node) recorded(ctx context.Context, e *entry) *runner.Status {
	_, led := n.leads(e)
	n.mutex.Lock()
	unopened := e.unopened
	n.mutex.Unlock()
	e.shown.mutex.Lock()
	defer e.shown.mutex.Unlock()
	if !led && time.Since(e.shown.looked) > readAgain {
		short, cancel := context.WithTimeout(ctx, showTime)
		defer cancel()
		s, err := runner.RecordedStatus(short, e.federation, n.records)
		if err == nil {
			e.shown.last, e.shown.unread = s, ""
		} else if errors.Is(err, record.ErrDamaged) {
			e.shown.unread = err.Error()
		}
		if e.shown.last != nil {
			e.shown.looked = time.Now()
		}
	}
	out := runner.Declared(e.federation)
	if last := e.shown.last; last != nil {
		copied := *last
		out = &copied
		if out.Recorded == nil && !e.shown.when.IsZero() {
			when := e.shown.when
			out.Recorded = &when
		}
	}
	out.Leader, out.Stage, out.Session = "", "", 0
	switch {
	case out.State == "ended":
	case led:
		out.State, out.Why = runner.Silent, ""
	case unopened != "":
		out.State, out.Why = runner.Leaderless, n.Name+" cannot lead it: "+unopened
	case e.shown.unread != "":
		out.State, out.Why = runner.Leaderless, e.shown.unread
	case out.State == "paused":
		out.State, out.Why = runner.Leaderless, "it was paused: "+out.Why
	default:
		out.State, out.Why = runner.Leaderless, ""
	}
	return out
}

// leads reports whether this node leads a federation, and whether any node is heard to.
func (n *Node) leads(e *entry) (here, somewhere bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	here = e.runner != nil
	return here, here || e.leader.Node != "" && !e.leader.Leaving && time.Since(e.heard) <= n.Silence
}

// Listing returns the status of all federations, sorted by name, and then of those that were
// forgotten. A federation whose leader is slow
// does not delay the others.
func (n *Node) Listing(ctx context.Context) []*runner.Status {
	return append(each(n, func(e *entry) *runner.Status {
		out, err := shows{n}.Status(ctx, e.federation.ID)
		if err != nil {
			return n.recorded(ctx, e)
		}
		return out
	}), n.archive()...)
}

// each calls a function for all federations at once, and returns the results, by name.
func each[T any](n *Node, call func(*entry) T) []T {
	n.mutex.Lock()
	all := (*federations)(n).sorted()
	n.mutex.Unlock()
	out := make([]T, len(all))
	var group sync.WaitGroup
	for i, e := range all {
		group.Go(func() { out[i] = call(e) })
	}
	group.Wait()
	return out
}

// Signals returns the figures of this node for monitors, and of the federations that it leads or
// that no node leads: so each federation is reported once in a cluster.
func (s shows) Signals(ctx context.Context) page.Signals {
	out := page.Signals{Ready: s.ready() == nil, Decides: s.health.ready() == nil,
		OpenFiles: usedFiles(), MostFiles: openFiles()}
	out.Known, out.Strangers = s.atDoor.counts()
	out.MostConnections = s.connections
	out.DiskFree, out.DiskSize = diskOf(s.Folder)
	out.CertificateEnd = s.certificate.expires()
	s.mutex.Lock()
	out.Damaged, out.Healed, out.Checked = s.checked.damaged, s.checked.healed, s.checked.at
	s.mutex.Unlock()
	out.Federations = each(s.Node, func(e *entry) page.Figures {
		f := page.Figures{Name: e.federation.Job.Name}
		here, led := s.leads(e)
		if f.Led = led; here || !led {
			status, err := s.Status(ctx, e.federation.ID)
			if err != nil {
				status = s.recorded(ctx, e)
			}
			f.Status = status
		}
		return f
	})
	return out
}

// Health returns the state of this node, for its operator.
func (s shows) Health(ctx context.Context) *page.Health {
	out := &page.Health{Name: s.Name, Door: s.Advertise,
		OpenFiles: usedFiles(), MostFiles: openFiles()}
	out.Fingerprint, _ = s.certificate.shown() // it changes while the node runs
	out.Expires = s.certificate.expires()
	if err := s.ready(); err != nil {
		out.NotReady = err.Error()
	}
	if err := s.health.ready(); err != nil {
		out.NotDeciding = err.Error()
	}
	out.DiskFree, out.DiskSize = diskOf(s.Folder)
	s.mutex.Lock()
	out.Federations = len(s.entries)
	for _, e := range s.entries {
		if e.runner != nil {
			out.Leads++
		}
	}
	s.mutex.Unlock()
	switch {
	case s.embedded == nil:
		out.Where = "on a NATS of the operator's"
	case s.alone:
		out.Where = "in this process, on this node alone"
	default:
		out.Where = "in the nodes' processes, in a cluster"
		out.Group = s.embedded.Group()
	}
	ctx, cancel := context.WithTimeout(ctx, showTime)
	defer cancel()
	var err error
	if out.Record, err = s.records.Health(ctx); err != nil {
		out.Unread = err.Error()
	}
	return out
}
