package node_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/tensor"
)

// steps has parties wait with each round until a test lets it pass, so that whatever the test does
// happens while a round is on, however long it takes.
type steps struct {
	*testing.T
	ctx    context.Context
	passed atomic.Int64
	done   chan struct{} // all parties are
	fed    *federation.Federation
	rounds int
}

// newSteps declares a federation and has parties take part in it.
func newSteps(ctx context.Context, t *testing.T, n *node.Node, reach reach, rounds int) *steps {
	t.Helper()
	_, roster, identities := fourParties(t)
	text := fmt.Appendf(nil, `name = "steps"
rounds = %d
parties = { roster = "roster.txt", drop_out = 0.25 }
time = { step_time = "2m" }
model.file = "model.safetensors"
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0 }
`, rounds)
	spec := tensor.Spec{DType: tensor.Float64, Tensors: []tensor.Tensor{{Name: "w", Shape: []int{40}}}}
	model, err := spec.Append(nil, make([]float64, 40), nil)
	if err != nil {
		t.Fatal(err)
	}
	fed, err := n.Create(ctx, federation.Files{Text: text, Roster: roster, Model: model})
	if err != nil {
		t.Fatal(err)
	}
	s := &steps{T: t, ctx: ctx, done: make(chan struct{}), fed: fed, rounds: rounds}
	go func() {
		defer close(s.done)
		s.parties(reach, identities)
	}()
	return s
}

func (s *steps) parties(reach reach, identities []ed25519.PrivateKey) {
	takePartBy(s.ctx, s.T, s.fed, reach, identities,
		func(ctx context.Context, w *party.Work) (*party.Update, error) {
			for int(s.passed.Load()) < w.Round {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(10 * time.Millisecond):
				}
			}
			return &party.Update{Vector: make([]float64, 40)}, nil
		})
}

// round lets the present round pass, and waits for the next one.
func (s *steps) round(n *node.Node) *runner.Status {
	s.Helper()
	next := int(s.passed.Add(1)) + 1
	return awaitStatus(s.ctx, s.T, n, s.fed.ID, func(now *runner.Status) bool {
		return now.Round >= next || now.State == "ended"
	})
}

// end lets all rounds pass, and no round may be lost.
func (s *steps) end(n *node.Node) {
	s.Helper()
	s.passed.Store(int64(s.rounds))
	last := awaitStatus(s.ctx, s.T, n, s.fed.ID, func(now *runner.Status) bool {
		return now.State == "ended"
	})
	if last.Lost != 0 || last.Round != s.rounds {
		s.Errorf("%d rounds of %d, %d lost", last.Round, s.rounds, last.Lost)
	}
	<-s.done
}

