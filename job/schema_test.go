package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// withSchema makes the JSON schema of a job.
func withSchema([]byte) ([]byte, error) {
	s := schemaOf(&theJob)
	for _, section := range sections[1:] {
		table := s["properties"].(map[string]any)[section.name].(map[string]any)
		table["description"] = section.about
	}
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "A job of hushsum"
	s["description"] = "Made from the table of fields; hushsum job fields --schema prints it."
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(s)
	return b.Bytes(), err
}

// schemaOf makes the schema of a table: objects by the parts of paths.
func schemaOf(t *table) map[string]any {
	root := object()
	for _, e := range t.entries {
		names := strings.Split(e.path(), ".")
		at := root
		for _, name := range names[:len(names)-1] {
			properties := at["properties"].(map[string]any)
			if properties[name] == nil {
				properties[name] = object()
			}
			at = properties[name].(map[string]any)
		}
		name := names[len(names)-1]
		if e.list != nil {
			at["properties"].(map[string]any)[name] = map[string]any{
				"type": "array", "items": schemaOf(&e.list.rows), "maxItems": e.list.most,
			}
			continue
		}
		at["properties"].(map[string]any)[name] = schemaOfRow(e.row)
		if e.row.Required {
			required, _ := at["required"].([]string)
			at["required"] = append(required, name)
		}
	}
	return root
}

func object() map[string]any {
	return map[string]any{
		"type": "object", "properties": map[string]any{}, "additionalProperties": false,
	}
}

