package runner

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/record"
)

// This file has how sessions form and follow each other.

// wanted reports whether a session should be set up: there is none, or somebody is there
// who is not in it.
func (r *Runner) wanted() bool {
	here := 0
	outside := false
	var enrolled []int
	if r.present != nil {
		enrolled = r.series.Present().Enrolled()
	}
	for i := range r.parties {
		if !r.here(i) {
			continue
		}
		here++
		if r.present == nil {
			continue
		}
		_, in := slices.BinarySearch(enrolled, i)
		if !(in && slices.Contains(r.parties[i].sessions, r.present.number)) &&
			r.round >= r.shunned[i].until {
			outside = true
		}
	}
	if here < r.Federation.Settled.MinSurvivors() {
		return false
	}
	return r.present == nil || outside
}

// number is the next session's: above all that were used, also where more parties than may
// lie tell that their numbers are higher.
func (r *Runner) number() uint64 {
	return max(r.series.Least(), r.beyond(func(p *party) uint64 { return p.least }), 1)
}

// beyond returns what more parties than may collude tell at least, 0 if there are too few.
func (r *Runner) beyond(tell func(p *party) uint64) uint64 {
	var told []uint64
	for i := range r.parties {
		told = append(told, tell(&r.parties[i]))
	}
	slices.Sort(told)
	colluders := r.Federation.Plan().Colluders
	if colluders >= len(told) {
		return 0
	}
	return told[len(told)-1-colluders]
}

// form takes the set-up of the next session a step on.
func (r *Runner) form(ctx context.Context) error {
	s := r.forming
	if s == nil {
		if r.paused || !r.due() || !r.wanted() {
			return nil
		}
		number := r.number()
		if err := r.series.Succeed(r.Federation.Config(number)); err != nil {
			return err
		}
		r.forming = &session{number: number}
		if err := r.enter(ctx, r.forming, Announcing); err != nil {
			return err
		}
		r.audit(record.Line{Event: "a session forms", Round: r.round})
		return nil
	}
	server := r.series.Successor()
	switch s.stage {
	case Announcing:
		if r.number() > s.number+1 {
			r.forming = nil // parties have used the number: the record was set back
			return nil
		}
		if !r.announced(s) {
			return nil
		}
		err := server.EndStep() // keys are made as parties ask, see question
		if errors.Is(err, protocol.ErrTooFew) {
			return nil // some may still come
		} else if err != nil {
			return err
		}
		if server.Enrolled() == nil {
			return r.enter(ctx, s, Encapsulating)
		}
		return r.enter(ctx, s, Preparing)
	case Encapsulating:
		if !r.over(s) {
			return nil
		}
		err := server.EndStep()
		if errors.Is(err, protocol.ErrTooFew) {
			// The next has another number.
			r.forming = nil
			return r.record(ctx)
		} else if err != nil {
			return err
		}
		return r.enter(ctx, s, Preparing)
	case Preparing:
		if !r.over(s) {
			return nil
		}
		s.stage, s.since = Ready, time.Now()
		return r.record(ctx)
	}
	return nil
}

// announced reports whether a session need not wait for more announcements.
func (r *Runner) announced(s *session) bool {
	missing := r.series.Successor().Missing()
	waited := time.Since(s.since)
	for _, i := range missing {
		if r.here(i) {
			return waited > time.Duration(r.Federation.File.StepTime)
		}
	}
	return len(missing) == 0 || waited > r.Grace && r.settled()
}

// takeOver makes the session that has formed the present one.
func (r *Runner) takeOver(ctx context.Context) error {
	if err := r.series.TakeOver(); err != nil {
		return err
	}
	r.present, r.forming = r.forming, nil
	enrolled := r.series.Present().Enrolled()
	for i := range r.parties {
		if _, in := slices.BinarySearch(enrolled, i); in {
			delete(r.shunned, i)
		} else if r.here(i) {
			times := r.shunned[i].times + 1
			r.shunned[i] = shunned{times, r.round + 1<<min(times, 10)}
		}
	}
	if err := r.record(ctx); err != nil {
		return err
	}
	r.announce()
	r.audit(record.Line{Event: "a session took over", Round: r.round, Parties: len(enrolled)})
	return nil
}

