package drive_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot"
)

func aParty(i int) drive.Peer { return drive.Peer{Index: i} }

func aMember(k int) drive.Peer { return drive.Peer{Index: k, Member: true} }

// receive has a lead take a message.
func receive(d drive.Lead, w *jobtest.Council, from drive.Peer, message []byte) error {
	return d.Receive(w.Now(), from, bytes.NewBuffer(message))
}

// Types of members' messages, SPEC-ONESHOT.md §6.
const (
	submissionType = 67
	disputesType   = 69
)

func startAll(w *jobtest.Council) {
	for _, m := range w.Members {
		m.Start()
	}
	for _, p := range w.Parties {
		p.Start()
	}
}

// A job in which nothing goes wrong has all its rounds, with everybody in each, and every party
// uploads once a round.
func TestCommitteePlain(t *testing.T) {
	for _, o := range []jobtest.CouncilOptions{
		{Parties: 3, Members: 4, Survivors: 2, Faults: 1, Rounds: 3},
		{Parties: 5, Members: 7, Survivors: 4, Colluders: 1, Faults: 2, Rounds: 3, Covered: true},
		{Parties: 9, Members: 4, Survivors: 6, Faults: 1, Rounds: 2, Batch: 2},
		{Parties: 9, Members: 7, Survivors: 6, Faults: 2, Rounds: 2, Batch: 2, MembersNoise: true},
		{Parties: 3, Members: 4, Survivors: 2, Faults: 1, Rounds: 3, Covered: true, MembersNoise: true},
	} {
		w := jobtest.NewCouncil(t, 1, o)
		startAll(w)
		w.Run(w.Ended)
		if len(w.Sums) != int(o.Rounds) || w.Lost() != 0 {
			w.Fatal("%d sums, %d lost", len(w.Sums), w.Lost())
		}
		for round, who := range w.Sums {
			if len(who) != o.Parties {
				w.Fatal("round %d has %v", round, who)
			}
		}
		if w.Now() > drive.Second*2 {
			w.Fatal("it took %d ns", w.Now())
		}
		t.Logf("%+v: %d saves, %d bytes written, %d received, %.3f s", o, w.Hub.Saves, w.Hub.Written,
			w.Hub.Received, float64(w.Now())/float64(drive.Second))
	}
}

// Jobs with a committee in which everything that can goes wrong, as with TestWorlds.
func TestCommitteeWorlds(t *testing.T) {
	count := *seeds
	if count == 0 {
		count = uint64(suite.Size(30, 30, 1000, 100_000))
	}
	var all jobtest.MobOutcome
	for seed := *first; seed < *first+count; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := jobtest.NewMob(t, seed, rand.New(rand.NewPCG(seed, 5)))
			o := m.Play()
			all.Sums, all.Lost = all.Sums+o.Sums, all.Lost+o.Lost
			all.Deaths, all.Saves = all.Deaths+o.Deaths, all.Saves+o.Saves
			if testing.Verbose() && *seeds == 1 {
				for _, line := range m.Log {
					t.Log(line)
				}
			}
		})
	}
	t.Logf("%d jobs: %+v", count, all)
}

// A silent member costs one StepTime, and keeps nothing from the job.
func TestCommitteeSilentMember(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 5, Survivors: 2,
		Faults: 1, Rounds: 10})
	w.Members[1].Silent = func([]byte) bool { return true }
	startAll(w)
	w.Run(w.Ended)
	if len(w.Sums) != 10 || w.Lost() != 0 || w.Now() > 20*drive.Second {
		w.Fatal("%d sums, %d lost in %d s", len(w.Sums), w.Lost(), w.Now()/drive.Second)
	}
	for _, n := range w.Notices {
		if n.Kind == drive.Stall && n.Member && n.Party == 1 {
			return
		}
	}
	w.Fatal("nobody is named")
}

// A server without its state learns from the members how far the job is. The rounds in between are
// lost, and it goes on.
func TestCommitteeStateLost(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 6})
	startAll(w)
	w.Run(func() bool { return len(w.Sums) == 3 })
	w.Hub.SetBack(nil)
	w.Run(w.Ended)
	if len(w.Sums) < 5 || w.Lost() > 4 {
		w.Fatal("%d sums, %d lost", len(w.Sums), w.Lost())
	}
}

