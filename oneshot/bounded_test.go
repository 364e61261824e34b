package oneshot

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/shamir"
)

// bounded is a committee of seven and a bound on five values of eight bits, all of which may be
// largest.
func bounded(t Terms) Terms {
	t = small(t)
	t.Noise, t.Norm = gaussian(10, 3-t.Colluders), 290
	return t
}

// TestBoundedRound: a round with a bound gives the sum, and its messages have the lengths that are
// stated.
func TestBoundedRound(t *testing.T) {
	for _, terms := range []Terms{bounded(Terms{}), bounded(Terms{Stale: 2, KEM: KEMHybrid})} {
		w := newWorld(5, 7, terms)
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
		p := must(w.config.Parameters())
		var messages [][]byte
		for i := range 3 {
			messages = append(messages, must(w.party(i).Submit(w.opening, []byte("model"), w.values(i))))
			if len(messages[i]) != p.Up {
				t.Errorf("%d bytes, stated are %d", len(messages[i]), p.Up)
			}
		}
		sum, err := w.run(messages)
		if err != nil {
			t.Fatal(err)
		}
		w.near(t, sum, w.total(0, 1, 2))
		if s := w.server.config; s.most < bodyAt+s.complaintSize(maxBatch, maxBatch) {
			t.Error("a complaint may be longer than the longest message")
		}
	}
}

// TestNorm: what is longer than the bound is refused by the party itself, and the longest that is
// not is proved.
func TestNorm(t *testing.T) {
	terms := bounded(Terms{})
	terms.Norm = 5
	w := newWorld(5, 7, terms)
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	p := w.party(0)
	for _, values := range [][]int64{{3, -4, 1, 0, 0}, {-128, -128, -128, -128, -128}} {
		if _, err := p.Submit(w.opening, []byte("model"), values); !errors.Is(err, ErrNorm) {
			t.Errorf("%v: %v", values, err)
		}
	}
	if p.Round() != 0 {
		t.Error("a refusal left a trace")
	}
	must(p.Submit(w.opening, []byte("model"), []int64{3, -4, 0, 0, 0}))
	s := *w.server.config
	s.Norm = 1 << 31
	if err := s.checkNorm([]int64{-1 << 31, 0}); err != nil {
		t.Error(err)
	}
	for _, values := range [][]int64{{-1 << 31, 1}, {math.MinInt64, math.MinInt64}} {
		if err := s.checkNorm(values); !errors.Is(err, ErrNorm) {
			t.Errorf("%v: %v", values, err)
		}
	}
}

