package hushsum

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

// With fewer than the plan takes there, the job waits, and goes on once they are back.
func TestCoordinatorWaits(t *testing.T) {
	plan := testPlan()
	plan.Rounds, plan.Classical, plan.DropOut = 3, true, .25
	j := newJob(t, plan, 4)
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	stores := make([]MemoryStore, 4)
	stops := make([]context.CancelFunc, 4)
	ended := make([]chan struct{}, 4)
	var wait sync.WaitGroup
	start := func(i int) {
		one, stop := context.WithCancel(ctx)
		stops[i], ended[i] = stop, make(chan struct{})
		gone := ended[i]
		p := j.participant(i, &stores[i])
		work := p.Work
		p.Work = func(ctx context.Context, round uint64, model []float64) ([]float64, error) {
			if i == 1 && round == 2 { // so that it has to be asked for material
				return nil, errors.New("no data")
			}
			return work(ctx, round, model)
		}
		wait.Go(func() {
			defer close(gone)
			if _, err := p.Run(one); err != nil && one.Err() == nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	for i := range stores {
		start(i)
	}
	c := j.coordinator(nil)
	report, left, back := c.Progress, false, false
	c.Progress = func(e Event) {
		report(e)
		switch {
		case e.Kind == Summed && !left:
			left = true
			stops[2]()
			stops[3]()
		case e.Kind == Lost && !back:
			// Now two are there of three that a round takes.
			back = true
			wait.Go(func() {
				for i := 2; i < 4; i++ {
					<-ended[i]
				}
				time.Sleep(5 * tick) // so that it has to wait
				start(2)
				start(3)
			})
		}
	}
	result, err := c.Run(ctx)
	if err != nil || result.Rounds != 3 || !back {
		t.Errorf("%+v, %v\n%v", result, err, j.events)
	}
	cancel()
	wait.Wait()
	j.check()
}

// What a coordinator has saved it comes back with: rounds, numbers, what was lost, and what every
// party of a round has spent.
func TestCoordinatorState(t *testing.T) {
	plan := testPlan()
	plan.Noise, plan.Epsilon, plan.Rounds = accounting.FamilyDiscreteGaussian, 8, 2
	j := newJob(t, plan, 4)
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	store := new(MemoryStore)
	var parties []*Participant
	for i := range j.signers {
		parties = append(parties, j.participant(i, nil))
	}
	var wait sync.WaitGroup
	for _, p := range parties {
		wait.Go(func() { _, _ = p.Run(ctx) })
	}
	result, err := j.coordinator(store).Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	load := func() *coordinator {
		t.Helper()
		c := &coordinator{Coordinator: *j.coordinator(store)}
		if err := c.load(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.vault.close)
		return c
	}
	c := load()
	if !c.ended || c.round != 2 || c.number != 1 {
		t.Errorf("ended %v in round %d, session %d", c.ended, c.round, c.number)
	}
	if clients := c.ledger.Clients(); len(clients) != len(j.signers) {
		t.Errorf("%v have spent something", clients)
	}
	for _, client := range c.ledger.Clients() {
		if spent, err := c.ledger.Spent(client); err != nil || spent.Upper != result.Spent.Upper {
			t.Errorf("%s has spent %v, %v, want %v", client, spent.Upper, err, result.Spent.Upper)
		}
	}
	c.lost, c.inRow, c.stalled, c.number, c.ended = 3, 2, true, 9, false
	if err := c.save(); err != nil {
		t.Fatal(err)
	}
	c.vault.close()
	c = load()
	if c.lost != 3 || c.inRow != 2 || !c.stalled || c.number != 9 || c.ended {
		t.Errorf("%d lost, %d in a row, stalled %v, session %d, ended %v", c.lost, c.inRow, c.stalled,
			c.number, c.ended)
	}
}

// slowDisk is a store whose writes fail from one on, after a while.
type slowDisk struct {
	MemoryStore
	saves, fails int
}

func (d *slowDisk) Save(state []byte) error {
	if d.saves++; d.fails > 0 && d.saves >= d.fails {
		time.Sleep(5 * tick) // in which what should not leave may
		return errDisk
	}
	return d.MemoryStore.Save(state)
}

// begunDialer notes the rounds that a party is told of.
type begunDialer struct {
	Dialer
	mutex *sync.Mutex
	begun *uint64
}

type begunLink struct {
	Link
	begunDialer
}

func (d begunDialer) Dial(ctx context.Context) (Link, error) {
	link, err := d.Dialer.Dial(ctx)
	return begunLink{link, d}, err
}

func (l begunLink) Receive(ctx context.Context) ([]byte, error) {
	in, err := l.Link.Receive(ctx)
	if err == nil && in[0] == frameMessage {
		if h, _, err := wire.ParseHeader(in[1:]); err == nil && h.Type == wire.TypeBegin {
			l.mutex.Lock()
			defer l.mutex.Unlock()
			*l.begun = max(*l.begun, h.Round)
		}
	}
	return in, err
}

// A round begins once that is stored. A store that fails ends the job with its error.
func TestCoordinatorSavesFirst(t *testing.T) {
	saves := 1
	for fails := 0; fails <= saves; fails++ {
		plan := testPlan()
		plan.Rounds, plan.Classical = 2, true
		j := newJob(t, plan, 4)
		ctx, cancel := context.WithTimeout(t.Context(), jobTime)
		var mutex sync.Mutex
		var begun uint64
		var wait sync.WaitGroup
		for i := range j.signers {
			p := j.participant(i, nil)
			p.Dialer = begunDialer{p.Dialer, &mutex, &begun}
			wait.Go(func() { _, _ = p.Run(ctx) })
		}
		disk := &slowDisk{fails: fails}
		_, err := j.coordinator(disk).Run(ctx)
		if fails == 0 {
			saves = disk.saves
		}
		if (fails > 0 || err != nil) && !errors.Is(err, errDisk) || fails > 0 && disk.saves != fails {
			t.Errorf("write %d of %d fails: %v", fails, disk.saves, err)
		}
		cancel()
		wait.Wait()
		if state, err := disk.Load(); err != nil || state == nil && begun > 0 {
			t.Errorf("write %d fails, nothing is stored, and round %d has begun: %v", fails, begun, err)
		} else if state != nil {
			c := &coordinator{Coordinator: *j.coordinator(disk)}
			if err := c.load(); err != nil {
				t.Fatal(err)
			}
			c.vault.close()
			if begun > c.round {
				t.Errorf("write %d fails, round %d is stored, and round %d has begun", fails, c.round, begun)
			}
		}
	}
	if saves < 8 {
		t.Errorf("%d writes", saves)
	}
}

// A party's word that it is absent is for the round that goes on, and for that alone.
func TestCoordinatorAbsent(t *testing.T) {
	plan := testPlan()
	plan.Rounds, plan.Classical, plan.DropOut = 2, true, .25
	j := newJob(t, plan, 4)
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	submitted := make(chan int, 8)
	for i := range j.signers {
		p := j.participant(i, nil)
		work := p.Work
		p.Work = func(ctx context.Context, round uint64, model []float64) ([]float64, error) {
			switch {
			case i == 1 && round == 1:
				return nil, errors.New("no data")
			case i == 1:
				for range 3 {
					<-submitted
				}
				time.Sleep(5 * tick) // so that it has to be waited for
			}
			return work(ctx, round, model)
		}
		tell := p.Progress
		p.Progress = func(e Event) {
			if tell != nil {
				tell(e)
			}
			if e.Kind == Submitted && e.Round == 2 && i != 1 {
				submitted <- i
			}
		}
		go func() { _, _ = p.Run(ctx) }()
	}
	result, err := j.coordinator(nil).Run(ctx)
	if err != nil || len(j.rounds) != 2 || len(j.rounds[0].Parties) != 3 ||
		len(j.rounds[1].Parties) != 4 {
		t.Errorf("%+v, %v\n%v", result, err, j.events)
	}
	j.check()

	// A word of another round, or out of a round, is none.
	from := new(connection)
	c := &coordinator{Coordinator: *j.coordinator(nil), round: 2, absent: make(map[int]bool),
		present: &session{stage: stageMasked}}
	said := func(round uint64) {
		c.away(arrival{party: 1, from: from, frame: jsonFrame(frameAbsent, absence{Absent: round})})
	}
	said(1)
	said(3)
	c.present.stage = stageSigned
	said(2)
	if len(c.absent) > 0 {
		t.Errorf("%v are absent", c.absent)
	}
	c.present.stage = stageMasked
	if said(2); !c.absent[1] {
		t.Error("nobody is absent")
	}
}

// seated is a coordinator of four parties, with a present session of these.
func seated(t *testing.T, number uint64, enrolled ...int) *coordinator {
	t.Helper()
	plan := testPlan()
	plan.Classical, plan.DropOut = true, .25
	j := newJob(t, plan, 4)
	config := j.settled.Config(number)
	server, err := protocol.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	clients := make(map[int]*protocol.Client)
	for _, i := range enrolled {
		c, err := protocol.NewClient(config, j.signers[i], nil)
		if err == nil {
			clients[i], err = c, server.Receive(i, c.Announce())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := server.EndStep(); err != nil {
		t.Fatal(err)
	}
	for i, c := range clients {
		for _, m := range server.Pending(i) {
			answer, err := c.Receive(m)
			if err == nil {
				err = server.Receive(i, answer)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return &coordinator{
		Coordinator: *j.coordinator(nil),
		hub:         newHub("", 1<<20),
		model:       make([]float64, 5),
		present:     &session{number: number, server: server, stage: stageReady},
		number:      number,
		shunned:     make(map[int]shunned),
	}
}

// connect has parties be there with keys for sessions.
func (c *coordinator) connect(sessions []uint64, parties ...int) {
	for _, i := range parties {
		c.parties[i] = &connection{sessions: sessions, greeted: true,
			queue: make(chan outgoing, queueSize), cancel: func() {}}
	}
}

// Who is excluded is not one of those whom a round waits for.
func TestCoordinatorExcluded(t *testing.T) {
	c := seated(t, 1, 0, 1, 2, 3)
	c.present.server.Exclude(3)
	c.connect([]uint64{1}, 0, 1, 3)
	for range 3 {
		if err := c.proceed(); err != nil || c.round != 0 || c.present.stage != stageReady {
			t.Fatalf("round %d, stage %d: %v", c.round, c.present.stage, err)
		}
	}
	c.connect([]uint64{1}, 2)
	if err := c.proceed(); err != nil || c.round != 1 || c.present.stage != stageMasked {
		t.Errorf("round %d, stage %d: %v", c.round, c.present.stage, err)
	}
}

// A party that is there and joins no session causes fewer and fewer of them; one that has joined
// is as any other.
func TestCoordinatorShuns(t *testing.T) {
	c := seated(t, 1, 0, 1, 2)
	c.connect([]uint64{1}, 0, 1, 2)
	c.connect(nil, 3)
	if !c.wanted() {
		t.Error("a party is there for which no session forms")
	}
	for times, round := 1, uint64(0); times < 4; times++ {
		c.present, c.forming = nil, c.present
		c.takeOver()
		if c.round = round + 1<<times - 1; c.wanted() {
			t.Errorf("another session in round %d", c.round)
		}
		if c.round++; !c.wanted() {
			t.Errorf("no other session in round %d", c.round)
		}
		round = c.round
	}
	all := seated(t, 2, 0, 1, 2, 3)
	c.connect([]uint64{1, 2}, 0, 1, 2, 3)
	c.present, c.forming = nil, all.present
	c.takeOver()
	if len(c.shunned) != 0 || c.wanted() {
		t.Errorf("%v are shunned, another session is wanted: %v", c.shunned, c.wanted())
	}
}

// A sum ends what was lost in a row.
func TestCoordinatorInRow(t *testing.T) {
	c := seated(t, 1, 0, 1, 2, 3)
	c.inRow = mostLost - 1
	if err := c.advance(Round{Mean: make([]float64, 5)}); err != nil || c.inRow != 0 {
		t.Errorf("%d lost in a row after a sum: %v", c.inRow, err)
	}
	c.inRow, c.Apply = mostLost-1, func(Round, []float64) ([]float64, error) { return nil, errDisk }
	if err := c.advance(Round{Mean: make([]float64, 5)}); err == nil || c.inRow != mostLost-1 {
		t.Errorf("%d lost in a row after none: %v", c.inRow, err)
	}
}

// A sum that fails, for whatever reason, is a lost round, and not the end of the job.
func TestCoordinatorLoses(t *testing.T) {
	c := seated(t, 1, 0, 1, 2, 3)
	c.round, c.present.stage = 1, stageReveal
	if err := c.sum(); err != nil || c.lost != 1 || c.inRow != 1 || c.present.stage != stageReady {
		t.Errorf("%d lost, stage %d: %v", c.lost, c.present.stage, err)
	}
}
