package committee

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/ring"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot"
)

// The bound of the attacks on bounded norms: inputs of four values of eight bits are within it.
const normBound = 256

// normWorld is a round with noise, all of whose members and parties but the last are honest. The
// target without the defence has no bound.
type normWorld struct {
	*round
	figures oneshot.Figures
	bounded bool
}

func newNormWorld(seed uint64, bounded bool) (*normWorld, error) {
	return termedNormWorld(seed, bounded, func(*oneshot.Config) error { return nil })
}

// termedNormWorld is newNormWorld with a change of the configuration.
func termedNormWorld(
	seed uint64, bounded bool, change func(*oneshot.Config) error,
) (*normWorld, error) {
	w, err := newWorld(seed, 0, true)
	if err != nil {
		return nil, err
	}
	terms := &w.config.Terms
	honest := int64(terms.MinSurvivors - terms.Colluders)
	if terms.Noise, err = noise.DiscreteGaussian(big.NewRat(50*honest, 1)); err != nil {
		return nil, err
	}
	if bounded {
		terms.Norm = normBound
	}
	if err := change(w.config); err != nil {
		return nil, err
	}
	if w.figures, err = w.config.Parameters(); err != nil {
		return nil, err
	}
	if w.digest, err = w.config.Digest(); err != nil {
		return nil, err
	}
	r, err := newRound(w)
	if err != nil {
		return nil, err
	}
	return &normWorld{round: r, figures: w.figures, bounded: bounded}, nil
}

// message returns what an honest client of the party sends.
func (n *normWorld) message(party int) ([]byte, error) {
	p, err := oneshot.NewParty(n.w.config, n.w.partyKeys[party], nil)
	if err != nil {
		return nil, err
	}
	return p.Submit(n.w.opening, []byte(model), n.w.inputs[party])
}

// parts are those of a submission, which share its memory.
type parts struct {
	context                                          [32]byte
	masked, dealing, proof, leaves, boxes, signature []byte
}

func (n *normWorld) cut(message []byte) (*parts, error) {
	header, body, err := wire.ParseHeader(message)
	if err != nil {
		return nil, err
	}
	p := &parts{context: header.Session}
	values := n.figures.Polynomials
	take := func(size int) []byte {
		part := body[:size]
		body = body[size:]
		return part
	}
	p.masked = take(n.w.packedSize())
	if n.bounded {
		values++ // of f_0
		p.dealing = take(32 * (2 + n.figures.Threshold))
	}
	box := 32 + 32*values + 32 + 16
	p.proof = take(len(body) - members*(32+box) - 64)
	p.leaves, p.boxes = take(32*members), take(box*members)
	p.signature = body
	return p, nil
}

// sign signs a submission again.
func (n *normWorld) sign(party int, p *parts, key ed25519.PrivateKey) error {
	d := &dealing{party: party, masked: p.masked}
	for k := range members {
		d.leaves = append(d.leaves, p.leaves[32*k:][:32])
	}
	label, signed := labels.OneshotParty, n.w.statement(d)
	if n.bounded {
		label = labels.OneshotBoundedParty
		signed = slices.Concat(signed, h(labels.OneshotDealing, p.dealing),
			h(labels.OneshotProofDigest, p.proof))
	}
	signature, err := keyexchange.Sign(key, label, signed)
	copy(p.signature, signature[:])
	return err
}

// cheat returns what the last party sends after a change, signed by it.
func (n *normWorld) cheat(change func(p *parts)) ([]byte, error) {
	message, err := n.message(parties - 1)
	if err != nil {
		return nil, err
	}
	p, err := n.cut(message)
	if err != nil {
		return nil, err
	}
	change(p)
	return message, n.sign(parties-1, p, n.w.partyKeys[parties-1])
}

func (n *normWorld) ring() *ring.Ring { return ring.New(degree, n.figures.Modulus) }

// add adds a number to the first value under a mask.
func (n *normWorld) add(p *parts, x int64) {
	r := n.ring()
	y := make([]uint64, length+n.figures.Spare)
	r.AddPacked(y, p.masked)
	r.AddSigned(y[:1], []int64{x})
	r.AppendPacked(p.masked[:0], y)
}

// spoil adds to each coordinate, those without an input too, of which a sum with a bound has none.
func (n *normWorld) spoil(p *parts) {
	r := n.ring()
	y := make([]uint64, length+n.figures.Spare)
	r.AddPacked(y, p.masked)
	for i := range y {
		r.AddSigned(y[i:i+1], []int64{int64(n.figures.Modulus / 3)})
	}
	r.AppendPacked(p.masked[:0], y)
}

// outcome holds the result of a round with a cheat.
type outcome struct {
	lost  bool
	far   bool // the sum is further from that of honest inputs than a party may take it
	named bool
	proof *oneshot.Evidence
}

// play runs the round with a cheat's message.
func (n *normWorld) play(message []byte) (*outcome, error) {
	out := new(outcome)
	total := make([]int64, length)
	for i := range parties {
		honest := message
		if i < parties-1 {
			var err error
			if honest, err = n.message(i); err != nil {
				return nil, err
			}
			for k, v := range n.w.inputs[i] {
				total[k] += v
			}
		}
		var named *oneshot.PartyError
		err := n.server.Receive(honest)
		switch {
		case errors.As(err, &named) && named.Party == parties-1:
			out.named, out.proof = true, named.Evidence
		case err != nil:
			return nil, err
		}
	}
	if err := n.settle(); err != nil {
		return nil, err
	}
	for _, err := range n.server.Convicted() {
		var named *oneshot.PartyError
		if !errors.As(err, &named) || named.Party != parties-1 {
			return nil, fmt.Errorf("somebody honest is convicted: %w", err)
		}
		out.named, out.proof = true, named.Evidence
	}
	sum, err := n.finish()
	if out.lost = err != nil; out.lost {
		return out, nil
	}
	for k, v := range sum {
		// 3.05 times the bound and noise, and the noise of the sum.
		if off := v - total[k]; off > 8*normBound || off < -8*normBound {
			out.far = true
		}
	}
	return out, nil
}

