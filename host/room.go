package host

import (
	"context"
	"sync"
)

// room bounds the bytes that are on their way to peers. Room is taken before a message is made, as
// much as the longest one until then took.
type room struct {
	most    int
	stopped <-chan struct{} // closed when nobody is handed anything any more

	mutex   sync.Mutex
	used    int
	longest int
	waiting int
	freed   chan struct{} // closed when some is given up; nil: nobody waits
}

// take waits for room for one message, and returns how much it took. It fails with the context's
// error, or with [ErrStopped].
func (r *room) take(ctx context.Context) (size int, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for r.used > 0 && r.used+r.longest > r.most {
		if r.freed == nil {
			r.freed = make(chan struct{})
		}
		freed := r.freed
		r.waiting++
		r.mutex.Unlock()
		select {
		case <-freed:
		case <-r.stopped:
			err = ErrStopped
		case <-ctx.Done():
			err = ctx.Err()
		}
		r.mutex.Lock()
		r.waiting--
		if err != nil {
			return 0, err
		}
	}
	r.used += r.longest
	return r.longest, nil
}

// short reports whether that much is less than a message may take.
func (r *room) short(size int) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return size < r.longest
}

// fill puts a message into room that was taken, and returns how much it takes then.
func (r *room) fill(size, message int) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.longest = max(r.longest, message)
	r.used += message - size
	r.free()
	return message
}

// give gives room up.
func (r *room) give(size int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.used -= size
	r.free()
}

func (r *room) free() {
	if r.freed != nil {
		close(r.freed)
		r.freed = nil
	}
}

func (r *room) crowded() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.waiting > 0
}
