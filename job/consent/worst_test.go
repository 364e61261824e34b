package consent

import (
	"os"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// A policy's path may name any file.
func TestWorstFiles(t *testing.T) {
	file := t.TempDir() + "/policy.toml"
	suite.WorstFiles(t,
		suite.Worst{Name: "policy", Most: mostPolicy,
			Parse: func(b []byte) error {
				if err := os.WriteFile(file, b, 0o600); err != nil {
					return err
				}
				_, err := ReadPolicy(file)
				return err
			},
			Files: map[string]func(n int) []byte{
				"dots":   suite.Repeated("", "a.", "a = 1"),
				"keys":   suite.Repeated("", "a%d = 1\n", ""),
				"dotted": suite.Repeated("", "[[a]]\na.a.a.a.a.a.a.a.a.a.a.a.a = 1\n", ""),
				"tables": suite.Repeated("", "[[keep]]\n", ""),
				"values": suite.Repeated("keep = [", "'',", "]"),
				"stars":  suite.Repeated("keep = ['", "*", "']"),
			}})
}
