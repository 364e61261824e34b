package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/numbers"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/answers"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/runner"
)

// questioner is the command query.
type questioner struct {
	*operator
	plan, json, csv, again bool
	std                    streams
}

func queryCommand(ctx context.Context, args []string, std streams) error {
	f := flags("query", "query NAME [FILE] [flags]", `
It prints the answers of a federation that asks queries, each with its 95 % interval. With FILE, a
job with [[query]], it asks the same roster more: the queries become the next federation, which
continues the last one of NAME's and counts what was spent, and the answers are printed once they
arrive. The epsilon of FILE covers its queries by themselves; parties and budget are the study's.
What was asked before is answered from the record and costs nothing; the remaining queries keep the
noise that FILE gives them. --plan prints what they would cost and yield, and asks nothing.

With --identity this operator signs that the one continues the other, so that parties follow; with
--unsigned they join by hand.`, std)
	q := questioner{std: std}
	var read func() error
	q.operator, read = operatorFlags(f)
	q.unsignedFlag(f)
	f.BoolVar(&q.plan, "plan", false, "print what it would cost and yield, and ask nothing")
	f.BoolVar(&q.json, "json", false, "print JSON")
	f.BoolVar(&q.csv, "csv", false, "print the answers as CSV")
	f.BoolVar(&q.again, "again", false, "ask again what was asked before")
	words, err := parseAmong(f, args, 2)
	switch {
	case err != nil:
		return err
	case len(words) == 0:
		return misuse("name a federation that asks queries")
	case len(words) == 1 && (q.plan || q.again):
		return misuse("--plan and --again are for more queries: name the file of a job that has them")
	case q.json && q.csv, q.plan && q.csv:
		return misuse("--csv goes with neither --json nor --plan")
	}
	if err := read(); err != nil {
		return err
	}
	s, err := q.find(ctx, words[0])
	if err != nil {
		return err
	}
	if len(words) == 2 {
		return inFile(words[1], q.more(ctx, s, words[1]))
	}
	asked, err := q.asked(ctx, s.ID)
	if err != nil {
		return err
	}
	if asked.Parties == 0 {
		return fmt.Errorf("%s has no answers: it is %s; see 'hushsumd federation show %s'", s.Name,
			standingOf(s), s.Name)
	}
	return q.print(asked, asked.Answers, nil)
}

// asked returns what a federation asks, and the answers if there are any.
func (q *questioner) asked(ctx context.Context, id string) (*federation.Asked, error) {
	out := new(federation.Asked)
	return out, q.ask(ctx, http.MethodGet, "/v1/federations/"+id+"/answers", nil, "", out)
}

// study returns a federation, those that it continues, and those that continue it, in order.
func (q *questioner) study(
	ctx context.Context, s *runner.Status,
) (chain []*runner.Status, err error) {
	all, err := q.all(ctx)
	if err != nil {
		return nil, err
	}
	for at := s; at != nil; {
		chain = append([]*runner.Status{at}, chain...)
		before := at.Before
		at = nil
		for _, other := range all {
			if before != "" && other.ID == before {
				at = other
			}
		}
	}
	for at := s; at != nil; {
		var next *runner.Status
		for _, other := range all {
			if other.Before != at.ID {
				continue
			}
			if next != nil {
				return nil, fmt.Errorf("%s and %s continue %s; name one of them", next.Name, other.Name,
					at.Name)
			}
			next = other
		}
		if at = next; at != nil {
			chain = append(chain, at)
		}
	}
	return chain, nil
}

