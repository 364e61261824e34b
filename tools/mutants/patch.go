package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A patch is a fault that is made on purpose.
type patch struct {
	number string // of the list in its words, with a letter where it has several forms
	words  string
	oracle string   // F1 to F6, H or unit
	test   []string // arguments of go test
	python []string // arguments of pytest, in the folder of Python's tests, in place of test
	edits  []edit
}

// edit replaces lines of a file, in which they stand exactly once.
type edit struct {
	file     string // from the root of the clone
	old, new string
}

// patches reads a folder of patches, in the order of their names.
func patches(folder string) (all []*patch, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		p, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no patches", folder)
	}
	return all, nil
}

// parse reads a patch: lines "number:", "words:", "oracle:" and "test:" or "python:", then for each
// edit a line "@ FILE", the old lines after "- " each, and the new ones after "+ ".
func parse(text string) (*patch, error) {
	p := new(patch)
	var last *edit
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "number:":
			p.number = value
		case "words:":
			p.words = value
		case "oracle:":
			p.oracle = value
		case "test:":
			p.test = strings.Fields(value)
		case "python:":
			p.python = strings.Fields(value)
		case "@":
			p.edits = append(p.edits, edit{file: value})
			last = &p.edits[len(p.edits)-1]
		case "-", "+":
			if last == nil {
				return nil, errors.New("a line stands in no file")
			}
			if key == "-" {
				last.old += value + "\n"
			} else {
				last.new += value + "\n"
			}
		case "":
		default:
			return nil, fmt.Errorf("a line that begins with %q", key)
		}
	}
	switch {
	case p.number == "" || p.words == "" || p.oracle == "":
		return nil, errors.New("it lacks a number, words or an oracle")
	case len(p.test)+len(p.python) == 0 || len(p.edits) == 0:
		return nil, errors.New("it lacks a test or an edit")
	}
	return p, nil
}

// apply returns the files that a patch changes, with their new content.
func (p *patch) apply(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, e := range p.edits {
		text, found := files[e.file]
		if !found {
			var err error
			if text, err = os.ReadFile(filepath.Join(root, filepath.FromSlash(e.file))); err != nil {
				return nil, err
			}
		}
		if e.old == "" || e.old == e.new {
			return nil, fmt.Errorf("an edit of %s changes nothing", e.file)
		}
		if n := bytes.Count(text, []byte(e.old)); n != 1 {
			return nil, fmt.Errorf("%s has these lines %d times, and once is right:\n%s", e.file, n, e.old)
		}
		files[e.file] = bytes.Replace(text, []byte(e.old), []byte(e.new), 1)
	}
	return files, nil
}

var (
	failed = regexp.MustCompile(`(?m)^(?:--- FAIL: |FAILED \S+::)(\w+)`)
	// A panic of the code under test ends the tests, and is as good a find.
	panicked = regexp.MustCompile(`(?m)^panic: .*\n`)
	broken   = regexp.MustCompile(`(?m)^FAIL\s.*\[(build|setup) failed\]|^#.*\n|no tests to run`)
)

// try runs the tests of a patch with its fault. It returns which of them found it, empty if none
// did, and the processor seconds that it took.
func (p *patch) try(root string) (by string, took float64, err error) {
	files, err := p.apply(root)
	if err != nil {
		return "", 0, err
	}
	folder, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", 0, err
	}
	defer os.RemoveAll(folder)
	c, err := p.command(root, folder, files)
	if err != nil {
		return "", 0, err
	}
	said, err := c.CombinedOutput()
	if state := c.ProcessState; state != nil {
		took = (state.UserTime() + state.SystemTime()).Seconds()
	}
	names := failed.FindAllStringSubmatch(string(said), -1)
	var ended *exec.ExitError
	switch {
	case err == nil && broken.Match(said):
		return "", took, errors.New("its tests are not there")
	case err == nil:
		return "", took, nil
	case !errors.As(err, &ended):
		return "", took, err
	case len(names) > 0:
		var all []string
		for _, n := range names {
			all = append(all, n[1])
		}
		return strings.Join(all, ", "), took, nil
	case panicked.Match(said):
		return "a panic", took, nil
	}
	return "", took, fmt.Errorf("it does not compile, or its tests do not begin:\n%s", said)
}

// command returns the tests of a patch over its files, which it writes to a folder.
func (p *patch) command(root, folder string, files map[string][]byte) (*exec.Cmd, error) {
	if p.python != nil {
		if err := os.CopyFS(folder, os.DirFS(filepath.Join(root, "python"))); err != nil {
			return nil, err
		}
		for name, text := range files {
			at, err := filepath.Rel("python", filepath.FromSlash(name))
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, at), text, 0o600)
			}
			if err != nil {
				return nil, err
			}
		}
		c := exec.Command("/usr/bin/python3", append([]string{"-m", "pytest", "-q", "-x", "-p",
			"no:cacheprovider"}, p.python...)...)
		c.Dir = filepath.Join(folder, "tests")
		c.Env = append(os.Environ(), "PYTHONPATH="+folder, "PYTHONDONTWRITEBYTECODE=1")
		return c, nil
	}
	replace := map[string]string{}
	for name, text := range files {
		at := filepath.Join(folder, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(at, text, 0o600); err != nil {
			return nil, err
		}
		replace[filepath.Join(root, filepath.FromSlash(name))] = at
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	list := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return nil, err
	}
	c := exec.Command("go", append([]string{"test", "-vet=off", "-count=1", "-overlay", list},
		p.test...)...)
	c.Dir = root
	c.Env = slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "GOWORK=")
	})
	return c, nil
}
