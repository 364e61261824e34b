package oneshot

import (
	"errors"
	"math/big"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/shamir"
)

var order, _ = new(big.Int).
	SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)

func number(b [32]byte) *big.Int {
	slices.Reverse(b[:])
	return new(big.Int).SetBytes(b[:])
}

func scalar(x *big.Int) [32]byte {
	b := [32]byte(new(big.Int).Mod(x, order).FillBytes(make([]byte, 32)))
	slices.Reverse(b[:])
	return b
}

// bend adds c·Π(x − agree) at the liars' places: another polynomial, on which they are
// with the holders in agree.
func bend(shares []shamir.PackedShare, agree []uint32, liars []int) {
	for _, i := range liars {
		for k := range shares[i].Values {
			more := big.NewInt(int64(k) + 1)
			for _, x := range agree {
				more.Mul(more, big.NewInt(int64(shares[i].Index)-int64(x)))
			}
			shares[i].Values[k] = scalar(more.Add(more, number(shares[i].Values[k])))
		}
	}
}

// runParts has members lie. Without the rule the decoder takes what polynomial is
// nearest.
func runParts(r *runner) error {
	p := shamir.Packing{PerPolynomial: 3, Privacy: 2} // r = 5
	const faults, committee = 2, 9                    // C = 3f + ρ
	secrets := make([]shamir.Secret, 6)
	for i := range secrets {
		secrets[i][0] = byte(i + 1)
	}
	try := func(answers, liars, faults int) (wrong, blamed bool, err error) {
		shares, err := shamir.SplitPacked(nil, p, secrets, upTo(committee))
		if err != nil {
			return false, false, err
		}
		shares = shares[:answers]
		lie := make([]int, liars)
		for i := range lie {
			lie[i] = i
		}
		bend(shares, []uint32{4, 5, 6, 7}, lie) // r − 1 honest members
		got, names, err := shamir.CombinePackedVarTime(p, faults, shares)
		if errors.Is(err, shamir.ErrTooManyWrong) || errors.Is(err, shamir.ErrTooFewShares) {
			return false, false, nil
		}
		return err == nil && !slices.Equal(got, secrets),
			slices.ContainsFunc(names, func(x uint32) bool { return int(x) > liars }), err
	}
	var wrong, blamed [2]bool
	for i, rule := range []int{0, faults} {
		var err error
		if wrong[i], blamed[i], err = try(p.Threshold()+faults, faults, rule); err != nil {
			return err
		}
	}
	r.counts("f liars, r + f answers", "wrong sums", wrong[0], wrong[1])
	r.counts("f liars, r + f answers", "honest members blamed", blamed[0], blamed[1])
	beyond, _, err := try(committee, faults+1, faults)
	if err != nil {
		return err
	}
	r.rows = append(r.rows, attacks.Row{Case: "f + 1 liars, all answer", Metric: "wrong sums",
		Defended: attacks.Exactly(one(beyond), 1,
			1), Limit: true, Note: "more liars than the committee is made for"})
	return nil
}

// ramp returns how many equations in the secrets of a polynomial two parts of members
// give, where one says nothing, having checked one for each polynomial.
func ramp(polynomials int) (float64, error) {
	p := shamir.Packing{PerPolynomial: 3, Privacy: 1}
	secrets := make([]shamir.Secret, 3*polynomials)
	for i := range secrets {
		secrets[i][0], secrets[i][1] = byte(i), byte(i>>8)
	}
	shares, err := shamir.SplitPacked(nil, p, secrets, upTo(members))
	if err != nil {
		return 0, err
	}
	// w₁·x₁³ + w₂·x₂³ = 0 takes the uniform coefficient out.
	x := [2]int64{1, 2}
	w := [2]*big.Int{big.NewInt(8), big.NewInt(-1)}
	for k := range polynomials {
		known, want := new(big.Int), new(big.Int)
		for i := range x {
			known.Add(known, new(big.Int).Mul(w[i], number(shares[i].Values[k])))
			power := new(big.Int).Set(w[i])
			for j := range 3 {
				want.Add(want, new(big.Int).Mul(power, number(secrets[3*k+j])))
				power.Mul(power, big.NewInt(x[i]))
			}
		}
		if known.Mod(known, order).Cmp(want.Mod(want, order)) != 0 {
			return 0, nil
		}
	}
	return 1, nil
}

// runStolen takes the states of all members after the round and opens what was recorded.
func runStolen(r *runner) error {
	const victim = 1
	var found [2]bool
	for i, real := range []bool{false, true} {
		w, err := newWorld(r.o.Seed, erasing, real)
		if err != nil {
			return err
		}
		var set []*dealing
		for party := range 3 {
			d, err := w.submit(party)
			if err != nil {
				return err
			}
			set = append(set, d)
		}
		if _, ok, err := w.sum(all, set); err != nil || !ok {
			return errors.Join(err, errors.New("the round has no sum"))
		}
		var shares []shamir.PackedShare
		for k, m := range w.members[:honest] {
			switch m := m.(type) {
			case *textbook:
				m.reset()
				m.batch(w.batch(1, k, set[victim:victim+1])[wire.HeaderSize:])
				if m.pending[0] != nil {
					shares = append(shares, m.pending[0].share)
				}
			case *oneshot.Member:
				// Its state has no key: it takes no batch.
				if _, err := m.Receive(w.batch(1, k, set[victim:victim+1])); err == nil {
					found[i] = true
				}
			}
		}
		if len(shares) < w.figures.Threshold {
			continue
		}
		secrets, _, err := shamir.CombinePackedVarTime(w.packing(), 0, shares)
		if err != nil {
			return err
		}
		found[i] = slices.Equal(w.read(set[victim].masked, unpack(secrets)), w.inputs[victim])
	}
	r.counts("states after the answer", "inputs recovered exactly", found[0], found[1])
	r.rows[0].Note = "a thief of all members; states from before the answer have the key, and " +
		"opened rounds with them are a documented limit"
	return nil
}