// Whoever comes, however slow a member is, and with covers: each submission is uploaded once, and
// the server writes little more than it received, whatever the number of parties.
func TestCommitteeUploadsOnce(t *testing.T) {
	for _, n := range []int{20, suite.Size(60, 60, 300, 600)} {
		for k := range 4 {
			slow, covered := k%2 == 1, k > 1
			w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: n, Members: 4, Survivors: n / 2,
				Faults: 1, Rounds: 1, Batch: 8, Covered: covered})
			if slow {
				w.Members[2].Late = 2 * drive.Second
			}
			startAll(w)
			w.Run(w.Ended)
			most, all := w.Uploads()
			if most != 1 || all != n || len(w.Sums[1]) != n {
				w.Fatal("%d parties: %d uploads, %d of one; %d in the sum", n, all, most, len(w.Sums[1]))
			}
			written := float64(w.Hub.Written) / float64(w.Hub.Received)
			t.Logf("%d parties, covered %v: %d uploads in %.1f s; %.2f bytes written for one received", n,
				covered, all, float64(w.Now())/float64(drive.Second), written)
			if written > 1.5 {
				t.Errorf("%d parties, covered %v: %.2f bytes written for one received", n, covered, written)
			}
		}
	}
}

// One party whose covers do not open spoils one round, and is left out of the others by name, also
// by a server that was started again.
func TestCommitteeSpoiler(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 5, Members: 4, Survivors: 3,
			Colluders: 1, Faults: 1, Rounds: 6, Covered: true})
		w.Parties[2].Rewrite = jobtest.BadCover(w, 2)
		startAll(w)
		if restarts {
			w.Run(func() bool { return w.Lost() == 1 })
			w.Hub.Kill()
			w.Hub.Start()
		}
		w.Run(w.Ended)
		if len(w.Sums) != 5 || w.Lost() != 1 {
			w.Fatal("restarts %v: %d sums, %d lost", restarts, len(w.Sums), w.Lost())
		}
		for _, n := range w.Notices {
			if n.Kind == drive.Spoiler && n.Party != 2 {
				w.Fatal("party %d is named", n.Party)
			}
		}
	}
}

// With noise by members, one that deals none costs a StepTime and no round; where more than Faults
// deal none, or dispute everybody's, rounds are lost one after the other and nothing stands still.
func TestCommitteeNoiseMissing(t *testing.T) {
	silent := func(w *jobtest.Council, k int) {
		w.Members[k].Silent = func(b []byte) bool { return b[1] == submissionType }
	}
	disputes := func(w *jobtest.Council, k int) {
		w.Members[k].Rewrite = func(b []byte) []byte {
			if b = slices.Clone(b); b[1] == disputesType && len(b) == wire.HeaderSize+5 {
				b[wire.HeaderSize+4] = 1<<5 - 1
			}
			return b
		}
	}
	for _, c := range []struct {
		name       string
		lie        func(w *jobtest.Council, k int)
		who        []int
		sums, lost int
	}{
		{"one is silent", silent, []int{3}, 4, 0},
		{"two are silent", silent, []int{1, 3}, 0, 4},
		{"one disputes all", disputes, []int{3}, 4, 0},
		{"two dispute all", disputes, []int{1, 3}, 0, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 5, Survivors: 2,
				Faults: 1, Rounds: 4, MembersNoise: true})
			for _, k := range c.who {
				c.lie(w, k)
			}
			startAll(w)
			w.RunFor(100 * drive.Second)
			if !w.Ended() || len(w.Sums) != c.sums || int(w.Lost()) != c.lost {
				w.Fatal("%d sums, %d lost: %+v", len(w.Sums), w.Lost(), w.Hub.Drive().Status())
			}
			for _, n := range w.Notices {
				if n.Kind == drive.Lost && !errors.Is(n.Err, oneshot.ErrTooFew) {
					w.Fatal("lost for %v", n.Err)
				}
			}
		})
	}
}

// A server that dies while members deal their noise, or before it has settled, loses no round: who
// had dealt sends the same again.
func TestCommitteeNoiseRestarts(t *testing.T) {
	for _, covered := range []bool{false, true} {
		for after := 1; after < 16; after += suite.Size(2, 2, 1, 1) {
			w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
				Faults: 1, Rounds: 1, Covered: covered, MembersNoise: true})
			w.Members[2].Late = 30 * drive.Millisecond
			startAll(w)
			w.Run(func() bool { return w.Hub.Drive().Status().Stage == drive.Submitting })
			for range after {
				w.Step()
			}
			w.Hub.Kill()
			w.Hub.Start()
			w.Run(w.Ended)
			if len(w.Sums) != 1 || w.Lost() != 0 {
				w.Fatal("covered %v, after %d: %d sums, %d lost", covered, after, len(w.Sums), w.Lost())
			}
		}
	}
}

