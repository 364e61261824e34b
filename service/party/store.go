package party

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/internal/durable"
	"github.com/hushsum/hushsum/store"
)

// Errors of a party's folder.
var (
	// ErrLocked: another process uses the folder.
	ErrLocked = errors.New("party: another process takes part with this folder")
	// ErrStored: the state in the folder was changed, is sealed under another key or for another
	// federation or party; or the newest state is missing, which is store.ErrOldState too. Restore
	// the newest state or, if it is lost for good, declare that with Spent and LeastNumber.
	ErrStored = errors.New("party: the stored state is unusable")
)

// Files of a party's folder.
const (
	fileState      = "state"
	fileCounter    = "counter"
	fileVariates   = "variates"
	fileSubmission = fileState + "." + drive.SubmissionName
)

// Names of what is saved with a state.
const (
	keptHead = "head"
	keptBook = "book"
)

// Kinds of owners of folders.
const (
	kindParty  = "party"
	kindMember = "member"
)

// open opens the folder, whose owner is of a kind, and returns the state in it, nil if there is
// none. The caller closes the vault.
func (p *Party) open(kind string) (*store.Vault, []byte, error) {
	if p.Key == nil {
		return nil, nil, fmt.Errorf("%w: there is no key to seal it with", ErrStored)
	}
	if err := os.MkdirAll(p.Folder, 0o700); err != nil {
		return nil, nil, err
	}
	public, _ := p.Identity.Public().(ed25519.PublicKey)
	owner := fmt.Sprintf("%s\n%s\n%x", kind, p.Federation.ID, []byte(public))
	var files store.Store = store.FileStore(filepath.Join(p.Folder, fileState))
	var counter store.Counter = store.FileCounter(filepath.Join(p.Folder, fileCounter))
	if p.files != nil {
		files, counter = p.files(files, counter)
	}
	v, state, err := store.Open(files, p.Key, counter, owner, p.Spent > 0)
	switch {
	case errors.Is(err, store.ErrLocked):
		err = fmt.Errorf("%w: %s", ErrLocked, p.Folder)
	case errors.Is(err, store.ErrOldState):
		err = fmt.Errorf("%w: %w; restore the newest, or say with Spent and LeastNumber (--spent, "+
			"--least-number) that it is lost", ErrStored, err)
	case errors.Is(err, store.ErrStore):
		err = fmt.Errorf("%w: %w", ErrStored, err)
	case err == nil:
		// A file that a killed process left half written is an older state.
		err = durable.Sweep(p.Folder, func(name string) bool {
			return slices.Contains([]string{fileCounter, fileVariates}, name)
		})
	}
	if err != nil {
		v.Close()
		return nil, nil, err
	}
	return v, state, nil
}

// load makes the part of what is in the folder. The caller closes the vault.
func (r *running) load(kind string, settings drive.PartSettings) (*store.Vault, error) {
	vault, state, err := r.open(kind)
	if err != nil {
		return nil, err
	}
	settings.Least, settings.Spent = max(1, r.LeastNumber), uint64(r.Spent)
	if r.part, r.keeper, err = host.OpenPart(vault, r.Key, state, settings); err != nil {
		if errors.Is(err, store.ErrStore) {
			err = fmt.Errorf("%w: %w", ErrStored, err)
		}
		vault.Close()
		return nil, err
	}
	if r.accepted != nil && r.Spent == 0 {
		err = r.accepted.Had(r.keeper.Had(keptBook))
	}
	if err == nil {
		r.carrier.heads, err = r.loadHeads(r.keeper.Had(keptHead))
	}
	if errors.Is(err, store.ErrStore) {
		err = fmt.Errorf("%w: %w", ErrStored, err)
	}
	if err != nil {
		vault.Close()
		return nil, err
	}
	r.keeper.Also, r.keeper.Count = r.also, r.count
	return vault, nil
}

// also returns what is saved with the state: the newest head of the server's decisions, and the
// place in the party's book.
func (r *running) also() (map[string][]byte, error) {
	out := make(map[string][]byte)
	if r.carrier.heads != nil {
		out[keptHead] = r.carrier.heads.save()
	}
	if r.accepted == nil {
		return out, nil
	}
	place, err := r.accepted.Place()
	if place != nil {
		out[keptBook] = place
	}
	return out, err
}
