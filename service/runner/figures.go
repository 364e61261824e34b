package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
)

// This file shows people and monitors a federation that has no leader, and how long steps take.

// figures holds the data that a decision records for people, who ask even while no node leads.
type figures struct {
	At            time.Time
	State, Why    string
	Round, Lost   int
	Spent         []byte // JSON of paid
	Decisions     uint64
	Orders        string
	Seen, Members []bool // those that have ever been present
}

// figures returns the figures of the decision that is recorded next.
func (r *Runner) figures() *figures {
	at := r.drive.Status()
	for i := range r.seen {
		r.seen[i] = r.seen[i] || r.drive.At(Peer{Index: i}).Ever
	}
	for k := range r.seenMembers {
		r.seenMembers[k] = r.seenMembers[k] || r.drive.At(Peer{Index: k, Member: true}).Ever
	}
	out := &figures{At: time.Now(), Round: int(at.Round), Lost: int(at.Lost), Spent: r.paid().json(),
		Decisions: r.Hold.Number() + 1, Orders: r.ordersAt(at), Seen: slices.Clone(r.seen),
		Members: slices.Clone(r.seenMembers)}
	out.State, out.Why = r.stands(at)
	return out
}

// Declared returns the status of a federation from its declaration alone.
func Declared(f *federation.Federation) *Status {
	out := &Status{
		Name:   f.Job.Name,
		ID:     f.ID,
		Job:    f.JobDigest,
		Rounds: f.Settled.Rounds(),
		Least:  f.Settled.MinSurvivors(),
		Buffer: f.Settled.Buffer(),
		Budget: f.Settled.Budget(),
		Study:  f.Study(),
		Asks:   len(f.Job.Query),
		Orders: ordersOf(0, false, false),
	}
	if before := f.Settled.Before(); before != nil {
		out.Before = before.Federation
	}
	return out
}

// RecordedStatus returns the status that the last decision of a federation recorded for people,
// whichever node leads it. It fails with the errors of package record.
func RecordedStatus(ctx context.Context, f *federation.Federation, records *record.Records,
) (*Status, error) {
	out := Declared(f)
	b, err := records.State(ctx, f.ID)
	if err != nil {
		return nil, err
	}
	in := state{Figures: figures{State: "waiting", Orders: out.Orders}}
	if b != nil {
		if in, err = parseState(b); err != nil {
			return nil, err
		}
	}
	at := &in.Figures
	out.State, out.Why, out.Orders = at.State, at.Why, at.Orders
	out.History, out.Outages = in.History, in.Outages
	out.Round, out.Lost, out.Decisions = at.Round, at.Lost, at.Decisions
	var paid paid
	if at.Spent != nil {
		if err := strict.JSON(at.Spent, &paid); err != nil {
			return nil, fmt.Errorf("%w: %w", record.ErrRecord, err)
		}
	}
	if out.Spent = paid.Own; out.Study != nil {
		out.Study.Spent = paid.Study
	}
	if !at.At.IsZero() {
		out.Recorded = &at.At
	}
	roster := f.Settled.Roster()
	for i := range roster.Len() {
		ever := i < len(at.Seen) && at.Seen[i]
		out.Parties = append(out.Parties,
			PartyStatus{Name: roster.Name(i), State: stateOf(false, ever, false)})
	}
	if one := f.Settled.Oneshot(); one != nil {
		for k := range one.Committee.Len() {
			ever := k < len(at.Members) && at.Members[k]
			out.Committee = append(out.Committee,
				PartyStatus{Name: one.Committee.Name(k), State: stateOf(false, ever, false)})
		}
	}
	return out, nil
}

// StepTimes counts how long steps of a kind took, in the rounds that this runner led.
type StepTimes struct {
	Step    string  `json:"step"`
	Seconds float64 `json:"seconds"` // in all
	// Within counts, for each bound in [StepBounds] in turn, the steps that took no longer, and last
	// all steps.
	Within []uint64 `json:"within"`
}

// StepBounds lists the bounds of [StepTimes], in seconds.
var StepBounds = []float64{0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3600}

// stepTimes counts steps. It has a lock of its own, since a runner's is held while it records.
type stepTimes struct {
	mutex sync.Mutex
	of    map[string]*StepTimes
}

// add counts a step.
func (s *stepTimes) add(step string, took time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	x := s.of[step]
	if x == nil {
		x = &StepTimes{Step: step, Within: make([]uint64, len(StepBounds)+1)}
		if s.of == nil {
			s.of = make(map[string]*StepTimes)
		}
		s.of[step] = x
	}
	x.Seconds += took.Seconds()
	for i := range x.Within {
		if i == len(StepBounds) || took.Seconds() <= StepBounds[i] {
			x.Within[i]++
		}
	}
}

// all returns copies of the counts, by name.
func (s *stepTimes) all() (out []StepTimes) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, x := range s.of {
		x := *x
		x.Within = slices.Clone(x.Within)
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b StepTimes) int { return strings.Compare(a.Step, b.Step) })
	return out
}

// timeSteps counts a step that has ended, if one has. Waiting for the next round does not count.
func (r *Runner) timeSteps() {
	was, at := r.was, r.drive.Status()
	r.was = at
	if was.Since == 0 || was.Stage == drive.Resting || was.Stage == at.Stage && was.Since == at.Since {
		return
	}
	end := at.Since
	if at.Stage == 0 || end <= was.Since {
		end = r.now()
	}
	r.steps.add(was.Stage.String(), time.Duration(end-was.Since))
	r.tracing.step(was.Stage.String(), was.Since, end)
}
