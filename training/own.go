package training

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// ErrVariates: the control variates that a party kept are of another training, or were changed.
var ErrVariates = errors.New("training: the kept control variates are unusable")

// Store keeps the control variates of one party, whose rule has it remember them: a
// hushsum.FileStore of its own, say.
type Store interface {
	Save(state []byte) error
	Load() ([]byte, error) // nil: nothing was saved
}

// memory is a Store for as long as the process lasts.
type memory []byte

func (m *memory) Save(state []byte) error {
	*m = state
	return nil
}

func (m *memory) Load() ([]byte, error) { return *m, nil }

// Own is a party's own part in a training, with its rows. It is not safe for concurrent use.
type Own struct {
	training *Training
	number   int
	rows     *learning.Dataset
	store    Store
}

// Party returns the party with a number in the roster. A store of nil lasts as long as the
// process: a party that is started again then goes on without control variates. It fails with a
// [job.ConfigError].
func (t *Training) Party(number int, rows *learning.Dataset, store Store) (*Own, error) {
	if number < 0 || number >= t.parties {
		return nil, &job.ConfigError{Path: "parties.count",
			Reason: fmt.Sprintf("there is no party %d among %d", number, t.parties),
			Advice: "give its number in the roster, from 0"}
	}
	if err := t.Fits(rows); err != nil {
		return nil, err
	}
	if store == nil {
		store = new(memory)
	}
	return &Own{t, number, rows, store}, nil
}

// variates are SCAFFOLD's of a party: those that hold, and those that will if the round of the
// training counts it.
type variates struct {
	Own, Next []float64
	Round     int
	Begun     Begun // with a band, what parts of are submitted
}

// Message trains, and returns what the party sends. It may be called again for a sum. It fails
// with what training fails with, with the Store's errors and with [ErrVariates].
func (p *Own) Message(ctx context.Context, s *Standing) (m job.Update[float64], err error) {
	var v variates
	keeps := p.training.Stored() || p.training.options.Band != nil
	if keeps {
		if v, err = p.load(s); err != nil {
			return m, err
		}
	}
	w, err := p.training.message(ctx, s, p.number, p.rows, &v)
	m = w.Message
	m.Trained = true
	if err != nil || w.Own == nil && w.Begun.Round == v.Begun.Round {
		return m, err
	}
	v.Next, v.Round, v.Begun = w.Own, s.Round, w.Begun
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		return m, err
	}
	return m, p.store.Save(b.Bytes())
}

// Submit returns what Message does, encoded.
func (p *Own) Submit(ctx context.Context, s *Standing) (values [][]uint64, err error) {
	m, err := p.Message(ctx, s)
	if err != nil {
		return nil, err
	}
	return p.training.settled.Encode(s.Public, m, nil)
}

// load reads the variates. Those that were to be hold if the party was counted in their
// round, as the server tells all.
func (p *Own) load(s *Standing) (v variates, err error) {
	b, err := p.store.Load()
	if err != nil {
		return v, err
	}
	if b != nil {
		if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&v); err != nil {
			return v, fmt.Errorf("%w: %w", ErrVariates, err)
		}
	}
	if v.Own == nil && v.Next == nil {
		return v, p.fits(s, v.Begun.Vector)
	}
	if v.Round > 0 && s.Counted[p.number] == v.Round {
		v.Own = v.Next
	}
	v.Next, v.Round = nil, 0
	return v, p.fits(s, v.Own)
}

// fits sees that what is kept is nothing, or of the model.
func (p *Own) fits(s *Standing, v []float64) error {
	if v != nil && len(v) != len(s.Model) {
		return fmt.Errorf("%w: they are of %d weights", ErrVariates, len(v))
	}
	return nil
}
