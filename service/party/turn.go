package party

import (
	"context"
	"sync"
)

// turn is a party's place in [Party.Turns], which it has or not.
type turn struct {
	places chan struct{} // nil: the party waits for no other

	mutex sync.Mutex
	taken bool
	works bool // the program works in it
}

// take takes a place, unless the party has one. It fails with the context's error.
func (t *turn) take(ctx context.Context) error {
	t.mutex.Lock()
	has := t.places == nil || t.taken
	t.mutex.Unlock()
	if has {
		return nil
	}
	select {
	case t.places <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.taken { // by the program, meanwhile
		<-t.places
	}
	t.taken = true
	return nil
}

// rest releases the party's place.
func (t *turn) rest() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.taken {
		<-t.places
		t.taken = false
	}
}

// work notes whether the program works.
func (t *turn) work(works bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.works = works
}

// restIdle releases the party's place unless the program works in it.
func (t *turn) restIdle() {
	t.mutex.Lock()
	works := t.works
	t.mutex.Unlock()
	if !works {
		t.rest()
	}
}
