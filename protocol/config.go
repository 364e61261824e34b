package protocol

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"golang.org/x/crypto/cryptobyte"

	"github.com/hushsum/hushsum/internal/graph"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// Domain separators of hashes, keys and signatures, with the version of the
// scheme.
const (
	labelConfig     = "hushsum/1 config"
	labelSession    = "hushsum/1 session"
	labelBroadcast  = "hushsum/1 broadcast"
	labelContext    = "hushsum/1 context"
	labelShare      = "hushsum/1 share"
	labelBlob       = "hushsum/1 blob"
	labelBlobKey    = "hushsum/1 blob key"
	labelSelfMask   = "hushsum/1 self mask"
	labelCommitment = "hushsum/1 commitment"
	labelSurvivors  = "hushsum/1 survivors"
	labelGraph      = "hushsum/1 graph"
	labelSchedule   = "hushsum/1 schedule"
	labelState      = "hushsum/1 state"
)

// DefaultMaxSkip is the value of a zero [Config.MaxSkip].
const DefaultMaxSkip = 1000

// Config is what all parties and the server agree on before a session. It is
// part of what every key is signed with: sides that disagree refuse each other
// with [ErrSession].
type Config struct {
	// Label names the session, at most 255 bytes. Give every session its own,
	// such as the deployment and the date (empty is allowed for a session that is
	// the only one of its identities): keys are signed for a configuration,
	// and those of an earlier session with the same one could be replayed, which
	// shuts their owners out.
	Label string
	// Roster lists the parties.
	Roster *keyexchange.Roster
	// Layout gives the segments of every submission and their rings.
	Layout masking.Layout
	// Recovery lets rounds survive parties that drop out. With nil, a party that
	// does not submit costs the round.
	Recovery *Recovery
	// PerRound is how many parties take part in each round, chosen by a public
	// schedule that all can compute. Zero means all of them.
	PerRound int
	// Seed is public randomness for the schedule and the sparse graph, from a
	// source that the server does not control, drawn after the roster is fixed.
	// Zero means that both follow from the session's keys, which a cheating
	// server can try to grind.
	Seed [32]byte
	// MaxSkip is how many rounds a party may have missed when it joins the next,
	// which bounds the work that a round number can ask of it. Zero means
	// DefaultMaxSkip.
	MaxSkip uint64
}

// Adversary is the server that a session with recovery is made to withstand,
// together with the colluding parties.
type Adversary int

