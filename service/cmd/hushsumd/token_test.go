package main

import "testing"

// Of the file that a node writes at its first start the token that operates is taken; a file of one
// token is that token.
func TestTokenOf(t *testing.T) {
	for text, want := range map[string]string{
		"read-01\noperate-02\n": "operate-02",
		"operate-02\nread-01\n": "operate-02",
		"read-01\n":             "read-01",
		" 03 ":                  "03",
		"read-01\nread-02\n":    "",
		"\n":                    "",
	} {
		if got, err := tokenOf(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
