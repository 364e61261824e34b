package page_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// questions is a federation that asks of four parties.
var questions = sync.OnceValue(func() *federation.Federation {
	f, err := federation.New(federation.Files{Roster: fourParties(), Text: []byte(
		`name = "study"
parties = { roster = "roster.txt", rows = 100, drop_out = 0.25 }
sum.adversary = "curious"
privacy = { unit = "record", records = 400, noise = "discrete-gaussian", epsilon = 2.0, study = 4.0 }
column = [
  { name = "age", type = "whole", unit = "years", range = [18, 100] },
  { name = "sex", type = "category", categories = ["F", "<M>"] },
  { name = "size", type = "number", range = [0, 2] },
  { name = "said", type = "text", missing = "drop" },
]
query = [
  { name = "older", kind = "count", where = "age >= 65" },
  { name = "decades", kind = "histogram", column = "age", bins = 8 },
  { name = "sex-by-age", kind = "crosstab", column = "sex", by = "age", by_bins = 2 },
  { name = "half", kind = "quantiles", column = "age", at = [0.25, 0.5, 0.75], share = 0.4 },
  { name = "stay", kind = "survival", column = "age", bins = 4, event = "sex = F" },
  { name = "line", kind = "linear", column = "age", on = ["size"] },
  { name = "odds", kind = "logistic", event = "sex = F", on = ["size"] },
  { name = "many", kind = "histogram", column = "age", bins = 60 },
  { name = "words", kind = "heavy", column = "said", top = 5 },
  { name = "rare", kind = "heavy", column = "said", where = "age < 18" },
]
`)})
	if err != nil {
		panic(err)
	}
	return f
})

// fourParties is their roster.
func fourParties() []byte {
	var roster strings.Builder
	for i, name := range []string{"north", "south", "east", "west"} {
		fmt.Fprintf(&roster, "%s %x\n", name, []byte(partyKey(byte(i))))
	}
	return []byte(roster.String())
}

// Plan plans what goes on from questions, whose first answer is known.
func (s *shown) Plan(_ context.Context, id string, text []byte) (*page.Planned, error) {
	switch {
	case id != s.status.ID:
		return nil, record.ErrNone
	case s.status.State != "ended":
		return nil, runner.ErrRunning
	}
	j, err := job.Parse("", text)
	if err != nil {
		return nil, err
	}
	f := questions()
	next, err := f.Continued(false)
	if err != nil {
		return nil, err
	}
	all, err := f.Questions().Questions()
	if err != nil {
		return nil, err
	}
	known := map[string]string{all[0]: "study"}
	batch, err := federation.Next(j, federation.Files{Text: next, Roster: fourParties()},
		func(question string) bool { return known[question] != "" })
	if err != nil {
		return nil, err
	}
	return page.NewPlanned(batch, j, known), nil
}

// answered returns its questions, with or without the answers of three parties with the same rows.
func answered(is bool) (*federation.Asked, error) {
	f := questions()
	if !is {
		return f.Asked(nil, 0)
	}
	var text strings.Builder
	text.WriteString("age,sex,size,said\n")
	for i := range 100 {
		fmt.Fprintf(&text, "%d,%s,%v,%s\n", 20+i*i%70, []string{"F", "<M>"}[i%2], float64(i%5)/2,
			[]string{"<b>", "cough"}[i%2])
	}
	rows, _, err := query.NewSchema(f.Job).Read("rows.csv", strings.NewReader(text.String()), nil)
	if err != nil {
		return nil, err
	}
	mean, err := f.Questions().Vector(rows, nil)
	if err != nil {
		return nil, err
	}
	for i := range mean { // of sums over records, which are divided by all that there are
		mean[i] *= 3. / 400
	}
	return f.Asked(mean, 3)
}

// planned has a federation that asks, and waits for parties.
func planned(s *runner.Status) {
	s.State, s.Stage, s.Rounds, s.Round = "waiting", "", 1, 0
	s.Spent, s.Budget, s.Study = spentOf(0), budgetOf(2), &federation.Study{Budget: *budgetOf(4),
		Plan: accounting.GaussianPlan, Spent: spentOf(0)}
	s.Asks, s.Lost, s.History, s.Committee = 5, 0, nil, nil
	s.Before = strings.Repeat("cd", 32)
}

