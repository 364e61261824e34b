package shamir

import (
	"io"

	"github.com/hushsum/hushsum/shamir/internal/field"
)

// A Packing says how many secrets a polynomial carries and how many holders learn nothing. The
// secrets are the lowest PerPolynomial coefficients and the next Privacy ones are uniform, so
// that the values of any Privacy holders are uniform whatever the secrets are, and any
// PerPolynomial + Privacy holders rebuild everything. In between it is a ramp: each further value
// reveals something (Blakley, Meadows 1984, "Security of ramp schemes"; Franklin, Yung 1992,
// "Communication complexity of secure computation").
//
// Secrets are in coefficients and not, as in the second paper, at further points: for holders
// with indices other than zero that is as private, since the values of Privacy holders are then
// an invertible function of the uniform coefficients, and dealing takes no interpolation.
type Packing struct {
	PerPolynomial int // secrets, at least 1
	Privacy       int // holders that together learn nothing, at least 0
}

// Threshold returns how many values determine a polynomial.
func (p Packing) Threshold() int { return p.PerPolynomial + p.Privacy }

// Polynomials returns how many polynomials carry the given number of secrets.
func (p Packing) Polynomials(secrets int) int {
	return (secrets + p.PerPolynomial - 1) / p.PerPolynomial
}

// A PackedShare is one holder's part of secrets that are dealt together: the value
// of each polynomial at the holder's index. The values are secret.
type PackedShare struct {
	Index  uint32
	Values [][32]byte
}

// SplitPacked shares secrets, PerPolynomial to each polynomial in their order, the
// last one filled with zeros, among the holders with the given indices. The uniform
// coefficients are made from 64 bytes of random each, polynomial after polynomial,
// as in [GenerateSecret]; nil means crypto/rand.Reader.
//
// Errors: ErrPacking, ErrThreshold, ErrIndexZero, ErrDuplicateIndex,
// ErrNonCanonical, or [ErrRandom].
func SplitPacked(
	random io.Reader, p Packing, secrets []Secret, indices []uint32,
) ([]PackedShare, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := checkIndices(p.Threshold(), indices); err != nil {
		return nil, err
	}
	count := p.Polynomials(len(secrets))
	shares := make([]PackedShare, len(indices))
	for i, x := range indices {
		shares[i] = PackedShare{x, make([][32]byte, count)}
	}
	coefficients := make([]field.Element, p.Threshold())
	defer clear(coefficients)
	for k := range count {
		clear(coefficients)
		own := secrets[k*p.PerPolynomial:]
		for j := range min(len(own), p.PerPolynomial) {
			if coefficients[j].SetCanonicalBytes((*[32]byte)(&own[j])) != 1 {
				return nil, ErrNonCanonical
			}
		}
		uniform, err := randomElements(random, p.Privacy)
		if err != nil {
			return nil, err
		}
		copy(coefficients[p.PerPolynomial:], uniform)
		clear(uniform)
		for i, x := range indices {
			v := field.Eval(coefficients, x)
			shares[i].Values[k] = v.Bytes()
		}
	}
	return shares, nil
}

// Add adds the values of t, a share of the same holder, to those of s: the sum of
// shares is a share of the sums. It takes constant time in the values. On
// an error s is unchanged.
//
// Errors: ErrUnknownIndex (another holder), ErrLength (other polynomials),
// ErrNonCanonical.
func (s *PackedShare) Add(t *PackedShare) error {
	if s.Index != t.Index {
		return &IndexError{t.Index, ErrUnknownIndex}
	}
	if len(s.Values) != len(t.Values) {
		return ErrLength
	}
	sums := make([]field.Element, len(s.Values))
	defer clear(sums)
	bad := 0
	for i := range sums {
		var v field.Element
		bad |= 1 - sums[i].SetCanonicalBytes(&s.Values[i])
		bad |= 1 - v.SetCanonicalBytes(&t.Values[i])
		sums[i].Add(&sums[i], &v)
	}
	if bad != 0 {
		return &IndexError{t.Index, ErrNonCanonical}
	}
	for i := range sums {
		s.Values[i] = sums[i].Bytes()
	}
	return nil
}

