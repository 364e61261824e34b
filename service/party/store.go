package party

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/internal/durable"
	"github.com/hushsum/hushsum/internal/lock"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// Errors of a party's folder.
var (
	// ErrLocked: another process uses the folder.
	ErrLocked = errors.New("party: another process takes part with this folder")
	// ErrStored: the state in the folder was changed, is sealed under another key or for
	// another federation or party; or the newest is not there, which is hushsum.ErrOldState
	// too. Bring the newest back, or, if it is lost for good, say so with Spent and
	// LeastNumber.
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

// Files of a party's folder.
const (
	fileState    = "state"
	fileCounter  = "counter"
	fileVariates = "variates"
)

// store is a party's folder: its state, a counter beside it, and a lock.
type store struct {
	key     *keyexchange.SealKey
	owner   []byte
	state   hushsum.FileStore
	counter hushsum.FileCounter
	lock    io.Closer
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
	if errors.Is(err, lock.ErrHeld) {
		return nil, fmt.Errorf("%w: %s", ErrLocked, folder)
	}
	if err != nil {
		return nil, err
	}
	// What a process that was killed had half written is an older state.
	err = durable.Sweep(folder, func(name string) bool {
		return name == fileState || name == fileCounter || name == fileVariates
	})
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	public, _ := identity.Public().(ed25519.PublicKey)
	return &store{
		key:     key,
		owner:   fmt.Appendf(nil, "hushsum/2 party %d\n%s\n%x", savedFormat, id, []byte(public)),
		state:   hushsum.FileStore(filepath.Join(folder, fileState)),
		counter: hushsum.FileCounter(filepath.Join(folder, fileCounter)),
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

// load reads the state, nil if there is none. lost is the party's word that the newest is
// lost: one that the counter misses, or that is older, is then none. When it returns the
// counter has the number of the state.
func (s *store) load(lost bool) (*saved, error) {
	newest, err := s.counter.Value()
	if err != nil {
		return nil, err
	}
	box, err := s.state.Load()
	if err != nil {
		return nil, err
	}
	var v *saved
	if box != nil {
		if v, err = s.open(box); err != nil {
			return nil, err
		}
		s.number = v.Number
	}
	switch {
	case s.number < newest && lost:
		s.number = newest
		return nil, nil
	case s.number < newest:
		const advice = "bring the newest back, or say with Spent and LeastNumber (--spent, " +
			"--least-number) that it is lost"
		return nil, fmt.Errorf("%w: %w: there is number %d, of %d; %s", ErrStored, hushsum.ErrOldState,
			s.number, newest, advice)
	case s.number > newest:
		// A kill between the two leaves the state one ahead. What is sent from here on follows
		// from it, so from here on the one before must not open.
		if err := s.counter.Advance(s.number); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// open opens what was stored.
func (s *store) open(box []byte) (*saved, error) {
	b, err := keyexchange.Open(s.key, box, s.owner)
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed, or sealed under another key, for another party or "+
			"another federation", ErrStored)
	}
	v := new(saved)
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(v); err != nil || v.Format != savedFormat {
		return nil, fmt.Errorf("%w: it is of a format that this program does not know", ErrStored)
	}
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
	v, err := r.store.load(r.Spent > 0)
	if err != nil {
		return err
	}
	if v == nil {
		r.series = protocol.NewClientSeries(label, max(1, r.LeastNumber), r.Identity, r.random)
		r.submitted = r.Spent
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
