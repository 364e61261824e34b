package crook

import (
	"crypto"
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/rand"
	"encoding/binary"
	"math/big"
	"math/bits"
	"slices"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/ring"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/oneshot/normproof"
)

// A Dealer submits what it likes in a round with a bound. It proves what it submits, if that has a
// proof.
type Dealer struct {
	Config *oneshot.Config
	Key    crypto.Signer // the party's
	Party  int           // or that of noise of a member: after all parties (SPEC-ONESHOT.md §15.1)
	// Vector is masked, noise included; zeros are added.
	Vector []int64
	// Secret returns coefficient i of the key; nil: small ones.
	Secret func(i int) int64
	// Spoil, unless it is nil, changes the values that a member is dealt, the one of f_0 last.
	Spoil func(member int, values [][32]byte)
}

// Submit returns the dealer's submission in the round of an opening. It fails where there is no
// proof of what it masks.
func (d *Dealer) Submit(message []byte) ([]byte, error) {
	c := d.Config
	figures, err := c.Parameters()
	if err != nil {
		return nil, err
	}
	digest, err := c.Digest()
	if err != nil {
		return nil, err
	}
	h, body, err := wire.ParseHeader(message)
	members := c.Committee.Len()
	set := 32 + (members+7)/8
	if err != nil || c.Norm == 0 || c.Covered || c.Stale > 0 ||
		c.KEM != oneshot.KEMX25519 || figures.Threshold > bits.Len(uint(members-1))+3 || // P by path
		len(body) != set+members*(32+keyexchange.SignatureSize) {
		return nil, errShape
	}
	var public [][]byte
	context := [][]byte{digest[:], binary.BigEndian.AppendUint64(nil, h.Round), body[:set]}
	for key := range slices.Chunk(body[set:], 32+keyexchange.SignatureSize) {
		public = append(public, key[:32])
		context = append(context, key[:32])
	}
	x := [32]byte(hash(labels.OneshotContext, context...))
	party := binary.BigEndian.AppendUint32(nil, uint32(d.Party))

	// SPEC-ONESHOT.md §4.3: y = a·s + z.
	key := make([]int64, degree)
	for i := range key {
		if key[i] = int64(i%13) - 6; d.Secret != nil {
			key[i] = d.Secret(i)
		}
	}
	noisy := make([]int64, c.Length+figures.Spare)
	copy(noisy, d.Vector)
	r := ring.New(degree, figures.Modulus)
	ringKey := [32]byte(hash(labels.OneshotRing, x[:]))
	expander, factor := r.NewExpander(&ringKey), r.NewFactor(key)
	y, block := make([]uint64, len(noisy)), make([]uint64, degree)
	for at := 0; at < len(y); at += degree {
		expander.Expand(block, at/degree)
		r.MulInto(block, block, factor)
		copy(y[at:], block)
	}
	r.AddSigned(y, noisy)
	masked := r.AppendPacked(nil, y)

	// §5 and §14.2: polynomials, leaves and boxes.
	member := d.Party >= c.Roster.Len()
	lanes := laneBits(c)
	polynomials, blind := d.polynomials(key, lanes, &figures)
	suite := []byte(labels.OneshotBox)
	var leaves, boxes [][]byte
	for k := range members {
		values := valuesAt(polynomials, uint32(k)+1)
		if d.Spoil != nil {
			d.Spoil(k, values)
		}
		to := binary.BigEndian.AppendUint32(nil, uint32(k))
		var plain []byte
		for i := range values {
			plain = append(plain, values[i][:]...)
		}
		plain = append(plain, make([]byte, 32)...) // the blind
		leaves = append(leaves, hash(labels.OneshotLeaf, x[:], party, to, plain))
		sealed, err := hpke.DHKEM(ecdh.X25519()).NewPublicKey(public[k])
		if err != nil {
			return nil, err
		}
		box, err := hpke.Seal(sealed, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(),
			slices.Concat(suite, x[:], party, to), plain)
		if err != nil {
			return nil, err
		}
		boxes = append(boxes, box)
	}
	top := rootOf(leaves)

	scheme, err := schemeOf(c, member)
	if err != nil {
		return nil, err
	}
	role, label, sender := uint8(0), labels.OneshotBoundedParty, uint32(d.Party)
	if member {
		role, label, sender = 1, labels.OneshotNoise, sender-uint32(c.Roster.Len())+1<<31
	}
	dealing, proof, err := scheme.Prove(nil, &normproof.Statement{
		Config: digest, Context: x, RingKey: ringKey, Party: uint32(d.Party), Role: role,
		Root: [32]byte(top), Digest: [32]byte(hash(labels.OneshotMasked, masked)), Masked: y,
	}, &normproof.Witness{Key: key, Blind: blind, Noisy: noisy, Polynomials: polynomials})
	if err != nil {
		return nil, err
	}
	shown := slices.Concat(dealing.Key[:], dealing.Mask[:])
	for i := range dealing.Combined {
		shown = append(shown, dealing.Combined[i][:]...)
	}
	statement := slices.Concat(x[:], party, top, hash(labels.OneshotMasked, masked),
		hash(labels.OneshotDealing, shown), hash(labels.OneshotProofDigest, proof))
	signature, err := keyexchange.Sign(d.Key, label, statement)
	if err != nil {
		return nil, err
	}
	h = wire.Header{Type: 67, Session: x, Round: h.Round, Sender: sender}
	return slices.Concat(h.Append(nil), masked, shown, proof, slices.Concat(leaves...),
		slices.Concat(boxes...), signature[:]), nil
}

