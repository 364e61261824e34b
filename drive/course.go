package drive

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// course is where a job stands, whatever takes its sums.
type course struct {
	config  Settings
	random  io.Reader
	names   []string
	ledger  *accounting.Ledger
	counts  []uint64 // submissions that parties were asked for; nil: they are not bounded
	round   uint64   // the last that was begun
	lost    uint64
	inRow   int // rounds lost since the last sum, or since somebody resumed the job
	lostAt  Time
	fresh   [32]byte
	begun   Time // the last round
	paused  bool
	ended   string
	of      []int  // who is in the sum that is applied
	behind  bool   // what is saved is known to be older than what was decided
	missing uint64 // with behind, the last round that was begun
	lacking []int  // who was last said to be missing for the first round
	sayAt   Time   // the next may be said then; 0: nobody was missing yet
	short   bool   // that StepTime is short was told

	now     Time
	look    bool // something has changed that what begins next follows from
	lookAt  Time
	save    bool // something was decided
	ask     bool
	notices []Notice
}

func newCourse(c Settings, roster *keyexchange.Roster, now Time) course {
	if c.StepTime == 0 {
		c.StepTime = defaultStep
	}
	if c.Floor == 0 {
		c.Floor = defaultFloor
	}
	if c.ComeBack == 0 {
		c.ComeBack = DefaultComeBack
	}
	out := course{config: c, random: entropy.Source(c.Random), now: now, look: true}
	for i := range roster.Len() {
		out.names = append(out.names, roster.Name(i))
	}
	if c.Ledger != nil {
		out.ledger = c.Ledger.Clone()
	}
	if c.Submissions > 0 {
		out.counts = make([]uint64, roster.Len())
	}
	return out
}

// resume goes on with what was saved, but for the ledger.
func (s *course) resume(r *Recorded) {
	s.round, s.lost, s.inRow = r.Round, r.Lost, r.InRow
	s.fresh, s.begun, s.paused = r.Fresh, min(r.Begun, s.now), r.Paused
	s.ended, s.lostAt = r.Ended, s.now
}

// clock sets the time, which does not go back.
func (s *course) clock(now Time) { s.now = max(s.now, now) }

// decided notes that the state has changed, and what people are told of it.
func (s *course) decided(n Notice) {
	s.save, s.look = true, true
	s.notices = append(s.notices, n)
}

// due returns when the next round may begin by the clock.
func (s *course) due() Time {
	if s.begun == 0 {
		return s.config.Start
	}
	return max(s.config.Start, s.begun+s.config.Pace)
}

// again returns when the next round may begin: after lost ones a while later, twice as long each
// time, so that a fault that passes costs one round.
func (s *course) again() Time {
	if s.inRow == 0 {
		return s.due()
	}
	return max(s.due(), s.lostAt.after(min(Second<<(s.inRow-1), s.config.StepTime)))
}

// first returns how many parties have to be here for the next round to begin, beyond what it takes.
func (s *course) first() int {
	if s.round > 0 {
		return 0
	}
	return s.config.BeginWith
}

// tellMissing tells who is missing for the first round, unless that was told, or something like it
// a moment ago.
func (s *course) tellMissing(r *room, f *faults) {
	if s.first() == 0 || s.paused || s.now < s.due() {
		return
	}
	here, missing := r.parted(f)
	if s.sayAt == 0 {
		s.sayAt = s.now.after(longestTold)
	}
	switch {
	case here >= s.first(), slices.Equal(missing, s.lacking):
	case s.now < s.sayAt:
		s.later(s.sayAt)
	default:
		s.lacking, s.sayAt = missing, s.now.after(longestTold)
		s.notices = append(s.notices, Notice{Kind: Awaited, Round: 1, Parties: missing})
	}
}

// tellShort tells once that StepTime is short: half of the answers of a step that is over took an
// eighth of it or longer, and several peers, more than may lie, have let a step pass not long ago.
func (s *course) tellShort(r *room, f *faults, stage Stage, liars int, n Notice) {
	usual, step := r.learned.median[stage], s.config.StepTime
	if s.short || usual < step/8 {
		return
	}
	for i := range r.peers {
		if f.stalling(i, s.round) {
			n.Parties = append(n.Parties, i)
		}
	}
	if len(n.Parties) <= max(1, liars) {
		return
	}
	s.short = true
	n.Kind, n.Round = Short, s.round
	n.Err = fmt.Errorf("a step's time of %.1f s is short: half of the answers take %.1f s or longer, "+
		"and those of %d did not come in time", seconds(step), seconds(usual), len(n.Parties))
	s.notices = append(s.notices, n)
}

func seconds(t Time) float64 { return float64(t) / float64(Second) }

// later schedules another look at what depends on who is here.
func (s *course) later(t Time) { s.lookAt = min(s.lookAt, t) }

