package store

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

func sealKey(t testing.TB) *keyexchange.SealKey {
	t.Helper()
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// opened opens a vault for a moment and returns the state.
func opened(
	store Store, key *keyexchange.SealKey, counter Counter, owner string, lost bool,
) ([]byte, error) {
	v, b, err := Open(store, key, counter, owner, lost)
	v.Close()
	return b, err
}

// An older state is refused if a counter says so, and so is none; one that was changed or is
// another's always. The word that the newest is lost lets its owner start without it.
func TestMisuseOldState(t *testing.T) {
	dir := t.TempDir()
	key := sealKey(t)
	file := FileStore(filepath.Join(dir, "state"))
	counter := FileCounter(filepath.Join(dir, "counter"))
	read := func(lost bool) ([]byte, error) { return opened(file, key, counter, "a", lost) }
	save := func(lost bool, text string) []byte {
		t.Helper()
		v, _, err := Open(file, key, counter, "a", lost)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		if err := v.Save([]byte(text)); err != nil {
			t.Fatal(err)
		}
		newest := []byte{0, 0, 0, 0, 0, 0, 0, 0, 0}
		for place := range places {
			b, err := file.LoadAt(place)
			if err != nil {
				t.Fatal(err)
			}
			if b != nil && bytes.Compare(b[:storeHead], newest[:storeHead]) > 0 {
				newest = b
			}
		}
		return newest
	}
	for _, lost := range []bool{false, true} {
		if b, err := read(lost); b != nil || err != nil {
			t.Fatalf("nothing stored: %q, %v", b, err)
		}
	}
	var states [][]byte
	for _, text := range []string{"one", "two", "three"} {
		states = append(states, save(false, text))
	}
	for _, lost := range []bool{false, true} {
		if b, err := read(lost); string(b) != "three" || err != nil {
			t.Errorf("the newest: %q, %v", b, err)
		}
	}
	remove := func() {
		t.Helper()
		for place := range places {
			if err := os.Remove(string(file.at(place))); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	put := func(b []byte) { // alone
		t.Helper()
		remove()
		place := 1
		if len(b) >= storeHead {
			place = int(b[storeHead-1] % places)
		}
		if err := file.SaveAt(place, b); err != nil {
			t.Fatal(err)
		}
	}
	put(states[1])
	if _, err := read(false); !errors.Is(err, ErrOldState) || strings.Contains(err.Error(), "elete") {
		t.Errorf("an older one: %v", err)
	}
	if b, err := read(true); b != nil || err != nil {
		t.Errorf("an older one, the newest lost: %q, %v", b, err)
	}
	renumbered := slices.Clone(states[1])
	binary.BigEndian.PutUint64(renumbered[1:], 3)
	version := slices.Clone(states[2])
	version[0]++
	for name, b := range map[string][]byte{"renumbered": renumbered, "cut": states[2][:20],
		"empty": {}, "version": version} {
		put(b)
		for _, lost := range []bool{false, true} { // it may be the newest, under another key
			if _, err := read(lost); !errors.Is(err, ErrStore) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	put(states[2])
	if _, err := opened(file, key, counter, "b", false); !errors.Is(err, ErrStore) {
		t.Errorf("another's: %v", err)
	}
	// Deleting the state is no way around its counter.
	remove()
	if b, err := read(false); b != nil || !errors.Is(err, ErrOldState) {
		t.Fatalf("it was deleted: %q, %v", b, err)
	}
	if b, err := read(true); b != nil || err != nil {
		t.Fatalf("it was deleted, and is lost: %q, %v", b, err)
	}
	save(true, "four")
	if b, err := read(false); string(b) != "four" || err != nil {
		t.Errorf("after a new start: %q, %v", b, err)
	}
	put(states[2])
	if _, err := read(false); !errors.Is(err, ErrOldState) {
		t.Errorf("one of before the new start: %v", err)
	}
}

// disk is a Store and Counter of which a kill leaves the writes before it.
type disk struct {
	MemoryStore
	images [][]byte // all that was ever stored
	number uint64
	left   int // writes until the kill
}

var errKilled = errors.New("killed")

func (d *disk) write() error {
	if d.left == 0 {
		return errKilled
	}
	d.left--
	return nil
}

func (d *disk) Save(state []byte) error {
	if err := d.write(); err != nil {
		return err
	}
	d.images = append(d.images, bytes.Clone(state))
	return d.MemoryStore.Save(state)
}

func (d *disk) Value() (uint64, error) { return d.number, nil }

func (d *disk) Advance(to uint64) error {
	if err := d.write(); err != nil {
		return err
	}
	d.number = to
	return nil
}

// After a kill between any two writes the newest state opens, and once it has, or once
// anything followed from it, none before it does.
func TestKillBetweenWrites(t *testing.T) {
	key := sealKey(t)
	for before := range 9 { // writes in the first life
		for after := range 3 { // and at the start of the second
			d := &disk{left: before}
			v, _, err := Open(d, key, d, "a", false)
			if err != nil {
				t.Fatal(err)
			}
			done := 0 // states that anything could follow from
			for n := 1; n <= 4; n++ {
				if err := v.Save([]byte{byte(n)}); errors.Is(err, errKilled) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				done = n
			}
			if before < 8 { // whoever goes on after a failure must not get through
				d.left = 9
				if err := v.Save([]byte("more")); !errors.Is(err, errKilled) {
					t.Fatalf("a save after one that failed: %v", err)
				}
			}
			v.Close()
			d.left = after
			state, err := opened(d, key, d, "a", false)
			d.left = 100
			if err == nil {
				if got := append(state, 0)[0]; int(got) < done || int(got) != len(d.images) {
					t.Fatalf("killed after %d writes: state %d opens, %d was done of %d", before, got, done,
						len(d.images))
				}
				done = len(d.images) // it is sent again, and more follows
			} else if !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			for i, image := range d.images {
				if err := d.MemoryStore.Save(image); err != nil {
					t.Fatal(err)
				}
				number := d.number
				_, err := opened(d, key, d, "a", false)
				d.number = number
				if i+1 < done && !errors.Is(err, ErrOldState) {
					t.Errorf("killed after %d writes and %d: state %d opens after %d: %v", before, after,
						i+1, done, err)
				}
				if i+1 == len(d.images) && err != nil {
					t.Errorf("killed after %d writes and %d: the newest: %v", before, after, err)
				}
			}
		}
	}
}

// What cannot be opened is nobody's afterwards.
func TestStoreUnlockedOnFailure(t *testing.T) {
	store, key := new(MemoryStore), sealKey(t)
	if err := store.Save([]byte("other")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := opened(store, key, nil, "a", false); !errors.Is(err, ErrStore) {
			t.Errorf("%v", err)
		}
	}
	held, err := store.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := store.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil { // a second time
		t.Fatal(err)
	}
	if _, err := store.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("who closes twice gives free what is another's: %v", err)
	}
	_ = next.Close()
}

// Temporary files of killed processes are older states in whole: the next owner removes them,
// and none of another store.
func TestTemporariesSwept(t *testing.T) {
	dir := t.TempDir()
	name := func(s string) string { return filepath.Join(dir, s) }
	write := func(s string) {
		t.Helper()
		if err := os.WriteFile(name(s), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gone := []string{"p.1.new", "p.22.new", "p.submission.3.new", "p.model0.4.new", "p.counter.5.new"}
	keep := []string{"q.1.new", "pp.1.new", "p.Sum.1.new", "p.a.b.1.new", "p.new", "p.x.new"}
	for _, s := range append(slices.Clone(gone), keep...) {
		write(s)
	}
	other, err := FileStore(name("p.q")).Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, s := range []string{"p.q.1.new", "p.q.sum.1.new"} { // they are being written
		write(s)
		keep = append(keep, s)
	}
	store := FileStore(name("p"))
	held, err := store.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for _, s := range gone {
		if _, err := os.Lstat(name(s)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", s, err)
		}
	}
	for _, s := range keep {
		if _, err := os.Lstat(name(s)); err != nil {
			t.Errorf("%s of another is gone: %v", s, err)
		}
	}
	// Without the lock nothing is removed.
	write("p.1.new")
	if _, err := store.Lock(); !errors.Is(err, ErrLocked) {
		t.Fatal(err)
	}
	if _, err := os.Lstat(name("p.1.new")); err != nil {
		t.Errorf("who was refused has removed it: %v", err)
	}
}

// A job's stores keep what they kept: a FileStore locked by its owner gives what it was given.
func TestFileStore(t *testing.T) {
	store := FileStore(filepath.Join(t.TempDir(), "state"))
	held, err := store.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if b, err := store.Load(); b != nil || err != nil {
		t.Errorf("nothing: %q, %v", b, err)
	}
	if _, err := store.Get("long"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing long: %v", err)
	}
	for n := range 3 {
		state := fmt.Appendf(nil, "state %d", n)
		if err := store.Save(state); err != nil {
			t.Fatal(err)
		}
		if err := store.Put("long", bytes.NewReader(state)); err != nil {
			t.Fatal(err)
		}
		if b, err := store.Load(); !bytes.Equal(b, state) || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		long, err := store.Get("long")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(long); !bytes.Equal(b, state) || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		_ = long.Close()
	}
}

// A counter's file has a number twice.
func TestFileCounter(t *testing.T) {
	counter := FileCounter(filepath.Join(t.TempDir(), "counter"))
	if n, err := counter.Value(); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := counter.Advance(1 << 40); err != nil {
		t.Fatal(err)
	}
	if n, err := counter.Value(); n != 1<<40 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	// Whatever bit is flipped, the number stays; of what is cut, it does not become another.
	whole, err := os.ReadFile(string(counter))
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) (uint64, error) {
		t.Helper()
		if err := os.WriteFile(string(counter), b, 0o600); err != nil {
			t.Fatal(err)
		}
		return counter.Value()
	}
	for i := range whole {
		for bit := range 8 {
			flipped := slices.Clone(whole)
			flipped[i] ^= 1 << bit
			if n, err := read(flipped); n != 1<<40 || err != nil {
				t.Fatalf("byte %d, bit %d: %d, %v", i, bit, n, err)
			}
		}
		n, err := read(whole[:i])
		if err == nil != (i >= len(whole)/2) || err == nil && n != 1<<40 {
			t.Errorf("cut to %d bytes: %d, %v", i, n, err)
		}
		if err != nil && (!errors.Is(err, ErrStore) || errors.Is(err, ErrOldState) ||
			!strings.Contains(err.Error(), "the counter is damaged")) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
	both := slices.Clone(whole)
	both[0] ^= 1
	both[len(both)-1] ^= 1
	if n, err := read(both); !errors.Is(err, ErrStore) {
		t.Errorf("both slots are damaged: %d, %v", n, err)
	}
	newer := FileCounter(filepath.Join(t.TempDir(), "newer"))
	if err := newer.Advance(1<<40 + 1); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(string(newer))
	if err != nil {
		t.Fatal(err)
	}
	for _, mixed := range [][]byte{slices.Concat(b[:len(b)/2], whole[len(b)/2:]),
		slices.Concat(whole[:len(b)/2], b[len(b)/2:])} {
		if n, err := read(mixed); n != 1<<40+1 || err != nil {
			t.Errorf("of two numbers: %d, %v", n, err)
		}
	}
	if n, err := read(slices.Concat(whole[len(b)/2:], whole[:len(b)/2])); !errors.Is(err, ErrStore) {
		t.Errorf("slots in each other's place: %d, %v", n, err)
	}
}

// A bit of any file of a store is flipped, or a file is cut, gone or older: the newest state opens,
// or it is said why not, with a counter and without one. It is never another, and never none.
func TestFlip(t *testing.T) {
	count := map[string]int{}
	for saves := 1; saves <= 3; saves++ {
		flips(t, saves, count)
	}
	if count["named"] == 0 || count["harmless"] == 0 {
		t.Errorf("%v", count)
	}
	t.Logf("%v", count)
}

// flips damages the files of a store with so many states, one at a time.
func flips(t *testing.T, saves int, count map[string]int) {
	t.Helper()
	folder, key := t.TempDir(), sealKey(t)
	at := func(folder string) (FileStore, FileCounter) {
		return FileStore(filepath.Join(folder, "state")), FileCounter(filepath.Join(folder, "counter"))
	}
	store, counter := at(folder)
	v, _, err := Open(store, key, counter, "a", false)
	if err != nil {
		t.Fatal(err)
	}
	older := map[string][]byte{} // what the files were
	for n := range saves {
		for place := range places {
			b, err := store.LoadAt(place)
			if err != nil {
				t.Fatal(err)
			}
			older[fmt.Sprint("state.", place)] = b
		}
		if err := v.Save(fmt.Appendf(nil, "state %d", n+1)); err != nil {
			t.Fatal(err)
		}
	}
	v.Close()
	want, newest := fmt.Sprint("state ", saves), fmt.Sprint("state.", saves%places)
	try := func(name string, b []byte, counted bool) {
		t.Helper()
		err := os.Remove(filepath.Join(folder, name))
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if err == nil && b != nil {
			err = os.WriteFile(filepath.Join(folder, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		var by Counter
		if counted {
			by = counter
		}
		state, err := opened(store, key, by, "a", false)
		what := "harmless"
		switch {
		case err != nil && (errors.Is(err, ErrStore) || errors.Is(err, ErrOldState)):
			what = "named"
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case string(state) != want:
			what = "silent"
			t.Errorf("%s of %d bytes, counted %v: state %q", name, len(b), counted, state)
		}
		switch {
		case counted && what == "named" && name != newest && name != "counter":
			t.Errorf("%s: the counter knows that the state is the newest: %v", name, err)
		case counted && saves > 1 && name == newest && !errors.Is(err, ErrOldState):
			t.Errorf("%s: the one before opens: %v", name, err)
		}
		count[what]++
	}
	for _, name := range []string{"state.0", "state.1", "counter", "state.begun"} {
		whole, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, counted := range []bool{false, true} {
			for i := range whole {
				if name == "state.begun" { // nobody reads it
					break
				}
				for bit := range 8 {
					flipped := slices.Clone(whole)
					flipped[i] ^= 1 << bit
					try(name, flipped, counted)
				}
				try(name, whole[:i], counted)
			}
			if counted || name != newest { // else it is the store as it was then
				try(name, older[name], counted)
			}
			try(name, nil, counted)
			if err := os.WriteFile(filepath.Join(folder, name), whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Whose newest state is damaged and has no counter says so, and goes on from the one before if it
// says that the newest is lost. With a counter it begins without a state.
func TestNewestDamaged(t *testing.T) {
	for _, counted := range []bool{false, true} {
		folder, key := t.TempDir(), sealKey(t)
		file := FileStore(filepath.Join(folder, "state"))
		var counter Counter
		if counted {
			counter = FileCounter(filepath.Join(folder, "counter"))
		}
		v, _, err := Open(file, key, counter, "a", false)
		for _, text := range []string{"one", "two", "three"} {
			if err == nil {
				err = v.Save([]byte(text))
			}
		}
		v.Close()
		if err == nil {
			err = file.SaveAt(1, []byte("damaged"))
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = opened(file, key, counter, "a", false)
		if !errors.Is(err, ErrOldState) || !errors.Is(err, ErrStore) ||
			!strings.Contains(err.Error(), "there is number 2") {
			t.Errorf("counted %v: %v", counted, err)
		}
		v, state, err := Open(file, key, counter, "a", true)
		if err != nil || counted != (state == nil) || !counted && string(state) != "two" {
			t.Fatalf("counted %v, and it is lost: %q, %v", counted, state, err)
		}
		if err := v.Save([]byte("after")); err != nil {
			t.Fatal(err)
		}
		v.Close()
		if state, err := opened(file, key, counter, "a", false); string(state) != "after" || err != nil {
			t.Errorf("counted %v, after it: %q, %v", counted, state, err)
		}
	}
}

// A state that is gone is no beginning, also without a counter, but for who says that it is lost. A
// kill before the note leaves a state that opens, and the next save notes it.
func TestStateGone(t *testing.T) {
	key, file := sealKey(t), FileStore(filepath.Join(t.TempDir(), "state"))
	v, _, err := Open(file, key, nil, "a", false)
	if err != nil {
		t.Fatal(err)
	}
	if begun, err := file.Begun(); begun || err != nil {
		t.Errorf("before the first save: %v, %v", begun, err)
	}
	if err := v.Save([]byte("one")); err != nil {
		t.Fatal(err)
	}
	v.Close()
	if err := os.Remove(string(file) + ".begun"); err != nil {
		t.Fatal(err)
	}
	v, state, err := Open(file, key, nil, "a", false)
	if string(state) != "one" || err != nil {
		t.Fatalf("killed before the note: %q, %v", state, err)
	}
	if err := v.Save([]byte("two")); err != nil {
		t.Fatal(err)
	}
	v.Close()
	for place := range places {
		if err := os.Remove(string(file.at(place))); err != nil {
			t.Fatal(err)
		}
	}
	if state, err := opened(file, key, nil, "a", false); !errors.Is(err, ErrOldState) {
		t.Errorf("gone: %q, %v", state, err)
	}
	if state, err := opened(file, key, nil, "a", true); state != nil || err != nil {
		t.Errorf("gone, and lost: %q, %v", state, err)
	}
}

// errBroken is an error of what writes itself.
var errBroken = errors.New("broken")

// broken writes itself no further than its first byte.
type broken struct{}

func (broken) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write([]byte{1})
	return int64(n), errors.Join(err, errBroken)
}

// What is kept next to a state is found unchanged, or refused.
func TestVaultParts(t *testing.T) {
	file := FileStore(filepath.Join(t.TempDir(), "state"))
	for name, store := range map[string]Store{"memory": new(MemoryStore), "file": file} {
		v, _, err := Open(store, new(keyexchange.SealKey), nil, "a", false)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		if _, err := v.Get("model0", nil); !errors.Is(err, ErrStore) {
			t.Errorf("%s: nothing kept: %v", name, err)
		}
		digest, err := v.Put("model0", strings.NewReader("1 2 3"))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			from, err := v.Get("model0", digest)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(from); err != nil || string(b) != "1 2 3" {
				t.Errorf("%s: %q, %v", name, b, err)
			}
			if err := from.Close(); err != nil {
				t.Error(err)
			}
			// What does not write all of itself replaces nothing.
			if _, err = v.Put("model0", broken{}); !errors.Is(err, errBroken) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := v.Put("model0", strings.NewReader("1 2 4")); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Get("model0", digest); !errors.Is(err, ErrStore) {
			t.Errorf("%s: it was replaced: %v", name, err)
		}
	}
}

// A stored state has the bytes that it had when this test was written: version, number, nonce and
// box under the key 0 for "party 01".
func TestStoredBytes(t *testing.T) {
	const stored = "01000000000000000264ed7083285576eaa5b8f36173b348624e1a3fc5b1" +
		"3279cbb0145ae7af5a04568368539802662ae3fd8d97"
	b, err := hex.DecodeString(stored)
	if err != nil {
		t.Fatal(err)
	}
	store := new(MemoryStore)
	if err := store.Save(b); err != nil {
		t.Fatal(err)
	}
	state, err := opened(store, new(keyexchange.SealKey), nil, "party 01", false)
	if string(state) != "two" || err != nil {
		t.Errorf("%q, %v", state, err)
	}
}
