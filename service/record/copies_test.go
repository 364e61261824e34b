package record_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/service/record"
)

// file returns a node's own file of the federation.
func (o *owning) file(node int) []byte {
	o.t.Helper()
	b, err := os.ReadFile(filepath.Join(o.all[node].Folder(), id+".chain"))
	if err != nil {
		o.t.Fatal(err)
	}
	return b
}

// What one node tells, another that knows the federation has in its own file, and puts back when
// JetStream loses it.
func TestToldToOthers(t *testing.T) {
	o := startOwning(t)
	if err := o.all[1].Look(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	o.decides(o.claims(0), "one", "two")
	all := entries(t, o.e)
	for deadline := time.Now().Add(time.Minute); !bytes.Contains(o.file(1), all[len(all)-1]); {
		if time.Now().After(deadline) {
			t.Fatalf("the other node has %d bytes", len(o.file(1)))
		}
		time.Sleep(time.Millisecond)
	}
	has(t, o.e, all[:2]...)
	o.all[1].Alone() // it asks nobody
	h := o.claims(1)
	if o.has(h, "two"); h.Healed() == nil || h.Damage() != nil {
		t.Errorf("%v, %v", h.Healed(), h.Damage())
	}
}

// A node that has missed an entry, whose author ended before it told, hears those that follow too.
func TestHeardBetween(t *testing.T) {
	o := startOwning(t)
	if err := o.all[1].Look(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		h := o.claims(0)
		h.Fault = func(step string) {
			if step == "file" {
				panic("it is killed")
			}
		}
		o.decides(h, "one")
	}()
	o.decides(o.claims(0), "two")
	all := entries(t, o.e)
	for deadline := time.Now().Add(time.Minute); !bytes.Contains(o.file(1), all[len(all)-1]); {
		if time.Now().After(deadline) {
			t.Fatalf("the other node has %d bytes", len(o.file(1)))
		}
		time.Sleep(time.Millisecond)
	}
}

// Where the key of the lines of decisions is lost, and was not erased, nothing is decided: it would
// be without its lines.
func TestLostNames(t *testing.T) {
	o := startOwning(t)
	o.decides(o.claims(0), "one")
	objects, err := o.e.JS.Stream(t.Context(), "OBJ_hushsum-objects-archive")
	if err == nil {
		err = objects.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.all[0].Claim(t.Context(), id, "a"); !errors.Is(err, record.ErrDamaged) {
		t.Errorf("%v", err)
	}
}

// A node that was away when something was told asks the others for it.
func TestAskOthers(t *testing.T) {
	o := startOwning(t)
	o.decides(o.claims(0), "one", "two")
	has(t, o.e, entries(t, o.e)[:2]...)
	h := o.claims(1)
	if o.has(h, "two"); h.Healed() == nil || h.Damage() != nil {
		t.Errorf("%v, %v", h.Healed(), h.Damage())
	}
	o.decides(h, "three")
	if c := o.chain(); len(c.Lost) > 0 || c.Last().Segment != 0 {
		t.Errorf("%+v, lost %v", c.Last(), c.Lost)
	}
}

// A node asks the others for a history that is longer than what one reply takes, page by page: a
// check sees all of it, and so does a claim, whose leader would begin another history otherwise.
func TestAskForLong(t *testing.T) {
	const decisions = 45              // of some 24 kB each
	record.ReplyTime(2 * time.Second) // on a machine with much else to do
	defer record.ReplyTime(300 * time.Millisecond)
	o := startOwning(t)
	h, source := o.claims(0), rand.NewChaCha8([32]byte{1})
	for range decisions {
		note := make([]byte, 3<<10)
		for range 6 { // a longer one would be cut
			_, _ = source.Read(note)
			h.Lines = append(h.Lines, record.Line{Event: "noted", Note: hex.EncodeToString(note)[:4<<10]})
		}
		o.decides(h, "a state")
	}
	o.decides(h, "the last")
	has(t, o.e, entries(t, o.e)[:2]...)
	all := o.chain()
	if size := len(o.file(0)); size < 3*record.MostReply/2 {
		t.Fatalf("the history has %d bytes", size)
	}
	if now := o.checked(1); now.Entries != decisions+3 || len(now.Missing) > 0 {
		t.Errorf("a check sees %d decisions of %d, and lacks %v", now.Entries, decisions+3, now.Missing)
	}
	if err := errors.Join(o.all[1].Close(), os.RemoveAll(o.all[1].Folder())); err != nil {
		t.Fatal(err)
	}
	if err := o.all[1].KeepIn(filepath.Dir(o.all[1].Folder())); err != nil {
		t.Fatal(err)
	}
	h = o.claims(1)
	if o.has(h, "the last"); h.Healed() == nil || h.Damage() != nil {
		t.Errorf("%v, %v", h.Healed(), h.Damage())
	}
	if last := h.Chain().Last(); last.Segment != 0 || last.Number != all.Last().Number+1 {
		t.Errorf("it goes on with %d of segment %d, after %d", last.Number, last.Segment,
			all.Last().Number)
	}
}

// A definition that JetStream has lost comes back from a node's copy, which is not believed when it
// is damaged.
func TestCopiedDefinition(t *testing.T) {
	ctx := context.Background()
	o := startOwning(t)
	o.decides(o.claims(0), "one")
	name := filepath.Join(o.all[0].Folder(), id+".definition")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if i%40 != 0 && i < len(whole)-70 {
			continue
		}
		b := bytes.Clone(whole)
		b[i] ^= 1
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if o.all[0].Copied(id) != nil {
			t.Fatalf("a copy is taken whose byte %d was changed", i)
		}
	}
	if err := os.WriteFile(name, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	gone(t, o.e, "KV_hushsum-federations", "$KV.hushsum-federations."+id)
	if err := o.all[0].Close(); err != nil { // as if it were started again
		t.Fatal(err)
	}
	d, err := o.all[0].Definition(ctx, id)
	if err != nil || string(d.Text) != "t" {
		t.Fatalf("%+v, %v", d, err)
	}
	if d, err := o.all[1].Definition(ctx, id); err != nil || string(d.Text) != "t" {
		t.Errorf("it is not put back: %+v, %v", d, err)
	}
	o.has(o.claims(0), "one")
}

// One head that the federation's key has signed is proof that the record was set back: the hold is
// lost, and the next claim names the head and uses none of the numbers again.
func TestLaterHead(t *testing.T) {
	ctx, key := context.Background(), newKey(t)
	folder, copied := t.TempDir(), t.TempDir()
	decide := func(r *record.Records, states ...string) *record.Hold {
		t.Helper()
		h, err := r.Claim(ctx, id, "a")
		for _, state := range states {
			if err == nil {
				err = h.Decide(ctx, []byte(state))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	r, stop := open(t, folder, key)
	decide(declared(t, r), "one")
	stop()
	if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	r, stop = open(t, folder, key)
	h := decide(r, "two", "three", "four")
	head, note, err := h.Head()
	if err != nil {
		t.Fatal(err)
	}
	public, err := r.Public(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := chain.OpenHead(note, id, public); err != nil || *again != *head {
		t.Fatalf("%+v, %v", again, err)
	}
	if err := h.Known(ctx, head, 0); err != nil {
		t.Errorf("its own head: %v", err)
	}
	lines := bytes.Join(entriesOf(t, r), []byte("\n"))
	stop()

	r, stop = open(t, copied, key)
	defer stop()
	h = decide(r)
	if err := h.Known(ctx, head, 0); !errors.Is(err, record.ErrDamaged) {
		t.Errorf("%v", err)
	}
	if err := h.Decide(ctx, []byte("two again")); !errors.Is(err, record.ErrDamaged) {
		t.Errorf("it decides: %v", err)
	}
	next := decide(r)
	c, err := r.Chain(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if last := c.Last(); last.Kind != chain.Setback || last.Number < head.Size ||
		len(last.Heads) != 1 || last.Heads[0].Root != head.Root {
		t.Errorf("%+v", last)
	}
	if err := next.Known(ctx, head, 0); err != nil {
		t.Errorf("the head is known, and %v", err)
	}
	// Whoever has the lines gives them back: here they are another history by now.
	if _, err := r.Heal(ctx, id, lines); err != nil && !errors.Is(err, record.ErrDamaged) {
		t.Errorf("%v", err)
	}

}

// A node whose whole folder is an old copy goes on from what a party gives back.
func TestHeal(t *testing.T) {
	ctx, key := context.Background(), newKey(t)
	folder, copied := t.TempDir(), t.TempDir()
	r, stop := open(t, folder, key)
	h, err := declared(t, r).Claim(ctx, id, "a")
	if err == nil {
		err = h.Decide(ctx, []byte("one"))
	}
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	r, stop = open(t, folder, key)
	if h, err = r.Claim(ctx, id, "a"); err == nil {
		h.Round = 7
		err = h.Decide(ctx, []byte("two"))
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Join(entriesOf(t, r), []byte("\n"))
	stop()
	r, stop = open(t, copied, key)
	defer stop()
	forged := bytes.Replace(lines, []byte(`"round":7`), []byte(`"round":9`), 1)
	if added, err := r.Heal(ctx, id, forged); err != nil || added != 1 {
		t.Errorf("%d lines of which one is signed, %v", added, err)
	}
	added, err := r.Heal(ctx, id, lines)
	if err != nil || added != 1 {
		t.Errorf("%d lines, %v", added, err)
	}
	if h, err = r.Claim(ctx, id, "b"); err != nil {
		t.Fatal(err)
	}
	if h.Healed() == nil || h.Round != 7 {
		t.Errorf("%v, round %d", h.Healed(), h.Round)
	}
	if b, err := h.State(ctx); !errors.Is(err, record.ErrMissing) { // no party has that
		t.Errorf("%q, %v", b, err)
	}
	if begun, err := h.Back(ctx); err != nil || begun != 7 {
		t.Errorf("%d rounds, %v", begun, err)
	}
}

// entriesOf returns the lines of a record's chain.
func entriesOf(t *testing.T, r *record.Records) [][]byte {
	t.Helper()
	c, err := r.Chain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return c.Lines(0)
}