// Behind is a method of [Lead].
func (s *course) Behind(begun uint64) { s.behind, s.missing = true, begun }

// lastBegun is the last round of the job that was begun, by what others know and what was told.
func (s *course) lastBegun(known uint64) uint64 {
	if s.behind {
		known = max(known, s.missing, s.round)
	}
	return min(known, s.config.Rounds)
}

// charge returns the ledger as it is after a given number of further rounds with some parties.
func (s *course) charge(names []string, rounds uint64) (*accounting.Ledger, error) {
	if s.ledger == nil {
		return nil, nil
	}
	after := s.ledger.Clone()
	if every := s.config.Every; every > 1 {
		names, rounds = s.names, bands(s.round+rounds, every)-bands(s.round, every)
	}
	if rounds == 0 {
		return after, nil
	}
	return after, after.SpendRounds(s.config.Cost, int(rounds), names...)
}

// chargeSkipped returns the ledger and the counts as they are after a given number of rounds whose
// parties nobody knows: each party counts as having been in as many of them as it may have been.
func (s *course) chargeSkipped(rounds uint64) (*accounting.Ledger, []uint64, error) {
	if s.counts == nil {
		ledger, err := s.charge(s.names, rounds)
		return ledger, nil, err
	}
	counts, ledger := slices.Clone(s.counts), s.ledger
	if ledger != nil {
		ledger = ledger.Clone()
	}
	for i := range counts {
		more := min(rounds, s.config.Submissions-counts[i])
		counts[i] += more
		if ledger == nil || more == 0 {
			continue
		}
		if err := ledger.SpendRounds(s.config.Cost, int(more), s.names[i]); err != nil {
			return nil, nil, err
		}
	}
	return ledger, counts, nil
}

// done reports whether a party has submitted as often as it agreed to.
func (s *course) done(party int) bool {
	return s.counts != nil && s.counts[party] >= s.config.Submissions
}

// number has an error name a round by its number in the job, which has several sessions.
func number(err error, round uint64) {
	var missing *protocol.MissingError
	if errors.As(err, &missing) {
		missing.Round = round
	}
}

// loses counts a round without a sum. The job pauses if the next would be lost as well, for all
// that is known: then somebody has to look.
func (s *course) loses(session uint64, why error) {
	s.lost++
	s.inRow++
	s.lostAt = s.now
	s.of, s.ask = nil, false
	number(why, s.round)
	s.decided(Notice{Kind: Lost, Session: session, Round: s.round, Err: why})
	mute := errors.As(why, new(muted))
	if s.inRow < mostLost && !mute || s.round >= s.config.Rounds {
		return
	}
	paid, next := "", "the next round"
	if s.ledger != nil {
		paid, next = ", each at the cost of a round's privacy", "the next round's privacy"
	}
	s.paused = true
	said := fmt.Errorf("%d rounds in a row were lost%s; resume when the cause is fixed. The last: %w",
		s.inRow, paid, why)
	if mute {
		said = fmt.Errorf("enough parties are here, but nobody submitted in round %d: whatever stops "+
			"them would cost %s too; see their logs, and resume when it is fixed: %w", s.round, next, why)
	}
	s.decided(Notice{Kind: Paused, Round: s.round, Err: said})
}

// muted marks why a round was lost in which nobody submitted though as many parties were here as a
// sum takes. Something keeps them all from it, such as a proxy that takes no long messages.
type muted struct{ error }

func (e muted) Unwrap() error { return e.error }

// ends ends the job.
func (s *course) ends(why string) {
	s.ended, s.of, s.ask = why, nil, false
	s.decided(Notice{Kind: Ended, Round: s.round, Err: errors.New(why)})
}

// order carries out an order about the job as a whole, which has not ended.
func (s *course) order(o Order) {
	kind := Paused
	if s.paused = o.Do == Pause; !s.paused {
		kind, s.inRow = Resumed, 0
	}
	s.decided(Notice{Kind: kind, Round: s.round, Err: errors.New(o.Why)})
}

// closed reports whether nothing of a stage is handed out: a decision is not durable, or the job is
// over, and then it yields that.
func (s *course) closed(yield func(Item) bool) bool {
	if s.save || s.ended == "" {
		return s.save
	}
	yield(Item{Kind: Last, Name: "end", Round: s.round})
	return true
}

// status returns where the job stands, apart from the stage.
func (s *course) status() Status {
	return Status{Round: s.round, Lost: s.lost, Paused: s.paused, Ended: s.ended,
		Stalled: s.ended != "" && s.round > 0 && s.lost == s.round, Begun: s.begun, Fresh: s.fresh}
}

// Ledger is a method of [Lead].
func (s *course) Ledger() *accounting.Ledger { return s.ledger }
