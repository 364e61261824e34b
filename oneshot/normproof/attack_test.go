package normproof

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/pedersen"
)

// A cheat makes proofs from any witnesses, as scalars. It changes what it has got so far where the
// protocol lets it choose: after each hash.
type cheat struct {
	*prover
	afterRows  func(c *cheat) // R is known; u, u', squares may be changed
	afterFold  func(*cheat)   // changes the tests
	afterTests func(c *cheat) // τ is known; κ, m may be changed
	// late is added to the witnesses that C_m commits to, at any place.
	late []*edwards25519.Scalar
	// torsion is added to C_u.
	torsion *edwards25519.Point

	tests  *tests
	h3, h4 [32]byte
	sums   []*edwards25519.Scalar // f
	matrix [][]int64              // M
}

// commitTo commits to witnesses of a range, and what is late to others.
func (c *cheat) commitTo(of int, late []*edwards25519.Scalar) [32]byte {
	scalars := make([]*edwards25519.Scalar, firstPoint+c.count)
	for i := range scalars {
		scalars[i] = small(0)
	}
	scalars[blindPoint] = c.blinds[of]
	group := c.groups()[of]
	for i := group[0]; i < group[1]; i++ {
		scalars[firstPoint+i] = c.w[i]
	}
	for i, x := range late {
		scalars[firstPoint+i] = new(edwards25519.Scalar).Add(scalars[firstPoint+i], x)
	}
	p := c.points().SumVarTime(scalars, nil)
	if of == ofSums && c.torsion != nil {
		p.Add(p, c.torsion)
	}
	return [32]byte(p.Bytes())
}

func (c *cheat) set(at int, values ...int64) {
	for i, x := range values {
		c.w[at+i] = signed(x)
	}
}

// fill takes the small sums of a norm for witnesses, with squares up to the limit if there are any.
func (c *cheat) fill(t testing.TB, i int) {
	places := c.normPlaces(i)
	left := c.limit(i)
	for _, j := range places[:rows] {
		left.Sub(left, new(big.Int).Mul(big.NewInt(c.small[j]), big.NewInt(c.small[j])))
		c.set(j, c.small[j])
	}
	if left.Sign() < 0 {
		return
	}
	four, err := fourSquares(c.random, left)
	if err != nil {
		t.Fatal(err)
	}
	copy(c.small[places[rows]:], four[:])
	c.set(places[rows], four[:]...)
}

// prove makes the proof. u may be beyond its limit: squares are then what the cheat makes of them.
func (c *cheat) prove(t testing.TB, s *Scheme, n *instance) (*Dealing, []byte) {
	c.prover = &prover{Scheme: s, statement: n.statement, witness: n.witness, random: seeded(5)}
	for range s.count {
		c.w = append(c.w, small(0))
	}
	for i := range c.blinds {
		c.blinds[i] = c.uniform()
	}
	c.blinds[ofKey].Set(n.witness.Blind)
	p := &c.proof
	c.set(0, n.witness.Key...)
	for l := range s.PerPolynomial {
		c.w[s.mask+l] = n.witness.Polynomials[0][l]
	}
	c.small = make([]int64, s.flood)
	copy(c.small, n.witness.Key)
	c.deal()
	if err := c.project(); err != nil && !errors.Is(err, ErrLimit) {
		t.Fatal(err)
	}
	r := matrix{rows: rows, stream: stream(&c.h1, 1)} // project ended before u' if u is too long
	clear(c.small[s.keySums:s.squares])
	r.times(c.small[s.keySums:s.squares], n.witness.Key)
	c.fill(t, 0)
	c.fill(t, 1)
	if c.afterRows != nil {
		c.afterRows(c)
	}
	p.sums = c.commitTo(ofSums, nil)
	c.h2 = hash(labels.OneshotProofTau, c.h1[:], p.sums[:])
	c.tests = s.fold(n.statement, &c.h1, &c.h2)
	if c.afterFold != nil {
		c.afterFold(c)
	}
	p.testsEncoded = s.encodeTests(c.tests)
	c.divide(c.tests)
	c.set(s.quotients, c.small[s.quotients:s.flood]...)
	if err := c.drawFlood(); err != nil {
		t.Fatal(err)
	}
	for i, m := range c.prover.flood {
		c.w[s.flood+i] = pair(m.low, m.high)
	}
	if c.afterTests != nil {
		c.afterTests(c)
	}
	p.flood = c.commitTo(ofFlood, c.late)
	c.h3 = hash(labels.OneshotProofFlood, c.h2[:], p.testsEncoded, p.flood[:])
	for i, x := range c.late {
		c.w[i] = new(edwards25519.Scalar).Add(c.w[i], x)
	}
	c.matrix = entries(&c.h3, 0, floodRows, s.flood)
	for i, row := range c.matrix {
		sum := new(edwards25519.Scalar).Set(c.w[s.flood+i])
		for j, x := range row {
			sum.MultiplyAdd(signed(x), c.w[j], sum)
		}
		p.flooded = append(p.flooded, truncated(sum))
	}
	p.encodeSums()
	c.h4 = hash(labels.OneshotProofSum, c.h3[:], p.sumsEncoded)
	for i := range p.flooded {
		c.sums = append(c.sums, p.flooded[i].scalar())
	}
	_, combined, err := s.parse(&c.dealing)
	if err != nil {
		t.Fatal(err)
	}
	c.respond(s.equation(c.tests, &c.h1, &c.h3, &c.h4, c.sums, c.gamma, combined), &c.h4)
	return &c.dealing, s.append(nil, p)
}

