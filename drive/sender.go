package drive

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
)

// sender is one party of a job with a committee: it sends one message a round, once there is room
// for it.
type sender struct {
	common
	of      *oneshot.Party
	guard   *Guard
	opening []byte // of the round that the program was asked in; where that may be later, the last
	round   uint64 // whose opening that is
	asked   *Ask
	made    uint64 // round of the vector that the program has ready; 0: none
}

var _ Part = (*sender)(nil)

// newSender makes a party that has submitted in no round. It fails with [ErrRound], and with
// oneshot.ErrConfig and oneshot.ErrIdentity.
func newSender(c PartSettings) (*sender, error) {
	of, err := oneshot.NewParty(c.Sums, c.Identity, c.Random)
	if err != nil {
		return nil, err
	}
	guard, err := NewGuard(c.Limits, c.Spent)
	if err != nil {
		return nil, err
	}
	return &sender{common: begun(c), of: of, guard: guard}, nil
}

// senderState is the saved form of a sender.
type senderState struct {
	Format int
	Guard  guardState
	Party  []byte // of oneshot.Party.Save
}

const senderFormat = 1

// Save is described with [Part].
func (s *sender) Save(key *keyexchange.SealKey) (out Saved, err error) {
	party, err := s.of.Save(key)
	if err != nil {
		return out, err
	}
	out.State, err = encoded(senderState{senderFormat, s.guard.state(), party})
	return out, err
}

