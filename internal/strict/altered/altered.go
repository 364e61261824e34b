// Package altered has tests of texts in JSON from outside: what is not exactly what a program wrote
// is refused.
package altered

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Refused fails unless a text in JSON is read, and refused once it is altered: a name in another
// case, given twice, or unknown, in any object; something behind its end; bytes that are not UTF-8;
// lists within one another beyond any limit. Package json reads all of these but the last. The
// names of a map, of which it has one that is not in lower case, are any.
func Refused(t testing.TB, text []byte, read func(text []byte) error) {
	t.Helper()
	if !json.Valid(text) {
		t.Fatalf("not JSON: %s", text)
	}
	if err := read(text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	refuse := func(what string, altered []byte) {
		t.Helper()
		if read(altered) == nil {
			t.Errorf("%s: %s is read", what, altered)
		}
	}
	for i, c := range text {
		if c != '{' || inString(text[:i]) {
			continue
		}
		put := func(upTo int, more string) []byte {
			return append(append(bytes.Clone(text[:i+1]), more...), text[upTo:]...)
		}
		name, member := first(text[i:])
		if member == 0 {
			refuse("an unknown name", put(i+1, `"no such name":0`))
			continue
		}
		refuse("an unknown name", put(i+1, `"no such name":0,`))
		refuse("a name twice", put(i+1, string(text[i+1:i+member])+","))
		if upper := bytes.ToUpper(text[i+1 : i+name]); !bytes.Equal(upper, text[i+1:i+name]) {
			refuse("another case", put(i+name, string(upper)))
		}
	}
	refuse("a second value", append(bytes.Clone(text), "{}"...))
	refuse("lists without end", bytes.Repeat([]byte("["), 100_000))
	if i := bytes.IndexByte(text, '"'); i >= 0 {
		refuse("not UTF-8", append(append(bytes.Clone(text[:i+1]), 0xff), text[i+1:]...))
	}
}

// inString reports whether a place after some text is within a string.
func inString(text []byte) (is bool) {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			is = !is
		case text[i] == '\\' && is:
			i++
		}
	}
	return is
}

// first returns where the name of an object's first member ends, and where the member does; 0: it
// has none.
func first(object []byte) (name, member int) {
	d := json.NewDecoder(bytes.NewReader(object))
	_, _ = d.Token() // of a valid text there is no error
	if !d.More() {
		return 0, 0
	}
	_, _ = d.Token()
	name = int(d.InputOffset())
	var value json.RawMessage
	_ = d.Decode(&value)
	return name, int(d.InputOffset())
}
