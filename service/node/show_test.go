package node_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// look reads from a node's page.
func (s *small) look(path string) string {
	s.t.Helper()
	r, err := http.NewRequest("GET", s.node.Page+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %d, %v: %s", path, answer.StatusCode, err, b)
	}
	return string(b)
}

// inRounds has all parties take part until a round has a sum.
func (s *small) inRounds() (status *runner.Status, stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	for i := range smallParties {
		s.run(ctx, i, nil, new(safeBuffer), trains)
	}
	status = s.await("a sum", func(s *runner.Status) bool { return len(s.History) > 0 })
	return status, func() { cancel(); s.group.Wait() }
}

// For whom a step waits is seen, with since when, and until when at the latest.
func TestShownWaiting(t *testing.T) {
	inTurn(t)
	s := startSmall(t, 1000, "", node.Options{Admin: "127.0.0.1:0", Open: true})
	defer s.node.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer func() { cancel(); s.group.Wait() }()
	hangs := func() error { <-ctx.Done(); return ctx.Err() }
	for i := range smallParties {
		train := trains
		if i == 1 {
			train = hangs
		}
		s.run(ctx, i, nil, new(safeBuffer), train)
	}
	step := time.Duration(s.fed.Job.Time.StepTime)
	s.await("a step that waits for one party", func(status *runner.Status) bool {
		if status.Stage != "submitting" || status.Until == nil {
			return false
		}
		waited := 0
		for _, p := range status.Parties {
			if p.Awaited {
				waited++
			}
		}
		return waited == 1 && status.Parties[1].Awaited && status.Until.Sub(*status.Since) == step
	})
	want := "Waits for <b>1</b> party since "
	if text := s.look("/federations/" + s.fed.ID); !strings.Contains(text, want) {
		t.Errorf("the page lacks %q", want)
	}
}

// While nobody leads, the page and metrics have what was recorded, and not a federation without
// noise in round 0.
func TestShownWithoutLeader(t *testing.T) {
	inTurn(t)
	s := startSmall(t, 1000, "", node.Options{Admin: "127.0.0.1:0", Open: true})
	defer s.node.Close()
	had, stop := s.inRounds()
	stop()
	for _, words := range []string{"</svg> well", "KV_hushsum-federations", "one copy, here",
		"leads 1 of 1 federations"} {
		if text := s.look("/node"); !strings.Contains(text, words) {
			t.Errorf("the node's page lacks %q:\n%s", words, text)
		}
	}
	s.node.Unled(s.fed.ID)
	for _, words := range []string{
		`hushsum_has_leader{federation="vector"} 0`, "hushsum_epsilon_spent{",
		"hushsum_rounds_begun_total{", "hushsum_figures_age_seconds{", "hushsum_ready 0",
	} {
		if text := s.look("/metrics"); !strings.Contains(text, words) {
			t.Errorf("metrics lack %q: %s", words, text)
		}
	}
	text := s.look("/federations/" + s.fed.ID)
	if !strings.Contains(text, "figures are those recorded at") ||
		strings.Contains(text, "No budget") || !strings.Contains(text, "4 gone, 0 never seen") {
		t.Errorf("the page: %s", text)
	}
	for _, is := range s.node.Listing(context.Background()) {
		if is.State != runner.Leaderless || is.Recorded == nil || epsilonOf(is) < epsilonOf(had) ||
			is.Round < had.Round || *is.Budget != *had.Budget || len(is.History) == 0 {
			t.Errorf("listed as %+v", is)
		}
	}
}

// epsilonOf bounds what any party has spent, 0 if that is not known.
func epsilonOf(s *runner.Status) float64 {
	if s.Spent == nil {
		return 0
	}
	return s.Spent.Bare().Upper
}

