package drive

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
)

// This file has how what follows from a committee's decisions is given out, and what is saved.

// Wake is a method of [Lead].
func (s *committee) Wake() Time {
	if s.save || s.ended != "" {
		return Never
	}
	wake := min(s.parties.sweep, s.members.sweep, s.lookAt)
	if s.look || s.counted && s.stage != Applying {
		return s.now
	}
	if s.stage == Resting || s.stage == Applying {
		return wake
	}
	step := s.people().wake(&s.step, s.now, s.claims())
	if s.stage != Submitting {
		return min(wake, step)
	}
	if s.config.Buffer > 0 {
		step = s.fullAt()
	}
	waiting := s.server.Waiting()
	switch {
	case s.mayGrant():
		return s.now
	case s.asks() && step <= s.now: // the round is not closed before the members have answered
		return min(wake, s.members.wake(&s.answers, s.now, council{s, true}))
	case s.asks():
		return min(wake, step, s.members.wake(&s.answers, s.now, council{s, true}))
	case waiting >= s.batch:
		return s.now
	case waiting > 0:
		return min(wake, step, s.lull())
	}
	return min(wake, step)
}

// mayGrant reports whether there is room for somebody who waits for it.
func (s *committee) mayGrant() bool {
	return len(s.queue) > 0 && s.hasRoom(0) &&
		(s.hasRoom(len(s.uploads)) || slices.ContainsFunc(s.uploads, s.roomless))
}

// Tick is a method of [Lead].
func (s *committee) Tick(now Time) error {
	s.clock(now)
	if s.save || s.ended != "" {
		return nil
	}
	for _, r := range []*room{&s.parties, &s.members} {
		r.sweepAway(s.now, func(i int) { s.leave(r, i) }, func(i int) {
			r.fade(i)
			s.touch(r, i)
		})
	}
	for {
		if again, err := s.proceed(); err != nil || !again {
			return err
		}
	}
}

// Ready is a method of [Lead].
func (s *committee) Ready() (Prepared, bool) {
	p := Prepared{Save: s.save, Notices: slices.Clone(s.notices)}
	return p, s.save || s.ask || len(s.granted) > 0 || len(s.notices) > 0
}

// Advance is a method of [Lead].
func (s *committee) Advance(now Time) Orders {
	s.clock(now)
	out := Orders{Tell: s.save || len(s.granted) > 0, Upload: s.granted}
	if s.ask {
		out.Apply = &Apply{Round: s.round, Fresh: s.fresh, Parties: slices.Clone(s.of), Values: s.values,
			Lost: s.lost, Ledger: s.ledger}
	}
	if s.step.fresh {
		s.step = waiting{since: s.now}
		s.people().markAll(&s.step, s.now, s.claims())
	}
	if s.asks() && s.answers.fresh {
		s.answers = waiting{since: s.now}
		s.members.markAll(&s.answers, s.now, council{s, true})
	}
	s.save, s.ask, s.granted, s.notices = false, false, nil, nil
	return out
}

// Pending is a method of [Lead]: an opening, and [Upload] once there is room for the submission
// that a party has offered.
func (s *committee) Pending(who Peer) iter.Seq[Item] {
	if who.Member {
		return s.memberPending(who.Index)
	}
	return s.partyPending(who.Index)
}

func (s *committee) partyPending(party int) iter.Seq[Item] {
	return func(yield func(Item) bool) {
		if s.closed(yield) || s.stage != Submitting || !(crowd{s}).awaits(party) {
			return
		}
		opening := Item{Kind: Carry, Name: fmt.Sprintf("%d.opening", s.round), Round: s.round,
			Own: s.sent[0].All}
		if !yield(opening) || !s.offers[party].open {
			return
		}
		yield(Item{Kind: Upload, Round: s.round,
			Name: fmt.Sprintf("%d.upload%d", s.round, s.offers[party].granted)})
	}
}

func (s *committee) memberPending(member int) iter.Seq[Item] {
	return func(yield func(Item) bool) {
		switch {
		case s.closed(yield):
			return
		case s.stage == Announcing && s.server.Awaits(member):
			yield(Item{Kind: Carry, Name: fmt.Sprintf("%d.invite", s.round+1), Own: s.invite})
			return
		case !slices.Contains(s.server.Members(), member):
			return
		}
		for _, x := range s.sent {
			item := Item{Kind: Carry, Name: fmt.Sprintf("%d.%s", s.round, x.Name), Own: x.All}
			if x.Each != nil {
				item.Own = x.Each[member]
			}
			if item.Own != nil && !yield(item) {
				return
			}
		}
	}
}

// committeeState holds a committee's server in its saved form.
type committeeState struct {
	Format int
	Job    Recorded
	Server []byte // of oneshot.Server.SaveParts
	Stage  Stage
	Batch  string // name of the batch that is with the members, empty if none is
	Sent   []sent
	Invite []byte
	Of     []int
	Sum    string // name of the sum that is applied, empty if none is

	Spoilers, Lapses      []fault
	PartyTook, MemberTook []Time // learned.median
}

const committeeFormat = 1

