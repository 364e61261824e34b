package aggregation

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// The decoded mean is Σω·Δ/Σω of the clipped updates up to rounding, whatever the
// numbers of samples, capped; and what a party adds is within the stated norm.
func TestWeightedMean(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		parties := rapid.IntRange(1, 8).Draw(r, "parties")
		d := rapid.IntRange(1, 40).Draw(r, "dimension")
		share := rapid.SampledFrom([]float64{DefaultCountShare, 0.1, 1}).Draw(r, "share")
		const clip, most = 2, 100
		e := Encoder{Parties: parties, Dimension: d + 1, Clip: clip * WeightedClip(share), Scale: 1 << 20}
		if rapid.Bool().Draw(r, "rotate") {
			e.Rotate = &[32]byte{1}
		}
		limit, err := e.Sensitivity()
		if err != nil {
			r.Fatal(err)
		}
		layout, err := e.Layout()
		if err != nil {
			r.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		want, total := make([]float64, d), 0.0
		sum := [][]uint64{make([]uint64, layout[0].Length)}
		for range parties {
			u := make([]float64, d)
			for i := range u {
				u[i] = rng.NormFloat64()
			}
			samples := 1 + rng.IntN(150)
			clipped, _, err := Clip(u, clip)
			if err != nil {
				r.Fatal(err)
			}
			omega := min(float64(samples)/most, 1)
			total += omega
			for i, x := range clipped {
				want[i] += omega * x
			}
			one, err := e.Encode(WeightedVector(clipped, samples, most, share*clip), nil, nil)
			if err != nil {
				r.Fatal(err)
			}
			integers, err := Integers(one[0], layout[0].Bits)
			if err != nil {
				r.Fatal(err)
			}
			var squares uint64
			for _, x := range integers {
				squares += uint64(x * x)
			}
			if math.Sqrt(float64(squares)) > limit.L2 {
				r.Fatalf("a party adds √%d, stated %v", squares, limit.L2)
			}
			for i, x := range one[0] {
				sum[0][i] = (sum[0][i] + x) & (1<<layout[0].Bits - 1)
			}
		}
		joint, err := e.Decode(sum, parties)
		if err != nil {
			r.Fatal(err)
		}
		mean, weight := WeightedMean(joint, parties, share*clip)
		if math.Abs(weight-total) > 1e-3 {
			r.Fatalf("a weight of %v, want %v", weight, total)
		}
		for i := range mean {
			if math.Abs(mean[i]-want[i]/max(total, 1)) > 1e-3 {
				r.Fatalf("coordinate %d is %v, want %v", i, mean[i], want[i]/total)
			}
		}
	})
}

// One capped party bounds the norm: the clip of the joint vector is never less than
// that of (ω·Δ, s·ω), and hardly more than needed.
func TestWeightedClip(t *testing.T) {
	for _, share := range []float64{0.01, DefaultCountShare, 0.5, 1} {
		need := math.Hypot(1, share)
		if got := WeightedClip(share); got < need || got > 1.07*need {
			t.Errorf("share %v: clipped to %v, needed %v", share, got, need)
		}
		full := WeightedVector([]float64{0.6, 0.8}, 9, 7, share)
		norm := math.Hypot(math.Hypot(full[0], full[1]), full[2])
		if got := WeightedNorm(share); got > norm || got < norm*(1-1e-9) {
			t.Errorf("share %v: the longest vector is said to have %v, and has %v", share, got, norm)
		}
	}
}
