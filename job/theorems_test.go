package job

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/masking"
)

// Each field is free or in the table, so that a new one is refused with noise until somebody has
// looked at each theorem; and the table names no field that there is not.
func TestMarks(t *testing.T) {
	known := map[string]Field{}
	for f := range Fields() {
		known[f.Path] = f
	}
	marked := map[string]bool{}
	mark := func(by string, fields ...string) {
		for _, f := range fields {
			path, only, _ := strings.Cut(f, "=")
			if _, there := known[path]; !there {
				t.Errorf("%s: there is no field %s", by, path)
			}
			for _, word := range strings.Split(only, ",") {
				if only != "" && known[path].Words != nil && !slices.Contains(known[path].Words, word) {
					t.Errorf("%s: %s is never %s", by, path, word)
				}
			}
			marked[path] = true
		}
	}
	for _, g := range theFree {
		mark(g.Name, g.Fields...)
		for _, path := range g.Fields {
			if slices.ContainsFunc(theTheorems, func(x theorem) bool { return x.admitsWord(path, "") }) {
				t.Errorf("%s is free, and a theorem admits it", path)
			}
		}
	}
	for _, x := range theTheorems {
		mark(x.id, x.by)
		for _, name := range strings.Fields(x.admits) {
			mark(x.id, grouped(name)...)
		}
		for _, n := range x.not {
			fields := strings.Fields(n.fields)
			mark(x.id, fields...)
			if n.at != "" {
				mark(x.id, n.at)
			}
			for _, f := range fields {
				path, word, _ := strings.Cut(f, "=")
				if word == "" && x.admitsWord(path, "") {
					t.Errorf("%s: it admits %s, and says why not", x.id, path)
				}
			}
			if n.why == "" || n.advice == "" {
				t.Errorf("%s: nothing is said of %s", x.id, n.fields)
			}
		}
	}
	for path, f := range known {
		if f.Part != Simulated && !marked[path] {
			t.Errorf("%s has no mark: see theorems.go", path)
		}
	}
}

// starts have the jobs that random jobs are near to.
var starts = []string{`
rounds = 6
privacy.clip = 1.0
model.name = "softmax"
model.features = 4
model.classes = 3
`, `
rounds = 6
privacy.clip = 1.0
model.length = 5
metrics.share = 0.1
sum.max_weight = 40
privacy.noise = "discrete-laplace"
`, `
rounds = 6
privacy.clip = 1.0
model.tensor = [{ name = "a", shape = [3] }, { name = "b", shape = [2, 2] }]
`, `
rounds = 6
privacy.clip = 1.0
model.name = "logistic"
model.features = 4
model.classes = 2
training.batch = 20
privacy.unit = "record"
privacy.records = 400
privacy.submit_after = "9s"
`, `
rounds = 6
privacy.clip = 1.0
model.length = 5
privacy.unit = "record"
privacy.records = 400
privacy.submit_after = "9s"
`, `
rounds = 6
privacy.clip = 1.0
model.length = 5
sum.protocol = "oneshot"
sum.committee = "c.txt"
`, `
rounds = 6
privacy.clip = 1.0
model.name = "softmax"
model.features = 4
model.classes = 3
sum.protocol = "oneshot"
sum.committee = "c.txt"
sum.buffer = 6
parties.drop_out = 0.5
`, `
rounds = 6
privacy.clip = 1.0
model.name = "mlp:4"
model.features = 4
model.classes = 3
parties.drop_out = 0.3
privacy.clip_quantile = 0.5
`, `
rounds = 6
privacy.clip = 1.0
model.name = "mlp:4"
model.features = 4
model.classes = 3
privacy.factorise = 3
`, `
rounds = 6
privacy.clip = 1.0
model.name = "softmax"
model.features = 4
model.classes = 3
parties.hidden = 0.3
privacy.submit_after = "9s"
`, `
rounds = 6
privacy.clip = 1.0
model.name = "softmax"
model.features = 4
model.classes = 3
parties.per_round = 10
parties.drop_out = 0.2
parties.participations = 5
`, `
rounds = 6
privacy.clip = 1.0
model.length = 3
sum.sparse = true
sum.adversary = "curious"
sum.recovery = true
`, `
rounds = 6
privacy.clip = 1.0
model.length = 3
sum.adversary = "curious"
sum.recovery = true
privacy.noise = "skellam"
`, `
rounds = 6
privacy.clip = 1.0
model.length = 5
sum.protocol = "oneshot"
sum.committee = "c.txt"
sum.covered = true
sum.bounded = true
parties.colluders = 1
privacy.noise_by = "committee"
`, `
rounds = 6
privacy.clip = 1.0
model.tensor = [{ name = "a", shape = [3] }, { name = "b", shape = [2, 2] }]
model.personal = ["a"]
`, `
column = [
  { name = "age", type = "whole", range = [0, 9] },
  { name = "sex", type = "category", categories = ["F", "M"] },
]
query = [
  { name = "n", kind = "count" },
  { name = "m", kind = "mean", column = "age" },
]
`}

