package experiments

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Table is the outcome of an experiment.
type Table struct {
	Name     string // of the experiment
	Title    string
	Settings []string // what was run, as sentences or lists; without full stops
	Labels   []string // the columns that tell rows apart
	Measures []Measure
	Rows     []Row
	Seeds    int // seeds that were run, from 1; 0 if nothing is drawn

	Findings []Finding
	Notes    []string // what else was found, in sentences
	Figures  []Figure
	Complete bool // whether all that was planned was done
}

// Measure is a column of numbers.
type Measure struct {
	Name    string
	Percent bool // a fraction that is printed in percent
	Digits  int  // after the point, as printed
}

// Row is one arm of an experiment.
type Row struct {
	Labels []string
	// Values holds the measures of each seed, in order; nil where the arm was not
	// run, and a NaN for what was not measured.
	Values [][]float64
	// Published holds what a paper prints, by the name of a measure, in its unit.
	Published map[string]float64
	// Elsewhere holds what other texts by the same authors print, by the name of the text.
	Elsewhere map[string]map[string]float64
}

// of returns the values of a measure that exist.
func (r *Row) of(measure int) []float64 {
	var out []float64
	for _, v := range r.Values {
		if v != nil && !math.IsNaN(v[measure]) {
			out = append(out, v[measure])
		}
	}
	return out
}

// Mean returns the mean over seeds of a measure by its index, and the standard
// deviation of the seeds, 0 for one. n is how many there are; without any the rest
// is NaN.
func (r *Row) Mean(measure int) (mean, spread float64, n int) {
	return meanAndSpread(r.of(measure))
}

// Figure is a set of lines. Names of files are made from its name.
type Figure struct {
	Name, Title string
	X, Y        string // what is on the axes
	LogX        bool
	Percent     bool // Y is a fraction that is shown in percent
	Points      bool // points and no lines
	Series      []Series
}

// Series is a line: for each seed that was run as many values as there are X.
type Series struct {
	Name string
	X    []float64
	Runs [][]float64
}

// Mean is [Row.Mean] of the line at X[i].
func (s *Series) Mean(i int) (mean, spread float64, n int) {
	var values []float64
	for _, run := range s.Runs {
		if i < len(run) && !math.IsNaN(run[i]) {
			values = append(values, run[i])
		}
	}
	return meanAndSpread(values)
}

// add appends one seed's line to the series of that name.
func (f *Figure) add(name string, x, y []float64) {
	if len(x) == 0 {
		return
	}
	i := slices.IndexFunc(f.Series, func(s Series) bool { return s.Name == name })
	if i < 0 {
		i = len(f.Series)
		f.Series = append(f.Series, Series{Name: name, X: x})
	}
	f.Series[i].Runs = append(f.Series[i].Runs, y)
}

// Finding is a comparison of two rows, seed by seed.
type Finding struct {
	Claim    string // "A less B", in words, with the measure
	Percent  bool
	Measured Interval
	// Expected is the sign of the difference that a paper reports: 1 or −1; 0 if it
	// says nothing.
	Expected  int
	Published *float64 // the difference that it prints, nil if none is known
	Elsewhere []Size   // differences that other texts by the same authors print
}

// Size is a difference that a text prints.
type Size struct {
	In         string // which text
	Difference float64
}

// Verdict states what the seeds say about an expected difference.
type Verdict string

const (
	Seen    Verdict = "seen"    // the interval lies on the expected side of 0
	Refuted Verdict = "refuted" // it does not, and the published effect is outside of it
	Open    Verdict = "open"    // it contains both 0 and the published effect, or there is none
	None    Verdict = "none"    // nothing was expected
)

// Verdict compares the interval with the sign that is expected, and with the published
// size. For an effect without a published size, any size on the expected side counts as
// published: it is refuted if the interval lies on the other side.
func (f *Finding) Verdict() Verdict { return f.VerdictOf(f.Published) }

