package oneshot

import (
	"bytes"
	"errors"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
)

// byShares are cheats that every member sees in what it was dealt.
var byShares = []string{"another P", "shares of another key", "shares of no polynomial"}

// TestReducedCoalitions: random mixtures of parties that cheat in covered sums with a bound and of
// members that are silent or lie, about parties, in covers and in parts; with short secrets, ρ ≤ f,
// and with long ones. The sum of the others always comes out, unless those that are out leave fewer
// than MinSurvivors; who cheats is out and named, and nobody else is, whatever the server makes up
// besides. -trials chooses how many.
func TestReducedCoalitions(t *testing.T) {
	remember(t)
	count := *trials
	if count == 0 {
		count = suite.Size(6, 12, 300, 10_000)
	}
	for _, c := range []struct {
		name             string
		members, secrets int
	}{{"short", 7, 1}, {"long", 11, 3}} {
		t.Run(c.name, func(t *testing.T) {
			terms := covered(Terms{Colluders: 2, PerPolynomial: c.secrets})
			terms.Faults, terms.MinSurvivors = 2, 4
			terms.Noise = gaussian(10, 2)
			w := newWorld(6, c.members, terms)
			if err := w.begin(nil); err != nil {
				t.Fatal(err)
			}
			g := &reduction{saved: &saved{w: w, key: new(keyexchange.SealKey)}, made: map[string][]byte{}}
			g.server = must(w.server.Save(g.key))
			for _, m := range w.members {
				g.members = append(g.members, must(m.Save(g.key)))
			}
			for i := range w.keys {
				g.submissions = append(g.submissions, must(w.submit(i)))
			}
			for trial := range count / 2 {
				g.trial(t, mathrand.New(mathrand.NewPCG(uint64(trial), uint64(c.members))))
			}
			t.Logf("%d were framed in vain, %d rounds had too few left", g.framed, g.few)
		})
	}
}

// reduction is a world right after the opening, from which trials begin.
type reduction struct {
	*saved
	made   map[string][]byte // submissions of cheats
	framed int
	few    int // rounds without a sum
}

// cheat returns a submission, nil of a party that sends none, and how it shows.
func (g *reduction) cheat(party int, random *mathrand.Rand) (message []byte, name string) {
	names := append(slices.Sorted(maps.Keys(inCovers())), byShares...)
	names = append(names, "", "absent")
	if g.w.server.config.c == 11 { // members have room for quarrels
		names = append(names, "bad boxes")
	}
	switch name = names[random.IntN(len(names))]; name {
	case "":
		return g.submissions[party], name
	case "absent":
		return nil, name
	case "bad boxes":
		at := random.Perm(g.w.server.config.c)[:1+random.IntN(g.w.server.config.c)]
		return g.w.deal(party, badBoxes(at...)), name
	}
	key := name + string(rune('0'+party))
	if g.made[key] == nil {
		d, ok := inCovers()[name]
		if !ok {
			d = cheats[name]
		}
		g.made[key] = g.w.deal(party, d)
	}
	return g.made[key], name
}

