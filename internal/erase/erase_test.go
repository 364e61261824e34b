package erase

import "testing"

// Code is run once, sees and changes what it closes over, and its panic goes on to the
// caller, with the runtime's erasing and without.
func TestDo(t *testing.T) {
	calls, in, out := 0, []byte{1, 2, 3}, [3]byte{}
	Do(func() {
		calls++
		copy(out[:], in)
	})
	if calls != 1 || out != [3]byte{1, 2, 3} {
		t.Errorf("%d calls, %v", calls, out)
	}
	Do(func() { Do(func() { calls++ }) })
	if calls != 2 {
		t.Errorf("%d calls, one within another", calls)
	}
	defer func() {
		if v := recover(); v != "out" {
			t.Errorf("recovered %v", v)
		}
		Do(func() { calls++ })
		if calls != 3 {
			t.Errorf("%d calls, one after a panic", calls)
		}
	}()
	Do(func() { panic("out") })
	t.Error("a panic is lost")
}