// begun has each start as a job.
func begun(t *testing.T) (all []*Job) {
	for _, start := range starts {
		if !strings.Contains(start, "privacy.noise =") {
			start += "privacy.noise = \"discrete-gaussian\"\n"
		}
		j := parse(t, "name = \"x\"\nparties.count = 12\nprivacy.epsilon = 4.0\n"+start)
		j.read = nil
		all = append(all, j)
	}
	return all
}

// random changes some fields of a job, each within its range.
func random(r *rand.Rand, from *Job) *Job {
	j := from.Clone()
	for range 1 + r.IntN(4) {
		e := theJob.entries[r.IntN(len(theJob.entries))].row
		if e == nil || e.Part == Simulated || e.Part == Schedule {
			continue
		}
		if v := value(r, e); v != nil {
			reflect.ValueOf(e.at(j)).Elem().Set(reflect.ValueOf(v))
		}
	}
	return j
}

// value draws a value of a row, mostly one that jobs have; nil: none fits.
func value(r *rand.Rand, e *row) any {
	if r.IntN(6) == 0 {
		return reflect.Zero(reflect.TypeOf(e.at(new(Job))).Elem()).Interface()
	}
	pick := func(all ...float64) float64 {
		var in []float64
		for _, x := range all {
			if e.in.holds(x) {
				in = append(in, x)
			}
		}
		if len(in) == 0 {
			return 0
		}
		return in[r.IntN(len(in))]
	}
	switch e.Kind {
	case Word:
		return e.Words[r.IntN(len(e.Words))]
	case Text:
		for _, text := range []string{"lenet-norm", "x1"} {
			if e.fits(text) && (text == "x1" || r.IntN(3) == 0) {
				return text
			}
		}
		return "softmax"
	case Whole:
		if e.Path == "seed" {
			return uint64(3)
		}
		return int(pick(1, 2, 3, 4, 5, 6, 8, 12, 20, 400))
	case Number:
		return pick(1e-5, 0.1, 0.2, 0.3, 0.5, 1, 2, 8)
	case Truth:
		return true
	case Span:
		return 7 * time.Second
	case Texts:
		return []string{"a"}
	}
	return nil
}

// A job runs as it was declared, and each hypothesis holds of that; each coordinate is in a lane.
func TestTheoremsOfWhatRuns(t *testing.T) {
	r, from := rand.New(rand.NewPCG(11, 67)), begun(t)
	used, wrong, assumed := map[string]int{}, map[string]int{}, map[string]bool{}
	for settled := 0; settled < suite.Size(30, 60, 1000, 30000); {
		j := random(r, from[settled%len(from)])
		j.Privacy.Before, j.Privacy.Study, j.Privacy.StudyPlan = "", 0, ""
		if !j.Noisy() || len(j.mistakes().wrong) > 0 {
			continue
		}
		if j.Privacy.Multiplier == 0 {
			j.Privacy.Multiplier = 4 // nothing to calibrate
		}
		x := &settling{Job: j.WithDefaults(), declared: j, files: Files{Roster: RosterOf(t, j.Size())}}
		if j.Oneshot() {
			x.files.Committee = RosterOf(t, 13)
		}
		var err error
		for _, step := range []func() error{x.who, x.sums, x.noise, x.lanes, x.sessions} {
			if err = step(); err != nil {
				break
			}
		}
		if err != nil { // too few parties, or too few bits
			wrong[err.Error()]++
			continue
		}
		settled++
		f := x.figures()
		if f.run != *j.runs() {
			t.Fatalf("%+v runs, and %+v was declared:\n%s", f.run, *j.runs(), written(t, j))
		}
		for _, theorem := range f.derivation() {
			used[theorem.id]++
		}
		if err := x.proved(); err != nil {
			t.Errorf("%v\n%s", err, written(t, j))
		}
		assumed[x.out.Statement().Assumes().String()] = true
	}
	for _, x := range theTheorems {
		if used[x.id] == 0 && x.id != "semi-sparse" && x.id != "chain" {
			t.Errorf("no job uses %s", x.id)
		}
	}
	for _, names := range []string{"", "graph, instant", "instant", "coins",
		"program, time, last-bit, coins"} {
		if !assumed[names] {
			t.Errorf("no statement assumes %q: %v", names, assumed)
		}
	}
	for what, n := range wrong {
		t.Log(n, what)
	}
}

