package privacy

import (
	"math"
	"sort"

	"github.com/hushsum/hushsum/aggregation"
)

// Records declares that a party's vector is a sum over records of its own, or over persons who
// have several, each with a part of norm at most [Noise].Clip, and that the noise hides these:
// see accounting.RecordUnit. In every round the party tosses a coin for each, fresh and secret,
// and sums over those that come up. Both fields are public: a party that has fewer records tells
// nobody.
type Records struct {
	// Count is the number of records of all parties together. A party with more takes no part: if some
	// were never drawn because of others, removing one of those would let another in.
	Count int
	Rate  float64 // probability that a coin comes up, above 0 to 1
}

// leastOverrun is the probability that more come up than [Records.Most].
const leastOverrun = 0x1p-60

// Most returns how many records a party sums over at most. If more come up it sends zeros, which
// happens with a probability of at most [Records.Overrun]. So a round takes a bounded time.
func (r *Records) Most() int {
	return sort.Search(r.Count, func(most int) bool { return r.tail(most) <= leastOverrun })
}

// Overrun bounds the probability that more records come up than Most.
func (r *Records) Overrun() float64 { return r.tail(r.Most()) }

// tail bounds the probability that more than most records come up: Chernoff's bound, the
// exponential of −n times the divergence of a coin with the rate seen from one with the rate
// tossed.
func (r *Records) tail(most int) float64 {
	n, k := float64(r.Count), float64(most+1)
	switch {
	case k > n:
		return 0
	case k <= n*r.Rate:
		return 1
	}
	part := func(a, b float64) float64 {
		if a == 0 {
			return 0
		}
		return a * math.Log(a/b)
	}
	seen := k / n
	return math.Exp(-n * (part(seen, r.Rate) + part(1-seen, 1-r.Rate)) * (1 - 1e-9))
}

func (r *Records) validate() error {
	switch {
	case r.Count < 1:
		return bad("Records.Count", "use at least 1", "%d is too few", r.Count)
	case !(r.Rate > 0 && r.Rate <= 1):
		return bad("Records.Rate", "use a number above 0 to 1", "%v is not a probability", r.Rate)
	case r.Most() > aggregation.MaxUnits:
		return bad("Records.Rate", "use a smaller one",
			"a party may draw %d records in one round, and sums hold up to %d", r.Most(),
			aggregation.MaxUnits)
	}
	return nil
}
