package oneshot

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// TestGroups compares with a program that was written from SPEC-ONESHOT.md §17 with another
// implementation of AES, and looks at sizes.
func TestGroups(t *testing.T) {
	var context [32]byte
	for i := range context {
		context[i] = byte(i)
	}
	want := []int{0, 0, 3, 3, 1, 3, 2, 1, 1, 1, 2, 0, 1, 2, 2, 2, 3, 0, 3, 0}
	if got := Groups(&context, 20, 4); !slices.Equal(got, want) {
		t.Error(got)
	}
	var all []byte
	for _, g := range Groups(&context, 1000, 20) {
		all = append(all, byte(g))
	}
	digest := sha256.Sum256(all)
	if got := hex.EncodeToString(digest[:]); got !=
		"82b93f048eca2d367c5bc4b41d981e626b3de0168255b8f58634daa873cf99ef" {
		t.Error(got)
	}
	for n := 1; n < 40; n++ {
		for groups := 1; groups <= n; groups++ {
			context[0]++
			sizes := make([]int, groups)
			for _, g := range Groups(&context, n, groups) {
				sizes[g]++
			}
			if slices.Max(sizes)-slices.Min(sizes) > 1 {
				t.Fatalf("%d parties in groups of %v", n, sizes)
			}
		}
	}
}

// TestMedianOfMeans compares with fractions.
func TestMedianOfMeans(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for range 3000 {
		groups := 1 + r.IntN(6)
		counts, sums, all := make([]int, groups), make([][]int64, groups), 0
		for g := range counts {
			counts[g] = 1 + r.IntN(1+r.IntN(1<<18))
			all += counts[g]
			mean := (r.Float64() - 0.5) * math.Exp2(float64(r.IntN(40)))
			sums[g] = []int64{int64(mean * float64(counts[g])), int64(r.IntN(3)) - 1}
		}
		got := MedianOfMeans(sums, counts)
		for k := range got {
			var scaled []int64
			for g := range sums {
				x := new(big.Rat).SetFrac64(sums[g][k], int64(counts[g]))
				x.Mul(x, new(big.Rat).SetInt64(int64(all)))
				rounded, ok := new(big.Int).SetString(x.FloatString(0), 10) // halves away from zero
				if !ok {
					t.Fatal(x)
				}
				scaled = append(scaled, rounded.Int64())
			}
			slices.Sort(scaled)
			want := scaled[groups/2]
			if groups%2 == 0 {
				want = (scaled[groups/2-1] + want) >> 1
			}
			if got[k] != want {
				t.Fatalf("%d of %v over %v, want %d", got[k], sums, counts, want)
			}
		}
	}
}

// grouped returns terms of rounds in groups.
func grouped(groups int, t Terms) Terms {
	t = small(t)
	t.Groups, t.MinSurvivors = groups, 2
	return t
}

// median returns the median of means of those in the sum, by their groups.
func (w *world) median(vectors map[int][]int64, in []int) []int64 {
	context := w.server.open.context
	of := Groups(&context, len(w.keys), w.config.Groups)
	var sums [][]int64
	var counts []int
	for g := range w.config.Groups {
		sum, n := make([]int64, w.config.Length), 0
		for _, i := range in {
			if of[i] == g {
				n++
				for k, v := range vectors[i] {
					sum[k] += v
				}
			}
		}
		if n > 0 {
			sums, counts = append(sums, sum), append(counts, n)
		}
	}
	return MedianOfMeans(sums, counts)
}