// answers has one that has ended with answers.
func answers(s *runner.Status) {
	planned(s)
	s.State, s.Round, s.Spent = "ended", 1, spentOf(1.5)
	s.Study.Spent = spentOf(1.6)
	s.History = []runner.Past{{Round: 1, Parties: 3, Share: 0.75, Seconds: 2, Began: time.Now()}}
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
		`href="/federations/`+s.status.Before+`"`, "may spend epsilon 4 at delta 1e-05 for each "+
			"record of a party, against a server that cheats with any 2 parties. By its plan, "+
			"gaussian, the party with most has spent <b>epsilon 0.0000 at")
	if strings.Contains(body, "answers.csv") {
		t.Error("there are no answers yet")
	}

	answers(&s.status)
	body = get(path, 200)
	has(body, "Of the rows of <b>3</b> of 4 parties: intervals hold whatever",
		`id="answer-1"`, `id="answer-2"`, `id="answer-3"`, `class="reach"`, "at 0.5: ", "by 59: ",
		"<td>older, rows</td><td></td><td>", "&lt;M&gt;, 18 to 59", "… and 20 others: see the table",
		`id="answer-8"`, "cough: 150", "&lt;b&gt;: 150", "no word has rows enough to stand out",
		path+"/answers.csv", "may spend epsilon 4 at", "has spent <b>epsilon 1.6000 at delta 1e-05",
		" of it at the end")
	if strings.Contains(body, "<M>") {
		t.Error("a category is not escaped")
	}
	var asked federation.Asked
	if err := json.Unmarshal([]byte(get("/v1"+path+"/answers", 200)), &asked); err != nil ||
		asked.Parties != 3 || asked.Of != 4 || len(asked.Answers) != 10 ||
		len(asked.Questions) != 10 {
		t.Errorf("%+v: %v", asked, err)
	}
	lines, err := csv.NewReader(strings.NewReader(get(path+"/answers.csv", 200))).ReadAll()
	if err != nil || len(lines) != 1+1+8+4+3+4+2+2+60+2 || lines[2][0] != "decades" ||
		lines[2][9] == "" {
		t.Errorf("%d lines: %v", len(lines), err)
	}
}

// Whoever operates sees by a form, or as JSON, what more questions would cost and give. What was
// answered costs nothing, a mistake is told next to the form, and nothing is asked.
func TestPlan(t *testing.T) {
	s, server, tokens := newPage(t, false)
	path := "/federations/" + s.status.ID + "/plan"
	send := func(method, path, token string, form url.Values) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, server.URL+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(b)
	}
	if status, body := send("GET", path, tokens[1], nil); status != 404 {
		t.Errorf("it trains: %d %s", status, body)
	}
	planned(&s.status)
	text := string(questions().Text)
	for _, c := range []struct {
		method, token, job string
		state              string
		status             int
		want               string
	}{
		{"GET", tokens[0], "", "waiting", 403, "may operate"},
		{"GET", tokens[1], "", "waiting", 200, `kind = &#34;crosstab&#34;`},
		{"POST", tokens[1], text, "waiting", 409, "not ended"},
		{"POST", tokens[0], text, "ended", 403, "may operate"},
		{"POST", tokens[1], text, "ended", 200, "older was answered in study, and costs nothing"},
		{"POST", tokens[1], text, "ended", 200, "<td>decades</td><td>histogram</td><td>± "},
		{"POST", tokens[1], "nam = 1", "ended", 422, "did you mean name"},
		{"POST", tokens[1], strings.Replace(text, "2.0, study = 4.0", "9.0", 1), "ended", 422,
			"its budget is 4"},
	} {
		s.status.State = c.state
		status, body := send(c.method, path, c.token, url.Values{"job": {c.job}})
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %.20q of one that is %s: %d, want %d and %q: %s", c.method, c.job, c.state, status,
				c.status, c.want, body)
		}
	}
	body, err := json.Marshal(map[string][]byte{"text": []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	status, got, _ := call(t, "POST", server.URL+"/v1"+path, tokens[1], "", string(body))
	var plan page.Planned
	if err := json.Unmarshal([]byte(got), &plan); err != nil || status != 200 ||
		plan.Study.Budget.Target().Epsilon != 4 || plan.Known["older"] != "study" ||
		len(plan.Queries) != 9 || plan.Own.Bare().Upper > 2 || plan.Rows != 400 {
		t.Errorf("%d %+v: %v", status, plan, err)
	}
	for body, want := range map[string]int{"{": 400, `{"text":"YQ==","more":1}`: 400,
		`{"text":"YQ=="}`: 422, `{"text":"` + strings.Repeat("YWFh", 30_000) + `"}`: 413} {
		if status, got, _ := call(t, "POST", server.URL+"/v1"+path, tokens[1], "", body); status != want {
			t.Errorf("%.30s: %d %s", body, status, got)
		}
	}
}
