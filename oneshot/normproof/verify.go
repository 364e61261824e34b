package normproof

import (
	"math/big"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/pedersen"
)

// Fits reports whether the values that a member got, of f_0 and then of the polynomials of the key,
// at x, lie on the dealing. It does unless the dealer cheats, if the dealing and all of the
// statement are those that the dealer signed. It fails with [ErrShape] or [ErrEncoding].
func (s *Scheme) Fits(
	t *Statement, d *Dealing, x uint32, values []*edwards25519.Scalar,
) (bool, error) {
	if len(values) != 1+s.polynomials {
		return false, ErrShape
	}
	_, combined, err := s.parse(d)
	if err != nil {
		return false, err
	}
	return s.FitsAt(t, &d.Key, &d.Mask, horner(combined, small(uint64(x))), values), nil
}

// FitsAt is [Scheme.Fits] for whoever has the value of P at x, and the commitments of the dealing,
// by another way. There are as many values as Fits takes.
func (s *Scheme) FitsAt(
	t *Statement, key, mask *[32]byte, want *edwards25519.Scalar, values []*edwards25519.Scalar,
) bool {
	h0 := s.dealingHash(t, key[:], mask[:])
	return horner(values, challenge(&h0, labels.OneshotProofGamma)).Equal(want) == 1
}

// Commit returns the commitment to a key that [Scheme.Prove] makes of it and of a blind, with
// |key[i]| ≤ 2^8, in a time that depends on neither.
func (s *Scheme) Commit(key []int64, blind *edwards25519.Scalar) [32]byte {
	return [32]byte(s.points().Commit(
		pedersen.Part{At: firstPoint, Integers: key, Bits: 8},
		pedersen.Part{At: blindPoint, Scalars: []*edwards25519.Scalar{blind}, Bits: 253}).Bytes())
}

// Opens reports whether a sum of commitments to keys, each of [Dealing.Key], is one to the sum of
// the keys and to the sum of their blinds, with |key[i]| ≤ 2^40. It does not if either is of other
// dealers, or made up.
func (s *Scheme) Opens(sum *edwards25519.Point, key []int64, blind *edwards25519.Scalar) bool {
	if len(key) != s.Degree {
		return false
	}
	got := s.points().Commit(
		pedersen.Part{At: firstPoint, Integers: key, Bits: 40},
		pedersen.Part{At: blindPoint, Scalars: []*edwards25519.Scalar{blind}, Bits: 253})
	return pedersen.IsSmall(got.Subtract(got, sum))
}

// horner returns Σ c[i]·x^i.
func horner(c []*edwards25519.Scalar, x *edwards25519.Scalar) *edwards25519.Scalar {
	sum := edwards25519.NewScalar()
	for i := len(c) - 1; i >= 0; i-- {
		sum.MultiplyAdd(sum, x, c[i])
	}
	return sum
}

// Verify returns nil if the proof holds, the same for everybody. It fails with [ErrShape] for a
// statement that the caller made wrongly, with [ErrEncoding] or with [ErrProof]; the signer of
// dealing and proof is to blame for either of these.
func (s *Scheme) Verify(t *Statement, d *Dealing, encoded []byte) error {
	r, err := s.relate(t, d, encoded, nil)
	if err != nil {
		return err
	}
	if !r.holds(s) {
		return ErrProof
	}
	return nil
}

// relate checks all of a proof but the equations between points, which it returns as one. With a
// probe it checks tests by that, where it is for the statement's ring.
func (s *Scheme) relate(t *Statement, d *Dealing, encoded []byte, by *probe) (*relation, error) {
	if err := s.check(t); err != nil {
		return nil, err
	}
	p, err := s.decode(encoded)
	if err != nil {
		return nil, err
	}
	dealt, combined, err := s.parse(d)
	if err != nil {
		return nil, err
	}
	p.points[ofKey], p.points[ofMask] = dealt[0], dealt[1]

	h0 := s.dealingHash(t, d.Key[:], d.Mask[:])
	gamma := challenge(&h0, labels.OneshotProofGamma)
	h1 := rowsHash(&h0, d.Combined)
	h2 := hash(labels.OneshotProofTau, h1[:], p.sums[:])
	h3 := hash(labels.OneshotProofFlood, h2[:], p.testsEncoded, p.flood[:])
	h4 := hash(labels.OneshotProofSum, h3[:], p.sumsEncoded)
	h5 := hash(labels.OneshotProofEnd, h4[:], p.firstsEncoded)
	chi := challenge(&h5, labels.OneshotProofChallenge)
	h6 := hash(labels.OneshotProofHalves, h5[:], p.restEncoded)
	psi := challenge(&h6, labels.OneshotProofFold)

	sums := make([]*edwards25519.Scalar, floodRows)
	for i := range sums {
		sums[i] = p.flooded[i].scalar()
	}
	p.tests.sums = s.testVectors(&h2)
	if by != nil && by.prepare(&t.RingKey) {
		if !by.agrees(t, &h1, p.tests) {
			return nil, ErrProof
		}
	} else if !p.tests.same(s.fold(t, &h1, &h2)) {
		return nil, ErrProof
	}
	e := s.equation(p.tests, &h1, &h3, &h4, sums, gamma, combined)
	if !s.linear(p, e, chi, psi) {
		return nil, ErrProof
	}
	return s.combined(p, chi, psi, encoded, &h5), nil
}

