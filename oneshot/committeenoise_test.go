package oneshot

import (
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"pgregory.net/rapid"
)

// membersNoise is small with noise by the members, each of whom deviates by sigma.
func membersNoise(sigma int64, members, faults int) Terms {
	t := small(Terms{CommitteeNoise: true, Noise: gaussian(sigma, members-2*faults)})
	t.Faults = faults
	return t
}

// all runs a round of noise and then of all parties.
func (w *world) all() ([]int64, error) {
	var messages [][]byte
	for i := range w.keys {
		messages = append(messages, must(w.submit(i)))
	}
	return w.run(messages)
}

// TestMembersNoise: rounds in which members deal the noise, with members that are silent, lie about
// others' noise, or deal bad noise themselves, up to Faults of them.
func TestMembersNoise(t *testing.T) {
	everybody := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
	without := func(who ...int) []int {
		return slices.DeleteFunc(slices.Clone(everybody),
			func(k int) bool { return slices.Contains(who, k) })
	}
	silent := func(who ...int) func(k int, m []byte) []byte {
		return func(k int, m []byte) []byte {
			if slices.Contains(who, k) {
				return nil
			}
			return m
		}
	}
	boxBytes := 0
	// Boxes that do not open, of one member to some.
	badBoxes := func(from int, to ...int) func(k int, m []byte) []byte {
		return func(k int, m []byte) []byte {
			if k == from {
				m = slices.Clone(m)
				size := len(m) - keyexchange.SignatureSize
				for _, j := range to {
					m[size-(9-j)*boxBytes] ^= 1
				}
			}
			return m
		}
	}
	disputing := func(all bool, who ...int) func(k int, disputes []byte) []byte {
		return func(k int, disputes []byte) []byte {
			if slices.Contains(who, k) && all {
				for i := range 8 {
					disputes[wire.HeaderSize+4] |= 1 << i
				}
			} else if slices.Contains(who, k) {
				disputes[wire.HeaderSize+4] |= 1 << (k + 1) // the one after it
			}
			return disputes
		}
	}
	for _, c := range []struct {
		name     string
		deal     func(k int, m []byte) []byte
		disputes func(k int, disputes []byte) []byte
		in       []int
		excluded []int
	}{
		{"everybody", nil, nil, everybody, nil},
		{"one is silent", silent(3), nil, without(3), nil},
		{"as many as Faults are silent", silent(0, 8), nil, without(0, 8), nil},
		{"one disputes all", nil, disputing(true, 4), without(4), []int{4}},
		{"two dispute all", nil, disputing(true, 4, 5), without(4, 5), []int{4, 5}},
		{"one is silent and disputes all", silent(3), disputing(true, 3), without(3), []int{3}},
		{"two dispute one each", nil, disputing(false, 1, 4), nil, nil},
		{"one bad box", badBoxes(3, 0), nil, without(3), nil},
		{"bad boxes", badBoxes(3, 0, 1, 5), nil, without(3), nil},
		{"bad boxes to all", badBoxes(3, everybody...), nil, without(3), nil},
		{"a bad box, and another disputes", badBoxes(3, 0), disputing(true, 6), without(3, 6), []int{6}},
		{"silent, and another disputes", silent(3), disputing(true, 6), without(3, 6), []int{6}},
	} {
		for _, covered := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s covered=%v", c.name, covered), func(t *testing.T) {
				terms := membersNoise(10, 9, 2)
				terms.Covered = covered
				terms.PerPolynomial = 1
				w := newWorld(4, 9, terms)
				var dealt [][]byte
				boxBytes = must(w.config.settle()).boxSize()
				w.noise = func(k int, m []byte) []byte {
					if c.deal != nil {
						m = c.deal(k, m)
					}
					if m != nil {
						dealt = append(dealt, m)
					}
					return m
				}
				if err := w.begin(nil); err != nil {
					t.Fatal(err)
				}
				if err := w.deliver(c.disputes); err != nil {
					t.Fatal(err)
				}
				in := w.server.NoiseOf()
				if c.in != nil && !slices.Equal(in, c.in) || len(in) < 7 {
					t.Errorf("noise of %v, want %v", in, c.in)
				}
				if c.in != nil && !slices.Equal(w.server.Excluded(), c.excluded) {
					t.Errorf("%v are excluded, want %v", w.server.Excluded(), c.excluded)
				}
				if w.server.Settled() != 0 || len(w.server.Received()) != 0 {
					t.Errorf("members count as parties")
				}
				sum, err := w.allCovered(dealt)
				if err != nil {
					t.Fatal(err)
				}
				w.near(t, sum, w.total(0, 1, 2, 3))
				if got := w.server.Included(); !slices.Equal(got, []int{0, 1, 2, 3}) {
					t.Errorf("%v are in", got)
				}
			})
		}
	}
}

