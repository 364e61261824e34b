package epsilon

import (
	"context"
	"crypto"
	"crypto/rand"
	"fmt"
	"math"
	"math/big"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/audit"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

var auditRound = attacks.Attack{
	Name:      "AuditRound",
	Adversary: "curious server, tester",
	About:     "tell from the sum of a whole private round whether the target submitted",
	Defence:   soundClaim,
	Run:       runRound,
}

// auditedRound says which rounds are audited, and how often with the canary.
type auditedRound struct {
	name      string
	parties   int
	recovery  *protocol.Recovery // nil: nobody drops out
	colluders int
	runs      int
}

// Updates have few coordinates, and noise of that multiple of the sensitivity.
const (
	roundDimension  = 4
	roundMultiplier = 3
)

// config is the session of the round, but for its layout.
func (a auditedRound) config(signers []crypto.Signer) *protocol.Config {
	return &protocol.Config{
		Label:     "attack",
		Roster:    textbook.RosterOf("party", signers),
		Layout:    masking.Layout{{Length: 1, Bits: 1}},
		Recovery:  a.recovery,
		Colluders: a.colluders,
	}
}

// release works out the noise of the round.
func (a auditedRound) release(config *protocol.Config) (*privacy.Mechanism, error) {
	promise, err := privacy.OfSession(config)
	if err != nil {
		return nil, err
	}
	release := privacy.Release{
		Promise: promise,
		Noise: privacy.Noise{
			Family:     accounting.FamilyDiscreteGaussian,
			Multiplier: roundMultiplier,
			Clip:       1,
			Bits:       16,
		},
		Dimension: roundDimension,
	}
	return release.Mechanism()
}

// privateRound is a whole private round under audit, as package privacy sets it up
// and accounts for it: every party clips, rotates and encodes its update, adds its
// share of discrete Gaussian noise and masks it; as many parties drop out as may, the
// server recovers their masks and unmasks the sum; colluders take their own shares
// out of it, and what is left is decoded. The canary is the update of the last party:
// ten times the norm that clipping leaves, on one coordinate, or nothing. The other
// parties submit zeros.
type privateRound struct {
	local   *protocol.Local
	encoder aggregation.Encoder
	sampler *noise.Sampler // of what each party really adds
	length  int            // of an encoded update
	unit    float64        // the deviation that the noise must have in a mean
	claimed accounting.Round

	colluders, survivors int
	rounds               int // played
}

// newPrivateRound sets up a session. Parties really sample with the standard deviation that
// the noise asks for over weakened; the claim is about 1.
func newPrivateRound(a auditedRound, weakened int64) (*privateRound, error) {
	signers := textbook.Signers(a.parties)
	config := a.config(signers)
	release, err := a.release(config)
	if err != nil {
		return nil, err
	}
	if config.Layout, err = release.Layout(); err != nil {
		return nil, err
	}
	local, err := protocol.NewLocal(config, signers, nil)
	if err != nil {
		return nil, err
	}
	share, err := release.Vector.Shares.Party()
	if err != nil {
		return nil, err
	}
	if weakened != 1 {
		variance := new(big.Rat).Quo(share.Scale(), big.NewRat(weakened*weakened, 1))
		if share, err = noise.DiscreteGaussian(variance); err != nil {
			return nil, err
		}
	}
	table, err := noise.NewTable(share)
	if err != nil {
		return nil, err
	}
	survivors := release.Promise().Honest() + a.colluders
	return &privateRound{
		local:   local,
		encoder: release.Encoder,
		sampler: table.NewSampler(nil),
		length:  config.Layout[0].Length,
		unit:    roundMultiplier * release.MaxNorm() / float64(survivors),
		claimed: release.Round(),

		colluders: a.colluders,
		survivors: survivors,
	}, nil
}

// run runs a round and returns the decoded sum, in which the canary has the first coordinate.
func (p *privateRound) run(included bool) ([]float64, error) {
	parties, encoder := p.encoder.Parties, p.encoder
	encoder.Rotate = new([32]byte)
	if _, err := rand.Read(encoder.Rotate[:]); err != nil {
		return nil, err
	}
	inputs := make([][][]uint64, parties)
	known := make([]int64, p.length) // the colluders' shares
	for i := range inputs {
		share := make([]int64, p.length)
		if err := p.sampler.Fill(share); err != nil {
			return nil, err
		}
		var err error
		if inputs[i], err = submission(&encoder, included && i == parties-1, share); err != nil {
			return nil, err
		}
		if i < p.colluders {
			for k, x := range share {
				known[k] += x
			}
		}
	}
	// Colluders and the target stay; the others drop out in turn.
	honest := parties - p.colluders - 1
	for i := range parties - p.survivors {
		inputs[p.colluders+(p.rounds+i)%honest] = nil
	}
	p.rounds++
	sum, err := p.local.Round(nil, inputs)
	if err != nil {
		return nil, err
	}
	for k, x := range known {
		sum[0][k] = (sum[0][k] - uint64(x)) & (1<<encoder.Bits - 1)
	}
	return encoder.Decode(sum, p.survivors)
}

// submission returns the vector of a party: zeros or the canary, with its share of the noise.
func submission(e *aggregation.Encoder, canary bool, share []int64) ([][]uint64, error) {
	update := make([]float64, roundDimension)
	if canary {
		update[0] = 10 * e.Clip
	}
	clipped, _, err := aggregation.Clip(update, e.Clip)
	if err != nil {
		return nil, err
	}
	return e.Encode(clipped, share, nil)
}

// claim returns the claim of one round at the given δ.
func (p *privateRound) claim(delta float64) (accounting.Claim, error) {
	return p.claimed.Spent(accounting.ServerView, 1, delta)
}

func runRound(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	report := &attacks.Report{}
	for _, audited := range []auditedRound{{
		name:    "sum of 4 parties",
		parties: 4,
		runs:    4000,
	}, {
		name:    "5 of 6 survive, 1 colludes",
		parties: 6,
		recovery: &protocol.Recovery{
			Adversary:    protocol.CuriousServer,
			MinSurvivors: 5,
		},
		colluders: 1,
		runs:      400,
	}} {
		if o.Long {
			audited.runs *= 10
		}
		rows, err := audited.rows(ctx)
		if err != nil {
			return nil, err
		}
		report.Rows = append(report.Rows, rows...)
	}
	return report, nil
}

// rows audits the round with its noise and with a sixteenth of it, and measures the noise: the ε
// that so few runs show is far below the claim, also with much too little noise.
func (a auditedRound) rows(ctx context.Context) ([]attacks.Row, error) {
	sound, err := newPrivateRound(a, 1)
	if err != nil {
		return nil, err
	}
	const weakened = 16
	weak, err := newPrivateRound(a, weakened)
	if err != nil {
		return nil, err
	}
	stated, err := sound.claim(claimDelta)
	if err != nil {
		return nil, err
	}
	claim := stated.Bare().Upper
	undefended, little, err := weak.audit(ctx, a.runs)
	if err != nil {
		return nil, err
	}
	defended, left, err := sound.audit(ctx, a.runs)
	if err != nil {
		return nil, err
	}
	// of normal errors: the square of one has variance 2.
	measure := func(squares []float64, want float64) attacks.Measure {
		n := len(squares)
		mean, _ := attacks.MeanAndError(squares)
		return attacks.Near(mean, want*math.Sqrt(2/float64(n)), n, want)
	}
	return []attacks.Row{{
		Case:       a.name,
		Metric:     fmt.Sprintf("ε shown, claim %s at δ = %g", stated.Most(), claimDelta),
		Undefended: attacks.BoundOf(undefended, claim, math.Inf(1)),
		Defended:   attacks.BoundOf(defended, 0, claim),
		Note: "clip, rotate, encode, noise shares, masks, recovery if any drop out, " +
			"unmask, decode; undefended: a sixteenth of the noise",
	}, {
		Case:       a.name,
		Metric:     "variance of the noise, of that claimed",
		Undefended: measure(little, 1./(weakened*weakened)),
		Defended:   measure(left, 1),
		Note:       "without what colluders know of it",
	}}, nil
}

// audit runs the round so often with and without the canary. It also returns the squared errors of
// the coordinates that are zero, over the variance that is claimed.
func (p *privateRound) audit(ctx context.Context, runs int) (audit.Result, []float64, error) {
	without, with := make([]float64, runs), make([]float64, runs)
	var squares []float64
	for i := range runs {
		if err := ctx.Err(); err != nil {
			return audit.Result{}, nil, err
		}
		for _, included := range []bool{false, true} {
			decoded, err := p.run(included)
			if err != nil {
				return audit.Result{}, nil, fmt.Errorf("run %d: %w", i, err)
			}
			if included {
				with[i], decoded = decoded[0], decoded[1:]
			} else {
				without[i] = decoded[0]
			}
			for _, x := range decoded {
				squares = append(squares, x*x/(p.unit*p.unit))
			}
		}
	}
	result, err := audit.Scores(without, with, claimDelta, audit.Alpha)
	return result, squares, err
}
