package drive

import (
	"bytes"
	"crypto"
	"encoding/gob"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
)

// SenderConfig holds what a party of a job with a committee knows before it takes part.
type SenderConfig struct {
	Limits   Limits
	Sums     *oneshot.Config
	Identity crypto.Signer // Ed25519, of the roster
	Random   io.Reader     // nil: crypto/rand
	// Noisy reports that sums have noise, and that the masks contain the party's share of it. The
	// party then submits zeros where it has no vector: see PartyConfig.Blank.
	Noisy bool
	// Least is the least number of a round in which the party may submit, even if a saved state has a
	// lower one. Spent is the last round in which a party that has lost its state may have submitted;
	// next to a saved state the greater counts.
	Least, Spent uint64
}

// Sender is one party of a job with a committee: it sends one message a round, once there is room
// for it. Call it like a [Party].
type Sender struct {
	config  SenderConfig
	of      *oneshot.Party
	guard   *Guard
	opening []byte // of the round that the program was asked in; where that may be later, the last
	round   uint64 // whose opening that is
	asked   *Ask
	made    uint64 // round of the vector that the program has ready; 0: none
	out     SenderOut
	reports []Report
	unsaved bool
	shown   bool
}

// SenderOut holds what may leave.
type SenderOut struct {
	Ask   *Ask      // a question to the program, in no session; nil: none
	Offer uint64    // round that there is a submission for, 0: none
	Send  []byte    // the submission; nil: none
	Away  []Absence // rounds that this party is absent from: tell the coordinator
}

// NewSender makes a party that has submitted in no round. It fails with [ErrRound], and with
// oneshot.ErrConfig and oneshot.ErrIdentity.
func NewSender(c SenderConfig) (*Sender, error) {
	of, err := oneshot.NewParty(c.Sums, c.Identity, c.Random)
	if err != nil {
		return nil, err
	}
	guard, err := NewGuard(c.Limits, c.Spent)
	if err != nil {
		return nil, err
	}
	return &Sender{config: c, of: of, guard: guard}, nil
}

// senderState is the saved form of a sender.
type senderState struct {
	Format int
	Guard  guardState
	Party  []byte // of oneshot.Party.Save
}

const senderFormat = 1

// State returns the bytes from which [LoadSender] restores the sender. The program that stores them
// has to seal them, so that nobody else changes what was counted.
func (s *Sender) State(key *keyexchange.SealKey) ([]byte, error) {
	party, err := s.of.Save(key)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(senderState{senderFormat, s.guard.state(), party})
	return b.Bytes(), err
}

// LoadSender restores the sender that State saved under key. It fails with [ErrState], with
// [ErrRound], and with the errors of oneshot.LoadParty.
func LoadSender(c SenderConfig, key *keyexchange.SealKey, state []byte) (*Sender, error) {
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
	s := &Sender{config: c, of: of, guard: guard}
	lower, err := guard.catchUp(c.Spent)
	if err != nil {
		return nil, err
	}
	if lower != nil {
		s.unsaved = true
		s.report(CaughtUp, c.Spent, lower)
	}
	return s, nil
}

// Guard returns a copy of the sender's guard.
func (s *Sender) Guard() Guard { return *s.guard }

// Told returns the last round in which the party has submitted. Its carrier reports that number on
// connecting.
func (s *Sender) Told() uint64 { return s.of.Round() }

// Connected has the last submission offered again, because the submission may never have arrived.
func (s *Sender) Connected() {
	s.shown = false
	if s.of.Output() != nil {
		s.out.Offer = s.of.Round()
	}
}

