package node_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/party"
)

const hospitals = 10

// hospitalRows deals 300 made-up records to ten hospitals, alike in every process.
func hospitalRows() (own []*learning.Dataset, err error) {
	all, _, err := learning.Census(400, 5)
	if err != nil {
		return nil, err
	}
	train, test, err := all.Split(0.25, 5)
	if err != nil {
		return nil, err
	}
	own, _, err = learning.Partition("iid", train, test,
		learning.PartitionOptions{Clients: hospitals, Seed: 5})
	return own, err
}

// declareHospitals writes a federation of ten hospitals whose records epsilon protects.
func declareHospitals(t *testing.T, folder string, rounds int) {
	t.Helper()
	own, err := hospitalRows()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Appendf(nil, `name = "hospitals"
rounds = %d
seed = 7
parties = { roster = "roster.txt", drop_out = 0.3 }
model = { name = "logistic", features = %d, classes = 2 }
training.batch = 60
time.step_time = "10s"
[privacy]
unit = "record"
records = 300
submit_after = "200ms"
noise = "discrete-gaussian"
multiplier = 3.0
epsilon = 100.0
clip = 0.5
`, rounds, own[0].Features)
	if err := os.WriteFile(filepath.Join(folder, "federation.toml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// childHospital is the trainer of a hospital.
func childHospital(folder string, fed *federation.Federation, i int) party.Trainer {
	own, err := hospitalRows()
	child(err)
	dir := filepath.Join(folder, fmt.Sprint("party-", i))
	child(os.MkdirAll(dir, 0o700))
	trainer, err := party.NewDeclared(fed, i, own[i], dir)
	child(err)
	return trainer
}

// childLog adds to the log of a party, which outlives its processes.
func childLog(folder string, i int) *slog.Logger {
	file, err := os.OpenFile(filepath.Join(folder, fmt.Sprint("log-", i)),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	child(err)
	return slog.New(slog.NewJSONHandler(file, nil))
}

// Ten hospitals train over HTTP on records, and their processes and the server's are killed at
// random moments. Each sum is that of the submissions in it, each hospital's own ledger has at
// least what was summed and at most what was made, the server's has at least as much, and no round
// is lost but one in which, or in the one before, somebody was killed.
func TestKillHospitalsAtRandom(t *testing.T) {
	inTurn(t)
	folder := t.TempDir()
	rounds, by := 4, strikes{4, 1, 500 * time.Millisecond, 100 * time.Millisecond}
	if suite.Long() {
		rounds, by = 40, strikes{80, 5, time.Second, 3 * time.Second}
	}
	// A party that the machine keeps waiting is not away.
	j := job{Address: "http://" + freePort(t), Parties: hospitals, Records: true,
		Grace: 5 * time.Second}
	status, kills := killAtRandom(t, folder, rounds, j, by)
	included, made := countSubmissions(t, folder)
	for i := range j.Parties {
		submissions, epsilon := toldSpent(t, folder, i)
		if included[i] > submissions || submissions > made[i] {
			t.Errorf("hospital %d counts %d submissions, of which %d were summed and %d made", i,
				submissions, included[i], made[i])
		}
		if noted := noted(t, folder, i); epsilon != noted || !(0 < epsilon) ||
			epsilon > epsilonOf(status) {
			t.Errorf("hospital %d has spent %v and notes %v, the server %v", i, epsilon, noted,
				epsilonOf(status))
		}
		t.Logf("hospital %d: %d summed, %d counted, %d made, epsilon %.4f", i, included[i],
			submissions, made[i], epsilon)
	}
	t.Logf("epsilon by the server's ledger %.4f", epsilonOf(status))
	for k, past := range status.History {
		if past.Lost == "" {
			continue
		}
		from, to := past.Began, past.Began.Add(time.Duration(past.Seconds*1e9))
		if k > 0 {
			from = status.History[k-1].Began
		}
		within := func(at time.Time) bool { return !at.Before(from) && !at.After(to) }
		if !slices.ContainsFunc(kills, within) {
			t.Errorf("round %d was lost, %s, and nobody was killed from %v to %v", past.Round, past.Lost,
				from, to)
		}
	}
}

// countSubmissions counts in how many sums each party is, and how many submissions it made.
func countSubmissions(t *testing.T, folder string) (included, made [hospitals]int) {
	t.Helper()
	sums, err := filepath.Glob(filepath.Join(folder, "sums", "*"))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, name := range sums {
		name = filepath.Base(name)
		round, _, _ := strings.Cut(name, "-")
		if strings.Contains(name, ".new") || seen[round] {
			continue
		}
		seen[round] = true
		var s summed
		if err := find(folder, "sums/"+name, &s); err != nil {
			t.Fatal(err)
		}
		for _, i := range s.Parties {
			included[i]++
		}
	}
	for i := range made {
		names, err := filepath.Glob(filepath.Join(folder, "submissions", fmt.Sprint("*-", i)))
		if err != nil {
			t.Fatal(err)
		}
		made[i] = len(names)
	}
	return included, made
}

// toldSpent holds the figures of its ledger that a party logged when the federation had ended.
func toldSpent(t *testing.T, folder string, i int) (submissions int, epsilon float64) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(folder, fmt.Sprint("log-", i)))
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(log)); lines.Scan(); {
		var line struct {
			Msg         string
			Submissions int
			Spent       struct{ Epsilon float64 }
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "the federation has ended" {
			submissions, epsilon = line.Submissions, line.Spent.Epsilon
		}
	}
	return submissions, epsilon
}

// noted returns the entry of the federation in a party's book.
func noted(t *testing.T, folder string, i int) float64 {
	t.Helper()
	secret, err := os.ReadFile(filepath.Join(folder, fmt.Sprint("secret-", i)))
	if err != nil {
		t.Fatal(err)
	}
	key := keyexchange.SealKey(secret[32:])
	book := consent.Book{File: filepath.Join(folder, fmt.Sprint("book-", i)), Key: &key}
	entries, err := book.Entries()
	if err != nil || len(entries) != 1 || entries[0].Ended.IsZero() {
		t.Fatalf("hospital %d has the book %v, %v", i, entries, err)
	}
	return leftIn(t, entries)
}

// leftIn is the epsilon, at delta 1e-5, of what has left in the federations of a book.
func leftIn(t testing.TB, entries []consent.Entry) float64 {
	t.Helper()
	var all accounting.Spending
	for _, e := range entries {
		for _, l := range e.Left {
			if err := all.Add(l); err != nil {
				t.Fatal(err)
			}
		}
	}
	claim, err := all.At(1e-5, accounting.FixedPlan)
	if err != nil {
		t.Fatal(err)
	}
	return claim.Bare().Upper
}
