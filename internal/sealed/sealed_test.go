package sealed

import (
	"errors"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

// What is sealed opens for its owner, and for nobody else.
func TestSealed(t *testing.T) {
	type state struct{ A, B []byte }
	key, owner := &keyexchange.SealKey{1}, []byte("owner")
	box, err := Seal(nil, key, owner, &state{[]byte("a"), nil})
	if err != nil {
		t.Fatal(err)
	}
	var got state
	if err := Open(key, owner, box, &got); err != nil || string(got.A) != "a" || got.B != nil {
		t.Errorf("%v, %v", got, err)
	}
	changed := slices.Clone(box)
	changed[len(changed)-1] ^= 1
	for _, err := range []error{
		Open(&keyexchange.SealKey{2}, owner, box, &got),
		Open(key, []byte("other"), box, &got),
		Open(key, owner, changed, &got),
		Open(key, owner, nil, &got),
	} {
		if !errors.Is(err, Err) {
			t.Error(err)
		}
	}
	var other struct{ A int }
	if err := Open(key, owner, box, &other); err == nil || errors.Is(err, Err) {
		t.Errorf("another struct: %v", err)
	}
	if _, err := Seal(nil, key, owner, func() {}); err == nil {
		t.Error("a function was sealed")
	}
}
