package drive

import (
	"bytes"
	"crypto"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
)

// Part takes part in a job: a party of pairwise sums, a party that sends one message a round, or a
// member of a committee. Each method takes one event and decides. The consequences come out in two
// steps: Ready says whether there are any, and what has to be durable first; Advance, called once
// that is durable, hands out what leaves. An event in between postpones them: Advance then hands
// out nothing, and Ready says more.
//
// A peer's mistake is a [Report], and changes nothing. An error is a mistake of the caller or a
// fault of this machine, and ends the part; [ErrItem] alone is the peer's.
type Part interface {
	// Hello returns what a carrier tells the coordinator when it connects. A party tells of no round
	// that it only may have submitted in: a few that declare too many would end the job of all.
	Hello() Hello
	// Connected has sent again what may never have arrived: the last message of every session, or the
	// last submission.
	Connected()
	// Receive takes an item of the coordinator. It fails with [ErrItem] if no part of this kind takes
	// such an item, and with errors of the machine.
	Receive(in Item) error
	// Answer takes the program's vector, counts and masks it; the submission may leave once both are
	// durable, or at its instant. It fails with errors of the machine, such as protocol.ErrRandom.
	Answer(a Answer) error
	// Instant notes that the instant of a question has come: the vector that is ready is counted and
	// masked, and may leave once both are durable. Instant reads neither Fill nor Err of the answer.
	// It fails as Answer does.
	Instant(a Answer) error
	// Finished notes that the program has made the vector that it was asked for, in a job whose sums
	// take vectors made from earlier broadcasts. The program is asked for the vector itself, with
	// [AskID].Made, once there is room.
	Finished(id AskID)
	// Absent notes that this party does not submit in a round of the job, and why; the reason stays
	// with the party. With noise the reason must not depend on any row of the party: see [Answer].
	Absent(id AskID, round uint64, why error)
	// Ready returns what has to be done before anything leaves, and whether there is anything at all.
	Ready() (Ready, bool)
	// Advance is called when the state is durable, if Ready reported that it is new. It returns what
	// may leave now: nothing, if there was an event since.
	Advance() Out
	// Save returns what [LoadPart] restores the part from. The keys in it are sealed under key; the
	// program that stores the whole has to seal it, so that nobody else changes what was counted.
	Save(key *keyexchange.SealKey) (Saved, error)
	// Object returns an object of the last Save from memory; nil after a restart, and once its memory
	// is used again.
	Object(name string) io.WriterTo
	// Guard returns a copy of the guard; nil for a member, which spends nothing.
	Guard() *Guard
	// Erase forgets all keys, as far as Go allows. The part must not be used again.
	Erase()
}

// PartSettings say what a part knows before it takes part, and of which kind it is: a member with
// Member, otherwise a party that sends one message a round with Sums, otherwise one of pairwise
// sums. job.Settled.Part makes them for a party, and job.Settled.Member for a member.
type PartSettings struct {
	Identity crypto.Signer // Ed25519, of the roster, or of the committee
	Random   io.Reader     // nil: crypto/rand

	// Limits bound what a party releases. A member answers in none above Limits.Rounds.
	Limits Limits
	// Least is the least number of a session, or of a round of one-message sums, that the party may
	// take part in, even if a saved state has a lower one. Spent is the last round in which a party
	// that has lost its state may have submitted, or a member may have helped; next to a saved state
	// the greater counts.
	Least, Spent uint64

	// Session returns the configuration of the session with a given number. All configurations have
	// Label.
	Session func(number uint64) *protocol.Config
	Label   string

	// Sums are those of a job with a committee; nil: sums are pairwise. Layout is of a party's vector
	// there; nil: one segment with the 64 bits of an integer with its sign.
	Sums   *oneshot.Config
	Layout masking.Layout
	Member bool

	// After is how long after its question a submission leaves; 0: as soon as there is an answer.
	// Where After is above 0 all parties submit at that instant, whatever their programs have done: a
	// party that has no answer by then sends what Blank writes, zeros with its share of the noise.
	// Luck is the probability with which a party's own coin, tossed anew for each submission, has its
	// program asked at all; 0: the program is always asked.
	After Time
	Luck  float64

	// Blank writes to v the submission for a round without a vector, zeros with the party's share of
	// the noise; Blank is nil without noise. With Blank the party submits in every round in which it
	// is asked: whether there is a vector is a fact about the party's rows, which may show in the sum
	// only, under the noise.
	Blank func(round uint64, v *masking.Vector) error

	// Shown is called with each submission that is counted, before it is masked: once, unless the
	// process ends before that is durable. It may be nil.
	Shown func(round uint64, values [][]uint64)
}

// NewPart makes a part that has taken part in nothing yet. It fails with [ErrRound],
// oneshot.ErrConfig and oneshot.ErrIdentity.
func NewPart(s PartSettings) (Part, error) {
	switch {
	case s.Member:
		return pointer(newMember(s))
	case s.Sums != nil:
		return pointer(newSender(s))
	}
	return pointer(newParty(s))
}

