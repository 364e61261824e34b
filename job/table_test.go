package job

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/learning"
)

// fieldsOf walks a type and tells the paths of its fields.
func fieldsOf(t reflect.Type, at string, tell func(path string)) {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		path := join(at, snake(f.Name))
		switch {
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			fieldsOf(f.Type.Elem(), path+"[]", tell)
		case f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == t.PkgPath():
			fieldsOf(f.Type, path, tell)
		default:
			tell(path)
		}
	}
}

// snake is how a Go name is written in a file.
func snake(name string) string {
	if name == "DType" {
		return "dtype"
	}
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// Each field of the types stands in the table under its own name, once, and no row is of
// nothing.
func TestTableIsWhole(t *testing.T) {
	var want, got []string
	fieldsOf(reflect.TypeFor[Job](), "", func(path string) { want = append(want, path) })
	for f := range Fields() {
		got = append(got, f.Path)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("types have %q\ntable has %q", want, got)
	}
}

// rows tells all rows of a table, with owners that are zero.
func rows(t *table, owner any, tell func(r *row, owner any)) {
	for _, e := range t.entries {
		if e.row != nil {
			tell(e.row, owner)
			continue
		}
		e.list.grow(owner, 1)
		rows(&e.list.rows, e.list.of(owner, 0), tell)
	}
}

// A zero value means the default: where that is another value, zero is outside the range. Accessors
// lead to the field that they are named for: a value that is set is read from its own row only.
func TestZeroMeansDefault(t *testing.T) {
	flags := map[string]string{}
	rows(&theJob, new(Job), func(r *row, owner any) {
		if r.preset != nil && !reflect.ValueOf(r.preset).IsZero() && r.Kind != Word && r.Kind != Text {
			if r.in.holds(0) {
				t.Errorf("%s: 0 is inside its range, and means %v", r.Path, r.preset)
			}
		}
		if r.preset != nil {
			if e := r.set(owner, r.preset); e != nil {
				t.Errorf("%s: its default is refused: %v", r.Path, e)
			}
		}
		if r.Default == "" && !r.Required && r.Kind != Text && r.Kind != Texts {
			t.Errorf("%s: nothing says what zero means", r.Path)
		}
		if !strings.HasSuffix(r.Sentence, ".") || !strings.Contains(strings.Fields(r.Sentence)[0], "s") {
			t.Errorf("%s: %q is no sentence that begins with a verb", r.Path, r.Sentence)
		}
		if r.Kind == Text && r.fits == nil {
			t.Errorf("%s: any text will do", r.Path)
		}
		if other, taken := flags[r.Flag]; taken && r.Flag != "" {
			t.Errorf("%s and %s have one flag", r.Path, other)
		}
		flags[r.Flag] = r.Path
	})
}

// The splits are those of package learning, which this package does without.
func TestSplits(t *testing.T) {
	if got := strings.Fields(splits)[1:]; !slices.Equal(got, learning.PartitionNames()) {
		t.Errorf("%q, want %q", got, learning.PartitionNames())
	}
}
