package rows

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
)

// Rows are read strictly, and faults have their line.
func TestRows(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rows.csv")
	form := job.Model{Features: 2, Classes: 3}
	for text, want := range map[string]string{
		"1,2,0\n3,4.5,2\n": "",
		"":                 "no rows",
		"1,2,0\n1,2\n":     "line 2: 2 numbers",
		"a,b,c\n":          "line 1: column 1 is not a finite number; leave out the header",
		"1,NaN,0\n":        "column 2",
		"1,2,3\n":          "0 to 2",
		"1,2,0.5\n":        "0 to 2",
		"1\"2,2,0\n":       "line 1",
		"1,2,0\n\"1,2,0\n": "line",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := ReadOwn(name, form, false)
		switch {
		case want == "" && (err != nil || d.Len() != 2 || d.X[3] != 4.5 || d.Labels[1] != 2):
			t.Errorf("%+v %v", d, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v", text, err)
		}
	}
	// Where records belong to persons, each row says whose it is.
	if err := os.WriteFile(name, []byte("ann,1,2,0\nbob,3,4,1\nann,5,6,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := ReadOwn(name, form, true)
	if err != nil || !slices.Equal(d.Writers, []int{0, 1, 0}) || d.X[4] != 5 {
		t.Errorf("%+v %v", d, err)
	}
	if _, err := ReadOwn(name, form, false); err == nil {
		t.Error("names are read as numbers")
	}
}
