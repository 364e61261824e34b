package fuzz

import (
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

// FuzzRoster parses text as a roster.
func FuzzRoster(f *testing.F) {
	config, _ := session(f)
	text, err := config.Roster.MarshalText()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("# nobody\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		roster, err := keyexchange.ParseRoster(text)
		if err != nil {
			return
		}
		written, err := roster.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		again, err := keyexchange.ParseRoster(written)
		if err != nil || again.Digest() != roster.Digest() {
			t.Fatalf("a roster does not survive writing and reading: %v", err)
		}
		for i := range roster.Len() {
			if j, ok := roster.Index(roster.Key(i)); !ok || j != i {
				t.Fatalf("party %d has index %d", i, j)
			}
		}
	})
}
