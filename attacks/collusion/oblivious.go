package collusion

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/oblivious"
)

// ErrViews: views of the published protocol that no run of it gives.
var errViews = errors.New("attacks: the colluders' views do not fit together")

// ColluderViews returns what n−1 colluders around an honest party know after a round
// of the published protocol (package oblivious), one NoiseView for each coordinate,
// in units of λ. views are by party, and that of the honest one is not read; sum is
// the released sum without the colluders' inputs, in a ring of the given bits, and
// scale is λ in units of the ring.
//
// The server's permutation of an offer between colluders does not hide the choice
// from them: the receiver sees the difference of the candidates, the sender knows
// both of them. It fails with [ErrViews].
func colluderViews(views []oblivious.PublishedView, honest int, sum []uint64, bits int, scale float64) ([]*noiseView, error) {
	n := len(views)
	if n < 2 || honest < 0 || honest >= n || bits < 1 || bits > 64 || !(scale > 0) {
		return nil, fmt.Errorf("%w: %d parties, honest %d, %d bits, scale %v", errViews, n, honest, bits, scale)
	}
	inScale := func(x uint64) float64 { return centred(x, bits) / scale }
	all := make([]*noiseView, len(sum))
	for k, s := range sum {
		v := &noiseView{Parties: n, Masked: inScale(s)}
		for i, from := range views {
			if i == honest {
				continue
			}
			v.Own += inScale(from.Own[k])
			d := inScale(from.Received[honest][0][k] - from.Received[honest][1][k])
			v.FromHonest = append(v.FromHonest, d)
			v.FromHonestBits = append(v.FromHonestBits, from.Choices[honest][k])
			for j, to := range views {
				if j == i {
					continue
				}
				t := [2]uint64{from.Terms[j][0][k], from.Terms[j][1][k]}
				pair := [2]float64{inScale(t[0]), inScale(t[1])}
				if j == honest {
					v.ToHonest = append(v.ToHonest, pair)
					continue
				}
				bit := to.Choices[i][k]
				switch seen := centred(to.Received[i][0][k]-to.Received[i][1][k], bits); seen {
				case centred(t[0]-t[1], bits):
				case centred(t[1]-t[0], bits):
					bit ^= 1
				default:
					return nil, fmt.Errorf("%w: offer of party %d to party %d, coordinate %d", errViews, i, j, k)
				}
				v.Among = append(v.Among, pair)
				v.AmongBits = append(v.AmongBits, bit)
			}
		}
		all[k] = v
	}
	return all, nil
}

// centred reads an element of a ring as a number around zero.
func centred(x uint64, bits int) float64 { return float64(int64(x<<(64-bits)) >> (64 - bits)) }

// Of the runs on the real package: λ in units of the ring, which is coarse enough for
// its width and fine enough that rounding adds less than 1e-6 to any variance.
const (
	obliviousScale = 1 << 10
	obliviousBits  = 40
)

func obliviousConfig(n, d int) *oblivious.Config {
	return &oblivious.Config{
		Label: "attack", Parties: n, Length: d, Bits: obliviousBits,
		// The thesis's law; its samples are the parties' own affair here, which may know
		// and repeat them.
		Noise: oblivious.Noise{Scale: big.NewRat(obliviousScale, 1), Sampling: oblivious.ReferenceContinuous},
	}
}

// chacha is a reader of reproducible bytes for a party of an attack.
func chacha(r *rand.Rand) *rand.ChaCha8 {
	var seed [32]byte
	draw.Bytes(seed[:], r)
	return rand.NewChaCha8(seed)
}

// publishedRun is a round of the published protocol in which party 0 is honest and
// all other inputs are zero.
type publishedRun struct {
	inputs  []float64 // of party 0, in λ
	parties []*oblivious.Published
	server  *oblivious.PublishedServer
	masked  []uint64 // what party 0 submits
	sum     []uint64 // what is released
}

