package hushsum

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"io"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/transport"
)

// coordinatorState holds what a coordinator saves. The model, and a long sum of the round that is
// open, are kept next to it.
type coordinatorState struct {
	Format int
	Kept   stored
	Sum    keptSum
	Drive  []byte // of drive.Server.State
}

// stateFormat is the format of the states of all coordinators.
const stateFormat = 1

// keptSum says which sum is kept, and where.
type keptSum struct {
	Name string // of drive.Server.SumName; empty: none
	Slot int
}

// Names of sums. A new one never replaces the one that the state on disk is with.
var sumNames = [2]string{"sum0", "sum1"}

func (c *coordinator) save() error {
	if c.vault == nil {
		return nil
	}
	if err := c.keepModel(); err != nil {
		return err
	}
	of, sum, err := c.drive.State(c.Key)
	if err != nil {
		return err
	}
	if err := c.keepSum(sum); err != nil {
		return err
	}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(coordinatorState{
		Format: stateFormat, Kept: c.kept, Sum: c.summed, Drive: of,
	})
	if err != nil {
		return err
	}
	return c.vault.Save(b.Bytes())
}

// keepSum puts a long sum where it is durable, once.
func (c *coordinator) keepSum(sum io.WriterTo) error {
	if sum == nil {
		c.summed.Name = ""
		return nil
	}
	name := c.drive.SumName()
	if name == c.summed.Name {
		return nil
	}
	slot := 1 - c.summed.Slot
	if err := c.Store.Put(sumNames[slot], sum); err != nil {
		return err
	}
	c.summed = keptSum{name, slot}
	return nil
}

func (c *coordinator) load() error {
	config, err := c.config()
	if err != nil {
		return err
	}
	b, err := c.open()
	if err != nil {
		return err
	}
	if b == nil {
		if err := c.loadModel(stored{}); err != nil {
			return err
		}
		c.drive, err = drive.NewServer(config, c.now())
		return err
	}
	var state coordinatorState
	if err := readState(b, &state, &state.Format); err != nil {
		return err
	}
	if err := c.loadModel(state.Kept); err != nil {
		return err
	}
	if err := c.read(config, &state); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	status := c.drive.Status()
	if status.Paused {
		c.drive.Resume(c.now(), againRun)
	}
	c.cast = &transport.Broadcast{Round: status.Round, Fresh: status.Fresh, Model: c.model}
	return c.cast.Settle()
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

// read makes the server of a state.
func (c *coordinator) read(config drive.ServerConfig, state *coordinatorState) error {
	if state.Sum.Slot&^1 != 0 {
		return fmt.Errorf("its sum is in place %d", state.Sum.Slot)
	}
	c.summed = state.Sum
	var sum io.Reader
	if state.Sum.Name != "" {
		file, err := c.Store.Get(sumNames[state.Sum.Slot])
		if err != nil {
			return err
		}
		defer file.Close()
		sum = file
	}
	var err error
	c.drive, err = drive.ReadServer(config, c.Key, c.now(), state.Drive, sum)
	return err
}

// config returns what drive decides by: the job.
func (c *coordinator) config() (drive.ServerConfig, error) {
	ledger, err := c.Job.Ledger()
	when := c.Job.Time()
	out := drive.ServerConfig{
		Session:   c.Job.Config,
		Label:     c.Job.Label(),
		Rounds:    uint64(c.Job.Rounds()),
		Survivors: c.Job.MinSurvivors(),
		Colluders: c.Job.Colluders(),
		Every:     uint64(len(c.Job.Band())),
		Cost:      c.Job.Round(),
		Ledger:    ledger,
		Broadcast: c.begins,
		StepTime:  drive.Time(c.StepTime),
		Pace:      drive.Time(when.Pace),
		BeginWith: when.BeginWith,
		Sample:    c.Job.PerRound(),
		Draw:      c.Job.Draw,
	}
	if k := c.Job.Submissions(); k < c.Job.Rounds() {
		out.Submissions = uint64(k)
	}
	if !when.Start.IsZero() {
		out.Start = c.now() + drive.Time(time.Until(when.Start))
	}
	return out, err
}
