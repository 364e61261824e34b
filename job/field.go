package job

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is the type of a field's value.
type Kind string

// The kinds. A Time is text such as "300ms" or "1h30m", an Instant RFC 3339.
const (
	Text    Kind = "text"
	Word    Kind = "word" // one of Words
	Whole   Kind = "whole number"
	Number  Kind = "number"
	Truth   Kind = "true or false"
	Span    Kind = "time"
	Instant Kind = "instant"
	Texts   Kind = "list of texts"
	Wholes  Kind = "list of whole numbers"
	Numbers Kind = "list of numbers"
	Spans   Kind = "list of times"
)

// one is a value of a kind, in a sentence.
func (k Kind) one() string {
	switch k {
	case Truth:
		return string(k)
	case Instant:
		return "an " + string(k)
	}
	return "a " + string(k)
}

// Part says which part of a job a field belongs to, and so whether the digest covers the field.
type Part string

// The parts.
const (
	Declared  Part = "declared" // in the digest
	Content   Part = "file"     // names a file, whose content is in the digest of Settled
	Schedule  Part = "time"     // may change while a job runs; in no digest
	Simulated Part = "world"    // for simulations only; in no digest
)

// Field is a row in the table of everything that a job declares.
type Field struct {
	// Path is its name in files, messages and --set, such as privacy.epsilon; a list has
	// brackets, as in world.party[].crash[].round.
	Path     string   `json:"path"`
	Kind     Kind     `json:"kind"`
	Unit     string   `json:"unit"`            // such as rows or bits; empty: it has none
	Range    string   `json:"range"`           // in words; empty: any
	Default  string   `json:"default"`         // in words, what a zero value means
	Sentence string   `json:"sentence"`        // what it does: a verb first
	Words    []string `json:"words,omitempty"` // of Word
	Required bool     `json:"required"`
	Part     Part     `json:"part"`
	// Flag is the name of a command's flag that sets it, empty if there is none, and Arg what
	// its help calls the value.
	Flag string `json:"flag"`
	Arg  string `json:"arg"`
}

// Fields returns the table, in the order of a file.
func Fields() iter.Seq[Field] {
	return func(yield func(Field) bool) { walk(&theJob, "", yield) }
}

func walk(t *table, prefix string, yield func(Field) bool) bool {
	for _, e := range t.entries {
		switch {
		case e.list != nil:
			if !walk(&e.list.rows, prefix+e.list.path+"[].", yield) {
				return false
			}
		default:
			f := e.row.Field
			f.Path = prefix + f.Path
			if !yield(f) {
				return false
			}
		}
	}
	return true
}

// table has the rows of a struct, in order.
type table struct{ entries []entry }

// entry is a row, or a list of tables.
type entry struct {
	row  *row
	list *list
}

// row is a field and where its value is.
type row struct {
	Field
	at     func(owner any) any // a pointer to the value
	in     limits
	preset any // what a zero value means; nil: zero, or worked out
	fits   func(text string) bool
	// refused has the reason, and what to do, of words that people expect and that there are not.
	refused map[string][2]string
	// missing lists the runners that do not do what the field declares.
	missing []lack
}

// list is a list of tables.
type list struct {
	path string // such as parties.group
	len  func(owner any) int
	of   func(owner any, i int) any // a pointer to an element
	grow func(owner any, n int)     // by n elements
	own  func(owner any)            // has the owner no longer share its elements
	most int                        // of elements
	// fewer says what to do where there are more.
	fewer   string
	rows    table
	missing []lack // as of a row
}

// zero reports whether a job leaves the field, or the list, out.
func (e entry) zero(j *Job) bool {
	if e.row != nil {
		return e.row.zero(j)
	}
	return e.list.len(j) == 0
}

// missing lists the runners that do not do what the field, or the list, declares.
func (e entry) missing() []lack {
	if e.row != nil {
		return e.row.missing
	}
	return e.list.missing
}

// few bounds a list each element of which is looked for in another.
func (l *list) few() *list {
	l.most, l.fewer = maxList, "divide it between several jobs"
	return l
}

func tableOf(entries ...interface{ entry() entry }) table {
	var t table
	for _, e := range entries {
		t.entries = append(t.entries, e.entry())
	}
	return t
}

func (r *row) entry() entry  { return entry{row: r} }
func (l *list) entry() entry { return entry{list: l} }

// many is a list of tables in T.
func many[T, E any](path string, at func(*T) *[]E, rows table) *list {
	return &list{
		path: path,
		len:  func(owner any) int { return len(*at(owner.(*T))) },
		of:   func(owner any, i int) any { return &(*at(owner.(*T)))[i] },
		grow: func(owner any, n int) {
			p := at(owner.(*T))
			*p = append(*p, make([]E, n)...)
		},
		own: func(owner any) {
			p := at(owner.(*T))
			*p = slices.Clone(*p)
		},
		most:  MaxParties,
		fewer: "use groups",
		rows:  rows,
	}
}

func newRow[T, V any](kind Kind, path string, at func(*T) *V, sentence string) *row {
	return &row{
		Field: Field{Path: path, Kind: kind, Sentence: sentence, Part: Declared},
		at:    func(owner any) any { return at(owner.(*T)) },
		in:    limits{lo: math.Inf(-1), hi: math.Inf(1)},
	}
}

