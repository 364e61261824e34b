package node

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/record"
)

// The record is started again once it has failed for a while on a disk that takes writes, at once
// if JetStream is off, and then ever more rarely; the process is not well once that has not helped
// twice, and is as soon as a probe succeeds.
func TestHealth(t *testing.T) {
	h := health{every: probeEvery}
	failsFor, healEvery := h.failsFor(), h.healEvery()
	at := time.Now()
	pass := func(d time.Duration) time.Time { at = at.Add(d); return at }
	silent := fmt.Errorf("%w: timeout", record.ErrUnavailable)

	h.note(nil, at)
	if h.ready() != nil || h.due(false, at) {
		t.Error("a record that takes writes is ready, and needs no start")
	}
	h.note(fmt.Errorf("%w: full", errDisk), pass(probeEvery))
	if h.due(false, pass(time.Hour)) || !errors.Is(h.ready(), errDisk) || h.healthy() != nil {
		t.Error("a start makes no room on a disk")
	}
	h.note(fmt.Errorf("%w: EMFILE", errFiles), at)
	if h.due(true, at) || errors.Is(h.ready(), errDisk) {
		t.Error("a process without files is not told to make room on its disk, nor started again")
	}
	h.note(silent, at)
	if !h.due(false, at) {
		t.Error("there is room and the record has failed for an hour")
	}
	if h.due(true, pass(healEvery-1)) {
		t.Error("a second start comes at once")
	}
	if !h.due(false, pass(1)) || h.due(false, pass(2*healEvery-1)) || h.healthy() != nil {
		t.Error("the second start comes after a pause, the third after one twice as long")
	}
	if !h.due(false, pass(1)) || !errors.Is(h.healthy(), record.ErrUnavailable) {
		t.Error("after a third start the process is not well")
	}
	h.note(nil, at)
	h.note(silent, pass(probeEvery))
	if h.healthy() != nil || h.due(false, pass(failsFor-1)) || !h.due(false, pass(1)) {
		t.Error("a record that was well between has its time again")
	}
	h.note(nil, at)
	h.note(silent, at)
	if !h.due(true, at) {
		t.Error("a JetStream that is off is started again at once")
	}
}

// A call that does not return is told from one that fails, and from one that returns.
func TestWithin(t *testing.T) {
	for range 2 {
		failed := errors.New("failed")
		returned, err := within(time.Hour, func() error { return failed })
		if !returned || !errors.Is(err, failed) {
			t.Errorf("a call that fails: %v, %v", returned, err)
		}
	}
	forEver := make(chan error)
	if returned, _ := within(time.Millisecond, func() error { return <-forEver }); returned {
		t.Error("a call that waits for ever has returned")
	}
	close(forEver)
}

// A node whose record hangs is neither ready nor well, and says that its process has to end.
func TestHangs(t *testing.T) {
	n := &Node{Options: Options{Log: slog.New(slog.DiscardHandler)}, Hangs: make(chan error, 1)}
	n.hangs()
	if err := n.health.healthy(); !errors.Is(err, errHangs) || !errors.Is(n.ready(), errHangs) {
		t.Errorf("healthy: %v", err)
	}
	if err := <-n.Hangs; !errors.Is(err, errHangs) {
		t.Error(err)
	}
}
