package job

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

// What is made from the table lies next to what is written by hand. This file has the list, and
// each product a file of its own: comments_test.go, page_test.go, theorempage_test.go,
// schema_test.go, python_test.go.

var rewrite = flag.Bool("rewrite", false, "write what is made from the table of fields")

// products are the files that are made, or have a part that is, with what makes each anew of its
// present text.
var products = []struct {
	path string
	made func(present []byte) ([]byte, error)
}{
	{"types.go", withComments},
	{"typesquery.go", withComments},
	{"typesworld.go", withComments},
	{page, withTables},
	{theoremPage, withTheorems},
	{"schema.json", withSchema},
	{"../python/hushsum/_job.py", withClasses},
}

// The files that are made from the table are as the present table makes them.
func TestGenerated(t *testing.T) {
	for _, p := range products {
		present, err := os.ReadFile(p.path)
		if err != nil && !*rewrite {
			t.Error(err)
			continue
		}
		made, err := p.made(present)
		switch {
		case err != nil:
			t.Errorf("%s: %v", p.path, err)
		case bytes.Equal(made, present):
		case *rewrite:
			if err := os.WriteFile(p.path, made, 0o644); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("%s is not what the table of fields makes of it, from line %d on: run go generate "+
				"./job", p.path, firstDifference(made, present))
		}
	}
}

// firstDifference returns the number of the first line in which texts differ, from 1.
func firstDifference(a, b []byte) int {
	line := 1
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			break
		}
		if a[i] == '\n' {
			line++
		}
	}
	return line
}
