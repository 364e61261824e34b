package job

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// This file has what follows from columns and queries, and the rules of both.

// Bins of queries that say none.
const (
	defaultBins   = 10
	mostEach      = 20 // whole numbers that have a bin each
	defaultTimes  = 36 // of curves, whose bins leave much of what is not known: 6,000 rows, epsilon 1
	defaultScores = 32 // of an evaluation
	mostTimes     = 60 // whole numbers that have a bin each in curves
	quantileBins  = 256
)

// defaultCuts are those of an evaluation that says none: an event is predicted from there on.
var defaultCuts = []float64{0.5}

// ScorePlace returns where a score from 0 to 1 is on the scale of an evaluation's bins, from 0 to
// 1: asin √score, which is finer near both ends.
func ScorePlace(score float64) float64 { return math.Asin(math.Sqrt(score)) * 2 / math.Pi }

// Score returns the score at an edge of so many bins.
func Score(edge, bins int) float64 {
	return math.Pow(math.Sin(float64(edge)/float64(bins)*math.Pi/2), 2)
}

// defaultQuantiles are those of a query that says none.
var defaultQuantiles = []float64{0.25, 0.5, 0.75}

// Asks reports whether the job asks queries of rows.
func (j *Job) Asks() bool { return len(j.Query) > 0 }

// columnNamed returns the column of a name, nil if there is none.
func (j *Job) columnNamed(name string) *Column {
	for i := range j.Column {
		if j.Column[i].Name == name {
			return &j.Column[i]
		}
	}
	return nil
}

