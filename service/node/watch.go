package node

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hushsum/hushsum/service/record"
)

// This file has a node learn whether its record takes decisions, and heal it: JetStream does not
// repair its own store after a disk error, but starts well on its files.

const (
	probeEvery = 5 * time.Second
	room       = 1 << 20 // bytes that a disk takes if it is not full
	helpless   = 3       // starts of the record that did not help

	leastPatience = 10 * time.Second
	restartTime   = time.Minute
)

// Faults that a node cannot repair itself: the disk of its folder takes no writes, and the process
// has no files left.
var (
	errDisk  = errors.New("node: the disk takes no writes; make room")
	errFiles = errors.New("node: no more files can be opened; let the process open more")
)

// health holds the results of the last probes of the record.
type health struct {
	every  time.Duration // between probes
	mutex  sync.Mutex
	since  time.Time // of the first of the failures in a row
	failed error     // the last; nil: the last probe succeeded
	tried  time.Time // when the record was started again
	pause  time.Duration
	starts int // since it was well
}

// failsFor is how long a record fails probes, on a disk that takes writes, until it is restarted.
func (h *health) failsFor() time.Duration { return h.every * 12 / 5 }

// healEvery is the time from then to the next start, doubled each time, up to longest.
func (h *health) healEvery() time.Duration { return 4 * h.every }

func (h *health) longest() time.Duration { return 60 * h.every }

// note records the outcome of a probe.
func (h *health) note(err error, now time.Time) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if err == nil {
		h.since, h.failed, h.pause, h.starts = time.Time{}, nil, 0, 0
		return
	}
	if h.failed == nil {
		h.since = now
	}
	h.failed = err
}

// due reports whether the record should be restarted now, and counts that it is.
func (h *health) due(off bool, now time.Time) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.failed == nil || errors.Is(h.failed, errDisk) || errors.Is(h.failed, errFiles) ||
		now.Sub(h.tried) < h.pause ||
		!off && now.Sub(h.since) < h.failsFor() {
		return false
	}
	h.tried, h.starts = now, h.starts+1
	h.pause = min(max(h.healEvery(), 2*h.pause), h.longest())
	return true
}

// ready returns why the record takes no decisions, nil if it does.
func (h *health) ready() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.failed == nil {
		return nil
	}
	return fmt.Errorf("since %s: %w", h.since.UTC().Format(time.RFC3339), h.failed)
}

// healthy fails if restarting the record has not helped twice: restarting the process may.
func (h *health) healthy() error {
	if err := h.ready(); err != nil && h.helpless() {
		return err
	}
	return nil
}

// long reports whether the record has failed for as long as a restart requires.
func (h *health) long(now time.Time) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.failed != nil && now.Sub(h.since) >= h.failsFor()
}

func (h *health) helpless() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.starts >= helpless
}

// watch probes the record for as long as the node runs, and restarts it where that helps.
func (n *Node) watch() {
	defer n.group.Done()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.back:
		case <-time.After(n.hooks.Probe):
		}
		returned, err := within(n.patience(), n.probe)
		if n.ctx.Err() != nil {
			return
		}
		if !returned {
			n.hangs()
			return
		}
		was := n.health.ready()
		n.health.note(err, time.Now())
		n.away(err != nil)
		switch {
		case err != nil && was == nil:
			n.Log.Error("the record takes no decisions", "error", err.Error())
		case err == nil && was != nil:
			n.Log.Info("the record takes decisions again")
		}
		if n.embedded == nil || !n.health.due(!n.embedded.Enabled(), time.Now()) {
			continue
		}
		n.Log.Warn("the record is being restarted")
		returned, err = within(restartTime, n.embedded.Restart)
		if !returned {
			n.hangs()
			return
		}
		if err != nil {
			n.Log.Error("the record does not start", "error", err.Error())
		}
	}
}

// away tells the runners of this node whether the record takes no decisions.
func (n *Node) away(away bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, e := range n.entries {
		if e.runner != nil {
			e.runner.Away(away)
		}
	}
}

// errHangs: JetStream in this process waits for itself for ever, as it does when the disk becomes
// full at the wrong moment. Nothing in the process can repair that, and closing it would wait too.
var errHangs = errors.New("node: the record hangs; restart this process")

// patience is how long a probe may take, each part of which has bounds of its own.
func (n *Node) patience() time.Duration { return max(4*n.hooks.Probe, leastPatience) }

// hangs reports that this process has to be restarted.
func (n *Node) hangs() {
	n.Log.Error("the record hangs: this process exits to be restarted")
	n.health.note(errHangs, time.Now())
	n.health.mutex.Lock()
	n.health.starts = helpless
	n.health.mutex.Unlock()
	n.Hangs <- errHangs
}

// within calls a function, and reports whether the call returned within a time limit. A process
// that was frozen gives it half of that time again.
func within(limit time.Duration, call func() error) (returned bool, err error) {
	done := make(chan error, 1)
	go func() { done <- call() }()
	for range 2 {
		select {
		case err := <-done:
			return true, err
		case <-time.After(limit / 2):
		}
	}
	return false, nil
}

// cutOff reports whether the record cannot take decisions from this node.
func (n *Node) cutOff() bool { return !n.conn.IsConnected() || n.health.long(time.Now()) }

// probe writes to the disk and to the record of each federation that this node leads or no node
// leads.
func (n *Node) probe() error {
	if n.embedded != nil {
		switch err := writes(n.Folder); {
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			return fmt.Errorf("%w: %w", errFiles, err)
		case err != nil:
			return fmt.Errorf("%w: %w", errDisk, err)
		}
		if !n.embedded.Enabled() {
			return fmt.Errorf("%w: it has switched itself off", record.ErrUnavailable)
		}
	}
	if !n.conn.IsConnected() {
		return fmt.Errorf("%w: there is no connection to it", record.ErrUnavailable)
	}
	for _, id := range n.own() {
		if err := n.records.Probe(n.ctx, id, n.Name); err != nil {
			return err
		}
	}
	return nil
}

// own lists the federations that this node leads, and those that no node is heard to lead.
func (n *Node) own() (ids []string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for id, e := range n.entries {
		if e.runner != nil || time.Since(e.heard) > n.Silence {
			ids = append(ids, id)
		}
	}
	return ids
}

// writes fails if a folder's disk does not take and keep a file.
func writes(folder string) (err error) {
	f, err := os.CreateTemp(folder, "probe-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(make([]byte, room))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
