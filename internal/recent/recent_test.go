package recent

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// What was asked last is not found again, and what was asked long ago is forgotten.
func TestGet(t *testing.T) {
	a := New[int, int](4)
	found := 0
	square := func(x int) {
		t.Helper()
		y, err := a.Get(x, func() (int, error) { found++; return x * x, nil })
		if y != x*x || err != nil {
			t.Errorf("%d: %d, %v", x, y, err)
		}
	}
	for range 3 {
		for x := range 4 {
			square(x)
		}
	}
	if found != 4 {
		t.Errorf("four answers are found %d times", found)
	}
	for x := range 100 {
		square(x)
		square(0) // which is asked again and again
		if n := len(a.newer) + len(a.older); n > 8 {
			t.Fatalf("%d answers are kept", n)
		}
	}
	if found != 100 {
		t.Errorf("a hundred answers are found %d times", found)
	}
	if square(1); found != 101 {
		t.Error("the first answers are still kept")
	}
}

// A failure is an answer too.
func TestGetFails(t *testing.T) {
	a, failure := New[string, int](1), errors.New("none")
	for _, next := range []error{failure, errors.New("another")} {
		if _, err := a.Get("x", func() (int, error) { return 0, next }); err != failure {
			t.Error(err)
		}
	}
}

// Callers with one question have it answered once.
func TestGetAtOnce(t *testing.T) {
	a := New[int, int](4)
	var found atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for x := range 4 {
				y, err := a.Get(x, func() (int, error) { found.Add(1); return -x, nil })
				if y != -x || err != nil {
					t.Errorf("%d: %d, %v", x, y, err)
				}
			}
		})
	}
	all.Wait()
	if n := found.Load(); n != 4 {
		t.Errorf("four answers are found %d times", n)
	}
}
