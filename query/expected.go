package query

import (
	"math"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/workload"
)

// Expected says what a query will cost and how far off its answer will be, before it is asked.
type Expected struct {
	Name, Kind string
	Numbers    int               // of the vector
	Share      float64           // of the budget; 0 without noise
	Spends     *accounting.Claim // as an [Answer] has it
	// Margin is half of the 95 % interval if no party is missing: of each count of a table, and of
	// quantiles of the rows below at the worst edge, as a share of all. Means, variances, models and
	// quantiles assume all the rows that may come and values that are spread evenly over the range.
	Margin float64
	Of     string // what the margin counts: rows, the unit of a column, or a share of rows
	// Grid is the part of a survival curve's margin that its bins leave: more bins make it smaller.
	Grid float64
	// Chance is how far the events of the first group of a log-rank test are from what is expected by
	// chance alone, as the margin says by noise alone: a margin that is larger leaves little to find.
	Chance float64
	// Narrow is the margin of a linear model's first slope if its column's deviation is a tenth of
	// its range, in place of the 29 % of even spread. Limit is the least deviation, as a part of the
	// range, with which a column's slope will be known.
	Narrow, Limit float64
	// Together numbers the queries that are answered together, from one measurement of Numbers, from
	// 1; 0: by itself. Alone is the margin that the query would have by itself.
	Together int
	Alone    float64
}

// Rows returns how many rows of all parties together may count.
func (p *Plan) Rows() int {
	if p.job.PerRecord() {
		return p.job.Privacy.Records
	}
	return p.settled.Roster().Len() * p.job.Parties.Rows
}

// Expected returns what each query will cost and give.
func (p *Plan) Expected() (all []Expected) {
	parties := p.settled.Roster().Len()
	deviation := p.deviation(parties)
	rows := float64(p.Rows())
	for i := range p.asks {
		a := &p.asks[i]
		e := Expected{Name: a.Name, Kind: a.Kind, Numbers: a.length, Share: a.Share,
			Spends: a.spends, Of: a.unit()}
		if !p.job.Noisy() {
			e.Share = 0
		}
		if !a.exact {
			e.Margin = z95 * deviation / a.scale
		}
		switch a.Kind {
		case "mean":
			e.Margin *= a.column.half() / rows
		case "variance": // of evenly spread y the means of y and 2y² − 1 are 0 and −1/3
			e.Margin *= a.column.half() * a.column.half() / rows * math.Sqrt(0.25+1./36)
		case "covariance": // of two that are evenly spread and independent
			e.Margin *= a.column.half() * a.by.half() / rows
		case "correlation":
			e.Margin *= 3 / rows
		case "survival":
			e.Margin, e.Grid = a.evenly(rows, e.Margin)
			e.Of = "share of rows"
		case "logrank":
			e.Margin, e.Chance = a.rankedEvenly(rows, e.Margin/z95)
		case "evaluation": // of the AUC
			e.Margin, e.Of = a.scoredEvenly(rows, e.Margin/z95), "of the AUC"
		case "cindex":
			e.Margin, e.Of = a.pairedEvenly(rows, e.Margin/z95), "of the C-index"
		case "linear": // of a slope, where all columns are evenly spread and independent
			// The middle of an interval with ends is wide where noise nearly hides the column: a
			// deviation of √2.5 times the least leaves 40 % of its square.
			e.Limit = math.Sqrt(2.5*e.Margin/rows) / 2
			if e.Margin *= a.column.half() / a.on[0].half() / rows; e.Margin > 0 {
				e.Narrow = e.Margin / (0.2 * 0.2)
				if e.Limit > 0.1 {
					e.Narrow = math.Inf(1)
				}
			}
			e.Margin *= 3
			if e.Limit > 1/math.Sqrt(12) {
				e.Margin = math.Inf(1)
			}
			e.Of = slopeUnit(a.column, a.on[0])
		case "logistic", "cox", "poisson": // of the first slope
			switch {
			case a.steps != nil:
				e.Margin = a.steps.evenly(rows, deviation/a.scale, p.Rounds())
			case a.exact:
				e.Margin = 0
			default:
				e.Margin = a.logit.evenly(rows, deviation/a.scale)
			}
			if unit := a.on[0].Unit; unit != "" {
				e.Of = "each " + unit // odds, or a rate, change by a factor of e to the power of that
			} else if a.Kind != "logistic" {
				e.Of = ""
			}
		case "quantiles":
			worst := 0.0
			for edge := range a.column.bins {
				worst = max(worst, workload.Spread(edge, a.column.bins, a.column.share(edge)))
			}
			e.Margin *= math.Sqrt(worst) / rows
			e.Of = "share of rows"
		}
		if t := a.group; t != nil {
			e.Together, e.Alone = 1+slices.Index(p.groups, t), e.Margin
			e.Numbers = len(t.Counts)
			e.Margin = z95 * deviation / t.scale * t.worst(a)
			if a.Kind == "quantiles" {
				e.Margin /= rows
			}
		}
		all = append(all, e)
	}
	return all
}
