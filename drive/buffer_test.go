package drive_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
)

// logNormal draws times of training, so that some parties are many times as slow as others.
func logNormal(seed uint64, median drive.Time, sigma float64) func() drive.Time {
	random := rand.New(rand.NewPCG(seed, 9))
	return func() drive.Time {
		return drive.Time(float64(median) * math.Exp(sigma*random.NormFloat64()))
	}
}

// A round with a buffer closes once the buffer is full, and waits for no slow party. A vector that
// was made of an earlier broadcast is in a later sum, no older than allowed. Each sum is exact.
func TestBufferPlain(t *testing.T) {
	for _, o := range []jobtest.CouncilOptions{
		{Parties: 8, Members: 4, Survivors: 3, Faults: 1, Rounds: 6, Buffer: 3, Stale: 4},
		{Parties: 8, Members: 4, Survivors: 3, Faults: 1, Rounds: 6, Buffer: 4, Stale: 1, Covered: true},
		{Parties: 8, Members: 4, Survivors: 2, Faults: 1, Rounds: 6, Buffer: 5, Stale: 9, Batch: 2},
		{Parties: 3, Members: 4, Survivors: 3, Faults: 1, Rounds: 3, Buffer: 3, Stale: 1},
	} {
		o.Work = logNormal(1, drive.Second, 1)
		w := jobtest.NewCouncil(t, 1, o)
		startAll(w)
		w.Run(w.Ended)
		if len(w.Sums) != int(o.Rounds) || w.Lost() != 0 {
			w.Fatal("%d sums, %d lost", len(w.Sums), w.Lost())
		}
		for round, who := range w.Sums {
			if len(who) != o.Buffer {
				w.Fatal("round %d has %v", round, who)
			}
		}
		all, old := 0, 0
		for age, n := range w.Ages {
			if all += n; age > 0 {
				old += n
			}
			if age > uint64(o.Stale) {
				w.Fatal("%d submissions were made %d rounds before", n, age)
			}
		}
		if all != int(o.Rounds)*o.Buffer || old == 0 && o.Buffer < o.Parties {
			w.Fatal("%d submissions, %d of earlier rounds", all, old)
		}
		if most, sent := w.Uploads(); most != 1 || sent != all {
			w.Fatal("%d uploads, %d of one, for %d", sent, most, all)
		}
		t.Logf("%d parties, %d in a round: %.1f s, ages %v", o.Parties, o.Buffer,
			float64(w.Now())/float64(drive.Second), w.Ages)
	}
}

// Each party is charged for the rounds that it has submitted in, at the server as with itself, also
// where a server dies or loses what it knows.
func TestBufferCharged(t *testing.T) {
	for _, dies := range []bool{false, true} {
		w := jobtest.NewCouncil(t, 3, jobtest.CouncilOptions{Parties: 8, Members: 4, Survivors: 3,
			Faults: 1, Rounds: 6, Buffer: 3, Stale: 4, Budget: 6, Work: logNormal(3, drive.Second, 1)})
		if dies {
			deaths := 0
			w.Hub.Die = func(string) bool {
				if deaths++; deaths%9 != 0 {
					return false
				}
				w.After(drive.Second, w.Hub.Start)
				return true
			}
		}
		startAll(w)
		w.Run(w.Ended)
		in := make([]uint64, 8)
		for _, parties := range w.Sums {
			for _, i := range parties {
				in[i]++
			}
		}
		least, most := uint64(99), uint64(0)
		for i := range in {
			guard := w.Guard(i)
			own, err := guard.Spent()
			if err != nil {
				t.Fatal(err)
			}
			server, err := w.Hub.Drive().Ledger().Spent(w.Name(i))
			if err != nil {
				t.Fatal(err)
			}
			if count := guard.Count(); count < in[i] || !dies && count != in[i] {
				t.Errorf("party %d is in %d sums, and has counted %d", i, in[i], count)
			}
			if server.Bare().Upper > own.Bare().Upper || !dies && server.Bare().Upper != own.Bare().Upper {
				t.Errorf("party %d has spent %v, by the server %v", i, own.Bare().Upper, server.Bare().Upper)
			}
			least, most = min(least, in[i]), max(most, in[i])
		}
		if least == most || len(w.Sums)+int(w.Lost()) != 6 {
			t.Errorf("%d sums, %d lost, parties in %d to %d", len(w.Sums), w.Lost(), least, most)
		}
		t.Logf("dies %v: parties in %v of %d sums", dies, in, len(w.Sums))
	}
}

