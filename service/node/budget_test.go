package node_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/suite"
	jobs "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
)

// askedParties is how many parties a study of this file has.
const askedParties = 5

// operator is whom parties follow.
var operator = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))

// childStudy is a server with a page, for federations that a test declares.
func childStudy() {
	folder := os.Getenv("HUSHSUM_TEST_FOLDER")
	j := new(job)
	b, err := os.ReadFile(filepath.Join(folder, "job.json"))
	child(err)
	child(json.Unmarshal(b, j))
	n, err := node.Start(context.Background(), node.With(node.Options{
		Folder: filepath.Join(folder, "node"),
		Name:   "study",
		Listen: j.Peers[0],
		Admin:  j.Peers[1],
		Open:   true,
		Log:    slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}, node.Hooks{Plain: true, Grace: 700 * time.Millisecond}))
	child(err)
	if made := len(n.NewTokens); made > 0 { // of the first start; the last of them operates
		leave(folder, "token", n.NewTokens[made-1])
	}
	child(<-n.Hangs)
}

// childAsked is a party that answers what it is asked, and follows an operator.
func childAsked(which string) {
	folder := os.Getenv("HUSHSUM_TEST_FOLDER")
	i, err := strconv.Atoi(which)
	child(err)
	b, err := os.ReadFile(filepath.Join(folder, "job.json"))
	child(err)
	j := new(job)
	child(json.Unmarshal(b, j))
	server, identity, key := childWay(folder, fmt.Sprint("secret-", i), i, j)
	fed, err := federation.Read(filepath.Join(folder, "federation.toml"))
	child(err)
	p := party.Party{Federation: fed, Identity: identity, Server: server, Key: key,
		Book: &consent.Book{File: filepath.Join(folder, fmt.Sprint("book-", i)), Key: key},
		Log:  childLog(folder, i),
		Policy: &consent.Policy{Follow: []string{operatorKey()}, MaxEpsilon: 2,
			QueryKinds: []string{"count", "sum", "mean", "histogram"}}}
	ctx := context.Background()
	for {
		f := p.Federation
		p.Folder = filepath.Join(folder, fmt.Sprint("party-", i), f.ID[:16])
		child(os.MkdirAll(p.Folder, 0o700))
		rows, _, err := query.NewSchema(f.Job).Read("rows", strings.NewReader(clinic(i)), nil)
		child(err)
		p.Trainer, err = party.NewAsked(f, rows)
		child(err)
		p.Submitted = func(round int, _ [][]uint64) {
			leave(folder, fmt.Sprintf("submissions/%s-%d-%d", f.ID, round, i), true)
		}
		_, err = p.Run(ctx)
		child(err)
		for p.Federation == f {
			next, err := p.Successor(ctx)
			if next != nil {
				p.Federation = next
			} else if err != nil && !errors.Is(err, consent.ErrPolicy) {
				p.Log.Warn("asking again", "error", err.Error())
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// operatorKey is the key of the operator in hexadecimal digits.
func operatorKey() string {
	return fmt.Sprintf("%x", []byte(operator.Public().(ed25519.PublicKey)))
}

// budgetWorld is a study in processes of their own.
type budgetWorld struct {
	*testing.T
	ctx     context.Context
	folder  string
	page    string
	server  *process
	parties []*process
	kills   int
	random  *rand.Rand
}

// ask sends a request until the server answers it, and reads what it says.
func (w *budgetWorld) ask(method, path string, body, into any) error {
	w.Helper()
	var token string
	for {
		if w.ctx.Err() != nil {
			w.Fatalf("%s %s: no answer in time", method, path)
		}
		_ = find(w.folder, "token", &token)
		sent, err := json.Marshal(body)
		if err != nil {
			w.Fatal(err)
		}
		r, err := http.NewRequestWithContext(w.ctx, method, w.page+path, bytes.NewReader(sent))
		if err != nil {
			w.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		switch {
		case err != nil || answer.StatusCode >= 500 || answer.StatusCode == 401 ||
			answer.StatusCode == 404: // a server that begins has not read its record yet
			time.Sleep(50 * time.Millisecond)
			continue
		case answer.StatusCode >= 300:
			var p exchange.Problem
			if err := json.Unmarshal(text, &p); err != nil {
				w.Fatalf("%s: %s", err, text)
			}
			return &refusedError{p}
		}
		return json.Unmarshal(text, into)
	}
}

// refusedError is a problem that the server answers with.
type refusedError struct{ exchange.Problem }

func (e *refusedError) Error() string { return e.Detail }

// declare declares a federation at the operator's word, and returns its identifier. A server that
// was killed may have declared it before.
func (w *budgetWorld) declare(f *federation.Federation, files federation.Files) error {
	w.Helper()
	if f.Settled.Before() != nil {
		var err error
		if files.Succession, err = f.Sign(operator); err != nil {
			w.Fatal(err)
		}
	}
	var made struct{ ID string }
	err := w.ask("POST", "/v1/federations", page.Declared(files), &made)
	var refused *refusedError
	if errors.As(err, &refused) && strings.HasSuffix(refused.Type, "exists") {
		return nil
	}
	return err
}

// ended waits for the end of a federation, and kills processes meanwhile.
func (w *budgetWorld) ended(id string, kills int) *runner.Status {
	w.Helper()
	for ; ; time.Sleep(time.Duration(w.random.IntN(60)) * time.Millisecond) {
		s := new(runner.Status)
		if err := w.ask("GET", "/v1/federations/"+id, nil, s); err != nil {
			w.Fatal(err)
		}
		if s.State == "ended" {
			return s
		}
		if kills == 0 || w.random.IntN(3) > 0 {
			continue
		}
		kills--
		p := w.server
		if w.random.IntN(2) == 0 {
			p = w.parties[w.random.IntN(len(w.parties))]
		}
		if p.kill() {
			w.kills++
			killed.Add(1)
		}
		p.start(w.T)
	}
}

// after returns what a federation begins with that goes on from one that has ended.
func (w *budgetWorld) after(id string) (files federation.Files) {
	w.Helper()
	var declared page.Declared
	if err := w.ask("GET", "/v1/federations/"+id+"/after", nil, &declared); err != nil {
		w.Fatal(err)
	}
	return federation.Files(declared)
}

// randomQuery is one of many questions.
func randomQuery(random *rand.Rand) string {
	where := ""
	if random.IntN(2) == 0 {
		where = fmt.Sprintf(", where = \"age >= %d\"", 20+random.IntN(60))
	}
	switch random.IntN(4) {
	case 0:
		return "kind = \"sum\", column = \"age\"" + where
	case 1:
		return "kind = \"mean\", column = \"age\"" + where
	case 2:
		return "kind = \"histogram\", column = \"sex\"" + where
	}
	return "kind = \"count\"" + where
}

// Queries are asked of one roster, each in a federation that goes on from the one before it, until
// the study's budget is spent, while the server and parties are killed. What each party has spent
// is the same by the server's ledger, by its own book, and by an accountant that sees only which
// messages were sent. Then nobody takes part in more: not the operator's program, the server, nor a
// party, whatever it is told.
func TestBudget(t *testing.T) {
	inTurn(t)
	count := suite.Size(2, 3, 200, 200)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(3+count/2)*time.Minute)
	defer cancel()
	seed := uint64(time.Now().UnixNano())
	if *killSeed != 0 {
		seed = *killSeed
	}
	w := &budgetWorld{T: t, ctx: ctx, folder: t.TempDir(), random: rand.New(rand.NewPCG(seed, 1))}
	doors := []string{freePort(t), freePort(t)}
	w.page = "http://" + doors[1]
	prepareRoster(t, w.folder, "roster.txt", "p", "secret-", askedParties)
	write := func(name string, text []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(w.folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(job{Address: "http://" + doors[0], Peers: doors})
	if err != nil {
		t.Fatal(err)
	}
	write("job.json", b)
	if err := os.Mkdir(filepath.Join(w.folder, "submissions"), 0o700); err != nil {
		t.Fatal(err)
	}
	roster, err := os.ReadFile(filepath.Join(w.folder, "roster.txt"))
	if err != nil {
		t.Fatal(err)
	}
	// What count queries cost, and what is left for the last is not enough for one more.
	costs := []float64{0.08, 0.1}
	text := func(study, epsilon float64, query string) []byte {
		return fmt.Appendf(nil, `name = "study"
parties = { roster = "roster.txt", rows = 100, drop_out = 0.2 }
time.step_time = "2m"
privacy = { noise = "discrete-gaussian", epsilon = %v, study = %v }
column = [
  { name = "age", type = "whole", range = [18, 100] },
  { name = "sex", type = "category", categories = ["F", "M"] },
]
query = [{ name = "q", %s }]
`, epsilon, study, query)
	}
	study := budgetFor(t, text(1, 0.1, `kind = "count"`), roster, count)
	files := federation.Files{Text: text(study, costs[0], randomQuery(w.random)), Roster: roster}
	f, err := federation.New(files)
	if err != nil {
		t.Fatal(err)
	}
	write("federation.toml", files.Text)
	w.server = &process{role: "study", folder: w.folder}
	w.server.start(t)
	t.Cleanup(func() { w.server.kill() })
	for i := range askedParties {
		p := &process{role: fmt.Sprint("asked ", i), folder: w.folder}
		p.start(t)
		t.Cleanup(func() { p.kill() })
		w.parties = append(w.parties, p)
	}
	if err := w.declare(f, files); err != nil {
		t.Fatal(err)
	}
	all, answers := []*federation.Federation{f}, 0
	var refused error
	for len(all) < 2*count+4 {
		kills := 0
		if len(all)%max(1, count/20) == 0 {
			kills = 2
		}
		w.ended(f.ID, kills)
		var got federation.Asked
		if err := w.ask("GET", "/v1/federations/"+f.ID+"/answers", nil, &got); err != nil {
			t.Fatal(err)
		}
		answers += len(got.Answers)
		j, err := jobs.Parse("next.toml", text(study, costs[w.random.IntN(2)], randomQuery(w.random)))
		if err != nil {
			t.Fatal(err)
		}
		next, err := federation.Next(j, w.after(f.ID), nil)
		if err != nil {
			refused = err
			break
		}
		if err := w.declare(next.Federation, next.Files); err != nil {
			t.Fatal(err)
		}
		f = next.Federation
		all = append(all, f)
	}
	if wrong := jobs.Errors(refused); len(wrong) != 1 || wrong[0].Path != "privacy.epsilon" {
		t.Errorf("after %d queries: %v", len(all), refused)
	}
	if answers < len(all)*9/10 || len(all) < count {
		t.Errorf("%d of %d queries have answers, and there should be %d", answers, len(all), count)
	}
	w.compare(all)
	w.spent(all, study)
	t.Logf("%d queries, %d answers, %d kills, epsilon %v of %v, seed %d", len(all), answers, w.kills,
		f.Job.Privacy.Epsilon, study, seed)
}

// budgetFor is the epsilon of this many queries that cost as that of a job's text does.
func budgetFor(t *testing.T, text, roster []byte, count int) float64 {
	t.Helper()
	f, err := federation.New(federation.Files{Text: text, Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	spent, err := f.Settled.Round().Spent(accounting.ServerView, count, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	return spent.Bare().Upper * 1.001
}

// compare compares what everybody has counted.
func (w *budgetWorld) compare(all []*federation.Federation) {
	w.Helper()
	last := all[len(all)-1]
	server := new(jobs.Before)
	if err := server.UnmarshalText(w.after(last.ID).Before); err != nil {
		w.Fatal(err)
	}
	budget, err := accounting.NewBudget(last.Settled.Statement(), 1000, 1e-5)
	if err != nil {
		w.Fatal(err)
	}
	seen, err := accounting.NewLedger(budget)
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range all {
		names, err := filepath.Glob(filepath.Join(w.folder, "submissions", f.ID+"-*"))
		if err != nil {
			w.Fatal(err)
		}
		for _, name := range names {
			parts := strings.Split(filepath.Base(name), "-")
			if err := seen.SpendRound(f.Settled.Round(), "p"+parts[2]); err != nil {
				w.Fatal(err)
			}
		}
	}
	for i := range askedParties {
		name := fmt.Sprint("p", i)
		messages, err := seen.Spent(name)
		if err != nil {
			w.Fatal(err)
		}
		ledger, err := server.Ledger.Spent(name)
		if err != nil {
			w.Fatal(err)
		}
		own := leftIn(w, w.bookOf(i, last.ID))
		w.Logf("%s: %v by messages, %v by the ledger, %v by its book", name, messages.Bare().Upper,
			ledger.Bare().Upper,
			own)
		if math.Abs(messages.Bare().Upper-ledger.Bare().Upper) > 1e-9 ||
			math.Abs(own-ledger.Bare().Upper) > 1e-9 {
			w.Errorf("%s: %v by messages, %v by the ledger, %v by its book", name, messages.Bare().Upper,
				ledger.Bare().Upper, own)
		}
	}
}

// bookOf waits until a party's book has the end of a federation, and returns its entries.
func (w *budgetWorld) bookOf(i int, id string) []consent.Entry {
	w.Helper()
	book := w.book(i)
	for ; ; time.Sleep(20 * time.Millisecond) {
		entries, err := book.Entries()
		if err == nil {
			if slices.ContainsFunc(entries, func(e consent.Entry) bool {
				return e.ID == id && !e.Ended.IsZero()
			}) {
				return entries
			}
		}
		if w.ctx.Err() != nil {
			w.Fatalf("the book of %d has no end of %.16s: %v", i, id, err)
		}
	}
}

// spent tries to have more asked, once the budget is spent.
func (w *budgetWorld) spent(
	all []*federation.Federation, study float64,
) {
	w.Helper()
	last := all[len(all)-1]
	after := w.after(last.ID)
	// change makes what an operator's program would refuse to make.
	change := func(change func(j *jobs.Job, files *federation.Files)) (*federation.Federation,
		federation.Files, error,
	) {
		files := after
		j, err := jobs.Parse("", files.Text)
		if err != nil {
			w.Fatal(err)
		}
		change(j, &files)
		if files.Text, err = j.MarshalText(); err != nil {
			w.Fatal(err)
		}
		f, err := federation.New(files)
		return f, files, err
	}
	for what, c := range map[string]func(j *jobs.Job, files *federation.Files){
		"as much again": func(j *jobs.Job, _ *federation.Files) {
			j.Privacy.Epsilon, j.Privacy.Multiplier = 2*study, 0
		},
		"a larger budget": func(j *jobs.Job, _ *federation.Files) {
			j.Privacy.Epsilon, j.Privacy.Multiplier, j.Privacy.Study = 2*study, 0, 2*study
		},
		"no budget": func(j *jobs.Job, _ *federation.Files) {
			j.Privacy.Epsilon, j.Privacy.Multiplier, j.Privacy.Study = 2*study, 0, 0
		},
	} {
		if _, files, err := change(c); !errors.Is(err, jobs.ErrConfig) {
			w.Errorf("%s: %v", what, err)
		} else if w.ask("POST", "/v1/federations", page.Declared(files), new(any)) == nil {
			w.Errorf("%s: the server takes it", what)
		}
	}
	// Files that settle, and are lies.
	budget, err := accounting.NewBudget(accounting.Statement{}, study, 1e-5)
	if err != nil {
		w.Fatal(err)
	}
	empty, err := accounting.NewLedger(budget)
	if err != nil {
		w.Fatal(err)
	}
	lie := func(of string, study *accounting.Budget) []byte {
		b := jobs.Before{Federation: of, Study: study, Plan: accounting.GaussianPlan, Ledger: empty}
		text, err := b.MarshalText()
		if err != nil {
			w.Fatal(err)
		}
		return text
	}
	for what, c := range map[string]struct {
		before []byte
		study  float64
		kind   string // of the server's refusal
		party  bool   // does it refuse by its own book?
	}{
		"nothing was spent":      {lie(last.ID, last.Settled.Study()), study, "federation", true},
		"there was no budget":    {lie(last.ID, nil), 2 * study, "federation", true},
		"a second path":          {w.forked(all), study, "federation", true},
		"a study from the start": {nil, study, "federation", false},
	} {
		f, files, err := change(func(j *jobs.Job, files *federation.Files) {
			j.Privacy.Epsilon, j.Privacy.Multiplier, j.Privacy.Study = study, 0, c.study
			if files.Before = c.before; c.before == nil {
				j.Privacy.Before = ""
			}
		})
		if err != nil {
			w.Errorf("%s: %v", what, err)
			continue
		}
		var refused *refusedError
		if err := w.declare(f, files); !errors.As(err, &refused) ||
			!strings.HasSuffix(refused.Type, "/"+c.kind) && !strings.HasSuffix(refused.Type, ":"+c.kind) {
			w.Errorf("%s: the server says %v", what, err)
		}
		if err := w.book(0).Check(nil, f.Settled, f.Settled.Roster().Key(0)); (err != nil) != c.party {
			w.Errorf("%s: by its book a party says %v", what, err)
		}
	}
}

// forked returns what was spent before the second federation, from which a third cannot go on.
func (w *budgetWorld) forked(all []*federation.Federation) []byte {
	return w.after(all[0].ID).Before
}

// book is a party's.
func (w *budgetWorld) book(i int) *consent.Book {
	w.Helper()
	b, err := os.ReadFile(filepath.Join(w.folder, fmt.Sprint("secret-", i)))
	if err != nil {
		w.Fatal(err)
	}
	return &consent.Book{File: filepath.Join(w.folder, fmt.Sprint("book-", i)),
		Key: (*keyexchange.SealKey)(b[32:])}
}
