package drive

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hushsum/hushsum/oneshot"
)

// This file has how a committee's round collects submissions, and comes to its sum; and what may
// happen to it.

// collect has parties upload, sends what has come to the members, settles what they have checked,
// and closes the round.
func (s *committee) collect() (again bool, err error) {
	if s.flight {
		over, tell := s.members.over(&s.answers, s.now, council{s, true})
		if tell {
			s.tellAwaited(&s.members, &s.answers)
		}
		if over {
			return true, s.settle()
		}
	}
	if s.config.Buffer > 0 {
		s.grant() // who may upload is waited for
	}
	if s.deals() {
		if again, err := s.deal(); again || err != nil {
			return again, err
		}
	}
	over := s.over()
	waiting, asks := s.server.Waiting(), s.asks()
	if !asks && waiting > 0 && (waiting >= s.batch || over || s.now >= s.lull()) {
		return true, s.dispatch()
	}
	if s.config.Buffer == 0 {
		s.grant()
	}
	if asks || !over {
		return false, nil
	}
	closing, err := s.server.Close()
	switch {
	case errors.Is(err, oneshot.ErrTooFew) && s.still(s.sums.Least()):
		s.step.stuck = true // some may still come, at no cost
		return false, nil
	case errors.Is(err, oneshot.ErrTooFew):
		unpaid := s.chargeReceived()
		// To a server that was loaded within the round parties may still be on their way.
		mute := s.server.Taken() == 0 && s.server.Settled() == 0 && s.opened == s.round
		if mute && s.enough(s.sums.Least()) {
			err = muted{err}
		}
		s.lose(err)
		return true, unpaid
	case err != nil:
		return false, err
	}
	if err := s.chargeReceived(); err != nil {
		return false, err
	}
	s.sent = append(s.sent, sent{Name: "closing", All: closing})
	s.enter(Signing)
	return true, nil
}

// deals reports whether the members' noise is collected, which is the round's first batch. Parties
// upload meanwhile, and go to the members after it.
func (s *committee) deals() bool {
	return s.sums.CommitteeNoise && s.stage == Submitting && s.server.BatchNumber() == 0
}

// asks reports whether members are waited for while parties submit: for noise, or for their word on
// a batch.
func (s *committee) asks() bool { return s.flight || s.deals() }

const coin = "coin"

// draws reports whether members have still to be told which of their candidates they deal.
func (s *committee) draws() bool {
	return s.sums.Norm != 0 &&
		!slices.ContainsFunc(s.sent, func(x sent) bool { return x.Name == coin })
}

// toss has each member deal one of its candidates.
func (s *committee) toss() error {
	message, err := s.server.Coin(s.random)
	if err != nil {
		return err
	}
	s.answered(Submitting)
	s.sent = append(s.sent, sent{Name: coin, All: message})
	s.answers, s.save = waiting{fresh: true}, true
	s.members.markAll(&s.answers, s.now, council{s, true})
	return nil
}

// deal sends the members' noise to all of them, once all has come that is waited for, and before,
// where there is a bound, the coin that draws it from their candidates. Without either of enough
// members the round is lost.
func (s *committee) deal() (again bool, err error) {
	over, tell := s.members.over(&s.answers, s.now, council{s, true})
	if tell {
		s.tellAwaited(&s.members, &s.answers)
	}
	ends := s.answers.since.after(s.config.StepTime)
	late := !s.answers.fresh && s.now >= ends && s.answers.blocking == 0
	if !over && !late {
		return false, nil
	}
	if s.draws() {
		err = s.toss()
	} else {
		err = s.dispatch()
	}
	switch {
	case !errors.Is(err, oneshot.ErrTooFew):
		return err == nil, err
	case late:
		unpaid := s.chargeReceived()
		s.lose(err)
		return true, unpaid
	}
	s.answers.stuck = true
	s.later(ends)
	return false, nil
}

// lull gives when a batch that is not full goes to the members: parties come a few times less often
// than they did. While a buffer fills, nobody waits for the members.
func (s *committee) lull() Time {
	if s.config.Buffer > 0 {
		return Never
	}
	wait := s.config.Floor
	if n := len(s.step.delays); n > 1 {
		gap := (s.step.delays[n-1] - s.step.delays[0]) / Time(n-1)
		wait = max(wait, min(4*gap, s.config.StepTime/8))
	}
	return max(s.step.since, s.step.heard) + wait
}

