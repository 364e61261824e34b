package committee

import (
	"math/big"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/noise"
)

// runNoise has a server keep back the noise of one member more than may be faulty, so that the sum
// has that of fewer honest ones than ε rests on. Members that expect one more faulty member, and so
// the noise of one less, give it the sum.
func runNoise(r *runner) error {
	const kept = members - 1 - 1 // C − f − 1
	var answered [2]bool
	for i, faults := range []int{2, 1} {
		w, err := newWorld(r.o.Seed, 0, true)
		if err != nil {
			return err
		}
		terms := &w.config.Terms
		terms.Faults, terms.CommitteeNoise = faults, true
		terms.Noise, err = noise.DiscreteGaussian(big.NewRat(50*int64(members-2*faults), 1))
		if err != nil {
			return err
		}
		if w.figures, err = w.config.Parameters(); err != nil {
			return err
		}
		if w.digest, err = w.config.Digest(); err != nil {
			return err
		}
		n, err := newRound(w)
		if err != nil {
			return err
		}
		w.members = nil
		var noises, inputs []*dealing
		for k, m := range n.members {
			w.members = append(w.members, m)
			if k < kept {
				noises = append(noises, w.parse(parties+k, m.Output()[wire.HeaderSize:]))
			}
		}
		for i := range parties {
			d, err := w.submit(i)
			if err != nil {
				return err
			}
			inputs = append(inputs, d)
		}
		who := []int{0, 1, 2, 3, 4, 5, 6}
		answered[i] = len(w.answers(who, noises, inputs)) >= w.figures.Answers
	}
	r.counts("the noise of C − f − 1 members", "sums revealed", answered[0], answered[1])
	r.rows[len(r.rows)-1].Note = "without: members that ask for the noise of one less"
	return nil
}
