// Package pedersen commits to vectors (Pedersen 1991, "Non-interactive and
// information-theoretic secure verifiable secret sharing"): a commitment to w is
// Σ w_i·G_i + ρ·F for public points G_i and F, whose discrete logarithms to each other nobody
// knows, and a uniform scalar ρ. It tells nobody anything about w, and a party that cannot compute
// discrete logarithms can open it in one way only.
//
// The curve is edwards25519, whose group has eight times as many points as the group of prime order
// that the generators lie in. Nothing here asks in which of them a point from outside lies: a
// comparison multiplies both sides by eight, as [IsSmall] does, so that one point more of small
// order changes no verdict.
//
// [Generators.Commit] takes a time that depends on the sizes that it is given and not on values.
// [Generators.SumVarTime] is for what is public.
package pedersen

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"filippo.io/edwards25519"
	"filippo.io/edwards25519/field"

	"github.com/hushsum/hushsum/internal/cores"
)

// ErrPoint: the bytes are not the canonical encoding of a point of the curve.
var ErrPoint = errors.New("pedersen: not the encoding of a point")

// Generators are public points with what commitments to them take. They do not change and may be
// shared.
type Generators struct {
	multiples [][8]affine // 1 to 8 times each point
}

// NewGenerators makes count points. Point i is eight times the first point that is
// not of small order of those that SHA-256(label ‖ u32(i) ‖ u32(try)), try = 0, 1, …, encodes
// canonically.
func NewGenerators(label string, count int) *Generators {
	g := &Generators{make([][8]affine, count)}
	one := func(i int) error {
		g.multiples[i] = multiples(hashToPoint(label, uint32(i)))
		return nil
	}
	if err := cores.Each(context.Background(), count, one, nil); err != nil {
		panic(err) // cannot happen: nothing fails and nothing is cancelled
	}
	return g
}

// First returns the first of the points, at most as many as there are.
func (g *Generators) First(count int) *Generators { return &Generators{g.multiples[:count]} }

// Count returns the number of points.
func (g *Generators) Count() int { return len(g.multiples) }

// Point returns point i.
func (g *Generators) Point(i int) *edwards25519.Point {
	var a accumulator
	a.zero()
	a.add(&g.multiples[i][0])
	return a.point()
}

func hashToPoint(label string, i uint32) *edwards25519.Point {
	text := binary.BigEndian.AppendUint32([]byte(label), i)
	for try := uint32(0); ; try++ {
		h := sha256.Sum256(binary.BigEndian.AppendUint32(text, try))
		p, err := Parse(&h)
		if err == nil && !IsSmall(p) {
			return p.MultByCofactor(p)
		}
	}
}

// Parse returns the point that b encodes, of any order. It fails with [ErrPoint]; of the encodings
// of one point it takes the canonical one alone, since hashes are over encodings.
func Parse(b *[32]byte) (*edwards25519.Point, error) {
	p, err := new(edwards25519.Point).SetBytes(b[:])
	if err != nil || !bytes.Equal(p.Bytes(), b[:]) {
		return nil, ErrPoint
	}
	return p, nil
}

// IsSmall reports whether 8·p is the identity.
func IsSmall(p *edwards25519.Point) bool {
	return new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) == 1
}

// twiceD is 2·d, d = −121665/121666 being the curve's constant.
var twiceD = func() *field.Element {
	one := new(field.Element).One()
	d := new(field.Element).Invert(new(field.Element).Mult32(one, 121666))
	d.Mult32(d, 121665).Negate(d)
	return d.Add(d, d)
}()

// affine is a point (x, y) as y + x, y − x and 2·d·x·y, which additions take. Hisil, Wong, Carter
// and Dawson (2008, "Twisted Edwards curves revisited") have the formulas; they hold for all points
// of the curve.
type affine struct{ plus, minus, product field.Element }

// affines returns points in that form. One inversion serves them all (Montgomery 1987, "Speeding
// the Pollard and elliptic curve methods of factorization").
func affines(points []*edwards25519.Point) []affine {
	out := make([]affine, len(points))
	before := make([]field.Element, len(points)) // products of all Z that come before
	product := new(field.Element).One()
	for i, p := range points {
		before[i].Set(product)
		_, _, z, _ := p.ExtendedCoordinates()
		product.Multiply(product, z)
	}
	rest := product.Invert(product)
	for i := len(points) - 1; i >= 0; i-- {
		x, y, z, _ := points[i].ExtendedCoordinates()
		inverse := before[i].Multiply(&before[i], rest) // 1/Z
		rest.Multiply(rest, z)
		x.Multiply(x, inverse)
		y.Multiply(y, inverse)
		a := &out[i]
		a.plus.Add(y, x)
		a.minus.Subtract(y, x)
		a.product.Multiply(x, y)
		a.product.Multiply(&a.product, twiceD)
	}
	return out
}

// multiples returns 1 to 8 times p.
func multiples(p *edwards25519.Point) [8]affine {
	points := make([]*edwards25519.Point, 8)
	for i := range points {
		points[i] = new(edwards25519.Point).Set(p)
		if i > 0 {
			points[i].Add(points[i-1], p)
		}
	}
	return [8]affine(affines(points))
}

// negateIf makes a its negative if cond is 1, and leaves it if cond is 0, in the same time.
func (a *affine) negateIf(cond int) {
	a.plus.Swap(&a.minus, cond)
	var negative field.Element
	negative.Negate(&a.product)
	a.product.Select(&negative, &a.product, cond)
}

// accumulator is a point in extended coordinates: (X/Z, Y/Z), T = X·Y/Z.
type accumulator struct{ x, y, z, t field.Element }

func (a *accumulator) zero() {
	a.x.Zero()
	a.y.One()
	a.z.One()
	a.t.Zero()
}

// add adds b, in a time that does not depend on the points.
func (a *accumulator) add(b *affine) {
	var pp, mm, tt, zz, e, f, g, h field.Element
	pp.Add(&a.y, &a.x)
	mm.Subtract(&a.y, &a.x)
	pp.Multiply(&pp, &b.plus)
	mm.Multiply(&mm, &b.minus)
	tt.Multiply(&a.t, &b.product)
	zz.Add(&a.z, &a.z)
	e.Subtract(&pp, &mm)
	h.Add(&pp, &mm)
	g.Add(&zz, &tt)
	f.Subtract(&zz, &tt)
	a.x.Multiply(&e, &f)
	a.y.Multiply(&g, &h)
	a.z.Multiply(&f, &g)
	a.t.Multiply(&e, &h)
}

// point returns the point as the library has it.
func (a *accumulator) point() *edwards25519.Point {
	p, err := new(edwards25519.Point).SetExtendedCoordinates(&a.x, &a.y, &a.z, &a.t)
	if err != nil {
		panic("pedersen: " + err.Error()) // cannot happen: sums of points lie on the curve
	}
	return p
}
