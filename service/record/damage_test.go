package record_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/service/record"
)

// gone removes a subject's message from a stream, as damage does.
func gone(t *testing.T, e *record.Embedded, stream, subject string) {
	t.Helper()
	s, err := e.JS.Stream(t.Context(), stream)
	if err == nil {
		err = s.Purge(t.Context(), jetstream.WithPurgeSubject(subject))
	}
	if err != nil {
		t.Fatal(err)
	}
}

const decidedStream, decidedSubject = "HUSHSUM-DECIDED", "hushsum.decided."

// entries returns the entries that JetStream has of the federation.
func entries(t *testing.T, e *record.Embedded) (lines [][]byte) {
	t.Helper()
	s, err := e.JS.Stream(t.Context(), decidedStream)
	if err != nil {
		t.Fatal(err)
	}
	for from := uint64(1); ; {
		m, err := s.GetMsg(t.Context(), from, jetstream.WithGetMsgSubject(decidedSubject+id))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		lines, from = append(lines, m.Data), m.Sequence+1
	}
}

// has makes JetStream have given entries of the federation, and no other, as after damage or when
// an old copy was put back.
func has(t *testing.T, e *record.Embedded, lines ...[]byte) {
	t.Helper()
	s, err := e.JS.Stream(t.Context(), decidedStream)
	if err == nil {
		err = e.JS.DeleteStream(t.Context(), decidedStream)
	}
	if err == nil {
		_, err = e.JS.CreateStream(t.Context(), s.CachedInfo().Config)
	}
	for _, line := range lines {
		if err == nil {
			_, err = e.JS.Publish(t.Context(), decidedSubject+id, line)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A federation that began has not yet to begin, whatever of its entries is lost, before and after a
// claim: its states say so.
func TestLostEntries(t *testing.T) {
	ctx := context.Background()
	for keep := range 3 {
		e, r := embedded(t, newKey(t))
		h, err := declared(t, r).Claim(ctx, id, "a")
		if err != nil || h.Damage() != nil {
			t.Fatal(err, h.Damage())
		}
		h.Round = 3
		for _, state := range []string{"a state", "the next"} {
			if err := h.Decide(ctx, []byte(state)); err != nil {
				t.Fatal(err)
			}
		}
		has(t, e, entries(t, e)[:keep]...)
		is := func(when string, b []byte, err error) {
			t.Helper()
			if !errors.Is(err, record.ErrDamaged) || b != nil {
				t.Errorf("%d kept, %s: %q, %v", keep, when, b, err)
			}
		}
		b, err := r.State(ctx, id)
		is("before a claim", b, err)
		for range 2 {
			if h, err = r.Claim(ctx, id, "b"); err != nil {
				t.Fatal(err)
			}
			b, err = h.State(ctx)
			is("the claim", b, err)
			b, err = r.State(ctx, id)
			is("after a claim", b, err)
		}
		if h.Damage() == nil || !errors.Is(err, record.ErrRecord) ||
			!errors.Is(err, record.ErrMissing) || errors.Is(err, record.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		if _, err := h.Back(ctx); err != nil {
			t.Errorf("%v", err)
		}
		if b, err := h.State(ctx); string(b) != "the next" || err != nil || h.Damage() != nil {
			t.Errorf("%q, %v, %v", b, err, h.Damage())
		}
		if err := h.Decide(ctx, []byte("another")); err != nil {
			t.Fatal(err)
		}
		if b, err := r.State(ctx, id); string(b) != "another" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		c, err := r.Chain(ctx, id)
		if err != nil || len(c.Lost) > 0 || c.Last().Segment != 1 {
			t.Errorf("%+v, %v", c.Last(), err)
		}
		lines, err := r.LastLines(ctx, id, 10)
		if err != nil || len(lines) == 0 || lines[0].Event != "damaged" {
			t.Errorf("%+v, %v", lines, err)
		}
	}
}

// Entries that are older than the states are not the newest, and one state that was never decided
// is no contradiction.
func TestOldEntries(t *testing.T) {
	ctx := context.Background()
	e, r := embedded(t, newKey(t))
	h, err := declared(t, r).Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"one", "two", "three"} {
		h.Round++
		if err := h.Decide(ctx, []byte(state)); err != nil {
			t.Fatal(err)
		}
	}
	all := entries(t, e)
	has(t, e, all[:3]...)
	if b, err := r.State(ctx, id); !errors.Is(err, record.ErrDamaged) {
		t.Errorf("two decisions back: %q, %v", b, err)
	}
	has(t, e, all[:4]...) // as if the third had never been decided
	if b, err := r.State(ctx, id); string(b) != "two" || err != nil {
		t.Errorf("a state that may not have been decided: %q, %v", b, err)
	}
	// One that is lost in the middle is named, and its number is not used again.
	has(t, e, all[0], all[1], all[3], all[4])
	if h, err = r.Claim(ctx, id, "a"); err != nil {
		t.Fatal(err)
	}
	if b, err := h.State(ctx); string(b) != "three" || err != nil || h.Damage() != nil {
		t.Errorf("%q, %v, %v", b, err, h.Damage())
	}
	c, err := r.Chain(ctx, id)
	if err != nil || len(c.Last().Lost) != 1 || c.Last().Lost[0].From != 2 || c.Last().Segment != 1 {
		t.Errorf("%+v, %v", c.Last(), err)
	}
}

// A federation whose definition is lost is listed, and is not unknown.
func TestLostDefinition(t *testing.T) {
	ctx := context.Background()
	e, r := embedded(t, newKey(t))
	d := record.Definition{ID: id, Text: []byte("text")}
	if err := r.Create(ctx, d, nil, nil, record.Line{Event: record.EventCreated}); err != nil {
		t.Fatal(err)
	}
	before := entries(t, e)
	gone(t, e, "KV_hushsum-federations", "$KV.hushsum-federations."+id)
	if _, err := r.Definition(ctx, id); !errors.Is(err, record.ErrDamaged) ||
		errors.Is(err, record.ErrNone) {
		t.Errorf("%v", err)
	}
	if ids, err := r.List(ctx); err != nil || len(ids) != 1 {
		t.Errorf("%v, %v", ids, err)
	}
	if err := r.Create(ctx, d, nil, nil); err != nil {
		t.Errorf("declared again: %v", err)
	}
	again, err := r.Definition(ctx, id)
	if err != nil || !bytes.Equal(again.Birth, before[0]) || len(again.Keys) != 2 ||
		len(again.Names) != 2 || len(entries(t, e)) != 1 {
		t.Errorf("%+v, %v", again, err)
	}
	other := strings.Repeat("00", 32)
	if _, err := r.Definition(ctx, other); !errors.Is(err, record.ErrNone) ||
		errors.Is(err, record.ErrDamaged) {
		t.Errorf("one that there never was: %v", err)
	}
}

// A block in which the number of a message has jumped is moved aside with its stream, and the rest
// of the record opens: JetStream would count up to that number.
func TestBrokenBlock(t *testing.T) {
	folder := flipped(t)
	name := filepath.Join(folder, "jetstream", "$G", "streams", "HUSHSUM-DECIDED", "msgs", "1.blk")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	second := int(b[0]) + int(b[1])<<8
	b[second+4+6] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := record.StartEmbedded(t.Context(), record.EmbeddedOptions{Folder: folder, Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if len(e.Moved) != 1 || !strings.HasSuffix(e.Moved[0], ".HUSHSUM-DECIDED") || len(e.Aside()) > 0 {
		t.Errorf("%q was moved, %q is all", e.Moved, e.Aside())
	}
	if _, err := os.Stat(filepath.Join(e.Moved[0], "msgs", "1.blk")); err != nil {
		t.Error(err)
	}
	r, err := record.Open(t.Context(), e.JS, 1, record.NewKeys(flipKey))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.KeepIn(folder); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h, err := r.Claim(t.Context(), id, "a")
	if err != nil || h.Healed() == nil {
		t.Fatalf("the stream is not made anew from the node's own files: %v", err)
	}
	if b, err := r.State(t.Context(), id); err != nil || !strings.HasPrefix(string(b), "decision 4") {
		t.Errorf("%q, %v", b, err)
	}
}
