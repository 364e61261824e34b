//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package lock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A lock that is closed has ended even where a copy of its descriptor lives on, such as that of
// a process between fork and exec. Closed twice it is an error, as of any file.
func TestCopied(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	first, err := File(name)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := unix.Dup(int(first.(interface{ Fd() uintptr }).Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(copied)
	if _, err := File(name); !errors.Is(err, ErrHeld) {
		t.Errorf("before it is closed: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := File(name)
	if err != nil {
		t.Fatalf("after it is closed: %v", err)
	}
	if err := first.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := File(name); !errors.Is(err, ErrHeld) {
		t.Errorf("closing it twice has ended the lock of another: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
