package oneshot

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/shamir"
)

// move says how a party acts in a round with a bound.
type move struct {
	name   string
	dealer dealer
	member int  // to whom it deals badly, if that is seen in what it deals to one alone; else −1
	box    bool // badly means a box that does not open
	none   bool // it does not submit
}

// moves returns all kinds of cheats, of those that are about members one for each, silence, and
// what an honest party does.
func moves(members int) []move {
	out := []move{{name: "honest", member: -1}, {name: "silent", member: -1, none: true},
		{name: "all boxes", member: -1, box: true, dealer: badBoxes(0, 1, 2, 3)}}
	var names []string
	for name := range cheats {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if name != "one member's share" && name != "shares that are not reduced" {
			out = append(out, move{name: name, member: -1, dealer: cheats[name]})
		}
	}
	to := func(k int, change func(part *shamir.PackedShare)) dealer {
		return dealer{parts: func(parts []shamir.PackedShare) {
			for i := range parts {
				if parts[i].Index == uint32(k)+1 {
					change(&parts[i])
				}
			}
		}}
	}
	for k := range members {
		out = append(out, move{name: fmt.Sprint("a share of ", k), member: k,
			dealer: to(k, func(part *shamir.PackedShare) { part.Values[0][0] ^= 1 })},
			move{name: fmt.Sprint("no scalar for ", k), member: k,
				dealer: to(k, func(part *shamir.PackedShare) {
					copy(part.Values[1][:], bytes.Repeat([]byte{255}, 32))
				})},
			move{name: fmt.Sprint("the box of ", k), member: k, box: true, dealer: badBoxes(k)})
	}
	return out
}

// honest reports whether nothing is bad in what reaches members with keys.
func (m *move) honest(keyless int) bool {
	return m.name == "honest" || m.member >= 0 && m.member == keyless
}

// What a lying member does in a round with a bound, besides conducts.
const (
	disputingAll conduct = 100 + iota // every honest party
	inventing                         // complains about an honest party with what it makes up
	showing                           // complains about an honest party with what is in its box
)

// lie says how the one lying member acts.
type lie struct {
	member int
	what   conduct
}

func lies(members int) []lie {
	out := []lie{{-1, good}}
	for k := range members {
		for _, what := range []conduct{speechless, unsigned, partless, lying, disputing, disputingAll,
			inventing, showing, keyless} {
			out = append(out, lie{k, what})
		}
	}
	return out
}

// eachWorld is a round in which a member may have no key, with what parties submit in it.
type eachWorld struct {
	*saved
	keyless int
	dealt   map[string][]byte // submissions of cheats, made once
	servers map[string][]byte // states after these
	named   map[string]*PartyError
}

// TestBoundedEach: every kind of cheat of the colluders, with every lie of a member, next to an
// honest party that drops out or not, in the smallest committee: the sum of the others comes out,
// who cheats is named with evidence that holds, unless it is by a box or before a lying member
// alone, and nobody honest is named, or left out, unless f liars can have it. By default every
// sixteenth choice for one colluder where all members have keys, with -long each, and with -longest
// each for two.
func TestBoundedEach(t *testing.T) {
	remember(t)
	const members = 4
	colluders, step := 1, 32
	if suite.Long() {
		step = 1
	}
	if suite.Longest() {
		colluders = 2
	}
	least := colluders + 2
	n := least + 2*colluders + 2 // the liar's charges allow c + f, one drops out
	terms := bounded(Terms{Colluders: colluders, PerPolynomial: 1})
	terms.Faults, terms.MinSurvivors = 1, least
	terms.Noise = gaussian(10, least-colluders)
	worlds := make(map[int]*eachWorld)
	all := moves(members)
	choices := len(all)
	if colluders == 2 {
		choices *= len(all)
	}
	tried := 0
	for at, l := range lies(members) {
		keyed := -1
		if l.what == keyless {
			keyed = l.member
		}
		if step > 1 && keyed >= 0 {
			continue // each makes all submissions anew
		}
		for choice := range choices {
			if (choice+at)%step != 0 {
				continue
			}
			w := worlds[keyed]
			if w == nil {
				w = newEachWorld(t, terms, n, members, keyed, colluders)
				worlds[keyed] = w
			}
			some := []move{all[choice%len(all)]}
			if colluders == 2 {
				some = append(some, all[choice/len(all)])
			}
			for _, drops := range []bool{false, true} {
				tried++
				w.try(t, some, l, drops)
			}
		}
	}
	t.Logf("%d choices", tried)
}

