package hushsum

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hushsum/hushsum/keyexchange"
)

// Errors of stores.
var (
	// ErrOldState: the state that is stored is older than the newest that was saved. To
	// go on from it could use keys twice. Delete it: the party takes part again with the
	// next session.
	ErrOldState = errors.New("hushsum: the stored state is older than the newest that was saved")
	// ErrStore: what is stored was changed, or sealed under another key or for another
	// name.
	ErrStore = errors.New("hushsum: the stored state does not open")
)

// Store keeps the newest state of one participant or coordinator, as bytes that are
// sealed, versioned and numbered already.
type Store interface {
	// Save replaces the state. When it returns the state is durable: what follows from
	// it is sent to others next.
	Save(state []byte) error
	// Load returns the state that was saved last, nil if there is none.
	Load() ([]byte, error)

	// Put keeps something long beside the state, by a name of lower-case letters and
	// digits, in place of what had the name before: of a failure the old one is left. When
	// it returns it is durable. It is a model that all are sent, a sum under masks, or a
	// message for the coordinator, and is not sealed: the state has its digest.
	Put(name string, long io.WriterTo) error
	// Get opens what was put last. It fails with an error that is fs.ErrNotExist if there
	// is nothing.
	Get(name string) (io.ReadCloser, error)
}

// MemoryStore is a [Store] that lasts as long as its process. The zero value is empty.
type MemoryStore struct {
	mutex sync.Mutex
	state []byte
	long  map[string][]byte
}

// Save replaces the state.
func (m *MemoryStore) Save(state []byte) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.state = slices.Clone(state)
	return nil
}

// Load returns the state that was saved last.
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

// Get opens what was put last.
func (m *MemoryStore) Get(name string) (io.ReadCloser, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	b, found := m.long[name]
	if !found {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// Counter is a number that only grows, kept where a thief of the state, or who restores
// a backup of it, cannot turn it back: in a trusted module, on another machine, or at
// least in another folder.
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

// save seals the state and stores it.
func (v *vault) save(state []byte) error {
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
// [ErrStore].
func (v *vault) load() ([]byte, error) {
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
	if b == nil {
		v.number = newest
		return nil, nil
	}
	if len(b) < storeHead || b[0] != storeVersion {
		return nil, fmt.Errorf("%w: it has no head of version %d", ErrStore, storeVersion)
	}
	state, err := keyexchange.Open(v.key, b[storeHead:], v.associated(b[:storeHead]))
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed, or sealed under another key or for another owner",
			ErrStore)
	}
	// A crash between the two can leave the state one ahead of the counter.
	if v.number = binary.BigEndian.Uint64(b[1:]); v.number < newest {
		return nil, fmt.Errorf("%w: it is number %d of %d", ErrOldState, v.number, newest)
	}
	return state, nil
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

// openVault opens the vault of an owner and returns the state in it, nil if there is none;
// without a store there is no vault either.
func openVault(
	store Store, key *keyexchange.SealKey, counter Counter, owner string,
) (*vault, []byte, error) {
	if store == nil {
		return nil, nil, nil
	}
	if key == nil {
		return nil, nil, &ConfigError{Field: "Key", Reason: "a store takes a key to seal with"}
	}
	v := &vault{store: store, key: key, counter: counter, owner: owner}
	b, err := v.load()
	return v, b, err
}

// FileStore is a [Store] in the file of this name, and in files beside it that have the
// name of something long after a dot. A temporary file is written, and renamed. One
// process may use it at a time.
type FileStore string

// Save replaces the file, durably.
func (f FileStore) Save(state []byte) error {
	return writeDurably(string(f), bytes.NewReader(state))
}

// Put replaces the file of something long, durably.
func (f FileStore) Put(name string, long io.WriterTo) error {
	return writeDurably(string(f)+"."+name, long)
}

// Get opens the file of something long.
func (f FileStore) Get(name string) (io.ReadCloser, error) {
	return os.Open(string(f) + "." + name)
}

// Load reads the file, nil if there is none.
func (f FileStore) Load() ([]byte, error) {
	b, err := os.ReadFile(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// FileCounter is a [Counter] in the file of this name. It is as safe as the place of
// the file.
type FileCounter string

// Value reads the number.
func (c FileCounter) Value() (uint64, error) {
	b, err := os.ReadFile(string(c))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("%w: the counter has %d bytes, want 8", ErrStore, len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}

// Advance writes the number durably.
func (c FileCounter) Advance(to uint64) error {
	return writeDurably(string(c), bytes.NewReader(binary.BigEndian.AppendUint64(nil, to)))
}

// writeDurably replaces a file such that a crash leaves the old content or the new.
func writeDurably(path string, content io.WriterTo) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	if _, err = content.WriteTo(file); err != nil {
		return err
	}
	if err = file.Sync(); err != nil {
		return err
	}
	if err = file.Close(); err != nil {
		return err
	}
	if err = os.Rename(file.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = folder.Sync()
	return errors.Join(err, folder.Close())
}
