package shamir

import "github.com/hushsum/hushsum/shamir/internal/field"

// The m values of a polynomial of degree below t are a codeword of a
// generalised Reed–Solomon code of dimension t. With the weights
// u_i = 1/Π(x_j − x_i), a vector y is a codeword exactly if its r = m − t
// syndromes
//
//	S_k = Σ u_i·y_i·x_i^k,  k = 0, …, r−1,
//
// are zero (Roth 2006, "Introduction to Coding Theory", chapter 5). Otherwise
// they depend on the errors only: S_k = Σ E_i·x_i^k over the wrong i, with
// E_i ≠ 0. This is a linear recurrence whose characteristic polynomial is
// Π(z − x_i) over the wrong i, and the Berlekamp–Massey algorithm finds it if
// at most ⌊r/2⌋ values are wrong. Compared with Berlekamp–Welch or Gao, the
// cost grows with the number of errors: almost all of it is in the syndromes,
// which take small multiplications only.

// CorrectVarTime rebuilds a secret from the shares of all holders: there must
// be one share for each of Indices(), in this order. It returns the indices of
// the shares that it found wrong, in the same order; they are not used.
//
// If accept is not nil and returns true for the secret that the first
// Threshold shares give, that secret is returned and nothing else is done:
// wrong shares among the others go unnoticed. Otherwise up to
// ⌊(m − threshold)/2⌋ wrong shares of m are corrected. If accept then still
// refuses the secret, the error is ErrRefused: the holders agree with each
// other, so the dealer is to blame, unless more shares are wrong than that.
// Without accept, colluding holders above the limit may go unnoticed or make
// honest ones look wrong.
//
// After a correction, leave the named holders out of the next Combiner: looking
// for wrong shares takes m·(m − threshold) small multiplications, and so
// milliseconds where Combine takes microseconds.
//
// The time depends on the shares. Errors: ErrTooFewShares (fewer than
// holders), ErrUnknownIndex, ErrNonCanonical, ErrTooManyWrong, ErrRefused.
func (c *Combiner) CorrectVarTime(
	shares []Share, accept func(Secret) bool,
) (Secret, []uint32, error) {
	if len(shares) < len(c.indices) {
		return Secret{}, nil, ErrTooFewShares
	}
	if len(shares) > len(c.indices) {
		return Secret{}, nil, &IndexError{shares[len(c.indices)].Index, ErrUnknownIndex}
	}
	if accept != nil {
		secret, err := c.Combine(shares)
		if err != nil {
			return Secret{}, nil, err
		}
		if accept(secret) {
			return secret, nil, nil
		}
	}
	values, err := c.decode(shares)
	if err != nil {
		return Secret{}, nil, err
	}
	defer clear(values)
	wrong, ok := c.wrongVarTime(c.syndromes(values))
	if !ok {
		return Secret{}, nil, &WrongSharesError{Limit: c.limit()}
	}
	if len(wrong) == 0 {
		if accept != nil {
			return Secret{}, nil, ErrRefused
		}
		return c.interpolate(values), nil, nil
	}
	var names []uint32
	var good []Share
	for i, s := range shares {
		if len(names) < len(wrong) && wrong[len(names)] == i {
			names = append(names, s.Index)
		} else {
			good = append(good, s)
		}
	}
	rest, err := combinerFor(c.threshold, good)
	if err != nil {
		return Secret{}, nil, err // cannot happen: more than threshold are left
	}
	secret, err := rest.Combine(good)
	if err != nil {
		return Secret{}, nil, err
	}
	if accept != nil && !accept(secret) {
		return Secret{}, nil, ErrRefused
	}
	return secret, names, nil
}

// check returns a WrongSharesError unless the values of all holders lie on one
// polynomial.
func (c *Combiner) check(values []field.Element) error {
	if len(values) == c.threshold {
		return nil
	}
	syndromes := c.syndromes(values)
	var all field.Element
	for i := range syndromes {
		for j := range all {
			all[j] |= syndromes[i][j]
		}
	}
	if all.IsZero() == 1 {
		return nil
	}
	e := &WrongSharesError{Limit: c.limit()}
	if wrong, ok := c.wrongVarTime(syndromes); ok {
		for _, i := range wrong {
			e.Wrong = append(e.Wrong, c.indices[i])
		}
	}
	return e
}

// limit returns the number of wrong shares that can be corrected.
func (c *Combiner) limit() int { return (len(c.indices) - c.threshold) / 2 }

// syndromes returns S_0, …, S_(r−1) of the values of all holders.
func (c *Combiner) syndromes(values []field.Element) []field.Element {
	s := make([]field.Element, len(values)-c.threshold)
	if len(s) == 0 {
		return s
	}
	weights := c.weights()
	for i, x := range c.indices {
		var term field.Element
		term.Mul(&weights[i], &values[i])
		for k := range s {
			s[k].Add(&s[k], &term)
			term.MulSmall(&term, uint64(x))
		}
	}
	return s
}

// wrongVarTime returns the positions of the wrong shares in ascending order,
// or false if there are more than limit().
func (c *Combiner) wrongVarTime(syndromes []field.Element) ([]int, bool) {
	locator := berlekampMasseyVarTime(syndromes)
	degree := len(locator) - 1
	if degree > c.limit() {
		return nil, false
	}
	// locator is Π(1 − x_i·z) over the wrong i. Its reverse has the roots x_i.
	reversed := make([]field.Element, len(locator))
	for i := range locator {
		reversed[degree-i] = locator[i]
	}
	var wrong []int
	if degree > 0 {
		for i, x := range c.indices {
			if v := field.Eval(reversed, x); v.IsZero() == 1 {
				wrong = append(wrong, i)
			}
		}
	}
	// A monic polynomial of this degree with as many distinct roots: the
	// syndromes are those of an error at exactly these places. Fewer roots:
	// no error of limit() or fewer places explains them.
	return wrong, len(wrong) == degree
}

// berlekampMasseyVarTime returns the connection polynomial of the shortest
// linear recurrence that generates s, as L+1 coefficients c[0] = 1, c[1], …,
// c[L] with Σ c[j]·s[k−j] = 0 for k ≥ L (Massey 1969, "Shift-register
// synthesis and BCH decoding").
func berlekampMasseyVarTime(s []field.Element) []field.Element {
	length := 0
	current := []field.Element{field.Small(1)}
	previous := []field.Element{field.Small(1)} // current before the last change of length
	inverse := field.Small(1)                   // 1/(the discrepancy at that change)
	shift := 1                                  // steps since that change
	for k := range s {
		var sum field.Wide
		for j := 0; j < len(current) && j <= length; j++ {
			sum.MulAdd(&current[j], &s[k-j])
		}
		var d field.Element
		if d.Reduce(&sum).IsZero() == 1 {
			shift++
			continue
		}
		// next = current − (d/previous discrepancy)·z^shift·previous
		next := make([]field.Element, max(len(current), len(previous)+shift))
		copy(next, current)
		var factor, t field.Element
		factor.Mul(&d, &inverse)
		for j := range previous {
			t.Mul(&factor, &previous[j])
			next[j+shift].Sub(&next[j+shift], &t)
		}
		if 2*length <= k {
			length = k + 1 - length
			previous, shift = current, 1
			inverse.Invert(&d)
		} else {
			shift++
		}
		current = next
	}
	// Trailing coefficients up to the length may be zero, or missing.
	locator := make([]field.Element, length+1)
	copy(locator, current)
	return locator
}