// CombinePackedVarTime rebuilds the secrets from the shares of any holders, of whom up to faults
// may hand in anything. It returns PerPolynomial secrets for each polynomial and the indices of
// the holders whose shares are wrong, in the order of the shares.
//
// With a shares, e ≤ faults of them wrong, it succeeds exactly if
//
//	a ≥ PerPolynomial + Privacy + faults + e,
//
// for then the polynomials agree with more than their degree of honest shares, and
// are the ones that were dealt. Honest holders are never named, and a result is
// never wrong, as long as no more than faults are dishonest.
//
// The time depends on the shares. Errors: ErrPacking, ErrIndexZero,
// ErrDuplicateIndex, ErrLength (shares of different lengths, or of none),
// ErrNonCanonical, ErrTooFewShares (they would be too few were all of them right)
// and ErrTooManyWrong.
func CombinePackedVarTime(p Packing, faults int, shares []PackedShare) ([]Secret, []uint32, error) {
	if err := p.check(); err != nil {
		return nil, nil, err
	}
	if faults < 0 {
		return nil, nil, ErrPacking
	}
	r := p.Threshold()
	if len(shares) < r+faults {
		return nil, nil, ErrTooFewShares
	}
	values, err := packedValues(shares)
	if err != nil {
		return nil, nil, err
	}
	indices := make([]uint32, len(shares))
	for i := range shares {
		indices[i] = shares[i].Index
	}
	c, err := NewCombiner(r, indices)
	if err != nil {
		return nil, nil, err
	}
	wrong := make([]bool, len(shares))
	var names []uint32
	for _, word := range values {
		at, ok := c.wrongVarTime(c.syndromes(word))
		if !ok {
			return nil, nil, &WrongSharesError{Limit: len(shares) - r - faults}
		}
		for _, i := range at {
			wrong[i] = true
		}
	}
	var good []uint32
	var from []int // positions of the first r good shares
	for i, x := range indices {
		switch {
		case wrong[i]:
			names = append(names, x)
		case len(good) < r:
			good, from = append(good, x), append(from, i)
		}
	}
	if len(shares) < r+faults+len(names) {
		return nil, nil, &WrongSharesError{Limit: len(shares) - r - faults}
	}
	secrets := make([]Secret, 0, len(values)*p.PerPolynomial)
	rows := coefficientRows(good, p.PerPolynomial)
	for _, word := range values {
		for _, row := range rows {
			var sum field.Wide
			for i := range row {
				sum.MulAdd(&row[i], &word[from[i]])
			}
			var e field.Element
			secrets = append(secrets, e.Reduce(&sum).Bytes())
		}
	}
	return secrets, names, nil
}

func (p Packing) check() error {
	if p.PerPolynomial < 1 || p.Privacy < 0 {
		return ErrPacking
	}
	return nil
}

// packedValues returns the shares' values, one word for each polynomial.
func packedValues(shares []PackedShare) ([][]field.Element, error) {
	count := len(shares[0].Values)
	if count == 0 {
		return nil, ErrLength
	}
	words := make([][]field.Element, count)
	for k := range words {
		words[k] = make([]field.Element, len(shares))
	}
	for i := range shares {
		if len(shares[i].Values) != count {
			return nil, &IndexError{shares[i].Index, ErrLength}
		}
		for k := range words {
			v, err := decode(&shares[i].Values[k])
			if err != nil {
				return nil, &IndexError{shares[i].Index, err}
			}
			words[k][i] = v
		}
	}
	return words, nil
}

// coefficientRows returns, for each j < count, the weights of the values at xs in
// coefficient j of the polynomial of degree below len(xs) through them. With
// P = Π(z − x_i), the i-th Lagrange polynomial is P/(z − x_i) over its value at x_i.
func coefficientRows(xs []uint32, count int) [][]field.Element {
	// P, the constant term first; the leading coefficient is 1.
	p := make([]field.Element, len(xs)+1)
	p[0] = field.Small(1)
	var t field.Element
	for k, x := range xs {
		p[k+1] = p[k]
		for j := k; j > 0; j-- {
			t.MulSmall(&p[j], uint64(x))
			p[j].Sub(&p[j-1], &t)
		}
		p[0].MulSmall(&p[0], uint64(x))
		p[0].Neg(&p[0])
	}
	weights := differences(xs) // Π(x_j − x_i): off by a sign for an even count
	field.InvertAll(weights)
	rows := make([][]field.Element, count)
	for j := range rows {
		rows[j] = make([]field.Element, len(xs))
	}
	quotient := make([]field.Element, len(xs))
	for i, x := range xs {
		w := weights[i]
		if len(xs)%2 == 0 {
			w.Neg(&w)
		}
		// Synthetic division by z − x, from the top.
		quotient[len(xs)-1] = p[len(xs)]
		for j := len(xs) - 1; j > 0; j-- {
			t.MulSmall(&quotient[j], uint64(x))
			quotient[j-1].Add(&p[j], &t)
		}
		for j := range rows {
			rows[j][i].Mul(&quotient[j], &w)
		}
	}
	return rows
}
