package drive

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// Time is an instant of the caller's clock, or a span of it, in nanoseconds. A clock that goes
// back stands still for a [Server].
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
	longestTold  = 2 * Second // a step waits for somebody before that is reported
	keepEvery    = Minute     // what is held is saved at least so often
	// mostLost is how many rounds in a row may be lost before the job pauses or ends.
	mostLost = 5
	// numberJump is how far above its last number a server goes at once on the parties' word.
	numberJump = 1 << 20
	// longSum is how many bytes a sum has at least that is saved on its own, once, when all
	// submissions are in it. A shorter one is a part of every state: a server that is loaded in
	// mid-step then need not ask for submissions again.
	longSum = 64 << 10
)

// ServerConfig holds what a server knows before anybody comes.
type ServerConfig struct {
	// Session returns the configuration of the session of a number. All have Label and one
	// roster. Where its MinMembers is above Survivors, that is how many parties the session takes,
	// and its rounds where they are gathered. Without recovery a round takes everybody in the
	// session, and is lost with whoever drops out.
	Session func(number uint64) *protocol.Config
	Label   string
	Rounds  uint64 // of the job
	// Survivors is how many parties a sum has at least, and Colluders how many may lie together:
	// what no more than so many say of numbers is not believed.
	Survivors, Colluders int

	// Cost says what a round spends, and Ledger holds the parties to their budgets, by their
	// names in the roster; nil without noise.
	Cost   accounting.Round
	Ledger *accounting.Ledger

	// Broadcast returns the digest of what a round begins with, by protocol.NewBroadcastHash. It
	// has to follow from the arguments and the program's model alone, which changes in
	// [Server.Applied] only.
	Broadcast func(round uint64, fresh [32]byte) ([32]byte, error)

	// StepTime bounds how long a step waits for parties that are here; 0: 30 s; [Never]: it does
	// not. Floor is the least that a step waits for parties that are not; 0: 50 ms. ComeBack is how
	// long a party that wants to come back needs at most, by the carrier's longest wait between
	// two tries.
	// Away is how long a party counts as here after [Server.Gone], for carriers whose parties
	// connect for every question anew.
	StepTime, Floor, ComeBack, Away Time

	// Start is when the first round may begin, and Pace the least time between the beginnings of
	// two rounds.
	Start, Pace Time
	// Sample is how many parties a round is held among, drawn by Draw; 0: all that are here.
	Sample int
	Draw   func(round uint64, there []int, sample int) []int

	// Pause has five lost rounds in a row pause the job, which ends with them otherwise.
	Pause  bool
	Random io.Reader // nil: crypto/rand
}

// Stage is what a session waits for.
type Stage int

// The stages. The first three set a session up, the last four are of a round.
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
	waiting
}

// peer is what a server knows of a party that is not saved.
type peer struct {
	connected bool
	here      bool     // connected, or heard of within Away
	near      bool     // connected, or heard of within Away and ComeBack: steps wait for it
	seen      Time     // last, if not connected
	known     bool     // it has been here since the server was made
	came      Time     // for the first time since then
	expected  Time     // until when a party that has gone may come back
	sessions  []uint64 // that it has keys for
	least     uint64   // number of a session that it may join, by its word
	told      uint64   // last round that it knows of, by its word
	absent    uint64   // round that it does not submit in
	passed    uint64   // round of which it let a step pass
}

