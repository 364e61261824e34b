package job

import "github.com/hushsum/hushsum/privacy"

// charges counts what a party is charged for at most: its submissions or, where these are parts of
// what it made in one round of several, the rounds in which it makes something.
func (j *Job) charges() int {
	if b := j.Privacy.Factorise; b > 0 {
		return (j.Rounds + b - 1) / b
	}
	return j.submissions()
}

// Charges returns how often a party that submits in every round up to a given one is charged: for
// each round, or for each run of rounds in which it submits parts of one vector.
func (s *Settled) Charges(round int) int {
	if b := len(s.Band()); b > 0 {
		return (round + b - 1) / b
	}
	return round
}

// band settles the coefficients of correlated noise, nil where it is independent.
func (j *Job) band() (privacy.Band, error) {
	if j.Privacy.Factorise == 0 {
		return nil, nil
	}
	return privacy.NewBand(j.Privacy.Factorise, j.Rounds)
}

// Band returns the coefficients of correlated noise, nil if it is independent. With correlated
// noise a party is charged for each band.
func (s *Settled) Band() privacy.Band {
	if s.mechanism == nil {
		return nil
	}
	return s.mechanism.Band()
}

// bands checks what goes with correlated noise, of n parties.
func (c *checker) bands(n int) {
	const path = "privacy.factorise"
	b := c.Privacy.Factorise
	if b == 0 {
		return
	}
	c.takes(c.Noisy(), "there is no noise to correlate", "name privacy.noise, or leave it out", path)
	most := c.Rounds
	if n > 0 {
		most = min(most, n)
	}
	advice := within(2, most, "leave it out")
	c.refuse(b < 2 || b > c.Rounds, path, advice, "%s no bands of %d",
		count(c.Rounds, "round has", "rounds have"), b)
	c.refuse(n > 0 && b > n, path, advice,
		"with %d parties, nobody would train in some of %d rounds", n, b)
	c.refuse(c.Model.Name == "", path, `write model.name = "logistic", or leave it out`,
		"only the training that a job declares keeps parts of an update")
}