// A party that has submitted as often as it agreed to, or as its budget allows, is not waited for,
// and the job ends when too few are left.
func TestBufferSpent(t *testing.T) {
	for _, o := range []jobtest.CouncilOptions{{Submissions: 3}, {Budget: 3}} {
		o.Parties, o.Members, o.Survivors, o.Faults = 7, 4, 3, 1
		o.Rounds, o.Buffer, o.Stale, o.Work = 40, 3, 5, logNormal(2, drive.Second, 1)
		w := jobtest.NewCouncil(t, 1, o)
		startAll(w)
		w.Run(func() bool { return len(w.Sums) == 4 })
		w.Hub.Kill() // who is started again knows how often each has submitted
		w.Hub.Start()
		w.Run(w.Ended)
		s := w.Hub.Drive().Status()
		left := 0
		for i := range o.Parties {
			if guard := w.Guard(i); guard.Count() < 3 {
				left++
			} else if guard.Count() > 3 {
				w.Fatal("party %d has submitted %d times", i, guard.Count())
			}
		}
		if s.Ended != drive.BudgetSpent || s.Lost > 0 || left >= o.Survivors {
			w.Fatal("%d sums, %d parties left: %+v", len(w.Sums), left, s)
		}
	}
}

// A round that fewer come to than it takes goes on with these after StepTime, if they are enough;
// and it waits for more if they are not.
func TestBufferQuiet(t *testing.T) {
	for _, here := range []int{3, 2} {
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 6, Members: 4, Survivors: 3,
			Faults: 1, Rounds: 2, Buffer: 5, Stale: 2})
		for i := range here {
			w.Parties[i].Start()
		}
		for _, m := range w.Members {
			m.Start()
		}
		w.RunFor(60 * drive.Second)
		if want := map[int]int{3: 2, 2: 0}[here]; len(w.Sums) != want || w.Lost() > 0 {
			w.Fatal("%d parties: %d sums, %d lost", here, len(w.Sums), w.Lost())
		}
		if here == 2 {
			w.Parties[5].Start()
			w.Run(w.Ended)
			if len(w.Sums) != 2 {
				w.Fatal("%d sums", len(w.Sums))
			}
		}
	}
}

// Parties that are told to upload and do not keep a buffer's room for a StepTime at most.
func TestBufferTease(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 8, Members: 4, Survivors: 3,
		Faults: 1, Rounds: 4, Buffer: 3, Stale: 3})
	for _, p := range w.Parties[:3] {
		p.Tease()
	}
	startAll(w)
	w.RunFor(100 * drive.Second)
	if !w.Ended() || len(w.Sums) != 4 || w.Lost() != 0 {
		w.Fatal("%d sums, %d lost: %+v", len(w.Sums), w.Lost(), w.Hub.Drive().Status())
	}
}

// A party that is slower than inputs may be old begins again with the broadcast of the day, and is
// in sums all the same if it is ever quick enough.
func TestBufferTooOld(t *testing.T) {
	n := 0
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 4, Survivors: 3,
		Faults: 1, Rounds: 9, Buffer: 3, Stale: 2, Work: func() drive.Time {
			if n++; n == 1 {
				return 60 * drive.Second
			}
			return drive.Second
		}})
	startAll(w)
	w.Run(w.Ended)
	if len(w.Sums) != 9 || w.Lost() > 0 || w.Ages[3] > 0 {
		w.Fatal("%d sums, %d lost, ages %v", len(w.Sums), w.Lost(), w.Ages)
	}
	if !w.Logged(fmt.Sprintf(": %d round", drive.Late)) {
		w.Fatal("nobody was too late")
	}
}

// A buffer takes no fewer than a sum must have, and no inputs of this round alone.
func TestBufferConfig(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 4, Survivors: 3,
		Faults: 1, Rounds: 1, Buffer: 3, Stale: 1})
	for _, change := range []func(c *drive.Settings){
		func(c *drive.Settings) { c.Buffer = 2 },
		func(c *drive.Settings) { c.Buffer = 5 },
		func(c *drive.Settings) { c.Buffer = -1 },
		func(c *drive.Settings) { sums := *c.Sums; sums.Stale = 0; c.Sums = &sums },
		func(c *drive.Settings) { c.Buffer = 0 },
		func(c *drive.Settings) { sums := *c.Sums; sums.CommitteeNoise = true; c.Sums = &sums },
	} {
		c := w.Hub.Config()
		change(&c)
		if _, err := drive.NewLead(c, 0); !errors.Is(err, oneshot.ErrConfig) {
			t.Errorf("%+v: %v", c.Buffer, err)
		}
	}
}