// TestGroupsRound has rounds in groups, with parties missing, and server and members restored from
// their states at each step: the sum is the median of what is in groups with enough parties, and of
// those that have fewer nothing is revealed.
func TestGroupsRound(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		terms  Terms
		absent int // of one group
		left   int // parties in the sum
	}{
		{"all", 9, grouped(3, Terms{}), 0, 9},
		{"one is missing", 9, grouped(3, Terms{}), 1, 8},
		{"a group is short", 9, grouped(3, Terms{}), 2, 6},
		{"even", 9, grouped(4, Terms{}), 0, 9},
		{"with noise", 9, grouped(3, Terms{Noise: gaussian(10, 2)}), 2, 6},
		{"with a bound", 6, grouped(3, Terms{Noise: gaussian(10, 2), Norm: 290}), 1, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(c.n, 7, c.terms)
			if err := w.begin(nil); err != nil {
				t.Fatal(err)
			}
			context := w.server.open.context
			of := Groups(&context, c.n, c.terms.Groups)
			short := of[0]
			missing, vectors := 0, map[int][]int64{}
			var in []int
			for i := range c.n {
				if missing < c.absent && of[i] == short {
					missing++
					continue
				}
				if err := w.server.Receive(must(w.submit(i))); err != nil {
					t.Fatal(err)
				}
				vectors[i] = w.values(i)
				if len(in) == 3 {
					w.restore()
				}
				in = append(in, i)
			}
			if len(in) > c.left {
				in = slices.DeleteFunc(in, func(i int) bool { return of[i] == short })
			}
			if err := w.deliver(nil); err != nil {
				t.Fatal(err)
			}
			w.restore()
			want := w.median(vectors, in)
			var sum []int64
			sum, err := w.finish(func(step, _ int, answer []byte) []byte {
				if groups := len(w.server.open.full(w.server.config)); step == 1 && len(answer) !=
					wire.HeaderSize+groups*32*w.server.config.Polynomials {
					t.Errorf("a part of %d bytes for %d groups", len(answer), groups)
				}
				return answer
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := w.server.Included(); len(in) != c.left || !slices.Equal(got, in) {
				t.Errorf("%v are in, want %v", got, in)
			}
			w.near(t, sum, want)
		})
	}
}

// restore replaces server and members by those that their states give.
func (w *world) restore() {
	key := new(keyexchange.SealKey)
	w.server = must(LoadServer(w.config, 0, key, must(w.server.Save(key))))
	_, keys := people("member", len(w.members))
	for k, m := range w.members {
		w.members[k] = must(LoadMember(w.config, keys[k], chacha(k), key, must(m.Save(key))))
	}
}

