package oneshot

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
	"pgregory.net/rapid"
)

// conduct says how a member acts in a round.
type conduct int

const (
	good        conduct = iota
	keyless             // sends no key
	speechless          // answers no batch, and goes on
	unsigned            // signs nothing and sends no part
	partless            // signs and sends no part
	lying               // sends a wrong part
	disputing           // disputes party 0
	lyingOnly           // sends a right part with wrong shares of covers
	conducts            // how many there are
	uncoveredTo = lyingOnly
)

// saved is a world right after the opening, with the submissions of all parties.
type saved struct {
	w           *world
	key         *keyexchange.SealKey
	server      []byte
	members     [][]byte
	submissions [][]byte
}

func save(w *world) *saved {
	out := &saved{w: w, key: new(keyexchange.SealKey)}
	for i := range w.keys {
		out.submissions = append(out.submissions, must(w.submit(i)))
	}
	out.server = must(w.server.Save(out.key))
	for _, m := range w.members {
		out.members = append(out.members, must(m.Save(out.key)))
	}
	return out
}

// load makes the world again.
func (s *saved) load() *world {
	w := &world{config: s.w.config, keys: s.w.keys, opening: s.w.opening}
	w.server = must(LoadServer(w.config, 0, s.key, s.server))
	_, keys := people("member", len(s.members))
	for k, state := range s.members {
		w.members = append(w.members, must(LoadMember(w.config, keys[k], nil, s.key, state)))
	}
	return w
}

// play runs a round in which every party submits and members behave as told.
func (s *saved) play(what []conduct) (*world, []int64, error) {
	w := s.load()
	for _, m := range s.submissions {
		if err := w.server.Receive(m); err != nil {
			return w, nil, err
		}
	}
	err := w.deliver(func(k int, answer []byte) []byte {
		switch what[k] {
		case speechless:
			return nil
		case disputing:
			answer = slices.Clone(answer)
			answer[len(answer)-1] |= 1 // parties fewer than 9, party 0 first
		}
		return answer
	})
	if err != nil {
		return w, nil, err
	}
	closing, err := w.server.Close()
	if err != nil {
		return w, nil, err
	}
	change := func(step, k int, answer []byte) []byte {
		switch {
		case what[k] == unsigned, step == 1 && what[k] == partless:
			return nil
		case step == 1 && what[k] == lying:
			answer = slices.Clone(answer)
			answer[46] ^= 1 // the lowest byte of the first scalar
		case step == 1 && what[k] == lyingOnly:
			answer = slices.Clone(answer)
			for i := range s.w.server.config.n {
				at := len(answer) - (i+1)*scalarSize
				if at < 46+s.w.server.config.Polynomials*scalarSize {
					break
				}
				answer[at] ^= 1
			}
		}
		return answer
	}
	if err := w.ask(0, closing, change); err != nil {
		return w, nil, err
	}
	certificate, err := w.server.Certificate()
	if err != nil {
		return w, nil, err
	}
	if err := w.ask(1, certificate, change); err != nil {
		return w, nil, err
	}
	if w.config.Covered {
		for _, i := range w.server.Included() {
			if err := w.server.Uncover(s.submissions[i]); err != nil {
				return w, nil, err
			}
		}
	}
	sum, err := w.server.Sum()
	return w, sum, err
}

// expect says what a round must give: the parties in the sum, or an error; nothing where
// nothing is promised.
func (s *saved) expect(what []conduct) (in []int, want error, promised bool) {
	c := s.w.server.config
	count := func(kinds ...conduct) (n int) {
		for _, x := range what {
			if slices.Contains(kinds, x) {
				n++
			}
		}
		return n
	}
	in = make([]int, 0, c.n)
	for i := range c.n {
		in = append(in, i)
	}
	if count(disputing) > 0 {
		in = in[1:] // and Δ is one or more, so that nobody is out for it
	}
	present := c.c - count(keyless)
	answers := present - count(unsigned, partless)
	wrong := count(lying)
	switch {
	case len(in) < c.MinSurvivors, present-count(unsigned) < c.Quorum, answers < c.Answers:
		return nil, ErrTooFew, true
	case c.Covered && wrong+count(lyingOnly) > c.Faults, wrong > c.Faults:
		return nil, nil, false
	case answers < c.Answers+wrong:
		return nil, ErrParts, true
	case c.Covered && answers-wrong-c.Faults-1 < 2*count(lyingOnly):
		return nil, ErrCover, true
	}
	return in, nil, true
}

