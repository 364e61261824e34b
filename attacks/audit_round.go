package attacks

import (
	"context"
	"crypto"
	"crypto/ed25519"
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

// PrivateRound is a whole private round under audit: every party clips and encodes
// its update, adds its share of discrete Gaussian noise and masks it; the server
// unmasks the sum and decodes it. The canary is the update of the last party: all
// the norm that clipping leaves, on one coordinate, or nothing. The other parties
// submit zeros.
type PrivateRound struct {
	local   *protocol.Local
	encoder aggregation.Encoder
	shares  noise.Shares
	table   *noise.Table // of what each party really samples
	sampler *noise.Sampler
}

// NewPrivateRound sets up a session of parties, with updates of the given dimension
// and noise of multiplier times the sensitivity in the sum. What parties really
// sample has the standard deviation that this asks for over weakened; 1 is what the
// claim is about.
func NewPrivateRound(parties, dimension int, multiplier float64, weakened int64) (*PrivateRound, error) {
	p := &PrivateRound{shares: noise.Shares{Parties: parties, MinHonest: parties}}
	var err error
	p.encoder, err = aggregation.Encoder{
		Parties: parties, Dimension: dimension, Clip: 1, Bits: 16, NoiseTail: aggregation.GaussianTail,
	}.ChooseScale(multiplier, parties)
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
	p.local, err = protocol.NewLocal(&protocol.Config{Label: "audit", Roster: roster, Layout: layout}, identities, nil)
	return p, err
}

// Run runs a round and returns the canary's coordinate of the decoded sum.
func (p *PrivateRound) Run(included bool) (float64, error) {
	inputs := make([][][]uint64, p.encoder.Parties)
	share := make([]int64, p.encoder.Dimension)
	for i := range inputs {
		update := make([]float64, p.encoder.Dimension)
		if included && i == len(inputs)-1 {
			update[0] = p.encoder.Clip
		}
		if err := p.sampler.Fill(share); err != nil {
			return 0, err
		}
		var err error
		if inputs[i], err = p.encoder.Encode(update, share, nil); err != nil {
			return 0, err
		}
	}
	sum, err := p.local.Round(nil, inputs)
	if err != nil {
		return 0, err
	}
	decoded, err := p.encoder.Decode(sum, 1)
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
		Law: accounting.LawDiscreteGaussian, Shares: p.shares.MinHonest, MinSurvivors: p.shares.MinHonest,
		Update: accounting.Lane{Scale: math.Sqrt(sigma2), Sensitivity: accounting.Sensitivity{
			Delta1: sensitivity.L1, Delta2: sensitivity.L2, Dim: sensitivity.Dimension,
		}},
		TableDistance: p.table.Distance(),
		Samples:       float64(p.shares.Parties * sensitivity.Dimension),
		Rate:          1,
	}.Spent(accounting.Server, 1, delta)
	return spent.Upper, err
}
