package oneshot

import (
	"encoding/binary"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/suite"
)

// Evidence comes from a coordinator that accuses somebody.
func TestWorstFiles(t *testing.T) {
	honest := readEvidence(t, evidenceFiles[1])
	suite.WorstFiles(t, suite.Worst{Name: "evidence", Most: 1 << 30, Try: 4 << 20,
		Parse: func(b []byte) error {
			_, err := ParseEvidence(b)
			return err
		},
		Files: map[string]func(n int) []byte{
			"longer": suite.Repeated(string(honest), "\x00", ""),
			"roster": func(n int) []byte { // of empty lines
				head := append([]byte(labels.OneshotEvidence), 0)
				head = binary.BigEndian.AppendUint32(head, uint32(n-len(head)-4))
				return suite.Repeated(string(head), "\n", "")(n)
			},
		}})
}
