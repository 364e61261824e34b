package record_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/service/record"
)

// Nodes that were removed for good are recorded one after the other, by whoever has seen the last
// removal, and stay recorded.
func TestLeaves(t *testing.T) {
	ctx := context.Background()
	r, stop := open(t, t.TempDir(), newKey(t))
	defer stop()
	left, revision, err := r.Left(ctx)
	if err != nil || len(left) > 0 || revision != 0 {
		t.Fatalf("%v, %d, %v", left, revision, err)
	}
	if err := r.Leaves(ctx, "a", 7); !errors.Is(err, record.ErrLost) {
		t.Errorf("by a number that there was not: %v", err)
	}
	if err := r.Leaves(ctx, "a", 0); err != nil {
		t.Fatal(err)
	}
	if err := r.Leaves(ctx, "b", 0); !errors.Is(err, record.ErrLost) {
		t.Errorf("by an older number: %v", err)
	}
	left, revision, err = r.Left(ctx)
	if err != nil || len(left) != 1 || left["a"].IsZero() || revision == 0 {
		t.Fatalf("%v, %d, %v", left, revision, err)
	}
	if err := r.Leaves(ctx, "b", revision); err != nil {
		t.Fatal(err)
	}
	left, next, err := r.Left(ctx)
	if err != nil || len(left) != 2 || next <= revision {
		t.Errorf("%v, %d, %v", left, next, err)
	}
}

// A stream's copies are its leader's, and those of others; who is away has none that is whole.
func TestCopies(t *testing.T) {
	s := record.CopiesOf(&jetstream.StreamInfo{Cluster: &jetstream.ClusterInfo{Leader: "a",
		Replicas: []*jetstream.PeerInfo{{Name: "b", Current: true}, {Name: "c", Current: true,
			Offline: true}, {Name: "d"}}}})
	want := record.Copies{On: []string{"a", "b", "c", "d"}, Current: 2,
		CurrentOn: map[string]bool{"a": true, "b": true}}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, want %+v", s, want)
	}
	if s := record.CopiesOf(&jetstream.StreamInfo{}); len(s.On) > 0 || s.Current > 0 {
		t.Errorf("without a cluster: %+v", s)
	}
	c := &record.Cluster{Voters: []record.Voter{{Name: "a", Here: true}, {Name: "b", Here: true},
		{Name: "d"}}, Streams: []record.Copies{s}}
	for range 2 { // once counts
		c.Away("b")
	}
	c.Away("d")
	if got := c.Streams[0]; got.Current != 1 || got.CurrentOn["b"] || len(got.On) != 4 {
		t.Errorf("%+v", got)
	}
	if !c.Voters[0].Here || c.Voters[1].Here || c.Voters[2].Here {
		t.Errorf("%+v", c.Voters)
	}
}
