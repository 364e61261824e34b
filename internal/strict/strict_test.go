package strict

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

type inside struct {
	Rate float64 `json:"rate" toml:"rate"`
}

// word reads itself.
type word string

func (w *word) UnmarshalText(b []byte) error {
	*w = word(strings.ToLower(string(b)))
	return nil
}

type embedded struct {
	State string `json:"state" toml:"state"`
}

type outside struct {
	Epsilon float64           `json:"epsilon" toml:"epsilon"`
	Count   uint              `json:"count,omitzero" toml:"count,omitempty"`
	Plain   int               // has its own name
	Hidden  int               `json:"-" toml:"-"`
	Inside  *inside           `json:"inside" toml:"inside"`
	List    []inside          `json:"list" toml:"list"`
	Free    map[string]inside `json:"free" toml:"free"`
	Word    word              `json:"word" toml:"word"`
	Any     any               `json:"any" toml:"any"`
	Later   json.RawMessage   `json:"later" toml:"later"`
	Wide    []wide            `json:"wide" toml:"wide"`
	Far     []*wide           `json:"far" toml:"far"`
	embedded
}

// wide takes much for its name.
type wide struct {
	A    int     `json:"a" toml:"a"`
	Rest [12]int `json:"rest" toml:"rest"`
}

// What is written is read, and what package json would read in two ways is refused, by the
// path of its key.
func TestJSON(t *testing.T) {
	for text, want := range map[string]struct{ key, reason string }{
		`{}`: {},
		`{"epsilon":1,"count":2,"Plain":3,"state":"a","word":"B"}`: {},
		`{"inside":{"rate":1},"list":[{"rate":1},{"rate":2}]}`:     {},
		`{"free":{"Rate":{"rate":1},"rate":{"rate":2}}}`:           {},
		`{"wide":[{"rest":[1]}]}`:                                  {"wide.0.rest", "1 values in place of 12"},
		`{"wide":[{"rest":[1,2,3,4,5,6,7,8,9,10,11,12,13]}]}`:      {"wide.0.rest", "13 values in place of 12"},
		`{"any":{"A":1,"a":[{"b":null}]}}`:                         {},
		`{"later":{"a":1,"a":2,"A":[{"x":1,"x":2}]}}`:              {},
		` {"epsilon" : 1e0 } `:                                     {},
		`{"EPSILON":1}`:                                            {"EPSILON", `write "epsilon"`},
		`{"epsilon":1,"Epsilon":100}`:                              {"Epsilon", `write "epsilon"`},
		`{"epſilon":1}`:                                            {"epſilon", `write "epsilon"`}, // folds to an s
		`{"plain":1}`:                                              {"plain", `write "Plain"`},
		`{"Hidden":1}`:                                             {"Hidden", "no field"},
		`{"-":1}`:                                                  {"-", "no field"},
		`{"STATE":"a"}`:                                            {"STATE", `write "state"`},
		`{"epsilon":1,"epsilon":1}`:                                {"epsilon", "given twice"},
		`{"epsilon":1,"\u0065psilon":2}`:                           {"epsilon", "given twice"},
		`{"inside":{"RATE":1}}`:                                    {"inside.RATE", `write "rate"`},
		`{"list":[{"rate":1},{"rate":1,"rate":2}]}`:                {"list.1.rate", "given twice"},
		`{"free":{"a":{"rate":1},"a":{"rate":2}}}`:                 {"free.a", "given twice"},
		`{"free":{"a":{"Rate":1}}}`:                                {"free.a.Rate", `write "rate"`},
		`{"any":{"a":1,"a":2}}`:                                    {"any.a", "given twice"},
		`{"other":1}`:                                              {"other", `no field "other"`},
		`{"":1}`:                                                   {"", `no field ""`},
		`{"epsilon":"1"}`:                                          {"epsilon", "takes a number"},
		`{"count":-1}`:                                             {"count", "0 or more"},
		`{"epsilon":1}{}`:                                          {"", "after its end"},
		`{"epsilon":1}x`:                                           {"", "after its end"},
		`{"epsilon":1`:                                             {"", "ends early"},
		``:                                                         {"", "ends early"},
		`{1:2}`:                                                    {"", "not JSON"},
		`{"epsilon":01}`:                                           {"", "not JSON"},
		"{\"epsilon\":1,\"word\":\"\xff\"}":                        {"", "UTF-8"},
		`[]`:                                                       {"", "not an object"},
		`{"wide":[` + strings.Repeat(`{"a":1},`, 2000) + `{}]}`:             {},
		`{"wide":[` + strings.Repeat("{},", 2000) + `{}]}`:                  {"", "too many values for its length"},
		`{"far":[` + strings.Repeat("{},", 2000) + `{}]}`:                   {"", "too many values for its length"},
		`{"any":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + "}": {"any" + strings.Repeat(".0", 15), "nested"},
	} {
		var got outside
		err := JSON([]byte(text), &got)
		var e *Error
		switch {
		case want.reason == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want.reason == "":
			var same outside
			if err := json.Unmarshal([]byte(text), &same); err != nil || !reflect.DeepEqual(got, same) {
				t.Errorf("%s: %+v, package json has %+v, %v", text, got, same, err)
			}
		case !errors.As(err, &e) || !strings.Contains(e.Reason, want.reason):
			t.Errorf("%s: %v, want %q", text, err, want.reason)
		case e.Key != want.key:
			t.Errorf("%s: the key is %q, want %q", text, e.Key, want.key)
		}
	}
}

// Keys of a decoded tree are those of the fields.
func TestNames(t *testing.T) {
	type tree = map[string]any
	for name, c := range map[string]struct {
		tree tree
		key  string
	}{
		"right": {tree{"epsilon": 1.0, "inside": tree{"rate": 1.0}, "list": []any{tree{"rate": 1.0}},
			"free": tree{"Any": tree{"rate": 1.0}}, "any": tree{"A": 1}, "word": "x", "state": "y"}, ""},
		"another case": {tree{"epsilon": 1.0, "EPSILON": 100.0}, "EPSILON"},
		"of a table":   {tree{"inside": tree{"Rate": 1.0}}, "inside.Rate"},
		"of a list":    {tree{"list": []any{tree{"rate": 1.0}, tree{"RATE": 1.0}}}, "list.1.RATE"},
		"of a map":     {tree{"free": tree{"a": tree{"RATE": 1.0}}}, "free.a.RATE"},
		"a table":      {tree{"Inside": tree{}}, "Inside"},
		"unknown":      {tree{"other": 1}, "other"},
		"another kind": {tree{"epsilon": tree{"A": 1}, "list": tree{"A": 1}, "inside": []any{1}}, ""},
	} {
		err := names(c.tree, reflect.TypeFor[*outside](), "toml", nil)
		var e *Error
		if c.key == "" && err != nil || c.key != "" && (!errors.As(err, &e) || e.Key != c.key) {
			t.Errorf("%s: %v, want the key %q", name, err, c.key)
		}
	}
}

// A text is read as it is written, or what is wrong is told with its line.
func TestTOML(t *testing.T) {
	for text, want := range map[string]Error{
		"epsilon = 1.0\n[inside]\nrate = 2.0":   {},
		"\ufeffepsilon = 1.0":                   {},
		"epsilon = 1.0\nEPSILON = 100.0":        {Line: 2, Key: "EPSILON", Meant: "epsilon"},
		"epsilon = 1.0\n[inside]\nother = 2.0":  {Line: 3, Key: "inside.other"},
		"epsilon = 1.0\nepsilon = 2.0":          {Line: 2},
		"epsilon = \"1\"":                       {Line: 1},
		"epsilon = 1.0\n[inside]\nrate = 2.0 =": {Line: 3},
	} {
		got := TOML([]byte(text), new(outside))
		if want == (Error{}) {
			if got != nil {
				t.Errorf("%q: %v", text, got)
			}
			continue
		}
		if got == nil || got.Line != want.Line || got.Key != want.Key || got.Meant != want.Meant ||
			got.Reason == "" {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// What is read, package json reads alike, and what package json writes is read.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"epsilon":1,"list":[{"rate":2}]}`, `{"free":{"a":{"rate":1}}}`,
		`{"EPSILON":1}`, `{"any":[[{"a":{}}]],"later":{"a":1,"a":2}}`, `{"word":"A","state":"b"}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, same outside
		if JSON(text, &got) != nil {
			return
		}
		if err := json.Unmarshal(text, &same); err != nil || !reflect.DeepEqual(got, same) {
			t.Fatalf("%q: %+v, package json has %+v, %v", text, got, same, err)
		}
		if math.IsNaN(got.Epsilon) {
			t.Fatal("a number that is none")
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if err := JSON(again, new(outside)); err != nil && !strings.Contains(err.Error(), "twice") {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

// null is a value of lists, maps and pointers, and of nothing else.
func TestNull(t *testing.T) {
	var into struct {
		Number  int            `json:"number"`
		Text    string         `json:"text"`
		Yes     bool           `json:"yes"`
		Table   struct{}       `json:"table"`
		Two     [2]int         `json:"two"`
		List    []int          `json:"list"`
		Map     map[string]int `json:"map"`
		Pointer *int           `json:"pointer"`
		Numbers []int          `json:"numbers"`
	}
	for _, name := range []string{"list", "map", "pointer"} {
		if err := JSON([]byte(`{"`+name+`":null}`), &into); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{`{"number":null}`, `{"text":null}`, `{"yes":null}`, `{"table":null}`,
		`{"two":null}`, `{"two":[1,null]}`, `{"numbers":[null]}`, `{"map":{"a":null}}`} {
		var wrong *Error
		if err := JSON([]byte(text), &into); !errors.As(err, &wrong) || wrong.Key == "" {
			t.Errorf("%s: %v", text, err)
		}
	}
}
