package hushsum

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/store"
)

// partKeeper keeps what a participant, or a member of the committee, must not lose.
type partKeeper struct {
	vault    *store.Vault // nil without a store
	key      *keyexchange.SealKey
	accepted *consent.Accepted // nil of a member
	kept     map[string][]byte // digests of the objects in the vault
}

// partState holds what is saved.
type partState struct {
	Kept map[string][]byte
	Part []byte // of drive.Part.Save
}

// load makes the part of what is in its store.
func (k *partKeeper) load(
	s Store, counter Counter, owner string, settings drive.PartSettings,
) (part drive.Part, err error) {
	var state []byte
	k.vault, state, err = open(s, k.key, counter, owner, settings.Spent > 0)
	if err != nil {
		return nil, err
	}
	if state == nil {
		part, err = drive.NewPart(settings)
	} else {
		var in partState
		if err = gob.NewDecoder(bytes.NewReader(state)).Decode(&in); err == nil {
			k.kept = in.Kept
			part, err = drive.LoadPart(settings, k.key, in.Part)
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrStore, err)
		}
	}
	if err != nil {
		return nil, err
	}
	return part, k.count(part)
}

// Save saves what the part has decided, then has the party's book count what it spends.
func (k *partKeeper) Save(part drive.Part) error {
	if k.vault == nil {
		return k.count(part)
	}
	saved, err := part.Save(k.key)
	if err != nil {
		return err
	}
	next := partState{Kept: make(map[string][]byte), Part: saved.State}
	for _, name := range saved.Needed {
		next.Kept[name] = k.kept[name]
	}
	for _, o := range saved.Objects {
		if next.Kept[o.Name], err = k.vault.Put(o.Name, o.Body); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(next); err != nil {
		return err
	}
	if err := k.vault.Save(b.Bytes()); err != nil {
		return err
	}
	k.kept = next.Kept
	return k.count(part)
}

// count has the book count what has left, before it leaves.
func (k *partKeeper) count(part drive.Part) error {
	if k.accepted == nil {
		return nil
	}
	return k.accepted.Count(*part.Guard())
}

// Get opens an object that the last state needs. Without a store there is none, once its memory is
// used again.
func (k *partKeeper) Get(name string) (io.ReadCloser, error) {
	if k.vault == nil {
		return nil, fmt.Errorf("%w: there is no store that keeps the %s", ErrStore, name)
	}
	return k.vault.Get(name, k.kept[name])
}