// A party that offers what it never uploads keeps room from the others for a StepTime at most.
func TestCommitteeTease(t *testing.T) {
	for _, batch := range []int{1, 2} {
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 6, Members: 4, Survivors: 3,
			Faults: 1, Rounds: 3, Batch: batch})
		for _, p := range w.Parties[:batch] {
			p.Tease()
			p.Late = drive.Second // the others have shown by then how long it takes
		}
		w.Parties[5].Late = 3 * drive.Second // it offers when they have offered again
		startAll(w)
		w.RunFor(200 * drive.Second)
		if !w.Ended() || len(w.Sums) != 3 || w.Lost() != 0 {
			w.Fatal("%d sums, %d lost: %+v", len(w.Sums), w.Lost(), w.Hub.Drive().Status())
		}
	}
}

// A party whose proof does not hold is left out from then on, with evidence that convinces others,
// and no round is lost for it; once readmitted, it may show the same again. The server dies in
// between.
//
// With covers it has a long form alone: TestCommitteeBoundedNoise has both.
func TestCommitteeBounded(t *testing.T) {
	t.Run("open", func(t *testing.T) { testCommitteeBounded(t, false) })
	t.Run("covered", func(t *testing.T) {
		suite.OnlyLong(t)
		testCommitteeBounded(t, true)
	})
}

// boundedTerms are those of sums with a bound, of three parties at least and with noise of 50 a
// coordinate by two of them, or by the committee.
func boundedTerms(t *testing.T) oneshot.Terms {
	t.Helper()
	law, err := noise.DiscreteGaussian(big.NewRat(50*2, 1))
	if err != nil {
		t.Fatal(err)
	}
	return oneshot.Terms{Length: 3, Bits: 8, MinSurvivors: 3, Colluders: 1, Faults: 1,
		KEM: oneshot.KEMX25519, Noise: law, Norm: 250}
}

func testCommitteeBounded(t *testing.T, covered bool) {
	terms := boundedTerms(t)
	terms.Covered = covered
	rounds := suite.Size(3, 3, 6, 6) // left out, killed, readmitted and left out again
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 4, Survivors: 3,
		Rounds: uint64(rounds), Terms: terms})
	const cheat = 2
	w.Parties[cheat].Shift()
	startAll(w)
	named := func() (all []*oneshot.PartyError) {
		for _, n := range w.Notices {
			var blamed *oneshot.PartyError
			if n.Kind != drive.Spoiler {
				continue
			}
			if n.Party != cheat || !errors.As(n.Err, &blamed) || !errors.Is(n.Err, oneshot.ErrProof) ||
				blamed.Evidence.Party() != cheat || blamed.Evidence.Verify() != nil ||
				blamed.Evidence.Round() != n.Round {
				w.Fatal("%+v", n)
			}
			all = append(all, blamed)
		}
		return all
	}
	w.Run(func() bool { return len(w.Sums) == 1 })
	if len(named()) != 1 || !w.Hub.Drive().At(aParty(cheat)).Excluded {
		w.Fatal("%v, excluded: %v", named(), w.Hub.Drive().At(aParty(cheat)).Excluded)
	}
	w.Hub.Kill()
	w.Hub.Start()
	w.Run(func() bool { return len(w.Sums) == 2 })
	if !w.Hub.Drive().At(aParty(cheat)).Excluded {
		w.Fatal("another server has forgotten who cheated")
	}
	w.Hub.Drive().Order(w.Now(), drive.Order{Do: drive.Readmit, Party: cheat, Why: "it promised"})
	w.RunFor(100 * drive.Second)
	if !w.Ended() || len(w.Sums) != rounds || w.Lost() != 0 || len(named()) != 2 ||
		!w.Hub.Drive().At(aParty(cheat)).Excluded {
		w.Fatal("%d sums, %d lost, named %v", len(w.Sums), w.Lost(), named())
	}
	for round, parties := range w.Sums {
		if len(parties) != 3 || slices.Contains(parties, cheat) {
			w.Fatal("round %d is of %v", round, parties)
		}
	}
}

