package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// ErrJob: two sides have different plans. See [DifferenceError].
var ErrJob = errors.New("job: the two sides have different jobs")

// DifferenceError names the first field in which two sides' plans differ. It is
// [ErrJob].
type DifferenceError struct {
	Field        string // as in the JSON form of a Plan, or "roster"
	Ours, Theirs string
}

func (e *DifferenceError) Error() string {
	return fmt.Sprintf("%v: %s is %s here and %s there; agree on one job", ErrJob, e.Field, e.Ours,
		e.Theirs)
}

// Is makes errors.Is(err, ErrJob) true.
func (e *DifferenceError) Is(target error) bool { return target == ErrJob }

// Plan declares a job: rounds, in each of which all learn the mean of the parties' vectors and
// nothing else, with noise that keeps every party within a privacy budget. It says what people know
// before they begin; [Plan.Settle] works out the rest. All sides must have the same: it is a part
// of what every key is signed with, and a [Participant] whose plan differs is told in which field.
//
// The zero values are useful but for Name, Length, Clip and Rounds. Its JSON form has
// these names in lower case with underscores, refuses others; files have it.
type Plan struct {
	// Name is the job's, at most 100 bytes of printable ASCII. Use each once for one
	// roster.
	Name string `json:"name"`
	// Rounds is how many rounds there are, at least 1.
	Rounds int `json:"rounds"`

	// Length is the number of coordinates of a vector, such as the weights of a model:
	// 1 to 2^27.
	Length int `json:"length"`
	// Clip is the L2 norm that vectors are clipped to, in their own units; above 0.
	Clip float64 `json:"clip"`
	// Bits is the width of the ring, and so of a coordinate on the wire: 8 to 64, 0 for 32. Fewer bits
	// round more coarsely.
	Bits int `json:"bits"`

	// Noise is the family of the noise; 0 for none.
	Noise accounting.Family `json:"noise,omitzero"`
	// Epsilon bounds what every party may spend over all Rounds, at Delta (0: 1e-5),
	// against a server that sees every message, with the shares of noise of the fewest
	// honest parties of a sum. Above 0 with Noise, 0 without.
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`

	// DropOut is the largest share of the roster that may be missing from a sum, for whatever reason:
	// 0 to below 1. It decides how much noise each party adds, since those that are there must
	// suffice, and must be less than a half for a server that cheats.
	DropOut float64 `json:"drop_out"`
	// Colluders is how many parties may pool all they know with the server.
	Colluders int `json:"colluders"`
	// Adversary is the server to withstand; the zero value is one that cheats.
	Adversary protocol.Adversary `json:"adversary"`
	// Classical leaves ML-KEM out of key exchange, see protocol.Config.
	Classical bool `json:"classical"`

	// Protocol takes the sums; the zero value is Pairwise. A plan with Oneshot is settled
	// by SettleOneshot, with the committee; its Noise, if there is some, is discrete
	// Gaussian, and its Adversary the zero value.
	Protocol Protocol `json:"protocol,omitzero"`
	// Faults and Covered are for Oneshot: see oneshot.Terms. 0: a fourth of all members
	// but one, at least 1.
	Faults  int  `json:"faults,omitzero"`
	Covered bool `json:"covered,omitzero"`
}

// maxName is the most bytes of a plan's name.
const maxName = 100

// ParsePlan reads the JSON form. It fails with [ErrConfig], also on a field that it does not
// know, one that comes twice or is written in another case, and on anything behind the end;
// the Reason names the field.
func ParsePlan(b []byte) (*Plan, error) {
	p := new(Plan)
	if err := strict.JSON(b, p); err != nil {
		return nil, &ConfigError{Path: "JSON", Reason: err.Error(), Err: err}
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// WithDefaults returns the plan with its defaults filled in, as [Settled.Plan] does.
func (p Plan) WithDefaults() Plan {
	if p.Bits == 0 {
		p.Bits = 32
	}
	if p.Noise != 0 && p.Delta == 0 {
		p.Delta = privacy.DefaultDelta
	}
	if p.Protocol == Pairwise {
		p.Protocol = ""
	}
	return p
}

// Validate returns a [ConfigError] for the first field that is outside its range. That
// the plan can be kept with a given roster only [Plan.Settle] finds.
func (p *Plan) Validate() error {
	q := p.WithDefaults()
	bad := func(field, advice, format string, a ...any) error {
		return &ConfigError{Path: field, Reason: fmt.Sprintf(format, a...), Advice: advice}
	}
	printable := func(r rune) bool { return r < ' ' || r > '~' }
	switch {
	case q.Name == "" || len(q.Name) > maxName || strings.ContainsFunc(q.Name, printable):
		return bad("Name", "", "%.120q is not 1 to %d printable ASCII characters", q.Name, maxName)
	case q.Rounds < 1:
		return bad("Rounds", "use at least 1", "%d is too few", q.Rounds)
	case q.Length < 1 || q.Length > MaxLength:
		return bad("Length", "", "%d is outside 1 to %d", q.Length, MaxLength)
	case !(q.Clip >= 0x1p-500 && q.Clip <= 0x1p500):
		return bad("Clip", "use a number above 0, such as 1", "%v bounds no norm", q.Clip)
	case q.Bits < 8 || q.Bits > 64:
		return bad("Bits", "", "%d is outside 8 to 64", q.Bits)
	case q.Noise == 0 && (q.Epsilon != 0 || q.Delta != 0):
		return bad("Noise", "name a family, such as discrete-gaussian", "a budget needs noise")
	case q.Noise != 0 && !(q.Epsilon > 0 && !math.IsInf(q.Epsilon, 1)):
		return bad("Epsilon", "use a number above 0, such as 8", "%v is not a budget that noise can keep",
			q.Epsilon)
	case q.Noise != 0 && !(q.Delta > 0 && q.Delta < 1):
		return bad("Delta", "use a small number above 0, such as "+
			"1e-5", "%v is not a probability", q.Delta)
	case !(q.DropOut >= 0 && q.DropOut < 1):
		return bad("DropOut", "use a fraction, such as 0.2 for a fifth of the parties",
			"%v is outside 0 to below 1", q.DropOut)
	case q.Colluders < 0:
		return bad("Colluders", "use 0 or more", "%d is not a number of parties", q.Colluders)
	}
	return q.validateOneshot(bad)
}

// Continue works out a job that began under the plan, before there were jobs: with the plan's
// sessions, label and digest, and with its encoding, or its rotations if the job trains its model
// itself. It fails as [Plan.Settle] and [Job.Settle] do.
func (p *Plan) Continue(j *Job, with Files) (*Settled, error) {
	s, err := p.Settle(with.Roster)
	if err != nil {
		return nil, err
	}
	if j.Model.Name != "" {
		with.earlier = true
		own, err := j.Settle(with)
		if err != nil {
			return nil, err
		}
		own.digest, own.session.Label, own.byRound = s.digest, s.session.Label, true
		return own, nil
	}
	s.job = j.WithDefaults()
	s.job.count(with.Roster)
	x := &settling{Job: s.job, files: with, out: s}
	if err := x.drawn(); err != nil || !j.Sum.Sparse {
		return s, err
	}
	if s.mechanism != nil && p.Adversary == protocol.SemiMaliciousServer {
		return nil, s.job.Mistake("sum.sparse", "", "%s", apart)
	}
	if err := x.thin(p.Adversary); err != nil {
		return nil, err
	}
	if err := s.session.Validate(); err != nil {
		return nil, s.job.Mistake("sum.sparse", "leave it out: there are too few parties", "%v", err)
	}
	return s, nil
}

// minSurvivors is the fewest of n parties in a sum.
func (p *Plan) minSurvivors(n int) int { return (&Parties{DropOut: p.DropOut}).Fewest(n) }

// digest is over all that the plan declares, with defaults filled in, and the numbers
// that all sides must have settled alike, to six digits: in the last places of
// floating point machines may differ, which harms nobody.
func (p *Plan) digest(roster *keyexchange.Roster, multiplier, scale float64) [32]byte {
	q := p.WithDefaults()
	text, err := json.Marshal(q)
	if err != nil {
		panic("job: " + err.Error()) // a valid plan has no NaN
	}
	members := roster.Digest()
	return sha256.Sum256(fmt.Appendf(nil, "hushsum/2 plan\n%s\n%x\n%.5e %.5e", text, members,
		multiplier, scale))
}

// label names the series of the plan's sessions.
func label(name string, digest [32]byte) string {
	return name + " plan " + hex.EncodeToString(digest[:])
}
