package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// Health is the state of the record as JetStream reports it.
type Health struct {
	Bytes   uint64 // that it stores, in one copy
	Streams []Stream
}

// Stream is one of the streams that make up the record. In a cluster the copies of each stream form
// a Raft group.
type Stream struct {
	Name            string
	Leader          string // node; empty: none, and nothing is decided
	Messages, Bytes uint64
	Wanted          int    // copies
	Copies          []Copy // but the leader's
}

// Copy is the copy of a stream on one node.
type Copy struct {
	Node    string
	Current bool // it has all that the leader has, and was heard from
	Offline bool
	Behind  uint64        // entries
	Heard   time.Duration // ago
}

// Well reports whether a stream has a leader and the wanted number of copies, all of them current.
// A stream with a single copy has no group and no leader.
func (s *Stream) Well() bool {
	if s.Wanted <= 1 {
		return true
	}
	bad := func(c Copy) bool { return !c.Current || c.Offline }
	return s.Leader != "" && len(s.Copies)+1 >= s.Wanted && !slices.ContainsFunc(s.Copies, bad)
}

// Decides reports whether the stream takes writes: most of its copies are present.
func (s *Stream) Decides() bool {
	if s.Wanted <= 1 {
		return true
	}
	there := 1
	for _, c := range s.Copies {
		if !c.Offline {
			there++
		}
	}
	return s.Leader != "" && 2*there > s.Wanted
}

// Health asks JetStream for the state of the record. Streams are sorted by name, unhealthy ones
// first. It fails with [ErrUnavailable].
func (r *Records) Health(ctx context.Context) (*Health, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	out := &Health{}
	list := r.js.ListStreams(ctx)
	for info := range list.Info() {
		if s := streamOf(info); s != nil {
			out.Streams = append(out.Streams, *s)
			out.Bytes += s.Bytes
		}
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	well := func(s *Stream) int {
		if s.Well() {
			return 1
		}
		return 0
	}
	slices.SortFunc(out.Streams, func(a, b Stream) int {
		return cmp.Or(well(&a)-well(&b), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

// streamOf returns a stream of the record, and nil for any other.
func streamOf(info *jetstream.StreamInfo) *Stream {
	name := info.Config.Name
	if name != streamDecided && !strings.Contains(name, "_hushsum-") { // of a bucket
		return nil
	}
	s := &Stream{Name: name, Messages: info.State.Msgs, Bytes: info.State.Bytes,
		Wanted: info.Config.Replicas}
	if c := info.Cluster; c != nil {
		s.Leader = c.Leader
		for _, p := range c.Replicas {
			s.Copies = append(s.Copies, Copy{p.Name, p.Current, p.Offline, p.Lag, p.Active})
		}
	}
	slices.SortFunc(s.Copies, func(a, b Copy) int { return strings.Compare(a.Node, b.Node) })
	return s
}

// Group is the Raft group of all nodes of an embedded cluster, which places streams.
type Group struct {
	Leader        string // node; empty: none
	Nodes, Quorum int
}

// Group returns the Raft group; nil: the server is alone, or cannot tell.
func (e *Embedded) Group() *Group {
	if !e.mutex.TryLock() { // it is being started again
		return nil
	}
	s := e.server
	e.mutex.Unlock() // the caller that restarts it need not wait for its answer
	info, err := s.Jsz(&server.JSzOptions{})
	if err != nil || info.Meta == nil {
		return nil
	}
	return &Group{info.Meta.Leader, info.Meta.Size, info.Meta.QuorumNeeded}
}
