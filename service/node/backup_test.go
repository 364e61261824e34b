package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

const backupRounds = 40

// backedUp is a federation that ran on after a backup, until parties were ahead of it.
type backedUp struct {
	*small
	file  []byte
	ahead int // a round of which parties know, and the backup does not
}

// takeBackup takes a backup in the middle of rounds.
func takeBackup(t *testing.T, in *network) *backedUp {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := &backedUp{small: in.start(t, backupRounds)}
	defer cancel()
	defer b.node.Close()
	for i := range smallParties {
		b.run(ctx, i, nil, new(safeBuffer), trains)
	}
	b.await("the third round", func(s *runner.Status) bool { return s.Round >= 3 })
	var file bytes.Buffer
	if err := b.node.WriteBackup(ctx, &file); err != nil {
		t.Fatal(err)
	}
	after := b.await("a status", func(*runner.Status) bool { return true })
	b.file = file.Bytes()
	s := b.await("later rounds", func(s *runner.Status) bool { return len(s.History) > after.Round+3 })
	if s.Lost > 0 {
		t.Errorf("%d rounds were lost while the backup was taken", s.Lost)
	}
	b.ahead = len(s.History)
	cancel()
	b.group.Wait()
	if _, err := b.node.ReadBackup(context.Background(), bytes.NewReader(b.file)); !errors.Is(err,
		record.ErrNotEmpty) {
		t.Errorf("restored to a node with a federation: %v", err)
	}
	return b
}

// sealKey is the key of the node that the backup is of.
func (b *backedUp) sealKey() string { return filepath.Join(b.folder, "node", "seal.key") }

// goOn has the parties, which are ahead, take part to the end at the nodes that were restored.
func (b *backedUp) goOn(nodes ...*node.Node) {
	t := b.t
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	ids, err := nodes[0].ReadBackup(ctx, bytes.NewReader(b.file))
	if err != nil || len(ids) != 1 || ids[0] != b.fed.ID {
		t.Fatal(ids, err)
	}
	for i := range smallParties {
		b.node = nodes[i%len(nodes)]
		b.become("a node that knows the federation", func() bool {
			_, err := b.node.Status(ctx, b.fed.ID)
			return err == nil
		})
		b.run(ctx, i, nil, new(safeBuffer), trains)
	}
	s := b.await("the end", func(s *runner.Status) bool { return s.State == "ended" })
	b.group.Wait()
	if s.Round != backupRounds || s.Lost < 3 {
		t.Errorf("%d rounds, %d lost", s.Round, s.Lost)
	}
	for _, p := range s.History {
		if p.Lost == "" && p.Parties < 3 {
			t.Errorf("round %d is of %d parties", p.Round, p.Parties)
		}
	}
	// What was spent is that of all rounds, those that the backup did not have too.
	ledger, err := b.fed.Settled.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	name := b.fed.Settled.Roster().Name(0)
	if err := ledger.SpendRounds(b.fed.Settled.Round(), backupRounds, name); err != nil {
		t.Fatal(err)
	}
	if spent, err := ledger.Spent(name); err != nil || epsilonOf(s) != spent.Bare().Upper {
		t.Errorf("epsilon %v of %d rounds, want %v, %v", epsilonOf(s), backupRounds,
			spent, err)
	}
	lines, err := nodes[0].LastLines(ctx, b.fed.ID, 200)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, line := range lines {
		events = append(events, line.Event)
	}
	if text := strings.Join(events, ","); !strings.Contains(text, "created") ||
		!strings.Contains(text, "restored") || !strings.Contains(text, "set back") {
		t.Errorf("the audit log has %s", text)
	}
	t.Logf("parties knew of round %d; %d rounds lost, epsilon %.4g", b.ahead, s.Lost, epsilonOf(s))
}

// A backup that was taken while rounds went on is restored to a new node, and the parties, which
// are ahead of it, go on; files that are of no use change nothing.
func TestBackup(t *testing.T) {
	inTurn(t)
	inBubble(t, backup)
}

