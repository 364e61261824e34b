package oblivious

import (
	"crypto/sha512"
	"encoding/binary"
	"io"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/oblivious/internal/ristretto"
)

// The base transfers are those of (Masny, Rindal 2019), "Endemic Oblivious
// Transfer", from Diffie-Hellman over ristretto255: one message each way, which
// may cross.
//
//	receiver, choice c:  a random, r_{1−c} random, r_c = a·G − H_c(r_{1−c});  sends r_0, r_1
//	sender:              y random;                                            sends B = y·G
//	keys:                k_b = KDF(y·(r_b + H_b(r_{1−b})))    the receiver has k_c, from a·B
//
// r_0 and r_1 are uniform whatever c is, so the choice is hidden from everyone,
// without an assumption. A receiver that could know both a_0 and a_1 would have to
// fix r_0 before H_1(r_0) and r_1 before H_0(r_1), one of which comes first. One B
// serves all 128 instances of a pair, for which the paper has a proof in the
// programmable random-oracle model under an interactive Diffie-Hellman
// assumption. A cheating side can choose its own keys (the
// security is "endemic"): that is harmless here, since keys only ever encrypt what
// the sender chooses anyway.

const (
	kappa     = 128 // base transfers per ordered pair, and the width of a row
	blockSize = kappa / 8
	pairSize  = 2 * ristretto.Size
	// setupSize is the length of the body of a set-up message.
	setupSize = ristretto.Size + kappa*pairSize
)

// baseReceiver is the receiver of kappa base transfers.
type baseReceiver struct {
	choices element
	a       [kappa]edwards25519.Scalar
	r       [kappa * pairSize]byte // r_0 and r_1, encoded
}

// newBaseReceiver draws the choices and makes the first message, for the context
// of this pair and direction.
func newBaseReceiver(context [32]byte, random io.Reader) (*baseReceiver, error) {
	b := new(baseReceiver)
	choices, err := draw(random, blockSize)
	if err != nil {
		return nil, err
	}
	b.choices = elementOf(choices)
	for k := range b.a {
		wide, err := draw(random, 128)
		if err != nil {
			return nil, err
		}
		b.a[k].SetUniformBytes(wide[:64]) // cannot fail: the length is right
		other := ristretto.Encode(ristretto.FromUniform((*[64]byte)(wide[64:])))
		c := byte(b.choices.bit(k))
		own := new(edwards25519.Point).ScalarBaseMult(&b.a[k])
		chosen := ristretto.Encode(own.Subtract(own, point(context, k, c, other[:])))
		// r_c is chosen and r_{1−c} the other, without a branch on c.
		for i := range chosen {
			swap := (chosen[i] ^ other[i]) & -c
			b.r[k*pairSize+i] = chosen[i] ^ swap
			b.r[k*pairSize+ristretto.Size+i] = other[i] ^ swap
		}
		clear(wide)
	}
	return b, nil
}

// keys returns the chosen keys, given the sender's message.
func (b *baseReceiver) keys(context [32]byte, message []byte) (keys [kappa][32]byte, err error) {
	y, err := decodePoint(message)
	if err != nil {
		return keys, err
	}
	for k := range keys {
		shared := new(edwards25519.Point).ScalarMult(&b.a[k], y)
		keys[k] = baseKey(context, k, byte(b.choices.bit(k)), message, b.r[k*pairSize:(k+1)*pairSize],
			shared)
	}
	return keys, nil
}

// erase forgets the secrets.
func (b *baseReceiver) erase() { b.choices, b.a = element{}, [kappa]edwards25519.Scalar{} }

// baseSender is the sender of kappa base transfers.
type baseSender struct {
	y       edwards25519.Scalar
	message [ristretto.Size]byte // B, encoded
}

func newBaseSender(random io.Reader) (*baseSender, error) {
	wide, err := draw(random, 64)
	if err != nil {
		return nil, err
	}
	b := new(baseSender)
	b.y.SetUniformBytes(wide)
	clear(wide)
	b.message = ristretto.Encode(new(edwards25519.Point).ScalarBaseMult(&b.y))
	return b, nil
}

// keys returns both keys of each transfer, given the receiver's message.
func (b *baseSender) keys(context [32]byte, r []byte) (keys [2][kappa][32]byte, err error) {
	for k := range kappa {
		pair := r[k*pairSize : (k+1)*pairSize]
		for c := range 2 {
			own, other := pair[c*ristretto.Size:][:ristretto.Size],
				pair[(1-c)*ristretto.Size:][:ristretto.Size]
			p, err := decodePoint(own)
			if err != nil {
				return keys, err
			}
			p.Add(p, point(context, k, byte(c), other))
			keys[c][k] = baseKey(context, k, byte(c), b.message[:], pair, p.ScalarMult(&b.y, p))
		}
	}
	return keys, nil
}

func (b *baseSender) erase() { b.y = edwards25519.Scalar{} }

// decodePoint decodes an element that is not the identity.
func decodePoint(b []byte) (*edwards25519.Point, error) {
	p, err := ristretto.Decode(b)
	if err != nil || [ristretto.Size]byte(b) == [ristretto.Size]byte{} {
		return nil, ErrEncoding
	}
	return p, nil
}

// point is H_c of transfer k.
func point(context [32]byte, k int, c byte, r []byte) *edwards25519.Point {
	h := sha512.New()
	h.Write([]byte(labels.ObliviousPoint))
	h.Write(context[:])
	h.Write([]byte{byte(k), c})
	h.Write(r)
	return ristretto.FromUniform((*[64]byte)(h.Sum(nil)))
}

// baseKey is the KDF. It binds all that was sent.
func baseKey(
	context [32]byte, k int, c byte, message, pair []byte, shared *edwards25519.Point,
) [32]byte {
	s := ristretto.Encode(shared)
	defer clear(s[:])
	return digest(labels.ObliviousBaseKey, context[:], []byte{byte(k), c}, message, pair, s[:])
}

// draw reads n bytes from random.
func draw(random io.Reader, n int) ([]byte, error) {
	b := make([]byte, n)
	if err := entropy.Read("oblivious", random, b); err != nil {
		return nil, err
	}
	return b, nil
}

// drawWords reads n uniform values of bits bits.
func drawWords(random io.Reader, n, bits int) ([]uint64, error) {
	b, err := draw(random, 8*n)
	if err != nil {
		return nil, err
	}
	defer clear(b)
	words := make([]uint64, n)
	for k := range words {
		words[k] = binary.LittleEndian.Uint64(b[8*k:]) & mask(bits)
	}
	return words, nil
}
