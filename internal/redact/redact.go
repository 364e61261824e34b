// Package redact writes, for values that hold secrets, that they do and nothing else.
//
// A type that holds a secret has two methods of one line each, on the value, so that
// pointers have them too:
//
//	func (T) Format(s fmt.State, _ rune)           { redact.Format(s, "package.T") }
//	func (T) MarshalJSON() ([]byte, error)         { return redact.JSON("package.T") }
//
// The first serves every verb of fmt, %#v and %x among them, errors and log/slog's text
// handler; the second encoding/json and slog's JSON handler. fmt does not call methods
// of unexported fields, so that a type that holds such a value in one needs methods of
// its own. The test walks all exported types of the packages that parties use.
package redact

import (
	"fmt"
	"io"
	"strconv"
)

func text(name string) string { return name + "{redacted}" }

// Format writes the name of a type in the place of a value.
func Format(s fmt.State, name string) { _, _ = io.WriteString(s, text(name)) }

// JSON returns a string with the name of a type in the place of a value.
func JSON(name string) ([]byte, error) { return []byte(strconv.Quote(text(name))), nil }
