package simulate

import (
	"fmt"
	"math"
	"slices"

	"github.com/hushsum/hushsum/internal/chart"
)

// growth returns the exponent of a power law through points, by least squares of the logarithms: 1
// is linear. It requires two different x above 0; otherwise it is NaN.
func growth(points []chart.Point) float64 {
	n, sx, sy, sxx, sxy := 0., 0., 0., 0., 0.
	for _, p := range points {
		if p.X <= 0 || p.Y <= 0 {
			continue
		}
		x, y := math.Log(p.X), math.Log(p.Y)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if d := n*sxx - sx*sx; d > 1e-9 {
		return (n*sxy - sx*sy) / d
	}
	return math.NaN()
}

// drawGrowth draws the cost of the simulation itself against the number of parties, with the fitted
// exponents. It reports whether the sweep has more than one number of parties.
func drawGrowth(path, title string, axes []sweepAxis, runs []*sweepRun) (drawn bool, err error) {
	at := slices.IndexFunc(axes, func(a sweepAxis) bool { return a.name == "parties" })
	if at < 0 || len(axes[at].values) < 2 {
		return false, nil
	}
	others := slices.Delete(slices.Clone(axes), at, at+1)
	lines := map[string][]chart.Point{}
	var names []string
	for _, r := range runs {
		if r.outcome.Error != "" || r.outcome.Took.Mean <= 0 {
			continue
		}
		name := combination(others, &sweepRun{texts: slices.Delete(slices.Clone(r.texts), at, at+1)})
		if _, ok := lines[name]; !ok {
			names = append(names, name)
		}
		lines[name] = append(lines[name], chart.Point{X: r.values[at], Y: r.outcome.Took.Mean})
	}
	if len(names) == 0 {
		return false, nil
	}
	unit := "seconds that the simulation took"
	if runs[0].outcome.Busy {
		unit = "seconds of one core that the simulation took"
	}
	c := chart.Figure{Title: title, X: "parties", Y: unit, LogX: true, LogY: true, Grid: true}
	for _, name := range names {
		label := fmt.Sprintf("n^%.2f", growth(lines[name]))
		if name != "" {
			label = name + ", " + label
		}
		c.Series = append(c.Series, chart.Trace(label, lines[name]))
	}
	return true, c.Save(path)
}
