package strict

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// What is within the bounds passes, and what is just outside has its place and what to do.
func TestBounded(t *testing.T) {
	numbered := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	nested := func(n int) string {
		return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}"
	}
	long := strings.Repeat("ä", MaxName-2)
	dots := func(n int) string { return strings.Repeat("a.", n) + "a" }
	list := func(element string, n int) string {
		return "a = [" + strings.Repeat(element+",", n) + "]"
	}
	for name, c := range map[string]struct {
		within, outside string
		line            int
		reason          string
	}{
		"dots":   {dots(15) + " = 1", "\n" + dots(16) + " = 1", 2, "deep"},
		"header": {"[" + dots(14) + "]\nb = 1", "[" + dots(15) + "]\nb = 1", 2, "deep"},
		"list":   {"[[" + dots(13) + "]]\nb=1", "[[" + dots(14) + "]]\nb=1", 2, "deep"},
		"lists": {"[[a]]\n[[a.a]]\n[" + dots(12) + "]\nb=1",
			"[[a]]\n[" + dots(15) + "]", 2, "deep"},
		"JSON":      {nested(16), nested(17), 1, "deep"},
		"tables":    {strings.Repeat("a = {", 15) + strings.Repeat("}", 15), strings.Repeat("a = {", 16) + "}", 1, "deep"},
		"long key":  {`"` + long + `" = 1`, `"` + long + `b" = 1`, 1, "200 characters"},
		"long name": {`{"` + long + `": 1}`, `{"` + long + `b": 1}`, 1, "200 characters"},
		"keys": {numbered("a%d = 1\n", MaxKeys), numbered("a%d = 1\n", MaxKeys+1), 2001,
			"2,000 keys"},
		"of a list": {
			numbered("[[a.b]]\nx%d = 1\n[a.b.c]\nd = 1\n[[a.b.e]]\nf = 1\n[[a.b.e]]\nf = 1\n", 5000),
			numbered("[[a]]\nx = 1\n[b%d]\n", MaxKeys), 2001, "2,000 keys"},
		"in a list": {list("{b = 1}", 40_000), "a = [{" + numbered("b%d = 1, ", MaxKeys) + "}]", 1,
			"2,000 keys"},
		"empty": {strings.Repeat("[[a]]\n", MaxNames), strings.Repeat("[[a]]\n", MaxNames+1),
			MaxNames + 1, "100,000 keys"},
		"values": {list("0", MaxValues-2), list("0", MaxValues), 1, "100,000"},
		"texts": {"a = \"[[[[[[[[[[[[[[[[[[[[[\\\"[\" # [[[[[[[[[[[[[[[[[[[[\nb = '''" +
			strings.Repeat("''\n[a]\n", 3000) + "'''''\nc = \"\"\"" +
			strings.Repeat(dots(20)+"\n", 9) + "\\\"\"\"\"\nd = ''\ne = \"\"",
			dots(16) + " = ''", 1, "deep"},
		"numbers": {"a = [1.5, 2027-01-31T08:00:00.123Z, 0x1f, -inf]\nb = 08:00:00.1",
			dots(16) + " = 1.5", 1, "deep"},
	} {
		if e := Bounded([]byte(c.within)); e != nil {
			t.Errorf("%s: line %d: %v", name, e.Line, e)
		}
		e := Bounded([]byte(c.outside))
		if e == nil || e.Line != c.line || e.Column == 0 || !strings.Contains(e.Reason, c.reason) ||
			e.Advice == "" {
			t.Errorf("%s: %+v, want line %d, %q", name, e, c.line, c.reason)
		}
	}
}

// What passes, and is valid, has no more in its tree than the bounds say.
func FuzzBounded(f *testing.F) {
	for _, text := range []string{"a.b = 1\n[c]\nd = [[1], {e = 2}]\n[[f.g]]\nh = ''\n[[f.g]]",
		"a = '''x'''''\nb = \"\"\"\\\"\"\"\"\"\n\"c.d\".e = {f.g = 1} # [", `{"a": [[{"b": "\"["}]], "c": 1}`,
		strings.Repeat("a.", 17) + "a = 1", "[" + strings.Repeat("a.", 17) + "a]\nb = [{}]",
		"a = [1,\n# [[[\n2]\n'b' = 08:00:00\nc = {d = 1,\n e = 2}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 5000 || Bounded([]byte(text)) != nil {
			return
		}
		var tree map[string]any
		if toml.Unmarshal([]byte(text), &tree) == nil {
			within(t, tree, 0)
		}
	})
}

func within(t *testing.T, v any, depth int) {
	if depth > 2*MaxDepth { // elements of a list whose name is written in two ways are not counted
		t.Fatalf("%d deep", depth)
	}
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if len([]rune(name)) > MaxName {
				t.Fatalf("a key of %d characters", len(name))
			}
			within(t, inner, depth+1)
		}
	case []any:
		for _, inner := range v {
			within(t, inner, depth+1)
		}
	}
}
