package record_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/service/record"
)

// owning is a JetStream with a federation, for nodes that keep their decisions in folders.
type owning struct {
	t   *testing.T
	e   *record.Embedded
	all []*record.Records
}

func startOwning(t *testing.T) *owning {
	t.Helper()
	key := newKey(t)
	e, r := embedded(t, key)
	o := &owning{t: t, e: e, all: []*record.Records{r}}
	other, err := record.Open(t.Context(), e.JS, 1, record.NewKeys(*key))
	if err != nil {
		t.Fatal(err)
	}
	o.all = append(o.all, other)
	for _, r := range o.all {
		if err := r.KeepIn(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	d := record.Definition{ID: id, Text: []byte("t")}
	if err := r.Create(t.Context(), d, nil, nil); err != nil {
		t.Fatal(err)
	}
	return o
}

// claims has one of the nodes claim the federation.
func (o *owning) claims(node int) *record.Hold {
	o.t.Helper()
	h, err := o.all[node].Claim(o.t.Context(), id, fmt.Sprint("node ", node))
	if err != nil {
		o.t.Fatal(err)
	}
	return h
}

func (o *owning) decides(h *record.Hold, states ...string) {
	o.t.Helper()
	for _, state := range states {
		h.Round++
		if err := h.Decide(o.t.Context(), []byte(state)); err != nil {
			o.t.Fatal(err)
		}
	}
}

func (o *owning) has(h *record.Hold, want string) {
	o.t.Helper()
	if b, err := h.State(o.t.Context()); string(b) != want || err != nil {
		o.t.Errorf("the state %q, %v; want %q", b, err, want)
	}
}

// chain returns what the nodes' files have together.
func (o *owning) chain() *chain.Chain {
	o.t.Helper()
	d, err := o.all[0].Definition(o.t.Context(), id)
	if err != nil {
		o.t.Fatal(err)
	}
	birth, err := chain.Parse(d.Birth)
	if err != nil {
		o.t.Fatal(err)
	}
	copies := [][]byte{d.Birth}
	for _, r := range o.all {
		b, err := os.ReadFile(filepath.Join(r.Folder(), id+".chain"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			o.t.Fatal(err)
		}
		copies = append(copies, b)
	}
	c, err := chain.Union(id, ed25519.PublicKey(birth.Key[:]), copies...)
	if err != nil {
		o.t.Fatal(err)
	}
	return c
}

// Whatever JetStream loses of a node's decisions, its own file has them: the newest state is found,
// and it is said that JetStream has lost it. Decisions of two nodes are one chain.
func TestOwnFile(t *testing.T) {
	ctx := context.Background()
	o := startOwning(t)
	h := o.claims(0)
	o.decides(h, "one", "two")
	for _, keep := range []int{0, 1, 2, 3} {
		all := entries(t, o.e)
		has(t, o.e, all[:keep]...)
		if b, err := o.all[0].State(ctx, id); !errors.Is(err, record.ErrDamaged) {
			t.Errorf("%d kept: read %q, %v", keep, b, err)
		}
		h = o.claims(0)
		o.has(h, "two")
		if err := h.Healed(); !errors.Is(err, record.ErrDamaged) || h.Damage() != nil || h.Round != 2 {
			t.Errorf("%d kept: %v, %v, %d rounds", keep, err, h.Damage(), h.Round)
		}
		if again := entries(t, o.e); len(again) != len(all)+1 || !bytes.Equal(again[3], all[3]) {
			t.Errorf("%d kept: %d entries of %d", keep, len(again), len(all))
		}
		if b, err := o.all[0].State(ctx, id); string(b) != "two" || err != nil {
			t.Errorf("%d kept: after the claim %q, %v", keep, b, err)
		}
		if h = o.claims(0); h.Healed() != nil {
			t.Errorf("%d kept: healed twice: %v", keep, h.Healed())
		}
	}
	other := o.claims(1)
	o.has(other, "two")
	o.decides(other, "three")
	h = o.claims(0)
	o.has(h, "three")
	o.decides(h, "four")
	c := o.chain()
	if len(c.Lost) > 0 || c.Last().Segment != 0 || c.Last().Round != 4 ||
		c.Last().Node != "node 0" {
		t.Errorf("%+v, lost %v", c.Last(), c.Lost)
	}
	if _, err := c.Head(); err != nil {
		t.Error(err)
	}
}

// A decision that JetStream forgot, and another node made otherwise, is a second history: nobody
// who knows of both leads.
func TestTwoHistories(t *testing.T) {
	o := startOwning(t)
	h := o.claims(0)
	o.decides(h, "one")
	first := entries(t, o.e)
	o.decides(h, "two")
	has(t, o.e, first...)
	o.all[1].Alone() // it heard nothing, and asks nobody
	o.decides(o.claims(1), "another two")
	if h, err := o.all[0].Claim(t.Context(), id, "a"); !errors.Is(err, record.ErrDamaged) {
		t.Errorf("%+v, %v", h, err)
	}
	if b, err := o.all[0].State(t.Context(), id); !errors.Is(err, record.ErrDamaged) {
		t.Errorf("%q, %v", b, err)
	}
	o.has(o.claims(1), "another two")
}

// A decision that a node's file does not take is not told, and neither lost nor damage afterwards.
func TestOwnFileFails(t *testing.T) {
	o := startOwning(t)
	h := o.claims(0)
	o.decides(h, "one")
	if err := o.all[0].Close(); err != nil {
		t.Fatal(err)
	}
	h.Fault = func(step string) {
		if step == "sending" {
			t.Error("a decision that no file has is sent")
		}
	}
	if err := h.Decide(t.Context(), []byte("two")); !errors.Is(err, record.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	h = o.claims(0)
	if h.Healed() != nil || h.Damage() != nil {
		t.Errorf("%v, %v", h.Healed(), h.Damage())
	}
	o.has(h, "two")
	o.decides(h, "three")
	if c := o.chain(); c.Last().Number != 5 || len(c.Lost) > 0 {
		t.Errorf("%+v, lost %v", c.Last(), c.Lost)
	}
}

// A damaged file is no damage to the record, as long as JetStream has the newest decision; without
// either of a federation's keys nobody leads it.
func TestOwnFileDamaged(t *testing.T) {
	ctx := context.Background()
	o := startOwning(t)
	o.decides(o.claims(0), "one", "two", "three")
	name := filepath.Join(o.all[0].Folder(), id+".chain")
	b, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, bytes.Replace(b, []byte(`"number":3`), []byte(`"number":9`), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	h := o.claims(0)
	o.has(h, "three")
	if h.Healed() != nil || h.Damage() != nil || h.DamagedLines() != 1 {
		t.Errorf("%v, %v, %d lines", h.Healed(), h.Damage(), h.DamagedLines())
	}
	if c := o.chain(); c.Last().Round != 3 || len(c.Lost) > 0 {
		t.Errorf("the file does not take what it lost: %+v", c.Last())
	}
	d, err := o.all[0].Definition(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	store, err := o.e.JS.ObjectStore(ctx, "hushsum-objects-archive")
	if err != nil {
		t.Fatal(err)
	}
	for k, ref := range d.Keys {
		if err := o.all[0].Close(); err != nil { // it would remember
			t.Fatal(err)
		}
		if err := store.Delete(ctx, ref.Name); err != nil {
			t.Fatal(err)
		}
		_, err := o.all[0].Claim(ctx, id, "a")
		if k+1 < len(d.Keys) != (err == nil) || err != nil && !errors.Is(err, record.ErrDamaged) {
			t.Errorf("without %d of the keys: %v", k+1, err)
		}
	}
}

// A record from a backup begins another segment: what it followed may not have been its end.
func TestRestoredSegment(t *testing.T) {
	ctx := context.Background()
	o := startOwning(t)
	o.decides(o.claims(0), "one", "two")
	var file bytes.Buffer
	named := func([]byte) ([]*record.Ref, error) { return nil, nil }
	if err := o.all[0].Backup(ctx, &file, named); err != nil {
		t.Fatal(err)
	}
	e, _ := embedded(t, newKey(t))
	r, err := record.Open(ctx, e.JS, 1, o.all[0].Keys())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.KeepIn(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Restore(ctx, bytes.NewReader(file.Bytes())); err != nil {
		t.Fatal(err)
	}
	h, err := r.Claim(ctx, id, "b")
	if err != nil {
		t.Fatal(err)
	}
	o.has(h, "two")
	o.decides(h, "three", "four")
	o.all = []*record.Records{r}
	c := o.chain()
	if e := c.Entry(4); e == nil || e.Kind != chain.Setback || e.Segment != 1 {
		t.Errorf("%+v", e)
	}
	if last := c.Last(); last.Number != 7 || last.Segment != 1 || last.Kind != chain.Decided {
		t.Errorf("%+v", last)
	}
}