// A party that was told to upload and has nothing after all keeps no room from the others.
func TestBufferNothing(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 1, Buffer: 2, Stale: 1, Batch: 1})
	d := w.Hub.Drive()
	for _, m := range w.Members {
		m.Start()
	}
	for i := range 2 {
		d.Connected(w.Now(), aParty(i), drive.Hello{})
	}
	w.Run(func() bool { return d.Status().Stage == drive.Submitting })
	for i := range 2 {
		d.Said(w.Now(), aParty(i), drive.Said{Offer: 1})
	}
	tick(t, d, w.Now())
	told := func(i int) (is bool) {
		for item := range d.Pending(aParty(i)) {
			is = is || item.Kind == drive.Upload
		}
		return is
	}
	if !told(0) || told(1) {
		t.Fatalf("%v and %v are told to upload", told(0), told(1))
	}
	d.Said(w.Now(), aParty(0), drive.Said{Absent: 1})
	if tick(t, d, w.Now()); !told(1) {
		t.Error("the room is kept for a party that is absent")
	}
}

// A job whose parties are too few without those that were left out is over: no round is spoilt, nor
// lost, for want of them.
func TestBufferLeftOut(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 3,
		Colluders: 1, Faults: 1, Rounds: 9, Covered: true, Buffer: 3, Stale: 1})
	w.Parties[2].Rewrite = jobtest.BadCover(w, 2)
	startAll(w)
	w.Run(w.Ended)
	if s := w.Hub.Drive().Status(); s.Ended != drive.BudgetSpent || s.Round != 1 {
		w.Fatal("%+v", s)
	}
}

// A buffer with enough in it waits for more for a StepTime from when the last has come.
func TestBufferWaits(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 1, Buffer: 3, Stale: 1})
	w.Parties[1].Late = 9 * drive.Second / 2 // its offer, and then its submission
	last := w.Parties[2]
	last.Late = 21 * drive.Second / 2
	w.After(last.Late, func() { last.Late = 0 })
	startAll(w)
	w.Run(w.Ended)
	if got := w.Sums[1]; len(got) != 3 || w.Now() < 10*drive.Second {
		w.Fatal("%v", got)
	}
}

// Word that a vector is made is taken for the question that the program was asked, and no other:
// whoever has nothing offers nothing.
func TestBufferFinishedOther(t *testing.T) {
	o := small
	o.Buffer, o.Stale = 2, 1
	w, d := submitting(t, o, 0)
	tick(t, d, w.Now())
	var opening []byte
	for item := range d.Pending(aParty(0)) {
		opening = item.Own
	}
	_, _, party := jobtest.CouncilConfigs(t, o, nil)
	s, err := drive.NewPart(party(0))
	if err != nil {
		t.Fatal(err)
	}
	late := func(what string, id drive.AskID) {
		t.Helper()
		s.Finished(id)
		if reports, out := next(s); out.Offer != 0 || len(reports) != 1 || reports[0].Kind != drive.Late {
			t.Errorf("%s: %v, %+v", what, reports, out)
		}
	}
	late("before any question", drive.AskID{Round: 1})
	take(t, s, carried(opening, 0))
	_, out := next(s)
	if out.Ask == nil || out.Ask.Round != 1 {
		t.Fatalf("%+v", out)
	}
	late("another round's", drive.AskID{Round: 2})
	late("one that was made before", drive.AskID{Round: 1, Made: 1})
	s.Finished(out.Ask.ID)
	if reports, out := next(s); out.Offer != 1 || len(reports) > 0 {
		t.Errorf("its own: %v, %+v", reports, out)
	}
	late("its own again", out.Ask.ID)
	take(t, s, room(1))
	if _, out = next(s); out.Ask == nil || out.Ask.ID.Made != 1 {
		t.Fatalf("there is room: %+v", out)
	}
	late("what it is asked for once there is room", out.Ask.ID)
	if _, out := next(s); out.Offer != 0 || s.Answer(valued(drive.AskID{Round: 1,
		Made: 1}, [32]byte{}, make([]int64, 3))) != nil {
		t.Errorf("%+v", out)
	}
}

// A saved state in which a party has submitted more often than it may is none of this job.
func TestBufferState(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 3,
		Faults: 1, Rounds: 9, Buffer: 3, Stale: 2, Submissions: 3})
	startAll(w)
	w.Run(w.Ended)
	key := keyexchange.SealKey{1}
	state, err := drive.StateOf(w.Hub.Drive(), &key)
	if err != nil {
		t.Fatal(err)
	}
	for submissions, want := range map[uint64]error{3: nil, 2: drive.ErrState} {
		c := w.Hub.Config()
		c.Submissions = submissions
		if _, err := drive.LoadLead(c, &key, w.Now(), state); !errors.Is(err, want) {
			t.Errorf("of %d submissions: %v", submissions, err)
		}
	}
}
