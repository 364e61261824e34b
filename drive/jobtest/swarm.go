package jobtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

// Choices decide what happens.
type Choices interface {
	// IntN returns a number from 0 to n-1. If it returns 0 for ever, nothing goes wrong any more.
	IntN(n int) int
}

// Mode says what goes wrong in a job, and so what is demanded of it.
type Mode int

// The modes. In all of them sums are exact, and what package check says holds.
const (
	// Calm: enough parties for a round stay, answer and say what is so. The others and the
	// server come, go and die. No round is lost.
	Calm Mode = iota
	// Spoilt: at most as many parties as may collude spoil rounds. No more rounds are lost than
	// there are spoilers.
	Spoilt
	// Live: anything goes wrong until a time, and from then on not with enough parties for a
	// round, nor with the server. The job ends in time.
	Live
	// Rough: anything goes wrong, to the end.
	Rough
)

var modeNames = []string{"calm", "spoilt", "live", "rough"}

// String returns the mode's name.
func (m Mode) String() string { return modeNames[m] }

// Swarm is a world whose options, faults and lies are chosen, each kind of fault at a rate of this
// world's own.
type Swarm struct {
	*World
	Mode    Mode
	choices Choices
	rates   rates
	core    []int // enough parties for a round, none of which lies
	liars   []int
	healed  bool
	notices int        // that there were before that
	next    drive.Time // before which nothing goes wrong: there is time for rounds in between
	slow    drive.Time // the longest that a message takes, while nothing is wrong
	train   drive.Time // likewise training
}

// rates say how often something goes wrong, in a thousand chances.
type rates struct {
	cut, half, kill, die, lose, leave       int // of parties
	silent, none, slow                      int
	serverKill, serverDie, fails, jump, ask int
	double, late                            int
}

// Outcome says how a job ended.
type Outcome struct {
	Mode            Mode
	Ended           bool
	Stalled         bool
	Sums, Lost      int
	Sessions, Saves int
	Faults          int
}

// NewSwarm makes a world by choices; seed decides what its machines draw.
func NewSwarm(tb testing.TB, seed uint64, choices Choices) *Swarm {
	tb.Helper()
	s := &Swarm{choices: choices}
	s.Mode = Mode(s.pick(3, 1, 3, 3))
	o := s.choose()
	s.World = New(tb, seed, o)
	s.Server.Die = func(string) bool { return s.serverDies() }
	s.Server.Fails = func() bool { return !s.healed && s.Mode >= Live && s.happens(s.rates.fails) }
	s.cast()
	for i, p := range s.Parties {
		p.Die = func(string) bool { return s.faulty(i) && s.happens(s.rates.die) && s.dies(p) }
		p.Silent = func(wire.Type) bool { return s.faulty(i) && s.happens(s.rates.silent) }
		p.NoVector = func(uint64) bool { return s.faulty(i) && s.happens(s.rates.none) }
		wait := s.span(2 * drive.Second)
		if s.Mode == Spoilt || s.Mode == Calm && slices.Contains(s.core, i) {
			wait = 0 // the first session has a core of those that stay
		}
		s.After(wait, p.Start)
	}
	if s.Mode != Rough {
		s.After(s.span(20*s.stepTime()), s.heal)
	}
	return s
}

// pick returns a number with a chance of its weight.
func (s *Swarm) pick(weights ...int) int {
	sum := 0
	for _, x := range weights {
		sum += x
	}
	at := s.choices.IntN(sum)
	for k, x := range weights {
		if at < x {
			return k
		}
		at -= x
	}
	return 0
}

// happens reports whether something does of which there is a rate in a thousand.
func (s *Swarm) happens(rate int) bool {
	return rate > 0 && s.choices.IntN(1000) >= 1000-rate
}

// span returns a time up to another.
func (s *Swarm) span(most drive.Time) drive.Time {
	return most * drive.Time(s.choices.IntN(1001)) / 1000
}

