package old

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/job"
)

// file is a federation's, and with Data and Party a spec.
type file struct {
	Name     string  `toml:"name"`
	Roster   string  `toml:"roster"`
	Rounds   int     `toml:"rounds"`
	Start    string  `toml:"start"`
	Pace     span    `toml:"pace"`
	StepTime span    `toml:"step_time"`
	Sampling float64 `toml:"sampling"`
	Seed     uint64  `toml:"seed"`
	Model    struct {
		Tensor []struct {
			Name  string `toml:"name"`
			Shape []int  `toml:"shape"`
		} `toml:"tensor"`
		File     string   `toml:"file"`
		Personal []string `toml:"personal"`
		Init     string   `toml:"init"`
		DType    string   `toml:"dtype"`
	} `toml:"model"`
	Training *fileTraining `toml:"training"`
	Server   struct {
		Rule      string  `toml:"rule"`
		Rate      float64 `toml:"rate"`
		Beta1     float64 `toml:"beta1"`
		Beta2     float64 `toml:"beta2"`
		Tau       float64 `toml:"tau"`
		TauInside bool    `toml:"tau_inside"`
	} `toml:"server"`
	Recovery struct {
		Adversary string  `toml:"adversary"`
		Colluders int     `toml:"colluders"`
		DropOut   float64 `toml:"drop_out"`
		Classical bool    `toml:"classical"`
		Sparse    bool    `toml:"sparse"`
	} `toml:"recovery"`
	Privacy struct {
		Noise   string  `toml:"noise"`
		Epsilon float64 `toml:"epsilon"`
		Delta   float64 `toml:"delta"`
		Clip    float64 `toml:"clip"`
		Bits    int     `toml:"bits"`
	} `toml:"privacy"`
	Metrics struct {
		Share float64 `toml:"share"`
	} `toml:"metrics"`

	About string `toml:"about"`
	Data  struct {
		Set           string  `toml:"set"`
		Split         string  `toml:"split"`
		Concentration float64 `toml:"concentration"`
		Rows          int     `toml:"rows"`
		Test          float64 `toml:"test"`
	} `toml:"data"`
	Party []struct {
		Name  string `toml:"name"`
		Count int    `toml:"count"`
	} `toml:"party"`
}

func (c *conversion) federation(formed string) error {
	f := new(file)
	if err := decode(c.name, c.text, f); err != nil {
		return err
	}
	j := c.job
	j.Name, j.About, j.Rounds, j.Seed = f.Name, f.About, f.Rounds, f.Seed
	r := f.Recovery
	j.Parties = job.Parties{Roster: f.Roster, DropOut: r.DropOut, Colluders: r.Colluders}
	j.Sum.Adversary, j.Sum.Classical, j.Sum.Sparse = r.Adversary, r.Classical, r.Sparse
	c.refuse(f.Rounds < 1, "rounds", "write how many, at least 1", "%d is too few", f.Rounds)
	c.moved("[recovery]", "[parties]", said{"drop_out": r.DropOut != 0, "colluders": r.Colluders != 0})
	c.moved("[recovery]", "[sum]", said{"adversary": r.Adversary != "", "classical": r.Classical,
		"sparse": r.Sparse})
	c.timed(f)
	if f.Sampling != 0 {
		c.later = append(c.later, func() error { return c.perRound(f.Sampling) })
	}
	p := f.Privacy
	j.Privacy = job.Privacy{Noise: p.Noise, Epsilon: p.Epsilon, Delta: p.Delta, Clip: p.Clip,
		Bits: p.Bits}
	j.Metrics.Share = f.Metrics.Share
	m := f.Model
	j.Model = job.Model{File: m.File, Personal: m.Personal, Init: m.Init, DType: m.DType}
	for _, t := range m.Tensor {
		j.Model.Tensor = append(j.Model.Tensor, job.Tensor{Name: t.Name, Shape: t.Shape})
	}
	c.serves(f)
	if t := f.Training; t != nil {
		c.trains(t)
	} else {
		c.refuse(p.Clip == 0, "privacy.clip", "write the L2 norm that updates are clipped to",
			"it is missing")
	}
	if formed == FormSpec {
		c.spec(f)
	} else {
		c.later = append(c.later, func() error {
			if f.Roster == "" && c.job.Size() == 0 {
				return c.mistake("roster", `write roster = "roster.txt"`, "it names no file of parties")
			}
			return nil
		})
	}
	c.recovers("a federation's")
	c.clear(f.Training == nil)
	return nil
}

