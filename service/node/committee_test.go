package node_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
)

// This file has federations whose sums are of one message, with every process a process, which is
// killed.

const (
	jobMembers = 5
	jobFaults  = 1
)

// childMember is a member of the committee.
func childMember(role string) {
	folder := os.Getenv("HUSHSUM_TEST_FOLDER")
	k, err := strconv.Atoi(role)
	child(err)
	j, fed := readJob(folder)
	server, identity, key := childWay(folder, fmt.Sprint("member-secret-", k), k, &j)
	m := party.Member{
		Federation: fed,
		Identity:   identity,
		Server:     server,
		Folder:     filepath.Join(folder, fmt.Sprint("member-", k)),
		Key:        key,
	}
	child(m.Run(context.Background()))
	leave(folder, fmt.Sprint("helped-", k), true)
}

func startJobMembers(t *testing.T, folder string, members int) (all []*process) {
	t.Helper()
	for k := range members {
		p := &process{role: fmt.Sprint("member ", k), folder: folder}
		p.start(t)
		t.Cleanup(func() { p.kill() })
		all = append(all, p)
	}
	return all
}

// awaitMembers waits until all members have heard of the end.
func awaitMembers(t *testing.T, folder string, members int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for k := range members {
		var yes bool
		for find(folder, fmt.Sprint("helped-", k), &yes) != nil {
			if time.Now().After(deadline) {
				t.Fatalf("member %d does not end", k)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// The server is killed before, between and after the two writes of every decision of rounds with
// a committee: keys, opening, batch, settled, closing, certificate, sum, model. Every sum is exact,
// and everybody is in it.
func TestKillCommitteeServerAtEveryStep(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	j := job{Address: "http://" + freePort(t), Parties: jobParties, Length: 3000, Members: jobMembers}
	prepareJob(t, folder, *killRounds, j)
	parties := startJobParties(t, folder, j.Parties)
	startJobMembers(t, folder, j.Members)
	server := &process{role: "server", folder: folder}
	t.Cleanup(func() { server.kill() })
	kills := 0
	// A round takes eight decisions, and each further batch two.
	for decision := range 8 * *killRounds {
		for _, step := range []string{"object", "pointer", "sending"} {
			if !suite.Long() && (decision+kills)%2 == 1 && step != "sending" {
				continue
			}
			server.start(t, "HUSHSUM_TEST_KILL=1:"+step)
			server.killed(t, 2*time.Minute)
			kills++
		}
	}
	server.start(t)
	status := awaitEnd(t, folder, parties, 3*time.Minute)
	awaitMembers(t, folder, j.Members)
	sums := compareSums(t, folder)
	if status.Round != *killRounds || status.Lost != 0 || sums != *killRounds {
		t.Errorf("%d rounds, %d lost, %d sums: want %d, 0, %d", status.Round, status.Lost, sums,
			*killRounds, *killRounds)
	}
	for _, p := range status.History {
		if p.Parties != j.Parties {
			t.Errorf("round %d has %d parties, %d stayed", p.Round, p.Parties, j.Parties)
		}
	}
	killed.Add(int64(kills))
}

// Server, members and parties are killed at random moments.
func TestKillCommitteeAtRandom(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	rounds := 8 * *killRounds
	j := job{Address: "http://" + freePort(t), Parties: jobParties, Length: 20, Members: jobMembers}
	prepareJob(t, folder, rounds, j)
	parties := startJobParties(t, folder, j.Parties)
	members := startJobMembers(t, folder, j.Members)
	server := &process{role: "server", folder: folder}
	server.start(t)
	t.Cleanup(func() { server.kill() })
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-kill.seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	kills := 0
	for kills < 12**killRounds {
		time.Sleep(time.Duration(50+random.IntN(500)) * time.Millisecond)
		var s runner.Status
		if find(folder, "status", &s) == nil && (s.State == "ended" || s.Round >= rounds-1) {
			break // the last round is to have a sum
		}
		all := append(slices.Concat(parties, members), server)
		if p := all[random.IntN(len(all))]; p.kill() {
			kills++
			p.start(t)
		}
	}
	status := awaitEnd(t, folder, parties, 3*time.Minute)
	awaitMembers(t, folder, j.Members)
	sums := compareSums(t, folder)
	if status.Round != rounds || sums != rounds-status.Lost {
		t.Errorf("%d rounds, %d lost, %d sums", status.Round, status.Lost, sums)
	}
	if last := status.History[len(status.History)-1]; last.Parties == 0 {
		t.Errorf("the last round was lost: %s", last.Lost)
	}
	killed.Add(int64(kills))
	t.Logf("%d kills, %d of %d rounds lost", kills, status.Lost, rounds)
}