// loadSender restores the sender that Save saved under key. It fails with [ErrState], with
// [ErrRound], and with the errors of oneshot.LoadParty.
func loadSender(c PartSettings, key *keyexchange.SealKey, state []byte) (*sender, error) {
	var in senderState
	if err := gob.NewDecoder(bytes.NewReader(state)).Decode(&in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if in.Format != senderFormat {
		return nil, fmt.Errorf("%w: it is of format %d, want %d", ErrState, in.Format, senderFormat)
	}
	guard, err := in.Guard.restore(c.Limits)
	if err != nil {
		return nil, err
	}
	of, err := oneshot.LoadParty(c.Sums, c.Identity, c.Random, key, in.Party)
	if err != nil {
		return nil, err
	}
	s := &sender{common: common{config: c}, of: of, guard: guard}
	lower, err := guard.catchUp(c.Spent)
	if err != nil {
		return nil, err
	}
	if lower != nil {
		s.unsaved = true
		s.report(CaughtUp, 0, c.Spent, lower)
	}
	return s, nil
}

// Guard is described with [Part].
func (s *sender) Guard() *Guard {
	guard := *s.guard
	return &guard
}

// Hello is described with [Part]. Told is the last round in which the party has submitted.
func (s *sender) Hello() Hello { return Hello{Least: s.of.Round() + 1, Told: s.of.Round()} }

// Connected is described with [Part].
func (s *sender) Connected() {
	s.shown = false
	if s.of.Output() != nil {
		s.out.Offer = s.of.Round()
	}
}

// Receive is described with [Part].
func (s *sender) Receive(in Item) error {
	s.shown = false
	switch in.Kind {
	case Carry:
		s.open(in.Message())
	case Upload:
		s.upload(in.Round)
	case Last:
		s.over = true
	default:
		return errItem(in)
	}
	return nil
}

// open takes the opening of a round. It asks the program for a vector, unless the guard
// refuses the round.
func (s *sender) open(message []byte) {
	h, _, err := wire.ParseHeader(message)
	switch {
	case err != nil:
		s.report(Refused, 0, 0, err)
		return
	case h.Round == s.of.Round() && s.of.Output() != nil:
		s.out.Offer = h.Round
		return
	case h.Round < s.config.Least:
		err = fmt.Errorf("%w: round %d, and the first is %d", ErrRepeated, h.Round, s.config.Least)
	default:
		err = s.guard.Check(h.Round)
	}
	if err != nil {
		s.report(Declined, 0, h.Round, err)
		s.out.Away = append(s.out.Away, Absence{h.Round, Guarded})
		return
	}
	s.opening, s.round = bytes.Clone(message), h.Round
	if s.stale() {
		s.goOn()
		return
	}
	s.ask(0)
}

// Absent is described with [Part].
func (s *sender) Absent(id AskID, _ uint64, why error) {
	s.answered(id)
	if !s.waiting(id) {
		return
	}
	s.report(Missed, 0, id.Round, why)
	s.asked, s.made = nil, 0
	if id.Round < s.round { // there is another broadcast by now
		s.goOn()
		return
	}
	s.opening = nil
	s.out.Away = append(s.out.Away, Absence{id.Round, NoVector})
}

// waiting reports whether a question is the last, and has not been answered.
func (s *sender) waiting(id AskID) bool { return s.asked != nil && s.asked.ID == id }

// Answer is described with [Part]. A party whose sums take vectors made from earlier broadcasts
// says with Finished that it has one; an answer before there is room says only why there is none.
func (s *sender) Answer(a Answer) error {
	s.answered(a.ID)
	early := s.stale() && a.ID.Made == 0
	switch {
	case a.Err != nil && s.config.Blank == nil:
		s.Absent(a.ID, a.ID.Round, a.Err)
		return nil
	case a.Err != nil && early: // it is asked again once there is room for zeros
		s.Finished(a.ID)
		return nil
	case !s.waiting(a.ID), early:
		s.report(Late, 0, a.ID.Round, nil)
		return nil
	}
	return s.submit(a)
}

// Instant is described with [Part]. One-message sums have no instants.
func (s *sender) Instant(a Answer) error { return s.Answer(a) }

// submit makes the message of an answer, or of zeros where there is no vector.
func (s *sender) submit(a Answer) error {
	id, layout := a.ID, s.config.Layout
	if layout == nil {
		layout = masking.Layout{{Length: s.config.Sums.Length, Bits: 64}}
	}
	v, err := masking.NewVector(layout)
	if err != nil {
		return err
	}
	defer v.Erase()
	unfit, err := s.fill(&a, v)
	switch {
	case unfit != nil && s.config.Blank == nil:
		s.Absent(id, id.Round, unfit)
		return nil
	case err != nil:
		return err
	}
	lanes := v.Values()
	values := masking.Signed(layout, lanes)
	defer clear(values)
	if s.config.Shown == nil {
		for _, lane := range lanes {
			clear(lane)
		}
	}
	guard, err := s.guard.charged(id.Round)
	if err == nil {
		_, err = s.of.SubmitDigest(s.opening, a.Broadcast, id.Made, values)
	}
	switch {
	case errors.Is(err, oneshot.ErrRandom):
		return err
	case unfit == nil && (errors.Is(err, oneshot.ErrRange) || errors.Is(err, oneshot.ErrLength) ||
		errors.Is(err, oneshot.ErrNorm)):
		a.Err = err
		return s.Answer(a)
	case err != nil:
		s.unsaved = s.unsaved || errors.Is(err, oneshot.ErrMissed) // the round's number is used
		s.asked, s.opening = nil, nil
		s.report(Refused, 0, id.Round, err)
		s.out.Away = append(s.out.Away, Absence{id.Round, Guarded})
		return nil
	}
	s.show(id.Round, lanes)
	s.guard, s.asked, s.opening, s.made, s.unsaved = guard, nil, nil, 0, true
	kind := Submitted
	if unfit != nil {
		kind = Blank
	}
	s.report(kind, 0, id.Round, unfit)
	if s.stale() { // there is room for it
		s.send()
	} else {
		s.out.Offer = id.Round
	}
	return nil
}

// upload has the submission of a round sent, if the party's last submission is of that round.
func (s *sender) upload(round uint64) {
	switch {
	case round == s.of.Round() && s.of.Output() != nil:
		s.send()
	case s.made > 0 && round == s.round && s.opening != nil:
		s.ask(s.made)
	}
}

// ask asks the program for a vector that it made in a round, or to make one.
func (s *sender) ask(made uint64) {
	s.asked = &Ask{ID: AskID{Round: s.round, Made: made}, Round: s.round}
	s.out.Ask = s.asked
}

// send sends the last submission, once.
func (s *sender) send() { s.out.Send = []Message{{Bytes: s.of.Output()}} }

// Ready is described with [Part].
func (s *sender) Ready() (Ready, bool) { return s.prepare(s.waiting) }

// Advance is described with [Part].
func (s *sender) Advance() Out { return s.advance() }

// Object is described with [Part]: a sender's submission is short, and in its state.
func (s *sender) Object(string) io.WriterTo { return nil }

// Erase is described with [Part]: a sender keeps no keys between two calls.
func (s *sender) Erase() {}
