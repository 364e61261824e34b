package node_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// A node whose record has lost a federation's definition, then its keys, and then all,
// says that it is damaged, where people and machines look.
// It begins nothing anew: neither the model, nor what was spent.
func TestDamagedRecord(t *testing.T) {
	t.Parallel() // it mostly waits
	ctx := context.Background()
	s := startSmall(t, 1000, "", node.Options{})
	_, stop := s.inRounds()
	stop()
	s.node.Close()
	folder := filepath.Join(s.folder, "node")
	lose := func(stream string, subjects ...string) {
		t.Helper()
		e, err := record.StartEmbedded(ctx, record.EmbeddedOptions{Folder: folder, Name: "n"})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		from, err := e.JS.Stream(ctx, stream)
		for _, subject := range subjects {
			if err == nil {
				err = from.Purge(ctx, jetstream.WithPurgeSubject(subject))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	start := func() {
		t.Helper()
		config := plainNode(folder)
		config.Admin, config.Open = "127.0.0.1:0", true
		var err error
		if s.node, err = node.Start(ctx, config); err != nil {
			t.Fatal(err)
		}
	}
	says := func() bool {
		err := s.node.Door.Ready()
		return err != nil && strings.Contains(err.Error(), "damaged")
	}
	lose("KV_hushsum-federations", "$KV.hushsum-federations."+s.fed.ID)
	if err := os.Remove(filepath.Join(folder, "decided", s.fed.ID+".definition")); err != nil {
		t.Fatal(err)
	}
	start()
	s.become("not ready without a definition", says)
	_, files, err := federation.ReadFiles(filepath.Join(s.folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	other := *files
	other.Text = []byte(strings.Replace(string(files.Text), `"vector"`, `"other"`, 1))
	if _, err := s.node.Create(ctx, other); !errors.Is(err, record.ErrDamaged) {
		t.Errorf("while one is unknown another is declared: %v", err)
	}
	if _, err := s.node.Create(ctx, *files); err != nil {
		t.Errorf("the lost one is not declared again: %v", err)
	}
	s.node.Close()

	lose("OBJ_hushsum-objects-archive", ">")
	start()
	s.become("not ready", says)
	if b, err := s.node.Model(ctx, s.fed.ID); !errors.Is(err, record.ErrDamaged) {
		t.Errorf("a model of %d bytes, %v", len(b), err)
	}
	if _, err := s.node.After(ctx, s.fed.ID); err == nil {
		t.Error("a federation may continue it")
	}
	s.become("a page that says why", func() bool {
		list := s.node.Listing(ctx)
		return len(list) == 1 && list[0].State == runner.Leaderless && !list[0].Known() &&
			strings.Contains(list[0].Why, "damaged")
	})
	if text := s.look("/federations/" + s.fed.ID); !strings.Contains(text, "damaged") ||
		!strings.Contains(text, "<dt>round</dt><dd><b>?</b> of") {
		t.Errorf("the page: %s", text)
	}
	s.node.Close()

	all := filepath.Join(folder, record.Subfolder)
	if err := os.Rename(all, all+".damaged-20260102T030405Z"); err != nil {
		t.Fatal(err)
	}
	start()
	defer s.node.Close()
	if !says() {
		t.Errorf("an empty record in place of one that did not start: %v", s.node.Door.Ready())
	}
	if _, err := s.node.Create(ctx, *files); !errors.Is(err, record.ErrDamaged) {
		t.Errorf("a federation begins anew: %v", err)
	}
}
