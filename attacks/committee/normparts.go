package committee

import (
	"encoding/hex"
	"math/big"
	"math/rand/v2"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/internal/pedersen"
	"github.com/hushsum/hushsum/oneshot/crook"
	"github.com/hushsum/hushsum/oneshot/normproof"
)

// The proof's numbers: SPEC-ONESHOT.md §13.2.
const (
	rows      = 256
	slack     = 256
	unwrapped = 24 // the least modulus, in β
	longKey   = 973
)

// runNormParts takes one part of the proof away at a time, from the steps of SPEC-ONESHOT.md §13
// written anew: what then passes that is no short vector under a key.
func runNormParts(r *runner) error {
	random := rand.New(rand.NewPCG(r.o.Seed, 3))
	r.counts("(q − 1)/2 in every coordinate, by rows of −1 and 1 alone", "longest vectors that pass",
		longest(func() int64 { return 2*random.Int64N(2) - 1 }),
		longest(func() int64 { return random.Int64N(2) - random.Int64N(2) }))
	r.counts("any vector at all, by a modulus of three times the bound", "vectors that pass",
		anything(random, 3), anything(random, unwrapped) || taken(unwrapped-1) || !taken(unwrapped))
	r.rows[len(r.rows)-1].Note = "with: the scheme takes no modulus of less than 24 times the bound"
	early, late := keyAfterRows(random)
	r.counts("a key that is chosen after the rows, by lattice reduction", "vectors that pass", early,
		late)
	r.rows[len(r.rows)-1].Note = "a toy: two rows, 20 coefficients"
	wrapped, shown := wrappedSquares(random)
	r.counts("squares that fill up a norm modulo the order", "sums ten times too long that pass",
		wrapped, wrapped && shown)
	if err := r.knownGamma(); err != nil {
		return err
	}
	lost := func(bits int) bool { return !edge(bits, 10_000*longKey) }
	r.counts("10,000 with keys that are longest in one coefficient",
		"sums of keys that are lost", lost(19), lost(crook.LaneBits(10_000)))
	r.counts("first messages that are used twice", "keys found", twice("a", "a"),
		twice("a", "another"))
	again, drawn := orthogonal(random)
	r.counts("a false test, orthogonal to the coins of the batch before", "false tests that pass",
		again, drawn)
	r.rows[len(r.rows)-1].Note = "without: coins that serve again; with: coins of each batch, which " +
		"it passes with 10^-6 a pair"
	single, cofactor := verdicts(r.o.Seed)
	r.rows = append(r.rows, attacks.Row{Case: "a point of order 8 on C_s, alone and in a batch",
		Metric:     "proofs with two verdicts",
		Undefended: attacks.Proportion(single, twins, 0.7, 1),
		Defended:   attacks.Exactly(float64(cofactor), twins, 0),
		Note:       "without: equality of points, in place of that of 8 times the points"})
	return nil
}

// passes reports whether sums modulo q are within the limit of a bound.
func passes(sums []int64, q, bound int64) bool {
	square := new(big.Int)
	for _, u := range sums {
		if u %= q; u > q/2 {
			u -= q
		} else if u < -q/2 {
			u += q
		}
		square.Add(square, new(big.Int).Mul(big.NewInt(u), big.NewInt(u)))
	}
	limit := new(big.Int).Mul(big.NewInt(bound), big.NewInt(bound))
	return square.Cmp(limit.Mul(limit, big.NewInt(slack))) <= 0
}

// The least modulus of the attacks.
const modulus = 0xfc001

// longest reports whether the longest vector of 100 coordinates passes, with rows of such entries.
func longest(entry func() int64) bool {
	sums := make([]int64, rows)
	for i := range sums {
		for range 100 {
			sums[i] += entry() * (modulus - 1) / 2
		}
	}
	return passes(sums, modulus, modulus/unwrapped)
}

// anything reports whether a uniform vector of 1,000 coordinates passes with a modulus that is a
// given multiple of the bound.
func anything(random *rand.Rand, times int64) bool {
	z := make([]int64, 1000)
	for i := range z {
		z[i] = random.Int64N(modulus)
	}
	sums := make([]int64, rows)
	for i := range sums {
		for _, x := range z {
			sums[i] += (random.Int64N(2) - random.Int64N(2)) * x
		}
	}
	return passes(sums, modulus, modulus/times)
}

// taken reports whether there is a scheme for a modulus of so many times the bound.
func taken(times uint64) bool {
	bound := modulus / times
	_, err := normproof.New(normproof.Parameters{Degree: degree, Modulus: modulus, Length: length,
		Bound: bound * bound, KeyBound: longKey, PerPolynomial: 1, Threshold: 2, LaneBits: 19})
	return err == nil
}

