package experiments

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"flag"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/learning"
)

// keptTable returns what an experiment makes of the file that it wrote into docs/results, with its
// findings.
func keptTable(t *testing.T, name string) *Table {
	t.Helper()
	if found := keptTables[name]; found != nil {
		return found
	}
	lines := readCSV(t, keptPath(name))
	at := slices.Index(lines[0], "seed")
	rows := map[string][]float64{}
	key := func(labels []string, seed int) string {
		return strings.Join(labels, "|") + "|" + strconv.Itoa(seed)
	}
	o := Options{source: blank}
	for _, line := range lines[1:] {
		seed, err := strconv.Atoi(line[at])
		if err != nil {
			t.Fatal(err)
		}
		o.Seeds = max(o.Seeds, seed)
		var values []float64
		for k := at + 1; k < len(line); k += 2 { // each measure is followed by its published figure
			x, err := strconv.ParseFloat(line[k], 64)
			if err != nil {
				x = math.NaN()
			}
			values = append(values, x)
		}
		rows[key(line[:at], seed)] = values
	}
	o.kept = func(labels []string, seed int) []float64 {
		found := rows[key(labels, seed)]
		delete(rows, key(labels, seed))
		return found
	}
	table, err := byName(t, name).Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) > 0 {
		t.Errorf("%s.csv has %d lines of no row of the experiment", name, len(rows))
	}
	keptTables[name] = table
	return table
}

func keptPath(name string) string {
	return filepath.Join("..", "..", "docs", "results", name+".csv")
}

func readCSV(t *testing.T, path string) [][]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

var keptTables = map[string]*Table{}

// blank are rows that nothing is read from.
func blank(string) (train, test *learning.Dataset, err error) {
	rows := func(n int) *learning.Dataset {
		d := &learning.Dataset{Features: 28 * 28, Pixels: make([]byte, n*28*28), Labels: make([]int, n)}
		for i := range n {
			d.Writers = append(d.Writers, i/10)
		}
		return d
	}
	return rows(6000), rows(100), nil
}

// Each verdict that RESULTS.md and the page of gradient alignment state is that of the rule on
// their intervals and the sizes that the papers print, which stand in the row.
func TestVerdicts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "RESULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text),
		"\n| experiment | claim | here | verdict |\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	name, checked := "", 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			t.Fatalf("a row of %d cells: %s", len(cells), line)
		}
		name = cmp.Or(strings.TrimSpace(cells[1]), name)
		checked += checkVerdicts(t, name, cells[2], cells[3], bold.FindAllStringSubmatch(cells[4], -1))
	}
	text, err = os.ReadFile(filepath.FromSlash("../../docs/gradient-alignment.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if m := resultsFile.FindStringSubmatch(line); m != nil {
			name = m[1]
		}
		claim, here := "", ""
		for _, cell := range strings.Split(line, "|") {
			if stated.MatchString(cell) {
				here += cell + ";"
			} else {
				claim += cell
			}
		}
		if words := plain.FindAllStringSubmatch(here, -1); strings.HasPrefix(line, "|") && words != nil {
			checked += checkVerdicts(t, name, claim, here, words)
		}
	}
	if checked < 140 {
		t.Errorf("%d verdicts were found", checked)
	}
}

var (
	bold        = regexp.MustCompile(`\*\*(seen|refuted|open)\*\*`)
	plain       = regexp.MustCompile(`\b(seen|refuted|open)\b`)
	signed      = regexp.MustCompile(`[+−]\d+(?:\.\d+)?`)
	resultsFile = regexp.MustCompile("`results/([a-z-]+)\\.csv`")
)