// Server leads a job whose sums are pairwise: it sets sessions up among the parties that are
// here, holds the rounds, and says when a round is lost, paused for or over. Events change what
// it knows; [Server.Tick] decides. What follows from decisions is given out in two steps:
// [Server.Ready] says what has to be durable first, and [Server.Advance], called once it is, lets
// [Server.Pending] hand it out. In between nothing else is decided.
//
// A peer's mistake is an error of [Server.ReadMessage] or a [Notice], and changes nothing. Other
// errors are the caller's, or this machine's, and end the job.
type Server struct {
	config ServerConfig
	random io.Reader
	names  []string
	roster *keyexchange.Roster
	// recovers says that rounds survive parties that drop out, gathers that they may be held
	// among some, and apart that sums are long, and saved apart.
	recovers, gathers, apart bool

	series  *protocol.ServerSeries
	present *session
	forming *session
	ledger  *accounting.Ledger
	round   uint64 // the last that was begun
	lost    uint64
	inRow   int // rounds lost since the last sum, or since somebody resumed the job
	fresh   [32]byte
	begun   Time // the last round
	paused  bool
	ended   string
	stalled bool
	sum     *masking.Vector // of the round that is applied
	of      []int           // who is in it
	faults  faults

	now     Time
	peers   []peer
	learned learned
	look    bool // something has changed that who is in a session follows from
	lookAt  Time
	counted bool // somebody tells of a later round
	doubted bool // somebody tells that the number of the session that forms is too low
	failed  []int
	sweep   Time
	held    bool // messages were taken that no state has
	late    bool // likewise while a decision is saved
	saved   Time

	save    bool // something was decided
	ask     bool
	tell    bool
	notices []Notice
}

// NoticeKind says what a notice is about.
type NoticeKind uint8

// The kinds of notices.
const (
	Forms     NoticeKind = iota + 1 // Session is proposed to those who are here
	Dropped                         // Session, Err: it does not form
	Formed                          // Session, Parties: it is set up
	Following                       // Session, Parties: its rounds go on from now on
	Begun                           // Session, Round, Parties take part
	Unbegun                         // Session, Round, Err: too few came, which costs nothing
	Awaited                         // Session, Round, Parties are waited for
	Stall                           // Session, Round, Party let a step pass
	Spoiler                         // Session, Round, Party is left out from now on
	Summed                          // Session, Round, Parties are in the sum
	Lost                            // Session, Round, Err: there is no sum
	SetBack                         // Round, Skipped: parties know of that many rounds more
	Paused                          // Round, Err
	Resumed                         // Round, Err
	Ended                           // Round, Err
)

// Notice tells people who watch the job what happened. It has no secrets.
type Notice struct {
	Kind    NoticeKind
	Session uint64
	Round   uint64
	Party   int
	Parties []int
	Skipped uint64
	Err     error
}

// Errors of a server.
var (
	// ErrExcluded: the party has spoilt a round, and the job goes on without it.
	ErrExcluded = errors.New("drive: the party is left out of the job")
	// ErrSetBack: the round was held before, by what parties know, and what is saved is older.
	ErrSetBack = errors.New("drive: parties know of later rounds")
	// ErrEnded: the job is over.
	ErrEnded = errors.New("drive: the job is over")
)

// NewServer makes the server of a job that begins now. It fails with errors of package protocol.
func NewServer(c ServerConfig, now Time) (*Server, error) {
	s, err := newServer(c, now)
	if err != nil {
		return nil, err
	}
	s.series = protocol.NewServerSeries(c.Label, 1)
	for i := range s.peers {
		s.peers[i].expected = now + s.learned.back(&s.config)
	}
	return s, nil
}

func newServer(c ServerConfig, now Time) (*Server, error) {
	first := c.Session(1)
	recovery, err := first.EffectiveRecovery()
	if err != nil {
		return nil, err
	}
	if c.StepTime == 0 {
		c.StepTime = defaultStep
	}
	if c.Floor == 0 {
		c.Floor = defaultFloor
	}
	n := first.Roster.Len()
	s := &Server{
		config:   c,
		random:   entropy.Source(c.Random),
		roster:   first.Roster,
		recovers: recovery != nil,
		gathers:  recovery != nil && first.Recovery.Degree == 0 && first.PerRound == 0,
		apart:    first.Layout.PackedSize() >= longSum,
		now:      now,
		saved:    now,
		sweep:    Never,
		look:     true,
		peers:    make([]peer, n),
		faults:   newFaults(n),
	}
	for i := range n {
		s.names = append(s.names, first.Roster.Name(i))
	}
	if c.Ledger != nil {
		s.ledger = c.Ledger.Clone()
	}
	if c.Away > 0 {
		s.sweep = now + max(1, c.linger()/4)
	}
	return s, nil
}

// Hello is what a party says when it connects.
type Hello struct {
	Sessions []uint64 // that it has keys for
	Least    uint64   // the least number of a session that it may join
	Told     uint64   // the last round of the job that it has submitted in, or knows to be begun
}

