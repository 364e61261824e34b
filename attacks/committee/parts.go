package committee

import (
	"errors"
	"io"
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

// rampPolynomials is how many polynomials a ramp has. A part that they have in common would be an
// equation too.
const rampPolynomials = 4

// equations returns how many equations in the secrets of a polynomial the parts of some members
// give. The same secrets are dealt again and again: parts then differ by all that is uniform in
// them, and each combination of parts that never differs says something of the secrets.
func equations(p shamir.Packing, parts int, random io.Reader) (float64, error) {
	secrets := make([]shamir.Secret, rampPolynomials*p.PerPolynomial)
	for i := range secrets {
		secrets[i][0] = byte(i + 1)
	}
	columns := parts * rampPolynomials
	var first []*big.Int
	var differ [][]*big.Int
	for range columns + 2 {
		shares, err := shamir.SplitPacked(random, p, secrets, upTo(members))
		if err != nil {
			return 0, err
		}
		var row []*big.Int
		for _, share := range shares[:parts] {
			for _, v := range share.Values {
				row = append(row, number(v))
			}
		}
		if first == nil {
			first = row
			continue
		}
		for i, x := range row {
			x.Sub(x, first[i]).Mod(x, order)
		}
		differ = append(differ, row)
	}
	return float64(columns-rank(differ)) / rampPolynomials, nil
}

// rank returns the rank of a matrix modulo the order, which it changes.
func rank(rows [][]*big.Int) (rank int) {
	for j := range rows[0] {
		at := slices.IndexFunc(rows[rank:], func(row []*big.Int) bool { return row[j].Sign() != 0 })
		if at < 0 {
			continue
		}
		rows[rank], rows[rank+at] = rows[rank+at], rows[rank]
		inverse := new(big.Int).ModInverse(rows[rank][j], order)
		for _, row := range rows[rank+1:] {
			factor := new(big.Int).Mul(row[j], inverse)
			for i, x := range rows[rank] {
				row[i].Sub(row[i], new(big.Int).Mul(factor, x)).Mod(row[i], order)
			}
		}
		if rank++; rank == len(rows) {
			break
		}
	}
	return rank
}

// repeats reads the same bytes again and again.
type repeats struct{}

func (repeats) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 1
	}
	return len(b), nil
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
