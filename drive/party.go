package drive

import (
	"bytes"
	"crypto"
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

// PartyConfig holds what a party knows before it takes part.
type PartyConfig struct {
	Limits Limits
	// Session returns the configuration of the session with a given number. All configurations have
	// Label.
	Session  func(number uint64) *protocol.Config
	Label    string
	Identity crypto.Signer // Ed25519, of the roster
	Random   io.Reader     // nil: crypto/rand

	// After is how long after its question a submission leaves; 0: as soon as there is an answer.
	// Where After is above 0 all parties submit at that instant, whatever their programs have done: a
	// party that has no answer by then sends what Blank writes, zeros with its share of the noise.
	// Luck is the probability with which a party's own coin, tossed anew for each submission, has its
	// program asked at all; 0: the program is always asked.
	After Time
	Luck  float64

	// Least is the least number of a session that the party may join, even if a saved state has a
	// lower one. Spent is the last round in which a party that has lost its state may have submitted;
	// next to a saved state the greater counts.
	Least, Spent uint64

	// Blank writes to v the submission for a round without a vector, zeros with the party's share of
	// the noise; Blank is nil without noise. With Blank the party submits in every round in which it
	// is asked: whether there is a vector is a fact about the party's rows, which may show in the sum
	// only, under the noise.
	Blank func(round uint64, v *masking.Vector) error
}

// Party is one party of a job whose sums are pairwise. Each method takes one event and decides. The
// consequences come out in two steps: [Party.Ready] says whether there are any, and what has to be
// durable first; [Party.Advance], called once that is durable, hands out the messages that leave.
// An event in between postpones them: Advance then hands out nothing, and Ready says more.
//
// A peer's mistake is a [Report], and changes nothing. An error is a mistake of the caller or a
// fault of this machine, and ends the party.
type Party struct {
	config     PartyConfig
	series     *protocol.ClientSeries
	guard      *Guard
	submission *protocol.Submission // the last, until the next one
	fresh      bool                 // it is not saved
	unsaved    bool
	shown      bool // Ready has said all that Advance may hand out
	reports    []Report
	out        Out
	asked      *Ask            // that has not been answered
	ready      *masking.Vector // what leaves at its instant; nil: there is none, or nothing to do
}

// Ready lists the work that must be done before anything leaves.
type Ready struct {
	// Save reports that [Party.State] is new, and must be durable before Advance is called.
	Save bool
	// Submission is the submission that belongs to the saved state, to be stored before the state;
	// nil unless the submission is new.
	Submission *protocol.Submission
	Reports    []Report
}

// Out holds what may leave.
type Out struct {
	Send []Message
	Ask  *Ask      // a question to the program; nil: none
	Away []Absence // rounds that this party is absent from: tell the coordinator
}

// Message is one message to the coordinator.
type Message struct {
	Session uint64
	Bytes   []byte // nil: the submission of this session that was saved last, see Ready
}

// Absence is a round of the job in which a party does not submit.
type Absence struct {
	Number uint64
	// Cause tells the coordinator no more than the coordinator may know.
	Cause Cause
}

// Cause is why a party does not submit.
type Cause string

// The causes.
const (
	NoVector Cause = "no vector" // the program had none, or one that cannot be encoded: see Blank
	Guarded  Cause = "guarded"   // the guard refused the round
)

// Ask asks the program for this party's vector.
type Ask struct {
	ID    AskID
	Round uint64 // of the job; 0 if the carrier did not know it
	// After is how long after the question [Party.Instant] is due; 0: there is no instant. Idle says
	// that the party's coin leaves it out of the round: there is nothing to ask the program, and
	// nobody but the party may know that.
	After Time
	Idle  bool
}

// AskID names a question. It is the same after a restart.
type AskID struct {
	Session uint64
	Round   uint64 // of the session
	// Made is the round whose vector is asked for, which the program reported with [Sender.Finished];
	// 0: the vector must be made now.
	Made uint64
}

// Answer is the program's answer to a question. An answer that comes too late is dropped.
type Answer struct {
	ID        AskID
	Round     uint64   // of the job, as the broadcast has it
	Broadcast [32]byte // the digest of what the vector was made from
	// Fill writes the submission into v. An error that Fill returns has the meaning of Err.
	Fill func(v *masking.Vector) error
	// Err says why there is no vector; Fill is not called then. The party is then absent from the
	// round, or with noise submits zeros. The reason stays with the party either way.
	Err error
}

// ReportKind says what a report is about.
type ReportKind uint8

// The kinds of reports.
const (
	Joined    ReportKind = iota + 1 // Session: keys for it were made
	Refused                         // Session, Err: a message or a proposal was refused
	TookOver                        // Session: its rounds go on from now on
	Declined                        // Session, Round, Err: the guard refused the round
	Missed                          // Session, Round, Err: there is no vector for the round
	Late                            // Session, Round: the round went on without the answer
	Submitted                       // Session, Round
	CaughtUp                        // Round, Err: Spent says more than the state, and counts
	Blank                           // Session, Round, Err: no vector; zeros with noise are submitted
)

// Report tells those who watch the party what happened. It has no secrets.
type Report struct {
	Kind    ReportKind
	Session uint64
	Round   uint64 // of the job
	Err     error
}

// NewParty makes a party in no session yet. It fails with [ErrRound].
func NewParty(c PartyConfig) (*Party, error) {
	guard, err := NewGuard(c.Limits, c.Spent)
	if err != nil {
		return nil, err
	}
	series := protocol.NewClientSeries(c.Label, c.Least, c.Identity, c.Random)
	return &Party{config: c, series: series, guard: guard}, nil
}

// Guard returns a copy of the party's guard.
func (p *Party) Guard() Guard { return *p.guard }

// Least returns the least number of a session that the party may join.
func (p *Party) Least() uint64 { return max(p.config.Least, p.series.Least()) }

// Sessions returns the numbers of the sessions that the party has keys for, in ascending order.
func (p *Party) Sessions() []uint64 {
	var out []uint64
	for _, c := range p.series.Sessions() {
		out = append(out, c.Number())
	}
	return out
}

// session returns the session of a number, nil if the party has no keys for it.
func (p *Party) session(number uint64) *protocol.Client {
	for _, c := range p.series.Sessions() {
		if c.Number() == number {
			return c
		}
	}
	return nil
}

func (p *Party) report(kind ReportKind, session, round uint64, err error) {
	p.reports = append(p.reports, Report{kind, session, round, err})
}

// last sends the last message of a session once more: who has had it refuses the copy.
func (p *Party) last(c *protocol.Client) {
	m := Message{Session: c.Number()}
	if _, kept := c.Kept(); !kept {
		m.Bytes = c.Output()
	}
	p.out.Send = append(p.out.Send, m)
}

// Connected has the last message of every session sent again, because the message may never have
// arrived.
func (p *Party) Connected() {
	p.shown = false
	for _, c := range p.series.Sessions() {
		p.last(c)
	}
}

// Join takes the coordinator's proposal of a session, and makes keys for it.
func (p *Party) Join(number uint64) error {
	p.shown = false
	if c := p.session(number); c != nil {
		p.last(c)
		return nil
	}
	var announce []byte
	err := fmt.Errorf("%w: %d has been used, the least that may be is %d", protocol.ErrNumber, number,
		p.Least())
	if number >= p.Least() {
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
	p.out.Send = append(p.out.Send, Message{number, announce})
	return nil
}

// Receive takes a message of the coordinator. round is the round of the job to which the carrier
// assigns the message, 0 if the carrier does not say. The party trusts the carrier's number only in
// two ways: it does not work on a round that its guard refuses, and it names the round in its
// answer.
func (p *Party) Receive(message []byte, round uint64) error {
	p.shown = false
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
		p.out.Send = append(p.out.Send, Message{c.Number(), answer})
	case due:
		return p.ask(c, round)
	}
	return nil
}

// ask asks the program for a vector, unless the guard refuses the round.
func (p *Party) ask(c *protocol.Client, round uint64) error {
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

func (p *Party) decline(session, round uint64, err error) {
	p.report(Declined, session, round, err)
	p.out.Away = append(p.out.Away, Absence{round, Guarded})
}

// Absent notes that this party does not submit in a round, and why; the reason stays with the
// party. With noise the reason must not depend on any row of the party: see [Answer].
func (p *Party) Absent(id AskID, round uint64, why error) {
	p.shown = false
	if !p.waiting(id) {
		return
	}
	p.asked = nil
	p.report(Missed, id.Session, round, why)
	p.out.Away = append(p.out.Away, Absence{round, NoVector})
}

// waiting reports whether a round still waits for the answer to a question.
func (p *Party) waiting(id AskID) bool {
	c := p.series.Present()
	if c == nil || c.Number() != id.Session {
		return false
	}
	round, due := c.Due()
	return due && round == id.Round
}

// Answer takes the program's vector, counts and masks it; the submission may leave once both are
// durable, or at its instant. It fails with errors of the machine, such as protocol.ErrRandom.
func (p *Party) Answer(a Answer) error {
	p.shown = false
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
func (p *Party) submit(a Answer) error {
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
	if p.submission != nil { // its room is used again: if it has not left, it does not
		p.submission, p.fresh = nil, false
		p.out.Send = slices.DeleteFunc(p.out.Send, func(m Message) bool { return m.Bytes == nil })
	}
	submission, err := p.series.SubmitVector(a.Broadcast, func(v *masking.Vector) error {
		if unfit = p.fill(&a, v); unfit == nil || p.config.Blank == nil {
			return unfit
		}
		v.Erase()
		return p.config.Blank(a.Round, v)
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
	p.fresh, p.unsaved = true, true
	kind := Submitted
	if unfit != nil {
		kind = Blank
	}
	p.report(kind, a.ID.Session, a.Round, unfit)
	p.out.Send = append(p.out.Send, Message{Session: a.ID.Session})
	return nil
}

// fill has the program write its submission.
func (p *Party) fill(a *Answer, v *masking.Vector) error {
	switch {
	case a.Err != nil:
		return a.Err
	case p.config.Blank == nil:
		return a.Fill(v)
	}
	return Caught(func() error { return a.Fill(v) })
}

// ErrPanic: the program panicked when asked to make a vector.
var ErrPanic = errors.New("drive: the program panicked")

// Caught does work, and returns a panic in it as [ErrPanic]. Use Caught for work on a party's rows
// in a job with noise: a process that ends would tell others about the rows.
func Caught(work func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v", ErrPanic, cause)
		}
	}()
	return work()
}

// Ready returns what has to be done before anything leaves, and whether there is anything at all.
func (p *Party) Ready() (Ready, bool) {
	p.shown = true
	r := Ready{Save: p.unsaved, Reports: slices.Clone(p.reports)}
	if p.fresh {
		r.Submission = p.submission
	}
	return r, p.unsaved || len(r.Reports) > 0 || len(p.out.Send) > 0 || p.out.Ask != nil ||
		len(p.out.Away) > 0
}

// Advance is called when the state is durable, if Ready reported that it is new. It returns what
// may leave now: nothing, if there was an event since.
func (p *Party) Advance() Out {
	if !p.shown {
		return Out{}
	}
	out := p.out
	p.out, p.reports, p.unsaved, p.fresh, p.shown = Out{}, nil, false, false, false
	return out
}

// Submission returns the last submission, nil before the first, after a restart, and once its
// memory is reused.
func (p *Party) Submission() *protocol.Submission { return p.submission }

// partyState is the saved form of a party.
type partyState struct {
	Format int
	Guard  guardState
	Series []byte // of protocol.ClientSeries.Save
}

const partyFormat = 1

// State returns the bytes from which [LoadParty] restores the party. The keys in it are sealed
// under key; the program that stores the whole has to seal it, so that nobody else changes what
// was counted.
func (p *Party) State(key *keyexchange.SealKey) ([]byte, error) {
	series, err := p.series.Save(key)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(partyState{partyFormat, p.guard.state(), series})
	return b.Bytes(), err
}

// LoadParty restores the party that State saved under key. It fails with [ErrState] and [ErrRound],
// and with the errors of protocol.LoadClientSeries.
func LoadParty(c PartyConfig, key *keyexchange.SealKey, state []byte) (*Party, error) {
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
	p := &Party{config: c, series: series, guard: guard}
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

// Erase forgets all keys, as far as Go allows. The party must not be used again.
func (p *Party) Erase() { p.series.Erase() }