func (s *saved) check(t rapid.TB, what []conduct) {
	w, sum, err := s.play(what)
	in, want, promised := s.expect(what)
	switch {
	case !promised:
		if err == nil && slices.Contains(what, good) {
			return // documented: more liars than Faults
		}
	case want != nil:
		if !errors.Is(err, want) || sum != nil {
			t.Fatalf("%v: %v, want %v", what, err, want)
		}
	default:
		if err != nil {
			t.Fatalf("%v: %v", what, err)
		}
		if !slices.Equal(w.server.Included(), in) {
			t.Fatalf("%v: %v are in, want %v", what, w.server.Included(), in)
		}
		w.near(t, sum, w.total(in...))
	}
}

// TestPatterns: every pattern of what members do, for small committees, in both forms.
// The outcome is the documented one. By default patterns that differ in the order of members
// count once, but for every sixteenth, and only those of -longest, minutes of them, are of both
// forms.
func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		members, colluders int
		covered            bool
		long               bool
	}{{4, 0, false, false}, {4, 1, false, true}, {4, 0, true, true}, {5, 0, false, true}} {
		if c.long && !suite.Longest() {
			continue
		}
		name := fmt.Sprintf("%d,colluders=%d,covered=%v", c.members, c.colluders, c.covered)
		t.Run(name, func(t *testing.T) {
			terms := small(Terms{Covered: c.covered, Colluders: c.colluders})
			terms.MinSurvivors = 3 + c.colluders
			n := terms.MinSurvivors + 1
			kinds := int(uncoveredTo)
			if c.covered {
				kinds = int(conducts)
			}
			patterns := 1
			for range c.members {
				patterns *= kinds
			}
			tried := 0
			worlds := make(map[string]*saved)
			what := make([]conduct, c.members)
			for pattern := range patterns {
				x := pattern
				var keys string
				for k := range what {
					what[k] = conduct(x % kinds)
					x /= kinds
					keys += fmt.Sprint(what[k] == keyless)
				}
				if !suite.Long() && pattern%16 != 0 && !slices.IsSorted(what) {
					continue
				}
				tried++
				s, ok := worlds[keys]
				if !ok {
					w := newWorld(n, c.members, terms)
					if err := w.begin(func(k int) bool { return what[k] != keyless }); err == nil {
						s = save(w)
					} else if !errors.Is(err, ErrTooFew) {
						t.Fatal(err)
					}
					worlds[keys] = s
				}
				if s != nil {
					s.check(t, what)
				}
			}
			t.Logf("%d of %d patterns", tried, patterns)
		})
	}
}

// TestPatternsRandom: random patterns of larger committees, in both forms; of 40 members with -long
// alone.
func TestPatternsRandom(t *testing.T) {
	suite.Checks(t, suite.Size(4, 4, 12, 100))
	for _, covered := range []bool{false, true} {
		for _, c := range []struct{ members, faults, per int }{{13, 3, 4}, {10, 2, 1}, {40, 10, 0}} {
			if c.members == 40 && !suite.Long() {
				continue
			}
			terms := small(Terms{Covered: covered})
			terms.Faults, terms.PerPolynomial = c.faults, c.per
			w := newWorld(5, c.members, terms)
			missing := c.faults / 3
			if err := w.begin(func(k int) bool { return k >= missing }); err != nil {
				t.Fatal(err)
			}
			s := save(w)
			kinds := int(uncoveredTo)
			if covered {
				kinds = int(conducts)
			}
			rapid.Check(t, func(t *rapid.T) {
				what := make([]conduct, c.members)
				for k := range missing {
					what[k] = keyless
				}
				for range rapid.IntRange(0, c.faults+2).Draw(t, "faults") {
					k := rapid.IntRange(missing, c.members-1).Draw(t, "member")
					what[k] = conduct(rapid.IntRange(int(speechless), kinds-1).Draw(t, "conduct"))
				}
				s.check(t, what)
			})
		}
	}
}
