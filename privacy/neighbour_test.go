package privacy

import (
	"testing"

	"github.com/hushsum/hushsum/accounting"
)

// Whatever is released, a vector with weights or metrics, signs, the votes of a clip that adapts,
// fewer survivors, colluders and secret coins: each lower bound has a neighbour with a name, and
// without coins, in the units that releases are rounded to, it is close to the upper one.
func TestEveryReleaseNamesItsNeighbour(t *testing.T) {
	for name, change := range map[string]func(*Release){
		"a vector":      func(*Release) {},
		"a number":      func(r *Release) { r.Dimension = 1 },
		"signs":         func(r *Release) { r.Signs = &Signs{Dimension: 40, Part: 0.3} },
		"votes":         func(r *Release) { r.Signs = Votes(100) },
		"drop-outs":     func(r *Release) { r.Promise = Assumed(100, 70) },
		"colluders":     func(r *Release) { r.Promise.honest, r.Promise.colluders = 80, 20 },
		"coins":         func(r *Release) { r.Rate = 0.2 },
		"votes, rarely": func(r *Release) { r.Rate, r.Signs = 0.2, Votes(100) },
	} {
		for _, family := range accounting.Families() {
			r := release()
			r.Noise.Family, r.Noise.Multiplier = family, 3
			change(&r)
			round, err := r.Round()
			if err != nil {
				t.Fatal(name, family, err)
			}
			server, public, err := round.Views(5, 1e-5)
			if err != nil {
				t.Fatal(name, family, err)
			}
			apart := 0.01
			if family == accounting.FamilyDiscreteLaplace {
				apart = 0.12
			}
			for _, s := range []accounting.Claim{server, public} {
				if s.Bare().Neighbour == "" || !(s.Bare().Lower > 0 && s.Bare().Lower <= s.Bare().Upper) ||
					r.Rate == 0 && s.Bare().Width() > apart*s.Bare().Upper {
					t.Errorf("%s, %v: %+v", name, family, s)
				}
			}
		}
	}
}
