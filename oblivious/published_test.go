package oblivious

import (
	"errors"
	"math"
	"math/big"
	"testing"
)

// release is the sum of all corrections and the server's.
func release(t *testing.T, parties []*Published, server *PublishedServer) []uint64 {
	t.Helper()
	all := [][]uint64{server.Correction()}
	for _, p := range parties {
		c, err := p.Correction()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return sum(all, parties[0].config.Bits)
}

// The sum is that of the parties' own terms and of the chosen candidates, with and
// without the zero-sum form, and carries n Laplace variables.
func TestPublishedSum(t *testing.T) {
	const n, d, bits = 4, 4000, 24
	for _, zeroSum := range []bool{false, true} {
		config := &Config{Parties: n, Length: d, Bits: bits,
			Noise: Noise{big.NewRat(50, 1), ReferenceContinuous}}
		parties, server, err := RunPublished(config, zeroSum, seeded(1))
		if err != nil {
			t.Fatal(err)
		}
		got := release(t, parties, server)
		var m2 float64
		for k := range d {
			want := uint64(0)
			for j, to := range parties {
				view := to.View()
				want += view.Own[k]
				for i, from := range parties {
					if i == j {
						continue
					}
					// What was chosen, through the server's permutation.
					c := view.Choices[i][k] ^ server.Swaps()[i][j][k]
					want += from.View().Terms[j][c][k]
				}
			}
			if want &= mask(bits); got[k] != want {
				t.Fatalf("coordinate %d: %d, want %d", k, got[k], want)
			}
			v := float64(signed(got[k], bits))
			m2 += v * v / d
		}
		want := n * 2 * 50 * 50.
		if se := want * math.Sqrt((3./n+2)/d); math.Abs(m2-want) > 5*se { // false alarm 6e-7
			t.Errorf("variance %.5g, want %.5g ± %.3g: n times that of one Laplace variable", m2, want, se)
		}
	}
}

// The zero-sum form submits the same numbers: it is another way to write the masks.
func TestPublishedZeroSum(t *testing.T) {
	config := &Config{Parties: 3, Length: 10, Bits: 16, Noise: scale(3)}
	var corrections [2][]uint64
	for form := range corrections {
		parties, _, err := RunPublished(config, form == 1, seeded(2))
		if err != nil {
			t.Fatal(err)
		}
		if corrections[form], err = parties[1].Correction(); err != nil {
			t.Fatal(err)
		}
		if form == 1 {
			if total := sum(parties[1].View().Masks, 16); total[0] != 0 || total[9] != 0 {
				t.Error("the masks are not shares of zero:", total)
			}
		}
	}
	for k := range corrections[0] {
		if corrections[0][k] != corrections[1][k] {
			t.Fatal("the two forms differ")
		}
	}
}

// Candidates that are used again average out: 2 terms' worth of variance per offer
// falls towards what the mean of the two candidates has.
func TestPublishedReuse(t *testing.T) {
	const n, d, bits, rounds = 4, 3000, 24, 10
	config := &Config{Parties: n, Length: d, Bits: bits,
		Noise: Noise{big.NewRat(50, 1), ReferenceContinuous}}
	parties, server, err := RunPublished(config, false, seeded(3))
	if err != nil {
		t.Fatal(err)
	}
	mean := make([]float64, d)
	for range rounds {
		for _, p := range parties {
			if err := p.Choose(); err != nil {
				t.Fatal(err)
			}
		}
		for k, x := range release(t, parties, server) {
			mean[k] += float64(signed(x, bits)) / rounds
		}
	}
	var m2 float64
	for _, x := range mean {
		m2 += x * x / d
	}
	// v per own term; of each offer v/2 for the mean of the candidates, and v/2
	// divided by the rounds for the bits.
	v := 2 * 50 * 50. / n
	want := v * (n + n*(n-1)*(1+1./rounds)/2)
	// Ten fresh rounds would leave n²·v/10. A coordinate's excess kurtosis is below
	// 3; five standard errors then have a false alarm below 6e-7.
	if se := want * math.Sqrt(5./d); math.Abs(m2-want) > 5*se || m2 < 2*n*n*v/rounds {
		t.Errorf("variance of the mean of %d rounds %.5g, want %.5g ± %.3g", rounds, m2, want, se)
	}
}

func TestPublishedRefuses(t *testing.T) {
	config := &Config{Parties: 3, Length: 2, Bits: 16, Noise: scale(3)}
	p, err := NewPublished(config, 0, false, seeded(4))
	if err != nil {
		t.Fatal(err)
	}
	server, err := NewPublishedServer(config, seeded(5))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{-1, 0, 3} {
		if _, err := p.Offer(i); !errors.Is(err, ErrSender) {
			t.Error(i, err)
		}
		if err := p.Receive(i, Candidates{}); !errors.Is(err, ErrSender) {
			t.Error(i, err)
		}
		if _, err := server.Relay(0, i, Candidates{}); !errors.Is(err, ErrSender) {
			t.Error(i, err)
		}
	}
	for _, bad := range []Candidates{{}, {{1}, {1}}, {{1, 2}, {1, 1 << 16}}} {
		if err := p.Receive(1, bad); !errors.Is(err, ErrLength) {
			t.Error(err)
		}
		if _, err := server.Relay(0, 1, bad); !errors.Is(err, ErrLength) {
			t.Error(err)
		}
	}
	good := Candidates{{1, 2}, {3, 4}}
	if _, err := p.Correction(); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
	for i := 1; i < 3; i++ {
		if err := p.Receive(i, good); err != nil {
			t.Error(err)
		}
	}
	if err := p.Receive(1, good); !errors.Is(err, ErrDuplicate) {
		t.Error(err)
	}
	if _, err := p.Correction(); !errors.Is(err, ErrPhase) {
		t.Error(err)
	}
	if _, err := server.Relay(1, 0, good); err != nil {
		t.Error(err)
	}
	if _, err := server.Relay(1, 0, good); !errors.Is(err, ErrDuplicate) {
		t.Error(err)
	}
	if _, err := p.Claim(big.NewRat(1, 1)); !errors.Is(err, ErrNoBound) {
		t.Error(err)
	}
	coins := &Config{Parties: 3, Length: 2, Bits: 16, Coins: 1}
	if _, err := NewPublished(coins, 0, false, nil); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}