// said has keys, and whether a file has them.
type said map[string]bool

// moved notes which keys stand in another table.
func (c *conversion) moved(from, to string, keys said) {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if keys[key] {
			list = append(list, key)
		}
	}
	if len(list) > 0 {
		c.note("from %s to %s: %s", from, to, strings.Join(list, ", "))
	}
}

// timed brings over when rounds are held.
func (c *conversion) timed(f *file) {
	t := &c.job.Time
	t.Pace, t.StepTime = f.Pace.Duration, f.StepTime.Duration
	if f.Start != "" {
		var err error
		t.Start, err = time.Parse(time.RFC3339, f.Start)
		c.refuse(err != nil, "start", `write it as "2026-11-30T08:00:00Z"`, "it is not a time")
	}
	c.moved("the top", "[time], which may change while the job runs, and is in no digest", said{
		"start": f.Start != "", "pace": t.Pace != 0, "step_time": t.StepTime != 0})
}

// perRound makes a number of a share of the roster.
func (c *conversion) perRound(share float64) error {
	if !(share > 0 && share <= 1) {
		return c.mistake("sampling", "write a part of the roster, such as 0.7", "%v is none", share)
	}
	n, err := c.parties()
	if err != nil {
		return c.mistake("sampling", "give parties.count=10, or the roster next to the file",
			"a job has a number of parties per round, and the roster cannot be read: %v", err)
	}
	all := c.job.Parties
	c.job.Parties.PerRound = int(math.Round(share * float64(n)))
	if c.job.Parties.PerRound == n {
		c.job.Parties.PerRound = 0
	}
	if least, p := c.job.Parties.Fewest(n), &c.job.Parties; all.Fewest(n) != least {
		c.job.Sum.Recovery = true
		p.DropOut = max(0, 1-float64(all.Fewest(n))/float64(p.PerRound))
		c.note("recovery.drop_out = %v was a share of all parties, and parties.drop_out is one of those "+
			"of a round",
			all.DropOut)
	}
	c.note("sampling = %v is parties.per_round = %d, of %d parties: a number, which stays when the "+
		"roster is another", share, c.job.Parties.PerRound, n)
	return nil
}

// serves brings over the server's rule.
func (c *conversion) serves(f *file) {
	s, to := f.Server, &c.job.Server
	*to = job.Server{Rule: s.Rule, Rate: s.Rate, Beta1: s.Beta1, Beta2: s.Beta2, Tau: s.Tau,
		TauInside: s.TauInside}
	adaptive := s.Rule == "fedadagrad" || s.Rule == "fedadam" || s.Rule == "fedyogi"
	switch {
	case s.Rule == "momentum":
		to.Rule = "fedavgm"
		c.note("the rule momentum of the server is called fedavgm")
	case s.Rule == "fedavgm": // which the old form did not have
		c.refuse(true, "server.rule", "use momentum", "there is no fedavgm in this form")
	case adaptive && s.Rate == 0:
		to.Rate = 1
		c.note("server.rate = 1 is written: with adaptive rules the default is 0.01")
	}
	if to.Rule != "fedavgm" && !adaptive && s.Beta1 != 0 {
		to.Beta1 = 0
		c.unused("server.beta1", "plain averaging has no moments")
	}
	if !adaptive && (s.Beta2 != 0 || s.Tau != 0 || s.TauInside) {
		to.Beta2, to.Tau, to.TauInside = 0, 0, false
		c.unused("server.beta2, tau and tau_inside", "the rule is not adaptive")
	}
}

// unused notes that something is left out because it had no effect.
func (c *conversion) unused(what, why string) {
	c.note("%s had no effect and is left out: %s", what, why)
}