// Where the record cannot be opened the page says why, and shows no figures in place of its own.
func TestShownUnopened(t *testing.T) {
	inTurn(t)
	s := startSmall(t, 1000, "", node.Options{})
	_, stop := s.inRounds()
	stop()
	s.node.Close()
	folder := filepath.Join(s.folder, "node")
	e, err := record.StartEmbedded(t.Context(), record.EmbeddedOptions{Folder: folder, Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	store, err := e.JS.ObjectStore(t.Context(), "hushsum-objects-"+s.fed.ID[:16])
	if err != nil {
		t.Fatal(err)
	}
	all, err := store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if strings.HasPrefix(o.Name, "state-") {
			if _, err := store.PutString(t.Context(), o.Name, "damaged"); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.Close()
	config := plainNode(folder)
	config.Admin, config.Open = "127.0.0.1:0", true
	if s.node, err = node.Start(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	defer s.node.Close()
	const why = " cannot lead it: record: the stored record cannot be opened: object state-"
	s.become("a page that says why", func() bool {
		list := s.node.Listing(t.Context())
		return len(list) == 1 && list[0].State == runner.Leaderless && !list[0].Known() &&
			strings.Contains(list[0].Why, why)
	})
	if text := s.look("/federations/" + s.fed.ID); !strings.Contains(text, why) ||
		!strings.Contains(text, "<dt>round</dt><dd><b>?</b> of") {
		t.Errorf("the page: %s", text)
	}
}

// Of two federations the leader of one does not answer: metrics have both, the one with its last
// figures.
func TestShownWithSlowLeader(t *testing.T) {
	inTurn(t)
	var mutex sync.Mutex
	slow, free := false, make(chan struct{})
	s := startSmall(t, 1000, "", node.With(node.Options{Admin: "127.0.0.1:0", Open: true},
		node.Hooks{Fault: func(string) {
			mutex.Lock()
			wait := slow
			mutex.Unlock()
			if wait {
				<-free
			}
		}}))
	defer s.node.Close()
	had, stop := s.inRounds()
	folder := t.TempDir()
	prepareJob(t, folder, 10, job{Parties: smallParties, Length: 5})
	_, files, err := federation.ReadFiles(filepath.Join(folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	files.Text = []byte(strings.Replace(string(files.Text), `"vector"`, `"other"`, 1))
	other, err := s.node.Create(context.Background(), *files)
	if err != nil {
		t.Fatal(err)
	}
	awaitStatus(context.Background(), t, s.node, other.ID, func(s *runner.Status) bool {
		return s.Leader != ""
	})
	_ = s.look("/metrics")
	mutex.Lock()
	slow = true
	mutex.Unlock()
	s.become("slow", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		_, err := s.node.Status(ctx, s.fed.ID)
		return err != nil
	})
	text := s.look("/metrics")
	for _, words := range []string{
		`hushsum_has_leader{federation="vector"} 1`, `hushsum_has_leader{federation="other"} 1`,
		`hushsum_epsilon_spent{federation="vector"} `, `hushsum_epsilon_spent{federation="other"} 0`,
		`hushsum_figures_age_seconds{federation="other"} 0`,
	} {
		if !strings.Contains(text, words+"\n") && !strings.HasSuffix(words, " ") ||
			!strings.Contains(text, words) {
			t.Errorf("metrics lack %q: %s", words, text)
		}
	}
	for _, is := range s.node.Listing(context.Background()) {
		if is.ID == s.fed.ID && (is.State != runner.Silent || epsilonOf(is) < epsilonOf(had)) {
			t.Errorf("listed as %+v", is)
		}
	}
	close(free)
	stop()
}

// Parties that were there under an earlier leader are gone under the next, and not never seen.
func TestSeenUnderAnotherLeader(t *testing.T) {
	inTurn(t)
	s := startSmall(t, 1000, "", node.Options{})
	_, stop := s.inRounds()
	stop()
	s.node.Close()
	again := plainNode(filepath.Join(s.folder, "node"))
	var err error
	if s.node, err = node.Start(context.Background(), again); err != nil {
		t.Fatal(err)
	}
	defer s.node.Close()
	status := s.await("a leader", func(s *runner.Status) bool { return s.Leader != "" })
	for _, p := range status.Parties {
		if p.State != "gone" {
			t.Errorf("%s is %s", p.Name, p.State)
		}
	}
}
