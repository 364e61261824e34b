package node_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// rounds has some parties take part until so many rounds have a sum.
func (s *small) rounds(parties, rounds int) *runner.Status {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer func() { cancel(); s.group.Wait() }()
	for i := range parties {
		s.run(ctx, i, nil, s.log, trains)
	}
	return s.await("so many rounds", func(status *runner.Status) bool {
		return len(status.History) > 0 && status.History[len(status.History)-1].Round >= rounds
	})
}

// again starts the node of a folder that was closed.
func (s *small) again() {
	s.t.Helper()
	c := plainNode(filepath.Join(s.folder, "node"))
	c.Log = slog.New(slog.NewTextHandler(s.log, nil))
	var err error
	if s.node, err = node.Start(context.Background(), c); err != nil {
		s.t.Fatal(err)
	}
}

// spent returns the epsilon that a status says is spent.
func spent(t *testing.T, s *runner.Status) float64 {
	t.Helper()
	if s.Spent == nil {
		t.Fatal("nobody knows what is spent")
	}
	return s.Spent.Bare().Upper
}

// copyAll copies a folder, for the eyes of its owner alone.
func copyAll(t *testing.T, to, from string) {
	t.Helper()
	err := os.CopyFS(to, os.DirFS(from))
	if err == nil {
		err = filepath.WalkDir(to, func(name string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chmod(name, 0o700))
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An old copy of the whole folder of a node, put back: nothing on its disks says so. The head of
// one party does. What had been begun is spent, the loss is named, and all parties go on.
func TestOldCopy(t *testing.T) {
	inTurn(t)
	s := startSmall(t, 1000, "", node.Options{})
	s.rounds(smallParties, 2)
	s.node.Close()
	folder := filepath.Join(s.folder, "node")
	old := filepath.Join(s.folder, "old")
	copyAll(t, old, folder)
	s.again()
	before := s.rounds(smallParties, 5)
	s.node.Close()
	if err := errors.Join(os.RemoveAll(folder), os.Rename(old, folder)); err != nil {
		t.Fatal(err)
	}
	s.again()
	defer func() { s.node.Close() }()
	copied := s.await("a leader", (*runner.Status).Known)
	heard := int(s.last[0].Load()) // by the first party
	t.Logf("before: round %d, epsilon %.4f; the old copy: round %d, epsilon %.4f", before.Round,
		spent(t, before), copied.Round, spent(t, copied))
	if copied.Round >= heard {
		t.Fatal("the copy is not older")
	}

	ctx, cancel := context.WithCancel(context.Background())
	s.run(ctx, 0, nil, s.log, trains)
	after := s.await("what one party knows", func(status *runner.Status) bool {
		return status.Known() && status.Round >= heard
	})
	cancel()
	s.group.Wait()
	t.Logf("once the party has told its head: round %d, epsilon %.4f", after.Round, spent(t, after))
	share, err := after.Spent.Share(*after.Budget)
	for _, past := range before.History {
		if err != nil || past.Round == heard && share < past.Share {
			t.Errorf("a budget is back: %v of it is spent, after %v, %v", share, past.Share, err)
		}
	}
	further := s.rounds(smallParties, before.Round+2)
	if spent(t, further) <= spent(t, before) {
		t.Error("rounds cost nothing")
	}
	named := false
	_, err = s.node.AuditLog(context.Background(), s.fed.ID, 1, func(line record.Line) bool {
		named = named || line.Event == "set back"
		return true
	})
	if err != nil || !named {
		t.Errorf("nobody says that the record was set back: %v", err)
	}
	if !strings.Contains(s.log.String(), "the record was set back") {
		t.Error("the log does not say so")
	}
}
