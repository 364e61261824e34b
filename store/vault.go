package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
)

// Vault seals states under the owner's key for a [Store], numbered so that an older one is found.
type Vault struct {
	store   Store
	key     *keyexchange.SealKey
	counter Counter // may be nil
	owner   string  // whose state it is
	number  uint64  // of the newest state
	begun   bool    // the store knows that there is a state
	held    io.Closer
	failed  error // the first of a write
}

// Open makes a store an owner's alone and returns the state in it, nil if there is none. counter
// may be nil; else it has the number of that state when Open returns. lost is the owner's word that
// the newest state is lost for good: one that the counter misses, or that is older, is none then.
// Open fails with [ErrLocked], [ErrOldState] or [ErrStore]. The caller closes the vault.
func Open(
	store Store, key *keyexchange.SealKey, counter Counter, owner string, lost bool,
) (_ *Vault, state []byte, err error) {
	v := &Vault{store: store, key: key, counter: counter, owner: owner}
	if s, ok := store.(interface{ Lock() (io.Closer, error) }); ok {
		if v.held, err = s.Lock(); err != nil {
			return nil, nil, err
		}
	}
	if state, err = v.load(lost); err != nil {
		v.Close()
		return nil, nil, err
	}
	return v, state, nil
}

// Close gives the store free. A nil vault has none.
func (v *Vault) Close() {
	if v != nil && v.held != nil {
		_ = v.held.Close()
	}
}

// A stored state is version ‖ u64(number) ‖ box; both former are authenticated with the
// owner.
const (
	storeVersion = 1
	storeHead    = 1 + 8
)

func (v *Vault) associated(head []byte) []byte {
	return fmt.Appendf(nil, labels.Store+"\n%s\n%s", v.owner, head)
}

// Save seals the state and stores it, then sets the counter. Once Save has failed it fails always:
// nobody knows any more what is stored, and nothing may follow from it.
func (v *Vault) Save(state []byte) error {
	if v.failed == nil {
		v.failed = v.write(state)
	}
	return v.failed
}

func (v *Vault) write(state []byte) error {
	if _, ok := v.store.(placer); ok && v.number == 0 {
		// The other place is never empty, so that a state that is gone leaves a gap.
		if err := v.seal(0, nil); err != nil {
			return err
		}
	}
	if err := v.seal(v.number+1, state); err != nil {
		return err
	}
	v.number++
	if s, ok := v.store.(beginner); ok && !v.begun {
		if err := s.Begin(); err != nil {
			return err
		}
		v.begun = true
	}
	if v.counter == nil {
		return nil
	}
	return v.counter.Advance(v.number)
}

// seal stores a state of a number, where the store has two places in turn.
func (v *Vault) seal(number uint64, state []byte) error {
	nonce, err := keyexchange.GenerateNonce(nil)
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint64([]byte{storeVersion}, number)
	box, err := keyexchange.Seal(&nonce, v.key, state, v.associated(head))
	if err != nil {
		return err
	}
	if s, ok := v.store.(placer); ok {
		return s.SaveAt(int(number%places), append(head, box...))
	}
	return v.store.Save(append(head, box...))
}

