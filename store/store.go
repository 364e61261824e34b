package store

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"
)

// Errors of stores.
var (
	// ErrOldState: the Counter knows of a newer state than the stored one, or no state is stored and
	// it knows of one. To go on could use keys twice, and spend a budget twice. Bring the newest state
	// back; whoever has lost it for good opens the store with that word.
	ErrOldState = errors.New("store: the newest saved state is missing")
	// ErrLocked: the store is in use elsewhere, in this process or another: every owner needs its own.
	ErrLocked = errors.New("store: in use elsewhere; stop that, or give each a store of its own")
	// ErrStore: what is stored was changed, or sealed under another key or for another owner.
	ErrStore = errors.New("store: the stored state cannot be opened")
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
// caller has to make sure that two never use it at once. And it may have the methods
//
//	Begin() error
//	Begun() (bool, error)
//
// The first notes, durably, that there is a state, and is called once a state is saved: a state
// that is missing fails with [ErrOldState] then, also without a Counter. And the methods
//
//	SaveAt(place int, state []byte) error
//	LoadAt(place int) ([]byte, error)
//
// are called in place of Save and Load with places 0 and 1, in turn: what damages the newest state
// leaves the one before, and an error says which of them is there.
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
	// Drop removes what was put under the names. A name under which there is nothing is no error.
	Drop(names ...string) error
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

// Drop removes what was put.
func (m *MemoryStore) Drop(names ...string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, name := range names {
		delete(m.long, name)
	}
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
