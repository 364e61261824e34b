package exchange

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"reflect"
	"testing"

	"github.com/hushsum/hushsum/internal/chain"
)

// A party reads what a door tells of the chain.
func TestTold(t *testing.T) {
	for _, proof := range [][]chain.Hash{nil, {{1}, {2}}} {
		told := &Told{[]byte("note\n"), []byte("{} line"), proof}
		h := make(http.Header)
		told.Set(h)
		if got, err := ParseTold(h); err != nil || !reflect.DeepEqual(got, told) {
			t.Errorf("%+v, %v, want %+v", got, err, told)
		}
	}
	h := make(http.Header)
	(&Told{Note: []byte("note\n"), Line: make([]byte, longLine+1)}).Set(h)
	if got, err := ParseTold(h); err != nil || got.Line != nil {
		t.Errorf("a long line: %v", err)
	}
	if got, err := ParseTold(make(http.Header)); got != nil || err != nil {
		t.Errorf("nothing: %+v, %v", got, err)
	}
	h = http.Header{headerHead: {"aGk=", "aGk="}}
	if _, err := ParseHead(h); err == nil {
		t.Error("two heads are one")
	}
}

// Headers have one text for what they tell, and their sizes have bounds.
func FuzzTold(f *testing.F) {
	hash := base64.StdEncoding.EncodeToString(make([]byte, 32))
	f.Add("bm90ZQo=", "e30gbGluZQ==", hash)
	f.Add("bm90ZQo", "", "")
	f.Fuzz(func(t *testing.T, head, line, proof string) {
		h := make(http.Header)
		for name, value := range map[string]string{headerHead: head, headerLine: line,
			headerProof: proof} {
			if value != "" {
				h.Set(name, value)
			}
		}
		told, err := ParseTold(h)
		if err != nil || told == nil {
			return
		}
		again := make(http.Header)
		told.Set(again)
		if !reflect.DeepEqual(again, h) {
			t.Fatalf("%q is %q again", h, again)
		}
		if len(told.Proof) > chain.MostProof || len(told.Note) > mostNote {
			t.Fatal("it is too long")
		}
	})
}

// The two heads of a file of evidence are two notes.
func TestHeadsOfEvidence(t *testing.T) {
	one, another := []byte("one\n\n— a\n"), []byte("two\n\n— a\n")
	if got := Heads(one, another); !bytes.Equal(got, []byte("one\n\n— a\n\ntwo\n\n— a\n")) {
		t.Errorf("%q", got)
	}
}
