package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/runner"
)

// Ten sites of up to 40 rows are asked, of which eight answer.
const tenQuestions = `name = "ten"
parties = { roster = "roster.txt", rows = 40, drop_out = 0.2 }
time.step_time = "5m"
privacy = { unit = "record", records = 300, noise = "discrete-gaussian", epsilon = 4.0, study = 6.0 }
column = [
  { name = "age", type = "whole", unit = "years", range = [20, 100] },
  { name = "sex", type = "category", categories = ["F", "M"] },
]
query = [
  { name = "older", kind = "count", where = "age >= 60" },
  { name = "age", kind = "mean", column = "age" },
  { name = "sexes", kind = "histogram", column = "sex" },
]
`

// tenSites are those that answer, in the order of their names, and then one whose policy refuses a
// query and one whose rows differ.
var tenSites = []string{"aachen", "bergen", "coimbra", "delft", "esbjerg", "falun", "gent", "hamar",
	"inari", "jena"}

// answering is how many of them answer.
const answering = 8

// patient is a row of a site. Those without consent are not asked about.
type patient struct {
	Age     int64
	Sex     string
	Consent bool
}

// patientsOf returns the rows of a site: 30, a fifth of them 60 or older, a third women.
func patientsOf(site int) (all []patient) {
	for i := range 30 {
		p := patient{Age: int64(25 + (i*7+site)%30), Sex: "M", Consent: true}
		if i%5 == 0 {
			p.Age += 40
		}
		if i%3 == site%3 {
			p.Sex = "F"
		}
		all = append(all, p)
	}
	return all
}

// tenTruth answers the questions of rows, number by number.
func tenTruth(sites ...[]patient) []float64 {
	var older, women, ages, all float64
	for _, rows := range sites {
		for _, p := range rows {
			all, ages = all+1, ages+float64(p.Age)
			if p.Age >= 60 {
				older++
			}
			if p.Sex == "F" {
				women++
			}
		}
	}
	return []float64{older, ages / all, women, all - women}
}

// tenWorld is a study whose server, sites and operator are processes.
type tenWorld struct {
	*testing.T
	ctx                      context.Context
	folder                   string
	door, fingerprint, admin string
	rowsFile                 func(name, text string) // writes what hushsum-rows reads
}

func (w *tenWorld) at(name string) string { return filepath.Join(w.folder, name) }

func (w *tenWorld) write(name, text string) string {
	w.Helper()
	if err := os.WriteFile(w.at(name), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	return w.at(name)
}

// rows writes the rows of a site as one of three forms of files, and returns the flags that name
// them.
func (w *tenWorld) rows(site int) []string {
	w.Helper()
	name, all := w.at(tenSites[site]), patientsOf(site)
	table := func(head string) string {
		for _, p := range all {
			head += fmt.Sprintf("%s,%d,%v\n", p.Sex, p.Age, p.Consent)
		}
		return head
	}
	switch site % 3 {
	case 1:
		name += ".db"
		w.rowsFile(name,
			patients(append(all, slices.Repeat([]patient{{100, "F", false}}, 10)...)))
		return []string{"--rows", name, "--sql",
			"SELECT years AS age, sex FROM patient WHERE consent ORDER BY years"}
	case 2:
		name += ".parquet"
		w.rowsFile(name, table("sex:text,age:int,consent:bool\n"))
	default:
		name = w.write(tenSites[site]+".csv", table("sex,age,consent\n"))
	}
	return []string{"--rows", name}
}

// patients makes a table of rows.
func patients(rows []patient) string {
	var b strings.Builder
	b.WriteString("CREATE TABLE patient (years INTEGER, sex TEXT, consent BOOLEAN);\n")
	for _, p := range rows {
		fmt.Fprintf(&b, "INSERT INTO patient VALUES (%d, '%s', %v);\n", p.Age, p.Sex, p.Consent)
	}
	return b.String()
}

// command is hushsumd in a process, which ends with the test.
func (w *tenWorld) command(args ...string) (c *exec.Cmd, said *bytes.Buffer) {
	c = exec.CommandContext(w.ctx, "hushsumd", args...) // which scripts run too
	said = new(bytes.Buffer)
	c.Stdout, c.Stderr = said, said
	return c, said
}

// run runs a command that has to end with a code, and returns what it prints.
func (w *tenWorld) run(want int, args ...string) string {
	w.Helper()
	c, said := w.command(args...)
	err := c.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) || c.ProcessState.ExitCode() != want {
		w.Fatalf("%v: %v, want code %d: %s", args, err, want, said)
	}
	return said.String()
}

