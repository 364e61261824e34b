package verify

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/receipt"
	"github.com/hushsum/hushsum/internal/tilelog"
)

// logOf publishes a log with a federation's birth and one head.
func logOf(t *testing.T, birth, head *tilelog.Leaf) (folder string) {
	t.Helper()
	folder = t.TempDir()
	s, err := tilelog.NewSigner("sums.example.org/log", ed25519.NewKeyFromSeed(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	var l tilelog.Log
	for _, leaf := range []*tilelog.Leaf{birth, head} {
		b, err := leaf.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Publish(folder, s); err != nil {
		t.Fatal(err)
	}
	return folder
}

// A public log that agrees is reported, one that says anything else is a failed verification, and
// so is one that was changed.
func TestLogs(t *testing.T) {
	folder := t.TempDir()
	file, all := known(t, folder, "a.receipt"), known(t, folder, "chain.txt")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := receipt.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := r.Verify(nil)
	if err != nil {
		t.Fatal(err)
	}
	birth := tilelog.Leaf{Kind: tilelog.Birth, Day: "2026-01-02", Key: r.Key}
	if err := birth.Job.UnmarshalText([]byte(r.Job)); err != nil {
		t.Fatal(err)
	}
	head := tilelog.Leaf{Kind: tilelog.Head, Day: "2026-01-02", Key: r.Key, Size: shown.Head.Size,
		Root: shown.Head.Root}
	good := logOf(t, &birth, &head)
	otherJob, otherRoot, later := birth, head, head
	otherJob.Job[0] ^= 1
	otherRoot.Root[0] ^= 1
	later.Size = 99
	strange := head
	strange.Key = chain.Hash{}
	damaged := logOf(t, &birth, &head)
	name := filepath.Join(damaged, "tile", "entries", "000.p", "2")
	bundle, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	bundle[40] ^= 1
	if err := os.WriteFile(name, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{4}, 32))
	w, err := tilelog.NewWitness("witness-1", key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	checkpoint, err := os.ReadFile(filepath.Join(good, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	line, err := w.Cosign(checkpoint, key, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := tilelog.AddCosignature(good, w, line); err != nil {
		t.Fatal(err)
	}
	witnesses := written(t, folder, "witnesses", []byte(w.Public()+"\n"))
	for _, c := range []struct {
		args, log string
		code      int
		says      string
	}{
		{"receipt " + file, good, 0, "on 2026-01-02 a head of 11 entries"},
		{"chain " + all, good, 0, "on 2026-01-02 a head of 11 entries"},
		{"receipt " + file, logOf(t, &birth, &strange), 0, "no head yet"},
		{"receipt " + file, logOf(t, &strange, &strange), 0, "nothing of this federation"},
		{"receipt " + file, logOf(t, &otherJob, &head), 1, "another job"},
		{"receipt " + file, logOf(t, &birth, &otherRoot), 1, "another head of 11 entries"},
		{"chain " + all, logOf(t, &birth, &otherRoot), 1, "another head of 11 entries"},
		{"chain " + all, logOf(t, &birth, &later), 1, "which the chain lacks"},
		{"receipt " + file, damaged, 1, "it is no public log"},
		{"receipt " + file, filepath.Join(folder, "none"), 1, "it is no public log"},
		{"", good, 2, "which file?"},
		{"receipt " + file + " --witnesses " + witnesses, good, 0, "cosigned by 1 of 1 witness"},
		{"receipt " + file + " --witnesses " + witnesses, logOf(t, &birth, &head), 0, "cosigned by 0"},
		{"receipt " + file + " --witnesses " + file, good, 1, "is no key of a witness"},
	} {
		args := append([]string{"verify", "--log", c.log}, strings.Fields(c.args)...)
		code, out, errs := clitest.Call(t.Context(), args, Command())
		if code != c.code || !strings.Contains(clitest.Flat(out+errs), c.says) {
			t.Errorf("%s: code %d, %s%s", c.args, code, out, errs)
		}
	}
}
