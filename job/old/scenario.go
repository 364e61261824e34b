package old

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/job"
)

// scenario is the form of simulate --scenario before jobs.
type scenario struct {
	Name     string `toml:"name"`
	About    string `toml:"about"`
	Seed     uint64 `toml:"seed"`
	Rounds   int    `toml:"rounds"`
	StepTime span   `toml:"step_time"`
	Data     struct {
		Set  string  `toml:"set"`
		Rows int     `toml:"rows"`
		Draw string  `toml:"draw"`
		Test float64 `toml:"test"`
		Most int     `toml:"most"`
	} `toml:"data"`
	Training struct {
		Model     string  `toml:"model"`
		Lambda    float64 `toml:"lambda"`
		Algorithm string  `toml:"algorithm"`
		Steps     int     `toml:"steps"`
		Rate      float64 `toml:"rate"`
	} `toml:"training"`
	Sum struct {
		Kind         string   `toml:"kind"`
		Topology     string   `toml:"topology"`
		Servers      []string `toml:"servers"`
		Degree       int      `toml:"degree"`
		Drop         float64  `toml:"drop"`
		Range        float64  `toml:"range"`
		FractionBits int      `toml:"fraction_bits"`
	} `toml:"sum"`
	Recovery *struct {
		Adversary string  `toml:"adversary"`
		DropOut   float64 `toml:"drop_out"`
		Classical bool    `toml:"classical"`
	} `toml:"recovery"`
	Privacy struct {
		Noise       string  `toml:"noise"`
		Epsilon     float64 `toml:"epsilon"`
		Delta       float64 `toml:"delta"`
		Clip        float64 `toml:"clip"`
		Bits        int     `toml:"bits"`
		Colluders   int     `toml:"colluders"`
		SubtractOwn bool    `toml:"subtract_own"`
		Alpha       float64 `toml:"alpha"`
	} `toml:"privacy"`
	Leaving struct {
		Tolerance float64 `toml:"tolerance"`
	} `toml:"leaving"`
	Link []struct {
		Between   []string `toml:"between"`
		Latency   span     `toml:"latency"`
		Jitter    span     `toml:"jitter"`
		Loss      float64  `toml:"loss"`
		Bandwidth float64  `toml:"bandwidth"`
	} `toml:"link"`
	Party []scenarioParty `toml:"party"`
}

type scenarioParty struct {
	Name     string  `toml:"name"`
	Count    int     `toml:"count"`
	Place    string  `toml:"place"`
	Compute  []span  `toml:"compute"`
	Slow     float64 `toml:"slow"`
	Straggle float64 `toml:"straggle"`
	Rows     int     `toml:"rows"`
	Epsilon  float64 `toml:"epsilon"`
	Server   string  `toml:"server"`
	Joins    int     `toml:"joins"`
	Leaves   int     `toml:"leaves"`
	Crash    []struct {
		Round int    `toml:"round"`
		At    string `toml:"at"`
		Back  int    `toml:"back"`
	} `toml:"crash"`
}

// span is a time as text.
type span struct{ time.Duration }

func (s *span) UnmarshalText(text []byte) (err error) {
	s.Duration, err = time.ParseDuration(string(text))
	return err
}

// IsScenario reports whether a text has the form of scenarios, which had data, parties and links
// at the top.
func IsScenario(text []byte) bool {
	var tree map[string]any
	if toml.Unmarshal(text, &tree) != nil {
		return false
	}
	return slices.ContainsFunc([]string{"data", "party", "link", "recovery", "leaving"},
		func(key string) bool { _, ok := tree[key]; return ok })
}

// Scenario reads a scenario as a job, with notes on what is written otherwise or means something
// else. It fails with all mistakes that there are, each a [job.ConfigError]; those in values name
// the job's fields.
func Scenario(name string, text []byte) (j *job.Job, notes []string, err error) {
	s := &scenario{}
	if err := decode(name, text, s); err != nil {
		return nil, nil, err
	}
	c := &converter{s: s, j: &job.Job{
		Name: plain(s.Name), About: s.About, Rounds: s.Rounds, Seed: s.Seed,
	}}
	for _, part := range []func(){c.run, c.training, c.sum, c.privacy, c.links, c.parties} {
		part()
	}
	if err := c.j.Validate(); err != nil {
		for _, e := range job.Errors(err) {
			e.File = name
		}
		return nil, c.notes, err
	}
	return c.j, c.notes, nil
}

