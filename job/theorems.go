package job

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/accounting"
)

// theorem is an entry of the table of what is proved about sums with noise. A job with noise has a
// derivation: the theorems that are about what it runs. A field that is set, and that is not free,
// must be admitted by each of them: nobody has looked at others next to it.
type theorem struct {
	id    string
	of    string // the part of a derivation: sum, bound, law, coin, rounds or failure
	words string // what it concludes
	where string // where it is proved
	by    string // the field that calls for it
	about func(*run) bool
	needs []need
	// admits has the groups and the fields that may be set next to it. Words behind = are all that a
	// field may be.
	admits  string
	not     []unproved // of what it does not admit, where there is more to say
	assumes accounting.Assumptions

	may map[string][]string // admits, taken apart: of a field its words, or nil for all
}

// need is a hypothesis of a theorem, which reads what runs.
type need struct {
	words string
	holds func(*figures) (value string, ok bool)
}

// unproved is advice about fields that a theorem does not admit, or about one word of a field.
type unproved struct {
	fields      string // the word of one behind =
	at          string // the field to change; empty: the one that is set
	why, advice string
}

// Theorem is a theorem on file.
type Theorem struct {
	ID     string   `json:"id"`
	Of     string   `json:"of"`     // the part of a derivation: sum, bound, law, coin, rounds or failure
	Words  string   `json:"words"`  // what it concludes
	Where  string   `json:"where"`  // where it is proved
	By     string   `json:"by"`     // the field that calls for it
	Needs  []string `json:"needs"`  // of what runs
	Admits []string `json:"admits"` // groups, and fields, with the words that they may have
	// Refuses has those that it does not admit for a reason that is known.
	Refuses []FieldGroup `json:"refuses"`
	// Assumes has what nobody checks.
	Assumes accounting.Assumptions `json:"assumes"`
}

// TheoremTable has the theorems on which ε of jobs rests, in the order of a derivation, and the
// mark of each field: those of a group are admitted together, and free ones by all. Fields of the
// world are in neither, since they are in no digest.
type TheoremTable struct {
	Theorems []Theorem    `json:"theorems"`
	Groups   []FieldGroup `json:"groups"`
	Free     []FieldGroup `json:"free"`
}

// Theorems returns the table. A job with noise that sets a field which some theorem of its
// derivation does not admit is refused.
func Theorems() TheoremTable {
	table := TheoremTable{Groups: theGroups, Free: theFree}
	for _, t := range theTheorems {
		public := Theorem{t.id, t.of, t.words, t.where, t.by, []string{}, strings.Fields(t.admits),
			[]FieldGroup{}, t.assumes}
		for _, n := range t.needs {
			public.Needs = append(public.Needs, n.words)
		}
		for _, n := range t.not {
			public.Refuses = append(public.Refuses, FieldGroup{n.why, strings.Fields(n.fields)})
		}
		table.Theorems = append(table.Theorems, public)
	}
	return table
}

// isFree reports whether a field is public data, or changes only what is made of sums, or what a
// party does before its vector is clipped.
func isFree(f Field) bool { return f.Part == Simulated || freePaths[f.Path] }

var freePaths = map[string]bool{}

func init() {
	for _, g := range theFree {
		for _, path := range g.Fields {
			freePaths[path] = true
		}
	}
	for i := range theTheorems {
		t := &theTheorems[i]
		t.may = map[string][]string{}
		for _, f := range strings.Fields(t.admits) {
			path, words, some := strings.Cut(f, "=")
			if some {
				t.may[path] = strings.Split(words, ",")
				continue
			}
			for _, one := range grouped(path) {
				t.may[one] = nil
			}
		}
	}
}

// grouped returns the fields of a group, or the field itself.
func grouped(name string) []string {
	for _, g := range theGroups {
		if g.Name == name {
			return g.Fields
		}
	}
	return []string{name}
}

// admitsWord reports whether a field may have a word next to a theorem.
func (t *theorem) admitsWord(path, word string) bool {
	words, may := t.may[path]
	return may && (words == nil || slices.Contains(words, word)) && !t.excludes(path+"="+word)
}

// excludes reports whether a theorem says why a word of a field is not admitted.
func (t *theorem) excludes(field string) bool {
	return slices.ContainsFunc(t.not, func(n unproved) bool {
		return slices.Contains(strings.Fields(n.fields), field)
	})
}

// unproved returns what a theorem says about a field that it does not admit, nil: nothing.
func (t *theorem) unproved(path, word string) *unproved {
	for i := range t.not {
		fields := strings.Fields(t.not[i].fields)
		if slices.Contains(fields, path) || slices.Contains(fields, path+"="+word) {
			return &t.not[i]
		}
	}
	return nil
}