// allCovered is all, and uncovers dealt noise too.
func (w *world) allCovered(dealt [][]byte) ([]int64, error) {
	sum, err := w.all()
	if !w.config.Covered || !errors.Is(err, ErrPhase) {
		return sum, err
	}
	for _, m := range dealt {
		h, _ := must2(wire.ParseHeader(m))
		if slices.Contains(w.server.NoiseOf(), int(h.Sender-memberSender)) {
			if err := w.server.Uncover(m); err != nil {
				return nil, err
			}
		}
	}
	return w.server.Sum()
}

func must2[A, B any](a A, b B, err error) (A, B) {
	if err != nil {
		panic(err)
	}
	return a, b
}

// TestMembersNoiseLaw: what is added to sums is the noise of the members whose noise is in, and of
// the parties, by four statistics of 10^-6 false alarms each: with everybody, and with a member
// missing, whose noise is then missing.
func TestMembersNoiseLaw(t *testing.T) {
	const parties, sigma = 3, 8
	for k := range 3 {
		missing, bounded := k&1, k&2 != 0
		terms := membersNoise(sigma, 4, 1)
		if bounded {
			terms.Norm = 20_000
		}
		terms.Length, terms.MinSurvivors = 20_000, parties
		w := newWorld(parties, 4, terms)
		w.noise = func(k int, m []byte) []byte {
			if k < missing {
				return nil
			}
			return m
		}
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
		if err := w.deliver(nil); err != nil {
			t.Fatal(err)
		}
		sum, err := w.all()
		if err != nil {
			t.Fatal(err)
		}
		var noises []float64
		counts := make(map[int64]int)
		for k, want := range w.total(0, 1, 2) {
			e := sum[k] - want
			noises = append(noises, float64(e))
			counts[e]++
		}
		own, _ := minVariance.Float64()
		checkLaw(t, noises, counts, parties*own+float64(4-missing)*sigma*sigma)
	}
}

