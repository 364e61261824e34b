package node_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/tilelog"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
)

// A server that was restored from a backup publishes nothing of its public log before it has what
// was published last, also of the time after the backup; then it goes on with the same log, under
// the same key.
func TestPublicLogRestored(t *testing.T) {
	const name = "sums.example.org/log"
	options := node.Options{PublicLog: name, LogRounds: true}
	options.Hooks().Probe = 100 * time.Millisecond
	s := startSmall(t, 2, "", options)
	folder := filepath.Join(s.folder, "node", "log")
	published := func(folder string, least int64) (l *tilelog.Log, key string) {
		s.become("one that publishes", func() (done bool) {
			var err error
			l, key, err = tilelog.Open(folder, "")
			return err == nil && l.Size() >= least
		})
		return l, key
	}
	before, _ := published(folder, 1)
	var file bytes.Buffer
	if err := s.node.WriteBackup(context.Background(), &file); err != nil {
		t.Fatal(err)
	}
	order := page.Order{What: "pause", Who: "ann"}
	if _, err := s.node.Do(context.Background(), s.fed.ID, order); err != nil {
		t.Fatal(err)
	}
	_, key := published(folder, before.Size()+1)
	s.node.Close()
	last, _, err := tilelog.Open(folder, key)
	if err != nil {
		t.Fatal(err)
	}

	again := plainNode(t.TempDir())
	again.Log = slog.New(slog.NewTextHandler(s.log, nil))
	again.Hooks().Probe = 100 * time.Millisecond
	seal := filepath.Join(s.folder, "node", "seal.key")
	if again.Hooks().Key, err = keyfile.SealKey(seal, false); err != nil {
		t.Fatal(err)
	}
	start := func() {
		if s.node, err = node.Start(context.Background(), again); err != nil {
			t.Fatal(err)
		}
	}
	start()
	if _, err := s.node.ReadBackup(context.Background(), bytes.NewReader(file.Bytes())); err != nil {
		t.Fatal(err)
	}
	s.node.Close()
	again.PublicLog, again.LogRounds = name, true
	start()
	s.become("one that says what its log lacks", func() bool {
		return s.log.has("copy what was published last")
	})
	if _, err := os.Lstat(filepath.Join(again.Folder, "log")); err == nil {
		t.Error("it publishes")
	}
	copyAll(t, filepath.Join(again.Folder, "log"), folder)
	next, _ := published(filepath.Join(again.Folder, "log"), last.Size()+1) // it was set back
	defer s.node.Close()
	if _, _, err := tilelog.Open(filepath.Join(again.Folder, "log"), key); err != nil {
		t.Errorf("under another key: %v", err)
	}
	for k := range last.Size() {
		if !bytes.Equal(next.Leaf(k), last.Leaf(k)) {
			t.Errorf("leaf %d is %s, and was %s", k, next.Leaf(k), last.Leaf(k))
		}
	}
}
