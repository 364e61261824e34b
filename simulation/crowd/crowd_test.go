package crowd

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
)

// given returns what a party submits before masks.
func given(party, k int) uint64 { return uint64(party*31+k) % 1000 }

func input(party int, dst []uint64) error {
	for k := range dst {
		dst[k] = given(party, k)
	}
	return nil
}

func plainSum(n, d int, absent []bool) []uint64 {
	sum := make([]uint64, d)
	for i := range n {
		for k := range sum {
			if absent == nil || !absent[i] {
				sum[k] += given(i, k)
			}
		}
	}
	return sum
}

// Sums are those of what was given, on both graphs, with and without drop-outs, for
// three rounds; what is submitted is not what was given.
func TestSums(t *testing.T) {
	for _, o := range []Options{
		{Parties: 2, Length: 3, Bits: 20},
		{Parties: 21, Length: 7, Bits: 20},
		{Parties: 21, Length: 7, Bits: 20, Classical: true, SelfMasks: true},
		{Parties: 40, Degree: 6, Length: 7, Bits: 33, SelfMasks: true, Workers: 3},
		{Parties: 41, Degree: 6, Length: 7, Bits: 64, Workers: 1},
	} {
		c, err := New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			var absent []bool
			if o.SelfMasks && round > 0 {
				absent = make([]bool, o.Parties)
				for i := range absent {
					absent[i] = i%5 == round
				}
			}
			sum, err := c.Round(t.Context(), []byte{byte(round)}, absent, input)
			if err != nil {
				t.Fatal(err)
			}
			if want := plainSum(o.Parties, o.Length, absent); !slices.Equal(sum, want) {
				t.Fatalf("%+v, round %d: sum %v, want %v", o, round, sum, want)
			}
			if hidden(c) < o.Parties*o.Length*9/10 {
				t.Fatalf("%+v: submissions equal what was given", o)
			}
		}
		degree := o.Degree
		if degree == 0 {
			degree = o.Parties - 1
		}
		got := c.Counts()
		if pairs := o.Parties * degree / 2; got.Pairs != pairs || got.Steps != 3*pairs ||
			got.AgreementsApart != 2*pairs || got.StepsApart != 6*pairs {
			t.Errorf("%+v: counts %+v", o, got)
		}
	}
}

// hidden is how many numbers of the last submissions differ from what was given.
func hidden(c *Crowd) (count int) {
	d := c.options.Length
	for i := range c.options.Parties {
		for k := range d {
			var y uint64
			for w := range c.workers {
				y += c.workers[w].submitted[i*d+k]
			}
			if y&(^uint64(0)>>(64-c.options.Bits)) != given(i, k) {
				count++
			}
		}
	}
	return count
}

func TestRefusals(t *testing.T) {
	for _, o := range []Options{
		{Parties: 1, Length: 1, Bits: 8},
		{Parties: 3, Length: 0, Bits: 8},
		{Parties: 3, Length: 1, Bits: 65},
		{Parties: 5, Degree: 3, Length: 1, Bits: 8},
		{Parties: 5, Degree: 5, Length: 1, Bits: 8},
		{Parties: 5, Length: 1, Bits: 8, Workers: -1},
	} {
		if _, err := New(t.Context(), o); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	c, err := New(t.Context(), Options{Parties: 3, Length: 1, Bits: 8})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Round(t.Context(), nil, make([]bool, 3), input); !errors.Is(err, ErrConfig) {
		t.Errorf("drop-outs without self masks: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Round(ended, nil, nil, input); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}

// A batch is valid if all of its signatures are, and else it is not.
func TestBatch(t *testing.T) {
	const n = 20
	for spoilt := range n + 1 {
		var v verifier
		for i := range n {
			identity, err := keyexchange.GenerateIdentity(nil)
			if err != nil {
				t.Fatal(err)
			}
			statement := fmt.Appendf(nil, "statement %d", i)
			signature, err := keyexchange.Sign(identity, labels.CrowdSurvivors, statement)
			if err != nil {
				t.Fatal(err)
			}
			if i == spoilt {
				statement[0] ^= 1
			}
			key := identity.Public().(ed25519.PublicKey)
			if err := v.add(key, labelled(labels.CrowdSurvivors, statement), &signature); err != nil {
				t.Fatal(err)
			}
		}
		if err := v.verify(); (err == nil) != (spoilt == n) {
			t.Errorf("signature %d of %d spoilt: %v", spoilt, n, err)
		}
	}
}

// BenchmarkPairs has what a pair costs: its set-up and its part of a round, with d = 105.
func BenchmarkPairs(b *testing.B) {
	for _, classical := range []bool{false, true} {
		o := Options{Parties: 300, Length: 105, Bits: 20, Classical: classical, Workers: 1}
		b.Run(fmt.Sprintf("classical=%v", classical), func(b *testing.B) {
			c, err := New(b.Context(), o)
			if err != nil {
				b.Fatal(err)
			}
			b.Run("setup", func(b *testing.B) {
				for b.Loop() {
					if _, err := New(b.Context(), o); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.Counts().Pairs), "ns/pair")
			})
			b.Run("round", func(b *testing.B) {
				for b.Loop() {
					if _, err := c.Round(b.Context(), nil, nil, input); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.Counts().Pairs), "ns/pair")
			})
		})
	}
}
