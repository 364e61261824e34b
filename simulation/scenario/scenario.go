package scenario

import (
	"time"
)

// Scenario declares a federation to simulate: who has which rows where, how they train,
// how sums are taken and what noise is in them. Its zero values are useful but for Name,
// Rounds, Data and Parties. Tags are the names in the declarative form; those that
// a federation of the service has too mean the same there.
type Scenario struct {
	Name   string `toml:"name"`
	About  string `toml:"about"` // a sentence or two
	Seed   uint64 `toml:"seed"`
	Rounds int    `toml:"rounds"` // 1 to MaxRounds; what is accounted, even if all leave earlier
	// StepTime is how long the server waits in each step for those who are there and have not
	// answered, less for those that have let it pass before; 0: for ever.
	StepTime Duration `toml:"step_time"`

	Data     Data      `toml:"data"`
	Training Training  `toml:"training"`
	Sum      Sum       `toml:"sum"`
	Recovery *Recovery `toml:"recovery"` // nil: every party must submit in every round
	Privacy  Privacy   `toml:"privacy"`
	Leaving  Leaving   `toml:"leaving"`
	Links    []Link    `toml:"link"`
	Parties  []Party   `toml:"party"`
}

// Limits of scenarios.
const (
	MaxRounds  = 100_000
	MaxParties = 1_000_000 // of a crowd
	MaxPrivate = 1_000     // whose protocol machines run
	MaxRows    = 10_000_000
	MaxTime    = 1000 * time.Hour // of a link, a step and a round's work
)

// Data says which rows there are, and who has them when.
type Data struct {
	Set  string `toml:"set"`  // as a loader knows it
	Rows int    `toml:"rows"` // of a party, or new ones of each round; up to MaxRows
	Draw string `toml:"draw"` // see below
	// Test is the share of rows that models are judged on, of sets that do not have such
	// rows apart; 0: 1/4.
	Test float64 `toml:"test"`
	// Most is how many rows of the set are used, drawn by Seed; 0: all.
	Most int `toml:"most"`
}

// Values of Data.Draw.
const (
	DrawFixed   = "fixed"   // Rows rows, the same in all rounds (the default)
	DrawNew     = "new"     // Rows new ones in each round, older ones are not used again
	DrawGrowing = "growing" // Rows more in each round
	DrawAnew    = "anew"    // in each round any Rows of all training rows, which others may have too
)

// Training is what parties do in a round.
type Training struct {
	// Model is "logistic", of two classes, or "softmax", of any number; empty: as the data
	// have it.
	Model  string  `toml:"model"`
	Lambda float64 `toml:"lambda"` // of L2 regularisation
	// Algorithm is "averaging" from the federated model (the thesis's Algorithm 2, the
	// default), or "fresh" from the first model on all rows of the round (its Algorithm 3).
	Algorithm string  `toml:"algorithm"`
	Steps     int     `toml:"steps"` // of gradient descent on all rows; 0: 50
	Rate      float64 `toml:"rate"`  // 0: 1
}

// The algorithms.
const (
	Averaging = "averaging"
	Fresh     = "fresh"
)

// Sum is how the parties' vectors are summed.
type Sum struct {
	// Kind is "private", by the machines of package protocol message by message (the
	// default), "crowd", by package crowd, or "clear".
	Kind string `toml:"kind"`
	// Topology is "server" (the default) or "serverless": every party takes the
	// server's part for itself, of the same submissions.
	Topology string `toml:"topology"`
	// Servers are the places of the servers; empty: one, in the place "server". Of
	// several each takes the sum of its own parties, and they tell each other theirs.
	Servers []string `toml:"servers"`
	// Degree is the neighbours of each party on a sparse graph; 0: all. A private sum takes
	// Recovery for it.
	Degree int `toml:"degree"`
	// Drop is the share of a crowd that drops out of each round and comes back.
	Drop float64 `toml:"drop"`
	// Range and FractionBits encode coordinates without noise; 0: 64 and 20.
	Range        float64 `toml:"range"`
	FractionBits int     `toml:"fraction_bits"`
}

// Kinds and topologies of sums.
const (
	Private    = "private"
	Crowd      = "crowd"
	Clear      = "clear"
	ServerStar = "server"
	Serverless = "serverless"
)

// Recovery lets rounds survive drop-outs.
type Recovery struct {
	Adversary string  `toml:"adversary"` // cheating (default), semi-malicious or curious
	DropOut   float64 `toml:"drop_out"`  // largest part that may be missing from a sum; 0: .2
	Classical bool    `toml:"classical"`
}

// Privacy is the noise in sums, and what it may spend of every party's privacy.
type Privacy struct {
	// Noise is a family, such as discrete-gaussian; or a reference law of the papers, never
	// for release: staircase, continuous-laplace or continuous-gaussian; empty or none: no
	// noise.
	Noise   string  `toml:"noise"`
	Epsilon float64 `toml:"epsilon"` // of a party over all rounds, unless it has its own
	Delta   float64 `toml:"delta"`   // 0: 1e-5
	Clip    float64 `toml:"clip"`    // L2 norm of a party's vector; 0: 1
	Bits    int     `toml:"bits"`    // of a coordinate in the ring; 0: 32
	// Colluders is how many parties may pool what they know with the server.
	Colluders int `toml:"colluders"`
	// SubtractOwn has each party take its own noise out of the federated model that it
	// keeps for itself. What others have is as private as before; nobody else may see it.
	SubtractOwn bool `toml:"subtract_own"`
	// Alpha is the regularisation in the sensitivity of reference laws, 2/(n·rows·Alpha);
	// 0: Training.Lambda.
	Alpha float64 `toml:"alpha"`
}

