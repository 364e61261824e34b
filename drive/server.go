package drive

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// Time is an instant or a duration by the caller's clock, in nanoseconds. A clock that goes back
// stands still for a [Lead].
type Time int64

// Spans of time.
const (
	Millisecond Time = 1_000_000
	Second           = 1000 * Millisecond
	Minute           = 60 * Second

	// Never is later than every instant.
	Never Time = 1<<63 - 1
)

// after returns the instant that is so much later, at most [Never].
func (t Time) after(span Time) Time {
	if span > Never-t {
		return Never
	}
	return t + span
}

// Bounds of what a server waits for, and what it believes.
const (
	defaultStep  = 30 * Second
	defaultFloor = 50 * Millisecond
	// DefaultComeBack is above what a party waits between two tries to reach its server, over any
	// carrier.
	DefaultComeBack = 20 * Second
	longestTold     = 2 * Second // a step waits for somebody before that is reported
	keepEvery       = Minute     // what is held is saved at least so often
	// mostLost is how many rounds in a row are lost before the job pauses.
	mostLost = 5
	// numberJump is how far above its last number a server goes at once on the parties' word.
	numberJump = 1 << 20
	// longSum is how many bytes a sum has at least that is saved on its own, once, when all
	// submissions are in it. A shorter one is a part of every state: a server that is loaded in
	// mid-step then need not ask for submissions again.
	longSum = 64 << 10
)

// Stage names what a session waits for.
type Stage int

// The stages. The first three set a session up, the last four belong to a round.
const (
	Announcing    Stage = iota + 1 // keys
	Encapsulating                  // ciphertexts, with hybrid keys
	Preparing                      // material for the next round
	Resting                        // the next round
	Submitting
	Signing
	Revealing
	Applying // the program's next model
)

var stageNames = []string{"", "announcing keys", "exchanging keys", "preparing", "ready",
	"submitting", "signing", "revealing", "applying"}

// String returns the stage's name.
func (s Stage) String() string {
	if s < 0 || int(s) >= len(stageNames) {
		return fmt.Sprintf("stage %d", int(s))
	}
	return stageNames[s]
}

// session is one of the series, present or forming.
type session struct {
	number uint64
	stage  Stage
	least  int      // parties that each of its rounds takes
	called wire.Set // who was here when its announcements were closed; not saved
	asked  int      // parties of the round that is open; not saved
	waiting
}

// server leads a job whose sums are pairwise, in sessions.
type server struct {
	course
	room
	roster *keyexchange.Roster
	// recovers says that rounds survive parties that drop out, gathers that they may be held
	// among some, and apart that sums are long, and saved apart.
	recovers, gathers, apart bool

	series  *protocol.ServerSeries
	present *session
	forming *session
	sum     *masking.Vector // of the round that is applied
	faults  faults

	counted bool  // somebody tells of a later round
	doubted bool  // somebody tells that the number of the session that forms is too low
	tried   []int // whom a round was last to be held among
	failed  []int // likewise if it could not begin, and nothing has changed since; nil: it could
	held    bool  // messages were taken that no state has
	late    bool  // likewise while a decision is saved
	saved   Time
}

// NoticeKind says what a notice is about.
type NoticeKind uint8

// The kinds of notices.
const (
	Forms      NoticeKind = iota + 1 // Session is proposed to those who are here
	Dropped                          // Session, Err: it does not form
	Formed                           // Session, Parties: it is set up
	Following                        // Session, Parties: its rounds go on from now on
	Begun                            // Session, Round, Parties take part
	Unbegun                          // Session, Round, Err: too few came, which costs nothing
	Awaited                          // Session, Round, Parties are waited for
	Stall                            // Session, Round, Party let a step pass
	Spoiler                          // Session, Round, Party, Err or nil: it is left out from now on
	Summed                           // Session, Round, Parties are in the sum
	Lost                             // Session, Round, Err: there is no sum
	SetBack                          // Round, Skipped: parties know of Skipped more, which are lost
	Paused                           // Round, Err
	Resumed                          // Round, Err
	Ended                            // Round, Err
	Excluded                         // Round, Party, Err: left out by an operator
	Readmitted                       // Round, Party, Err: by an operator too
	Liar                             // Round, Party, Err: what it dealt for noise convicts this member
	Short                            // Round, Parties, Err: StepTime is, by how many let steps pass
)

// Notice tells those who watch the job what happened. It has no secrets.
type Notice struct {
	Kind    NoticeKind
	Session uint64
	Round   uint64
	Party   int
	Parties []int
	Member  bool // Party and Parties are members of the committee
	Skipped uint64
	Err     error
}

// Errors of a lead.
var (
	// ErrExcluded: the party has spoilt a round, or an operator left it out, and the job goes on
	// without it.
	ErrExcluded = errors.New("drive: the party is left out of the job")
	// ErrSetBack: parties know that the round was already held, so the saved state is older than the
	// last decision.
	ErrSetBack = errors.New("drive: parties know of later rounds")
	// ErrEnded: the job is over.
	ErrEnded = errors.New("drive: the job is over")
)

// start makes the series of a job that begins.
func (s *server) start() {
	s.series = protocol.NewServerSeries(s.config.Label, 1)
	s.expect(s.now, s.learned.back(&s.config))
	s.arm(s.least(s.config.Session(1)))
}

func newServer(c Settings, now Time) (*server, error) {
	first := c.Session(1)
	recovery, err := first.EffectiveRecovery()
	if err != nil {
		return nil, err
	}
	s := &server{
		course:   newCourse(c, first.Roster, now),
		roster:   first.Roster,
		recovers: recovery != nil,
		gathers:  recovery != nil && first.Recovery.Degree == 0 && first.PerRound == 0,
		apart:    first.Layout.PackedSize() >= longSum,
		saved:    now,
		faults:   newFaults(first.Roster.Len()),
	}
	s.room = newRoom(&s.config, first.Roster.Len(), now)
	return s, nil
}

// sessions returns the present session and the forming one, either of which may be nil.
func (s *server) sessions() [2]*session { return [2]*session{s.present, s.forming} }

// machine returns the state machine of a session.
func (s *server) machine(x *session) *protocol.Server {
	if x == s.present {
		return s.series.Present()
	}
	return s.series.Successor()
}

// holds reports whether a party is here and has keys for a session.
func (s *server) holds(party int, x *session) bool {
	return s.peers[party].here && slices.Contains(s.peers[party].sessions, x.number)
}

// enter begins a stage of a session. Its time counts from [Lead.Advance] on.
func (s *server) enter(x *session, stage Stage) {
	s.room.use(&x.waiting, x.stage, &s.faults, turn{s, x})
	s.tellShort(&s.room, &s.faults, x.stage, s.config.Colluders, Notice{Session: x.number})
	x.stage, x.waiting = stage, waiting{fresh: true}
	s.save, s.look = true, true
	s.mark(x)
	if stage == Preparing {
		x.before = len(s.machine(x).Holders()) - x.awaited
	}
}

var noticeNames = []string{"", "forms", "dropped", "formed", "took over", "begun", "not begun",
	"waiting", "stalled", "left out", "summed", "lost", "set back", "paused", "resumed", "ended",
	"excluded", "readmitted", "lied about noise", "short"}

// String returns the kind in words.
func (k NoticeKind) String() string {
	if int(k) >= len(noticeNames) {
		return fmt.Sprintf("notice %d", k)
	}
	return noticeNames[k]
}