// truncated is f as it is encoded, of which what does not fit is cut off.
func truncated(sum *edwards25519.Scalar) flooded {
	b := new(edwards25519.Scalar).Add(sum, pair(0, 1<<(floodBits-1-64))).Bytes()
	var f flooded
	for i := range 8 {
		f.low |= uint64(b[i]) << (8 * i)
		f.high |= uint64(b[8+i]) << (8 * i)
	}
	f.high &= 1<<(floodBits+1-64) - 1
	return f
}

// decoded returns a proof of the cheat with all points, its challenge, and what that is made from.
func (c *cheat) decoded(
	t *testing.T, d *Dealing, encoded []byte,
) (*proof, *edwards25519.Scalar, [32]byte) {
	p, err := c.decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	dealt, _, err := c.parse(d)
	if err != nil {
		t.Fatal(err)
	}
	p.points[ofKey], p.points[ofMask] = dealt[0], dealt[1]
	copy(p.responses, c.proof.responses[:c.Degree]) // which folded ones are made of
	h5 := hash(labels.OneshotProofEnd, c.h4[:], p.firstsEncoded)
	return p, challenge(&h5, labels.OneshotProofChallenge), h5
}

// folding returns ψ.
func folding(p *proof, h5 *[32]byte) *edwards25519.Scalar {
	h6 := hash(labels.OneshotProofHalves, h5[:], p.restEncoded)
	return challenge(&h6, labels.OneshotProofFold)
}

