// Package jobtest is the world in which whole jobs of package drive are tested: a server and
// parties as programs make them, with stores, connections and programs that train, in virtual
// time, all from one seed. It checks after every step what must hold whatever happens.
package jobtest

import (
	"container/heap"
	"crypto/ed25519"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// Options configure a [World].
type Options struct {
	Parties, Survivors, Colluders int
	Rounds                        uint64
	Hybrid                        bool
	Long                          bool // sums are saved apart
	Whole                         bool // without recovery: a round takes everybody
	Degree                        int  // of a sparse graph; 0: a complete one

	Curious  bool   // recovery is against a curious server; of three parties it always is
	Budget   int    // rounds that there is a budget for; 0: there is no noise
	Sample   int    // parties that a round is held among; 0: all that are here
	Often    uint64 // submissions of a party at most; 0: one in each round
	Greedy   bool   // the server knows of no such bound
	SetBack  bool   // the server may be set back, and skip rounds
	Disorder bool   // messages of one connection overtake each other

	// Layout is that of submissions; nil: three numbers of 16 bits, or many if Long. Vector
	// returns what a party submits in a round; nil: something else in each life of its process.
	Layout masking.Layout
	Vector func(party int, round uint64) [][]uint64

	// Members is the fewest parties that a session of a number may form among; nil: Survivors.
	Members func(number uint64) int

	StepTime drive.Time // 0: 10 s
	Floor    drive.Time
	ComeBack drive.Time
	Away     drive.Time
	Pace     drive.Time
	// BeginWith is how many parties the first round begins with; 0: it waits for those who come later.
	BeginWith int
	Redial    drive.Time // how long after the server's death a party dials again; 0: 0.5 s
	// Delay is how long a message takes, Work how long training does, Apply how long the next
	// model takes, and SaveTime a save of the server's; nil, 0: at once.
	Delay, Work func(party int) drive.Time
	Apply       func() drive.Time
	SaveTime    drive.Time
	// Double reports whether a message arrives twice, and Late whether one arrives whose
	// connection has ended.
	Double, Late func() bool
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
	limits  drive.Limits

	Server  *Server
	Parties []*Party
	// Log has what happened, in words.
	Log     []string
	Notices []drive.Notice
	// Heard, if set, is shown each notice.
	Heard func(n drive.Notice)
	// Resumes has an operator end each pause at once, whatever the cause.
	Resumes bool
	Sums    []Sum
	lost    uint64
	seen    seen
}

// Sum is a round that gave one.
type Sum struct {
	Round   uint64
	Parties []int
	Values  [][]uint64
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
	for i := range 700 {
		seed := make([]byte, ed25519.SeedSize)
		seed[0], seed[1], seed[2] = byte(i), 7, byte(i>>8)
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
	var err error
	if w.config, err = o.config(); err != nil {
		tb.Fatal(err)
	}
	w.limits = drive.Limits{Rounds: o.Rounds, Submissions: o.Often}
	if o.Budget > 0 {
		w.limits.Cost, w.limits.Ledger = budget(tb, o.Budget)
	}
	w.seen.charged = make(map[uint64]map[string]int)
	w.Server = &Server{world: w, Skew: 1_000_000 * drive.Second} // before it there were clocks too
	for i := range o.Parties {
		w.Parties = append(w.Parties, &Party{
			world:   w,
			index:   i,
			vectors: make(map[uint64][][]uint64),
			seen: seenOfParty{
				items:    make(map[string]uint64),
				messages: make(map[message]uint64),
				rounds:   make(map[message]uint64),
				released: make(map[uint64]message),
			},
		})
	}
	w.Server.Start()
	return w
}

// config returns the configuration of the sessions, except their numbers.
func (o Options) config() (protocol.Config, error) {
	members := make([]keyexchange.Entry, o.Parties)
	for i := range members {
		members[i] = keyexchange.Entry{
			Name: fmt.Sprint("party-", i), Key: identities()[i].Public().(ed25519.PublicKey)}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		return protocol.Config{}, err
	}
	layout := o.Layout
	switch {
	case layout != nil:
	case o.Long:
		layout = masking.Layout{{Length: 40_000, Bits: 16}}
	default:
		layout = masking.Layout{{Length: 3, Bits: 16}}
	}
	recovery := &protocol.Recovery{MinSurvivors: o.Survivors, Threshold: o.Survivors - 1}
	if o.Curious || o.Parties < 4 {
		recovery.Adversary = protocol.CuriousServer // a cheating one takes all three
	}
	if o.Degree > 0 {
		*recovery = protocol.Recovery{
			Adversary: protocol.CuriousServer, MinSurvivors: o.Survivors, Degree: o.Degree}
	}
	c := protocol.Config{
		Label:      "job",
		Roster:     roster,
		MinMembers: o.Survivors,
		Layout:     layout,
		Colluders:  o.Colluders,
		Recovery:   recovery,
		Classical:  !o.Hybrid,
	}
	if o.Whole {
		c.Recovery = nil
	}
	return c, c.Validate()
}

// epsilons remembers what a number of rounds spends: a swarm of worlds asks for few of them often.
var epsilons sync.Map

// budget returns the cost of a round, and an empty ledger with room for the given number of rounds.
func budget(tb testing.TB, rounds int) (accounting.Round, *accounting.Ledger) {
	tb.Helper()
	cost := accounting.Round{
		Family: accounting.FamilyDiscreteGaussian,
		Shares: 2,
		Honest: 2,
		Update: accounting.Lane{
			ShareSigma:  50,
			Sensitivity: accounting.Sensitivity{L1: 30, L2: 10, Dimension: 9},
		},
		Rate: 1,
	}
	epsilon, known := epsilons.Load(rounds)
	if !known {
		spent, err := cost.Spent(accounting.ServerView, rounds, 1e-5)
		if err != nil {
			tb.Fatal(err)
		}
		epsilon = spent.Bare().Upper
		epsilons.Store(rounds, epsilon)
	}
	budget, err := accounting.NewBudget(accounting.Statement{}, epsilon.(float64), 1e-5)
	if err != nil {
		tb.Fatal(err)
	}
	ledger, err := accounting.NewLedger(budget)
	if err != nil {
		tb.Fatal(err)
	}
	return cost, ledger
}

func (w *World) session(number uint64) *protocol.Config {
	c := w.config
	c.Number = number
	if w.options.Members != nil {
		c.MinMembers = w.options.Members(number)
	}
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

// After lets something happen after a while.
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

// Now returns the time.
func (w *World) Now() drive.Time { return w.now }

// Ended reports whether the job is over.
func (w *World) Ended() bool { return w.Server.drive != nil && w.Server.Status().Ended != "" }

// Lost returns how many rounds were lost.
func (w *World) Lost() uint64 { return w.lost }

// Configs returns the configurations of a job's server and of its parties, for tests that have a
// carrier of their own.
func Configs(tb testing.TB, o Options, random io.Reader) (
	server drive.Settings, party func(i int) drive.PartSettings,
) {
	tb.Helper()
	w := New(tb, 0, o)
	server = w.Server.config()
	server.Random = random
	return server, func(i int) drive.PartSettings {
		c := w.Parties[i].config()
		c.Random = random
		return c
	}
}
