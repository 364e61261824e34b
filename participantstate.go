package hushsum

import (
	"bytes"
	"encoding/gob"
	"fmt"

	"github.com/hushsum/hushsum/drive"
)

// participantState holds what a participant saves.
type participantState struct {
	Kept  []byte // digest of the submission that is kept next to the state
	Party []byte // of drive.Part.Save
}

// save stores what the party has decided.
func (p *participant) save(r drive.Ready) error {
	if p.vault == nil || !r.Save {
		return nil
	}
	saved, err := p.party.Save(p.Key)
	for _, o := range saved.Objects {
		if err == nil {
			p.kept, err = p.vault.Put(o.Name, o.Body)
		}
	}
	var b bytes.Buffer
	if err == nil {
		err = gob.NewEncoder(&b).Encode(participantState{p.kept, saved.State})
	}
	if err == nil {
		err = p.vault.Save(b.Bytes())
	}
	if err != nil {
		return storeError{err}
	}
	return nil
}

// settings are those of the job, with what is this party's own.
func (p *participant) settings() (drive.PartSettings, error) {
	out, err := p.Job.Part(p.Identity, p.Random)
	out.Least, out.Spent, out.Shown = p.LeastNumber, uint64(p.Spent), p.Submitted
	return out, err
}

func (p *participant) load() error {
	settings, err := p.settings()
	if err != nil {
		return err
	}
	var b []byte
	p.vault, b, err = open(p.Store, p.Key, p.Counter,
		fmt.Sprintf("party %x", p.Identity.Public()), p.Spent > 0)
	if err != nil {
		return err
	}
	if b == nil {
		p.party, err = drive.NewPart(settings)
	} else {
		var state participantState
		if err = gob.NewDecoder(bytes.NewReader(b)).Decode(&state); err == nil {
			p.kept = state.Kept
			p.party, err = drive.LoadPart(settings, p.Key, state.Party)
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrStore, err)
		}
	}
	if err != nil {
		return err
	}
	return p.count(p.party.Guard())
}