// keyAfterRows reports whether there is a short key for sums of a uniform vector to be short, found
// by somebody who knows the rows, and whether it serves with rows that are drawn after it.
func keyAfterRows(random *rand.Rand) (known, drawn bool) {
	const count, sums = 20, 2
	y := []int64{random.Int64N(modulus), random.Int64N(modulus)} // of R·y
	draw := func() (a [sums][count]int64) {                      // of R·a
		for r := range a {
			for i := range a[r] {
				a[r][i] = random.Int64N(modulus)
			}
		}
		return a
	}
	a := draw()
	const mark = 4
	basis := make([][]int64, count+sums+1)
	for i := range basis {
		basis[i] = make([]int64, count+sums+1)
		switch {
		case i < count:
			basis[i][i] = 1
			for r := range a {
				basis[i][count+r] = a[r][i]
			}
		case i < count+sums:
			basis[i][i] = modulus
		default:
			copy(basis[i][count:], y)
			basis[i][i] = mark
		}
	}
	reduce(basis)
	for _, row := range basis {
		sign := row[count+sums] / mark
		if sign != 1 && sign != -1 {
			continue
		}
		s := make([]int64, count) // R·y − R·a·s remains
		for i := range s {
			s[i] = -sign * row[i]
		}
		short := func(a [sums][count]int64, y []int64) bool {
			square := int64(0)
			for r := range a {
				u := y[r]
				for i, x := range s {
					u = (u - a[r][i]*x) % modulus
				}
				if u = (u + modulus) % modulus; u > modulus/2 {
					u -= modulus
				}
				square += u * u
			}
			key := int64(0)
			for _, x := range s {
				key += x * x
			}
			return key <= 31*31 && square <= 1000 // 6.4·√20·1.1
		}
		fresh := []int64{random.Int64N(modulus), random.Int64N(modulus)}
		if short(a, y) {
			return true, short(draw(), fresh)
		}
	}
	return false, false
}

// wrappedSquares reports whether two squares are found that fill up the norm of sums ten times too
// long modulo the order, and whether 128 sums of these under noise are within their range.
func wrappedSquares(random *rand.Rand) (filled, shown bool) {
	l, limit := order, big.NewInt(slack*1000*1000)
	norm := new(big.Int).Mul(limit, big.NewInt(100))
	missing := new(big.Int).Sub(limit, norm)
	missing.Mod(missing, l)
	x, y := new(big.Int), (*big.Int)(nil)
	for y == nil {
		x.Add(x, big.NewInt(1))
		rest := new(big.Int).Sub(missing, new(big.Int).Mul(x, x))
		y = new(big.Int).ModSqrt(rest.Mod(rest, l), l)
	}
	norm.Add(norm, new(big.Int).Mul(x, x)).Add(norm, new(big.Int).Mul(y, y))
	filled = norm.Mod(norm, l).Cmp(limit) == 0
	shown = true
	least, most := new(big.Int).Lsh(big.NewInt(-1), 116), new(big.Int).Lsh(big.NewInt(7), 115)
	for range 128 {
		f := new(big.Int).Lsh(big.NewInt(random.Int64()), 117-63) // m
		for _, w := range []*big.Int{x, y} {
			f.Add(f, new(big.Int).Mul(w, big.NewInt(random.Int64N(2)-random.Int64N(2))))
		}
		if f.Mod(f, l); f.Cmp(new(big.Int).Rsh(l, 1)) > 0 {
			f.Sub(f, l)
		}
		shown = shown && f.Cmp(least) >= 0 && f.Cmp(most) < 0
	}
	return filled, shown
}

// knownGamma has a dealer that knows γ before it deals, as from an earlier dealing, change two
// values of a member so that they make up for each other.
func (r *runner) knownGamma() error {
	n, err := newNormWorld(r.o.Seed, true)
	if err != nil {
		return err
	}
	gamma := hashed("the γ of an earlier dealing")
	combined := func(values [][32]byte) *edwards25519.Scalar {
		sum := edwards25519.NewScalar()
		for i := len(values) - 2; i >= 0; i-- { // the last is f_0's
			c, err := edwards25519.NewScalar().SetCanonicalBytes(values[i][:])
			if err != nil {
				panic("attacks: " + err.Error()) // it was encoded from a scalar
			}
			sum.MultiplyAdd(sum, gamma, c)
		}
		return sum
	}
	passes := false
	cheat := crook.Dealer{Config: n.w.config, Key: n.w.partyKeys[0], Vector: n.w.inputs[0],
		Spoil: func(member int, values [][32]byte) {
			if member != 2 {
				return
			}
			before, seven := combined(values), hashed("seven")
			less := new(edwards25519.Scalar).Multiply(seven, new(edwards25519.Scalar).Invert(gamma))
			for i, x := range []*edwards25519.Scalar{seven, less.Negate(less)} {
				c, err := edwards25519.NewScalar().SetCanonicalBytes(values[i][:])
				if err != nil {
					panic("attacks: " + err.Error()) // it was encoded from a scalar
				}
				values[i] = [32]byte(c.Add(c, x).Bytes())
			}
			passes = before.Equal(combined(values)) == 1
		}}
	message, err := cheat.Submit(n.w.opening)
	if err != nil {
		return err
	}
	p, err := n.cut(message)
	if err != nil {
		return err
	}
	convicts, err := n.complains(0, 2, p, p.dealing)
	if err != nil {
		return err
	}
	r.counts("two shares that make up for each other by a γ that is known",
		"members with bad shares that fit", passes, !convicts)
	return nil
}

