package hushsum

import (
	"errors"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/link"
)

// The tests of this file each fail for one small change to the code that no other test
// notices.

// A party keeps no more of a message that comes in parts than the longest message has, whether the
// last part goes beyond it or one before.
func TestMessageParts(t *testing.T) {
	const longest = 5
	for _, c := range []struct {
		parts []string
		last  string
		want  error
	}{
		{nil, "abc", nil},
		{[]string{"ab"}, "cde", nil},
		{[]string{"ab", "cd", "e"}, "", nil},
		{[]string{"ab", "cd"}, "ef", ErrFrame},
		{[]string{"ab", "cdef"}, "", ErrFrame},
		{[]string{"abcdef"}, "", ErrFrame},
	} {
		p := &partLink{longest: longest}
		whole, err := "", error(nil)
		for _, part := range c.parts {
			if whole += part; err == nil {
				err = p.part(append([]byte{link.KindMessage}, part...))
			}
		}
		var got []byte
		if whole += c.last; err == nil {
			got, err = p.rest([]byte(c.last))
		}
		if !errors.Is(err, c.want) || c.want == nil && string(got) != whole {
			t.Errorf("%q, %q: %q, %v", c.parts, c.last, got, err)
		}
	}
}

// A member is sent no models.
func TestMemberModels(t *testing.T) {
	l := &partLink{member: true, longest: 5}
	if err := l.part([]byte{link.KindBroadcast, 0}); !errors.Is(err, ErrFrame) {
		t.Error(err)
	}
	if item, err := l.take([]byte{link.KindEnd, 1, 2}); err != nil || item.Kind != drive.Last {
		t.Errorf("%+v, %v", item, err)
	}
}
