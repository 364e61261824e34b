package job

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"github.com/hushsum/hushsum/internal/strict"
)

// MaxFile is the most bytes of a file.
const MaxFile = 1 << 20

// source says what a job was read from.
type source struct {
	name string
	json bool
	text []byte // for places; empty: its one line tells nobody where anything stands
}

// Load reads a job from a file. Files that the job names are in the same folder.
func Load(path string) (*Job, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Parse reads a job: JSON after a brace, else TOML. name is the file's name, for messages; each
// element of set is PATH=VALUE, as [Job.Set] takes them, and overrides the text. Parse fails with
// the mistakes in the text, joined, each a [ConfigError]: [Errors] lists them, at most 100, and
// then says how many more there are. A text that is too long, too deep, or has too many keys or
// values for a job is refused before it is decoded, with one mistake at the place of the excess.
func Parse(name string, text []byte, set ...string) (*Job, error) {
	s := &source{name: name}
	tree, err := s.read(text)
	if err != nil {
		return nil, err
	}
	j := &Job{read: s}
	r := new(reader)
	r.table(j, &theJob, "", "", tree)
	s.find(r.wrong...)
	for _, one := range set {
		path, value, found := strings.Cut(one, "=")
		if !found {
			r.wrong = append(r.wrong, &ConfigError{Path: path, Reason: "it has no value",
				Advice: "write PATH=VALUE, as in parties.count=10"})
			continue
		}
		r.wrong = slices.DeleteFunc(r.wrong, func(e *ConfigError) bool { return e.Path == path })
		r.wrong = append(r.wrong, Errors(j.Set(path, value))...)
	}
	if len(r.wrong) == 0 {
		r = j.mistakes()
	}
	for _, e := range r.wrong {
		e.Named = j.named(e.Path)
	}
	if len(r.wrong) > 0 {
		return nil, r.join()
	}
	return j, nil
}

// read makes a tree of a text, of maps, lists and values, and keeps the text for places.
func (s *source) read(text []byte) (map[string]any, error) {
	fail := func(line, column int, reason, advice string, err error) (map[string]any, error) {
		return nil, &ConfigError{File: s.name, Line: line, Column: column, Reason: reason,
			Advice: advice, Err: err}
	}
	if len(text) > MaxFile {
		return fail(0, 0, "the file is longer than a megabyte", "use groups for parties that are alike",
			nil)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // as some editors begin files
	if !utf8.Valid(text) {
		return fail(0, 0, "the file is not UTF-8", "save it as UTF-8", nil)
	}
	if e := strict.Bounded(text); e != nil {
		return fail(e.Line, e.Column, e.Reason, e.Advice, nil)
	}
	s.text = bytes.Clone(text)
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		s.json = true
		tree, err := s.readJSON(nil)
		if !bytes.ContainsRune(bytes.TrimSpace(text), '\n') {
			s.text = nil // as programs write it
		}
		return tree, err
	}
	var tree map[string]any
	var decode *toml.DecodeError
	switch err := toml.Unmarshal(text, &tree); {
	case errors.As(err, &decode):
		line, column := decode.Position()
		return fail(line, column, strings.TrimPrefix(decode.Error(), "toml: "),
			"write it as TOML: name = value, text between quotes", err)
	case err != nil:
		return fail(0, 0, err.Error(), "write it as TOML: name = value, text between quotes", err)
	}
	return tree, nil
}
