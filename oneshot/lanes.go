package oneshot

import (
	"encoding/binary"
	"math/big"
	"math/bits"

	"github.com/hushsum/hushsum/shamir"
)

// lanes is how many bits a coefficient of the key gets in a scalar, into which coefficients are
// packed as signed lanes. While all sums of lanes stay in range, scalars add up to the packing of
// the sums, and so say no more than those.
type lanes int

// narrow lanes are those without a bound: 13 of 19 bits fill 247 of 252. A lane's sum over 2^20
// parties deviates by 6.4·2^10 and stays within ±2^18 up to 40 deviations.
const narrow lanes = 19

// laneRoom is how many bits of a scalar lanes may take.
const laneRoom = 251

// inScalar is how many lanes a scalar has.
func (l lanes) inScalar() int { return laneRoom / int(l) }

// scalars is how many scalars a key takes.
func (l lanes) scalars() int { return (degree + l.inScalar() - 1) / l.inScalar() }

// order is that of the scalar field, 2^252 + 27742317777372353535851937790883648493,
// in 64-bit limbs, the lowest first.
var order = [4]uint64{0x5812631a5cf5d3ed, 0x14def9dea2f79cd6, 0, 1 << 60}

// pack returns Σ key[13i + j]·2^(19j) modulo the order, for each i, or the like for lanes of
// another width. Its time does not depend on the key, whose coefficients are below 2^18.
func (l lanes) pack(key []int64) []shamir.Secret {
	out := make([]shamir.Secret, 0, l.scalars())
	width := uint(l) & 63
	for len(key) > 0 {
		group := key[:min(l.inScalar(), len(key))]
		key = key[len(group):]
		var v [4]uint64 // in two's complement
		for j := len(group) - 1; j >= 0; j-- {
			v[3] = v[3]<<width | v[2]>>(64-width)
			v[2] = v[2]<<width | v[1]>>(64-width)
			v[1] = v[1]<<width | v[0]>>(64-width)
			v[0] <<= width
			low, sign := uint64(group[j]), uint64(group[j]>>63)
			var carry uint64
			v[0], carry = bits.Add64(v[0], low, 0)
			for i := 1; i < 4; i++ {
				v[i], carry = bits.Add64(v[i], sign, carry)
			}
		}
		negative := uint64(int64(v[3]) >> 63)
		var carry uint64
		for i := range v {
			v[i], carry = bits.Add64(v[i], order[i]&negative, carry)
		}
		var secret shamir.Secret
		for i := range v {
			binary.LittleEndian.PutUint64(secret[8*i:], v[i])
		}
		out = append(out, secret)
	}
	return out
}

// unpackVarTime undoes pack on sums, and reports false if they are of no lanes within
// range, ±2^18 for those of 19 bits, or if there are coefficients beyond the degree.
func (l lanes) unpackVarTime(secrets []shamir.Secret) ([]int64, bool) {
	modulus, offset := new(big.Int), new(big.Int)
	for i := 3; i >= 0; i-- {
		modulus.Lsh(modulus, 64).Or(modulus, new(big.Int).SetUint64(order[i]))
	}
	width, edge := uint(l), int64(1)<<(l-1)
	for range l.inScalar() {
		offset.Lsh(offset, width).Or(offset, big.NewInt(edge))
	}
	half := new(big.Int).Rsh(modulus, 1)
	key := make([]int64, 0, degree)
	lane, mask := new(big.Int), big.NewInt(1<<width-1)
	for k, secret := range secrets {
		for i := range 16 {
			secret[i], secret[31-i] = secret[31-i], secret[i]
		}
		v := new(big.Int).SetBytes(secret[:])
		if v.Cmp(half) > 0 {
			v.Sub(v, modulus)
		}
		if k >= l.scalars() {
			if v.Sign() != 0 {
				return nil, false
			}
			continue
		}
		v.Add(v, offset)
		if v.Sign() < 0 || v.BitLen() > l.inScalar()*int(l) {
			return nil, false
		}
		for range l.inScalar() {
			x := lane.And(v, mask).Int64() - edge
			v.Rsh(v, width)
			if len(key) < degree {
				key = append(key, x)
			} else if x != 0 {
				return nil, false
			}
		}
	}
	return key, len(key) == degree
}