// The reference laws.
const (
	Staircase          = "staircase"
	ContinuousLaplace  = "continuous-laplace"
	ContinuousGaussian = "continuous-gaussian"
)

// Reference reports whether the noise is one that is never for release.
func (p *Privacy) Reference() bool {
	return p.Noise == Staircase || p.Noise == ContinuousLaplace || p.Noise == ContinuousGaussian
}

// Noisy reports whether there is noise.
func (p *Privacy) Noisy() bool { return p.Noise != "" && p.Noise != "none" }

// Leaving is leaving for good by convergence.
type Leaving struct {
	// Tolerance, if above 0, has a party leave when no weight of the federated model is
	// further than this from its own of the round. All are told who left.
	Tolerance float64 `toml:"tolerance"`
}

// Link is what lies between two places.
type Link struct {
	Between   []string `toml:"between"` // two places
	Latency   Duration `toml:"latency"`
	Jitter    Duration `toml:"jitter"`
	Loss      float64  `toml:"loss"`
	Bandwidth float64  `toml:"bandwidth"` // bytes a second; 0: no limit
}

// Party is one party, or Count of them alike.
type Party struct {
	Name  string `toml:"name"`
	Count int    `toml:"count"` // 0: 1
	Place string `toml:"place"`
	// Compute is how long it works in a round, of each round, the last for all later ones;
	// empty: as package cost has it.
	Compute []Duration `toml:"compute"`
	// Slow multiplies the time of its work, 0: 1; with Straggle, in that share of the
	// rounds only, drawn by Seed.
	Slow     float64 `toml:"slow"`
	Straggle float64 `toml:"straggle"`
	Rows     int     `toml:"rows"`    // in place of Data.Rows
	Epsilon  float64 `toml:"epsilon"` // in place of Privacy.Epsilon
	Server   string  `toml:"server"`  // its server's place; empty: the nearest
	Joins    int     `toml:"joins"`   // in which round, 0: from the first
	Leaves   int     `toml:"leaves"`  // after which round, 0: it does not
	Crashes  []Crash `toml:"crash"`
}

// Crash is a drop-out.
type Crash struct {
	Round int    `toml:"round"`
	At    string `toml:"at"`   // begin, submit (the default), sign or reveal
	Back  int    `toml:"back"` // the round before which it is back; 0: the next
}

// The moments of a crash: before the party gets the server's message of that step, but
// for AtSubmit, when it has been told of the round and does not submit.
const (
	AtBegin  = "begin"
	AtSubmit = "submit"
	AtSign   = "sign"
	AtReveal = "reveal"
)

// Duration is a time, as text as Go writes it, such as 300ms or 1.5s. It is no number, so
// that files cannot have one without its unit.
type Duration struct {
	time.Duration
	unread string // what was there and is no time: Validate knows where that was
}

// UnmarshalText reads a time. What is none Validate refuses.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration{Duration: v}
	if err != nil {
		d.unread = string(text)
	}
	return nil
}

// MarshalText writes the time as UnmarshalText reads it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// WithDefaults returns the scenario with its defaults filled in.
func (s Scenario) WithDefaults() Scenario {
	fill := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	number := func(p *float64, v float64) {
		if *p == 0 {
			*p = v
		}
	}
	fill(&s.Data.Draw, DrawFixed)
	number(&s.Data.Test, .25)
	fill(&s.Training.Algorithm, Averaging)
	number(&s.Training.Rate, 1)
	if s.Training.Steps == 0 {
		s.Training.Steps = 50
	}
	fill(&s.Sum.Kind, Private)
	fill(&s.Sum.Topology, ServerStar)
	if len(s.Sum.Servers) == 0 {
		s.Sum.Servers = []string{"server"}
	}
	number(&s.Sum.Range, 64)
	if s.Sum.FractionBits == 0 {
		s.Sum.FractionBits = 20
	}
	if s.Recovery != nil {
		r := *s.Recovery
		fill(&r.Adversary, "cheating")
		number(&r.DropOut, .2)
		s.Recovery = &r
	}
	number(&s.Privacy.Delta, 1e-5)
	number(&s.Privacy.Clip, 1)
	number(&s.Privacy.Alpha, s.Training.Lambda)
	if s.Privacy.Bits == 0 {
		s.Privacy.Bits = 32
	}
	parties := make([]Party, len(s.Parties))
	for k, p := range s.Parties {
		p.Crashes = append([]Crash(nil), p.Crashes...)
		if p.Count == 0 {
			p.Count = 1
		}
		fill(&p.Place, p.Name)
		number(&p.Slow, 1)
		if p.Rows == 0 {
			p.Rows = s.Data.Rows
		}
		number(&p.Epsilon, s.Privacy.Epsilon)
		if p.Joins == 0 {
			p.Joins = 1
		}
		for j := range p.Crashes {
			c := &p.Crashes[j]
			fill(&c.At, AtSubmit)
			if c.Back == 0 {
				c.Back = c.Round + 1
			}
		}
		parties[k] = p
	}
	s.Parties = parties
	return s
}

// Size returns how many parties there are.
func (s *Scenario) Size() int {
	n := 0
	for _, p := range s.Parties {
		n += max(1, p.Count)
	}
	return n
}