// TestMembersNoiseRefused: neither the server nor a member on its own can have a sum with the noise
// of fewer than C − Faults members, or count anybody's twice.
func TestMembersNoiseRefused(t *testing.T) {
	w := newWorld(4, 7, membersNoise(10, 7, 2))
	w.noise = func(k int, m []byte) []byte {
		if k < 3 {
			return nil
		}
		return m
	}
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	s := w.server
	if !s.Awaits(0) || s.Awaits(3) || s.NoiseTaken() != 4 {
		t.Errorf("awaits %v and %v, has %d", s.Awaits(0), s.Awaits(3), s.NoiseTaken())
	}
	if err := s.Receive(w.members[3].Output()); !errors.Is(err, ErrDuplicate) {
		t.Errorf("noise twice: %v", err)
	}
	if _, err := s.Batch(); !errors.Is(err, ErrTooFew) {
		t.Errorf("noise of 4 of 7: %v", err)
	}
	if got := s.config.statementLabel(s.config.n); got != labels.OneshotNoise {
		t.Errorf("members sign noise under %q", got)
	}
	// Member 0's noise in the name of member 1, of party 0, and with a bit wrong.
	for name, change := range map[string]func(m []byte){
		"of member 1": func(m []byte) { m[wire.HeaderSize-1] = 1 },
		"of party 0":  func(m []byte) { m[wire.HeaderSize-4] = 0 },
		"a bit":       func(m []byte) { m[wire.HeaderSize] ^= 1 },
	} {
		m := slices.Clone(w.members[0].Output())
		change(m)
		var member *MemberError
		var party *PartyError
		err := s.Receive(m)
		if !errors.Is(err, ErrSignature) || !errors.As(err, &member) && !errors.As(err, &party) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Receive(must(w.submit(0))); err != nil {
		t.Fatal(err)
	}
	// A server that cheats sends a party, or one member's noise, as the first batch.
	batch := func(change func(waiting []*submitted) []*submitted) error {
		lying := *s
		round := *s.open
		lying.open = &round
		round.waiting, round.number = nil, 0
		round.flight = change(slices.Clone(s.open.waiting))
		round.number = 1
		message := must(lying.Batch())[5].Message
		_, err := w.members[5].Receive(message)
		return err
	}
	party := len(s.open.waiting) - 1
	err := batch(func(all []*submitted) []*submitted { return all[party:] })
	if !errors.Is(err, ErrEncoding) {
		t.Errorf("a party in the first batch: %v", err)
	}
	if err := batch(func(all []*submitted) []*submitted { return all[:1] }); err != nil {
		t.Errorf("noise of one: %v", err)
	}
	// The member counts: it signs nothing over one member's noise.
	m := w.members[5]
	in := wire.NewSet(1)
	in.Add(0)
	header := s.config.header(typeSettled, &s.open.context, s.round, wire.ServerIndex)
	if _, err := m.Receive(appendNumbered(header, 1, in)); err != nil {
		t.Fatal(err)
	}
	m.open.counts[0] += 4
	closing := closing{batches: 1, parties: m.open.counts, chain: m.open.chain}
	header = s.config.header(typeClosing, &s.open.context, s.round, wire.ServerIndex)
	if _, err := m.Receive(closing.append(header)); !errors.Is(err, ErrTooFew) {
		t.Errorf("a closing over one member's noise: %v", err)
	}
	// Noise in a later batch.
	header = s.config.header(typeBatch, &s.open.context, s.round, wire.ServerIndex)
	e := entry{party: s.config.n + 4, path: make([][32]byte, s.config.depth),
		extra: nil, box: make([]byte, s.config.boxSize())}
	if _, err := m.Receive(e.append(append(header, uint32Bytes(2)...))); !errors.Is(err, ErrEncoding) {
		t.Errorf("noise in the second batch: %v", err)
	}
}

// TestMembersNoiseStates: a member that was loaded counts noise as before, and sends the same
// again; a server that was loaded knows whose noise it has.
func TestMembersNoiseStates(t *testing.T) {
	w := newWorld(4, 4, membersNoise(10, 4, 1))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	_, keys := people("member", 4)
	key := must(keyexchange.GenerateSealKey(nil))
	again := func() {
		for k, m := range w.members {
			before := m.Output()
			w.members[k] = must(LoadMember(w.config, keys[k], nil, key, must(m.Save(key))))
			if !slices.Equal(w.members[k].Output(), before) {
				t.Errorf("member %d has another message", k)
			}
		}
		w.server = must(LoadServer(w.config, 0, key, must(w.server.Save(key))))
	}
	again()
	if got := w.server.NoiseTaken(); got != 4 {
		t.Errorf("noise of %d members", got)
	}
	if err := w.deliver(nil); err != nil {
		t.Fatal(err)
	}
	again()
	sum, err := w.all()
	if err != nil {
		t.Fatal(err)
	}
	w.near(t, sum, w.total(0, 1, 2, 3))
}

// TestWithdraw: whatever Faults members dispute and deal, and as long as they are silent, noise of
// C − Faults members is left that none of these disputes.
func TestWithdraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.IntRange(4, 40).Draw(t, "members")
		f := rapid.IntRange(1, (c-1)/3).Draw(t, "faults")
		random := mathrand.New(mathrand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		g := newQuarrels(c)
		bad := random.Perm(c)[:f]
		density := random.Float64()
		for _, k := range bad {
			for j := range c {
				if random.Float64() < density {
					g.add(k, j)
				}
				if random.Float64() < density {
					g.add(j, k)
				}
			}
		}
		out := wire.NewSet(c)
		for _, k := range bad[:random.IntN(f+1)] {
			out.Add(k)
		}
		if !g.withdraw(out, f-out.Len()) {
			t.Fatalf("there is no set of %d of %d", c-f, c)
		}
		if out.Len() > f {
			t.Fatalf("%d of %d are out", out.Len(), c)
		}
		for k := range c {
			for j := range g.by[k].All() {
				if !out.Has(k) && !out.Has(j) {
					t.Fatalf("%d and %d are both in", k, j)
				}
			}
		}
	})
}

