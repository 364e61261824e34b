package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/internal/strict"
)

// This file reads JSON, and finds where things stand.

// join appends a name to a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// find fills in where the paths of mistakes stand, or what each is a part of: in one pass, of which
// it keeps nothing but what is looked for.
func (s *source) find(all ...*ConfigError) {
	if s == nil || len(all) == 0 {
		return
	}
	var places strict.Places
	for _, e := range all {
		e.File = s.name
		places.Add(e.Path)
	}
	if s.json && len(s.text) > 0 {
		_, _ = s.readJSON(&places)
	} else {
		places.TOML(s.text)
	}
	for _, e := range all {
		if line, column := places.Of(e.Path); line > 0 {
			e.Line, e.Column = line, column
		}
	}
}

// jsonReader reads JSON into maps and lists. A key twice is refused.
type jsonReader struct {
	*json.Decoder
	lines  strict.Lines
	source *source
	path   []string // of what is read
}

// readJSON reads a text that is an object, and nothing after it, and notes places.
func (s *source) readJSON(places *strict.Places) (map[string]any, error) {
	d := &jsonReader{Decoder: json.NewDecoder(bytes.NewReader(s.text)), lines: strict.LinesOf(s.text),
		source: s}
	d.UseNumber()
	v, err := d.value(places)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, d.fail("end the file there", "there is something after the job")
	}
	return v.(map[string]any), nil // the text begins with a brace
}

func (d *jsonReader) at() (line, column int) { return d.lines.At(int(d.InputOffset())) }

func (d *jsonReader) fail(advice, format string, a ...any) error {
	line, column := d.at()
	return &ConfigError{File: d.source.name, Line: line, Column: column,
		Path: strings.Join(d.path, "."), Reason: fmt.Sprintf(format, a...), Advice: advice}
}

// within reads a value by its name in what is being read.
func (d *jsonReader) within(name string, places *strict.Places) (any, error) {
	d.path = append(d.path, name)
	v, err := d.value(places)
	d.path = d.path[:len(d.path)-1]
	return v, err
}

func (d *jsonReader) value(places *strict.Places) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, d.fail("write it as JSON", "%v", err)
	}
	switch t := token.(type) {
	case json.Number:
		if n, err := t.Int64(); err == nil {
			return n, nil
		}
		x, err := t.Float64()
		if err != nil {
			return nil, d.fail("use a smaller number", "%v", err)
		}
		return x, nil
	case json.Delim:
		if t == '{' {
			return d.object(places)
		}
		list := []any{}
		for d.More() {
			name := strconv.Itoa(len(list))
			element := places.Step(name)
			element.Note(d.at())
			v, err := d.within(name, element)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		if err != nil {
			return nil, d.fail("write it as JSON", "%v", err)
		}
		return list, nil
	}
	return token, nil
}

func (d *jsonReader) object(places *strict.Places) (map[string]any, error) {
	out := map[string]any{}
	for d.More() {
		token, err := d.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			return nil, d.fail("write it as JSON", "%v", err)
		}
		if _, twice := out[key]; twice {
			d.path = append(d.path, key)
			return nil, d.fail("leave one out", "it is given twice")
		}
		member := places.Step(key)
		member.Note(d.at())
		if out[key], err = d.within(key, member); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, d.fail("write it as JSON", "%v", err)
	}
	return out, nil
}
