package normproof

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/pedersen"
	"github.com/hushsum/hushsum/internal/suite"
)

// A proof with one bit changed is refused, wherever the bit is.
func TestBits(t *testing.T) {
	s := tinyScheme()
	n := newInstance(s, 21, 500)
	d, proof := n.prove(t, s, 1)
	r := rand.New(rand.NewPCG(7, 8))
	step := suite.Size(9999, 2999, 501, 17)
	for bit := r.IntN(step); bit < 8*len(proof); bit += 1 + r.IntN(2*step) {
		other := slices.Clone(proof)
		other[bit/8] ^= 1 << (bit % 8)
		err := s.Verify(n.statement, d, other)
		if !errors.Is(err, ErrProof) && !errors.Is(err, ErrEncoding) {
			t.Errorf("bit %d changed: %v", bit, err)
		}
	}
	for _, other := range [][]byte{nil, proof[1:], proof[:len(proof)-1], append(proof, 0)} {
		if err := s.Verify(n.statement, d, other); !errors.Is(err, ErrEncoding) {
			t.Errorf("%d bytes: %v", len(other), err)
		}
	}
}

// A proof of one statement is none of another, whatever differs: who copies a party's vector and
// proof gains nothing.
func TestBound(t *testing.T) {
	s := tinyScheme()
	for name, change := range map[string]func(*Statement, *Dealing){
		"configuration": func(t *Statement, _ *Dealing) { t.Config[31]++ },
		"context":       func(t *Statement, _ *Dealing) { t.Context[0]++ },
		"ring key":      func(t *Statement, _ *Dealing) { t.RingKey[0]++ },
		"party":         func(t *Statement, _ *Dealing) { t.Party++ },
		"role":          func(t *Statement, _ *Dealing) { t.Role++ },
		"root":          func(t *Statement, _ *Dealing) { t.Root[5]++ },
		"digest":        func(t *Statement, _ *Dealing) { t.Digest[9]++ },
		"commitment":    func(t *Statement, _ *Dealing) { t.Commitment = make([]byte, 32) },
		"first value":   func(t *Statement, _ *Dealing) { t.Masked[0] ^= 1 },
		"last value":    func(t *Statement, _ *Dealing) { t.Masked[len(t.Masked)-1] ^= 1 },
		"two values": func(t *Statement, _ *Dealing) {
			t.Masked[0], t.Masked[1] = t.Masked[1], t.Masked[0]
		},
		"key":          func(_ *Statement, d *Dealing) { d.Key = d.Mask },
		"mask":         func(_ *Statement, d *Dealing) { d.Mask = d.Key },
		"first of P":   func(_ *Statement, d *Dealing) { d.Combined[0][0] ^= 1 },
		"last of P":    func(_ *Statement, d *Dealing) { d.Combined[len(d.Combined)-1][0] ^= 1 },
		"two of P":     func(_ *Statement, d *Dealing) { slices.Reverse(d.Combined) },
		"small point":  func(_ *Statement, d *Dealing) { d.Key = plusSmall(t, d.Key) },
		"small point'": func(_ *Statement, d *Dealing) { d.Mask = plusSmall(t, d.Mask) },
	} {
		n := newInstance(s, 22, 500)
		d, proof := n.prove(t, s, 2)
		change(n.statement, d)
		if err := s.Verify(n.statement, d, proof); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bounds := tiny // a longer vector and a longer key
	for _, bound := range []*uint64{&bounds.Bound, &bounds.KeyBound} {
		*bound--
		other, err := New(bounds)
		if err != nil {
			t.Fatal(err)
		}
		n := newInstance(s, 23, 500)
		d, proof := n.prove(t, s, 2)
		if err := other.Verify(n.statement, d, proof); !errors.Is(err, ErrProof) {
			t.Errorf("another bound: %v", err)
		}
		*bound++
	}
}

// plusSmall adds a point of order 8.
func plusSmall(t *testing.T, encoded [32]byte) [32]byte {
	small, err := hex.DecodeString("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
	if err != nil {
		t.Fatal(err)
	}
	p, err := pedersen.Parse(&encoded)
	if err != nil {
		t.Fatal(err)
	}
	q, err := pedersen.Parse((*[32]byte)(small))
	if err != nil {
		t.Fatal(err)
	}
	return [32]byte(p.Add(p, q).Bytes())
}

// Scalars of the order and more, points that are none, and sums beyond their range are no proof.
func TestEncoding(t *testing.T) {
	s := tinyScheme()
	n := newInstance(s, 24, 500)
	d, proof := n.prove(t, s, 3)
	order := new(edwards25519.Scalar).Negate(small(1)).Bytes()
	order[0]++
	high := bytes.Repeat([]byte{0xff}, 32)
	sums := 64 + s.tests*s.testSize()
	firsts := sums + sumSize*floodRows
	for name, change := range map[string]func(b []byte){
		"response":  func(b []byte) { copy(b[firsts+9*32:], order) },
		"last":      func(b []byte) { copy(b[len(b)-32:], order) },
		"test":      func(b []byte) { copy(b[firsts+8*32:], high) },
		"point":     func(b []byte) { copy(b, high) },
		"first":     func(b []byte) { copy(b[firsts:], high) },
		"tests":     func(b []byte) { copy(b[64:], high) },
		"total":     func(b []byte) { copy(b[sums-8:], high[:8]) },
		"largest":   func(b []byte) { copy(b[sums:], high[:sumSize]) },
		"too large": func(b []byte) { b[sums+sumSize-1] |= 0x40 },
	} {
		other := slices.Clone(proof)
		change(other)
		if err := s.Verify(n.statement, d, other); !errors.Is(err, ErrEncoding) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(d *Dealing){
		"point":  func(d *Dealing) { d.Key = [32]byte(high) },
		"point'": func(d *Dealing) { d.Mask = [32]byte(high) },
		"scalar": func(d *Dealing) { d.Combined[1] = [32]byte(order) },
		"fewer":  func(d *Dealing) { d.Combined = d.Combined[1:] },
		"more":   func(d *Dealing) { d.Combined = append(d.Combined, [32]byte{}) },
	} {
		other := &Dealing{d.Key, d.Mask, slices.Clone(d.Combined)}
		change(other)
		if err := s.Verify(n.statement, other, proof); !errors.Is(err, ErrEncoding) {
			t.Errorf("dealing, %s: %v", name, err)
		}
	}
}

// What is not of the parameters is refused, and parameters without a sound proof are.
func TestShapes(t *testing.T) {
	s := tinyScheme()
	for name, change := range map[string]func(n *instance){
		"fewer values": func(n *instance) { n.statement.Masked = n.statement.Masked[1:] },
		"large value":  func(n *instance) { n.statement.Masked[3] = tiny.Modulus },
		"commitment":   func(n *instance) { n.statement.Commitment = make([]byte, 31) },
		"key":          func(n *instance) { n.witness.Key = n.witness.Key[1:] },
		"vector":       func(n *instance) { n.witness.Noisy = n.witness.Noisy[1:] },
		"polynomials":  func(n *instance) { n.witness.Polynomials = n.witness.Polynomials[1:] },
		"degree":       func(n *instance) { n.witness.Polynomials[1] = n.witness.Polynomials[1][1:] },
	} {
		n := newInstance(s, 25, 500)
		change(n)
		if _, _, err := s.Prove(seeded(1), n.statement, n.witness); !errors.Is(err, ErrShape) {
			t.Errorf("%s: %v", name, err)
		}
		if s.check(n.statement) == nil {
			continue // it is the witness that differs
		}
		if err := s.Verify(n.statement, &Dealing{}, nil); !errors.Is(err, ErrShape) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(p *Parameters){
		"degree":       func(p *Parameters) { p.Degree = 24 },
		"small degree": func(p *Parameters) { p.Degree = 4 },
		"composite":    func(p *Parameters) { p.Modulus = 0xfc001 + 32 },
		"root":         func(p *Parameters) { p.Modulus = 1<<31 - 1 },
		"51 bits":      func(p *Parameters) { p.Modulus = 0x7fffffffb6001 },
		"no length":    func(p *Parameters) { p.Length = 0 },
		"no bound":     func(p *Parameters) { p.Bound = 0 },
		"no key bound": func(p *Parameters) { p.KeyBound = 0 },
		"secrets":      func(p *Parameters) { p.PerPolynomial = 3 },
		"no secrets":   func(p *Parameters) { p.PerPolynomial = 0 },
		"lanes":        func(p *Parameters) { p.LaneBits = 9 },
		// β = 43008.04 is the largest for this modulus.
		"wrap": func(p *Parameters) { p.Bound = 43009 * 43009 },
	} {
		p := tiny
		change(&p)
		if _, err := New(p); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := tiny
	p.Bound = 43008 * 43008
	if _, err := New(p); err != nil {
		t.Error(err)
	}
}

// No vector of the bound's very norm misses the limits: with 2^-57 for each at most there is one
// among 10^6 of them once in 10^11 runs. The sums' law does not depend on length, nearly, and the
// widest is that of a vector with equal entries.
func TestHonestLimits(t *testing.T) {
	trials := suite.Size(1000, 3000, 100_000, 1_000_000)
	const length = 64
	values := make([]int64, length)
	for i := range values {
		values[i] = 1000
	}
	worst := 0.0
	for trial := range trials {
		sums := make([]int64, rows)
		h := hash("test", []byte{byte(trial), byte(trial >> 8), byte(trial >> 16)})
		(&matrix{rows: rows, stream: stream(&h, 0)}).times(sums, values)
		norm := 0.0
		for _, u := range sums {
			norm += float64(u) * float64(u)
		}
		worst = math.Max(worst, norm/(length*1e6))
	}
	t.Logf("‖u‖² is %.1f·‖z‖² at most in %d vectors; the limit is %d", worst, trials, slack)
	if worst > slack {
		t.Errorf("a vector within the bound has sums of %.1f", worst)
	}
}

// A key with one coefficient beyond what keys have is not proved, whatever its norm.
func TestSmallKey(t *testing.T) {
	p := tiny
	p.KeyBound = 1 << 30
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[int64]error{256: nil, -256: nil, 257: ErrLimit, -257: ErrLimit} {
		n := newInstance(s, 28, 500)
		clear(n.witness.Key)
		n.witness.Key[3] = value
		if _, _, err := s.Prove(seeded(1), n.statement, n.witness); !errors.Is(err, want) {
			t.Errorf("%d: %v", value, err)
		}
	}
}

// All values that a dealer deals fit, and no others. A member must have dealing and statement as
// the dealer signed them: with another in any part, by a server that wants a leaf opened, an honest
// dealer's values do not fit.
func TestFits(t *testing.T) {
	p := tiny
	p.Degree, p.PerPolynomial, p.Threshold = 64, 2, 4
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	n := newInstance(s, 29, 500)
	d, _ := n.prove(t, s, 1)
	fits := func(t2 *Statement, d *Dealing, x uint32, wrong int) bool {
		var values []*edwards25519.Scalar
		for j, f := range n.witness.Polynomials {
			values = append(values, horner(f, small(uint64(x))))
			if j == wrong {
				values[j].Add(values[j], small(1))
			}
		}
		ok, err := s.Fits(t2, d, x, values)
		if err != nil {
			t.Error(err)
		}
		return ok
	}
	for x := uint32(1); x < 8; x++ {
		for wrong := -1; wrong <= s.polynomials; wrong++ {
			if fits(n.statement, d, x, wrong) != (wrong < 0) {
				t.Errorf("at %d, polynomial %d wrong", x, wrong)
			}
		}
	}
	for i, other := range []Dealing{
		{d.Mask, d.Mask, d.Combined}, {d.Key, d.Key, d.Combined},
		{d.Key, d.Mask, append([][32]byte{{1}}, d.Combined[1:]...)},
	} {
		if fits(n.statement, &other, 1, -1) {
			t.Errorf("dealing %d fits", i)
		}
	}
	changed := *n.statement
	changed.Root[0]++
	if fits(&changed, d, 1, -1) {
		t.Error("another root fits")
	}
	if _, err := s.Fits(n.statement, d, 1, nil); !errors.Is(err, ErrShape) {
		t.Error(err)
	}
	if _, err := s.Fits(n.statement, &Dealing{}, 1, n.witness.Polynomials[0][:0]); err == nil {
		t.Error("no dealing fits")
	}
}

// A reader that fails stops the prover, and nothing of a proof comes out.
func TestRandom(t *testing.T) {
	s := tinyScheme()
	n := newInstance(s, 26, 500)
	d, proof, err := s.Prove(bytes.NewReader(nil), n.statement, n.witness)
	if !errors.Is(err, ErrRandom) || d != nil || proof != nil {
		t.Errorf("%v, %v, %d bytes", err, d, len(proof))
	}
	d, proof, err = s.Prove(nil, n.statement, n.witness)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(n.statement, d, proof); err != nil {
		t.Error(err)
	}
}

// What decodes encodes to the same bytes, and other bytes are refused with one error.
func FuzzDecode(f *testing.F) {
	s := tinyScheme()
	n := newInstance(s, 27, 500)
	_, proof := n.prove(f, s, 1)
	f.Add(proof)
	f.Add(make([]byte, s.Size()))
	f.Add(bytes.Repeat([]byte{0xff}, s.Size()))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := s.decode(b)
		if err == nil && !bytes.Equal(s.append(nil, p), b) {
			t.Error("it encodes to other bytes")
		}
		if err != nil && !errors.Is(err, ErrEncoding) {
			t.Error(err)
		}
	})
}