// LoadPart restores the part whose State [Part.Save] returned under key. It fails with [ErrState]
// and [ErrRound], and with the errors of protocol.LoadClientSeries, oneshot.LoadParty and
// oneshot.LoadMember.
func LoadPart(s PartSettings, key *keyexchange.SealKey, state []byte) (Part, error) {
	switch {
	case s.Member:
		return pointer(loadMember(s, key, state))
	case s.Sums != nil:
		return pointer(loadSender(s, key, state))
	}
	return pointer(loadParty(s, key, state))
}

// pointer returns a part, or nil with an error.
func pointer[P interface {
	*party | *sender | *member
	Part
}](p P, err error) (Part, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// SubmissionName names a party's last submission among objects.
const SubmissionName = "submission"

// encoded returns a saved form as bytes.
func encoded(state any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(state)
	return b.Bytes(), err
}

// ErrItem: no part of this kind takes such an item. The coordinator is of another job, or lies.
var ErrItem = errors.New("drive: not an item for this part")

func errItem(in Item) error { return fmt.Errorf("%w: kind %d", ErrItem, in.Kind) }

// Message returns the whole message. The caller must not write to it.
func (i Item) Message() []byte {
	switch {
	case len(i.Shared) == 0:
		return i.Own
	case len(i.Own) == 0:
		return i.Shared
	}
	return slices.Concat(i.Shared, i.Own)
}

// common has what all parts have.
type common struct {
	config  PartSettings
	unsaved bool
	shown   bool // Ready has said all that Advance may hand out
	over    bool // the job is
	at      Ask  // question that the program works on; the zero Ask: none
	reports []Report
	out     Out
}

// begun is a part without a state. That a state is lost is saved at once: the next start finds it.
func begun(c PartSettings) common { return common{config: c, unsaved: c.Spent > 0} }

func (c *common) report(kind ReportKind, session, round uint64, err error) {
	c.reports = append(c.reports, Report{kind, session, round, err})
}

// answered notes that the program has ended its work on a question.
func (c *common) answered(id AskID) {
	c.shown = false
	if c.at.ID == id {
		c.at = Ask{}
	}
}

// prepare is Part.Ready. waits says whether a question still waits for its answer.
func (c *common) prepare(waits func(id AskID) bool) (Ready, bool) {
	c.shown = true
	if id := c.at.ID; id != (AskID{}) && !c.out.Cancel && (c.over || !waits(id)) {
		if c.out.Cancel = true; !c.over {
			c.report(Late, id.Session, c.at.Round, nil)
		}
	}
	r := Ready{Save: c.unsaved, Reports: slices.Clone(c.reports)}
	o := &c.out
	return r, c.unsaved || len(r.Reports) > 0 || len(o.Send) > 0 || len(o.Away) > 0 || o.Offer != 0 ||
		o.Ask != nil || o.Cancel
}

// advance is Part.Advance.
func (c *common) advance() Out {
	if !c.shown {
		return Out{}
	}
	out := c.out
	if out.Cancel {
		c.at = Ask{}
	}
	if out.Ask != nil {
		c.at = *out.Ask
	}
	c.out, c.reports, c.unsaved, c.shown = Out{}, nil, false, false
	return out
}

// try has the program write its submission.
func (c *common) try(a *Answer, v *masking.Vector) error {
	switch {
	case a.Err != nil:
		return a.Err
	case c.config.Blank == nil:
		return a.Fill(v)
	}
	return Caught(func() error { return a.Fill(v) })
}

// fill has the program write its submission, or zeros with noise in its place. unfit says why there
// is no vector; without noise err is the same.
func (c *common) fill(a *Answer, v *masking.Vector) (unfit, err error) {
	unfit = c.try(a, v)
	if unfit == nil || c.config.Blank == nil {
		return unfit, unfit
	}
	v.Erase()
	return unfit, c.config.Blank(a.Round, v)
}

// values returns what is shown of a submission once it is counted; nil if nobody looks.
func (c *common) values(v *masking.Vector) [][]uint64 {
	if c.config.Shown == nil {
		return nil
	}
	return v.Values()
}

// show shows a submission that is counted.
func (c *common) show(round uint64, values [][]uint64) {
	if c.config.Shown != nil {
		c.config.Shown(round, values)
	}
}

// Ready lists the work that must be done before anything leaves.
type Ready struct {
	// Save reports that [Part.Save] says something new, which must be durable before Advance
	// is called.
	Save    bool
	Reports []Report
}

// Out holds what may leave.
type Out struct {
	Send  []Message
	Away  []Absence // rounds that this party is absent from: tell the coordinator
	Offer uint64    // round that a party has a submission for: tell the coordinator; 0: none
	// Cancel says that what the program works on comes too late: the round, or the job, is over. The
	// program should end; an answer of it is dropped.
	Cancel bool
	Ask    *Ask // a question to the program; nil: none
}

// Message is one message to the coordinator.
type Message struct {
	Session uint64
	Bytes   []byte // nil: the submission that was saved last, see [SubmissionName]
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
	// After is how long after the question [Part.Instant] is due; 0: there is no instant. Idle says
	// that the party's coin leaves it out of the round: there is nothing to ask the program, and
	// nobody but the party may know that.
	After Time
	Idle  bool
}

// AskID names a question. It is the same after a restart.
type AskID struct {
	Session uint64
	Round   uint64 // of the session
	// Made is the round whose vector is asked for, which the program reported with [Part.Finished];
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
