package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/record"
)

// This file has what the harness knows of package record.

// sealed is the key that all records of the harness are sealed with.
var sealed = keyexchange.SealKey{7, 5, 3}

// disk is a record on the files of a folder.
type disk struct {
	embedded *record.Embedded
	records  *record.Records
}

// start opens the record of a folder.
func start(ctx context.Context, folder string) (*disk, error) {
	e, err := record.StartEmbedded(ctx, record.EmbeddedOptions{Folder: folder, Name: "n"})
	if err != nil {
		return nil, err
	}
	r, err := record.Open(ctx, e.JS, 1, record.NewKeys(sealed))
	if err == nil {
		err = r.KeepIn(folder)
	}
	if err != nil {
		e.Close()
		return nil, err
	}
	return &disk{e, r}, nil
}

func (d *disk) close() error {
	err := d.records.Close()
	d.embedded.Close()
	return err
}

// create declares a federation.
func (d *disk) create(ctx context.Context, id string) error {
	return d.records.Create(ctx, record.Definition{ID: id, Text: []byte("text"),
		Roster: []byte("roster"), Created: time.Now()}, []byte("the first model"), nil)
}

// stored has what a decision stores.
type stored struct {
	Value   string
	Charged uint64
	Orders  int
	Model   *record.Ref
}

// holding is a claim.
type holding struct {
	*record.Hold
	stored
}

// errCut ends a decision as a kill does.
var errCut = errors.New("it was killed")

// claims has a node claim a federation, and read it as a leader does.
func (d *disk) claims(ctx context.Context, id, node string) (h *holding, named bool, err error) {
	hold, err := d.records.Claim(ctx, id, node)
	if err != nil {
		return nil, false, err
	}
	h = &holding{Hold: hold}
	err = h.load(ctx)
	for errors.Is(err, record.ErrMissing) {
		named = true
		begun, failed := hold.Back(ctx)
		if failed != nil {
			return nil, true, failed
		}
		if err = h.load(ctx); err == nil {
			h.Charged = max(h.Charged, begun)
		}
	}
	if err == nil && !named && h.Charged != hold.Round {
		err = fmt.Errorf("the state has %d rounds, and what names it %d", h.Charged, hold.Round)
	}
	return h, named, err
}

// load reads the state, and the model that it names.
func (h *holding) load(ctx context.Context) error {
	h.stored = stored{}
	b, err := h.State(ctx)
	if err != nil || b == nil {
		return err
	}
	if err := json.Unmarshal(b, &h.stored); err != nil {
		return err
	}
	if b, err = h.Get(ctx, h.Model); err != nil {
		return err
	}
	return ofModel(b, h.Value)
}

func modelOf(value string) []byte { return []byte("model of " + value) }

func ofModel(b []byte, value string) error {
	if string(b) != string(modelOf(value)) {
		return fmt.Errorf("%s has %q", value, b)
	}
	return nil
}

// decides records a decision. fault is called in each step of it.
func (h *holding) decides(ctx context.Context, to stored, fault func(step string)) (err error) {
	defer func() {
		if said := recover(); said == errCut {
			err = errCut
		} else if said != nil {
			panic(said)
		}
	}()
	h.Fault = fault
	before := h.Model
	if to.Model, err = h.Put(ctx, "model-"+to.Value, modelOf(to.Value)); err != nil {
		return err
	}
	b, err := json.Marshal(to)
	if err != nil {
		return err
	}
	h.Round = to.Charged
	if err := h.Decide(ctx, b, before); err != nil {
		return err
	}
	h.stored = to
	return nil
}

// reads reads the state of a federation, or its model too.
func (d *disk) reads(ctx context.Context, id string, model bool) (s stored, err error) {
	b, err := d.records.State(ctx, id)
	if err != nil || b == nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil || !model {
		return s, err
	}
	if b, err = d.records.Get(ctx, id, s.Model); err != nil {
		return s, err
	}
	return s, ofModel(b, s.Value)
}

// resultOf says what an error of the record means to whoever called.
func resultOf(err error) (r result, unnamed error) {
	switch {
	case err == nil:
		return ok, nil
	case errors.Is(err, errCut):
		return unknown, nil
	case errors.Is(err, record.ErrLost):
		return lost, nil
	case errors.Is(err, record.ErrRecord):
		return refused, nil
	}
	return unknown, err
}
