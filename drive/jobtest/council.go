package jobtest

import (
	"container/heap"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot"
)

// CouncilOptions configure a [Council], the world of a job with a committee.
type CouncilOptions struct {
	Parties, Members, Survivors, Colluders, Faults int
	Rounds                                         uint64
	Covered                                        bool
	MembersNoise                                   bool // members deal noise of 50 a coordinate
	Batch, Buffer, Stale                           int
	Submissions                                    uint64
	BeginWith                                      int
	StepTime                                       drive.Time // 0: 10 s
	ComeBack                                       drive.Time // 0: 2 s
	Budget                                         int        // rounds that may be spent; 0: no noise
	Before                                         []int      // of these, by party
	Away, Pace                                     drive.Time
	// Delay is how long a message takes, and Work how long training does; nil: 10 ms.
	Delay, Work func() drive.Time
	// Terms are those of the sums, in place of what the fields above say of them; without a Length
	// sums are of three numbers of 8 bits. Vector returns what a party submits; nil: anything.
	Terms  oneshot.Terms
	Vector func(party int, round uint64) []int64
}

// Council is a job whose parties send one message a round. Its methods are for one goroutine.
type Council struct {
	tb      testing.TB
	options CouncilOptions
	now     drive.Time
	queue   queue
	seq     int
	random  *rand.ChaCha8
	key     keyexchange.SealKey
	sums    *oneshot.Config

	Hub     *Hub
	Members []*Seat
	Parties []*Seat
	Log     []string
	Notices []drive.Notice
	Sums    map[uint64][]int   // who was in which
	Values  map[uint64][]int64 // of each sum
	lost    uint64
	items   map[string][32]byte
	sent    map[string][32]byte // by seats, before they lie
	vectors map[string][]int64
	uploads map[string]int // of each submission
	Ages    map[uint64]int // how many submissions were made a given number of rounds before
	cost    accounting.Round
	ledger  *accounting.Ledger
}

// NewCouncil makes a world in which nobody is there yet but the server.
func NewCouncil(tb testing.TB, seed uint64, o CouncilOptions) *Council {
	tb.Helper()
	var stream [32]byte
	for i := range 8 {
		stream[i] = byte(seed >> (8 * i))
	}
	if o.StepTime == 0 {
		o.StepTime = 10 * drive.Second
	}
	if o.ComeBack == 0 {
		o.ComeBack = 2 * drive.Second
	}
	short := func() drive.Time { return 10 * drive.Millisecond }
	if o.Delay == nil {
		o.Delay = short
	}
	if o.Work == nil {
		o.Work = short
	}
	w := &Council{tb: tb, options: o, random: rand.NewChaCha8(stream), key: keyexchange.SealKey{7},
		Sums: make(map[uint64][]int), Values: make(map[uint64][]int64),
		items: make(map[string][32]byte), sent: make(map[string][32]byte),
		vectors: make(map[string][]int64), uploads: make(map[string]int),
		Ages: make(map[uint64]int)}
	roster := func(kind string, n, from int) *keyexchange.Roster {
		var out []keyexchange.Entry
		for i := range n {
			key := identities()[from+i].Public().(ed25519.PublicKey)
			out = append(out, keyexchange.Entry{Name: fmt.Sprintf("%s-%d", kind, i), Key: key})
		}
		r, err := keyexchange.NewRoster(out)
		if err != nil {
			tb.Fatal(err)
		}
		return r
	}
	if o.Terms.Length == 0 {
		o.Terms = oneshot.Terms{Length: 3, Bits: 8, MinSurvivors: o.Survivors, Colluders: o.Colluders,
			Faults: o.Faults, Covered: o.Covered, KEM: oneshot.KEMX25519, Stale: o.Stale}
		if o.MembersNoise {
			law, err := noise.DiscreteGaussian(big.NewRat(50*int64(o.Members-2*o.Faults), 1))
			if err != nil {
				tb.Fatal(err)
			}
			o.Terms.Noise, o.Terms.CommitteeNoise = law, true
		}
	}
	w.sums = &oneshot.Config{
		Label: "council", Roster: roster("party", o.Parties, 0),
		Committee: roster("member", o.Members, o.Parties), Terms: o.Terms,
	}
	if o.Budget > 0 {
		w.cost, w.ledger = budget(tb, o.Budget)
	}
	for i, n := range o.Before {
		if n == 0 {
			continue
		}
		if err := w.ledger.SpendRounds(w.cost, n, w.Name(i)); err != nil {
			tb.Fatal(err)
		}
	}
	w.Hub = &Hub{world: w, objects: make(map[string][]byte)}
	for i := range o.Members {
		w.Members = append(w.Members, &Seat{world: w, index: i, member: true})
	}
	for i := range o.Parties {
		w.Parties = append(w.Parties, &Seat{world: w, index: i})
	}
	w.Hub.Start()
	return w
}