// grant has parties upload that have offered to, in the order in which they have, while there is
// room for what they send.
func (s *committee) grant() {
	s.uploads = slices.DeleteFunc(s.uploads, s.roomless)
	for len(s.queue) > 0 && s.hasRoom(len(s.uploads)) {
		party := s.queue[0]
		o := &s.offers[party]
		s.queue, o.queued = s.queue[1:], false
		if s.awaitsHere(party) {
			o.open, o.since = true, s.now
			o.granted++
			s.granted = append(s.granted, party)
			s.uploads = append(s.uploads, party)
			s.touchParty(party)
		}
	}
}

// hasRoom reports whether one more party may upload next to the given number.
func (s *committee) hasRoom(uploads int) bool {
	return s.server.Waiting()+uploads < s.batch &&
		(s.config.Buffer == 0 || s.server.Taken()+uploads < s.config.Buffer)
}

// roomless reports whether no room is kept for a party that was told to upload: it cannot, will
// not, or has let the step pass once, and would keep the room from others for as long as it likes.
func (s *committee) roomless(party int) bool {
	c := crowd{s}
	return !s.offers[party].open || !s.parties.peers[party].near || c.passed(party) ||
		!c.awaits(party)
}

// enqueue has a party wait for room.
func (s *committee) enqueue(party int) {
	o := &s.offers[party]
	if o.made, o.open = true, false; !o.queued {
		o.queued = true
		s.queue = append(s.queue, party)
	}
	s.touchParty(party)
}

func (s *committee) awaitsHere(party int) bool {
	return s.parties.peers[party].here && (crowd{s}).awaits(party)
}

// dispatch sends a batch to the members.
func (s *committee) dispatch() error {
	envelopes, err := s.server.Batch()
	if err != nil {
		return err
	}
	s.answered(Submitting) // of noise; there is nothing to learn else
	s.sendBatch(envelopes)
	s.flight, s.answers, s.save = true, waiting{fresh: true}, true
	s.members.markAll(&s.answers, s.now, council{s, true})
	return nil
}

// answered ends a step of the members next to the parties'.
func (s *committee) answered(stage Stage) {
	s.members.use(&s.answers, stage, &s.lapses, council{s, true})
}

// sendBatch adds a batch to what members are sent, and forgets those that they may not be behind.
func (s *committee) sendBatch(envelopes []oneshot.Envelope) {
	number := s.server.BatchNumber()
	next := sent{Name: fmt.Sprint("batch", number), Batch: number, Each: make(map[int][]byte)}
	for _, e := range envelopes {
		next.Each[e.To] = e.Message
	}
	kept := s.sent[:0]
	for _, x := range s.sent {
		if x.Batch == 0 || x.Batch > number-recentBatches {
			kept = append(kept, x)
		}
	}
	s.sent = append(kept, next)
}

// settle ends the batch that is with the members. If too many of them dispute each other's noise,
// the round is lost.
func (s *committee) settle() error {
	s.answered(Preparing)
	settled, err := s.server.Settle()
	if errors.Is(err, oneshot.ErrTooFew) {
		unpaid := s.chargeReceived()
		s.lose(err)
		return unpaid
	} else if err != nil {
		return err
	}
	number := s.server.BatchNumber()
	s.sent = append(s.sent, sent{Name: fmt.Sprint("settled", number), Batch: number, All: settled})
	s.flight, s.answers, s.save = false, waiting{}, true
	return nil
}

// certify asks the members to reveal, once enough have signed who is in.
func (s *committee) certify() (again bool, err error) {
	if !s.over() && !s.late() {
		return false, nil
	}
	certificate, err := s.server.Certificate()
	switch {
	case errors.Is(err, oneshot.ErrTooFew):
		return s.without(err), nil
	case err != nil:
		return false, err
	}
	s.sent = append(s.sent, sent{Name: "certificate", All: certificate})
	s.enter(Revealing)
	return true, nil
}

// late reports whether members without whom a round has no sum have had their time.
func (s *committee) late() bool {
	return s.now >= s.step.since.after(s.config.StepTime) && s.step.blocking == 0
}

// without waits for more members than have answered, or loses the round for want of them.
func (s *committee) without(why error) (lost bool) {
	if s.late() {
		s.lose(why)
		return true
	}
	s.step.stuck = true
	s.later(s.step.since.after(s.config.StepTime))
	return false
}

