package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAnalyzersAreThoseOfVet compares with the list that go vet prints.
func TestAnalyzersAreThoseOfVet(t *testing.T) {
	help, err := exec.Command("go", "tool", "vet", "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(help), "Registered analyzers:\n\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var want, got []string
	for line := range strings.Lines(list) {
		want = append(want, strings.Fields(line)[0])
	}
	for _, a := range vet {
		got = append(got, a.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("analyzers are\n%q, those of go vet\n%q", got, want)
	}
}

// TestCheckFindsWhatOnePlatformHas checks a module whose faults show on some platforms only.
func TestCheckFindsWhatOnePlatformHas(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":       "module planted\n\ngo 1.26.0\n",
		"a.go":         "package planted\n\nfunc width(n uint) uint { return n << 40 >> 33 }\n",
		"a_arm64.go":   "package planted\n\nfunc external()\n",
		"b_s390x.s":    "TEXT ·f(SB), 4, $0\n\tRET\n",
		"c_wasm.go":    "package planted\n\nimport \"fmt\"\n\nfunc c() { fmt.Printf(\"%d\") }\n",
		"d/d.go":       "package d\n",
		"d/d_test.go":  "package d\n\nvar size int = 1 << 40\n",
		"e/e.go":       "package e\n\nimport _ \"unsafe\"\n\n//go:linkname now time.now\nfunc now()\n",
		"e/e_arm.go":   "package e\n\nvar bytes [1 << 20]byte\n",
		"e/e_other.go": "//go:build !arm\n\npackage e\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	for _, c := range []struct {
		system, processor, pattern string
		want                       []string // a part of each finding
	}{
		{"linux", "amd64", "./...", nil},
		{"linux", "arm64", "./...", []string{"external has no body"}},
		{"linux", "s390x", "./...", []string{"nothing in the gate assembles b_s390x.s",
			"f: function f missing Go declaration"}},
		{"js", "wasm", ".", []string{"fmt.Printf format %d reads arg #1"}},
		{"linux", "386", "./d", []string{"1 << 40 (untyped int constant 1099511627776) as int"}},
		{"linux", "386", ".", []string{"n (32 bits) too small for shift of 40",
			"n << 40 (32 bits) too small for shift of 33"}},
		{"linux", "arm", "./e", nil},
	} {
		p := platform{c.system, c.processor, []string{c.pattern}}
		got, err := p.check(dir)
		if err != nil {
			t.Fatal(err)
		}
		fits := len(got) == len(c.want)
		for i := 0; fits && i < len(got); i++ {
			fits = strings.Contains(got[i], c.want[i])
		}
		if !fits {
			t.Errorf("%s/%s %s: found\n%q, want parts of\n%q",
				c.system, c.processor, c.pattern, got, c.want)
		}
	}
}
