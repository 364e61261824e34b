package node_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	jobs "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
)

// studyText asks of rows with an age and a sex.
const studyText = `name = "clinics"
parties = { roster = "roster.txt", drop_out = 0.3, rows = 100 }
time = { step_time = "2m" }
column = [
  { name = "age", type = "whole", unit = "years", range = [18, 100] },
  { name = "sex", type = "category", categories = ["F", "M"], missing = "category" },
]
query = [
  { name = "older", kind = "count", where = "age >= 65" },
  { name = "age", kind = "mean", column = "age" },
  { name = "sexes", kind = "histogram", column = "sex" },
]
`

// asking is a node, the parties of a roster, and their rows.
type asking struct {
	*testing.T
	in        *network
	ctx       context.Context
	node      *node.Node
	config    node.Options
	parties   []ed25519.PrivateKey
	members   []ed25519.PrivateKey
	roster    *keyexchange.Roster
	committee *keyexchange.Roster
	folder    string
	rowsOf    func(i int) string // CSV
	group     sync.WaitGroup
}

// newAsking starts a node for this many parties.
func newAsking(t *testing.T, in *network, parties int) *asking {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	w := &asking{T: t, in: in, ctx: ctx, folder: t.TempDir(), rowsOf: clinic}
	w.parties, w.roster = newPeople(t, "p", parties)
	w.members, w.committee = newPeople(t, "member-", jobMembers)
	w.config = in.node(node.With(node.Options{Folder: filepath.Join(w.folder, "node"), Name: "test",
		Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", Open: true}, node.Hooks{Plain: true}))
	var err error
	if w.node, err = node.Start(ctx, w.config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		w.group.Wait()
		w.node.Close()
	})
	return w
}

// clinic makes the rows of a party: 50, of which 20 are 70 years old, 20 men.
func clinic(int) string {
	return "sex,age\n" + strings.Repeat("F,40\nM,70\n", 20) + strings.Repeat("F,40\n", 10)
}

// files are those of a job for the roster.
func (w *asking) files(text string) federation.Files {
	w.Helper()
	files := federation.Files{Text: []byte(text)}
	var err error
	if files.Roster, err = w.roster.MarshalText(); err != nil {
		w.Fatal(err)
	}
	if strings.Contains(text, `"oneshot"`) {
		if files.Committee, err = w.committee.MarshalText(); err != nil {
			w.Fatal(err)
		}
	}
	return files
}

// rows reads those of a party by the schema of a federation.
func (w *asking) rows(f *federation.Federation, i int) (*query.Rows, error) {
	rows, _, err := query.NewSchema(f.Job).Read(fmt.Sprint("p", i, ".csv"),
		strings.NewReader(w.rowsOf(i)), nil)
	return rows, err
}

// party makes a party that is asked.
func (w *asking) party(f *federation.Federation, i int) party.Party {
	w.Helper()
	p := w.peer(f, i)
	rows, err := w.rows(f, i)
	if err != nil {
		w.Fatal(err)
	}
	if p.Trainer, err = party.NewAsked(f, rows); err != nil {
		w.Fatal(err)
	}
	return p
}

// peer makes a party without a trainer, with a folder of its own in each federation.
func (w *asking) peer(f *federation.Federation, i int) party.Party {
	w.Helper()
	dir := filepath.Join(w.folder, fmt.Sprint("p", i), f.ID[:16])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.Fatal(err)
	}
	server, err := party.NewServer(w.node.Address, "", w.parties[i])
	if err != nil {
		w.Fatal(err)
	}
	key := &keyexchange.SealKey{byte(i + 1)}
	return party.Party{
		Federation: f,
		Identity:   w.parties[i],
		Server:     w.in.server(server),
		Folder:     dir,
		Key:        key,
		Book:       &consent.Book{File: filepath.Join(w.folder, fmt.Sprint("book-", i)), Key: key},
	}
}

// help has the committee help, if there is one.
func (w *asking) help(f *federation.Federation) {
	w.Helper()
	if f.Committee() == nil {
		return
	}
	for k, identity := range w.members {
		server, err := party.NewServer(w.node.Address, "", identity)
		if err != nil {
			w.Fatal(err)
		}
		m := party.Member{Federation: f, Identity: identity, Server: w.in.server(server),
			Folder: filepath.Join(w.folder, fmt.Sprint("member-", k), f.ID[:16]),
			Key:    &keyexchange.SealKey{1}}
		w.group.Go(func() {
			if err := m.Run(w.ctx); err != nil && w.ctx.Err() == nil {
				w.Errorf("member %d: %v", k, err)
			}
		})
	}
}

// asked waits until a federation has ended, and returns its answers.
func (w *asking) asked(f *federation.Federation) *federation.Asked {
	w.Helper()
	awaitStatus(w.ctx, w.T, w.node, f.ID, func(s *runner.Status) bool { return s.State == "ended" })
	out, err := w.node.Answers(w.ctx, f.ID)
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// Ten sites are asked over HTTP, by both protocols, with noise and without: answers are those of
// the rows of all.
func TestStudyAnswers(t *testing.T) {
	inTurn(t)
	for name, more := range map[string]string{
		"pairwise": "",
		"oneshot":  "sum = { protocol = \"oneshot\", committee = \"committee.txt\" }\n",
		"noise":    "privacy = { noise = \"discrete-gaussian\", epsilon = 100.0 }\n",
		"oneshot with noise": "sum = { protocol = \"oneshot\", committee = \"committee.txt\" }\n" +
			"privacy = { noise = \"discrete-gaussian\", epsilon = 100.0 }\n",
		"noise of members": "sum = { protocol = \"oneshot\", committee = \"committee.txt\" }\n" +
			"privacy = { noise = \"discrete-gaussian\", epsilon = 100.0, noise_by = \"committee\" }\n",
		"records": "privacy = { noise = \"discrete-gaussian\", epsilon = 100.0, unit = \"record\", " +
			"records = 500 }\n",
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, in *network) { studyAnswers(t, in, more) })
		})
	}
}

