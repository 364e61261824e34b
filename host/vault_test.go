package host

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/store"
)

// files is a store of which a kill leaves the writes before it.
type files struct {
	store.MemoryStore
	long map[string]bool // what is in it
	left int             // writes until the kill; negative: there is none
}

var errKilled = errors.New("killed")

func (f *files) write() error {
	if f.left == 0 {
		return errKilled
	}
	f.left--
	return nil
}

func (f *files) Save(state []byte) error {
	if err := f.write(); err != nil {
		return err
	}
	return f.MemoryStore.Save(state)
}

func (f *files) Put(name string, long io.WriterTo) error {
	if err := f.write(); err != nil {
		return err
	}
	f.long[name] = true
	return f.MemoryStore.Put(name, long)
}

func (f *files) Drop(names ...string) error {
	for _, name := range names {
		if err := f.write(); err != nil {
			return err
		}
		delete(f.long, name)
		if err := f.MemoryStore.Drop(name); err != nil {
			return err
		}
	}
	return nil
}

// rounds is a lead that needs objects of the last two of its rounds.
type rounds struct {
	drive.Lead
	round, life int
}

func (r *rounds) Save(*keyexchange.SealKey) (out drive.Saved, err error) {
	out.State = fmt.Append(nil, r.round)
	for _, round := range []int{r.round - 1, r.round} {
		name := fmt.Sprint("batch", round)
		out.Needed = append(out.Needed, name)
		text := fmt.Sprint(name, " of life ", r.life)
		out.Objects = append(out.Objects, drive.Object{Name: name, Body: bytes.NewBufferString(text)})
	}
	return out, nil
}

// After a kill at any write the newest state opens with all that it needs, each object as it was
// put with that state, and nothing else is left once a further state is saved.
func TestVaultKilled(t *testing.T) {
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for kill := range 40 {
		f := &files{long: make(map[string]bool), left: kill}
		life := func(life int) (v *Vault, closed func()) {
			t.Helper()
			vault, state, err := store.Open(f, key, nil, "a", false)
			if err != nil {
				t.Fatal(err)
			}
			if v, err = OpenVault(vault, key, state); err != nil {
				t.Fatal(err)
			}
			return v, vault.Close
		}
		model := func(round int) drive.Object {
			return drive.Object{Name: fmt.Sprint("model", round),
				Body: bytes.NewBufferString(fmt.Sprint("the model of round ", round))}
		}
		saved := 0
		v, closed := life(1)
		for round := 1; round <= 4 && err == nil; round++ {
			if round%2 == 1 {
				v.Adopt(model(round))
			}
			if err = v.Save(ctx, &rounds{round: round, life: 1}); err == nil {
				saved = round
			}
		}
		err = nil
		closed()
		f.left = -1
		v, closed = life(2)
		at := 0
		if !v.Begins() {
			fmt.Sscan(string(v.in.Lead), &at)
		}
		if at < saved || at > saved+1 {
			t.Fatalf("killed at %d: state %d opens, and %d were saved", kill, at, saved)
		}
		if !v.Begins() { // with the model of the same round, or of the one before
			digest, body, err := v.Model()
			if err != nil || len(digest) == 0 || body.Close() != nil {
				t.Fatalf("killed at %d: the model of state %d: %v", kill, at, err)
			}
		}
		for name := range v.in.Kept {
			body, err := v.Get(name)
			if err != nil {
				t.Fatalf("killed at %d: %v", kill, err)
			}
			if b, err := io.ReadAll(body); err != nil || len(b) == 0 {
				t.Fatalf("killed at %d: %s is %q, %v", kill, name, b, err)
			}
		}
		v.Adopt(model(9))
		if err := v.Save(ctx, &rounds{round: 9, life: 2}); err != nil {
			t.Fatal(err)
		}
		want := []string{"batch8", "batch9", "model9"}
		for name := range f.long { // what was put and never named may be there until it is put again
			if at < 4 && slices.Contains([]string{fmt.Sprint("batch", at+1), fmt.Sprint("batch", at),
				fmt.Sprint("model", at+1)}, name) && v.in.Kept[name] == nil {
				delete(f.long, name)
			}
		}
		if got := slices.Sorted(maps.Keys(f.long)); !slices.Equal(got, want) {
			t.Errorf("killed at %d, with state %d: %q are left, want %q", kill, at, got, want)
		}
		closed()
	}
}

// An object that is not what was put with the state is refused, and so is a state of another
// format.
func TestVaultChanged(t *testing.T) {
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &files{long: make(map[string]bool), left: -1}
	vault, _, err := store.Open(f, key, nil, "a", false)
	if err != nil {
		t.Fatal(err)
	}
	defer vault.Close()
	v, err := OpenVault(vault, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Save(context.Background(), &rounds{round: 2}); err != nil {
		t.Fatal(err)
	}
	if err := f.Put("batch1", bytes.NewBufferString("another")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"batch1": store.ErrStore, "batch2": nil,
		"batch3": store.ErrStore} {
		if _, err := v.Get(name); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, format := range []int{0, format + 1} {
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(saved{Format: format}); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenVault(vault, key, b.Bytes()); !errors.Is(err, store.ErrStore) {
			t.Errorf("format %d: %v", format, err)
		}
	}
}