// failing returns which of the equations that a proof stands for do not hold for the witnesses,
// each computed by itself.
func (c *cheat) failing() (out []string) {
	check := func(name string, ok bool) {
		if !ok && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	dot := func(sum *edwards25519.Scalar, at int, numbers []uint64) {
		for i, x := range numbers {
			sum.MultiplyAdd(small(x), c.w[at+i], sum)
		}
	}
	for t := range c.tests.totals {
		sum := small(0)
		dot(sum, c.Degree, c.tests.sums[t][:])
		dot(sum, 0, c.tests.keys[t])
		dot(sum, c.quotients+t, []uint64{c.Modulus})
		check("tests", sum.Equal(small(c.tests.totals[t])) == 1)
	}
	for i, row := range entries(&c.h1, 1, rows, c.Degree) {
		sum := small(0)
		for j, x := range row {
			sum.MultiplyAdd(signed(x), c.w[j], sum)
		}
		check("key's sums", sum.Equal(c.w[c.keySums+i]) == 1)
	}
	for i, row := range c.matrix {
		sum := new(edwards25519.Scalar).Set(c.w[c.Scheme.flood+i])
		for j, x := range row {
			sum.MultiplyAdd(signed(x), c.w[j], sum)
		}
		check("shown sums", sum.Equal(c.sums[i]) == 1)
	}
	for l := range c.PerPolynomial {
		sum, power := new(edwards25519.Scalar).Set(c.w[c.mask+l]), small(1)
		for j := range c.polynomials {
			power.Multiply(power, c.gamma)
			for k := range c.lanes {
				if at := (j*c.PerPolynomial+l)*c.lanes + k; at < c.Degree {
					x := new(edwards25519.Scalar).Multiply(power, c.w[at])
					for range k {
						x.Multiply(x, small(1<<c.LaneBits))
					}
					sum.Add(sum, x)
				}
			}
			if j*c.PerPolynomial+l == c.scalars {
				sum.MultiplyAdd(power, c.blinds[ofKey], sum)
			}
		}
		check("secrets", [32]byte(sum.Bytes()) == c.dealing.Combined[l])
	}
	for i, name := range []string{"norm", "key's norm"} {
		sum := small(0)
		for _, j := range c.normPlaces(i) {
			sum.MultiplyAdd(c.w[j], c.w[j], sum)
		}
		check(name, sum.Equal(scalarOf(c.limit(i))) == 1)
	}
	return out
}

// refused fails the test unless just the named equations fail, and the proof is refused for it.
func (c *cheat) refused(t *testing.T, s *Scheme, n *instance, want ...string) {
	t.Helper()
	d, proof := c.prove(t, s, n)
	if got := c.failing(); !slices.Equal(got, want) {
		t.Errorf("%v do not hold, want %v", got, want)
	}
	err := s.Verify(n.statement, d, proof)
	if len(want) == 0 && err != nil || len(want) > 0 && !errors.Is(err, ErrProof) {
		t.Error(err)
	}
}

// The cheat's proof of what is true holds, so that what follows is refused for what it says.
func TestCheatHonest(t *testing.T) {
	s := tinyScheme()
	new(cheat).refused(t, s, newInstance(s, 31, 500))
}

// rootsOf returns a and b with a² + b² = x modulo the order.
func rootsOf(x *edwards25519.Scalar) (a, b *edwards25519.Scalar) {
	order, _ := new(big.Int).SetString("27742317777372353535851937790883648493", 10)
	order.Add(order, new(big.Int).Lsh(big.NewInt(1), 252))
	for first := uint64(0); ; first++ {
		a := small(first)
		bytes := new(edwards25519.Scalar).Subtract(x, new(edwards25519.Scalar).Multiply(a, a)).Bytes()
		slices.Reverse(bytes)
		root := new(big.Int).ModSqrt(new(big.Int).SetBytes(bytes), order)
		if root == nil {
			continue
		}
		wide := make([]byte, 64)
		root.FillBytes(wide)
		slices.Reverse(wide)
		return a, fromWide(wide)
	}
}

// tooLong are an instance with a vector and one with a key that are ten times too long.
func tooLong(s *Scheme) []*instance {
	key := slices.Repeat([]int64{100, -100}, s.Degree/2)
	return []*instance{
		newInstance(s, 32, 6000), instanceOf(s, 33, key, newInstance(s, 33, 500).witness.Noisy),
	}
}

// Sums that are too long, with squares that fill up nothing, fail by their norm alone.
func TestNorms(t *testing.T) {
	s := tinyScheme()
	for i, n := range tooLong(s) {
		new(cheat).refused(t, s, n, []string{"norm", "key's norm"}[i])
	}
}

// A vector, or a key, ten times too long, whose norm is filled up by squares that wrap modulo the
// order: without the sums under noise everything that is left holds.
func TestLong(t *testing.T) {
	s := tinyScheme()
	for i, n := range tooLong(s) {
		c := &cheat{afterRows: func(c *cheat) {
			places := c.normPlaces(i)
			missing := scalarOf(c.limit(i))
			for _, j := range places[:rows] {
				missing.Subtract(missing, new(edwards25519.Scalar).Multiply(c.w[j], c.w[j]))
			}
			c.w[places[rows]], c.w[places[rows+1]] = rootsOf(missing)
		}}
		c.refused(t, s, n, "shown sums")
	}
}

// Sums of what is not y − a·s, shorter ones of the key than it has, and shares of another key: each
// fails one kind of equation, and nothing else does.
func TestOthers(t *testing.T) {
	s := tinyScheme()
	sums := func(i int) func(*cheat) {
		return func(c *cheat) {
			clear(c.small[c.normPlaces(i)[0]:][:rows])
			c.fill(t, i)
		}
	}
	(&cheat{afterRows: sums(0)}).refused(t, s, newInstance(s, 34, 6000), "tests")
	(&cheat{afterRows: sums(1)}).refused(t, s, newInstance(s, 35, 500), "key's sums")
	shares := newInstance(s, 36, 500)
	shares.witness.Polynomials[1][0].Add(shares.witness.Polynomials[1][0], small(1))
	new(cheat).refused(t, s, shares, "secrets")
}

// Who knows τ before the sums are fixed proves what it likes: a few sums that are short meet the
// tests of any vector, found by lattice reduction. So would a party, were the four commitments
// opened by their sum alone, since C_m could change what C_u has; here each is opened by itself.
func TestLateSums(t *testing.T) {
	s := tinyScheme()
	n := newInstance(s, 37, 500)
	r := rand.New(rand.NewPCG(11, 12))
	for i := range n.statement.Masked {
		n.statement.Masked[i] = r.Uint64N(s.Modulus)
	}
	c := &cheat{}
	c.afterRows = func(c *cheat) {
		c.set(s.Degree, make([]int64, rows)...)
		c.set(s.squares, 0, 0, 0, 0)
	}
	c.afterTests = func(c *cheat) {
		u := meeting(c.tests, n.witness.Key, s.Modulus)
		copy(c.small[s.Degree:s.keySums], u)
		c.divide(c.tests)
		c.set(s.quotients, c.small[s.quotients:s.flood]...)
		left := c.limit(0)
		for _, x := range u {
			left.Sub(left, big.NewInt(x*x))
		}
		if left.Sign() < 0 {
			t.Fatal("the sums that were found are too long")
		}
		four, err := fourSquares(c.random, left)
		if err != nil {
			t.Fatal(err)
		}
		for range s.count {
			c.late = append(c.late, small(0))
		}
		for i, x := range u {
			c.late[s.Degree+i] = signed(x)
		}
		for i, x := range four {
			c.late[s.squares+i] = signed(x)
		}
	}
	d, encoded := c.prove(t, s, n)
	if got := c.failing(); got != nil {
		t.Errorf("%v do not hold", got)
	}
	p, chi, _ := c.decoded(t, d, encoded)
	blind := small(0)
	var terms []pedersen.Term
	for i := range commitments {
		blind.Add(blind, p.blinds[i])
		terms = append(terms,
			pedersen.Term{Scalar: new(edwards25519.Scalar).Negate(small(1)), Point: p.firstPoints[i]},
			pedersen.Term{Scalar: new(edwards25519.Scalar).Negate(chi), Point: p.points[i]})
	}
	all := append([]*edwards25519.Scalar{blind, small(0)}, p.responses...)
	if !pedersen.IsSmall(s.points().SumVarTime(all, terms)) {
		t.Error("the sum of the commitments does not open")
	}
	if err := s.Verify(n.statement, d, encoded); !errors.Is(err, ErrProof) {
		t.Errorf("a proof of a vector that nothing is known of: %v", err)
	}
}

// A point of order 8 on a commitment is another encoding of what opens in the same way. Everybody
// takes it, where verdicts without the cofactor would depend on who adds what to what.
func TestTorsion(t *testing.T) {
	s := tinyScheme()
	identity := [32]byte{1}
	encoded := plusSmall(t, identity)
	torsion, err := pedersen.Parse(&encoded)
	if err != nil {
		t.Fatal(err)
	}
	differ := false
	for seed := range uint64(8) { // an eighth of all proofs have no difference
		n := newInstance(s, 40+seed, 500)
		c := &cheat{torsion: torsion}
		d, encoded := c.prove(t, s, n)
		if err := s.Verify(n.statement, d, encoded); err != nil {
			t.Error(err)
		}
		p, chi, h5 := c.decoded(t, d, encoded)
		difference := s.combined(p, chi, folding(p, &h5), encoded, &h5).sum(s)
		differ = differ || difference.Equal(edwards25519.NewIdentityPoint()) == 0
	}
	if !differ {
		t.Error("the equation holds without the cofactor")
	}
}
