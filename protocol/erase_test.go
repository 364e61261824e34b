package protocol

import "testing"

// Code is run once, sees and changes what it closes over, and its panic goes on to the
// caller, with the runtime's erasing and without.
func TestErasing(t *testing.T) {
	calls, in, out := 0, []byte{1, 2, 3}, [3]byte{}
	erasing(func() {
		calls++
		copy(out[:], in)
	})
	if calls != 1 || out != [3]byte{1, 2, 3} {
		t.Errorf("%d calls, %v", calls, out)
	}
	erasing(func() { erasing(func() { calls++ }) })
	if calls != 2 {
		t.Errorf("%d calls, one within another", calls)
	}
	defer func() {
		if v := recover(); v != "out" {
			t.Errorf("recovered %v", v)
		}
		erasing(func() { calls++ })
		if calls != 3 {
			t.Errorf("%d calls, one after a panic", calls)
		}
	}()
	erasing(func() { panic("out") })
	t.Error("a panic is lost")
}
