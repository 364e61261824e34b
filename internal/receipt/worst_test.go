package receipt

import (
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/suite"
)

// Receipts and evidence come from servers and from whoever passes them on.
func TestWorstFiles(t *testing.T) {
	hash := strings.Repeat("5e", 32)
	statement := labels.Receipt + "\nfederation " + hash + "\njob " + hash +
		"\nparty 0\nround 1 of 1\nsession 0\nsubmission " + hash + "\nsum 1048576: "
	after := "\nreleased " + hash + "\nspent nothing\nsalt " + hash + "\nplace 0\npath"
	suite.WorstFiles(t, suite.Worst{Name: "receipt", Most: Most, Try: 1 << 20,
		Parse: func(b []byte) error {
			_, err := Parse(b)
			return err
		},
		Files: map[string]func(n int) []byte{
			"parties":    suite.Repeated(statement, "0 ", after),
			"all":        suite.Repeated(statement+"0-1048575"+after, " "+hash, "\n"),
			"signatures": suite.Repeated("", "— a AAAAAAA=\n", ""),
		}}, suite.Worst{Name: "receipts that contradict", Most: Most, Try: 1 << 20,
		Parse: func(b []byte) error {
			_, err := ParseEvidence(b)
			return err
		},
		Files: map[string]func(n int) []byte{
			"proof": suite.Repeated(labels.Evidence+"\nkind heads\nfederation "+hash+"\nkey "+hash+"\nroot "+
				hash+"\nproof", " "+hash, "\n"),
			"lines": suite.Repeated(labels.Evidence+"\nkind heads\nfederation "+hash+"\nkey "+hash+"\nroot "+
				hash+"\nproof\nlines 64\n", "\n", ""),
		}})
}
