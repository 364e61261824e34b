package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// library is the path of the module at the root.
const library = "github.com/hushsum/hushsum"

// published are the modules of a release: the library first, since the others require it.
var published = []publishedModule{{""}, {"cmd/hushsum"}, {"service"}}

// publishedModule is one, by its folder.
type publishedModule struct{ folder string }

func (m publishedModule) path() string              { return path.Join(library, m.folder) }
func (m publishedModule) tag(version string) string { return path.Join(m.folder, version) }

// modules writes the modules for the proxy, and the patch.
func (r *release) modules() error {
	sums := ""
	for _, m := range published {
		folder := filepath.Join(r.source, filepath.FromSlash(m.folder))
		goMod := filepath.Join(folder, "go.mod")
		if m.folder != "" {
			text, err := os.ReadFile(goMod)
			if err != nil {
				return err
			}
			if text, err = withoutReplace(text, r.version); err != nil {
				return err
			}
			if err := os.WriteFile(goMod, text, 0o644); err != nil {
				return err
			}
			if err := appendTo(filepath.Join(folder, "go.sum"), sums); err != nil {
				return err
			}
		}
		served := filepath.Join(r.out, "proxy", filepath.FromSlash(m.path()), "@v")
		if err := os.MkdirAll(served, 0o755); err != nil {
			return err
		}
		if err := r.serve(m, folder, served); err != nil {
			return err
		}
		if m.folder == "" {
			var err error
			if sums, err = r.librarySums(served); err != nil {
				return err
			}
		}
		fmt.Println(m.path(), r.version)
	}
	patch, err := command(r.source, nil, "git", "diff")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "release.patch"), []byte(patch), 0o644)
}

// withoutReplace requires the library's number in place of its folder.
func withoutReplace(text []byte, version string) ([]byte, error) {
	file, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range file.Replace {
		if err := file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, err
		}
	}
	if err := file.AddRequire(library, version); err != nil {
		return nil, err
	}
	file.Cleanup()
	return file.Format()
}

// serve writes a module as proxies serve it (go.dev/ref/mod, "GOPROXY protocol").
func (r *release) serve(m publishedModule, folder, served string) error {
	base := filepath.Join(served, r.version)
	archive, err := os.Create(base + ".zip")
	if err != nil {
		return err
	}
	defer archive.Close()
	version := module.Version{Path: m.path(), Version: r.version}
	if err := zip.CreateFromDir(archive, version, folder); err != nil {
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
	for name, content := range map[string][]byte{base + ".mod": goMod, base + ".info": info,
		filepath.Join(served, "list"): []byte(r.version + "\n")} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// librarySums are the library's lines for go.sum.
func (r *release) librarySums(served string) (string, error) {
	base := filepath.Join(served, r.version)
	whole, err := dirhash.HashZip(base+".zip", dirhash.Hash1)
	if err != nil {
		return "", err
	}
	goMod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return os.Open(base + ".mod")
	})
	return fmt.Sprintf("%s %s %s\n%s %s/go.mod %s\n", library, r.version, whole, library, r.version,
		goMod), err
}

func appendTo(name, text string) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		return err
	}
	return file.Close()
}
