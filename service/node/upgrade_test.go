package node_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
)

// earlier builds this test's binary as of the commit before this one, or skips the test where there
// is none.
func earlier(t *testing.T) (binary string) {
	t.Helper()
	folder := t.TempDir()
	run := func(dir, name string, args ...string) ([]byte, error) {
		c := exec.Command(name, args...)
		var words bytes.Buffer
		c.Dir, c.Stderr = dir, &words
		out, err := c.Output()
		if err != nil {
			err = fmt.Errorf("%s %s: %w: %s", name, args[0], err, words.String())
		}
		return out, err
	}
	root, err := run(".", "git", "rev-parse", "--show-toplevel")
	if err == nil {
		// Not a worktree, which would write to the repository.
		_, err = run(strings.TrimSpace(string(root)), "git", "archive", "--format=tar", "--output",
			filepath.Join(folder, "tree.tar"), "HEAD~1")
	}
	if err != nil {
		t.Skip("there is no commit before this one: ", err)
	}
	if _, err := run(folder, "tar", "-xf", "tree.tar"); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(folder, "earlier.test")
	if _, err := run(folder, "go", "test", "-c", "-o", binary, "./service/node"); err != nil {
		t.Fatal(err)
	}
	return binary
}

// Three nodes of the commit before this one are stopped one after the other, and started again as
// of this commit, while a federation runs: each sum is right, and no round is lost.
func TestRollingUpgrade(t *testing.T) {
	suite.OnlyLong(t)
	binary := earlier(t)
	inTurn(t)
	folder := t.TempDir()
	j := job{Parties: jobParties, Length: 20, Silence: 3 * time.Second}
	for range 3 {
		j.Peers = append(j.Peers, freePort(t))
		j.Doors = append(j.Doors, "http://"+freePort(t))
	}
	prepareJob(t, folder, 400, j)
	prepareCluster(t, folder)
	var nodes []*process
	for i := range 3 {
		p := &process{role: "server", folder: folder, binary: binary,
			environment: []string{fmt.Sprint("HUSHSUM_TEST_NODE=", i)}}
		p.start(t)
		t.Cleanup(func() { p.kill() })
		nodes = append(nodes, p)
	}
	startJobParties(t, folder, j.Parties)
	_, s := leaderOf(t, folder, "", 2)
	for i, p := range nodes {
		was := s.Round
		p.stop(t)
		p.binary = ""
		_, s = leaderOf(t, folder, fmt.Sprint("node-", i), was+2) // the others go on without it
		p.start(t)
		began := time.Now()
		_, s = leaderOf(t, folder, "", s.Round+4)
		t.Logf("node %d is of this commit: round %d, led by %s, 4 rounds in %v", i, s.Round, s.Leader,
			time.Since(began).Round(time.Millisecond))
		time.Sleep(5 * time.Second) // it has its copies: a cluster of three spares one at a time
	}
	sums := compareSums(t, folder)
	for _, past := range s.History {
		if past.Lost != "" {
			t.Errorf("round %d is lost: %s", past.Round, past.Lost)
		}
	}
	if sums < s.Round-1 {
		t.Errorf("%d sums in %d rounds", sums, s.Round)
	}
	t.Logf("%d sums, all right, %d rounds lost", sums, s.Lost)
}
