package node_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
)

const begunBody = "POST /v1/federations HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"

// strangers opens connections that send so much, and then nothing.
func strangers(t *testing.T, address string, n int, sent string) []net.Conn {
	t.Helper()
	var all []net.Conn
	for range n {
		c, err := net.DialTimeout("tcp", address, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, _ = io.WriteString(c, sent) // which fails if there was no room for it
		all = append(all, c)
	}
	return all
}

// leaveAll closes connections, for the end of which a node that is closed would wait.
func leaveAll(all []net.Conn) {
	for _, c := range all {
		_ = c.Close()
	}
}

// isClosed reports whether the other side closes a connection, within a minute.
func isClosed(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	_, err := io.Copy(io.Discard, c)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// Headers and bodies that never come are given up, at the door and at the operators' page.
func TestNothingComes(t *testing.T) {
	s := startSmall(t, 1, "", node.With(node.Options{Admin: "127.0.0.1:0"},
		node.Hooks{Patience: 100 * time.Millisecond}))
	defer s.node.Close()
	var all []net.Conn
	var what []string
	for _, address := range []string{s.node.Address, s.node.Page} {
		address = strings.TrimPrefix(address, "http://")
		for _, sent := range []string{
			"", "GET /healthz HTTP/1.1\r\nHo", begunBody,
			"POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nto",
			"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
		} {
			all = append(all, strangers(t, address, 1, sent)...)
			what = append(what, fmt.Sprintf("%s: %q", address, sent))
		}
	}
	for k, c := range all {
		if !isClosed(c) {
			t.Errorf("%s stays open", what[k])
		}
	}
}

// patient is for how long a party counts as present here that has no request open: nobody is gone,
// and how long a party's next request takes is the machine's load.
const patient = 10 * time.Second

// Strangers have all connections of the door, and may keep them for an hour: the parties
// get in all the same, and no round is lost.
func TestStrangersKeepNobodyOut(t *testing.T) {
	inTurn(t)
	const rounds, room = 5, 4*smallParties + 4
	s := startSmall(t, rounds, "", node.With(node.Options{},
		node.Hooks{Connections: room, Patience: time.Hour, Grace: patient}))
	defer s.node.Close()
	address := strings.TrimPrefix(s.node.Address, "http://")
	all := strangers(t, address, 3*room, begunBody)
	defer leaveAll(all)
	for k, c := range all[:2*room] {
		if !isClosed(c) {
			t.Fatalf("stranger %d of %d stays, with room for %d", k, len(all), room)
		}
	}
	for i := range smallParties {
		s.run(context.Background(), i, nil, new(safeBuffer), trains)
	}
	status := s.await("the end", func(s *runner.Status) bool { return s.State == "ended" })
	s.group.Wait()
	if status.Round != rounds || status.Lost != 0 {
		t.Errorf("%d rounds, %d lost", status.Round, status.Lost)
	}
	if !s.log.has("connections are limited") || !s.log.has("too many connections") {
		t.Error("the log does not say what the bound is, or that it was met")
	}
}

// Strangers have all connections of the page: an operator's stays.
func TestOperatorsConnectionStays(t *testing.T) {
	inTurn(t)
	s := startSmall(t, 1, "", node.With(node.Options{Admin: "127.0.0.1:0"},
		node.Hooks{Patience: time.Hour}))
	defer s.node.Close()
	address := strings.TrimPrefix(s.node.Page, "http://")
	operator := strangers(t, address, 1, "")[0]
	defer operator.Close()
	answers := bufio.NewReader(operator)
	ask := func() error {
		_, err := fmt.Fprintf(operator, "GET /v1/federations HTTP/1.1\r\nHost: x\r\n"+
			"Authorization: Bearer %s\r\n\r\n", s.node.NewTokens[0])
		if err != nil {
			return err
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	all := strangers(t, address, 200, begunBody)
	defer leaveAll(all)
	if !isClosed(all[0]) {
		t.Error("the first of 200 strangers stays")
	}
	if err := ask(); err != nil {
		t.Errorf("the operator's connection: %v", err)
	}
}

// A process may open 256 files, and 400 strangers begin a body each. What the record needs is
// there: rounds go on, and none is lost.
func TestFilesOfTheRecord(t *testing.T) {
	inTurn(t)
	const rounds, length = 5, 5
	folder := t.TempDir()
	address := freePort(t)
	prepareJob(t, folder, rounds, job{
		Address: "http://" + address, Parties: smallParties, Length: length,
	})
	fed, err := federation.Read(filepath.Join(folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	server := &process{role: "server", folder: folder,
		environment: []string{"HUSHSUM_TEST_FILES=256"}}
	server.start(t)
	defer server.kill()
	status := func() (s runner.Status, err error) {
		err = find(folder, "status", &s)
		return s, err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := status(); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the server does not start")
		}
	}
	strangers(t, address, 400, begunBody)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var group sync.WaitGroup
	for i := range smallParties {
		p, err := loadParty(folder, i, fed, "http://"+address)
		if err != nil {
			t.Fatal(err)
		}
		p.Log = slog.New(slog.DiscardHandler)
		p.Trainer = party.TrainerFunc(func(context.Context, *party.Work) (*party.Update, error) {
			return &party.Update{Vector: loadVector(i, length)}, nil
		})
		group.Add(1)
		go func() {
			defer group.Done()
			if _, err := p.Run(ctx); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		}()
	}
	group.Wait()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		s, err := status()
		if err == nil && s.State == "ended" && s.Round == rounds && s.Lost == 0 {
			break
		}
		if t.Failed() || time.Now().After(deadline) {
			t.Fatalf("%d rounds, %d lost, %s, %v", s.Round, s.Lost, s.State, err)
		}
	}
}

// There are more parties than the door may have connections, and a sum takes all but one: they
// take turns, and rounds are held. The log says what to do about it.
func TestMorePartiesThanConnections(t *testing.T) {
	inTurn(t)
	const parties, room, rounds = 12, 8, 3
	folder := t.TempDir()
	prepareJob(t, folder, rounds, job{Address: "http://127.0.0.1:1", Parties: parties, Length: 5})
	declare(t, folder, rounds, 5, "10s", "parties.drop_out = 0.1\nsum.adversary = \"curious\"", "")
	s := startIn(t, folder,
		node.With(node.Options{}, node.Hooks{Connections: room, Grace: patient}))
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
