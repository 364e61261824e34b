package cores

import (
	"context"
	"errors"
	"strconv"
	"testing"
)

type numbered int

func (n numbered) Error() string { return strconv.Itoa(int(n)) }

// The smallest failing index wins, whoever fails first.
func TestEach(t *testing.T) {
	for range 200 {
		err := Each(t.Context(), 64, func(i int) error {
			if i%2 == 1 {
				return numbered(i)
			}
			return nil
		}, nil)
		if err != numbered(1) {
			t.Fatalf("got %v, want the failure of 1", err)
		}
	}
	if err := Each(t.Context(), 0, nil, nil); err != nil {
		t.Errorf("nothing to do: %v", err)
	}
	finished := 0
	if err := Each(t.Context(), 64, func(int) error { return nil },
		func(n int) { finished = n }); err != nil || finished != 64 {
		t.Errorf("%d are done: %v", finished, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Each(ctx, 64, func(int) error { return nil }, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
