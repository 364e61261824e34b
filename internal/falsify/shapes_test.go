package falsify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// shapes draw valid jobs, or nearly, of each kind that there is.
var shapes = []func(random *rand.Rand) draft{
	vectors, weighted, sampled, sparse, dealt, oneMessage, buffered, trained, masked, quantiles,
	hidden, banded, byRecord, byRecord, sumsByRecord, measured, questions, questions, questions,
}

// pick draws one of some values.
func pick[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// log draws a number between two, each size as often as another.
func log(random *rand.Rand, lo, hi float64) float64 {
	x := lo * math.Exp(random.Float64()*math.Log(hi/lo))
	short, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64) // to be read
	return short
}

// begun has what all jobs have: some parties of whom a few may be missing or collude, and noise.
func begun(random *rand.Rand, least, most int) draft {
	var d draft
	n := least + random.IntN(most-least+1)
	d.put("name", "a")
	d.put("rounds", 1+random.IntN(6))
	d.put("parties.count", n)
	d.put("sum.adversary", pick(random, "cheating", "cheating", "curious", "semi-malicious"))
	if random.IntN(3) > 0 {
		d.put("parties.drop_out", pick(random, 0.1, 0.2, 0.25, 0.3, 0.34, 0.4))
	} else {
		d.put("sum.recovery", pick(random, true, false))
	}
	if random.IntN(2) > 0 {
		d.put("parties.colluders", random.IntN(1+n/5))
	}
	noisy(random, &d)
	return d
}

// noisy has a job protect its parties.
func noisy(random *rand.Rand, d *draft) {
	d.put("privacy.noise", pick(random, "discrete-gaussian", "discrete-gaussian", "skellam",
		"discrete-laplace"))
	d.put("privacy.clip", pick(random, 1.0, 1.0, 0.001, 7.5, log(random, 1e-6, 1e6)))
	if random.IntN(4) == 0 { // what is calibrated takes longer
		d.put("privacy.epsilon", log(random, 0.3, 12))
	} else {
		d.put("privacy.multiplier", log(random, 0.2, 20))
	}
	if random.IntN(4) == 0 {
		d.put("privacy.bits", pick(random, 14, 16, 20, 24, 28, 40))
	}
	if random.IntN(3) == 0 {
		d.put("privacy.delta", pick(random, 1e-3, 1e-6, 1e-9))
	}
}

func lengthOf(random *rand.Rand) int { return pick(random, 1, 2, 3, 4, 5, 8, 13, 32, 64, 100, 300) }

func vectors(random *rand.Rand) draft {
	d := begun(random, 3, 24)
	d.put("model.length", lengthOf(random))
	return d
}

func weighted(random *rand.Rand) draft {
	d := vectors(random)
	d.put("sum.max_weight", pick(random, 1, 2, 10, 1000))
	return d
}

func sampled(random *rand.Rand) draft {
	d := begun(random, 8, 30)
	d.put("model.length", lengthOf(random))
	d.put("parties.per_round", 4+random.IntN(8))
	d.put("rounds", 2+random.IntN(10))
	if random.IntN(2) == 0 {
		d.put("parties.participations", 1+random.IntN(6))
	}
	return d
}

func sparse(random *rand.Rand) draft {
	d := begun(random, 40, mostParties)
	d.put("model.length", pick(random, 1, 4, 30))
	d.put("sum.adversary", pick(random, "curious", "curious", "curious", "semi-malicious"))
	d.put("sum.sparse", true)
	d.put("parties.drop_out", pick(random, 0.05, 0.1, 0.2, 0.3, 0.4))
	d.put("parties.colluders", random.IntN(5))
	if random.IntN(3) == 0 {
		d.put("sum.degree", 2*(1+random.IntN(15)))
	}
	return d
}

func oneMessage(random *rand.Rand) draft {
	d := begun(random, 5, 24)
	d.drop("sum.adversary")
	d.drop("sum.recovery")
	d.put("sum.protocol", "oneshot")
	d.put("privacy.noise", "discrete-gaussian")
	d.put("model.length", lengthOf(random))
	d.put("sum.members", pick(random, 4, 5, 7, 10, 13, 16))
	if random.IntN(2) == 0 {
		faults := 1 + random.IntN(4)
		d.put("sum.faults", faults)
		if random.IntN(2) == 0 {
			d.put("sum.colluders", faults+random.IntN(3))
		}
	}
	d.put("sum.covered", random.IntN(2) == 0)
	d.put("sum.bounded", random.IntN(4) == 0)
	return d
}

