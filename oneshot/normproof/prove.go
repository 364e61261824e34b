package normproof

import (
	"fmt"
	"io"
	"math/big"
	"math/bits"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/pedersen"
	"github.com/hushsum/hushsum/noise"
)

// A Witness holds the secrets that prove a statement.
type Witness struct {
	Key   []int64              // s
	Blind *edwards25519.Scalar // of the commitment to it: uniform, and dealt after the key
	Noisy []int64              // y − a·s, with its noise
	// Polynomials are f_0, all coefficients of which are uniform, and those that carry the key,
	// each with Threshold coefficients. Secrets are the first.
	Polynomials [][]*edwards25519.Scalar
}

// Prove returns a dealing and its proof. random is where everything that hides the witness comes
// from; nil means crypto/rand. It fails with [ErrShape], [ErrLimit] or [ErrRandom]. A witness that
// does not fit its statement gives a proof that does not hold.
func (s *Scheme) Prove(random io.Reader, t *Statement, w *Witness) (*Dealing, []byte, error) {
	if err := s.check(t); err != nil {
		return nil, nil, err
	}
	if len(w.Key) != s.Degree || w.Blind == nil || len(w.Noisy) != s.Length ||
		len(w.Polynomials) != 1+s.polynomials {
		return nil, nil, ErrShape
	}
	for _, f := range w.Polynomials {
		if len(f) != s.Threshold {
			return nil, nil, ErrShape
		}
	}
	if !within(w.Key, smallKey) || !within(w.Noisy, 1<<33) {
		return nil, nil, ErrLimit
	}
	v := &prover{Scheme: s, statement: t, witness: w, random: noise.Expand(random)}
	defer v.erase()
	if err := v.run(); err != nil {
		return nil, nil, err
	}
	return &v.dealing, s.append(make([]byte, 0, s.Size()), &v.proof), nil
}

// within reports whether all values are between −limit and limit, in a time that does not depend on
// them.
func within(values []int64, limit int64) bool {
	out := int64(0)
	for _, v := range values {
		out |= (v + limit) | (limit - v)
	}
	return out >= 0
}

type prover struct {
	*Scheme
	statement *Statement
	witness   *Witness
	random    io.Reader

	dealing Dealing
	proof   proof
	gamma   *edwards25519.Scalar
	h1, h2  [32]byte

	small   []int64                // s, u, u', squares, quotients
	flood   []flooded              // m
	w       []*edwards25519.Scalar // all witnesses
	blinds  [commitments]*edwards25519.Scalar
	failure error // of random
}

func (v *prover) erase() {
	clear(v.small)
	clear(v.flood)
	for _, c := range append(v.w, v.blinds[:]...) {
		c.Set(edwards25519.NewScalar())
	}
}

// uniform draws a scalar.
func (v *prover) uniform() *edwards25519.Scalar {
	var b [64]byte
	if err := entropy.Read("normproof", v.random, b[:]); err != nil {
		v.failure = err
	}
	return fromWide(b[:])
}

// commit commits to values of one commitment, or of one norm if they are at normPoint.
func (v *prover) commit(blind *edwards25519.Scalar, parts ...pedersen.Part) [32]byte {
	scalars := []*edwards25519.Scalar{blind}
	parts = append(parts, pedersen.Part{At: blindPoint, Scalars: scalars, Bits: 253})
	return [32]byte(v.points().Commit(parts...).Bytes())
}

// integers is the part of small witnesses from a place on.
func (v *prover) integers(from, to, bits int) pedersen.Part {
	return pedersen.Part{At: firstPoint + from, Integers: v.small[from:to], Bits: bits}
}

