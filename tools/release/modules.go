package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// library is the path of the module at the root.
const library = "github.com/hushsum/hushsum"

// ours reports whether a module is one of the project's.
func ours(module string) bool {
	return module == library || strings.HasPrefix(module, library+"/")
}

// releasedModule is a module of a release.
type releasedModule struct {
	folder   string   // of the clone, with slashes; "" is the root
	requires []string // paths of the project's modules
}

func (m *releasedModule) path() string              { return path.Join(library, m.folder) }
func (m *releasedModule) tag(version string) string { return path.Join(m.folder, version) }

// findModules returns the modules that go.work joins, each after those that it requires. The
// clone's other modules are for its developers.
func findModules(source string) (list []*releasedModule, err error) {
	text, err := os.ReadFile(filepath.Join(source, "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return nil, err
	}
	var left []*releasedModule
	for _, use := range work.Use {
		m := &releasedModule{folder: strings.Trim(path.Clean(use.Path), "./")}
		name := filepath.Join(source, filepath.FromSlash(m.folder), "go.mod")
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(name, text, nil)
		if err != nil {
			return nil, err
		}
		if file.Module == nil || file.Module.Mod.Path != m.path() {
			return nil, fmt.Errorf("%s is not of %s: a tag would not find it", name, m.path())
		}
		for _, r := range file.Require {
			if ours(r.Mod.Path) {
				m.requires = append(m.requires, r.Mod.Path)
			}
		}
		left = append(left, m)
	}
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(m *releasedModule) bool {
			return !slices.ContainsFunc(m.requires, func(path string) bool {
				return !slices.ContainsFunc(list, func(o *releasedModule) bool { return o.path() == path })
			})
		})
		if i < 0 {
			return nil, fmt.Errorf("%s requires %v, which go.work does not join, or which require it",
				left[0].path(), left[0].requires)
		}
		list, left = append(list, left[i]), slices.Delete(left, i, i+1)
	}
	return list, nil
}

// modules writes the modules for the proxy from the commit that is to be tagged, and the patch that
// makes it.
func (r *release) modules() (err error) {
	if r.released, err = findModules(r.source); err != nil {
		return err
	}
	began, err := r.git("rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if err := r.number(); err != nil {
		return err
	}
	sums := map[string]string{}
	for _, m := range r.released {
		folder := filepath.Join(r.source, filepath.FromSlash(m.folder))
		goMod := filepath.Join(folder, "go.mod")
		text, err := os.ReadFile(goMod)
		if err != nil {
			return err
		}
		if text, err = withoutReplace(text, r.version); err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
		if err := os.WriteFile(goMod, text, 0o644); err != nil {
			return err
		}
		for _, required := range m.requires {
			if err := appendTo(filepath.Join(folder, "go.sum"), sums[required]); err != nil {
				return err
			}
		}
		if _, err := r.git("-c", "user.name=release", "-c", "user.email=", "commit", "--quiet",
			"--allow-empty", "--all", "--message", "Release "+m.tag(r.version)); err != nil {
			return err
		}
		served := r.served(m)
		if err := os.MkdirAll(served, 0o755); err != nil {
			return err
		}
		if err := r.serve(m, folder, served); err != nil {
			return err
		}
		if sums[m.path()], err = r.sumsOf(m); err != nil {
			return err
		}
		fmt.Println(m.path(), r.version)
	}
	patch, err := r.git("diff", strings.TrimSpace(began), "HEAD")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "release.patch"), []byte(patch), 0o644)
}

// git runs git in the clone of this release.
func (r *release) git(args ...string) (string, error) {
	return command(r.source, nil, "git", args...)
}

// served returns the folder of the proxy that holds a module's versions.
func (r *release) served(m *releasedModule) string {
	return filepath.Join(r.out, "proxy", filepath.FromSlash(m.path()), "@v")
}

// withoutReplace requires the project's modules by version instead of by folder.
func withoutReplace(text []byte, version string) ([]byte, error) {
	file, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Clone(file.Replace) {
		if !ours(r.Old.Path) {
			return nil, fmt.Errorf("it replaces %s, which those who require it do not", r.Old.Path)
		}
		if err := file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, err
		}
	}
	for _, r := range file.Require {
		if ours(r.Mod.Path) {
			if err := file.AddRequire(r.Mod.Path, version); err != nil {
				return nil, err
			}
		}
	}
	file.Cleanup()
	return file.Format()
}

// serve writes a module as proxies serve it (go.dev/ref/mod, "GOPROXY protocol"), with the files of
// it that git has.
func (r *release) serve(m *releasedModule, folder, served string) error {
	base := filepath.Join(served, r.version)
	archive, err := os.Create(base + ".zip")
	if err != nil {
		return err
	}
	defer archive.Close()
	version := module.Version{Path: m.path(), Version: r.version}
	if err := zip.CreateFromVCS(archive, version, r.source, "HEAD", m.folder); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	goMod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{r.version, r.time})
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{base + ".mod", goMod}, {base + ".info", info},
		{filepath.Join(served, "list"), []byte(r.version + "\n")}} {
		if err := os.WriteFile(file.name, file.content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// sumsOf returns the lines of go.sum of a module that the proxy has.
func (r *release) sumsOf(m *releasedModule) (string, error) {
	base := filepath.Join(r.served(m), r.version)
	whole, err := dirhash.HashZip(base+".zip", dirhash.Hash1)
	if err != nil {
		return "", err
	}
	goMod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return os.Open(base + ".mod")
	})
	return fmt.Sprintf("%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", m.path(), r.version, whole, goMod), err
}

// tags puts the release's tags on the last commit of its clone and has go take the modules from
// them, as it does without a proxy: they have to equal those of the proxy.
func (r *release) tags(work string) error {
	for _, m := range r.released {
		if _, err := r.git("tag", m.tag(r.version)); err != nil {
			return err
		}
	}
	env := []string{
		"GOPROXY=direct", "GOFLAGS=", "GOWORK=off", "GOPRIVATE=" + library + "," + library + "/*",
		"GOMODCACHE=" + filepath.Join(work, "tagged"), "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.file://" + filepath.ToSlash(r.source) + ".insteadOf",
		"GIT_CONFIG_VALUE_0=https://" + library,
	}
	for _, m := range r.released {
		told, err := command(work, env, "go", "mod", "download", "-json", m.path()+"@"+r.version)
		if err != nil {
			return err
		}
		var found struct{ Sum, GoModSum string }
		if err := json.Unmarshal([]byte(told), &found); err != nil {
			return err
		}
		want, err := r.sumsOf(m)
		if err != nil {
			return err
		}
		got := fmt.Sprintf("%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", m.path(), r.version, found.Sum,
			found.GoModSum)
		if got != want {
			return fmt.Errorf("the tag %s gives\n%snot what the proxy has:\n%s", m.tag(r.version), got,
				want)
		}
		fmt.Println(m.tag(r.version), found.Sum)
	}
	return nil
}

func appendTo(name, text string) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		return err
	}
	return file.Close()
}
