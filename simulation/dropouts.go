package simulation

import "math/rand/v2"

// moment is when a party drops out of a round.
type moment int

const (
	beforeSubmit moment = iota
	beforeSign
	beforeReveal
	never
)

// dropOuts draws who drops out of which round, and when.
type dropOuts struct {
	rng  *rand.Rand
	each int // parties that drop out of each round
}

// streamDrop keeps the draws apart from others that are made from the same seed.
const streamDrop = 0x64726f70

func newDropOuts(seed uint64, each int) *dropOuts {
	return &dropOuts{rng: rand.New(rand.NewPCG(seed, streamDrop)), each: each}
}

// next returns, for the next round, when each of n parties leaves it.
func (d *dropOuts) next(n int) []moment {
	leaves := make([]moment, n)
	for i := range leaves {
		leaves[i] = never
	}
	for _, i := range d.rng.Perm(n)[:d.each] {
		leaves[i] = moment(d.rng.IntN(int(never)))
	}
	return leaves
}
