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

const pointersStream, pointersSubject = "KV_hushsum-pointers", "$KV.hushsum-pointers."

// A federation that began has not yet to begin, whatever of it is lost: what named its newest
// state, with and without the audit log, and before and after a claim.
func TestLostPointer(t *testing.T) {
	ctx := context.Background()
	for _, audited := range []bool{false, true} {
		for _, states := range []bool{false, true} {
			e, r := embedded(t, newKey(t))
			h, err := r.Claim(ctx, id, "a")
			if err != nil || h.Damage() != nil {
				t.Fatal(err, h.Damage())
			}
			h.Round = 3
			if err := h.Decide(ctx, []byte("a state")); err != nil {
				t.Fatal(err)
			}
			if audited {
				err = r.Audit(ctx, id, record.Line{Event: "begun", Round: 3})
			}
			if err != nil {
				t.Fatal(err)
			}
			gone(t, e, pointersStream, pointersSubject+id)
			if !states {
				gone(t, e, "OBJ_hushsum-objects-"+id[:16], ">")
			}
			damaged := states || audited
			is := func(when string, b []byte, err error) {
				t.Helper()
				if damaged != errors.Is(err, record.ErrDamaged) || b != nil || !damaged && err != nil {
					t.Errorf("%s, audited %v, states %v: %q, %v", when, audited, states, b, err)
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
			if damaged && (h.Damage() == nil || !errors.Is(err, record.ErrRecord) ||
				!errors.Is(err, record.ErrMissing) || errors.Is(err, record.ErrUnavailable)) {
				t.Errorf("%v", err)
			}
			if !states {
				if _, err := h.Back(ctx); !errors.Is(err, record.ErrMissing) {
					t.Errorf("back to nothing: %v", err)
				}
				continue
			}
			begun, err := h.Back(ctx)
			if err != nil || audited != (begun == 3) {
				t.Errorf("audited %v: %d rounds were begun, %v", audited, begun, err)
			}
			if b, err := h.State(ctx); string(b) != "a state" || err != nil || h.Damage() != nil {
				t.Errorf("%q, %v, %v", b, err, h.Damage())
			}
			if err := h.Decide(ctx, []byte("another")); err != nil {
				t.Fatal(err)
			}
			if b, err := r.State(ctx, id); string(b) != "another" || err != nil || h.Number() != 2 {
				t.Errorf("%q, %v, decision %d", b, err, h.Number())
			}
		}
	}
}

// A pointer that is older than the states or the audit log is not the newest, and one state that
// was never decided is no contradiction.
func TestOldPointer(t *testing.T) {
	ctx := context.Background()
	e, r := embedded(t, newKey(t))
	kv, err := e.JS.KeyValue(ctx, "hushsum-pointers")
	if err != nil {
		t.Fatal(err)
	}
	h, err := r.Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	var pointers [][]byte
	for _, state := range []string{"one", "two", "three"} {
		h.Round++
		if err := h.Decide(ctx, []byte(state)); err != nil {
			t.Fatal(err)
		}
		entry, err := kv.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		pointers = append(pointers, entry.Value())
	}
	put := func(k int) {
		t.Helper()
		if _, err := kv.Put(ctx, id, pointers[k]); err != nil {
			t.Fatal(err)
		}
	}
	put(0)
	if b, err := r.State(ctx, id); !errors.Is(err, record.ErrDamaged) {
		t.Errorf("two decisions back: %q, %v", b, err)
	}
	put(1) // as if the third had never been decided
	if b, err := r.State(ctx, id); string(b) != "two" || err != nil {
		t.Errorf("a state that may not have been decided: %q, %v", b, err)
	}
	if err := r.Audit(ctx, id, record.Line{Event: "begun", Round: 3}); err != nil {
		t.Fatal(err)
	}
	if b, err := r.State(ctx, id); !errors.Is(err, record.ErrDamaged) {
		t.Errorf("a round back: %q, %v", b, err)
	}
}

// A federation whose definition is lost is listed, and is not unknown.
func TestLostDefinition(t *testing.T) {
	ctx := context.Background()
	e, r := embedded(t, newKey(t))
	d := record.Definition{ID: id, Text: []byte("text")}
	if err := r.Create(ctx, d, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Audit(ctx, id, record.Line{Event: record.EventCreated}); err != nil {
		t.Fatal(err)
	}
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
	if _, err := r.Definition(ctx, id); err != nil {
		t.Error(err)
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
	name := filepath.Join(folder, "jetstream", "$G", "streams", "HUSHSUM-AUDIT", "msgs", "1.blk")
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
	if len(e.Moved) != 1 || !strings.HasSuffix(e.Moved[0], ".HUSHSUM-AUDIT") || len(e.Aside()) > 0 {
		t.Errorf("%q was moved, %q is all", e.Moved, e.Aside())
	}
	if _, err := os.Stat(filepath.Join(e.Moved[0], "msgs", "1.blk")); err != nil {
		t.Error(err)
	}
	r, err := record.Open(t.Context(), e.JS, 1, record.NewKeys(flipKey))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := r.State(t.Context(), id); err != nil || !strings.HasPrefix(string(b), "decision 4") {
		t.Errorf("%q, %v", b, err)
	}
}

// What JetStream loses of the audit log is said: as lines that it counts and does not give, or as
// numbers that it lacks.
func TestLostLine(t *testing.T) {
	folder := flipped(t)
	name := filepath.Join(folder, "jetstream", "$G", "streams", "HUSHSUM-AUDIT", "msgs", "1.blk")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r, stop := open(t, folder, &flipKey)
	whole, err := r.AuditLog(t.Context(), id, 1, func(record.Line) bool { return true })
	stop()
	if err != nil || whole.Lines < 3 || whole.Missing > 0 || whole.Gaps > 0 {
		t.Fatalf("%+v %v", whole, err)
	}
	at := bytes.Index(b, []byte(`"round":2`))
	if at < 0 {
		t.Fatal("there is no line of round 2")
	}
	b[at] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r, stop = open(t, folder, &flipKey)
	defer stop()
	given := 0
	log, err := r.AuditLog(t.Context(), id, 1, func(line record.Line) bool {
		if given++; line.Round == 2 {
			t.Errorf("it gives the damaged line: %+v", line)
		}
		return true
	})
	t.Logf("%+v, then %+v and %d", whole, log, given)
	if err != nil || given >= whole.Lines || log.Missing+log.Gaps == 0 {
		t.Errorf("%d lines of %d, %+v, %v", given, whole.Lines, log, err)
	}
}
