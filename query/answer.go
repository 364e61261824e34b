package query

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/hushsum/hushsum/accounting"
)

// z95 is the two-sided normal quantile of 95 %.
const z95 = 1.959963984540054

// Cell is a number with its 95 % interval.
type Cell struct {
	Label     string // of a bin, or of a quantile such as 0.5; empty: there is one number
	By        string // of a crosstab's other column
	Value     float64
	Low, High float64
	// Unknown says why the number cannot be known, and what to do about it; empty: it is known.
	// Value is then NaN, and the interval all that is possible, without ends where nothing is known.
	Unknown string
}

// hides returns a number that cannot be known, since noise hides what it depends on, or since rows
// do not say it.
func hides(what string, reach float64, label string, low, high float64) Cell {
	why := "noise hides " + what + "; ask it alone, with a larger epsilon or of more rows, or " +
		"declare narrower ranges"
	if reach == 0 {
		why = "the rows do not say " + what
	}
	return Cell{Label: label, Value: math.NaN(), Low: low, High: high, Unknown: why}
}

// within has the interval hold the value, and both be inside of what can be.
func (c Cell) within(least, most float64) Cell {
	c.Value = min(max(c.Value, least), most)
	c.Low = min(max(c.Low, least), c.Value)
	c.High = max(min(c.High, most), c.Value)
	return c
}

// unlessAll returns a number that cannot be known if the interval has all that is possible.
func (c Cell) unlessAll(least, most, reach float64) Cell {
	if c.Low > least || c.High < most || least == most {
		return c
	}
	return hides("where it is", reach, c.Label, least, most)
}

// Answer holds the answer of all parties' rows to a query.
type Answer struct {
	Name, Kind string
	Unit       string // of the numbers: the column's, its square, or rows
	// Cells holds one number for a count, a sum, a mean, a variance, a covariance or a correlation;
	// for frequent words one for each that comes out, the most frequent first; for a histogram one
	// for each bin; for quantiles one for each; for a crosstab one for each pair of bins, by rows;
	// for a survival curve one for the end of each bin; for a log-rank test one for each group, the
	// events that came to it less those that would have if groups did not differ; and for a model the
	// intercept and then the slopes, in the order of its columns, for a logistic one as logarithms of
	// odds, with one for each word of a column but the first, relative to that; of Cox's model slopes
	// are logarithms of ratios of hazards, without an intercept, and of a Poisson model of rates.
	Cells []Cell
	// Errors belong to a model and to a log-rank test: the standard errors of cells as estimates for
	// the population from which the rows were drawn, by chance or what the model does not explain,
	// and by noise. Intervals are those of the rows themselves.
	Errors []float64
	// Tables belong to an evaluation, one for each group.
	Tables []ScoreTable
	// Population belongs to a survival curve, an evaluation and a C-index, and Grid to the first
	// and the last. Population has 95 % intervals for the population from which the rows were
	// drawn. Grid says how much of the width of each interval of a curve is due to bins alone,
	// whatever the noise: nobody is told in which order rows leave within one. Of a C-index, whose
	// interval is about rounded times and scores, it is the width between the least and the
	// greatest index that rows may have in these bins. More bins make it smaller, and it is 0
	// where each bin is one whole number.
	Population [][2]float64
	Grid       []float64
	// Test belongs to a log-rank test.
	Test *Test
	// Margins belong to a crosstab: those of its column, and those of the other.
	Margins [2][]Cell
	// Spends bounds what the query would spend if it were the only one, with this noise; nil without.
	// All together spend what [Plan.Spent] returns, which is less than the sum. Of values
	// that are made consistent with other queries' only that is a bound, even of one of them.
	Spends *accounting.Claim
}

