package job

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Digest names what is declared: it is the same for the same job in a simulation, in the service
// and from Python. The digest leaves out fields that may change while a job runs, the world of a
// simulation, comments, the order of lines, and values that equal their defaults. [Settled.Digest]
// also covers the files that the job names, and the number of parties if only a roster gives it.
func (j *Job) Digest() [32]byte {
	if j.counted > 0 && j.counted == j.Parties.Count {
		j = j.Clone()
		j.Parties.Count = 0
	}
	return j.digest()
}

// digest is over all Lines.
func (j *Job) digest() [32]byte {
	return sha256.Sum256([]byte("hushsum/3 job\n" + strings.Join(j.Lines(), "\n") + "\n"))
}

// Lines returns the lines that the digest covers, and the number of parties even if only a roster
// gives that number: each declared field that differs from its default, as "path = value", in the
// order of [Fields].
func (j *Job) Lines() (lines []string) {
	j.WithDefaults().lines(Declared, func(path, value string) {
		lines = append(lines, path+" = "+value)
	})
	return lines
}

// Compare returns a [DifferenceError] for the first field in which the lines of another side's
// job differ, nil if there is none.
func (j *Job) Compare(theirs []string) error {
	ours := j.Lines()
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
	return &DifferenceError{Field: "order of the fields", Ours: "that of the table", Theirs: "another"}
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

// lines tells each field of a part that is not zero, of a job whose defaults are filled in, and
// that differs from its default.
func (j *Job) lines(part Part, tell func(path, value string)) {
	var walk func(owner any, t *table, at string)
	walk = func(owner any, t *table, at string) {
		for _, e := range t.entries {
			path := join(at, e.path())
			if e.list != nil {
				for i := range e.list.len(owner) {
					walk(e.list.of(owner, i), &e.list.rows, join(path, strconv.Itoa(i)))
				}
				continue
			}
			if r := e.row; r.Part == part && !r.zero(owner) && !reflect.DeepEqual(r.get(owner), r.preset) {
				tell(path, format(r.get(owner)))
			}
		}
	}
	walk(j, &theJob, "")
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
