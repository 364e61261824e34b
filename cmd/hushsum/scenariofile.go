package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/internal/suggest"
	"github.com/hushsum/hushsum/simulation/scenario"
)

// maxScenario is the most bytes of a scenario's file.
const maxScenario = 1 << 20

// fileError is what is wrong with a scenario's file, on one line.
type fileError struct {
	file   string // its base name as it was given
	line   int
	reason string
	remedy string
	err    error
}

func (e *fileError) Error() string {
	text := fmt.Sprintf("%s:%d: %s", e.file, e.line, e.reason)
	if e.remedy != "" {
		text += "; " + e.remedy
	}
	return text
}

func (e *fileError) Unwrap() error { return e.err }

// scenarioFile is a scenario and where in its file everything is.
type scenarioFile struct {
	scenario.Scenario
	name  string
	lines map[string]int
}

// readScenario reads a file. What is wrong with it is a fileError.
func readScenario(path string) (*scenarioFile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, &problem{cause: fmt.Sprintf("--scenario: %v", err),
			advice: "Give the file of a scenario, such as one of simulation/scenarios.", err: err}
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxScenario+1))
	if err != nil {
		return nil, &problem{cause: fmt.Sprintf("--scenario: %v", err),
			advice: "Give the file of a scenario, such as one of simulation/scenarios.", err: err}
	}
	return parseScenario(path, text)
}

// parseScenario reads the text of a scenario, strictly: what it does not know is an
// error.
func parseScenario(name string, text []byte) (*scenarioFile, error) {
	f := &scenarioFile{name: name}
	if len(text) > maxScenario {
		return nil, &fileError{file: name, line: 1, reason: "the file is longer than a megabyte",
			remedy: "use count for parties that are alike"}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // as some editors begin files
	decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := decoder.Decode(&f.Scenario); err != nil {
		return nil, f.syntax(err)
	}
	f.lines = linesOf(text)
	if err := f.exactNames(text); err != nil {
		return nil, err
	}
	if err := f.Validate(); err != nil {
		return nil, f.locate(err)
	}
	return f, nil
}

// exactNames refuses keys that the decoder takes for others, since they differ in case only:
// with one of each a file would say two things.
func (f *scenarioFile) exactNames(text []byte) error {
	var tree map[string]any
	if err := toml.Unmarshal(text, &tree); err != nil {
		return f.syntax(err)
	}
	var name *strict.Error
	if err := strict.Names(tree, &f.Scenario, "toml"); errors.As(err, &name) {
		return &fileError{file: f.name, line: max(1, f.lines[name.Key]), err: err,
			reason: "there is no key " + name.Key, remedy: "did you mean " + name.Meant + "?"}
	}
	return nil
}

// syntax says where the text is no scenario.
func (f *scenarioFile) syntax(err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		first := &unknown.Errors[0]
		line, _ := first.Position()
		key := first.Key()
		known := keysAt(key[:len(key)-1])
		last := key[len(key)-1]
		remedy := "use one of " + strings.Join(known, ", ")
		if meant := suggest.Nearest(last, known); meant != "" {
			remedy = "did you mean " + meant + "?"
		}
		return &fileError{file: f.name, line: line, err: err, remedy: remedy,
			reason: fmt.Sprintf("there is no key %s", strings.Join(key, "."))}
	}
	var e *toml.DecodeError
	if errors.As(err, &e) {
		line, _ := e.Position()
		reason := strings.TrimPrefix(e.Error(), "toml: ")
		remedy := "write it as the example scenarios do"
		if key := e.Key(); strings.HasPrefix(reason, "cannot decode") && len(key) > 0 {
			reason = strings.Join(key, ".") + ": it is of another kind"
			remedy = wanted(typeAt(key))
		}
		return &fileError{file: f.name, line: max(1, line), reason: reason, remedy: remedy, err: err}
	}
	return &fileError{file: f.name, line: 1, reason: strings.TrimPrefix(err.Error(), "toml: "),
		remedy: "write it as the example scenarios do", err: err}
}

// locate says on which line the field is that an error names.
func (f *scenarioFile) locate(err error) error {
	var e *scenario.FieldError
	if !errors.As(err, &e) {
		return err
	}
	line, path := 1, e.Path
	for path != "" {
		if at, ok := f.lines[path]; ok {
			line = at
			break
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return &fileError{file: f.name, line: line, reason: e.Path + ": " + e.Reason, remedy: e.Advice,
		err: err}
}

// typeAt is the type of what a path of keys leads to, of one element if it is a list; nil
// if it leads nowhere.
func typeAt(path []string) reflect.Type {
	t := reflect.TypeFor[scenario.Scenario]()
	for _, name := range path {
		field, found := reflect.StructField{}, false
		if t.Kind() == reflect.Struct {
			field, found = fieldOf(t, name)
		}
		if !found {
			return nil
		}
		t = field.Type
		for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	return t
}

// fieldOf finds the field of a table that has a name in files.
func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("toml") == name {
			return t.Field(i), true
		}
	}
	return reflect.StructField{}, false
}

// keysAt are the keys that a table has.
func keysAt(table []string) (keys []string) {
	t := typeAt(table)
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		keys = append(keys, t.Field(i).Tag.Get("toml"))
	}
	return keys
}

// wanted says what to write for a value of a type.
func wanted(t reflect.Type) string {
	switch {
	case t == nil:
	case t == reflect.TypeFor[scenario.Duration]():
		return `write a time, as in "300ms"`
	case t.Kind() == reflect.Int, t.Kind() == reflect.Uint64:
		return "write a whole number, as in 20"
	case t.Kind() == reflect.Float64:
		return "write a number, as in 0.5"
	case t.Kind() == reflect.String:
		return `write text between quotes, and a list of texts as in ["Oslo", "server"]`
	case t.Kind() == reflect.Bool:
		return "write true or false"
	}
	return "write it as the example scenarios do"
}

// linesOf says on which line each table and key of a text is: party.0.place is that of
// the first party.
func linesOf(text []byte) map[string]int {
	lines, tables := map[string]int{}, map[string]int{}
	var p unstable.Parser
	p.Reset(text)
	prefix := ""
	for p.NextExpression() {
		e := p.Expression()
		var names []string
		line := 1
		for it := e.Key(); it.Next(); {
			node := it.Node()
			if len(names) == 0 {
				line = p.Shape(node.Raw).Start.Line
			}
			names = append(names, string(node.Data))
		}
		// The last table of each list that the path goes through.
		path := ""
		if e.Kind == unstable.KeyValue {
			path = prefix
		}
		for k, name := range names {
			path = strings.TrimPrefix(path+"."+name, ".")
			last := k == len(names)-1
			if e.Kind == unstable.ArrayTable && last {
				path += "." + strconv.Itoa(tables[path])
				tables[path[:strings.LastIndexByte(path, '.')]]++
			} else if n := tables[path]; n > 0 && e.Kind != unstable.KeyValue {
				path += "." + strconv.Itoa(n-1)
			}
		}
		if _, ok := lines[path]; !ok {
			lines[path] = line
		}
		if e.Kind != unstable.KeyValue {
			prefix = path
		}
	}
	return lines
}

// base is the name of a scenario's file without folder and extension.
func (f *scenarioFile) base() string {
	return strings.TrimSuffix(filepath.Base(f.name), filepath.Ext(f.name))
}