// choose chooses the job, and the rates.
func (s *Swarm) choose() Options {
	o := Options{
		Parties: 3 + s.choices.IntN(4),
		Rounds:  uint64(1 + s.choices.IntN(4)),
		Hybrid:  s.pick(3, 1) == 1,
		Long:    s.pick(15, 1) == 1,
		Curious: s.pick(1, 1) == 1,

		StepTime: []drive.Time{10, 2, 30}[s.choices.IntN(3)] * drive.Second,
		Floor:    []drive.Time{0, 1, 500}[s.choices.IntN(3)] * drive.Millisecond,
		Redial:   []drive.Time{100, 500, 3000}[s.choices.IntN(3)] * drive.Millisecond,
		Away:     []drive.Time{0, 0, 3}[s.choices.IntN(3)] * drive.Second,
		Pace:     []drive.Time{0, 0, 0, 5}[s.choices.IntN(4)] * drive.Second,
		SaveTime: []drive.Time{0, 0, 5, 300}[s.choices.IntN(4)] * drive.Millisecond,
		Disorder: s.pick(3, 1) == 1,
	}
	o.ComeBack = 2*o.Redial + []drive.Time{1, 5}[s.choices.IntN(2)]*drive.Second
	if s.pick(3, 1) == 1 {
		o.Budget = 1 + s.choices.IntN(int(o.Rounds)+1)
	}
	if o.Parties > 4 {
		o.Colluders = s.choices.IntN(2)
	}
	o.Survivors = o.Parties - s.choices.IntN(3)
	if s.Mode == Spoilt {
		o.Parties = max(o.Parties, 4)
		o.Survivors = o.Parties - 2
	}
	s.slow = []drive.Time{0, 5, 200}[s.choices.IntN(3)] * drive.Millisecond
	s.train = []drive.Time{0, 0, o.StepTime / 8}[s.choices.IntN(3)]
	o.Delay = func(int) drive.Time { return s.span(s.slow) }
	o.Work = func(party int) drive.Time {
		if s.faulty(party) && s.happens(s.rates.slow) {
			return s.span(2 * o.StepTime)
		}
		return s.span(s.train)
	}
	if s.pick(1, 1) == 1 {
		o.Apply = func() drive.Time { return s.span(o.StepTime / 4) }
	}
	o.Double = func() bool { return s.happens(s.rates.double) }
	o.Late = func() bool { return s.happens(s.rates.late) }
	return settle(o)
}

// settle makes numbers that a session can have, of those that were wished for.
func settle(o Options) Options {
	wanted := o.Survivors
	for o.Survivors = max(2, wanted); o.Survivors < o.Parties; o.Survivors++ {
		if _, err := o.config(); err == nil {
			return o
		}
	}
	if _, err := o.config(); err != nil {
		o.Curious = true
	}
	return o
}

// cast chooses who is in the core, who lies, and how often what goes wrong.
func (s *Swarm) cast() {
	var others []int
	for i := range s.Parties {
		others = append(others, i)
	}
	for range s.options.Survivors {
		at := s.choices.IntN(len(others))
		s.core = append(s.core, others[at])
		others = slices.Delete(others, at, at+1)
	}
	slices.Sort(s.core)
	level := func() int { return []int{0, 0, 3, 20, 100}[s.choices.IntN(5)] }
	s.rates = rates{
		cut: level(), half: level(), kill: level(), die: level() / 2, lose: level() / 4,
		leave: level() / 4, silent: level(), none: 3 * level(), slow: 3 * level(),
		serverKill: level() / 4, serverDie: level() / 2, fails: level(), jump: level() / 4,
		ask: level() / 4, double: level(), late: 5 * level(),
	}
	liars := min(len(others), s.choices.IntN(max(s.options.Colluders, 1)+1))
	if s.Mode == Calm || s.Mode == Spoilt {
		s.rates.jump = 0
	}
	if s.Mode == Spoilt {
		s.rates = rates{double: s.rates.double}
	}
	s.liars = others[:liars]
	for _, i := range s.liars {
		s.lie(s.Parties[i])
	}
	s.Note("%v: %+v", s.Mode, s.options)
	s.Note("core %v, liars %v, %+v", s.core, s.liars, s.rates)
}

// lie has a party lie, in one way or in several.
func (s *Swarm) lie(p *Party) {
	numbers := []uint64{0, 2, 1 << 20, 1 << 40, protocol.MaxNumber, 1<<64 - 1}
	if s.Mode != Spoilt && s.pick(1, 1) == 1 {
		p.Least = func(honest uint64) uint64 { return honest + numbers[s.choices.IntN(len(numbers))] }
	}
	if s.Mode != Spoilt && s.pick(1, 1) == 1 {
		p.Told = func(honest uint64) uint64 {
			return []uint64{honest, honest + 1, s.options.Rounds, 1<<64 - 1, 0}[s.choices.IntN(5)]
		}
	}
	if s.Mode == Calm {
		return
	}
	switch s.pick(1, 1, 1) {
	case 1:
		p.Rewrite = func(h wire.Header, b []byte) []byte { return WrongShares(h, b) }
	case 2:
		packed := s.config.Layout.PackedSize()
		p.Rewrite = func(h wire.Header, b []byte) []byte {
			from := wire.HeaderSize
			if h.Type == wire.TypeMasked {
				from += packed // of its vector anybody may say what it likes
			}
			if s.happens(300) {
				b[from+s.choices.IntN(len(b)-from)] ^= 1 << s.choices.IntN(8)
			}
			return b
		}
	}
}