func (v *prover) run() error {
	p := &v.proof
	v.small = make([]int64, v.Scheme.flood)
	copy(v.small, v.witness.Key)
	for i := range v.blinds {
		v.blinds[i] = v.uniform()
	}
	v.blinds[ofKey].Set(v.witness.Blind)
	v.deal()
	if err := v.project(); err != nil {
		return err
	}
	bound, keyBound := sumBits(v.Bound), sumBits(v.KeyBound)
	p.sums = v.commit(v.blinds[ofSums],
		v.integers(v.Degree, v.keySums, bound), v.integers(v.keySums, v.squares, keyBound),
		v.integers(v.squares, v.keySquares, bound), v.integers(v.keySquares, v.quotients, keyBound))
	v.h2 = hash(labels.OneshotProofTau, v.h1[:], p.sums[:])
	tests := v.fold(v.statement, &v.h1, &v.h2)
	p.testsEncoded = v.encodeTests(tests)
	v.divide(tests)
	if err := v.drawFlood(); err != nil {
		return err
	}
	var noise []*edwards25519.Scalar
	for _, m := range v.flood {
		noise = append(noise, pair(m.low, m.high))
	}
	p.flood = v.commit(v.blinds[ofFlood],
		v.integers(v.quotients, v.Scheme.flood, v.quotientBits()),
		pedersen.Part{At: firstPoint + v.Scheme.flood, Scalars: noise, Bits: floodBits})
	h3 := hash(labels.OneshotProofFlood, v.h2[:], p.testsEncoded, p.flood[:])
	v.addSums(&h3)
	h4 := hash(labels.OneshotProofSum, h3[:], p.sumsEncoded)

	for _, x := range v.small {
		v.w = append(v.w, signed(x))
	}
	v.w = append(v.w, noise...)
	for _, c := range v.witness.Polynomials[0][:v.PerPolynomial] {
		v.w = append(v.w, new(edwards25519.Scalar).Set(c))
	}
	var sums, combined []*edwards25519.Scalar
	for i := range p.flooded {
		sums = append(sums, p.flooded[i].scalar())
	}
	for i := range v.dealing.Combined {
		c, err := new(edwards25519.Scalar).SetCanonicalBytes(v.dealing.Combined[i][:])
		if err != nil {
			panic("normproof: " + err.Error()) // cannot happen: it was encoded from a scalar
		}
		combined = append(combined, c)
	}
	v.respond(v.equation(tests, &v.h1, &h3, &h4, sums, v.gamma, combined), &h4)
	return v.failure
}

// deal commits to the key and makes P.
func (v *prover) deal() {
	d, f := &v.dealing, v.witness.Polynomials
	d.Key = v.commit(v.blinds[ofKey], v.integers(0, v.Degree, 8))
	d.Mask = v.commit(v.blinds[ofMask], pedersen.Part{
		At: firstPoint + v.mask, Scalars: f[0][:v.PerPolynomial], Bits: 253,
	})
	h0 := v.dealingHash(v.statement, d.Key[:], d.Mask[:])
	v.gamma = challenge(&h0, labels.OneshotProofGamma)
	for l := range v.Threshold {
		var column []*edwards25519.Scalar
		for j := range f {
			column = append(column, f[j][l])
		}
		d.Combined = append(d.Combined, [32]byte(horner(column, v.gamma).Bytes()))
	}
	v.h1 = rowsHash(&h0, d.Combined)
}

// project makes the sums of coordinates, and the four squares that fill each norm up to its limit.
func (v *prover) project() error {
	for i, values := range [][]int64{v.witness.Noisy, v.witness.Key} {
		places := v.normPlaces(i)
		sums := v.small[places[0]:][:rows]
		r := matrix{rows: rows, stream: stream(&v.h1, uint64(i))}
		r.times(sums, values)
		var high, low uint64
		for _, u := range sums {
			size := uint64((u ^ u>>63) - u>>63)
			h, l := bits.Mul64(size, size)
			var c uint64
			low, c = bits.Add64(low, l, 0)
			high += h + c
		}
		rest := new(big.Int).SetUint64(high)
		rest.Lsh(rest, 64).Add(rest, new(big.Int).SetUint64(low))
		if rest.Sub(v.limit(i), rest).Sign() < 0 {
			return ErrLimit
		}
		four, err := fourSquares(v.random, rest)
		if err != nil {
			return err
		}
		copy(v.small[places[rows]:], four[:])
	}
	return nil
}

// divide makes the quotients of the tests: the rest of c − ⟨τ, u⟩ − ⟨n, s⟩ is zero, and the
// quotient below 2^63, so that it is the same modulo 2^64.
func (v *prover) divide(tests *tests) {
	inverse := v.Modulus // correct to three bits; each step doubles them
	for range 5 {
		inverse *= 2 - v.Modulus*inverse
	}
	for t := range tests.totals {
		x := tests.totals[t]
		for i, tau := range tests.sums[t] {
			x -= tau * uint64(v.small[v.Degree+i])
		}
		for j, n := range tests.keys[t] {
			x -= n * uint64(v.small[j])
		}
		v.small[v.quotients+t] = int64(x * inverse)
	}
}

