package hushsum

import (
	"bytes"
	"encoding/gob"
	"fmt"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/masking"
)

// participantState holds what a participant saves.
type participantState struct {
	Kept  []byte // digest of the submission that is kept next to the state
	Party []byte // of drive.Party.State
}

// submissionName is that of what is kept.
const submissionName = "submission"

// save stores what the party has decided.
func (p *participant) save(r drive.Ready) error {
	if p.vault == nil || !r.Save {
		return nil
	}
	err := error(nil)
	if r.Submission != nil {
		p.kept, err = p.vault.Put(submissionName, r.Submission)
	}
	state := participantState{Kept: p.kept}
	if err == nil {
		state.Party, err = p.party.State(p.Key)
	}
	var b bytes.Buffer
	if err == nil {
		err = gob.NewEncoder(&b).Encode(state)
	}
	if err == nil {
		err = p.vault.Save(b.Bytes())
	}
	if err != nil {
		return storeError{err}
	}
	return nil
}

func (p *participant) load() error {
	limits, err := p.Job.Limits(p.Identity.Public())
	if err != nil {
		return err
	}
	config := drive.PartyConfig{
		Limits:   limits,
		Session:  p.Job.Config,
		Label:    p.Job.Label(),
		Identity: p.Identity,
		Random:   p.Random,
		After:    drive.Time(p.Job.SubmitAfter()),
		Luck:     p.Job.Hidden(),
		Least:    p.LeastNumber,
		Spent:    uint64(p.Spent),
	}
	if p.noisy() {
		config.Blank = p.blank
	}
	var b []byte
	p.vault, b, err = open(p.Store, p.Key, p.Counter,
		fmt.Sprintf("party %x", p.Identity.Public()), p.Spent > 0)
	if err != nil {
		return err
	}
	if b == nil {
		if p.party, err = drive.NewParty(config); err != nil {
			return err
		}
		return p.count(p.party.Guard())
	}
	var state participantState
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&state); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	p.kept = state.Kept
	p.party, err = drive.LoadParty(config, p.Key, state.Party)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	return p.count(p.party.Guard())
}

// blank writes what is submitted where there is no vector.
func (p *participant) blank(round uint64, v *masking.Vector) error {
	return p.shown(round, v, p.Job.Blank(v, p.Random))
}
