package job

import (
	"fmt"

	"github.com/hushsum/hushsum/privacy"
)

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

// Band returns the coefficients of correlated noise, nil if it is independent. What a party is
// charged for is then a band.
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
	c.refuse(b < 2 || b > c.Rounds, path, fmt.Sprintf("write 2 to %d, or leave it out", c.Rounds),
		"%d rounds have no bands of %d", c.Rounds, b)
	c.refuse(n > 0 && b > n, path, fmt.Sprintf("write %d or less", n),
		"with %d parties, nobody would train in some of %d rounds", n, b)
	c.refuse(c.Privacy.Noise == "discrete-laplace", path, "use discrete-gaussian noise",
		"a band's budget is an L2 norm, and that of discrete Laplace noise is not")
	c.refuse(c.PerRecord(), path, "leave it out, or protect parties",
		"a record may be part of everything that its party makes")
	c.refuse(c.Model.Name == "", path, `write model.name = "logistic", or leave it out`,
		"only the training that a job declares keeps parts of an update")
	c.refuse(c.Oneshot(), path, `write sum.protocol = "pairwise"`,
		"the noise of one-message sums is in their masks")
	c.takes(false, "parties take turns, and submit in each round", "leave it out, or "+path,
		"parties.per_round", "parties.participations", "parties.hidden")
	c.takes(false, "parts of an update have neither weights nor votes", "leave it out, or "+path,
		"sum.max_weight", "privacy.clip_quantile")
	c.refuse(c.masked(), "training.mask", "leave it out, or "+path,
		"signs of parts would be sent in each round")
}