func newEachWorld(t *testing.T, terms Terms, n, members, keyless, colluders int) *eachWorld {
	w := newWorld(n, members, terms)
	if err := w.begin(func(k int) bool { return k != keyless }); err != nil {
		t.Fatal(err)
	}
	out := &eachWorld{saved: &saved{w: w, key: new(keyexchange.SealKey)}, keyless: keyless,
		dealt: make(map[string][]byte), servers: make(map[string][]byte),
		named: make(map[string]*PartyError)}
	for _, m := range w.members {
		out.members = append(out.members, must(m.Save(out.key)))
	}
	for i := colluders; i < n-1; i++ { // proofs are checked once
		if err := w.server.Receive(must(w.submit(i))); err != nil {
			t.Fatal(err)
		}
	}
	out.servers["false"] = must(w.server.Save(out.key))
	if err := w.server.Receive(must(w.submit(n - 1))); err != nil {
		t.Fatal(err)
	}
	out.servers["true"] = must(w.server.Save(out.key))
	return out
}

// after returns the state of the server once the colluders have submitted as well, and who is
// refused.
func (e *eachWorld) after(t *testing.T, some []move, last bool) ([]byte, map[int]*PartyError) {
	t.Helper()
	key := fmt.Sprint(last)
	refused := make(map[int]*PartyError)
	for i := range some {
		before := e.servers[key]
		key += fmt.Sprint(" ", some[i].name)
		if e.servers[key] == nil {
			server := must(LoadServer(e.w.config, 0, e.key, before))
			if !some[i].none {
				name := fmt.Sprint(some[i].name, i)
				if e.dealt[name] == nil {
					e.dealt[name] = e.w.deal(i, some[i].dealer)
				}
				var named *PartyError
				err := server.Receive(e.dealt[name])
				if errors.As(err, &named) && errors.Is(err, ErrProof) && named.Party == i {
					e.named[key] = named
				} else if err != nil {
					t.Fatalf("%s: %v", some[i].name, err)
				}
			}
			e.servers[key] = must(server.Save(e.key))
		}
		if named := e.named[key]; named != nil {
			refused[i] = named
		}
	}
	return e.servers[key], refused
}

// try plays one choice.
func (e *eachWorld) try(t *testing.T, some []move, l lie, drops bool) {
	t.Helper()
	what := func() string {
		var names []string
		for _, m := range some {
			names = append(names, m.name)
		}
		return fmt.Sprintf("%q, member %d does %d, drop-out %v", names, l.member, l.what, drops)
	}
	w := &world{config: e.w.config, keys: e.w.keys}
	state, named := e.after(t, some, !drops)
	w.server = must(LoadServer(w.config, 0, e.key, state))
	for k, member := range e.members {
		w.members = append(w.members, must(LoadMember(w.config, memberKey(k), nil, e.key, member)))
	}
	s := w.server.config
	in := e.expect(s, some, named, l, drops)
	var places []int // parties of the batch
	for _, sub := range w.server.open.waiting {
		places = append(places, sub.party)
	}
	slices.Sort(places)
	err := w.deliver(func(k int, answer []byte) []byte {
		if k != l.member {
			return answer
		}
		return e.lies(t, w, l, answer, places, len(some))
	})
	if err != nil {
		t.Fatalf("%s: %v", what(), err)
	}
	for _, k := range w.server.Excluded() {
		if k != l.member {
			t.Errorf("%s: member %d is out", what(), k)
		}
	}
	for _, one := range w.convicted {
		if named[one.Party] != nil {
			t.Errorf("%s: %d is named twice", what(), one.Party)
		}
		named[one.Party] = one
	}
	sum, err := w.finish(func(step, k int, answer []byte) []byte {
		switch {
		case k != l.member:
		case l.what == unsigned, step == 1 && l.what == partless:
			return nil
		case step == 1 && l.what == lying:
			answer = slices.Clone(answer)
			answer[bodyAt] ^= 1
		}
		return answer
	})
	if err != nil {
		t.Fatalf("%s: %v", what(), err)
	}
	if got := w.server.Included(); !slices.Equal(got, in) {
		t.Fatalf("%s: %v are in, want %v", what(), got, in)
	}
	w.near(t, sum, w.total(in...))
	for i, one := range named {
		if i >= len(some) || some[i].honest(e.keyless) || some[i].box || one.Evidence.Verify() != nil {
			t.Errorf("%s: %v is named", what(), one)
		}
	}
	for i := range some {
		// A cheat that nobody honest has seen did no harm, and is in the sum.
		if m := &some[i]; named[i] == nil && !m.box && !m.none && !slices.Contains(in, i) {
			t.Errorf("%s: %d is not named", what(), i)
		}
	}
}