func studyAnswers(t *testing.T, in *network, more string) {
	w := newAsking(t, in, 10)
	f, err := w.node.Create(w.ctx, w.files(more+studyText))
	if err != nil {
		t.Fatal(err)
	}
	if before, err := w.node.Answers(w.ctx, f.ID); err != nil || before.Parties != 0 ||
		before.Answers != nil || len(before.Questions) != 3 {
		t.Errorf("%+v: %v", before, err)
	}
	w.help(f)
	for i := range w.parties {
		p := w.party(f, i)
		w.group.Go(func() {
			if _, err := p.Run(w.ctx); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	got := w.asked(f)
	w.group.Wait()
	all := got.Answers
	if got.Parties != 10 || len(all) != 3 {
		t.Fatalf("%+v", got)
	}
	// Three half widths are 5.9 deviations of the noise.
	near := func(c query.Cell, want float64) {
		t.Helper()
		if half := (c.High-c.Low)/2 + 1e-6; math.Abs(c.Value-want) > 3*half {
			t.Errorf("%v, want %v", c, want)
		}
	}
	near(all[0].Cells[0], 200)
	near(all[1].Cells[0], 52)
	near(all[2].Cells[0], 300)
	near(all[2].Cells[1], 200)
	near(all[2].Cells[2], 0)
	if noisy := strings.Contains(more, "noise"); noisy != (got.Spent != nil) ||
		noisy && got.Spent.Bare().Upper > 100 {
		t.Errorf("%v is spent", got.Spent)
	}
}

// One site's policy does not allow a column, and one's rows are not as the job says: it learns
// where. Both take no part, and the answers are of the eight others. The next batch goes on from
// the first, and does not read that column: the site that refused takes part, and what both batches
// spend is within the budget of their study. A question that was answered is known again.
func TestStudy(t *testing.T) {
	inTurn(t)
	inBubble(t, study)
}

func study(t *testing.T, in *network) {
	w := newAsking(t, in, 10)
	good := w.rowsOf
	w.rowsOf = func(i int) string {
		if i == 9 {
			return strings.Replace(good(i), "M,70", "M,seventy", 1)
		}
		return good(i)
	}
	policy := &consent.Policy{Follow: []string{operatorKey()}, MaxEpsilonMonth: 10, Unit: "record"}
	strict := *policy
	strict.QueryColumns = []string{"age"}
	const noise = "privacy = { noise = \"discrete-gaussian\", epsilon = 4.0, study = 8.0, " +
		"unit = \"record\", records = 500 }\n"
	text := strings.Replace(studyText, "2m", "20s", 1) // the sites that stay away cost it once a batch
	f, err := w.node.Create(w.ctx, w.files(noise+text))
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.rows(f, 9)
	var rows *query.RowsError
	if !errors.As(err, &rows) || rows.File != "p9.csv" || rows.Line != 3 || rows.Column != "age" {
		t.Errorf("the site is told %v", err)
	}
	run := func(f *federation.Federation, i int, policy *consent.Policy) error {
		p := w.party(f, i)
		p.Policy = policy
		_, err := p.Run(w.ctx)
		return err
	}
	if err := run(f, 8, &strict); !errors.Is(err, consent.ErrPolicy) ||
		!strings.Contains(err.Error(), "query sexes reads the column sex") {
		t.Errorf("the policy of a site says %v", err)
	}
	for i := range 8 {
		w.group.Go(func() {
			if err := run(f, i, policy); err != nil {
				t.Errorf("site %d: %v", i, err)
			}
		})
	}
	first := w.asked(f)
	w.group.Wait()
	if first.Parties != 8 || len(first.Answers) != 3 {
		t.Fatalf("%+v", first)
	}
	answer, err := in.client().Get(w.node.Page + "/federations/" + f.ID)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	for _, want := range []string{"Of the rows of <b>8</b> of 10 parties", "<td>older, rows</td>",
		"<td>age, years</td>", "<td>sexes, rows</td><td>F</td>", `id="answer-2"`,
		"may spend epsilon 8 at delta 1e-05 for each record of a party, against a server that cheats"} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q: %v", want, err)
		}
	}
	older := first.Answers[0].Cells[0]
	if older.Value < 140 || older.Value > 180 || older.High < older.Value+200-20 {
		t.Errorf("of 160 rows of eight sites and at most 200 of the others: %+v", older)
	}

	next := func(epsilon float64, queries string) (*federation.Batch, error) {
		files, err := w.node.After(w.ctx, f.ID)
		if err != nil {
			t.Fatal(err)
		}
		before, _, _ := strings.Cut(text, "query = [")
		j, err := jobs.Parse("next.toml", []byte(strings.Replace(noise, "4.0, study = 8.0",
			fmt.Sprint(epsilon), 1)+before+queries))
		if err != nil {
			t.Fatal(err)
		}
		return federation.Next(j, *files, nil)
	}
	if _, err := next(7, "query = [{ name = \"all\", kind = \"count\" }]"); !errors.Is(err,
		jobs.ErrConfig) || !strings.Contains(err.Error(), "the study would have spent") {
		t.Errorf("the study pays for it: %v", err)
	}
	batch, err := next(3, "query = [{ name = \"old\", kind = \"count\", where = \"age >= 65\" }, "+
		"{ name = \"all\", kind = \"count\" }]")
	if err != nil {
		t.Fatal(err)
	}
	epsilon := func(c *accounting.Claim) float64 { return c.Bare().Upper }
	study := batch.Study
	if epsilon(batch.Before) < 3.9 || epsilon(batch.Own) > 3 ||
		epsilon(batch.Total) < epsilon(batch.Before) || study.Budget.Target().Epsilon != 8 ||
		epsilon(study.Spent) < 3.9 || study.Spent.Within(study.Budget) != nil {
		t.Errorf("%+v", batch)
	}
	questions := batch.Questions
	if questions[0] != first.Questions[0] || slices.Contains(first.Questions,
		questions[1]) {
		t.Errorf("%v", questions)
	}
	if plan, err := w.node.Plan(w.ctx, f.ID, batch.Files.Text); err != nil ||
		plan.Known["old"] != "clinics" || len(plan.Queries) != 1 ||
		epsilon(plan.Total) > epsilon(batch.Total) || plan.Study.Budget != study.Budget {
		t.Errorf("%+v: %v", plan, err)
	}
	if batch.Files.Succession, err = batch.Federation.Sign(operator); err != nil {
		t.Fatal(err)
	}
	second, err := w.node.Create(w.ctx, batch.Files)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		w.group.Go(func() {
			p := w.party(f, i)
			if p.Policy = policy; i == 8 {
				p.Policy = &strict
			}
			followed, err := p.Successor(w.ctx)
			if err != nil || followed == nil || followed.ID != second.ID {
				t.Errorf("site %d goes on in %v: %v", i, followed, err)
				return
			}
			if err := run(followed, i, p.Policy); err != nil {
				t.Errorf("site %d: %v", i, err)
			}
		})
	}
	got := w.asked(second)
	w.group.Wait()
	if all := got.Answers; got.Parties != 9 || got.Before != f.ID || len(all) != 2 ||
		math.Abs(all[0].Cells[0].Value-180) > 20 || math.Abs(all[1].Cells[0].Value-450) > 20 {
		t.Errorf("%+v", got)
	}
	// The book has both, the first in the second.
	entries, err := w.party(second, 0).Book.Entries()
	if err != nil || len(entries) != 2 || entries[1].Before != f.ID ||
		math.Abs(leftIn(t, entries)-epsilon(batch.Total)) > 1e-6*epsilon(batch.Total) ||
		leftIn(t, entries[1:]) > 3.01 {
		t.Errorf("%+v: %v", entries, err)
	}
}

