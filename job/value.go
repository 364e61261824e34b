package job

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hushsum/hushsum/internal/suggest"
)

// This file has what the values of fields are: from a file or a text, inside their range, and
// as text.

// set gives a field a value that was read: a string, int64, float64, bool, time.Time, or a []any
// of those. It fails with a ConfigError without a place.
func (r *row) set(owner any, v any) *ConfigError {
	refuse := func() *ConfigError {
		kind := r.Kind
		if kind == Word {
			kind = Text
		}
		return &ConfigError{Reason: fmt.Sprintf("%s is not %s", show(v), kind.one()), Advice: r.write()}
	}
	elements := func(each func(v any) bool) bool {
		list, ok := v.([]any)
		for _, one := range list {
			ok = ok && each(one)
		}
		return ok
	}
	switch p := r.at(owner).(type) {
	case *string:
		s, ok := v.(string)
		if !ok {
			return refuse()
		}
		return r.keep(func() { *p = s }, r.holdsText(s), s)
	case *int:
		n, ok := asWhole(v)
		if !ok {
			return refuse()
		}
		return r.keep(func() { *p = int(n) }, r.in.holds(float64(n)), n)
	case *uint64:
		n, ok := asWhole(v)
		if !ok {
			return refuse()
		}
		return r.keep(func() { *p = uint64(n) }, n >= 0, n)
	case *float64:
		x, ok := asNumber(v)
		if !ok {
			return refuse()
		}
		return r.keep(func() { *p = x }, r.in.holds(x), x)
	case *bool:
		b, ok := v.(bool)
		if !ok {
			return refuse()
		}
		*p = b
	case *time.Duration:
		d, ok := asSpan(v)
		if !ok {
			return refuse()
		}
		return r.keep(func() { *p = d }, r.in.holds(d.Seconds()), d)
	case *time.Time:
		t, ok := asInstant(v)
		if !ok {
			return refuse()
		}
		*p = t
	case *[]string:
		var out []string
		fits := true
		if !elements(func(v any) bool {
			s, ok := v.(string)
			out, fits = append(out, s), fits && r.holdsText(s)
			return ok
		}) {
			return refuse()
		}
		return r.keep(func() { *p = out }, fits, out)
	case *[]int:
		out := []int{} // an empty list is one: the shape of a single number
		fits := true
		if !elements(func(v any) bool {
			n, ok := asWhole(v)
			out, fits = append(out, int(n)), fits && r.in.holds(float64(n))
			return ok
		}) {
			return refuse()
		}
		return r.keep(func() { *p = out }, fits, out)
	case *[]float64:
		var out []float64
		fits := true
		if !elements(func(v any) bool {
			x, ok := asNumber(v)
			out, fits = append(out, x), fits && r.in.holds(x)
			return ok
		}) {
			return refuse()
		}
		return r.keep(func() { *p = out }, fits, out)
	case *[]time.Duration:
		var out []time.Duration
		fits := true
		if !elements(func(v any) bool {
			d, ok := asSpan(v)
			out, fits = append(out, d), fits && r.in.holds(d.Seconds())
			return ok
		}) {
			return refuse()
		}
		return r.keep(func() { *p = out }, fits, out)
	}
	return nil
}

// keep sets a value that is inside, and says what is inside of one that is not.
func (r *row) keep(set func(), holds bool, v any) *ConfigError {
	if holds {
		set()
		return nil
	}
	if why, found := r.refused[fmt.Sprint(v)]; found {
		return &ConfigError{Reason: why[0], Advice: why[1]}
	}
	if r.Kind == Word {
		advice := "write one of " + r.Range
		for _, w := range r.Words {
			if suggest.Nearest(fmt.Sprint(v), []string{w, w[strings.LastIndexByte(w, '-')+1:]}) != "" {
				advice = "did you mean " + w + "?"
				break
			}
		}
		return &ConfigError{Reason: fmt.Sprintf("there is no %s", show(v)), Advice: advice}
	}
	return &ConfigError{Reason: fmt.Sprintf("%s is outside its range", show(v)), Advice: r.write()}
}

// write says what to write.
func (r *row) write() string {
	what := map[Kind]string{
		Text: "text", Word: "one of " + r.Range, Whole: "a whole number", Number: "a number",
		Truth: "true or false", Span: `a time such as "300ms" or "10m"`,
		Instant: `an instant such as 2027-01-31T08:00:00Z`, Texts: "a list of texts",
		Wholes: "a list of whole numbers", Numbers: "a list of numbers", Spans: "a list of times",
	}[r.Kind]
	if r.Range == "" || r.Kind == Word || r.Kind == Instant {
		return "write " + what
	}
	return fmt.Sprintf("write %s: %s", what, r.Range)
}

