package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"strings"
	"testing"
	"time"
)

// The modules in the tree become ones that a proxy can serve: no replace, the library by number.
func TestWithoutReplace(t *testing.T) {
	for _, m := range published[1:] {
		text, err := os.ReadFile("../../" + m.folder + "/go.mod")
		if err != nil {
			t.Fatal(err)
		}
		out, err := withoutReplace(text, "v1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(out), "replace") ||
			!strings.Contains(string(out), library+" v1.2.3") {
			t.Errorf("%s:\n%s", m.folder, out)
		}
	}
	if _, err := withoutReplace([]byte("modul x"), "v1.2.3"); err == nil {
		t.Error("what is no go.mod is taken")
	}
}

// An archive depends on its entries and the commit's time alone.
func TestArchives(t *testing.T) {
	r := &release{time: time.Unix(1e9, 0).UTC()}
	entries := []entry{{"a/b", []byte("content"), 0o755}, {"a/c", nil, 0o644}}
	var first, again, zipped, zippedAgain bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &again} {
		if err := r.tarred(w, entries); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range []*bytes.Buffer{&zipped, &zippedAgain} {
		if err := r.zipped(w, entries); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), again.Bytes()) ||
		!bytes.Equal(zipped.Bytes(), zippedAgain.Bytes()) {
		t.Error("another archive of the same files")
	}
}

func TestNotes(t *testing.T) {
	notes, err := unreleased("# Changelog\n\n## Unreleased\n\n### A\n\n- b\n\n## v0.0.1\n\n- c\n")
	if err != nil || notes != "### A\n\n- b\n" {
		t.Errorf("%q, %v", notes, err)
	}
	for _, text := range []string{"", "## v0.0.1\n", "\n## Unreleased\n\n## v0.0.1\n"} {
		if _, err := unreleased(text); err == nil {
			t.Errorf("notes of %q", text)
		}
	}
}

func TestChart(t *testing.T) {
	out := string(versioned([]byte("name: x\nversion: 0.0.1\nappVersion: 7\n"), "1.2.3"))
	if out != "name: x\nversion: 1.2.3\nappVersion: 1.2.3\n" {
		t.Errorf("%q", out)
	}
}

func TestPlatforms(t *testing.T) {
	got, err := parsePlatforms("linux/arm64,windows/amd64,linux/arm64")
	if err != nil || len(got) != 2 || got[1].program("x") != "x.exe" || got[0].program("x") != "x" {
		t.Errorf("%v, %v", got, err)
	}
	for _, list := range []string{"", "linux", "linux/arm64,", "plan9/386"} {
		if _, err := parsePlatforms(list); err == nil {
			t.Errorf("%q is taken", list)
		}
	}
}

// A program's bill names each of its modules.
func TestBill(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b := bill(info, "test")
	if len(*b.Components) != len(info.Deps)+1 {
		t.Errorf("%d components of %d modules and the standard library", len(*b.Components),
			len(info.Deps))
	}
	for _, c := range *b.Components {
		if c.Name == "" || c.Version == "" || !strings.HasPrefix(c.PackageURL, "pkg:golang/") {
			t.Errorf("%+v", c)
		}
	}
}

// What would be made of a wrong call is nothing.
func TestRefused(t *testing.T) {
	out := t.TempDir()
	for _, c := range []struct{ version, folder, platforms string }{
		{"0.1.0", out + "/a", "linux/amd64"}, {"v0.1", out + "/a", "linux/amd64"},
		{"v0.1.0", out + "/a", "linux"}, {"v0.1.0", out, "linux/amd64"},
	} {
		if err := run(c.version, c.folder, c.platforms, true); err == nil {
			t.Errorf("%+v is taken", c)
		}
		if _, err := os.Stat(out + "/a"); err == nil {
			t.Fatalf("%+v leaves a folder", c)
		}
	}
}
