package privacy

import (
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/accounting"
)

// byCommittee has members add the noise of wide.
func byCommittee(parties, members, faults int, multiplier float64) *Release {
	r := wide(0)
	r.Promise = Promise{parties: parties, shares: members, honest: members - 2*faults,
		colluders: faults, members: true}
	r.Noise.Multiplier = multiplier
	return r
}

// analytic is the ε at δ = 1e-5 of rounds of a Gaussian of multiplier z (Balle, Wang 2018).
func analytic(z float64, rounds int) float64 {
	mu := math.Sqrt(float64(rounds)) / z
	normal := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	low, high := 0.0, 100.0
	for range 100 {
		e := (low + high) / 2
		if normal(mu/2-e/mu)-math.Exp(e)*normal(-mu/2-e/mu) > 1e-5 {
			low = e
		} else {
			high = e
		}
	}
	return low
}

// TestCommitteeFigures: ε is that of the noise of C − 2f members, where f are missing and f tell
// the server theirs. Held values are of another program, and at each of them the difference of the
// two laws, summed over a grid, is 1e-5. With everybody honest the noise is that of C members.
func TestCommitteeFigures(t *testing.T) {
	for _, c := range []struct {
		members, faults int
		multiplier      float64
		rounds          int
		held, honest    float64 // ε where f members lie and f are silent, and where all are honest
	}{
		{4, 1, 1, 1, 4.3772, 2.9432},
		{13, 3, 2, 10, 7.5113, 5.2039},
		{40, 10, 5, 100, 9.9973, 6.5730},
		{40, 13, 5, 100, 9.9973, 5.3248},
	} {
		r := byCommittee(100, c.members, c.faults, c.multiplier)
		m, err := r.Mechanism()
		if err != nil {
			t.Fatal(err)
		}
		round := m.Round()
		if got := c.members - 2*c.faults; round.Shares != got {
			t.Errorf("%d shares, want %d", round.Shares, got)
		}
		spent, err := round.Spent(accounting.ServerView, c.rounds, DefaultDelta)
		if err != nil || !near(spent.Bare().Upper, c.held) || !near(analytic(c.multiplier, c.rounds),
			c.held) {
			t.Errorf("%+v: ε %v, and %.4f by the profile (%v)", c, spent,
				analytic(c.multiplier, c.rounds), err)
		}
		// C shares are C/(C − 2f) times the variance.
		all := m.Vector.SumStdDev(c.members) / m.Vector.Sensitivity.L2
		if got := analytic(all, c.rounds); !near(got, c.honest) {
			t.Errorf("%+v: ε %.4f with everybody honest", c, got)
		}
		// The noise of C − 2f members is all that is claimed: one less is too little.
		least := m.Vector.SumStdDev(c.members-2*c.faults) / m.Vector.Sensitivity.L2
		if !near(least, c.multiplier) || near(m.Vector.SumStdDev(c.members-2*c.faults-1), least) {
			t.Errorf("%+v: the multiplier of C − 2f members is %v", c, least)
		}
	}
}

// TestCommitteeRefused: what a committee cannot add noise to.
func TestCommitteeRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Release)
		field  string
	}{
		"Skellam":  {func(r *Release) { r.Noise.Family = accounting.FamilySkellam }, "Noise.Family"},
		"signs":    {func(r *Release) { r.Signs = Votes(100) }, "Signs"},
		"a band":   {func(r *Release) { r.Band = Band{1, 1} }, "Band"},
		"few bits": {func(r *Release) { r.Noise.Bits = 9 }, "Noise.Bits"},
	} {
		r := byCommittee(100, 13, 3, 1)
		c.change(r)
		_, err := r.Mechanism()
		var config *ConfigError
		if !errors.As(err, &config) || config.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	m, err := byCommittee(10, 13, 3, 1).Mechanism()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Encode([32]byte{}, make([]float64, 40), nil, nil); err == nil {
		t.Error("a party adds a member's noise")
	}
	if _, err := m.Blank(nil); err == nil {
		t.Error("a blank adds a member's noise")
	}
}

// TestCommitteeUtility prints the noise of a mean, in clipping norms, where parties and where a
// committee add it for the same ε, and checks that it is √(C/(C − 2f)) and √(n/(n·0.8 − c)) times
// what ε counts.
func TestCommitteeUtility(t *testing.T) {
	const members, faults = 13, 3
	for _, n := range []int{30, 100, 1000} {
		committee, err := byCommittee(n, members, faults, 1).Mechanism()
		if err != nil {
			t.Fatal(err)
		}
		mean := committee.SumStdDev(n) / float64(n)
		want := math.Sqrt(float64(members)/(members-2*faults)) / float64(n)
		t.Logf("n = %d: committee %.5f", n, mean)
		if !near(mean, want) {
			t.Errorf("n = %d: %v, want %v", n, mean, want)
		}
		for _, percent := range []int{0, 10, 50} {
			r := wide(0)
			r.Noise.Multiplier = 1
			honest := n*8/10 - n*percent/100
			r.Promise = Assumed(n, honest)
			parties, err := r.Mechanism()
			if err != nil {
				t.Fatal(err)
			}
			got := parties.SumStdDev(n) / float64(n)
			t.Logf("n = %d: parties, %d %% collude, %.5f", n, percent, got)
			if want := math.Sqrt(float64(n)/float64(honest)) / float64(n); !near(got, want) {
				t.Errorf("n = %d, %d %%: %v, want %v", n, percent, got, want)
			}
		}
	}
}
