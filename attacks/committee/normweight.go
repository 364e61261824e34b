package committee

import (
	"errors"

	"github.com/hushsum/hushsum/oneshot"
)

// heaviest is the largest weight of the parties of weightAbove.
const heaviest = 4

// weightAbove has a party of weight 1 count as the heaviest does. Without weights in the roster
// there is one bound for all, which has to be that of the heaviest.
func (r *runner) weightAbove() error {
	var in [2]bool
	for i, weighed := range []bool{false, true} {
		n, err := termedNormWorld(r.o.Seed, true, func(c *oneshot.Config) (err error) {
			c.Bits += 3
			if !weighed {
				c.Norm *= heaviest
				return nil
			}
			weights := make([]int, parties)
			for k := range weights {
				weights[k] = heaviest
			}
			weights[parties-1] = 1
			c.Roster, err = c.Roster.Weigh(weights)
			return err
		})
		if err != nil {
			return err
		}
		const own = normBound - normBound/8 // its vector, within the bound of weight 1
		n.w.inputs[parties-1] = []int64{own, 0, 0, 0}
		var message []byte
		if weighed {
			message, err = n.cheat(func(p *parts) { n.add(p, (heaviest-1)*own) })
		} else {
			n.w.inputs[parties-1][0] *= heaviest
			message, err = n.message(parties - 1)
		}
		if err != nil {
			return err
		}
		out, err := n.play(message)
		if err != nil {
			return err
		}
		if in[i] = !out.named && !out.lost; weighed && (!out.named || out.proof.Verify() != nil) {
			return errors.New("a weight above the roster's: nobody is named")
		}
	}
	r.counts("a party of weight 1 that counts as one of weight 4", "sums with it", in[0], in[1])
	r.rows[len(r.rows)-1].Note = "without: one bound for all, that of the heaviest"
	return nil
}
