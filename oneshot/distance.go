package oneshot

import "github.com/hushsum/hushsum/noise"

// missed is above the probability with which an honest dealer, whatever its values are, is silent
// in a round since its proof misses the limit, and the distance of its masks from a law without
// them: SPEC-ONESHOT.md §13.6.
const missed = 0x1p-57

// Distance bounds how far what a round shows, apart from what takes an attack on keys or masks, may
// be from a law that depends on nothing but the noisy sum: δ grows by (1 + e^ε) times that. It is
// of the samplers of all dealers, n parties and the members, in vectors of the given length, and
// with a bound on norms of proofs that miss.
func Distance(parties, members, length int, bounded bool) float64 {
	dealers := float64(parties + members)
	distance := dealers * float64(degree+length+besides) * noise.MaxTableDistance
	if bounded {
		distance += dealers * missed
	}
	return distance
}
