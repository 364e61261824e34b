package keyexchange_test

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
)

// Rosters come from whoever makes the lists of a federation.
func TestWorstFiles(t *testing.T) {
	key := strings.Repeat("0", 64)
	suite.WorstFiles(t, suite.Worst{Name: "roster", Most: 256 << 20, Try: 4 << 20,
		Parse: func(b []byte) error {
			_, err := keyexchange.ParseRoster(b)
			return err
		},
		Files: map[string]func(n int) []byte{
			"empty lines": suite.Repeated("", "\n", ""),
			"comments":    suite.Repeated("", "#\n", ""),
			"parties": func(n int) (text []byte) {
				var seed [ed25519.SeedSize]byte
				for i := 0; len(text)+len(key)+10 <= n; i++ {
					binary.BigEndian.PutUint32(seed[:], uint32(i))
					key := ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)
					text = fmt.Appendf(text, "p%d %x\n", i, key)
				}
				return text
			},
			"one line": suite.Repeated("", "p", " "+key),
		}})
}
