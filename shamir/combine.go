package shamir

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/hushsum/hushsum/shamir/internal/field"
)

// Combine rebuilds the secret from at least threshold shares, in any order. Shares beyond the
// threshold are compared with the others: if the shares do not all lie on one polynomial of
// degree below threshold, the error is a [WrongSharesError] that names the wrong ones if it can.
// With exactly threshold shares an incorrect one cannot be noticed.
//
// To rebuild several secrets from the same holders, or to go on in spite of
// wrong shares, use a [Combiner].
//
// Errors: ErrThreshold (below 1), ErrTooFewShares, ErrIndexZero,
// ErrDuplicateIndex, ErrNonCanonical, ErrWrongShares, ErrTooManyWrong.
func Combine(threshold int, shares []Share) (Secret, error) {
	c, err := combinerFor(threshold, shares)
	if err != nil {
		return Secret{}, err
	}
	values, err := c.decode(shares)
	if err != nil {
		return Secret{}, err
	}
	defer clear(values)
	if err := c.check(values); err != nil {
		return Secret{}, err
	}
	return c.interpolate(values), nil
}

// combinerFor returns the Combiner for the holders of the shares.
func combinerFor(threshold int, shares []Share) (*Combiner, error) {
	if threshold >= 1 && len(shares) < threshold {
		return nil, ErrTooFewShares
	}
	indices := make([]uint32, len(shares))
	for i := range shares {
		indices[i] = shares[i].Index
	}
	return NewCombiner(threshold, indices)
}

// A Combiner rebuilds secrets that were shared with one threshold among
// holders whose indices are known in advance, in a fixed order. It holds no
// secret, does not change, and may be used by several goroutines at a time.
type Combiner struct {
	threshold int
	indices   []uint32

	// The Lagrange coefficients at zero of the first threshold holders T, with
	// their common factor apart: the secret is scale·Σ lambda[i]·share[i] over
	// T, where scale = Π x_j over T and lambda[i] = 1/(x_i·Π(x_j − x_i)) over
	// the j ≠ i in T.
	lambda []field.Element
	scale  field.Element

	// mu holds, for each i in A, 1 / (x_i·Π(x_j − x_i)) over the j ≠ i in A.
	// A is T and the next holder, if there is one. Coefficients for A without
	// any one holder follow from it without an inversion. It is nil in a
	// Combiner made by Without.
	mu []field.Element

	// weights returns 1 / Π(x_j − x_i) over all j ≠ i, for every i, computed
	// when first needed: only looking for wrong shares takes it.
	weights func() []field.Element
}

// NewCombiner returns a Combiner for the holders with the given indices. It takes the time of
// about threshold²/5 multiplications of small numbers, and one inversion.
//
// Errors: ErrThreshold, ErrIndexZero, ErrDuplicateIndex.
func NewCombiner(threshold int, indices []uint32) (*Combiner, error) {
	if err := checkIndices(threshold, indices); err != nil {
		return nil, err
	}
	c := &Combiner{threshold: threshold, indices: slices.Clone(indices)}
	a := c.indices[:min(threshold+1, len(indices))]
	c.mu = differences(a)
	for i, x := range a {
		c.mu[i].MulSmall(&c.mu[i], uint64(x))
	}
	field.InvertAll(c.mu)
	c.lambda, c.scale = c.mu, product(a[:threshold])
	if len(a) > threshold {
		c.lambda = muWithout(a, c.mu, threshold)
	}
	c.weights = sync.OnceValue(func() []field.Element {
		w := differences(c.indices)
		field.InvertAll(w)
		return w
	})
	return c, nil
}

// Without returns a Combiner for the same holders except the one with the
// given index. On a Combiner from NewCombiner it takes threshold
// multiplications, about as long as rebuilding a few secrets; on one from
// Without it is NewCombiner again. It serves where a party's shares are held
// by all the other parties.
//
// Errors: ErrUnknownIndex, and ErrThreshold if too few holders would be left.
func (c *Combiner) Without(index uint32) (*Combiner, error) {
	k := slices.Index(c.indices, index)
	if k < 0 {
		return nil, &IndexError{index, ErrUnknownIndex}
	}
	if len(c.indices) == c.threshold {
		return nil, ErrThreshold
	}
	rest := slices.Delete(slices.Clone(c.indices), k, k+1)
	if c.mu == nil {
		return NewCombiner(c.threshold, rest)
	}
	w := &Combiner{threshold: c.threshold, indices: rest, lambda: c.lambda, scale: c.scale}
	if k < c.threshold {
		w.lambda, w.scale = muWithout(c.indices[:c.threshold+1], c.mu, k), product(rest[:c.threshold])
	}
	w.weights = sync.OnceValue(func() []field.Element {
		// Leaving out x_k takes the factor x_k − x_i out of every product.
		weights := slices.Delete(slices.Clone(c.weights()), k, k+1)
		for i, x := range rest {
			mulDifference(&weights[i], index, x)
		}
		return weights
	})
	return w, nil
}