// objects returns what is saved next to the state, and the names of what may be read again.
func (s *committee) objects() (objects []Object, needed []string) {
	if s.sums.Covered && s.stage >= Submitting && s.stage < Applying {
		for number := 1; number <= s.server.BatchNumber(); number++ {
			needed = append(needed, s.nameOf(number))
		}
	}
	if batch := s.server.Flight(); batch != nil {
		objects = append(objects, Object{s.nameOf(s.server.BatchNumber()), batch})
	}
	if s.values != nil {
		objects = append(objects, Object{s.sumName(), integers(s.values)})
	}
	for _, o := range objects {
		if !slices.Contains(needed, o.Name) {
			needed = append(needed, o.Name)
		}
	}
	return objects, needed
}

func (s *committee) sumName() string { return fmt.Sprint("sum", s.round) }

// Save is a method of [Lead].
func (s *committee) Save(key *keyexchange.SealKey) (saved Saved, err error) {
	out := committeeState{
		Format: committeeFormat, Stage: s.stage, Sent: slices.Clone(s.sent), Invite: s.invite, Of: s.of,
		Job: Recorded{Round: s.round, Lost: s.lost, InRow: s.inRow, Fresh: s.fresh, Begun: s.begun,
			Paused: s.paused, Ended: s.ended, Counts: s.counts},
		Spoilers: s.spoilers.of, Lapses: s.lapses.of,
		PartyTook: s.parties.learned.median[:], MemberTook: s.members.learned.median[:],
	}
	saved.Objects, saved.Needed = s.objects()
	if s.values != nil {
		out.Sum = s.sumName()
	}
	if s.ledger != nil {
		if out.Job.Ledger, err = s.ledger.MarshalJSON(); err != nil {
			return saved, err
		}
	}
	for i := range out.Sent {
		out.Sent[i].Each = nil
	}
	if out.Server, err = s.server.SaveParts(key); err != nil {
		return saved, err
	}
	if s.flight {
		out.Batch = s.nameOf(s.server.BatchNumber())
	}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(out)
	saved.State = b.Bytes()
	return saved, err
}

// integers are a sum as it is saved.
type integers []int64

// WriteTo writes the integers, of eight bytes each.
func (v integers) WriteTo(w io.Writer) (int64, error) {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = binary.BigEndian.AppendUint64(b, uint64(x))
	}
	n, err := w.Write(b)
	return int64(n), err
}

// readIntegers reads n integers, of eight bytes each.
func readIntegers(r io.Reader, n int) ([]int64, error) {
	b := make([]byte, 8*n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(binary.BigEndian.Uint64(b[8*i:]))
	}
	return out, nil
}

// readCommittee restores the committee's server that Save saved.
func readCommittee(
	c Settings, key *keyexchange.SealKey, now Time, state []byte,
) (*committee, error) {
	var in committeeState
	if err := gob.NewDecoder(bytes.NewReader(state)).Decode(&in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if in.Format != committeeFormat || in.Stage < Announcing || in.Stage > Applying {
		return nil, fmt.Errorf("%w: it is of format %d, want %d", ErrState, in.Format, committeeFormat)
	}
	s, err := newCommittee(c, now)
	if err != nil {
		return nil, err
	}
	load := func(batch io.Reader) (err error) {
		s.server, err = oneshot.ReadServer(s.sums, s.batch, key, in.Server, batch)
		return err
	}
	if in.Batch == "" {
		err = load(nil)
	} else {
		err = c.read(in.Batch, load)
	}
	if err != nil {
		return nil, err
	}
	if err := s.take(&in); err != nil {
		return nil, err
	}
	if in.Sum != "" {
		err = c.read(in.Sum, func(r io.Reader) (err error) {
			s.values, err = readIntegers(r, s.sums.Length)
			return err
		})
		if err != nil {
			return nil, err
		}
		s.ask = true
	}
	return s, nil
}

// take takes over what is in a state.
func (s *committee) take(in *committeeState) error {
	s.resume(&in.Job)
	s.stage, s.sent, s.invite, s.of = in.Stage, in.Sent, in.Invite, in.Of
	s.spoilers.of, s.lapses.of = in.Spoilers, in.Lapses
	if len(in.Job.Counts) != len(s.counts) {
		return fmt.Errorf("%w: submissions of %d parties", ErrState, len(in.Job.Counts))
	}
	for i, n := range in.Job.Counts {
		if n > s.config.Submissions {
			return fmt.Errorf("%w: %d submissions of a party, of %d", ErrState, n, s.config.Submissions)
		}
		s.counts[i] = n
	}
	copy(s.parties.learned.median[:], in.PartyTook)
	copy(s.members.learned.median[:], in.MemberTook)
	if s.ledger != nil {
		if err := s.ledger.UnmarshalJSON(in.Job.Ledger); err != nil {
			return fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	for _, one := range []struct {
		f *faults
		r *room
	}{{&s.spoilers, &s.parties}, {&s.lapses, &s.members}} {
		if err := one.f.check(len(one.r.peers)); err != nil {
			return err
		}
		one.r.expect(s.now, s.config.ComeBack)
	}
	if in.Stage >= Submitting && in.Stage < Applying && len(in.Sent) == 0 {
		return fmt.Errorf("%w: a round is open, and its opening is missing", ErrState)
	}
	if in.Batch != "" { // what was settled before is saved without shares, and not sent any more
		envelopes, err := s.server.Batch()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrState, err)
		}
		s.flight = true
		s.sendBatch(envelopes)
	}
	if s.round == 0 || s.round == 1 && s.stage == Submitting {
		s.parties.arm(s.sums.Least())
	}
	s.step.since, s.answers.since = s.now, s.now
	s.mark()
	return nil
}
