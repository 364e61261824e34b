// Package clock is virtual time: discrete events in order, and a network of places with
// latency, jitter, loss and bandwidth between each pair of them. No time passes while it
// runs, and from the same seed the same happens.
package clock

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrPast: an event was to happen before the present.
var ErrPast = errors.New("clock: an event cannot happen in the past")

// Clock runs events in the order of their times, and events of one time in the order in
// which they were made. The zero value is at time 0 without events. It is not safe for
// concurrent use.
type Clock struct {
	now    time.Duration
	made   uint64
	events queue
}

// Event is something that will happen.
type Event struct {
	at      time.Duration
	number  uint64
	happens func()
	index   int // in the queue, −1 outside of it
}

// Now returns how much time has passed since the clock's beginning.
func (c *Clock) Now() time.Duration { return c.now }

// At lets something happen at a time. It fails with [ErrPast].
func (c *Clock) At(at time.Duration, happens func()) (*Event, error) {
	if at < c.now {
		return nil, fmt.Errorf("%w: at %v, now %v", ErrPast, at, c.now)
	}
	e := &Event{at: at, number: c.made, happens: happens}
	c.made++
	heap.Push(&c.events, e)
	return e, nil
}

// End is the last moment that a clock has, 292 years after the first.
const End = time.Duration(math.MaxInt64)

// After lets something happen after a while, at End at the latest; a while below 0 counts as 0.
func (c *Clock) After(while time.Duration, happens func()) *Event {
	e, err := c.At(c.now+min(max(0, while), End-c.now), happens)
	if err != nil {
		panic("clock: " + err.Error()) // the present is not past
	}
	return e
}

// Cancel takes an event back. It ignores nil, and an event that has happened.
func (c *Clock) Cancel(e *Event) {
	if e != nil && e.index >= 0 {
		heap.Remove(&c.events, e.index)
	}
}

// Step lets the next event happen, and reports whether there was one.
func (c *Clock) Step() bool {
	if len(c.events) == 0 {
		return false
	}
	e := heap.Pop(&c.events).(*Event)
	c.now = e.at
	e.happens()
	return true
}

// Run lets events happen until there are none.
func (c *Clock) Run() {
	for c.Step() {
	}
}

// queue is a heap of events.
type queue []*Event

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].number < q[j].number
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	e := x.(*Event)
	e.index = len(*q)
	*q = append(*q, e)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last], e.index = nil, -1
	*q = (*q)[:last]
	return e
}
