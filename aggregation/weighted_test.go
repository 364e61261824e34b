package aggregation

import (
	"errors"
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
		w := Weighted{
			Encoder:    Encoder{Parties: parties, Dimension: d, Clip: 2, Scale: 1 << 20},
			MaxSamples: 100, CountShare: rapid.SampledFrom([]float64{0, .1, 1}).Draw(r, "share"),
		}
		if rapid.Bool().Draw(r, "rotate") {
			w.Encoder.Rotate = &[32]byte{1}
		}
		joint, err := w.Joint()
		if err != nil {
			r.Fatal(err)
		}
		limit, err := joint.Sensitivity()
		if err != nil {
			r.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		want, total := make([]float64, d), 0.0
		var sum [][]uint64
		for range parties {
			u := make([]float64, d)
			for i := range u {
				u[i] = rng.NormFloat64()
			}
			samples := 1 + rng.IntN(150)
			clipped, _, err := Clip(u, 2)
			if err != nil {
				r.Fatal(err)
			}
			omega := min(float64(samples)/100, 1)
			total += omega
			for i, x := range clipped {
				want[i] += omega * x
			}
			one, err := w.Encode(u, samples, nil, nil)
			if err != nil {
				r.Fatal(err)
			}
			layout, err := w.Layout()
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
			if sum == nil {
				sum = one
			} else {
				for i, x := range one[0] {
					sum[0][i] = (sum[0][i] + x) & (1<<layout[0].Bits - 1)
				}
			}
		}
		mean, weight, err := w.Decode(sum, parties)
		if err != nil {
			r.Fatal(err)
		}
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
	for _, share := range []float64{0, .01, .25, .5, 1} {
		w := Weighted{Encoder: Encoder{Parties: 3, Dimension: 5, Clip: 1.7, Scale: 1000}, MaxSamples: 1,
			CountShare: share}
		e, err := w.Joint()
		if err != nil {
			t.Fatal(err)
		}
		if share == 0 {
			share = DefaultCountShare
		}
		need := 1.7 * math.Hypot(1, share)
		if e.Clip < need || e.Clip > 1.07*need {
			t.Errorf("share %v: clipped to %v, needed %v", share, e.Clip, need)
		}
	}
}

func TestWeightedErrors(t *testing.T) {
	good := Weighted{Encoder: Encoder{Parties: 2, Dimension: 2, Clip: 1, Scale: 100}, MaxSamples: 10}
	for name, change := range map[string]func(*Weighted){
		"no samples":    func(w *Weighted) { w.MaxSamples = 0 },
		"share below 0": func(w *Weighted) { w.CountShare = -1 },
		"share above 1": func(w *Weighted) { w.CountShare = 1.5 },
		"share NaN":     func(w *Weighted) { w.CountShare = math.NaN() },
		"no parties":    func(w *Weighted) { w.Encoder.Parties = 0 },
		"no clip":       func(w *Weighted) { w.Encoder.Clip = 0 },
	} {
		w := good
		change(&w)
		if err := w.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []struct {
		update  []float64
		samples int
		noise   []int64
		want    error
	}{
		{[]float64{1}, 1, nil, ErrLength}, {[]float64{1, 2, 3}, 1, nil, ErrLength},
		{[]float64{1, 2}, 0, nil, ErrSamples}, {[]float64{1, math.NaN()}, 1, nil, ErrNotFinite},
		{[]float64{1, 2}, 1, []int64{1, 2, 3}, ErrLength},
	} {
		if out, err := good.Encode(c.update, c.samples, c.noise, nil); !errors.Is(err, c.want) ||
			out != nil {
			t.Errorf("%v, %d samples: %v; want %v", c.update, c.samples, err, c.want)
		}
	}
}
