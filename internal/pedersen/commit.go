package pedersen

import (
	"encoding/binary"
	"fmt"

	"filippo.io/edwards25519"
)

// maxBits is how long the scalars are: their order is below 2^253.
const maxBits = 253

// A Part is values that stand next to each other in a vector. It has either integers or scalars.
type Part struct {
	At       int // place of the first, from 0
	Integers []int64
	Scalars  []*edwards25519.Scalar
	// Bits is public and bounds values: |integer| ≤ 2^Bits, scalar < 2^Bits.
	Bits int
}

// Commit returns the sum of all values, each times the point of its place. It takes a time that
// depends on places, lengths and Bits. It panics if a place is beyond the last point, or if Bits
// is beyond 60 for integers and 253 for scalars.
func (g *Generators) Commit(parts ...Part) *edwards25519.Point {
	var sums [64]accumulator // sums[k] has what is to be multiplied by 16^k
	longest := 0
	for _, p := range parts {
		longest = max(longest, digitsOf(p.Bits))
	}
	for k := range longest {
		sums[k].zero()
	}
	for _, p := range parts {
		count := digitsOf(p.Bits)
		if p.Integers != nil && p.Bits > 60 || p.Bits > maxBits {
			panic(fmt.Sprintf("pedersen: values of %d bits", p.Bits)) // a mistake of the caller
		}
		var value [32]byte
		for i, v := range p.Integers {
			binary.LittleEndian.PutUint64(value[:], uint64(v)+eights)
			g.multiply(sums[:count], p.At+i, &value)
		}
		for i, s := range p.Scalars {
			addEights(&value, s.Bytes())
			g.multiply(sums[:count], p.At+i, &value)
		}
		clear(value[:])
	}
	defer clear(sums[:])
	total := edwards25519.NewIdentityPoint()
	for k := longest - 1; k >= 0; k-- {
		for range 4 {
			total.Double(total)
		}
		total.Add(total, sums[k].point())
	}
	return total
}

// digitsOf returns how many digits −8 … 7 hold all integers of absolute value up to 2^bits.
func digitsOf(bits int) int { return (bits + 2 + 3) / 4 }

// eights has the digit 8 everywhere: adding it makes digits −8 … 7 to digits 0 … 15.
const eights = 0x8888888888888888

// addEights sets sum to the scalar b plus eights in all words. There is no carry out, since
// b < 2^253.
func addEights(sum *[32]byte, b []byte) {
	carry := uint16(0)
	for i := range sum {
		carry += uint16(b[i]) + 0x88
		sum[i] = byte(carry)
		carry >>= 8
	}
}

// multiply adds digit k of value, less 8, times point i to sums[k].
func (g *Generators) multiply(sums []accumulator, i int, value *[32]byte) {
	for k := range sums {
		b := times(&g.multiples[i], value, k)
		sums[k].add(&b)
	}
}

// times returns digit k of value, less 8, times the point of the table, in constant time.
func times(table *[8]affine, value *[32]byte, k int) (b affine) {
	digit := int64(value[k/2]>>(4*(k%2))&15) - 8
	sign := digit >> 63 // 0 or −1
	size := (digit ^ sign) - sign
	b.plus.One() // the identity
	b.minus.One()
	for j := range table {
		// other² − 1 is negative for other = 0 alone.
		other := int64(j+1) - size
		is := int(uint64(other*other-1) >> 63)
		b.plus.Select(&table[j].plus, &b.plus, is)
		b.minus.Select(&table[j].minus, &b.minus, is)
		b.product.Select(&table[j].product, &b.product, is)
	}
	b.negateIf(int(sign & 1))
	return b
}

// A Base is a point with the tables to multiply it by many scalars. It does not change and may be
// shared.
type Base struct {
	multiples [64][8]affine // 1 to 8 times 16^k times the point
}

// NewBase returns the tables of a point.
func NewBase(p *edwards25519.Point) *Base {
	b := new(Base)
	p = new(edwards25519.Point).Set(p)
	for k := range b.multiples {
		b.multiples[k] = multiples(p)
		for range 4 {
			p.Double(p)
		}
	}
	return b
}

// Multiply returns s times the point, in constant time.
func (b *Base) Multiply(s *edwards25519.Scalar) *edwards25519.Point {
	var value [32]byte
	addEights(&value, s.Bytes())
	var sum accumulator
	sum.zero()
	for k := range b.multiples {
		digit := times(&b.multiples[k], &value, k)
		sum.add(&digit)
	}
	clear(value[:])
	return sum.point()
}

// SumVarTime returns Σ scalars[i]·(point i) + Σ others[j].Scalar·others[j].Point, in a time that
// depends on the scalars: Pippenger's algorithm (1976, "On the evaluation of powers and related
// problems") with digits of eight bits.
func (g *Generators) SumVarTime(scalars []*edwards25519.Scalar, others []Term) *edwards25519.Point {
	points := make([]*affine, 0, len(scalars)+len(others))
	digits := make([][33]int16, 0, cap(points))
	for i, s := range scalars {
		points = append(points, &g.multiples[i][0])
		digits = append(digits, bytesOf(s))
	}
	outside := make([]*edwards25519.Point, len(others))
	for i, t := range others {
		outside[i] = t.Point
		digits = append(digits, bytesOf(t.Scalar))
	}
	tables := affines(outside)
	for i := range tables {
		points = append(points, &tables[i])
	}
	total := edwards25519.NewIdentityPoint()
	var buckets [129]accumulator
	var used [129]bool
	for k := 32; k >= 0; k-- {
		for range 8 {
			total.Double(total)
		}
		clear(used[:])
		for i, p := range points {
			d := digits[i][k]
			if d == 0 {
				continue
			}
			b := *p
			if d < 0 {
				d = -d
				b.plus, b.minus = b.minus, b.plus
				b.product.Negate(&b.product)
			}
			if !used[d] {
				used[d] = true
				buckets[d].zero()
			}
			buckets[d].add(&b)
		}
		// Σ d·bucket_d as the sum of all sums from the top.
		running := edwards25519.NewIdentityPoint()
		for d := len(buckets) - 1; d > 0; d-- {
			if used[d] {
				running.Add(running, buckets[d].point())
			}
			total.Add(total, running)
		}
	}
	return total
}

// A Term is a public point and the scalar that multiplies it.
type Term struct {
	Scalar *edwards25519.Scalar
	Point  *edwards25519.Point
}

// bytesOf returns digits −128 … 128 to the base 256.
func bytesOf(s *edwards25519.Scalar) (digits [33]int16) {
	carry := int16(0)
	for i, b := range s.Bytes() {
		d := int16(b) + carry
		carry = (d + 127) >> 8 // 1 above 128
		digits[i] = d - carry<<8
	}
	digits[32] = carry
	return digits
}
