package collusion

import (
	"strings"

	"github.com/hushsum/hushsum/attacks"
)

// shownPoints is how many points of a sample are enough for a picture.
const shownPoints = 1000

// violin is a sample to draw in the figure of a pooling, or with 0 in all figures.
type violin struct {
	figure pooling
	label  string
	sample []float64
}

// violinFigures are figures of one kind, one for each pooling.
type violinFigures struct {
	name, title string
	y           string // what the axis shows
}

// draw makes the figures.
func (f violinFigures) draw(violins []violin) []attacks.Figure {
	var figures []attacks.Figure
	for _, p := range []pooling{separate, pooled, leaking} {
		figure := attacks.Figure{
			Name:  f.name + "-" + figureName(poolingNames[p]),
			Title: f.title,
			X:     "case",
			Y:     f.y,
		}
		for _, v := range violins {
			if v.figure == 0 || v.figure == p {
				figure.Series = append(figure.Series, attacks.Series{
					Label: v.label,
					Kind:  attacks.Violin,
					Y:     v.sample,
				})
			}
		}
		figures = append(figures, figure)
	}
	return figures
}

// missedViolin shows by how much the estimates miss the inputs.
func (f finding) missedViolin() violin {
	missed := make([]float64, min(len(f.inputs), shownPoints))
	for i := range missed {
		missed[i] = f.estimates[i] - f.inputs[i]
	}
	return violin{figure: f.figure, label: f.name, sample: missed}
}

// figures shows the estimates next to the inputs: point by point, and their densities. The
// names of the files begin with the prefix.
func (f finding) figures(prefix, title, label string) []attacks.Figure {
	return []attacks.Figure{{
		Name:  prefix + figureName(f.name),
		Title: title + ": actual and estimated weights",
		X:     "actual, λ",
		Y:     "estimated, λ",
		Series: []attacks.Series{
			{Label: label, Kind: attacks.Points, X: f.inputs, Y: f.estimates},
		},
	}, {
		Name:  prefix + "density-" + figureName(f.name),
		Title: title + ": density of weights",
		X:     "weight, λ",
		Y:     "density",
		Series: []attacks.Series{
			{Label: "actual", Kind: attacks.Density, Y: f.inputs},
			{Label: "estimated", Kind: attacks.Density, Y: f.estimates},
		},
	}}
}

// figureName is a name of a case for use in a file name.
func figureName(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, " ", "-"))
}
