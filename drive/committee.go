package drive

import (
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
)

// committee leads a job whose parties send one message a round, and whose committee removes the key
// from the sum. It asks the members for keys, opens the round, has as many parties upload at a time
// as there is room for, has the members check the submissions in batches, sign the list of parties
// in the sum, and reveal the sum of those parties' keys.
type committee struct {
	course
	parties, members room
	sums             *oneshot.Config
	figures          oneshot.Figures
	batch, most      int // parties, and bytes of a message

	server  *oneshot.Server
	stage   Stage
	step    waiting // of the stage: for parties in Submitting, else for members
	answers waiting // for the members' word on a batch, or for their noise
	flight  bool    // a batch is with them
	invite  []byte
	sent    []sent  // to the members with keys, of the round that is open
	offers  []offer // by party
	queue   []int   // parties that have offered and wait for room, in order
	uploads []int   // those that were told to upload
	granted []int   // of these, those who were told since the last Advance
	opened  uint64  // the last round that this very server has opened, and not one before it
	tried   int     // parts that the last attempt at a sum had
	values  []int64 // the sum that is applied

	spoilers faults // the parties'
	lapses   faults // the members'
	counted  bool
}

// sent is a message to members.
type sent struct {
	Name  string
	Batch int            // of which it is; 0: the round's
	All   []byte         // the same for all, or
	Each  map[int][]byte // by member, which is not saved
}

// offer says whether a party has something to submit, and whether it may.
type offer struct {
	made    bool
	queued  bool
	open    bool // it was told to upload, and room is kept for it
	since   Time // then
	granted int  // how often it was told
}

// recentBatches is how many batches members may be behind.
const recentBatches = 4

// start makes the rounds of a job that begins.
func (s *committee) start() (err error) {
	if s.server, err = oneshot.NewServer(s.sums, s.batch); err != nil {
		return err
	}
	s.stage = Resting
	for _, r := range []*room{&s.parties, &s.members} {
		r.expect(s.now, r.learned.back(&s.config))
	}
	s.parties.arm(s.sums.Least())
	s.mark() // members may come before anything is decided
	return nil
}

func newCommittee(c Settings, now Time) (*committee, error) {
	figures, err := c.Sums.Parameters()
	if err != nil {
		return nil, err
	}
	if c.Batch == 0 {
		c.Batch = oneshot.DefaultBatch
	}
	less, err := c.bound()
	if err != nil {
		return nil, err
	}
	n, m := c.Sums.Roster.Len(), c.Sums.Committee.Len()
	s := &committee{
		course:   newCourse(c, c.Sums.Roster, now),
		sums:     c.Sums,
		figures:  figures,
		batch:    c.Batch,
		most:     c.Sums.MaxMessage(),
		offers:   make([]offer, n),
		spoilers: newFaults(n),
		lapses:   newFaults(m),
	}
	copy(s.counts, less)
	s.parties, s.members = newRoom(&s.config, n, now), newRoom(&s.config, m, now)
	return s, nil
}

// enter begins a stage. Its time counts from [Lead.Advance] on.
func (s *committee) enter(stage Stage) {
	if s.stage == Submitting {
		s.parties.use(&s.step, s.stage, &s.spoilers, crowd{s})
		s.tellShort(&s.parties, &s.spoilers, s.stage, s.sums.Colluders, Notice{})
	} else {
		s.members.use(&s.step, s.stage, &s.lapses, council{s, false})
		s.tellShort(&s.members, &s.lapses, s.stage, s.sums.Faults, Notice{Member: true})
	}
	s.stage, s.step = stage, waiting{fresh: true}
	s.save = true
	s.mark()
}

// proceed decides one thing, and reports whether there may be another.
func (s *committee) proceed() (again bool, err error) {
	if s.ended != "" {
		return false, nil
	}
	look := s.look || s.now >= s.lookAt
	if s.look = false; look {
		s.lookAt, s.step.stuck = Never, false
		s.tellMissing(&s.parties, &s.spoilers)
	}
	if again, err := s.catchUp(); again || err != nil {
		return again, err
	}
	switch s.stage {
	case Resting:
		return s.begin()
	case Announcing:
		return s.open()
	case Submitting:
		return s.collect()
	case Signing:
		return s.certify()
	case Revealing:
		return s.reveal()
	}
	return false, nil
}

// catchUp looks whether what is saved was set back: more members than may lie, or more parties,
// know of a later round. The rounds in between are spent, and lost.
func (s *committee) catchUp() (again bool, err error) {
	if !s.counted && !s.behind || s.stage == Applying {
		return false, nil
	}
	s.counted = false
	told := func(p *peer) uint64 { return p.told }
	known := s.members.beyond(s.sums.Faults, told)
	known = max(known, s.parties.beyond(max(s.sums.Colluders, 1), told))
	if known = s.lastBegun(known); known <= s.round && !s.behind {
		return false, nil
	}
	s.behind = false
	skipped := known - s.round // a round that is open is lost besides
	if err := s.chargeReceived(); err != nil {
		return false, err
	}
	ledger, counts, err := s.chargeSkipped(skipped)
	if errors.Is(err, accounting.ErrBudget) {
		s.end(BudgetSpent)
		return false, nil
	} else if err != nil {
		return false, err
	}
	if s.stage >= Submitting {
		s.lost++
		s.decided(Notice{Kind: Lost, Round: s.round, Err: ErrSetBack})
	}
	s.ledger, s.counts, s.round, s.lost = ledger, counts, known, s.lost+skipped
	s.decided(Notice{Kind: SetBack, Round: s.round, Skipped: skipped})
	s.rest()
	return true, nil
}

