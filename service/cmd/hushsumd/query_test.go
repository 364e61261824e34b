package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

const firstQuestions = `name = "clinics"
parties = { roster = "roster.txt", rows = 40, drop_out = 0.25 }
time.step_time = "1m"
privacy = { unit = "record", records = 160, noise = "discrete-gaussian", epsilon = 2.0, study = 4.0 }
column = [
  { name = "age", type = "whole", unit = "years", range = [18, 100] },
  { name = "sex", type = "category", categories = ["F", "M"] },
]
query = [
  { name = "older", kind = "count", where = "age >= 65" },
  { name = "sexes", kind = "histogram", column = "sex" },
]
`

// A study by its commands: four sites join with their rows, one of which hears of a number that is
// clipped and one of a column that is missing; they are asked twice more, and a question that was
// answered is answered from the record. What the study cannot spend is refused.
func TestQuery(t *testing.T) {
	followPause = 100 * time.Millisecond
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	write := func(name, text string) string {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	roster := rosterOf(t, at, "north", "south", "east", "west")
	_, key := says(t, "identity", "new", at("operator.pem"))
	key = strings.TrimSpace(key[strings.LastIndex(strings.TrimSpace(key), " ")+1:])
	operators, err := page.OpenOperators(write("operators.txt", "operate ann "+key+"\n"),
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	n, err := node.Start(ctx, node.Options{Folder: at("node"), Name: "n", Listen: "127.0.0.1:0",
		Admin: "127.0.0.1:0", Open: true, Operators: operators})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	write("roster.txt", roster)
	as := []string{"--admin", n.Page, "--identity", at("operator.pem")}
	run := func(code int, args ...string) string {
		t.Helper()
		got, text := says(t, append(args, as...)...)
		if got != code {
			t.Fatalf("%v: %d %s", args, got, text)
		}
		return text
	}
	run(0, "federation", "create", write("study.toml", firstQuestions))
	if text := run(1, "query", "clinics"); !strings.Contains(text, "has no answers: it is ") {
		t.Error(text)
	}

	policy := write("policy.toml", "follow = [\""+key+"\"]\nunit = \"record\"\nmax_epsilon = 4.0\n")
	rows := "sex,age\n" + strings.Repeat("F,40\nM,70\n", 20)
	join := func(ctx context.Context, name, rows, policy string) (int, string) {
		b, log := new(printed), new(printed)
		args := []string{"join", "--server", n.Address, "--fingerprint", n.Fingerprint, "--identity",
			at(name + ".pem"), "--roster", at("roster.txt"), "--folder", at("folder-" + name), "--rows",
			write(name+".csv", rows), "--accept", "--follow", "--policy", policy, "--log", "error"}
		code := dispatch(ctx, args, streams{in: nil, out: b, err: log})
		for line := range strings.Lines(log.said()) {
			if !strings.HasPrefix(line, "hushsumd join: ") && !json.Valid([]byte(line)) {
				t.Errorf("%s: in the log, for people: %s", name, line)
			}
		}
		return code, b.said() + log.said()
	}
	code, text := join(ctx, "west", "sexe,age\nF,40\n", policy)
	if code != 1 || !strings.Contains(text, "west.csv:1: sex: there is no such column") ||
		!strings.Contains(text, "nothing of its rows has left") {
		t.Errorf("%d %s", code, text)
	}
	if code, text = join(ctx, "west", "\xff\xfes\x00", policy); code != 1 ||
		!strings.Contains(text, "west.csv: it is UTF-16, and not UTF-8; convert it: iconv") {
		t.Errorf("%d %s", code, text)
	}
	sums := write("sums.toml", "follow = [\""+key+"\"]\nquery_kinds = [\"sum\"]\n")
	if code, text = join(ctx, "west", rows, sums); code != 1 ||
		!strings.Contains(text, "query older is a count, and query_kinds has sum") {
		t.Errorf("%d %s", code, text)
	}
	var group sync.WaitGroup
	within, leave := context.WithCancel(ctx)
	for i, name := range []string{"north", "south", "east", "west"} {
		group.Go(func() {
			own := rows
			if i == 0 {
				own = strings.Replace(own, "M,70", "M,170", 1)
			} else if i == 1 { // as a spreadsheet saves them
				own = "\ufeff" + strings.NewReplacer(",", "; ", "\n", "\r\n").Replace(own)
			}
			code, text := join(within, name, own, policy)
			if code != exitInterrupted || i == 0 != strings.Contains(text,
				"north.csv: age: 1 value clipped, at line 3: \"170\", where the job declares numbers ") {
				t.Errorf("%s: %d %s", name, code, text)
			}
		})
	}
	for {
		if code, _ := says(t, append([]string{"query", "clinics"}, as...)...); code == 0 {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("no answers in time")
		}
		time.Sleep(100 * time.Millisecond)
	}
	text = run(0, "query", "clinics")
	for _, want := range []string{"parties   4 of 4\n", "older (count, rows)", "\n  M ",
		"these together spend epsilon 1.9", " for each record of a"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q: %s", want, text)
		}
	}
	awaitEnd(t, ctx, n, "clinics")
	if text = run(0, "federation", "show", "clinics"); !strings.Contains(text,
		"it asks 2 queries: see 'hushsumd query clinics'\n") ||
		!strings.Contains(text, "its study may spend epsilon 4 at delta 1e-05 for each record of a") ||
		!strings.Contains(text, "by its plan, gaussian, the party with most has spent epsilon 1.9") {
		t.Error(text)
	}
	lines, err := n.LastLines(ctx, n.Listing(ctx)[0].ID, 200)
	if err != nil || !slices.ContainsFunc(lines, func(l record.Line) bool {
		return l.Event == "created" && l.Note == "by ann"
	}) {
		t.Errorf("nothing says who declared it: %+v, %v", lines, err)
	}
	if text = run(0, "query", "clinics", "--csv"); !strings.HasPrefix(text, "name,kind,unit,") ||
		strings.Count(text, "\n") != 4 {
		t.Error(text)
	}

	next := write("next.toml", strings.NewReplacer("epsilon = 2.0, study = 4.0", "epsilon = 1.0",
		"roster = \"roster.txt\"", "count = 4", `{ name = "sexes", kind = "histogram", column = "sex" }`,
		`{ name = "age", kind = "mean", column = "age" }`).Replace(firstQuestions))
	text = run(0, "query", "clinics", next, "--plan")
	for _, want := range []string{"by themselves these spend epsilon 0.6", "already spent that",
		"the study may spend epsilon 4 at", "by its plan, gaussian, it would then have spent epsilon ",
		"age                  mean", "older was answered in clinics, and costs nothing"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q: %s", want, text)
		}
	}
	if strings.Contains(text, "parties.count") {
		t.Error(text)
	}
	five := strings.NewReplacer("epsilon = 2.0, study = 4.0", "epsilon = 1.0",
		"roster = \"roster.txt\"", "count = 5", "age >= 65", "age >= 64").Replace(firstQuestions)
	text = run(0, "query", "clinics", write("five.toml", five), "--plan")
	if !strings.Contains(text, "parties.count is 5; the 4 parties of clinics are asked") {
		t.Error(text)
	}
	// By a token nobody signs that it goes on, which is refused unless the operator wants it.
	code, text = says(t, "query", "clinics", at("five.toml"), "--admin", n.Page)
	if code != 1 || !strings.Contains(text, "no operator's key signs that clinics-2 continues") ||
		!strings.Contains(text, "add --unsigned") {
		t.Errorf("%d %s", code, text)
	}
	code, text = says(t, "query", "clinics", at("five.toml"), "--admin", n.Page, "--unsigned",
		"--identity", at("none.pem"))
	if code != 2 || !strings.Contains(text, "give one of them") {
		t.Errorf("%d %s", code, text)
	}
	code, text = says(t, "query", "clinics", at("five.toml"), "--admin", n.Page, "--unsigned")
	if code != 1 || strings.Contains(text, "no operator's key") ||
		!strings.Contains(text, "the server requires an operator") {
		t.Errorf("%d %s", code, text)
	}
	var plan page.Planned
	if err := json.Unmarshal([]byte(run(0, "query", "clinics", next, "--plan", "--json")),
		&plan); err != nil || plan.Own.Bare().Upper > 0.75 ||
		plan.Study.Budget.Target().Epsilon != 4 || len(plan.Queries) != 1 ||
		plan.Known["older"] != "clinics" {
		t.Errorf("%+v: %v", plan, err)
	}
	text = run(0, "query", "clinics", next, "--json")
	var all []query.Answer
	if err := json.Unmarshal([]byte(text[strings.Index(text, "["):]), &all); err != nil ||
		len(all) != 2 || all[1].Kind != "mean" {
		t.Fatalf("%v: %s", err, text)
	}
	if x := all[1].Cells[0]; x.Value < 40 || x.Value > 70 {
		t.Errorf("%+v", x)
	}
	// Both are known now, and asked of nobody.
	awaitEnd(t, ctx, n, "clinics-2")
	before := len(n.Listing(ctx))
	text = run(0, "query", "clinics", next)
	if !strings.Contains(text, "older was answered in clinics,") ||
		!strings.Contains(text, "age was answered in clinics-2,") || len(n.Listing(ctx)) != before {
		t.Error(text)
	}
	costly := write("costly.toml", strings.NewReplacer("epsilon = 2.0, study = 4.0",
		"epsilon = 6.0", "age >= 65", "age >= 66").Replace(firstQuestions))
	text = run(1, "query", "clinics-2", costly)
	if !strings.Contains(text, "costly.toml:4: privacy.epsilon") ||
		!strings.Contains(text, "its budget is 4") {
		t.Error(text)
	}
	leave()
	group.Wait()
	waits := func(name, age string) string {
		return write(name, strings.NewReplacer("epsilon = 2.0, study = 4.0", "epsilon = 0.2",
			"age >= 65", age).Replace(firstQuestions))
	}
	operator := as[len(as)-1]
	within, leave = context.WithCancel(ctx)
	group.Go(func() {
		b := new(printed)
		dispatch(within, []string{"query", "clinics", waits("first.toml", "age >= 60"), "--admin", n.Page,
			"--identity", operator}, streams{out: b, err: b})
	})
	for ctx.Err() == nil && !slices.ContainsFunc(n.Listing(ctx), func(s *runner.Status) bool {
		return s.Name == "clinics-3" && s.State == "waiting"
	}) {
		time.Sleep(50 * time.Millisecond)
	}
	text = run(1, "query", "clinics", waits("second.toml", "age >= 61"))
	if !strings.Contains(text, "clinics-3 has not ended: it is waiting") ||
		!strings.Contains(text, "'hushsumd federation end clinics-3'") {
		t.Error(text)
	}
	leave()
	group.Wait()
	if _, err := n.Answers(ctx, strings.Repeat("0", 64)); err == nil {
		t.Error("answers of nothing")
	}
	if asked, err := n.Answers(ctx, n.Listing(ctx)[1].ID); err != nil || asked.Parties != 4 ||
		asked.Name != "clinics-2" {
		t.Errorf("%+v: %v", asked, err)
	}
}

// awaitEnd waits until a federation has ended.
func awaitEnd(t *testing.T, ctx context.Context, n *node.Node, name string) {
	t.Helper()
	for ctx.Err() == nil {
		for _, s := range n.Listing(ctx) {
			if s.Name == name && s.State == "ended" {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal(fmt.Sprint(name, " does not end"))
}

// What the command is called with is checked first.
func TestQueryMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"name a federation":        {},
		"name the file of a job":   {"a", "--plan"},
		"--csv goes with neither":  {"a", "b", "--csv", "--json"},
		"is one argument too many": {"a", "b", "c"},
	} {
		code, text := says(t, append([]string{"query"}, args...)...)
		if code != exitUsage || !strings.Contains(text, want) {
			t.Errorf("%v: %d %s", args, code, text)
		}
	}
}
