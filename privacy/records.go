package privacy

import (
	"math"
	"sort"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
)

// Records declares that a party's vector is a sum over its own records, or over persons with
// several records each, where each record or person adds a part of norm at most [Noise].Clip, and
// that the noise hides each record or person: see accounting.RecordUnit. In every round the party
// tosses a fresh and secret coin for each record, and sums over the records whose coins come up.
// Both fields are public: a party that has fewer records tells nobody.
type Records struct {
	// Count is the number of records of all parties together. A party with more records takes no
	// part: if the limit kept some of its records from being drawn, removing one record would let
	// another in.
	Count int
	Rate  float64 // probability that a coin comes up, above 0 to 1
	// Person is whom several records may be about, such as "patient"; "": each record is protected by
	// itself.
	Person string
}

// unit is whom the noise hides; without Records a party.
func (r *Records) unit() accounting.Unit {
	switch {
	case r == nil:
		return accounting.PartyUnit
	case r.Person != "":
		return accounting.RecordsOf(r.Person)
	}
	return accounting.RecordUnit
}

// leastOverrun is the probability that more come up than [Records.Most].
const leastOverrun = 0x1p-60

// Most returns how many records a party sums over at most. If the coins of more records come up the
// party sends zeros, which happens with a probability of at most [Records.Overrun]. So a round
// takes a bounded time.
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