// decode reads TOML into a struct; keys that it does not have, in that case, are refused.
func decode(name string, text []byte, into any) error {
	var all []error
	for _, e := range strict.TOML(text, into) {
		found := &job.ConfigError{File: name, Line: e.Line, Reason: e.Reason, Err: e,
			Advice: "write it as it was written before there were jobs, or as a job"}
		if e.Meant != "" { // which the decoder takes for the field
			found.Line = (&conversion{text: text}).lineOf(withoutNumbers(e.Key))
			found.Reason, found.Advice = "there is no key "+e.Key, "did you mean "+e.Meant+"?"
		}
		all = append(all, found)
	}
	return errors.Join(all...)
}

// plain makes a name of a job, or of a group, of any text.
func plain(name string) string {
	out := strings.Map(func(r rune) rune {
		if r < 0x80 && strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"+
			"0123456789._-", r) {
			return r
		}
		return '-'
	}, name)
	out = strings.TrimLeft(out, "._-")
	return out[:min(len(out), 60)]
}

// converter makes a job of a scenario.
type converter struct {
	s     *scenario
	j     *job.Job
	notes []string
}

func (c *converter) note(format string, a ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, a...))
}

func (c *converter) run() {
	s, w := c.s, &c.j.World
	if c.j.Name != s.Name {
		c.note("the name %q is %q: letters, digits, dots, dashes and underscores", s.Name, c.j.Name)
	}
	c.j.Time.StepTime = s.StepTime.Duration
	if s.StepTime.Duration == 0 {
		c.j.Time.StepTime = 1000 * time.Hour
		c.note("without step_time a step waited forever: time.step_time is 1000h; left out it would be " +
			"30s")
	}
	w.Data = job.Data{Set: s.Data.Set, Rows: s.Data.Rows, Draw: s.Data.Draw, Test: s.Data.Test,
		Most: s.Data.Most}
	if w.Data.Draw == "" {
		w.Data.Draw = "fixed" // and not by a split
	}
	w.Tolerance = s.Leaving.Tolerance
	w.SubtractOwn = s.Privacy.SubtractOwn
}

func (c *converter) training() {
	s, t := &c.s.Training, &c.j.Training
	c.j.Model.Name = s.Model
	if s.Model == "" {
		c.j.Model.Name = "logistic"
		if slices.Contains([]string{"digits", "mnist", "fashion-mnist"}, c.s.Data.Set) {
			c.j.Model.Name = "softmax"
		}
		c.note("model.name is written: it used to follow from the data")
	}
	t.Lambda, t.Steps, t.Rate = s.Lambda, s.Steps, s.Rate
	if t.Steps == 0 {
		t.Steps = 50
		c.note("training.steps is 50: a job's own default is one pass over the rows")
	}
	if t.Rate == 0 {
		t.Rate = 1
		c.note("training.rate is 1: a job's own default is 0.1")
	}
	switch {
	case s.Algorithm == "fresh" && c.noise() && !c.reference():
		t.Restart = true
		c.note(`algorithm = "fresh" is training.restart; with noise parties submit the update from the ` +
			"round's model, and not their weights")
	case s.Algorithm == "fresh":
		t.Restart, t.Submit = true, "weights"
		c.note(`algorithm = "fresh" is training.restart with training.submit = "weights"`)
	}
}

