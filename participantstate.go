package hushsum

import (
	"bytes"
	"encoding/gob"
	"fmt"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// participantState holds what a participant saves. Least and Clients come from the releases that
// counted nothing.
type participantState struct {
	Least   uint64
	Clients []clientState
	Kept    []byte // digest of the submission that is kept next to the state
	Party   []byte // of drive.Party.State
}

// submissionName is that of what is kept.
const submissionName = "submission"

type clientState struct {
	Number uint64
	State  []byte // of protocol.Client.Save
}

// save stores what the party has decided.
func (p *participant) save(r drive.Ready) error {
	if p.vault == nil || !r.Save {
		return nil
	}
	err := error(nil)
	if r.Submission != nil {
		p.kept, err = p.vault.put(submissionName, r.Submission)
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
		err = p.vault.save(b.Bytes())
	}
	if err != nil {
		return storeError{err}
	}
	return nil
}

func (p *participant) load() error {
	limits, err := LimitsOf(p.Job, p.Identity.Public())
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
	p.vault, b, err = openVault(p.Store, p.Key, p.Counter,
		fmt.Sprintf("party %x", p.Identity.Public()), p.Spent > 0)
	if err != nil {
		return err
	}
	if b == nil {
		p.party, err = drive.NewParty(config)
		return err
	}
	var state participantState
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&state); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	p.kept = state.Kept
	if state.Party != nil {
		p.party, err = drive.LoadParty(config, p.Key, state.Party)
	} else {
		p.party, err = p.loadSessions(config, &state)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	return nil
}

// blank writes what is submitted where there is no vector.
func (p *participant) blank(round uint64, v *masking.Vector) error {
	return p.shown(round, v, p.Job.Blank(v, p.Random))
}

// loadSessions makes the party of a state of a release that counted nothing. What the present
// session has had of rounds counts as spent.
func (p *participant) loadSessions(
	config drive.PartyConfig, state *participantState,
) (*drive.Party, error) {
	var clients []*protocol.Client
	for _, s := range state.Clients {
		c, err := protocol.LoadClient(config.Session(s.Number), p.Identity, p.Random, p.Key, s.State)
		if err != nil {
			return nil, fmt.Errorf("session %d: %w", s.Number, err)
		}
		clients = append(clients, c)
	}
	// A session that is set up may be the present one; of those between, none has begun.
	var present, successor *protocol.Client
	if n := len(clients); n > 0 && clients[0].Enrolled() != nil {
		present, clients = clients[0], clients[1:]
	}
	if n := len(clients); n > 0 {
		successor = clients[n-1]
	}
	if present != nil {
		round, due := present.Due()
		if due { // it has not submitted in this one
			round--
		}
		config.Spent = min(max(config.Spent, round), config.Limits.Rounds)
	}
	series, err := protocol.ResumeClientSeries(config.Label, max(state.Least, config.Least),
		p.Identity, p.Random, present, successor)
	if err != nil {
		return nil, err
	}
	return drive.ResumeParty(config, series)
}
