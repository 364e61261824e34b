package drive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
)

// Lead leads a job: it sets up what its sums take, holds the rounds, and says when a round is
// lost, and when the job is paused or over. [NewLead] and [LoadLead] make one of sums in sessions,
// or of one-message sums with a committee, as [Settings] say; it is called in one way.
//
// Connected, Said, Heard, Gone, Receive, Order and Applied change what it knows. Tick decides. The
// consequences of decisions come out in two steps: Ready says what has to be durable first, and
// Advance, called once that is durable, lets Pending hand out the messages. In between nothing
// else is decided.
//
// A peer's mistake is an error of Receive or a [Notice], and changes nothing. Other errors are
// mistakes of the caller or faults of this machine, and end the job.
type Lead interface {
	// Connected notes that a peer has connected or reconnected.
	Connected(now Time, p Peer, h Hello)
	// Said notes what a peer says while it is connected. It reports whether the open round was
	// waiting for the peer, which says that it does not submit in that round.
	Said(now Time, p Peer, s Said) (waited bool)
	// Heard notes a sign of life from a peer that need not be connected.
	Heard(now Time, p Peer)
	// Gone notes the end of a peer's connection.
	Gone(now Time, p Peer)
	// Check checks the proofs of submissions, on all cores, before Receive is given them. It changes
	// nothing, and does nothing where submissions have no proofs.
	Check(waiting []Submission)
	// Receive takes one message of a peer. It fails with the errors of protocol.ServerSeries or of
	// oneshot.Server, with [ErrExcluded], [ErrOften] or [ErrEnded]. All are the peer's fault, and
	// change nothing, except that a party whose proof does not hold is left out from now on
	// (oneshot.ErrProof). oneshot.ErrFull means that the party was not told to upload, or that its
	// turn is over: it will be told again. With a committee the whole message is held until the
	// members have checked it: the bytes of a bytes.Buffer are kept, not copied.
	Receive(now Time, p Peer, message io.Reader) error
	// Order carries out an operator's order.
	Order(now Time, o Order)
	// Applied takes the program's answer to [Apply]. Without an error the program has the next model,
	// with which rounds begin from now on; with an error the round is lost. An answer for another
	// round comes too late, and is dropped.
	Applied(now Time, round uint64, err error)

	// Tick decides what is due. It fails with errors of this machine.
	Tick(now Time) error
	// Wake returns when Tick is due: [Never] if only an event can change anything.
	Wake() Time
	// Ready returns what has to be done before anything leaves, and whether there is anything at all.
	Ready() (Prepared, bool)
	// Advance is called when what Save returned is durable, if Ready reported that it is new. It
	// returns the orders that follow; the waits of stages that have begun start now, and Pending
	// hands out their messages.
	Advance(now Time) Orders
	// Pending yields what a peer has to do, in order, including what it was already sent and has not
	// answered. The carrier remembers which items it has sent to which peer. Pending yields nothing
	// while a decision is not durable.
	Pending(p Peer) iter.Seq[Item]
	// Save returns what has to be durable. Keys and shares in the state are sealed under key; the
	// program that stores the whole has to seal it, so that nobody else changes what was charged or
	// who is left out.
	Save(key *keyexchange.SealKey) (Saved, error)

	// Keep has the messages that are held saved too, before a program stops.
	Keep()
	// Behind says, before the first Tick, that the loaded state is older than the last decision, and
	// which round is the last known to have begun. The open round is given up, and the rounds in
	// between count as spent, as when parties know of later rounds.
	Behind(begun uint64)
	// Again has the waits of all steps begin anew, as after a load: nothing could be decided until
	// now, since what is durable was out of reach, and nobody was let in.
	Again(now Time)

	// Status returns the state of the job.
	Status() Status
	// At returns how a peer stands.
	At(p Peer) Standing
	// Until returns when steps stop waiting for peers that have not answered, whether these are here
	// or may still come; 0 if none is awaited, and [Never] where a party waits for room.
	Until() Time
	// Ledger returns what the parties have spent, nil without noise. Its caller must not change it.
	Ledger() *accounting.Ledger
}

// Peer is a party of the roster, or a member of the committee.
type Peer struct {
	Index  int // in the roster, or in the committee
	Member bool
}

// Said holds what a peer says between two messages. 0 in a field says nothing.
type Said struct {
	Told   uint64 // the last round of the job that it has submitted in, or knows to be begun
	Absent uint64 // a round that it does not submit in
	Offer  uint64 // a round for which it has a submission, where it is told when to upload
}

// Standing is how a lead sees a peer.
type Standing struct {
	Here, Ever bool // it is here, and has been since the lead was made
	Due        bool // a message from it is awaited
	Excluded   bool // it is left out of the job
}

// OrderKind says what an operator orders.
type OrderKind uint8

// The orders.
const (
	// Pause lets no further round begin. A round that is open goes on to its sum.
	Pause OrderKind = iota + 1
	// Resume ends a pause.
	Resume
	// End ends the job. A round that is open has no sum.
	End
	// Exclude leaves a party out: until the party is readmitted nobody waits for it, its messages are
	// refused with [ErrExcluded], and it is in no later round. If it has already submitted in the
	// open round, it stays in that sum.
	Exclude
	// Readmit ends a party's exclusion, including one for spoiling a round, and forgets the party's
	// other faults. A party that is in no session waits for the next.
	Readmit
)

// Order holds an order of an operator, and the reason.
type Order struct {
	Do    OrderKind
	Party int // of Exclude and Readmit
	Why   string
}

