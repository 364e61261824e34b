package protocol

import (
	"errors"
	"slices"
	"testing"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/shamir"
)

// attackWrongShares returns a Carry for which colluders add an error to their
// shares of the owners' secrets. The error is the value at the holder's index of a
// polynomial of the degree of the sharing that is zero at the given honest
// holders: the wrong shares then lie on one polynomial with those of the zeros,
// which is the most that colluders can do without knowing the shares.
func attackWrongShares(owners, colluders, zeros []int) func(from, to int, message []byte) []byte {
	return func(from, _ int, message []byte) []byte {
		h, body, err := wire.ParseHeader(message)
		if err != nil || h.Type != wire.TypeReveal || !slices.Contains(colluders, from) {
			return message
		}
		m, err := wire.ParseReveal(body, 1<<10)
		if err != nil {
			return message
		}
		for i := range m {
			if slices.Contains(owners, m[i].Owner) {
				m[i].Share = withError(m[i].Share, from, zeros)
			}
		}
		return m.Append(h.Append(nil))
	}
}

func smallScalar(x int) *edwards25519.Scalar {
	var b [32]byte
	for i := range 4 {
		b[i] = byte(x >> (8 * i))
	}
	s, err := edwards25519.NewScalar().SetCanonicalBytes(b[:])
	if err != nil {
		panic(err) // below 2^32
	}
	return s
}

// withError adds Π (x − z) over the zeros, x being the holder's index.
func withError(share [32]byte, holder int, zeros []int) [32]byte {
	s, err := edwards25519.NewScalar().SetCanonicalBytes(share[:])
	if err != nil {
		return share
	}
	product := smallScalar(1)
	for _, z := range zeros {
		factor := edwards25519.NewScalar().Subtract(smallScalar(int(shareIndex(holder))), smallScalar(int(shareIndex(z))))
		product.Multiply(product, factor)
	}
	return [32]byte(s.Add(s, product).Bytes())
}

// weakSum is Server.Sum without the commitments, and without correction too if
// correct is false: the first t shares are believed. It returns the holders that
// the correction blames.
func weakSum(s *Server, correct bool) (sum [][]uint64, blamed []int, err error) {
	open := s.open
	s.open = nil
	shares := s.sharesByOwner(open)
	for owner := range open.participants.All() {
		near := open.survivors.Of(open.near[owner])
		var secret shamir.Secret
		if correct {
			secret, blamed, err = correctShares(s.config.threshold, shares[owner], blamed)
		} else {
			secret, err = shamir.Combine(s.config.threshold, shares[owner][:s.config.threshold])
		}
		if err != nil {
			return nil, blamed, err
		}
		if open.survivors.Has(owner) {
			seed := selfMask(secret)
			open.sum.SubMask(&seed)
		} else if err := s.unmaskDropped(open, owner, near, secret); err != nil {
			return nil, blamed, err
		}
	}
	return open.sum.Values(), blamed, nil
}

// correctShares corrects wrong shares, without a commitment to check against.
func correctShares(threshold int, shares []shamir.Share, blamed []int) (shamir.Secret, []int, error) {
	var indices []uint32
	for _, share := range shares {
		indices = append(indices, share.Index)
	}
	combiner, err := shamir.NewCombiner(threshold, indices)
	if err != nil {
		return shamir.Secret{}, blamed, err
	}
	secret, wrong, err := combiner.CorrectVarTime(shares, nil)
	for _, index := range wrong {
		blamed = append(blamed, int(index)-1)
	}
	return secret, blamed, err
}

// toReveal runs a round up to where the server sums.
func toReveal(t *testing.T, l *Local, in [][][]uint64) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.step(l.Server.Invite))
	must(l.step(func() ([]Envelope, error) { return l.Server.Begin(nil) }))
	for i, client := range l.Clients {
		if _, due := client.Due(); due {
			message, err := client.Submit(nil, in[i]...)
			must(err)
			must(l.toServer(i, message))
		}
	}
	must(l.step(l.Server.Survivors))
	must(l.step(l.Server.Certificate))
}

