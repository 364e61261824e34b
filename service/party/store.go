package party

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/durable"
	"github.com/hushsum/hushsum/internal/lock"
	"github.com/hushsum/hushsum/keyexchange"
	stores "github.com/hushsum/hushsum/store"
)

// Errors of a party's folder.
var (
	// ErrLocked: another process uses the folder.
	ErrLocked = errors.New("party: another process takes part with this folder")
	// ErrStored: the state in the folder was changed, is sealed under another key or for another
	// federation or party; or the newest state is missing, which is stores.ErrOldState too. Restore
	// the newest state or, if it is lost for good, declare that with Spent and LeastNumber.
	ErrStored = errors.New("party: the stored state is unusable")
)

// saved holds the fields that a party saves.
type saved struct {
	Format int
	Number uint64 // of saves, to recognize an older copy
	Party  []byte // of drive.Part.Save
	Kept   []byte // digest of the submission that is kept next to the state
}

const savedFormat = 1

// Files of a party's folder.
const (
	fileState      = "state"
	fileCounter    = "counter"
	fileVariates   = "variates"
	fileSubmission = "submission"
)

// Kinds of owners of folders.
const (
	kindParty  = "party"
	kindMember = "member"
)

// sealing is the version of how a state is bound to its owner, whatever its format.
const sealing = 1

// store is a party's folder: its state, with a counter and the last submission next to it, and a
// lock.
type store struct {
	key        *keyexchange.SealKey
	owner      []byte
	state      stores.FileStore
	counter    stores.FileCounter
	submission string
	lock       io.Closer
	number     uint64
	kept       []byte // digest of the submission in the folder
	// fault, for tests, is called after each file is written: an error has the effect of killing
	// the process there.
	fault func(file string) error
}

// openStore locks a folder.
func openStore(
	folder string, key *keyexchange.SealKey, kind, id string, identity crypto.Signer,
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
	// A file that a killed process left half written is an older state.
	err = durable.Sweep(folder, func(name string) bool {
		return slices.Contains([]string{fileState, fileCounter, fileVariates, fileSubmission}, name)
	})
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	public, _ := identity.Public().(ed25519.PublicKey)
	return &store{
		key:        key,
		owner:      fmt.Appendf(nil, "hushsum/2 %s %d\n%s\n%x", kind, sealing, id, []byte(public)),
		state:      stores.FileStore(filepath.Join(folder, fileState)),
		counter:    stores.FileCounter(filepath.Join(folder, fileCounter)),
		submission: filepath.Join(folder, fileSubmission),
		lock:       held,
		fault:      func(string) error { return nil },
	}, nil
}

// Close releases the folder.
func (s *store) Close() { _ = s.lock.Close() }

// save writes the state, then the counter.
func (s *store) save(v *saved) error {
	v.Format, v.Number, v.Kept = savedFormat, s.number+1, s.kept
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
	if err := s.fault(fileState); err != nil {
		return err
	}
	if err := s.counter.Advance(s.number); err != nil {
		return err
	}
	return s.fault(fileCounter)
}

// keep writes a submission, whose digest goes into the state that is saved next. It needs no seal:
// the server is sent the same bytes.
func (s *store) keep(submission io.WriterTo) error {
	digest := sha256.New()
	if err := durable.Write(s.submission, &teed{submission, digest}); err != nil {
		return err
	}
	s.kept = digest.Sum(nil)
	return s.fault(fileSubmission)
}

// teed copies everything that it writes to another writer.
type teed struct {
	from io.WriterTo
	also io.Writer
}

func (t *teed) WriteTo(w io.Writer) (int64, error) {
	return t.from.WriteTo(io.MultiWriter(t.also, w))
}

// submitted reads the submission that the state names, of at most a given number of bytes. It fails
// with [ErrStored].
func (s *store) submitted(most int64) ([]byte, error) {
	file, err := os.Open(s.submission)
	if err != nil {
		return nil, fmt.Errorf("%w: the submission: %w", ErrStored, err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil, fmt.Errorf("%w: the submission: %w", ErrStored, err)
	}
	if digest := sha256.Sum256(b); !bytes.Equal(digest[:], s.kept) {
		return nil, fmt.Errorf("%w: the submission in the folder does not belong to the state", ErrStored)
	}
	return b, nil
}

// load reads the state, nil if there is none. lost is the party's word that the newest is lost: one
// that the counter finds missing, or older, then counts as none. When load returns the counter has
// the number of the state.
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
		const advice = "restore the newest, or say with Spent and LeastNumber (--spent, " +
			"--least-number) that it is lost"
		return nil, fmt.Errorf("%w: %w: there is number %d, of %d; %s", ErrStored, stores.ErrOldState,
			s.number, newest, advice)
	case s.number > newest:
		// A kill between the two leaves the state one ahead. Everything sent from here on follows
		// from it, so from here on the one before must not open.
		if err := s.counter.Advance(s.number); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// open opens a stored state.
func (s *store) open(box []byte) (*saved, error) {
	b, err := keyexchange.Open(s.key, box, s.owner)
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed, or sealed under another key, for another party or "+
			"another federation", ErrStored)
	}
	v := new(saved)
	err = gob.NewDecoder(bytes.NewReader(b)).Decode(v)
	if err != nil || v.Format != savedFormat {
		return nil, fmt.Errorf("%w: it has a format that this program does not know", ErrStored)
	}
	return v, nil
}

// save saves what the party has decided.
func (r *running) save() error {
	out, err := r.party.Save(r.Key)
	for _, o := range out.Objects {
		if err == nil {
			err = r.store.keep(o.Body)
		}
	}
	if err == nil {
		err = r.store.save(&saved{Party: out.State})
	}
	if err != nil {
		return localError{err}
	}
	return nil
}

// begin makes the party of what is in its folder.
func (r *running) begin(settings drive.PartSettings) error {
	v, err := r.store.load(r.Spent > 0)
	if err != nil {
		return err
	}
	settings.Least, settings.Spent = max(1, r.LeastNumber), uint64(r.Spent)
	if show := r.Submitted; show != nil {
		settings.Shown = func(round uint64, values [][]uint64) { show(int(round), values) }
	}
	if v == nil {
		if r.party, err = drive.NewPart(settings); err != nil || r.Spent == 0 {
			return err
		}
		return r.save() // so that the next start knows it
	}
	r.store.kept = v.Kept
	if r.party, err = drive.LoadPart(settings, r.Key, v.Party); err != nil {
		return fmt.Errorf("%w: %w", ErrStored, err)
	}
	return nil
}

// loadParty is begin for a party.
func (r *running) loadParty() error {
	settings, err := r.Federation.Settled.Part(r.Identity, r.random)
	if err != nil {
		return err
	}
	return r.begin(settings)
}
