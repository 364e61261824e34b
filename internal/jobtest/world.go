// Package jobtest is the world in which whole jobs of package drive are tested: a server and
// parties as programs make them, with stores, connections and programs that train, in virtual
// time, all from one seed. It checks after every step what must hold whatever happens.
package jobtest

import (
	"bytes"
	"container/heap"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// Options make a world.
type Options struct {
	Parties, Survivors, Colluders int
	Rounds                        uint64
	Hybrid                        bool
	Long                          bool // sums are saved apart
	Pause                         bool // five lost rounds pause the job
	Whole                         bool // without recovery: a round takes everybody

	StepTime drive.Time // 0: 10 s
	ComeBack drive.Time
	Away     drive.Time
	Pace     drive.Time
	// Delay is how long a message takes, and Work how long training does; 0: at once.
	Delay, Work func(party int) drive.Time
	// SaveTime is how long a save takes.
	SaveTime drive.Time
}

// World is a job. Its methods are for one goroutine.
type World struct {
	tb      testing.TB
	options Options
	now     drive.Time
	queue   queue
	seq     int
	random  *rand.ChaCha8
	key     keyexchange.SealKey
	config  protocol.Config

	Server  *Server
	Parties []*Party
	// Log has what happened, in words.
	Log     []string
	Notices []drive.Notice
	Sums    []Sum
	lost    uint64
}

// Sum is a round that gave one.
type Sum struct {
	Round   uint64
	Parties []int
}

// event is something that happens at a time; of the same time what was put first.
type event struct {
	at  drive.Time
	seq int
	do  func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// identities are made once.
var identities = sync.OnceValue(func() (out []ed25519.PrivateKey) {
	for i := range 64 {
		seed := make([]byte, ed25519.SeedSize)
		seed[0], seed[1] = byte(i), 7
		out = append(out, ed25519.NewKeyFromSeed(seed))
	}
	return out
})

// New makes a world in which nobody is there yet but the server.
func New(tb testing.TB, seed uint64, o Options) *World {
	tb.Helper()
	var stream [32]byte
	for i := range 8 {
		stream[i] = byte(seed >> (8 * i))
	}
	w := &World{tb: tb, options: o, random: rand.NewChaCha8(stream), key: keyexchange.SealKey{7}}
	members := make([]keyexchange.Member, o.Parties)
	for i := range members {
		members[i] = keyexchange.Member{
			Name: fmt.Sprint("party-", i), Key: identities()[i].Public().(ed25519.PublicKey)}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		tb.Fatal(err)
	}
	length := 3
	if o.Long {
		length = 40_000
	}
	recovery := &protocol.Recovery{MinSurvivors: o.Survivors, Threshold: o.Survivors - 1}
	if o.Parties < 4 {
		recovery.Adversary = protocol.CuriousServer // a cheating one takes all three
	}
	w.config = protocol.Config{
		Label:      "job",
		Roster:     roster,
		MinMembers: o.Survivors,
		Layout:     masking.Layout{{Length: length, Bits: 16}},
		Colluders:  o.Colluders,
		Recovery:   recovery,
		Classical:  !o.Hybrid,
	}
	if o.Whole {
		w.config.Recovery, w.config.MinMembers = nil, 0
	}
	if err := w.config.Validate(); err != nil {
		tb.Fatal(err)
	}
	w.Server = &Server{world: w}
	for i := range o.Parties {
		w.Parties = append(w.Parties, &Party{world: w, index: i})
	}
	w.Server.Start()
	return w
}

func (w *World) session(number uint64) *protocol.Config {
	c := w.config
	c.Number = number
	return &c
}

// Note writes a line of the log.
func (w *World) Note(format string, values ...any) {
	w.Log = append(w.Log, fmt.Sprintf(format, values...))
}

// Fatal ends the test, with the log.
func (w *World) Fatal(format string, values ...any) {
	w.tb.Helper()
	tail := w.Log[max(0, len(w.Log)-60):]
	w.tb.Fatalf("%s\nat %v; the log ends\n%s", fmt.Sprintf(format, values...), w.now,
		strings.Join(tail, "\n"))
}

// After has something happen after a while.
func (w *World) After(wait drive.Time, do func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now + wait, w.seq, do})
}

