package protocol

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/graph"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// A zero [Config.MaxSkip] stands for defaultMaxSkip, unless PerRound takes more
// or the work allows less.
const defaultMaxSkip = 1000

// mostDerivations bounds the work that one message can ask of a party: MaxSkip
// rounds, in each of which every chain makes a step of about a microsecond.
const mostDerivations = 1 << 27

// Config holds everything that the parties and the server agree on before a session. Every
// signature on a key covers it: sides that disagree refuse each other with [ErrSession].
// [Config.Digest] and the JSON form show where they differ.
type Config struct {
	// Label names a series of sessions, such as the deployment, in at most 255
	// bytes of UTF-8.
	Label string
	// Number distinguishes the sessions of a series. Use each number once: keys are signed for a
	// configuration, so keys of an earlier session with the same number could be replayed, which
	// would shut their owners out.
	Number uint64
	// Roster lists the parties.
	Roster *keyexchange.Roster
	// MinMembers is the fewest parties of the roster that may form a session, and with recovery the
	// fewest that may hold a round. All other numbers must be possible with that many parties. Zero
	// means the whole roster.
	MinMembers int
	// Layout gives the segments of every submission and their rings.
	Layout masking.Layout
	// Colluders is c, how many parties may pool what they know with the server: at
	// most N − 2, where N is the number of parties of a round. It is an absolute number, no matter who
	// takes part: with MinMembers set, choose it for the smallest session.
	Colluders int
	// Recovery lets rounds survive parties that drop out. With nil, a party that
	// does not submit costs the round.
	Recovery *Recovery
	// PerRound is how many members take part in each round, chosen by a public
	// schedule that all can compute. Zero means all of them; if there are fewer
	// members, all take part.
	PerRound int
	// Seed is public randomness for the schedule and the sparse graph, from a
	// source that the server does not control, drawn after the roster is fixed.
	// Zero means that both follow from the session's keys, which a cheating
	// server can try to grind.
	Seed [32]byte
	// MaxSkip is how many rounds a party may have missed when it joins the next, which bounds the
	// work that a round number can ask of it: MaxSkip times the parties with which a party may share
	// secrets is at most 2^27. A party that misses more rounds is out of the session for good, even
	// if it missed them because the schedule did not draw it: with PerRound, MaxSkip times PerRound
	// must be at least 14 times the parties of the roster, so that this happens to a party with a
	// probability below one in a million. Zero means 1000, more if PerRound takes more, and less if
	// that is too much work.
	MaxSkip uint64
	// Classical leaves ML-KEM out of the exchange of keys: an adversary that records a session and
	// breaks X25519 later then reads every input.
	Classical bool
}

// Adversary is the server that a session with recovery must withstand, together with the
// colluding parties.
type Adversary int

// The adversaries. The zero value is the strongest.
const (
	// CheatingServer sends anything to anyone at any time.
	CheatingServer Adversary = iota
	// SemiMaliciousServer is honest during set-up and cheats afterwards.
	SemiMaliciousServer
	// CuriousServer follows the protocol and reads everything that it receives.
	CuriousServer
)

// String returns the adversary's name.
func (a Adversary) String() string {
	switch a {
	case CheatingServer:
		return "cheating server"
	case SemiMaliciousServer:
		return "semi-malicious server"
	case CuriousServer:
		return "curious server"
	}
	return fmt.Sprintf("Adversary(%d)", int(a))
}

func (a Adversary) graph() graph.Adversary {
	switch a {
	case CuriousServer:
		return graph.Curious
	case SemiMaliciousServer:
		return graph.SemiMalicious
	}
	return graph.Cheating
}

// Recovery says how rounds survive drop-outs. The zero value is a complete graph
// that withstands a cheating server without colluders.
//
// With h the number of parties that hold shares of one party's secrets (its
// neighbours, itself not counted), N the number of parties that a round is held
// among, and c the colluders:
//
//	threshold     curious server:   t > c           default ⌊h/2⌋ + 1
//	              otherwise:       2t > h + c       default ⌊2h/3⌋ + 1
//	quorum        curious server:   q = t
//	              otherwise:       2q > N + c       q = ⌊(N+c)/2⌋ + 1
//	              sparse graph:     q = t neighbours
//
// The quorum is how many survivors must have signed one list of survivors before a party reveals
// anything. On a complete graph no two lists can reach a quorum, and every sum has at least
// MinSurvivors − c honest inputs. On a sparse graph no list is certified for all parties: against a
// server that cheats after set-up a sum is then sure to have only t − c + 1 honest inputs, and
// noise must be calibrated to that number (SPEC.md, security considerations).
type Recovery struct {
	// Adversary is the server to withstand.
	Adversary Adversary
	// Threshold is t, the shares that rebuild a secret. Zero means the default.
	Threshold int
	// MinSurvivors is the fewest parties in a sum: with fewer, honest parties refuse to unmask it.
	// Zero means the least that the thresholds allow, max(t+1, q): with the other defaults 68 of 100
	// parties, 8 of 10, and all of 4 or fewer. [Config.EffectiveRecovery] returns it.
	MinSurvivors int
	// Degree is the number of neighbours of each party in a sparse graph, from
	// [Parameters]. Zero means the complete graph. A sparse graph does not
	// withstand a cheating server, and must be sparse for MinMembers parties too.
	Degree int
	// CorruptNeighbours is the most colluders among the neighbours of any one party of a sparse graph,
	// from [Parameters]: there it takes the place of c above, but for the quorum. Zero means that all
	// Colluders may be.
	CorruptNeighbours int
}