// WrongShares changes the shares that a party reveals.
func WrongShares(h wire.Header, b []byte) []byte {
	if h.Type != wire.TypeReveal {
		return b
	}
	_, body, err := wire.ParseHeader(b)
	if err != nil {
		return b
	}
	shares, err := wire.ParseReveal(body, 1<<10)
	if err != nil {
		return b
	}
	for i := range shares {
		shares[i].Share[0] ^= 1
	}
	return shares.Append(h.Append(nil))
}

// faulty reports whether something may go wrong with a party.
func (s *Swarm) faulty(party int) bool {
	if slices.Contains(s.core, party) {
		return !s.healed && s.Mode >= Live
	}
	return s.Mode != Spoilt
}

// restarts has a process start again after a while, perhaps a long one.
func (s *Swarm) restarts(start func()) {
	wait := s.span(2 * s.stepTime() / 10)
	if s.pick(4, 1) == 1 {
		wait = s.span(3 * s.stepTime())
	}
	s.After(wait, start)
}

func (s *Swarm) dies(p *Party) bool {
	s.restarts(p.Start)
	return true
}

func (s *Swarm) serverDies() bool {
	if s.healed || !s.happens(s.rates.serverDie) {
		return false
	}
	s.restarts(s.restart)
	return true
}

// restart starts the server, perhaps on a machine whose clock says something else.
func (s *Swarm) restart() {
	if s.happens(10*s.rates.jump) && s.Server.drive == nil { // else it was started by hand
		s.Server.Skew += s.span(2*drive.Minute) - drive.Minute
	}
	s.Server.Start()
}

// fault lets something go wrong, or not.
func (s *Swarm) fault() {
	if s.now < s.next {
		return
	}
	s.next = s.now + s.span(s.stepTime()/20)
	r := &s.rates
	p := s.Parties[s.choices.IntN(len(s.Parties))]
	if s.faulty(p.index) {
		switch {
		case s.happens(r.cut):
			s.Note("%s party %d is cut off", s.clock(), p.index)
			p.Cut()
			s.After(s.span(s.stepTime()), p.Connect)
		case s.happens(r.half) && s.pick(1, 1) == 0:
			p.cutHere(s.span(s.stepTime()))
			s.After(s.span(s.stepTime()), p.Connect)
		case s.happens(r.half):
			p.cutThere(s.span(s.stepTime()))
		case s.happens(r.kill):
			p.Kill()
			s.restarts(p.Start)
		case s.happens(r.lose):
			p.Lose()
			s.restarts(p.Start)
		case s.happens(r.leave):
			p.Kill()
			s.After(s.span(20*s.stepTime()), p.Start)
		}
	}
	if s.healed {
		return
	}
	switch {
	case s.happens(r.serverKill):
		s.Server.Kill()
		s.restarts(s.restart)
	case s.happens(r.jump):
		s.jump()
	case s.happens(r.ask):
		s.order()
	}
}

// jump has the server's clock jump.
func (s *Swarm) jump() {
	by := s.span(3 * s.stepTime())
	if s.Mode == Rough && s.pick(1, 1) == 1 {
		by = -by
	}
	s.Note("%s the clock jumps by %d", s.clock(), by)
	s.Server.Skew += by
	if s.Server.drive != nil {
		s.Server.proceed()
	}
}

// order has the operator say something.
func (s *Swarm) order() {
	server := s.Server
	if server.drive == nil {
		return
	}
	switch s.choices.IntN(4) {
	case 3:
		s.orderOfParty(s.choices.IntN(len(s.Parties)))
	case 0:
		server.drive.Order(server.Now(), drive.Order{Do: drive.Pause, Why: "lunch"})
		s.After(s.span(s.stepTime()), s.resume)
	case 1:
		s.resume()
	case 2:
		server.drive.Keep()
	}
	server.proceed()
}

// orderOfParty has the operator leave a party out that nobody needs, or let it back in.
func (s *Swarm) orderOfParty(party int) {
	d, now := s.Server.drive, s.Server.Now()
	switch {
	case slices.Contains(s.core, party) || slices.Contains(s.liars, party):
	case d.At(drive.Peer{Index: party}).Excluded:
		d.Order(now, drive.Order{Do: drive.Readmit, Party: party, Why: "it is mended"})
	default:
		d.Order(now, drive.Order{Do: drive.Exclude, Party: party, Why: "it hangs"})
	}
}

// resume ends a pause.
func (s *Swarm) resume() {
	if server := s.Server; server.drive != nil && server.Status().Paused {
		server.drive.Order(server.Now(), drive.Order{Do: drive.Resume, Why: "the cause is mended"})
		server.proceed()
	}
}