// Step lets the next thing happen, and reports whether there was one.
func (w *World) Step() bool {
	if len(w.queue) == 0 {
		return false
	}
	e := heap.Pop(&w.queue).(event)
	w.now = max(w.now, e.at)
	e.do()
	return true
}

// Run lets things happen until something is so, and fails if it does not come so far.
func (w *World) Run(until func() bool) {
	w.tb.Helper()
	for steps := 0; !until(); steps++ {
		if steps > 1_000_000 || !w.Step() {
			w.Fatal("it stands still, %+v", w.Server.Status())
		}
	}
}

// RunFor lets things happen for a while.
func (w *World) RunFor(span drive.Time) {
	end := w.now + span
	for len(w.queue) > 0 && w.queue[0].at <= end {
		w.Step()
	}
	w.now = end
}

// Now is the time.
func (w *World) Now() drive.Time { return w.now }

// Ended reports whether the job is over.
func (w *World) Ended() bool { return w.Server.drive != nil && w.Server.Status().Ended != "" }

// Lost is how many rounds were lost.
func (w *World) Lost() uint64 { return w.lost }

// Server is the server's program: its process, and its store.
type Server struct {
	world *World
	drive *drive.Server // nil: the process has ended
	life  int           // of the process, so that what was due in an earlier one is not done
	awake drive.Time    // when Tick is due
	busy  bool          // a save is on its way

	// The store.
	state []byte
	sum   []byte
	name  string // of the sum
	saves int

	// Die, if set, is asked at each place where the process may die.
	Die func(place string) bool
}

// Status is that of the server.
func (s *Server) Status() drive.Status { return s.drive.Status() }

// Drive is the machine, nil while the process is dead.
func (s *Server) Drive() *drive.Server { return s.drive }

// Saves is how often the state was saved.
func (s *Server) Saves() int { return s.saves }

func (s *Server) config() drive.ServerConfig {
	w := s.world
	o := w.options
	step := o.StepTime
	if step == 0 {
		step = 10 * drive.Second
	}
	return drive.ServerConfig{
		Session: w.session, Label: w.config.Label, Rounds: o.Rounds,
		Survivors: o.Survivors, Colluders: o.Colluders,
		Broadcast: w.cast, StepTime: step, ComeBack: o.ComeBack, Away: o.Away, Pace: o.Pace,
		Pause: o.Pause, Random: w.random,
	}
}

// cast is the digest of a broadcast.
func (w *World) cast(round uint64, fresh [32]byte) ([32]byte, error) {
	h := protocol.NewBroadcastHash()
	fmt.Fprintf(h, "round %d %x", round, fresh)
	return [32]byte(h.Sum(nil)), nil
}

// Start starts the process.
func (s *Server) Start() {
	var err error
	w := s.world
	if s.state == nil {
		s.drive, err = drive.NewServer(s.config(), w.now)
	} else {
		var sum *bytes.Reader
		if s.sum != nil {
			sum = bytes.NewReader(s.sum)
			s.drive, err = drive.ReadServer(s.config(), &w.key, w.now, s.state, sum)
		} else {
			s.drive, err = drive.ReadServer(s.config(), &w.key, w.now, s.state, nil)
		}
	}
	if err != nil {
		w.Fatal("the server does not load: %v", err)
	}
	s.life, s.busy, s.awake = s.life+1, false, drive.Never
	w.Note("the server starts")
	s.proceed()
}

// Kill ends the process: nothing is left but the store.
func (s *Server) Kill() {
	if s.drive == nil {
		return
	}
	s.world.Note("the server is killed")
	s.drive, s.life = nil, s.life+1
	for _, p := range s.world.Parties {
		p.cut()
	}
}

// dies kills the process if it is to die here.
func (s *Server) dies(place string) bool {
	if s.Die == nil || !s.Die(place) {
		return false
	}
	s.world.Note("the server dies %s", place)
	s.Kill()
	return true
}

