//go:build unix

package party

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The command of docs/service-join.md, with rows, makes the gradients of its rows; an index beyond
// them ends it, and that unit adds nothing.
func TestDocumentedCommand(t *testing.T) {
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import numpy").Run() == nil {
			python = name
			break
		}
	}
	if python == "" {
		if os.Getenv("HUSHSUM_REQUIRE_PYTHON") == "1" {
			t.Fatal("no Python with NumPy")
		}
		t.Skip("there is no Python with NumPy")
	}
	page, err := os.ReadFile("../../docs/service-join.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, found := strings.Cut(string(page), "```python\n")
	code, _, _ = strings.Cut(code, "```")
	if !found || !strings.Contains(code, "HUSHSUM_WORK") {
		t.Fatalf("the page has %q", code)
	}
	file := filepath.Join(t.TempDir(), "command.py")
	code = "import json, os, sys\nimport numpy as np\nx = np.array([[1.0, 0], [3, 4], [0, 1]])\n" +
		"y = np.array([0, 1, 1])\n" + code
	if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(byRecords, "[[model.tensor]]\nname = \"b\"\nshape = []\n", "", 1)
	f := fewOf(t, strings.Replace(text, "shape = [2, 2]", "shape = [2]", 1))
	log := new(logged)
	g, err := NewGradients(t.Context(), f, fmt.Sprintf("exec %s '%s'", python, file), t.TempDir(), 4,
		log)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	g.random = coinsOf([]int{0, 1, 2, 3}, func(who int) bool { return who != 2 })
	w := &Work{Round: 1, Spec: &f.Spec, Model: []float64{0, 0}, Coins: f.Settled.Coins()}
	if w.File, err = f.Spec.Append(nil, w.Model, nil); err != nil {
		t.Fatal(err)
	}
	u, err := g.Train(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	// Half of the first row, and half of the second, of length 5, clipped to 1.5 from 2.5.
	for i, want := range []float64{-0.5 + 0.9, 1.2} {
		if math.Abs(u.Vector[i]-want) > 1e-9 {
			t.Errorf("the sum is %v", u.Vector)
		}
	}
	if u.Without == nil || !strings.Contains(u.Without.Error(), "exit status 1") ||
		!strings.Contains(log.String(), "IndexError") {
		t.Errorf("%v: %s", u.Without, log)
	}
}