// reveal takes the key off the sum, if what the members have revealed is enough.
func (s *committee) reveal() (again bool, err error) {
	over, late, parts := s.over(), s.late(), s.server.Parts()
	if !over && !late {
		return false, nil
	}
	opens := s.opens()
	if err = errWaits; parts != s.tried || late {
		if s.tried = parts; opens {
			err = s.reduce()
		} else {
			s.values, err = s.sum()
		}
	}
	var blamed *oneshot.PartyError
	switch {
	case err == nil && opens:
		s.tried = 0
		s.enter(Revealing)
		return true, nil
	case err == nil:
		s.of, s.ask = s.server.Included(), true
		s.enter(Applying)
		return true, nil
	case errors.Is(err, errLeft):
	case err == errWaits, errors.Is(err, oneshot.ErrTooFew), errors.Is(err, oneshot.ErrParts):
		return s.without(err), nil
	case errors.Is(err, oneshot.ErrCover) && errors.As(err, &blamed):
		s.spoilers.of[blamed.Party].Excluded = true
		s.notices = append(s.notices, Notice{Kind: Spoiler, Round: s.round, Party: blamed.Party})
	case !errors.Is(err, oneshot.ErrNoise):
		return false, err
	}
	s.lose(err)
	return true, nil
}

var (
	// errWaits: no part has come since the last attempt.
	errWaits = errors.New("drive: more parts may arrive")
	// errLeft: nobody who comes later changes how many are left.
	errLeft = errors.New("drive: parties that cheat leave too few")
)

func (s *committee) sum() ([]int64, error) {
	if s.sums.Covered && s.sums.Norm == 0 {
		if err := s.uncoverAll(); err != nil {
			return nil, err
		}
	}
	return s.server.Sum()
}

const reduction = "reduction"

// opens reports whether members have opened covers, or are about to, and reveal their parts when
// parties whose proof does not hold are out again.
func (s *committee) opens() bool {
	return s.sums.Covered && s.sums.Norm != 0 && s.stage == Revealing &&
		!slices.ContainsFunc(s.sent, func(x sent) bool { return x.Name == reduction })
}

// reduce takes covers off, and has the members leave out whom that convicts.
func (s *committee) reduce() error {
	convicted := len(s.server.Convicted())
	err := s.uncoverAll()
	for _, blamed := range s.server.Convicted()[convicted:] {
		s.convict(blamed)
	}
	if err != nil {
		return err
	}
	messages, err := s.server.Reduce()
	if errors.Is(err, oneshot.ErrTooFew) {
		return fmt.Errorf("%w: %w", errLeft, err)
	} else if err != nil {
		return err
	}
	for i, message := range messages {
		name := reduction
		if i < len(messages)-1 {
			name = fmt.Sprint("guilty", i+1)
		}
		s.sent = append(s.sent, sent{Name: name, All: message})
	}
	return nil
}

func (s *committee) uncoverAll() error {
	for number := 1; number <= s.server.BatchNumber(); number++ {
		if err := s.config.read(s.nameOf(number), s.server.ReadBatch); err != nil {
			return err
		}
	}
	return nil
}

// nameOf names the object that a batch of the open round is.
func (s *committee) nameOf(batch int) string { return fmt.Sprintf("batch%dof%d", batch, s.round) }

// Connected is a method of [Lead].
func (s *committee) Connected(now Time, who Peer, h Hello) {
	s.clock(now)
	p := s.peer(who)
	s.told(p, h.Told)
	p.connected = true
	s.arrive(s.room(who), who.Index)
}

func (s *committee) told(p *peer, round uint64) {
	if round != p.told && round > s.round {
		s.counted = true
	}
	p.told = round
}

func (s *committee) arrive(r *room, i int) {
	if r.arrive(i, s.now) {
		s.look = true
	}
	s.touch(r, i)
}

func (s *committee) leave(r *room, i int) {
	if r == &s.parties { // what it was sending does not come
		s.offers[i].open = false
	}
	r.leave(i)
	s.touch(r, i)
}

// Gone is a method of [Lead].
func (s *committee) Gone(now Time, who Peer) {
	s.clock(now)
	p := s.peer(who)
	p.connected, p.seen = false, s.now
	if s.config.Away == 0 {
		s.leave(s.room(who), who.Index)
	}
}