// due reports whether the next round may begin by the clock.
func (r *Runner) due() bool {
	if !r.Federation.Start.IsZero() && time.Now().Before(r.Federation.Start) {
		return false
	}
	return time.Since(r.roundTime) >= time.Duration(r.Federation.File.Pace)
}

// prepare gathers those who are there for the next round, or ends the federation.
func (r *Runner) prepare(ctx context.Context) error {
	if r.round >= r.Federation.File.Rounds {
		return r.end(ctx, "all rounds were held")
	}
	if r.paused || !r.due() {
		return nil
	}
	s, server := r.present, r.series.Present()
	excluded := server.Excluded()
	var there []int
	for _, i := range server.Enrolled() {
		if r.holds(i, s) && !slices.Contains(excluded, i) {
			there = append(there, i)
		}
	}
	if len(there) < r.Federation.Settled.MinSurvivors() {
		return nil
	}
	// A moment for those of the last round who have not asked again yet.
	sample := r.Federation.Sample()
	if sample == 0 && len(there) < len(server.Holders()) && r.early(s) {
		return nil
	}
	if 0 < sample && sample < len(server.Enrolled()) {
		if len(there) < len(server.Enrolled()) && r.early(s) {
			return nil
		}
		there = r.draw(there, sample)
		if _, err := server.Gather(there); err != nil {
			return err
		}
		return r.enter(ctx, s, Preparing)
	}
	missing, holders := server.Missing(), server.Holders()
	ready := !slices.ContainsFunc(there, func(i int) bool {
		_, lacks := slices.BinarySearch(missing, i)
		_, holder := slices.BinarySearch(holders, i)
		return lacks || !holder
	})
	if ready {
		return r.beginRound(ctx)
	}
	if r.Federation.File.Recovery.Sparse {
		// Who is asked by Pending and answers in time takes part.
		return r.enter(ctx, s, Preparing)
	}
	if _, err := server.Gather(there); err != nil {
		return err
	}
	return r.enter(ctx, s, Preparing)
}

// early reports whether parties may still ask again after the last round.
func (r *Runner) early(s *session) bool {
	return time.Since(s.since) < r.Grace/4 || !r.settled()
}

// draw returns so many of some parties for the next round, in ascending order: those
// whose digests of federation, round and party are least. All can compute it, and it hides
// nothing.
func (r *Runner) draw(there []int, sample int) []int {
	digest := func(i int) string {
		d := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", r.Federation.ID, r.round+1, i))
		return string(d[:])
	}
	drawn := slices.Clone(there)
	slices.SortFunc(drawn, func(i, j int) int { return strings.Compare(digest(i), digest(j)) })
	drawn = drawn[:min(sample, len(drawn))]
	slices.Sort(drawn)
	return drawn
}

// catchUp looks whether this record was set back: more parties than may lie know of a
// later round. The rounds in between count as held and spent, and since keys of the
// session that is recorded were used in them, another session follows.
func (r *Runner) catchUp(ctx context.Context) error {
	known := min(r.beyond(func(p *party) uint64 { return p.told }),
		uint64(r.Federation.File.Rounds))
	if known <= uint64(r.round) {
		return nil
	}
	skipped := known - uint64(r.round)
	everybody := make([]int, len(r.parties))
	for i := range everybody {
		everybody[i] = i
	}
	ledger, err := r.charge(everybody, int(skipped))
	if errors.Is(err, accounting.ErrBudget) {
		return r.end(ctx, "the record was set back, and the privacy budget is spent")
	} else if err != nil {
		return err
	}
	r.Log.Warn("the record was set back: parties know of later rounds", "round", r.round,
		"known", known)
	r.ledger = ledger
	r.round += int(skipped)
	r.lost += int(skipped)
	least := r.series.Least()
	r.series = protocol.NewServerSeries(r.Federation.Config(1).Label, least)
	r.present, r.forming = nil, nil
	for i := range r.parties {
		r.parties[i].told = 0
	}
	if err := r.record(ctx); err != nil {
		return err
	}
	r.announce()
	r.audit(record.Line{Event: "set back", Round: r.round, Epsilon: r.epsilon(),
		Note: fmt.Sprintf("parties know of %d rounds that the record does not have", skipped)})
	return nil
}