// Opening takes the opening of a round. It asks the program for a vector, unless the guard
// refuses the round.
func (s *Sender) Opening(message []byte) {
	s.shown = false
	h, _, err := wire.ParseHeader(message)
	switch {
	case err != nil:
		s.report(Refused, 0, err)
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
		s.report(Declined, h.Round, err)
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

// None takes the program's answer that there is no vector, and why; the reason stays with the
// party. The party is then absent from the round, or with noise submits zeros. It fails as
// [Sender.Answer] does.
func (s *Sender) None(id AskID, broadcast [32]byte, why error) error {
	if !s.config.Noisy {
		s.Absent(id, why)
		return nil
	}
	if s.stale() && id.Made == 0 { // it is asked again once there is room for them
		s.Finished(id)
		return nil
	}
	return s.submit(id, broadcast, make([]int64, s.config.Sums.Terms.Length), why)
}

// Absent notes that this party does not submit in a round, and why; the reason stays with the
// party. With noise the reason must not depend on any row of the party: see [Sender.None].
func (s *Sender) Absent(id AskID, why error) {
	s.shown = false
	if s.asked == nil || s.asked.ID != id {
		return
	}
	s.report(Missed, id.Round, why)
	s.asked, s.made = nil, 0
	if id.Round < s.round { // there is another broadcast by now
		s.goOn()
		return
	}
	s.opening = nil
	s.out.Away = append(s.out.Away, Absence{id.Round, NoVector})
}

// Answer takes the program's vector, counts it and makes the party's one message, which may leave
// once both are durable. It erases values. It fails with errors of the machine, such as
// oneshot.ErrRandom.
func (s *Sender) Answer(id AskID, broadcast [32]byte, values []int64) error {
	return s.submit(id, broadcast, values, nil)
}

// submit makes the message of values, which are zeros where there is a reason for them.
func (s *Sender) submit(id AskID, broadcast [32]byte, values []int64, zeros error) error {
	s.shown = false
	defer clear(values)
	if s.asked == nil || s.asked.ID != id || s.stale() && id.Made == 0 {
		s.report(Late, id.Round, nil)
		return nil
	}
	guard, err := s.guard.charged(id.Round)
	if err == nil {
		_, err = s.of.SubmitDigest(s.opening, broadcast, id.Made, values)
	}
	switch {
	case errors.Is(err, oneshot.ErrRandom):
		return err
	case zeros == nil && (errors.Is(err, oneshot.ErrRange) || errors.Is(err, oneshot.ErrLength) ||
		errors.Is(err, oneshot.ErrNorm)):
		return s.None(id, broadcast, err)
	case err != nil:
		s.unsaved = s.unsaved || errors.Is(err, oneshot.ErrMissed) // the round's number is used
		s.asked, s.opening = nil, nil
		s.report(Refused, id.Round, err)
		s.out.Away = append(s.out.Away, Absence{id.Round, Guarded})
		return nil
	}
	s.guard, s.asked, s.opening, s.made, s.unsaved = guard, nil, nil, 0, true
	kind := Submitted
	if zeros != nil {
		kind = Blank
	}
	s.report(kind, id.Round, zeros)
	if s.stale() { // there is room for it
		s.out.Send = s.of.Output()
	} else {
		s.out.Offer = id.Round
	}
	return nil
}

// Upload has the submission of a round sent, if the party's last submission is of that round.
func (s *Sender) Upload(round uint64) {
	s.shown = false
	switch {
	case round == s.of.Round():
		s.out.Send = s.of.Output()
	case s.made > 0 && round == s.round && s.opening != nil:
		s.ask(s.made)
	}
}

// ask asks the program for a vector that it made in a round, or to make one.
func (s *Sender) ask(made uint64) {
	s.asked = &Ask{ID: AskID{Round: s.round, Made: made}, Round: s.round}
	s.out.Ask = s.asked
}

func (s *Sender) report(kind ReportKind, round uint64, err error) {
	s.reports = append(s.reports, Report{kind, 0, round, err})
}

// Ready returns what has to be done before anything leaves, and whether there is anything at all.
func (s *Sender) Ready() (Ready, bool) {
	s.shown = true
	return Ready{Save: s.unsaved, Reports: s.reports}, s.unsaved || len(s.reports) > 0 ||
		s.out.Ask != nil || s.out.Offer != 0 || s.out.Send != nil || len(s.out.Away) > 0
}

// Advance is called when the state is durable, if Ready reported that it is new. It returns what
// may leave now: nothing, if there was an event since.
func (s *Sender) Advance() SenderOut {
	if !s.shown {
		return SenderOut{}
	}
	out := s.out
	s.out, s.reports, s.unsaved, s.shown = SenderOut{}, nil, false, false
	return out
}
