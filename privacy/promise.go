package privacy

import (
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
)

// Promise says how many shares of noise are in a sum for certain, and whose word that is: the
// configuration's of the session that takes the sums, or the caller's alone, see [Assumed]. Two
// Promises with the same counts are equal.
type Promise struct {
	parties   int  // the most in a sum
	shares    int  // the most shares of noise in a sum: of parties, or of members
	honest    int  // the fewest that none of the others can take out
	colluders int  // of those that share the noise
	members   bool // of a committee share the noise
	failure   float64

	server    accounting.Server // 0: the caller's word
	sparse    bool
	committee accounting.Committee // of one-message sums
}

// servers are the adversaries of an ε, by those of sessions.
var servers = map[protocol.Adversary]accounting.Server{
	protocol.CheatingServer:      accounting.CheatingServer,
	protocol.SemiMaliciousServer: accounting.SemiMaliciousServer,
	protocol.CuriousServer:       accounting.CuriousServer,
}

// Statement returns what an ε of sums is about that hold the promise, for a unit.
func (p Promise) Statement(u accounting.Unit) accounting.Statement {
	if p.server == 0 {
		return accounting.Calculated(u)
	}
	t := accounting.Terms{Unit: u, Server: p.server, Colluders: accounting.Colluders(p.colluders)}
	if p.sparse {
		t.Assumes = accounting.AssumesGraph
	}
	if p.committee.Members > 0 {
		t.Committees = []accounting.Committee{p.committee}
	}
	if p.members {
		t.Colluders = accounting.AnyColluders
	}
	s, err := t.Statement()
	if err != nil {
		panic("privacy: " + err.Error()) // of terms that a configuration was checked for
	}
	return s
}

// mostFailure is the most that a graph may fail with in a round.
const mostFailure = 0x1p-40

// maxParties is the most that package noise divides a law among.
const maxParties = 1 << 20

// OfSession returns what the sums of a session hold: noise is shared by the parties. It fails with
// a [ConfigError] for a configuration that is not valid, and for a sparse graph on which too few
// shares are certain.
func OfSession(c *protocol.Config) (Promise, error) {
	p, err := c.Promise()
	switch {
	case err != nil:
		return Promise{}, because("Promise", err)
	case p.Sparse && p.Adversary != protocol.CuriousServer:
		return Promise{}, bad("Promise.Adversary", "use the complete graph, or name a curious server",
			"on a sparse graph a %v may take a sum of few neighbours, which have few shares of the noise",
			p.Adversary)
	case p.Failure > mostFailure:
		return Promise{}, bad("Promise.Failure", "use more neighbours, or the complete graph",
			"the honest parties of a sum may be in parts with a probability of %.3g a round", p.Failure)
	}
	return Promise{parties: p.Parties, shares: p.Parties, honest: p.Honest, colluders: p.Colluders,
		failure: p.Failure, server: servers[p.Adversary], sparse: p.Sparse}, nil
}

// OfOneshot returns what one-message sums hold: noise is shared by the parties or, with
// CommitteeNoise, by the members, of whom Faults may be silent and as many known to a cheating
// party. Parties then add noise of their own to hide keys, which protects no vector: see package
// oneshot. It takes a configuration without its noise, and fails with a [ConfigError].
func OfOneshot(c *oneshot.Config) (Promise, error) {
	p, err := c.Promise()
	if err != nil {
		return Promise{}, because("Promise", err)
	}
	committee := accounting.Committee{List: p.Committee, Members: p.Members, InLeague: p.InLeague}
	if p.Dealt {
		return Promise{parties: p.Parties, shares: p.Members, honest: p.Members - p.Faults - p.InLeague,
			colluders: p.InLeague, members: true, server: accounting.CheatingServer,
			committee: committee}, nil
	}
	return Promise{parties: p.Parties, shares: p.Parties, honest: p.Honest, colluders: p.Colluders,
		server: accounting.CheatingServer, committee: committee}, nil
}

// Unnamed returns the promise for a committee whose members are still to be named: those of a job
// that is tried out are made up.
func (p Promise) Unnamed() Promise {
	p.committee.List = [32]byte{}
	return p
}

// Assumed takes the caller's word that a sum is of at most so many parties, each with a share of
// the noise, and that at least so many of these shares are honest parties'. It is for calculators:
// whatever takes sums has a configuration that says so.
func Assumed(parties, honest int) Promise {
	return Promise{parties: parties, shares: parties, honest: honest}
}

// Honest returns how many shares of the noise are in every sum for certain.
func (p Promise) Honest() int { return p.honest }

// Serves reports whether noise that was settled for p is right for sums that promise q. Which
// members are in a committee does not matter for that.
func (p Promise) Serves(q Promise) bool {
	return p.Unnamed() == q.Unnamed()
}

// check refuses what nobody can promise.
func (p Promise) check() error {
	switch {
	case p == Promise{}:
		return bad("Promise", "use OfSession, OfOneshot or Assumed", "nothing says who is in a sum")
	case p.parties < 1 || p.parties > maxParties:
		return bad("Promise.Parties", "", "%d is outside 1 to %d", p.parties, maxParties)
	case p.honest < 1 || p.honest > p.shares:
		return bad("Promise.Honest", "", "%d is outside 1 to %d", p.honest, p.shares)
	}
	return nil
}