// ColumnsOf returns the names of the columns that a query of a valid job reads, each once.
func (j *Job) ColumnsOf(q *Query) []string {
	names := append([]string{q.Column, q.By}, q.On...)
	for _, text := range []string{q.Where, q.Event} {
		conditions, _ := j.conditions(text) // of a valid job they are right
		for _, c := range conditions {
			names = append(names, c.Column)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// Numeric reports whether the values of a column are numbers.
func (c *Column) Numeric() bool { return c.Type == "number" || c.Type == "whole" }

// Words returns the categories of a column, including the one for missing values.
func (c *Column) Words() []string {
	if c.Missing == "category" {
		return append(slices.Clone(c.Categories), missingCategory)
	}
	return c.Categories
}

// missingCategory is the category of missing values, where they have one.
const missingCategory = "missing"

// Width returns the length of the range of a column of numbers; for whole numbers, how many there
// are.
func (c *Column) Width() float64 {
	if len(c.Range) != 2 {
		return 0
	}
	if c.Type == "whole" {
		return c.Range[1] - c.Range[0] + 1
	}
	return c.Range[1] - c.Range[0]
}

// cells is how many cells an axis of a table has.
func (c *Column) cells(declared int) int {
	switch {
	case c == nil:
		return 0
	case c.Type == "category":
		return len(c.Words())
	case declared == 0 && c.Type == "whole" && c.Width() <= mostEach:
		return int(c.Width())
	}
	return cmp.Or(declared, defaultBins)
}

// times is how many bins a curve over time has.
func (c *Column) times(declared int) int {
	if declared == 0 && c != nil && c.Type == "whole" && c.Width() <= mostTimes {
		return int(c.Width())
	}
	return cmp.Or(declared, defaultTimes)
}

// leaves is how many parts quantiles cut a range into.
func (c *Column) leaves(declared int) int {
	if declared == 0 && c != nil && c.Type == "whole" && c.Width() <= quantileBins {
		return max(2, 1<<bits.Len(uint(c.Width()-1)))
	}
	return cmp.Or(declared, quantileBins)
}

// fillQueries fills in what queries leave to their columns, and what of the job follows from them:
// rounds of a vector whose L2 norm is 1 for what a unit adds.
func (j *Job) fillQueries() {
	if !j.Asks() {
		return
	}
	left, open := 1.0, 0
	for _, q := range j.Query {
		left -= q.Share
		if q.Share == 0 {
			open++
		}
	}
	if left < -1e-12 { // about 1 is not to be more: shares are of what noise is for
		for i := range j.Query {
			j.Query[i].Share /= 1 - left
		}
		left = 0
	}
	for i := range j.Column {
		if c := &j.Column[i]; c.Type == "text" {
			c.Longest = cmp.Or(c.Longest, defaultWord)
		}
	}
	for i := range j.Query {
		q := &j.Query[i]
		column, by := j.columnNamed(q.Column), j.columnNamed(q.By)
		if q.Share == 0 {
			q.Share = left / float64(open)
		}
		switch q.Kind {
		case "evaluation":
			q.Bins = cmp.Or(q.Bins, defaultScores)
			if q.At == nil {
				q.At = defaultCuts
			}
		case "survival", "logrank":
			q.Bins = column.times(q.Bins)
		case "histogram", "crosstab", "cindex":
			if column != nil && column.Numeric() {
				q.Bins = column.cells(q.Bins)
			}
			if by != nil && by.Numeric() {
				q.ByBins = by.cells(q.ByBins)
			}
		case "quantiles":
			q.Bins = column.leaves(q.Bins)
			if q.At == nil {
				q.At = defaultQuantiles
			}
		case "heavy":
			q.Top = cmp.Or(q.Top, defaultTop)
		}
	}
	j.Rounds = j.queryRounds()
	j.Model.Length = int(min(j.queryNumbers(), MaxLength))
	if j.Parties.Rows == 0 {
		j.Parties.Rows = 1
		if j.PerRecord() {
			j.Parties.Rows = j.Privacy.Records
		}
	}
	if j.Noisy() {
		j.Privacy.Clip = 1
		if j.Privacy.Bits == 0 && !j.Oneshot() {
			j.Privacy.Bits = queryBits
		}
		return
	}
	j.Sum.Range = float64(j.Parties.Rows) * j.largest()
}

// largest is the most that a row adds to a coordinate of a sum without noise.
func (j *Job) largest() float64 {
	most := 1.0
	for _, q := range j.Query {
		if c := j.columnNamed(q.Column); q.Kind == "sum" && c != nil && len(c.Range) == 2 {
			most = max(most, math.Abs(c.Range[0]), math.Abs(c.Range[1]))
		}
	}
	return most
}

// queryNumbers is how many numbers the vector of all queries has.
func (j *Job) queryNumbers() (n float64) {
	for i := range j.Query {
		n += j.Query[i].numbers(j)
	}
	for _, together := range j.Together() {
		for _, i := range together.Queries {
			n -= j.Query[i].numbers(j)
		}
		n += float64(len(together.Strategy.Counts))
	}
	return n
}

// numbers is how many numbers of the vector are a query's: of a mean also the count, of a variance
// also the sum, of quantiles all levels of a binary tree, of a linear model all products of two of
// 1 and its columns, of a logistic one moments of its columns, of a model by steps the numbers that
// its fit keeps between rounds, of frequent words the signs of all bytes in each bucket. Queries
// that are answered together have others.
func (q *Query) numbers(j *Job) float64 {
	column, by := j.columnNamed(q.Column), j.columnNamed(q.By)
	switch q.Kind {
	case "mean":
		return 2
	case "variance":
		return 3
	case "covariance":
		return 4
	case "correlation":
		return 6
	case "survival":
		return 2 * float64(column.times(q.Bins))
	case "evaluation":
		return 2 * float64(cmp.Or(q.Bins, defaultScores)) * float64(max(1, by.cells(0)))
	case "cindex":
		return 2 * float64(column.cells(q.Bins)) * float64(by.cells(q.ByBins))
	case "logrank":
		return 2 * float64(column.times(q.Bins)) * float64(by.cells(0))
	case "linear":
		k := float64(len(q.On) + 2)
		return k * (k + 1) / 2
	case "logistic", "cox", "poisson":
		if j.Steps(q) {
			return j.stepNumbers(q)
		}
		return j.modelNumbers(q)
	case "histogram":
		return float64(column.cells(q.Bins))
	case "crosstab":
		return float64(column.cells(q.Bins)) * float64(by.cells(q.ByBins))
	case "quantiles":
		return float64(2*column.leaves(q.Bins) - 1)
	case "heavy":
		return q.wordNumbers(column)
	}
	return 1
}

// queries checks what goes with queries.
func (c *checker) queries() {
	if !c.Asks() {
		const why, advice = "there are no queries", "leave it out, or write [[query]]"
		c.takes(false, why, advice, "parties.rows")
		c.refuse(len(c.Column) > 0, "column", advice, "it has no effect: %s", why)
		return
	}
	for _, e := range theJob.entries {
		if e.row == nil || e.row.Required {
			continue
		}
		section, _, _ := strings.Cut(e.row.Path, ".")
		switch section {
		case "model", "training", "server", "metrics":
			c.takes(false, "queries train nothing", "leave it out", e.row.Path)
		}
	}
	for _, e := range theJob.entries {
		if path := e.path(); strings.HasPrefix(path, "world.") && path != "world.seed" &&
			path != "world.drop" {
			used := e.list != nil && e.list.len(c.Job) > 0 || e.row != nil && !e.row.zero(c.Job)
			c.refuse(used, path, "leave it out", "it has no effect: parties answer at once, of rows of "+
				"their own")
		}
	}
	c.refuse(len(c.Model.Tensor) > 0, "model.tensor", "leave it out",
		"it has no effect: queries train nothing")
	c.takes(false, "it follows from columns and queries", "leave it out", "rounds", "privacy.clip",
		"sum.range")
	c.takes(false, "queries are asked of all parties at once", "leave it out",
		"parties.per_round", "parties.participations", "parties.hidden", "sum.buffer",
		"sum.max_weight", "privacy.factorise", "privacy.clip_quantile", "privacy.clip_rate",
		"privacy.submit_after", "privacy.sign_share")
	c.takes(false, "a row counts by itself", "leave it out", "privacy.group")
	c.refuse(c.Noisy() && c.Privacy.Noise != "discrete-gaussian", "privacy.noise",
		"use discrete-gaussian", "intervals of answers assume normal noise")
	c.refuse(c.PerRecord() && c.Privacy.Records > 0 && c.Parties.Rows > c.Privacy.Records,
		"parties.rows", "write less", "all parties together have %d records", c.Privacy.Records)
	c.columns()
	names := map[string]bool{}
	given, open := 0.0, 0
	for i := range c.Query {
		q, at := &c.Query[i], fmt.Sprintf("query.%d", i)
		c.refuse(names[q.Name], at+".name", "use another", "%q is taken", q.Name)
		names[q.Name] = true
		c.query(q, at)
		if given += q.Share; q.Share == 0 {
			open++
		}
	}
	const about = 1e-9 // to 1, of shares such as three of 0.3333333333
	c.refuse(given > 1+about || open > 0 && given > 1-about, "query", "write smaller shares",
		"the shares of the budget that are given add up to %v", given)
	c.refuse(open == 0 && given < 1-about, "query", "leave one out, which takes the rest",
		"the shares of the budget add up to %v and should add up to 1", given)
	c.refuse(c.queryNumbers() > maxQueryNumbers, "query",
		"use fewer bins, or ask for fewer or shorter texts",
		"the answers have %.0f numbers, more than %d", c.queryNumbers(), maxQueryNumbers)
}

// maxQueryNumbers is the most numbers that all queries have together.
const maxQueryNumbers = 1 << 22

// columns checks the columns.
func (c *checker) columns() {
	names := map[string]bool{}
	for i := range c.Column {
		column, at := &c.Column[i], fmt.Sprintf("column.%d", i)
		c.refuse(names[column.Name], at+".name", "use another", "%q is taken", column.Name)
		names[column.Name] = true
		if column.Numeric() {
			r := column.Range
			const advice = "write the least and the greatest, as in [18, 100]"
			c.refuse(len(r) != 2, at+".range", advice, "noise hides only what is bounded")
			c.refuse(len(r) == 2 && !(r[0] < r[1]), at+".range", advice,
				"the first number is not below the second")
			c.refuse(len(r) == 2 && !(math.Abs(r[0]) <= maxNumber && math.Abs(r[1]) <= maxNumber),
				at+".range", "use another unit", "numbers above 2^40 leave no room for a sum")
			c.refuse(len(r) == 2 && r[0] < r[1] && r[1]-r[0] < leastRange, at+".range",
				"use another unit", "a range of less than 2^-40 is not to be divided")
			c.refuse(column.Type == "whole" && len(r) == 2 && (r[0] != math.Trunc(r[0]) ||
				r[1] != math.Trunc(r[1])), at+".range", "write whole numbers",
				"it bounds whole numbers")
			c.refuse(column.Categories != nil, at+".categories", "leave it out",
				"it has no effect: values are numbers")
			c.refuse(column.Missing == "category", at+".missing", `write "drop" or "refuse"`,
				"numbers have no category")
			c.refuse(column.Longest > 0, at+".longest", "leave it out",
				"it has no effect: values are numbers")
			continue
		}
		if column.Type == "text" {
			c.text(column, at)
			continue
		}
		c.refuse(column.Longest > 0, at+".longest", "leave it out",
			"it has no effect: all words are known")
		c.refuse(len(column.Categories) == 0, at+".categories", `list them, as in ["F", "M"]`,
			"nothing says which categories there are")
		c.refuse(column.Range != nil, at+".range", "leave it out", "it has no effect: values are words")
		c.refuse(column.Outside != "", at+".outside", "leave it out",
			"it has no effect: values are words")
		c.refuse(column.Unit != "", at+".unit", "leave it out", "it has no effect: values are words")
		words := slices.Sorted(slices.Values(column.Words()))
		c.refuse(len(slices.Compact(words)) != len(column.Words()), at+".categories", "list each once",
			"one is listed twice")
		c.refuse(len(column.Categories) > maxBins, at+".categories", "list fewer",
			"there are more than %d", maxBins)
		for _, blank := range column.Blank {
			c.refuse(slices.Contains(column.Categories, blank), at+".blank", "leave one of the two out",
				"%q is a category too", blank)
		}
	}
}

// maxNumber is the largest bound of a column's numbers, and leastRange how far both are apart at
// least: quotients and squares of less underflow.
const (
	maxNumber  = 1 << 40
	leastRange = 0x1p-40
)

// query checks a query, at its path.
func (c *checker) query(q *Query, at string) {
	refuse := func(wrong bool, field, advice, format string, a ...any) {
		c.refuse(wrong, at+"."+field, advice, format, a...)
	}
	column, by := c.columnNamed(q.Column), c.columnNamed(q.By)
	refuse(q.Kind == "count" && q.Column != "", "column", "leave it out, or write where",
		"a count counts rows, not a column")
	logistic := q.Kind == "logistic"
	refuse(logistic && q.Column != "", "column", "leave it out, and write event",
		"a logistic model predicts an event")
	refuse(q.Kind != "count" && !logistic && q.Column == "", "column", "name a column",
		"it is missing: a %s needs a column", q.Kind)
	none := q.Column != "" && column == nil
	refuse(none, "column", c.columnsThere(none), "there is no column %q",
		q.Column)
	tabled, heavy := q.Kind == "histogram" || q.Kind == "crosstab", q.Kind == "heavy"
	paired := q.Kind == "cindex"
	free := column != nil && column.Type == "text"
	c.heavy(q, column, at)
	numeric := column != nil && column.Numeric()
	refuse(column != nil && q.Kind != "count" && !logistic && !tabled && !heavy && !free && !numeric,
		"column",
		"name a column of numbers, or ask for a histogram", "%q has words, which have no %s", q.Column,
		q.Kind)
	ranked, scored := q.Kind == "logrank", q.Kind == "evaluation"
	timed := q.Kind == "survival" || ranked || paired || q.Kind == "cox"
	refuse(scored && column != nil && (column.Type != "number" || len(column.Range) == 2 &&
		(column.Range[0] != 0 || column.Range[1] != 1)), "column",
		`name a column of type "number" whose range is [0, 1]`, "%q has no probabilities", q.Column)
	joint := q.Kind == "covariance" || q.Kind == "correlation"
	strata := q.Kind == "cox"
	crossed := q.Kind == "crosstab" || joint || ranked || paired
	refuse(!crossed && !scored && !strata && q.By != "", "by",
		`leave it out, or write kind = "crosstab"`, "it does not take two columns")
	refuse(crossed && q.By == "", "by", "name the other column",
		"it is missing")
	none = q.By != "" && (by == nil || q.By == q.Column)
	refuse(none, "by", c.columnsThere(none),
		"there is no other column %q", q.By)
	refuse((joint || paired) && by != nil && !by.Numeric(), "by", "name a column of numbers",
		"%q has words, which have no %s", q.By, q.Kind)
	refuse((ranked || scored || strata) && by != nil && by.Type != "category", "by",
		"name a column of categories", "%q has no groups", q.By)
	c.predictors(q, at)
	_, wrong := c.Event(q)
	refuse(scored && strings.TrimSpace(q.Event) == "", "event",
		`write it as in "status = dead"`, "it is missing: scores are of how likely it is")
	refuse(timed && strings.TrimSpace(q.Event) == "", "event",
		`write it as in "status = dead"`, "it is missing: rows survive until it comes")
	refuse(logistic && strings.TrimSpace(q.Event) == "", "event",
		`write it as in "status = dead"`, "it is missing: the model predicts how likely it is")
	refuse(!timed && !logistic && !scored && q.Event != "", "event",
		`leave it out, or write kind = "survival"`, "it applies to survival curves, log-rank tests, "+
			"evaluations, C-indices, Cox and logistic models only")
	refuse(wrong != nil, "event", `write it as in "status = dead"`, "%v", wrong)
	c.bins(q.Bins, at+".bins",
		numeric && (tabled || q.Kind == "quantiles" || timed && !strata || scored),
		column, q.Kind == "quantiles")
	c.bins(q.ByBins, at+".by_bins", (q.Kind == "crosstab" || paired) && by != nil && by.Numeric(), by,
		false)
	refuse(paired && q.numbers(c.Job) > mostPaired, "bins", "use fewer bins, such as 10 and 10",
		"the bins of times and scores have %.0f numbers, more than %d, and each pair of them counts",
		q.numbers(c.Job), mostPaired)
	refuse(q.Kind != "quantiles" && !scored && q.At != nil, "at",
		`leave it out, or write kind = "quantiles"`, "it applies to quantiles and evaluations only")
	refuse(q.At != nil && (len(q.At) > 100 || !slices.IsSorted(q.At) ||
		len(slices.Compact(slices.Clone(q.At))) != len(q.At)), "at",
		"write up to 100 in ascending order, each once", "they are not in order")
	refuse(q.Share > 0 && !c.Noisy(), "share", "leave it out, or name privacy.noise",
		"it has no effect: there is no budget to divide")
	_, err := c.Conditions(q)
	refuse(err != nil, "where", `write it as in "age >= 65 and sex = F"`, "%v", err)
}

// mostPaired is how many numbers a C-index has, at most: it compares every two.
const mostPaired = 4096

// mostPredictors is how many columns a model has, at most.
const mostPredictors = 20

// predictors checks the columns of a model.
func (c *checker) predictors(q *Query, at string) {
	at += ".on"
	model := q.Kind == "linear" || q.Kind == "logistic" || c.Steps(q)
	c.refuse(!model && q.On != nil, at, `leave it out, or write kind = "linear"`,
		"it applies to models only")
	c.refuse(model && len(q.On) == 0, at, "list the columns that it predicts from",
		"it is missing")
	if len(q.On) > mostPredictors {
		c.refuse(true, at, "list fewer", "there are more than %d", mostPredictors)
		return
	}
	c.steps(q, strings.TrimSuffix(at, ".on"))
	seen := map[string]bool{q.Column: true}
	for _, name := range q.On {
		column := c.columnNamed(name)
		c.refuse(column == nil, at, c.columnsThere(column == nil), "there is no column %q", name)
		c.refuse(column != nil && column.Type == "text", at, "list columns of numbers",
			"%q has texts that nobody has listed", name)
		c.refuse(q.Kind == "linear" && column != nil && column.Type == "category", at,
			"list columns of numbers", "%q has words", name)
		c.refuse(column != nil && seen[name], at, "list others, each once",
			"%q is listed twice, or the model predicts it", name)
		seen[name] = true
	}
}

// bins checks how many bins there are of a column.
func (c *checker) bins(n int, at string, use bool, column *Column, tree bool) {
	c.refuse(n > 0 && !use, at, "leave it out", "it has no effect: no range of numbers is cut")
	c.refuse(n > 0 && use && tree && n&(n-1) != 0, at, "write a power of two, such as 256",
		"quantiles halve a range repeatedly")
	c.refuse(n > 0 && use && !tree && column.Type == "whole" && float64(n) > column.Width(), at,
		"use fewer", "there are fewer whole numbers in the range")
}

// columnsThere says which columns there are, where a name is wrong.
func (c *checker) columnsThere(wrong bool) string {
	if !wrong {
		return ""
	}
	if len(c.Column) > 20 {
		return fmt.Sprintf("name one of the %d columns", len(c.Column))
	}
	var names []string
	for i := range c.Column {
		names = append(names, c.Column[i].Name)
	}
	if len(names) == 0 {
		return "describe it in a [[column]]"
	}
	return fmt.Sprintf("name one of %q", names)
}