// notice tells of an order about a party.
func (o *Order) notice(round uint64) Notice {
	kind := Readmitted
	if o.Do == Exclude {
		kind = Excluded
	}
	return Notice{Kind: kind, Round: round, Party: o.Party, Err: errors.New(o.Why)}
}

// Saved holds what has to be durable before Advance is called, of a [Lead] or of a [Part]: first
// the objects that are not stored yet, then the state, which names them.
type Saved struct {
	State   []byte // what [LoadLead] or [LoadPart] reads
	Objects []Object
	// Needed lists the names of the objects that may be read again. Once the state is durable, an
	// object under any other name is of no more use.
	Needed []string
}

// Object is a long piece of data that is saved next to the state. Its name has lower-case letters
// and digits. An object of a lead has its name for itself: its bytes are stored once. That of a
// part replaces the one before.
type Object struct {
	Name string
	Body io.WriterTo
}

// A Submission is a message of a party that waits to be received.
type Submission struct {
	Party   int
	Message []byte
}

// Settings hold what a lead knows before anyone connects. job.Settled.Lead makes those of a job.
type Settings struct {
	// Session returns the configuration of the session with a given number, where sums are in
	// sessions. All configurations have Label and one roster. Where MinMembers is above Survivors, a
	// session takes at least MinMembers parties, and so does a round for which parties are gathered.
	// Without recovery a round takes everybody in the session, and is lost if anybody drops out.
	Session func(number uint64) *protocol.Config
	Label   string
	// Survivors is the fewest parties in a sum, and Colluders how many may lie together: a number
	// reported by no more parties than that is not believed. Sums has both where it is set.
	Survivors, Colluders int
	// Every, above 1, is the number of consecutive rounds that Cost covers: see [Limits]. All
	// parties are charged in the first of them.
	Every uint64
	// Sample is the number of parties, drawn by Draw, among which a round in a session is held; 0:
	// all that are here.
	Sample int
	Draw   func(round uint64, there []int, sample int) []int

	// Sums is set where parties send one message a round, to a committee. There are no sessions then.
	Sums *oneshot.Config
	// Buffer is how many submissions a round takes, while the other parties go on making vectors from
	// earlier broadcasts, as Sums.Stale allows; 0: a round waits for all.
	Buffer int
	// Batch is how many parties go to the members at a time; 0: oneshot.DefaultBatch.
	Batch int

	Rounds uint64 // of the job
	// Submissions is how often a party submits at most, as it agreed to; 0: in each round. A round is
	// held among the parties that have submitted least often.
	Submissions uint64
	// Cost says what a round spends, and Ledger holds the parties to their budgets, by their names in
	// the roster; nil without noise.
	Cost   accounting.Round
	Ledger *accounting.Ledger

	// StepTime bounds how long a step waits for parties that are here; 0: 30 s; [Never]: there is no
	// bound. The first round of a job also waits that long, once enough parties for a sum have come,
	// for the parties that have not come. Floor is the least that a step waits for parties that are
	// away; 0: 50 ms. ComeBack is the longest that a party needs to come back; 0: [DefaultComeBack].
	// Away is how long a party counts as here after [Lead.Gone], for carriers whose parties connect
	// for every question anew.
	StepTime, Floor, ComeBack, Away Time
	// Start is when the first round may begin, and Pace the least time between the beginnings of
	// two rounds. BeginWith, above 0, is the number of parties that have to be here before the first
	// round begins, for as long as they take; it then waits for no others.
	Start, Pace Time
	BeginWith   int

	// Broadcast returns the digest of a round's broadcast, by protocol.NewBroadcastHash, or with Sums
	// by oneshot.NewBroadcastHash. The digest must follow from the arguments and the program's model
	// alone, which changes in [Lead.Applied] only.
	Broadcast func(round uint64, fresh [32]byte) ([32]byte, error)
	// Stored opens an [Object] that was stored.
	Stored func(name string) (io.ReadCloser, error)

	Random io.Reader // nil: crypto/rand
}

// NewLead makes the lead of a job that begins now. It fails with errors of package protocol, or
// with oneshot.ErrConfig.
func NewLead(c Settings, now Time) (Lead, error) {
	if c.Sums == nil {
		s, err := newServer(c, now)
		if err == nil {
			s.start()
		}
		return orNil(s, err)
	}
	s, err := newCommittee(c, now)
	if err == nil {
		err = s.start()
	}
	return orNil(s, err)
}

// LoadLead restores the lead whose Save under key returned the state, with the objects that were
// stored before it. Time counts from now on. It fails with [ErrState], and with errors of package
// protocol or oneshot.
func LoadLead(c Settings, key *keyexchange.SealKey, now Time, state []byte) (Lead, error) {
	if c.Sums == nil {
		return orNil(readServer(c, key, now, state))
	}
	return orNil(readCommittee(c, key, now, state))
}

// orNil returns no lead with an error.
func orNil(s Lead, err error) (Lead, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// read has an object that was stored read.
func (c *Settings) read(name string, do func(r io.Reader) error) error {
	if c.Stored == nil {
		return fmt.Errorf("%w: it names %q, and nothing is stored", ErrState, name)
	}
	object, err := c.Stored(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	defer object.Close()
	return do(object)
}

// readWhole returns the bytes of a message, of at most the given number. Those of a bytes.Buffer
// are not copied.
func readWhole(message io.Reader, most int) ([]byte, error) {
	if b, ok := message.(*bytes.Buffer); ok {
		return b.Bytes(), nil
	}
	return io.ReadAll(io.LimitReader(message, int64(most)+1))
}
