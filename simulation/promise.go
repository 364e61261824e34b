package simulation

import (
	"math"

	"github.com/hushsum/hushsum/accounting"
)

// conclude works out what was spent: for each party the most that any of the sessions that
// it was in would give for all rounds.
func (r *timed) conclude() error {
	if !r.anyNoise() {
		return nil
	}
	told := map[*kind]int{}
	for _, c := range r.codecs {
		seen := map[*kind]bool{}
		for i, p := range c.parties {
			if seen[p.kind] { // those that are alike have the same
				continue
			}
			seen[p.kind] = true
			out, err := r.promise(c, i)
			if err != nil {
				return err
			}
			at, ok := told[p.kind]
			if !ok {
				told[p.kind] = len(r.result.Privacy)
				r.result.Privacy = append(r.result.Privacy, out)
				continue
			}
			was := &r.result.Privacy[at]
			if was.Certified, err = was.Certified.Or(out.Certified); err != nil {
				return err
			}
			was.Honest = min(was.Honest, out.Honest)
		}
	}
	return nil
}

func (r *timed) promise(c *codec, i int) (Promise, error) {
	p := c.parties[i]
	out := Promise{
		Party:  p.Name,
		Asked:  p.epsilon,
		Honest: c.honest(),
	}
	var err error
	switch {
	case r.World.Tolerance > 0: // who is there follows from rows, and has no noise
		out.Certified = accounting.NewClaim(accounting.Statement{}, accounting.Figures{
			Bound: accounting.Bound{Upper: math.Inf(1), Reason: "who is there follows from rows"},
			Delta: r.Privacy.Delta})
	case c.mechanism == nil:
		out.Certified, err = c.counterpart(i)
	default:
		out.Certified, err = c.certified()
	}
	return out, err
}
