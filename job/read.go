package job

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/internal/suggest"
)

// mostMistakes is how many mistakes are told at most. Of the others their number is.
const mostMistakes = 100

// reader brings what was read into a job, and gathers what is wrong.
type reader struct {
	wrong []*ConfigError
	more  int // mistakes that are not kept
}

// add keeps a mistake, if there are not too many.
func (r *reader) add(path string, e *ConfigError) {
	switch {
	case e == nil:
	case r.full():
		r.more++
	default:
		e.Path = path
		r.wrong = append(r.wrong, e)
	}
}

// full reports whether no more mistakes are kept.
func (r *reader) full() bool { return len(r.wrong) >= mostMistakes }

// join returns the mistakes as one error, by line; those of no line come last, and
// then how many more there are.
func (r *reader) join() error {
	slices.SortStableFunc(r.wrong, func(a, b *ConfigError) int {
		if (a.Line == 0) != (b.Line == 0) {
			return b.Line - a.Line
		}
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	var all []error
	for _, e := range r.wrong {
		all = append(all, e)
	}
	if r.more > 0 {
		all = append(all, &ConfigError{File: r.wrong[0].File, Advice: "mend these first",
			Reason: fmt.Sprintf("and %d more mistakes", r.more)})
	}
	return errors.Join(all...)
}

// table reads the keys of a table: the rows are of owner, at its path in the file, and
// within the path in it of this table.
func (r *reader) table(owner any, t *table, at, within string, keys map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		v, name, path := keys[key], join(within, key), join(at, key)
		e := t.find(name)
		inner, isTable := v.(map[string]any)
		switch {
		case e.row != nil:
			r.add(path, e.row.set(owner, v))
		case e.list != nil:
			r.list(owner, e.list, path, v)
		case isTable && t.has(name):
			r.table(owner, t, path, name, inner)
		case t.has(name):
			r.add(path, &ConfigError{Reason: "it is a table, and not " + show(v),
				Advice: fmt.Sprintf("write [%s], and its fields below it", path)})
		case isTable && len(inner) > 0:
			r.unknown(t, path, inner)
		default:
			r.stray(t, path, within, key)
		}
	}
}

// stray refuses a field that there is not. What was meant takes long to find.
func (r *reader) stray(t *table, path, within, key string) {
	e := &ConfigError{Reason: "there is no such field"}
	if !r.full() {
		e.Advice = t.meant(within, key)
	}
	r.add(path, e)
}

// unknown refuses the fields of a table that there is not, since each may stand elsewhere.
func (r *reader) unknown(t *table, at string, keys map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		r.stray(t, join(at, key), "", key)
	}
}

func (r *reader) list(owner any, l *list, path string, v any) {
	elements, ok := v.([]any)
	for _, element := range elements {
		_, isTable := element.(map[string]any)
		ok = ok && isTable
	}
	if !ok {
		r.add(path, &ConfigError{Reason: "it is a list of tables",
			Advice: fmt.Sprintf("write [[%s]] for each, with two brackets", path)})
		return
	}
	if len(elements) > l.most {
		r.add(path, &ConfigError{Reason: fmt.Sprintf("there are %d, and %d is the most", len(elements),
			l.most), Advice: l.fewer})
		return
	}
	l.grow(owner, len(elements))
	for i, element := range elements {
		r.table(l.of(owner, i), &l.rows, join(path, strconv.Itoa(i)), "", element.(map[string]any))
	}
}

// find returns the row or list of a path, an empty entry if there is none.
func (t *table) find(path string) entry {
	for _, e := range t.entries {
		if e.row != nil && e.row.Path == path || e.list != nil && e.list.path == path {
			return e
		}
	}
	return entry{}
}

// has reports whether a path is one of tables that lead to rows.
func (t *table) has(path string) bool {
	return slices.ContainsFunc(t.entries, func(e entry) bool {
		return strings.HasPrefix(e.path(), path+".")
	})
}

func (e entry) path() string {
	if e.list != nil {
		return e.list.path
	}
	return e.row.Path
}

