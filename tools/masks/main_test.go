package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The commands write the assembly that is in the packages, byte by byte.
func TestGenerated(t *testing.T) {
	for command, file := range map[string]string{
		".": "../../masking/fused_amd64.s", "../transforms": "../../internal/ring/transform_amd64.s",
	} {
		path := filepath.Join(t.TempDir(), "fresh.s")
		if out, err := exec.Command("go", "run", command, "-out", path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		fresh, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, fresh, _ = bytes.Cut(fresh, []byte("\n")) // the first line has the path
		_, kept, _ = bytes.Cut(kept, []byte("\n"))
		if !bytes.Equal(fresh, kept) {
			t.Errorf("%s is not what the command writes: go generate, in its package", file)
		}
	}
}
