package collusion

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/oblivious"
)

// errViews: views of the published protocol that no run of it gives.
var errViews = errors.New("collusion: the colluders' views do not fit together")

// centred reads an element of a ring as a number around zero.
func centred(x uint64, bits int) float64 { return float64(int64(x<<(64-bits)) >> (64 - bits)) }

// Of the runs on the real package: λ in units of the ring, which is coarse enough for
// its width and fine enough that rounding adds less than 1e-6 to any variance.
const (
	obliviousScale = 1 << 10
	obliviousBits  = 40
)

// inLambda reads an element of the ring in units of λ.
func inLambda(x uint64) float64 { return centred(x, obliviousBits) / obliviousScale }

func obliviousConfig(parties, length int) *oblivious.Config {
	return &oblivious.Config{
		Label:   "attack",
		Parties: parties,
		Length:  length,
		Bits:    obliviousBits,
		// The thesis's law; its samples are the parties' own affair here, which may know
		// and repeat them.
		Noise: oblivious.Noise{
			Scale:    big.NewRat(obliviousScale, 1),
			Sampling: oblivious.ReferenceContinuous,
		},
	}
}

// chacha returns reproducible bytes for a party of an attack.
func chacha(r *rand.Rand) *rand.ChaCha8 {
	var seed [32]byte
	draw.Bytes(seed[:], r)
	return rand.NewChaCha8(seed)
}

// drawInputs draws inputs, in λ and in the ring.
func drawInputs(length int, r *rand.Rand) (inputs []float64, ring []uint64) {
	inputs, ring = make([]float64, length), make([]uint64, length)
	for k := range inputs {
		x := math.RoundToEven(obliviousScale * math.Sqrt(weightVariance) * r.NormFloat64())
		inputs[k], ring[k] = x/obliviousScale, uint64(int64(x))&(1<<obliviousBits-1)
	}
	return inputs, ring
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
func runPublished(parties, length int, equal bool, r *rand.Rand) (*publishedRun, error) {
	config := obliviousConfig(parties, length)
	p := &publishedRun{}
	var err error
	if equal {
		err = p.exchangeEqual(config, r)
	} else {
		p.parties, p.server, err = oblivious.RunPublished(config, false, chacha(r))
	}
	if err != nil {
		return nil, err
	}
	p.inputs, p.masked = drawInputs(length, r)
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

// exchangeEqual is RunPublished with parties other than 0 that change what they offer it.
func (p *publishedRun) exchangeEqual(config *oblivious.Config, r *rand.Rand) error {
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

// colluders returns what all parties but 0 know together, coordinate by coordinate. It
// fails with errViews.
func (p *publishedRun) colluders() ([]*noiseView, error) {
	views := make([]oblivious.PublishedView, len(p.parties))
	for i := 1; i < len(views); i++ {
		views[i] = p.parties[i].View()
	}
	all := make([]*noiseView, len(p.sum))
	for k := range all {
		var err error
		if all[k], err = p.viewOf(views, k); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// viewOf puts together what the colluders' views say about coordinate k.
//
// The server's permutation of an offer between colluders does not hide the choice
// from them: the receiver sees the difference of the candidates, the sender knows
// both of them.
func (p *publishedRun) viewOf(views []oblivious.PublishedView, k int) (*noiseView, error) {
	v := &noiseView{masked: inLambda(p.sum[k])}
	for i, sender := range views {
		if i == 0 {
			continue
		}
		v.own += inLambda(sender.Own[k])
		received := sender.Received[0]
		v.fromHonest = append(v.fromHonest, inLambda(received[0][k]-received[1][k]))
		v.fromHonestBits = append(v.fromHonestBits, sender.Choices[0][k])
		for j, receiver := range views {
			if j == i {
				continue
			}
			first, second := sender.Terms[j][0][k], sender.Terms[j][1][k]
			sent := candidates{inLambda(first), inLambda(second)}
			if j == 0 {
				v.toHonest = append(v.toHonest, sent)
				continue
			}
			bit := receiver.Choices[i][k]
			offer := receiver.Received[i]
			switch seen := inLambda(offer[0][k] - offer[1][k]); seen {
			case inLambda(first - second):
			case inLambda(second - first):
				bit ^= 1
			default:
				return nil, fmt.Errorf("%w: offer of party %d to party %d, coordinate %d", errViews, i, j, k)
			}
			v.among = append(v.among, sent)
			v.amongBits = append(v.amongBits, bit)
		}
	}
	return v, nil
}

// serverAlone estimates what the server can make of what it carries without any colluder,
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
		remainder := estimate - obliviousScale*p.inputs[k]
		if math.Abs(remainder-last/2) < math.Abs(remainder+last/2) {
			guesses[k] = 1
		}
	}
	return estimates, guesses, nil
}
