package node_test

import (
	"context"
	"testing"

	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/runner"
)

// There are more parties than the door may have connections, and a sum takes all but one: they
// take turns, and rounds are held. The log says what to do about it.
func TestMorePartiesThanConnections(t *testing.T) {
	t.Parallel()
	const parties, room, rounds = 12, 8, 3
	folder := t.TempDir()
	prepareJob(t, folder, rounds, job{Address: "http://127.0.0.1:1", Parties: parties, Length: 5})
	declare(t, folder, rounds, 5, "10s", "drop_out = 0.1\nadversary = \"curious\"", "")
	s := startIn(t, folder, node.Config{Connections: room})
	defer s.node.Close()
	if least := s.fed.Settled.MinSurvivors(); least <= room {
		t.Fatalf("a sum takes %d of %d parties", least, parties)
	}
	for i := range parties {
		s.run(context.Background(), i, nil, new(safeBuffer), trains)
	}
	status := s.await("the end", func(s *runner.Status) bool { return s.State == "ended" })
	s.group.Wait()
	if status.Round != rounds || status.Lost != 0 {
		t.Errorf("%d rounds, %d lost", status.Round, status.Lost)
	}
	if !s.log.has("more parties than the door has connections") {
		t.Error("the log does not say that connections are too few")
	}
}
