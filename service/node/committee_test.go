package node_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
)

// This file has federations whose sums are of one message, with every process a process, which is
// killed.

const jobMembers = 5 // of whom one may be silent, or lie

// childMember is a member of the committee.
func childMember(role string) {
	folder := os.Getenv("HUSHSUM_TEST_FOLDER")
	k, err := strconv.Atoi(role)
	child(err)
	j, fed := readJob(folder)
	server, identity, key := childWay(folder, fmt.Sprint("member-secret-", k), k, &j)
	describe(server, fed)
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

// help has a member help until the federation ends or ctx does.
func (s *small) help(ctx context.Context, k int) {
	s.t.Helper()
	p, err := loadPeer(s.folder, fmt.Sprint("member-secret-", k), s.fed, s.node.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	m := party.Member{
		Federation: s.fed,
		Identity:   p.Identity,
		Server:     s.in.server(p.Server),
		Key:        p.Key,
		Folder:     filepath.Join(s.folder, fmt.Sprint("member-", k)),
	}
	s.group.Add(1)
	go func() {
		defer s.group.Done()
		if err := m.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			s.t.Errorf("member %d: %v", k, err)
		}
	}()
}

// startCommittee declares a federation with a committee.
func startCommittee(t *testing.T, in *network, rounds int, step string) *small {
	t.Helper()
	folder := t.TempDir()
	prepareJob(t, folder, rounds, job{Address: "http://127.0.0.1:1", Parties: smallParties, Length: 5,
		Step: step, Members: jobMembers})
	return in.small(startIn(t, folder, in.node(node.With(node.Options{},
		node.Hooks{Grace: 500 * time.Millisecond}))))
}

// Who of the committee is waited for is seen. With too few members no round opens, and none is
// paid for; with one missing rounds go on; each party sends each submission once.
func TestCommitteeMissing(t *testing.T) {
	inTurn(t)
	inBubble(t, committeeMissing)
}

func committeeMissing(t *testing.T, in *network) {
	const rounds = 3
	s := startCommittee(t, in, rounds, "1h")
	defer s.node.Close()
	var ways []*party.Server
	for i := range smallParties {
		p := s.run(context.Background(), i, nil, new(safeBuffer), trains)
		ways = append(ways, p.Server)
	}
	for k := range jobMembers - 2 {
		s.help(context.Background(), k)
	}
	// named lists the members that are waited for, and those of a state.
	named := func(s *runner.Status, state string) (awaited, of []string) {
		for _, p := range s.Committee {
			if p.Awaited {
				awaited = append(awaited, p.Name)
			}
			if p.State == state {
				of = append(of, p.Name)
			}
		}
		return awaited, of
	}
	status := s.await("three members", func(status *runner.Status) bool {
		awaited, here := named(status, "here")
		return len(here) == jobMembers-2 && len(awaited) == 2
	})
	if awaited, never := named(status, "never"); !slices.Equal(awaited, never) ||
		!slices.Equal(never, []string{"member-3", "member-4"}) {
		t.Errorf("waited for: %v, never seen: %v", awaited, never)
	}
	time.Sleep(300 * time.Millisecond)
	status = s.await("a status", func(*runner.Status) bool { return true })
	if status.Round != 0 || status.State != "waiting" || status.Stage != "announcing keys" {
		t.Errorf("with three members of five: %+v", status)
	}
	s.help(context.Background(), 3)
	status = s.await("the end", func(s *runner.Status) bool { return s.State == "ended" })
	s.group.Wait()
	if status.Round != rounds || status.Lost != 0 {
		t.Errorf("%d rounds, %d lost", status.Round, status.Lost)
	}
	for _, p := range status.History {
		if p.Parties != smallParties {
			t.Errorf("round %d has %d parties", p.Round, p.Parties)
		}
	}
	// fed.Up is of a round with the keys of all members.
	for i, way := range ways {
		if sent := way.Sent(); sent > rounds*int64(s.fed.Up())*102/100 {
			t.Errorf("party %d has sent %d bytes in %d rounds, of %d each", i, sent, rounds, s.fed.Up())
		}
	}
}

// The server is killed before, between and after the two writes of every decision of rounds with
// a committee: keys, opening, batch, settled, closing, certificate, sum, model. Every sum is exact,
// and everybody is in it.
func TestKillCommitteeServerAtEveryStep(t *testing.T) {
	inTurn(t)
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
		for _, step := range killSteps(decision) {
			if !suite.Long() && (decision+kills)%2 == 1 && step != "sending" {
				continue
			}
			server.start(t, "HUSHSUM_TEST_KILL=1:"+step)
			server.killed(t, 2*time.Minute)
			kills++
		}
	}
	server.start(t)
	status := awaitEnd(t, folder, parties)
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
	inTurn(t)
	for name, j := range map[string]job{
		"all that come": {},
		"the first":     {Buffer: 4, DropOut: 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killCommittee(t, j)
		})
	}
}

func killCommittee(t *testing.T, j job) {
	t.Helper()
	folder := t.TempDir()
	rounds, most := atRandom()
	j.Address, j.Parties = "http://"+freePort(t), jobParties
	j.Length, j.Members = 20, jobMembers
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
	for kills < most {
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
	status := awaitEnd(t, folder, parties)
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