// Note adds to the log.
func (w *Council) Note(format string, values ...any) {
	at := fmt.Sprintf("%8.3f ", float64(w.now)/float64(drive.Second))
	w.Log = append(w.Log, at+fmt.Sprintf(format, values...))
}

// Fatal fails the test, with the log.
func (w *Council) Fatal(format string, values ...any) {
	w.tb.Helper()
	for _, line := range w.Log[max(0, len(w.Log)-200):] {
		w.tb.Log(line)
	}
	w.tb.Fatalf(format, values...)
}

// After lets something happen later.
func (w *Council) After(wait drive.Time, do func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now + wait, w.seq, do})
}

// Step lets the next thing happen, and reports whether there was one.
func (w *Council) Step() bool {
	if w.queue.Len() == 0 {
		return false
	}
	e := heap.Pop(&w.queue).(event)
	w.now = max(w.now, e.at)
	e.do()
	return true
}

// Run lets things happen until something does.
func (w *Council) Run(until func() bool) {
	w.tb.Helper()
	for steps := 0; !until(); steps++ {
		if steps == 300_000 || !w.Step() {
			w.Fatal("nothing more happens, after %d steps: %+v", steps, w.Hub.status())
		}
	}
}

// RunFor lets things happen for a time.
func (w *Council) RunFor(span drive.Time) {
	end := w.now + span
	for w.queue.Len() > 0 && w.queue[0].at <= end {
		w.Step()
	}
	w.now = end
}

// Now returns the time.
func (w *Council) Now() drive.Time { return w.now }

// Ended reports whether the job is over.
func (w *Council) Ended() bool { return w.Hub.drive != nil && w.Hub.status().Ended != "" }

// Lost returns how many rounds had no sum.
func (w *Council) Lost() uint64 { return w.lost }

// Guard returns what a party that is running has counted.
func (w *Council) Guard(party int) *drive.Guard { return w.Parties[party].drive.Guard() }

// Name returns a party's name in ledgers.
func (w *Council) Name(party int) string { return w.sums.Roster.Name(party) }

// Logged reports whether a line of the log has a text.
func (w *Council) Logged(text string) bool {
	return slices.ContainsFunc(w.Log, func(line string) bool { return strings.Contains(line, text) })
}

// digest names a broadcast.
func (w *Council) digest(round uint64, fresh [32]byte) [32]byte {
	h := oneshot.NewBroadcastHash()
	fmt.Fprintf(h, "%d %x", round, fresh)
	return [32]byte(h.Sum(nil))
}

// Hub is the server of the world, with its store.
type Hub struct {
	world   *Council
	drive   drive.Lead
	state   []byte
	objects map[string][]byte
	life    int
	wakes   int
	cut     bool // as a Server's

	// Die, if set, is asked at places where the server may die: "before", "after", "sent".
	Die      func(place string) bool
	Written  int // bytes
	Saves    int
	Received int // bytes of submissions
}

func (h *Hub) status() drive.Status {
	if h.drive == nil {
		return drive.Status{}
	}
	return h.drive.Status()
}

// Drive returns the running committee's server, nil while it is down.
func (h *Hub) Drive() drive.Lead { return h.drive }

