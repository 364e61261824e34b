package oneshot

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"math/bits"
	"slices"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot/normproof"
	"github.com/hushsum/hushsum/shamir"
)

// Numbers of a bound: SPEC-ONESHOT.md §14.1.
const (
	keyBound  = 319 * 319 // β_s²: 6.4·√2048, and a tenth more
	longKey   = 973       // a coefficient of a key that passes: 3.05·β_s
	longest   = 305       // a vector that passes, in hundredths of β
	unwrapped = 24        // the least modulus, in β
	besides   = 64        // coordinates more than there are: the tail of few is too heavy
)

// ceilRoot returns ⌈√x⌉.
func ceilRoot(x *big.Int) *big.Int {
	root := new(big.Int).Sqrt(x)
	if new(big.Int).Mul(root, root).Cmp(x) < 0 {
		root.Add(root, big.NewInt(1))
	}
	return root
}

// boundOf returns β² of vectors of a norm with noise of a law.
func boundOf(norm int64, law noise.Law, length int) (uint64, error) {
	scale := law.Scale()
	variance := new(big.Int).Add(scale.Num(), scale.Denom())
	variance.Sub(variance, big.NewInt(1)).Quo(variance, scale.Denom())
	d := big.NewInt(int64(length + besides))
	// V² + 15·V·σ + σ²·(D + 11·√D), each rounded up.
	square := new(big.Int).Mul(big.NewInt(norm), big.NewInt(norm))
	cross := new(big.Int).Mul(big.NewInt(norm), ceilRoot(variance))
	square.Add(square, cross.Mul(cross, big.NewInt(15)))
	wide := new(big.Int).Mul(ceilRoot(d), big.NewInt(11))
	square.Add(square, wide.Mul(wide.Add(wide, d), variance))
	if square.BitLen() > 63 {
		long, _ := new(big.Float).SetInt(square).Float64()
		return 0, tooLong("Norm %d with its noise is 2^%.1f units long, and a proof takes 2^31.5", norm,
			math.Log2(long)/2)
	}
	return square.Uint64(), nil
}

// tooLong refuses vectors that no modulus or no proof has room for.
func tooLong(reason string, a ...any) error {
	return &fault.Error{Kind: ErrConfig, Err: ErrLong, Reason: fmt.Sprintf(reason, a...),
		Advice: "scale the inputs down, and their noise with them"}
}

// mostOf returns the most that n vectors, each within a bound, can add to a sum.
func mostOf(bound uint64, n int) int64 {
	x := ceilRoot(new(big.Int).SetUint64(bound))
	x.Mul(x, big.NewInt(longest)).Add(x, big.NewInt(99)).Quo(x, big.NewInt(100))
	return x.Int64() * int64(n) // below 2^34 and 2^20
}

// bounded sets the bounds on vectors of parties and on noise of members, the most that all of them
// together may add to a sum, and the lanes: whoever cheats, nothing wraps.
func (d *derived) bounded(n, members int, t *Terms, weights map[int]int) (err error) {
	factor := func(bound uint64) float64 {
		return longest / 100. * math.Sqrt(float64(bound)) / float64(t.Norm)
	}
	if weights == nil {
		weights = map[int]int{1: n}
	}
	dealers, left := n, n
	d.off = 0
	heaviest := slices.Sorted(maps.Keys(weights))
	slices.Reverse(heaviest)
	if int64(heaviest[0]) > maxNorm/t.Norm {
		return tooLong("Norm %d of a party of weight %d is above 2^32 − 1", t.Norm, heaviest[0])
	}
	for _, w := range heaviest { // all of a group may be among the heaviest
		bound, err := boundOf(int64(w)*t.Norm, d.share, t.Length)
		if err != nil {
			return err
		}
		d.bound = max(d.bound, bound)
		parties := min(weights[w], left)
		left -= parties
		d.off += mostOf(bound, parties)
		d.Factor = max(d.Factor, factor(bound)/float64(w))
	}
	if t.CommitteeNoise {
		if d.memberBound, err = boundOf(0, d.member, t.Length); err != nil {
			return err
		}
		dealers += members
		d.off += mostOf(d.memberBound, members)
		d.MemberAdds = factor(d.memberBound)
	}
	d.lanes = max(narrow, lanes(1+bits.Len64(uint64(longKey*dealers-1))))
	return nil
}

