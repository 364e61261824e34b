package protocol

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/shamir"
)

// The shares of a holder that is at fault are used where they are right and others do not
// suffice: party 0 says that the shares of the two that dropped out do not open, by which
// it is known, and reveals those of the survivors, who have no other to spare.
func TestRightSharesOfASuspect(t *testing.T) {
	signers, roster := parties(t, 8)
	config := testConfig(roster)
	config.Recovery = new(Recovery) // t = 5, m = 6
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.Carry = func(from, to int, message []byte) []byte {
		if from != 0 || message[1] != byte(wire.TypeReveal) {
			return message
		}
		m, err := wire.ParseReveal(message[wire.HeaderSize:], 8)
		if err != nil {
			t.Fatal(err)
		}
		m = slices.DeleteFunc(m, func(e wire.OwnedShare) bool { return e.Owner >= 6 })
		return m.Append(slices.Clone(message[:wire.HeaderSize]))
	}
	in, _ := inputs(3, config.Layout, 8)
	in[6], in[7] = nil, nil
	sum, err := l.Round(nil, in)
	if err != nil || !equal(sum, sumOf(config.Layout, in, []int{0, 1, 2, 3, 4, 5})) {
		t.Errorf("the sum: %v", err)
	}
	if got := l.Server.Excluded(); !slices.Equal(got, []int{0}) {
		t.Errorf("excluded: %v, want party 0", got)
	}
}

// dealt returns a secret and its shares, of which some are wrong.
func dealt(t *testing.T, threshold int, holders, wrong []uint32) (shamir.Secret, []shamir.Share) {
	t.Helper()
	secret, err := shamir.GenerateSecret(nil)
	if err != nil {
		t.Fatal(err)
	}
	shares, err := shamir.Split(nil, secret, threshold, holders)
	if err != nil {
		t.Fatal(err)
	}
	// No two of the changes are on one line through zero, which would keep the secret.
	bits := []int{0, 3, 1, 5, 2, 7, 4, 10}
	for i := range shares {
		if bit := bits[i]; slices.Contains(wrong, shares[i].Index) {
			shares[i].Value[1+bit/8] ^= 1 << (bit % 8)
		}
	}
	return secret, shares
}

// A holder that was wrong before and is again counts as missing rather than as wrong where
// that saves the secret: of five shares with two needed one can be corrected, of four as
// well.
func TestRepeatedlyWrongHolder(t *testing.T) {
	secret, shares := dealt(t, 2, []uint32{1, 2, 3, 4, 5}, []uint32{1, 4})
	d := make(doubts)
	d.add(7, 0)
	r := newRebuilder(2, 2, []int{0, 1, 2, 3, 4, 7}, d)
	got, err := r.secret(7, shares, func(s shamir.Secret) bool { return s == secret })
	if err != nil || got != secret {
		t.Error(err)
	}
}

// An owner that is refuted without the shares of a holder that is named is so, though with
// them it could not be told.
func TestRefutedByTrustedShares(t *testing.T) {
	d := make(doubts)
	for _, other := range []int{6, 7, 8} {
		d.add(0, other)
	}
	r := newRebuilder(2, 2, []int{0, 1, 2, 3, 4, 9}, d)
	secret, shares := dealt(t, 2, []uint32{1, 2, 3, 4, 5}, []uint32{2, 3})
	if _, err := r.secret(9, shares,
		func(s shamir.Secret) bool { return s == secret }); !errors.Is(err, ErrMaterial) {
		t.Fatal(err)
	}
	if got := r.culprits(); !slices.Equal(got, []int{0, 9}) {
		t.Errorf("at fault: %v, want parties 0 and 9", got)
	}
}

// addPolynomial adds the multiple of z·Π(z − x) over some x to shares, a polynomial that is
// zero at 0 and at these.
func addPolynomial(shares []shamir.Share, zeros []uint32) {
	order, _ := new(big.Int).SetString("27742317777372353535851937790883648493", 10)
	order.Add(order, new(big.Int).Lsh(big.NewInt(1), 252))
	for i := range shares {
		sum := big.NewInt(int64(shares[i].Index))
		for _, x := range zeros {
			sum.Mul(sum, big.NewInt(int64(shares[i].Index)-int64(x)))
		}
		value := slices.Clone(shares[i].Value[:])
		slices.Reverse(value)
		sum.Add(sum, new(big.Int).SetBytes(value))
		sum.Mod(sum, order).FillBytes(value)
		slices.Reverse(value)
		shares[i].Value = [32]byte(value)
	}
}

// A commitment is to a secret and not to the polynomial of its shares: three colluders of
// which three may be at fault move theirs to another polynomial with the same secret, on
// which two honest ones are as well. The third honest one is then off it, and must not be
// doubted for it.
func TestColludersCannotFrame(t *testing.T) {
	const threshold, most = 4, 3
	r := newRebuilder(threshold, most, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, doubts{})
	for _, owner := range []int{6, 7, 8, 9} {
		secret, err := shamir.GenerateSecret(nil)
		if err != nil {
			t.Fatal(err)
		}
		shares, err := shamir.Split(nil, secret, threshold, []uint32{1, 2, 3, 4, 5, 6})
		if err != nil {
			t.Fatal(err)
		}
		addPolynomial(shares[1:4], []uint32{5, 6})
		got, err := r.secret(owner, shares, func(s shamir.Secret) bool { return s == secret })
		if err != nil || got != secret {
			t.Fatal(err)
		}
	}
	if len(r.culprits()) > 0 || len(r.doubts) > 0 {
		t.Errorf("named: %v; pairs %v", r.culprits(), r.doubts.pairs())
	}
}

