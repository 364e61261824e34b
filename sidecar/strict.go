package sidecar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep JSON may be nested.
const maxDepth = 16

// decodeStrictly reads one JSON value into a struct: UTF-8, no field twice or unknown,
// names exactly as declared, nothing behind the end. What is in the field later of the
// outermost object is only sure to be JSON: it is decoded later.
func decodeStrictly(text []byte, into any, later string) error {
	if !utf8.Valid(text) {
		return fmt.Errorf("it is not UTF-8")
	}
	if err := checkNames(text, later); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return plainly(err)
	}
	return nil
}

// checkNames refuses names of fields that come twice, and those that package json would
// match with a declared one although they differ: all declared ones are in lower case.
func checkNames(text []byte, later string) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	type level struct {
		names map[string]bool // nil in an array
		name  bool            // a name is next
		later bool            // of what is not looked at yet
		last  string          // name of the value that is next
	}
	var open []level
	for first := true; first || len(open) > 0; first = false {
		token, err := decoder.Token()
		if err != nil {
			return plainly(err)
		}
		top := len(open) - 1
		switch delim, is := token.(json.Delim); {
		case is && (delim == '{' || delim == '['):
			if first && delim != '{' {
				return fmt.Errorf("it is not an object")
			}
			if len(open) == maxDepth {
				return fmt.Errorf("it is nested more than %d deep", maxDepth)
			}
			if top >= 0 {
				open[top].name = open[top].names != nil
			}
			next := level{}
			if delim == '{' {
				next = level{names: make(map[string]bool), name: true}
			}
			next.later = top >= 0 && open[top].later || top == 0 && later != "" && open[0].last == later
			open = append(open, next)
		case is:
			open = open[:top]
		case first:
			return fmt.Errorf("it is not an object")
		case open[top].name:
			name, _ := token.(string)
			open[top].last = name
			if open[top].later {
				open[top].name = false
				continue
			}
			if strings.ContainsFunc(name, func(r rune) bool {
				return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_'
			}) || name == "" {
				return fmt.Errorf("%.40q is no name of a field", name)
			}
			if open[top].names[name] {
				return fmt.Errorf("the field %.40q comes twice", name)
			}
			open[top].names[name], open[top].name = true, false
		default:
			open[top].name = open[top].names != nil
		}
	}
	if _, err := decoder.Token(); err != io.EOF {
		return fmt.Errorf("there is something behind its end")
	}
	return nil
}

// plainly says what package json found wrong in words that do not speak of Go.
func plainly(err error) error {
	switch e := err.(type) {
	case *json.UnmarshalTypeError:
		// Of structs within structs that are no objects of the call the name has theirs too.
		names := slices.DeleteFunc(strings.Split(e.Field, "."), func(name string) bool {
			return name != strings.ToLower(name)
		})
		return fmt.Errorf("the field %q cannot be a %.40s: it takes %s", strings.Join(names, "."),
			e.Value, typeName(e.Type.String()))
	case *json.SyntaxError:
		return fmt.Errorf("it is not JSON at byte %d", e.Offset)
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("it ends early")
	}
	if name, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
		return fmt.Errorf("there is no field %s", name)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
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