// With a bound and noise by members, a member whose proof does not hold is named each time, with
// evidence that convinces others, and no round is lost for it; a party that cheats next to it is
// left out. Without covers it has a long form alone: TestCommitteeBounded is of that.
func TestCommitteeBoundedNoise(t *testing.T) {
	t.Run("open", func(t *testing.T) {
		suite.OnlyLong(t)
		testCommitteeBoundedNoise(t, false)
	})
	t.Run("covered", func(t *testing.T) { testCommitteeBoundedNoise(t, true) })
}

func testCommitteeBoundedNoise(t *testing.T, covered bool) {
	terms := boundedTerms(t)
	terms.CommitteeNoise, terms.Covered = true, covered
	rounds := suite.Size(2, 2, 3, 3)
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 4, Survivors: 3,
		Rounds: uint64(rounds), Terms: terms})
	const cheat, liar = 2, 3
	w.Parties[cheat].Shift()
	w.Members[liar].Shift()
	startAll(w)
	w.RunFor(100 * drive.Second)
	if !w.Ended() || len(w.Sums) != rounds || w.Lost() != 0 {
		w.Fatal("%d sums, %d lost", len(w.Sums), w.Lost())
	}
	spoilers, liars := 0, 0
	for _, n := range w.Notices {
		var member *oneshot.MemberError
		switch n.Kind {
		case drive.Spoiler:
			spoilers++
		case drive.Liar:
			liars++
			if n.Party != liar || !n.Member || !errors.As(n.Err, &member) || member.Member != liar ||
				!errors.Is(n.Err, oneshot.ErrAudit) || member.Evidence.Verify() != nil {
				w.Fatal("%+v", n)
			}
		}
	}
	if spoilers != 1 || liars != rounds || !w.Hub.Drive().At(aParty(cheat)).Excluded {
		w.Fatal("%d parties and %d members are named", spoilers, liars)
	}
}

// With noise that is drawn under audit, a member that sends no candidates, or no noise after the
// coin, costs a StepTime and no round; where more than Faults do, rounds are lost and nothing
// stands still. A server that dies on the way loses none.
func TestCommitteeDrawnMissing(t *testing.T) {
	terms := boundedTerms(t)
	terms.CommitteeNoise = true
	const candidatesType = 80
	for _, c := range []struct {
		name string
		kind byte
		who  []int
		long bool
	}{
		{"nobody", 0, nil, false},
		{"no candidates of one", candidatesType, []int{3}, true},
		{"no candidates of two", candidatesType, []int{1, 3}, true},
		{"no noise of one", submissionType, []int{3}, false},
		{"no noise of two", submissionType, []int{1, 3}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long {
				suite.OnlyLong(t)
			}
			w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 4, Survivors: 3,
				Rounds: 1, Terms: terms})
			for _, k := range c.who {
				w.Members[k].Silent = func(b []byte) bool { return b[1] == c.kind }
			}
			startAll(w)
			if len(c.who) == 0 {
				for range 3 {
					w.Run(func() bool { return w.Hub.Drive().Status().Stage == drive.Submitting })
					for range 6 {
						w.Step()
					}
					w.Hub.Kill()
					w.Hub.Start()
				}
			}
			w.RunFor(100 * drive.Second)
			lost := 0
			if len(c.who) > 1 {
				lost = 1
			}
			if !w.Ended() || len(w.Sums) != 1-lost || int(w.Lost()) != lost {
				w.Fatal("%d sums, %d lost", len(w.Sums), w.Lost())
			}
		})
	}
}

// A round that one party keeps from its sum, by silence or by what is refused, is lost after a
// StepTime where the others are too few: the job does not stand still.
func TestCommitteeStandstill(t *testing.T) {
	for _, lie := range []func(p *jobtest.Seat){
		func(p *jobtest.Seat) { p.Silent = func([]byte) bool { return true } },
		func(p *jobtest.Seat) { p.Rewrite = func(b []byte) []byte { return b[:len(b)-1] } },
	} {
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
			Faults: 1, Rounds: 3})
		lie(w.Parties[0])
		w.Parties[1].NoVector = func(round uint64) bool { return round == 2 }
		startAll(w)
		w.RunFor(100 * drive.Second)
		if !w.Ended() || len(w.Sums) != 2 || w.Lost() != 1 {
			w.Fatal("%d sums, %d lost: %+v", len(w.Sums), w.Lost(), w.Hub.Drive().Status())
		}
	}
}