// rest ends what is left of a round.
func (s *committee) rest() {
	s.server.Skip(s.round)
	s.flight, s.sent, s.values, s.of = false, nil, nil, nil
	s.enter(Resting)
}

// begin asks the members for keys of the next round, or ends the job. That costs nothing, and
// uses no number up.
func (s *committee) begin() (again bool, err error) {
	if s.round >= s.config.Rounds {
		s.end(AllHeld)
		return false, nil
	}
	if s.paused {
		return false, nil
	}
	if s.config.Buffer > 0 && !s.left(s.sums.Least()) {
		s.end(BudgetSpent)
		return false, nil
	}
	if due := s.again(); s.now < due {
		s.later(due)
		return false, nil
	}
	s.invite = s.server.Invite()
	s.enter(Announcing)
	return true, nil
}

// open opens the round once as many members have keys as have to sign and to reveal, and somebody
// is here to submit. All parties are charged, since who will submit is not known yet; but with a
// buffer those alone that have submitted, when the round closes.
func (s *committee) open() (again bool, err error) {
	if !s.over() {
		return false, nil
	}
	if s.paused || s.server.Keys() < s.figures.Keys || !s.enough(max(1, s.first())) {
		s.step.stuck = true // some may still come, at no cost
		return false, nil
	}
	var fresh [32]byte
	if _, err := io.ReadFull(s.random, fresh[:]); err != nil {
		return false, fmt.Errorf("%w: %w", protocol.ErrRandom, err)
	}
	digest, err := s.config.Broadcast(s.round+1, fresh)
	if err != nil {
		return false, err
	}
	ledger := s.ledger
	if s.config.Buffer == 0 {
		ledger, err = s.charge(s.names, 1)
	}
	if errors.Is(err, accounting.ErrBudget) {
		s.end(BudgetSpent)
		return false, nil
	} else if err != nil {
		return false, err
	}
	opening, err := s.server.OpenDigest(digest)
	if err != nil {
		return false, err
	}
	s.round, s.fresh, s.ledger, s.begun = s.round+1, fresh, ledger, s.now
	s.opened = s.round
	s.decided(Notice{Kind: Begun, Round: s.round, Parties: s.server.Members(), Member: true})
	s.sent = []sent{{Name: "opening", All: opening}}
	s.queue, s.tried = nil, 0
	clear(s.offers)
	s.answers = waiting{fresh: s.sums.CommitteeNoise}
	s.enter(Submitting)
	return true, nil
}

// enough reports whether at least the given number of parties are here.
func (s *committee) enough(least int) bool {
	here, _ := s.parties.parted(&s.spoilers)
	return here >= least
}

// lose ends a round without a sum.
func (s *committee) lose(why error) {
	s.loses(0, why)
	s.rest()
}

// end ends the job.
func (s *committee) end(why string) {
	s.rest()
	s.ends(why)
}

// Applied is a method of [Lead].
func (s *committee) Applied(now Time, round uint64, err error) {
	s.clock(now)
	if s.stage != Applying || round != s.round {
		return
	}
	if err != nil {
		s.lose(err)
		return
	}
	s.inRow = 0
	s.decided(Notice{Kind: Summed, Round: s.round, Parties: s.of})
	s.rest()
}

// Again is a method of [Lead].
func (s *committee) Again(now Time) {
	s.clock(now)
	s.parties.expect(s.now, s.config.ComeBack)
	s.members.expect(s.now, s.config.ComeBack)
	s.step.anew(s.now)
	s.answers.anew(s.now)
	for i := range s.offers {
		s.offers[i].since = s.now
	}
	s.mark()
}

// Order is a method of [Lead].
func (s *committee) Order(now Time, o Order) {
	s.clock(now)
	switch {
	case s.ended != "":
	case o.Do == End:
		if err := s.chargeReceived(); err != nil {
			o.Why = fmt.Sprintf("%s; what it spent is not known: %v", o.Why, err)
		}
		s.end(o.Why)
	case o.Do == Exclude, o.Do == Readmit:
		s.admit(o)
	default:
		s.course.order(o)
	}
}

// At is a method of [Lead].
func (s *committee) At(who Peer) Standing {
	p := s.peer(who)
	out := Standing{Here: p.here, Ever: p.known}
	if who.Member {
		out.Due = (council{s, s.flight}).awaits(who.Index)
		return out
	}
	out.Due = s.stage == Submitting && (crowd{s}).awaits(who.Index)
	out.Excluded = s.spoilers.excluded(who.Index)
	return out
}

// Keep is a method of [Lead]. Messages that are held are not saved: they are asked for again.
func (s *committee) Keep() {}

// Status is a method of [Lead].
func (s *committee) Status() Status {
	out := s.status()
	out.Stage, out.Since, out.Opened = s.stage, s.step.since, s.server.Members()
	if s.config.Buffer > 0 && s.stage == Submitting {
		out.Taken = s.server.Taken()
	}
	return out
}

// headerOf parses a message's header, and refuses what its sender's connection does not allow.
func headerOf(message []byte, sender uint32) (wire.Header, error) {
	h, _, err := wire.ParseHeader(message)
	if err == nil && h.Sender != sender {
		err = oneshot.ErrSender
	}
	return h, err
}
