package job

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/strict"
)

// Digest names what is declared: it is the same for the same job in a simulation, in the service
// and from Python. It is over [Job.Canonical]. [Settled.Digest] also covers the files that the job
// names.
func (j *Job) Digest() [32]byte {
	return sha256.Sum256(append([]byte(labels.Job+"\n"), j.Canonical()...))
}

// Canonical returns what is declared as canonical JSON (RFC 8785): each declared field, with the
// defaults that follow from other fields filled in, that differs from its own default, under its
// name in the file. It leaves out fields that may change while a job runs, the world of a
// simulation, and the number of parties if only a roster says it.
func (j *Job) Canonical() []byte { return strict.Canonical(j.declared()) }

func (j *Job) declared() map[string]any {
	own := j.WithDefaults()
	if j.counted > 0 && j.counted == j.Parties.Count {
		own.Parties.Count = 0
	}
	return treeOf(own, &theJob, func(r *row) bool { return r.Part == Declared })
}

// Greeting returns what tells another side what is declared, in so many bytes at most: a line for
// each value of [Job.Canonical], as "path = value" in the order of paths, or where those are longer
// a line for each table, as "query = sha256 …", with the digest of its canonical JSON.
func (j *Job) Greeting(most int) []string {
	tree := j.declared()
	lines := linesOf(tree, "")
	size := 0
	for _, line := range lines {
		size += len(line) + perLine
	}
	if size <= most {
		return lines
	}
	return tables(tree)
}

// perLine bounds what a line takes besides its bytes: quotes, a comma, and escapes of quotes.
const perLine = 16

const digestOf = "sha256 " // no value of a field begins so: text is in quotes

func linesOf(tree map[string]any, at string) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		path := join(at, name)
		switch v := tree[name].(type) {
		case map[string]any:
			lines = append(lines, linesOf(v, path)...)
		case []any:
			for i, element := range v {
				if table, is := element.(map[string]any); is {
					lines = append(lines, linesOf(table, join(path, strconv.Itoa(i)))...)
				}
			}
		default:
			lines = append(lines, path+" = "+string(strict.Canonical(v)))
		}
	}
	return lines
}

// tables returns a line for each name of a job's tree.
func tables(tree map[string]any) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		lines = append(lines, fmt.Sprintf("%s = %s%x", name, digestOf,
			sha256.Sum256(strict.Canonical(tree[name]))))
	}
	return lines
}

// Compare returns a [DifferenceError] for the first field in which the greeting of another side's
// job differs, or for the first table where theirs is long; nil if there is none.
func (j *Job) Compare(theirs []string) error {
	tree := j.declared()
	ours := linesOf(tree, "")
	digested := func(line string) bool {
		_, value, _ := strings.Cut(line, " = ")
		return strings.HasPrefix(value, digestOf)
	}
	if slices.ContainsFunc(theirs, digested) {
		ours = tables(tree)
	}
	if slices.Equal(ours, theirs) {
		return nil
	}
	values := func(lines []string) map[string]string {
		of := map[string]string{}
		for _, line := range lines {
			path, value, _ := strings.Cut(line, " = ")
			of[path] = value
		}
		return of
	}
	a, b := values(ours), values(theirs)
	for _, line := range append(ours, theirs...) {
		path, _, _ := strings.Cut(line, " = ")
		if a[path] != b[path] {
			known := func(of map[string]string) string { return cmp.Or(of[path], "its default") }
			return &DifferenceError{Field: path, Ours: known(a), Theirs: known(b)}
		}
	}
	return &DifferenceError{Field: "order of the fields", Ours: "that of their names",
		Theirs: "another"}
}

// WithDefaults returns the job with its defaults filled in, including those worked out from other
// fields, except those that only data, a roster or the noise decide.
func (j *Job) WithDefaults() *Job {
	own := j.Clone()
	p, m := &own.Privacy, &own.Model
	own.Parties.Count = own.Size()
	own.fillQueries()
	if p.Bits == 0 && own.Noisy() && !own.Oneshot() {
		p.Bits = 32
	}
	if own.noisyMembers() {
		p.NoiseBy = "committee"
	}
	if own.Sum.Buffer > 0 && own.Sum.Stale == 0 {
		own.Sum.Stale = staleRounds
	}
	if m.DType == "" {
		m.DType = "float32"
		if m.Name != "" {
			m.DType = "float64"
		}
	}
	if m.Name != "" && own.Training.Epochs == 0 && own.Training.Steps == 0 {
		own.Training.Epochs = 1
	}
	if own.Server.Rate == 0 {
		own.Server.Rate = serverRate
		if own.Server.adaptive() {
			own.Server.Rate = adaptiveRate
		}
	}
	own.fill(own, &theJob)
	return own
}

// fill fills in constant defaults.
func (j *Job) fill(owner any, t *table) {
	for _, e := range t.entries {
		if e.row != nil {
			e.row.fill(owner)
			continue
		}
		for i := range e.list.len(owner) {
			j.fill(e.list.of(owner, i), &e.list.rows)
		}
	}
}

// Clone returns a copy of a job, with its own lists of tables. Lists of values are shared:
// [Job.Set] never changes one in place.
func (j *Job) Clone() *Job {
	own := *j
	cloneLists(&own, &theJob)
	return &own
}

func cloneLists(owner any, t *table) {
	for _, e := range t.entries {
		if e.list == nil {
			continue
		}
		e.list.own(owner)
		for i := range e.list.len(owner) {
			cloneLists(e.list.of(owner, i), &e.list.rows)
		}
	}
}

// MarshalText returns the job as a TOML file: the fields that differ from their defaults, in the
// order of [Fields].
func (j *Job) MarshalText() ([]byte, error) {
	var b strings.Builder
	writeTable(&b, j, &theJob, "")
	return []byte(b.String()), nil
}

// writeTable writes the rows of a table below their headings, lists after what is plain.
func writeTable(b *strings.Builder, owner any, t *table, at string) {
	var headings []string
	rows := map[string]string{}
	for _, e := range t.entries {
		if e.row == nil || e.row.zero(owner) || reflect.DeepEqual(e.row.get(owner), e.row.preset) {
			continue
		}
		name, within := e.row.Path, ""
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			within, name = name[:i], name[i+1:]
		}
		if rows[within] == "" {
			headings = append(headings, within)
		}
		rows[within] += fmt.Sprintf("%s = %s\n", name, format(e.row.get(owner)))
	}
	for _, heading := range headings {
		if heading != "" {
			fmt.Fprintf(b, "\n[%s]\n", join(at, heading))
		}
		b.WriteString(rows[heading])
	}
	for _, e := range t.entries {
		if e.list == nil {
			continue
		}
		path := join(at, e.list.path)
		for i := range e.list.len(owner) {
			fmt.Fprintf(b, "\n[[%s]]\n", path)
			writeTable(b, e.list.of(owner, i), &e.list.rows, path)
		}
	}
}