// Connected takes a party's coming, or its asking again.
func (s *Server) Connected(now Time, party int, h Hello) {
	s.clock(now)
	p := &s.peers[party]
	if !slices.Equal(p.sessions, h.Sessions) {
		s.look, s.failed = true, nil
	}
	p.sessions = slices.Clone(h.Sessions)
	if h.Least != p.least {
		p.least, s.look = h.Least, true
		s.doubted = s.doubted || s.forming != nil && h.Least > s.forming.number+1
	}
	s.told(party, h.Told)
	p.connected = true
	s.arrive(party)
}

// Told takes a party's word of the last round of the job that it knows of.
func (s *Server) Told(now Time, party int, round uint64) {
	s.clock(now)
	s.told(party, round)
}

func (s *Server) told(party int, round uint64) {
	p := &s.peers[party]
	if round != p.told && round > s.round {
		s.counted = true
	}
	p.told = round
}

// Gone takes the end of a party's connection.
func (s *Server) Gone(now Time, party int) {
	s.clock(now)
	p := &s.peers[party]
	p.connected, p.seen = false, s.now
	if s.config.Away == 0 {
		s.leave(party)
	}
}

// Heard takes a sign of life of a party that need not be connected.
func (s *Server) Heard(now Time, party int) {
	s.clock(now)
	if s.config.Away > 0 {
		s.arrive(party)
	}
	s.peers[party].seen = s.now
}

// arrive counts a party as here, and near.
func (s *Server) arrive(party int) {
	p := &s.peers[party]
	switch {
	case p.near:
	case p.known:
		s.learned.cameBack(s.now - p.seen)
	default:
		p.came = s.now
	}
	if !p.here {
		p.here, s.look, s.failed = true, true, nil
	}
	p.near, p.known = true, true
	s.touch(party)
}

// fade counts a party as gone for the step that is under way.
func (s *Server) fade(party int) {
	p := &s.peers[party]
	if p.near {
		p.near, p.expected = false, max(p.expected, p.seen+s.learned.back(&s.config))
		s.touch(party)
	}
}

// leave counts a party as gone.
func (s *Server) leave(party int) {
	s.fade(party)
	if p := &s.peers[party]; p.here {
		p.here, s.look, s.failed = false, true, nil
	}
}

// Absent takes a party's word that it does not submit in a round of the job, and reports whether
// the round waited for it.
func (s *Server) Absent(now Time, party int, round uint64) bool {
	s.clock(now)
	p := &s.peers[party]
	if p.absent == round || round != s.round || s.present == nil || s.present.stage != Submitting {
		return false
	}
	p.absent = round
	s.touch(party)
	return true
}

// ReadMessage takes one message of a party. It fails with the errors of protocol.ServerSeries, with
// [ErrExcluded], or with [ErrEnded]; all are the party's, and nothing has changed then.
func (s *Server) ReadMessage(now Time, party int, message io.Reader) error {
	s.clock(now)
	if s.ended != "" {
		return ErrEnded
	}
	if s.faults.excluded(party) {
		return ErrExcluded
	}
	was := s.awaits(party)
	if err := s.series.ReadMessage(s.roster.Key(party), message); err != nil {
		return err
	}
	s.held, s.late = true, s.save
	p := &s.peers[party]
	for k, x := range s.sessions() {
		if x == nil || !was[k] || s.machine(x).Awaits(party) {
			continue
		}
		if x.stage == Announcing && !slices.Contains(p.sessions, x.number) {
			p.sessions = append(p.sessions, x.number)
		}
		s.learned.answered(x, s.now)
		if x.stage == Resting {
			s.look = true
		}
	}
	s.failed = nil
	s.touch(party)
	return nil
}

// awaits reports whether the present and the forming session wait for a party.
func (s *Server) awaits(party int) (out [2]bool) {
	for k, x := range s.sessions() {
		out[k] = x != nil && s.machine(x).Awaits(party)
	}
	return out
}

// Due reports whether a message of a party is waited for.
func (s *Server) Due(party int) bool {
	due := s.awaits(party)
	return due[0] || due[1]
}

