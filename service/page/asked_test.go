package page_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/runner"
)

// questions is a federation that asks of four parties.
var questions = sync.OnceValue(func() *federation.Federation {
	var roster strings.Builder
	for i, name := range []string{"north", "south", "east", "west"} {
		fmt.Fprintf(&roster, "%s %x\n", name, []byte(partyKey(byte(i))))
	}
	f, err := federation.New(federation.Files{Roster: []byte(roster.String()), Text: []byte(
		`name = "study"
parties = { roster = "roster.txt", rows = 100, drop_out = 0.25 }
sum.adversary = "curious"
privacy = { unit = "record", records = 400, noise = "discrete-gaussian", epsilon = 2.0, study = 4.0 }
column = [
  { name = "age", type = "whole", unit = "years", range = [18, 100] },
  { name = "sex", type = "category", categories = ["F", "<M>"] },
]
query = [
  { name = "older", kind = "count", where = "age >= 65" },
  { name = "decades", kind = "histogram", column = "age", bins = 8 },
  { name = "sex-by-age", kind = "crosstab", column = "sex", by = "age", by_bins = 2 },
  { name = "half", kind = "quantiles", column = "age", at = [0.25, 0.5, 0.75], share = 0.4 },
  { name = "many", kind = "histogram", column = "age", bins = 60 },
]
`)})
	if err != nil {
		panic(err)
	}
	return f
})

// answered is what it asks, with the answers of three parties with the same rows or without them.
func answered(is bool) (*federation.Asked, error) {
	f := questions()
	if !is {
		return f.Asked(nil, 0)
	}
	var text strings.Builder
	text.WriteString("age,sex\n")
	for i := range 100 {
		fmt.Fprintf(&text, "%d,%s\n", 20+i*i%70, []string{"F", "<M>"}[i%2])
	}
	rows, _, err := query.NewSchema(f.Job).Read("rows.csv", strings.NewReader(text.String()), nil)
	if err != nil {
		return nil, err
	}
	mean := f.Questions().Vector(rows)
	for i := range mean { // of sums over records, which are divided by all that there are
		mean[i] *= 3. / 400
	}
	return f.Asked(mean, 3)
}

// planned has a federation that asks, and waits for parties.
func planned(s *runner.Status) {
	s.State, s.Stage, s.Rounds, s.Round, s.Epsilon, s.Budget = "waiting", "", 1, 0, 0, 2
	s.Asks, s.Study, s.Lost, s.History, s.Committee = 5, 4, 0, nil, nil
	s.Before = strings.Repeat("cd", 32)
}

// answers has one that has ended with answers.
func answers(s *runner.Status) {
	planned(s)
	s.State, s.Round, s.Epsilon = "ended", 1, 1.5
	s.History = []runner.Past{{Round: 1, Parties: 3, Epsilon: 1.5, Seconds: 2, Began: time.Now()}}
}

// A federation that asks shows what to expect, and then bars, a curve and a table of what came of
// it, with what is left of the study's budget; programs get it as JSON, and all as CSV.
func TestAnswers(t *testing.T) {
	s, server, tokens := newPage(t, true)
	path := "/federations/" + s.status.ID
	get := func(path string, status int) string {
		t.Helper()
		got, body, _ := call(t, "GET", server.URL+path, tokens[0], "", "")
		if got != status {
			t.Fatalf("%s: %d %s", path, got, body)
		}
		return body
	}
	get("/v1"+path+"/answers", 404) // it trains
	get(path+"/answers.csv", 404)
	has := func(body string, all ...string) {
		t.Helper()
		for _, want := range all {
			if !strings.Contains(body, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
	}

	planned(&s.status)
	body := get(path, 200)
	has(body, "What it asks", "<td>decades</td><td>histogram</td><td>± ", "Margins are half",
		`href="/federations/`+s.status.Before+`"`, "may spend &epsilon; 4: <b>4</b> is left")
	if strings.Contains(body, "answers.csv") {
		t.Error("there are no answers yet")
	}

	answers(&s.status)
	body = get(path, 200)
	has(body, "Of the rows of <b>3</b> of 4 parties: intervals hold whatever",
		`id="answer-1"`, `id="answer-2"`, `id="answer-3"`, `class="reach"`, "at 0.5: ",
		"<td>older, rows</td><td></td><td>", "&lt;M&gt;, 18 to 59", "… and 20 others: see the table",
		path+"/answers.csv", "may spend &epsilon; 4: <b>2.5</b> is left")
	if strings.Contains(body, "<M>") {
		t.Error("a category is not escaped")
	}
	var asked federation.Asked
	if err := json.Unmarshal([]byte(get("/v1"+path+"/answers", 200)), &asked); err != nil ||
		asked.Parties != 3 || asked.Of != 4 || len(asked.Answers) != 5 || len(asked.Questions) != 5 {
		t.Errorf("%+v: %v", asked, err)
	}
	lines, err := csv.NewReader(strings.NewReader(get(path+"/answers.csv", 200))).ReadAll()
	if err != nil || len(lines) != 1+1+8+4+3+60 || lines[2][0] != "decades" || lines[2][8] == "" {
		t.Errorf("%d lines: %v", len(lines), err)
	}
}