// within advises to write a whole number from least to most, if there is one, or to take another
// way.
func within(least, most int, ways ...string) string {
	number := func(n int) string { return thousands(float64(n)) }
	switch {
	case least == most:
		ways = append([]string{"write " + number(least)}, ways...)
	case least < most:
		ways = append([]string{"write " + number(least) + " to " + number(most)}, ways...)
	}
	return strings.Join(ways, ", or ")
}

func (r *row) holdsText(s string) bool {
	if r.Kind == Word {
		for _, w := range r.Words {
			if w == s {
				return true
			}
		}
		return false
	}
	return r.fits == nil || r.fits(s)
}

// zero reports whether a field has its zero value.
func (r *row) zero(owner any) bool { return reflect.ValueOf(r.at(owner)).Elem().IsZero() }

// get returns a field's value.
func (r *row) get(owner any) any { return reflect.ValueOf(r.at(owner)).Elem().Interface() }

// fill gives a field that has its zero value what that means, where it is a constant.
func (r *row) fill(owner any) {
	if r.preset != nil && r.zero(owner) {
		reflect.ValueOf(r.at(owner)).Elem().Set(reflect.ValueOf(r.preset))
	}
}

// check returns what is wrong with the value of a job that was made in Go; nil for a zero value.
func (r *row) check(owner any) *ConfigError {
	if r.zero(owner) {
		return nil
	}
	v := r.get(owner)
	switch list := v.(type) {
	case []string:
		v = anys(list)
	case []int:
		v = anys(list)
	case []float64:
		v = anys(list)
	case []time.Duration:
		v = anys(list)
	}
	return r.set(owner, v)
}

func anys[E any](list []E) (out []any) {
	for _, v := range list {
		out = append(out, v)
	}
	return out
}

func asWhole(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case uint64:
		return int64(n), n <= math.MaxInt64
	case float64: // JSON writes 1e3 for 1000
		return int64(n), n == math.Trunc(n) && math.Abs(n) <= 1<<53
	}
	return 0, false
}

func asNumber(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case int64:
		return float64(x), true
	}
	return 0, false
}

func asSpan(v any) (time.Duration, bool) {
	switch d := v.(type) {
	case time.Duration:
		return d, true
	case string:
		parsed, err := time.ParseDuration(d)
		return parsed, err == nil
	}
	return 0, false
}

func asInstant(v any) (time.Time, bool) {
	switch t := v.(type) {
	case time.Time:
		return t, true
	case string:
		parsed, err := time.Parse(time.RFC3339, t)
		return parsed, err == nil
	}
	return time.Time{}, false
}

// parse reads the text of a flag or of --set: lists with commas between.
func (r *row) parse(text string) (any, bool) {
	switch r.Kind {
	case Whole:
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil
	case Number:
		x, err := strconv.ParseFloat(text, 64)
		return x, err == nil
	case Truth:
		b, err := strconv.ParseBool(text)
		return b, err == nil
	case Texts, Spans, Wholes, Numbers:
		var out []any
		for _, one := range strings.Split(text, ",") {
			var v any = strings.TrimSpace(one)
			var err error
			switch r.Kind {
			case Wholes:
				v, err = strconv.ParseInt(v.(string), 10, 64)
			case Numbers:
				v, err = strconv.ParseFloat(v.(string), 64)
			}
			if err != nil {
				return text, false
			}
			out = append(out, v)
		}
		return out, true
	}
	return text, true
}

// format writes a value as a file has it, in one form only: numbers in the shortest decimal form
// that reads back, text as JSON writes it.
func format(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text
	case time.Duration:
		return quote(v.String())
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case []string:
		return formats(v)
	case []int:
		return formats(v)
	case []float64:
		return formats(v)
	case []time.Duration:
		return formats(v)
	}
	return fmt.Sprint(v)
}

func formats[E any](list []E) string {
	var parts []string
	for _, v := range list {
		parts = append(parts, format(v))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("job: " + err.Error())
	}
	return string(b)
}

// show writes a value in a message, not all of a long one.
func show(v any) string {
	text := fmt.Sprint(v)
	if s, ok := v.(string); ok {
		text = strconv.Quote(s)
	}
	if runes := []rune(text); len(runes) > 60 {
		text = string(runes[:60]) + "…"
	}
	return text
}

// printable reports whether a text has nothing in it that moves a cursor or hides.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
