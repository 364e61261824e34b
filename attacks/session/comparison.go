package session

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
)

// variant is one way to mount an attack: it is run against a target that lacks defences
// and against targets that have them, and gives a row for each metric.
type variant struct {
	name  string
	lacks textbook.Defence // of the undefended target
	// defended are the targets with the defence; nil: package protocol, and textbook with
	// nothing left out.
	defended []target
	// run mounts the attack, and returns a value for each metric.
	run     func(t target) (outcome, error)
	metrics []metric
	// limit says why there is no complete defence; empty: there is one.
	limit string
}

// metric says what a variant measures, and where it must be.
type metric struct {
	name                 string
	undefended, defended bounds
}

// bounds is the range that a value must be in.
type bounds struct{ min, max float64 }

func exactly(x float64) bounds { return bounds{x, x} }
func atLeast(x float64) bounds { return bounds{x, math.Inf(1)} }

// unmeasured is for values that one of the targets does not have.
var unmeasured = bounds{1, 0}

// The metrics of many variants.
const (
	inputsRecovered    = "inputs recovered exactly"
	documentedRefusals = "documented refusals"
)

// outcome holds what a run against one target gives: a value for each metric of the
// variant, and of how many.
type outcome struct {
	values  []float64
	samples int
}

// counts makes an outcome of whole numbers.
func counts(samples int, values ...int) outcome {
	o := outcome{samples: samples}
	for _, v := range values {
		o.values = append(o.values, float64(v))
	}
	return o
}

// indicator is 1 if it is true, for counting.
func indicator(condition bool) int {
	if condition {
		return 1
	}
	return 0
}

// compared completes an attack whose variants are compared one after the other. They may
// depend on the seed.
func compared(a attacks.Attack, variants func(seed uint64) []variant) attacks.Attack {
	a.Run = func(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
		report := &attacks.Report{}
		all := variants(o.Seed)
		for i, v := range all {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			o.Advance(i, len(all))
			rows, err := v.rows()
			if err != nil {
				return nil, fmt.Errorf("session: %s: %w", a.Name, err)
			}
			report.Rows = append(report.Rows, rows...)
		}
		return report, nil
	}
	return a
}

// rows runs the variant against all its targets.
func (v variant) rows() ([]attacks.Row, error) {
	defended := v.defended
	if defended == nil {
		defended = []target{{real: true}, {}}
	}
	undefended, err := v.against(target{without: v.lacks})
	var outcomes []outcome
	for _, t := range defended {
		o, failure := v.against(t)
		err = errors.Join(err, failure)
		outcomes = append(outcomes, o)
	}
	if err != nil {
		return nil, err
	}
	var rows []attacks.Row
	for i, m := range v.metrics {
		row := attacks.Row{
			Case:       v.name,
			Metric:     m.name,
			Undefended: undefended.measure(i, m.undefended),
			Limit:      v.limit != "",
			Note:       v.limit,
		}
		for _, o := range outcomes {
			// The first, unless a later one is out of range.
			measure := o.measure(i, m.defended)
			if row.Defended.Missing() || row.Defended.OK() && !measure.OK() {
				row.Defended = measure
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// against runs the variant against one target.
func (v variant) against(t target) (outcome, error) {
	o, err := v.run(t)
	if err == nil && len(o.values) != len(v.metrics) {
		err = fmt.Errorf("%d values, want %d", len(o.values), len(v.metrics))
	}
	if err != nil {
		return outcome{}, fmt.Errorf("%s, against %+v: %w", v.name, t, err)
	}
	return o, nil
}

// measure returns value i as a measurement that must be within bounds.
func (o outcome) measure(i int, want bounds) attacks.Measure {
	if want == unmeasured {
		return attacks.Measure{}
	}
	return attacks.Exactly(o.values[i], o.samples, 0).Within(want.min, want.max)
}