// load opens the newest state, nil if there is none, as [Open] says.
func (v *Vault) load(lost bool) ([]byte, error) {
	var newest uint64
	if v.counter != nil {
		var err error
		if newest, err = v.counter.Value(); err != nil {
			return nil, err
		}
	}
	state, doubt, err := v.stored()
	if err != nil {
		return nil, err
	}
	begun, err := v.began()
	if err != nil {
		return nil, err
	}
	switch none := v.number == 0; {
	case v.number < newest && lost:
		state, v.number = nil, newest
	case v.number < newest && none:
		return nil, fmt.Errorf("%w: there is none, of %d", ErrOldState, newest)
	case begun && none && !lost:
		return nil, fmt.Errorf("%w: there is none, and there was one", ErrOldState)
	case v.number < newest && doubt != nil:
		return nil, fmt.Errorf("%w: there is number %d, of %d, and %w; restore the newest", ErrOldState,
			v.number, newest, doubt)
	case v.number < newest:
		return nil, fmt.Errorf("%w: there is number %d, of %d; restore the newest", ErrOldState,
			v.number, newest)
	case doubt != nil && newest == 0 && !lost:
		return nil, fmt.Errorf("%w: there is number %d, and %w, which may be newer: restore it",
			ErrOldState, v.number, doubt)
	case v.number > newest && v.counter != nil:
		// A kill between the two leaves the state one ahead. What is sent from here on follows
		// from it, so from here on the one before must not open.
		if err := v.counter.Advance(v.number); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// beginner is a store that knows whether it ever had a state: its absence is no beginning then.
type beginner interface {
	Begin() error
	Begun() (bool, error)
}

// began reports whether the store says that it had a state.
func (v *Vault) began() (bool, error) {
	s, ok := v.store.(beginner)
	if !ok {
		return false, nil
	}
	return s.Begun()
}

// placer is a store with two places for states: what damages the newest leaves the one before.
type placer interface {
	SaveAt(place int, state []byte) error
	LoadAt(place int) ([]byte, error)
}

const places = 2

// stored opens the newest state that opens, sets its number, and says why there may be a newer one.
// It fails with [ErrStore] if something is stored and nothing opens.
func (v *Vault) stored() (state []byte, doubt, err error) {
	s, ok := v.store.(placer)
	if !ok {
		b, err := v.store.Load()
		if err != nil || b == nil {
			return nil, nil, err
		}
		state, v.number, err = v.unseal(b)
		return state, nil, err
	}
	var found [places]uint64
	for place := range places {
		b, err := s.LoadAt(place)
		if err != nil {
			return nil, nil, err
		}
		if b == nil {
			continue
		}
		one, number, err := v.unseal(b)
		if err == nil && int(number%places) != place {
			err = fmt.Errorf("%w: it is where another one belongs", ErrStore)
		}
		if err != nil {
			doubt = fmt.Errorf("its file %d is damaged: %w", place, err)
			continue
		}
		if found[place] = number + 1; number > v.number {
			state, v.number = one, number
		}
	}
	switch {
	case v.number == 0 && doubt != nil:
		return nil, nil, doubt
	case v.number > 0 && doubt == nil && min(found[0], found[1]) != v.number:
		doubt = fmt.Errorf("%w: its other file is missing, or is an older one", ErrStore)
	}
	return state, doubt, nil
}

// unseal opens what was stored.
func (v *Vault) unseal(b []byte) (state []byte, number uint64, err error) {
	if len(b) < storeHead || b[0] != storeVersion {
		return nil, 0, fmt.Errorf("%w: it has no head of version %d", ErrStore, storeVersion)
	}
	state, err = keyexchange.Open(v.key, b[storeHead:], v.associated(b[:storeHead]))
	if err != nil {
		return nil, 0, fmt.Errorf("%w: it was changed, or sealed under another key or for another owner",
			ErrStore)
	}
	return state, binary.BigEndian.Uint64(b[1:]), nil
}

// Put keeps something long and returns its digest, which belongs into the state that is saved next.
func (v *Vault) Put(name string, long io.WriterTo) ([]byte, error) {
	digest := sha256.New()
	if err := v.store.Put(name, &teed{long, digest}); err != nil {
		return nil, err
	}
	return digest.Sum(nil), nil
}

// Drop removes objects that no state needs any more.
func (v *Vault) Drop(names ...string) error { return v.store.Drop(names...) }

// teed writes what it writes to another writer too.
type teed struct {
	from io.WriterTo
	also io.Writer
}

func (t *teed) WriteTo(w io.Writer) (int64, error) {
	return t.from.WriteTo(io.MultiWriter(t.also, w))
}

// Get opens what was kept, once it is found to have the digest. It fails with [ErrStore].
func (v *Vault) Get(name string, digest []byte) (io.ReadCloser, error) {
	from, err := v.store.Get(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrStore, name, err)
	}
	found := sha256.New()
	_, err = io.Copy(found, from)
	if err := errors.Join(err, from.Close()); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrStore, name, err)
	}
	if !bytes.Equal(found.Sum(nil), digest) {
		return nil, fmt.Errorf("%w: %s is not what was kept with the state", ErrStore, name)
	}
	return v.store.Get(name)
}