// TestMissed: a party whose noise has no proof misses the round, and does not try again.
func TestMissed(t *testing.T) {
	w := newWorld(5, 7, bounded(Terms{}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	p := w.party(0)
	s := *p.config
	s.noise = must(noise.NewTable(must(noise.DiscreteGaussian(big.NewRat(1<<20, 1)))))
	p.config = &s
	for _, want := range []error{ErrMissed, ErrReplay} {
		if out, err := p.Submit(w.opening, []byte("model"), w.values(0)); !errors.Is(err, want) ||
			out != nil {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if p.Round() != 1 || p.Output() != nil {
		t.Error("the round's number is not used, or something is sent in it")
	}
}

// TestNormErrors: what a bound does not go with, and what the error says.
func TestNormErrors(t *testing.T) {
	for _, c := range []struct {
		change func(*Terms)
		want   error
	}{
		{func(t *Terms) { t.Norm = -1 }, ErrConfig},
		{func(t *Terms) { t.Norm = 1 << 32 }, ErrConfig},
		{func(t *Terms) { t.Norm = 1<<32 - 1 }, ErrConfig}, // there is no room for its noise
		{func(t *Terms) { t.Noise = noise.Law{} }, ErrExactNorm},
	} {
		terms := usual()
		terms.Norm = 2000
		must(Parameters(10_000, 40, terms))
		c.change(&terms)
		_, err := Parameters(10_000, 40, terms)
		if !errors.Is(err, ErrConfig) || !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
}

// TestBoundFigures: the bound, the modulus and the lanes are those of the specification, by another
// computation: there is room for the longest vectors and keys that proofs allow, of everybody.
func TestBoundFigures(t *testing.T) {
	for _, c := range []struct {
		n     int
		lanes lanes
	}{{100, 19}, {269, 19}, {270, 20}, {1000, 21}, {10_000, 25}, {100_000, 28}, {1_000_000, 31}} {
		terms := usual()
		terms.MinSurvivors, terms.Colluders = c.n*9/10, c.n/100
		terms.Noise, terms.Norm = gaussian(10, terms.MinSurvivors-terms.Colluders), 1500
		d := must(derive(c.n, 40, &terms))
		if d.lanes != c.lanes {
			t.Errorf("%d parties: lanes of %d bits, want %d", c.n, d.lanes, c.lanes)
		}
		room, half := 973*float64(c.n), math.Exp2(float64(d.lanes-1))
		if room > half || d.lanes > narrow && room < half/2 {
			t.Errorf("%d parties: sums of %g in lanes of %d bits", c.n, room, d.lanes)
		}
		if s := d.lanes.inScalar(); s*int(d.lanes) > laneRoom {
			t.Errorf("%d lanes of %d bits", s, d.lanes)
		}
		length := 1000. + 64
		want := 1500*1500 + 15*1500*10 + 100*(length+11*math.Ceil(math.Sqrt(length)))
		if float64(d.bound) != want {
			t.Errorf("β² is %d, want %g", d.bound, want)
		}
		beta := math.Sqrt(want)
		if q := float64(d.Modulus); q < 24*beta || q < 2*3.05*beta*float64(c.n) ||
			d.ModulusBits > 20 && q > 5*3.05*beta*float64(c.n) {
			t.Errorf("%d parties: modulus %g", c.n, q)
		}
		if math.Abs(d.Factor-3.05*beta/1500) > 1e-9 || d.MemberAdds != 0 || d.Spare != 0 {
			t.Errorf("a factor of %v, members %v, %d spare coordinates", d.Factor, d.MemberAdds, d.Spare)
		}
		other := terms
		other.Colluders = 0
		other.Noise = gaussian(10, terms.MinSurvivors)
		if o := must(derive(c.n, 40, &other)); o.Modulus != d.Modulus || o.lanes != d.lanes ||
			o.Disputes != d.Disputes || o.Spoilers != d.Spoilers {
			t.Error("colluders change what holds off cheats")
		}
		terms.Norm = 0
		if plain := must(derive(c.n, 40, &terms)); d.PartyTime < plain.PartyTime+timePerProof {
			t.Errorf("a party takes %v, and %v without a proof", d.PartyTime, plain.PartyTime)
		}
	}
	// Where nothing else asks for so large a modulus, the bound does.
	wide := bounded(Terms{})
	wide.Norm = 1 << 22
	if d := must(derive(5, 7, &wide)); float64(d.Modulus) < 24*float64(wide.Norm) {
		t.Errorf("modulus %d for a bound of %d", d.Modulus, wide.Norm)
	}
	// Between the squares that a bound is over, none is cut.
	terms := usual()
	terms.Noise = must(noise.DiscreteGaussian(big.NewRat(8900*820, 20)))
	terms.Norm = 7
	d := must(derive(10_000, 40, &terms))
	if want := uint64(49 + 15*7*7 + 41*(1064+11*33)); d.bound != want {
		t.Errorf("β² is %d, want %d", d.bound, want)
	}
}

// TestNormDigest: a bound is in the digest, and none leaves it as it was.
func TestNormDigest(t *testing.T) {
	base := *newWorld(6, 8, bounded(Terms{})).config
	digests := map[[32]byte]string{must(base.Digest()): "base"}
	for name, change := range map[string]func(*Config){
		"norm": func(c *Config) { c.Norm++ }, "none": func(c *Config) { c.Norm = 0 },
		"stale": func(c *Config) { c.Stale = 1 },
	} {
		config := base
		change(&config)
		d := must(config.Digest())
		if before, ok := digests[d]; ok {
			t.Errorf("%s has the digest of %s", name, before)
		}
		digests[d] = name
	}
}

// TestWideLanes: lanes of all widths add up as the key does.
func TestWideLanes(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(3, 4))
	for l := narrow; l <= 32; l++ {
		key := make([]int64, degree)
		edge := int64(1) << (l - 1)
		for i := range key {
			key[i] = random.Int64N(2*edge) - edge
		}
		key[0], key[1] = edge-1, -edge
		if len(l.pack(key)) != l.scalars() {
			t.Fatalf("%d bits: %d scalars", l, len(l.pack(key)))
		}
		if got, ok := l.unpackVarTime(l.pack(key)); !ok || !slices.Equal(got, key) {
			t.Errorf("%d bits: lanes do not come back", l)
		}
	}
}

// Cheats of a round with a bound, which are out of it with the others' sum as if they had not been.
var cheats = map[string]dealer{
	"uniform y":                   spoilers["uniform y"].dealer,
	"a vector of twice the bound": {vector: func(v []int64) { v[len(v)-1] = 2000 }},
	"a value of twice the bound":  {values: func(v []int64) { v[0] = 700 }},
	"a value that wraps":          {values: func(v []int64) { v[0] = 1 << 18 }},
	"another key":                 {key: func(key []int64) { key[5]++ }},
	"a key too long":              {key: func(key []int64) { key[5] += 10_000 }},
	"rubbish for a proof":         {proof: func(proof []byte) { clear(proof[len(proof)-64 : len(proof)-32]) }},
	"another P":                   {dealing: func(d []byte) { d[64] ^= 1 }},
	"shares of no polynomial":     spoilers["no polynomial"].dealer,
	"shares of another key":       spoilers["another key"].dealer,
	"shares that are not reduced": {parts: overflow(2)},
	"one member's share":          {parts: moved(3)},
}

// overflow deals a member what is no scalar.
func overflow(at int) func(parts []shamir.PackedShare) {
	return func(parts []shamir.PackedShare) {
		for i := range 32 {
			parts[at].Values[1][i] = 255
		}
	}
}

// moved deals a member another share.
func moved(at int) func(parts []shamir.PackedShare) {
	return func(parts []shamir.PackedShare) { parts[at].Values[0][0] ^= 1 }
}

// TestCheats: what spoils a sum without a bound names its party with one, with evidence that holds,
// and that holds of nobody else; and the sum of the others comes out.
func TestCheats(t *testing.T) {
	const honest = 4
	w := newWorld(honest+len(cheats), 7, bounded(Terms{Colluders: 1}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range cheats {
		names = append(names, name)
	}
	slices.Sort(names)
	named := make([]*PartyError, len(names)) // by cheat
	for i := range honest {
		if err := w.server.Receive(must(w.submit(i))); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range names {
		message := w.cheat(honest+i, name, cheats[name])
		err := w.server.Receive(message)
		if err == nil {
			continue // it shows in the shares
		}
		if !errors.Is(err, ErrProof) || !errors.As(err, &named[i]) {
			t.Fatalf("%s: %v", name, err)
		}
		if err := w.server.Receive(message); !errors.Is(err, ErrDuplicate) ||
			w.server.AwaitsParty(honest+i) {
			t.Errorf("%s: a party that is spent may try again: %v", name, err)
		}
	}
	if err := w.deliver(nil); err != nil {
		t.Fatal(err)
	}
	for _, one := range w.convicted {
		if i := one.Party - honest; i < 0 || named[i] != nil {
			t.Errorf("a second time, or honest: %v", one)
		} else {
			named[i] = one
		}
	}
	for i, name := range names {
		if named[i] == nil || named[i].Party != honest+i || !errors.Is(named[i], ErrProof) {
			t.Errorf("%s: %v is named", name, named[i])
			continue
		}
		_, inShares := named[i].Evidence.Member()
		if inShares != strings.Contains(name, "share") {
			t.Errorf("%s: in a share: %v", name, inShares)
		}
		if err := named[i].Evidence.Verify(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	sum, err := w.finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.server.Excluded()) != 0 {
		t.Errorf("members %v are out", w.server.Excluded())
	}
	w.near(t, sum, w.total(0, 1, 2, 3))
}

// TestFalseComplaint: a member that opens what an honest party dealt to it, or makes something up,
// convicts nobody and is out; the party is in.
func TestFalseComplaint(t *testing.T) {
	w := newWorld(5, 7, bounded(Terms{Colluders: 1}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := w.server.Receive(must(w.submit(i))); err != nil {
			t.Fatal(err)
		}
	}
	c := w.server.config
	err := w.deliver(func(k int, answer []byte) []byte {
		if k != 2 {
			return answer
		}
		none := must(wire.ParseSet([]byte{0}, 4))
		want := ErrComplaint
		for _, b := range []byte{0, 255} {
			lie := complaint{1, none, []openedLeaf{{1, bytes.Repeat([]byte{b}, c.plainSize())}}}
			message := lie.append(answer[:bodyAt:bodyAt])
			message[1] = byte(typeComplaint)
			if err := w.server.Receive(message); !errors.Is(err, want) {
				t.Errorf("a complaint about nothing: %v, want %v", err, want)
			}
			want = ErrExcluded // now
		}
		return answer
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(w.server.Convicted()) != 0 || !slices.Equal(w.server.Excluded(), []int{2}) {
		t.Errorf("%v are convicted, %v excluded", w.server.Convicted(), w.server.Excluded())
	}
	sum, err := w.finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.near(t, sum, w.total(0, 1, 2, 3))
}

// TestServerFramesNobody: a server that shows a member another dealing than the party signed gets a
// dispute, and not what is in the box.
func TestServerFramesNobody(t *testing.T) {
	w := newWorld(5, 7, bounded(Terms{}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Receive(must(w.submit(0))); err != nil {
		t.Fatal(err)
	}
	message := must(w.server.Batch())[0].Message
	c := w.server.config
	dealing := bodyAt + 4 + 4 + keyexchange.SignatureSize + 32
	saved := must(w.members[0].Save(new(keyexchange.SealKey)))
	for at := dealing; at < dealing+c.dealingSize()+c.proofDigestSize(); at += 32 {
		m := must(LoadMember(w.config, memberKey(0), nil, new(keyexchange.SealKey), saved))
		other := slices.Clone(message)
		other[at] ^= 1
		answer := must(m.Receive(other))
		if answer[1] != byte(typeDisputes) || answer[len(answer)-1] != 1 {
			t.Fatalf("byte %d of the dealing: a message of type %d", at-dealing, answer[1])
		}
	}
}

// TestBoundedState: who is convicted by a complaint stays so in a server that is saved.
func TestBoundedState(t *testing.T) {
	w := newWorld(5, 7, bounded(Terms{Colluders: 1}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	messages := [][]byte{w.deal(0, dealer{parts: moved(3)}), must(w.submit(1)), must(w.submit(2)),
		must(w.submit(3))}
	for _, m := range messages {
		if err := w.server.Receive(m); err != nil {
			t.Fatal(err)
		}
	}
	key := new(keyexchange.SealKey)
	for k, e := range must(w.server.Batch()) {
		answer := must(w.members[e.To].Receive(e.Message))
		if complains := answer[1] == byte(typeComplaint); complains != (k == 3) {
			t.Fatalf("member %d answers with type %d", k, answer[1])
		}
		if err := w.server.Receive(answer); err != nil {
			t.Fatal(err)
		}
		w.server = must(LoadServer(w.config, 0, key, must(w.server.Save(key))))
	}
	must(w.server.Settle())
	got := w.server.Convicted()
	if named, ok := got[0].(*PartyError); len(got) != 1 || !ok || named.Party != 0 ||
		named.Evidence.Verify() != nil {
		t.Errorf("%v are convicted", got)
	}
}

// FuzzBounded parses bytes as the messages that a bound changes: whatever parses marshals back byte
// for byte.
func FuzzBounded(f *testing.F) {
	s := must(newWorld(5, 7, bounded(Terms{})).config.settle())
	none := must(wire.ParseSet([]byte{2}, 5))
	plain := make([]byte, s.plainSize())
	for _, c := range []complaint{
		{1, none, []openedLeaf{{0, plain}, {4, plain}}}, {1 << 30, none, []openedLeaf{{2, plain}}},
		{1, none, []openedLeaf{{1, plain}}}, {1, none, []openedLeaf{{2, plain}, {2, plain}}}, {1, none, nil},
	} {
		f.Add(c.append(nil))
	}
	f.Add(make([]byte, s.submissionSize(7)))
	f.Add(append(uint32Bytes(1), make([]byte, s.entrySize())...))
	f.Fuzz(func(t *testing.T, body []byte) {
		if c, err := s.parseComplaint(body, 5); err == nil {
			if !bytes.Equal(c.append(nil), body) {
				t.Error("a complaint of two forms")
			}
			last := -1
			for _, one := range c.opened {
				if one.place <= last || one.place > 4 || c.disputes.Has(one.place) ||
					len(one.plain) != s.plainSize() {
					t.Errorf("place %d is opened", one.place)
				}
				last = one.place
			}
		}
		if m, err := s.parseSubmission(body, 7); err == nil && !bytes.Equal(m.append(nil), body) {
			t.Error("a submission of two forms")
		}
		if number, entries, err := s.parseBatch(body); err == nil {
			again := uint32Bytes(number)
			for i := range entries {
				again = entries[i].append(again)
			}
			if !bytes.Equal(again, body) {
				t.Error("a batch of two forms")
			}
		}
	})
}