// Config returns what the server knows before anybody comes.
func (h *Hub) Config() drive.Settings {
	w := h.world
	return drive.Settings{
		Rounds: w.options.Rounds, StepTime: w.options.StepTime, ComeBack: w.options.ComeBack,
		Away: w.options.Away, Pace: w.options.Pace, Random: w.random, Cost: w.cost, Ledger: w.ledger,
		Submissions: w.options.Submissions, BeginWith: w.options.BeginWith,
		Broadcast: func(round uint64, fresh [32]byte) ([32]byte, error) {
			return w.digest(round, fresh), nil
		},
		Sums: w.sums, Batch: w.options.Batch, Buffer: w.options.Buffer,
		Stored: func(name string) (io.ReadCloser, error) { return opened(h.objects)(name) },
	}
}

// Restored returns the server as it would start now, from what it has saved.
func (h *Hub) Restored() drive.Lead {
	s, err := drive.LoadLead(h.Config(), &h.world.key, h.world.now, h.state)
	if err != nil {
		h.world.Fatal("the server would not start: %v", err)
	}
	return s
}

// Start starts the server, from what it has saved.
func (h *Hub) Start() {
	if h.drive != nil {
		return
	}
	w := h.world
	h.life++
	if h.state != nil {
		h.drive = h.Restored()
	} else {
		var err error
		if h.drive, err = drive.NewLead(h.Config(), w.now); err != nil {
			w.Fatal("the server does not start: %v", err)
		}
	}
	w.Note("server starts")
	h.proceed()
}

// Kill ends the server's process.
func (h *Hub) Kill() {
	if h.drive == nil {
		return
	}
	h.world.Note("server dies")
	h.drive = nil
	for _, s := range slices.Concat(h.world.Members, h.world.Parties) {
		s.Cut()
	}
}

// CutOff has the server reach its store no more, as [Server.CutOff] does.
func (h *Hub) CutOff() {
	h.cut = true
	for _, s := range slices.Concat(h.world.Members, h.world.Parties) {
		s.Cut()
	}
}

// Reach ends that.
func (h *Hub) Reach() {
	h.cut = false
	h.drive.Again(h.world.now)
	h.proceed()
}

// backup holds what was durable at a time.
type backup struct {
	state   []byte
	objects map[string][]byte
}

// Remember returns what is durable now, for SetBack.
func (h *Hub) Remember() any { return backup{h.state, maps.Clone(h.objects)} }

// SetBack makes the server go on with something older, or with nothing.
func (h *Hub) SetBack(old any) {
	h.Kill()
	b, _ := old.(backup)
	h.state, h.objects = b.state, maps.Clone(b.objects)
	if h.objects == nil {
		h.objects = make(map[string][]byte)
	}
	h.world.items = make(map[string][32]byte)
	h.Start()
}

func (h *Hub) dies(place string) bool {
	if h.Die != nil && h.Die(place) {
		h.Kill()
	}
	return h.drive == nil
}

// proceed is the server's loop.
func (h *Hub) proceed() {
	w := h.world
	if h.drive == nil || h.cut {
		return
	}
	for {
		if err := h.drive.Tick(w.now); err != nil {
			w.Fatal("the server fails: %v", err)
		}
		r, decided := h.drive.Ready()
		if !decided {
			break
		}
		if r.Save && !h.keep() {
			return
		}
		for _, n := range r.Notices {
			h.notice(n)
		}
		orders := h.drive.Advance(w.now)
		if r.Save {
			for _, s := range slices.Concat(w.Members, w.Parties) {
				s.pump()
			}
		}
		for _, party := range orders.Upload {
			w.Parties[party].pump()
		}
		if orders.Apply != nil {
			h.apply(orders.Apply)
		}
		if h.dies("sent") {
			return
		}
	}
	h.wakes++
	life, this := h.life, h.wakes
	if wake := h.drive.Wake(); wake != drive.Never {
		w.After(max(0, wake-w.now), func() {
			if h.life == life && h.wakes == this {
				h.proceed()
			}
		})
	}
}