// Pause has no further round begin. The one that is open goes on to its sum.
func (s *Server) Pause(now Time, why string) {
	s.clock(now)
	if s.ended != "" {
		return
	}
	s.paused = true
	s.decided(Notice{Kind: Paused, Round: s.round, Err: errors.New(why)})
}

// Resume ends a pause.
func (s *Server) Resume(now Time, why string) {
	s.clock(now)
	if s.ended != "" {
		return
	}
	s.paused, s.inRow = false, 0
	s.decided(Notice{Kind: Resumed, Round: s.round, Err: errors.New(why)})
}

// End ends the job. A round that is open has no sum.
func (s *Server) End(now Time, why string) {
	s.clock(now)
	if s.ended == "" {
		s.end(why)
	}
}

// clock sets the time, which does not go back.
func (s *Server) clock(now Time) { s.now = max(s.now, now) }

// sessions returns the present session and the forming one, either of which may be nil.
func (s *Server) sessions() [2]*session { return [2]*session{s.present, s.forming} }

// machine returns the state machine of a session.
func (s *Server) machine(x *session) *protocol.Server {
	if x == s.present {
		return s.series.Present()
	}
	return s.series.Successor()
}

// holds reports whether a party is here and has keys for a session.
func (s *Server) holds(party int, x *session) bool {
	return s.peers[party].here && slices.Contains(s.peers[party].sessions, x.number)
}

// decided notes that the state has changed, and what people are told of it.
func (s *Server) decided(n Notice) {
	s.save, s.look = true, true
	s.notices = append(s.notices, n)
}

// enter begins a stage of a session. Its time counts from [Server.Advance] on.
func (s *Server) enter(x *session, stage Stage) {
	s.learned.ended(x)
	x.stage, x.waiting = stage, waiting{fresh: true}
	s.save, s.look, s.tell = true, true, true
	s.mark(x)
}

// Wake returns when [Server.Tick] is due: [Never] if only an event can change anything.
func (s *Server) Wake() Time {
	if s.save || s.ended != "" {
		return Never
	}
	wake := min(s.sweep, s.lookAt)
	if s.look || s.counted && !s.applying() {
		return s.now
	}
	if s.held && !s.apart {
		wake = min(wake, s.saved+keepEvery)
	}
	for _, x := range s.sessions() {
		if x != nil {
			wake = min(wake, s.wakeFor(x))
		}
	}
	return wake
}

// Tick decides what is due. It fails with errors of this machine.
func (s *Server) Tick(now Time) error {
	s.clock(now)
	if s.save || s.ended != "" {
		return nil
	}
	s.sweepAway()
	if s.held && !s.apart && s.now >= s.saved+keepEvery {
		s.save = true
	}
	for {
		if again, err := s.proceed(); err != nil || !again {
			return err
		}
	}
}

// Keep has what is held saved too, before a program stops.
func (s *Server) Keep() {
	if s.held && s.ended == "" {
		s.save = true
	}
}

// proceed decides one thing, and reports whether there may be another.
func (s *Server) proceed() (again bool, err error) {
	if s.ended != "" {
		return false, nil
	}
	look := s.look || s.now >= s.lookAt
	if s.look = false; look {
		s.lookAt = Never
	}
	if again, err := s.catchUp(); again || err != nil {
		return again, err
	}
	if again, err := s.form(look); again || err != nil {
		return again, err
	}
	if f := s.forming; f != nil && f.stage == Resting &&
		(s.present == nil || s.present.stage == Resting) {
		return true, s.takeOver()
	}
	x := s.present
	if x == nil || x.stage == Applying || x.stage != Resting && !s.over(x) {
		return false, nil
	}
	switch x.stage {
	case Resting:
		return s.prepare(look)
	case Preparing:
		return true, s.begin()
	case Submitting:
		if !s.recovers {
			s.total()
			return true, nil
		}
		return true, s.step(Signing)
	case Signing:
		return true, s.step(Revealing)
	default:
		s.total()
		return true, nil
	}
}

// Prepared says what has to be done before anything leaves.
type Prepared struct {
	// Save says that [Server.State] is new, and has to be durable before Advance is called.
	Save    bool
	Notices []Notice
}