// TestGroupsFilled: where a server leaves a victim alone with colluders in its group, members
// reveal nothing of that group. Without MinSurvivors of each group the sum of the victim's would be
// its input.
func TestGroupsFilled(t *testing.T) {
	terms := grouped(3, Terms{})
	terms.MinSurvivors, terms.Colluders = 3, 1
	w := newWorld(9, 7, terms)
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	context := w.server.open.context
	of := Groups(&context, 9, 3)
	for i := range 9 {
		if of[i] == of[0] && i != 0 && w.server.open.received.Len() > 1 {
			continue // the server leaves the others of the victim's group out
		}
		if err := w.server.Receive(must(w.submit(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.deliver(nil); err != nil {
		t.Fatal(err)
	}
	victims := w.server.open.counts[of[0]]
	if victims >= terms.MinSurvivors {
		t.Fatalf("%d are in the victim's group", victims)
	}
	sum, err := w.finish(func(step, k int, answer []byte) []byte {
		if step == 1 && len(answer) != wire.HeaderSize+2*32*w.server.config.Polynomials {
			t.Errorf("member %d has a part of %d bytes", k, len(answer))
		}
		return answer
	})
	if err != nil || sum == nil || slices.Contains(w.server.Included(), 0) {
		t.Errorf("%v, of %v", err, w.server.Included())
	}
}

// TestGroupsTooFew: a round needs more than half of its groups, at the server, and at members of a
// server that closes without.
func TestGroupsTooFew(t *testing.T) {
	w := newWorld(8, 7, grouped(4, Terms{}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	context := w.server.open.context
	of := Groups(&context, 8, 4)
	for i := range 8 {
		if of[i] < 2 {
			if err := w.server.Receive(must(w.submit(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.deliver(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.server.Close(); !errors.Is(err, ErrTooFew) {
		t.Error(err)
	}
	s, r := w.server.config, w.server.open
	say := func(parties ...int) error {
		m := closing{batches: 1, parties: parties, chain: r.chain}
		_, err := w.members[2].Receive(m.append(s.header(typeClosing, &r.context, 1, wire.ServerIndex)))
		return err
	}
	if err := say(2, 2, 0, 0); !errors.Is(err, ErrTooFew) {
		t.Error(err)
	}
	if err := say(2, 1, 1, 0); !errors.Is(err, ErrStatement) {
		t.Error("members take another's count of groups:", err)
	}
	if err := say(4); !errors.Is(err, ErrTruncated) {
		t.Error(err)
	}
}

// TestGroupsCheats: as many parties as fewer than half of the groups, each with as long a vector as
// passes, do not move the result beyond what honest groups have, coordinate by coordinate. In one
// sum they do.
func TestGroupsCheats(t *testing.T) {
	for _, groups := range []int{5, 1} {
		terms := grouped(groups, Terms{Noise: gaussian(7, 2), Norm: 4000})
		w := newWorld(10, 7, terms)
		s := must(w.config.settle())
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
		context := w.server.open.context
		of := Groups(&context, 10, groups)
		low, high := int64(math.MaxInt64), int64(math.MinInt64) // of ten times honest parties' values
		var messages [][]byte
		last := terms.Length - 1
		for i := range 10 {
			if i < 2 {
				messages = append(messages, w.deal(i, longestIn(s.bound)))
				continue
			}
			messages = append(messages, must(w.submit(i)))
			x := 10 * w.values(i)[last]
			low, high = min(low, x), max(high, x)
		}
		sum, err := w.run(messages)
		if err != nil {
			t.Fatal(err)
		}
		room := 10 * 13 * 7. // of a party's noise
		inside := float64(sum[last]) >= float64(low)-room && float64(sum[last]) <= float64(high)+room
		if inside != (groups > 1) {
			t.Errorf("two cheats in groups of %v: %d, and honest values are within %d and %d", of,
				sum[last], low, high)
		}
	}
}

// TestGroupsRefused: configurations that groups do not go with.
func TestGroupsRefused(t *testing.T) {
	for name, terms := range map[string]Terms{
		"covered":      grouped(2, Terms{Covered: true}),
		"noise":        grouped(2, Terms{CommitteeNoise: true, Noise: gaussian(10, 5)}),
		"negative":     grouped(-1, Terms{}),
		"too many":     grouped(4, Terms{}),
		"beyond limit": grouped(1025, Terms{}),
	} {
		roster, _ := people("party", 7)
		committee, _ := people("member", 7)
		c := &Config{Roster: roster, Committee: committee, Terms: terms}
		if _, err := c.Parameters(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.Promise(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: promises, %v", name, err)
		}
	}
	digests := map[[32]byte]int{}
	for groups := range 4 {
		w := newWorld(8, 7, grouped(groups, Terms{}))
		digests[must(w.config.Digest())]++
	}
	if len(digests) != 3 { // 0 is 1
		t.Error("digests of numbers of groups are the same")
	}
}

// TestGroupsEvidence: evidence has the number of groups.
func TestGroupsEvidence(t *testing.T) {
	w := newWorld(6, 7, grouped(3, Terms{Noise: gaussian(10, 2), Norm: 290}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	err := w.server.Receive(w.deal(1, dealer{proof: func(proof []byte) { proof[len(proof)-32] ^= 1 }}))
	evidence := convicting(err)
	if evidence == nil {
		t.Fatal(err)
	}
	b := must(evidence.AppendBinary(nil))
	again := must(ParseEvidence(b))
	if err := again.Verify(); err != nil || again.Config().Groups != 3 {
		t.Error(err, again.Config().Groups)
	}
}
