package operate

import (
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// A vector comes from a program of the party's own.
func TestWorstFiles(t *testing.T) {
	suite.WorstFiles(t,
		suite.Worst{Name: "vector, JSON", Most: mostBytes, Try: 1 << 20,
			Parse: func(b []byte) error {
				_, err := parseJSON(b)
				return err
			},
			Files: map[string]func(n int) []byte{
				"numbers": suite.Repeated("[", "0,", "0]"),
				"lists":   suite.Repeated(`{"vector":[`, "[],", "0]}"),
				"fields":  suite.Repeated("{", `"%d":0,`, `"vector":[]}`),
			}},
		suite.Worst{Name: "vector, CSV", Most: mostBytes, Try: 1 << 20,
			Parse: func(b []byte) error {
				_, err := parseCSV(b)
				return err
			},
			Files: map[string]func(n int) []byte{
				"numbers": suite.Repeated("", "0,", "0"),
				"commas":  suite.Repeated("", ",", ""),
				"lines":   suite.Repeated("", "0\n", ""),
				"blank":   suite.Repeated("", "\n", "0"),
				"quotes":  suite.Repeated(`"`, `""`, ""),
			}})
}
