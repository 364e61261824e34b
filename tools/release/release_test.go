package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The modules of go.work become ones that a proxy can serve: no replace, the project's by number,
// the library before those that require it.
func TestModules(t *testing.T) {
	found, err := findModules("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 3 || found[0].path() != library {
		t.Fatalf("%d modules, the first is %s", len(found), found[0].path())
	}
	for _, m := range found {
		text, err := os.ReadFile("../../" + m.folder + "/go.mod")
		if err != nil {
			t.Fatal(err)
		}
		out, err := withoutReplace(text, "v1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(out), "replace") ||
			m.folder != "" && !strings.Contains(string(out), library+" v1.2.3") {
			t.Errorf("%s:\n%s", m.folder, out)
		}
		if want := strings.TrimPrefix(m.folder+"/v1.2.3", "/"); m.tag("v1.2.3") != want {
			t.Errorf("tag %s, want %s", m.tag("v1.2.3"), want)
		}
	}
}

// workspace writes the go.mod files of modules below a folder, and its go.work.
func workspace(t *testing.T, mods map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	work := "go 1.26.0\n"
	for _, name := range slices.Sorted(maps.Keys(mods)) {
		work += "use ./" + name + "\n"
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "go.mod"), []byte(mods[name]),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "go.work"), []byte(work), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

// A module comes after those that it requires, whatever go.work has first; what no tag could serve
// is refused.
func TestOrderOfModules(t *testing.T) {
	const named = "module " + library
	found, err := findModules(workspace(t, map[string]string{
		"":  named + "\n",
		"a": named + "/a\nrequire " + library + "/b v0.0.0\nrequire example.org/x v1.0.0\n",
		"b": named + "/b\nrequire " + library + " v0.0.0\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, m := range found {
		order = append(order, m.folder)
	}
	if got := strings.Join(order, " "); got != " b a" {
		t.Errorf("order %q", got)
	}
	for why, mods := range map[string]map[string]string{
		"another path": {"": named + "\n", "a": "module example.org/a\n"},
		"in a circle":  {"a": named + "/a\nrequire " + library + "/a v0.0.0\n"},
		"left out":     {"a": named + "/a\nrequire " + library + " v0.0.0\n"},
		"no go.mod":    {"a": "modul\n"},
	} {
		if _, err := findModules(workspace(t, mods)); err == nil {
			t.Errorf("%s: it is taken", why)
		}
	}
	for _, text := range []string{"modul x", named + "\nreplace example.org/x => ../x\n"} {
		if _, err := withoutReplace([]byte(text), "v1.2.3"); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// An archive depends on its entries and the commit's time alone.
func TestArchives(t *testing.T) {
	r := &release{time: time.Unix(1e9, 0).UTC()}
	entries := []entry{{name: "a/b", content: []byte("content"), mode: 0o755},
		{name: "a/c", mode: 0o644}}
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

// Notes are those of what is released, which the changelog then has under its number and day.
func TestNotes(t *testing.T) {
	const text = "# Changelog\n\n## Unreleased\n\n### A\n\n- b\n\n## v0.0.1\n\n- c\n"
	notes, err := unreleased(text)
	if err != nil || notes != "### A\n\n- b\n" {
		t.Errorf("%q, %v", notes, err)
	}
	after, err := dated(text, "v1.2.3", time.Unix(1e9, 0).UTC())
	if want := "# Changelog\n\n## Unreleased\n\n## v1.2.3, 2001-09-09\n\n### A\n\n- b\n\n" +
		"## v0.0.1\n\n- c\n"; err != nil || after != want {
		t.Errorf("%v, %q", err, after)
	}
	for _, text := range []string{"", "## v0.0.1\n", "\n## Unreleased\n\n## v0.0.1\n", after} {
		if _, err := unreleased(text); err == nil {
			t.Errorf("notes of %q", text)
		}
		if _, err := dated(text, "v1.2.3", time.Now()); err == nil {
			t.Errorf("%q gets a date", text)
		}
	}
}

// The number of a release is written where a file has one.
func TestNumbers(t *testing.T) {
	out := charted("name: x\nversion: 0.0.1\nappVersion: 7\n", "1.2.3")
	if out != "name: x\nversion: 1.2.3\nappVersion: 1.2.3\n" {
		t.Errorf("%q", out)
	}
	out, err := quotedVersion("a\nversion = \"0.0.1\"\npython_version = \"3\"\n", "version", "1.2.3")
	if err != nil || out != "a\nversion = \"1.2.3\"\npython_version = \"3\"\n" {
		t.Errorf("%v, %q", err, out)
	}
	if _, err := quotedVersion("a\nversion = 1\n", "version", "1.2.3"); err == nil {
		t.Error("a file without a version is taken")
	}
	r := &release{version: "v1.2.3", time: time.Unix(1e9, 0), source: t.TempDir()}
	names := []string{"CHANGELOG.md", "deploy/chart/Chart.yaml", "python/pyproject.toml",
		"python/hushsum/__init__.py"}
	for _, name := range names {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if name == names[0] { // which has nothing right after a release
			text = []byte("\n## Unreleased\n\n- a\n")
		}
		to := filepath.Join(r.source, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.number(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(filepath.Join(r.source, name)); err != nil ||
			!strings.Contains(string(text), "1.2.3") {
			t.Errorf("%s: %v, it has no number", name, err)
		}
	}
}

// An image runs as deploy/Dockerfile says, and each of its files is found by its digest.
func TestImage(t *testing.T) {
	r := &release{version: "v1.2.3", time: time.Unix(1e9, 0).UTC(),
		source: filepath.Join(t.TempDir(), "source")}
	p := platform{"linux", "arm64"}
	err := os.MkdirAll(r.built(p), 0o755)
	for _, name := range []string{"hushsumd", "hushsum-rows"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(r.built(p), name), []byte(name), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	entries, err := r.image(p)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		files[e.name] = e.content
		if kind, digest, ok := strings.Cut(e.name, "sha256/"); ok &&
			(kind != "blobs/" || fmt.Sprintf("%x", sha256.Sum256(e.content)) != digest) {
			t.Errorf("%s has another digest", e.name)
		}
	}
	type reference struct {
		Digest   string
		Size     int
		Platform struct{ Architecture string }
	}
	at := func(to reference) []byte {
		content := files["blobs/"+strings.Replace(to.Digest, ":", "/", 1)]
		if content == nil || len(content) != to.Size {
			t.Fatalf("%+v leads to %d bytes", to, len(content))
		}
		return content
	}
	read := func(text []byte, into any) {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	var index struct{ Manifests []reference }
	read(files["index.json"], &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Platform.Architecture != "arm64" {
		t.Fatalf("%s", files["index.json"])
	}
	var manifest struct {
		Config reference
		Layers []reference
	}
	read(at(index.Manifests[0]), &manifest)
	var config struct {
		Config       imageConfig
		Architecture string
		RootFS       struct {
			IDs []string `json:"diff_ids"`
		}
	}
	read(at(manifest.Config), &config)
	var known []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	read(files["manifest.json"], &known)
	if len(known) != 1 || files[known[0].Config] == nil || files[known[0].Layers[0]] == nil ||
		known[0].RepoTags[0] != "hushsum:1.2.3" {
		t.Errorf("%s", files["manifest.json"])
	}
	compressed, err := gzip.NewReader(bytes.NewReader(at(manifest.Layers[0])))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(compressed)
	if err != nil || config.RootFS.IDs[0] != fmt.Sprintf("sha256:%x", sha256.Sum256(layer)) {
		t.Errorf("%v, the layer is not %v", err, config.RootFS.IDs)
	}
	archive := tar.NewReader(bytes.NewReader(layer))
	for _, want := range []string{"data/ 700 65532", "hushsum-rows 755 65532",
		"hushsumd 755 65532"} {
		h, err := archive.Next()
		if err != nil || fmt.Sprintf("%s %o %d", h.Name, h.Mode, h.Uid) != want {
			t.Errorf("%v, %+v, want %s", err, h, want)
		}
	}

	dockerfile, err := os.ReadFile("../../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	quoted := func(words []string) string {
		text, err := json.Marshal(words)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(text), ",", ", ")
	}
	c := config.Config
	for _, line := range []string{"FROM scratch", "USER " + c.User + ":" + c.User, "ENV " + c.Env[0],
		"VOLUME " + slices.Collect(maps.Keys(c.Volumes))[0],
		"EXPOSE " + strings.TrimSuffix(slices.Collect(maps.Keys(c.ExposedPorts))[0], "/tcp"),
		"ENTRYPOINT " + quoted(c.Entrypoint), "CMD " + quoted(c.Cmd)} {
		if !strings.Contains(string(dockerfile), line+"\n") {
			t.Errorf("deploy/Dockerfile has no line %s", line)
		}
	}
}

// A program of another version, platform or kind is refused.
func TestSuits(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: info.Main.Version + "0"}
	if err := r.suits(path, here); err == nil || !strings.Contains(err.Error(), "not "+r.version) {
		t.Errorf("another version: %v", err)
	}
	r.version = info.Main.Version
	if err := r.suits(path, platform{"plan9", "386"}); err == nil ||
		!strings.Contains(err.Error(), "it was built with ") {
		t.Errorf("another platform: %v", err)
	}
	if err := r.suits("../../go.work", here); err == nil {
		t.Error("a file that is no program is taken")
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
