package experiments

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every interval that RESULTS.md and the page of gradient masking state of an experiment is that of
// the difference of two rows of the file that the experiment wrote into docs/results, paired by
// seed.
func TestFiguresFromFiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "RESULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	check := func(name, line string) {
		for _, m := range stated.FindAllStringSubmatch(line, -1) {
			checked++
			if !slices.ContainsFunc(differences(t, name), func(d Interval) bool {
				return rounded(t, m[1], d.Mean) && rounded(t, m[2], d.Low) && rounded(t, m[3], d.High)
			}) {
				t.Errorf("no two rows of docs/results/%s.csv differ by %s", name, m[0])
			}
		}
	}
	_, table, _ := strings.Cut(string(text), "\n| experiment | claim |")
	table, _, _ = strings.Cut(table, "\n\n")
	name := ""
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		if cell := strings.TrimSpace(cells[1]); cell != "" {
			name = cell
		}
		check(name, cells[3])
	}
	page, err := os.ReadFile(filepath.FromSlash("../../docs/gradient-masking.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if m := experimentName.FindStringSubmatch(line); m != nil {
			check(m[1], line)
		}
	}
	_, table, _ = strings.Cut(string(text), "\n## Parties that cheat")
	table, _, _ = strings.Cut(table, "\n## ")
	one, groups, _ := strings.Cut(table, "\n`go -C lab run . poisoning-groups`")
	for line := range strings.Lines(one) {
		check("poisoning", line)
	}
	check("poisoning-groups", strings.ReplaceAll(groups, "\n", " "))
	if checked < 80 {
		t.Errorf("%d intervals were found", checked)
	}
}

var experimentName = regexp.MustCompile("\\| `(thresholds|ablations)`[:,]")

var stated = regexp.MustCompile(`([+−]?\d+\.?\d*) \[(−?\d+\.?\d*), (−?\d+\.?\d*)\]`)

// rounded reports whether a figure of a page is a number to as many places.
func rounded(t *testing.T, figure string, x float64) bool {
	_, fraction, _ := strings.Cut(figure, ".")
	want, err := strconv.ParseFloat(strings.ReplaceAll(figure, "−", "-"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return math.Abs(x-want) <= 0.501*math.Pow10(-len(fraction))
}

// differences returns that of each two rows of a file in each column, in points, or in updates.
func differences(t *testing.T, name string) (all []Interval) {
	if all, found := differencesOf[name]; found {
		return all
	}
	lines := readCSV(t, keptPath(name))
	seed := slices.Index(lines[0], "seed")
	for column := seed + 1; column < len(lines[0]); column++ {
		unit := 100.0 // points
		if lines[0][column] == "updates" {
			unit = 1
		}
		values := map[string]map[string]float64{}
		for _, line := range lines[1:] {
			if x, err := strconv.ParseFloat(line[column], 64); err == nil {
				row := strings.Join(line[:seed], "|")
				if values[row] == nil {
					values[row] = map[string]float64{}
				}
				values[row][line[seed]] = unit * x
			}
		}
		for a := range values {
			for b := range values {
				var pairs []float64
				for s, x := range values[a] {
					if y, found := values[b][s]; found {
						pairs = append(pairs, x-y)
					}
				}
				if a != b && len(pairs) > 1 {
					all = append(all, interval(pairs))
				}
			}
		}
	}
	differencesOf[name] = all
	return all
}

var differencesOf = map[string][]Interval{}
