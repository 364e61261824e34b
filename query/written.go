package query

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/strict"
)

// WriteCSV writes answers as a table with a header line: a line for each number, with what it
// describes, its interval, why it cannot be known, and what the query would spend alone, in words.
// Without noise the last is empty; a number that cannot be known is empty too, as are ends that its
// interval does not have, and the reason of a number that is known.
func WriteCSV(w io.Writer, answers []Answer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"name", "kind", "unit", "label", "by", "value", "low", "high",
		"unknown", "spends"})
	number := func(x float64) string {
		if finite(x) == nil {
			return ""
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	for _, a := range answers {
		spends := ""
		if a.Spends != nil {
			spends = a.Spends.String()
		}
		for _, c := range a.Cells {
			_ = out.Write([]string{a.Name, a.Kind, a.Unit, c.Label, c.By, number(c.Value), number(c.Low),
				number(c.High), c.Unknown, spends})
		}
	}
	out.Flush()
	return out.Error() // of any line
}

// cells puts values and intervals together; label names each.
func cells(values []float64, intervals [][2]float64, label func(i int) (label, by string),
) (all []Cell, err error) {
	if len(values) != len(intervals) {
		return nil, fmt.Errorf("%w: an answer of %d values and %d intervals", ErrConfig, len(values),
			len(intervals))
	}
	for i, x := range values {
		c := Cell{Value: x, Low: intervals[i][0], High: intervals[i][1]}
		c.Label, c.By = label(i)
		all = append(all, c)
	}
	return all, nil
}

// UnmarshalJSON reads what MarshalJSON has written, whatever its kind: a number, a list with
// labels, or a table with margins. It fails with [ErrConfig] if lists are of different lengths.
func (a *Answer) UnmarshalJSON(text []byte) error {
	var in struct {
		Name       string            `json:"name"`
		Kind       string            `json:"kind"`
		Unit       string            `json:"unit"`
		Spends     *accounting.Claim `json:"spends"`
		Value      json.RawMessage   `json:"value"`
		Interval   json.RawMessage   `json:"interval"`
		Labels     json.RawMessage   `json:"labels"`
		Errors     []*float64        `json:"standard_error"`
		Unknown    json.RawMessage   `json:"unknown"`
		Test       *Test             `json:"test"`
		Population [][2]*float64     `json:"population_interval"`
		Grid       []float64         `json:"grid"`
		Tables     []ScoreTable      `json:"tables"`
		Margins    []struct {
			Value    []float64    `json:"value"`
			Interval [][2]float64 `json:"interval"`
		} `json:"margins"`
	}
	if err := strict.JSON(text, &in); err != nil {
		return err
	}
	want := form(in.Kind)
	if want == formTable != (len(in.Margins) == 2) || len(in.Margins) > 2 ||
		want == formNumber != (in.Labels == nil) || in.Value == nil || in.Interval == nil {
		return fmt.Errorf("%w: an answer of kind %.40q has other numbers", ErrConfig, in.Kind)
	}
	out := Answer{Name: in.Name, Kind: in.Kind, Unit: in.Unit, Spends: in.Spends,
		Grid: in.Grid, Test: in.Test, Tables: in.Tables}
	for _, i := range in.Population {
		out.Population = append(out.Population,
			[2]float64{given(i[0], math.Inf(-1)), given(i[1], math.Inf(1))})
	}
	for _, x := range in.Errors {
		out.Errors = append(out.Errors, given(x, math.NaN()))
	}
	if in.Grid != nil && len(in.Population) != len(in.Grid) {
		return fmt.Errorf("%w: %d intervals of a population and %d of a grid", ErrConfig,
			len(in.Population), len(in.Grid))
	}
	var err error
	switch {
	case len(in.Margins) == 2:
		err = out.table(in.Value, in.Interval, in.Labels)
		for side := range in.Margins {
			m, labels := in.Margins[side], [2][]string{}
			if err == nil {
				err = strict.JSON(in.Labels, &labels)
			}
			if err == nil && len(labels[side]) != len(m.Value) {
				err = fmt.Errorf("%w: a margin without its labels", ErrConfig)
			}
			if err == nil {
				out.Margins[side], err = cells(m.Value, m.Interval, func(i int) (string, string) {
					return labels[side][i], ""
				})
			}
		}
	case in.Labels != nil:
		err = out.list(in.Value, in.Interval, in.Labels, in.Unknown)
	default:
		var value *float64
		var interval [2]*float64
		why := ""
		err = unmarshal([]json.RawMessage{in.Value, in.Interval}, &value, &interval)
		if err == nil && in.Unknown != nil {
			err = strict.JSON(in.Unknown, &why)
		}
		if err == nil {
			out.Cells = make([]Cell, 1)
			out.Cells[0], err = written(value, interval, why)
		}
	}
	if err == nil {
		*a = out
	}
	return err
}

// unmarshal reads texts into as many values.
func unmarshal(texts []json.RawMessage, into ...any) error {
	for i, text := range texts {
		if err := strict.JSON(text, into[i]); err != nil {
			return err
		}
	}
	return nil
}

// given returns a number, or what null stands for.
func given(x *float64, null float64) float64 {
	if x == nil {
		return null
	}
	return *x
}

// written puts a number together, which is null if and only if it cannot be known.
func written(value *float64, interval [2]*float64, unknown string) (Cell, error) {
	c := Cell{Value: given(value, math.NaN()), Low: given(interval[0], math.Inf(-1)),
		High: given(interval[1], math.Inf(1)), Unknown: unknown}
	known := value != nil && interval[0] != nil && interval[1] != nil
	if unknown == "" && !known || unknown != "" && value != nil {
		return Cell{}, fmt.Errorf("%w: a number is null and known, or neither", ErrConfig)
	}
	return c, nil
}

// list reads values with labels.
func (a *Answer) list(value, interval, label, unknown json.RawMessage) error {
	var values []*float64
	var intervals [][2]*float64
	var labels []string
	if err := unmarshal([]json.RawMessage{value, interval, label}, &values, &intervals,
		&labels); err != nil {
		return err
	}
	why := make([]string, len(values))
	if unknown != nil {
		if err := strict.JSON(unknown, &why); err != nil {
			return err
		}
	}
	if len(labels) != len(values) || len(intervals) != len(values) || len(why) != len(values) {
		return fmt.Errorf("%w: %d values, %d intervals and %d labels", ErrConfig, len(values),
			len(intervals), len(labels))
	}
	for i := range values {
		c, err := written(values[i], intervals[i], why[i])
		if err != nil {
			return err
		}
		c.Label = labels[i]
		a.Cells = append(a.Cells, c)
	}
	return nil
}

// table reads the lines of a crosstab.
func (a *Answer) table(value, interval, label json.RawMessage) error {
	var values [][]float64
	var intervals [][][2]float64
	var labels [2][]string
	if err := unmarshal([]json.RawMessage{value, interval, label}, &values, &intervals,
		&labels); err != nil {
		return err
	}
	if len(values) != len(labels[0]) || len(intervals) != len(values) {
		return fmt.Errorf("%w: a table of %d lines, %d intervals and %d labels", ErrConfig, len(values),
			len(intervals), len(labels[0]))
	}
	for i := range values {
		if len(values[i]) != len(labels[1]) {
			return fmt.Errorf("%w: a line of %d values and %d labels", ErrConfig, len(values[i]),
				len(labels[1]))
		}
		line, err := cells(values[i], intervals[i], func(k int) (string, string) {
			return labels[0][i], labels[1][k]
		})
		if err != nil {
			return err
		}
		a.Cells = append(a.Cells, line...)
	}
	return nil
}
