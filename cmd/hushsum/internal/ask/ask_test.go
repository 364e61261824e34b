package ask

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/internal/suite"
)

func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Call(t.Context(), append([]string{"query"}, args...), Command())
}

const study = `name = "study"
parties = { count = 5, rows = 4, drop_out = 0.2 }
[[column]]
name = "age"
type = "whole"
range = [18, 100]
[[column]]
name = "sex"
type = "category"
categories = ["F", "M"]
missing = "drop"
[[query]]
name = "n"
kind = "count"
where = "age >= 40"
[[query]]
name = "ages"
kind = "mean"
column = "age"
[[query]]
name = "table"
kind = "crosstab"
column = "age"
by = "sex"
bins = 2
[[query]]
name = "middle"
kind = "quantiles"
column = "age"
at = [0.5]
`

const rows = "sex,age\nF,20\nM,30\nF,40\nM,50\nF,60\nM,70\n,80\nF,101\nM,20\nM,20\n"

// answered is an element of what --json prints.
type answered struct {
	Name, Kind, Unit string
	Value, Interval  any
	Spends           *struct{ Epsilon float64 }
}

func ask(t *testing.T, args ...string) (all []answered, stderr string) {
	t.Helper()
	code, out, errs := call(t, append(args, "--json")...)
	if code != 0 {
		t.Fatalf("%v: code %d, %s", args, code, errs)
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return all, errs
}

// Without noise the answers are those of the rows, over both protocols and with a file for each
// party, and what is wrong with rows is told by column and line.
func TestAnswers(t *testing.T) {
	file, folder := clitest.Written(t, study), t.TempDir()
	table := filepath.Join(folder, "rows.csv")
	for name, text := range map[string]string{"rows.csv": rows, "party-1.csv": "sex,age\nF,20\nM,30\n",
		"party-2.csv": "sex,age\nF,40\nM,50\n", "party-3.csv": "sex,age\nF,60\nM,70\n",
		"party-4.csv": "sex,age\n,80\nF,101\n", "party-5.csv": "sex,age\nM,20\nM,20\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range [][]string{{"--rows", table}, {"--folder", folder},
		{"--rows", table, "--set", "sum.protocol=oneshot", "--set", "sum.members=4"}} {
		all, errs := ask(t, append([]string{file}, from...)...)
		if len(all) != 4 || all[0].Value != 6.0 || math.Abs(all[1].Value.(float64)-49) > 1e-4 {
			t.Fatalf("%v: %+v", from, all)
		}
		value, _ := json.Marshal(all[2].Value)
		middle, _ := json.Marshal(all[3].Value)
		if string(value) != "[[2,4],[2,1]]" || string(middle) != "[40]" || all[0].Spends != nil {
			t.Errorf("%v: %s, %s, %v", from, value, middle, all[0].Spends)
		}
		if !strings.Contains(errs, "sex: 1 value missing, at line") ||
			!strings.Contains(errs, "age: 1 value clipped, at line") {
			t.Errorf("%v: %s", from, errs)
		}
	}
	// Of a party that is away intervals hold whatever it may have.
	all, _ := ask(t, file, "--rows", table, "--set", "world.drop=0.2")
	if high := all[0].Interval.([]any)[1].(float64); high != all[0].Value.(float64)+4 {
		t.Errorf("%+v", all[0])
	}
	code, out, errs := call(t, file, "--rows", table, "--set", "world.drop=0.2")
	clitest.Width(t, out)
	if code != 0 || !strings.Contains(out, "missing   1 of the parties") {
		t.Errorf("code %d, %s\n%s", code, errs, out)
	}
}

// person makes a table of rows.
func person(rows string) string {
	return "CREATE TABLE person (sex, age); INSERT INTO person VALUES " + rows
}

// Rows of a database answer as those of a file do, for all parties or for some, and what is wrong
// with them is told by row.
func TestDatabases(t *testing.T) {
	file, folder := clitest.Written(t, study), t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	write := suite.RowsProgram(t)
	write(at("all.db"), person("('F', 20), ('M', 30), ('F', 40), ('M', 50), ('F', 60), ('M', 70), "+
		"(NULL, 80), ('F', 101), ('M', 20), ('M', 20)"))
	write(at("party-1.db"), person("('F', 20), ('M', 30)"))
	write(at("party-4.sqlite"), person("(NULL, 80), ('F', 101)"))
	for name, text := range map[string]string{"party-2.csv": "F,40\nM,50\n",
		"party-3.csv": "F,60\nM,70\n", "party-5.csv": "M,20\nM,20\n"} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range [][]string{{"--rows", at("all.db")},
		{"--folder", folder, "--header", "sex,age"}} {
		all, errs := ask(t, append([]string{file, "--sql", "SELECT * FROM person"}, from...)...)
		if len(all) != 4 || all[0].Value != 6.0 || math.Abs(all[1].Value.(float64)-49) > 1e-4 {
			t.Fatalf("%v: %+v", from, all)
		}
		if !strings.Contains(errs, "sex: 1 value missing, at row") ||
			!strings.Contains(errs, "age: 1 value clipped, at row") {
			t.Errorf("%v: %s", from, errs)
		}
	}
	for _, c := range []struct{ statement, want string }{
		{"SELECT age, sex FROM people", "SQLite says: SQL logic error: no such table: people"},
		{"SELECT NULL AS age, sex FROM person",
			"all.db: row 1: age: the value is missing, and the job refuses"},
	} {
		code, out, errs := call(t, file, "--rows", at("all.db"), "--sql", c.statement)
		if code != 1 || out != "" || !strings.Contains(clitest.Flat(errs), c.want) {
			t.Errorf("%s: code %d, %q, %q, want %q", c.statement, code, out, errs, c.want)
		}
	}
}

// With noise an answer is near the truth, and costs what is said.
func TestNoisyAnswers(t *testing.T) {
	file := clitest.Written(t, study+"[privacy]\nnoise = \"discrete-gaussian\"\nepsilon = 50.0\n")
	table := clitest.Written(t, rows)
	for _, protocol := range []string{"pairwise", "oneshot"} {
		all, _ := ask(t, file, "--rows", table, "--set", "sum.protocol="+protocol)
		interval := all[0].Interval.([]any)
		if e := all[0].Spends; e == nil || e.Epsilon <= 0 || e.Epsilon >= 50 ||
			interval[1].(float64) > 20 {
			t.Errorf("%s: %+v", protocol, all[0])
		}
	}
	planned, _ := ask(t, file, "--plan")
	if e := planned[0].Spends; len(planned) != 4 || e == nil || e.Epsilon >= 50 {
		t.Errorf("%+v", planned)
	}
}

// The example's file answers with made-up rows as they stand in the checkout.
func TestExample(t *testing.T) {
	const folder = "../../../../examples/queries/"
	code, out, errs := call(t, folder+"adult.toml", "--rows", folder+"census.csv")
	clitest.Width(t, out)
	if code != 0 || !strings.Contains(out, "older-and-rich (count, rows)") {
		t.Errorf("code %d, %s\n%s", code, errs, out)
	}
	all, _ := ask(t, folder+"adult.toml", "--plan")
	if len(all) != 10 {
		t.Errorf("%+v", all)
	}
}

// Frequent words come out of the example's made-up rows with their counts, the most frequent first,
// and where none is frequent the table says so. Nine halves of an interval are 17 deviations.
func TestExampleWords(t *testing.T) {
	const file = "../../../../examples/queries/complaints.toml"
	code, out, errs := call(t, file, "--rows", "../../../../examples/queries/complaints.csv", "--json")
	var all []struct {
		Labels   []string
		Value    []float64
		Interval [][2]float64
	}
	if err := json.Unmarshal([]byte(out), &all); code != 0 || err != nil || len(all) != 1 {
		t.Fatalf("code %d, %v, %s\n%s", code, err, errs, out)
	}
	want := map[string]float64{"cough": 430, "fever": 330, "headache": 250, "sore throat": 190,
		"back pain": 145, "hay fever": 110}
	a := all[0]
	if len(a.Labels) != len(want) || a.Labels[0] != "cough" {
		t.Errorf("%+v", a)
	}
	for i, word := range a.Labels {
		half := (a.Interval[i][1] - a.Interval[i][0]) / 2
		if math.Abs(a.Value[i]-want[word]) > 9*half || half > 20 {
			t.Errorf("%s: %v in %v, want %v", word, a.Value[i], a.Interval[i], want[word])
		}
	}
	rare := clitest.Written(t, "complaint\none\ntwo\nthree\n")
	code, out, errs = call(t, file, "--rows", rare, "--set", "parties.count=3")
	if code != 0 || !strings.Contains(out, "no word has rows enough to stand out") {
		t.Errorf("code %d, %s\n%s", code, errs, out)
	}
}

// adultNames are the columns of adult.data.
const adultNames = "age,workclass,fnlwgt,education,education-num,marital,occupation,relation," +
	"race,sex,gain,loss,hours,country,income"

// With the rows of Adult answers are near what is known of them: three half widths of an interval
// are 5.9 deviations, of which normal noise is further away with a probability of 4e-9.
func TestAdult(t *testing.T) {
	data := filepath.Join(realdata.Dir(t, "adult"), "adult.data")
	all, _ := ask(t, "../../../../examples/queries/adult.toml", "--rows", data, "--header", adultNames)
	for i, want := range []float64{1336, 276, 1_314_075} {
		low, high := all[i].Interval.([]any)[0].(float64), all[i].Interval.([]any)[1].(float64)
		if half := (high - low) / 2; math.Abs(all[i].Value.(float64)-want) > 3*half {
			t.Errorf("%s: %v, want %v", all[i].Name, all[i].Value, want)
		}
	}
}

// What is wrong with a file, with rows and with a call is told before anything is sent.
func TestMistakes(t *testing.T) {
	file, table := clitest.Written(t, study), clitest.Written(t, rows)
	trains := clitest.Written(t, "name = \"a\"\nrounds = 1\nparties.count = 3\nmodel.length = 1\n")
	bad := clitest.Written(t, "sex,age\nF,20\nM,\n")
	db := filepath.Join(t.TempDir(), "rows.db")
	if err := os.WriteFile(db, []byte("SQLite format 3\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	twice := t.TempDir()
	for _, name := range []string{"party-1.csv", "party-1.db"} {
		if err := os.WriteFile(filepath.Join(twice, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", twice) // without hushsum-rows
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{2, "which file?", nil},
		{2, "whose rows?", []string{file}},
		{2, "both name a source", []string{file, "--rows", table, "--folder", "x"}},
		{2, "no flag --row", []string{file, "--row", table}},
		{1, "no such file", []string{"none.toml", "--plan"}},
		{1, "no such file", []string{file, "--rows", "none.csv"}},
		{1, "has no file of party-1 Name it party-1.csv", []string{file, "--folder", t.TempDir()}},
		{1, "party-1.db are both of party-1", []string{file, "--folder", twice}},
		{1, "nothing says which rows to read Add --sql 'SELECT …'.",
			[]string{file, "--rows", db}},
		{1, "SQLite is read by the program hushsum-rows, which is neither next to this one nor on PATH " +
			"Run 'go install github.com/hushsum/hushsum/tables/cmd/hushsum-rows' in a clone",
			[]string{file, "--rows", db, "--sql", "SELECT age, sex FROM person"}},
		{1, "it is not a database", []string{file, "--rows", table, "--sql", "SELECT 1"}},
		{1, "the job asks nothing", []string{trains, "--plan"}},
		{1, "query.n.where", []string{file, "--plan", "--set", "query.0.where=weight>3"}},
		{1, "of 5 parties 4 are in the sum at least, and 2 would be away",
			[]string{file, "--rows", table, "--set", "world.drop=0.4"}},
		{1, ":3: age: the value is missing, and the job refuses rows without one",
			[]string{file, "--rows", bad}},
		{1, "privacy.records", []string{file, "--plan", "--set", "privacy.unit=record", "--set",
			"privacy.noise=discrete-gaussian", "--set", "privacy.epsilon=1"}},
	} {
		code, out, errs := call(t, c.args...)
		if code != c.code || out != "" || !strings.Contains(clitest.Flat(errs), c.want) {
			t.Errorf("%v: code %d, %q, %q, want %q", c.args, code, out, errs, c.want)
		}
	}
}

// The noise of an answer is as its interval says, over the whole way of both protocols: of 100
// sums the mean square of the errors, over the deviation stated, is within 4 standard errors of 1
// (a false alarm in 10,000 runs), and so is how many intervals hold the truth.
func TestNoiseOfProtocols(t *testing.T) {
	var text strings.Builder
	text.WriteString("name = \"sums\"\nparties = { count = 30, drop_out = 0.2 }\n[privacy]\n" +
		"noise = \"discrete-gaussian\"\nepsilon = 8.0\n[[column]]\nname = \"age\"\n" +
		"type = \"whole\"\nrange = [18, 100]\n")
	const sums = 100
	for i := range sums {
		fmt.Fprintf(&text, "[[query]]\nname = \"s%d\"\nkind = \"sum\"\ncolumn = \"age\"\n", i)
	}
	file, table := clitest.Written(t, text.String()), clitest.Written(t, "age\n"+
		strings.Repeat("40\n", 30))
	for _, protocol := range []string{"pairwise", "oneshot"} {
		all, _ := ask(t, file, "--rows", table, "--set", "sum.protocol="+protocol)
		square, held := 0.0, 0
		for _, a := range all {
			low, high := a.Interval.([]any)[0].(float64), a.Interval.([]any)[1].(float64)
			z := (a.Value.(float64) - 30*40) / ((high - low) / 2 / 1.96)
			square += z * z
			if math.Abs(z) <= 1.96 {
				held++
			}
		}
		if mean := square / sums; math.Abs(mean-1) > 4*math.Sqrt(2./sums) || held < 86 {
			t.Errorf("%s: a mean square of %.2f deviations, %d of %d intervals hold the truth", protocol,
				mean, held, sums)
		}
		t.Logf("%s: %.3f, %d", protocol, square/sums, held)
	}
}