// runNormLong has a party send more than it may: without a bound nothing keeps it.
func runNormLong(r *runner) error {
	for _, c := range []struct {
		name, metric string
		cheat        func(n *normWorld, p *parts)
		of           func(*outcome) bool
	}{
		{"a hundred times the bound in one value", "sums moved",
			func(n *normWorld, p *parts) { n.add(p, 100*normBound) },
			func(o *outcome) bool { return o.far }},
		{"a vector that fits no key", "rounds lost",
			func(n *normWorld, p *parts) { n.spoil(p) },
			func(o *outcome) bool { return o.lost }},
	} {
		var did [2]bool
		for i, bounded := range []bool{false, true} {
			n, err := newNormWorld(r.o.Seed, bounded)
			if err != nil {
				return err
			}
			message, err := n.cheat(func(p *parts) { c.cheat(n, p) })
			if err != nil {
				return err
			}
			out, err := n.play(message)
			if err != nil {
				return err
			}
			if did[i] = c.of(out); bounded && (!out.named || out.proof.Verify() != nil) {
				return errors.New("nobody is named, or the evidence does not hold")
			}
		}
		r.counts(c.name, c.metric, did[0], did[1])
		r.rows[len(r.rows)-1].Note = "named, with evidence that convinces others"
	}
	return r.weightAbove()
}

// runNormRubbish has a party send proofs that do not hold, each signed, one after the other.
func runNormRubbish(r *runner) error {
	n, err := newNormWorld(r.o.Seed, true)
	if err != nil {
		return err
	}
	const tries = 5
	key := new(keyexchange.SealKey)
	state, err := n.server.Save(key)
	if err != nil {
		return err
	}
	var checks [2]int // by a server that forgets whom it has refused, and by one that does not
	for i := range tries {
		message, err := n.cheat(func(p *parts) {
			last := p.proof[len(p.proof)-32:]
			clear(last)
			last[0] = byte(i)
		})
		if err != nil {
			return err
		}
		forgets, err := oneshot.LoadServer(n.w.config, 0, key, state)
		if err != nil {
			return err
		}
		for i, server := range []*oneshot.Server{forgets, n.server} {
			switch err := server.Receive(message); {
			case errors.Is(err, oneshot.ErrProof):
				checks[i]++
			case !errors.Is(err, oneshot.ErrDuplicate):
				return fmt.Errorf("a rubbish proof: %w", err)
			}
		}
	}
	r.rows = append(r.rows, attacks.Row{Case: fmt.Sprintf("%d signed proofs that do not hold", tries),
		Metric:     "proofs checked",
		Undefended: attacks.Exactly(float64(checks[0]), tries, tries),
		Defended:   attacks.Exactly(float64(checks[1]), tries, 1)})
	return nil
}

// runNormFrame has a server show others what an honest party sent as if it had cheated.
func runNormFrame(r *runner) error {
	n, err := newNormWorld(r.o.Seed, true)
	if err != nil {
		return err
	}
	message, err := n.cheat(func(p *parts) { n.add(p, 100*normBound) })
	if err != nil {
		return err
	}
	var named *oneshot.PartyError
	if err := n.server.Receive(message); !errors.As(err, &named) {
		return err
	}
	evidence, err := named.Evidence.AppendBinary(nil)
	if err != nil {
		return err
	}
	victim, err := n.message(0)
	if err != nil {
		return err
	}
	honest, err := n.cut(victim)
	if err != nil {
		return err
	}
	cheat, err := n.cut(message)
	if err != nil {
		return err
	}
	d := &dealing{}
	for k := range members {
		d.leaves = append(d.leaves, honest.leaves[32*k:][:32])
	}
	root := d.level()[3][0]
	prefix := evidence[:len(evidence)-
		(4+64+len(cheat.dealing)+32+len(cheat.masked)+len(cheat.proof))]
	for _, c := range []struct {
		name                         string
		party                        int
		signature, dealing, y, proof []byte
	}{
		{"its own", 0, honest.signature, honest.dealing, honest.masked, honest.proof},
		{"its name on a cheat's", 0, cheat.signature, cheat.dealing, cheat.masked, cheat.proof},
		{"a cheat's proof", 0, honest.signature, honest.dealing, honest.masked, cheat.proof},
		{"a cheat's vector", 0, honest.signature, honest.dealing, cheat.masked, honest.proof},
		{"a cheat's dealing", 0, honest.signature, cheat.dealing, honest.masked, honest.proof},
	} {
		forged, err := oneshot.ParseEvidence(slices.Concat(prefix, u32(c.party), c.signature, c.dealing,
			root, c.y, c.proof))
		if err != nil {
			return err
		}
		r.rows = append(r.rows, attacks.Row{Case: "evidence: " + c.name,
			Metric:   "honest parties convicted",
			Defended: attacks.Exactly(one(forged.Verify() == nil), 1, 0)})
	}
	return r.frameByDealing()
}