// VerdictOf is [Finding.Verdict] for an effect of another published size, nil if it has none.
func (f *Finding) VerdictOf(size *float64) Verdict {
	low, high := f.Measured.Low*float64(f.Expected), f.Measured.High*float64(f.Expected)
	switch {
	case f.Expected == 0:
		return None
	case f.Measured.N < 2:
		return Open
	case min(low, high) > 0:
		return Seen
	case max(low, high) < 0, f.outside(size):
		return Refuted
	}
	return Open
}

// outside reports whether a published size is known and outside of the interval.
func (f *Finding) outside(size *float64) bool {
	return size != nil && (*size < f.Measured.Low || *size > f.Measured.High)
}

// String returns the finding in a sentence or two.
func (f *Finding) String() string {
	m, unit := f.Measured, ""
	number := func(x float64) string { return fmt.Sprintf("%+.4f", x) }
	if f.Percent {
		unit = " points"
		number = func(x float64) string { return fmt.Sprintf("%+.2f", x*100) }
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s%s", f.Claim, number(m.Mean), unit)
	switch {
	case m.N == 0:
		return f.Claim + ": not run."
	case m.N == 1:
		b.WriteString(", from one seed")
	default:
		fmt.Fprintf(&b, ", 95 %% interval %s to %s over %d seeds", number(m.Low), number(m.High), m.N)
	}
	if f.Published != nil {
		fmt.Fprintf(&b, "; published %s", number(*f.Published))
	}
	b.WriteString(".")
	switch f.Verdict() {
	case Seen:
		b.WriteString(" The published effect is seen")
		if f.outside(f.Published) {
			b.WriteString(", but its size is outside the interval")
		}
		b.WriteString(".")
	case Refuted:
		b.WriteString(" The published effect is refuted in this setting: ")
		if f.Published != nil {
			b.WriteString("its size is outside the interval.")
		} else {
			b.WriteString("the difference has the other sign.")
		}
	case Open:
		if m.N < 2 {
			b.WriteString(" One seed says nothing about the published effect.")
		} else {
			b.WriteString(" The published effect is open: the interval contains 0")
			if f.Published != nil {
				b.WriteString(" and the effect")
			}
			b.WriteString(".")
		}
	}
	for _, s := range f.Elsewhere {
		fmt.Fprintf(&b, " The %s has %s: %s.", s.In, number(s.Difference), f.VerdictOf(&s.Difference))
	}
	return b.String()
}

// Any reports whether anything was done.
func (t *Table) Any() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool {
		return slices.ContainsFunc(r.Values, func(v []float64) bool { return v != nil })
	})
}

// row finds a row by its labels, nil if there is none.
func (t *Table) row(labels ...string) *Row {
	i := slices.IndexFunc(t.Rows, func(r Row) bool { return slices.Equal(r.Labels, labels) })
	if i < 0 {
		return nil
	}
	return &t.Rows[i]
}

// compare adds the finding that row a less row b has the expected sign, in the
// measure of that index. If both have a published figure, so has the finding, and it
// expects the sign of their difference, whatever a text says of its own figures.
func (t *Table) compare(claim string, a, b []string, measure, expected int) {
	ra, rb := t.row(a...), t.row(b...)
	if ra == nil || rb == nil {
		return
	}
	var differences []float64
	for k := range ra.Values {
		if ra.Values[k] == nil || rb.Values[k] == nil {
			continue
		}
		if d := ra.Values[k][measure] - rb.Values[k][measure]; !math.IsNaN(d) {
			differences = append(differences, d)
		}
	}
	m := t.Measures[measure]
	f := Finding{Claim: claim + ", " + m.Name, Percent: m.Percent, Measured: interval(differences),
		Expected: expected}
	pa, oka := ra.Published[m.Name]
	pb, okb := rb.Published[m.Name]
	if expected != 0 && oka && okb {
		d := pa - pb
		f.Published = &d
		f.Expected = cmp.Compare(d, 0)
	}
	for _, text := range slices.Sorted(maps.Keys(ra.Elsewhere)) {
		pa, oka := ra.Elsewhere[text][m.Name]
		pb, okb := rb.Elsewhere[text][m.Name]
		if oka && okb {
			f.Elsewhere = append(f.Elsewhere, Size{text, pa - pb})
		}
	}
	t.Findings = append(t.Findings, f)
}
