package host

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/store"
)

// Vault is a [Record] in a store: sealed states, and next to them objects, whose digests the state
// has.
type Vault struct {
	vault *store.Vault
	key   *keyexchange.SealKey
	in    saved
	model drive.Object // that the next state is with
}

// saved holds the state that a vault saves.
type saved struct {
	Format int
	Model  string            // the object that the model is
	Kept   map[string][]byte // digests of the objects that the state needs, by name
	Spent  []string          // objects that only an earlier state needed
	Lead   []byte            // of drive.Lead.Save
}

const format = 1

// OpenVault reads what a state in a vault says, nil of a job that begins. key seals the parts of
// states that drive seals. It fails with store.ErrStore.
func OpenVault(vault *store.Vault, key *keyexchange.SealKey, state []byte) (*Vault, error) {
	v := &Vault{vault: vault, key: key}
	if state == nil {
		return v, nil
	}
	if err := gob.NewDecoder(bytes.NewReader(state)).Decode(&v.in); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrStore, err)
	}
	if v.in.Format != format {
		return nil, fmt.Errorf("%w: it is of format %d, want %d", store.ErrStore, v.in.Format, format)
	}
	if err := vault.Drop(v.in.Spent...); err != nil { // it was killed before
		return nil, err
	}
	return v, nil
}

// Begins reports whether there is no state: the job begins.
func (v *Vault) Begins() bool { return v.in.Lead == nil }

// Lead restores the lead. It fails with store.ErrStore.
func (v *Vault) Lead(settings drive.Settings, now drive.Time) (drive.Lead, error) {
	lead, err := drive.LoadLead(settings, v.key, now, v.in.Lead)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrStore, err)
	}
	return lead, nil
}

// Get opens an object that the newest state needs, once it is found to be what was put.
func (v *Vault) Get(name string) (io.ReadCloser, error) {
	return v.vault.Get(name, v.in.Kept[name])
}

// Model opens the model that the newest state is with, and returns its digest.
func (v *Vault) Model() (digest []byte, body io.ReadCloser, err error) {
	body, err = v.Get(v.in.Model)
	return v.in.Kept[v.in.Model], body, err
}

// Adopt has the next state be with another model.
func (v *Vault) Adopt(model drive.Object) { v.model = model }

// Save is a method of [Record].
func (v *Vault) Save(_ context.Context, lead drive.Lead) error {
	of, err := lead.Save(v.key)
	if err != nil {
		return err
	}
	next := saved{Format: format, Model: v.in.Model, Kept: make(map[string][]byte), Lead: of.State}
	if v.model.Body != nil {
		next.Model, of.Objects = v.model.Name, append(of.Objects, v.model)
	}
	for _, o := range of.Objects {
		if next.Kept[o.Name] = v.in.Kept[o.Name]; next.Kept[o.Name] != nil {
			continue
		}
		if next.Kept[o.Name], err = v.vault.Put(o.Name, o.Body); err != nil {
			return err
		}
	}
	for _, name := range append(of.Needed, next.Model) {
		if next.Kept[name] == nil {
			next.Kept[name] = v.in.Kept[name]
		}
	}
	for name := range v.in.Kept {
		if next.Kept[name] == nil {
			next.Spent = append(next.Spent, name)
		}
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(next); err != nil {
		return err
	}
	if err := v.vault.Save(b.Bytes()); err != nil {
		return err
	}
	v.in, v.model.Body = next, nil
	return v.vault.Drop(next.Spent...)
}
