package record

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// A backup is read to its end before a key is asked for.
func TestWorstFiles(t *testing.T) {
	start := backupMagic + "0123456789abcdef"
	framed := func(size uint32) string {
		return string(binary.BigEndian.AppendUint32(nil, size))
	}
	suite.WorstFiles(t, suite.Worst{Name: "backup", Most: 64 << 30, Try: 4 << 20,
		Parse: func(b []byte) error { return ReadBackup(bytes.NewReader(b)) },
		Files: map[string]func(n int) []byte{
			"short frames": suite.Repeated(start, framed(1)+"x", framed(0)),
			"one frame":    suite.Repeated(start+framed(mostFrame), "x", ""),
			"long frame":   suite.Repeated(start+framed(1<<32-1), "x", ""),
		}})
}
