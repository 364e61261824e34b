package record_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/service/record"
)

// What is forgotten has no state, no model and no stream of objects, and keeps its decisions and
// what was spent; without names nothing of it has one, in any file.
func TestForget(t *testing.T) {
	ctx, folder, key := context.Background(), t.TempDir(), newKey(t)
	r, stop := open(t, folder, key)
	d := record.Definition{ID: id, Text: []byte("name of hospital"), Created: time.Now().UTC(),
		Roster: bytes.Repeat([]byte("hospital of north"), 20_000)}
	if err := r.Create(ctx, d, []byte("a model"), nil); err != nil {
		t.Fatal(err)
	}
	h, err := r.Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	h.Lines = []record.Line{{Event: "paused", Note: "by ann"}}
	if err := h.Decide(ctx, []byte("a state")); err != nil {
		t.Fatal(err)
	}
	// Another comes after it in a backup, and is never forgotten.
	other := record.Definition{ID: strings.Repeat("f0", 32), Text: []byte("t"), Created: d.Created}
	if err := r.Create(ctx, other, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.ForgetNames(ctx, id); !errors.Is(err, record.ErrKept) {
		t.Errorf("names of one that goes on: %v", err)
	}
	var before bytes.Buffer
	if err := r.Backup(ctx, &before, nothingNamed); err != nil {
		t.Fatal(err)
	}
	if err := h.Forget(ctx, "study", []byte("spent"), "by ann"); err != nil {
		t.Fatal(err)
	}
	if err := h.Decide(ctx, []byte("another")); !errors.Is(err, record.ErrForgotten) {
		t.Errorf("it decides: %v", err)
	}
	left := func(r *record.Records, names bool) {
		t.Helper()
		for what, call := range map[string]func() error{
			"state": func() error { _, err := r.State(ctx, id); return err },
			"claim": func() error { _, err := r.Claim(ctx, id, "b"); return err },
		} {
			if err := call(); !errors.Is(err, record.ErrForgotten) {
				t.Errorf("%s: %v", what, err)
			}
		}
		health, err := r.Health(ctx)
		if err != nil || len(health.Streams) != 4 {
			t.Errorf("%+v, %v", health, err)
		}
		d, err := r.Definition(ctx, id)
		if err != nil || d.Forgotten == nil || d.Forgotten.Name != "study" ||
			d.Forgotten.Names == names {
			t.Fatalf("%+v, %v", d, err)
		}
		spent, err := r.Ledger(ctx, d)
		if err != nil || names && string(spent) != "spent" || !names && spent != nil {
			t.Errorf("spent %q, %v", spent, err)
		}
		if names != (string(d.Text) == "name of hospital") || names != (len(d.Roster) > 0) {
			t.Errorf("%d bytes of text, %d of the roster", len(d.Text), len(d.Roster))
		}
		lines, err := r.LastLines(ctx, id, 3)
		if err != nil || len(lines) < 2 ||
			names != (lines[len(lines)-1].Event != record.EventUnreadable) {
			t.Errorf("%+v, %v", lines, err)
		}
		c, err := r.Chain(ctx, id)
		if err != nil || c.Last().Kind != chain.Forget && c.Last().Kind != chain.Setback ||
			len(c.Lost) > 0 {
			t.Errorf("%+v, %v", c, err)
		}
	}
	left(r, true)
	backedUp := func(r *record.Records, names bool) {
		t.Helper()
		var file bytes.Buffer
		err := r.Backup(ctx, &file, func([]byte) ([]*record.Ref, error) { return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		to, stop := open(t, t.TempDir(), key)
		defer stop()
		if _, err := to.Restore(ctx, bytes.NewReader(file.Bytes())); err != nil {
			t.Fatal(err)
		}
		left(to, names)
	}
	backedUp(r, true)
	stop()
	r, stop = open(t, folder, key)
	left(r, true)
	for range 2 {
		if err := r.ForgetNames(ctx, id); err != nil {
			t.Fatal(err)
		}
		left(r, false)
	}
	backedUp(r, false)
	// No older backup brings back what was erased, even where the definition is lost.
	for range 2 {
		took, err := r.HealFrom(ctx, bytes.NewReader(before.Bytes()), nothingNamed)
		if err != nil || took["objects"] > 0 {
			t.Errorf("%v, %v", took, err)
		}
		d, err := r.Definition(ctx, id)
		if err != nil || d.Forgotten == nil || !d.Forgotten.Names || d.Text != nil || d.Names != nil {
			t.Fatalf("%+v, %v", d, err)
		}
		lines, err := r.LastLines(ctx, id, 3)
		if err != nil || lines[0].Event != record.EventUnreadable {
			t.Errorf("%+v, %v", lines, err)
		}
		stop()
		if err := os.Remove(filepath.Join(folder, "decided", id+".definition")); err != nil {
			t.Fatal(err)
		}
		r, stop = open(t, folder, key)
		r.LoseDefinition(t, id)
	}
	stop()
	decided := filepath.Join(folder, "decided")
	err = filepath.WalkDir(decided, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if bytes.Contains(b, []byte("hospital")) || bytes.Contains(b, []byte("ann")) {
			t.Errorf("%s has a name", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