// MarshalJSON returns an object with name, kind, value, interval, spends (null without noise) and
// unit. A number that cannot be known is null, as are ends that an interval does not have, and
// unknown says why, if any is so: a text, or in a list one for each number, empty where it is
// known. A survival curve also has population_interval and grid, a log-rank test has test. A
// histogram, quantiles, curves, tests, models and frequent words have lists of values and
// intervals, with their labels; a crosstab has lists of lists, the labels of both columns, and its
// margins as two histograms.
func (a Answer) MarshalJSON() ([]byte, error) {
	type object = map[string]any
	interval := func(c Cell) [2]any { return [2]any{finite(c.Low), finite(c.High)} }
	list := func(cells []Cell, label func(Cell) string) (values, intervals []any, labels []string) {
		for _, c := range cells {
			values, intervals = append(values, finite(c.Value)), append(intervals, interval(c))
			labels = append(labels, label(c))
		}
		return values, intervals, labels
	}
	first := func(c Cell) string { return c.Label }
	out := object{"name": a.Name, "kind": a.Kind, "unit": a.Unit, "spends": a.Spends}
	switch form(a.Kind) {
	case formList:
		values, intervals, labels := list(a.Cells, first)
		if len(a.Cells) == 0 { // no word comes out: lists without any
			values, intervals, labels = []any{}, []any{}, []string{}
		}
		out["value"], out["interval"], out["labels"] = values, intervals, labels
		var why []string
		for _, c := range a.Cells {
			why = append(why, c.Unknown)
		}
		if slices.ContainsFunc(why, func(s string) bool { return s != "" }) {
			out["unknown"] = why
		}
	case formTable:
		var values, intervals, margins []any
		labels := make([][]string, 2)
		_, _, labels[0] = list(a.Margins[0], first)
		_, _, labels[1] = list(a.Margins[1], first)
		width := len(a.Margins[1])
		for from := 0; from < len(a.Cells); from += width {
			v, i, _ := list(a.Cells[from:from+width], first)
			values, intervals = append(values, v), append(intervals, i)
		}
		for _, m := range a.Margins {
			v, i, _ := list(m, first)
			margins = append(margins, object{"value": v, "interval": i})
		}
		out["value"], out["interval"], out["labels"], out["margins"] = values, intervals, labels, margins
	default:
		c := a.Cells[0]
		if out["value"], out["interval"] = finite(c.Value), interval(c); c.Unknown != "" {
			out["unknown"] = c.Unknown
		}
	}
	if a.Errors != nil {
		var errors []any
		for _, x := range a.Errors {
			errors = append(errors, finite(x))
		}
		out["standard_error"] = errors
	}
	if a.Test != nil {
		out["test"] = a.Test
	}
	if a.Population != nil {
		var ends []any
		for _, i := range a.Population {
			ends = append(ends, interval(Cell{Low: i[0], High: i[1]}))
		}
		out["population_interval"] = ends
	}
	if a.Grid != nil {
		out["grid"] = a.Grid
	}
	if a.Tables != nil {
		out["tables"] = a.Tables
	}
	return json.Marshal(out)
}

// finite returns a number, or nil in place of one that JSON does not have.
func finite(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return x
}

// The forms of the numbers of an answer.
const (
	formNumber = iota
	formList   // with labels
	formTable  // with labels and margins
)

// form returns that of the answers of a kind.
func form(kind string) int {
	switch kind {
	case "histogram", "quantiles", "survival", "logrank", "evaluation", "linear", "logistic", "cox",
		"poisson", "heavy":
		return formList
	case "crosstab":
		return formTable
	}
	return formNumber
}

// fits fails if a mean does not belong to this plan.
func (p *Plan) fits(mean []float64, parties int) error {
	all := p.settled.Roster().Len()
	if len(mean) != p.length || parties < 1 || parties > all {
		return fmt.Errorf("%w: a mean of %d numbers over %d parties, of %d and %d", ErrConfig,
			len(mean), parties, p.length, all)
	}
	return nil
}

// over returns what turns a mean of so many parties back into their sum.
func (p *Plan) over(parties int) float64 {
	if p.job.PerRecord() {
		return float64(p.job.Batch())
	}
	return float64(parties)
}

