package chart

import (
	"bufio"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"
)

var (
	crossing = flag.String("crossing", "",
		"output of go test ./oneshot ./protocol -p 1 -run NONE -bench Party, to be drawn")
	crossingOut = flag.String("crossing-out", "", "folder of the figures that -crossing makes")
)

// crossingSample is a run of the benchmark, cut short.
const crossingSample = `
BenchmarkParty/n=30/hybrid    	50	 1.972 member-kB	 14.2 party-ms	 2.2 server-ms	 481.2 up-kB
BenchmarkParty/n=30/pairwise  	 1	 10.1 party-ms	 40.9 server-ms	 9.0 setup-ms	 423.0 up-kB
BenchmarkParty/n=1000/hybrid  	50	 14.3 party-ms	 2.1 server-ms	 481.2 up-kB
BenchmarkParty/n=1000/pairwise	 1	 140 party-ms	 9000 server-ms	 160 setup-ms
`

// TestCrossing draws the figures of BENCHMARKS.md on sums of one message a party next to
// pairwise ones: of the run that -crossing names into the folder of -crossing-out, or of a
// sample.
func TestCrossing(t *testing.T) {
	text, out := drawnRun(t, *crossing, crossingSample, *crossingOut)
	series := parseCrossing(t, text)
	if len(series["hybrid"]["party-ms"]) < 2 || len(series["pairwise"]["party-ms"]) < 2 {
		t.Fatalf("two sizes at least are needed: %v", series)
	}
	for _, figure := range []struct{ file, title, y, metric string }{
		{"oneshot-party.svg", "A party's round", "ms a party", "party-ms"},
		{"oneshot-server.svg", "The end of a round", "ms of the server", "server-ms"},
	} {
		c := New(figure.title, "parties", figure.y, 6)
		c.Add(plotter.NewGrid())
		Logarithmic(&c.X)
		Logarithmic(&c.Y)
		for _, s := range []struct{ kind, name string }{
			{"hybrid", "one message, hybrid"}, {"x25519", "one message, X25519"},
			{"covered", "one message, covered"}, {"pairwise", "pairwise, complete"},
			{"sparse", "pairwise, sparse"}, {"with set-up", "complete, with set-up"},
		} {
			points := series[s.kind][figure.metric]
			if len(points) == 0 {
				continue
			}
			line, dots, err := plotter.NewLinePoints(points)
			if err != nil {
				t.Fatal(err)
			}
			_, line.LineStyle, dots.GlyphStyle = c.Style()
			c.Add(line, dots)
			c.Key(s.name, line, dots)
		}
		saveFigure(t, c, filepath.Join(out, figure.file))
	}
	for _, kind := range []string{"hybrid", "x25519"} {
		for _, against := range []string{"pairwise", "with set-up", "sparse"} {
			if n := meeting(series[kind]["party-ms"], series[against]["party-ms"]); n > 0 {
				t.Logf("%s costs a party less than %s from %.0f parties on", kind, against, n)
			}
		}
	}
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

// parseCrossing reads points by kind and metric. Kind "with set-up" is pairwise with the
// set-up in the party's time.
func parseCrossing(t *testing.T, text string) map[string]map[string]plotter.XYs {
	t.Helper()
	series := make(map[string]map[string]plotter.XYs)
	add := func(kind, metric string, n, value float64) {
		if series[kind] == nil {
			series[kind] = make(map[string]plotter.XYs)
		}
		series[kind][metric] = append(series[kind][metric], plotter.XY{X: n, Y: value})
	}
	for scanner := bufio.NewScanner(strings.NewReader(text)); scanner.Scan(); {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "BenchmarkParty/n=") {
			continue
		}
		size, kind, _ := strings.Cut(strings.TrimPrefix(fields[0], "BenchmarkParty/n="), "/")
		n, err := strconv.ParseFloat(size, 64)
		if err != nil {
			t.Fatal(err)
		}
		values := metricsOf(t, fields)
		for metric, value := range values {
			add(kind, metric, n, value)
		}
		if kind == "pairwise" {
			add("with set-up", "party-ms", n, values["party-ms"]+values["setup-ms"])
		}
	}
	return series
}

// meeting returns where a line falls below another for good, each straight between the
// points that both have; 0 if it is not seen to.
func meeting(line, other plotter.XYs) float64 {
	at := 0.
	above := func(p plotter.XY) float64 { // NaN where only one of them was measured
		k := slices.IndexFunc(other, func(q plotter.XY) bool { return q.X == p.X })
		if k < 0 {
			return math.NaN()
		}
		return other[k].Y - p.Y
	}
	for i := 1; i < len(line); i++ {
		if a, b := above(line[i-1]), above(line[i]); a < 0 && b > 0 {
			at = line[i-1].X + (line[i].X-line[i-1].X)*a/(a-b)
		}
	}
	return at
}
