package oblivious

import (
	"encoding/binary"
	"io"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/oblivious/internal/ristretto"
)

// keySize is the length of a key message: pk_i, then c and z of its proof.
const keySize = elementSize + 2*scalarSize

// makeKey draws a share sk of the joint key and proves that the party knows it (Schnorr
// 1991), so that no party can choose its share as a function of the others': K = w·G, c = H(…,
// pk, K), z = w + c·sk.
func makeKey(
	context [32]byte, party int, random io.Reader,
) (secret *edwards25519.Scalar, message []byte, err error) {
	secret, err = drawScalar(random)
	if err != nil {
		return nil, nil, err
	}
	w, err := drawScalar(random)
	if err != nil {
		return nil, nil, err
	}
	message = appendElement(nil, new(edwards25519.Point).ScalarBaseMult(secret))
	k := appendElement(nil, new(edwards25519.Point).ScalarBaseMult(w))
	c := challenge(labels.JointProofKey, context[:], number(party), message, k)
	message = append(message, c.Bytes()...)
	message = append(message, w.MultiplyAdd(c, secret, w).Bytes()...)
	*w = edwards25519.Scalar{}
	return secret, message, nil
}

// takeKey checks a key message and returns pk. It fails with [ErrEncoding] or [ErrProof].
func takeKey(context [32]byte, party int, message []byte) (*edwards25519.Point, error) {
	if len(message) != keySize {
		return nil, ErrEncoding
	}
	key, err := decodePoint(message[:elementSize])
	if err != nil {
		return nil, err
	}
	c, err := decodeScalar(message[elementSize : elementSize+scalarSize])
	if err != nil {
		return nil, err
	}
	z, err := decodeScalar(message[elementSize+scalarSize:])
	if err != nil {
		return nil, err
	}
	k := new(edwards25519.Point).
		VarTimeDoubleScalarBaseMult(new(edwards25519.Scalar).Negate(c), key, z)
	if challenge(labels.JointProofKey, context[:], number(party), message[:elementSize],
		appendElement(nil, k)).Equal(c) == 0 {
		return nil, ErrProof
	}
	return key, nil
}

// opening decrypts a sum: shares D_k = sk·A_k of all parties.
type opening struct {
	before [32]byte
	sums   []ciphertext // S_k = (A_k, B_k)
}

// shareSize is the length of a share message: D_k for each coordinate, then c and z.
func shareSize(length int) int { return length*elementSize + 2*scalarSize }

// combine returns M = Σ ρ_k·A_k and Z = Σ ρ_k·D_k. Every weight ρ_k, of 128 bits, is a hash of
// all shares, so that a party has no choice of one D_k that leaves another's weight as it is.
func (o *opening) combine(
	party int, encoded []byte, shares []*edwards25519.Point,
) (m, z *edwards25519.Point) {
	seed := digest(labels.JointWeightsShare, o.before[:], number(party), encoded)
	rho, points := make([]*edwards25519.Scalar, len(shares)), make([]*edwards25519.Point, len(shares))
	for k := range rho {
		h := digest(labels.JointWeightsShare, seed[:], number(k))
		rho[k], points[k] = weight(h[:]), &o.sums[k].a
	}
	m = new(edwards25519.Point).VarTimeMultiScalarMult(rho, points)
	return m, new(edwards25519.Point).VarTimeMultiScalarMult(rho, shares)
}

// challenge is over all shares and the two first moves of the proof. pk and the sums are fixed by
// what the session agreed on.
func (o *opening) challenge(
	party int, encoded []byte, k1, k2 *edwards25519.Point,
) *edwards25519.Scalar {
	moves := appendElement(appendElement(nil, k1), k2)
	return challenge(labels.JointProofShare, o.before[:], number(party), moves, encoded)
}