// TestMembersNoiseTerms: what members' noise cannot be combined with, and the noise that it rests
// on.
func TestMembersNoiseTerms(t *testing.T) {
	for name, change := range map[string]func(t *Terms){
		"exact":     func(t *Terms) { t.Noise = small(Terms{}).Noise },
		"too small": func(t *Terms) { t.Noise = gaussian(6, 6) },
	} {
		terms := membersNoise(10, 10, 2)
		change(&terms)
		if _, err := Parameters(5, 10, terms); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	terms := membersNoise(10, 10, 2)
	terms.PerPolynomial = 1
	d, err := derive(5, 10, &terms)
	if err != nil {
		t.Fatal(err)
	}
	if d.Keys != 8 || ratFloat(d.member.Scale()) != 100 || ratFloat(d.share.Scale()) != 40.96 {
		t.Errorf("%d keys, a member's variance %v, a party's %v", d.Keys, d.member, d.share)
	}
}

// TestMembersNoiseCoalitions: f members that are silent, dispute at random, deal boxes that do not
// open, or send parts that are wrong, whichever they are. With ρ = C − 4f no round is lost, and
// each sum has the noise of C − f members.
func TestMembersNoiseCoalitions(t *testing.T) {
	suite.Checks(t, suite.Size(4, 15, 100, 100))
	const members, faults = 10, 2
	terms := membersNoise(10, members, faults)
	terms.PerPolynomial = members - 4*faults
	boxBytes := must(newWorld(3, members, terms).config.settle()).boxSize()
	rapid.Check(t, func(t *rapid.T) {
		random := mathrand.New(mathrand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		w := newWorld(3, members, terms)
		bad := random.Perm(members)[:faults]
		faulty := func(k int) bool { return slices.Contains(bad, k) }
		w.noise = func(k int, m []byte) []byte {
			if !faulty(k) {
				return m
			}
			if random.IntN(4) == 0 {
				return nil
			}
			m = slices.Clone(m)
			for j := range members {
				if random.IntN(3) == 0 {
					m[len(m)-keyexchange.SignatureSize-(members-j)*boxBytes] ^= 1
				}
			}
			return m
		}
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
		entries := w.server.NoiseTaken()
		if err := w.deliver(func(k int, disputes []byte) []byte {
			if !faulty(k) {
				return disputes
			}
			if random.IntN(4) == 0 {
				return nil
			}
			for i := range entries {
				disputes[wire.HeaderSize+4+i/8] ^= byte(random.IntN(2)) << (i % 8)
			}
			return disputes
		}); err != nil {
			t.Fatal(err)
		}
		if in := w.server.NoiseOf(); len(in) < members-faults {
			t.Fatalf("noise of %v, %v are faulty", in, bad)
		}
		for i := range w.keys {
			if err := w.server.Receive(must(w.submit(i))); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.deliver(nil); err != nil {
			t.Fatal(err)
		}
		sum, err := w.finish(func(step, k int, answer []byte) []byte {
			if faulty(k) && step == 1 {
				answer = slices.Clone(answer)
				answer[wire.HeaderSize+random.IntN(10)] ^= 1
			}
			return answer
		})
		if err != nil {
			t.Fatalf("%v, %v are faulty", err, bad)
		}
		w.near(t, sum, w.total(0, 1, 2))
	})
}
