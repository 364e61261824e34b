package query

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

// Answers of each shape are read from their JSON as they were written, and a table has a line for
// each number.
func TestWritten(t *testing.T) {
	a := func(label, by string, x float64) Cell {
		return Cell{Label: label, By: by, Value: x, Low: x - 1, High: x + 1}
	}
	answers := []Answer{
		{Name: "n", Kind: "count", Unit: "rows", Cells: []Cell{a("", "", 7)}, Epsilon: 0.5},
		{Name: "h", Kind: "histogram", Unit: "rows", Cells: []Cell{a("F", "", 1), a("M", "", 2)},
			Epsilon: math.Inf(1)},
		{Name: "c", Kind: "crosstab", Unit: "rows", Epsilon: 1,
			Cells:   []Cell{a("F", "1 to 2", 1), a("F", "3", 2), a("M", "1 to 2", 3), a("M", "3", 4)},
			Margins: [2][]Cell{{a("F", "", 3), a("M", "", 7)}, {a("1 to 2", "", 4), a("3", "", 6)}}},
	}
	text, err := json.Marshal(answers)
	if err != nil {
		t.Fatal(err)
	}
	var again []Answer
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, answers) {
		t.Errorf("%+v: %v", again, err)
	}
	var b strings.Builder
	if err := WriteCSV(&b, answers); err != nil {
		t.Fatal(err)
	}
	const want = "name,kind,unit,label,by,value,low,high,epsilon\n" +
		"n,count,rows,,,7,6,8,0.5\n" +
		"h,histogram,rows,F,,1,0,2,\n"
	if got := b.String(); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 8 {
		t.Error(got)
	}
	for _, bad := range []string{
		`{"value":[1],"interval":[[0,1]],"labels":[]}`,
		`{"value":[1],"interval":[],"labels":["a"]}`,
		`{"value":"x","interval":[0,1]}`,
		`{"value":1,"interval":"x"}`,
		`{"value":[[1]],"interval":[[[0,1]]],"labels":[["a"],[]],"margins":[{},{}]}`,
		`{"value":[[1]],"interval":[[[0,1]]],"labels":[["a","b"],["c"]],"margins":[{},{}]}`,
		`{"value":[[1]],"interval":[[[0,1]]],"labels":[["a"],["c"]],"margins":[{},{}]}`,
	} {
		if err := json.Unmarshal([]byte(bad), new(Answer)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// Two queries that ask the same have one text, and no others have.
func TestQuestions(t *testing.T) {
	const head = `name = "a"
parties = { count = 4 }
column = [
  { name = "age", type = "whole", range = [0, 100] },
  { name = "sex", type = "category", categories = ["F", "M"] },
]
query = [{ name = "n", `
	of := func(query string, set ...string) string {
		t.Helper()
		all, err := planOf(t, head+query+" }]\n", set...).Questions()
		if err != nil || len(all) != 1 {
			t.Fatalf("%q: %v", all, err)
		}
		return all[0]
	}
	const count = `kind = "count", where = "age >= 65 and sex = F"`
	if of(count) != of(`kind = "count", where = "sex = 'F'   and age >= 65.0 and age >= 65"`) ||
		of(count) != of(count, "query.0.name=other", "column.0.name=age", "name=b") {
		t.Error("two texts of one question")
	}
	seen := map[string]string{}
	for _, q := range []string{count, `kind = "count"`, `kind = "count", where = "age > 65 and sex = F"`,
		`kind = "mean", column = "age"`, `kind = "sum", column = "age"`,
		`kind = "histogram", column = "age"`, `kind = "histogram", column = "age", bins = 5`,
		`kind = "histogram", column = "sex"`, `kind = "quantiles", column = "age"`,
		`kind = "quantiles", column = "age", at = [0.5]`} {
		text := of(q)
		if was, found := seen[text]; found {
			t.Errorf("%s asks as %s", q, was)
		}
		seen[text] = q
	}
	for _, set := range []string{"column.0.range=0,99", "parties.rows=2", "column.0.blank=?"} {
		if of(count) == of(count, set) {
			t.Errorf("%s changes nothing", set)
		}
	}
	if of(count) != of(count, "parties.count=5") {
		t.Error("the question depends on how many are asked")
	}
}

// With all parties there, all honest, and one count, as many rows are not told from none as half
// of the count's interval has: with the record unit, and with the party's.
func TestBlur(t *testing.T) {
	const head = `name = "a"
parties.count = 20
query = [{ name = "n", kind = "count" }]
`
	const noise = `privacy = { noise = "discrete-gaussian", epsilon = 1.0`
	record := ", unit = \"record\", records = 500 }\n"
	for _, text := range []string{head + noise + " }\n", head + noise + record,
		head + noise + " }\nparties.rows = 7\n"} {
		p := planOf(t, text)
		if blur, margin := p.Blur(), p.Expected()[0].Margin; math.Abs(blur/margin-1) > 0.01 {
			t.Errorf("%v rows are not told from none, and the margin is %v", blur, margin)
		}
	}
	few := planOf(t, head+noise+" }\n", "parties.drop_out=0.4", "parties.colluders=2")
	if blur, margin := few.Blur(), few.Expected()[0].Margin; blur > margin*0.8 {
		t.Errorf("%v by the noise of the fewest, and %v by that of all", blur, margin)
	}
	if planOf(t, head).Blur() != 0 {
		t.Error("without noise all is told")
	}
}
