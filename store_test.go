package hushsum

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	v, b, err := openVault(store, key, counter, owner, lost)
	v.close()
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
		v, _, err := openVault(file, key, counter, "a", lost)
		if err != nil {
			t.Fatal(err)
		}
		defer v.close()
		if err := v.save([]byte(text)); err != nil {
			t.Fatal(err)
		}
		b, err := file.Load()
		if err != nil {
			t.Fatal(err)
		}
		return b
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
	put := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(string(file), b, 0o600); err != nil {
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
	if err := os.Remove(string(file)); err != nil {
		t.Fatal(err)
	}
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
			v, _, err := openVault(d, key, d, "a", false)
			if err != nil {
				t.Fatal(err)
			}
			done := 0 // states that anything could follow from
			for n := 1; n <= 4; n++ {
				if err := v.save([]byte{byte(n)}); errors.Is(err, errKilled) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				done = n
			}
			if before < 8 { // whoever goes on after a failure must not get through
				d.left = 9
				if err := v.save([]byte("more")); !errors.Is(err, errKilled) {
					t.Fatalf("a save after one that failed: %v", err)
				}
			}
			v.close()
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

// A store is one owner's: a second participant, member or coordinator is refused before it
// does anything, and a job that has ended gives it free.
func TestStoreLocked(t *testing.T) {
	j := newJob(t, testJob(), 7)
	name := filepath.Join(t.TempDir(), "state")
	for kind, store := range map[string]Store{"file": FileStore(name), "memory": new(MemoryStore)} {
		t.Run(kind, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			first, stop := context.WithCancel(ctx)
			defer stop()
			ended := make(chan error, 1)
			go func() {
				_, err := j.participant(0, store).Run(first)
				ended <- err
			}()
			_, link, err := j.memory.Accept(ctx) // it has opened its store
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close()
			for i := range 4 {
				if _, err := j.participant(i, store).Run(ctx); !errors.Is(err, ErrLocked) {
					t.Errorf("party %d: %v", i, err)
				}
			}
			if _, err := j.coordinator(store).Run(ctx); !errors.Is(err, ErrLocked) {
				t.Errorf("coordinator: %v", err)
			}
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			// Neither the first nor those that were refused have it.
			if _, err := opened(store, j.key, nil, "a", false); err != nil {
				t.Errorf("after the end: %v", err)
			}
		})
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

// A party whose state is gone does not start anew by itself, as its coordinator does not.
// With its owner's word it does, with more than a number that it could have had.
func TestLostState(t *testing.T) {
	j := newJob(t, testJob(), 7)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	counter := new(disk)
	counter.number = 5
	p := j.participant(0, new(MemoryStore))
	p.Counter = counter
	if _, err := p.Run(ctx); !errors.Is(err, ErrOldState) {
		t.Errorf("a party: %v", err)
	}
	c := j.coordinator(new(MemoryStore))
	c.Counter = counter
	if _, err := c.Run(ctx); !errors.Is(err, ErrOldState) {
		t.Errorf("a coordinator: %v", err)
	}
	var field *ConfigError
	for _, spent := range []int{-1, j.settled.Rounds() + 1} {
		p.Spent, p.LeastNumber = spent, 1
		if _, err := p.Run(ctx); !errors.As(err, &field) || field.Path != "Spent" {
			t.Errorf("%d rounds: %v", spent, err)
		}
	}
	p.Spent, p.LeastNumber = 2, 0
	if _, err := p.Run(ctx); !errors.As(err, &field) || field.Path != "LeastNumber" {
		t.Errorf("without a number: %v", err)
	}
	p.LeastNumber = 7
	run, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _, _ = p.Run(run) }()
	_, link, err := j.memory.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	hello, err := link.Receive(ctx)
	if err != nil || !strings.Contains(string(hello), `"least":7`) {
		t.Errorf("%q, %v", hello, err)
	}
}

// A counter without a store counts nothing.
func TestCounterAlone(t *testing.T) {
	var field *ConfigError
	_, err := opened(nil, nil, new(disk), "a", false)
	if !errors.As(err, &field) || field.Path != "Counter" {
		t.Errorf("%v", err)
	}
	_, err = opened(new(MemoryStore), nil, nil, "a", false)
	if !errors.As(err, &field) || field.Path != "Key" {
		t.Errorf("%v", err)
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
