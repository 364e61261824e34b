package hushsum

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/transport"
)

// coordinatorState holds what a coordinator saves. The model, and what package drive keeps apart,
// are next to it.
type coordinatorState struct {
	Format int
	Kept   stored
	Put    kept
	Drive  []byte // of drive.Lead.Save
}

// stateFormat is the format of the states of all coordinators.
const stateFormat = 1

// saveState saves what a lead decided.
func (l *leader) saveState(d drive.Lead) error {
	if err := l.keepModel(); err != nil {
		return err
	}
	saved, err := d.Save(l.Key)
	if err != nil {
		return err
	}
	if err := l.keepObjects(l.Store, saved); err != nil {
		return err
	}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(coordinatorState{
		Format: stateFormat, Kept: l.kept, Put: l.put, Drive: saved.State,
	})
	if err != nil {
		return err
	}
	if err := l.vault.Save(b.Bytes()); err != nil {
		return err
	}
	return l.Store.Drop(l.put.Spent...)
}

// loadState makes the lead of what is saved, or of a job that begins.
func (l *leader) loadState(begins func(uint64, [32]byte) ([32]byte, error), objects Store) (
	d drive.Lead, cast *transport.Broadcast, err error,
) {
	settings, err := l.Job.Lead(job.Timing{StepTime: l.StepTime, At: func(t time.Time) drive.Time {
		return l.now() + drive.Time(time.Until(t))
	}})
	if err != nil {
		return nil, nil, err
	}
	settings.Broadcast = begins
	b, err := l.open()
	if err != nil {
		return nil, nil, err
	}
	if objects == nil {
		objects = l.Store
	}
	if objects != nil {
		settings.Stored = objects.Get
	}
	if b == nil {
		if err := l.loadModel(stored{}); err != nil {
			return nil, nil, err
		}
		d, err = drive.NewLead(settings, l.now())
		return d, nil, err
	}
	var state coordinatorState
	if err := readState(b, &state, &state.Format); err != nil {
		return nil, nil, err
	}
	l.put = state.Put
	if err := l.Store.Drop(l.put.Spent...); err != nil {
		return nil, nil, err
	}
	if err := l.loadModel(state.Kept); err != nil {
		return nil, nil, err
	}
	if d, err = drive.LoadLead(settings, l.Key, l.now(), state.Drive); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	status := d.Status()
	if status.Paused {
		d.Order(l.now(), drive.Order{Do: drive.Resume, Why: againRun})
	}
	cast = &transport.Broadcast{Round: status.Round, Fresh: status.Fresh, Model: l.model}
	return d, cast, cast.Settle()
}

func (c *coordinator) save() error {
	if c.vault == nil {
		return nil
	}
	return c.saveState(c.drive)
}

func (c *coordinator) load() (err error) {
	c.drive, c.cast, err = c.loadState(c.begins, nil)
	return err
}

// readState decodes a saved state, of which format is a field. It fails with [ErrStore].
func readState(b []byte, state any, format *int) error {
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(state); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	if *format != stateFormat {
		return fmt.Errorf("%w: it is of format %d, want %d", ErrStore, *format, stateFormat)
	}
	return nil
}
