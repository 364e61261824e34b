package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hushsum/hushsum/service/record"
)

// Status is what people see of a federation. It says of a single party only whether it
// is there and has sent what is due.
type Status struct {
	Name    string  `json:"name"`
	ID      string  `json:"id"`
	State   string  `json:"state"` // waiting, running, paused or ended
	Why     string  `json:"why,omitempty"`
	Stage   string  `json:"stage,omitempty"`
	Session uint64  `json:"session"`
	Round   int     `json:"round"`
	Rounds  int     `json:"rounds"`
	Lost    int     `json:"lost"`
	Epsilon float64 `json:"epsilon"`
	Budget  float64 `json:"budget"`
	Delta   float64 `json:"delta"`
	Least   int     `json:"least"` // parties in a sum

	Parties []PartyStatus `json:"parties"`
	History []Past        `json:"history"` // of the last thousand rounds
	Leader  string        `json:"leader"`

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
}

// Status returns it.
func (r *Runner) Status(ctx context.Context) (*Status, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.release()
	plan := r.Federation.Plan()
	out := &Status{
		Name:      r.Federation.File.Name,
		ID:        r.Federation.ID,
		State:     "waiting",
		Round:     r.round,
		Rounds:    r.Federation.File.Rounds,
		Lost:      r.lost,
		Epsilon:   r.epsilon(),
		Budget:    plan.Epsilon,
		Delta:     plan.Delta,
		Least:     r.Federation.Settled.MinSurvivors(),
		History:   slices.Clone(r.history),
		Leader:    r.Node,
		Decisions: r.Hold.Number(),
		BytesIn:   r.bytesIn,
		Refused:   r.refused,
	}
	var open *session
	switch s := r.present; {
	case r.ended != "":
		out.State, out.Why = "ended", r.ended
	case r.paused:
		out.State, out.Why = "paused", r.why
	case s != nil:
		out.State, out.Stage, out.Session, out.Why = "running", s.stage.String(), s.number, r.why
		if s.stage != Ready {
			open = s
		}
	case r.forming != nil:
		out.Stage, out.Session = r.forming.stage.String(), r.forming.number
		open = r.forming
	}
	overdue := open != nil && time.Since(open.since) > time.Duration(r.Federation.File.StepTime)/2
	for i := range r.parties {
		p := PartyStatus{Name: r.names[i], State: "here"}
		switch {
		case !r.here(i) && r.parties[i].seen.IsZero():
			p.State = "never"
		case !r.here(i):
			p.State = "gone"
		case overdue && r.server(open).Awaits(i):
			p.State = "late"
		}
		out.Parties = append(out.Parties, p)
	}
	return out, nil
}

// Changed returns a channel that is closed when something changes.
func (r *Runner) Changed(ctx context.Context) (<-chan struct{}, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.release()
	return r.changed, nil
}

// ErrState: the federation is not in a state for that.
var ErrState = errors.New("runner: the federation has ended")

// Pause has no further round begin; the one that is open goes on to its sum.
func (r *Runner) Pause(ctx context.Context, who string) error {
	return r.set(ctx, who, "paused", func() {
		r.paused, r.why = true, "by "+who
	})
}

// Resume ends a pause.
func (r *Runner) Resume(ctx context.Context, who string) error {
	return r.set(ctx, who, "resumed", func() {
		r.paused, r.why, r.resumed = false, "", r.round
	})
}

// EndNow ends the federation; an open round has no sum.
func (r *Runner) EndNow(ctx context.Context, who string) error {
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.release()
	if r.ended != "" {
		return nil
	}
	return r.fatal(r.end(context.WithoutCancel(ctx), "ended by "+who))
}

func (r *Runner) set(ctx context.Context, who, event string, change func()) error {
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.release()
	if r.ended != "" {
		return ErrState
	}
	change()
	if err := r.record(context.WithoutCancel(ctx)); err != nil {
		return r.fatal(err)
	}
	r.audit(record.Line{Event: event, Round: r.round, Note: "by " + who})
	r.announce()
	return nil
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
