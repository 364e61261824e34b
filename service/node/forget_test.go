package node_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// A federation that is forgotten is led by nobody, over restarts too, and has no stream. Its
// parties are told, its audit log can be read and its job declared again; without names neither has
// one.
func TestForgotten(t *testing.T) {
	inTurn(t)
	ctx := context.Background()
	s := startSmall(t, 2, "", node.Options{Admin: "127.0.0.1:0", Open: true})
	s.await("a leader", func(*runner.Status) bool { return true })
	forget := page.Order{What: page.Forget, Who: "ann"}
	if _, err := s.node.Do(ctx, s.fed.ID, forget); !errors.Is(err, runner.ErrRunning) {
		t.Errorf("one that goes on is forgotten: %v", err)
	}
	for i := range smallParties {
		s.run(ctx, i, time.Now, new(safeBuffer), func() error { return nil })
	}
	s.await("the end", func(s *runner.Status) bool { return s.State == "ended" })
	s.group.Wait()
	names := page.Order{What: page.ForgetNames, Who: "ann"}
	if _, err := s.node.Do(ctx, s.fed.ID, names); !errors.Is(err, record.ErrKept) {
		t.Errorf("the names of one that was not forgotten: %v", err)
	}
	status, err := s.node.Do(ctx, s.fed.ID, forget)
	if err != nil || status.State != runner.Forgotten {
		t.Fatalf("%+v, %v", status, err)
	}
	is := func(names bool) {
		t.Helper()
		list := s.node.Listing(ctx)
		if len(list) != 1 || list[0].State != runner.Forgotten || list[0].Name != s.fed.Job.Name {
			t.Errorf("%+v", list)
		}
		if text := s.look("/"); !strings.Contains(text, "Forgotten") ||
			!strings.Contains(text, "/federations/"+s.fed.ID) {
			t.Errorf("the page: %s", text)
		}
		if text := s.look("/federations/" + s.fed.ID); !strings.Contains(text, "2 rounds were begun") ||
			strings.Contains(text, "No budget") || strings.Contains(text, "current model") {
			t.Errorf("its page: %s", text)
		}
		p, err := loadParty(s.folder, 0, s.fed, s.node.Address)
		if err != nil {
			t.Fatal(err)
		}
		s.in.server(p.Server)
		p.Trainer = party.TrainerFunc(func(context.Context, *party.Work) (*party.Update, error) {
			t.Error("a party is asked for an update")
			return nil, errors.New("no")
		})
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if _, err := p.Run(short); err == nil || !strings.Contains(err.Error(), "forgotten") {
			t.Errorf("a party: %v", err)
		}
		lines, err := s.node.LastLines(ctx, s.fed.ID, 100)
		if err != nil || len(lines) < 5 ||
			names != (lines[len(lines)-1].Event == "forgotten" && lines[len(lines)-1].Note == "by ann") {
			t.Errorf("%+v, %v", lines, err)
		}
		files, err := s.node.After(ctx, s.fed.ID)
		if names != (err == nil && len(files.Roster) > 0 && files.Model == nil) {
			t.Errorf("%+v, %v", files, err)
		}
		_, declared, err := federation.ReadFiles(filepath.Join(s.folder, "federation.toml"))
		if err == nil {
			_, err = s.node.Create(ctx, *declared)
		}
		if !errors.Is(err, record.ErrExists) {
			t.Errorf("it begins again: %v", err)
		}
	}
	restart := func() {
		t.Helper()
		s.node.Close()
		config := plainNode(filepath.Join(s.folder, "node"))
		config.Admin, config.Open = "127.0.0.1:0", true
		var err error
		if s.node, err = node.Start(ctx, config); err != nil {
			t.Fatal(err)
		}
		s.become("the archive", func() bool { return len(s.node.Listing(ctx)) == 1 })
	}
	is(true)
	restart()
	defer func() { s.node.Close() }()
	is(true)
	if status, err := s.node.Do(ctx, s.fed.ID, names); err != nil ||
		!strings.Contains(status.Why, "names") {
		t.Fatalf("%+v, %v", status, err)
	}
	is(false)
	restart()
	is(false)
}
