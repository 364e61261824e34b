package oblivious

import (
	"context"
	"crypto/sha512"
	"fmt"
	"io"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/cores"
	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/pedersen"
)

// A turn takes ciphertexts C of bits, flips each or not by a secret bit s and re-randomises it.
// The party swaps the pair (C, E − C), where E = (0, G) is a ciphertext of 1, or does not; the
// second of a pair always follows from the first, so only the first is sent:
//
//	s = 0:  C' =     C + r·(G, P)
//	s = 1:  C' = E − C + r·(G, P)
//
// It proves that X_0 = C' − C or X_1 = C' + C − E is r·(G, P) for an r that it knows, and
// not which: two proofs of equal logarithms (Chaum, Pedersen 1992), one of them simulated
// (Cramer, Damgård, Schoenmakers 1994). With s the real one and f = 1 − s,
//
//	K_s = w·(G, P)                   e_s = c − e_f    z_s = w + e_s·r
//	K_f = z_f·(G, P) − e_f·X_f       e_f and z_f are drawn
//
// c is one hash over all of the turn's C' and K. A turn on ciphertexts of 0 with r = 0 is
// how a party encrypts bits of its own, such as those of its input.

// In a message, for each ciphertext: A', B', the four elements of K_0 and K_1; after all of
// these, for each one e_0, z_0, z_1.
const (
	moveSize     = 6 * elementSize
	responseSize = 3 * scalarSize
	// turnSize is the length of a turn by ciphertext.
	turnSize = moveSize + responseSize
	// turnChunk is how many ciphertexts are dealt with at a time.
	turnChunk = 512
)

// turn holds the values of a turn.
type turn struct {
	label   string
	before  [32]byte // what the session has agreed on
	party   int
	key     *jointPublic
	current []ciphertext // C
}

// jointPublic is the joint key P, with what multiplying it takes.
type jointPublic struct {
	point *edwards25519.Point
	table *pedersen.Base
}

func newJointPublic(p *edwards25519.Point) *jointPublic {
	return &jointPublic{p, pedersen.NewBase(p)}
}

// challenge is c.
func (t *turn) challenge(moves []byte) *edwards25519.Scalar {
	return challenge(t.label, t.before[:], number(t.party), moves)
}

// flip holds all that a party keeps of one ciphertext until it has the challenge.
type flip struct{ bit, r, w, fake, other edwards25519.Scalar }

// make makes the message of a turn by the bits, each 0 or 1. Its time depends on their number
// alone.
func (t *turn) make(bits []byte, random io.Reader) ([]byte, error) {
	n := len(t.current)
	message := make([]byte, n*turnSize)
	moves, responses := message[:n*moveSize], message[n*moveSize:]
	flips := make([]flip, n)
	defer clear(flips)
	drawn := make([]byte, turnChunk*4*64)
	defer clear(drawn)
	for first := 0; first < n; first += turnChunk {
		count := min(turnChunk, n-first)
		if err := entropy.Read("oblivious", random, drawn[:count*4*64]); err != nil {
			return nil, err
		}
		err := cores.Each(context.Background(), count, func(i int) error {
			at := first + i
			b := t.move(&t.current[at], bits[at], drawn[i*256:(i+1)*256], &flips[at])
			copy(moves[at*moveSize:], b)
			return nil
		}, nil)
		if err != nil {
			return nil, err
		}
	}
	c := t.challenge(moves)
	for i := range flips {
		flips[i].respond(responses[i*responseSize:], c)
	}
	return message, nil
}

