// Package strict reads what comes from outside as it is written, or not at all: package json,
// and decoders of TOML, take a key in another case for a field, and package json takes the last
// of two keys that are alike, so that two readers of one text could have two opinions of it.
package strict

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

// Error says what is wrong with a text.
type Error struct {
	Line   int    // of TOML, from 1; 0: it is not known
	Column int    // in bytes, from 1; 0: it is not known
	Key    string // path of the key that is at fault, such as list.0.rate; empty: it is none
	Meant  string // the field whose name in another case the key is, or empty
	Reason string // a sentence that names the key
	Advice string // what to do, or empty
	Err    error  // nil, or what a type that reads itself has found
}

func (e *Error) Error() string {
	if e.Advice == "" {
		return e.Reason
	}
	return e.Reason + "; " + e.Advice
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

func wrong(key, format string, a ...any) error {
	return &Error{Key: key, Reason: fmt.Sprintf(format, a...)}
}

// JSON reads one JSON value: UTF-8, no key twice in an object, names exactly as declared where a
// struct is read, none unknown, null for lists, maps and pointers alone, as many elements as an
// array of Go has, no nesting beyond 16, nothing behind the end, no more elements than take 16
// times the text. Into a json.RawMessage goes what is to be read later. It fails with an [Error],
// and into may then have changed.
func JSON(text []byte, into any) error {
	if !utf8.Valid(text) {
		return wrong("", "it is not UTF-8")
	}
	r := &reader{json.NewDecoder(bytes.NewReader(text)), 16*uintptr(len(text)) + spare}
	r.UseNumber()
	if err := r.value(reflect.TypeOf(into), nil); err != nil {
		return plainly(err)
	}
	if _, err := r.Token(); err != io.EOF {
		return wrong("", "there is something after its end")
	}
	if err := json.Unmarshal(text, into); err != nil {
		return plainly(err)
	}
	return nil
}

// reader checks keys before they are decoded.
type reader struct {
	*json.Decoder
	left uintptr // bytes that what is decoded may take
}

// spare is how many bytes values may take in any case.
const spare = 64 << 10

// take counts an element of a list, or of a map, of a type; nil: it is open. An empty one of two
// characters may become a struct of many fields.
func (r *reader) take(t reflect.Type) error {
	size := uintptr(16)
	if t != nil {
		size = t.Size()
	}
	for ; t != nil && t.Kind() == reflect.Pointer; t = t.Elem() {
		size += t.Elem().Size()
	}
	if size > r.left {
		return wrong("", "it has too many values for its length; leave out those that are empty")
	}
	r.left -= size
	return nil
}

var (
	rawMessage      = reflect.TypeFor[json.RawMessage]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// opaque reports whether a type reads its values by itself.
func opaque(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler)
}

// nullable reports whether null is a value of a type; package json passes it over where it is
// none.
func nullable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		return true
	}
	return opaque(t)
}

// inner returns the type of a type's values without pointers; nil if that is open.
func inner(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t != nil && (t.Kind() == reflect.Interface || t != rawMessage && opaque(t)) {
		return nil
	}
	return t
}

// value reads a value that goes into a type, nil if that is open, at a path.
func (r *reader) value(t reflect.Type, path []string) error {
	token, err := r.Token()
	if err != nil {
		return err
	}
	if token == nil && t != nil && !nullable(t) {
		return wrong(strings.Join(path, "."), "it is null, which is no value of it")
	}
	delim, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	if len(path) == MaxDepth {
		return wrong(strings.Join(path, "."), "it is nested more than %d deep", MaxDepth)
	}
	t = inner(t)
	if delim == '{' {
		if err := r.object(t, path); err != nil {
			return err
		}
	} else {
		var element reflect.Type
		switch {
		case t == rawMessage:
			element = t
		case t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
			element = t.Elem()
		}
		n := 0
		for ; r.More(); n++ {
			if err := r.take(element); err != nil {
				return err
			}
			if err := r.value(element, append(slices.Clip(path), strconv.Itoa(n))); err != nil {
				return err
			}
		}
		if t != nil && t.Kind() == reflect.Array && n != t.Len() {
			return wrong(strings.Join(path, "."), "it has %d values in place of %d", n, t.Len())
		}
	}
	_, err = r.Token() // its end
	return err
}

// object reads the members of an object.
func (r *reader) object(t reflect.Type, path []string) error {
	var known map[string]reflect.Type
	if t != nil && t.Kind() == reflect.Struct {
		known = fields(t, "json")
	}
	seen := make(map[string]bool)
	for r.More() {
		token, err := r.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if !ok {
			return wrong("", "it is not JSON: the name of a field is not a string")
		}
		at := append(slices.Clip(path), name)
		var field reflect.Type
		switch {
		case t == rawMessage: // what comes twice is found when it is read
			field = t
		case known != nil:
			if field, err = lookup(known, at); err != nil {
				return err
			}
		case t != nil && t.Kind() == reflect.Map:
			field = t.Elem()
			if err := r.take(field); err != nil {
				return err
			}
		}
		if seen[name] && t != rawMessage {
			return wrong(strings.Join(at, "."), "the field %.40q is given twice", name)
		}
		seen[name] = true
		if err := r.value(field, at); err != nil {
			return err
		}
	}
	return nil
}