func (c *converter) sum() {
	s, u, w := &c.s.Sum, &c.j.Sum, &c.j.World
	w.Topology, w.Servers, w.Drop = s.Topology, s.Servers, s.Drop
	w.Fidelity = map[string]string{"private": "messages", "clear": "ring"}[s.Kind]
	switch s.Kind {
	case "private":
	case "clear":
		c.note(`kind = "clear" is world.fidelity = "ring": sums were of whole numbers there too`)
	default:
		w.Fidelity = s.Kind
	}
	u.Sparse, u.Degree = s.Degree > 0, s.Degree
	u.Range, u.FractionBits = s.Range, s.FractionBits
	if c.noise() && !c.reference() {
		u.Range, u.FractionBits = 0, 0 // which were of no use
	}
	r := c.s.Recovery
	if r == nil {
		return
	}
	c.j.Parties.DropOut, u.Adversary, u.Classical = r.DropOut, r.Adversary, r.Classical
	if r.DropOut == 0 {
		c.j.Parties.DropOut = 0.2
		c.note("parties.drop_out is 0.2: a job's own default is 0, at which sums do not recover")
	}
}

func (c *converter) noise() bool { return c.s.Privacy.Noise != "" && c.s.Privacy.Noise != "none" }

func (c *converter) reference() bool {
	return slices.Contains([]string{"staircase", "continuous-laplace", "continuous-gaussian"},
		c.s.Privacy.Noise)
}

func (c *converter) privacy() {
	s, p := &c.s.Privacy, &c.j.Privacy
	c.j.Parties.Colluders = s.Colluders
	if c.reference() {
		c.j.World.Reference = job.Reference{Law: s.Noise, Epsilon: s.Epsilon, Alpha: s.Alpha}
		c.note("%s is world.reference.law: it is for a simulation only", s.Noise)
		if s.Delta != 0 && s.Delta != 1e-5 {
			c.note("privacy.delta is left out: reference laws are reported at 1e-5")
		}
		return
	}
	p.Noise, p.Epsilon = s.Noise, s.Epsilon
	for _, one := range c.s.Party {
		if e := one.Epsilon; e > 0 && (p.Epsilon == 0 || e < p.Epsilon) {
			p.Epsilon = e
			c.note("privacy.epsilon is %v, that of %q: what a sum with it tells of it takes the noise "+
				"that all would have with its budget", e, one.Name)
		}
	}
	if !c.noise() {
		return
	}
	p.Delta, p.Clip, p.Bits = s.Delta, s.Clip, s.Bits
	if p.Clip == 0 {
		p.Clip = 1
		c.note("privacy.clip is 1: a job has to state it")
	}
}

func (c *converter) links() {
	for _, l := range c.s.Link {
		c.j.World.Link = append(c.j.World.Link, job.Link{Between: l.Between, Latency: l.Latency.Duration,
			Jitter: l.Jitter.Duration, Loss: l.Loss, Bandwidth: l.Bandwidth})
	}
}

func (c *converter) parties() {
	for _, p := range c.s.Party {
		name := plain(p.Name)
		if name != p.Name {
			c.note("the party %q is %q: letters, digits, dots, dashes and underscores", p.Name, name)
		}
		group := job.Group{Name: name, Count: p.Count}
		w := job.WorldParty{Name: name, Place: p.Place, Server: p.Server, Rows: p.Rows, Slow: p.Slow,
			Straggle: p.Straggle, Joins: p.Joins, Leaves: p.Leaves}
		if p.Place == "" && name != p.Name {
			w.Place = p.Name
		}
		for _, d := range p.Compute {
			w.Compute = append(w.Compute, d.Duration)
		}
		if c.reference() {
			w.ReferenceEpsilon = p.Epsilon
		}
		for _, x := range p.Crash {
			w.Crash = append(w.Crash, job.Crash{Round: x.Round, At: x.At, Back: x.Back})
		}
		c.j.Parties.Group = append(c.j.Parties.Group, group)
		if said := (&job.Job{World: job.World{Party: []job.WorldParty{w}}}); !only(said, name) {
			c.j.World.Party = append(c.j.World.Party, w)
		}
	}
}

// only reports whether a world says nothing of its party but its name.
func only(j *job.Job, name string) bool {
	text, err := j.MarshalText()
	return err == nil && string(text) == fmt.Sprintf("\n[[world.party]]\nname = %q\n", name)
}