// edge reports whether lanes of a given width in bits give back a coefficient, and the next one.
func edge(bits int, coefficient int64) bool {
	half := int64(1) << (bits - 1)
	sum := coefficient + half + (5+half)<<bits
	low, high := sum&(2*half-1)-half, sum>>bits-half
	return low == coefficient && high == 5
}

// twice reports whether two responses with such first messages give the witness away.
func twice(first, second string) bool {
	w, chi, other := hashed("w"), hashed("chi"), hashed("other")
	z := new(edwards25519.Scalar).MultiplyAdd(chi, w, hashed(first))
	y := new(edwards25519.Scalar).MultiplyAdd(other, w, hashed(second))
	z.Subtract(z, y)
	chi.Subtract(chi, other)
	return z.Multiply(z, chi.Invert(chi)).Equal(w) == 1
}

// orthogonal reports whether a test n with other numbers than the true ones is taken by the coins r
// and w that it is made for, and by fresh ones: whether ⟨n, r⟩ + w·c is as for the true n and c.
func orthogonal(random *rand.Rand) (known, drawn bool) {
	const size, q = 16, modulus
	coins := func() (r [size]int64) {
		for i := range r {
			r[i] = 1 + random.Int64N(q-1)
		}
		return r
	}
	var off [size]int64 // from the true n; c is the true one
	passes := func(r [size]int64) bool {
		sum := int64(0)
		for i, x := range off {
			sum = (sum + x*r[i]) % q
		}
		return sum == 0
	}
	before := coins()
	off[0], off[1] = before[1], q-before[0]
	return passes(before), passes(coins())
}

// twins is how many proofs are checked twice.
const twins = 16

// verdicts counts proofs with a point of order 8 on what they commit to of which a check by itself
// and one in a batch say different things, for equality of points and for that of eight times them.
func verdicts(seed uint64) (points, cofactor int) {
	encoded, err := hex.DecodeString(
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
	if err != nil {
		panic("attacks: " + err.Error()) // a constant
	}
	torsion, err := new(edwards25519.Point).SetBytes(encoded)
	if err != nil {
		panic("attacks: " + err.Error()) // a constant
	}
	random := rand.New(rand.NewPCG(seed, 4))
	equal := func(p *edwards25519.Point) bool {
		return p.Equal(edwards25519.NewIdentityPoint()) == 1
	}
	g := pedersen.NewGenerators("attacks", 1)
	for range twins {
		scalar := func() *edwards25519.Scalar {
			var b [64]byte
			for i := range b {
				b[i] = byte(random.Uint32())
			}
			c, err := new(edwards25519.Scalar).SetUniformBytes(b[:])
			if err != nil {
				panic("attacks: " + err.Error()) // they are 64 bytes
			}
			return c
		}
		w, a, chi := scalar(), scalar(), scalar()
		committed := g.SumVarTime([]*edwards25519.Scalar{w}, nil)
		committed.Add(committed, torsion)
		first := g.SumVarTime([]*edwards25519.Scalar{a}, nil)
		z := a.MultiplyAdd(chi, w, a)
		difference := func(weight *edwards25519.Scalar) *edwards25519.Point {
			by := new(edwards25519.Scalar).Negate(weight)
			return g.SumVarTime([]*edwards25519.Scalar{new(edwards25519.Scalar).Multiply(weight, z)},
				[]pedersen.Term{{Scalar: by, Point: first},
					{Scalar: new(edwards25519.Scalar).Multiply(by, chi), Point: committed}})
		}
		alone := difference(unit())
		// Of many weights of a batch some give another verdict than the check alone.
		byPoints, by8 := false, false
		for range 32 {
			batch := difference(scalar())
			byPoints = byPoints || equal(alone) != equal(batch)
			by8 = by8 || pedersen.IsSmall(alone) != pedersen.IsSmall(batch)
		}
		if byPoints {
			points++
		}
		if by8 {
			cofactor++
		}
	}
	return points, cofactor
}

// unit is the scalar 1.
func unit() *edwards25519.Scalar {
	c, err := edwards25519.NewScalar().SetCanonicalBytes(append([]byte{1}, make([]byte, 31)...))
	if err != nil {
		panic("attacks: " + err.Error()) // a constant
	}
	return c
}