// expect returns who is in: by SPEC-ONESHOT.md §7, step 5, and §14.3.
func (e *eachWorld) expect(
	s *settled, some []move, named map[int]*PartyError, l lie, drops bool,
) (in []int) {
	heard := func(k int) bool {
		return k != e.keyless && (k != l.member || l.what != speechless && l.what < inventing)
	}
	charges, colluders := make([]float64, s.c), len(some)
	for i := range s.n {
		var disputants []int
		if i < colluders {
			m := &some[i]
			switch {
			case m.none, named[i] != nil:
				continue
			case m.box || m.member >= 0:
				for k := range s.c {
					if heard(k) && (m.member < 0 || m.member == k) {
						disputants = append(disputants, k)
					}
				}
				if !m.box && len(disputants) > 0 {
					continue // it is convicted
				}
			case !m.honest(e.keyless):
				continue // the shares of all members convict it
			}
		} else if i == s.n-1 && drops {
			continue
		}
		if i >= colluders && (l.what == disputingAll || l.what == disputing && i == colluders) {
			disputants = append(disputants, l.member)
		}
		disputants = slices.DeleteFunc(disputants, func(k int) bool {
			return charges[k] > float64(s.Colluders)
		})
		switch n := len(disputants); {
		case n == 0:
			in = append(in, i)
		case n <= s.Faults:
			charges[disputants[0]]++ // Faults is 1
		}
	}
	return in
}

// lies returns what the lying member answers to a batch.
func (e *eachWorld) lies(
	t *testing.T, w *world, l lie, answer []byte, places []int, colluders int,
) []byte {
	t.Helper()
	victim := slices.Index(places, colluders)
	switch l.what {
	case speechless:
		return nil
	case disputing, disputingAll:
		answer = slices.Clone(answer)
		for at, party := range places {
			if at == victim || l.what == disputingAll && party >= colluders {
				answer[bodyAt+4+at/8] |= 1 << (at % 8)
			}
		}
	case inventing, showing:
		plain := bytes.Repeat([]byte{3}, w.server.config.plainSize())
		if l.what == showing {
			plain = e.plain(t, w, l.member, victim)
		}
		c := complaint{1, wire.NewSet(len(places)), []openedLeaf{{victim, plain}}}
		message := c.append(answer[:bodyAt:bodyAt])
		message[1] = byte(typeComplaint)
		if err := w.server.Receive(message); !errors.Is(err, ErrComplaint) {
			t.Fatalf("a complaint about nothing: %v", err)
		}
		return nil
	}
	return answer
}

// plain returns what is in a member's box.
func (e *eachWorld) plain(t *testing.T, w *world, member, place int) []byte {
	t.Helper()
	for _, envelope := range must(w.server.Batch()) {
		if envelope.To != member {
			continue
		}
		_, entries, err := w.server.config.parseBatch(envelope.Message[bodyAt:])
		if err != nil {
			t.Fatal(err)
		}
		r, one := w.members[member].open, &entries[place]
		return must(open(r.private, boxInfo(&r.context, one.party, member), one.box))
	}
	t.Fatalf("member %d has no batch", member)
	return nil
}