// make makes a share message, with one proof for all coordinates that log_G pk = log_M Z (Chaum,
// Pedersen 1992): K_1 = w·G, K_2 = w·M, c = H(…), z = w + c·sk.
func (o *opening) make(
	party int, secret *edwards25519.Scalar, random io.Reader,
) ([]byte, error) {
	w, err := drawScalar(random)
	if err != nil {
		return nil, err
	}
	message := make([]byte, 0, shareSize(len(o.sums)))
	shares := make([]*edwards25519.Point, len(o.sums))
	for k := range shares {
		shares[k] = new(edwards25519.Point).ScalarMult(secret, &o.sums[k].a)
		message = appendElement(message, shares[k])
	}
	m, _ := o.combine(party, message, shares)
	c := o.challenge(party, message, new(edwards25519.Point).ScalarBaseMult(w), m.ScalarMult(w, m))
	message = append(message, c.Bytes()...)
	message = append(message, w.MultiplyAdd(c, secret, w).Bytes()...)
	*w = edwards25519.Scalar{}
	return message, nil
}

// take checks a share message of the party with the given part of the key, and returns the
// D_k. It fails with [ErrEncoding] or [ErrProof].
func (o *opening) take(
	party int, key *edwards25519.Point, message []byte,
) ([]*edwards25519.Point, error) {
	if len(message) != shareSize(len(o.sums)) {
		return nil, ErrEncoding
	}
	shares := make([]*edwards25519.Point, len(o.sums))
	encoded, rest := message[:len(shares)*elementSize], message[len(shares)*elementSize:]
	for k := range shares {
		var err error
		if shares[k], err = decodePoint(encoded[k*elementSize : (k+1)*elementSize]); err != nil {
			return nil, err
		}
	}
	c, err := decodeScalar(rest[:scalarSize])
	if err != nil {
		return nil, err
	}
	z, err := decodeScalar(rest[scalarSize:])
	if err != nil {
		return nil, err
	}
	m, combined := o.combine(party, encoded, shares)
	negative := new(edwards25519.Scalar).Negate(c)
	k1 := new(edwards25519.Point).VarTimeDoubleScalarBaseMult(negative, key, z)
	k2 := new(edwards25519.Point).VarTimeMultiScalarMult(
		[]*edwards25519.Scalar{z, negative}, []*edwards25519.Point{m, combined})
	if o.challenge(party, encoded, k1, k2).Equal(c) == 0 {
		return nil, ErrProof
	}
	return shares, nil
}

// open returns the sums, given the shares of all parties: v_k with v_k·G = B_k − Σ D_k, from 0 to
// most. It fails with [ErrProof] if there is no such v_k, which cannot happen while proofs hold.
func (o *opening) open(shares [][]*edwards25519.Point, most uint64) ([]uint64, error) {
	points := make([]*edwards25519.Point, len(o.sums))
	for k := range points {
		points[k] = new(edwards25519.Point).Set(&o.sums[k].b)
		for _, of := range shares {
			points[k].Subtract(points[k], of[k])
		}
	}
	return logarithms(points, most)
}

// maxTable bounds how many multiples of G are tabled.
const maxTable = 1 << 20

// logarithms returns v_k from 0 to most with v_k·G = points[k], or [ErrProof]: by steps of as many
// multiples of G as there are in a table (Shanks 1971), whose size is best for all the points
// together. Its time depends on the v_k, which are public.
func logarithms(points []*edwards25519.Point, most uint64) ([]uint64, error) {
	size := uint64(1)
	for size < maxTable && size <= most && size*size < most*uint64(len(points)) {
		size *= 2
	}
	place := func(p *edwards25519.Point) (uint64, [ristretto.Size]byte) {
		encoded := ristretto.Encode(p)
		return binary.LittleEndian.Uint64(encoded[:]), encoded
	}
	table := make(map[uint64]uint64, size)
	p := edwards25519.NewIdentityPoint()
	for v := range size {
		at, _ := place(p)
		table[at] = v
		p.Add(p, generator)
	}
	step := p.Negate(p) // −size·G
	values := make([]uint64, len(points))
	for k, point := range points {
		rest := new(edwards25519.Point).Set(point)
		for high := uint64(0); ; high += size {
			if high > most {
				return nil, ErrProof
			}
			at, encoded := place(rest)
			if v, ok := table[at]; ok && high+v <= most {
				if _, full := place(new(edwards25519.Point).ScalarBaseMult(small(v))); full == encoded {
					values[k] = high + v
					break
				}
			}
			rest.Add(rest, step)
		}
	}
	return values, nil
}
