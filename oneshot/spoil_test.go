package oneshot

import (
	"errors"
	"math"
	"slices"
	"testing"

	"filippo.io/edwards25519"
)

// longestIn puts as long a vector as a proof takes, but for chance, into the last coordinate. The
// coordinate was a spare one while sums with a bound had such.
func longestIn(bound uint64) dealer {
	return dealer{vector: func(noisy []int64) {
		noisy[len(noisy)-1] = int64(1.2 * math.Sqrt(float64(bound)))
	}}
}

// TestSpoil has the attacks that emptied a round, or put honest members out of it, without naming
// anybody, while there was room for a counted number of cheats: proofs that hold of vectors that
// are as long as proofs allow, and boxes that do not open. The sum of everybody who is in comes out
// of each, whatever Colluders is.
func TestSpoil(t *testing.T) {
	for _, c := range []struct {
		name               string
		parties, members   int
		faults, colluders  int
		byMembers, covered bool
		cheats             int // with the longest vectors that hold
		liars              int // members with the longest noise
		boxes              int // parties whose boxes for the first members do not open
		spoilt             int // of these members
	}{
		{name: "one of four", parties: 4, members: 7, faults: 1, cheats: 1},
		{name: "three of six", parties: 6, members: 7, faults: 1, colluders: 1, cheats: 3},
		{name: "five of ten", parties: 10, members: 7, faults: 1, colluders: 3, cheats: 5},
		{name: "all but two of ten", parties: 10, members: 7, faults: 1, cheats: 8},
		{name: "with noise of members", parties: 5, members: 7, faults: 1, byMembers: true,
			cheats: 3, liars: 1},
		{name: "under covers", parties: 5, members: 7, faults: 1, covered: true, cheats: 3},
		{name: "boxes of four", parties: 12, members: 7, faults: 1, colluders: 1, boxes: 4, spoilt: 2},
		{name: "boxes of two", parties: 12, members: 7, faults: 1, boxes: 2, spoilt: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			terms := small(Terms{Covered: c.covered, Colluders: c.colluders})
			terms.MinSurvivors, terms.Faults = c.colluders+2, c.faults
			terms.Noise = gaussian(10, terms.MinSurvivors-c.colluders)
			if terms.CommitteeNoise = c.byMembers; c.byMembers {
				terms.Noise = gaussian(10, c.members-2*c.faults)
			}
			terms.Norm = 4000 // far above the noise
			w := newWorld(c.parties, c.members, terms)
			s := must(w.config.settle())
			if c.liars > 0 {
				w.noise = func(k int, message []byte) []byte {
					if k < c.liars {
						return w.deal(s.n+k, longestIn(s.memberBound))
					}
					return message
				}
			}
			if err := w.begin(nil); err != nil {
				t.Fatal(err)
			}
			if c.byMembers {
				if err := w.deliver(nil); err != nil {
					t.Fatal(err)
				}
			}
			var messages [][]byte
			for i := range c.parties {
				var d dealer
				switch {
				case i < c.cheats:
					d = longestIn(s.bound)
				case i < c.boxes:
					member := i % c.spoilt
					d = badBoxes(member)
				}
				messages = append(messages, w.deal(i, d))
			}
			sum, err := w.run(messages)
			if err != nil {
				t.Fatalf("%v, convicted %v, excluded %v", err, w.server.Convicted(), w.server.Excluded())
			}
			if len(w.server.Convicted()) != 0 || c.boxes > 0 && len(w.server.Excluded()) != 0 {
				t.Errorf("%v are convicted, members %v are out", w.server.Convicted(), w.server.Excluded())
			}
			var want []int
			for i := c.boxes; i < c.parties; i++ {
				want = append(want, i)
			}
			if !slices.Equal(w.server.Included(), want) {
				t.Errorf("%v are in, want %v", w.server.Included(), want)
			}
			total := w.total(want...)
			off := float64(c.cheats)*1.4*math.Sqrt(float64(s.bound)) + float64(s.tail)
			off += float64(c.liars) * 1.4 * math.Sqrt(float64(s.memberBound))
			for i, v := range sum {
				if d := math.Abs(float64(v - total[i])); i < len(sum)-1 && d > float64(s.tail) || d > off {
					t.Errorf("value %d is off by %g", i, d)
				}
			}
		})
	}
}

// TestFalseSum: f + 1 members that lie can make the fewest parts that do lie on polynomials, of
// another sum of keys, which commitments show. Without a bound the spare coordinates do.
func TestFalseSum(t *testing.T) {
	for _, norm := range []int64{0, 290} {
		terms := bounded(Terms{})
		terms.Norm = norm
		w := newWorld(4, 7, terms) // r = 4 values determine a polynomial, 5 are needed
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if err := w.server.Receive(must(w.submit(i))); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.deliver(nil); err != nil {
			t.Fatal(err)
		}
		sum, err := w.finish(func(step, k int, answer []byte) []byte {
			if step == 0 || k < 3 {
				return answer
			}
			if k > 4 {
				return nil
			}
			x := must(edwards25519.NewScalar().SetCanonicalBytes(answer[bodyAt:][:scalarSize]))
			x.Add(x, scalarOf([]uint32{6, 24}[k-3])) // (x − 1)·(x − 2)·(x − 3) at 4 and 5
			answer = slices.Clone(answer)
			copy(answer[bodyAt:], x.Bytes())
			return answer
		})
		want := ErrParts
		if norm == 0 {
			want = ErrNoise
		}
		if sum != nil || !errors.Is(err, want) {
			t.Errorf("with norm %d: %v, %v", norm, sum, err)
		}
	}
}

// TestLongKeys: n parties whose proofs hold of keys that are all in one coefficient, the longest
// that passes in every proof, do not leave lanes of a configuration of n parties. They do leave
// lanes without a bound.
func TestLongKeys(t *testing.T) {
	const n = 300
	terms := bounded(Terms{})
	w := newWorld(n, 7, terms)
	s := must(w.config.settle())
	for _, c := range []struct {
		lanes lanes
		holds bool
	}{{s.lanes, true}, {narrow, false}} {
		key := make([]int64, degree)
		key[degree/2] = -longKey
		secrets := c.lanes.pack(key)
		for i := range secrets {
			x := must(edwards25519.NewScalar().SetCanonicalBytes(secrets[i][:]))
			x.Multiply(x, scalarOf(n))
			secrets[i] = [32]byte(x.Bytes())
		}
		sum, ok := c.lanes.unpackVarTime(secrets)
		right := ok && sum[degree/2] == -n*longKey
		if right != c.holds {
			t.Errorf("lanes of %d bits: right %v, want %v", c.lanes, right, c.holds)
		}
	}
}