// move returns A', B', K_0 and K_1, and fills f, by 256 uniform bytes.
//
// X_f = ±(2·C − E) + r·(G, P), with + for s = 0. So with u = z_f − e_f·r, which is drawn
// in the place of z_f, K_f = u·(G, P) ∓ e_f·(2·C − E).
func (t *turn) move(c *ciphertext, bit byte, drawn []byte, f *flip) []byte {
	f.bit = *small(uint64(bit))
	f.r, f.w = *wide(drawn[:64]), *wide(drawn[64:128])
	f.fake = *wide(drawn[128:192])
	u := wide(drawn[192:])
	f.other.MultiplyAdd(&f.fake, &f.r, u) // z_f
	// ∓e_f: −e_f for s = 0 and e_f for s = 1.
	signed := pick(&f.bit, new(edwards25519.Scalar).Negate(&f.fake), &f.fake)

	flipped := ciphertext{}
	flipped.a.Negate(&c.a)
	flipped.b.Subtract(generator, &c.b)
	var after, real, fake, twice ciphertext
	after.a.Select(&flipped.a, &c.a, int(bit))
	after.b.Select(&flipped.b, &c.b, int(bit))
	t.randomise(&real, &f.r)
	after.add(&real)
	t.randomise(&real, &f.w)
	twice.a.Add(&c.a, &c.a)
	twice.b.Subtract(&c.b, &flipped.b) // B − (G − B)
	scalars := []*edwards25519.Scalar{u, signed}
	fake.a.MultiScalarMult(scalars, []*edwards25519.Point{generator, &twice.a})
	fake.b.MultiScalarMult(scalars, []*edwards25519.Point{t.key.point, &twice.b})
	var k0, k1 ciphertext
	k0.a.Select(&fake.a, &real.a, int(bit))
	k0.b.Select(&fake.b, &real.b, int(bit))
	k1.a.Select(&real.a, &fake.a, int(bit))
	k1.b.Select(&real.b, &fake.b, int(bit))

	b := make([]byte, 0, moveSize)
	for _, p := range []*edwards25519.Point{&after.a, &after.b, &k0.a, &k0.b, &k1.a, &k1.b} {
		b = appendElement(b, p)
	}
	return b
}

// randomise sets c to r·(G, P).
func (t *turn) randomise(c *ciphertext, r *edwards25519.Scalar) {
	c.a.ScalarBaseMult(r)
	c.b = *t.key.table.Multiply(r)
}

// respond writes e_0, z_0 and z_1.
func (f *flip) respond(b []byte, c *edwards25519.Scalar) {
	own := new(edwards25519.Scalar).Subtract(c, &f.fake)       // e_s
	z := new(edwards25519.Scalar).MultiplyAdd(own, &f.r, &f.w) // z_s
	copy(b, pick(&f.bit, own, &f.fake).Bytes())                // e_0
	copy(b[scalarSize:], pick(&f.bit, z, &f.other).Bytes())    // z_0
	copy(b[2*scalarSize:], pick(&f.bit, &f.other, z).Bytes())  // z_1
	*own, *z = edwards25519.Scalar{}, edwards25519.Scalar{}
}

// take checks the message of a turn and returns the ciphertexts after it. It fails with
// [ErrEncoding], or with [ErrProof] and the first ciphertext whose proof does not hold.
func (t *turn) take(message []byte) ([]ciphertext, error) {
	n := len(t.current)
	if len(message) != n*turnSize {
		return nil, ErrEncoding
	}
	moves, responses := message[:n*moveSize], message[n*moveSize:]
	check := turnCheck{turn: t, c: t.challenge(moves), after: make([]ciphertext, n)}
	check.seed = digest(labels.JointCheck, t.before[:], number(t.party), message)
	err := cores.Each(context.Background(), (n+turnChunk-1)/turnChunk, func(chunk int) error {
		return check.chunk(moves, responses, chunk*turnChunk, min(n, (chunk+1)*turnChunk))
	}, nil)
	if err != nil {
		return nil, err
	}
	return check.after, nil
}

// turnCheck checks a turn: four equations for each ciphertext, e_1 being c − e_0,
//
//	K_0 = z_0·(G, P) − e_0·(C' − C)    K_1 = z_1·(G, P) − e_1·(C' + C − E)
//
// of which a chunk's are added up with weights of 128 bits. These are hashes of the whole
// message, so that one equation that does not hold spoils the sum but for a chance of
// 2^-128 with every message that a cheater makes. In ristretto255 there is no torsion to
// hide in.
type turnCheck struct {
	*turn
	c     *edwards25519.Scalar
	seed  [32]byte
	after []ciphertext
}

