package party

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"path/filepath"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/training"
)

// Declared is the Trainer of a federation that declares the training. Make it with
// [NewDeclared].
type Declared struct {
	federation *federation.Federation
	training   *training.Training
	party      int
	rows       *learning.Dataset
	store      hushsum.FileStore
}

// variates are SCAFFOLD's of this party: those that hold, and those that will if the
// round of the training counts it.
type variates struct {
	Own, Next []float64
	Round     int
}

// NewDeclared makes the trainer of a party, by its number in the roster, on its rows. What
// the rule has it remember is a file in the folder. It fails with federation.ErrConfig if
// the federation declares no training or the rows are not of its form.
func NewDeclared(
	f *federation.Federation, party int, rows *learning.Dataset, folder string,
) (*Declared, error) {
	if n := f.Settled.Roster().Len(); party < 0 || party >= n {
		return nil, fmt.Errorf("%w: there is no party %d in a roster of %d", federation.ErrConfig, party,
			n)
	}
	training, err := f.Trained(rows)
	if err != nil {
		return nil, err
	}
	if training == nil {
		return nil, fmt.Errorf("%w: it declares no training; write [training]", federation.ErrConfig)
	}
	store := hushsum.FileStore(filepath.Join(folder, fileVariates))
	return &Declared{f, training, party, rows, store}, nil
}

// Train does what the federation declares.
func (d *Declared) Train(ctx context.Context, w *Work) (*Update, error) {
	s, err := d.federation.Standing(w.Model, w.File)
	if err != nil {
		return nil, err
	}
	var v variates
	if d.training.Stored() {
		if err := d.load(&v, s); err != nil {
			return nil, err
		}
	}
	values, next, err := d.training.Submit(ctx, s, d.party, d.rows, v.Own)
	if err != nil {
		return nil, err
	}
	if next != nil {
		v.Next, v.Round = next, s.Round
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(v); err != nil {
			return nil, err
		}
		if err := d.store.Save(b.Bytes()); err != nil {
			return nil, err
		}
	}
	return &Update{Values: values}, nil
}

// load reads the variates. Those that were to be hold if the party was counted in their
// round, which is what the server tells all.
func (d *Declared) load(v *variates, s *training.Standing) error {
	b, err := d.store.Load()
	if err != nil {
		return err
	}
	if b != nil {
		if err := gob.NewDecoder(bytes.NewReader(b)).Decode(v); err != nil {
			return fmt.Errorf("%w: variates: %w", ErrStored, err)
		}
	}
	if v.Round > 0 && s.Counted[d.party] == v.Round {
		v.Own = v.Next
	}
	v.Next, v.Round = nil, 0
	if v.Own != nil && len(v.Own) != len(s.Model) {
		return fmt.Errorf("%w: variates of %d weights", ErrStored, len(v.Own))
	}
	return nil
}