// drawFlood draws the noise of the sums that are shown.
func (v *prover) drawFlood() error {
	var b [16 * floodRows]byte
	if err := entropy.Read("normproof", v.random, b[:]); err != nil {
		return err
	}
	for i := range floodRows {
		var m flooded
		for j, x := range b[16*i:][:8] {
			m.low |= uint64(x) << (8 * j)
		}
		for j, x := range b[16*i+8:][:8] {
			m.high |= uint64(x) << (8 * j)
		}
		m.high &= 1<<(floodBits-64) - 1
		v.flood = append(v.flood, m)
	}
	clear(b[:])
	return nil
}

// addSums makes the sums that are shown.
func (v *prover) addSums(h3 *[32]byte) {
	sums := make([]int64, floodRows)
	defer clear(sums)
	m := matrix{rows: floodRows, stream: stream(h3, 0)}
	m.times(sums, v.small)
	for i, x := range sums {
		var c uint64
		f := v.flood[i]
		f.low, c = bits.Add64(f.low, uint64(x), 0)
		f.high, _ = bits.Add64(f.high, uint64(x>>63), c)
		f.high += 1 << (floodBits - 1 - 64)
		v.proof.flooded = append(v.proof.flooded, f)
	}
	v.proof.encodeSums()
}

// respond makes first messages, challenge and responses.
func (v *prover) respond(e *equation, h4 *[32]byte) {
	p := &v.proof
	a := make([]*edwards25519.Scalar, v.count)
	for i := range a {
		a[i] = v.uniform()
	}
	var blinds [commitments]*edwards25519.Scalar
	for i, group := range v.groups() {
		blinds[i] = v.uniform()
		p.first[i] = v.commit(blinds[i], pedersen.Part{
			At: firstPoint + group[0], Scalars: a[group[0]:group[1]], Bits: 253,
		})
	}
	var normBlinds [2][2]*edwards25519.Scalar
	for i := range p.norms {
		squares, products := edwards25519.NewScalar(), edwards25519.NewScalar()
		for _, j := range v.normPlaces(i) {
			squares.MultiplyAdd(a[j], a[j], squares)
			products.MultiplyAdd(a[j], v.w[j], products)
		}
		products.Add(products, products)
		for j, c := range []*edwards25519.Scalar{squares, products} {
			normBlinds[i][j] = v.uniform()
			p.norms[i][j] = v.commit(normBlinds[i][j], pedersen.Part{
				At: normPoint, Scalars: []*edwards25519.Scalar{c}, Bits: 253,
			})
		}
	}
	p.tested = dot(e.coefficients, a)
	p.tested.MultiplyAdd(e.blind, blinds[ofKey], p.tested)
	p.encodeFirsts()
	h5 := hash(labels.OneshotProofEnd, h4[:], p.firstsEncoded)
	chi := challenge(&h5, labels.OneshotProofChallenge)
	for i := range a {
		p.responses = append(p.responses, a[i].MultiplyAdd(chi, v.w[i], a[i]))
	}
	for i := range blinds {
		p.blinds[i] = blinds[i].MultiplyAdd(chi, v.blinds[i], blinds[i])
	}
	for i, b := range normBlinds {
		p.normBlinds[i] = b[0].MultiplyAdd(chi, b[1], b[0])
	}
	v.halve(e, &h5)
}

// halve folds the key's responses into half as many (Bünz, Bootle, Boneh, Poelstra, Wuille, Maxwell
// 2018, one step). They tell nothing, so that times may depend on them.
func (v *prover) halve(e *equation, h5 *[32]byte) {
	p, half := &v.proof, v.Degree/2
	low, high := p.responses[:half], p.responses[half:v.Degree]
	for i, part := range [2][]*edwards25519.Scalar{low, high} {
		other := half * (1 - i)
		scalars := make([]*edwards25519.Scalar, firstPoint+v.Degree)
		for j := range scalars {
			scalars[j] = edwards25519.NewScalar()
		}
		copy(scalars[firstPoint+other:], part)
		p.halves[i] = [32]byte(v.points().SumVarTime(scalars, nil).Bytes())
		p.halfTests[i] = dot(part, e.coefficients[other:][:half])
	}
	v.encodeRest(p)
	h6 := hash(labels.OneshotProofHalves, h5[:], p.restEncoded)
	psi := challenge(&h6, labels.OneshotProofFold)
	for i := range low {
		p.folded = append(p.folded, new(edwards25519.Scalar).MultiplyAdd(psi, high[i], low[i]))
	}
}

var errSquares = fmt.Errorf("%w: no four squares found", ErrRandom)
