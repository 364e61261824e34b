package normproof

import (
	"encoding/binary"
	"slices"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/pedersen"
)

// sumSize is the size of a sum under noise: f + 2^(floodBits − 1), little-endian, below
// 2^(floodBits + 1).
const sumSize = 15

// flooded is a sum under noise with 2^(floodBits − 1) added.
type flooded struct{ low, high uint64 }

func (f *flooded) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, f.low)
	return append(b, binary.LittleEndian.AppendUint64(nil, f.high)[:sumSize-8]...)
}

// scalar returns the sum.
func (f *flooded) scalar() *edwards25519.Scalar {
	return new(edwards25519.Scalar).Subtract(pair(f.low, f.high), pair(0, 1<<(floodBits-1-64)))
}

// pair returns the scalar low + high·2^64.
func pair(low, high uint64) *edwards25519.Scalar {
	b := make([]byte, 64)
	binary.LittleEndian.PutUint64(b, low)
	binary.LittleEndian.PutUint64(b[8:], high)
	return fromWide(b)
}

// The commitments that a proof opens, each with its own first message: were one opened as their
// sum, what one of them fixes could be changed by a later one.
const (
	ofKey   = iota // s
	ofMask         // first coefficients of f_0
	ofSums         // u, u', squares
	ofFlood        // κ, m
	commitments
)

// proof is a decoded proof. Points are kept as bytes too, for hashes.
type proof struct {
	sums, flood   [32]byte // C_u, C_m
	tests         *tests   // without τ
	flooded       []flooded
	first         [commitments][32]byte  // A
	norms         [2][2][32]byte         // E_0, E_1 of u and of u'
	tested        *edwards25519.Scalar   // ⟨Λ, a⟩
	responses     []*edwards25519.Scalar // decoded: nil for the key
	blinds        [commitments]*edwards25519.Scalar
	normBlinds    [2]*edwards25519.Scalar
	halves        [2][32]byte                      // X, Y
	halfTests     [2]*edwards25519.Scalar          // x, y
	folded        []*edwards25519.Scalar           // z'
	points        [commitments]*edwards25519.Point // C_u and C_m at their places
	firstPoints   [commitments]*edwards25519.Point
	normPoints    [2][2]*edwards25519.Point
	halfPoints    [2]*edwards25519.Point
	testsEncoded  []byte
	sumsEncoded   []byte // of flooded
	firstsEncoded []byte // A, E, ⟨Λ, a⟩
	restEncoded   []byte // responses and blinds, X, Y, x, y
}

// Size returns the bytes of a proof.
func (s *Scheme) Size() int {
	return 32*(2+commitments+4+1+s.count-s.Degree/2+commitments+2+4) + sumSize*floodRows +
		s.tests*s.testSize()
}

func (s *Scheme) append(b []byte, p *proof) []byte {
	b = append(append(b, p.sums[:]...), p.flood[:]...)
	b = append(append(b, p.testsEncoded...), p.sumsEncoded...)
	b = append(append(b, p.firstsEncoded...), p.restEncoded...)
	for _, c := range p.folded {
		b = append(b, c.Bytes()...)
	}
	return b
}

// encodeSums fills in what h4 is over.
func (p *proof) encodeSums() {
	p.sumsEncoded = make([]byte, 0, sumSize*floodRows)
	for i := range p.flooded {
		p.sumsEncoded = p.flooded[i].append(p.sumsEncoded)
	}
}

// encodeFirsts fills in what the challenge is over.
func (p *proof) encodeFirsts() {
	for i := range p.first {
		p.firstsEncoded = append(p.firstsEncoded, p.first[i][:]...)
	}
	for i := range p.norms {
		p.firstsEncoded = append(p.firstsEncoded, p.norms[i][0][:]...)
		p.firstsEncoded = append(p.firstsEncoded, p.norms[i][1][:]...)
	}
	p.firstsEncoded = append(p.firstsEncoded, p.tested.Bytes()...)
}

// encodeRest fills in what the challenge that folds is over.
func (s *Scheme) encodeRest(p *proof) {
	for _, c := range slices.Concat(p.responses[s.Degree:], p.blinds[:], p.normBlinds[:]) {
		p.restEncoded = append(p.restEncoded, c.Bytes()...)
	}
	p.restEncoded = append(append(p.restEncoded, p.halves[0][:]...), p.halves[1][:]...)
	for _, c := range p.halfTests {
		p.restEncoded = append(p.restEncoded, c.Bytes()...)
	}
}

// CheckEncoding fails with [ErrEncoding] if the dealing or the proof are none of the parameters.
// It takes a hundredth of the time of [Scheme.Verify], which checks it too.
func (s *Scheme) CheckEncoding(d *Dealing, encoded []byte) error {
	if _, _, err := s.parse(d); err != nil {
		return err
	}
	_, err := s.decode(encoded)
	return err
}

// decode fails with [ErrEncoding].
func (s *Scheme) decode(b []byte) (*proof, error) {
	if len(b) != s.Size() {
		return nil, ErrEncoding
	}
	p := &proof{}
	ok := true
	take := func(n int) []byte {
		part := b[:n]
		b = b[n:]
		return part
	}
	point := func(encoded *[32]byte) *edwards25519.Point {
		*encoded = [32]byte(take(32))
		out, err := pedersen.Parse(encoded)
		ok = ok && err == nil
		return out
	}
	scalar := func() *edwards25519.Scalar {
		c, err := new(edwards25519.Scalar).SetCanonicalBytes(take(32))
		ok = ok && err == nil
		return c
	}
	p.points[ofSums] = point(&p.sums)
	p.points[ofFlood] = point(&p.flood)
	p.testsEncoded = take(s.tests * s.testSize())
	var reduced bool
	p.tests, reduced = s.decodeTests(p.testsEncoded)
	ok = ok && reduced
	p.sumsEncoded = b[:sumSize*floodRows]
	for range floodRows {
		low := binary.LittleEndian.Uint64(take(8))
		var rest [8]byte
		copy(rest[:], take(sumSize-8))
		high := binary.LittleEndian.Uint64(rest[:])
		ok = ok && high>>(floodBits+1-64) == 0
		p.flooded = append(p.flooded, flooded{low, high})
	}
	p.firstsEncoded = b[:32*(commitments+5)]
	for i := range p.first {
		p.firstPoints[i] = point(&p.first[i])
	}
	for i := range p.norms {
		for j := range p.norms[i] {
			p.normPoints[i][j] = point(&p.norms[i][j])
		}
	}
	p.tested = scalar()
	folded := 32 * s.Degree / 2
	p.restEncoded = b[:len(b)-folded]
	p.responses = make([]*edwards25519.Scalar, s.count)
	for i := s.Degree; i < s.count; i++ {
		p.responses[i] = scalar()
	}
	for i := range p.blinds {
		p.blinds[i] = scalar()
	}
	for i := range p.normBlinds {
		p.normBlinds[i] = scalar()
	}
	for i := range p.halves {
		p.halfPoints[i] = point(&p.halves[i])
	}
	for i := range p.halfTests {
		p.halfTests[i] = scalar()
	}
	for range s.Degree / 2 {
		p.folded = append(p.folded, scalar())
	}
	if !ok {
		return nil, ErrEncoding
	}
	return p, nil
}
