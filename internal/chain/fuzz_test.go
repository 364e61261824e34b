package chain

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"testing"
)

// What is an entry has one text, and nothing else is.
func FuzzParse(f *testing.F) {
	_, lines := chained(f, 2)
	for _, line := range lines {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, text, signature, err := parse(line)
		if err != nil {
			if !errors.Is(err, ErrEntry) {
				t.Fatal(err)
			}
			return
		}
		again, err := json.Marshal(e)
		again = base64.RawStdEncoding.AppendEncode(append(again, ' '), signature)
		if err != nil || !bytes.Equal(again, line) || len(text) == 0 {
			t.Fatalf("%q is %q again, %v", line, again, err)
		}
	})
}

// A head is opened as it was signed.
func FuzzOpenHead(f *testing.F) {
	c, _ := chained(f, 3)
	b, err := SignHead(headOf(f, c), testKey)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := OpenHead(b, testID, public)
		if (err == nil) == (h == nil) || err != nil && !errors.Is(err, ErrHead) {
			t.Fatalf("%+v, %v", h, err)
		}
		if h != nil && !bytes.HasPrefix(b, []byte(h.text()+"\n")) {
			t.Fatalf("%q is %+v", b, h)
		}
	})
}

// Whatever copies have, what is made of them is a chain, or none.
func FuzzUnion(f *testing.F) {
	_, lines := chained(f, 6)
	f.Add(joined(lines), joined(lines[3:]))
	f.Add(joined(lines[:2]), joined(lines[4:]))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		c, err := Union(testID, public, a, b)
		if err != nil {
			if c != nil || !errors.Is(err, ErrNone) && !errors.Is(err, ErrFork) {
				t.Fatal(err)
			}
			return
		}
		e := c.Next(Order, 0, false)
		if err := c.Append(sign(t, e)); err != nil {
			t.Fatalf("the next one does not fit: %v", err)
		}
		again, err := Union(testID, public, joined(c.Lines(0)))
		if err != nil || len(again.Lost) > 0 || again.Last().Number != e.Number {
			t.Fatalf("%v, %v", again, err)
		}
	})
}
