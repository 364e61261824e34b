package simulation

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/training"
)

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

// Errors that end a round without a sum.
var (
	errTooFew = errors.New("simulation: too few parties in the round")
	errLost   = errors.New("simulation: the round is lost")
)

// streamLost is as streamDrop, for the rounds that are lost.
const streamLost = 0x6c6f7374

// losses reports which messages of a round of some parties, by their place, do not arrive. It draws
// anew for each round, so that which rounds are lost changes nothing.
func (o *setting) losses(round, parties, messages int) []bool {
	lost := make([]bool, messages)
	rng := rand.New(rand.NewPCG(training.DerivedSeed(o.mishaps(), "losses", round, 0), streamDrop))
	for _, k := range rng.Perm(messages)[:min(o.job.DropOuts(parties), messages)] {
		lost[k] = true
	}
	return lost
}

// loses reports whether a round is one that is lost.
func (o *setting) loses(round int) bool {
	rng := rand.New(rand.NewPCG(o.mishaps(), streamLost))
	return slices.Contains(rng.Perm(o.Rounds)[:o.job.World.LostRounds], round-1)
}
