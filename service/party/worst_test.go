package party

import (
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
)

// A server may answer anything.
func TestWorstFiles(t *testing.T) {
	answers := func(field string) map[string]func(n int) []byte {
		return map[string]func(n int) []byte{
			"empty":   suite.Repeated("[", "{},", "{}]"),
			"strings": suite.Repeated(`{"`+field+`":"`, `\u0001`, `"}`),
			"fields":  suite.Repeated("{", `"%d":0,`, `"`+field+`":0}`),
			"nested":  suite.Repeated(`{"`+field+`":`, "[", ""),
			"twice":   suite.Repeated("{", `"`+field+`":"",`, ""),
		}
	}
	text := func(n int) []byte { // which a party parses before its owner consents
		return suite.Repeated("", "a.", "a = 1")(n)
	}
	suite.WorstFiles(t,
		suite.Worst{Name: "job", Most: job.MaxFile, Files: map[string]func(int) []byte{"dots": text},
			Parse: func(b []byte) error {
				_, err := new(Server).WorkOut(t.Context(), "", &exchange.Description{Text: string(b)},
					federation.Files{})
				return err
			}},
		suite.Worst{Name: "metrics of a training command", Most: mostMetrics,
			Parse: func(b []byte) error {
				_, _, err := metricsOf(b)
				return err
			}, Files: answers("loss")},
		suite.Worst{Name: "answer to a party: federations", Most: mostJSON,
			Parse: func(b []byte) error { return strictJSON(b, new([]exchange.Listed)) },
			Files: answers("name")},
		suite.Worst{Name: "answer to a party: a federation", Most: mostJSON,
			Parse: func(b []byte) error { return strictJSON(b, new(exchange.Description)) },
			Files: answers("text")},
		suite.Worst{Name: "answer to a party: certificates", Most: mostJSON,
			Parse: func(b []byte) error { return strictJSON(b, new([]exchange.NextCertificate)) },
			Files: answers("signature")})
}
