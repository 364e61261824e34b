package protocol

import (
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// A configuration comes from a program that carries messages itself.
func TestWorstFiles(t *testing.T) {
	key := strings.Repeat("0", 56)
	suite.WorstFiles(t, suite.Worst{Name: "configuration", Most: 256 << 20, Try: 1 << 20,
		Parse: func(b []byte) error { return new(Config).UnmarshalJSON(b) },
		Files: map[string]func(n int) []byte{
			"empty":   suite.Repeated(`{"roster":[`, "{},", "{}]}"),
			"members": suite.Repeated(`{"roster":[`, `{"name":"a","key":"`+key+`%08d"},`, "{}]}"),
			"layout":  suite.Repeated(`{"layout":[`, `{},`, "{}]}"),
			"label":   suite.Repeated(`{"label":"`, `\u0001`, `"}`),
		}})
}
