// Package results keeps the results of runs in folders that hold a whole run's files or none of
// them.
package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/internal/strict"
)

// FolderProblem says what to do about a folder that cannot be written to.
func FolderProblem(err error) error {
	return &cli.Problem{
		Cause:  fmt.Sprintf("--out: %v", err),
		Advice: "Give a folder that can be written to.",
		Err:    err,
	}
}

// MakeFolder makes the folder of --out, and checks that it can be written to, before work whose
// outcome would be lost.
func MakeFolder(dir string) error {
	stage, err := makeStage(dir)
	if err != nil {
		return FolderProblem(err)
	}
	if err := os.Remove(stage); err != nil {
		return FolderProblem(err)
	}
	return nil
}

// makeStage makes a folder, and an empty one within it.
func makeStage(dir string) (stage string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, ".hushsum-*")
}

// incomplete is the folder, within that of --out, for the results of an ended run.
const incomplete = "incomplete"

// Manifest lists the files of a run. It is written last, as JSON.
type Manifest struct {
	Command  string   `json:"command"`
	Complete bool     `json:"complete"` // whether everything asked for was done
	Ended    string   `json:"ended,omitempty"`
	Files    []string `json:"files"`
}

// Publish writes the files of a run to a folder, all or none: write makes them in a folder of their
// own, from which they are moved. Files of the last run, as listed by its manifest under the same
// name, are removed. Incomplete results go into the folder incomplete, next to earlier complete
// ones.
func Publish(
	dir, name string, m Manifest, write func(stage string) error,
) (paths []string, err error) {
	target := dir
	if !m.Complete {
		target = filepath.Join(dir, incomplete)
	}
	stage, err := makeStage(target)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	if err := write(stage); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(stage)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		m.Files = append(m.Files, e.Name())
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	list := name + ".json"
	if err := os.WriteFile(filepath.Join(stage, list), append(text, '\n'), 0o666); err != nil {
		return nil, err
	}
	last := readManifest(target, list)
	for _, file := range append(m.Files, list) {
		path := filepath.Join(target, file)
		if err := os.Rename(filepath.Join(stage, file), path); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	removeListed(target, last, m.Files)
	if m.Complete {
		removeIncomplete(filepath.Join(dir, incomplete), list)
	}
	return paths, nil
}

// readManifest returns the files that a manifest lists; none if there is no readable one. It
// accepts plain names only, of the kinds that runs write.
func readManifest(dir, list string) []string {
	text, err := os.ReadFile(filepath.Join(dir, list))
	if err != nil {
		return nil
	}
	var m Manifest
	if err := strict.JSON(text, &m); err != nil {
		return nil
	}
	return slices.DeleteFunc(m.Files, func(file string) bool {
		return filepath.Base(file) != file || !slices.Contains([]string{".csv", ".html", ".md", ".svg"},
			filepath.Ext(file))
	})
}

// removeListed removes the listed files except those to keep. One that cannot be removed stays.
func removeListed(dir string, files, keep []string) {
	for _, file := range files {
		if !slices.Contains(keep, file) {
			_ = os.Remove(filepath.Join(dir, file))
		}
	}
}

// removeIncomplete removes the files of a run that a complete one has superseded, and their folder
// if it is then empty.
func removeIncomplete(dir, list string) {
	removeListed(dir, readManifest(dir, list), nil)
	_ = os.Remove(filepath.Join(dir, list))
	_ = os.Remove(dir)
}