// Colluding holders that reveal wrong shares garble the sum unnoticed if the
// server believes what it gets, and even if it corrects errors but has no
// commitment: then honest holders get the blame. The real server corrects up to
// ⌊(shares−t)/2⌋ wrong shares of each secret and names the culprits once it is
// sure of them, in more than c wrong pairs; beyond that there is no sum. It never
// gives out a wrong one, and blames no honest holder.
func TestAttackWrongShares(t *testing.T) {
	const n, owner = 13, 4
	in, _ := inputs(attackSeed(t), attackLayout, n)
	want := sumOf(attackLayout, in, upTo(n))
	// h = 12 holders, t = 8: two wrong shares are corrected. A polynomial of degree
	// 7 with seven zeros is not zero at five holders; if three of them are
	// colluders the other two are in the minority.
	zeros := []int{5, 6, 7, 8, 9, 10, 11}
	session := func(owners, colluders []int) *Local {
		signers, config := attackConfig(t, n, &Recovery{Colluders: 2, Threshold: 8})
		l, err := NewLocal(config, signers, attackRandom(t))
		if err != nil {
			t.Fatal(err)
		}
		l.Carry = attackWrongShares(owners, colluders, zeros)
		toReveal(t, l, in)
		return l
	}

	// A wrong sum agrees with the right one in a 64-bit value with probability 2^-64.
	garbled := func(name string, sum [][]uint64, err error) {
		t.Helper()
		if err != nil || agreements(sum, want) != 0 {
			t.Fatalf("%s: the attack fails where it has to succeed: %v", name, err)
		}
		t.Logf("%s: a wrong sum accepted, 0 of 32 values right", name)
	}
	sum, _, err := weakSum(session([]int{owner}, []int{0}).Server, false)
	garbled("no correction, no commitment, one wrong share", sum, err)
	sum, blamed, err := weakSum(session([]int{owner}, []int{0, 1, 2}).Server, true)
	garbled("correction, no commitment, three wrong shares", sum, err)
	if !slices.Equal(blamed, []int{3, 12}) {
		t.Errorf("the correction blames %v, want the honest 3 and 12", blamed)
	}

	for wrong := 1; wrong <= 5; wrong++ {
		colluders := []int{0, 1, 2, 3, 12}[:wrong]
		if wrong <= 2 {
			// Of one owner it could be the owner's doing: nobody is named.
			for _, owners := range [][]int{{owner}, upTo(n)} {
				var named []int
				if len(owners) > 1 {
					named = colluders
				}
				l := session(owners, colluders)
				sum, err := l.Server.Sum()
				if err != nil || !equal(sum, want) || !slices.Equal(l.Server.Excluded(), named) {
					t.Errorf("real: %d wrong shares of %d owners: %v, excluded %v, want %v", wrong, len(owners), err, l.Server.Excluded(), named)
				}
				t.Logf("real: %d wrong shares of %d owners: exact sum, culprits %v named", wrong, len(owners), l.Server.Excluded())
			}
			continue
		}
		l := session([]int{owner}, colluders)
		sum, err := l.Server.Sum()
		var party *PartyError
		if sum != nil || !errors.Is(err, ErrMaterial) || !errors.As(err, &party) || party.Party != owner {
			t.Errorf("real: %d wrong shares: got %v, want no sum and ErrMaterial", wrong, err)
		}
		t.Logf("real: %d wrong shares: no sum; %v", wrong, err)
		if wrong > 3 {
			continue
		}
		// The session goes on once the colluders have stopped. The owner is let in
		// again: beyond the limit nobody can tell its fault from the holders'.
		l.Carry = nil
		l.Server.Readmit(owner)
		if sum, err := l.Round(nil, in); err != nil || !equal(sum, want) {
			t.Errorf("real: the round after: %v", err)
		}
	}
	// Shares of a recovery key among them, of a party that dropped out.
	l := session(nil, nil)
	l.Server.open = nil
	l.Carry = attackWrongShares(upTo(n), []int{1}, zeros) // of 11 shares, one can be corrected
	short := slices.Clone(in)
	short[owner] = nil
	sum, err = l.Round(nil, short)
	if err != nil || !equal(sum, sumOf(attackLayout, in, except(upTo(n), owner))) || !slices.Equal(l.Server.Excluded(), []int{1}) {
		t.Errorf("real: wrong shares of a recovery key too: %v, excluded %v", err, l.Server.Excluded())
	}
}