// Threshold returns the number of shares that a secret is rebuilt from.
func (c *Combiner) Threshold() int { return c.threshold }

// Indices returns the holders' indices, in the order in which the methods
// expect the shares.
func (c *Combiner) Indices() []uint32 { return slices.Clone(c.indices) }

// Combine rebuilds a secret from the shares of the first Threshold holders; shares[i] must be
// that of holder Indices()[i]. Further shares are ignored. A wrong share is not noticed: check
// the secret, or use CorrectVarTime.
//
// Errors: ErrTooFewShares, ErrUnknownIndex, ErrNonCanonical.
func (c *Combiner) Combine(shares []Share) (Secret, error) {
	if len(shares) < c.threshold {
		return Secret{}, ErrTooFewShares
	}
	var sum field.Wide
	for i := range c.lambda {
		if shares[i].Index != c.indices[i] {
			return Secret{}, &IndexError{shares[i].Index, ErrUnknownIndex}
		}
		v, err := decode(&shares[i].Value)
		if err != nil {
			return Secret{}, &IndexError{shares[i].Index, err}
		}
		sum.MulAdd(&c.lambda[i], &v)
	}
	return c.scaled(&sum), nil
}

// scaled turns Σ lambda[i]·share[i] into the secret.
func (c *Combiner) scaled(sum *field.Wide) Secret {
	var secret field.Element
	secret.Reduce(sum)
	return secret.Mul(&secret, &c.scale).Bytes()
}

// interpolate is Combine for decoded shares.
func (c *Combiner) interpolate(values []field.Element) Secret {
	var sum field.Wide
	for i := range c.lambda {
		sum.MulAdd(&c.lambda[i], &values[i])
	}
	return c.scaled(&sum)
}

// decode returns the values of the shares, which must be those of all holders
// in order.
func (c *Combiner) decode(shares []Share) ([]field.Element, error) {
	values := make([]field.Element, len(shares))
	for i := range values {
		if shares[i].Index != c.indices[i] {
			return nil, &IndexError{shares[i].Index, ErrUnknownIndex}
		}
		v, err := decode(&shares[i].Value)
		if err != nil {
			return nil, &IndexError{shares[i].Index, err}
		}
		values[i] = v
	}
	return values, nil
}

// muWithout returns mu of a without a[k], given mu of a: leaving out x_k takes
// the factor x_k − x_i out of the denominator of mu[i].
func muWithout(a []uint32, mu []field.Element, k int) []field.Element {
	rest := slices.Delete(slices.Clone(mu), k, k+1)
	for i := range rest {
		x := a[i]
		if i >= k {
			x = a[i+1]
		}
		mulDifference(&rest[i], a[k], x)
	}
	return rest
}

// mulDifference multiplies e by x − y.
func mulDifference(e *field.Element, x, y uint32) {
	if x >= y {
		e.MulSmall(e, uint64(x-y))
	} else {
		e.MulSmall(e, uint64(y-x))
		e.Neg(e)
	}
}

// product returns the product of the xs.
func product(xs []uint32) field.Element {
	return productOfDifferences(xs, 0, 63/bits.Len32(slices.Max(xs)))
}

// differences returns Π(x_j − x_i) over the j ≠ i, for every i.
func differences(xs []uint32) []field.Element {
	most := 63 / bits.Len32(max(1, slices.Max(xs)-slices.Min(xs)))
	ds := make([]field.Element, len(xs))
	for i, x := range xs {
		ds[i] = productOfDifferences(xs, x, most)
	}
	return ds
}

// productOfDifferences returns Π(x_j − x) over the xs other than x. Small public
// numbers are multiplied in a machine word, as many at a time as are sure to fit
// into 63 bits.
func productOfDifferences(xs []uint32, x uint32, most int) field.Element {
	e := field.Small(1)
	negative := false
	for part := range slices.Chunk(xs, most) {
		w := int64(1)
		for _, y := range part {
			if y != x {
				w *= int64(y) - int64(x)
			}
		}
		if w < 0 {
			w, negative = -w, !negative
		}
		e.MulSmall(&e, uint64(w))
	}
	if negative {
		e.Neg(&e)
	}
	return e
}
