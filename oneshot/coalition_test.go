package oneshot

import (
	"bytes"
	"errors"
	"flag"
	mathrand "math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

var trials = flag.Int("trials", 0, "coalitions to try, 0 for 40 and 300 with -long")

// trialsToRun returns how many coalitions are tried.
func trialsToRun() int {
	if *trials > 0 {
		return *trials
	}
	return suite.Size(40, 40, 300, 10_000)
}

// A coalition is a server, two members and two parties of a small world that pool all
// they have. It shows honest members what it likes.
type coalition struct {
	*saved
	random *mathrand.Rand
	w      *world
}

const (
	coalitionParties = 7
	coalitionMembers = 7
)

// TestCoalitions: whatever random things a cheating server with Faults members and
// Colluders parties shows to the honest members, all of these that answer do so for one
// list of parties, with at least MinSurvivors of them, once, and what they add up of honest
// parties equals what those dealt to them, each once. -trials chooses how many.
func TestCoalitions(t *testing.T) {
	terms := small(Terms{Colluders: 2})
	terms.Faults, terms.MinSurvivors = 2, 4
	w := newWorld(coalitionParties, coalitionMembers, terms)
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	s := save(w)
	// The two last parties collude: they sign three dealings each.
	dealings := make(map[int][][]byte)
	for i := range coalitionParties {
		dealings[i] = [][]byte{s.submissions[i]}
		if i >= 5 {
			dealings[i] = append(dealings[i], w.deal(i, dealer{}), w.deal(i, badBoxes(0, 3)))
		}
	}
	answered, fooled := 0, 0
	for trial := range trialsToRun() {
		c := &coalition{saved: s, random: mathrand.New(mathrand.NewPCG(uint64(trial), 7)), w: s.load()}
		n, split := c.attack(t, dealings)
		answered += min(n, 1)
		fooled += split
	}
	t.Logf("%d trials, %d with answers, %d with members on two lists", trialsToRun(), answered, fooled)
	if answered == 0 || fooled == 0 {
		t.Error("the coalitions never get anywhere: they test nothing")
	}
}

// view holds what some members are shown: dealings in order, by batch.
type view struct {
	batches [][]*submitted
	in      []wire.Set
	chain   [32]byte
	parties []int
}

// newView draws a plausible list: most parties, sometimes one of a colluder's other
// dealings.
func (c *coalition) newView(t *testing.T, dealings map[int][][]byte) *view {
	s := c.w.server.config
	r := c.w.server.open
	v := &view{chain: r.context}
	var batch []*submitted
	for i := range coalitionParties {
		if c.random.IntN(6) == 0 {
			continue
		}
		choice := dealings[i][c.random.IntN(len(dealings[i]))]
		_, body, err := wire.ParseHeader(choice)
		if err != nil {
			t.Fatal(err)
		}
		batch = append(batch, must(s.checkSubmission(c.w.server.round, &r.context, r.members, i, body)))
		if c.random.IntN(4) == 0 && len(batch) > 0 {
			v.batches, batch = append(v.batches, batch), nil
		}
	}
	if len(batch) > 0 {
		v.batches = append(v.batches, batch)
	}
	for _, batch := range v.batches {
		in := wire.NewSet(len(batch))
		for i, sub := range batch {
			if c.random.IntN(8) == 0 {
				continue
			}
			in.Add(i)
			v.chain = extend(&v.chain, sub.statement)
			v.parties = append(v.parties, sub.party)
		}
		v.in = append(v.in, in)
	}
	return v
}

// attack shows honest members one of two views each, tampers with some messages, and has
// the colluding members sign both. It returns how many honest members answered, and 1 if
// both views had honest members who signed.
func (c *coalition) attack(t *testing.T, dealings map[int][][]byte) (answered, split int) {
	s, r := c.w.server.config, c.w.server.open
	views := []*view{c.newView(t, dealings), c.newView(t, dealings)}
	_, memberKeys := people("member", coalitionMembers)
	honest := coalitionMembers - 2
	on := make([]int, honest) // which view
	lean := c.random.IntN(6)
	var signatures [2]wire.Certificate
	for k := range honest {
		if c.random.IntN(6) < lean {
			on[k] = 1
		}
		v := views[on[k]]
		if !c.show(t, k, v) {
			continue
		}
		m := closing{batches: len(v.batches), parties: []int{len(v.parties)}, chain: v.chain}
		if c.random.IntN(10) == 0 {
			m.parties[0] += 1 - c.random.IntN(3)
		}
		answer, err := c.w.members[k].Receive(m.append(s.header(typeClosing, &r.context, c.w.server.round,
			wire.ServerIndex)))
		if err != nil {
			continue
		}
		one := wire.PartySignature{Party: k, Signature: [keyexchange.SignatureSize]byte(answer[bodyAt:])}
		signatures[on[k]] = append(signatures[on[k]], one)
	}
	for side, v := range views {
		for k := honest; k < coalitionMembers; k++ {
			signature := must(keyexchange.Sign(memberKeys[k], labels.OneshotClosing,
				closingStatement(&r.context, &v.chain, []int{len(v.parties)})))
			signatures[side] = append(signatures[side], wire.PartySignature{Party: k, Signature: signature})
		}
	}
	if len(signatures[0]) > 2 && len(signatures[1]) > 2 {
		split = 1
	}
	list := -1
	for k := range honest {
		side := on[k]
		certificate := signatures[side]
		switch c.random.IntN(8) {
		case 0: // the other list's
			certificate = signatures[1-side]
		case 1: // padded with the other's
			for _, one := range signatures[1-side] {
				if at, found := (&serverRound{signatures: certificate}).signature(one.Party); !found {
					certificate = slices.Insert(slices.Clone(certificate), at, one)
				}
			}
		}
		message := certificate.Append(s.header(typeCertificate, &r.context, c.w.server.round,
			wire.ServerIndex))
		part, err := c.w.members[k].Receive(message)
		if err != nil {
			continue
		}
		answered++
		if list >= 0 && list != side && views[0].chain != views[1].chain {
			t.Fatal("honest members answer for two lists")
		}
		list = side
		c.checkPart(t, k, views[side], part)
		if _, err := c.w.members[k].Receive(message); !errors.Is(err, ErrPhase) {
			t.Fatal("a member answers twice:", err)
		}
	}
	return answered, split
}

// show takes a member through a view, with random tampering, and reports whether it took
// everything.
func (c *coalition) show(t *testing.T, k int, v *view) bool {
	s, r, m := c.w.server.config, c.w.server.open, c.w.members[k]
	tamper := -1
	if c.random.IntN(3) == 0 {
		tamper = c.random.IntN(7)
	}
	for number, batch := range v.batches {
		message := append(s.header(typeBatch, &r.context, c.w.server.round, wire.ServerIndex),
			uint32Bytes(number+1)...)
		for _, sub := range batch {
			p := must(s.parseSubmission(sub.body, r.members.Len()))
			e := entry{party: sub.party, signature: p.signature, masked: sub.masked,
				path: path(sub.levels, k),
				box:  slices.Clone(p.boxes[k*s.boxSize():][:s.boxSize()])}
			if c.random.IntN(4) == 0 {
				switch tamper {
				case 0:
					e.signature[0] ^= 1
				case 1:
					e.masked[0] ^= 1
				case 2:
					e.path[0][0] ^= 1
				case 3:
					e.box[len(e.box)-2] ^= 1 // not the byte that bad dealers change
				case 4:
					e.party = (e.party + 1) % coalitionParties
				case 5: // another member's box
					other := (k + 1) % coalitionMembers
					e.box = p.boxes[other*s.boxSize():][:s.boxSize()]
				}
			}
			message = e.append(message)
		}
		if _, err := m.Receive(message); err != nil {
			return false
		}
		if tamper == 6 { // the batch again, as another
			again := slices.Clone(message)
			again[bodyAt+3] = byte(number + 2)
			if _, err := m.Receive(again); err == nil {
				t.Fatal("a batch is taken before the last is settled")
			}
		}
		settled := appendNumbered(s.header(typeSettled, &r.context, c.w.server.round, wire.ServerIndex),
			number+1, v.in[number])
		if _, err := m.Receive(settled); err != nil || m.Lost() {
			return false
		}
	}
	return true
}

// checkPart compares a part with the sum of what the parties of the view dealt.
func (c *coalition) checkPart(t *testing.T, k int, v *view, part []byte) {
	s, r := c.w.server.config, c.w.server.open
	if len(v.parties) < s.MinSurvivors || !slices.IsSorted(v.parties) ||
		len(slices.Compact(slices.Clone(v.parties))) != len(v.parties) {
		t.Fatalf("a part for %v", v.parties)
	}
	// as it was, with its key
	member := must(LoadMember(c.w.config, memberKey(k), nil, c.key, c.members[k]))
	sum := member.open.sum
	for number, batch := range v.batches {
		for i, sub := range batch {
			if !v.in[number].Has(i) {
				continue
			}
			p := must(s.parseSubmission(sub.body, r.members.Len()))
			e := entry{party: sub.party, signature: p.signature, masked: sub.masked,
				path: path(sub.levels, k),
				box:  p.boxes[k*s.boxSize():][:s.boxSize()]}
			one, _ := member.check(&e)
			if !one.good {
				t.Fatal("a part with a box that does not open")
			}
			if err := sum.Add(&one.part); err != nil {
				t.Fatal(err)
			}
		}
	}
	var want []byte
	for i := range sum.Values {
		want = append(want, sum.Values[i][:]...)
	}
	if !bytes.Equal(part[bodyAt:], want) {
		t.Fatal("a part that is not the sum of what was dealt")
	}
}

// TestDealers: random mixtures of parties that deal badly and of members that are silent
// or lie, under an honest server. While there are no spoilers in the sum and no more
// faults than counted on, the sum is right; else the round ends with its error.
func TestDealers(t *testing.T) {
	const n, members, faults, colluders = 8, 11, 2, 2 // C = 5f + 1
	terms := small(Terms{Colluders: colluders, PerPolynomial: members - 4*faults})
	terms.Faults, terms.MinSurvivors = faults, 4
	w := newWorld(n, members, terms)
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	s := save(w)
	var names []string
	for name := range spoilers {
		names = append(names, name)
	}
	slices.Sort(names)
	bad := make(map[string][]byte) // spoiled submissions, made once
	for _, name := range names {
		for i := range colluders {
			bad[name+string(rune('0'+i))] = w.deal(i, spoilers[name].dealer)
		}
	}
	right, spoiled := 0, 0
	for trial := range trialsToRun() {
		random := mathrand.New(mathrand.NewPCG(uint64(trial), 9))
		w := s.load()
		messages := slices.Clone(s.submissions)
		out := make(map[int]bool)
		var want error
		for i := range colluders {
			switch random.IntN(6) {
			case 0: // a spoiler
				name := names[random.IntN(len(names))]
				messages[i] = bad[name+string(rune('0'+i))]
				if want == nil || spoilers[name].want == ErrParts {
					want = spoilers[name].want
				}
			case 1, 2: // bad boxes for some members
				some := random.Perm(members)[:1+random.IntN(members)]
				messages[i] = w.deal(i, badBoxes(some...))
				out[i] = true
			}
		}
		what := make([]conduct, members)
		for _, k := range random.Perm(members)[:random.IntN(faults+1)] {
			what[k] = conduct(2 + random.IntN(int(uncoveredTo)-2))
		}
		for _, m := range messages {
			if err := w.server.Receive(m); err != nil {
				t.Fatal(err)
			}
		}
		victim := 2 + random.IntN(n-2) // whom disputing members dispute
		err := w.deliver(func(k int, answer []byte) []byte {
			switch what[k] {
			case speechless:
				return nil
			case disputing:
				answer = slices.Clone(answer)
				answer[len(answer)-1] |= 1 << victim
			}
			return answer
		})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(what, disputing) {
			out[victim] = true
		}
		sum, err := w.finish(func(step, k int, answer []byte) []byte {
			switch {
			case what[k] == unsigned, step == 1 && what[k] == partless:
				return nil
			case step == 1 && what[k] == lying:
				answer = slices.Clone(answer)
				answer[bodyAt+32*random.IntN(8)] ^= 1
			}
			return answer
		})
		if want != nil {
			spoiled++
			if !errors.Is(err, want) || sum != nil {
				t.Fatalf("trial %d, %v: %v, want %v", trial, what, err, want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("trial %d, %v: %v", trial, what, err)
		}
		right++
		var in []int
		for i := range n {
			if !out[i] {
				in = append(in, i)
			}
		}
		if got := w.server.Included(); !slices.Equal(got, in) {
			t.Fatalf("trial %d: %v are in, want %v", trial, got, in)
		}
		w.near(t, sum, w.total(in...))
	}
	t.Logf("%d trials: %d right sums, %d spoiled", trialsToRun(), right, spoiled)
}
