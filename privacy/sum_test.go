package privacy

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// From updates to a noisy sum: 30 parties (with -long 100) of 10,000 coordinates in 16
// bits, of whom one in ten drops out before it submits and one in ten colludes. What the
// private sum has over the sum of the same rounded updates is the noise of those that
// stayed; what is left of it for colluders that subtract their own is at least the noise
// that was asked for.
//
// False alarm: of three laws the mean (|mean| < 5σ/√d) and the variance (within 5
// standard deviations of its estimate, from the law's kurtosis): below 4e-6 in all.
func TestNoiseOfASum(t *testing.T) {
	const (
		dimension  = 10_000
		multiplier = 1.0
	)
	n := suite.Size(30, 30, 100, 100)
	dropped, colluders := n/10, n/10
	recovery := &protocol.Recovery{MinSurvivors: n - dropped}
	shares := n - dropped - colluders // what must suffice

	members := make([]keyexchange.Entry, n)
	identities := make([]crypto.Signer, n)
	for i := range n {
		seed := sha256.Sum256(fmt.Appendf(nil, "noise %d", i))
		key := ed25519.NewKeyFromSeed(seed[:])
		identities[i] = key
		members[i] = keyexchange.Entry{Name: fmt.Sprint("party-", i),
			Key: key.Public().(ed25519.PublicKey)}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	config := &protocol.Config{Label: "noise", Roster: roster, Recovery: recovery,
		Layout: masking.Layout{{Length: 1, Bits: 1}}, Colluders: colluders}
	promise, err := OfSession(config)
	if err != nil || promise.Honest() != shares {
		t.Fatal(promise, err)
	}
	var session *protocol.Local
	for _, c := range []struct {
		family   accounting.Family
		kurtosis float64 // of the sum of the survivors' shares, at most
	}{
		{accounting.FamilyDiscreteGaussian, 3},
		{accounting.FamilySkellam, 3},
		{accounting.FamilyDiscreteLaplace, 6},
	} {
		release := Release{
			Promise:   promise,
			Noise:     Noise{Family: c.family, Multiplier: multiplier, Clip: 1, Bits: 16},
			Dimension: dimension,
		}
		m, err := release.Mechanism()
		if err != nil {
			t.Fatal(err)
		}
		layout, err := m.Layout()
		if err != nil {
			t.Fatal(err)
		}
		if session == nil { // the layout is the same for all families
			config.Layout = layout
			if session, err = protocol.NewLocal(config, identities, nil); err != nil {
				t.Fatal(err)
			}
		}
		encoder := m.rotated([32]byte{1})
		silent := encoder // rounds alike, adds nothing
		silent.NoiseStdDev = 0
		law, sensitivity := m.Vector.Shares.Law, m.Vector.Sensitivity
		// The variance that must be left, whoever colludes.
		target := multiplier * multiplier * sensitivity.L2 * sensitivity.L2
		own, err := m.Vector.Shares.Party()
		if err != nil {
			t.Fatal(err)
		}
		random := rand.NewChaCha8([32]byte{2})
		rng := rand.New(rand.NewPCG(1, 2))
		inputs := make([][][]uint64, n)
		want := make([]uint64, layout[0].Length)
		low := ^uint64(0) >> (64 - layout[0].Bits)
		for i := range n {
			update := make([]float64, dimension)
			for j := range update {
				update[j] = rng.NormFloat64()
			}
			share, err := m.Vector.share(random)
			if err != nil {
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
		released := law.Variance() * float64(n-dropped) / float64(shares)
		if math.Abs(mean) > 5*math.Sqrt(released/d) {
			t.Errorf("%v: the mean of the noise is %.3g", c.family, mean)
		}
		if tolerance := 5 * math.Sqrt((c.kurtosis-1)/d); math.Abs(got/released-1) > tolerance {
			t.Errorf("%v: the variance of the noise is %.4g, want %.4g within %.1f %%", c.family, got,
				released, 100*tolerance)
		}
		// By arithmetic, of the law that each party sampled.
		left := own.Variance() * float64(n-dropped-colluders)
		if left < target*(1-1e-12) {
			t.Errorf("%v: noise of variance %.6g is left against the colluders, want %.6g", c.family, left,
				target)
		}
		t.Logf(
			"%-18v Δ₂ = %.0f units, variance %.4g (want %.4g), left against %d colluders %.4g (want %.4g)",
			c.family, sensitivity.L2, got, released, colluders, left, target)
	}
}
