package suite

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// RowsProgram builds the program hushsum-rows and puts it on PATH for a test. The function that it
// returns writes a file for the program to read: NAME.db by SQL statements, NAME.parquet by CSV
// text whose first line has types, as tables/internal/written says.
func RowsProgram(t *testing.T) (write func(name, text string)) {
	t.Helper()
	root := clone(t)
	folder := t.TempDir()
	run := func(in io.Reader, name string, args ...string) {
		t.Helper()
		c := exec.Command(name, args...)
		c.Stdin = in
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, said)
		}
	}
	run(nil, "go", "build", "-C", filepath.Join(root, "tables"), "-o",
		folder+string(os.PathSeparator), "./cmd/hushsum-rows", "./internal/written")
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func(name, text string) {
		t.Helper()
		run(strings.NewReader(text), "written", name)
	}
}

// clone returns the folder above that has all modules.
func clone(t testing.TB) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; !exists(filepath.Join(root, "go.work")); root = filepath.Dir(root) {
		if root == filepath.Dir(root) {
			t.Fatal("no folder above is a clone")
		}
	}
	return root
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