// eventually waits until something is so.
func (s *steps) eventually(what string, is func() bool) {
	s.Helper()
	for !is() {
		if s.ctx.Err() != nil {
			s.Fatal(what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Nodes change the key that seals while a federation runs: they take it one after the other, what
// was sealed is sealed anew, and the old key goes once nothing is sealed under it, and not before.
// No round is lost, and who has the old key alone opens nothing.
//
// They are three with -long, which take seconds to have a leader and to miss one, and else one.
func TestSealKeyRotation(t *testing.T) {
	inTurn(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	several := []string{""} // the NATS of each
	if suite.Long() {
		address := startNATS(t)("a pass-word")
		several = []string{address, address, address}
	}
	var lines []string // of the old key and of the new one
	for range 2 {
		key, err := keyexchange.GenerateSealKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%x\n", key[:]))
	}
	before, after := lines[0], lines[1]
	write := func(c *node.Options, text string) {
		if err := os.WriteFile(c.KeyFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var configs []node.Options
	var nodes []*node.Node
	log := new(safeBuffer)
	start := func(c node.Options) (*node.Node, error) {
		n, err := node.Start(ctx, c)
		if err == nil {
			t.Cleanup(n.Close)
		}
		return n, err
	}
	var doors []string
	for i, address := range several {
		c := plainNode(t.TempDir())
		c.Name, c.NATS, c.Silence = fmt.Sprint("node-", i), address, 3*time.Second
		c.Hooks().Probe = 500 * time.Millisecond
		c.KeyFile = filepath.Join(c.Folder, "keys")
		c.Log = slog.New(slog.NewJSONHandler(log, nil))
		write(&c, before)
		n, err := start(c)
		if err != nil {
			t.Fatal(err)
		}
		configs, nodes, doors = append(configs, c), append(nodes, n), append(doors, n.Address)
	}
	last := nodes[len(nodes)-1]
	s := newSteps(ctx, t, nodes[0], reachAt(strings.Join(doors, ",")), 3+len(nodes))
	keys := func(n *node.Node) []page.Key {
		out, err := n.Keys(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	old := keys(nodes[0])[0].Name
	s.round(nodes[0])
	all := func(text string, is func(keys []page.Key) bool) {
		t.Helper()
		for i := range nodes {
			write(&configs[i], text)
		}
		for _, n := range nodes {
			s.eventually("the keys are not read", func() bool { return is(keys(n)) })
		}
	}
	// The new one opens everywhere before it seals anywhere.
	all(before+after, func(keys []page.Key) bool { return len(keys) == 2 })
	if k := keys(last); !k[0].Seals || k[0].Name != old || k[0].Objects == 0 || k[1].Objects != 0 {
		t.Errorf("%+v", k)
	}
	for i, n := range nodes { // one seals under the new key while others seal under the old
		write(&configs[i], after+before)
		s.eventually("the keys are not read", func() bool { return keys(n)[0].Name != old })
		s.round(n)
	}
	// Its line gone too early, the old key stays.
	write(&configs[0], after)
	s.eventually("nobody says that the key stays", func() bool {
		return log.has("is no longer in the file, and stays: put its line back")
	})
	s.round(nodes[0])
	if k := keys(nodes[0]); len(k) != 2 || k[1].Missing || k[1].Objects == 0 {
		t.Errorf("a key under which something is sealed: %+v", k)
	}
	for try, left := 0, 1; left > 0; try++ {
		k, err := last.Rewrite(ctx)
		if err != nil || try == 10 {
			t.Fatalf("%+v: %v", k, err)
		}
		left = 0
		for _, old := range k[1:] { // none once the node has found that nothing is sealed under it
			left += old.Objects
		}
		t.Logf("%d objects are sealed under the new key, %d are left", k[0].Objects, left)
	}
	all(after, func(keys []page.Key) bool { return len(keys) == 1 })
	s.end(last)
	model, err := nodes[0].Model(ctx, s.fed.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		n.Close()
	}
	write(&configs[0], before)
	if _, err := start(configs[0]); !errors.Is(err, node.ErrSealed) {
		t.Errorf("the old key alone: %v", err)
	}
	write(&configs[0], after)
	n, err := start(configs[0])
	if err != nil {
		t.Fatal(err)
	}
	awaitStatus(ctx, t, n, s.fed.ID, func(now *runner.Status) bool { return now.Leader != "" })
	if b, err := n.Model(ctx, s.fed.ID); err != nil || string(b) != string(model) {
		t.Errorf("after another start the model is another: %v", err)
	}
}

// A node that is told to seal everything under its newest key, or to take a backup, reads the file
// of keys first, however long ago it did: with the old line gone afterwards it opens everything. If
// the file cannot be read it refuses both, since the key that it has may be on no disk.
func TestRewriteReadsKeys(t *testing.T) {
	inTurn(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := plainNode(t.TempDir())
	c.Hooks().Probe = time.Hour // it does not read the file by itself
	n, err := node.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { n.Close() }()
	text, roster, _ := fourParties(t)
	fed, err := n.Create(ctx, federation.Files{Text: text, Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	leads := func() {
		awaitStatus(ctx, t, n, fed.ID, func(now *runner.Status) bool { return now.Leader != "" })
	}
	leads()
	file := filepath.Join(c.Folder, "seal.key")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Repeat("ab", 32) + "\n"
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(newer + string(old))
	name := record.KeyName((*keyexchange.SealKey)(bytes.Repeat([]byte{0xab}, 32)))
	k, err := n.Rewrite(ctx)
	if err != nil || len(k) != 2 || k[0].Name != name || k[0].Objects == 0 || k[1].Objects > 0 {
		t.Fatalf("%+v: %v", k, err)
	}
	refuses := func(why string) {
		t.Helper()
		if k, err := n.Rewrite(ctx); !errors.Is(err, page.ErrKeys) {
			t.Errorf("%s: %+v, %v", why, k, err)
		}
		var backup bytes.Buffer
		if err := n.WriteBackup(ctx, &backup); !errors.Is(err, page.ErrKeys) || backup.Len() > 0 {
			t.Errorf("%s: a backup of %d bytes, %v", why, backup.Len(), err)
		}
	}
	write("no key\n")
	refuses("no key in the file")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refuses("no file")
	write(newer)
	if err := n.WriteBackup(ctx, io.Discard); err != nil {
		t.Error(err)
	}
	n.Close()
	if n, err = node.Start(ctx, c); err != nil {
		t.Fatalf("under the new key alone: %v", err)
	}
	leads()
}