func text[T any](path string, at func(*T) *string, sentence string) *row {
	return newRow(Text, path, at, sentence)
}

func word[T any](path string, at func(*T) *string, words string, sentence string) *row {
	r := newRow(Word, path, at, sentence)
	r.Words = strings.Fields(words)
	r.Range = strings.Join(r.Words, ", ")
	return r
}

func whole[T any](path string, at func(*T) *int, in limits, sentence string) *row {
	return newRow(Whole, path, at, sentence).within(in)
}

func seed[T any](path string, at func(*T) *uint64, sentence string) *row {
	r := newRow(Whole, path, at, sentence)
	r.in, r.Range = limits{hi: math.MaxInt64}, "0 to 2^63−1" // as far as TOML's integers go
	return r
}

func number[T any](path string, at func(*T) *float64, in limits, sentence string) *row {
	return newRow(Number, path, at, sentence).within(in)
}

func truth[T any](path string, at func(*T) *bool, sentence string) *row {
	r := newRow(Truth, path, at, sentence)
	r.Default = "false"
	return r
}

func span[T any](path string, at func(*T) *time.Duration, in limits, sentence string) *row {
	return newRow(Span, path, at, sentence).within(in)
}

func instant[T any](path string, at func(*T) *time.Time, sentence string) *row {
	r := newRow(Instant, path, at, sentence)
	r.Range = "RFC 3339"
	return r
}

func texts[T any](path string, at func(*T) *[]string, sentence string) *row {
	return newRow(Texts, path, at, sentence).form("1 to 200 characters each", someText)
}

func wholes[T any](path string, at func(*T) *[]int, sentence string) *row {
	return newRow(Wholes, path, at, sentence)
}

func numbers[T any](path string, at func(*T) *[]float64, sentence string) *row {
	return newRow(Numbers, path, at, sentence)
}

func spans[T any](path string, at func(*T) *[]time.Duration, sentence string) *row {
	return newRow(Spans, path, at, sentence)
}

func (r *row) within(in limits) *row {
	r.in, r.Range = in, in.text(r.Kind == Span || r.Kind == Spans)
	return r
}

// unit says what a number counts.
func (r *row) unit(u string) *row { r.Unit = u; return r }

// means says in words what a zero value means, where that is worked out.
func (r *row) means(words string) *row { r.Default = words; return r }

// or gives the value that zero stands for.
func (r *row) or(v any) *row {
	r.preset, r.Default = v, format(v)
	return r
}

func (r *row) required() *row { r.Required, r.Default = true, "required"; return r }

// refuses says why a word is none, and what to do.
func (r *row) refuses(word, why, advice string) *row {
	r.refused = map[string][2]string{word: {why, advice}}
	return r
}

// flag names the command's flag that sets the field.
func (r *row) flag(name, arg string) *row { r.Flag, r.Arg = name, arg; return r }

func (r *row) of(p Part) *row { r.Part = p; return r }

// form says what a text must look like.
func (r *row) form(words string, fits func(string) bool) *row {
	r.Range, r.fits = words, fits
	return r
}

// says replaces the words of the range, where that depends on other fields.
func (r *row) says(words string) *row { r.Range = words; return r }

// limits is a range of numbers, or of times in seconds.
type limits struct {
	lo, hi       float64
	above, below bool // the end itself is outside
}

func from(lo float64) limits        { return limits{lo: lo, hi: math.Inf(1)} }
func above(lo float64) limits       { return limits{lo: lo, hi: math.Inf(1), above: true} }
func between(lo, hi float64) limits { return limits{lo: lo, hi: hi} }

// Limits that several fields have.
var (
	share    = limits{hi: 1, below: true}
	inside   = limits{hi: 1, above: true, below: true}
	positive = above(0)
)

// holds reports whether a number is inside: NaN and infinities are not.
func (l limits) holds(x float64) bool {
	return !math.IsNaN(x) && !math.IsInf(x, 0) && (x > l.lo || x == l.lo && !l.above) &&
		(x < l.hi || x == l.hi && !l.below)
}

func (l limits) text(times bool) string {
	end := func(x float64) string {
		if times {
			text := time.Duration(x * float64(time.Second)).String()
			return strings.TrimSuffix(text, "0m0s") // of whole hours
		}
		return thousands(x)
	}
	switch {
	case math.IsInf(l.lo, -1):
		return ""
	case math.IsInf(l.hi, 1) && l.above:
		return "above " + end(l.lo)
	case math.IsInf(l.hi, 1):
		return end(l.lo) + " or more"
	case l.above && l.below:
		return fmt.Sprintf("above %s, below %s", end(l.lo), end(l.hi))
	case l.above:
		return fmt.Sprintf("above %s, to %s", end(l.lo), end(l.hi))
	case l.below:
		return fmt.Sprintf("%s to below %s", end(l.lo), end(l.hi))
	}
	return fmt.Sprintf("%s to %s", end(l.lo), end(l.hi))
}

// thousands writes a number, a large whole one with commas.
func thousands(x float64) string {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if x != math.Trunc(x) || math.Abs(x) < 10_000 || math.Abs(x) > 1e15 {
		return text
	}
	text = strconv.FormatInt(int64(x), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
