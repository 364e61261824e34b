package record_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/record"
)

// backedUp is a backup of a record of three decisions, and the record.
func backedUp(t *testing.T) (file []byte, r *record.Records, js jetstream.JetStream) {
	t.Helper()
	ctx := context.Background()
	e, r := embedded(t, backupKey(t))
	d := record.Definition{ID: id, Text: []byte("text"), Roster: bytes.Repeat([]byte("r"), 300<<10),
		Created: time.Now().UTC()}
	if err := r.Create(ctx, d, []byte("the first model"), []byte("spent before")); err != nil {
		t.Fatal(err)
	}
	h, err := r.Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		h.Round, h.Lines = uint64(i), []record.Line{{Event: "decided", Round: i}}
		if err := h.Decide(ctx, fmt.Append(nil, "decision ", i)); err != nil {
			t.Fatal(err)
		}
	}
	named, err := h.Put(ctx, "model", []byte("the model"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = r.Backup(ctx, &out, func(state []byte) ([]*record.Ref, error) {
		if string(state) != "decision 2" {
			t.Errorf("the newest state is %q", state)
		}
		return []*record.Ref{named, nil}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), r, e.JS
}

var sharedKey = bytes.Repeat([]byte{7}, 32)

func backupKey(t *testing.T) *keyexchange.SealKey {
	t.Helper()
	return (*keyexchange.SealKey)(sharedKey)
}

// A backup becomes the same record: definition, first model, long roster, newest state, and audit
// log with a line that says so.
func TestRestore(t *testing.T) {
	ctx := context.Background()
	file, _, _ := backedUp(t)
	if err := record.ReadBackup(bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	r, stop := open(t, t.TempDir(), backupKey(t))
	defer stop()
	ids, err := r.Restore(ctx, bytes.NewReader(file))
	if err != nil || len(ids) != 1 || ids[0] != id {
		t.Fatal(ids, err)
	}
	d, err := r.Definition(ctx, id)
	if err != nil || string(d.Text) != "text" || len(d.Roster) != 300<<10 {
		t.Fatalf("%+v, %v", d, err)
	}
	if b, err := r.Initial(ctx, d, d.Model); err != nil || string(b) != "the first model" {
		t.Errorf("the first model is %q, %v", b, err)
	}
	if b, err := r.Initial(ctx, d, d.Before); err != nil || string(b) != "spent before" {
		t.Errorf("what was spent before is %q, %v", b, err)
	}
	if leader, err := r.Leader(ctx, id); err != nil || leader != "" {
		t.Errorf("%q leads, %v", leader, err)
	}
	h, err := r.Claim(ctx, id, "b")
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.State(ctx)
	if err != nil || string(b) != "decision 2" || h.Number() != 6 || h.Round != 2 {
		t.Errorf("the state is %q, number %d, round %d, %v", b, h.Number(), h.Round, err)
	}
	lines, err := r.LastLines(ctx, id, 10)
	if err != nil || len(lines) != 4 || lines[3].Event != "restored" {
		t.Errorf("%+v, %v", lines, err)
	}
	if _, err := r.Restore(ctx, bytes.NewReader(file)); !errors.Is(err, record.ErrNotEmpty) {
		t.Errorf("a second time: %v", err)
	}
}

// What was restored names the key that it is sealed under, also where another key seals now and
// where an object has several parts.
func TestRestoreNamesKeys(t *testing.T) {
	ctx := context.Background()
	key := backupKey(t)
	_, from := embedded(t, key)
	d := record.Definition{ID: id, Text: []byte("text"), Created: time.Now().UTC()}
	if err := from.Create(ctx, d, make([]byte, 33<<20), nil); err != nil {
		t.Fatal(err)
	}
	h, err := from.Claim(ctx, id, "a")
	if err == nil {
		err = h.Decide(ctx, []byte("decision"))
	}
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	err = from.Backup(ctx, &file, func([]byte) ([]*record.Ref, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	e, _ := embedded(t, newKey(t))
	r, err := record.Open(ctx, e.JS, 1, record.NewKeys(*newKey(t), *key))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Restore(ctx, bytes.NewReader(file.Bytes())); err != nil {
		t.Fatal(err)
	}
	count, err := r.Sealed(ctx)
	if err != nil || len(count) != 1 || count[record.KeyName(key)] != 7 {
		t.Errorf("%v, %v; want 7 parts under %s", count, err, record.KeyName(key))
	}
}

// A file that was cut, altered, made of frames in another order, or of another key, is refused by
// an error of its own, and nothing is changed.
func TestRestoreRefuses(t *testing.T) {
	ctx := context.Background()
	file, _, _ := backedUp(t)
	r, stop := open(t, t.TempDir(), backupKey(t))
	defer stop()
	try := func(what string, r *record.Records, b []byte, want error) {
		t.Helper()
		_, err := r.Restore(ctx, bytes.NewReader(b))
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	small := len(labels.Backup+"\n") + 16
	for n := 0; n < len(file); n += 1 + len(file)/97 {
		try(fmt.Sprint("the first ", n), r, file[:n], record.ErrCut)
	}
	for n := 0; n < small; n++ {
		try(fmt.Sprint("the first ", n), r, file[:n], record.ErrCut)
	}
	try("all but one", r, file[:len(file)-1], record.ErrCut)
	try("one more", r, append(bytes.Clone(file), 0), record.ErrAltered)
	try("something else", r, []byte(strings.Repeat("text ", 50)), record.ErrNoBackup)
	for n := small + 4; n < len(file); n += 1 + len(file)/97 {
		b := bytes.Clone(file)
		b[n] ^= 1
		_, err := r.Restore(ctx, bytes.NewReader(b))
		if !errors.Is(err, record.ErrAltered) && !errors.Is(err, record.ErrCut) {
			t.Errorf("byte %d is another: %v", n, err)
		}
	}
	// With a digest that is right whoever alters it has to know the key, too.
	resum := func(b []byte) []byte {
		d := sha256.Sum256(b)
		return append(b, d[:]...)
	}
	body := file[:len(file)-sha256.Size]
	frames, rest := [][]byte{}, body[small:]
	for len(rest) > 4 {
		n := 4 + int(uint32(rest[0])<<24|uint32(rest[1])<<16|uint32(rest[2])<<8|uint32(rest[3]))
		frames, rest = append(frames, rest[:n]), rest[n:]
	}
	join := func(frames ...[]byte) []byte {
		b := bytes.Clone(body[:small])
		for _, f := range frames {
			b = append(b, f...)
		}
		return resum(append(b, 0, 0, 0, 0))
	}
	last := len(frames) - 1
	if !bytes.Equal(join(frames...), file) {
		t.Fatal("the file is not its frames")
	}
	try("without the end", r, join(frames[:last]...), record.ErrAltered)
	try("nothing", r, join(), record.ErrAltered)
	for i := range last {
		b := append([][]byte{}, frames...)
		b[i], b[i+1] = b[i+1], b[i]
		if i > 0 { // whose head opens
			try(fmt.Sprint("frame ", i, " later"), r, join(b...), record.ErrAltered)
		}
		try(fmt.Sprint("without frame ", i+1), r,
			join(append(append([][]byte{}, frames[:i+1]...), frames[i+2:]...)...), record.ErrAltered)
	}
	other, stopOther := open(t, t.TempDir(), newKey(t))
	defer stopOther()
	try("of another key", other, file, record.ErrOtherKey)
	for _, r := range []*record.Records{r, other} {
		if ids, err := r.List(ctx); err != nil || len(ids) > 0 {
			t.Errorf("something was restored: %v, %v", ids, err)
		}
		if leader, err := r.Leader(ctx, id); err != nil || leader != "" {
			t.Errorf("an entry was restored: %v, %v", leader, err)
		}
	}
	if _, err := r.Restore(ctx, bytes.NewReader(file)); err != nil {
		t.Errorf("the file as it was: %v", err)
	}
}

// Whoever finds the newest state missing goes back to the newest that is there, and hears of the
// last round that was begun; where there is none it says so.
func TestBack(t *testing.T) {
	ctx := context.Background()
	_, r, js := backedUp(t)
	store, err := js.ObjectStore(ctx, "hushsum-objects-"+id[:16])
	if err != nil {
		t.Fatal(err)
	}
	remove := func(number int) {
		t.Helper()
		all, err := store.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			if strings.HasPrefix(o.Name, fmt.Sprintf("state-%d-", number)) {
				if err := store.Delete(ctx, o.Name); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	remove(4)
	h, err := r.Claim(ctx, id, "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.State(ctx); !errors.Is(err, record.ErrMissing) {
		t.Errorf("a state that was deleted: %v", err)
	}
	begun, err := h.Back(ctx)
	b, failed := h.State(ctx)
	if err != nil || failed != nil || begun != 2 || string(b) != "decision 1" || h.Number() != 5 {
		t.Errorf("it goes back to %q before round %d, number %d: %v, %v", b, begun, h.Number(), err,
			failed)
	}
	if _, err := h.Back(ctx); !errors.Is(err, record.ErrMissing) {
		t.Errorf("there is no older state: %v", err)
	}
	h, err = r.Claim(ctx, id, "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Back(ctx); err != nil {
		t.Fatal(err)
	}
	if err := h.Decide(ctx, []byte("another")); err != nil {
		t.Fatal(err)
	}
	if h, err = r.Claim(ctx, id, "c"); err != nil {
		t.Fatal(err)
	}
	if b, err := h.State(ctx); err != nil || string(b) != "another" || h.Number() != 8 {
		t.Errorf("after a decision the state is %q, number %d, %v", b, h.Number(), err)
	}
}