// chunk checks the ciphertexts from first to before last.
func (t *turnCheck) chunk(moves, responses []byte, first, last int) error {
	sum := turnSum{}
	for i := first; i < last; i++ {
		if err := t.add(&sum, moves[i*moveSize:(i+1)*moveSize],
			responses[i*responseSize:(i+1)*responseSize], i); err != nil {
			return err
		}
	}
	if sum.holds(t.key.point) {
		return nil
	}
	for i := first; i < last; i++ {
		sum = turnSum{}
		if err := t.add(&sum, moves[i*moveSize:(i+1)*moveSize],
			responses[i*responseSize:(i+1)*responseSize], i); err != nil {
			return err
		}
		if !sum.holds(t.key.point) {
			return fmt.Errorf("%w: ciphertext %d of the message", ErrProof, i)
		}
	}
	return ErrProof // cannot happen: a sum of zeros is zero
}

// add adds the equations of ciphertext i, and keeps it.
func (t *turnCheck) add(sum *turnSum, move, response []byte, i int) error {
	var points [6]*edwards25519.Point // A', B', K_0, K_1
	for k := range points {
		var err error
		if points[k], err = decodePoint(move[k*elementSize : (k+1)*elementSize]); err != nil {
			return err
		}
	}
	var scalars [3]*edwards25519.Scalar // e_0, z_0, z_1
	for k := range scalars {
		var err error
		if scalars[k], err = decodeScalar(response[k*scalarSize : (k+1)*scalarSize]); err != nil {
			return err
		}
	}
	t.after[i] = ciphertext{*points[0], *points[1]}
	e0, z0, z1 := scalars[0], scalars[1], scalars[2]
	e1 := new(edwards25519.Scalar).Subtract(t.c, e0)

	hash := sha512.Sum512(append(t.seed[:], number(i)...))
	for half := range 2 { // A with G, and B with P
		w0, w1 := weight(hash[32*half:]), weight(hash[32*half+16:])
		k := &sum.key
		if half == 0 {
			k = &sum.generator
		}
		k.MultiplyAdd(w0, z0, k)
		k.MultiplyAdd(w1, z1, k)
		old := &t.current[i].a
		v0 := new(edwards25519.Scalar).Multiply(w0, e0)
		v1 := new(edwards25519.Scalar).Multiply(w1, e1)
		if half == 1 {
			old = &t.current[i].b
			sum.generator.Add(&sum.generator, v1) // of E
		}
		// The sum is Σ w·(z·(G, P) − e·X − K), negated where that makes scalars short.
		sum.subtract(w0, points[2+half])
		sum.subtract(w1, points[4+half])
		sum.subtract(new(edwards25519.Scalar).Add(v0, v1), points[half])
		sum.subtract(v1.Subtract(v1, v0), old)
	}
	return nil
}

// weight is the scalar of 16 bytes.
func weight(b []byte) *edwards25519.Scalar {
	var long [scalarSize]byte
	copy(long[:], b[:16])
	return canonical(long[:])
}

// turnSum is a sum of equations: what G and P are multiplied by, and what is taken off.
type turnSum struct {
	generator, key edwards25519.Scalar
	terms          []pedersen.Term
}

func (s *turnSum) subtract(x *edwards25519.Scalar, p *edwards25519.Point) {
	s.terms = append(s.terms, pedersen.Term{Scalar: x, Point: p})
}

// holds reports whether the sum is the identity.
func (s *turnSum) holds(key *edwards25519.Point) bool {
	s.subtract(new(edwards25519.Scalar).Negate(&s.generator), generator)
	s.subtract(new(edwards25519.Scalar).Negate(&s.key), key)
	return isIdentity(new(pedersen.Generators).SumVarTime(nil, s.terms))
}
