package party

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/service/federation"
	stores "github.com/hushsum/hushsum/store"
	"github.com/hushsum/hushsum/training"
)

// Declared is the Trainer of a federation that declares the training. Make one with [NewDeclared].
type Declared struct {
	federation *federation.Federation
	party      *training.Own
}

// NewDeclared returns the trainer of a party, by its number in the roster, on its rows. State that
// the rule keeps between rounds is a file in the folder. It fails with job.ErrConfig if the
// federation declares no training or the rows do not fit it.
func NewDeclared(
	f *federation.Federation, party int, rows *learning.Dataset, folder string,
) (*Declared, error) {
	if n := f.Settled.Roster().Len(); party < 0 || party >= n {
		return nil, fmt.Errorf("%w: there is no party %d in a roster of %d", job.ErrConfig, party,
			n)
	}
	training, err := f.Trained(rows)
	if err != nil {
		return nil, err
	}
	if training == nil {
		return nil, fmt.Errorf("%w: it declares no training; write [training]", job.ErrConfig)
	}
	own, err := training.Party(party, rows, stores.FileStore(filepath.Join(folder, fileVariates)))
	if err != nil {
		return nil, err
	}
	return &Declared{f, own}, nil
}

// Train trains as the federation declares.
func (d *Declared) Train(ctx context.Context, w *Work) (*Update, error) {
	s, err := d.federation.Standing(w.Round, w.Model, w.File)
	if err != nil {
		return nil, err
	}
	update := new(Update)
	if d.federation.Settled.Buffer() > 0 {
		update.Message = new(job.Update[float64])
		*update.Message, err = d.party.Message(ctx, s)
	} else {
		update.Values, err = d.party.Submit(ctx, s)
	}
	if errors.Is(err, training.ErrVariates) {
		err = fmt.Errorf("%w: %w", ErrStored, err)
	}
	if err != nil {
		return nil, err
	}
	return update, nil
}