// polynomials returns f_0, and those that have the key in lanes of the given width in bits and the
// blind of the commitment to it.
func (d *Dealer) polynomials(
	key []int64, lanes int, figures *oneshot.Figures,
) (out [][]*edwards25519.Scalar, blind *edwards25519.Scalar) {
	inScalar := 251 / lanes
	last := (len(key) + inScalar - 1) / inScalar
	scalar := func(x int64) *edwards25519.Scalar {
		var b [32]byte
		binary.LittleEndian.PutUint64(b[:], uint64(max(x, -x)))
		c, err := edwards25519.NewScalar().SetCanonicalBytes(b[:])
		if err != nil {
			panic("crook: " + err.Error()) // it is below 2^64
		}
		if x < 0 {
			c.Negate(c)
		}
		return c
	}
	for j := range 1 + figures.Polynomials {
		f := make([]*edwards25519.Scalar, figures.Threshold)
		for l := range f {
			var b [64]byte
			_, _ = rand.Read(b[:]) // never fails
			uniform, err := edwards25519.NewScalar().SetUniformBytes(b[:])
			if err != nil {
				panic("crook: " + err.Error()) // they are 64
			}
			f[l] = uniform
			if j == 0 || l >= figures.PerPolynomial {
				continue
			}
			at := (j-1)*figures.PerPolynomial + l
			if at == last {
				blind = uniform
				continue
			}
			f[l] = edwards25519.NewScalar()
			first := at * inScalar
			for i := min(first+inScalar, len(key)) - 1; i >= first; i-- {
				f[l].MultiplyAdd(f[l], scalar(1<<lanes), scalar(key[i]))
			}
		}
		out = append(out, f)
	}
	return out, blind
}

// valuesAt returns the values of polynomials, the first of them last.
func valuesAt(polynomials [][]*edwards25519.Scalar, at uint32) (out [][32]byte) {
	var b [32]byte
	binary.LittleEndian.PutUint32(b[:], at)
	x, err := edwards25519.NewScalar().SetCanonicalBytes(b[:])
	if err != nil {
		panic("crook: " + err.Error()) // it is below 2^32
	}
	for j := range polynomials {
		f, sum := polynomials[(j+1)%len(polynomials)], edwards25519.NewScalar()
		for l := len(f) - 1; l >= 0; l-- {
			sum.MultiplyAdd(sum, x, f[l])
		}
		out = append(out, [32]byte(sum.Bytes()))
	}
	return out
}

// root returns ⌈√x⌉.
func root(x *big.Int) *big.Int {
	r := new(big.Int).Sqrt(x)
	if new(big.Int).Mul(r, r).Cmp(x) < 0 {
		r.Add(r, big.NewInt(1))
	}
	return r
}

// boundOf returns β² of a party, or of a member's noise (SPEC-ONESHOT.md §§14.1 and 15.5).
func boundOf(c *oneshot.Config, member bool) uint64 {
	shares, of := c.MinSurvivors-c.Colluders, c.Norm
	if member {
		shares, of = c.Committee.Len()-c.Faults-max(c.Faults, c.InLeague), 0
	}
	honest := big.NewRat(1, int64(shares))
	share := honest.Mul(honest, c.Noise.Scale())
	if c.CommitteeNoise && !member {
		share = big.NewRat(1024, 25)
	}
	a := new(big.Int).Add(share.Num(), share.Denom())
	a.Sub(a, big.NewInt(1)).Quo(a, share.Denom())
	length, norm := big.NewInt(int64(c.Length)+64), big.NewInt(of)
	square := new(big.Int).Mul(root(length), big.NewInt(11))
	square.Add(square, length).Mul(square, a)
	cross := new(big.Int).Mul(root(a), norm)
	square.Add(square, cross.Mul(cross, big.NewInt(15)))
	return square.Add(square, norm.Mul(norm, norm)).Uint64()
}

// Scheme returns the scheme that proves and verifies for parties.
func Scheme(c *oneshot.Config) (*normproof.Scheme, error) { return schemeOf(c, false) }

func schemeOf(c *oneshot.Config, member bool) (*normproof.Scheme, error) {
	figures, err := c.Parameters()
	if err != nil {
		return nil, err
	}
	return normproof.New(normproof.Parameters{
		Degree: degree, Modulus: figures.Modulus, Length: c.Length + figures.Spare,
		Bound:    boundOf(c, member),
		KeyBound: 319 * 319, PerPolynomial: figures.PerPolynomial, Threshold: figures.Threshold,
		LaneBits: laneBits(c),
	})
}

func laneBits(c *oneshot.Config) int {
	if c.CommitteeNoise {
		return LaneBits(c.Roster.Len() + c.Committee.Len())
	}
	return LaneBits(c.Roster.Len())
}

// LaneBits returns b' for the given number of dealers (SPEC-ONESHOT.md §14.1).
func LaneBits(dealers int) int { return max(19, 1+bits.Len64(uint64(973*dealers-1))) }