func dealt(random *rand.Rand) draft {
	d := oneMessage(random)
	d.put("privacy.noise_by", "committee")
	return d
}

func buffered(random *rand.Rand) draft {
	d := oneMessage(random)
	d.put("sum.buffer", 3+random.IntN(6))
	d.put("sum.stale", 1+random.IntN(9))
	d.put("rounds", 3+random.IntN(9))
	d.put("parties.participations", 2+random.IntN(5))
	return d
}

func trained(random *rand.Rand) draft {
	d := begun(random, 3, 12)
	d.put("model.name", pick(random, "logistic", "softmax", "mlp:3", "mlp:4,3"))
	d.put("model.features", 1+random.IntN(9))
	d.put("model.classes", 2)
	if random.IntN(3) == 0 {
		d.put("sum.max_weight", pick(random, 1, 5, 100))
	}
	if random.IntN(3) == 0 {
		d.put("training.rule", "fedprox")
	}
	if random.IntN(3) == 0 {
		d.put("training.steps", 1+random.IntN(3))
	}
	return d
}

func masked(random *rand.Rand) draft {
	d := trained(random)
	d.put("privacy.noise", pick(random, "skellam", "discrete-laplace", "discrete-gaussian"))
	d.put("privacy.multiplier", log(random, 2, 30))
	d.drop("privacy.epsilon")
	d.put("training.mask", pick(random, "soft", "hard"))
	if random.IntN(2) == 0 {
		d.put("privacy.sign_share", pick(random, 0.1, 0.5, 0.9))
	}
	return d
}

func quantiles(random *rand.Rand) draft {
	d := trained(random)
	d.put("privacy.noise", pick(random, "skellam", "discrete-laplace", "discrete-gaussian"))
	d.put("privacy.clip_quantile", pick(random, 0.3, 0.5, 0.9))
	return d
}

func hidden(random *rand.Rand) draft {
	d := pick(random, vectors, trained, weighted)(random)
	d.put("parties.hidden", pick(random, 0.01, 0.1, 0.5, 0.9, 1.0))
	d.put("privacy.submit_after", "2s")
	return d
}

func banded(random *rand.Rand) draft {
	d := trained(random)
	d.drop("sum.max_weight")
	d.put("privacy.noise", pick(random, "discrete-gaussian", "skellam"))
	d.put("privacy.factorise", 2+random.IntN(3))
	d.put("rounds", 4+random.IntN(8))
	return d
}

// recorded has the noise of a job hide records.
func recorded(random *rand.Rand, d *draft) {
	records := pick(random, 3, 8, 20, 60, 200)
	d.put("privacy.unit", "record")
	d.put("privacy.records", records)
	d.put("privacy.submit_after", "2s")
	if random.IntN(3) > 0 {
		d.put("training.batch", 1+random.IntN(records))
	}
	if random.IntN(4) == 0 {
		d.put("privacy.group", "patient")
	}
	d.put("privacy.multiplier", log(random, 0.2, 20))
	if random.IntN(6) > 0 {
		d.drop("privacy.epsilon")
	}
	d.drop("training.rule")
	d.drop("training.steps")
	d.drop("sum.max_weight")
}

func byRecord(random *rand.Rand) draft {
	d := trained(random)
	recorded(random, &d)
	if random.IntN(3) == 0 {
		d.put("training.lambda", 0.1)
	}
	return d
}

func sumsByRecord(random *rand.Rand) draft {
	d := vectors(random)
	recorded(random, &d)
	return d
}

// measured is a model of tensors that programs train, with metrics.
func measured(random *rand.Rand) draft {
	d := begun(random, 3, 12)
	for i := range 1 + random.IntN(3) {
		d.lists = append(d.lists, fmt.Sprintf("[[model.tensor]]\nname = \"w%d\"\nshape = [%d, %d]\n", i,
			1+random.IntN(5), 1+random.IntN(9)))
	}
	d.put("metrics.share", pick(random, 0.05, 0.3, 0.9))
	return d
}

// ranges are of columns of numbers: usual ones, and such as leave little room between their ends.
var ranges = [][2]float64{{0, 80}, {-1, 1}, {18, 100}, {-3, 50}, {1e9, 1e9 + 7},
	{-0x1p40, 0x1p40}, {0, 0x1p-40}, {40, 40 + 0x1p-40}, {0x1p40 - 0x1p-13, 0x1p40},
	{1.7e9, 1.7e9 + 1e-6}}

