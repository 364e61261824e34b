package host

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"io"
	"io/fs"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/store"
)

// keeping is a part with an object, which its state may need.
type keeping struct {
	drive.Part
	object string // that is new; "": none
	needed bool
}

func (k *keeping) Save(*keyexchange.SealKey) (s drive.Saved, err error) {
	if k.object != "" {
		s.Objects = []drive.Object{{Name: drive.SubmissionName, Body: bytes.NewBufferString(k.object)}}
	}
	if k.needed {
		s.Needed = []string{drive.SubmissionName}
	}
	return s, nil
}

// A vault keeps what a part's state needs, counts once that is durable, and opens a part where
// nothing was changed.
func TestPartVault(t *testing.T) {
	files, key := new(store.MemoryStore), &keyexchange.SealKey{1}
	settings := drive.PartSettings{
		Identity: ed25519.NewKeyFromSeed(make([]byte, 32)),
		Limits:   drive.Limits{Rounds: 4},
		Label:    "label",
		Least:    1,
		Spent:    2,
	}
	open := func(key *keyexchange.SealKey) (*store.Vault, drive.Part, *PartVault, error) {
		t.Helper()
		vault, state, err := store.Open(files, &keyexchange.SealKey{1}, nil, "owner", false)
		if err != nil {
			t.Fatal(err)
		}
		part, v, err := OpenPart(vault, key, state, settings)
		return vault, part, v, err
	}
	vault, part, v, err := open(key)
	if err != nil || part.Guard().Last() != 2 {
		t.Fatal(err)
	}
	var order []string
	v.Count = func(of drive.Part) error {
		if state, err := files.Load(); state == nil || err != nil {
			t.Errorf("it is counted before it is saved: %v", err)
		}
		order = append(order, "counted")
		return io.ErrClosedPipe
	}
	err = v.Save(part)
	if !errors.Is(err, io.ErrClosedPipe) || !slices.Equal(order, []string{"counted"}) {
		t.Errorf("%v, %q", err, order)
	}
	vault.Close()
	settings.Spent = 0
	vault, part, v, err = open(key)
	if err != nil || part.Guard().Last() != 2 {
		t.Fatal(err)
	}
	content := func() string {
		from, err := v.Get(drive.SubmissionName)
		if err != nil {
			return err.Error()
		}
		defer from.Close()
		b, _ := io.ReadAll(from)
		return string(b)
	}
	of := &keeping{object: "a", needed: true}
	if err := v.Save(of); err != nil || content() != "a" {
		t.Errorf("%v, it has %q", err, content())
	}
	of.object = ""
	if err := v.Save(of); err != nil || content() != "a" {
		t.Errorf("a state later: %v, it has %q", err, content())
	}
	if err := files.Put(drive.SubmissionName, bytes.NewBufferString("b")); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Get(drive.SubmissionName); !errors.Is(err, store.ErrStore) {
		t.Errorf("another one: %v", err)
	}
	if err := files.Drop(drive.SubmissionName); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Get(drive.SubmissionName); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	vault.Close()
	// The state is of no part.
	if _, _, _, err := open(key); !errors.Is(err, store.ErrStore) {
		t.Errorf("%v", err)
	}
}

// What else is saved with a state is there when it is opened, and stays until it is replaced.
func TestPartVaultAlso(t *testing.T) {
	files, key := new(store.MemoryStore), &keyexchange.SealKey{1}
	settings := drive.PartSettings{
		Identity: ed25519.NewKeyFromSeed(make([]byte, 32)),
		Limits:   drive.Limits{Rounds: 4},
		Label:    "label",
		Least:    1,
	}
	for n, c := range []struct {
		also      map[string][]byte
		err       error
		head, all string // of the last state, before this one
	}{
		{map[string][]byte{"head": []byte("1"), "book": []byte("b")}, nil, "", ""},
		{map[string][]byte{"head": []byte("2")}, nil, "1", "b"},
		{nil, nil, "2", "b"},
		{nil, fs.ErrInvalid, "2", "b"},
		{nil, nil, "2", "b"},
	} {
		vault, state, err := store.Open(files, key, nil, "owner", false)
		if err != nil {
			t.Fatal(err)
		}
		part, v, err := OpenPart(vault, key, state, settings)
		if err != nil {
			t.Fatal(err)
		}
		if string(v.Had("head")) != c.head || string(v.Had("book")) != c.all {
			t.Errorf("state %d has %q and %q", n, v.Had("head"), v.Had("book"))
		}
		v.Also = func() (map[string][]byte, error) { return c.also, c.err }
		if err := v.Save(part); !errors.Is(err, c.err) {
			t.Errorf("state %d: %v", n, err)
		}
		vault.Close()
	}
}
