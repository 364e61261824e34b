package node_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/tilelog"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/party"
)

// A node publishes a federation's birth, how far it has come, and its end; names nobody; and goes
// on with the same log when it is started again.
func TestPublicLog(t *testing.T) {
	inTurn(t)
	options := node.Options{PublicLog: "sums.example.org/log", LogRounds: true}
	options.Hooks().Probe = 100 * time.Millisecond
	s := startSmall(t, 2, "", options)
	for i := range smallParties {
		s.run(context.Background(), i, nil, new(safeBuffer), trains)
	}
	s.group.Wait()
	folder := filepath.Join(s.folder, "node", "log")
	var l *tilelog.Log
	has := func(kind tilelog.Kind) (leaf *tilelog.Leaf) {
		for n := range l.Size() {
			one, err := tilelog.ParseLeaf(l.Leaf(n))
			if err != nil {
				t.Fatal(err)
			}
			if one.Kind == kind {
				leaf = one
			}
		}
		return leaf
	}
	s.become("the log that says that it ended", func() (done bool) {
		var err error
		l, _, err = tilelog.Open(folder, "")
		return err == nil && has(tilelog.End) != nil
	})
	birth, head := has(tilelog.Birth), has(tilelog.Head)
	if birth == nil || head == nil || birth.Key != head.Key || birth.Job.String() != s.fed.JobDigest {
		t.Fatalf("%+v, %+v", birth, head)
	}
	for path, status := range map[string]int{"checkpoint": 200, "key": 200, "tile/0/000": 404, "": 404,
		"tile/entries/": 404, "../seal.key": 404, fmt.Sprint("tile/0/000.p/", l.Size()): 200} {
		answer, err := http.Get(s.node.Address + "/log/" + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != status {
			t.Errorf("%q: %d, %v, %s", path, answer.StatusCode, err, b)
		}
		_ = answer.Body.Close()
		for i := range smallParties {
			if strings.Contains(string(b), s.fed.Settled.Roster().Name(i)) {
				t.Errorf("%q names a party", path)
			}
		}
	}
	order := page.Order{What: page.Forget, Who: "ann"}
	if _, err := s.node.Do(context.Background(), s.fed.ID, order); err != nil {
		t.Fatal(err)
	}
	s.become("the log that says that it was forgotten", func() (done bool) {
		var err error
		l, _, err = tilelog.Open(folder, "")
		return err == nil && has(tilelog.Forget) != nil
	})
	before, err := os.ReadFile(filepath.Join(folder, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	s.node.Close()
	options.Listen, options.Folder = "127.0.0.1:0", filepath.Join(s.folder, "node")
	again, err := node.Start(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	time.Sleep(time.Second)
	next, key, err := tilelog.Open(folder, "")
	if err != nil || next.Size() < l.Size() {
		t.Fatal(next, err)
	}
	if tree, err := tilelog.OpenCheckpoint(before, key); err != nil || tree.N < l.Size() {
		t.Errorf("the key is another: %v, %v", tree, err)
	}
}

// A party that is a witness cosigns the checkpoint under a key of its own, once it has seen that
// the log continues what it knows, and refuses a log that does not.
func TestWitness(t *testing.T) {
	inTurn(t)
	options := node.Options{PublicLog: "sums.example.org/log"}
	options.Hooks().Probe = 100 * time.Millisecond
	s := startSmall(t, 2, "", options)
	defer s.node.Close()
	s.witness = true
	file := filepath.Join(s.folder, "node", "log", "checkpoint")
	s.become("one that publishes", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
	var all []*party.Party
	for i := range smallParties {
		all = append(all, s.run(context.Background(), i, nil, new(safeBuffer), trains))
	}
	s.group.Wait()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cosigned := 0
	for _, p := range all {
		key, err := keyfile.ReadIdentity(filepath.Join(p.Folder, "witness.pem"))
		if err != nil {
			continue
		}
		public := key.Public().(ed25519.PublicKey)
		digest := sha256.Sum256(public)
		w, err := tilelog.NewWitness(fmt.Sprintf("witness-%x", digest[:8]), public)
		if err != nil {
			t.Fatal(err)
		}
		cosigned += tilelog.Cosigners(b, w)
		if public.Equal(p.Identity.Public()) {
			t.Error("it cosigns under its identity")
		}
	}
	if cosigned != 1 || strings.Count(string(b), "witness-") != 1 {
		t.Errorf("%d witnesses cosigned %s", cosigned, b)
	}
}

// All nodes of a cluster publish one log under one key, whichever adds to it.
func TestPublicLogOfCluster(t *testing.T) {
	suite.OnlyLong(t) // a cluster takes a minute
	inTurn(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c := startClusterWith(ctx, t, 3, 0, node.Options{PublicLog: "sums.example.org/log",
		LogRounds: true})
	s := newSteps(ctx, t, c.nodes[0], reachAt(strings.Join(c.job.Doors, ",")), 2)
	s.round(c.nodes[1])
	var logs [3]*tilelog.Log
	var keys [3]string
	for i := range logs {
		for logs[i] == nil || logs[i].Size() < 2 { // a birth and a head
			if ctx.Err() != nil {
				t.Fatalf("node %d publishes no log", i)
			}
			time.Sleep(100 * time.Millisecond)
			folder := filepath.Join(c.folder, fmt.Sprint("node-", i), "log")
			logs[i], keys[i], _ = tilelog.Open(folder, "")
		}
	}
	for i := range logs {
		if keys[i] != keys[0] {
			t.Errorf("node %d has the key %s, and another %s", i, keys[i], keys[0])
		}
		for n := range min(logs[i].Size(), logs[0].Size()) {
			if string(logs[i].Leaf(n)) != string(logs[0].Leaf(n)) {
				t.Errorf("leaf %d is %s, and %s", n, logs[i].Leaf(n), logs[0].Leaf(n))
			}
		}
	}
}
