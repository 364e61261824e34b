package privacy

import "github.com/hushsum/hushsum/protocol"

// Contributors says how many shares of noise are in a sum, and how many of them are certain.
type Contributors struct {
	Parties      int // most in a sum, each with a share of the noise; 1 to 2^20
	MinSurvivors int // fewest in a sum that anybody sees; 0: Parties
	Colluders    int // of those, how many may take their own share out again
}

// ContributorsOf returns the Contributors of the sums of a session with the given number of
// parties scheduled in each round, of whom at most colluders collude. recovery has its defaults
// filled in, as Config.EffectiveRecovery of package protocol returns it; nil: all must submit. A
// sparse graph is refused with [ErrConfig]: its colluders are counted among neighbours, which
// says nothing about how many honest shares are in a sum.
func ContributorsOf(parties int, recovery *protocol.Recovery, colluders int) (Contributors, error) {
	c := Contributors{Parties: parties, Colluders: colluders}
	if recovery == nil {
		return c, nil
	}
	if recovery.Degree < parties-1 {
		return c, bad("Recovery.Degree", "use the complete graph with noise",
			"on a sparse graph the number of colluders among neighbours says nothing about how many "+
				"honest shares are in a sum")
	}
	c.MinSurvivors = recovery.MinSurvivors
	return c, nil
}

// minSurvivors is MinSurvivors with its default.
func (c Contributors) minSurvivors() int {
	if c.MinSurvivors == 0 {
		return c.Parties
	}
	return c.MinSurvivors
}

// MinHonest returns MinSurvivors − Colluders, the number of shares whose noise is enough by
// itself and is in every sum. It fails with [ErrConfig].
func (c Contributors) MinHonest() (int, error) {
	least := c.minSurvivors()
	switch {
	case c.Parties < 1 || c.Parties > maxParties:
		return 0, bad("Contributors.Parties", "", "%d is outside 1 to %d", c.Parties, maxParties)
	case least < 1 || least > c.Parties:
		return 0, bad("Contributors.MinSurvivors", "", "%d is outside 1 to %d", least, c.Parties)
	case c.Colluders < 0:
		return 0, bad("Contributors.Colluders", "use 0 or more", "%d is not a number of parties",
			c.Colluders)
	case c.Colluders >= least:
		return 0, bad("Contributors.Colluders", "use fewer colluders, or a larger MinSurvivors",
			"all of %d survivors could collude, and subtract their noise", least)
	}
	return least - c.Colluders, nil
}

// Committee has the members of a committee add the noise of sums, each of which has the noise of
// at least Members − Faults of them: Faults may be silent, or known to a cheating party. Noise is
// then that of Members − 2·Faults shares, and who the parties are does not count. Parties add
// noise of their own to hide keys, for which nothing is claimed: see package oneshot.
type Committee struct {
	Members int // 4 to 255
	Faults  int // 1 to a third of all but one
}

// contributors are the members, as those who share the noise.
func (c *Committee) contributors() (Contributors, error) {
	if c.Members < 4 || c.Members > 255 || c.Faults < 1 || 3*c.Faults >= c.Members {
		return Contributors{}, bad("Committee", "use 4 to 255, of whom fewer than a third are faulty",
			"%d of %d members are too many faults for a committee, or too few", c.Faults, c.Members)
	}
	least := c.Members - c.Faults
	return Contributors{Parties: c.Members, MinSurvivors: least, Colluders: c.Faults}, nil
}

// maxParties is the most that package noise divides a law among.
const maxParties = 1 << 20
