package committee

import (
	"slices"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/oneshot/crook"
	"github.com/hushsum/hushsum/oneshot/normproof"
)

// frameByDealing has the server show members other dealings than an honest party's, for them to
// open the party's leaves. A member that took the server's word for a dealing would.
func (r *runner) frameByDealing() error {
	n, err := newNormWorld(r.o.Seed, true)
	if err != nil {
		return err
	}
	dealt := make([][][32]byte, members)
	honest := crook.Dealer{Config: n.w.config, Key: n.w.partyKeys[0], Vector: n.w.inputs[0],
		Spoil: func(member int, values [][32]byte) { dealt[member] = slices.Clone(values) }}
	message, err := honest.Submit(n.w.opening)
	if err != nil {
		return err
	}
	p, err := n.cut(message)
	if err != nil {
		return err
	}
	for k, what := range []string{"C_s", "C_0", "P"} { // each to a member that has seen nothing yet
		other := slices.Clone(p.dealing)
		switch what { // C_s and C_0 are points: one takes the place of the other
		case "C_s":
			copy(other, p.dealing[32:64])
		case "C_0":
			copy(other[32:], p.dealing[:32])
		case "P":
			other[64] ^= 1
		}
		opens, err := n.trusts(0, k, p, other, dealt[k])
		if err != nil {
			return err
		}
		answers, err := n.complains(0, k, p, other)
		if err != nil {
			return err
		}
		r.counts("a member is shown another "+what, "leaves of honest parties opened", opens,
			answers)
		r.rows[len(r.rows)-1].Note = "P, C_s and C_0 are under the party's signature"
	}
	return nil
}

// complains shows a member what a party has dealt it, with a dealing, and reports whether it opens
// its leaf in a complaint.
func (n *normWorld) complains(party, member int, p *parts, dealing []byte) (bool, error) {
	b := slices.Concat(n.w.header(typeBatch, &n.w.context), u32(1), u32(party), p.signature,
		h(labels.OneshotMasked, p.masked), dealing, h(labels.OneshotProofDigest, p.proof))
	at := member
	for _, level := range p.dealt().level()[:3] {
		b = append(b, level[at^1]...)
		at /= 2
	}
	box := len(p.boxes) / members
	answer, err := n.round.members[member].Receive(append(b, p.boxes[member*box:][:box]...))
	if err != nil {
		return false, err
	}
	const complaint = 76
	return answer[1] == complaint, nil
}

// dealt returns what the tree of a submission is over.
func (p *parts) dealt() *dealing {
	d := &dealing{masked: p.masked}
	for k := range members {
		d.leaves = append(d.leaves, p.leaves[32*k:][:32])
	}
	return d
}

// statement returns what the proof of a party's submission is about.
func (n *normWorld) statement(party int, p *parts) *normproof.Statement {
	y := make([]uint64, length+n.figures.Spare)
	n.ring().AddPacked(y, p.masked)
	return &normproof.Statement{
		Config: n.w.digest, Context: n.w.context, Party: uint32(party),
		RingKey: [32]byte(h(labels.OneshotRing, n.w.context[:])),
		Root:    [32]byte(p.dealt().level()[3][0]),
		Digest:  [32]byte(h(labels.OneshotMasked, p.masked)), Masked: y,
	}
}

// dealingOf returns C_s, C_0 and P.
func dealingOf(b []byte) *normproof.Dealing {
	d := &normproof.Dealing{Key: [32]byte(b), Mask: [32]byte(b[32:])}
	for c := range slices.Chunk(b[64:], 32) {
		d.Combined = append(d.Combined, [32]byte(c))
	}
	return d
}

// trusts reports whether a member would open what it was dealt, did it take a dealing as the server
// shows it.
func (n *normWorld) trusts(
	party, member int, p *parts, dealing []byte, dealt [][32]byte,
) (bool, error) {
	scheme, err := crook.Scheme(n.w.config)
	if err != nil {
		return false, err
	}
	var values []*edwards25519.Scalar
	for i := range dealt {
		c, err := edwards25519.NewScalar().SetCanonicalBytes(dealt[i][:])
		if err != nil {
			return false, err
		}
		values = append(values, c)
	}
	last := len(values) - 1 // of f_0
	values = append(values[last:], values[:last]...)
	fits, err := scheme.Fits(n.statement(party, p), dealingOf(dealing), uint32(member)+1, values)
	return !fits, err
}
