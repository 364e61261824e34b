package host

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"io"
	"maps"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/store"
)

// PartVault is a [Keeper] in a store: sealed states, and next to them the last submission, whose
// digest the state has.
type PartVault struct {
	// Count is called with what has been saved, before anything follows from it; nil: nobody counts.
	Count func(part drive.Part) error
	// Also returns what else is saved with the state, by name; what it does not name stays as it was.
	// nil: there is nothing else.
	Also func() (map[string][]byte, error)

	vault *store.Vault // nil: nothing is kept
	key   *keyexchange.SealKey
	kept  map[string][]byte // digests of the objects that the state needs, by name
	also  map[string][]byte // what else was saved
}

// savedPart holds the state of a part that a vault saves.
type savedPart struct {
	Format int
	Kept   map[string][]byte
	Also   map[string][]byte
	Part   []byte // of drive.Part.Save
}

// OpenPart makes the part that a state in a vault is of, or if that is nil a new one. key seals the
// keys in states. Without a vault nothing is kept. OpenPart fails with store.ErrStore, and with the
// errors of [drive.NewPart].
func OpenPart(
	vault *store.Vault, key *keyexchange.SealKey, state []byte, settings drive.PartSettings,
) (part drive.Part, v *PartVault, err error) {
	v = &PartVault{vault: vault, key: key}
	if state == nil {
		part, err = drive.NewPart(settings)
		return part, v, err
	}
	var in savedPart
	switch err = gob.NewDecoder(bytes.NewReader(state)).Decode(&in); {
	case err == nil && in.Format != format:
		err = fmt.Errorf("it is of format %d, want %d", in.Format, format)
	case err == nil:
		part, err = drive.LoadPart(settings, key, in.Part)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", store.ErrStore, err)
	}
	v.kept, v.also = in.Kept, in.Also
	return part, v, nil
}

// Had returns what was saved with the last state under a name, nil if nothing was.
func (v *PartVault) Had(name string) []byte { return v.also[name] }

// Save is a method of [Keeper].
func (v *PartVault) Save(part drive.Part) error {
	if v.vault != nil {
		if err := v.save(part); err != nil {
			return err
		}
	}
	if v.Count == nil {
		return nil
	}
	return v.Count(part)
}

func (v *PartVault) save(part drive.Part) error {
	saved, err := part.Save(v.key)
	if err != nil {
		return err
	}
	next := savedPart{Format: format, Kept: make(map[string][]byte), Part: saved.State}
	next.Also = make(map[string][]byte)
	maps.Copy(next.Also, v.also)
	if v.Also != nil {
		more, err := v.Also()
		if err != nil {
			return err
		}
		maps.Copy(next.Also, more)
	}
	for _, name := range saved.Needed {
		next.Kept[name] = v.kept[name]
	}
	for _, o := range saved.Objects {
		if next.Kept[o.Name], err = v.vault.Put(o.Name, o.Body); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(next); err != nil {
		return err
	}
	if err := v.vault.Save(b.Bytes()); err != nil {
		return err
	}
	v.kept, v.also = next.Kept, next.Also
	return nil
}

// Get is a method of [Keeper]. Without a vault there is no object once its memory is used again.
func (v *PartVault) Get(name string) (io.ReadCloser, error) {
	if v.vault == nil {
		return nil, fmt.Errorf("%w: there is no store that keeps the %s", store.ErrStore, name)
	}
	return v.vault.Get(name, v.kept[name])
}