// operate runs a command of the operator.
func (w *tenWorld) operate(want int, args ...string) string {
	w.Helper()
	return w.run(want, append(args, "--admin", w.admin, "--identity", w.at("operator.pem"))...)
}

// joins are the arguments with which a site takes part.
func (w *tenWorld) joins(site int, policy string) []string {
	name := tenSites[site]
	return append([]string{"join", "--server", w.door, "--fingerprint", w.fingerprint, "--identity",
		w.at(name + ".pem"), "--roster", w.at("roster.txt"), "--folder", w.at("folder-" + name),
		"--accept", "--policy", policy}, w.rows(site)...)
}

// serve starts the server, and waits until it says where it is.
func (w *tenWorld) serve() {
	w.Helper()
	c, said := w.command("serve", "--folder", w.at("node"), "--operators", w.at("operators.txt"),
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log", "error")
	c.Stdout = nil
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	values := map[string]string{}
	for values["page"] == "" && lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) > 1 {
			values[words[0]] = words[1]
		}
	}
	w.door, w.fingerprint, w.admin = values["door"], values["fingerprint"], values["page"]
	if w.admin == "" {
		w.Fatalf("the server does not start: %v %s", c.Wait(), said)
	}
	rest := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, out)
		close(rest)
	}()
	w.Cleanup(func() {
		_ = c.Process.Kill()
		<-rest
		_ = c.Wait()
	})
}

// status is how the study stands.
func (w *tenWorld) status() *runner.Status {
	w.Helper()
	s := new(runner.Status)
	if err := json.Unmarshal([]byte(w.operate(0, "federation", "show", "ten", "--json")),
		s); err != nil {
		w.Fatal(err)
	}
	return s
}

// page reads what the page has at a path, as the operator.
func (w *tenWorld) page(path string) []byte {
	w.Helper()
	identity, err := keyfile.ReadIdentity(w.at("operator.pem"))
	if err != nil {
		w.Fatal(err)
	}
	o := &operator{admin: w.admin, identity: identity}
	answer, err := o.send(w.ctx, http.MethodGet, path, nil, nil, "")
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatal(err)
	}
	return text
}

