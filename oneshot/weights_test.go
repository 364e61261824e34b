package oneshot

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/noise"
)

// theWeights are those of the parties of weighedWorld.
var theWeights = []int{1, 3, 2, 5, 1}

// weighedWorld is a world with a bound of 290 for each unit of weight.
func weighedWorld(t Terms) *world {
	t = bounded(t)
	t.Bits = 12
	w := newWorld(len(theWeights), 7, t)
	w.config.Roster = must(w.config.Roster.Weigh(theWeights))
	w.server = must(NewServer(w.config, 0))
	for k := range w.members {
		w.members[k] = must(NewMember(w.config, w.members[k].signer, chacha(k)))
	}
	return w
}

// TestWeights: a sum has each party's values as often as its weight says.
func TestWeights(t *testing.T) {
	w := weighedWorld(Terms{})
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	var messages [][]byte
	want := make([]int64, w.config.Length)
	for i, weight := range theWeights {
		p, values := w.party(i), []int64{290, 1, 0, 0, 0}
		if _, err := p.Submit(w.opening, []byte("model"), values); !errors.Is(err, ErrNorm) {
			t.Errorf("party %d, above the bound: %v", i, err)
		}
		clear(values)
		values[i%2] = 290 - int64(i)
		messages = append(messages, must(p.Submit(w.opening, []byte("model"), values)))
		want[i%2] += int64(weight) * values[i%2]
	}
	sum, err := w.run(messages)
	if err != nil {
		t.Fatal(err)
	}
	w.near(t, sum, want)
}

// TestWeightAbove: a party of weight 1 that counts itself as heavy as the heaviest is named, with
// evidence that has its weight, even if it proves that it is no longer than the heaviest. Where all
// have the bound of the heaviest, as without weights, its vector is in the sum.
func TestWeightAbove(t *testing.T) {
	heavy := dealer{values: func(v []int64) { copy(v, []int64{5 * 290, 0, 0, 0, 0}) }}
	w := weighedWorld(Terms{})
	s := must(w.config.settle())
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	own := s.schemes[1]
	s.schemes[1] = s.schemes[5] // what the cheat proves with
	message := w.deal(0, heavy)
	s.schemes[1] = own
	w.server.Check([][]byte{message})
	var named *PartyError
	if err := w.server.Receive(message); !errors.Is(err, ErrProof) || !errors.As(err, &named) ||
		named.Party != 0 {
		t.Fatalf("above its weight: %v", err)
	}
	b := must(named.Evidence.AppendBinary(nil))
	e := must(ParseEvidence(b))
	if err := e.Verify(); err != nil || e.Config().Roster.Weight(0) != 1 {
		t.Errorf("evidence: %v", err)
	}
	// The same file with another weight is no evidence.
	line := bytes.Index(b, []byte(" 1\n"))
	b[line+1] = '5'
	if e, err := ParseEvidence(b); err == nil && e.Verify() == nil {
		t.Error("evidence holds under another weight")
	}

	terms := bounded(Terms{})
	terms.Bits, terms.Norm = 12, 5*290
	w = newWorld(5, 7, terms)
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Receive(w.deal(0, heavy)); err != nil {
		t.Errorf("without weights: %v", err)
	}
}

// TestWeightFigures: there is room for the longest vectors of all, each of its own weight, by
// another computation.
func TestWeightFigures(t *testing.T) {
	w := weighedWorld(Terms{})
	s := must(w.config.settle())
	off, factor := 0., 0.
	for i, weight := range theWeights {
		norm := 290 * float64(weight)
		square := norm*norm + 15*norm*10 + 100*(69+11*9)
		if got := float64(s.prover(i).Bound); got != square {
			t.Errorf("β² of weight %d is %v, want %v", weight, got, square)
		}
		off += math.Ceil(3.05*math.Ceil(math.Sqrt(square)) - 1e-9)
		factor = max(factor, 3.05*math.Sqrt(square)/norm)
	}
	if float64(s.off) != off || math.Abs(s.Factor-factor) > 1e-9 {
		t.Errorf("%d and %v, want %v and %v", s.off, s.Factor, off, factor)
	}
	if float64(s.Modulus) <= 2*off+1 || s.Modulus < 24*uint64(math.Sqrt(float64(s.bound))) {
		t.Errorf("modulus %d", s.Modulus)
	}
	if f := must(w.config.Parameters()); f != s.Figures {
		t.Errorf("%+v and %+v", f, s.Figures)
	}
	other := *w.config
	other.Roster = must(w.config.Roster.Weigh([]int{1, 3, 2, 5, 2}))
	if must(other.Digest()) == s.digest {
		t.Error("other weights have the same digest")
	}
}

// TestWeightErrors: weights need a bound, and are of parties alone.
func TestWeightErrors(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   error
	}{
		{func(c *Config) { c.Norm = 0 }, ErrFreeWeight},
		{func(c *Config) { c.Norm = 0; c.Noise = noise.Law{} }, ErrFreeWeight},
		{func(c *Config) { c.Norm = (1<<32 - 1) / 4 }, ErrLong},
		{func(c *Config) { c.Committee = must(c.Committee.Weigh([]int{1, 1, 1, 1, 1, 1, 1})) }, ErrConfig},
	} {
		own := *weighedWorld(Terms{}).config
		c.change(&own)
		if _, err := own.Parameters(); !errors.Is(err, ErrConfig) || !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
}