// questions are a job with queries.
func questions(random *rand.Rand) draft {
	d := begun(random, 3, 10)
	d.drop("rounds")
	d.drop("privacy.clip")
	d.drop("privacy.bits")
	d.put("privacy.noise", "discrete-gaussian")
	d.put("parties.rows", 1+random.IntN(4))
	if random.IntN(3) > 0 {
		d.put("privacy.unit", "record")
		d.put("privacy.records", 4+random.IntN(20))
	}
	usual := random.IntN(3) == 0
	for _, name := range []string{"x", "y", "z"} {
		r := ranges[random.IntN(len(ranges))]
		if usual {
			r = ranges[random.IntN(4)]
		}
		kind := pick(random, "number", "whole")
		if r[0] != math.Trunc(r[0]) || r[1] != math.Trunc(r[1]) {
			kind = "number"
		}
		d.lists = append(d.lists, fmt.Sprintf("[[column]]\nname = %q\ntype = %q\nrange = [%s, %s]\n"+
			"outside = %q\nmissing = \"drop\"\n", name, kind, float(r[0]), float(r[1]),
			pick(random, "clip", "drop")))
	}
	d.lists = append(d.lists, fmt.Sprintf("[[column]]\nname = \"c\"\ntype = \"category\"\n"+
		"categories = [\"a\", \"b\", \"d\"]\nmissing = %q\n", pick(random, "drop", "category")),
		"[[column]]\nname = \"t\"\ntype = \"text\"\nmissing = \"drop\"\n",
		"[[column]]\nname = \"p\"\ntype = \"number\"\nrange = [0.0, 1.0]\n"+
			"outside = \"clip\"\nmissing = \"drop\"\n")
	n := pick(random, 1, 1, 1, 2, 3, 5)
	for i := range n {
		d.lists = append(d.lists, question(random, i, n))
	}
	return d
}

// question is one query of some, about columns that questions has.
func question(random *rand.Rand, i, of int) string {
	var b strings.Builder
	number, other := "x", "y"
	if random.IntN(3) == 0 {
		number, other = "z", "x"
	}
	kind := pick(random, "count", "sum", "mean", "variance", "covariance", "correlation", "histogram",
		"crosstab", "quantiles", "survival", "linear", "logistic", "heavy", "count", "histogram",
		"crosstab", "cox", "poisson", "logrank", "evaluation", "cindex")
	fmt.Fprintf(&b, "[[query]]\nname = \"q%d\"\nkind = %q\n", i, kind)
	switch kind {
	case "sum", "mean", "variance", "quantiles":
		fmt.Fprintf(&b, "column = %q\n", number)
	case "logrank":
		fmt.Fprintf(&b, "column = %q\nby = \"c\"\nevent = \"c = a\"\n", number)
	case "evaluation":
		fmt.Fprintf(&b, "column = \"p\"\n%sevent = \"c = a\"\n", pick(random, "", "by = \"c\"\n"))
	case "cindex":
		fmt.Fprintf(&b, "column = %q\nby = %q\nevent = \"c = a\"\n", number, other)
	case "covariance", "correlation":
		fmt.Fprintf(&b, "column = %q\nby = %q\n", number, other)
	case "histogram":
		fmt.Fprintf(&b, "column = %q\n", pick(random, number, "c"))
	case "crosstab":
		fmt.Fprintf(&b, "column = %q\nby = %q\n", number, pick(random, other, "c"))
	case "survival":
		fmt.Fprintf(&b, "column = %q\nevent = \"c = a\"\n", number)
	case "linear":
		fmt.Fprintf(&b, "column = %q\non = [%q]\n", number, other)
	case "logistic":
		fmt.Fprintf(&b, "on = [%q, \"c\"]\nevent = \"%s >= 1\"\n", number, other)
	case "cox":
		fmt.Fprintf(&b, "column = %q\non = [%q]\nevent = \"c = a\"\n", number, other)
	case "poisson":
		fmt.Fprintf(&b, "column = %q\non = [%q, \"c\"]\n", number, other)
	case "heavy":
		b.WriteString("column = \"t\"\ntop = 2\n")
	}
	if random.IntN(3) == 0 {
		fmt.Fprintf(&b, "where = \"%s\"\n", pick(random, "x >= 20", "c = a", "c != a and x < 30",
			"y != 0", "z > 1 and z <= 40", "c = b"))
	}
	if of > 1 && random.IntN(3) == 0 {
		fmt.Fprintf(&b, "share = %.3f\n", 0.01+0.12*random.Float64())
	}
	return b.String()
}