// proceed does what is due, as a carrier does.
func (s *Server) proceed() {
	w := s.world
	for s.drive != nil && !s.busy {
		if err := s.drive.Tick(w.now); err != nil {
			w.Fatal("the server: %v", err)
		}
		r, decided := s.drive.Ready()
		if !decided {
			s.sleep()
			return
		}
		for _, n := range r.Notices {
			s.notice(n)
		}
		if r.Save {
			if s.dies("before it saves") {
				return
			}
			s.keep()
			if s.dies("after it saves") {
				return
			}
			if wait := w.options.SaveTime; wait > 0 {
				life := s.life
				s.busy = true
				w.After(wait, func() {
					if s.life == life {
						s.busy = false
						s.advance()
						s.proceed()
					}
				})
				return
			}
		}
		s.advance()
	}
}

// keep saves the state.
func (s *Server) keep() {
	w := s.world
	state, sum, err := s.drive.State(&w.key)
	if err != nil {
		w.Fatal("%v", err)
	}
	s.saves++
	if sum == nil {
		s.sum, s.name = nil, ""
	} else if name := s.drive.SumName(); name != s.name {
		var b bytes.Buffer
		if _, err := sum.WriteTo(&b); err != nil {
			w.Fatal("%v", err)
		}
		s.sum, s.name = b.Bytes(), name
	}
	s.state = state
}

func (s *Server) advance() {
	w := s.world
	out := s.drive.Advance(w.now)
	if out.Apply != nil {
		s.apply(out.Apply)
	}
	if out.Tell {
		for _, p := range w.Parties {
			if s.drive == nil {
				return
			}
			p.pump()
		}
	}
	if s.drive != nil {
		s.dies("after it sends")
	}
}

// sleep has Tick called when it is due.
func (s *Server) sleep() {
	w := s.world
	wake := s.drive.Wake()
	if wake == drive.Never || wake == s.awake && wake > w.now {
		return
	}
	s.awake = wake
	life := s.life
	w.After(max(wake-w.now, 1), func() {
		if s.life == life {
			s.awake = drive.Never
			s.proceed()
		}
	})
}

func (s *Server) notice(n drive.Notice) {
	w := s.world
	w.Notices = append(w.Notices, n)
	w.Note("%8.3f %s", float64(w.now)/float64(drive.Second), words(n))
	if n.Kind == drive.Lost {
		w.lost++
	}
}

// apply checks a sum against what the parties have put in.
func (s *Server) apply(a *drive.Apply) {
	w := s.world
	want := make([]uint64, w.config.Layout[0].Length)
	for _, i := range a.Parties {
		v := w.Parties[i].vectors[a.Round]
		if v == nil {
			w.Fatal("party %d is in the sum of round %d and has not submitted", i, a.Round)
		}
		for k, x := range v {
			want[k] = (want[k] + x) & 0xffff
		}
	}
	if got := a.Sum.Values()[0]; !slices.Equal(got, want) {
		w.Fatal("the sum of round %d is wrong", a.Round)
	}
	if len(a.Parties) < w.options.Survivors {
		w.Fatal("the sum of round %d is of %v", a.Round, a.Parties)
	}
	if n := len(w.Sums); n == 0 || w.Sums[n-1].Round != a.Round {
		w.Sums = append(w.Sums, Sum{a.Round, a.Parties})
	}
	s.drive.Applied(w.now, a.Round, nil)
}

// words says a notice in words.
func words(n drive.Notice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v", n.Kind)
	if n.Session > 0 {
		fmt.Fprintf(&b, ", session %d", n.Session)
	}
	if n.Round > 0 {
		fmt.Fprintf(&b, ", round %d", n.Round)
	}
	switch n.Kind {
	case drive.Stall, drive.Spoiler:
		fmt.Fprintf(&b, ", party %d", n.Party)
	}
	if n.Parties != nil {
		fmt.Fprintf(&b, ", %v", n.Parties)
	}
	if n.Err != nil {
		fmt.Fprintf(&b, ": %v", n.Err)
	}
	return b.String()
}
