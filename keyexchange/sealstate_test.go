package keyexchange

import (
	"errors"
	"slices"
	"testing"
)

// What is sealed opens for its owner, and for nobody else.
func TestSealed(t *testing.T) {
	type state struct{ A, B []byte }
	key, owner := &SealKey{1}, []byte("owner")
	box, err := SealState(nil, key, owner, &state{[]byte("a"), nil})
	if err != nil {
		t.Fatal(err)
	}
	var got state
	if err := OpenState(key, owner, box, &got); err != nil || string(got.A) != "a" || got.B != nil {
		t.Errorf("%v, %v", got, err)
	}
	changed := slices.Clone(box)
	changed[len(changed)-1] ^= 1
	for _, err := range []error{
		OpenState(&SealKey{2}, owner, box, &got),
		OpenState(key, []byte("other"), box, &got),
		OpenState(key, owner, changed, &got),
		OpenState(key, owner, nil, &got),
	} {
		if !errors.Is(err, ErrSealedState) {
			t.Error(err)
		}
	}
	var other struct{ A int }
	if err := OpenState(key, owner, box, &other); err == nil || errors.Is(err, ErrSealedState) {
		t.Errorf("another struct: %v", err)
	}
	if _, err := SealState(nil, key, owner, func() {}); err == nil {
		t.Error("a function was sealed")
	}
}
