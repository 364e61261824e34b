package old

import "github.com/hushsum/hushsum/job"

// fileTraining is a training that a federation's file declares.
type fileTraining struct {
	Model         string  `toml:"model"`
	Lambda        float64 `toml:"lambda"`
	Epochs        int     `toml:"epochs"`
	Steps         int     `toml:"steps"`
	Batch         int     `toml:"batch"`
	Rate          float64 `toml:"rate"`
	Momentum      float64 `toml:"momentum"`
	WeightDecay   float64 `toml:"weight_decay"`
	Rule          string  `toml:"rule"`
	Mu            float64 `toml:"mu"`
	Beta          float64 `toml:"beta"`
	Variates      string  `toml:"variates"`
	Mask          string  `toml:"mask"`
	MaskThreshold float64 `toml:"mask_threshold"`
	ByRows        bool    `toml:"by_rows"`
	Weights       bool    `toml:"weights"`
	Range         float64 `toml:"range"`
	FractionBits  int     `toml:"fraction_bits"`
	Rows          struct {
		Features int `toml:"features"`
		Classes  int `toml:"classes"`
		Most     int `toml:"most"`
	} `toml:"rows"`
}

// trains brings over a training that is declared.
func (c *conversion) trains(t *fileTraining) {
	j := c.job
	j.Model.Name, j.Model.Features, j.Model.Classes = t.Model, t.Rows.Features, t.Rows.Classes
	j.Training = job.Training{
		Epochs:        t.Epochs,
		Steps:         t.Steps,
		Batch:         t.Batch,
		Rate:          t.Rate,
		Momentum:      t.Momentum,
		WeightDecay:   t.WeightDecay,
		Lambda:        t.Lambda,
		Rule:          t.Rule,
		Mu:            t.Mu,
		Beta:          t.Beta,
		Variates:      t.Variates,
		Mask:          t.Mask,
		MaskThreshold: t.MaskThreshold,
	}
	c.refuse(t.Model == "", "training", `write model = "softmax"`, "it names no model")
	c.refuse(t.Rate == 0, "training.rate", "write a learning rate such as 0.1", "it is missing")
	c.moved("[training] and [training.rows]", "[model]", said{"model as name": true,
		"features": t.Rows.Features != 0, "classes": t.Rows.Classes != 0})
	c.rules(t)
	if t.Weights {
		j.Training.Submit = "weights"
		c.note(`training.weights is training.submit = "weights"`)
	}
	j.Sum.Range, j.Sum.FractionBits = t.Range, t.FractionBits
	c.moved("[training]", "[sum]", said{"range": t.Range != 0, "fraction_bits": t.FractionBits != 0})
	c.weighs(t)
}

// rules brings over the parties' rule. Two of its numbers were 0 unless said, and are not now.
func (c *conversion) rules(t *fileTraining) {
	to := &c.job.Training
	two := t.Rule == "fedga" || t.Variates == "fresh"
	switch {
	case t.Rule == "fedprox" && t.Mu == 0:
		to.Rule = "fedavg"
		c.note("fedprox without mu had no pull, and becomes fedavg; mu is now 0.1 by default")
	case t.Rule == "fedga" && t.Beta == 0:
		to.Rule = "fedavg"
		c.note("fedga without beta displaced nothing, and becomes fedavg; beta is now 0.1 by default")
	}
	if t.Rule == "scaffold" && t.Variates == "" {
		c.note(`variates of scaffold that are not named are called "steps"`)
	}
	if !two {
		return
	}
	rounds := c.job.Rounds
	c.refuse(rounds%2 != 0, "rounds", "use twice the number of steps",
		"the rule takes two sums for a step of the model, and %d is odd", rounds)
	c.job.Rounds = rounds / 2
	c.note("rounds = %d is %d: it counts steps of the model, and no longer the sums, of which the "+
		"rule took two a step", rounds, c.job.Rounds)
}

// weighs brings over weights by rows.
func (c *conversion) weighs(t *fileTraining) {
	c.refuse(!t.ByRows && t.Rows.Most != 0, "training.rows.most",
		"leave it out, or set by_rows = true", "parties have equal weight")
	if !t.ByRows {
		return
	}
	c.job.Sum.MaxWeight = t.Rows.Most
	c.note("by_rows and rows.most are sum.max_weight, the rows that a party counts with at most")
	c.later = append(c.later, func() error {
		if c.job.Sum.MaxWeight > 0 {
			return nil
		}
		return c.mistake("training.by_rows", "give sum.max_weight=200",
			"nothing bounds how many rows a party counts with")
	})
}
