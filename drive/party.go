package drive

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// party is one party of a job whose sums are pairwise.
type party struct {
	common
	series     *protocol.ClientSeries
	guard      *Guard
	submission *protocol.Submission // the last, until the next one
	fresh      bool                 // it is not saved
	told       uint64               // last round of the job that has a submission for sure
	asked      *Ask                 // that has not been answered
	ready      *masking.Vector      // what leaves at its instant; nil: there is none, or nothing to do
}

var _ Part = (*party)(nil)

// newParty makes a party in no session yet. It fails with [ErrRound].
func newParty(c PartSettings) (*party, error) {
	guard, err := NewGuard(c.Limits, c.Spent)
	if err != nil {
		return nil, err
	}
	series := protocol.NewClientSeries(c.Label, c.Least, c.Identity, c.Random)
	return &party{common: begun(c), series: series, guard: guard}, nil
}

// Guard is described with [Part].
func (p *party) Guard() *Guard {
	guard := *p.guard
	return &guard
}

// Hello is described with [Part].
func (p *party) Hello() Hello {
	out := Hello{Least: p.least(), Told: p.told}
	for _, c := range p.series.Sessions() {
		out.Sessions = append(out.Sessions, c.Number())
	}
	return out
}

// least returns the least number of a session that the party may join.
func (p *party) least() uint64 { return max(p.config.Least, p.series.Least()) }

// session returns the session of a number, nil if the party has no keys for it.
func (p *party) session(number uint64) *protocol.Client {
	for _, c := range p.series.Sessions() {
		if c.Number() == number {
			return c
		}
	}
	return nil
}

// last sends the last message of a session once more: who has had it refuses the copy.
func (p *party) last(c *protocol.Client) {
	m := Message{Session: c.Number()}
	if _, kept := c.Kept(); !kept {
		m.Bytes = c.Output()
	}
	p.out.Send = append(p.out.Send, m)
}

// Connected is described with [Part].
func (p *party) Connected() {
	p.shown = false
	for _, c := range p.series.Sessions() {
		p.last(c)
	}
}

// Receive is described with [Part].
func (p *party) Receive(in Item) error {
	p.shown = false
	switch in.Kind {
	case Join:
		return p.join(in.Session)
	case Carry:
		return p.receive(in.Message(), in.Round)
	case Last:
		p.over = true
		return nil
	}
	return errItem(in)
}

// join takes the coordinator's proposal of a session, and makes keys for it.
func (p *party) join(number uint64) error {
	if c := p.session(number); c != nil {
		p.last(c)
		return nil
	}
	var announce []byte
	err := fmt.Errorf("%w: %d has been used, the least that may be is %d", protocol.ErrNumber, number,
		p.least())
	if number >= p.least() {
		announce, err = p.series.Succeed(p.config.Session(number))
	}
	switch {
	case errors.Is(err, protocol.ErrNumber):
		p.report(Refused, number, 0, err)
		return nil
	case err != nil:
		return err
	}
	p.unsaved = true
	p.report(Joined, number, 0, nil)
	p.out.Send = append(p.out.Send, Message{Session: number, Bytes: announce})
	return nil
}

// receive takes a message of the coordinator. round is the round of the job to which the carrier
// assigns the message, 0 if the carrier does not say. The party trusts the carrier's number only in
// two ways: it does not work on a round that its guard refuses, and it names the round in its
// answer.
func (p *party) receive(message []byte, round uint64) error {
	c := p.series.Named(message)
	if c == nil {
		return nil // of a session that is over, or that this party never had
	}
	present := p.series.Present()
	answer, err := p.series.Receive(message)
	if now := p.series.Present(); now != present {
		p.report(TookOver, now.Number(), 0, nil)
	}
	_, due := c.Due()
	switch {
	case errors.Is(err, protocol.ErrReplay), errors.Is(err, protocol.ErrPhase):
		// The coordinator asks again: it has not had the answer.
		if due {
			return p.ask(c, round)
		}
		p.last(c)
		return nil
	case err != nil:
		p.report(Refused, c.Number(), round, err)
		return nil
	}
	// A Begin need not be saved: it comes again.
	if h, _, _ := wire.ParseHeader(message); h.Type != wire.TypeBegin {
		p.unsaved = true
	}
	switch {
	case answer != nil:
		p.out.Send = append(p.out.Send, Message{Session: c.Number(), Bytes: answer})
	case due:
		return p.ask(c, round)
	}
	return nil
}

// ask asks the program for a vector, unless the guard refuses the round.
func (p *party) ask(c *protocol.Client, round uint64) error {
	own, _ := c.Due()
	if round != 0 {
		if err := p.guard.Check(round); err != nil {
			p.decline(c.Number(), round, err)
			return nil
		}
	}
	id := AskID{Session: c.Number(), Round: own}
	if p.asked == nil || p.asked.ID != id || p.asked.Round != round {
		p.asked = &Ask{ID: id, Round: round}
		if err := p.toss(c); err != nil {
			return err
		}
	}
	p.out.Ask = p.asked
	return nil
}

func (p *party) decline(session, round uint64, err error) {
	p.report(Declined, session, round, err)
	p.out.Away = append(p.out.Away, Absence{round, Guarded})
}

