package hushsum

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/hushsum/hushsum/keyexchange"
)

// Errors of stores.
var (
	// ErrOldState: the Counter knows of a newer state than the stored one, or no state is stored and
	// it knows of one. To go on could use keys twice, and spend a budget twice. Bring the newest state
	// back. If it is lost for good, a participant says so with LeastNumber and Spent, a member helps
	// in later jobs only, and a coordinator begins another job, under another Name.
	ErrOldState = errors.New("hushsum: the newest saved state is missing")
	// ErrLocked: the store is in use elsewhere, in this process or another: every participant, member
	// and coordinator needs its own.
	ErrLocked = errors.New("hushsum: the store is in use elsewhere; stop that, or give each its own " +
		"store")
	// ErrStore: what is stored was changed, or sealed under another key or for another
	// name.
	ErrStore = errors.New("hushsum: the stored state cannot be opened")
)

// Store keeps the newest state of one participant or coordinator, as bytes that are
// sealed, versioned and numbered already.
//
// It may have the method
//
//	Lock() (io.Closer, error)
//
// too, which is called before all others and gives the caller the store until what it returns is
// closed. It fails with [ErrLocked] if the store is somebody else's. With a store without it, the
// caller has to make sure that two never use it at once.
type Store interface {
	// Save replaces the state. When it returns the state is durable: what follows from
	// it is sent to others next.
	Save(state []byte) error
	// Load returns the last saved state, nil if there is none.
	Load() ([]byte, error)

	// Put keeps something long next to the state, under a name of lower-case letters and digits. It
	// replaces what had the name before, which stays if Put fails. When Put returns, it is durable. It
	// is a model that all are sent, a sum under masks, or a message for the coordinator, and is not
	// sealed: the state has its digest.
	Put(name string, long io.WriterTo) error
	// Get opens what was last put. It fails with an error that is fs.ErrNotExist if there is nothing.
	Get(name string) (io.ReadCloser, error)
}

// MemoryStore is a [Store] that lasts as long as its process. The zero value is empty.
type MemoryStore struct {
	mutex sync.Mutex
	state []byte
	long  map[string][]byte
	owner *memoryOwner // nil: it is nobody's
}

// memoryOwner is whose a MemoryStore is.
type memoryOwner struct{ store *MemoryStore }

// Lock gives the caller the store. It fails with [ErrLocked].
func (m *MemoryStore) Lock() (io.Closer, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.owner != nil {
		return nil, ErrLocked
	}
	m.owner = &memoryOwner{m}
	return m.owner, nil
}

func (o *memoryOwner) Close() error {
	o.store.mutex.Lock()
	defer o.store.mutex.Unlock()
	if o.store.owner == o { // not, if it was closed before
		o.store.owner = nil
	}
	return nil
}

// Save replaces the state.
func (m *MemoryStore) Save(state []byte) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.state = slices.Clone(state)
	return nil
}

// Load returns the last saved state.
func (m *MemoryStore) Load() ([]byte, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Clone(m.state), nil
}