// meant says what to write in place of a key that there is not.
func (t *table) meant(within, key string) string {
	var near []string
	for _, e := range t.entries {
		rest, ok := e.path(), true
		if within != "" {
			rest, ok = strings.CutPrefix(rest, within+".")
		}
		if first, _, _ := strings.Cut(rest, "."); ok && !slices.Contains(near, first) {
			near = append(near, first)
		}
	}
	for _, e := range t.entries { // the same name elsewhere
		if path := e.path(); path[strings.LastIndexByte(path, '.')+1:] == key {
			return "write " + path
		}
	}
	if name := suggest.Nearest(key, near); name != "" {
		return "did you mean " + join(within, name) + "?"
	}
	for _, e := range t.entries {
		path := e.path()
		if name := suggest.Nearest(key, []string{path[strings.LastIndexByte(path, '.')+1:]}); name != "" {
			return "did you mean " + path + "?"
		}
	}
	return "there are " + strings.Join(near, ", ")
}

// Get returns a field's value in the form that [Job.Set] takes, empty if the field has no value.
// The field must not be in a list.
func (j *Job) Get(path string) string {
	e := theJob.find(path)
	if e.row == nil || e.row.zero(j) {
		return ""
	}
	if text, ok := e.row.get(j).(string); ok {
		return text
	}
	return strings.Trim(format(e.row.get(j)), `"[]`)
}

// Set gives a field a value, as --set PATH=VALUE does. A path names an element of a list by its
// number, from 0, or by its name: world.party.2.rows, query.older.where. Commas separate a list of
// values. Set fails with a [ConfigError]; only [Job.Validate] finds values that contradict other
// fields.
func (j *Job) Set(path, text string) error {
	fail := func(e *ConfigError) error {
		e.Path = path
		return e
	}
	var owner any = j
	t, rest := &theJob, path
	for {
		if e := t.find(rest); e.row != nil {
			v, ok := e.row.parse(text)
			if !ok {
				v = text
			}
			if err := e.row.set(owner, v); err != nil {
				return fail(err)
			}
			return nil
		}
		next := -1
		for k, e := range t.entries {
			if e.list != nil && (strings.HasPrefix(rest, e.list.path+".") || rest == e.list.path) {
				next = k
			}
		}
		if next < 0 {
			within, key := "", rest
			if i := strings.LastIndexByte(rest, '.'); i >= 0 && t.has(rest[:i]) {
				within, key = rest[:i], rest[i+1:]
			}
			return fail(&ConfigError{Reason: "there is no such field", Advice: t.meant(within, key)})
		}
		l := t.entries[next].list
		number, field, _ := strings.Cut(strings.TrimPrefix(rest, l.path+"."), ".")
		i, ok := l.element(owner, number)
		if !ok {
			return fail(&ConfigError{
				Reason: fmt.Sprintf("there is no element %s of %d", show(number), l.len(owner)),
				Advice: "count from 0, as in " + l.path + ".0." + l.rows.entries[0].path()})
		}
		owner, t, rest = l.of(owner, i), &l.rows, field
	}
}

// element returns which element of a list a number from 0 or a name means.
func (l *list) element(owner any, text string) (i int, ok bool) {
	n := l.len(owner)
	if i, err := strconv.Atoi(text); err == nil {
		return i, i >= 0 && i < n
	}
	for i := range n {
		if l.name(owner, i) == text {
			return i, true
		}
	}
	return 0, false
}

// name returns by which name paths have an element of a list; empty: by its number. It is one that
// no other element has, and neither a number nor a path of its own.
func (l *list) name(owner any, i int) string {
	e := l.rows.find("name")
	if e.row == nil {
		return ""
	}
	of := func(i int) string {
		name, _ := e.row.get(l.of(owner, i)).(string)
		return name
	}
	name := of(i)
	if _, err := strconv.Atoi(name); err == nil || strings.ContainsAny(name, ". =\t\n") {
		return ""
	}
	for other := range l.len(owner) {
		if other != i && of(other) == name {
			return ""
		}
	}
	return name
}

// named returns a path with names of elements for their numbers: query.older.where of
// query.3.where. It is empty if no element of it has a name.
func (j *Job) named(path string) string {
	var owner any = j
	t, rest, out, found := &theJob, path, "", false
	for {
		k := slices.IndexFunc(t.entries, func(e entry) bool {
			return e.list != nil && strings.HasPrefix(rest, e.list.path+".")
		})
		if k < 0 {
			break
		}
		l := t.entries[k].list
		number, field, _ := strings.Cut(strings.TrimPrefix(rest, l.path+"."), ".")
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= l.len(owner) {
			break
		}
		if name := l.name(owner, i); name != "" {
			number, found = name, true
		}
		out = join(out, l.path+"."+number)
		owner, t, rest = l.of(owner, i), &l.rows, field
	}
	if !found {
		return ""
	}
	return strings.TrimSuffix(join(out, rest), ".")
}
