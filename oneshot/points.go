package oneshot

import (
	"math/bits"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
)

// With a bound a member needs one value of P. Where a path to it is shorter than P, dealers sign
// the root of a tree over P(1) … P(C), and members get their value with its path (SPEC-ONESHOT.md
// §14.2).

// byPath reports whether members do.
func (s *settled) byPath() bool { return s.scheme != nil && s.Threshold > s.pointsDepth()+3 }

// pointsDepth is that of the tree.
func (s *settled) pointsDepth() int { return bits.Len(uint(s.c - 1)) }

// entryDealingSize is the length of what a member gets of a dealing.
func (s *settled) entryDealingSize() int {
	if s.byPath() {
		return 32 * (2 + 1 + s.pointsDepth())
	}
	return s.dealingSize()
}

// points are the values of P, and the levels of the tree over them.
type points struct {
	values [][32]byte
	levels [][][32]byte
}

func (p *points) root() []byte { return p.levels[len(p.levels)-1][0][:] }

// pointLeaf binds a member's value of P.
func pointLeaf(context *[32]byte, party, member int, value []byte) [32]byte {
	return hash(labels.OneshotPoint, context[:], uint32Bytes(party), uint32Bytes(member), value)
}

// pointsOf returns those of a dealing, nil for one whose P is no scalars.
func (s *settled) pointsOf(context *[32]byte, party int, dealing []byte) *points {
	var coefficients []*edwards25519.Scalar
	for b := dealing[64:]; len(b) > 0; b = b[32:] {
		c, err := edwards25519.NewScalar().SetCanonicalBytes(b[:32])
		if err != nil {
			return nil
		}
		coefficients = append(coefficients, c)
	}
	p := &points{}
	leaves := make([][32]byte, s.c)
	for k := range leaves {
		x, sum := scalarOf(uint32(k)+1), edwards25519.NewScalar()
		for l := len(coefficients) - 1; l >= 0; l-- {
			sum.MultiplyAdd(sum, x, coefficients[l])
		}
		p.values = append(p.values, [32]byte(sum.Bytes()))
		leaves[k] = pointLeaf(context, party, k, p.values[k][:])
	}
	p.levels = tree(leaves, s.pointsDepth())
	return p
}

// entryDealing returns what a member gets of the dealing of a submission, which was checked.
func (s *settled) entryDealing(
	context *[32]byte, sub *submitted, dealing []byte, member int,
) []byte {
	if !s.byPath() {
		return dealing
	}
	if sub.points == nil {
		sub.points = s.pointsOf(context, sub.party, dealing)
	}
	out := append(append([]byte(nil), dealing[:64]...), sub.points.values[member][:]...)
	for _, sibling := range path(sub.points.levels, member) {
		out = append(out, sibling[:]...)
	}
	return out
}

// entryDigest returns what a statement has of dealing and proof, as a member has them.
func (s *settled) entryDigest(context *[32]byte, e *entry, member int) []byte {
	if !s.byPath() {
		return s.bindDigest(context, e.party, e.dealing, e.proof)
	}
	var siblings [][32]byte
	for b := e.dealing[96:]; len(b) > 0; b = b[32:] {
		siblings = append(siblings, [32]byte(b))
	}
	root := rootOf(pointLeaf(context, e.party, member, e.dealing[64:96]), member, siblings)
	d := hash(labels.OneshotDealing, e.dealing[:64], root[:])
	return append(d[:], e.proof...)
}

// entryFits is fits with what a member has of the dealing.
func (s *settled) entryFits(
	context *[32]byte, e *entry, member int, root [32]byte, plain []byte,
) bool {
	if !s.byPath() {
		return s.fits(context, e.party, member, root, e.masked, e.extra, e.dealing, plain)
	}
	values, ok := s.values(plain)
	if !ok {
		return false
	}
	want, err := edwards25519.NewScalar().SetCanonicalBytes(e.dealing[64:96])
	if err != nil {
		return true // the server would have refused it: it convicts nobody
	}
	t := s.proofStatement(context, e.party, root, e.masked, e.extra, nil)
	return s.prover(e.party).FitsAt(t, (*[32]byte)(e.dealing), (*[32]byte)(e.dealing[32:]), want,
		values)
}

// values reads what a member was dealt, the value of f_0 first, and reports whether it is scalars.
func (s *settled) values(plain []byte) ([]*edwards25519.Scalar, bool) {
	var values []*edwards25519.Scalar
	for range 1 + s.Polynomials {
		v, err := edwards25519.NewScalar().SetCanonicalBytes(plain[:scalarSize])
		if err != nil {
			return nil, false
		}
		values, plain = append(values, v), plain[scalarSize:]
	}
	return append(values[s.Polynomials:], values[:s.Polynomials]...), true
}
