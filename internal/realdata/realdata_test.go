package realdata

import (
	"os"
	"path/filepath"
	"testing"
)

// recorder stands in for a test and notes how it would have ended.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper()               {}
func (r *recorder) Fatalf(string, ...any) { r.ended = "failed" }
func (r *recorder) Skipf(string, ...any) {
	if r.ended == "" {
		r.ended = "skipped"
	}
}

func TestDir(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "adult"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HUSHSUM_DATA", root)
	for _, c := range []struct{ sub, require, ended string }{
		{"adult", "", ""}, {"adult", "1", ""}, {"none", "", "skipped"}, {"none", "1", "failed"},
	} {
		t.Setenv("HUSHSUM_REQUIRE_DATA", c.require)
		r := &recorder{TB: t}
		dir := Dir(r, c.sub)
		if r.ended != c.ended || c.ended == "" && dir != filepath.Join(root, c.sub) {
			t.Errorf("%+v: %q, %q", c, dir, r.ended)
		}
	}
}

func TestModuleRoot(t *testing.T) {
	dir, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "internal", "realdata", "realdata.go")); err != nil {
		t.Errorf("found %s: %v", dir, err)
	}
}