// keep saves the state, and reports whether the server lives.
func (h *Hub) keep() bool {
	w := h.world
	saved, err := h.drive.Save(&w.key)
	if err != nil {
		w.Fatal("the server does not save: %v", err)
	}
	objects, written, err := put(h.objects, saved)
	if err != nil {
		w.Fatal("the server does not save: %v", err)
	}
	h.Written += written
	if h.dies("before") {
		return false
	}
	h.state, h.objects = saved.State, objects
	h.Saves++
	h.Written += len(saved.State)
	return !h.dies("after")
}

func (h *Hub) notice(n drive.Notice) {
	w := h.world
	w.Notices = append(w.Notices, n)
	who := "party"
	if n.Member {
		who = "member"
	}
	w.Note("server %v: round %d, %s %d %v %v", n.Kind, n.Round, who, n.Party, n.Parties, n.Err)
	switch n.Kind {
	case drive.Lost:
		w.lost++
	case drive.SetBack:
		w.lost += n.Skipped
	}
}

// apply checks a sum, and answers.
func (h *Hub) apply(a *drive.Apply) {
	w := h.world
	if _, again := w.Sums[a.Round]; again && !slices.Equal(w.Sums[a.Round], a.Parties) {
		w.Fatal("round %d has two sums", a.Round)
	}
	if len(a.Parties) < w.options.Survivors {
		w.Fatal("round %d has the sum of %v", a.Round, a.Parties)
	}
	want := make([]int64, w.sums.Length)
	for _, i := range a.Parties {
		for k, v := range w.vectors[fmt.Sprint(i, ".", a.Round)] {
			want[k] += v
		}
	}
	for k, v := range a.Values {
		if off := float64(v - want[k]); math.Abs(off) > w.noise(len(a.Parties)) {
			w.Fatal("round %d: %v, want %v", a.Round, a.Values, want)
		}
	}
	w.Sums[a.Round], w.Values[a.Round] = a.Parties, a.Values
	life := h.life
	w.After(drive.Millisecond, func() {
		if h.life == life && h.drive != nil {
			h.drive.Applied(w.now, a.Round, nil)
			h.proceed()
		}
	})
}

// noise returns a bound, 13 deviations, on the noise in a coordinate of a sum of the given number
// of parties.
func (w *Council) noise(parties int) float64 {
	t := &w.sums.Terms
	if t.Noise.Family() == 0 {
		return 0
	}
	variance, _ := t.Noise.Scale().Float64()
	if c := w.sums.Committee.Len(); t.CommitteeNoise {
		return 13 * math.Sqrt(variance*float64(c)/float64(c-2*t.Faults)+6.4*6.4*float64(parties))
	}
	return 13 * math.Sqrt(variance*float64(parties)/float64(t.MinSurvivors-t.Colluders))
}

// CouncilConfigs returns the configurations of a committee's server, its members and its parties,
// for tests that have a carrier of their own.
func CouncilConfigs(tb testing.TB, o CouncilOptions, random io.Reader) (
	server drive.Settings, member, party func(i int) drive.PartSettings,
) {
	tb.Helper()
	w := NewCouncil(tb, 0, o)
	server = w.Hub.Config()
	server.Random = random
	member = func(k int) drive.PartSettings {
		c := w.Members[k].settings()
		c.Random = random
		return c
	}
	return server, member, func(i int) drive.PartSettings {
		c := w.Parties[i].settings()
		c.Random = random
		return c
	}
}

// checkItem: what was told once has the same bytes whenever it is told again.
func (w *Council) checkItem(to *Seat, item drive.Item) {
	name := fmt.Sprint(to.member, to.index, item.Name)
	digest := sha256.Sum256(item.Own)
	if was, told := w.items[name]; told && was != digest {
		if h, _, _ := wire.ParseHeader(item.Own); h.Type != 66 || w.lost == 0 {
			w.Fatal("%s has other bytes", name)
		}
	}
	w.items[name] = digest
}