// blameGame is a sequence of rounds at a rebuilder: parties of faulty deal and reveal what
// they like, within what they can.
type blameGame struct {
	*testing.T
	rng                *rand.Rand
	n, threshold, most int
	faulty             []int
	doubts             doubts
	daring             float64
}

func (g *blameGame) isFaulty(party int) bool { return slices.Contains(g.faulty, party) }

func (g *blameGame) dares() bool { return g.rng.Float64() < g.daring }

// round rebuilds a secret of every party that is not left out, among random ones that
// reveal. It returns who is named after it, and whether a secret is missing.
func (g *blameGame) round(out []int) (named []int, lost, enough bool) {
	var revealing, owners []int
	for i := range g.n {
		if slices.Contains(out, i) {
			continue
		}
		owners = append(owners, i)
		if g.rng.IntN(5) > 0 || g.isFaulty(i) && g.rng.IntN(2) == 0 {
			revealing = append(revealing, i)
		}
	}
	enough = len(revealing) > g.threshold+2*g.most
	shares := make(map[int][]shamir.Share)
	secrets := make(map[int]shamir.Secret)
	for _, owner := range owners {
		shares[owner], secrets[owner] = g.deal(owner, revealing)
	}
	r := newRebuilder(g.threshold, g.most, revealing, g.doubts)
	for _, owner := range owners {
		got, err := r.secret(owner, shares[owner],
			func(s shamir.Secret) bool { return s == secrets[owner] })
		if err == nil && got != secrets[owner] {
			g.Fatal("a wrong secret")
		}
		if err != nil && !errors.Is(err, ErrMaterial) && !errors.Is(err, ErrTooFew) {
			g.Fatal(err)
		}
		lost = lost || err != nil
	}
	return r.culprits(), lost, enough
}

// deal returns what is revealed of an owner's shares, and the secret that it committed to.
func (g *blameGame) deal(owner int, revealing []int) ([]shamir.Share, shamir.Secret) {
	var indices []uint32
	for _, i := range revealing {
		if i != owner {
			indices = append(indices, shareIndex(i))
		}
	}
	secret, err := shamir.GenerateSecret(nil)
	if err != nil {
		g.Fatal(err)
	}
	if len(indices) < g.threshold {
		return nil, secret
	}
	shares, err := shamir.Split(nil, secret, g.threshold, indices)
	if err != nil {
		g.Fatal(err)
	}
	var out []shamir.Share
	for _, s := range shares {
		holder := int(s.Index) - 1
		switch blame := g.isFaulty(owner) || g.isFaulty(holder); {
		case blame && g.dares():
			s.Value[0] ^= 1 // dealt or revealed
		case blame && g.dares():
			g.doubts.add(owner, holder) // it did not open, or so the holder says
			continue
		}
		out = append(out, s)
	}
	if g.isFaulty(owner) && g.dares() {
		secret[0] ^= 1
	}
	return out, secret
}

// The theorem of SPEC.md §10.4 at random: no coalition of at most e parties has an honest
// one named, however few reveal and whatever was known before; and as long as t + 2e
// neighbours of everybody reveal, a round without a sum names one more of them.
func TestBlameTheorem(t *testing.T) {
	games := uint64(suite.Size(2000, 2000, 20_000, 200_000))
	lost, live, stopped := 0, 0, 0
	for seed := range games {
		rng := rand.New(rand.NewPCG(seed, 11))
		g := &blameGame{T: t, rng: rng, doubts: make(doubts), daring: rng.Float64() * rng.Float64()}
		g.most = 1 + rng.IntN(3)
		g.threshold = 2 + rng.IntN(3)
		g.n = g.threshold + 2 + rng.IntN(3*g.most+2)
		g.faulty = rng.Perm(g.n)[:min(g.most, g.n)]
		var out []int
		for range 5 {
			named, missing, enough := g.round(out)
			for _, party := range named {
				if !g.isFaulty(party) {
					t.Fatalf("seed %d: honest party %d is named; at fault %v, pairs %v", seed, party,
						g.faulty, g.doubts.pairs())
				}
			}
			before := len(out)
			out = slices.Compact(slices.Sorted(slices.Values(append(out, named...))))
			if missing {
				lost++
			}
			if missing && enough {
				live++
				if len(out) == before {
					t.Fatalf("seed %d: nobody is named after a lost round; at fault %v, pairs %v", seed,
						g.faulty, g.doubts.pairs())
				}
			}
		}
		stopped += len(out)
	}
	t.Logf("%d rounds lost, %d of them with enough shares, %d parties named", lost, live, stopped)
	if lost < int(games)/2 || live < int(games)/50 || stopped < int(games)/4 {
		t.Error("the coalitions are too tame to tell anything")
	}
}
