package simulation

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/protocol"
)

// From updates to a noisy sum: 100 parties of 10,000 coordinates in 16 bits, of
// whom ten drop out before they submit and ten collude. What the private sum has
// over the sum of the same rounded updates is the noise of 90 shares; what is left
// of it for colluders that subtract their own is at least the noise that was asked
// for.
//
// False alarm: of three laws the mean (|mean| < 5σ/√d) and the variance (within 5
// standard deviations of its estimate, from the law's kurtosis): below 4e-6 in all.
func TestNoiseOfASum(t *testing.T) {
	const (
		n, dropped, colluders = 100, 10, 10
		dimension             = 10_000
		multiplier            = 1.0
	)
	recovery := &protocol.Recovery{Colluders: colluders, MinSurvivors: n - dropped}
	shares := recovery.MinSurvivors - colluders // what must suffice

	members := make([]keyexchange.Member, n)
	identities := make([]crypto.Signer, n)
	for i := range n {
		seed := sha256.Sum256(fmt.Appendf(nil, "noise %d", i))
		key := ed25519.NewKeyFromSeed(seed[:])
		identities[i] = key
		members[i] = keyexchange.Member{Name: partyName(i), Key: key.Public().(ed25519.PublicKey)}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	encoder, err := aggregation.Encoder{Parties: n, Dimension: dimension, Clip: 1, Bits: 16, Rotate: &[32]byte{1}}.ChooseScale(multiplier, shares)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := encoder.Layout()
	if err != nil {
		t.Fatal(err)
	}
	sensitivity, err := encoder.Sensitivity()
	if err != nil {
		t.Fatal(err)
	}
	silent := encoder // rounds alike, adds nothing
	silent.NoiseStdDev = 0
	session, err := protocol.NewLocal(&protocol.Config{Label: "noise", Roster: roster, Layout: layout, Recovery: recovery}, identities, nil)
	if err != nil {
		t.Fatal(err)
	}

	// The variance that must be left, whoever colludes.
	target := multiplier * multiplier * sensitivity.L2 * sensitivity.L2
	variance, err := noise.Rational(target)
	if err != nil {
		t.Fatal(err)
	}
	// Var = 2t²(1 + O(1/t²)); t a little above √(Var/2) is on the safe side.
	spread, err := noise.Rational(math.Sqrt(target/2) * 1.001)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		make     func(*big.Rat) (noise.Law, error)
		scale    *big.Rat
		kurtosis float64 // of the sum of the survivors' shares, at most
	}{
		{"discrete Gaussian", noise.DiscreteGaussian, variance, 3},
		{"Skellam", noise.Skellam, variance, 3},
		{"discrete Laplace", noise.DiscreteLaplace, spread, 6},
	} {
		law, err := c.make(c.scale)
		if err != nil {
			t.Fatal(err)
		}
		split := noise.Shares{Parties: n, MinHonest: shares, Law: law}
		own, err := split.Party()
		if err != nil {
			t.Fatal(err)
		}
		table, err := noise.NewTable(own)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.NewChaCha8([32]byte{2})
		sampler := table.NewSampler(random)
		rng := rand.New(rand.NewPCG(1, 2))
		inputs := make([][][]uint64, n)
		want := make([]uint64, layout[0].Length)
		low := ^uint64(0) >> (64 - layout[0].Bits)
		for i := range n {
			update := make([]float64, dimension)
			for j := range update {
				update[j] = rng.NormFloat64()
			}
			share := make([]int64, layout[0].Length)
			if err := sampler.Fill(share); err != nil {
				t.Fatal(err)
			}
			rounding := [32]byte{3, byte(i)}
			noisy, err := encoder.Encode(update, share, rand.NewChaCha8(rounding))
			if err != nil {
				t.Fatal(err)
			}
			bare, err := silent.Encode(update, nil, rand.NewChaCha8(rounding))
			if err != nil {
				t.Fatal(err)
			}
			if i >= n-dropped {
				continue // gone before it submits
			}
			inputs[i] = noisy
			for j, x := range bare[0] {
				want[j] = (want[j] + x) & low
			}
		}
		sum, err := session.Round(nil, inputs)
		if err != nil {
			t.Fatal(err)
		}
		for j := range want {
			want[j] = (sum[0][j] - want[j]) & low
		}
		added, err := aggregation.Integers(want, layout[0].Bits)
		if err != nil {
			t.Fatal(err)
		}
		var mean, square float64
		for _, x := range added {
			mean += float64(x)
			square += float64(x) * float64(x)
		}
		d := float64(len(added))
		mean /= d
		got := square/d - mean*mean
		released := law.Variance() * (n - dropped) / float64(shares)
		if math.Abs(mean) > 5*math.Sqrt(released/d) {
			t.Errorf("%s: the mean of the noise is %.3g", c.name, mean)
		}
		if tolerance := 5 * math.Sqrt((c.kurtosis-1)/d); math.Abs(got/released-1) > tolerance {
			t.Errorf("%s: the variance of the noise is %.4g, want %.4g within %.1f %%", c.name, got, released, 100*tolerance)
		}
		// By arithmetic, of the law that each party sampled.
		left := own.Variance() * float64(n-dropped-colluders)
		if left < target*(1-1e-12) {
			t.Errorf("%s: noise of variance %.6g is left against the colluders, want %.6g", c.name, left, target)
		}
		t.Logf("%-18s Δ₂ = %.0f units, variance %.4g (want %.4g), left against %d colluders %.4g (want %.4g)",
			c.name, sensitivity.L2, got, released, colluders, left, target)
	}
}