// What no theorem is about is refused with noise, at its place, unless something else is wrong with
// it; without noise there is nothing to prove.
func TestUnproved(t *testing.T) {
	const text = `name = "x"
rounds = 6
parties.count = 12
model.length = 5
metrics.share = 0.1
privacy = { clip = 1.0, clip_quantile = 0.5`
	if _, err := Parse("x.toml", []byte(text+" }\n")); err != nil {
		t.Error(err)
	}
	noisy := text + ", noise = \"skellam\", multiplier = 2.0 }\n"
	_, err := Parse("x.toml", []byte(noisy))
	want := "x.toml:6: privacy.clip_quantile: nothing is proved about it together with " +
		"metrics.share; leave one of the two out"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	wrong := strings.Replace(noisy, "clip_quantile = 0.5", "clip_quantile = 1.5", 1)
	if _, err := Parse("x.toml", []byte(wrong)); len(Errors(err)) != 1 ||
		!strings.Contains(err.Error(), "outside") {
		t.Error(err)
	}
}

// Each coordinate of a submission is in one lane with a bound: what a segment more would show has
// none, and so has a coordinate that a lane does not count.
func TestClaimed(t *testing.T) {
	j := begun(t)[0]
	j.Privacy.Multiplier, j.Privacy.ClipQuantile = 4, 0.5
	x := &settling{Job: j.WithDefaults(), declared: j, files: Files{Roster: RosterOf(t, 12)}}
	for _, step := range []func() error{x.who, x.sums, x.noise, x.lanes, x.sessions} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.proved(); err != nil {
		t.Fatal(err)
	}
	layout := x.out.session.Layout
	for what, wrong := range map[string]masking.Layout{
		"a lane more":         append(slices.Clone(layout), masking.Segment{Length: 1, Bits: 8}),
		"a coordinate more":   {{Length: layout[0].Length + 1, Bits: 32}, layout[1]},
		"lanes in both":       {layout[0], layout[0]},
		"nothing of the vote": layout[:1],
	} {
		x.out.session.Layout = wrong
		if err := x.proved(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A dealer whose proof misses is silent, and how often that is depends on its vector: less than
// once in 2^57, which δ is charged for. A budget whose δ that alone exceeds is refused.
func TestSilenceIsCharged(t *testing.T) {
	j := parse(t, `name = "x"
rounds = 1000
parties = { count = 12, colluders = 1 }
model.length = 5
sum = { protocol = "oneshot", committee = "c.txt", bounded = true }
privacy = { noise = "discrete-gaussian", epsilon = 8.0, delta = 1e-13, clip = 1.0 }
`)
	files := Files{Roster: RosterOf(t, 12), Committee: RosterOf(t, 13)}
	if s, err := j.Settle(files); err == nil {
		t.Errorf("delta 1e-13 is kept with overrun %g a round", s.Round().Overrun)
	} else if !strings.Contains(err.Error(), "privacy.") {
		t.Error(err)
	} else {
		t.Log(err)
	}
	j.Privacy.Delta = 1e-5
	s, err := j.Settle(files)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Round().Overrun; !(got >= 25*0x1p-57 && got < 26*0x1p-57) {
		t.Errorf("overrun %g a round", got)
	}
}

// The plan of one-message sums says on which assumption open ones rest; covered ones do without.
func TestOpenSumsSayWhatTheyAssume(t *testing.T) {
	for _, covered := range []bool{false, true} {
		j := parse(t, fmt.Sprintf("name = \"x\"\nrounds = 1\nparties.count = 5\nmodel.length = 3\n"+
			"sum = { protocol = \"oneshot\", covered = %v }\n", covered))
		plan := strings.Join(j.Explain(), "\n")
		if strings.Contains(plan, "rests on an assumption") == covered {
			t.Errorf("covered %v: %q", covered, j.Explain())
		}
	}
}
