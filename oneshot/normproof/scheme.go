package normproof

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"sync"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/pedersen"
	"github.com/hushsum/hushsum/internal/ring"
)

// Errors.
var (
	// ErrConfig: numbers for which no proof is possible or sound.
	ErrConfig = errors.New("normproof: parameters out of range")
	// ErrShape: a statement or a witness that is not of the parameters.
	ErrShape = errors.New("normproof: statement or witness of other parameters")
	// ErrLimit: the vector or the key is too long, or the vector is one of those within the bound,
	// one in 2^57, that cannot be proved. A second try would tell of the vector: the party misses
	// the round.
	ErrLimit = errors.New("normproof: beyond the bound; miss the round, do not try again")
	// ErrEncoding: bytes that are no proof and no dealing of these parameters.
	ErrEncoding = errors.New("normproof: not the encoding of a proof")
	// ErrProof: a proof that does not hold. Its signer is to blame.
	ErrProof = errors.New("normproof: the proof does not hold")
	// ErrRandom: the source of randomness failed.
	ErrRandom = entropy.Err
)

// Fixed numbers of the proof.
const (
	rows      = 256 // random sums of the vector, and as many of the key
	floodRows = 128 // sums that are shown, under noise
	floodBits = 117 // of that noise
	slack     = 256 // ‖u‖² ≤ slack·β², for rows sums u
	wrap      = 24  // the least modulus, in β: SPEC-ONESHOT.md §13.6
	smallKey  = 256 // beyond every coefficient of a key
	laneRoom  = 251 // bits of a scalar that lanes may take
)

// Parameters are the numbers of a configuration.
type Parameters struct {
	Degree        int    // N
	Modulus       uint64 // q
	Length        int    // coefficients of y, spare ones too
	Bound         uint64 // β²: the square of the norm that a party's vector with noise stays below
	KeyBound      uint64 // β_s²: the same of its key
	PerPolynomial int    // ρ
	Threshold     int    // r
	LaneBits      int    // of one coefficient of the key in a scalar
}

// Scheme proves and verifies with given parameters. It may be shared.
type Scheme struct {
	Parameters
	ring        *ring.Ring
	points      func() *pedersen.Generators
	lanes       int // in a scalar
	scalars     int // of the key
	polynomials int // f_0 not counted
	tests       int // ν

	// Places of the witnesses. The key begins at 0, u at the degree.
	keySums, squares, keySquares, quotients, flood, mask, count int
}

// Points that are no witness's.
const (
	blindPoint = iota
	normPoint
	firstPoint
)

// New returns the scheme. It fails with [ErrConfig]. Modulus must be a prime that is 1 modulo
// 2·Degree.
func New(p Parameters) (*Scheme, error) {
	s := &Scheme{Parameters: p}
	switch {
	case p.Degree < 8 || p.Degree > 4096 || p.Degree&(p.Degree-1) != 0:
		return nil, fmt.Errorf("%w: Degree %d", ErrConfig, p.Degree)
	case p.Modulus%(2*uint64(p.Degree)) != 1 || bits.Len64(p.Modulus) > ring.MaxModulusBits ||
		!new(big.Int).SetUint64(p.Modulus).ProbablyPrime(0):
		return nil, fmt.Errorf("%w: Modulus %d", ErrConfig, p.Modulus)
	case p.Length < 1 || p.Length > 1<<27:
		return nil, fmt.Errorf("%w: Length %d", ErrConfig, p.Length)
	case p.Bound == 0 || p.KeyBound == 0 || p.KeyBound > 1<<32:
		return nil, fmt.Errorf("%w: Bound %d, KeyBound %d", ErrConfig, p.Bound, p.KeyBound)
	case p.PerPolynomial < 1 || p.Threshold <= p.PerPolynomial || p.Threshold > 255:
		return nil, fmt.Errorf("%w: PerPolynomial %d of Threshold %d", ErrConfig,
			p.PerPolynomial, p.Threshold)
	case p.LaneBits < 10 || p.LaneBits > 62:
		return nil, fmt.Errorf("%w: LaneBits %d", ErrConfig, p.LaneBits)
	}
	if err := p.unwrapped(); err != nil {
		return nil, err
	}
	q := new(big.Int).SetUint64(p.Modulus)
	for power := big.NewInt(1); power.BitLen() <= 128; s.tests++ {
		power.Mul(power, q)
	}
	s.ring = ring.New(p.Degree, p.Modulus)
	s.lanes = laneRoom / p.LaneBits
	s.scalars = (p.Degree + s.lanes - 1) / s.lanes
	// The blind of the key's commitment is one more.
	s.polynomials = (s.scalars + 1 + p.PerPolynomial - 1) / p.PerPolynomial
	s.keySums = p.Degree + rows
	s.squares = s.keySums + rows
	s.keySquares = s.squares + 4
	s.quotients = s.keySquares + 4
	s.flood = s.quotients + s.tests
	s.mask = s.flood + floodRows
	s.count = s.mask + p.PerPolynomial
	s.points = sync.OnceValue(func() *pedersen.Generators { return generators(firstPoint + s.count) })
	return s, nil
}

