package figures

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"
)

var (
	limit = flag.String("limit", "",
		"output of go test ./protocol -run NONE -bench Limit -cpu 1, to be drawn")
	limitOut = flag.String("limit-out", "", "folder of the figures that -limit makes")
)

// limitSample is a run of the benchmark, cut short.
const limitSample = `
BenchmarkLimit/n=100/d=1000  3 0.2 client-limit-ms 4.1 client-ms 0.1 server-limit-ms 9.0 server-ms
BenchmarkLimit/n=100/d=10000 3 2.0 client-limit-ms 6.1 client-ms 1.0 server-limit-ms 10 server-ms
BenchmarkLimit/n=10/d=10000  3 0.2 client-limit-ms 0.9 client-ms 0.2 server-limit-ms 1.1 server-ms
`

// TestLimit draws the figures of BENCHMARKS.md on what a round takes next to the time of its masks
// alone, against the number of coordinates and against that of the parties.
func TestLimit(t *testing.T) {
	text, out := drawnRun(t, *limit, limitSample, *limitOut)
	points := parseLimit(t, text)
	for _, figure := range []struct {
		file, title, x string
		at             func(n, d float64) (x float64, shown bool)
	}{
		{"limit-coordinates.svg", "A round of 100 parties", "coordinates",
			func(n, d float64) (float64, bool) { return d, n == 100 }},
		{"limit-parties.svg", "A round of 100,000 coordinates", "parties",
			func(n, d float64) (float64, bool) { return n, *limit == "" || d == 100_000 }},
	} {
		c := New(figure.title, figure.x, "ms, of one core", 6)
		c.Add(plotter.NewGrid())
		Logarithmic(&c.X)
		Logarithmic(&c.Y)
		for _, s := range []struct{ metric, name string }{
			{"client-ms", "a party"}, {"client-limit-ms", "a party's masks alone"},
			{"server-ms", "the server"}, {"server-limit-ms", "the server's masks alone"},
		} {
			var line plotter.XYs
			for _, p := range points {
				if x, shown := figure.at(p.n, p.d); shown {
					line = append(line, plotter.XY{X: x, Y: p.metrics[s.metric]})
				}
			}
			if len(line) < 2 {
				t.Fatalf("%s: two points at least are needed: %v", figure.file, points)
			}
			slices.SortFunc(line, func(p, q plotter.XY) int { return cmp.Compare(p.X, q.X) })
			drawn, dots, err := plotter.NewLinePoints(line)
			if err != nil {
				t.Fatal(err)
			}
			_, drawn.LineStyle, dots.GlyphStyle = c.Style()
			c.Add(drawn, dots)
			c.Key(s.name, drawn, dots)
		}
		saveFigure(t, c, filepath.Join(out, figure.file))
	}
}

// limitPoint is one size of the benchmark.
type limitPoint struct {
	n, d    float64
	metrics map[string]float64
}

// parseLimit returns the sizes of a run in its order.
func parseLimit(t *testing.T, text string) (points []limitPoint) {
	t.Helper()
	for scanner := bufio.NewScanner(strings.NewReader(text)); scanner.Scan(); {
		fields := strings.Fields(scanner.Text())
		var p limitPoint
		if len(fields) < 4 {
			continue
		}
		name := strings.ReplaceAll(fields[0], "/", " ")
		if _, err := fmt.Sscanf(name, "BenchmarkLimit n=%g d=%g", &p.n, &p.d); err != nil {
			continue
		}
		p.metrics = metricsOf(t, fields)
		points = append(points, p)
	}
	return points
}

// drawnRun returns a benchmark's output, of a file or else a sample, and the folder of its figures.
func drawnRun(t *testing.T, file, sample, folder string) (text, out string) {
	t.Helper()
	if folder == "" {
		folder = t.TempDir()
	}
	if file == "" {
		return sample, folder
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), folder
}

// metricsOf returns the metrics of a benchmark's line by their units.
func metricsOf(t *testing.T, fields []string) map[string]float64 {
	t.Helper()
	values := make(map[string]float64)
	for i := 2; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			t.Fatal(err)
		}
		values[fields[i+1]] = value
	}
	return values
}

func saveFigure(t *testing.T, c *Chart, path string) {
	t.Helper()
	if err := c.Save(path); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), "<svg") {
		t.Errorf("%s is not a figure: %v", path, err)
	}
}
