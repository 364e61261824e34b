package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/federation"
)

// Status reports a federation to people. Of a single party it says only whether the party is
// present and has sent what is due.
type Status struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Job     string `json:"job,omitempty"` // digest of the declaration, see job.Job.Digest
	State   string `json:"state"`         // waiting, running, paused or ended; or Silent, Leaderless, Forgotten
	Why     string `json:"why,omitempty"`
	Stage   string `json:"stage,omitempty"`
	Session uint64 `json:"session"`
	Round   int    `json:"round"`
	Rounds  int    `json:"rounds"`
	Lost    int    `json:"lost"`
	Outages int    `json:"outages,omitempty"` // of Lost, rounds in which the record was away
	// Budget bounds what a party may spend, nil if nothing does, and Spent what any party has spent,
	// nil if that is not known.
	Budget *accounting.Budget `json:"budget,omitempty"`
	Spent  *accounting.Claim  `json:"spent,omitempty"`
	// Before is the federation that this one continues, whose rounds are in Spent.
	Before string            `json:"before,omitempty"`
	Study  *federation.Study `json:"study,omitempty"` // nil: it belongs to none
	Asks   int               `json:"asks,omitempty"`  // queries

	Least int `json:"least"` // parties in a sum
	// Buffer is how many submissions a round takes, in a job with sum.buffer, and Taken how many
	// the open one has.
	Buffer int `json:"buffer,omitempty"`
	Taken  int `json:"taken,omitempty"`

	// Since is when the present step began, and Until when the step has waited long enough for the
	// parties that are present and have not answered: nil if it waits for none of them.
	Since *time.Time `json:"since,omitempty"`
	Until *time.Time `json:"until,omitempty"`

	Parties   []PartyStatus `json:"parties"`
	Committee []PartyStatus `json:"committee,omitempty"` // of one-message sums
	History   []Past        `json:"history"`             // of the last thousand rounds
	Leader    string        `json:"leader"`

	// Decisions is the number of the last decision, and Head the root over all decisions, in 64
	// digits, as receipts have it. Head is empty where no leader answers.
	Decisions uint64 `json:"decisions"`
	Head      string `json:"head,omitempty"`
	// Orders identifies what operators' orders change: whether the federation is paused or has ended,
	// which parties are left out, and, before the dash, how many orders were carried out. Rounds do
	// not change it. An order names it, to be refused where another came between: see [By].
	Orders string `json:"orders"`

	BytesIn int64 `json:"bytes_in"` // since this runner leads
	Refused int64 `json:"refused"`

	Steps []StepTimes `json:"steps,omitempty"`
	// Recorded is when the figures were recorded, where no leader answers.
	Recorded *time.Time `json:"recorded,omitempty"`
}

// States of a federation whose leader does not answer, of one that has no leader, and of one that
// needs none.
const (
	Silent     = "not answering"
	Leaderless = "without a leader"
	Forgotten  = "forgotten"
)

// PartyStatus reports whether a party is present.
type PartyStatus struct {
	Name string `json:"name"`
	// State is here, gone, never for a party not seen yet, late for a party that is here and has been
	// waited for longer than half of the step's time, or left out for a party that is in no sum. Once
	// the federation has ended the runner looks for no party, and all parties that were ever here are
	// gone.
	State string `json:"state"`
	// Awaited reports whether the party's answer is due in the present step.
	Awaited bool `json:"awaited,omitempty"`
}

// Known reports whether the figures come from a leader or from the record; otherwise they describe
// a federation that has not begun, and say nothing.
func (s *Status) Known() bool { return s.Leader != "" || s.Recorded != nil }

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

// Status returns the status of the federation.
func (r *Runner) Status(ctx context.Context) (s *Status, err error) {
	err = r.host.With(ctx, operator, func(drive.Lead, drive.Time) error {
		s = r.status()
		return nil
	})
	return s, err
}

func (r *Runner) status() *Status {
	at := r.drive.Status()
	out := Declared(r.Federation)
	out.Round, out.Lost = int(at.Round), int(at.Lost)
	paid := r.paid()
	if out.Spent = paid.Own; out.Study != nil {
		out.Study.Spent = paid.Study
	}
	out.Outages = r.outages
	out.History, out.Leader = slices.Clone(r.history), r.Node
	out.Decisions, out.BytesIn, out.Refused = r.Hold.Number(), r.bytesIn, r.refused
	out.Head = r.root()
	out.Orders, out.Taken, out.Steps = r.ordersAt(at), at.Taken, r.steps.all()
	out.State, out.Why = r.stands(at)
	if at.Ended == "" && !at.Paused {
		switch {
		case r.sums != nil:
			out.Stage = at.Stage.String()
		case at.Session != 0:
			out.Stage, out.Session = at.Stage.String(), at.Session
		}
	}
	step := drive.Time(r.Federation.Job.Time.StepTime)
	open := at.Session != 0 || r.sums != nil
	open = open && at.Stage != drive.Resting && at.Stage != drive.Applying && at.Ended == ""
	overdue := open && r.now()-at.Since > step/2
	if open {
		since := r.clock.shown(at.Since)
		out.Since = &since
		if until := r.drive.Until(); until > 0 && until < drive.Never {
			until := r.clock.shown(until)
			out.Until = &until
		}
	}
	for i := range r.parties {
		is := r.drive.At(Peer{Index: i})
		due := open && is.Due && !is.Excluded
		here, ever := is.Here && at.Ended == "", is.Ever || r.seen[i]
		p := PartyStatus{Name: r.names[i], State: stateOf(here, ever, overdue && due), Awaited: due}
		if is.Excluded {
			p.State = "left out"
		}
		out.Parties = append(out.Parties, p)
	}
	out.Committee = r.committeeStatus(overdue)
	return out
}

// stands returns the state of a federation, and the reason for it.
func (r *Runner) stands(at drive.Status) (state, why string) {
	switch {
	case at.Ended != "":
		return "ended", at.Ended
	case at.Paused:
		return "paused", r.why
	case r.sums != nil && at.Stage >= drive.Submitting,
		r.sums == nil && at.Session != 0 && at.Session != at.Next.Number:
		return "running", r.why
	}
	return "waiting", ""
}

// ErrRunning: the federation has not ended.
var ErrRunning = errors.New("runner: the federation has not ended; end it first")

// Before returns what the parties of an ended federation have spent, for a federation that
// continues it: the text of a job.Before, nil without noise. It fails with [ErrRunning].
func (r *Runner) Before(ctx context.Context) (text []byte, err error) {
	err = r.host.With(ctx, operator, func(lead drive.Lead, _ drive.Time) (err error) {
		ledger := lead.Ledger()
		switch {
		case lead.Status().Ended == "":
			return ErrRunning
		case ledger == nil:
			return nil
		}
		f := r.Federation
		before := job.Before{Federation: f.ID, Study: f.Settled.Study(), Plan: f.Settled.StudyPlan(),
			Ledger: ledger}
		text, err = before.MarshalText()
		return err
	})
	return text, err
}

// Charges returns what each party has spent, in the order of the roster; nil without noise.
func (r *Runner) Charges(ctx context.Context) (out []accounting.Claim, err error) {
	var ledger *accounting.Ledger
	err = r.host.With(ctx, operator, func(lead drive.Lead, _ drive.Time) error {
		if had := lead.Ledger(); had != nil {
			ledger = had.Clone()
		}
		return nil
	})
	if err != nil || ledger == nil {
		return nil, err
	}
	for _, name := range r.names {
		spent, err := ledger.Spent(name)
		if err != nil {
			return nil, err
		}
		out = append(out, spent)
	}
	return out, nil
}
