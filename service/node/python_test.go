package node_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// This file has what Python's package does with jobs of these tests.

// byPython has Python's package hold the federation.
func (h ways) byPython(t *testing.T) (means [waysRounds][]float64) {
	t.Helper()
	folder := t.TempDir()
	file := h.declare(t, folder)
	var given struct {
		Job     string                             `json:"job"`
		Members int                                `json:"members"` // of a committee
		Vectors [waysRounds][waysParties][]float64 `json:"vectors"`
	}
	given.Job, given.Members = filepath.Join(folder, "federation.toml"), h.members
	for r := range given.Vectors {
		for i := range given.Vectors[r] {
			given.Vectors[r][i] = waysVector(i, r+1)
		}
	}
	var got struct {
		Digest  string
		Explain []string
		Means   [][]float64
	}
	runPython(t, "fourways.py", given, &got)
	if want := file.Digest(); got.Digest != hex.EncodeToString(want[:]) {
		t.Errorf("Python's digest of the job is %s, the file's %x", got.Digest, want)
	}
	if want := file.Explain(); !reflect.DeepEqual(got.Explain, want) {
		t.Errorf("Python's plan is %q, the file's %q", got.Explain, want)
	}
	copy(means[:], got.Means)
	return means
}

// runPython runs a program of testdata with Python's package, by programs of this tree, and reads
// what it prints; both sides are JSON. Without NumPy the test skips, unless
// HUSHSUM_REQUIRE_PYTHON=1.
func runPython(t *testing.T, program string, in, out any) {
	t.Helper()
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import numpy").Run() == nil {
			python = name
			break
		}
	}
	switch {
	case python != "":
	case os.Getenv("HUSHSUM_REQUIRE_PYTHON") == "1":
		t.Fatal("there is no python3 with numpy")
	default:
		t.Skip("needs python3 with numpy, which is not there")
	}
	binary := filepath.Join(t.TempDir(), "hushsum")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = filepath.Join("..", "..", "cmd", "hushsum")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	given, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	module, err := filepath.Abs(filepath.Join("..", "..", "python"))
	if err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{module, os.Getenv("PYTHONPATH")}, string(os.PathListSeparator))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, python, filepath.Join("testdata", program))
	run.Env = append(os.Environ(), "PYTHONPATH="+path, "PYTHONDONTWRITEBYTECODE=1",
		"HUSHSUM_BINARY="+binary)
	run.Stdin = bytes.NewReader(given)
	var complaint bytes.Buffer
	run.Stderr = &complaint
	printed, err := run.Output()
	if err == nil {
		err = json.Unmarshal(printed, out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, complaint.Bytes())
	}
}