// Heard is a method of [Lead].
func (s *committee) Heard(now Time, who Peer) {
	s.clock(now)
	p := s.peer(who)
	if s.config.Away > 0 && p.known {
		s.arrive(s.room(who), who.Index)
	}
	p.seen = s.now
}

// Said is a method of [Lead]. Members say nothing but what they know of.
func (s *committee) Said(now Time, who Peer, said Said) (waited bool) {
	s.clock(now)
	p := s.peer(who)
	if said.Told > 0 {
		s.told(p, said.Told)
	}
	if who.Member || s.stage != Submitting {
		return false
	}
	if said.Absent == s.round && p.absent != s.round {
		p.absent, waited = s.round, true
		s.touchParty(who.Index)
	}
	if said.Offer == s.round && !s.offers[who.Index].open {
		s.enqueue(who.Index)
	}
	return waited
}

// Check is a method of [Lead].
func (s *committee) Check(waiting []Submission) {
	var messages [][]byte
	for _, one := range waiting {
		_, err := headerOf(one.Message, uint32(one.Party))
		if err == nil && s.ended == "" && !s.spoilers.excluded(one.Party) && !s.done(one.Party) {
			messages = append(messages, one.Message)
		}
	}
	s.server.Check(messages)
}

// Receive is a method of [Lead].
func (s *committee) Receive(now Time, who Peer, message io.Reader) error {
	s.clock(now)
	b, err := readWhole(message, s.most)
	switch {
	case err != nil:
		return err
	case s.ended != "":
		return ErrEnded
	case who.Member:
		return s.receiveMember(who.Index, b)
	}
	return s.receive(who.Index, b)
}

// receive takes a party's submission.
func (s *committee) receive(party int, message []byte) error {
	if s.spoilers.excluded(party) {
		return ErrExcluded
	}
	h, err := headerOf(message, uint32(party))
	fresh := h.Round == s.round && s.server.AwaitsParty(party) // or its own error says what it is
	switch {
	case err != nil:
		return err
	case fresh && s.done(party):
		return ErrOften
	case fresh && s.config.Buffer > 0 && s.server.Taken() >= s.config.Buffer:
		err = oneshot.ErrFull
	default:
		err = s.server.Receive(message)
	}
	switch {
	case err == nil:
		s.parties.learned.answered(&s.step, s.now)
	case s.convict(err):
	case errors.Is(err, oneshot.ErrFull):
		s.enqueue(party)
	case errors.Is(err, oneshot.ErrDuplicate), errors.Is(err, oneshot.ErrPhase):
	default: // the same comes again at best: the round does not wait for it
		s.offers[party].open, s.parties.peers[party].passed = false, s.round
	}
	s.touchParty(party)
	return err
}

// convict leaves a party out of the job if an error has evidence that it cheated: see
// oneshot.Terms.Norm. Its [Notice] has the error. A member that cheats in its noise is named too,
// and remains: it is one of the faults that each round bears.
func (s *committee) convict(err error) bool {
	var member *oneshot.MemberError
	if errors.As(err, &member) && member.Evidence != nil {
		s.notices = append(s.notices, Notice{Kind: Liar, Round: s.round, Party: member.Member,
			Member: true, Err: member})
		return true
	}
	var blamed *oneshot.PartyError
	if !errors.As(err, &blamed) || blamed.Evidence == nil {
		return false
	}
	if !s.spoilers.excluded(blamed.Party) {
		s.spoilers.of[blamed.Party].Excluded = true
		s.decided(Notice{Kind: Spoiler, Round: s.round, Party: blamed.Party, Err: blamed})
		s.touchParty(blamed.Party)
	}
	return true
}

// memberSender is added to a member's index in a header (SPEC-ONESHOT.md §6).
const memberSender = 1 << 31

// receiveMember takes one message of a member.
func (s *committee) receiveMember(member int, message []byte) error {
	if _, err := headerOf(message, memberSender+uint32(member)); err != nil {
		return err
	}
	due, convicted := s.server.Awaits(member), len(s.server.Convicted())
	if err := s.server.Receive(message); err != nil {
		if s.convict(err) || errors.Is(err, oneshot.ErrComplaint) { // it is out of the round
			s.touchMember(member)
		}
		return err
	}
	for _, blamed := range s.server.Convicted()[convicted:] {
		s.convict(blamed)
	}
	if due {
		w := &s.step
		if s.asks() {
			w = &s.answers
		}
		s.members.learned.answered(w, s.now)
	}
	s.touchMember(member)
	return nil
}