// more asks the queries of a file, or prints what they would cost.
func (q *questioner) more(ctx context.Context, s *runner.Status, file string) error {
	j, err := job.Load(file)
	if err != nil {
		return err
	}
	chain, err := q.study(ctx, s)
	if err != nil {
		return err
	}
	known, from := map[string]query.Answer{}, map[string]string{}
	for _, s := range chain {
		if s.Asks == 0 || q.again {
			continue
		}
		asked, err := q.asked(ctx, s.ID)
		if err != nil {
			return err
		}
		for i, a := range asked.Answers {
			known[asked.Questions[i]], from[asked.Questions[i]] = a, s.Name
		}
	}
	last := chain[len(chain)-1]
	switch last.State {
	case "waiting", "running", "paused": // for others the server says what is wrong
		return fmt.Errorf("%s has not ended: it is %s; wait for it, or end it with 'hushsumd "+
			"federation end %s'", last.Name, standingOf(last), last.Name)
	}
	if n := j.Parties.Count; n > 0 && j.Parties.Roster == "" && n != len(last.Parties) {
		fmt.Fprintf(q.std.err, "%s: parties.count is %d; the %s of %s are asked\n", file,
			n, numbers.Plural(len(last.Parties), "party"), last.Name)
	}
	var after page.Declared
	if err := q.ask(ctx, http.MethodGet, "/v1/federations/"+last.ID+"/after", nil, "",
		&after); err != nil {
		return err
	}
	batch, err := federation.Next(j, federation.Files(after), func(question string) bool {
		_, found := known[question]
		return found
	})
	if err != nil {
		return err
	}
	names := map[string]string{}
	all := make([]query.Answer, len(j.Query))
	for i, question := range batch.Questions {
		a, found := known[question]
		if !found {
			continue
		}
		a.Name = j.Query[i].Name
		all[i], names[a.Name] = a, from[question]
	}
	if q.plan {
		return q.printPlan(page.NewPlanned(batch, j, from), all)
	}
	if batch.Federation == nil {
		return q.print(nil, all, names)
	}
	if batch.Files.Succession, err = q.succession(batch.Federation); err != nil {
		return err
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := q.ask(ctx, http.MethodPost, "/v1/federations", page.Declared(batch.Files), "",
		&made); err != nil {
		return err
	}
	fmt.Fprintf(q.std.err, "asked in %s, %s; an answer comes once enough parties take part\n",
		batch.Federation.Job.Name, made.ID)
	asked, err := q.await(ctx, made.ID)
	if err != nil {
		return err
	}
	for k, i := range batch.Asked {
		all[i] = asked.Answers[k]
	}
	return q.print(asked, all, names)
}

// await waits for the answers of a federation.
func (q *questioner) await(ctx context.Context, id string) (*federation.Asked, error) {
	told := time.Now() // a brief wait is not reported
	for last := ""; ; {
		s := new(runner.Status)
		if err := q.ask(ctx, http.MethodGet, "/v1/federations/"+id, nil, "", s); err != nil {
			return nil, err
		}
		asked, err := q.asked(ctx, id)
		switch {
		case err != nil:
			return nil, err
		case asked.Parties > 0:
			return asked, nil
		case s.State == "ended":
			return nil, fmt.Errorf("%s has ended without answers: %s", s.Name, s.Why)
		}
		if now := standingOf(s); now != last && time.Since(told) > waitsAfter {
			fmt.Fprintf(q.std.err, "%s: %s\n", s.Name, now)
			last, told = now, time.Now()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// waitsAfter is how long a query waits before it says for whom, and the least time between two such
// lines.
const waitsAfter = 3 * time.Second

// standingOf returns the state of a federation that has no answers yet, and which parties it waits
// for.
func standingOf(s *runner.Status) string {
	words := []string{s.State}
	if s.Why != "" {
		words = append(words, s.Why)
	}
	if s.State == "paused" {
		words = append(words, "'hushsumd federation resume' ends that")
	}
	if s.State != "waiting" && s.State != "running" {
		return strings.Join(words, "; ")
	}
	_, missing := runner.Present(s.Parties)
	members, silent := runner.Present(s.Committee)
	lacks := s.Lacks()
	switch due := append(awaited(s.Parties), awaited(s.Committee)...); {
	case lacks != "":
		words = append(words, lacks)
	case len(due) > 0 && s.Until != nil:
		words = append(words, fmt.Sprintf("waits for: %s, until %s at the latest",
			strings.Join(due, ", "), s.Until.UTC().Format(time.RFC3339)))
	case len(due) > 0:
		words = append(words, "waits for: "+strings.Join(due, ", "))
	case len(silent) > 0:
		words = append(words, fmt.Sprintf("of the committee %d of %d are here, not: %s", members,
			len(s.Committee), strings.Join(silent, ", ")))
	case len(missing) > 0:
		words = append(words, "not here: "+strings.Join(missing, ", "))
	}
	return strings.Join(words, "; ")
}

// awaited returns the names of those whose answer is due.
func awaited(list []runner.PartyStatus) (names []string) {
	for _, p := range list {
		if p.Awaited {
			names = append(names, p.Name)
		}
	}
	return names
}

// print prints answers, the new ones with a description, and says which were known.
func (q *questioner) print(
	asked *federation.Asked, all []query.Answer, known map[string]string,
) error {
	switch {
	case q.json:
		return json.NewEncoder(q.std.out).Encode(all)
	case q.csv:
		return query.WriteCSV(q.std.out, all)
	}
	if asked != nil {
		fmt.Fprintf(q.std.out, "parties   %s of %s\n", numbers.Grouped(asked.Parties),
			numbers.Grouped(asked.Of))
		if asked.Spent != nil {
			wrap(q.std.out, "these together spend %v", asked.Spent)
		}
		fmt.Fprintln(q.std.out)
	}
	answers.Write(q.std.out, all)
	q.printKnown(all, known)
	return nil
}

// printKnown prints which answers were known before.
func (q *questioner) printKnown(all []query.Answer, known map[string]string) {
	first := true
	for _, a := range all {
		if from, found := known[a.Name]; found {
			if first {
				fmt.Fprintln(q.std.out)
			}
			first = false
			fmt.Fprintf(q.std.out, "%s was answered in %s, and costs nothing\n", a.Name, from)
		}
	}
}

// printPlan prints what a batch would cost and give.
func (q *questioner) printPlan(p *page.Planned, all []query.Answer) error {
	if q.json {
		return json.NewEncoder(q.std.out).Encode(p)
	}
	w := q.std.out
	if p.Total != nil {
		wrap(w, "by themselves these spend %v", p.Own)
		wrap(w, "with the %s that the party with most has already spent that makes %v", p.Before.Most(),
			p.Total)
		if s := p.Study; s != nil {
			wrap(w, "the study may spend %v", s.Budget)
			wrap(w, "by its plan, %v, it would then have spent %v", s.Plan, s.Spent)
		}
		fmt.Fprintln(w)
	}
	if len(p.Queries) > 0 {
		answers.WritePlan(w, p.Expected())
		for _, sentence := range answers.Notes(p.Expected()) {
			fmt.Fprintf(w, "\n%s\n", strings.Replace(sentence, ": ", ":\n", 1))
		}
		fmt.Fprintf(w, "\n%s\n", strings.Replace(p.Assumes(), "; ", ";\n", 1))
	}
	q.printKnown(all, p.Known)
	return nil
}