// spanPattern is how package time writes and reads durations, without a sign.
const spanPattern = `^(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

func schemaOfRow(r *row) map[string]any {
	one := map[Kind]map[string]any{
		Text: {"type": "string"}, Word: {"type": "string", "enum": r.Words},
		Whole: {"type": "integer"}, Number: {"type": "number"}, Truth: {"type": "boolean"},
		Span:    {"type": "string", "pattern": spanPattern},
		Instant: {"type": "string", "format": "date-time"},
		Texts:   {"type": "string"}, Wholes: {"type": "integer"},
		Numbers: {"type": "number"},
		Spans:   {"type": "string", "pattern": spanPattern},
	}[r.Kind]
	if one["type"] == "integer" || one["type"] == "number" {
		bound(one, r.in)
	}
	s := one
	if slices.Contains([]Kind{Texts, Wholes, Numbers, Spans}, r.Kind) {
		s = map[string]any{"type": "array", "items": one}
	}
	s["description"] = strings.TrimSpace(r.Sentence + " " + domain(r.Field))
	if r.preset != nil {
		s["default"] = plain(r.preset)
	}
	return s
}

// bound adds the ends of a range.
func bound(s map[string]any, in limits) {
	names := map[bool][2]string{
		false: {"minimum", "maximum"}, true: {"exclusiveMinimum", "exclusiveMaximum"},
	}
	if !math.IsInf(in.lo, 0) {
		s[names[in.above][0]] = in.lo
	}
	if !math.IsInf(in.hi, 0) {
		s[names[in.below][1]] = in.hi
	}
}

// fits reports where a value is not what a schema says, by the words that schemas of this package
// have, or returns nothing.
func fits(s map[string]any, v any, at string) (wrong []string) {
	add := func(format string, a ...any) { wrong = append(wrong, at+": "+fmt.Sprintf(format, a...)) }
	for word, want := range s {
		switch word {
		case "type":
			x, isNumber := v.(float64)
			is := map[string]bool{
				"object": is[map[string]any](v), "array": is[[]any](v), "string": is[string](v),
				"boolean": is[bool](v), "number": isNumber, "integer": isNumber && x == math.Trunc(x),
			}
			if !is[want.(string)] {
				add("%v is no %v", v, want)
			}
		case "enum":
			if !slices.Contains(want.([]any), v) {
				add("%v is none of %v", v, want)
			}
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
			x, isNumber := v.(float64)
			inside := map[string]bool{
				"minimum": x >= want.(float64), "maximum": x <= want.(float64),
				"exclusiveMinimum": x > want.(float64), "exclusiveMaximum": x < want.(float64),
			}
			if isNumber && !inside[word] {
				add("%v is outside: %s %v", v, word, want)
			}
		case "pattern":
			text, isText := v.(string)
			if isText && !regexp.MustCompile(want.(string)).MatchString(text) {
				add("%q does not match %v", text, want)
			}
		case "items":
			list, _ := v.([]any)
			for i, one := range list {
				wrong = append(wrong, fits(want.(map[string]any), one, fmt.Sprintf("%s.%d", at, i))...)
			}
		case "maxItems":
			if list, _ := v.([]any); float64(len(list)) > want.(float64) {
				add("%d elements", len(list))
			}
		case "required":
			o, _ := v.(map[string]any)
			for _, name := range want.([]any) {
				if o[name.(string)] == nil {
					add("%v is missing", name)
				}
			}
		case "properties":
			o, _ := v.(map[string]any)
			for name, one := range o {
				property, known := want.(map[string]any)[name].(map[string]any)
				if !known && s["additionalProperties"] == false {
					add("%s is unknown", name)
				}
				wrong = append(wrong, fits(property, one, join(at, name))...)
			}
		case "additionalProperties", "description", "default", "title", "format", "$schema":
		default:
			add("the test does not know %q", word)
		}
	}
	return wrong
}

func is[T any](v any) bool { _, ok := v.(T); return ok }

// asJSON returns a value as package encoding/json reads it.
func asJSON(t *testing.T, v any) (out any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Valid files fit the schema, and what is outside of it the parser refuses too.
func TestSchema(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	texts := append(examples(t), first)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		base, _, _ := strings.Cut(string(text), "---\n") // what follows are mistakes
		texts = append(texts, base)
	}
	for _, text := range texts {
		tree, err := new(source).read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if wrong := fits(schema, asJSON(t, tree), ""); len(wrong) > 0 {
			t.Errorf("%q for\n%s", wrong, text)
		}
	}
	for _, c := range []struct{ text, wrong string }{
		{`{"name": "x", "rounds": 1, "colour": 3}`, ": colour is unknown"},
		{`{"rounds": 1}`, ": name is missing"},
		{`{"name": "x", "query": [{"name": "a", "kind": "median"}]}`, "query.0.kind: median is none of " +
			"[count sum mean variance covariance correlation histogram crosstab quantiles survival " +
			"logrank evaluation cindex linear logistic cox poisson heavy]"},
		{`{"name": "x", "rounds": "1"}`, "rounds: 1 is no integer"},
		{`{"name": "x", "rounds": 1.5}`, "rounds: 1.5 is no integer"},
		{`{"name": "x", "rounds": 0}`, "rounds: 0 is outside: minimum 1"},
		{`{"name": "x", "rounds": 1, "privacy": {"delta": 1}}`,
			"privacy.delta: 1 is outside: exclusiveMaximum 1"},
		{`{"name": "x", "rounds": 1, "privacy": {"noise": "loud"}}`,
			"privacy.noise: loud is none of [none key discrete-gaussian discrete-laplace skellam]"},
		{`{"name": "x", "rounds": 1, "world": {"party": [{"name": "a", "crash": [{"at": "noon"}]}]}}`,
			"world.party.0.crash.0.at: noon is none of [begin submit sign reveal]"},
		{`{"name": "x", "rounds": 1, "time": {"pace": "an hour"}}`,
			`time.pace: "an hour" does not match ` + spanPattern},
	} {
		var v any
		if err := json.Unmarshal([]byte(c.text), &v); err != nil {
			t.Fatal(err)
		}
		if wrong := fits(schema, v, ""); !slices.Contains(wrong, c.wrong) {
			t.Errorf("%s: %q, want %q", c.text, wrong, c.wrong)
		}
		if _, err := Parse("x", []byte(c.text)); err == nil {
			t.Errorf("%s: the parser takes it", c.text)
		}
	}
}

// The schema takes the defaults that it states.
func TestSchemaTakesDefaults(t *testing.T) {
	rows(&theJob, new(Job), func(r *row, _ any) {
		one := asJSON(t, schemaOfRow(r)).(map[string]any)
		if d, ok := one["default"]; ok && len(fits(one, d, r.Path)) > 0 {
			t.Errorf("%s: its default is outside the schema: %q", r.Path, fits(one, d, r.Path))
		}
	})
}
