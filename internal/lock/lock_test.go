package lock

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// held names the file that a process started by TestOtherProcess tries to lock.
const held = "HUSHSUM_TEST_LOCK"

func TestMain(m *testing.M) {
	name := os.Getenv(held)
	if name == "" {
		os.Exit(m.Run())
	}
	if _, err := File(name); errors.Is(err, ErrHeld) {
		os.Exit(3)
	} else if err != nil {
		os.Exit(4)
	}
	os.Exit(0)
}

// A file has one owner at a time, and a closed one none.
func TestFile(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "a")
	first, err := File(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := File(name); !errors.Is(err, ErrHeld) {
		t.Errorf("a second owner: %v", err)
	}
	other, err := Folder(folder)
	if err != nil {
		t.Fatalf("another file: %v", err)
	}
	if _, err := Folder(folder); !errors.Is(err, ErrHeld) {
		t.Errorf("a second owner of the folder: %v", err)
	}
	if err := errors.Join(first.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := File(name)
	if err != nil {
		t.Fatalf("after it was closed: %v", err)
	}
	_ = again.Close()
	_, err = File(filepath.Join(folder, "none", "a"))
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrHeld) {
		t.Errorf("no folder: %v", err)
	}
}

// Another process is told that the file is held, and has it once it is not.
func TestOtherProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	code := func() int {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), held+"="+name)
		_ = c.Run()
		return c.ProcessState.ExitCode()
	}
	f, err := File(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := code(); got != 3 {
		t.Errorf("while it is held: %d, want 3", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := code(); got != 0 {
		t.Errorf("once it is not: %d, want 0", got)
	}
}