// Answers reads the mean of the given number of parties' vectors, as the job's sum is decoded; with
// several rounds the model that [Plan.Next] has made of the last. It fails with [ErrConfig] if the
// mean does not belong to this plan, or rounds are missing.
func (p *Plan) Answers(mean []float64, parties int) ([]Answer, error) {
	if err := p.fits(mean, parties); err != nil {
		return nil, err
	}
	all := p.settled.Roster().Len()
	if rounds := p.done(mean); p.Rounds() > 1 {
		if rounds != p.Rounds() {
			return nil, fmt.Errorf("%w: %d rounds of %d are done", ErrConfig, rounds, p.Rounds())
		}
		if parties = p.inFirst(mean); parties < 1 || parties > all {
			return nil, fmt.Errorf("%w: %d parties were in the first round, of %d", ErrConfig, parties, all)
		}
	}
	over := p.over(parties)
	s := &sum{plan: p, values: make([]float64, len(mean)), deviation: p.deviation(parties)}
	for i, x := range mean {
		s.values[i] = x * over
	}
	s.absent = float64(all-parties) * float64(p.job.Parties.Rows)
	if p.job.PerRecord() {
		s.absent = min(s.absent, float64(p.job.Privacy.Records))
	}
	cells := map[*together]*found{}
	for _, t := range p.groups {
		cells[t] = s.find(t)
	}
	var out []Answer
	for i := range p.asks {
		a := &p.asks[i]
		var answer Answer
		if a.group != nil {
			answer = s.together(a, cells[a.group])
		} else if a.steps != nil {
			answer = s.steps(a, fitOf(mean[a.from:a.from+a.length], a.steps.size))
		} else {
			answer = s.answer(a)
		}
		answer.Name, answer.Kind, answer.Unit = a.Name, a.Kind, a.unit()
		answer.Spends = a.spends
		out = append(out, answer)
	}
	return out, nil
}

// unit is that of a query's numbers.
func (a *ask) unit() string {
	switch {
	case a.Kind == "count" || a.Kind == "histogram" || a.Kind == "crosstab" ||
		a.Kind == "heavy":
		return "rows"
	case a.Kind == "variance" && a.column.Unit != "":
		return a.column.Unit + "²"
	case a.Kind == "covariance" && a.column.Unit != "" && a.by.Unit != "":
		return a.column.Unit + " · " + a.by.Unit
	case a.Kind == "survival":
		return "share of rows"
	case a.Kind == "logrank":
		return "events"
	case a.Kind == "evaluation" || a.Kind == "cindex":
		return ""
	case a.Kind == "correlation" || a.Kind == "covariance" || a.Kind == "linear":
		return ""
	case a.Kind == "logistic":
		return "log-odds"
	case a.Kind == "cox":
		return "log-hazard"
	case a.Kind == "poisson":
		return "log-rate"
	}
	return a.column.Unit
}

// deviation returns the standard deviation of a coordinate of the sum of the given number of
// parties: by noise and by rounding, of which a party's is 1/4 at most in squares of integers.
func (p *Plan) deviation(parties int) float64 {
	n := float64(parties)
	if m := p.settled.Mechanism(); m != nil {
		return math.Hypot(m.SumStdDev(parties), math.Sqrt(n/4)/m.Encoder.Scale)
	}
	return math.Sqrt(n/12) * math.Ldexp(1, -p.job.Sum.FractionBits)
}

// sum is a decoded sum.
type sum struct {
	plan      *Plan
	values    []float64
	deviation float64 // of each
	absent    float64 // most rows of parties that are missing
}

// of returns a query's part of the sum, in rows or in the unit of its column, and the deviation of
// its numbers.
func (s *sum) of(a *ask) (values []float64, deviation float64) {
	for _, x := range s.values[a.from : a.from+a.length] {
		if x /= a.scale; a.exact {
			x = math.Round(x)
		}
		values = append(values, x)
	}
	if !a.exact {
		deviation = s.deviation / a.scale
	}
	return values, deviation
}

