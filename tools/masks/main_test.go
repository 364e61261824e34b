package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The command writes the assembly in package masking, byte by byte.
func TestGenerated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fused_amd64.s")
	if out, err := exec.Command("go", "run", ".", "-out", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fresh, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("../../masking/fused_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	_, fresh, _ = bytes.Cut(fresh, []byte("\n")) // the first line has the path
	_, kept, _ = bytes.Cut(kept, []byte("\n"))
	if !bytes.Equal(fresh, kept) {
		t.Error("masking/fused_amd64.s is not what the command writes: go generate ./masking")
	}
}