// A party that polls keeps its room between two polls, in which it uploads, for as long as it
// counts as here.
func TestCommitteeUploadsBetweenPolls(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 1, Batch: 1, Away: 3 * drive.Second})
	d := w.Hub.Drive()
	for party := range 2 {
		d.Connected(w.Now(), aParty(party), drive.Hello{})
	}
	for _, m := range w.Members {
		m.Start()
	}
	w.Run(func() bool { return d.Status().Stage == drive.Submitting })
	told := func(party int) (to bool) {
		if err := d.Tick(w.Now()); err != nil {
			t.Fatal(err)
		}
		d.Ready()
		d.Advance(w.Now())
		for item := range d.Pending(aParty(party)) {
			to = to || item.Kind == drive.Upload
		}
		return to
	}
	d.Said(w.Now(), aParty(0), drive.Said{Offer: 1})
	if !told(0) {
		t.Fatal("it has room, and nobody is told to upload")
	}
	d.Gone(w.Now(), aParty(0))
	d.Said(w.Now(), aParty(1), drive.Said{Offer: 1})
	if told(1) {
		t.Error("the room of a party that uploads is given to another")
	}
	w.RunFor(4 * drive.Second)
	if !told(1) {
		t.Error("a party that is gone keeps its room")
	}
}

// A member that has lost its state helps in no round up to the one that it is told.
func TestMemberSpent(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 4})
	for _, m := range w.Members {
		m.Spent = 2
	}
	startAll(w)
	w.Run(w.Ended)
	if len(w.Sums) != 2 || w.Lost() != 2 || w.Sums[3] == nil {
		w.Fatal("%d sums, %d lost", len(w.Sums), w.Lost())
	}
}

// What is checked ahead is received as what is not: of parties that cheat, that are left out, or
// in whose name somebody else sends.
func TestCommitteeCheck(t *testing.T) {
	law, err := noise.DiscreteGaussian(big.NewRat(50*2, 1))
	if err != nil {
		t.Fatal(err)
	}
	terms := oneshot.Terms{Length: 3, Bits: 8, MinSurvivors: 2, Faults: 1, KEM: oneshot.KEMX25519,
		Noise: law, Norm: 250}
	var says [2][]string
	for ahead := range 2 {
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 5, Members: 4, Survivors: 2,
			Rounds: 2, Terms: terms})
		w.Parties[1].Shift()
		submissions := make(map[int]drive.Submission)
		for i, p := range w.Parties {
			rewrite := p.Rewrite
			p.Rewrite = func(b []byte) []byte {
				if rewrite != nil {
					b = rewrite(b)
				}
				submissions[i] = drive.Submission{Party: i, Message: bytes.Clone(b)}
				return b[:20] // which is refused, and not waited for
			}
		}
		startAll(w)
		w.Run(func() bool { return len(submissions) == 5 })
		d := w.Hub.Drive()
		d.Order(w.Now(), drive.Order{Do: drive.Exclude, Party: 4, Why: "a test"})
		var all []drive.Submission
		for i := range 5 {
			all = append(all, submissions[i])
		}
		all = append(all, all...)
		all = append(all, drive.Submission{Party: 2, Message: all[3].Message}, drive.Submission{})
		if ahead == 1 {
			d.Check(all)
		}
		for _, one := range all {
			from := aParty(one.Party)
			said := fmt.Sprint(d.Receive(w.Now(), from, bytes.NewBuffer(one.Message)), d.At(from).Excluded)
			says[ahead] = append(says[ahead], said)
		}
		if !d.At(aParty(1)).Excluded || !drive.Has(d, 0) || drive.Has(d, 4) {
			t.Errorf("what came is not taken as it should be: %q", says[ahead])
		}
		w.Run(func() bool { return len(w.Sums) == 1 })
		says[ahead] = append(says[ahead], fmt.Sprint(w.Sums[1]))
		d.Order(w.Now(), drive.Order{Do: drive.End, Why: "enough"})
		d.Check(all)
		err := receive(d, w, aParty(0), all[0].Message)
		if !errors.Is(err, drive.ErrEnded) {
			t.Error("a job that has ended goes on")
		}
	}
	if !slices.Equal(says[0], says[1]) {
		t.Errorf("%q, and without checks ahead %q", says[1], says[0])
	}
}
