package tilelog

import (
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// A witness reads checkpoints that a server, and whoever is between, has made.
func TestWorstFiles(t *testing.T) {
	key := signerOf(t).Public()
	suite.WorstFiles(t, suite.Worst{Name: "checkpoint of a public log", Most: 1 << 20, Try: 1 << 20,
		Parse: func(b []byte) error {
			_, err := OpenCheckpoint(b, key)
			return err
		},
		Files: map[string]func(n int) []byte{
			"signatures": suite.Repeated(origin+"\n1\nAAAA\n\n", "— a AAAAAAA=\n", ""),
			"text":       suite.Repeated(origin+"\n", "1\n", "\n— a AAAAAAA=\n"),
			"one line":   suite.Repeated("", "a", "\n\n— a AAAAAAA=\n"),
		}})
}
