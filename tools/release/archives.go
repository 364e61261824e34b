package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// entry is a file of an archive.
type entry struct {
	name    string // with slashes; one at the end: a folder
	content []byte
	mode    int64
	owner   int
}

// archives writes the programs and the chart.
func (r *release) archives() error {
	if err := os.MkdirAll(filepath.Join(r.out, "dist"), 0o755); err != nil {
		return err
	}
	for _, p := range r.platforms {
		name := fmt.Sprintf("hushsum-%s-%s-%s", r.version, p.os, p.arch)
		var entries []entry
		for _, program := range programs {
			content, err := os.ReadFile(filepath.Join(r.built(p), p.program(program.name)))
			if err != nil {
				return err
			}
			entries = append(entries, entry{
				name: path.Join(name, p.program(program.name)), content: content, mode: 0o755})
		}
		for _, page := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
			content, err := os.ReadFile(filepath.Join(r.source, page))
			if err != nil {
				return err
			}
			entries = append(entries, entry{name: path.Join(name, page), content: content, mode: 0o644})
		}
		write, ending := r.tarred, ".tar.gz"
		if p.os == "windows" {
			write, ending = r.zipped, ".zip"
		}
		if err := r.write(name+ending, entries, write); err != nil {
			return err
		}
	}
	chart, err := r.chart()
	if err != nil {
		return err
	}
	name := "hushsum-chart-" + strings.TrimPrefix(r.version, "v") + ".tgz"
	return r.write(name, chart, r.tarred)
}

func (r *release) write(name string, entries []entry, to func(io.Writer, []entry) error) error {
	var b bytes.Buffer
	if err := to(&b, entries); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "dist", name), b.Bytes(), 0o644)
}

// packed writes an archive whose bytes depend on the entries and the commit's time alone.
func (r *release) packed(w io.Writer, entries []entry) error {
	archive := tar.NewWriter(w)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content)), Uid: e.owner,
			Gid: e.owner, ModTime: r.time, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(e.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// tarred writes the archive of packed, compressed.
func (r *release) tarred(w io.Writer, entries []entry) error {
	compressed := gzip.NewWriter(w)
	return errors.Join(r.packed(compressed, entries), compressed.Close())
}

// zipped is tarred for people who have zip.
func (r *release) zipped(w io.Writer, entries []entry) error {
	archive := zip.NewWriter(w)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: r.time}
		h.SetMode(fs.FileMode(e.mode))
		to, err := archive.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := to.Write(e.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// chart returns the chart's files.
func (r *release) chart() (entries []entry, err error) {
	folder := filepath.Join(r.source, "deploy", "chart")
	err = filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		entries = append(entries, entry{
			name: path.Join("hushsum", filepath.ToSlash(relative)), content: content, mode: 0o644})
		return err
	})
	return entries, err
}

// sums writes the digests of the files in dist.
func (r *release) sums() error {
	files, err := os.ReadDir(filepath.Join(r.out, "dist"))
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(r.out, "dist", f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(content), f.Name())
	}
	fmt.Print(lines.String())
	return os.WriteFile(filepath.Join(r.out, "dist", "SHA256SUMS"), []byte(lines.String()), 0o644)
}
