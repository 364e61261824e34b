package attack

import (
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
)

// jsonMeasure is a measurement; infinite bounds are null.
type jsonMeasure struct {
	Value      *float64 `json:"value"`
	Lower      *float64 `json:"lower"`
	Upper      *float64 `json:"upper"`
	Confidence float64  `json:"confidence"`
	Samples    int      `json:"samples"`
	Min        *float64 `json:"min"`
	Max        *float64 `json:"max"`
}

// newJSONMeasure returns nil for a measurement that is missing.
func newJSONMeasure(m attacks.Measure) *jsonMeasure {
	if m.Missing() {
		return nil
	}
	return &jsonMeasure{
		Value:      show.Finite(m.Value),
		Lower:      show.Finite(m.Lower),
		Upper:      show.Finite(m.Upper),
		Confidence: m.Confidence,
		Samples:    m.Samples,
		Min:        show.Finite(m.Min),
		Max:        show.Finite(m.Max),
	}
}

// jsonRow is a line that --json prints.
type jsonRow struct {
	Attack     string       `json:"attack"`
	Adversary  string       `json:"adversary"`
	Defence    string       `json:"defence"`
	Case       string       `json:"case"`
	Metric     string       `json:"metric"`
	Undefended *jsonMeasure `json:"undefended"`
	Defended   *jsonMeasure `json:"defended"`
	Verdict    string       `json:"verdict"`
	Note       string       `json:"note"`
}

// line prints a row as JSON.
func (b *battery) line(a attacks.Attack, row attacks.Row) {
	show.JSON(b.Std, jsonRow{
		Attack:     a.Name,
		Adversary:  a.Adversary,
		Defence:    a.Defence,
		Case:       row.Case,
		Metric:     row.Metric,
		Undefended: newJSONMeasure(row.Undefended),
		Defended:   newJSONMeasure(row.Defended),
		Verdict:    row.Verdict().String(),
		Note:       row.Note,
	})
}