// Absent is described with [Part].
func (p *party) Absent(id AskID, round uint64, why error) {
	p.answered(id)
	if !p.waiting(id) {
		return
	}
	p.asked = nil
	p.report(Missed, id.Session, round, why)
	p.out.Away = append(p.out.Away, Absence{round, NoVector})
}

// Finished is described with [Part]. Pairwise sums take no vectors of earlier rounds.
func (p *party) Finished(id AskID) {
	p.answered(id)
	p.report(Late, id.Session, id.Round, nil)
}

// waiting reports whether a round still waits for the answer to a question.
func (p *party) waiting(id AskID) bool {
	c := p.series.Present()
	if c == nil || c.Number() != id.Session {
		return false
	}
	round, due := c.Due()
	return due && round == id.Round
}

// Answer is described with [Part].
func (p *party) Answer(a Answer) error {
	p.shown = false
	if p.config.After == 0 {
		p.answered(a.ID)
	}
	if !p.waiting(a.ID) {
		p.report(Late, a.ID.Session, a.Round, nil)
		return nil
	}
	if p.config.After > 0 {
		return p.hold(a)
	}
	return p.submit(a)
}

// submit counts, masks and sends what an answer fills in.
func (p *party) submit(a Answer) error {
	if p.asked != nil && p.asked.Round != 0 && p.asked.Round != a.Round {
		p.decline(a.ID.Session, a.Round, fmt.Errorf("%w: %d was announced, and the broadcast has %d",
			ErrRound, p.asked.Round, a.Round))
		return nil
	}
	guard, err := p.guard.charged(a.Round)
	if err != nil {
		p.decline(a.ID.Session, a.Round, err)
		return nil
	}
	var unfit error
	var shown [][]uint64
	if p.submission != nil { // its room is used again: if it has not left, it does not
		p.submission, p.fresh = nil, false
		p.out.Send = slices.DeleteFunc(p.out.Send, func(m Message) bool { return m.Bytes == nil })
	}
	submission, err := p.series.SubmitVector(a.Broadcast, func(v *masking.Vector) (err error) {
		if unfit, err = p.fill(&a, v); err == nil {
			shown = p.values(v)
		}
		return err
	})
	switch {
	case unfit != nil && p.config.Blank == nil:
		p.Absent(a.ID, a.Round, unfit)
		return nil
	case errors.Is(err, protocol.ErrBroadcast):
		p.report(Refused, a.ID.Session, a.Round, err)
		return nil
	case err != nil:
		return err
	}
	p.guard, p.submission, p.asked = guard, submission, nil
	p.told = a.Round
	p.fresh, p.unsaved = true, true
	kind := Submitted
	if unfit != nil {
		kind = Blank
	}
	p.show(a.Round, shown)
	p.report(kind, a.ID.Session, a.Round, unfit)
	p.out.Send = append(p.out.Send, Message{Session: a.ID.Session})
	return nil
}

// Ready is described with [Part].
func (p *party) Ready() (Ready, bool) { return p.prepare(p.waiting) }

// Advance is described with [Part].
func (p *party) Advance() Out {
	if p.shown {
		p.fresh = false
	}
	return p.advance()
}

// Object is described with [Part].
func (p *party) Object(name string) io.WriterTo {
	if name != SubmissionName || p.submission == nil {
		return nil
	}
	return p.submission
}

// partyState is the saved form of a party.
type partyState struct {
	Format int
	Guard  guardState
	Told   uint64
	Series []byte // of protocol.ClientSeries.Save
}

const partyFormat = 1

// Save is described with [Part].
func (p *party) Save(key *keyexchange.SealKey) (out Saved, err error) {
	series, err := p.series.Save(key)
	if err != nil {
		return out, err
	}
	if p.fresh {
		out.Objects = []Object{{SubmissionName, p.submission}}
	}
	for _, c := range p.series.Sessions() {
		if _, kept := c.Kept(); kept {
			out.Needed = []string{SubmissionName}
		}
	}
	out.State, err = encoded(partyState{partyFormat, p.guard.state(), p.told, series})
	return out, err
}

// loadParty restores the party that Save saved under key. It fails with [ErrState] and [ErrRound],
// and with the errors of protocol.LoadClientSeries.
func loadParty(c PartSettings, key *keyexchange.SealKey, state []byte) (*party, error) {
	var in partyState
	if err := gob.NewDecoder(bytes.NewReader(state)).Decode(&in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if in.Format != partyFormat {
		return nil, fmt.Errorf("%w: it is of format %d, want %d", ErrState, in.Format, partyFormat)
	}
	guard, err := in.Guard.restore(c.Limits)
	if err != nil {
		return nil, err
	}
	series, err := protocol.LoadClientSeries(c.Label, c.Identity, c.Random, key, in.Series,
		c.Session)
	if err != nil {
		return nil, err
	}
	p := &party{common: common{config: c}, series: series, guard: guard, told: in.Told}
	lower, err := guard.catchUp(c.Spent)
	if err != nil {
		return nil, err
	}
	if lower != nil {
		p.unsaved = true
		p.report(CaughtUp, 0, c.Spent, lower)
	}
	return p, nil
}

// Erase is described with [Part].
func (p *party) Erase() { p.series.Erase() }