// The adversaries. The zero value is the strongest.
const (
	// CheatingServer sends anything to anyone at any time.
	CheatingServer Adversary = iota
	// SemiMaliciousServer is honest during set-up and cheats afterwards.
	SemiMaliciousServer
	// CuriousServer follows the protocol and looks at everything.
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
// neighbours, itself not counted) and N the number of parties scheduled in a
// round:
//
//	threshold     curious server:   t > c           default ⌊h/2⌋ + 1
//	              otherwise:       2t > h + c       default ⌊2h/3⌋ + 1
//	quorum        curious server:   q = t
//	              otherwise:       2q > N + c       q = ⌊(N+c)/2⌋ + 1
//	              sparse graph:     q = t neighbours
//
// The quorum is how many survivors must have signed one list of survivors before
// a party reveals anything. On a complete graph no two lists can be signed by so
// many, and every sum has at least MinSurvivors − c honest inputs. On a sparse
// graph nobody certifies one list for all: against a server that cheats after
// set-up a sum is then sure to have t − c + 1 honest inputs only, and noise must be
// calibrated to that (SPEC.md, security considerations).
type Recovery struct {
	// Adversary is the server to withstand.
	Adversary Adversary
	// Colluders is c, how many parties may pool what they know with the server.
	// In a sparse graph it is the number among any one party's neighbours,
	// Params.CorruptNeighbours.
	Colluders int
	// Threshold is t, the shares that rebuild a secret. Zero means the default.
	Threshold int
	// MinSurvivors is the fewest parties in a sum: with fewer, honest parties
	// refuse to unmask it. Zero means the least that the thresholds allow,
	// max(t+1, q): with the other defaults 68 of 100 parties, 8 of 10, and all of
	// 4 or fewer. [Config.EffectiveRecovery] tells it.
	MinSurvivors int
	// Degree is the number of neighbours of each party in a sparse graph, from
	// [Parameters]. Zero means the complete graph. A sparse graph does not
	// withstand a cheating server.
	Degree int
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
	// with probability 2^-(sigma+1). It is Recovery.Colluders.
	CorruptNeighbours int
	// LiveNeighbours is the fewest neighbours that stay online around any party,
	// except with probability 2^-eta; never less than Threshold.
	LiveNeighbours int
}

// Parameters returns the smallest degree and threshold of a sparse graph of n
// parties of which the fraction corrupt colludes with the server and the
// fraction drop drops out, such that privacy fails with probability at most
// 2^-sigma and some party's secrets cannot be rebuilt with probability at most
// 2^-eta (Bell 2020, by the exact hypergeometric conditions). Drop-outs are
// taken to be independent of the graph. Without an outside [Config.Seed], add 60
// to sigma, for a server that tries many transcripts. It covers a curious and a
// semi-malicious server. It fails with [ErrConfig], which says what argument is out
// of range, or that no degree will do.
func Parameters(n int, corrupt, drop float64, sigma, eta int, adversary Adversary) (Params, error) {
	p, err := graph.Parameters(n, corrupt, drop, sigma, eta, adversary.graph())
	if err != nil {
		return Params{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return Params(p), nil
}

// Validate returns [ErrConfig], with the rule that is broken, if the
// configuration cannot keep the package's promises.
func (c *Config) Validate() error {
	_, err := c.terms()
	return err
}

// terms are a configuration's numbers with the defaults filled in.
type terms struct {
	parties      int // n
	scheduled    int // N, the parties of each round
	degree       int // h, the neighbours of each
	maxSkip      uint64
	recovery     bool
	adversary    Adversary
	colluders    int // c
	threshold    int // t
	quorum       int // q
	minSurvivors int
}

// spoilers is e, the most parties that may be at fault for blame to be sound.
func (t *terms) spoilers() int { return max(t.colluders, 1) }

// sparse reports whether parties share secrets with some of the others only.
func (t *terms) sparse() bool { return t.degree < t.scheduled-1 }

func (c *Config) terms() (terms, error) {
	if c == nil {
		return terms{}, fmt.Errorf("%w: there is none", ErrConfig)
	}
	fail := func(format string, args ...any) (terms, error) {
		return terms{}, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
	}
	if len(c.Label) > 255 {
		return fail("the label has %d bytes, at most 255 are allowed", len(c.Label))
	}
	if c.Roster == nil {
		return fail("there is no roster")
	}
	if err := c.Layout.Validate(); err != nil {
		return fail("%w", err)
	}
	t := terms{parties: c.Roster.Len(), scheduled: c.PerRound, maxSkip: c.MaxSkip}
	if t.scheduled == 0 {
		t.scheduled = t.parties
	}
	if t.scheduled < 2 || t.scheduled > t.parties {
		return fail("PerRound is %d, want 2 to %d, or 0 for all", c.PerRound, t.parties)
	}
	if t.maxSkip == 0 {
		t.maxSkip = DefaultMaxSkip
	}
	t.degree = t.scheduled - 1
	t.minSurvivors = t.scheduled
	if c.Recovery == nil {
		return t, nil
	}

	r := c.Recovery
	t.recovery, t.adversary, t.colluders = true, r.Adversary, r.Colluders
	if r.Adversary < CheatingServer || r.Adversary > CuriousServer {
		return fail("there is no %v", r.Adversary)
	}
	if r.Degree != 0 {
		if r.Degree < 2 && t.scheduled > 2 || r.Degree < 1 || r.Degree >= t.scheduled || r.Degree%2 == 1 && t.scheduled%2 == 1 {
			return fail("no graph of %d parties has degree %d", t.scheduled, r.Degree)
		}
		t.degree = r.Degree
	}
	if t.sparse() && r.Adversary == CheatingServer {
		return fail("a sparse graph does not withstand a cheating server; leave Degree zero or name a weaker Adversary")
	}
	t.threshold = r.Threshold
	if t.threshold == 0 {
		var err error
		if t.threshold, err = graph.DefaultThreshold(r.Adversary.graph(), t.degree, r.Colluders); err != nil {
			return fail("the default Threshold does not withstand %d colluders of %d: %w", r.Colluders, t.degree, err)
		}
	}
	if err := graph.CheckThreshold(r.Adversary.graph(), t.threshold, t.degree, r.Colluders); err != nil {
		least := r.Colluders + 1
		if r.Adversary != CuriousServer {
			least = (t.degree+r.Colluders)/2 + 1
		}
		return fail("Threshold is %d; against a %v with %d colluders and %d holders of each secret it takes %d to %d: %w",
			t.threshold, r.Adversary, r.Colluders, t.degree, least, t.degree, err)
	}
	t.quorum = t.threshold
	if r.Adversary != CuriousServer && !t.sparse() {
		t.quorum = (t.scheduled+t.colluders)/2 + 1
	}
	// The holders of a survivor's shares are other survivors; since t > c, at
	// least two of them are honest.
	least := max(t.threshold+1, t.quorum)
	if least > t.scheduled {
		return fail("%d parties a round cannot withstand %d colluders", t.scheduled, t.colluders)
	}
	t.minSurvivors = r.MinSurvivors
	if t.minSurvivors == 0 {
		t.minSurvivors = least
	}
	if t.minSurvivors < least || t.minSurvivors > t.scheduled {
		return fail("MinSurvivors is %d, want %d to %d", r.MinSurvivors, least, t.scheduled)
	}
	return t, nil
}

// EffectiveRecovery returns the recovery of the session with all defaults filled in, nil
// without recovery. It fails with [ErrConfig].
func (c *Config) EffectiveRecovery() (*Recovery, error) {
	t, err := c.terms()
	if err != nil || !t.recovery {
		return nil, err
	}
	return &Recovery{Adversary: t.adversary, Colluders: t.colluders, Threshold: t.threshold,
		MinSurvivors: t.minSurvivors, Degree: t.degree}, nil
}

// MaxMessage returns the length of the longest message of the session, in
// bytes, or 0 if the configuration is not valid. A transport should read no more
// than that. Broadcasts are no messages of the session: the transport carries them
// by a way of their own.
func (c *Config) MaxMessage() int {
	t, err := c.terms()
	if err != nil {
		return 0
	}
	return c.maxMessage(&t)
}

func (c *Config) maxMessage(t *terms) int {
	n, h := t.parties, t.degree
	body := max(n*wire.AnnounceSize, 32+(n+7)/8+h*wire.SealedShareSize, t.scheduled*(4+64), c.Layout.PackedSize())
	if t.recovery {
		body = max(body, wire.MaskedSize(c.Layout.PackedSize(), h, h))
	}
	return wire.HeaderSize + body
}

// settled is a configuration that was found valid, cannot be changed any more,
// and has its defaults and its digest at hand.
type settled struct {
	Config
	terms
	digest [32]byte
	most   int // MaxMessage
}

func (c *Config) settle() (*settled, error) {
	t, err := c.terms()
	if err != nil {
		return nil, err
	}
	own := &settled{Config: *c, terms: t}
	own.Layout = slices.Clone(c.Layout)
	own.digest = own.computeDigest()
	own.most = c.maxMessage(&t)
	return own, nil
}

// computeDigest is over every number that parties and server must agree on.
func (c *settled) computeDigest() [32]byte {
	b := cryptobyte.NewBuilder(nil)
	b.AddBytes([]byte(labelConfig))
	b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes([]byte(c.Label)) })
	roster := c.Roster.Digest()
	b.AddBytes(roster[:])
	b.AddUint64(c.maxSkip)
	b.AddUint32(uint32(c.scheduled))
	b.AddBytes(c.Seed[:])
	b.AddUint32(uint32(len(c.Layout)))
	for _, s := range c.Layout {
		b.AddUint32(uint32(s.Length))
		b.AddUint8(uint8(s.Bits))
	}
	if c.recovery {
		b.AddUint8(1 + uint8(c.adversary))
		for _, v := range []int{c.colluders, c.threshold, c.quorum, c.minSurvivors, c.degree} {
			b.AddUint32(uint32(v))
		}
	} else {
		b.AddUint8(0)
	}
	return sha256.Sum256(b.BytesOrPanic())
}

// sessionID names the session: a hash over the configuration, the roster in it,
// and the body of the Keys message.
func sessionID(config [32]byte, keys []byte) [32]byte {
	return hash(labelSession, config[:], keys)
}

// broadcastDigest is what Begin says of the broadcast.
func broadcastDigest(broadcast []byte) [32]byte { return hash(labelBroadcast, broadcast) }

// roundContext is a digest of all that the participants of a round must agree on.
func roundContext(session [32]byte, round uint64, begin *wire.Begin) [32]byte {
	return hash(labelContext, session[:], uint64Bytes(round), begin.Broadcast[:], begin.Participants.Bytes())
}
