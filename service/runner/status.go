package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
)

// Status is what people see of a federation. It says of a single party only whether it
// is there and has sent what is due.
type Status struct {
	Name    string  `json:"name"`
	ID      string  `json:"id"`
	Job     string  `json:"job,omitempty"` // digest of what is declared, see job.Job.Digest
	State   string  `json:"state"`         // waiting, running, paused or ended
	Why     string  `json:"why,omitempty"`
	Stage   string  `json:"stage,omitempty"`
	Session uint64  `json:"session"`
	Round   int     `json:"round"`
	Rounds  int     `json:"rounds"`
	Lost    int     `json:"lost"`
	Epsilon float64 `json:"epsilon"`
	Budget  float64 `json:"budget"`
	Delta   float64 `json:"delta"`
	// With noise Protects and Against say of whom epsilon is, and against whom: "each party", "the
	// server and any 2 parties".
	Protects string `json:"protects,omitempty"`
	Against  string `json:"against,omitempty"`

	Least int `json:"least"` // parties in a sum

	Parties   []PartyStatus `json:"parties"`
	Committee []PartyStatus `json:"committee,omitempty"` // of one-message sums
	History   []Past        `json:"history"`             // of the last thousand rounds
	Leader    string        `json:"leader"`

	Decisions uint64 `json:"decisions"`
	BytesIn   int64  `json:"bytes_in"` // since this runner leads
	Refused   int64  `json:"refused"`
}

// PartyStatus is whether a party is there.
type PartyStatus struct {
	Name string `json:"name"`
	// State is here, gone, never for who was not seen yet, or late for who is here and is
	// waited for, since more than half of the time that a step has.
	State string `json:"state"`
	// Awaited reports of a member of the committee whether its answer is waited for.
	Awaited bool `json:"awaited,omitempty"`
}

func stateOf(here, ever, late bool) string {
	switch {
	case !ever:
		return "never"
	case !here:
		return "gone"
	case late:
		return "late"
	}
	return "here"
}

// Status returns it.
func (r *Runner) Status(ctx context.Context) (*Status, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.release()
	at := r.drive.Status()
	out := &Status{
		Name:      r.Federation.Job.Name,
		ID:        r.Federation.ID,
		Job:       r.Federation.JobDigest,
		State:     "waiting",
		Round:     int(at.Round),
		Rounds:    r.Federation.Settled.Rounds(),
		Lost:      int(at.Lost),
		Epsilon:   r.epsilon(),
		Least:     r.Federation.Settled.MinSurvivors(),
		History:   slices.Clone(r.history),
		Leader:    r.Node,
		Decisions: r.Hold.Number(),
		BytesIn:   r.bytesIn,
		Refused:   r.refused,
	}
	if j := r.Federation.Job; j.Noisy() {
		out.Budget, out.Delta = j.Privacy.Epsilon, j.Privacy.Delta
		out.Protects, out.Against = j.Protects(), j.Against()
	}
	switch {
	case at.Ended != "":
		out.State, out.Why = "ended", at.Ended
	case at.Paused:
		out.State, out.Why = "paused", r.why
	case r.committee != nil:
		if out.Stage = at.Stage.String(); at.Stage >= drive.Submitting {
			out.State, out.Why = "running", r.why
		}
	case at.Session == 0:
	default:
		out.Stage, out.Session = at.Stage.String(), at.Session
		if at.Session != at.Next.Number {
			out.State, out.Why = "running", r.why
		}
	}
	step := drive.Time(r.Federation.Job.Time.StepTime)
	open := at.Session != 0 || r.committee != nil
	overdue := open && at.Stage != drive.Resting && r.now()-at.Since > step/2
	for i := range r.parties {
		here, ever := r.drive.Here(i)
		state := stateOf(here, ever, overdue && r.drive.Due(i))
		out.Parties = append(out.Parties, PartyStatus{Name: r.names[i], State: state})
	}
	out.Committee = r.committeeStatus(overdue)
	return out, nil
}

// ErrRunning: the federation has not ended.
var ErrRunning = errors.New("runner: the federation has not ended; end it first")

// Before returns what the parties of a federation that has ended have spent, for one that goes on
// from it: the text of a job.Before, nil without noise. It fails with [ErrRunning].
func (r *Runner) Before(ctx context.Context) ([]byte, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.release()
	ledger := r.drive.Ledger()
	switch {
	case r.drive.Status().Ended == "":
		return nil, ErrRunning
	case ledger == nil:
		return nil, nil
	}
	f := r.Federation
	before := job.Before{Federation: f.ID, Unit: f.Job.Protects(), Ledger: ledger}
	return before.MarshalText()
}

// ErrState: the federation is not in a state for that.
var ErrState = errors.New("runner: the federation has ended")

// Pause has no further round begin; the one that is open goes on to its sum.
func (r *Runner) Pause(ctx context.Context, who string) error {
	return r.order(ctx, func() { r.drive.Pause(r.now(), "by "+who) })
}

// Resume ends a pause.
func (r *Runner) Resume(ctx context.Context, who string) error {
	return r.order(ctx, func() { r.drive.Resume(r.now(), "by "+who) })
}

// EndNow ends the federation; an open round has no sum.
func (r *Runner) EndNow(ctx context.Context, who string) error {
	err := r.order(ctx, func() { r.drive.End(r.now(), "ended by "+who) })
	if errors.Is(err, ErrState) {
		return nil
	}
	return err
}

// order has the federation do what an operator wants, and returns once that is recorded.
func (r *Runner) order(ctx context.Context, order func()) error {
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.release()
	if r.drive.Status().Ended != "" {
		return ErrState
	}
	order()
	r.poke() // what is due next is another time
	return r.fatal(r.proceed(context.WithoutCancel(ctx)))
}

// fatal stops the runner if a decision was not recorded.
func (r *Runner) fatal(err error) error {
	if err != nil {
		r.stopped = err
		r.announce()
		r.poke()
	}
	return err
}
