package collusion

import (
	"strings"

	"github.com/hushsum/hushsum/attacks"
)

// violinFigures shows the cases of each pooling in a figure of its own, beside all
// cases that are of none.
func violinFigures(name, title, y string, cases []attacks.Series) []attacks.Figure {
	var figures []attacks.Figure
	for _, p := range []pooling{separate, pooled, leaking} {
		f := attacks.Figure{Name: name + "-" + figureName(poolingNames[p]), Title: title, X: "case", Y: y}
		for _, s := range cases {
			if pooling, _, _ := strings.Cut(s.Label, " "); len(pooling) > 1 || pooling == poolingNames[p] {
				f.Series = append(f.Series, s)
			}
		}
		figures = append(figures, f)
	}
	return figures
}

// estimateFigures shows estimates of a case beside the inputs: point by point, and
// their densities.
func estimateFigures(prefix, name, title, label string, inputs, estimates []float64) []attacks.Figure {
	return []attacks.Figure{{
		Name:  prefix + figureName(name),
		Title: title + ": actual and estimated weights", X: "actual, λ", Y: "estimated, λ",
		Series: []attacks.Series{{Label: label, Kind: attacks.Points, X: inputs, Y: estimates}},
	}, {
		Name:  prefix + "density-" + figureName(name),
		Title: title + ": density of weights", X: "weight, λ", Y: "density",
		Series: []attacks.Series{{Label: "actual", Kind: attacks.Density, Y: inputs}, {Label: "estimated", Kind: attacks.Density, Y: estimates}},
	}}
}

// differences returns x − y, coordinate by coordinate, of at most 1,000: enough for
// a picture.
func differences(x, y []float64) []float64 {
	out := make([]float64, min(len(x), 1000))
	for i := range out {
		out[i] = x[i] - y[i]
	}
	return out
}

// figureName is a name of a case for use in a file name.
func figureName(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, " ", "-"))
}
