package accounting

import (
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// Ledgers come with a job that continues another, and from programs.
func TestWorstFiles(t *testing.T) {
	head := `{"version":1,"view":"` + ServerView.String() + `","standard":{"Epsilon":1,"Delta":1e-5},"accounts":{`
	const step = `{"count":1,"step_count":1,"mechanism":`
	nested := strings.Repeat(`{"sampled":{"rate":0.5,"mechanism":`, 5) + `{"gaussian":{"NoiseMultiplier":1}}` +
		strings.Repeat("}}", 5)
	suite.WorstFiles(t, suite.Worst{Name: "ledger", Most: 256 << 20, Try: 1 << 20,
		Parse: func(b []byte) error { return new(Ledger).UnmarshalJSON(b) },
		Files: map[string]func(n int) []byte{
			"entries":    suite.Repeated(head+`"a":[`, "{},", "{}]}}"),
			"accounts":   suite.Repeated(head, `"a%d":[],`, `"b":[]}}`),
			"budgets":    suite.Repeated(head+`},"budgets":{`, `"a%d":{},`, `"b":{}}}`),
			"rounds":     suite.Repeated(head+`"a":[`, `{"round":{}},`, "{}]}}"),
			"mechanisms": suite.Repeated(head+`"a":[`, step+nested+"},", step+nested+"}]}}"),
			"steps": suite.Repeated(head+`"a":[`, step+`{"gaussian":{"NoiseMultiplier":1}}},`,
				step+`{"gaussian":{"NoiseMultiplier":1}}}]}}`),
			"deep": suite.Repeated(head+`"a":[`+step, `{"sampled":{"mechanism":`, ""),
		}})
}