// derivation returns the theorems that are about what runs.
func (r *run) derivation() (all []*theorem) {
	for i := range theTheorems {
		if theTheorems[i].about(r) {
			all = append(all, &theTheorems[i])
		}
	}
	return all
}

// setting is a field that a job sets, to a word if its kind is one.
type setting struct {
	Field
	word string
}

// settings returns the fields that are set, and not free, each once.
func (j *Job) settings() (all []setting) {
	seen := map[string]bool{}
	var walk func(owner any, t *table, at string)
	walk = func(owner any, t *table, at string) {
		for _, e := range t.entries {
			if l := e.list; l != nil {
				for i := range l.len(owner) {
					walk(l.of(owner, i), &l.rows, at+l.path+"[].")
				}
				continue
			}
			r := e.row
			if r.zero(owner) || reflect.DeepEqual(r.get(owner), r.preset) {
				continue
			}
			f := r.Field
			f.Path = at + f.Path
			if seen[f.Path] || isFree(f) {
				continue
			}
			seen[f.Path] = true
			s := setting{Field: f}
			if text, ok := r.get(owner).(string); ok {
				s.word = text
			}
			all = append(all, s)
		}
	}
	walk(j, &theJob, "")
	return all
}

// refusals lists, of a job with noise, each field next to a theorem of a derivation that does not
// admit it. What two fields do to each other is told once, with advice if there is any, and not if
// something else is wrong with one of the two.
func (j *Job) refusals(derivation []*theorem, wrong ...*ConfigError) (all []*ConfigError) {
	type pair struct {
		setting
		theorem *theorem
		more    *unproved
	}
	var pairs []pair
	for _, s := range j.settings() {
		for _, t := range derivation {
			if s.Path != t.by && !t.admitsWord(s.Path, s.word) {
				pairs = append(pairs, pair{s, t, t.unproved(s.Path, s.word)})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { // those with advice first
		switch {
		case (a.more == nil) == (b.more == nil):
			return 0
		case a.more != nil:
			return -1
		}
		return 1
	})
	told := map[[2]string]bool{}
	for _, e := range wrong {
		told[[2]string{e.Path}] = true
	}
	for _, p := range pairs {
		e := &ConfigError{Path: listOf(p.Path), Advice: "leave one of the two out",
			Reason: "nothing is proved about it together with " + listOf(p.theorem.by)}
		if p.more != nil {
			e.Path, e.Reason, e.Advice = cmp.Or(p.more.at, p.Path), p.more.why, p.more.advice
		}
		two := [2]string{min(p.Path, p.theorem.by), max(p.Path, p.theorem.by)}
		if told[two] || told[[2]string{p.Path}] || told[[2]string{p.theorem.by}] {
			continue
		}
		told[two], told[[2]string{e.Path}] = true, true
		all = append(all, e)
	}
	return all
}

// listOf returns the list whose elements have a field, or the field itself.
func listOf(path string) string {
	list, _, _ := strings.Cut(path, "[]")
	return list
}

// proved refuses what runs if a hypothesis of a theorem of its derivation does not hold, or if a
// coordinate of a submission is in no lane, or in two.
func (x *settling) proved() error {
	if !x.Noisy() {
		return nil
	}
	f := x.figures()
	derivation := f.derivation()
	for _, e := range x.declared.refusals(derivation) {
		return x.Mistake(e.Path, e.Advice, "%s", e.Reason)
	}
	for _, t := range derivation {
		for _, n := range t.needs {
			if value, ok := n.holds(f); !ok {
				return x.Mistake(t.by, ours, "theorem %s needs %s: %s", t.id, n.words, value)
			}
		}
	}
	if err := f.claimed(); err != nil {
		return x.Mistake("privacy.noise", ours, "%v", err)
	}
	return nil
}

// ours is advice about what no job can cause by itself.
const ours = "this is a fault of the program, not of the job: report it"

// claimed fails if the lanes with a bound are not all of a submission, each coordinate once.
func (f *figures) claimed() error {
	if len(f.lanes) != len(f.layout) {
		return fmt.Errorf("a submission has %d segments, and the noise is in %d", len(f.layout),
			len(f.lanes))
	}
	for i, s := range f.layout {
		if f.lanes[i] != s.Length {
			return fmt.Errorf("segment %d of a submission has %d coordinates, and %d are bounded", i+1,
				s.Length, f.lanes[i])
		}
	}
	return nil
}