// linear reports whether ⟨Λ, responses⟩ = θ + χ·λ, ψ times both, with the key's responses folded
// and the response of its blind.
func (s *Scheme) linear(p *proof, e *equation, chi, psi *edwards25519.Scalar) bool {
	want := new(edwards25519.Scalar).MultiplyAdd(chi, e.total, p.tested)
	want.Subtract(want, dot(e.coefficients[s.Degree:], p.responses[s.Degree:]))
	want.Subtract(want, new(edwards25519.Scalar).Multiply(e.blind, p.blinds[ofKey]))
	want.MultiplyAdd(want, psi, p.halfTests[0])
	want.MultiplyAdd(new(edwards25519.Scalar).Multiply(psi, psi), p.halfTests[1], want)
	low, high := e.coefficients[:s.Degree/2], e.coefficients[s.Degree/2:s.Degree]
	got := new(edwards25519.Scalar).MultiplyAdd(psi, dot(low, p.folded), dot(high, p.folded))
	return got.Equal(want) == 1
}

// groups returns where the witnesses of each commitment begin and end.
func (s *Scheme) groups() [commitments][2]int {
	return [commitments][2]int{
		ofKey:   {0, s.Degree},
		ofMask:  {s.mask, s.count},
		ofSums:  {s.Degree, s.quotients},
		ofFlood: {s.quotients, s.mask},
	}
}

// normPlaces returns the places of the numbers whose squares add up to a limit: sums, then the four
// squares.
func (s *Scheme) normPlaces(i int) []int {
	at, squares := s.Degree, s.squares
	if i == 1 {
		at, squares = s.keySums, s.keySquares
	}
	places := make([]int, 0, rows+4)
	for j := range rows {
		places = append(places, at+j)
	}
	for j := range 4 {
		places = append(places, squares+j)
	}
	return places
}

// limit returns slack times the square of the bound on what the sums are of.
func (s *Scheme) limit(i int) *big.Int {
	bound := s.Bound
	if i == 1 {
		bound = s.KeyBound
	}
	return new(big.Int).Mul(big.NewInt(slack), new(big.Int).SetUint64(bound))
}

// A relation is an equation between points: scalars times the generators and terms add up to a
// point of small order.
type relation struct {
	scalars []*edwards25519.Scalar
	terms   []pedersen.Term
	digest  [32]byte // of the whole proof
}

// sum returns the difference of both sides.
func (r *relation) sum(s *Scheme) *edwards25519.Point {
	return s.points().SumVarTime(r.scalars, r.terms)
}

// holds reports whether the equation does: points of small order change no verdict.
func (r *relation) holds(s *Scheme) bool { return pedersen.IsSmall(r.sum(s)) }

// combined returns all equations between points as one, each times a weight made from the whole
// proof: with one whose sides differ by more than a point of small order, the sum does but for one
// weight in 2^252.
func (s *Scheme) combined(
	p *proof, chi, psi *edwards25519.Scalar, encoded []byte, h5 *[32]byte,
) *relation {
	r := &relation{
		scalars: make([]*edwards25519.Scalar, firstPoint+s.count),
		digest:  hash(labels.OneshotProofCombine, h5[:], encoded),
	}
	base := challenge(&r.digest, labels.OneshotProofCombine)
	weight := small(1)
	blind, norm := edwards25519.NewScalar(), edwards25519.NewScalar()
	r.scalars[blindPoint], r.scalars[normPoint] = blind, norm
	minus := func(c *edwards25519.Scalar, point *edwards25519.Point) {
		negative := new(edwards25519.Scalar).Negate(c)
		r.terms = append(r.terms, pedersen.Term{Scalar: negative, Point: point})
	}
	for i, group := range s.groups() { // Com(responses) = A + χ·C
		by := weight
		if i == ofKey { // ψ times it: Com(ψ·folded, folded) + ψ·blind·F = ψ·(A + χ·C) + X + ψ²·Y
			by = new(edwards25519.Scalar).Multiply(weight, psi)
			minus(weight, p.halfPoints[0])
			minus(new(edwards25519.Scalar).Multiply(by, psi), p.halfPoints[1])
			for j, c := range p.folded {
				r.scalars[firstPoint+j] = new(edwards25519.Scalar).Multiply(by, c)
				r.scalars[firstPoint+len(p.folded)+j] = new(edwards25519.Scalar).Multiply(weight, c)
			}
		} else {
			for j := group[0]; j < group[1]; j++ {
				r.scalars[firstPoint+j] = new(edwards25519.Scalar).Multiply(weight, p.responses[j])
			}
		}
		blind.MultiplyAdd(by, p.blinds[i], blind)
		minus(by, p.firstPoints[i])
		minus(new(edwards25519.Scalar).Multiply(by, chi), p.points[i])
		weight = new(edwards25519.Scalar).Multiply(weight, base)
	}
	for i := range p.norms { // (Σ responses² − χ²·limit)·H + blind·F = E_0 + χ·E_1
		squares := edwards25519.NewScalar()
		for _, j := range s.normPlaces(i) {
			squares.MultiplyAdd(p.responses[j], p.responses[j], squares)
		}
		limit := new(edwards25519.Scalar).Multiply(chi, scalarOf(s.limit(i)))
		squares.Subtract(squares, limit.Multiply(limit, chi))
		norm.MultiplyAdd(weight, squares, norm)
		blind.MultiplyAdd(weight, p.normBlinds[i], blind)
		minus(weight, p.normPoints[i][0])
		minus(new(edwards25519.Scalar).Multiply(weight, chi), p.normPoints[i][1])
		weight = new(edwards25519.Scalar).Multiply(weight, base)
	}
	return r
}

// scalarOf returns a public number of less than 128 bits.
func scalarOf(x *big.Int) *edwards25519.Scalar {
	low := new(big.Int).And(x, new(big.Int).SetUint64(^uint64(0)))
	return pair(low.Uint64(), new(big.Int).Rsh(x, 64).Uint64())
}
