package attacks

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"math"
	"math/big"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/protocol"
)

// AuditRuns audits anything that can be run with and without a canary, runs times
// each in turn: run returns a score that is larger with the canary if anything.
func AuditRuns(ctx context.Context, runs int, delta, alpha float64, run func(included bool) (float64, error)) (Audited, error) {
	without, with := make([]float64, runs), make([]float64, runs)
	for i := range runs {
		if err := ctx.Err(); err != nil {
			return Audited{}, err
		}
		var err error
		if without[i], err = run(false); err == nil {
			with[i], err = run(true)
		}
		if err != nil {
			return Audited{}, fmt.Errorf("run %d: %w", i, err)
		}
	}
	return AuditScores(without, with, delta, alpha)
}

// PrivateRound is a whole private round under audit: every party clips, rotates and
// encodes its update, adds its share of discrete Gaussian noise and masks it; as many
// parties drop out as may, the server recovers their masks and unmasks the sum;
// colluders take their own shares out of it, and what is left is decoded. The canary
// is the update of the last party: ten times the norm that clipping leaves, on one
// coordinate, or nothing. The other parties submit zeros.
type PrivateRound struct {
	local     *protocol.Local
	encoder   aggregation.Encoder
	shares    noise.Shares
	table     *noise.Table // of what each party really samples
	sampler   *noise.Sampler
	survivors int // at least, which is what there are
	colluders int
	length    int // of an encoded update
	rounds    int // played
}

// NewPrivateRound sets up a session of parties, with updates of the given dimension
// and noise of multiplier times the sensitivity in the sum, without the shares of
// drop-outs and colluders; recovery says how many there may be, and nil that there
// are none. What parties really sample has the standard deviation that this asks for
// over weakened; 1 is what the claim is about.
func NewPrivateRound(parties, dimension int, multiplier float64, weakened int64, recovery *protocol.Recovery) (*PrivateRound, error) {
	p := &PrivateRound{survivors: parties}
	if recovery != nil {
		p.survivors, p.colluders = recovery.MinSurvivors, recovery.Colluders
	}
	p.shares = noise.Shares{Parties: parties, MinHonest: p.survivors - p.colluders}
	var err error
	p.encoder, err = aggregation.Encoder{
		Parties: parties, Dimension: dimension, Clip: 1, Bits: 16, NoiseTail: aggregation.GaussianTail,
		Rotate: new([32]byte), // a placeholder: every round has its own
	}.ChooseScale(multiplier, p.shares.MinHonest)
	if err != nil {
		return nil, err
	}
	sensitivity, err := p.encoder.Sensitivity()
	if err != nil {
		return nil, err
	}
	variance, err := noise.Rational(multiplier * multiplier * sensitivity.L2 * sensitivity.L2)
	if err != nil {
		return nil, err
	}
	if p.shares.Law, err = noise.DiscreteGaussian(variance); err != nil {
		return nil, err
	}
	own, err := p.shares.Party()
	if err != nil {
		return nil, err
	}
	if weakened != 1 {
		if own, err = noise.DiscreteGaussian(new(big.Rat).Quo(own.Scale(), big.NewRat(weakened*weakened, 1))); err != nil {
			return nil, err
		}
	}
	if p.table, err = noise.NewTable(own); err != nil {
		return nil, err
	}
	p.sampler = p.table.NewSampler(nil)

	layout, err := p.encoder.Layout()
	if err != nil {
		return nil, err
	}
	p.length = layout[0].Length
	identities, members := make([]crypto.Signer, parties), make([]keyexchange.Member, parties)
	for i := range identities {
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, err
		}
		identities[i] = key
		members[i] = keyexchange.Member{Name: fmt.Sprintf("party-%d", i), Key: key.Public().(ed25519.PublicKey)}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		return nil, err
	}
	p.local, err = protocol.NewLocal(&protocol.Config{Label: "audit", Roster: roster, Layout: layout, Recovery: recovery}, identities, nil)
	return p, err
}

// Run runs a round and returns the canary's coordinate of the decoded sum.
func (p *PrivateRound) Run(included bool) (float64, error) {
	n, d := p.encoder.Parties, p.encoder.Dimension
	encoder := p.encoder
	encoder.Rotate = new([32]byte)
	if _, err := rand.Read(encoder.Rotate[:]); err != nil {
		return 0, err
	}
	inputs, known := make([][][]uint64, n), make([]int64, p.length)
	for i := range inputs {
		update := make([]float64, d)
		if included && i == n-1 {
			update[0] = 10 * encoder.Clip
		}
		clipped, _, err := aggregation.Clip(update, encoder.Clip)
		if err != nil {
			return 0, err
		}
		share := make([]int64, p.length)
		if err := p.sampler.Fill(share); err != nil {
			return 0, err
		}
		if inputs[i], err = encoder.Encode(clipped, share, nil); err != nil {
			return 0, err
		}
		if i < p.colluders {
			for k, x := range share {
				known[k] += x
			}
		}
	}
	// Colluders and the target stay; the others drop out in turn.
	honest := n - p.colluders - 1
	for i := range n - p.survivors {
		inputs[p.colluders+(p.rounds+i)%honest] = nil
	}
	p.rounds++
	sum, err := p.local.Round(nil, inputs)
	if err != nil {
		return 0, err
	}
	for k, x := range known {
		sum[0][k] = (sum[0][k] - uint64(x)) & (1<<encoder.Bits - 1)
	}
	decoded, err := encoder.Decode(sum, p.survivors)
	if err != nil {
		return 0, err
	}
	return decoded[0], nil
}

// Claim is the accountant's upper bound on ε(server) of one round at the given δ.
func (p *PrivateRound) Claim(delta float64) (float64, error) {
	sensitivity, err := p.encoder.Sensitivity()
	if err != nil {
		return 0, err
	}
	own, err := p.shares.Party()
	if err != nil {
		return 0, err
	}
	sigma2, _ := own.Scale().Float64()
	spent, err := accounting.Round{
		Law: accounting.LawDiscreteGaussian, Shares: p.shares.MinHonest, MinSurvivors: p.survivors, Colluders: p.colluders,
		Update: accounting.Lane{Scale: math.Sqrt(sigma2), Sensitivity: accounting.Sensitivity{
			Delta1: sensitivity.L1, Delta2: sensitivity.L2, Dim: sensitivity.Dimension,
		}},
		TableDistance: p.table.Distance(),
		Samples:       float64(p.shares.Parties * sensitivity.Dimension),
		Rate:          1,
	}.Spent(accounting.Server, 1, delta)
	return spent.Upper, err
}
