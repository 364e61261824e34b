package record

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// stalled is a store of objects whose lists end with their time only: so it is while JetStream is
// started again.
type stalled struct {
	jetstream.ObjectStore
	lists int
}

var errForEver = errors.New("this would wait for ever")

func (s *stalled) List(ctx context.Context, _ ...jetstream.ListObjectsOpt,
) ([]*jetstream.ObjectInfo, error) {
	s.lists++
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, errForEver
	}
	if s.lists == 1 {
		return nil, context.DeadlineExceeded
	}
	return nil, jetstream.ErrNoObjectsFound
}

// A list of objects that stalls is asked for again, and holds up nobody for ever.
func TestStalledList(t *testing.T) {
	if all, err := new(Records).stored(context.Background(), new(stalled)); err != nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
}
