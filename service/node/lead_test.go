package node_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/runner"
)

// startTwo starts two nodes on a NATS of the operator's.
func startTwo(
	ctx context.Context, t *testing.T, address string, silence time.Duration,
) (nodes []*node.Node) {
	t.Helper()
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		config := plainNode(t.TempDir())
		config.Name, config.NATS, config.Hooks().Key, config.Silence = name, address, key, silence
		n, err := node.Start(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		nodes = append(nodes, n)
	}
	return nodes
}

// Two nodes claim a federation at once, as when a third that led it hands it over. The one that
// lost finds out though it has nothing to decide, and follows the other.
func TestTwoClaim(t *testing.T) {
	inTurn(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	address := startNATS(t)("a pass-word")
	nodes := startTwo(ctx, t, address, 5*time.Second)
	text, roster, _ := fourParties(t)
	fed, err := nodes[0].Create(ctx, federation.Files{Text: text, Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	leader := func(n *node.Node) string {
		s := awaitStatus(ctx, t, n, fed.ID, func(s *runner.Status) bool { return s.Leader != "" })
		return s.Leader
	}
	agree := func() string {
		t.Helper()
		same := 0
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
			x, y := leader(nodes[0]), leader(nodes[1])
			if same++; x != y {
				same = 0
			}
			if same == 20 {
				return x
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("a says that %s leads, b that %s does", leader(nodes[0]), leader(nodes[1]))
		return ""
	}
	first := agree()
	// Whoever does not lead hears that it is handed over, and claims; the leader goes on.
	other := nodes[0]
	if first == other.Name {
		other = nodes[1]
	}
	for deadline := time.Now().Add(time.Minute); leader(other) == first; {
		node.SayHandsOver(other, "third", fed.ID)
		if time.Now().After(deadline) {
			t.Fatalf("%s does not claim", other.Name)
		}
		time.Sleep(20 * time.Millisecond)
	}
	// The one that claims last leads, and that may be either.
	t.Logf("%s leads, after %s", agree(), first)
}

// Once a federation is declared every node that is here knows of it: parties may ask any.
func TestDeclaredEverywhere(t *testing.T) {
	inTurn(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	nodes := startTwo(ctx, t, startNATS(t)("a pass-word"), 5*time.Second)
	for deadline := time.Now().Add(time.Minute); !node.Hears(nodes[0], "b"); {
		if time.Now().After(deadline) {
			t.Fatal("a does not hear b")
		}
		time.Sleep(10 * time.Millisecond)
	}
	text, roster, _ := fourParties(t)
	for range 3 {
		text = bytes.Replace(text, []byte(`name = "kept`), []byte(`name = "kept-`), 1)
		fed, err := nodes[0].Create(ctx, federation.Files{Text: text, Roster: roster})
		if err != nil {
			t.Fatal(err)
		}
		if _, found := nodes[1].Known(fed.ID); !found {
			t.Error("the other node does not know of it")
		}
	}
}

// A first start that fails leaves no tokens that nobody was told.
func TestTokensOfFailedStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := plainNode(t.TempDir())
	config.Listen = taken.Addr().String()
	_, err = node.Start(context.Background(), config)
	if err == nil || !strings.Contains(err.Error(), "parties' door") ||
		!strings.Contains(err.Error(), "see --listen") {
		t.Fatalf("it listens where another does: %v", err)
	}
	if _, err := os.Stat(filepath.Join(config.Folder, "tokens.json")); err == nil {
		t.Error("tokens are stored, and nobody was told them")
	}
	_ = taken.Close()
	// Files that exist are the operator's, such as one for --operators.
	theirs := filepath.Join(config.Folder, "operators.txt")
	kept := filepath.Join(config.Folder, "tokens.txt")
	for _, name := range []string{theirs, kept} {
		if err := os.WriteFile(name, []byte("kept\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = node.Start(context.Background(), config); err == nil ||
		!strings.Contains(err.Error(), "tokens.txt exists, and is not overwritten") {
		t.Fatalf("a file is in the way of the tokens: %v", err)
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != "kept\n" {
		t.Fatalf("the file that was in the way: %q, %v", text, err)
	}
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if text, err := os.ReadFile(theirs); err != nil || string(text) != "kept\n" {
			t.Errorf("the file of operators: %q, %v", text, err)
		}
	}()
	n, err := node.Start(context.Background(), config)
	if err != nil || len(n.NewTokens) != 2 {
		t.Fatalf("the next start: %v, tokens %d", err, len(n.NewTokens))
	}
	text, err := os.ReadFile(n.TokensFile)
	if err != nil || string(text) != strings.Join(n.NewTokens, "\n")+"\n" {
		t.Errorf("%s: %v", n.TokensFile, err)
	}
	if err := keyfile.Private(n.TokensFile); err != nil {
		t.Error(err)
	}
	n.Close()
	if n, err = node.Start(context.Background(), config); err != nil || len(n.NewTokens) != 0 ||
		n.TokensFile != "" {
		t.Fatalf("the start after it: %v, tokens %d", err, len(n.NewTokens))
	}
	n.Close()
}

// An operator gets the status of thousands of parties, and a model longer than a message of
// NATS, of any node, and the model where nobody leads too.
func TestLargeReplies(t *testing.T) {
	inTurn(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	address := startNATS(t)("a pass-word")
	nodes := startTwo(ctx, t, address, time.Minute)
	const parties, weights = 10_000, 300_000
	members := make([]keyexchange.Entry, parties)
	for i := range members {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			t.Fatal(err)
		}
		members[i] = keyexchange.Entry{
			Name: fmt.Sprintf("a-party-with-a-name-of-some-length-number-%d", i),
			Key:  identity.Public().(ed25519.PublicKey),
		}
	}
	list, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := list.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Appendf(nil, `name = "many"
rounds = 3
model.length = %d
parties = { roster = "roster.txt", drop_out = 0.1 }
sum = { adversary = "curious", sparse = true }
privacy.clip = 1.0
`, weights)
	fed, err := nodes[0].Create(ctx, federation.Files{Text: text, Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	var models [][]byte
	var follower *node.Node
	leads := 0
	for _, n := range nodes {
		s := awaitStatus(ctx, t, n, fed.ID, func(s *runner.Status) bool { return s.Leader != "" })
		if len(s.Parties) != parties || s.Parties[parties-1].State != "never" {
			t.Errorf("%s tells of %d parties", n.Name, len(s.Parties))
		}
		if s.Leader == n.Name {
			leads++
		} else {
			follower = n
		}
		b, err := n.Model(ctx, fed.ID)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, b)
	}
	if leads != 1 || len(models[0]) < 4*weights || !bytes.Equal(models[0], models[1]) {
		t.Fatalf("%d lead, models of %d and %d bytes", leads, len(models[0]), len(models[1]))
	}
	for _, n := range nodes {
		if n != follower {
			n.Close()
		}
	}
	if b, err := follower.Model(ctx, fed.ID); err != nil || !bytes.Equal(b, models[0]) {
		t.Errorf("without the leader: a model of %d bytes, %v", len(b), err)
	}
}