func (g *reduction) trial(t *testing.T, random *mathrand.Rand) {
	t.Helper()
	w := g.load()
	c := w.server.config
	sent := make(map[int][]byte)
	want := map[int]string{} // how those that are out show
	var in []int
	for i := range c.n {
		name := ""
		if sent[i] = g.submissions[i]; i < 2 {
			sent[i], name = g.cheat(i, random)
		}
		if sent[i] != nil {
			if err := w.server.Receive(sent[i]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if name == "" {
			in = append(in, i)
		} else {
			want[i] = name
		}
	}
	const coverless, wrongCovers, wrongBlind, others = 100, 101, 102, 103
	lies := []conduct{speechless, unsigned, partless, lying, disputing, coverless, wrongCovers,
		wrongBlind, others}
	what := make([]conduct, c.c)
	liars := random.Perm(c.c)[:random.IntN(c.Faults+1)]
	for _, k := range liars {
		what[k] = lies[random.IntN(len(lies))]
	}
	victim, places := c.n-1, w.server.Waiting()
	err := w.deliver(func(k int, answer []byte) []byte {
		switch what[k] {
		case speechless:
			return nil
		case disputing:
			answer = slices.Clone(answer)
			answer[bodyAt+4+(places-1)/8] |= 1 << ((places - 1) % 8)
		}
		return answer
	})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(what, disputing) {
		in = slices.DeleteFunc(in, func(i int) bool { return i == victim })
		want[victim] = "disputed"
	}
	var named []int
	for _, one := range w.convicted {
		named = append(named, one.Party)
	}
	closing, err := w.server.Close()
	if w.server.Settled() < c.MinSurvivors {
		if g.few++; !errors.Is(err, ErrTooFew) {
			t.Fatalf("%v, %v: %v", want, what, err)
		}
		return
	} else if err != nil {
		t.Fatal(err)
	}
	if err := w.ask(0, closing, func(_, k int, answer []byte) []byte {
		if what[k] == unsigned {
			return nil
		}
		return answer
	}); err != nil {
		t.Fatalf("%v, %v: %v", want, what, err)
	}
	certificate, err := w.server.Certificate()
	if err != nil {
		t.Fatalf("%v, %v: %v", want, what, err)
	}
	if err := w.ask(1, certificate, func(_, k int, answer []byte) []byte {
		answer = slices.Clone(answer)
		at := bodyAt + coverPlainSize*random.IntN(w.server.open.parties)
		switch what[k] {
		case unsigned, coverless:
			return nil
		case wrongCovers:
			answer[at+random.IntN(31)] ^= 1
		case wrongBlind:
			answer[at+scalarSize+random.IntN(32)] ^= 1
		case others:
			copy(answer[bodyAt:], answer[len(answer)-coverPlainSize:])
		}
		return answer
	}); err != nil {
		t.Fatal(err)
	}
	for _, i := range w.server.Included() {
		if err := w.server.Uncover(sent[i]); err != nil {
			t.Fatalf("%v, %v: party %d: %v", want, what, i, err)
		}
	}
	for _, err := range w.server.Convicted()[len(named):] {
		var one *PartyError
		if !errors.As(err, &one) || one.Evidence.Verify() != nil {
			t.Fatal(err)
		}
		named = append(named, one.Party)
	}
	for i := range c.n {
		_, out := want[i]
		should := out && !slices.Contains([]string{"absent", "bad boxes", "disputed"}, want[i])
		if slices.Contains(named, i) != should {
			t.Fatalf("%v, %v: %v are named", want, what, named)
		}
	}
	for _, k := range w.server.Excluded() {
		if !slices.Contains(liars, k) && want[0] != "bad boxes" && want[1] != "bad boxes" {
			t.Fatalf("%v, %v: member %d is out", want, what, k)
		}
	}
	pieces, err := w.server.Reduce()
	if len(in) < c.MinSurvivors {
		if g.few++; !errors.Is(err, ErrTooFew) {
			t.Fatalf("%v, %v: %d parties are left, and %v", want, what, len(in), err)
		}
		return
	} else if err != nil {
		t.Fatal(err)
	}
	g.frame(t, w, random, sent, pieces)
	for _, piece := range pieces {
		if err := w.ask(1, piece, func(_, k int, answer []byte) []byte {
			switch what[k] {
			case unsigned, coverless, partless:
				return nil
			case lying:
				if answer != nil {
					answer = slices.Clone(answer)
					answer[bodyAt+32*random.IntN(8)] ^= 1
				}
			}
			return answer
		}); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := w.server.Sum()
	if err != nil {
		t.Fatalf("%v, %v: %v", want, what, err)
	}
	if got := w.server.Included(); !slices.Equal(got, in) {
		t.Fatalf("%v, %v: %v are in, want %v", want, what, got, in)
	}
	w.near(t, sum, w.total(in...))
}

// frame has a lying server try to have an honest party left out, with all that it has: the members'
// values of covers, what the party sent, and evidence on others.
func (g *reduction) frame(
	t *testing.T, w *world, random *mathrand.Rand, sent map[int][]byte, pieces [][]byte,
) {
	t.Helper()
	c, r := w.server.config, w.server.open
	honest := 2 + random.IntN(2)
	place, ok := r.placeOf(uint32(honest))
	if !ok {
		t.Fatalf("party %d is not in", honest)
	}
	m := must(c.parseSubmission(sent[honest][bodyAt:], r.members.Len()))
	levels := tree(c.parseLeaves(m.leaves, r.members), c.depth)
	made := claim{Party: honest, Member: -1, Signature: m.signature, Extra: bytes.Clone(m.extra),
		Dealing: bytes.Clone(m.dealing), Packed: bytes.Clone(m.masked), Proof: bytes.Clone(m.proof)}
	for k := range c.c {
		if r.opened[k] != nil && len(made.Opened) <= c.Faults && random.IntN(3) > 0 {
			made.Opened = append(made.Opened, openedCover{k,
				bytes.Clone(r.opened[k][place*coverPlainSize:][:coverPlainSize]),
				slices.Clone(path(levels, c.coverPlace(k)))})
		}
	}
	if len(made.Opened) <= c.Faults {
		return
	}
	one := &made.Opened[random.IntN(len(made.Opened))]
	switch random.IntN(8) {
	case 0:
		one.Plain[random.IntN(coverPlainSize)] ^= 1
	case 1:
		one.Path[random.IntN(len(one.Path))][random.IntN(32)] ^= 1
	case 2:
		made.Packed[random.IntN(len(made.Packed))] ^= 1
	case 3:
		made.Proof[random.IntN(len(made.Proof))] ^= 1
	case 4:
		made.Extra[random.IntN(32)] ^= 1
	case 5:
		made.Dealing[random.IntN(len(made.Dealing))] ^= 1
	case 6: // evidence on somebody else
		if len(pieces) > 1 {
			other := must(c.parseGuilty(pieces[0][bodyAt:], r.members))
			other.Party = honest
			made = *other
		}
	}
	header := pieces[len(pieces)-1][:bodyAt]
	lie := made.appendOpened(made.appendSigned(bytes.Clone(header)))
	lie[1] = byte(typeGuilty)
	k := random.IntN(c.c)
	if w.members[k].open == nil || w.members[k].open.phase != phaseOpened {
		return
	}
	_, err := w.members[k].Receive(lie)
	if !errors.Is(err, ErrEvidence) && !errors.Is(err, ErrEncoding) {
		t.Fatalf("evidence on honest party %d: %v", honest, err)
	}
	out := append(bytes.Clone(header), 1<<honest)
	if _, err := w.members[k].Receive(out); !errors.Is(err, ErrStatement) {
		t.Fatalf("party %d is left out without evidence: %v", honest, err)
	}
	g.framed++
}
