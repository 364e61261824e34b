package query

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/internal/strict/altered"
	"github.com/hushsum/hushsum/job"
)

// Answers of each shape are read from their JSON as they were written, and a table has a line for
// each number.
func TestWritten(t *testing.T) {
	a := func(label, by string, x float64) Cell {
		return Cell{Label: label, By: by, Value: x, Low: x - 1, High: x + 1}
	}
	half := accounting.NewClaim(accounting.Calculated(accounting.RecordUnit), accounting.Figures{
		Bound: accounting.Bound{Upper: 0.50001}, Delta: 1e-5})
	answers := []Answer{
		{Name: "n", Kind: "count", Unit: "rows", Cells: []Cell{a("", "", 7)}, Spends: &half},
		{Name: "h", Kind: "histogram", Unit: "rows", Cells: []Cell{a("F", "", 1), a("M", "", 2)}},
		{Name: "c", Kind: "crosstab", Unit: "rows", Spends: &half,
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
	const want = "name,kind,unit,label,by,value,low,high,unknown,spends\n" +
		"n,count,rows,,,7,6,8,,\"epsilon 0.5001 at delta 1e-05 for each record of a party, against a " +
		"server that is curious; assumes sums\"\n" +
		"h,histogram,rows,F,,1,0,2,,\n"
	if got := b.String(); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 8 {
		t.Error(got)
	}
	b.Reset()
	if err := WriteCSV(&b, []Answer{{Name: "m", Kind: "mean", Cells: []Cell{{Value: math.NaN(), Low: 0,
		High: 1, Unknown: "noise hides it; ask again"}}}}); err != nil ||
		!strings.HasSuffix(b.String(), "\nm,mean,,,,,0,1,noise hides it; ask again,\n") {
		t.Error(b.String(), err)
	}
	for _, one := range answers {
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		altered.Refused(t, text, func(text []byte) error { return strict.JSON(text, new(Answer)) })
	}
	for _, bad := range []string{
		`{"kind":"histogram","value":[1],"interval":[[0,1]],"labels":[]}`,
		`{"kind":"histogram","value":[1],"interval":[],"labels":["a"]}`,
		`{"kind":"histogram","value":1,"interval":[0,1]}`,
		`{"kind":"histogram"}`,
		`{"kind":"count","value":"x","interval":[0,1]}`,
		`{"kind":"count","value":1,"interval":"x"}`,
		`{"kind":"count","value":1,"interval":[0]}`,
		`{"kind":"count","value":1,"interval":[0,1,2]}`,
		`{"kind":"count","value":[1],"interval":[[0,1]],"labels":["a"]}`,
		// Of such a table without margins package json made an answer that could not be written.
		`{"kind":"crosstab","value":[1],"interval":[[0,1]],"labels":["a"]}`,
		`{"kind":"crosstab","value":[[1]],"interval":[[[0,1]]],"labels":[["a"],[]],"margins":[{},{}]}`,
		`{"kind":"crosstab","value":[[1]],"interval":[[[0,1]]],"labels":[["a","b"],["c"]],` +
			`"margins":[{},{}]}`,
		`{"kind":"crosstab","value":[[1]],"interval":[[[0,1]]],"labels":[["a"],["c"]],` +
			`"margins":[{},{}]}`,
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
		if blur, margin := p.settled.Blur(), p.Expected()[0].Margin; math.Abs(blur/margin-1) > 0.01 {
			t.Errorf("%v rows are not told from none, and the margin is %v", blur, margin)
		}
	}
	few := planOf(t, head+noise+" }\n", "parties.drop_out=0.4", "parties.colluders=2")
	if blur, margin := few.settled.Blur(), few.Expected()[0].Margin; blur > margin*0.8 {
		t.Errorf("%v by the noise of the fewest, and %v by that of all", blur, margin)
	}
	if planOf(t, head).settled.Blur() != 0 {
		t.Error("without noise all is told")
	}
}

// Of several mistakes the same one is told every time: of a query those in its condition, of an
// answer those in its values.
func TestTellsOneMistake(t *testing.T) {
	p := &Plan{job: new(job.Job)}
	for range 20 {
		_, err := p.compile(&job.Query{Kind: "count", Where: "a > 1", Event: "b > 1"})
		if err == nil || strings.Contains(err.Error(), `"b"`) {
			t.Fatal(err)
		}
		err = json.Unmarshal([]byte(`{"kind":"histogram","value":["x"],"interval":[1],"labels":[2]}`), new(Answer))
		if err == nil || !strings.Contains(err.Error(), "it is not a number") {
			t.Fatal(err)
		}
	}
}
