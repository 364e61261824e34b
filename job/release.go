package job

import (
	"math"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
)

// releaseOptions say what the noisy sums of a job hold.
type releaseOptions struct {
	Promise privacy.Promise
	Noise   privacy.Noise // Clip is the norm of a vector, without its weight
	Parties int           // most of a sum
	Length  int           // of a vector
	// MaxWeight weighs means by rows, up to this many per party; 0: all have equal weight.
	MaxWeight int
	// Hidden is the probability that a party's secret coin lets it take part; 0: there is no coin.
	Hidden  float64
	Records *privacy.Records // nil: the unit is a party
	Band    privacy.Band     // nil: the noise of rounds is independent
	// Signs counts the numbers whose signs are sent for a gradient mask, which get SignShare of the
	// budget; 0: none are. Votes says that parties vote on a clip.
	Signs     int
	SignShare float64
	Votes     bool
	// Heaviest and Total are the largest of the parties' declared weights and their sum; 0: none.
	Heaviest, Total int
	// Members counts those of the committee of one-message sums, which have noise in the masks, and
	// Bounded says that parties prove a norm; 0: sums are pairwise.
	Members int
	Bounded bool
	Assumes accounting.Assumptions
}

// newRelease declares noisy sums to package privacy. Nothing else does so for a training: a job and
// its simulations have one noise.
func newRelease(o releaseOptions) *privacy.Release {
	r := &privacy.Release{Promise: o.Promise, Noise: o.Noise, Dimension: o.Length, Rate: o.Hidden,
		Records: o.Records, Band: o.Band, Assumes: o.Assumes, Heaviest: o.Heaviest, Total: o.Total}
	if o.MaxWeight > 0 { // the weight is one coordinate more, see Lanes
		r.Dimension++
		r.Longest = r.Noise.Clip * aggregation.WeightedNorm(aggregation.DefaultCountShare)
		r.Noise.Clip *= aggregation.WeightedClip(aggregation.DefaultCountShare)
	}
	if o.Members > 0 {
		r.Overrun = oneshot.Distance(o.Parties, o.Members, r.Dimension, o.Bounded)
	}
	switch {
	case o.Votes && o.Hidden > 0: // those of the parties that take part, by expectation
		r.Signs = privacy.Votes(max(1, int(math.Round(o.Hidden*float64(o.Parties)))))
	case o.Votes:
		r.Signs = privacy.Votes(o.Parties)
	case o.Signs > 0:
		r.Signs = &privacy.Signs{Dimension: o.Signs, Part: o.SignShare}
	}
	return r
}