func backup(t *testing.T, in *network) {
	b := takeBackup(t, in)
	config := in.node(plainNode(t.TempDir()))
	config.Hooks().Grace = 500 * time.Millisecond
	other, err := node.Start(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.ReadBackup(context.Background(), bytes.NewReader(b.file))
	other.Close()
	if !errors.Is(err, record.ErrOtherKey) {
		t.Errorf("restored to a node of another key: %v", err)
	}
	config.Folder = t.TempDir()
	if config.Hooks().Key, err = keyfile.SealKey(b.sealKey(), false); err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	altered := bytes.Clone(b.file)
	altered[len(altered)/2] ^= 1
	for _, c := range []struct {
		file []byte
		want error
	}{
		{b.file[:len(b.file)/2], record.ErrCut},
		{altered, record.ErrAltered},
		{[]byte("PK"), record.ErrNoBackup},
	} {
		_, err := n.ReadBackup(context.Background(), bytes.NewReader(c.file))
		if !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
	if list := n.Listing(context.Background()); len(list) > 0 {
		t.Errorf("something was restored: %+v", list[0])
	}
	b.goOn(n)
}

// A node that restored a backup of an earlier key does not start once that key's line is gone, and
// names the key, although it has sealed nothing itself.
func TestRestoredKeyGone(t *testing.T) {
	inTurn(t)
	inBubble(t, restoredKeyGone)
}

func restoredKeyGone(t *testing.T, in *network) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b := in.start(t, 3)
	for i := range smallParties {
		b.run(ctx, i, nil, new(safeBuffer), trains)
	}
	b.await("the end", func(s *runner.Status) bool { return s.State == "ended" })
	b.group.Wait()
	var file bytes.Buffer
	err := b.node.WriteBackup(ctx, &file)
	b.node.Close()
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(filepath.Join(b.folder, "node", "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	config := in.node(plainNode(t.TempDir()))
	keys := filepath.Join(config.Folder, "seal.key")
	newest := strings.Repeat("ab", 32) + "\n"
	if err := os.WriteFile(keys, []byte(newest+string(old)), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if _, err := n.ReadBackup(ctx, &file); err != nil {
		t.Fatal(err)
	}
	list, err := n.Keys(ctx)
	if err != nil || len(list) != 2 || list[1].Objects == 0 {
		t.Fatal(list, err)
	}
	n.Close()
	if err := os.WriteFile(keys, []byte(newest), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := node.Start(ctx, config)
	if !errors.Is(err, node.ErrSealed) || !strings.Contains(err.Error(), list[1].Name) {
		t.Errorf("without the key %s: %v", list[1].Name, err)
	}
	if err == nil {
		other.Close()
	}
}

// A node whose folder has a record, and no key, makes none: it would open nothing.
func TestKeyFileGone(t *testing.T) {
	inTurn(t)
	config := plainNode(t.TempDir())
	n, err := node.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
	file := filepath.Join(config.Folder, "seal.key")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	n, err = node.Start(t.Context(), config)
	if err == nil {
		n.Close()
	}
	if !errors.Is(err, node.ErrNoKey) || !strings.Contains(err.Error(), file) {
		t.Errorf("started without a key: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("another key was made")
	}
}

// TestBackup with three nodes of a cluster, from the backup of one.
func TestBackupToThree(t *testing.T) {
	suite.OnlyLong(t) // a cluster takes its time
	inTurn(t)
	b := takeBackup(t, nil)
	folder := t.TempDir()
	if err := os.Link(b.sealKey(), filepath.Join(folder, "shared.key")); err != nil {
		t.Fatal(err)
	}
	prepareCluster(t, folder)
	j := job{}
	for range 3 {
		j.Peers = append(j.Peers, freePort(t))
		j.Doors = append(j.Doors, "http://"+freePort(t))
	}
	nodes := make([]*node.Node, 3)
	var group sync.WaitGroup
	for i := range nodes {
		group.Add(1)
		go func() {
			defer group.Done()
			c := clusterConfig(folder, j, i, node.With(node.Options{},
				node.Hooks{Plain: true, Grace: 500 * time.Millisecond}))
			n, err := node.Start(context.Background(), c)
			if err != nil {
				t.Error(err)
				return
			}
			nodes[i] = n
		}()
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	b.goOn(nodes...)
	for _, n := range nodes {
		group.Add(1)
		go func() {
			defer group.Done()
			n.Close()
		}()
	}
	group.Wait()
}

// A node whose newest state is gone goes back to the one before, says so, counts the rounds in
// between as spent, and rounds go on.
func TestMissingState(t *testing.T) {
	inTurn(t)
	inBubble(t, func(t *testing.T, in *network) { missingState(t, in.start(t, backupRounds), 0) })
}

// The same with sums of one message.
func TestMissingStateOfCommittee(t *testing.T) {
	inTurn(t)
	inBubble(t, func(t *testing.T, in *network) {
		missingState(t, startCommittee(t, in, backupRounds, ""), jobMembers)
	})
}

func missingState(t *testing.T, b *small, members int) {
	start := func() (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		for i := range smallParties {
			b.run(ctx, i, nil, new(safeBuffer), trains)
		}
		for k := range members {
			b.help(ctx, k)
		}
		return func() {
			cancel()
			b.group.Wait()
		}
	}
	stop := start()
	b.await("the third round", func(s *runner.Status) bool { return s.Round >= 3 })
	before := b.await("a status", func(*runner.Status) bool { return true })
	stop()
	b.node.Close()
	folder := filepath.Join(b.folder, "node")
	e, err := record.StartEmbedded(context.Background(),
		record.EmbeddedOptions{Folder: folder, Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	store, err := e.JS.ObjectStore(context.Background(), "hushsum-objects-"+b.fed.ID[:16])
	if err != nil {
		t.Fatal(err)
	}
	all, err := store.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	newest, last := "", -1
	for _, o := range all {
		number := 0
		if n, _ := fmt.Sscanf(o.Name, "state-%d-", &number); n == 1 && number > last {
			newest, last = o.Name, number
		}
	}
	if err := store.Delete(context.Background(), newest); err != nil {
		t.Fatal(err)
	}
	e.Close()
	config := b.in.node(plainNode(folder))
	config.Hooks().Grace = 500 * time.Millisecond
	if b.node, err = node.Start(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	defer b.node.Close()
	s := b.await("a leader", func(s *runner.Status) bool { return s.Round >= before.Round })
	stop = start()
	b.await("later rounds", func(now *runner.Status) bool { return now.Round > s.Round+3 })
	stop()
	lines, err := b.node.LastLines(context.Background(), b.fed.ID, 200)
	if err != nil {
		t.Fatal(err)
	}
	said := false
	for _, line := range lines {
		said = said || line.Event == "set back" && strings.Contains(line.Note, "is missing")
	}
	if !said {
		t.Errorf("the audit log does not say what happened: %+v", lines)
	}
}
