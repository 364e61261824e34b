package oneshot

import (
	"bytes"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// TestBoundedDealers: random mixtures of parties that cheat and of members that are silent, lie,
// dispute or complain about honest parties, under an honest server. With a bound the sum of the
// others always comes out; who cheats is named, unless it is by a box that does not open or before
// a lying member alone, and nobody else is. -trials chooses how many.
func TestBoundedDealers(t *testing.T) {
	const n, members, faults, colluders = 8, 11, 2, 2 // C = 5f + 1
	terms := bounded(Terms{Colluders: colluders, PerPolynomial: members - 4*faults})
	terms.Faults, terms.MinSurvivors = faults, 4
	terms.Noise = gaussian(10, terms.MinSurvivors-colluders)
	w := newWorld(n, members, terms)
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	for i := colluders; i < n; i++ { // proofs of honest parties are checked once
		if err := w.server.Receive(must(w.submit(i))); err != nil {
			t.Fatal(err)
		}
	}
	s := &saved{w: w, key: new(keyexchange.SealKey)}
	s.server = must(w.server.Save(s.key))
	for _, m := range w.members {
		s.members = append(s.members, must(m.Save(s.key)))
	}
	var names []string
	for name := range cheats {
		names = append(names, name)
	}
	slices.Sort(names)
	made := make(map[string][]byte) // submissions of cheats, made once
	trials := *trials
	if trials == 0 {
		trials = suite.Size(4, 4, 200, 2000)
	}
	for trial := range trials {
		c := &boundedTrial{T: t, random: mathrand.New(mathrand.NewPCG(uint64(trial), 11)), w: s.load()}
		c.out, c.cheats = make(map[int]bool), make(map[int]string)
		for i := range colluders {
			name := ""
			switch c.random.IntN(4) {
			case 0: // honest
			case 1:
				name = "bad boxes"
			default:
				name = names[c.random.IntN(len(names))]
			}
			key := name + string(rune('0'+i))
			if made[key] == nil {
				d := cheats[name]
				if name == "bad boxes" {
					d = badBoxes(c.random.Perm(members)[:1+c.random.IntN(members)]...)
				}
				made[key] = c.w.deal(i, d)
			}
			c.cheats[i], c.out[i] = name, name != ""
			c.receive(i, made[key])
		}
		c.members(members, faults, n)
	}
}

// boundedTrial is one mixture.
type boundedTrial struct {
	*testing.T
	random *mathrand.Rand
	w      *world
	cheats map[int]string // by party
	named  []int
	out    map[int]bool
}

// receive shows a colluder's submission to the server.
func (c *boundedTrial) receive(party int, message []byte) {
	c.Helper()
	var named *PartyError
	err := c.w.server.Receive(message)
	switch {
	case errors.As(err, &named) && errors.Is(err, ErrProof) && named.Party == party:
		c.named = append(c.named, party)
	case err != nil:
		c.Fatalf("%q: %v", c.cheats[party], err)
	}
}

// members takes what is left through a committee of whom some lie, and checks what comes out.
func (c *boundedTrial) members(members, faults, n int) {
	c.Helper()
	w := c.w
	const complaining = 100
	what := make([]conduct, members)
	for _, k := range c.random.Perm(members)[:c.random.IntN(faults+1)] {
		if what[k] = conduct(2 + c.random.IntN(int(uncoveredTo)-2)); c.random.IntN(3) == 0 {
			what[k] = complaining
		}
	}
	// What is dealt to one member alone, and that one does not say so, does no harm to the sum.
	for i, name := range c.cheats {
		at, one := map[string]int{"shares that are not reduced": 2, "one member's share": 3}[name]
		if one && (what[at] == speechless || what[at] == complaining) {
			c.cheats[i], c.out[i] = "", false
		}
	}
	victim := n - 1 // the last of the batch
	places := w.server.Waiting()
	err := w.deliver(func(k int, answer []byte) []byte {
		switch what[k] {
		case speechless:
			return nil
		case disputing:
			answer = slices.Clone(answer)
			answer[bodyAt+4+(places-1)/8] |= 1 << ((places - 1) % 8)
		case complaining:
			lie := complaint{1, wire.NewSet(places),
				[]openedLeaf{{places - 1, bytes.Repeat([]byte{byte(k)}, w.server.config.plainSize())}}}
			message := lie.append(answer[:bodyAt:bodyAt])
			message[1] = byte(typeComplaint)
			if err := w.server.Receive(message); !errors.Is(err, ErrComplaint) {
				c.Fatalf("a complaint about nothing: %v", err)
			}
			return nil
		}
		return answer
	})
	if err != nil {
		c.Fatal(err)
	}
	if slices.Contains(what, disputing) {
		c.out[victim] = true
	}
	for _, named := range w.convicted {
		c.named = append(c.named, named.Party)
	}
	sum, err := w.finish(func(step, k int, answer []byte) []byte {
		switch {
		case what[k] == unsigned, step == 1 && what[k] == partless:
			return nil
		case step == 1 && what[k] == lying:
			answer = slices.Clone(answer)
			answer[bodyAt+32*c.random.IntN(8)] ^= 1
		}
		return answer
	})
	if err != nil {
		c.Fatalf("%v, %v: %v", c.cheats, what, err)
	}
	var in []int
	for i := range n {
		if !c.out[i] {
			in = append(in, i)
		}
		cheat := c.cheats[i]
		if want := cheat != "" && cheat != "bad boxes"; slices.Contains(c.named, i) != want {
			c.Fatalf("%v, %v: %v are named", c.cheats, what, c.named)
		}
	}
	if got := w.server.Included(); !slices.Equal(got, in) {
		c.Fatalf("%v, %v: %v are in, want %v", c.cheats, what, got, in)
	}
	w.near(c, sum, w.total(in...))
}
