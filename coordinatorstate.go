package hushsum

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"io"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/frames"
	"github.com/hushsum/hushsum/protocol"
)

// coordinatorState holds what a coordinator saves. The model, and a long sum of the round that is
// open, are kept next to it.
type coordinatorState struct {
	Format int
	Kept   stored
	Sum    keptSum
	// Sessions comes from drive.Server.State. Earlier releases have something else of this name,
	// and so refuse the state.
	Sessions []byte
}

const coordinatorFormat = 2

// keptSum says which sum is kept, and where.
type keptSum struct {
	Name string // of drive.Server.SumName; empty: none
	Slot int
}

// Names of sums. A new one never replaces the one that the state on disk is with. The earlier
// name is that of earlierState.
var sumNames = [2]string{"sum0", "sum1"}

const earlierSumName = "sum"

// earlierState holds what releases saved whose coordinator did not have package drive, with
// sessions or with a committee.
type earlierState struct {
	Kept     stored
	Round    uint64
	Lost     int
	Fresh    [32]byte
	Begin    []byte
	Number   uint64 // the largest of any session
	Ledger   []byte
	Ended    bool
	InRow    int
	Stalled  bool
	Sessions []sessionState // present, forming; Number 0: none
	// Committee belongs to a job with a committee, in a round or between two.
	Committee []byte
}

type sessionState struct {
	Number uint64
	Stage  int    // as drive.Stage
	Server []byte // of protocol.Server.SaveParts
}

func (c *coordinator) save() error {
	if c.vault == nil {
		return nil
	}
	if err := c.keepModel(); err != nil {
		return err
	}
	sessions, sum, err := c.drive.State(c.Key)
	if err != nil {
		return err
	}
	if err := c.keepSum(sum); err != nil {
		return err
	}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(coordinatorState{
		Format: coordinatorFormat, Kept: c.kept, Sum: c.summed, Sessions: sessions,
	})
	if err != nil {
		return err
	}
	return c.vault.save(b.Bytes())
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
	if err := c.vault.store.Put(sumNames[slot], sum); err != nil {
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
	// The states of all formats have Kept.
	var head struct {
		Format int
		Kept   stored
	}
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&head); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	if err := c.loadModel(head.Kept); err != nil {
		return err
	}
	switch head.Format {
	case 0:
		err = c.resume(config, b)
	case coordinatorFormat:
		err = c.read(config, b)
	default:
		err = fmt.Errorf("it is of format %d, want %d", head.Format, coordinatorFormat)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	status := c.drive.Status()
	c.cast = &frames.Broadcast{Round: status.Round, Fresh: status.Fresh, Model: c.model}
	return c.cast.Settle()
}

// read goes on with a state of this format.
func (c *coordinator) read(config drive.ServerConfig, b []byte) error {
	var state coordinatorState
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&state); err != nil {
		return err
	}
	if state.Sum.Slot&^1 != 0 {
		return fmt.Errorf("its sum is in place %d", state.Sum.Slot)
	}
	c.summed = state.Sum
	var sum io.Reader
	if state.Sum.Name != "" {
		file, err := c.vault.store.Get(sumNames[state.Sum.Slot])
		if err != nil {
			return err
		}
		defer file.Close()
		sum = file
	}
	var err error
	c.drive, err = drive.ReadServer(config, c.Key, c.now(), state.Sessions, sum)
	return err
}

// resume goes on with a state of an earlier release.
func (c *coordinator) resume(config drive.ServerConfig, b []byte) error {
	var state earlierState
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&state); err != nil {
		return err
	}
	recorded := state.recorded(config.Rounds)
	var servers [2]*protocol.Server
	for k, s := range state.Sessions {
		if k >= len(servers) || s.Number == 0 {
			continue
		}
		var err error
		if servers[k], err = c.resumeSession(s); err != nil {
			return fmt.Errorf("session %d: %w", s.Number, err)
		}
		recorded.Sessions[k] = drive.SessionStage{Number: s.Number, Stage: drive.Stage(s.Stage)}
	}
	series, err := protocol.ResumeServerSeries(config.Label, state.Number+1, servers[0], servers[1])
	if err != nil {
		return err
	}
	c.drive, err = drive.ResumeServer(config, c.now(), recorded, series)
	return err
}

// recorded returns the part of a state that package drive goes on with.
func (s *earlierState) recorded(rounds uint64) drive.Recorded {
	out := drive.Recorded{
		Round:   s.Round,
		Lost:    uint64(s.Lost),
		InRow:   s.InRow,
		Fresh:   s.Fresh,
		Stalled: s.Stalled,
		Ledger:  s.Ledger,
	}
	if s.Ended {
		out.Ended = drive.AllHeld
		if s.Stalled {
			out.Ended = drive.AllLost
		} else if s.Round < rounds {
			out.Ended = drive.BudgetSpent
		}
	}
	return out
}

func (c *coordinator) resumeSession(s sessionState) (*protocol.Server, error) {
	var sum io.Reader
	if stage := drive.Stage(s.Stage); stage == drive.Signing || stage == drive.Revealing {
		file, err := c.vault.store.Get(earlierSumName)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		sum = file
	}
	return protocol.ReadServer(c.Job.Config(s.Number), c.Key, s.Server, sum)
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
		ComeBack:  drive.Time(c.wait(longestWait)),
		Pace:      drive.Time(when.Pace),
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
