package node_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/runner"
)

// The disk of a node's folder is full for a while: nothing is recorded and the node is not ready;
// once there is room, rounds go on by themselves.
func TestFullDisk(t *testing.T) {
	t.Parallel() // it mostly waits
	folder := t.TempDir()
	disk := filepath.Join(folder, "node")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("a disk to fill takes the right to mount one: %v", err)
	}
	defer func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) }()
	prepareJob(t, folder, 1000,
		job{Address: "http://127.0.0.1:1", Parties: smallParties, Length: 5})
	s := startIn(t, folder, node.With(node.Options{}, node.Hooks{Grace: 500 * time.Millisecond}))
	defer s.node.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range smallParties {
		s.run(ctx, i, nil, new(safeBuffer), trains)
	}
	s.await("a round", func(s *runner.Status) bool { return s.Round > 1 })

	ballast, err := os.Create(filepath.Join(disk, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = ballast.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	s.become("not ready", func() bool {
		err := s.node.Door.Ready()
		return err != nil && strings.Contains(err.Error(), "make room")
	})
	if err := s.node.Door.Healthy(); err != nil {
		t.Errorf("a new start does not make room: %v", err)
	}
	if err := errors.Join(ballast.Close(), os.Remove(ballast.Name())); err != nil {
		t.Fatal(err)
	}
	freed := time.Now()
	had := 0
	s.await("a status", func(s *runner.Status) bool { had = s.Round; return true })
	s.await("rounds", func(s *runner.Status) bool { return s.Round > had+2 })
	t.Logf("rounds go on %.1f s after there is room", time.Since(freed).Seconds())
	s.become("ready", func() bool { return s.node.Door.Ready() == nil })
	cancel()
	s.group.Wait()
}
