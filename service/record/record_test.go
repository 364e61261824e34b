package record_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/record"
)

var id = strings.Repeat("5e", 32)

// open starts a JetStream in a folder.
func open(t *testing.T, folder string, key *keyexchange.SealKey) (*record.Records, func()) {
	t.Helper()
	e, err := record.StartEmbedded(context.Background(),
		record.EmbeddedOptions{Folder: folder, Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(context.Background(), e.JS, 1, record.NewKeys(*key))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.KeepIn(folder); err != nil {
		t.Fatal(err)
	}
	return r, func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		e.Close()
	}
}

// embedded is a record on a new embedded JetStream, which ends with the test.
func embedded(t *testing.T, key *keyexchange.SealKey) (*record.Embedded, *record.Records) {
	t.Helper()
	e, err := record.StartEmbedded(t.Context(), record.EmbeddedOptions{Folder: t.TempDir(), Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	r, err := record.Open(t.Context(), e.JS, 1, record.NewKeys(*key))
	if err != nil {
		t.Fatal(err)
	}
	return e, r
}

// declared has the federation declared.
func declared(t *testing.T, r *record.Records) *record.Records {
	t.Helper()
	d := record.Definition{ID: id, Text: []byte("text"), Created: time.Now().UTC()}
	if err := r.Create(t.Context(), d, nil, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

func newKey(t *testing.T) *keyexchange.SealKey {
	t.Helper()
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// What was decided is there after a restart, and only what was decided.
func TestDecisions(t *testing.T) {
	ctx, folder, key := context.Background(), t.TempDir(), newKey(t)
	r, stop := open(t, folder, key)
	declared(t, r)
	h, err := r.Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := h.State(ctx); err != nil || b != nil {
		t.Fatalf("a state before the first: %q %v", b, err)
	}
	for i := range 5 {
		if err := h.Decide(ctx, fmt.Append(nil, "decision ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Put(ctx, "state-6", []byte("never decided")); err != nil {
		t.Fatal(err)
	}
	stop()
	r, stop = open(t, folder, key)
	defer stop()
	if h, err = r.Claim(ctx, id, "a"); err != nil {
		t.Fatal(err)
	}
	if b, err := h.State(ctx); err != nil || string(b) != "decision 4" || h.Number() != 7 {
		t.Errorf("%q, number %d, %v", b, h.Number(), err)
	}
	if err := h.Tidy(ctx); err != nil {
		t.Error(err)
	}
	if b, err := h.State(ctx); err != nil || string(b) != "decision 4" {
		t.Errorf("after tidying: %q %v", b, err)
	}
}

// Of two who believe to lead only the one that claimed last can decide, however they
// take turns.
func TestOneLeader(t *testing.T) {
	ctx := context.Background()
	r, stop := open(t, t.TempDir(), newKey(t))
	defer stop()
	refused := 0
	declared(t, r)
	for i := range 20 {
		first, err := r.Claim(ctx, id, "a")
		if err != nil {
			t.Fatal(err)
		}
		second, err := r.Claim(ctx, id, "b")
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Decide(ctx, []byte("stale")); errors.Is(err, record.ErrLost) {
			refused++
		} else {
			t.Errorf("a stale decision: %v", err)
		}
		if err := second.Decide(ctx, fmt.Append(nil, "good ", i)); err != nil {
			t.Error(err)
		}
		if b, err := second.State(ctx); err != nil || string(b) != fmt.Sprint("good ", i) {
			t.Errorf("%q %v", b, err)
		}
	}
	if refused != 20 {
		t.Errorf("%d of 20 stale decisions refused", refused)
	}
	// At once: of eight who have all claimed, one decides.
	var claims, group sync.WaitGroup
	var mutex sync.Mutex
	decided := 0
	for i := range 8 {
		group.Add(1)
		claims.Add(1)
		go func() {
			defer group.Done()
			h, err := r.Claim(ctx, id, fmt.Sprint("node ", i))
			claims.Done()
			if err != nil {
				return // another was faster
			}
			claims.Wait()
			if h.Decide(ctx, []byte("mine")) == nil {
				mutex.Lock()
				decided++
				mutex.Unlock()
			}
		}()
	}
	group.Wait()
	if decided != 1 {
		t.Errorf("%d decided", decided)
	}
}

// Under another key nothing opens, and in no file is there what was sealed.
func TestSealed(t *testing.T) {
	ctx, folder := context.Background(), t.TempDir()
	r, stop := open(t, folder, newKey(t))
	declared(t, r)
	h, err := r.Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	marked := bytes.Repeat([]byte("a marked submission "), 1000)
	if err := h.Decide(ctx, marked); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte("a marked submission")) {
			t.Errorf("%s has it in the clear", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r, stop = open(t, folder, newKey(t))
	defer stop()
	if _, err = r.Claim(ctx, id, "b"); !errors.Is(err, record.ErrRecord) {
		t.Errorf("under another key: %v", err)
	}
	if leader, err := r.Leader(ctx, id); err != nil || leader != "a" {
		t.Errorf("a record that does not open is claimed by %q, %v", leader, err)
	}
}

// Definitions are made once, and listed; the audit log has its lines in order.
func TestDefinitions(t *testing.T) {
	ctx := context.Background()
	r, stop := open(t, t.TempDir(), newKey(t))
	defer stop()
	if ids, err := r.List(ctx); err != nil || len(ids) != 0 {
		t.Fatalf("%v %v", ids, err)
	}
	d := record.Definition{ID: id, Text: []byte("t"), Roster: []byte("r"), Created: time.Now().UTC()}
	if err := r.Create(ctx, d, []byte("model"), nil); err != nil {
		t.Fatal(err)
	}
	d.Created = d.Created.Add(time.Second)
	if err := r.Create(ctx, d, nil, nil); !errors.Is(err, record.ErrExists) {
		t.Errorf("a second time: %v", err)
	}
	got, err := r.Definition(ctx, id)
	if err != nil || string(got.Text) != "t" {
		t.Fatalf("%+v %v", got, err)
	}
	if b, err := r.Initial(ctx, got, got.Model); err != nil || string(b) != "model" {
		t.Errorf("%q %v", b, err)
	}
	if b, err := r.Initial(ctx, got, got.Before); err != nil || b != nil {
		t.Errorf("of one without a first model: %q %v", b, err)
	}
	if _, err := r.Definition(ctx, strings.Repeat("00", 32)); !errors.Is(err, record.ErrNone) {
		t.Errorf("one that is not there: %v", err)
	}
	h, err := r.Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 7 {
		h.Lines = []record.Line{{Event: "e", Round: i}}
		if err := h.Decide(ctx, []byte("state")); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := r.LastLines(ctx, id, 5)
	if err != nil || len(lines) != 5 || lines[0].Round != 2 || lines[4].Round != 6 ||
		lines[4].Number != 7 || lines[4].Node != "a" || lines[4].Time.IsZero() {
		t.Errorf("%+v %v", lines, err)
	}
}

// A claim is kept until another node claims, and however often it is kept, it decides.
func TestKeep(t *testing.T) {
	ctx := context.Background()
	r, stop := open(t, t.TempDir(), newKey(t))
	defer stop()
	declared(t, r)
	first, err := r.Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Decide(ctx, []byte("state")); err != nil {
		t.Fatal(err)
	}
	if err := first.Keep(ctx); err != nil {
		t.Errorf("alone: %v", err)
	}
	second, err := r.Claim(ctx, id, "b")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Keep(ctx); !errors.Is(err, record.ErrLost) {
		t.Errorf("after another's claim: %v", err)
	}
	if err := second.Keep(ctx); err != nil {
		t.Errorf("the other's: %v", err)
	}
}

// Objects longer than JetStream takes at once, and rosters longer than a definition may
// be, come back as they were after a restart, and are deleted whole.
func TestLongObjects(t *testing.T) {
	ctx, folder, key := context.Background(), t.TempDir(), newKey(t)
	r, stop := open(t, folder, key)
	definition := record.Definition{ID: id, Text: []byte("text"), Created: time.Now().UTC(),
		Roster: bytes.Repeat([]byte("party 0123456789abcdef\n"), 100_000)}
	if err := r.Create(ctx, definition, nil, nil); err != nil {
		t.Fatal(err)
	}
	h, err := r.Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, 10<<20)
	first, err := h.Put(ctx, "model", long)
	if err != nil || first.Parts != 3 {
		t.Fatalf("%+v, %v", first, err)
	}
	// A part opens in its own place of its own object only, and has the size that was stated.
	for what, ref := range map[string]record.Ref{
		"fewer parts":   {Name: first.Name, Digest: first.Digest, Size: first.Size, Parts: 2},
		"a later part":  {Name: first.Name + ".1", Digest: first.Digest, Size: first.Size},
		"no such parts": {Name: first.Name, Digest: first.Digest, Size: first.Size, Parts: -1},
		"many parts":    {Name: first.Name, Size: first.Size, Parts: math.MaxInt32},
		"below nothing": {Name: first.Name, Digest: first.Digest, Size: -1, Parts: 3},
		"another size":  {Name: first.Name, Digest: first.Digest, Size: math.MaxInt32, Parts: 3},
	} {
		if _, err := h.Get(ctx, &ref); !errors.Is(err, record.ErrRecord) {
			t.Errorf("%s: %v, want ErrRecord", what, err)
		}
	}
	for _, size := range []int{len(long) - 1, len(long) + 1, 1, 4 * len(long)} {
		if _, err := h.PutFrom(ctx, "model", size, bytes.NewReader(long)); err == nil {
			t.Errorf("%d bytes are put as %d", len(long), size)
		}
	}
	long[69<<20]++
	second, err := h.Put(ctx, "model", long)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Decide(ctx, []byte("state"), first); err != nil {
		t.Fatal(err)
	}
	stop()
	r, stop = open(t, folder, key)
	defer stop()
	had, err := r.Definition(ctx, id)
	if err != nil || !bytes.Equal(had.Roster, definition.Roster) {
		t.Errorf("a roster of %d bytes, %v", len(had.Roster), err)
	}
	if h, err = r.Claim(ctx, id, "a"); err != nil {
		t.Fatal(err)
	}
	if err := h.Tidy(ctx, second); err != nil {
		t.Fatal(err)
	}
	if b, err := h.Get(ctx, second); err != nil || !bytes.Equal(b, long) {
		t.Errorf("%d bytes of %d, %v", len(b), len(long), err)
	}
	if _, err := h.Get(ctx, first); !errors.Is(err, record.ErrRecord) {
		t.Errorf("what was spent: %v", err)
	}
	if had, err = r.Definition(ctx, id); err != nil || !bytes.Equal(had.Roster, definition.Roster) {
		t.Errorf("after tidying, a roster of %d bytes, %v", len(had.Roster), err)
	}
}

// Only the newest state and the one before it stay on the disk, with what they name.
func TestSpentObjects(t *testing.T) {
	ctx := context.Background()
	e, r := embedded(t, newKey(t))
	declared(t, r)
	h, err := r.Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	var model *record.Ref
	for i := range 6 {
		before := model
		if model, err = h.Put(ctx, fmt.Sprint("model-", i), []byte("m")); err != nil {
			t.Fatal(err)
		}
		if err := h.Decide(ctx, []byte("state"), before); err != nil {
			t.Fatal(err)
		}
	}
	states, models := 0, 0
	for names := e.JS.ObjectStoreNames(ctx); ; {
		name, more := <-names.Name()
		if !more {
			break
		}
		store, err := e.JS.ObjectStore(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := store.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if strings.HasPrefix(o.Name, "state") {
				states++
			} else if !strings.HasSuffix(name, "archive") {
				models++
			}
		}
	}
	if states != 2 || models != 2 {
		t.Errorf("%d states and %d models are kept, want 2 each", states, models)
	}
}

// A log that is longer than what is fetched at once is read to its end.
func TestLongLog(t *testing.T) {
	ctx := context.Background()
	r, stop := open(t, t.TempDir(), newKey(t))
	defer stop()
	const lines = 520
	declared(t, r)
	h, err := r.Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		h.Lines = append(h.Lines, record.Line{Event: "e", Round: i})
		if i%40 == 39 || i == lines-1 {
			if err := h.Decide(ctx, []byte("state")); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := r.LastLines(ctx, id, 3)
	if err != nil || len(got) != 3 || got[2].Round != lines-1 {
		t.Errorf("%+v %v", got, err)
	}
	// From any line, whatever was read before, and to the end of the time at which reading began.
	for _, from := range []int{1, 300, 256, 257, 255, 513, 512, lines, 2, lines + 1, -1, -lines - 5} {
		first := min(max(from, 1), lines+1)
		if from == -1 {
			first = lines
		}
		next := first
		log, err := r.AuditLog(ctx, id, from, func(line record.Line) bool {
			if line.Number != next || line.Round != next-1 {
				t.Errorf("from %d: line %d of round %d, want line %d", from, line.Number, line.Round, next)
			}
			next++
			return true
		})
		if err != nil || next != lines+1 || log != (record.Log{Lines: lines, Entries: 15}) {
			t.Errorf("from %d: up to %d, %+v, %v", from, next-1, log, err)
		}
	}
}

// Lines whose key is lost are said to be unreadable, and the decisions that they belong to remain.
func TestErasedNames(t *testing.T) {
	ctx := t.Context()
	e, r := embedded(t, newKey(t))
	declared(t, r)
	h, err := r.Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		h.Lines = []record.Line{{Event: "begun", Round: i, Note: "by ann"}, {Event: "e"}}
		h.Entry.Kind, h.Round = chain.Begin, uint64(i)
		if err := h.Decide(ctx, []byte("state")); err != nil {
			t.Fatal(err)
		}
	}
	d, err := r.Definition(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	store, err := e.JS.ObjectStore(ctx, "hushsum-objects-archive")
	for _, ref := range d.Names {
		if err == nil {
			err = store.Delete(ctx, ref.Name)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	lines, err := r.LastLines(ctx, id, 2)
	if err != nil || len(lines) != 2 || lines[1].Event != record.EventUnreadable ||
		lines[1].Number != 3 || lines[1].Round != 2 || lines[1].Kind() != record.KindIncident ||
		!strings.Contains(lines[1].Note, "kind begin") {
		t.Errorf("%+v %v", lines, err)
	}
}

// A node of a cluster has an address with a host and a port, and certificates.
func TestClusterAddress(t *testing.T) {
	for _, c := range []struct {
		listen string
		tls    *tls.Config
		says   string
	}{
		{"127.0.0.1:1", nil, "certificates"},
		{"127.0.0.1", new(tls.Config), "host:port"},
		{":1", new(tls.Config), "host:port"},
		{"host:port", new(tls.Config), "host:port"},
		{"", new(tls.Config), "host:port"},
	} {
		e, err := record.StartEmbedded(context.Background(), record.EmbeddedOptions{
			Folder: t.TempDir(), Name: "n", Listen: c.listen, Peers: []string{"127.0.0.1:2"}, TLS: c.tls})
		if err == nil {
			e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %s", c.listen, err, c.says)
		}
	}
}

// What decisions replace leaves nothing: after 120 of them JetStream has as many messages as after
// 20.
func TestDecisionsLeaveNothing(t *testing.T) {
	ctx := context.Background()
	e, r := embedded(t, newKey(t))
	declared(t, r)
	h, err := r.Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	var messages []uint64
	for k := range 120 {
		object, err := h.Put(ctx, "model", []byte("a model"))
		if err == nil {
			err = h.Decide(ctx, []byte("a state"), object)
		}
		if err != nil {
			t.Fatal(err)
		}
		if (k+1)%20 != 0 {
			continue
		}
		stream, err := e.JS.Stream(ctx, "OBJ_hushsum-objects-"+id[:16])
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, stream.CachedInfo().State.Msgs)
	}
	if messages[len(messages)-1] != messages[0] {
		t.Errorf("messages after each 20 decisions: %d", messages)
	}
}

// Probes leave one message however many there were, also of processes that do not know of each
// other.
func TestProbesLeaveOne(t *testing.T) {
	ctx := context.Background()
	e, r := embedded(t, newKey(t))
	declared(t, r)
	if _, err := r.Claim(ctx, id, "a"); err != nil {
		t.Fatal(err)
	}
	messages := func() uint64 {
		stream, err := e.JS.Stream(ctx, "OBJ_hushsum-objects-"+id[:16])
		if err != nil {
			t.Fatal(err)
		}
		return stream.CachedInfo().State.Msgs
	}
	before := messages()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 25 {
				if err := r.Probe(ctx, id, "a"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if after := messages(); after != before+1 {
		t.Errorf("%d messages before 100 probes, %d after", before, after)
	}
}

// What decisions replace leaves the disk soon, also where an older object stays, such as a first
// model.
func TestOlderObjectKeepsNothing(t *testing.T) {
	ctx := context.Background()
	folder := t.TempDir()
	e, err := record.StartEmbedded(ctx, record.EmbeddedOptions{Folder: folder, Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r, err := record.Open(ctx, e.JS, 1, record.NewKeys(*newKey(t)))
	if err != nil {
		t.Fatal(err)
	}
	declared(t, r)
	h, err := r.Claim(ctx, id, "a")
	if err == nil {
		_, err = h.Put(ctx, "model", []byte("which stays"))
	}
	state := make([]byte, 1<<20)
	for range 40 {
		if err == nil {
			err = h.Decide(ctx, state)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	size := func() (all int64) {
		_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, _ error) error {
			if info, err := d.Info(); err == nil && !d.IsDir() {
				all += info.Size()
			}
			return nil
		})
		return all
	}
	for deadline := time.Now().Add(time.Minute); size() > 20<<20; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes stay of 40 MB of states, of which two are needed", size())
		}
	}
}
