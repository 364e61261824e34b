package hushsum

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hushsum/hushsum/protocol"
)

// coordinatorState is what a coordinator saves. The model, and the sum of a round from its
// survivors on, are kept beside it.
type coordinatorState struct {
	Kept     stored
	Round    uint64
	Lost     int
	Fresh    [32]byte
	Begin    []byte
	Number   uint64
	Ledger   []byte
	Ended    bool
	InRow    int
	Stalled  bool
	Sessions []sessionState // present, forming; Number 0: none
	// Committee is an oneshotState, of a plan with a committee.
	Committee []byte
}

// stored says what is kept beside the state.
type stored struct {
	version uint64 // of the model: how often it has changed
	summed  uint64 // round of which the sum is kept; not saved

	Model   []byte // its digest; nil: it is the Coordinator's own
	Version uint64 // that was put last
}

type sessionState struct {
	Number uint64
	Stage  stage
	Server []byte // of protocol.Server.SaveParts
}

// Names of what is kept. A new model never replaces the one that the state on disk is with.
var modelNames = [2]string{"model0", "model1"}

const sumName = "sum"

func (c *coordinator) save() error {
	if c.vault == nil {
		return nil
	}
	if k := &c.kept; k.version != k.Version {
		digest, err := c.vault.put(modelNames[k.version%2], weights(c.model))
		if err != nil {
			return err
		}
		k.Model, k.Version = digest, k.version
	}
	state := coordinatorState{
		Kept:      c.kept,
		Round:     c.round,
		Lost:      c.lost,
		Begin:     c.begin,
		Number:    c.number,
		Ended:     c.ended,
		InRow:     c.inRow,
		Stalled:   c.stalled,
		Committee: c.committee,
	}
	if c.cast != nil {
		state.Fresh = c.cast.fresh
	}
	if c.ledger != nil {
		var err error
		if state.Ledger, err = c.ledger.MarshalJSON(); err != nil {
			return err
		}
	}
	for _, s := range []*session{c.present, c.forming} {
		var one sessionState
		if s != nil {
			b, sum, err := s.server.SaveParts(c.Key)
			if err == nil {
				err = c.keepSum(sum)
			}
			if err != nil {
				return err
			}
			one = sessionState{s.number, s.stage, b}
		}
		state.Sessions = append(state.Sessions, one)
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(state); err != nil {
		return err
	}
	return c.vault.save(b.Bytes())
}

// keepSum puts the sum of the round where it is durable, once.
func (c *coordinator) keepSum(sum io.WriterTo) error {
	if sum == nil || c.kept.summed == c.round {
		return nil
	}
	if err := c.vault.store.Put(sumName, sum); err != nil {
		return err
	}
	c.kept.summed = c.round
	return nil
}

func (c *coordinator) load() (err error) {
	if c.ledger, err = c.Plan.Ledger(); err != nil {
		return err
	}
	var b []byte
	c.vault, b, err = openVault(c.Store, c.Key, c.Counter,
		fmt.Sprintf("coordinator %x", c.Plan.digest), false)
	if err != nil {
		return err
	}
	var state coordinatorState
	if b != nil {
		if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&state); err != nil {
			return fmt.Errorf("%w: %w", ErrStore, err)
		}
	}
	if err := c.loadModel(state.Kept); err != nil || b == nil {
		return err
	}
	c.round, c.lost, c.begin = state.Round, state.Lost, state.Begin
	c.number, c.ended, c.committee = state.Number, state.Ended, state.Committee
	c.inRow, c.stalled, c.absent = state.InRow, state.Stalled, make(map[int]bool)
	c.cast = &broadcast{round: c.round, fresh: state.Fresh, model: c.model}
	if err := c.cast.settle(); err != nil {
		return err
	}
	if c.ledger != nil {
		if err := c.ledger.UnmarshalJSON(state.Ledger); err != nil {
			return fmt.Errorf("%w: %w", ErrStore, err)
		}
	}
	for i, to := range []**session{&c.present, &c.forming} {
		if i >= len(state.Sessions) || state.Sessions[i].Number == 0 {
			continue
		}
		if *to, err = c.loadSession(state.Sessions[i]); err != nil {
			return fmt.Errorf("%w: session %d: %w", ErrStore, state.Sessions[i].Number, err)
		}
	}
	return nil
}

// loadModel takes the model that is kept, or the one that the job begins with.
func (c *coordinator) loadModel(kept stored) error {
	length := c.Plan.plan.Length
	if kept.Model != nil {
		file, err := c.vault.get(modelNames[kept.Version%2], kept.Model)
		if err != nil {
			return err
		}
		r := newWeightsReader(length)
		_, err = io.Copy(r, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("%w: %w", ErrStore, err)
		}
		c.kept = kept
		c.kept.version = kept.Version
		c.model, err = r.end()
		return err
	}
	c.model = slices.Clone(c.Model)
	if c.model == nil {
		c.model = make([]float64, length)
	}
	if len(c.model) != length {
		return &ConfigError{Field: "Model",
			Reason: fmt.Sprintf("it has %d coordinates, the plan %d", len(c.model), length)}
	}
	c.kept.version = 1 // the first state is saved with it
	return nil
}

func (c *coordinator) loadSession(s sessionState) (*session, error) {
	var sum io.Reader
	if s.Stage == stageSigned || s.Stage == stageReveal {
		kept, err := c.vault.store.Get(sumName)
		if err != nil {
			return nil, err
		}
		defer kept.Close()
		sum = kept
	}
	server, err := protocol.ReadServer(c.Plan.Config(s.Number), c.Key, s.Server, sum)
	if err != nil {
		return nil, err
	}
	return &session{number: s.Number, server: server, stage: s.Stage, since: time.Now()}, nil
}
