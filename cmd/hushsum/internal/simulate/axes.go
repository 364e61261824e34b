package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/job"
)

// sweepShorts holds keys of a sweep for which a path does not suffice, or is long.
var sweepShorts = map[string]func(j *job.Job, text string) error{
	"epsilon": setEpsilon,
	"parties": setParties,
	"rows":    setRows,
	"degree": func(j *job.Job, text string) error {
		j.Sum.Sparse = true
		return j.Set("sum.degree", text)
	},
	"tolerance": func(j *job.Job, text string) error { return j.Set("world.tolerance", text) },
}

// setKey gives a value to the field that a key of a sweep stands for: a path, the flag of a field,
// or a short.
func setKey(j *job.Job, key, text string) error {
	if set := sweepShorts[key]; set != nil {
		return set(j, text)
	}
	for f := range job.Fields() {
		if f.Flag == key {
			return j.Set(f.Path, text)
		}
	}
	return j.Set(key, text)
}

// sweepKeys returns the keys that are no paths.
func sweepKeys() []string {
	names := slices.Collect(maps.Keys(sweepShorts))
	for f := range job.Fields() {
		if f.Flag != "" {
			names = append(names, f.Flag)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// setEpsilon gives all parties the same budget.
func setEpsilon(j *job.Job, text string) error {
	if j.World.Reference.Law != "" {
		for k := range j.World.Party {
			j.World.Party[k].ReferenceEpsilon = 0
		}
		return j.Set("world.reference.epsilon", text)
	}
	if !j.Noisy() {
		j.Privacy.Noise = "discrete-gaussian"
	}
	return j.Set("privacy.epsilon", text)
}

// setRows gives all parties the same number of rows.
func setRows(j *job.Job, text string) error {
	for k := range j.World.Party {
		j.World.Party[k].Rows = 0
	}
	return j.Set("world.data.rows", text)
}

// setParties spreads a given number of parties over the declared groups, in proportion to their
// sizes: the remainder goes to the groups that are furthest from their share.
func setParties(j *job.Job, text string) error {
	was := j.Size()
	if err := j.Set("parties.count", text); err != nil || len(j.Parties.Group) == 0 {
		return err
	}
	n, groups := j.Parties.Count, j.Parties.Group
	all, left := int64(was), n
	rest, order := make([]int64, len(groups)), make([]int, len(groups))
	for k := range groups {
		part := int64(n) * int64(max(1, groups[k].Count))
		groups[k].Count, rest[k], order[k] = int(part/all), part%all, k
		left -= groups[k].Count
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for _, k := range order[:left] {
		groups[k].Count++
	}
	empty := func(g job.Group) bool { return g.Count == 0 }
	j.World.Party = slices.DeleteFunc(j.World.Party, func(p job.WorldParty) bool {
		return slices.ContainsFunc(groups, func(g job.Group) bool { return g.Name == p.Name && empty(g) })
	})
	j.Parties.Group = slices.DeleteFunc(groups, empty)
	return nil
}

// sweepAxis is one key with its values.
type sweepAxis struct {
	name   string
	texts  []string
	number bool
	values []float64 // to draw; for texts that are no numbers their places, from 1
}

// newAxis reads the values as numbers, if all of them are.
func newAxis(name string, texts []string) sweepAxis {
	a := sweepAxis{name: name, texts: texts, number: true}
	for _, text := range texts {
		v, err := strconv.ParseFloat(text, 64)
		a.number = a.number && err == nil
		a.values = append(a.values, v)
	}
	for k := range texts {
		if !a.number {
			a.values[k] = float64(k + 1)
		}
	}
	return a
}

// width returns the width of the axis's column.
func (a *sweepAxis) width() int {
	most := max(10, len(a.name))
	for _, text := range a.texts {
		most = max(most, len(text))
	}
	return most
}

// shown returns the value of an axis in JSON.
func (a *sweepAxis) shown(r *sweepRun, axis int) any {
	if a.number {
		return r.values[axis]
	}
	return r.texts[axis]
}

// axes returns the axes of --sweep, none with --seeds alone.
func (v *jobFlags) axes(j *job.Job) ([]sweepAxis, error) {
	if v.given["seeds"] && (v.seeds < 2 || v.seeds > mostSeeds) {
		return nil, &cli.Problem{Cause: fmt.Sprintf("--seeds: %d is outside 2 to %d", v.seeds, mostSeeds),
			Advice: "Leave it out for a single run; --seed chooses its seed."}
	}
	if v.sweep == "" {
		return nil, nil
	}
	axes, err := parseSweep(j, v.sweep)
	if v.seeds > 0 && slices.ContainsFunc(axes, func(a sweepAxis) bool { return a.name == "seed" }) {
		return nil, &cli.Problem{Cause: "--seeds: --sweep lists seeds as well",
			Advice: "Use one of the two."}
	}
	return axes, err
}

// mostSeeds is how many runs a combination may consist of.
const mostSeeds = 1000

// mostCombinations is how many runs a sweep may consist of.
const mostCombinations = 10_000

// parseSweep reads "epsilon=0.1,1,8 parties=3,10,50".
func parseSweep(j *job.Job, text string) (axes []sweepAxis, err error) {
	all := 1
	const as = `Write it as in "epsilon=0.1,1,8 parties=3,10,50".`
	for _, part := range strings.Fields(text) {
		name, list, ok := strings.Cut(part, "=")
		switch {
		case !ok || list == "":
			return nil, &cli.Problem{Cause: fmt.Sprintf("--sweep: %q has no values", part), Advice: as}
		case slices.ContainsFunc(axes, func(a sweepAxis) bool { return a.name == name }):
			return nil, &cli.Problem{Cause: fmt.Sprintf("--sweep: %s is listed twice", name)}
		}
		axis := newAxis(name, strings.Split(list, ","))
		for _, word := range axis.texts {
			var wrong *job.ConfigError
			if err := setKey(j.Clone(), name, word); errors.As(err, &wrong) {
				advice := cli.Sentence(wrong.Advice)
				if !strings.Contains(name, ".") {
					advice = cli.DidYouMean(name, sweepKeys(), "%s", advice)
				}
				return nil, &cli.Problem{Cause: fmt.Sprintf("--sweep: %s: %s", name, wrong.Reason),
					Advice: advice, Err: err}
			}
		}
		if all *= len(axis.texts); all > mostCombinations {
			return nil, &cli.Problem{Cause: "--sweep: more than ten thousand combinations",
				Advice: "Give fewer values."}
		}
		axes = append(axes, axis)
	}
	if len(axes) == 0 {
		return nil, &cli.Problem{Cause: "--sweep: there is nothing to sweep", Advice: as}
	}
	return axes, nil
}
