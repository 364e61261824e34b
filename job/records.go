package job

import (
	"cmp"
	"fmt"

	"github.com/hushsum/hushsum/privacy"
)

// PerRecord reports whether epsilon protects each record, or each person's, and not each party.
func (j *Job) PerRecord() bool { return j.Privacy.Unit == "record" }

// Records returns the coins that parties toss for their records, nil if the unit is a party.
//
// The probability of a coin follows from public numbers. A party's own number of records would tell
// something about them, and the ratio of two parties' numbers would tell which party has a given
// record: so privacy.records is declared for all parties together. It is also the most records that
// one party may draw from, since nobody needs to know which party has them.
func (j *Job) Records() *privacy.Records {
	if !j.PerRecord() {
		return nil
	}
	return &privacy.Records{Count: j.Privacy.Records,
		Rate: float64(j.Batch()) / float64(j.Privacy.Records), Person: j.Privacy.Group}
}

// Batch returns how many records a round expects from all parties together, if the unit is a
// record; sums are divided by it.
func (j *Job) Batch() int { return cmp.Or(j.Training.Batch, j.Privacy.Records) }

// Coins say how a party's own program makes its submission if the unit is a record: for each of its
// records, at most Count of them, it tosses a fresh and secret coin that comes up with probability
// Rate, and submits minus the sum of the gradients of the records drawn, each clipped to L2 norm
// Clip; zeros if more than Most coins come up. A gradient depends on its record, the model and
// public values, and on no other record. With a Group, such as patient, the coin, the mean gradient
// of the records, and the clip are per patient.
type Coins struct {
	Count int     `json:"count"`
	Rate  float64 `json:"rate"`
	Most  int     `json:"most"`
	Clip  float64 `json:"clip"`
	Group string  `json:"group,omitempty"`
}

// Coins returns the coins of a job whose unit is a record, nil for any other job and for a job with
// queries, which tosses no coins.
func (s *Settled) Coins() *Coins {
	if s.mechanism == nil || s.mechanism.Records() == nil || s.job.Asks() {
		return nil
	}
	r, p := s.mechanism.Records(), &s.job.Privacy
	return &Coins{Count: r.Count, Rate: r.Rate, Most: r.Most(), Clip: p.Clip, Group: p.Group}
}

// OwnGradients reports whether the unit is a record and programs of the parties make the gradients.
// Then what is stated of a party's records assumes what nobody can check of its program: that what
// the program makes of a record, and whether and when it ends, depend on that record and the model
// alone, to the last bit.
func (s *Settled) OwnGradients() bool { return s.Coins() != nil && !s.Trains() }

// Fits returns a [ConfigError] if a party has more records, or persons, than all parties have by
// the job: a record that was never drawn because of others would be drawn if one of these were
// missing, so that a record would move the sum by two.
func (c *Coins) Fits(n int) error {
	if n <= c.Count {
		return nil
	}
	return &ConfigError{Path: "privacy.records",
		Reason: fmt.Sprintf("it says that all parties together have %d, and this one has %d: noise "+
			"hides a record if all may be drawn", c.Count, n),
		Advice: "declare that many in the job, or bring fewer, chosen by what each is by itself"}
}

// records checks what goes with the unit.
func (c *checker) records() {
	c.takes(c.PerRecord(), "the unit is a party", `leave it out, or write privacy.unit = "record"`,
		"privacy.group", "privacy.records")
	if !c.PerRecord() {
		return
	}
	p := &c.Privacy
	c.refuse(!c.Noisy(), "privacy.noise", `write privacy.noise = "discrete-gaussian"`,
		"without noise nothing protects a record")
	c.refuse(p.Records > 0 && c.Training.Batch > p.Records, "training.batch",
		within(1, p.Records, "write 0 for all"),
		"a round cannot expect more records than there are")
	if c.Asks() {
		return // which refuse all that is of training
	}
	c.takes(false, "a round is one step over the records that coins draw, at server.rate",
		"leave it out", "training.epochs", "training.steps", "training.rate", "training.momentum",
		"training.weight_decay", "training.restart")
}
