package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/simulation/clock"
)

// ErrScenario: a scenario cannot be simulated. See [FieldError].
var ErrScenario = errors.New("scenario: it cannot be simulated")

// FieldError names what of a scenario is unusable. It is [ErrScenario].
type FieldError struct {
	// Path is the field in the declarative form, such as party.2.leaves, lists counted
	// from 0.
	Path   string
	Reason string
	Advice string // what to do
	Err    error  // nil, or the error behind it
}

func (e *FieldError) Error() string {
	text := fmt.Sprintf("%v: %s: %s", ErrScenario, e.Path, e.Reason)
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

// Is makes errors.Is(err, ErrScenario) true.
func (e *FieldError) Is(target error) bool { return target == ErrScenario }

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

func bad(path, advice, format string, a ...any) error {
	return &FieldError{Path: path, Reason: fmt.Sprintf(format, a...), Advice: advice}
}

// Validate returns a [FieldError] for the first field that is out of range or does not
// go with the others. Whether the data suffice only Run finds.
func (s Scenario) Validate() error {
	linked := map[[2]string]bool{}
	for k, l := range s.Links { // before anybody asks what lies between two places
		path := fmt.Sprintf("link.%d", k)
		if err := l.validate(path); err != nil {
			return err
		}
		a, b := l.Between[0], l.Between[1]
		if linked[[2]string{a, b}] {
			return bad(path+".between", "leave one of the two out", "there are two links between %q and %q",
				a, b)
		}
		linked[[2]string{a, b}], linked[[2]string{b, a}] = true, true
	}
	for k, p := range s.Parties { // before anybody asks how many there are
		if p.Count < 0 || p.Count > MaxParties {
			return bad(fmt.Sprintf("party.%d.count", k), fmt.Sprintf("use 1 to %d", MaxParties),
				"%d is no number of parties", p.Count)
		}
	}
	own := s.WithDefaults()
	for _, check := range []func() error{own.checkRun, own.checkData, own.checkTraining, own.checkSum,
		own.checkPrivacy, own.checkParties, own.checkPlaces} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// check refuses a time that is none, or below 0.
func (d *Duration) check(path string) error {
	switch {
	case d.unread != "":
		return bad(path, `write it as in "300ms" or "1.5s"`, "%.40q is no time", d.unread)
	case d.Duration < 0:
		return bad(path, "use 0s or more", "nothing takes %v", d.Duration)
	case d.Duration > MaxTime:
		return bad(path, fmt.Sprintf("use up to %v", MaxTime), "%v is longer than can be simulated",
			d.Duration)
	}
	return nil
}

func (l *Link) validate(path string) error {
	if err := l.Latency.check(path + ".latency"); err != nil {
		return err
	}
	if err := l.Jitter.check(path + ".jitter"); err != nil {
		return err
	}
	if len(l.Between) != 2 || l.Between[0] == "" || l.Between[1] == "" {
		return bad(path+".between", `name two, as in ["Oslo", "server"]`, "a link is between two places")
	}
	link := clock.Link{
		Latency:   l.Latency.Duration,
		Jitter:    l.Jitter.Duration,
		Loss:      l.Loss,
		Bandwidth: l.Bandwidth,
	}
	if err := link.Validate(); err != nil {
		field := ".loss"
		if l.Loss >= 0 && l.Loss <= .99 {
			field = ".bandwidth"
		}
		return bad(path+field, "use a loss of 0 to 0.99, a bandwidth of 0 or more", "%v is out of range",
			map[string]float64{".loss": l.Loss, ".bandwidth": l.Bandwidth}[field])
	}
	return nil
}

func (s *Scenario) checkRun() error {
	switch {
	case s.Name == "" || len(s.Name) > 100:
		return bad("name", "use 1 to 100 characters", "a scenario has a name")
	case s.Rounds < 1 || s.Rounds > MaxRounds:
		return bad("rounds", fmt.Sprintf("use 1 to %d", MaxRounds), "%d is no number of rounds", s.Rounds)
	}
	return s.StepTime.check("step_time")
}

// oneOf fails unless a value is one of those allowed.
func oneOf(path, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return bad(path, "use "+strings.Join(allowed, ", "), "there is no %q", value)
}

func (s *Scenario) checkData() error {
	d := &s.Data
	switch {
	case d.Set == "":
		return bad("data.set", "name one, such as digits", "there are no data")
	case d.Rows < 0 || d.Rows > MaxRows:
		return bad("data.rows", fmt.Sprintf("use 1 to %d", MaxRows), "%d is no number of rows", d.Rows)
	case !(d.Test > 0 && d.Test < 1):
		return bad("data.test", "use a share such as 0.25", "%v is outside 0 to 1", d.Test)
	case d.Most < 0:
		return bad("data.most", "use 0 for all", "%d is no number of rows", d.Most)
	}
	return oneOf("data.draw", d.Draw, DrawFixed, DrawNew, DrawGrowing, DrawAnew)
}

func (s *Scenario) checkTraining() error {
	t := &s.Training
	if err := oneOf("training.algorithm", t.Algorithm, Averaging, Fresh); err != nil {
		return err
	}
	if t.Model != "" {
		if err := oneOf("training.model", t.Model, "logistic", "softmax"); err != nil {
			return err
		}
	}
	switch {
	case !(t.Lambda >= 0) || math.IsInf(t.Lambda, 0):
		return bad("training.lambda", "use 0 or a small number", "%v is no regularisation", t.Lambda)
	case t.Steps < 1 || t.Steps > 1e6:
		return bad("training.steps", "use 1 to 1000000", "%d is no number of steps", t.Steps)
	case !(t.Rate > 0) || math.IsInf(t.Rate, 0):
		return bad("training.rate", "use a number above 0", "%v is no rate", t.Rate)
	}
	return nil
}

func (s *Scenario) checkSum() error {
	u := &s.Sum
	if err := oneOf("sum.kind", u.Kind, Private, Crowd, Clear); err != nil {
		return err
	}
	if err := oneOf("sum.topology", u.Topology, ServerStar, Serverless); err != nil {
		return err
	}
	n := s.Size()
	switch {
	case u.Kind != Private && (u.Topology == Serverless || len(u.Servers) > 1):
		return bad("sum.kind", "use private", "serverless and several servers are private sums")
	case u.Topology == Serverless && len(u.Servers) > 1:
		return bad("sum.servers", "leave one of the two out", "there are no servers without servers")
	case u.Degree < 0 || u.Degree == 1 || u.Degree >= n && u.Degree > 0:
		return bad("sum.degree", fmt.Sprintf("use 2 to %d, or 0 for all", n-1),
			"%d neighbours of %d parties", u.Degree, n)
	case u.Degree%2 == 1 && n%2 == 1:
		return bad("sum.degree", "use an even number", "%d neighbours of %d parties do not add up",
			u.Degree, n)
	case u.Degree > 0 && u.Kind == Private && s.Recovery == nil:
		return bad("sum.degree", "add [recovery]", "a sparse graph takes recovery")
	case !(u.Drop >= 0 && u.Drop < 1):
		return bad("sum.drop", "use a share such as 0.05", "%v is outside 0 to 1", u.Drop)
	case u.Drop > 0 && u.Kind != Crowd:
		return bad("sum.drop", "use [[party.crash]] there", "it is for crowds")
	case u.Drop > 0 && s.Recovery == nil:
		return bad("sum.drop", "add [recovery]", "without recovery nobody may drop out")
	case u.Drop > 0 && int(u.Drop*float64(n)) > n-s.fewest(n):
		return bad("sum.drop", "use at most that, or raise recovery.drop_out",
			"of %d parties %d would drop out of each round, and %d may", n, int(u.Drop*float64(n)),
			n-s.fewest(n))
	case n > MaxParties:
		return bad("party", fmt.Sprintf("use up to %d", MaxParties), "%d parties are too many", n)
	case u.Kind == Private && n > MaxPrivate:
		return bad("sum.kind", `use "crowd"`, "the machines of %d parties are too many", n)
	case !(u.Range > 0) || math.IsInf(u.Range, 0):
		return bad("sum.range", "use a number above 0", "%v bounds nothing", u.Range)
	case u.FractionBits < 1 || u.FractionBits > 40:
		return bad("sum.fraction_bits", "use 1 to 40", "%d is out of range", u.FractionBits)
	}
	if r := s.Recovery; r != nil {
		if err := oneOf("recovery.adversary", r.Adversary, "cheating", "semi-malicious",
			"curious"); err != nil {
			return err
		}
		if !(r.DropOut >= 0 && r.DropOut < 1) {
			return bad("recovery.drop_out", "use a share such as 0.2", "%v is outside 0 to 1", r.DropOut)
		}
		if u.Degree > 0 && r.Adversary == "cheating" {
			return bad("recovery.adversary", "use semi-malicious or curious",
				"a sparse graph does not withstand a cheating server")
		}
	}
	return nil
}

func (s *Scenario) checkPrivacy() error {
	p := &s.Privacy
	if p.Noisy() && !p.Reference() {
		if err := new(accounting.Family).UnmarshalText([]byte(p.Noise)); err != nil {
			return &FieldError{Path: "privacy.noise", Reason: fmt.Sprintf("there is no noise %q", p.Noise),
				Advice: "use discrete-gaussian, skellam, discrete-laplace, staircase, continuous-laplace, " +
					"continuous-gaussian or none", Err: err}
		}
	}
	switch {
	case !p.Noisy() && p.Epsilon != 0:
		return bad("privacy.epsilon", "name the noise", "a budget takes noise to keep")
	case p.SubtractOwn && !p.Noisy():
		return bad("privacy.subtract_own", "name the noise", "there is none to subtract")
	case p.Noisy() && !(p.Epsilon > 0) && !s.ownBudgets() || p.Epsilon < 0 ||
		math.IsNaN(p.Epsilon) || math.IsInf(p.Epsilon, 0):
		return bad("privacy.epsilon", "use a number above 0, such as 1", "%v is no budget", p.Epsilon)
	case !(p.Delta > 0 && p.Delta < 1):
		return bad("privacy.delta", "use a small number such as 1e-5", "%v is no probability", p.Delta)
	case !(p.Clip >= 0x1p-100 && p.Clip <= 0x1p100):
		return bad("privacy.clip", "use a number above 0, such as 1", "%v bounds no norm", p.Clip)
	case p.Bits < 8 || p.Bits > 60:
		return bad("privacy.bits", "use 8 to 60", "%d bits are out of range", p.Bits)
	case p.Colluders < 0 || p.Colluders > s.Size()-2:
		return bad("privacy.colluders", "use 0 to the number of parties less 2", "%d of %d collude",
			p.Colluders, s.Size())
	case p.Reference() && !(p.Alpha > 0):
		return bad("privacy.alpha", "set it, or training.lambda",
			"the sensitivity of the reference laws takes a regularisation above 0")
	case !(s.Leaving.Tolerance >= 0) || math.IsInf(s.Leaving.Tolerance, 0):
		return bad("leaving.tolerance", "use 0 or more", "%v is no distance", s.Leaving.Tolerance)
	case s.Sum.Kind == Crowd && (s.Leaving.Tolerance > 0 || p.SubtractOwn || p.Reference()):
		return bad("sum.kind", "use private or clear",
			"a crowd neither leaves nor subtracts, and has no reference laws")
	}
	return nil
}

// ownBudgets reports whether each party has an ε of its own.
func (s *Scenario) ownBudgets() bool {
	return !slices.ContainsFunc(s.Parties, func(p Party) bool { return p.Epsilon == 0 })
}

func (s *Scenario) checkParties() error {
	if len(s.Parties) == 0 {
		return bad("party", "add [[party]]", "there are none")
	}
	counts := map[string]int{}
	first := 0 // how many there are from the first round on
	for k := range s.Parties {
		p, path := &s.Parties[k], fmt.Sprintf("party.%d", k)
		if counts[p.Name] > 0 {
			return bad(path+".name", "use another", "%q is taken", p.Name)
		}
		counts[p.Name] = p.Count
		if err := s.checkParty(path, p); err != nil {
			return err
		}
		if s.Parties[k].Joins == 1 {
			first += s.Parties[k].Count
		}
	}
	if first < 2 {
		return bad("party", "have at least two join in round 1", "a sum takes 2, and there are %d at "+
			"the beginning", first)
	}
	for k, p := range s.Parties { // the parties of a count are called name-1, name-2, …
		at := strings.LastIndexByte(p.Name, '-')
		number, err := strconv.Atoi(p.Name[at+1:])
		if many := counts[p.Name[:max(0, at)]]; at > 0 && err == nil && many > 1 && p.Count == 1 &&
			number >= 1 && number <= many {
			return bad(fmt.Sprintf("party.%d.name", k), "use another", "%q is one of the %d called %q",
				p.Name, many, p.Name[:at])
		}
	}
	if s.Recovery == nil || s.Sum.Kind == Clear {
		return nil
	}
	for _, n := range s.sizes() {
		if err := s.checkThreshold(n); err != nil {
			return err
		}
	}
	return nil
}

// sizes are how many parties there are at one time or another, but for those that
// converge.
func (s *Scenario) sizes() (list []int) {
	rounds := map[int]bool{1: true}
	for _, p := range s.Parties {
		rounds[p.Joins], rounds[p.Leaves+1] = true, true
	}
	for round := range rounds {
		n := 0
		for _, p := range s.Parties {
			if p.Joins <= round && (p.Leaves == 0 || p.Leaves >= round) {
				n += p.Count
			}
		}
		if n >= 2 && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

func (s *Scenario) checkParty(path string, p *Party) error {
	switch {
	case p.Name == "" || len(p.Name) > 80:
		return bad(path+".name", "use 1 to 80 characters", "a party has a name")
	case p.Rows < 1 || p.Rows > MaxRows:
		return bad(path+".rows", fmt.Sprintf("use 1 to %d, or set data.rows", MaxRows),
			"%d is no number of rows", p.Rows)
	case !(p.Slow > 0 && p.Slow <= 1e6):
		return bad(path+".slow", "use a factor such as 10, up to 1e6", "%v is no factor", p.Slow)
	case !(p.Straggle >= 0 && p.Straggle <= 1):
		return bad(path+".straggle", "use a share of rounds such as 0.1", "%v is outside 0 to 1",
			p.Straggle)
	case p.Straggle > 0 && p.Slow == 1:
		return bad(path+".straggle", "set slow, such as 10", "nothing says how much it is slowed down")
	case s.Privacy.Noisy() && (!(p.Epsilon > 0) || math.IsInf(p.Epsilon, 0)):
		return bad(path+".epsilon", "use a number above 0", "%v is no budget", p.Epsilon)
	case !s.Privacy.Noisy() && p.Epsilon != 0:
		return bad(path+".epsilon", "name privacy.noise", "a budget takes noise to keep")
	case p.Joins < 1 || p.Joins > s.Rounds:
		return bad(path+".joins", fmt.Sprintf("use 1 to %d", s.Rounds), "round %d is never held", p.Joins)
	case p.Leaves < 0:
		return bad(path+".leaves", "use a round, or 0 to stay", "%d is no round", p.Leaves)
	case p.Leaves > 0 && p.Leaves < p.Joins:
		return bad(path+".leaves", fmt.Sprintf("use %d or later", p.Joins),
			"it leaves after round %d, before it joins in round %d", p.Leaves, p.Joins)
	case s.Sum.Kind == Crowd && (p.Joins > 1 || p.Leaves > 0 || len(p.Crashes) > 0):
		return bad(path+".joins", "use a private sum, or sum.drop",
			"all of a crowd are there all the time")
	}
	for k := range p.Compute {
		if err := p.Compute[k].check(fmt.Sprintf("%s.compute.%d", path, k)); err != nil {
			return err
		}
		if float64(p.Compute[k].Duration)*p.Slow > float64(MaxTime) {
			return bad(path+".slow", fmt.Sprintf("have it work up to %v", MaxTime),
				"%v times %v is longer than can be simulated", p.Slow, p.Compute[k].Duration)
		}
	}
	for k, c := range p.Crashes {
		where := fmt.Sprintf("%s.crash.%d", path, k)
		switch {
		case s.Sum.Kind != Private:
			return bad(where, "use a private sum", "a sum that is %s has no steps", s.Sum.Kind)
		case s.Recovery == nil || s.StepTime.Duration == 0:
			return bad(where, "add [recovery] and step_time",
				"without recovery and a time limit nobody may drop out")
		case c.Round < p.Joins || c.Round > s.Rounds || p.Leaves > 0 && c.Round > p.Leaves:
			return bad(where+".round", "use a round that it is in", "it is not in round %d", c.Round)
		case c.Back <= c.Round:
			return bad(where+".back", "use a later round", "it is back before round %d, and drops out of %d",
				c.Back, c.Round)
		}
		if err := oneOf(where+".at", c.At, AtBegin, AtSubmit, AtSign, AtReveal); err != nil {
			return err
		}
	}
	return nil
}

// fewest is how many of so many parties must be in a sum.
func (s *Scenario) fewest(n int) int {
	if s.Recovery == nil {
		return n
	}
	return max(1, n-int(math.Floor(s.Recovery.DropOut*float64(n)+1e-9)))
}

// errThreshold: too few parties may be left to rebuild secrets that colluders cannot.
var errThreshold = errors.New("scenario: fewer may be in a sum than it takes to unmask one")

// checkThreshold sees that the thresholds can be kept with those there at first.
func (s *Scenario) checkThreshold(n int) error {
	if s.Sum.Kind != Crowd {
		return s.checkSession(n, s.Size())
	}
	// Too many for a roster; Threshold is the least that is safe.
	if config := s.config(n, n); s.fewest(n) < max(config.Recovery.Threshold, config.Colluders)+1 {
		return tooFew(n, n, errThreshold)
	}
	return nil
}

// checkSession sees that n of the parties of a roster can have a session.
func (s *Scenario) checkSession(n, roster int) error {
	config, err := s.trial(n, roster)
	if err == nil {
		err = config.Validate()
	}
	if err != nil {
		return tooFew(n, roster, err)
	}
	return nil
}

func tooFew(n, roster int, err error) error {
	of := ""
	if n < roster {
		of = fmt.Sprintf(" of the %d in all", roster)
	}
	return &FieldError{
		Path:   "recovery",
		Reason: fmt.Sprintf("%d parties%s are fewer than the thresholds take: %v", n, of, err),
		Advice: "bring more parties, have more of them join in round 1, allow fewer colluders or a " +
			"smaller drop_out, or name a weaker adversary",
		Err: err,
	}
}

// checkPlaces sees that whoever exchanges messages has a link.
func (s *Scenario) checkPlaces() error {
	for k, p := range s.Parties {
		path := fmt.Sprintf("party.%d.server", k)
		switch {
		case p.Server == "":
		case s.Sum.Topology == Serverless:
			return bad(path, "leave it out", "there are no servers")
		case !slices.Contains(s.Sum.Servers, p.Server):
			return bad(path, "use one of sum.servers", "there is no server in %q", p.Server)
		}
	}
	if len(s.Links) == 0 {
		return nil // no latency anywhere
	}
	net, err := s.network()
	if err != nil {
		return bad("link", "", "%v", err)
	}
	linked := func(a, b string) bool {
		_, ok := net.Link(a, b)
		return ok
	}
	for k, p := range s.Parties {
		path := fmt.Sprintf("party.%d", k)
		if s.Sum.Topology == Serverless {
			for _, q := range s.Parties {
				if !linked(p.Place, q.Place) {
					return bad(path+".place", fmt.Sprintf("add a [[link]] between %q and %q", p.Place, q.Place),
						"without a server parties send to each other, and there is no latency between the two")
				}
			}
			continue
		}
		if !slices.ContainsFunc(s.Sum.Servers, func(at string) bool { return linked(p.Place, at) }) {
			return bad(path+".place", fmt.Sprintf("add a [[link]] between %q and %q", p.Place,
				s.Sum.Servers[0]), "%q has no latency to a server", p.Place)
		}
		if p.Server != "" && !linked(p.Place, p.Server) {
			return bad(path+".server", fmt.Sprintf("add a [[link]] between %q and %q", p.Place, p.Server),
				"%q has no latency to its server", p.Place)
		}
	}
	for _, a := range s.Sum.Servers {
		for _, b := range s.Sum.Servers {
			if !linked(a, b) {
				return bad("sum.servers", fmt.Sprintf("add a [[link]] between %q and %q", a, b),
					"servers tell each other their sums")
			}
		}
	}
	return nil
}
