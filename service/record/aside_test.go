package record

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A cluster's node forgets its indexes at a start, and nothing else; where there is no folder yet
// it starts too.
func TestForgetIndexes(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"index.db", "1.blk", "meta.inf"} {
		for _, at := range []string{"a/msgs", "b"} {
			if err := os.MkdirAll(filepath.Join(folder, at), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, at, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, where := range []string{folder, filepath.Join(folder, "none")} {
		if err := forgetIndexes(where); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []string{"a/msgs", "b"} {
		for name, stays := range map[string]bool{"index.db": false, "1.blk": true, "meta.inf": true} {
			if _, err := os.Stat(filepath.Join(folder, at, name)); stays != (err == nil) {
				t.Errorf("%s/%s: %v", at, name, err)
			}
		}
	}
}

// Files on which JetStream does not start are moved, and stay where the disk is the cause.
func TestSetAside(t *testing.T) {
	folder := t.TempDir()
	all := filepath.Join(folder, Subfolder)
	if err := os.MkdirAll(all, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := setAside(filepath.Join(folder, "none"), errHung); !errors.Is(err, ErrUnavailable) ||
		errors.Is(err, ErrDamaged) {
		t.Errorf("a disk that takes no files: %v", err)
	}
	if err := setAside(folder, errHung); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
	moved, err := filepath.Glob(all + aside + "*")
	if err != nil || len(moved) != 1 {
		t.Errorf("%q, %v", moved, err)
	}
	if _, err := os.Stat(all); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}
