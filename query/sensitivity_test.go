package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
)

// ranges are of columns of numbers: usual ones, and such as leave little room between their ends.
var ranges = [][2]float64{{0, 80}, {-1, 1}, {18, 100}, {-3, 50}, {1e9, 1e9 + 7}, {-0x1p40, 0x1p40},
	{0, 0x1p-40}, {40, 40 + 0x1p-40}, {0x1p40 - 0x1p-13, 0x1p40}, {1.7e9, 1.7e9 + 1e-6}}

// anyJob draws a job with queries that take all of the budget, whose unit is a record or a party
// of some rows.
func anyJob(random *rand.Rand) string {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	var b strings.Builder
	fmt.Fprintf(&b, "name = \"any\"\nparties = { count = 3, rows = %d }\nprivacy = { "+
		"noise = \"discrete-gaussian\", multiplier = 2.0", 1+random.IntN(3))
	if random.IntN(3) > 0 {
		b.WriteString(`, unit = "record", records = 20`)
	}
	b.WriteString(" }\n")
	usual := random.IntN(2) == 0
	for _, name := range []string{"x", "y", "z"} {
		r := ranges[random.IntN(len(ranges))]
		if usual {
			r = ranges[random.IntN(4)]
		}
		kind := pick("number", "whole")
		if r[0] != math.Trunc(r[0]) || r[1] != math.Trunc(r[1]) {
			kind = "number"
		}
		fmt.Fprintf(&b, "[[column]]\nname = %q\ntype = %q\nrange = [%s, %s]\noutside = %q\n"+
			"missing = \"drop\"\n", name, kind, float(r[0]), float(r[1]), pick("clip", "drop"))
	}
	fmt.Fprintf(&b, "[[column]]\nname = \"c\"\ntype = \"category\"\n"+
		"categories = [\"a\", \"b\", \"d\"]\nmissing = %q\n[[column]]\nname = \"t\"\ntype = \"text\"\n"+
		"missing = \"drop\"\n", pick("drop", "category"))
	fmt.Fprintf(&b, "[[column]]\nname = \"p\"\ntype = \"number\"\nrange = [0.0, 1.0]\n"+
		"outside = \"clip\"\nmissing = \"drop\"\n")
	for i := range 1 + random.IntN(7) {
		number, other := "x", "y"
		if random.IntN(3) == 0 {
			number, other = "z", "x"
		}
		kind := pick("count", "sum", "mean", "variance", "covariance", "correlation", "histogram",
			"crosstab", "quantiles", "survival", "logrank", "evaluation", "cindex", "linear", "logistic",
			"heavy", "count", "histogram", "crosstab")
		fmt.Fprintf(&b, "[[query]]\nname = \"q%d\"\nkind = %q\n", i, kind)
		switch kind {
		case "sum", "mean", "variance", "quantiles":
			fmt.Fprintf(&b, "column = %q\n", number)
		case "covariance", "correlation":
			fmt.Fprintf(&b, "column = %q\nby = %q\n", number, other)
		case "histogram":
			fmt.Fprintf(&b, "column = %q\n", pick(number, "c"))
		case "crosstab":
			fmt.Fprintf(&b, "column = %q\nby = %q\n", number, pick(other, "c"))
		case "survival":
			fmt.Fprintf(&b, "column = %q\nevent = \"c = a\"\n", number)
		case "cindex":
			fmt.Fprintf(&b, "column = %q\nby = %q\nevent = \"c = a\"\n", number, other)
		case "evaluation":
			fmt.Fprintf(&b, "column = \"p\"\n%sevent = \"c = a\"\n", pick("", "by = \"c\"\n"))
		case "logrank":
			fmt.Fprintf(&b, "column = %q\nby = \"c\"\nevent = \"c = a\"\n", number)
		case "linear":
			fmt.Fprintf(&b, "column = %q\non = [%q]\n", number, other)
		case "logistic":
			fmt.Fprintf(&b, "on = [%q, \"c\"]\nevent = \"%s >= 1\"\n", number, other)
		case "heavy":
			b.WriteString("column = \"t\"\ntop = 2\n")
		}
		if random.IntN(2) == 0 {
			fmt.Fprintf(&b, "where = \"%s\"\n", pick("x >= 20", "c = a", "c != a and x < 30", "y != 0",
				"z > 1 and z <= 40", "c = b"))
		}
		if random.IntN(3) == 0 {
			fmt.Fprintf(&b, "share = %.3f\n", 0.01+0.12*random.Float64())
		}
	}
	return b.String()
}

func float(x float64) string {
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// anyRow draws the text of a row.
func anyRow(random *rand.Rand, columns []job.Column) string {
	var fields []string
	for _, c := range columns {
		text := []string{"", "a", "b", "d", "flu", "жук", "nineteen characters"}[random.IntN(7)]
		if c.Numeric() {
			x := c.Range[random.IntN(2)]
			if random.IntN(2) == 0 {
				x = c.Range[0] + random.Float64()*(c.Range[1]-c.Range[0])
			}
			if random.IntN(4) == 0 {
				x = []float64{0, 1, 2.5, -7, 1e300, 20, 30, 40}[random.IntN(8)]
			}
			if c.Type == "whole" {
				x = math.Round(x)
			}
			text = strconv.FormatFloat(x, 'g', -1, 64)
			if random.IntN(20) == 0 {
				text = ""
			}
		}
		fields = append(fields, text)
	}
	return strings.Join(fields, ",")
}

// A unit moves the vector by norm 1 at most, which noise is for, whatever a job asks and whatever
// rows have: a record next to others, and all that counts of a party.
func TestSensitivityOfAnyJob(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	for range 50 {
		text := anyJob(random)
		j, err := job.Parse("job.toml", []byte(text))
		if err != nil {
			continue // two conditions of one column, or shares that do not add up
		}
		p := planOf(t, text)
		for range 30 {
			csv := "x,y,z,c,t,p\n"
			for range 1 + random.IntN(4) {
				csv += anyRow(random, p.job.Column) + "\n"
			}
			rows, _, err := NewSchema(j).Read("a.csv", strings.NewReader(csv), nil)
			if err != nil {
				t.Fatal(err)
			}
			moved := mustVector(p, rows)
			if p.job.PerRecord() {
				for i, x := range mustVector(p, &Rows{values: rows.values[1:], words: rows.words}) {
					moved[i] -= x
				}
			}
			square := 0.0
			for _, x := range moved {
				square += x * x
			}
			if !(square <= 1+1e-12) {
				t.Fatalf("moved by %v:\n%s\n%s", math.Sqrt(square), text, csv)
			}
		}
	}
}
