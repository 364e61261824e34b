package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

// MaxFile is the most bytes of a file.
const MaxFile = 1 << 20

// place is where something stands in a file, from 1.
type place struct{ line, column int }

// source says what a job was read from.
type source struct {
	name   string
	places map[string]place // by path, elements of lists by number: world.party.2.rows
}

// at finds where a path stands, or what it is a part of.
func (s *source) at(path string) (place, bool) {
	for path != "" {
		if p, ok := s.places[path]; ok {
			return p, true
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return place{}, false
}

// Load reads a job from a file. The files that it names stand next to it.
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

// Parse reads a job: JSON after a brace, else TOML. name is its file's, for messages; set has
// values as PATH=VALUE, as [Job.Set] takes them, in place of what the text says. It fails with all
// mistakes that there are, joined, each a [ConfigError]: [Errors] lists them.
func Parse(name string, text []byte, set ...string) (*Job, error) {
	s := &source{name: name, places: map[string]place{}}
	tree, err := s.read(text)
	if err != nil {
		return nil, err
	}
	j := &Job{read: s}
	r := &reader{source: s}
	r.table(j, &theJob, "", "", tree)
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
		r.wrong = j.mistakes()
	}
	for _, e := range r.wrong {
		e.Named = j.named(e.Path)
	}
	if len(r.wrong) > 0 {
		return nil, r.join()
	}
	return j, nil
}

// read makes a tree of a text, of maps, lists and values, and notes where all of it stands.
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
	lines := indexOf(text)
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		d := &jsonReader{Decoder: json.NewDecoder(bytes.NewReader(text)), lines: lines, source: s}
		d.UseNumber()
		tree, err := d.document()
		if !bytes.ContainsRune(bytes.TrimSpace(text), '\n') {
			clear(s.places) // as programs write it: its one line tells nobody where anything stands
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
	s.locate(text, lines)
	return tree, nil
}

// lineIndex holds the offsets at which lines begin: counting them anew for each key would take
// time in proportion to the square of a file's length.
type lineIndex []int

func indexOf(text []byte) lineIndex {
	starts := lineIndex{0}
	for i, c := range text {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

func (l lineIndex) at(offset int) place {
	line, found := slices.BinarySearch(l, offset)
	if !found {
		line--
	}
	return place{line + 1, offset - l[line] + 1}
}
