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
// Their probability follows from numbers that all know. A party's own count would tell something
// of its records, and the ratio of two parties' of whose they are: so privacy.records is declared,
// for all parties together. It is also the most that one party may draw from, since who has them
// is nobody's business.
func (j *Job) Records() *privacy.Records {
	if !j.PerRecord() {
		return nil
	}
	return &privacy.Records{Count: j.Privacy.Records,
		Rate: float64(j.Batch()) / float64(j.Privacy.Records)}
}

// Batch returns how many records a round expects from all parties together, if the unit is a
// record; sums are divided by it.
func (j *Job) Batch() int { return cmp.Or(j.Training.Batch, j.Privacy.Records) }

// Coins say how a party's own program makes its submission if the unit is a record: for each of its
// records, at most Count of them, it tosses a fresh and secret coin that comes up with probability
// Rate, and submits minus the sum of the gradients of those drawn, each clipped to L2 norm Clip;
// zeros if more than Most come up. A gradient is of its record, the model and what is public, and
// of no other record. With a Group, such as patient, all that is of each patient: the coin, the
// mean gradient of its records, and the clip.
type Coins struct {
	Count int     `json:"count"`
	Rate  float64 `json:"rate"`
	Most  int     `json:"most"`
	Clip  float64 `json:"clip"`
	Group string  `json:"group,omitempty"`
}

// Coins returns the coins of a job whose unit is a record, and nil for others: also for one with
// queries, which tosses none.
func (s *Settled) Coins() *Coins {
	if s.mechanism == nil || s.mechanism.Records() == nil || s.job.Asks() {
		return nil
	}
	r, p := s.mechanism.Records(), &s.job.Privacy
	return &Coins{Count: r.Count, Rate: r.Rate, Most: r.Most(), Clip: p.Clip, Group: p.Group}
}

// Protects says in words what epsilon protects, as in "each patient's records at a party".
func (j *Job) Protects() string {
	switch {
	case !j.PerRecord():
		return "each party"
	case j.Privacy.Group != "":
		return "each " + j.Privacy.Group + "'s records at a party"
	}
	return "each record of a party"
}

// Against says in words against whom epsilon holds.
func (j *Job) Against() string {
	if c := j.Parties.Colluders; c > 0 {
		return "the server and any " + count(c, "party", "parties")
	}
	return "the server"
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
		fmt.Sprintf("write %d or less, or 0 for all", p.Records),
		"a round cannot expect more records than there are")
	c.refuse(c.Model.Name == "lenet-norm", "model.name", "use lenet",
		"batch normalisation mixes records, so that no clip bounds what one of them does")
	c.refuse(c.Oneshot(), "sum.protocol", `write "pairwise"`, "one-message sums add up parties' "+
		"vectors")
	if c.Asks() {
		return // which refuse all that is of training
	}
	c.refuse(c.Training.Rule != "" && c.Training.Rule != "fedavg", "training.rule", "leave it out",
		"a round is one step over the records that coins draw")
	c.takes(false, "a round is one step over the records that coins draw, at server.rate",
		"leave it out", "training.epochs", "training.steps", "training.rate", "training.momentum",
		"training.weight_decay", "training.restart")
	c.takes(false, "what parties send is a sum over records, divided by training.batch",
		"leave it out", "sum.max_weight", "parties.per_round", "parties.hidden",
		"privacy.clip_quantile", "metrics.share")
	c.takes(false, "tensors that stay with a party are made of many records, and then so is each "+
		"gradient", "leave it out", "model.personal")
	c.refuse(c.masked(), "training.mask", "leave it out", "signs of sums over records hide no record")
}