// Sizes says for which sessions or rounds a sparse graph is, all counts of parties.
type Sizes struct {
	// Least and Most bound how many share a graph: MinMembers and the roster, or PerRound.
	Least, Most int
	// Survivors is Recovery.MinSurvivors: of N parties N − Survivors may be missing.
	Survivors int
	// Colluders is Config.Colluders: all of them may come, however few come.
	Colluders int
}

// Params are the numbers of a sparse graph, all counts of parties, that [Parameters]
// finds for a [Recovery].
type Params struct {
	// Neighbours is k, the neighbours of each party, itself not counted: even, or
	// n−1. It is Recovery.Degree.
	Neighbours int
	// Threshold is t, the shares that rebuild a secret, 2 ≤ t ≤ k. It is
	// Recovery.Threshold.
	Threshold int
	// CorruptNeighbours is the most colluders among any party's neighbours, except
	// with probability 2^-(sigma+1). It is Recovery.CorruptNeighbours.
	CorruptNeighbours int
	// LiveNeighbours is the fewest neighbours that stay online around any party,
	// except with probability 2^-eta; never less than Threshold.
	LiveNeighbours int
}

// Parameters returns the least degree of a sparse graph, or has the given one unless it is 0, and
// for it the least threshold, such that at every size privacy fails with probability at most
// 2^-sigma and some party's secrets cannot be rebuilt with probability at most 2^-eta (Bell 2020,
// by the exact hypergeometric conditions). Drop-outs are taken to be independent of the graph.
// Without an outside [Config.Seed], add 60 to sigma, for a server that tries many transcripts. It
// covers a curious and a semi-malicious server. It fails with [ErrConfig], which says which
// argument is out of range, or that no degree suffices, and also with [ErrApart] if the given
// degree does not keep the honest survivors connected.
func Parameters(s Sizes, degree, sigma, eta int, adversary Adversary) (Params, error) {
	p, err := graph.Parameters(graph.Sizes(s), degree, sigma, eta, adversary.graph())
	if err != nil {
		return Params{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return Params(p), nil
}

// ErrApart reports a degree of a sparse graph that is too low to keep honest survivors connected.
var ErrApart = graph.ErrApart

// Validate returns [ErrConfig], naming the broken rule, if the configuration cannot keep the
// package's promises.
func (c *Config) Validate() error {
	_, err := c.settle()
	return err
}

// EffectiveRecovery returns the recovery of a session or round of MinMembers
// parties with all defaults filled in, nil without recovery. No sum of the
// session has fewer inputs than its MinSurvivors. It fails with [ErrConfig].
func (c *Config) EffectiveRecovery() (*Recovery, error) {
	own, err := c.settle()
	if err != nil || !own.recovery {
		return nil, err
	}
	t := own.terms(own.minMembers)
	return &Recovery{
		Adversary:    own.Recovery.Adversary,
		Threshold:    t.threshold,
		MinSurvivors: t.minSurvivors,
		Degree:       t.degree,

		CorruptNeighbours: own.Recovery.CorruptNeighbours,
	}, nil
}

// Digest returns a hash over every value of the configuration, defaults filled in, and the
// roster: sides with the same digest have the same configuration. It fails with [ErrConfig].
func (c *Config) Digest() ([32]byte, error) {
	own, err := c.settle()
	if err != nil {
		return [32]byte{}, err
	}
	return own.digest, nil
}

// MaxMessage returns the length of the longest message of the session, in bytes, or 0 if the
// configuration is not valid. A transport should read no more bytes than that. Broadcasts are not
// messages of the session: the transport carries them over a separate channel.
func (c *Config) MaxMessage() int {
	own, err := c.settle()
	if err != nil {
		return 0
	}
	return own.most
}
