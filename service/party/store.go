package party

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/internal/lock"
)

// Errors of a party's folder.
var (
	// ErrLocked: another process uses the folder.
	ErrLocked = errors.New("party: another process takes part with this folder")
	// ErrStored: the state in the folder was changed, is sealed under another key or for
	// another federation or party, or is older than the newest. Delete it: the party then
	// takes part again with the next session.
	ErrStored = errors.New("party: the stored state is of no use")
)

// saved is what a party saves.
type saved struct {
	Format             int
	Number             uint64 // of savings, to tell an older copy
	Series             []byte // sealed by protocol
	Present, Successor uint64
	Round              uint64
	Submitted          int
}

const savedFormat = 1

// store is a party's folder: its state, a counter beside it, and a lock.
type store struct {
	key     *keyexchange.SealKey
	owner   []byte
	state   hushsum.FileStore
	counter hushsum.FileCounter
	lock    *os.File
	number  uint64
}

// openStore locks a folder.
func openStore(folder string, key *keyexchange.SealKey, id string, identity crypto.Signer,
) (*store, error) {
	if key == nil {
		return nil, fmt.Errorf("%w: there is no key to seal it with", ErrStored)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	held, err := lock.Folder(folder)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrLocked, folder, err)
	}
	public, _ := identity.Public().(ed25519.PublicKey)
	return &store{
		key:     key,
		owner:   fmt.Appendf(nil, "hushsum/2 party %d\n%s\n%x", savedFormat, id, []byte(public)),
		state:   hushsum.FileStore(filepath.Join(folder, "state")),
		counter: hushsum.FileCounter(filepath.Join(folder, "counter")),
		lock:    held,
	}, nil
}

// Close gives the folder free.
func (s *store) Close() { _ = s.lock.Close() }

// save writes the state, then the counter.
func (s *store) save(v *saved) error {
	v.Format, v.Number = savedFormat, s.number+1
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		return err
	}
	nonce, err := keyexchange.GenerateNonce(nil)
	if err != nil {
		return err
	}
	box, err := keyexchange.Seal(&nonce, s.key, b.Bytes(), s.owner)
	if err != nil {
		return err
	}
	if err := s.state.Save(box); err != nil {
		return err
	}
	s.number++
	return s.counter.Advance(s.number)
}

// load reads the state, nil if there is none.
func (s *store) load() (*saved, error) {
	newest, err := s.counter.Value()
	if err != nil {
		return nil, err
	}
	box, err := s.state.Load()
	if err != nil || box == nil {
		s.number = newest
		return nil, err
	}
	b, err := keyexchange.Open(s.key, box, s.owner)
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed, or sealed under another key, for another party or "+
			"another federation", ErrStored)
	}
	v := new(saved)
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(v); err != nil || v.Format != savedFormat {
		return nil, fmt.Errorf("%w: it is of a format that this program does not know", ErrStored)
	}
	// A crash between the two can leave the state one ahead of the counter.
	if v.Number < newest {
		return nil, fmt.Errorf("%w: it is copy %d, the newest was %d", ErrStored, v.Number, newest)
	}
	s.number = v.Number
	return v, nil
}

func (r *running) save() error {
	series, err := r.series.SaveWithoutConfigs(r.Key)
	if err == nil {
		err = r.store.save(&saved{
			Series:    series,
			Present:   r.present,
			Successor: r.successor,
			Round:     r.round,
			Submitted: r.submitted,
		})
	}
	if err != nil {
		return localError{err}
	}
	return nil
}

func (r *running) load(label string) error {
	v, err := r.store.load()
	if err != nil {
		return err
	}
	if v == nil {
		r.series = protocol.NewClientSeries(label, 1, r.Identity, r.random)
		return nil
	}
	r.series, err = protocol.LoadClientSeriesWith(label, r.Identity, r.random, r.Key, v.Series,
		r.Federation.Config)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStored, err)
	}
	r.present, r.successor, r.round, r.submitted = v.Present, v.Successor, v.Round, v.Submitted
	return nil
}
