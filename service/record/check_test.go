package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/service/record"
)

func nothingNamed([]byte) ([]*record.Ref, error) { return nil, nil }

// checked returns what a node finds.
func (o *owning) checked(node int) record.Checked {
	o.t.Helper()
	out, err := o.all[node].Check(o.t.Context(), id, nothingNamed)
	if err != nil {
		o.t.Fatal(err)
	}
	return out
}

// Of two histories an operator has either stand: it goes on in a new segment, whose first entry
// names the other's numbers, and no round that was begun in either counts as not begun.
func TestChoose(t *testing.T) {
	ctx := context.Background()
	for chosen := range 2 {
		o := startOwning(t)
		h := o.claims(0)
		o.decides(h, "one")
		first := entries(t, o.e)
		o.decides(h, "two")
		has(t, o.e, first...)
		o.all[1].Alone()
		o.decides(o.claims(1), "another two")
		forks := o.checked(0).Forks
		if len(forks) != 2 || len(o.checked(0).Problems) == 0 {
			t.Fatalf("%+v", o.checked(0))
		}
		if err := o.all[0].Choose(ctx, id, "00", "ann"); !errors.Is(err, record.ErrHistory) {
			t.Errorf("none is chosen: %v", err)
		}
		at := 0
		if (forks[0].Node == "node 0") != (chosen == 0) {
			at = 1
		}
		if err := o.all[0].Choose(ctx, id, forks[at].Last, "ann"); err != nil {
			t.Fatal(err)
		}
		want := []string{"two", "another two"}[chosen]
		for _, node := range []int{0, 1, 0} {
			h := o.claims(node)
			if o.has(h, want); h.Round != 2 || h.Damage() != nil {
				t.Errorf("%d chosen, node %d: round %d, %v", chosen, node, h.Round, h.Damage())
			}
		}
		o.decides(o.claims(1), "after")
		c := o.chain()
		if len(c.Lost) > 0 || c.Last().Segment != 1 || len(c.Superseded) == 0 {
			t.Errorf("%+v, lost %v", c.Last(), c.Lost)
		}
		if now := o.checked(1); len(now.Forks) > 0 || len(now.Problems) > 0 {
			t.Errorf("%+v", now)
		}
		lines, err := o.all[1].LastLines(ctx, id, 100)
		if err != nil || !strings.Contains(lines[len(lines)-1].Note, "by ann") {
			t.Errorf("%+v, %v", lines, err)
		}
	}
}

// A check names what is damaged, and a backup has it back, by the names that entries have for it.
func TestCheckAndHeal(t *testing.T) {
	ctx := context.Background()
	o := startOwning(t)
	o.decides(o.claims(0), "one", "two")
	if now := o.checked(0); len(now.Problems) > 0 || now.Entries != 4 || now.Head == "" {
		t.Fatalf("%+v", now)
	}
	var file bytes.Buffer
	if err := o.all[0].Backup(ctx, &file, nothingNamed); err != nil {
		t.Fatal(err)
	}
	d, err := o.all[0].Definition(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	lose := func(bucket string, names ...string) {
		t.Helper()
		store, err := o.e.JS.ObjectStore(ctx, bucket)
		for _, name := range names {
			if err == nil {
				err = store.Delete(ctx, name)
			}
		}
		if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			t.Fatal(err)
		}
	}
	state := o.chain().Last().State.Name
	for what, damage := range map[string]func(){
		"is missing":      func() { lose("hushsum-objects-"+id[:16], state) },
		"JetStream lacks": func() { has(t, o.e, entries(t, o.e)[:2]...) },
		"key that signs":  func() { lose("hushsum-objects-archive", d.Keys[0].Name, d.Keys[1].Name) },
	} {
		damage()
		if err := o.all[0].Close(); err != nil { // it would remember
			t.Fatal(err)
		}
		now := o.checked(0)
		if len(now.Problems) == 0 || !strings.Contains(strings.Join(now.Problems, "; "), what) {
			t.Errorf("%s: %+v", what, now)
		}
		took, err := o.all[0].HealFrom(ctx, bytes.NewReader(file.Bytes()), nothingNamed)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		o.has(o.claims(0), "two")
		if now := o.checked(0); len(now.Problems) > 0 {
			t.Errorf("%s: took %v, and %+v", what, took, now)
		}
		if c := o.chain(); c.Last().Kind != chain.Claim || len(c.Lost) > 0 {
			t.Errorf("%s: %+v", what, c.Last())
		}
	}
	took, err := o.all[0].HealFrom(ctx, bytes.NewReader(file.Bytes()), nothingNamed)
	if err != nil || len(took) > 1 || took["entries"] > 0 {
		t.Errorf("a whole record takes %v, %v", took, err)
	}
	b := bytes.Clone(file.Bytes())
	b[len(b)/2] ^= 1
	if _, err := o.all[0].HealFrom(ctx, bytes.NewReader(b), nothingNamed); err == nil {
		t.Error("a damaged backup is taken")
	}
}

// However many lines follow from a decision, and however long they are, it has an entry: they are
// compressed, then cut, and then it is said how many are left out.
func TestManyLines(t *testing.T) {
	ctx := context.Background()
	_, r := embedded(t, newKey(t))
	h, err := declared(t, r).Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(size int) string {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte('a' + random.IntN(26))
		}
		return string(b)
	}
	for _, c := range []struct {
		lines int
		note  func() string
		whole bool
	}{
		{1, func() string { return "by ann" }, true},
		{2000, func() string { return "party spoilt a round, or tried to" }, true},
		{3, func() string { return noise(100_000) }, false},
		{3000, func() string { return noise(300) }, false},
	} {
		for range c.lines {
			h.Lines = append(h.Lines, record.Line{Event: "left out", Note: c.note()})
		}
		before, err := r.LastLines(ctx, id, 1)
		if err == nil {
			err = h.Decide(ctx, []byte("state"))
		}
		if err != nil {
			t.Fatalf("%d lines: %v", c.lines, err)
		}
		at := 0
		if len(before) > 0 {
			at = before[0].Number
		}
		lines, err := r.LastLines(ctx, id, 5000)
		if err != nil || len(lines) == at {
			t.Fatalf("%d lines: %d, %v", c.lines, len(lines), err)
		}
		got, last := len(lines)-at, lines[len(lines)-1]
		if c.whole != (got == c.lines && !strings.HasSuffix(last.Note, "…") &&
			!strings.Contains(last.Note, "did not fit")) {
			t.Errorf("%d lines: %d, the last %.60q", c.lines, got, last.Note)
		}
		if strings.Contains(last.Note, "did not fit") &&
			last.Note != fmt.Sprintf("%d more lines did not fit", c.lines-got+1) {
			t.Errorf("%d of %d lines: %s", got, c.lines, last.Note)
		}
	}
}