// Ready returns what has to be done before anything leaves, and whether there is anything at all.
func (s *Server) Ready() (Prepared, bool) {
	p := Prepared{Save: s.save, Notices: slices.Clone(s.notices)}
	return p, s.save || s.tell || s.ask || len(s.notices) > 0
}

// Orders says what follows from decisions.
type Orders struct {
	// Tell says that [Server.Pending] may have something new, for anybody.
	Tell  bool
	Apply *Apply // what the program is asked; nil: nothing
}

// Apply asks the program for the next model. Its answer is [Server.Applied].
type Apply struct {
	Round   uint64
	Fresh   [32]byte // of the round's broadcast
	Parties []int
	Sum     *masking.Vector // which the program only reads
}

// Advance is called when the state is durable, if Ready said that it is new. It returns what
// follows: stages that have begun wait from now on, and Pending hands out their messages.
func (s *Server) Advance(now Time) Orders {
	s.clock(now)
	out := Orders{Tell: s.tell || s.save} // whoever came during the save was handed nothing
	if s.ask {
		out.Apply = &Apply{s.round, s.fresh, slices.Clone(s.of), s.sum}
	}
	if s.save {
		s.held, s.late, s.saved = s.late, false, s.now
	}
	for _, x := range s.sessions() {
		if x != nil && x.fresh {
			x.waiting = waiting{since: s.now}
			s.mark(x)
		}
	}
	s.save, s.ask, s.tell, s.notices = false, false, false, nil
	return out
}

// ItemKind says what an item has a party do.
type ItemKind uint8

// The kinds of items.
const (
	Join  ItemKind = iota + 1 // make keys for Session
	Carry                     // take the message
	Last                      // the job is over, with its last model
)

// Item is one thing for a party. Two with the same Name are the same bytes.
type Item struct {
	Kind    ItemKind
	Name    string
	Session uint64
	Round   uint64 // of the job, if the message begins one: the broadcast goes with it
	// Shared and Own are the message, in two parts. The first may be memory that all have in
	// common, and is not to be written to.
	Shared, Own []byte
}

// Pending yields what a party has to do, in the order in which it does it: also what it was sent
// already and has not answered. The carrier keeps whom it has sent what. It yields nothing while
// a decision is not durable.
func (s *Server) Pending(party int) func(yield func(Item) bool) {
	return func(yield func(Item) bool) {
		switch {
		case s.save:
			return
		case s.ended != "":
			yield(Item{Kind: Last, Name: "end", Round: s.round})
			return
		}
		for _, x := range s.sessions() {
			if x != nil && !s.pendingOf(x, party, yield) {
				return
			}
		}
	}
}

// pendingOf yields what is pending of one session.
func (s *Server) pendingOf(x *session, party int, yield func(Item) bool) bool {
	p, server := &s.peers[party], s.machine(x)
	if x == s.present && s.away(party) {
		return true
	}
	if x.stage == Announcing {
		if !s.mayJoin(party, x) || !server.Awaits(party) {
			return true
		}
		return yield(Item{Kind: Join, Name: fmt.Sprintf("%d.join", x.number), Session: x.number})
	}
	if !slices.Contains(p.sessions, x.number) {
		return true
	}
	for shared, own := range server.PendingParts(party) {
		item := Item{Kind: Carry, Session: x.number, Shared: shared, Own: own}
		item.Name = nameOf(x.number, shared, own)
		if server.Step() == protocol.StepMasked {
			item.Round = s.round
		}
		if !yield(item) {
			return false
		}
	}
	return true
}

// away reports whether a party does not submit in the round that is open.
func (s *Server) away(party int) bool {
	return s.present != nil && s.present.stage == Submitting && s.peers[party].absent == s.round
}

var noticeNames = []string{"", "forms", "dropped", "formed", "took over", "begun", "not begun",
	"waiting", "stalled", "left out", "summed", "lost", "set back", "paused", "resumed", "ended"}

// String returns the kind in words.
func (k NoticeKind) String() string {
	if int(k) >= len(noticeNames) {
		return fmt.Sprintf("notice %d", k)
	}
	return noticeNames[k]
}
