package node

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/record"
)

// The record is started again once it has failed for a while on a disk that takes writes, at once
// if JetStream is off, and then ever more rarely; the process is not well once that has not helped
// twice, and is as soon as a probe succeeds.
func TestHealth(t *testing.T) {
	var h health
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
