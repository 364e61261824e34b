package oneshot

import "fmt"

// Promise says what can be read of a round, by a server that cheats with Colluders parties and
// InLeague of the Members of a committee: one sum, of at least Honest honest parties.
type Promise struct {
	Colluders int      // how many parties may pool what they know with the server
	Parties   int      // the most in a sum
	Honest    int      // the fewest honest parties in a sum
	Committee [32]byte // digest of the list of members
	Members   int
	Faults    int // members that may lie or be silent
	InLeague  int
	// Dealt says that the noise of a sum is that of Members − Faults − InLeague members at least, no
	// matter how many parties collude.
	Dealt bool
}

// Promise returns what the configuration promises. It takes one without Length, Bits, Noise and
// Norm, which follow from how much noise there is, and fails with [ErrConfig].
func (c *Config) Promise() (Promise, error) {
	if c == nil || c.Roster == nil || c.Committee == nil {
		return Promise{}, fmt.Errorf("%w: it has no roster or no committee", ErrConfig)
	}
	n, members := c.Roster.Len(), c.Committee.Len()
	if err := c.count(n, members); err != nil {
		return Promise{}, err
	}
	if err := c.bothRoles(); err != nil {
		return Promise{}, err
	}
	return Promise{
		Colluders: c.Colluders,
		Parties:   c.largest(n),
		Honest:    c.MinSurvivors - c.Colluders,
		Committee: c.Committee.Digest(),
		Members:   members,
		Faults:    c.Faults,
		InLeague:  c.inLeague(),
		Dealt:     c.CommitteeNoise,
	}, nil
}

// inLeague is InLeague with its default.
func (t *Terms) inLeague() int {
	if t.InLeague == 0 {
		return t.Faults
	}
	return t.InLeague
}

// count checks how many there are, and how many of them may be missing or collude.
func (t *Terms) count(n, members int) error {
	switch f, c := t.Faults, members; {
	case n < 2 || n > 1<<20:
		return fmt.Errorf("%w: %d parties, want 2 to 2^20", ErrConfig, n)
	case t.Groups < 0 || t.Groups > maxGroups:
		return fmt.Errorf("%w: Groups %d, want 1 to %d", ErrConfig, t.Groups, maxGroups)
	case t.groups() > 1 && (t.Covered || t.CommitteeNoise):
		return fmt.Errorf("%w: Groups with Covered or CommitteeNoise; leave one of them out", ErrConfig)
	case t.MinSurvivors > n/t.groups() || t.MinSurvivors < 2:
		return fmt.Errorf("%w: MinSurvivors %d of %d parties", ErrConfig, t.MinSurvivors,
			n/t.groups())
	case t.Colluders < 0 || t.MinSurvivors-t.Colluders < 2:
		return fmt.Errorf("%w: MinSurvivors − Colluders is %d, want 2 or more", ErrConfig,
			t.MinSurvivors-t.Colluders)
	case f < 1 || c > maxMembers || c < 3*f+1:
		return fmt.Errorf("%w: %d members of whom %d may be faulty; want 1 or more, 3·Faults + 1 "+
			"members or more and at most %d", ErrConfig, c, f, maxMembers)
	case t.inLeague() < f || t.inLeague() > c-2*f-1:
		return fmt.Errorf("%w: InLeague is %d of %d members of whom %d may be faulty, want %d to %d",
			ErrConfig, t.inLeague(), c, f, f, c-2*f-1)
	}
	return nil
}
