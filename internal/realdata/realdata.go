// Package realdata finds the public data sets that some tests read. The data is
// not part of the module.
package realdata

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the folder that holds the data set sub: HUSHSUM_DATA/sub, or
// without that variable ../shared/data/sub next to the folder that holds the library's go.mod.
// When the folder is absent the test is skipped with a message; with
// HUSHSUM_REQUIRE_DATA=1 it fails instead, so that a machine which should have
// the data cannot pass without it.
func Dir(t testing.TB, sub string) string {
	t.Helper()
	root := os.Getenv("HUSHSUM_DATA")
	if root == "" {
		module, err := moduleRoot()
		if err != nil {
			t.Fatalf("realdata: cannot find the library's go.mod: %v", err)
		}
		root = filepath.Join(module, "..", "shared", "data")
	}
	dir := filepath.Join(root, sub)
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return dir
	}
	const advice = "realdata: no folder %s; set HUSHSUM_DATA to the folder that holds %q"
	if os.Getenv("HUSHSUM_REQUIRE_DATA") == "1" {
		t.Fatalf(advice, dir, sub)
	}
	t.Skipf(advice, dir, sub)
	return ""
}

// moduleRoot walks up from the working directory, which go test sets to the folder of
// the package under test, to the folder of the library's go.mod: other modules, some
// with workspaces of their own, lie within it.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte("module github.com/hushsum/hushsum\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", os.ErrNotExist
		}
		dir = parent
	}
}