// Put keeps something long.
func (m *MemoryStore) Put(name string, long io.WriterTo) error {
	var b bytes.Buffer
	if _, err := long.WriteTo(&b); err != nil {
		return err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.long == nil {
		m.long = make(map[string][]byte)
	}
	m.long[name] = b.Bytes()
	return nil
}

// Get opens what was last put.
func (m *MemoryStore) Get(name string) (io.ReadCloser, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	b, found := m.long[name]
	if !found {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// Counter is a number that only grows, kept where a thief of the state, or anyone who
// restores a backup of it, cannot turn it back: in a trusted module, on another machine, or
// at least in another folder.
type Counter interface {
	// Value returns the number, 0 at first.
	Value() (uint64, error)
	// Advance sets the number. When it returns the number is durable.
	Advance(to uint64) error
}

// vault seals states under the owner's key for a store, numbered so that an older one
// is found.
type vault struct {
	store   Store
	key     *keyexchange.SealKey
	counter Counter // may be nil
	owner   string  // whose state it is
	number  uint64  // of the newest state
	held    io.Closer
	failed  error // the first of a write
}

// A stored state is version ‖ u64(number) ‖ box; both former are authenticated with the
// owner.
const (
	storeVersion = 1
	storeHead    = 1 + 8
)

func (v *vault) associated(head []byte) []byte {
	return fmt.Appendf(nil, "hushsum/2 store\n%s\n%s", v.owner, head)
}

// save seals the state and stores it, then sets the counter. Once it has failed it fails
// always: what is stored is not known any more, and nothing may follow from it.
func (v *vault) save(state []byte) error {
	if v.failed == nil {
		v.failed = v.write(state)
	}
	return v.failed
}

func (v *vault) write(state []byte) error {
	nonce, err := keyexchange.GenerateNonce(nil)
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint64([]byte{storeVersion}, v.number+1)
	box, err := keyexchange.Seal(&nonce, v.key, state, v.associated(head))
	if err != nil {
		return err
	}
	if err := v.store.Save(append(head, box...)); err != nil {
		return err
	}
	v.number++
	if v.counter == nil {
		return nil
	}
	return v.counter.Advance(v.number)
}

// load opens the newest state, nil if there is none. It fails with [ErrOldState] or
// [ErrStore]. lost consents to a start without the newest state: one that the counter misses,
// or that is older, is none.
func (v *vault) load(lost bool) ([]byte, error) {
	var newest uint64
	if v.counter != nil {
		var err error
		if newest, err = v.counter.Value(); err != nil {
			return nil, err
		}
	}
	b, err := v.store.Load()
	if err != nil {
		return nil, err
	}
	var state []byte
	if b != nil {
		if state, v.number, err = v.open(b); err != nil {
			return nil, err
		}
	}
	switch {
	case v.number < newest && lost:
		state, v.number = nil, newest
	case v.number < newest && b == nil:
		return nil, fmt.Errorf("%w: there is none, of %d; a participant whose state is lost says so "+
			"with LeastNumber and Spent", ErrOldState, newest)
	case v.number < newest:
		return nil, fmt.Errorf("%w: there is number %d, of %d; restore the newest, or say with "+
			"LeastNumber and Spent that it is lost", ErrOldState, v.number, newest)
	case v.number > newest && v.counter != nil:
		// A kill between the two leaves the state one ahead. What is sent from here on follows
		// from it, so from here on the one before must not open.
		if err := v.counter.Advance(v.number); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// open opens what was stored.
func (v *vault) open(b []byte) (state []byte, number uint64, err error) {
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

// put keeps something long and returns its digest, which belongs into the state that is
// saved next.
func (v *vault) put(name string, long io.WriterTo) ([]byte, error) {
	digest := sha256.New()
	if err := v.store.Put(name, &teed{long, digest}); err != nil {
		return nil, err
	}
	return digest.Sum(nil), nil
}

// teed writes what it writes to another writer too.
type teed struct {
	from io.WriterTo
	also io.Writer
}

func (t *teed) WriteTo(w io.Writer) (int64, error) {
	return t.from.WriteTo(io.MultiWriter(t.also, w))
}

// get opens what was kept, once it is found to have the digest. It fails with [ErrStore].
func (v *vault) get(name string, digest []byte) (io.ReadCloser, error) {
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

// openVault makes a store an owner's alone and returns the state in it, nil if there is none;
// without a store there is no vault either. The counter has the number of that state when it
// returns. lost is the owner's word that the newest state is lost: see load. The caller closes
// the vault.
func openVault(
	store Store, key *keyexchange.SealKey, counter Counter, owner string, lost bool,
) (*vault, []byte, error) {
	switch {
	case store == nil && counter != nil:
		return nil, nil, &ConfigError{Path: "Counter", Reason: "there is no Store that it counts for"}
	case store == nil:
		return nil, nil, nil
	case key == nil:
		return nil, nil, &ConfigError{Path: "Key", Reason: "a store needs a key to seal with"}
	}
	v := &vault{store: store, key: key, counter: counter, owner: owner}
	if s, ok := store.(interface{ Lock() (io.Closer, error) }); ok {
		var err error
		if v.held, err = s.Lock(); err != nil {
			return nil, nil, err
		}
	}
	b, err := v.load(lost)
	if err != nil {
		v.close()
		return nil, nil, err
	}
	return v, b, nil
}

// close gives the store free. A nil vault has none.
func (v *vault) close() {
	if v != nil && v.held != nil {
		_ = v.held.Close()
	}
}