func (s *sum) answer(a *ask) Answer {
	x, deviation := s.of(a)
	reach := z95 * deviation
	switch a.Kind {
	case "sum":
		least, most := s.absent*min(0, a.column.Range[0]), s.absent*max(0, a.column.Range[1])
		return Answer{Cells: []Cell{{Value: x[0], Low: x[0] - reach + least, High: x[0] + reach + most}}}
	case "mean":
		return Answer{Cells: []Cell{s.mean(a, x, reach).unlessAll(a.column.Range[0],
			a.column.Range[1], reach)}}
	case "variance":
		return Answer{Cells: []Cell{s.variance(a, x, reach).unlessAll(0,
			a.column.half()*a.column.half(), reach)}}
	case "covariance":
		most := a.column.half() * a.by.half()
		return Answer{Cells: []Cell{s.covariance(a, x, reach).unlessAll(-most, most, reach)}}
	case "correlation":
		return Answer{Cells: []Cell{s.correlation(a, x, reach).unlessAll(-1, 1, reach)}}
	case "survival":
		return s.survival(a, x, reach)
	case "logrank":
		return s.logrank(a, x, deviation)
	case "evaluation":
		return s.evaluation(a, x, deviation)
	case "cindex":
		return s.concordance(a, x, deviation)
	case "linear":
		return s.linear(a, x, reach)
	case "logistic":
		return s.logistic(a, x, deviation)
	case "histogram":
		return Answer{Cells: s.counts(a, x, reach)}
	case "crosstab":
		return s.crosstab(a, x, reach)
	case "heavy":
		return Answer{Cells: s.heavy(a, x, deviation)}
	case "quantiles":
		return Answer{Cells: s.quantiles(a, a.tree(x, deviation))}
	}
	return Answer{Cells: []Cell{s.count(x[0], x[0], reach)}}
}

// most is how many rows there can be. With the record unit that is known about only.
func (s *sum) most() float64 {
	if s.plan.job.PerRecord() {
		return math.Inf(1)
	}
	return float64(s.plan.Rows())
}

// count is a number of rows, with a value that is consistent with others.
func (s *sum) count(noisy, value, reach float64) Cell {
	c := Cell{Value: value, Low: noisy - reach, High: max(0, noisy+reach) + s.absent}
	return c.within(0, s.most())
}

// counts are those of bins.
func (s *sum) counts(a *ask, noisy []float64, reach float64) (cells []Cell) {
	for i, value := range projected(noisy, s.most()) {
		c := s.count(noisy[i], value, reach)
		c.Label = a.column.label(i)
		cells = append(cells, c)
	}
	return cells
}

func (s *sum) crosstab(a *ask, noisy []float64, reach float64) (out Answer) {
	width := a.by.bins
	values := projected(noisy, s.most())
	// Of both margins the noisy and the consistent counts.
	lines, columns := make([][2]float64, a.column.bins), make([][2]float64, width)
	for i, value := range values {
		c := s.count(noisy[i], value, reach)
		c.Label, c.By = a.column.label(i/width), a.by.label(i%width)
		out.Cells = append(out.Cells, c)
		for _, m := range []*[2]float64{&lines[i/width], &columns[i%width]} {
			m[0] += noisy[i]
			m[1] += value
		}
	}
	for i, m := range lines {
		c := s.count(m[0], m[1], reach*math.Sqrt(float64(width)))
		c.Label = a.column.label(i)
		out.Margins[0] = append(out.Margins[0], c)
	}
	for i, m := range columns {
		c := s.count(m[0], m[1], reach*math.Sqrt(float64(a.column.bins)))
		c.Label = a.by.label(i)
		out.Margins[1] = append(out.Margins[1], c)
	}
	return out
}