// A study of ten sites over HTTPS, each with rows in CSV, SQLite or Parquet. One site's policy
// refuses a query, by name, before a round; one whose rows are not as the schema says is told so
// by column and line; nothing of either has left. The other eight answer three queries, whose
// intervals hold what the rows of all ten say. The ledger has spent for the eight alone, and each
// of them counts the same. What was asked is answered from the record.
func TestStudyOfTenSites(t *testing.T) {
	suite.OnlyLong(t) // a process for each site, the server and what the operator does
	w := &tenWorld{T: t, folder: t.TempDir(), rowsFile: suite.RowsProgram(t)}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	w.ctx = ctx
	w.write("roster.txt", rosterOf(t, w.at, tenSites...))
	_, key := says(t, "identity", "new", w.at("operator.pem"))
	words := strings.Fields(key)
	w.write("operators.txt", "operate ann "+words[len(words)-1]+"\n")
	w.serve()
	w.operate(0, "federation", "create", w.write("study.toml", tenQuestions))

	const bounds = "unit = \"record\"\nmax_epsilon_month = 5.0\nsmallest_group = 1\n"
	policy := w.write("policy.toml", bounds)
	strict := w.write("strict.toml", bounds+"query_kinds = [\"count\", \"mean\"]\n")
	if text := w.run(1, w.joins(8, strict)...); !strings.Contains(text,
		"query sexes is a histogram, and query_kinds has count, mean") {
		t.Error(text)
	}
	differs := w.joins(9, policy)
	rows, err := os.ReadFile(w.at("jena.csv"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("jena.csv", strings.Replace(string(rows), "\nF,", "\nW,", 1))
	text := w.run(1, differs...)
	if !strings.Contains(text, "jena.csv:2: sex: the value is unknown") ||
		!strings.Contains(text, "nothing of its rows has left") {
		t.Error(text)
	}
	for i, p := range w.status().Parties {
		if p.State != "never" { // whoever takes part tells the server that it is here
			t.Errorf("%s is %s", tenSites[i], p.State)
		}
	}
	for _, name := range tenSites[answering:] { // so that no step waits for them
		w.operate(0, "federation", "exclude", "ten", name)
	}

	said := w.takePart(policy)
	text = w.operate(0, "query", "ten", "--json")
	var answers []query.Answer
	if err := json.Unmarshal([]byte(text), &answers); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	w.check(answers)
	s := w.status()
	w.checkLedger(s, said)
	w.checkPage(s.ID, answers)

	// The same three, whatever they are called, cost nothing.
	again := w.write("again.toml", strings.NewReplacer(`"ten"`, `"again"`, `"older"`, `"pensioners"`,
		`roster = "roster.txt"`, "count = 10", ", study = 6.0", "").Replace(tenQuestions))
	text = w.operate(0, "query", "ten", again)
	if !strings.Contains(text, "pensioners was answered in ten, and costs nothing") ||
		strings.Count(text, "costs nothing") != 3 || strings.Contains(text, "asked in") {
		t.Error(text)
	}
}

// takePart has the sites that answer take part until the study ends, and returns what each says.
func (w *tenWorld) takePart(policy string) (said []*bytes.Buffer) {
	w.Helper()
	var commands []*exec.Cmd
	for site := range answering {
		c, out := w.command(w.joins(site, policy)...)
		if err := c.Start(); err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
		commands, said = append(commands, c), append(said, out)
	}
	for site, c := range commands {
		if err := c.Wait(); err != nil {
			w.Fatalf("%s: %v %s", tenSites[site], err, said[site])
		}
	}
	return said
}

// check compares answers with what rows say. Noise has a standard deviation of 1.9 rows, and of
// half a year: what is allowed is six times as much, which fails in fewer than one of 10⁷ runs.
// Intervals are as wide as the 80 rows that two sites may have; what these do have is in the
// middle of that, twelve rows and more from the ends.
func (w *tenWorld) check(answers []query.Answer) {
	w.Helper()
	var sites [][]patient
	for site := range tenSites {
		sites = append(sites, patientsOf(site))
	}
	eight, ten := tenTruth(sites[:answering]...), tenTruth(sites...)
	var cells []query.Cell
	for _, a := range answers {
		cells = append(cells, a.Cells...)
	}
	if len(answers) != 3 || len(cells) != len(ten) {
		w.Fatalf("%+v", answers)
	}
	for i, c := range cells {
		off, wide := 12., 92.
		if answers[1].Cells[0] == c {
			off, wide = 3, 26
		}
		if math.Abs(c.Value-eight[i]) > off || c.Low > ten[i] || c.High < ten[i] ||
			c.High-c.Low > wide {
			w.Errorf("number %d: %+v; the rows of eight say %v, those of all %v", i, c, eight[i], ten[i])
		}
	}
}

// checkLedger compares what the server counts with what each site does.
func (w *tenWorld) checkLedger(s *runner.Status, said []*bytes.Buffer) {
	w.Helper()
	w.operate(0, "federation", "after", "ten", w.at("after"))
	text, err := os.ReadFile(w.at("after/before.json"))
	if err != nil {
		w.Fatal(err)
	}
	before := new(job.Before)
	if err := before.UnmarshalText(text); err != nil {
		w.Fatal(err)
	}
	if s.Spent.Bare().Upper < 3.9 || s.Spent.Within(*s.Budget) != nil ||
		s.Study.Spent.Within(s.Study.Budget) != nil ||
		before.Study == nil || s.Study.Budget != *before.Study ||
		before.Study.Target().Epsilon != 6 ||
		!slices.Equal(before.Ledger.Clients(), tenSites[:answering]) {
		w.Errorf("%+v: %s", s, text)
	}
	for site, name := range tenSites[:answering] {
		spent, err := before.Ledger.Spent(name)
		own := fmt.Sprintf(`"submissions":1,"spent":{"epsilon":%v,`, spent.Bare().Upper)
		if err != nil || spent.Bare().Upper != s.Spent.Bare().Upper ||
			!strings.Contains(said[site].String(), own) {
			w.Errorf("%s: %v %v, of %v: %s", name, spent.Bare().Upper, err, s.Spent, said[site])
		}
	}
}

// checkPage reads the answers from the page: for people, as JSON and as CSV.
func (w *tenWorld) checkPage(id string, answers []query.Answer) {
	w.Helper()
	var asked federation.Asked
	err := json.Unmarshal(w.page("/v1/federations/"+id+"/answers"), &asked)
	if err != nil || !reflect.DeepEqual(asked.Answers, answers) || asked.Parties != answering ||
		asked.Of != len(tenSites) {
		w.Errorf("%v %+v", err, asked)
	}
	var table bytes.Buffer
	if err := query.WriteCSV(&table, answers); err != nil {
		w.Fatal(err)
	}
	if text := w.page("/federations/" + id + "/answers.csv"); !bytes.Equal(text, table.Bytes()) {
		w.Errorf("%s, want %s", text, table.Bytes())
	}
	text := string(w.page("/federations/" + id))
	for _, a := range answers {
		if strings.Count(text, a.Name+", "+a.Unit) < len(a.Cells) { // a line for each number
			w.Errorf("%s is not on the page: %s", a.Name, text)
		}
	}
}