// unwrapped refuses a bound for which a long vector could look short.
func (p *Parameters) unwrapped() error {
	q, least := new(big.Int).SetUint64(p.Modulus), new(big.Int).SetUint64(p.Bound)
	least.Mul(least, big.NewInt(wrap*wrap))
	if new(big.Int).Mul(q, q).Cmp(least) < 0 {
		return fmt.Errorf("%w: Modulus %d is less than %d times the bound, so that a long vector "+
			"could look short", ErrConfig, p.Modulus, wrap)
	}
	return nil
}

// Within returns the scheme with another Bound, which shares all else with it. It fails with
// [ErrConfig].
func (s *Scheme) Within(bound uint64) (*Scheme, error) {
	out := *s
	out.Bound = bound
	if bound == 0 {
		return nil, fmt.Errorf("%w: Bound 0", ErrConfig)
	}
	return &out, out.unwrapped()
}

// longest has the points of the scheme with the most of them, so that schemes share them.
var longest struct {
	sync.Mutex
	points *pedersen.Generators
}

// generators returns the first points. Making them takes longer than a proof, and who compares
// shares alone needs none.
func generators(count int) *pedersen.Generators {
	longest.Lock()
	defer longest.Unlock()
	if longest.points == nil || longest.points.Count() < count {
		longest.points = pedersen.NewGenerators(labels.OneshotProofGenerator, count)
	}
	return longest.points.First(count)
}

// A Statement holds the public values that a proof binds.
type Statement struct {
	Config, Context [32]byte // digest of the configuration; x
	RingKey         [32]byte // SPEC-ONESHOT.md §4.1, a function of x
	Party           uint32
	Role            uint8 // 0: a party, 1: a member that adds noise
	Root            [32]byte
	Digest          [32]byte // of masked coefficients, as they are sent
	Commitment      []byte   // covered: the commitment to the cover; else empty
	Masked          []uint64 // y, in clear
}

func (s *Scheme) check(t *Statement) error {
	if len(t.Masked) != s.Length || len(t.Commitment) != 0 && len(t.Commitment) != 32 {
		return ErrShape
	}
	for _, y := range t.Masked {
		if y >= s.Modulus {
			return ErrShape
		}
	}
	return nil
}

// A Dealing ties the shares of the key to a proof: a member that got a value of each
// polynomial compares with Combined.
type Dealing struct {
	Key, Mask [32]byte   // commitments to the key, and to the first ρ coefficients of f_0
	Combined  [][32]byte // P = f_0 + Σ γ^j·f_j, all r coefficients
}

// CheckDealing fails with [ErrEncoding] for what is no dealing of the scheme's.
func (s *Scheme) CheckDealing(d *Dealing) error {
	_, _, err := s.parse(d)
	return err
}

// parse returns the dealing's points and the scalars of P.
func (s *Scheme) parse(d *Dealing) (
	points [2]*edwards25519.Point, p []*edwards25519.Scalar, err error,
) {
	if len(d.Combined) != s.Threshold {
		return points, nil, ErrEncoding
	}
	for i, b := range []*[32]byte{&d.Key, &d.Mask} {
		if points[i], err = pedersen.Parse(b); err != nil {
			return points, nil, ErrEncoding
		}
	}
	for i := range d.Combined {
		c, err := new(edwards25519.Scalar).SetCanonicalBytes(d.Combined[i][:])
		if err != nil {
			return points, nil, ErrEncoding
		}
		p = append(p, c)
	}
	return points, p, nil
}

// sumBits returns b with |x| ≤ 2^b for all sums within a bound.
func sumBits(bound uint64) int {
	return int(math.Ceil(math.Log2(16*math.Sqrt(float64(bound))) + 1e-6))
}

// quotientBits bounds the quotients of a witness within its bounds.
func (s *Scheme) quotientBits() int {
	// |⟨τ, u⟩| ≤ q·16·‖u‖ and |⟨n, s⟩| ≤ q·N·smallKey; c is below q.
	sums := 16 * math.Exp2(float64(sumBits(s.Bound)))
	return int(math.Ceil(math.Log2(sums + float64(s.Degree*smallKey) + 1)))
}