// A study trains, asks, and trains again: one ledger has all three, and the budget is of all.
func TestStudyTrains(t *testing.T) {
	inTurn(t)
	inBubble(t, studyTrains)
}

func studyTrains(t *testing.T, in *network) {
	w := newAsking(t, in, 4)
	run := func(f *federation.Federation) {
		t.Helper()
		for i := range w.parties {
			w.group.Go(func() {
				var p party.Party
				if f.Questions() != nil {
					p = w.party(f, i)
				} else {
					p = w.peer(f, i)
					p.Trainer = party.TrainerFunc(func(_ context.Context, work *party.Work,
					) (*party.Update, error) {
						return &party.Update{Vector: make([]float64, len(work.Model))}, nil
					})
				}
				if _, err := p.Run(w.ctx); err != nil {
					t.Errorf("party %d: %v", i, err)
				}
			})
		}
		awaitStatus(w.ctx, t, w.node, f.ID, func(s *runner.Status) bool { return s.State == "ended" })
		w.group.Wait()
	}
	const trains = `name = "study"
rounds = 2
parties = { roster = "roster.txt", drop_out = 0.25 }
model.length = 3
privacy = { noise = "discrete-gaussian", clip = 1.0, epsilon = 1.0, study = 2.0`
	first, err := w.node.Create(w.ctx, w.files(trains+" }\n"))
	if err != nil {
		t.Fatal(err)
	}
	run(first)

	j, err := jobs.Parse("next.toml", []byte("privacy.noise = \"discrete-gaussian\"\n"+
		"privacy.epsilon = 1.0\n"+studyText))
	if err != nil {
		t.Fatal(err)
	}
	files, err := w.node.After(w.ctx, first.ID)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := federation.Next(j, *files, nil)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := w.node.Create(w.ctx, batch.Files)
	if err != nil {
		t.Fatal(err)
	}
	run(asked)
	total := batch.Total.Bare().Upper
	if batch.Study.Budget.Target().Epsilon != 2 || batch.Before.Bare().Upper < 0.9 || total < 1.2 ||
		total > 1.6 {
		t.Errorf("%+v", batch)
	}

	if files, err = w.node.After(w.ctx, asked.ID); err != nil || files.Model != nil {
		t.Fatalf("%v, and a model: %v", err, files.Model != nil)
	}
	for epsilon, allowed := range map[string]bool{"2.0": true, "2.1": false} {
		files.Text = []byte(strings.Replace(trains, "epsilon = 1.0",
			"before = \"before.json\", epsilon = "+epsilon, 1) + " }\n")
		if _, err := federation.New(*files); (err == nil) != allowed {
			t.Errorf("epsilon %s: %v", epsilon, err)
		}
		if !allowed {
			continue
		}
		last, err := w.node.Create(w.ctx, *files)
		if err != nil {
			t.Fatal(err)
		}
		run(last)
		status, err := w.node.Status(w.ctx, last.ID)
		entries, err2 := w.peer(last, 0).Book.Entries()
		if err != nil || err2 != nil || len(entries) != 3 || epsilonOf(status) < 1.9 ||
			math.Abs(leftIn(t, entries)-epsilonOf(status)) > 1e-9 || entries[2].Before != asked.ID {
			t.Errorf("%v by the ledger, %+v by the book: %v, %v", status.Spent, entries, err, err2)
		}
	}
}
