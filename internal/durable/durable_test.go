package durable

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func names(t *testing.T, folder string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// failing is content that breaks off.
type failing struct{}

var errBroken = errors.New("broken")

func (failing) WriteTo(w io.Writer) (int64, error) {
	n, _ := w.Write([]byte("half"))
	return int64(n), errBroken
}

// What breaks off leaves the content before, and no other file.
func TestWrite(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "a")
	for _, text := range []string{"one", "two"} {
		if err := Write(name, bytes.NewReader([]byte(text))); err != nil {
			t.Fatal(err)
		}
		if err := Write(name, failing{}); !errors.Is(err, errBroken) {
			t.Errorf("content that breaks off: %v", err)
		}
		b, err := os.ReadFile(name)
		if string(b) != text || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may read it: %v, %v", info, err)
		}
	}
	if all := names(t, folder); !slices.Equal(all, []string{"a"}) {
		t.Errorf("it left %q", all)
	}
}

// A sweep takes what the writer's own names say is temporary, and nothing else.
func TestSweep(t *testing.T) {
	folder := t.TempDir()
	keep := []string{"a", "a.1", "a.new", "a.1.old", "a.1x.new", "a..new", ".1.new", "b.1.new",
		"1.new"}
	gone := []string{"a.0.new", "a.4294967295.new"}
	for _, name := range append(slices.Clone(keep), gone...) {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "a.7.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	keep = append(keep, "a.7.new")
	slices.Sort(keep)
	if err := Sweep(folder, func(name string) bool { return name != "b" }); err != nil {
		t.Fatal(err)
	}
	if all := names(t, folder); !slices.Equal(all, keep) {
		t.Errorf("left %q, want %q", all, keep)
	}
	// Sweep knows what Write makes: a file is made as Write makes it.
	var within string
	_ = Write(filepath.Join(folder, "a"), writerTo(func(w io.Writer) {
		within = filepath.Base(w.(*os.File).Name())
	}))
	if of, temporary := target(within); of != "a" || !temporary {
		t.Errorf("%q is to become %q, %v", within, of, temporary)
	}
}

type writerTo func(w io.Writer)

func (f writerTo) WriteTo(w io.Writer) (int64, error) {
	f(w)
	return 0, nil
}