// runPublished plays a round. With equal the colluders offer party 0 two equal
// candidates.
func runPublished(n, d int, equal bool, r *rand.Rand) (*publishedRun, error) {
	config := obliviousConfig(n, d)
	p := &publishedRun{}
	var err error
	if equal {
		err = p.sybil(config, r)
	} else {
		p.parties, p.server, err = oblivious.RunPublished(config, false, chacha(r))
	}
	if err != nil {
		return nil, err
	}
	p.inputs, p.masked = drawInputs(d, r)
	p.sum = p.server.Correction()
	for i, party := range p.parties {
		correction, err := party.Correction()
		if err != nil {
			return nil, err
		}
		if i == 0 {
			if err := oblivious.Add(p.masked, correction, obliviousBits); err != nil {
				return nil, err
			}
			correction = p.masked
		}
		if err := oblivious.Add(p.sum, correction, obliviousBits); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// sybil is RunPublished with parties other than 0 that change what they offer it.
func (p *publishedRun) sybil(config *oblivious.Config, r *rand.Rand) error {
	var err error
	if p.server, err = oblivious.NewPublishedServer(config, chacha(r)); err != nil {
		return err
	}
	p.parties = make([]*oblivious.Published, config.Parties)
	for i := range p.parties {
		if p.parties[i], err = oblivious.NewPublished(config, i, false, chacha(r)); err != nil {
			return err
		}
		if i > 0 {
			terms := p.parties[i].View().Terms[0]
			copy(terms[1], terms[0])
		}
	}
	return p.server.Exchange(p.parties)
}

// drawInputs draws d inputs, in λ and in the ring.
func drawInputs(d int, r *rand.Rand) (inputs []float64, ring []uint64) {
	inputs, ring = make([]float64, d), make([]uint64, d)
	for k := range inputs {
		x := math.RoundToEven(obliviousScale * math.Sqrt(weightVariance) * r.NormFloat64())
		inputs[k], ring[k] = x/obliviousScale, uint64(int64(x))&(1<<obliviousBits-1)
	}
	return inputs, ring
}

// colluders returns the views of all parties but 0, and what they know together.
func (p *publishedRun) colluders() ([]*noiseView, error) {
	views := make([]oblivious.PublishedView, len(p.parties))
	for i := 1; i < len(views); i++ {
		views[i] = p.parties[i].View()
	}
	return colluderViews(views, 0, p.sum, obliviousBits, obliviousScale)
}

// serverAlone is what the server can make of what it carries without any colluder,
// if no private sum hides what party 0 submits: a party's masks are in its own
// offers, so that both cancel, and of an offer that it took only the bit is unknown.
// The means of the candidates leave 2λ², as L Mean does: (n−1)/2 terms' worth of its
// own offers, as much of what it chose, and its own term. The second result guesses
// the bits of the last offer that party 0 took, by an input that the server knows; at
// n = 2 there is but one.
func (p *publishedRun) serverAlone() (estimates []float64, guesses []byte, err error) {
	offers := make([]oblivious.Candidates, len(p.parties))
	for j := 1; j < len(offers); j++ {
		if offers[j], err = p.parties[0].Offer(j); err != nil {
			return nil, nil, err
		}
	}
	taken := p.parties[0].View().Received // as the server passed them on
	estimates, guesses = make([]float64, len(p.sum)), make([]byte, len(p.sum))
	for k, y := range p.masked {
		half, last := 0.0, 0.0 // last is the difference of the candidates it took last
		for j := 1; j < len(p.parties); j++ {
			offer, took := offers[j], taken[j]
			y += offer[0][k] - took[0][k]
			last = centred(took[1][k]-took[0][k], obliviousBits)
			half += (centred(offer[1][k]-offer[0][k], obliviousBits) - last) / 2
		}
		estimate := centred(y, obliviousBits) + half
		estimates[k] = estimate / obliviousScale
		// Small remainders are likelier than large ones.
		noise := estimate - obliviousScale*p.inputs[k]
		if math.Abs(noise-last/2) < math.Abs(noise+last/2) {
			guesses[k] = 1
		}
	}
	return estimates, guesses, nil
}

// obliviousCases are the cases with candidates, at n parties of the real protocol.
// The views are full ones, so that all poolings can be compared.
func obliviousCases(n int) (plain, sybil []tableCase) {
	for _, c := range tableCases(n) {
		switch {
		case c.form.transfer:
		case c.form.equal:
			sybil = append(sybil, c)
		default:
			plain = append(plain, c)
		}
	}
	return plain, sybil
}

// runCollusionOblivious turns the estimators on package oblivious itself.
func runOblivious(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	n, d, runs, sybils := 20, 1000, 4, 2
	if o.Long {
		n, d, runs, sybils = tableParties, 100, 100, 20
	}
	report := &attacks.Report{}
	var violins []attacks.Series
	add := func(name string, inputs, estimates []float64, left cumulants, defended bool, note string) {
		report.Rows = append(report.Rows, tableRows(name, inputs, estimates, left, defended, note)...)
		violins = append(violins, attacks.Series{Label: name, Kind: attacks.Violin, Y: differences(estimates, inputs)})
	}
	plain, sybil := obliviousCases(n)
	for _, part := range []struct {
		cases []tableCase
		runs  int
	}{{plain, runs}, {sybil, sybils}} {
		inputs, estimates, err := publishedEstimates(ctx, o, n, d, part.runs, part.cases)
		if err != nil {
			return nil, err
		}
		for k, c := range part.cases {
			add(c.name, inputs, estimates[k], c.form.left(c.pooling, c.guess), false, fmt.Sprintf("oblivious.Published, n = %d", n))
		}
	}

	const few, coordinates = 5, 1000
	rounds := 8
	if o.Long {
		rounds = 80
	}
	for _, c := range []struct {
		name  string
		equal bool
		form  noiseForm
	}{
		{"Transfer, honest senders", false, noiseForm{parties: few, transfer: true}},
		{"Transfer, equal candidates", true, noiseForm{parties: few, equal: true, transfer: true}},
	} {
		inputs, estimates, err := transferEstimates(o, few, coordinates, rounds, c.equal)
		if err != nil {
			return nil, err
		}
		add(c.name, inputs, estimates, c.form.left(pooled, guessMean), true, fmt.Sprintf("oblivious.Transfer, n = %d", few))
	}
	report.Figures = violinFigures("oblivious-errors", "Package oblivious: what n−1 colluders miss the honest input by", "error in λ", violins)

	rows, err := serverRows(o, n)
	if err != nil {
		return nil, err
	}
	report.Rows = append(report.Rows, rows...)
	return report, nil
}

// publishedEstimates plays runs of the published protocol and has the colluders of
// each case estimate all coordinates of all of them.
func publishedEstimates(ctx context.Context, o attacks.Options, n, d, runs int, cases []tableCase) (inputs []float64, estimates [][]float64, err error) {
	inputs, estimates = make([]float64, runs*d), make([][]float64, len(cases))
	for i := range estimates {
		estimates[i] = make([]float64, runs*d)
	}
	part := uint64(301)
	if cases[0].form.equal {
		part++
	}
	err = o.Parallel(ctx, part, runs, func(run int, r *rand.Rand) error {
		p, err := runPublished(n, d, cases[0].form.equal, r)
		if err != nil {
			return err
		}
		views, err := p.colluders()
		if err != nil {
			return err
		}
		copy(inputs[run*d:], p.inputs)
		for i, c := range cases {
			for k, v := range views {
				estimates[i][run*d+k] = v.estimate(c.pooling, c.guess, r)
			}
		}
		return nil
	})
	return inputs, estimates, err
}

// serverRows is what the server alone sees of both forms.
func serverRows(o attacks.Options, n int) ([]attacks.Row, error) {
	const d = 4000
	r := o.Rand(304)
	p, err := runPublished(n, d/4, false, r)
	if err != nil {
		return nil, err
	}
	estimates, _, err := p.serverAlone()
	if err != nil {
		return nil, err
	}
	want := math.Sqrt(determination(2))
	// ln r² has the standard error of determinationError, and r half of it.
	left := noiseForm{parties: n}.left(leaking, guessMean)
	c := attacks.Correlation(p.inputs, estimates)
	input := attacks.Row{
		Case: "server alone", Metric: "correlation of the input and what is seen",
		Undefended: attacks.Near(c, want*determinationError(left, d/4)/2, d/4, want),
		Note:       fmt.Sprintf("published, n = %d, with no private sum on top: offers and masked inputs are enough, without a colluder", n),
	}

	pair, err := runPublished(2, d, false, r)
	if err != nil {
		return nil, err
	}
	_, guesses, err := pair.serverAlone()
	if err != nil {
		return nil, err
	}
	truth := pair.parties[0].View().Choices[1]
	choice := attacks.Row{
		Case: "server alone", Metric: "largest correlation of a choice and what is sent",
		Undefended: attacks.Correlated(attacks.Correlation(numbers(truth), numbers(guesses)), d),
		Note:       "undefended: published, n = 2, of a known input; defended: all bits of messages and corrections, at each coordinate, and the bias of the choice: at most 6/√N",
	}
	choice.Undefended.Min = 6 / math.Sqrt(d)

	seen, err := transferTranscript(o, d)
	if err != nil {
		return nil, err
	}
	input.Defended = attacks.Uncorrelated(attacks.Correlation(seen.inputs, seen.submitted), d)
	// A choice that is not fair would show nothing by its correlations.
	ones, _ := attacks.MeanAndError(numbers(seen.choices))
	largest := 2*ones - 1
	for _, bits := range seen.sent {
		if c := attacks.Correlation(numbers(seen.choices), numbers(bits)); math.Abs(c) > math.Abs(largest) {
			largest = c
		}
	}
	// Of F independent correlations one is beyond 6/√N with probability F·2e-9.
	choice.Defended = attacks.Correlated(largest, d)
	choice.Defended.Min, choice.Defended.Max = -6/math.Sqrt(d), 6/math.Sqrt(d)
	choice.Note += fmt.Sprintf(" (%d correlations)", len(seen.sent))
	return []attacks.Row{input, choice}, nil
}

// numbers are bytes as numbers.
func numbers(b []byte) []float64 {
	out := make([]float64, len(b))
	for i, x := range b {
		out[i] = float64(x)
	}
	return out
}
