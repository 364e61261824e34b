package page

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"github.com/hushsum/hushsum/service/runner"
)

// chart draws the accuracy over the rounds, if anything measures it.
func chart(history []runner.Past) template.HTML {
	const width, height, margin = 640, 180, 30
	type point struct{ x, y float64 }
	var points []point
	low, high := math.Inf(1), math.Inf(-1)
	last := 0
	for _, p := range history {
		last = max(last, p.Round)
		y := p.Accuracy
		if y == 0 && p.Metric != nil {
			y = p.Metric.Accuracy
		}
		if p.Parties == 0 || y == 0 {
			continue
		}
		points = append(points, point{float64(p.Round), y})
		low, high = min(low, y), max(high, y)
	}
	if len(points) < 2 {
		return ""
	}
	if high-low < .01 {
		low, high = low-.005, high+.005
	}
	var path strings.Builder
	for i, p := range points {
		x := margin + (p.x-1)/max(1, float64(last-1))*(width-2*margin)
		y := height - margin - (p.y-low)/(high-low)*(height-2*margin)
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f ", command, x, y)
	}
	return template.HTML(fmt.Sprintf(`<svg class="chart" viewBox="0 0 %d %d" role="img" `+
		`aria-label="accuracy over rounds"><path class="axis" d="M%d %d V%d H%d"/>`+
		`<path class="line" d="%s"/><text x="%d" y="%d">%.3f</text><text x="%d" y="%d">%.3f</text>`+
		`<text x="%d" y="%d">round 1</text><text x="%d" y="%d" text-anchor="end">round %d</text></svg>`,
		width, height, margin, margin, height-margin, width-margin, path.String(),
		2, margin+4, high, 2, height-margin-2, low,
		margin, height-10, width-margin, height-10, last))
}