// lookup finds the field that the last name of a path is exactly that of.
func lookup(known map[string]reflect.Type, path []string) (reflect.Type, error) {
	name, key := path[len(path)-1], strings.Join(path, ".")
	if field, found := known[name]; found {
		return field, nil
	}
	for _, other := range slices.Sorted(maps.Keys(known)) {
		if strings.EqualFold(other, name) {
			reason := fmt.Sprintf("%.40q is not a name of a field; write %q", name, other)
			return nil, &Error{Key: key, Meant: other, Reason: reason}
		}
	}
	return nil, wrong(key, "there is no field %.40q", name)
}

// fields returns the names of a struct's fields by a kind of tag, with their types.
func fields(t reflect.Type, tag string) map[string]reflect.Type {
	key := tagged{t, tag}
	if known, found := worked.Load(key); found {
		return known.(map[string]reflect.Type)
	}
	known := make(map[string]reflect.Type)
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get(tag), ",")
		switch {
		case name == "-", name == "" && f.Anonymous, !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		known[name] = f.Type
	}
	worked.Store(key, known)
	return known
}

// worked has what fields returned, by tagged: it is the same each time.
var worked sync.Map

type tagged struct {
	reflect.Type
	tag string
}

// TOML reads TOML into a struct by its tags: what is [Bounded], names exactly as declared, none
// unknown, none twice. It returns what is wrong, and into may then have changed.
func TOML(text []byte, into any) *Error {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // as some editors begin files
	if err := Bounded(text); err != nil {
		return err
	}
	var tree map[string]any
	err := toml.Unmarshal(text, &tree)
	if err == nil {
		var e *Error
		if errors.As(names(tree, reflect.TypeOf(into), "toml", nil), &e) {
			var places Places
			places.Add(e.Key)
			places.TOML(text)
			e.Line, e.Column = places.Of(e.Key)
			return e
		}
		err = toml.Unmarshal(text, into)
	}
	var syntax *toml.DecodeError
	switch {
	case errors.As(err, &syntax):
		line, column := syntax.Position()
		reason := strings.TrimPrefix(syntax.Error(), "toml: ")
		if m := otherType.FindStringSubmatch(reason); m != nil {
			reason = fmt.Sprintf("%s is a TOML %s, and takes a %s", strings.Join(syntax.Key(), "."), m[1],
				inTOML(m[2]))
		}
		return &Error{Line: line, Column: column, Reason: reason, Err: err}
	case err != nil:
		return &Error{Reason: strings.TrimPrefix(err.Error(), "toml: "), Err: err}
	}
	return nil
}

// otherType matches the text of package toml about a value of another type than its field in Go.
var otherType = regexp.MustCompile(`^cannot decode TOML (\w+) into (?:a )?struct field \S+ of type (\S+)$`)

// inTOML says what a value of a type of Go is called in TOML.
func inTOML(goes string) string {
	switch {
	case strings.HasPrefix(goes, "[]"):
		return "list"
	case strings.HasPrefix(goes, "float"):
		return "number"
	case strings.HasPrefix(goes, "int"), strings.HasPrefix(goes, "uint"):
		return "whole number"
	case goes == "bool":
		return "value true or false"
	}
	return goes
}

// names checks the keys of a decoded text, which goes into a type by a kind of tag: each is
// exactly the name of a field. It fails with an [Error].
func names(tree any, t reflect.Type, tag string, path []string) error {
	if t = inner(t); t == nil {
		return nil
	}
	switch tree := tree.(type) {
	case map[string]any:
		var known map[string]reflect.Type
		if t.Kind() == reflect.Struct {
			known = fields(t, tag)
		}
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			at := append(slices.Clip(path), name)
			field := t
			switch {
			case known != nil:
				var err error
				if field, err = lookup(known, at); err != nil {
					return err
				}
			case t.Kind() == reflect.Map:
				field = t.Elem()
			default:
				continue // the decoder says that it is of another kind
			}
			if err := names(tree[name], field, tag, at); err != nil {
				return err
			}
		}
	case []any:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			return nil
		}
		for i, element := range tree {
			at := append(slices.Clip(path), strconv.Itoa(i))
			if err := names(element, t.Elem(), tag, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// plainly says what package json found wrong in words that do not speak of Go.
func plainly(err error) error {
	var known *Error
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &kind):
		// Of structs within structs that are no objects of the text the name has theirs too.
		path := slices.DeleteFunc(strings.Split(kind.Field, "."), func(name string) bool {
			return name != strings.ToLower(name)
		})
		key := strings.Join(path, ".")
		if key == "" {
			return wrong("", "it is not %s", typeName(kind.Type.String()))
		}
		return wrong(key, "the field %q cannot be a %.40s: it takes %s", key, kind.Value,
			typeName(kind.Type.String()))
	case errors.As(err, &syntax):
		return wrong("", "it is not JSON at byte %d", syntax.Offset)
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return wrong("", "it ends early")
	}
	return &Error{Reason: strings.TrimPrefix(err.Error(), "json: "), Err: err}
}

// typeName says what a field takes.
func typeName(name string) string {
	name = strings.TrimPrefix(name, "*")
	switch {
	case strings.HasPrefix(name, "uint"):
		return "a whole number of 0 or more"
	case strings.HasPrefix(name, "int"):
		return "a whole number"
	case strings.HasPrefix(name, "float"):
		return "a number"
	case name == "bool":
		return "true or false"
	case strings.HasPrefix(name, "[]"):
		return "an array"
	case name == "string" || strings.HasSuffix(name, "Family") || strings.HasSuffix(name, "View"),
		strings.HasSuffix(name, "Adversary"):
		return "a string"
	}
	return "an object"
}
