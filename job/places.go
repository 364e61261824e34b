package job

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/pelletier/go-toml/v2/unstable"
)

// This file finds where things stand. Of TOML it uses a parser that its library calls unstable:
// values come from the stable one, so that at worst a message lacks its line.

// maxDepth is how deep JSON may be nested.
const maxDepth = 16

// join appends a name to a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// locate notes the places of a TOML text that is known to be valid.
func (s *source) locate(text []byte, lines lineIndex) {
	tables := map[string]int{} // how many tables a list has so far
	var p unstable.Parser
	p.Reset(text)
	prefix := ""
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind == unstable.KeyValue {
			s.keyValue(e, prefix, tables, lines)
			continue
		}
		prefix = ""
		for keys := e.Key(); keys.Next(); {
			node := keys.Node()
			prefix = join(prefix, string(node.Data))
			s.note(prefix, lines.at(int(node.Raw.Offset)))
			switch n := tables[prefix]; {
			case e.Kind == unstable.ArrayTable && keys.IsLast():
				tables[prefix]++
				prefix = join(prefix, strconv.Itoa(n))
				s.note(prefix, lines.at(int(node.Raw.Offset)))
			case n > 0:
				prefix = join(prefix, strconv.Itoa(n-1))
			}
		}
	}
}

// note keeps the first place of a path.
func (s *source) note(path string, p place) {
	if _, ok := s.places[path]; !ok {
		s.places[path] = p
	}
}

// keyValue notes a key, and those within its value.
func (s *source) keyValue(e *unstable.Node, path string, tables map[string]int, lines lineIndex) {
	at := place{}
	for keys := e.Key(); keys.Next(); {
		node := keys.Node()
		path = join(path, string(node.Data))
		at = lines.at(int(node.Raw.Offset))
		s.note(path, at)
	}
	s.value(e.Value(), path, at, tables, lines)
}

func (s *source) value(
	v *unstable.Node, path string, at place, tables map[string]int, lines lineIndex,
) {
	switch v.Kind {
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			s.keyValue(it.Node(), path, tables, lines)
		}
	case unstable.Array:
		i := 0
		for it := v.Children(); it.Next(); i++ {
			if node := it.Node(); node.Kind == unstable.Comment {
				i--
			} else {
				element := join(path, strconv.Itoa(i))
				s.note(element, at)
				s.value(node, element, at, tables, lines)
			}
		}
	}
}

// jsonReader reads JSON into maps and lists, and notes places. A key twice is refused.
type jsonReader struct {
	*json.Decoder
	lines  lineIndex
	source *source
}

func (d *jsonReader) fail(path, advice, format string, a ...any) error {
	at := d.lines.at(int(d.InputOffset()))
	return &ConfigError{File: d.source.name, Line: at.line, Column: at.column, Path: path,
		Reason: fmt.Sprintf(format, a...), Advice: advice}
}

// document reads an object, and nothing after it.
func (d *jsonReader) document() (map[string]any, error) {
	v, err := d.value("", 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, d.fail("", "end the file there", "there is something after the job")
	}
	return v.(map[string]any), nil // the text begins with a brace
}

func (d *jsonReader) value(path string, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, d.fail(path, "write it as JSON", "%v", err)
	}
	if depth > maxDepth {
		return nil, d.fail(path, "use fewer", "it is nested more than %d deep", maxDepth)
	}
	switch t := token.(type) {
	case json.Number:
		if n, err := t.Int64(); err == nil {
			return n, nil
		}
		x, err := t.Float64()
		if err != nil {
			return nil, d.fail(path, "use a smaller number", "%v", err)
		}
		return x, nil
	case json.Delim:
		if t == '{' {
			return d.object(path, depth)
		}
		list := []any{}
		for d.More() {
			element := join(path, strconv.Itoa(len(list)))
			d.source.note(element, d.lines.at(int(d.InputOffset())))
			v, err := d.value(element, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		if err != nil {
			return nil, d.fail(path, "write it as JSON", "%v", err)
		}
		return list, nil
	}
	return token, nil
}

func (d *jsonReader) object(path string, depth int) (map[string]any, error) {
	out := map[string]any{}
	for d.More() {
		token, err := d.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			return nil, d.fail(path, "write it as JSON", "%v", err)
		}
		name := join(path, key)
		if _, twice := out[key]; twice {
			return nil, d.fail(name, "leave one out", "it is given twice")
		}
		d.source.note(name, d.lines.at(int(d.InputOffset())))
		if out[key], err = d.value(name, depth+1); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, d.fail(path, "write it as JSON", "%v", err)
	}
	return out, nil
}
