package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programs lists the programs that people install, by name.
var programs = []struct{ name, path string }{
	{"hushsum", library + "/cmd/hushsum"}, {"hushsumd", library + "/service/cmd/hushsumd"},
	{"hushsum-rows", library + "/tables/cmd/hushsum-rows"}, // which both start
}

// built returns the folder of a platform's programs.
func (r *release) built(p platform) string {
	return filepath.Join(filepath.Dir(r.source), "programs", p.os+"-"+p.arch)
}

// programs builds the programs of all platforms, and then builds them again.
func (r *release) programs(work string) error {
	for _, p := range r.platforms {
		first, err := r.build(filepath.Join(work, "go-first"), p)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(r.built(p), 0o755); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(first)) {
			if err := os.WriteFile(filepath.Join(r.built(p), name), first[name], 0o755); err != nil {
				return err
			}
			if err := r.suits(filepath.Join(r.built(p), name), p); err != nil {
				return fmt.Errorf("%v: %s: %w", p, name, err)
			}
		}
		if r.once {
			fmt.Printf("%v: built\n", p)
			continue
		}
		again, err := r.build(filepath.Join(work, "go-again"), p)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(first)) {
			if !bytes.Equal(first[name], again[name]) {
				return fmt.Errorf("%v: %s comes out differently when it is built again", p, name)
			}
		}
		fmt.Printf("%v: built twice, the same\n", p)
	}
	return r.ask()
}

// suits checks a program that this machine may be unable to run: its version, its platform, and on
// Linux that it needs no other file.
func (r *release) suits(name string, p platform) error {
	info, err := buildinfo.ReadFile(name)
	if err != nil {
		return err
	}
	if info.Main.Version != r.version {
		return fmt.Errorf("it is %s, not %s", info.Main.Version, r.version)
	}
	for _, d := range info.Deps {
		if ours(d.Path) && (d.Version != r.version || d.Replace != nil) {
			return fmt.Errorf("%s %s is in it, not %s", d.Path, d.Version, r.version)
		}
	}
	for _, s := range info.Settings {
		want, known := map[string]string{"GOOS": p.os, "GOARCH": p.arch, "CGO_ENABLED": "0"}[s.Key]
		if known && s.Value != want {
			return fmt.Errorf("it was built with %s=%s", s.Key, s.Value)
		}
	}
	if p.os != "linux" {
		return nil
	}
	file, err := elf.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP || len(libraries) > 0 {
			return fmt.Errorf("it is not static: %v", libraries)
		}
	}
	return nil
}

// build installs the programs from the proxy, with caches in a folder, and returns them by their
// file names.
func (r *release) build(caches string, p platform) (map[string][]byte, error) {
	env, err := r.environment(caches, p)
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(caches, "path", "bin")
	if p != here {
		bin = filepath.Join(bin, p.os+"_"+p.arch)
	}
	found := make(map[string][]byte)
	for _, program := range programs {
		if _, err := command(os.TempDir(), env, "go", "install", "-trimpath", "-ldflags=-s -w",
			program.path+"@"+r.version); err != nil {
			return nil, err
		}
		name := p.program(program.name)
		if found[name], err = os.ReadFile(filepath.Join(bin, name)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// environment has go take this release from the folder, and other modules from the user's cache or
// through the user's GOPROXY.
func (r *release) environment(caches string, p platform) ([]string, error) {
	told, err := command("", nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return nil, err
	}
	cache, proxy, ok := strings.Cut(strings.TrimSpace(told), "\n")
	if !ok {
		return nil, errors.New("go env names no GOMODCACHE and GOPROXY")
	}
	return []string{
		"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOFLAGS=", "GOWORK=off", "GOBIN=",
		"GOPATH=" + filepath.Join(caches, "path"), "GOCACHE=" + filepath.Join(caches, "built"),
		"GOMODCACHE=" + filepath.Join(caches, "modules"), "GONOSUMDB=" + library + "," + library + "/*",
		"GOPROXY=file://" + filepath.ToSlash(filepath.Join(r.out, "proxy")) +
			",file://" + filepath.ToSlash(filepath.Join(cache, "cache", "download")) + "," + proxy,
	}, nil
}

// ask asks this platform's programs which version they are.
func (r *release) ask() error {
	for _, p := range r.platforms {
		if p != here {
			continue
		}
		for _, program := range programs {
			told, err := command("", nil, filepath.Join(r.built(p), p.program(program.name)), "version")
			if err != nil {
				return err
			}
			fmt.Print(told)
			if !strings.Contains(told, r.version) {
				return fmt.Errorf("%s does not say that it is %s", program.name, r.version)
			}
		}
	}
	return nil
}