// checkVerdicts compares the verdicts of a row, one for all of its intervals or one for each and
// each size, with those of the findings, and returns how many there are.
func checkVerdicts(t *testing.T, name, claim, here string, words [][]string) int {
	t.Helper()
	sizes := signed.FindAllString(claim, -1)
	unused := slices.Clone(sizes)
	var want []Verdict
	intervals := stated.FindAllStringSubmatch(here, -1)
	if intervals == nil { // what is counted, and not compared by seeds
		return 0
	}
	for _, m := range intervals {
		f := finding(t, name, m)
		if f == nil {
			t.Errorf("%s: no finding of the experiment is %s", name, m[0])
			continue
		}
		used := map[Verdict]bool{}
		for _, size := range sizes {
			if d := f.published(t, size); d != nil {
				v := f.VerdictOf(d)
				want, used[v] = append(want, v), true
				unused = slices.DeleteFunc(unused, func(s string) bool { return s == size })
			}
		}
		if f.Published == nil && len(f.Elsewhere) == 0 {
			want = append(want, f.Verdict())
			continue
		}
		for _, d := range f.sizes() {
			if v := f.VerdictOf(d); !used[v] {
				t.Errorf("%s: %s, and a text prints %+.4f, of which the row says nothing: %s", name, m[0],
					*d, v)
			}
		}
	}
	var got []Verdict
	for _, word := range words {
		got = append(got, Verdict(word[1]))
	}
	distinct := slices.Compact(slices.Clone(want))
	if !slices.Equal(got, want) && (len(distinct) > 1 || !slices.Equal(got, distinct)) {
		t.Errorf("%s:%s|%s has the verdicts %v, and by the rule %v", name, claim, here, got, want)
	}
	if len(unused) > 0 {
		t.Errorf("%s:%s: no paper prints %v of this", name, claim, unused)
	}
	return len(want)
}

// finding returns the one whose interval a page states, with what was published if there are two;
// nil if there is none. Where no paper says anything the row asks whether the first is better.
func finding(t *testing.T, name string, stated []string) (found *Finding) {
	t.Helper()
	for _, f := range keptTable(t, name).Findings {
		d := f.Measured
		if f.Percent {
			d.Mean, d.Low, d.High = 100*d.Mean, 100*d.Low, 100*d.High
		}
		if !rounded(t, stated[1], d.Mean) || !rounded(t, stated[2], d.Low) ||
			!rounded(t, stated[3], d.High) || found != nil && f.Published == nil {
			continue
		}
		f.Expected = cmp.Or(f.Expected, 1)
		found = &f
	}
	return found
}

// sizes are all that texts print.
func (f *Finding) sizes() (all []*float64) {
	if f.Published != nil {
		all = append(all, f.Published)
	}
	for _, s := range f.Elsewhere {
		all = append(all, &s.Difference)
	}
	return all
}

// published returns the size that a page states, nil if no text has it.
func (f *Finding) published(t *testing.T, stated string) *float64 {
	unit := 1.0
	if f.Percent {
		unit = 100
	}
	for _, d := range f.sizes() {
		if rounded(t, stated, unit**d) {
			return d
		}
	}
	return nil
}

// The published figures in the files are those of the experiments; -update writes them.
func TestKeptPublished(t *testing.T) {
	for _, e := range All() {
		path := keptPath(e.Name)
		if _, err := os.Stat(path); err != nil || strings.HasPrefix(e.Name, "poisoning") {
			continue
		}
		table, lines := keptTable(t, e.Name), readCSV(t, path)
		at, changed := len(table.Labels), false
		for _, line := range lines[1:] {
			row := table.row(line[:at]...)
			for k, m := range table.Measures {
				want := ""
				if x, ok := row.Published[m.Name]; ok {
					want = strconv.FormatFloat(x, 'g', -1, 64)
				}
				if cell := &line[at+2+2*k]; *cell != want {
					*cell, changed = want, true
				}
			}
		}
		if !changed {
			continue
		}
		if !*update {
			t.Errorf("%s has other published figures than the experiment; run with -update", path)
			continue
		}
		var out bytes.Buffer
		if err := csv.NewWriter(&out).WriteAll(lines); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

var update = flag.Bool("update", false, "write what was published into docs/results")
