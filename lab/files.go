package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/hushsum/hushsum/lab/experiments"
)

// write writes the files of a table and returns their paths: into the folder of -out, or of a run
// that ended early into the folder incomplete there.
func (s *settings) write(t *experiments.Table) (paths []string, err error) {
	folder := s.out
	if !t.Complete {
		folder = filepath.Join(folder, "incomplete")
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	path := func(name string) string {
		paths = append(paths, filepath.Join(folder, name))
		return paths[len(paths)-1]
	}
	if err := writeCSV(path(t.Name+".csv"), tableRecords(t)); err != nil {
		return nil, err
	}
	for i := range t.Figures {
		f := &t.Figures[i]
		if len(f.Series) == 0 {
			continue
		}
		name := t.Name + "-" + f.Name
		if err := writeCSV(path(name+".csv"), figureRecords(f)); err != nil {
			return nil, err
		}
		if err := drawFigure(path(name+"."+s.figures), f); err != nil {
			return nil, err
		}
	}
	list := path(t.Name + ".json")
	text, err := json.MarshalIndent(jsonOf(t, paths), "", "  ")
	if err != nil {
		return nil, err
	}
	return paths, os.WriteFile(list, append(text, '\n'), 0o666)
}

// writeCSV writes a table to a new file.
func writeCSV(path string, records [][]string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return csv.NewWriter(file).WriteAll(records)
}

// tableRecords returns a line for each row and seed. Fractions stay fractions.
func tableRecords(t *experiments.Table) [][]string {
	header := append([]string(nil), t.Labels...)
	header = append(header, "seed")
	for _, m := range t.Measures {
		header = append(header, m.Name, m.Name+" published")
	}
	records := [][]string{header}
	for _, r := range t.Rows {
		for k, values := range r.Values {
			if values == nil {
				continue
			}
			seed := strconv.Itoa(k + 1)
			if t.Seeds == 0 {
				seed = ""
			}
			line := append(append([]string(nil), r.Labels...), seed)
			for i, m := range t.Measures {
				published := math.NaN()
				if p, ok := r.Published[m.Name]; ok {
					published = p
				}
				line = append(line, number(values[i]), number(published))
			}
			records = append(records, line)
		}
	}
	return records
}

// figureRecords returns a line for each point and run.
func figureRecords(f *experiments.Figure) [][]string {
	records := [][]string{{"series", "run", f.X, f.Y}}
	for _, s := range f.Series {
		for k, run := range s.Runs {
			for i, y := range run {
				if f.Percent {
					y *= 100
				}
				records = append(records,
					[]string{s.Name, strconv.Itoa(k + 1), number(s.X[i]), number(y)})
			}
		}
	}
	return records
}

// number formats a number; it is empty for one that was not measured.
func number(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// jsonTable holds what -json prints.
type jsonTable struct {
	Name     string           `json:"name"`
	Title    string           `json:"title"`
	Settings []string         `json:"settings"`
	Labels   []string         `json:"labels"`
	Measures []string         `json:"measures"`
	Seeds    int              `json:"seeds"`
	Complete bool             `json:"complete"`
	Rows     []map[string]any `json:"rows"`
	Findings []map[string]any `json:"findings"`
	Notes    []string         `json:"notes"`
	Files    []string         `json:"files"`
}

func jsonOf(t *experiments.Table, files []string) jsonTable {
	j := jsonTable{
		Name:     t.Name,
		Title:    t.Title,
		Settings: t.Settings,
		Labels:   t.Labels,
		Seeds:    t.Seeds,
		Complete: t.Complete,
		Rows:     []map[string]any{},
		Findings: []map[string]any{},
		Notes:    append([]string{}, t.Notes...),
		Files:    append([]string{}, files...),
	}
	for _, m := range t.Measures {
		j.Measures = append(j.Measures, m.Name)
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		row := map[string]any{"labels": r.Labels}
		for k, m := range t.Measures {
			mean, spread, _ := r.Mean(k)
			values := []*float64{}
			for _, v := range r.Values {
				if v == nil {
					values = append(values, nil)
				} else {
					values = append(values, finite(v[k]))
				}
			}
			var published *float64
			if p, ok := r.Published[m.Name]; ok {
				published = &p
			}
			row[m.Name] = map[string]any{
				"values":    values,
				"mean":      finite(mean),
				"sd":        finite(spread),
				"published": published,
			}
		}
		j.Rows = append(j.Rows, row)
	}
	for _, f := range t.Findings {
		elsewhere := []map[string]any{}
		for _, s := range f.Elsewhere {
			elsewhere = append(elsewhere, map[string]any{"in": s.In, "published": s.Difference,
				"verdict": f.VerdictOf(&s.Difference)})
		}
		j.Findings = append(j.Findings, map[string]any{
			"claim": f.Claim, "mean": finite(f.Measured.Mean), "low": finite(f.Measured.Low),
			"high":  finite(f.Measured.High),
			"seeds": f.Measured.N, "expected": f.Expected, "published": f.Published,
			"verdict": f.Verdict(), "elsewhere": elsewhere, "text": f.String(),
		})
	}
	return j
}

// finite returns a number for JSON, which has none that is infinite or not a number: null.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}