// unwrapped is the least modulus for which no long vector looks short, 0 without a bound.
func (d *derived) unwrapped() *big.Int {
	x := new(big.Int).SetUint64(max(d.bound, d.memberBound))
	root := new(big.Int).Sqrt(x)
	if d.bound != 0 {
		root.Add(root, big.NewInt(1))
	}
	return root.Mul(root, big.NewInt(unwrapped))
}

// provers sets what proves and verifies.
func (d *derived) provers(t *Terms, weights map[int]int) (err error) {
	if d.scheme, err = d.prover(t, d.bound); err != nil {
		return err
	}
	if weights != nil {
		d.schemes = make(map[int]*normproof.Scheme)
	}
	for w := range weights {
		bound, err := boundOf(int64(w)*t.Norm, d.share, t.Length)
		if err != nil {
			return err // cannot happen: it was made before
		}
		if d.schemes[w], err = d.scheme.Within(bound); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	if !t.CommitteeNoise {
		return nil
	}
	d.memberScheme, err = d.prover(t, d.memberBound)
	return err
}

func (d *derived) prover(t *Terms, bound uint64) (*normproof.Scheme, error) {
	scheme, err := normproof.New(normproof.Parameters{
		Degree:        degree,
		Modulus:       d.Modulus,
		Length:        t.Length + d.Spare,
		Bound:         bound,
		KeyBound:      keyBound,
		PerPolynomial: d.PerPolynomial,
		Threshold:     d.Threshold,
		LaneBits:      int(d.lanes),
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return scheme, nil
}

// prover returns what proves and verifies of a dealer, nil without Norm.
func (s *settled) prover(dealer int) *normproof.Scheme {
	if dealer >= s.n {
		return s.memberScheme
	}
	if s.schemes != nil {
		return s.schemes[s.Roster.Weight(dealer)]
	}
	return s.scheme
}

// weight is how often a party's values count, 1 without weights.
func (s *settled) weight(party int) int { return max(1, s.Roster.Weight(party)) }

// checkNorm takes the same time for all values within the bound.
func (s *settled) checkNorm(values []int64) error {
	if s.Norm == 0 {
		return nil
	}
	var high, low uint64
	for _, v := range values {
		size := uint64((v ^ v>>63) - v>>63)
		h, l := bits.Mul64(size, size)
		var c uint64
		low, c = bits.Add64(low, l, 0)
		high += h + c // 2^26 squares of 78 bits
	}
	_, over := bits.Sub64(uint64(s.Norm)*uint64(s.Norm), low, 0)
	if high|over != 0 {
		return fmt.Errorf("%w: want %d at most", ErrNorm, s.Norm)
	}
	return nil
}

// polynomials returns f_0, whose coefficients are all random, and the polynomials that carry the
// secrets.
func (s *settled) polynomials(
	random io.Reader, secrets []shamir.Secret,
) ([][]*edwards25519.Scalar, error) {
	out := make([][]*edwards25519.Scalar, 1+s.Polynomials)
	var wide [64]byte
	defer clear(wide[:])
	for j := range out {
		f := make([]*edwards25519.Scalar, s.Threshold)
		for l := range f {
			f[l] = edwards25519.NewScalar()
			at := (j-1)*s.Figures.PerPolynomial + l
			switch {
			case j == 0 || l >= s.Figures.PerPolynomial:
				if err := entropy.Read("oneshot", random, wide[:]); err != nil {
					return nil, err
				}
				if _, err := f[l].SetUniformBytes(wide[:]); err != nil {
					panic("oneshot: " + err.Error()) // 64 bytes
				}
			case at < len(secrets):
				if _, err := f[l].SetCanonicalBytes(secrets[at][:]); err != nil {
					panic("oneshot: " + err.Error()) // lanes are packed modulo the order
				}
			}
		}
		out[j] = f
	}
	return out, nil
}

// deal returns the parts of members, with a value of f_0 after those of the polynomials that carry
// the key.
func deal(polynomials [][]*edwards25519.Scalar, indices []uint32) []shamir.PackedShare {
	parts := make([]shamir.PackedShare, 0, len(indices))
	for _, index := range indices {
		part := shamir.PackedShare{Index: index}
		x := scalarOf(index)
		for j := range polynomials {
			f := polynomials[(j+1)%len(polynomials)]
			sum := edwards25519.NewScalar()
			for l := len(f) - 1; l >= 0; l-- {
				sum.MultiplyAdd(sum, x, f[l])
			}
			part.Values = append(part.Values, [32]byte(sum.Bytes()))
		}
		parts = append(parts, part)
	}
	return parts
}

func scalarOf(x uint32) *edwards25519.Scalar {
	var b [32]byte
	for i := range 4 {
		b[i] = byte(x >> (8 * i))
	}
	out, err := edwards25519.NewScalar().SetCanonicalBytes(b[:])
	if err != nil {
		panic("oneshot: " + err.Error()) // it is far below the order
	}
	return out
}

func erase(w *normproof.Witness) {
	if w == nil {
		return
	}
	w.Blind.Set(edwards25519.NewScalar())
	for _, f := range w.Polynomials {
		for _, c := range f {
			c.Set(edwards25519.NewScalar())
		}
	}
}

// dealingSize is the length of what a proof ties shares of the key by: two commitments, and the
// coefficients of one polynomial. It is 0 without a bound.
func (s *settled) dealingSize() int {
	if s.scheme == nil {
		return 0
	}
	return 32 * (2 + s.Threshold)
}

// proofSize is the length of a proof, 0 without a bound.
func (s *settled) proofSize() int {
	if s.scheme == nil {
		return 0
	}
	return s.scheme.Size()
}

// proofDigest returns the digest of a proof, nothing of none.
func proofDigest(proof []byte) []byte {
	if len(proof) == 0 {
		return nil
	}
	d := hash(labels.OneshotProofDigest, proof)
	return d[:]
}

// proofDigestSize is the length of a proof's digest in an entry, 0 without a bound.
func (s *settled) proofDigestSize() int {
	if s.scheme == nil {
		return 0
	}
	return 32
}

func appendDealing(b []byte, d *normproof.Dealing) []byte {
	b = append(append(b, d.Key[:]...), d.Mask[:]...)
	for i := range d.Combined {
		b = append(b, d.Combined[i][:]...)
	}
	return b
}

// parseDealing reads the bytes that dealingSize counts. It does not check what they contain.
func parseDealing(b []byte) *normproof.Dealing {
	d := &normproof.Dealing{Key: [32]byte(b), Mask: [32]byte(b[32:])}
	for b = b[64:]; len(b) > 0; b = b[32:] {
		d.Combined = append(d.Combined, [32]byte(b))
	}
	return d
}

// bind returns what a statement has of dealing and proof, nothing without a bound.
func (s *settled) bind(context *[32]byte, party int, m *submission) []byte {
	if s.scheme == nil {
		return nil
	}
	return s.bindDigest(context, party, m.dealing, proofDigest(m.proof))
}

// bindDigest is bind with the digest of the proof.
func (s *settled) bindDigest(context *[32]byte, party int, dealing, proofDigest []byte) []byte {
	if len(dealing) == 0 {
		return nil
	}
	d := hash(labels.OneshotDealing, dealing)
	if s.byPath() {
		if p := s.pointsOf(context, party, dealing); p != nil {
			d = hash(labels.OneshotDealing, dealing[:64], p.root())
		} // else the server refuses the dealing, and nobody is judged by it
	}
	return append(d[:], proofDigest...)
}

// proofStatement returns the statement of a proof, masked being the digest of what is sent and
// extra as in a submission. y may be nil where shares alone are compared.
func (s *settled) proofStatement(
	context *[32]byte, party int, root, masked [32]byte, extra []byte, y []uint64,
) *normproof.Statement {
	t := &normproof.Statement{
		Config:  s.digest,
		Context: *context,
		RingKey: hash(labels.OneshotRing, context[:]),
		Party:   uint32(party),
		Role:    s.role(party),
		Root:    root,
		Digest:  masked,
		Masked:  y,
	}
	if s.Covered {
		t.Commitment = extra[:32]
	}
	return t
}

// role is that of a dealer in a proof: 0 of a party, 1 of a member.
func (s *settled) role(dealer int) uint8 {
	if dealer >= s.n {
		return 1
	}
	return 0
}

// prove fills in a submission's dealing and proof, of y.
func (s *settled) prove(
	random io.Reader, context *[32]byte, party int, root [32]byte, m *submission, y []uint64,
	w *normproof.Witness,
) error {
	t := s.proofStatement(context, party, root, hash(labels.OneshotMasked, m.masked), m.extra, y)
	dealing, proof, err := s.prover(party).Prove(random, t, w)
	switch {
	case errors.Is(err, normproof.ErrLimit):
		return ErrMissed
	case err != nil:
		return err
	}
	m.dealing, m.proof = appendDealing(nil, dealing), proof
	return nil
}

// unpack returns the coefficients of packed ones.
func (s *settled) unpack(masked []byte) []uint64 {
	y := make([]uint64, s.length)
	s.ring.AddPacked(y, masked)
	return y
}

// claimOf returns what a proof of y claims, in a submission of which both may be covered.
func (s *settled) claimOf(
	context *[32]byte, party int, root [32]byte, m *submission, y []uint64, proof []byte,
) *normproof.Claim {
	return &normproof.Claim{
		Statement: s.proofStatement(context, party, root, hash(labels.OneshotMasked, m.masked), m.extra,
			y),
		Dealing: parseDealing(m.dealing),
		Proof:   proof,
	}
}

// checkProof verifies a proof of y. It fails with [ErrProof].
func (s *settled) checkProof(
	context *[32]byte, party int, root [32]byte, m *submission, y []uint64, proof []byte, by verifier,
) error {
	c := s.claimOf(context, party, root, m, y, proof)
	if by(s.prover(party), c.Statement, c.Dealing, c.Proof) != nil {
		return ErrProof
	}
	return nil
}

// A verifier verifies a proof of a statement and a dealing.
type verifier func(*normproof.Scheme, *normproof.Statement, *normproof.Dealing, []byte) error

// Verifiers are variables for tests that have many rounds with the same proofs.
var (
	// verify is for whoever has to agree with others: members, and readers of evidence.
	verify verifier = (*normproof.Scheme).Verify
	// quickly is for the server, which alone relies on it, once it has the proof.
	quickly verifier = func(
		s *normproof.Scheme, t *normproof.Statement, d *normproof.Dealing, proof []byte,
	) error {
		return s.VerifyAll(1, func(int) *normproof.Claim {
			return &normproof.Claim{Statement: t, Dealing: d, Proof: proof}
		})[0]
	}
)

// fits reports whether what a member was dealt is scalars that lie on the dealing. It is false for
// a dealer that cheats alone, if leaf, root, dealing and signature are right.
func (s *settled) fits(
	context *[32]byte, party, member int, root, masked [32]byte, extra, dealing, plain []byte,
) bool {
	values, ok := s.values(plain)
	if !ok {
		return false
	}
	t := s.proofStatement(context, party, root, masked, extra, nil)
	ok, err := s.prover(party).Fits(t, parseDealing(dealing), uint32(member)+1, values)
	// A dealing that is no encoding is the server's to refuse, and convicts nobody here.
	return ok || err != nil
}

// shares deals the key: as [shamir.SplitPacked] does, or with a bound by polynomials that a proof
// is about, whose witness it begins. Those have the blind of the commitment to the key too.
func (s *settled) shares(
	random io.Reader, key []int64, blind shamir.Secret, indices []uint32,
) ([]shamir.PackedShare, *normproof.Witness, error) {
	secrets := s.lanes.pack(key)
	if s.scheme == nil {
		defer clear(secrets)
		parts, err := shamir.SplitPacked(random, s.packing, secrets, indices)
		return parts, nil, err
	}
	secrets = append(secrets, blind)
	clear(blind[:])
	defer clear(secrets)
	polynomials, err := s.polynomials(random, secrets)
	if err != nil {
		return nil, nil, err
	}
	w := &normproof.Witness{Key: key, Polynomials: polynomials}
	w.Blind, err = edwards25519.NewScalar().SetCanonicalBytes(secrets[len(secrets)-1][:])
	if err != nil {
		panic("oneshot: " + err.Error()) // secrets are below the order
	}
	return deal(polynomials, indices), w, nil
}
