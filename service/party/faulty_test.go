package party

import (
	"io"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	stores "github.com/hushsum/hushsum/store"
)

// faulty are the files of a folder. fault is called after each of them is written: an error has the
// effect of killing the process there.
type faulty struct {
	stores.FileStore
	stores.Counter
	fault func(file string) error
}

// faults returns what Party.files takes.
func faults(
	fault func(file string) error,
) func(stores.Store, stores.Counter) (stores.Store, stores.Counter) {
	return func(s stores.Store, c stores.Counter) (stores.Store, stores.Counter) {
		f := &faulty{s.(stores.FileStore), c, fault}
		return f, f
	}
}

func (f *faulty) SaveAt(place int, state []byte) error {
	if err := f.FileStore.SaveAt(place, state); err != nil {
		return err
	}
	return f.fault(fileState)
}

func (f *faulty) Put(name string, long io.WriterTo) error {
	if err := f.FileStore.Put(name, long); err != nil {
		return err
	}
	return f.fault(fileState + "." + name)
}

func (f *faulty) Advance(to uint64) error {
	if err := f.Counter.Advance(to); err != nil {
		return err
	}
	return f.fault(fileCounter)
}

// opened opens the folder of a party, for as long as a test, unless it is closed before.
func opened(t *testing.T, p *Party) (v *stores.Vault, state []byte, err error) {
	t.Helper()
	v, state, err = p.open(kindParty)
	t.Cleanup(v.Close)
	return v, state, err
}

// ownerOf is a party of a federation with this identifier, with a folder.
func ownerOf(folder, id string, key *keyexchange.SealKey) *Party {
	f := &federation.Federation{ID: id}
	return &Party{Folder: folder, Key: key, Identity: seedOf(0), Federation: f}
}

// begins loads what a party or a member that starts loads, and saves what that has decided.
func begins(t *testing.T, r *running, kind string, settings drive.PartSettings) error {
	t.Helper()
	vault, err := r.load(kind, settings)
	if err != nil {
		return err
	}
	defer vault.Close()
	if ready, _ := r.part.Ready(); ready.Save {
		err = r.keeper.Save(r.part)
	}
	return err
}