// heal ends what goes wrong with the core and the server.
func (s *Swarm) heal() {
	s.Note("%s from now on nothing goes wrong with %v", s.clock(), s.core)
	s.healed = true
	s.options.Disorder = false // a link that reorders messages has to repeat them
	s.Server.Start()
	s.notices = len(s.Notices)
	s.resume()
	for _, i := range s.core {
		p := s.Parties[i]
		p.Start()
		if s.Mode == Live {
			p.Cut() // who has kept an answer to itself gives it when it comes back
		}
		p.Connect()
	}
	s.seen.able = s.able
}

// able reports whether the core is here.
func (s *Swarm) able() bool {
	for _, i := range s.core {
		if p := s.Parties[i]; p.drive == nil || p.link == 0 || p.link != p.remote {
			return false
		}
	}
	return true
}

// Play runs the job.
func (s *Swarm) Play() Outcome {
	const most = 100_000
	var end drive.Time
	for steps := 0; !s.over(steps); steps++ {
		if steps > most {
			s.Fatal("%v: it does not end: %+v", s.Mode, s.Server.Status())
		}
		if s.healed && end == 0 {
			end = s.deadline()
		}
		if end > 0 && s.now > end {
			s.Fatal("%v: it has not ended in time, %d: %+v", s.Mode, end, s.Server.Status())
		}
		if !s.Step() {
			if s.Mode == Rough {
				break // those that are needed are silent
			}
			s.Fatal("%v: it stands still: %+v", s.Mode, s.Server.Status())
		}
		s.fault()
		if s.healed {
			s.resume()
		}
	}
	return s.outcome()
}

// over reports whether the job has been run for long enough.
func (s *Swarm) over(steps int) bool {
	return s.Ended() || s.Mode == Rough && steps >= 3000
}

// deadline is until when the job ends, if nothing goes wrong with its core.
func (s *Swarm) deadline() drive.Time {
	o := s.options
	left := drive.Time(o.Rounds-s.Server.Status().Round) + 2
	return s.now + left*(7*s.stepTime()+o.Pace)
}

// outcome checks what the mode demands.
func (s *Swarm) outcome() Outcome {
	out := Outcome{
		Mode:  s.Mode,
		Ended: s.Ended(),
		Sums:  len(s.Sums),
		Lost:  int(s.lost),
		Saves: s.Server.saves,
	}
	if out.Ended {
		out.Stalled = s.Server.Status().Stalled
	}
	for _, n := range s.Notices {
		switch n.Kind {
		case drive.Formed:
			out.Sessions++
		case drive.Spoiler:
			if !slices.Contains(s.liars, n.Party) {
				s.Fatal("party %d is left out, and %v lie", n.Party, s.liars)
			}
		case drive.SetBack:
			s.Fatal("a server that was not set back skips rounds")
		}
	}
	e := max(s.options.Colluders, 1)
	spoilt, calm, healthy := s.losses(e)
	switch {
	case s.Mode == Calm && calm > 0:
		s.Fatal("%v: %d rounds are lost", s.Mode, calm)
	case s.Mode == Spoilt && spoilt > e:
		s.Fatal("%v: %d rounds are lost, and %d may be", s.Mode, spoilt, e)
	case s.Mode == Live && len(s.liars) == 0 && healthy > 0:
		s.Fatal("%v: %d rounds are lost that nothing went wrong in", s.Mode, healthy)
	case s.Mode == Calm && s.rates == (rates{}) && out.Saves > 6*(out.Sums+out.Sessions)+1:
		s.Fatal("%v: %d saves for %d rounds and %d sessions", s.Mode, out.Saves, out.Sums, out.Sessions)
	}
	return out
}

// losses counts the rounds that were lost although enough others revealed to name e spoilers
// (SPEC.md §10.4), those with the core, and of these those in sessions that were proposed after
// nothing went wrong with it any more.
func (s *Swarm) losses(e int) (spoilt, calm, healthy int) {
	var in []int
	formed := uint64(protocol.MaxNumber)
	for k, n := range s.Notices {
		switch n.Kind {
		case drive.Forms: // keys that were made before may be lost
			if s.healed && k >= s.notices {
				formed = min(formed, n.Session)
			}
		case drive.Begun:
			in = n.Parties
		case drive.Lost:
			if len(in)-1-len(s.liars) >= s.config.Recovery.Threshold+2*e {
				spoilt++
			}
			missing := func(i int) bool { return !slices.Contains(in, i) }
			if slices.ContainsFunc(s.core, missing) {
				continue
			}
			if calm++; n.Session >= formed {
				healthy++
			}
		}
	}
	return spoilt, calm, healthy
}

// Trace returns a digest of all that happened.
func (s *Swarm) Trace() string {
	return fmt.Sprintf("%x %x", s.seen.digest, digestOf([]byte(fmt.Sprint(s.Log))))
}
