// Package oddities has rows as people bring them, for tests: all entries by which rows come in, of
// Go and of Python, read the same rows of each, or refuse it in the words that stand next to it.
// The table is python/tests/oddities.json, which Python's tests read too.
package oddities

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// File is a text: a head that names x, y and class, and rows 1, 2.5, 0 and 3, 4, 1, as a person or
// a program writes them, or what is refused.
type File struct {
	What       string
	Head, Rows string
	Latin1     bool   // each character of both stands for a byte
	Want       string // words of the refusal; empty: the rows are read
}

// Value stands for y in the second row of a table that is no text.
type Value struct {
	Type string
	Text string
	Want string // as in File
}

// Read returns the table, from the folder of the repository.
func Read(t testing.TB, root string) (files []File, values []Value) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "python", "tests", "oddities.json"))
	var all struct {
		Files  []File
		Values []Value
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(all.Files) == 0 || len(all.Values) == 0 {
		t.Fatal(err)
	}
	for i := range all.Files {
		f := &all.Files[i]
		if f.Latin1 {
			f.Head, f.Rows = bytesOf(f.Head), bytesOf(f.Rows)
		}
	}
	return all.Files, all.Values
}

// bytesOf returns a byte for each character.
func bytesOf(text string) string {
	var b []byte
	for _, r := range text {
		b = append(b, byte(r))
	}
	return string(b)
}

// Of returns the value as a reader of tables gives it.
func (v *Value) Of(t testing.TB) any {
	t.Helper()
	x, err := strconv.ParseFloat(v.Text, 64)
	switch v.Type {
	case "text":
		return v.Text
	case "none":
		return nil
	case "bytes":
		return []byte(v.Text)
	case "float64":
	case "float32":
		return float32(x)
	case "int64":
		return int64(x)
	case "uint64":
		return uint64(x)
	default:
		x = math.NaN()
		err = strconv.ErrSyntax
	}
	if err != nil {
		t.Fatal(v, err)
	}
	return x
}
