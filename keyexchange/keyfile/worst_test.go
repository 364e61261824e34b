package keyfile

import (
	"os"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// A path may name any file: of a long one little is read.
func TestWorstFiles(t *testing.T) {
	file := t.TempDir() + "/key"
	through := func(parse func(name string) error) func(b []byte) error {
		return func(b []byte) error {
			if err := os.WriteFile(file, b, 0o600); err != nil {
				return err
			}
			return parse(file)
		}
	}
	const begin = "-----BEGIN PRIVATE KEY-----\n"
	files := map[string]func(n int) []byte{
		"keys":   suite.Repeated("", "%064d\n", ""),
		"blocks": suite.Repeated("", begin+"AAAA\n-----END PRIVATE KEY-----\n", ""),
		"opened": suite.Repeated("", begin, ""),
	}
	suite.WorstFiles(t,
		suite.Worst{Name: "identity", Most: mostPEM, Files: files,
			Parse: through(func(name string) error {
				_, err := ReadIdentity(name)
				return err
			})},
		suite.Worst{Name: "keys that seal", Most: mostPEM, Files: files,
			Parse: through(func(name string) error {
				_, err := SealKeys(name, false)
				return err
			})})
}
