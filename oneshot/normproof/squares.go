package normproof

import (
	"io"
	"math/big"

	"github.com/hushsum/hushsum/internal/entropy"
)

// tries is how many pairs of squares are tried. Of the rests of a number of 72 bits one in 50 or
// more is a prime that serves.
const tries = 100_000

// fourSquares returns numbers whose squares add up to n, 0 ≤ n < 2^126 (Rabin, Shallit 1986,
// "Randomized algorithms in number theory"). How long it takes depends on n. It fails with
// [ErrRandom].
func fourSquares(random io.Reader, n *big.Int) (out [4]int64, err error) {
	if n.Sign() == 0 {
		return out, nil
	}
	// Of a multiple of 4 no rest need be 1 modulo 4.
	halvings := uint(n.TrailingZeroBits()) / 2
	n = new(big.Int).Rsh(n, 2*halvings)
	below := func(limit *big.Int) *big.Int { // uniform but for 2^-64, up to √limit
		var b [16]byte
		if err == nil {
			err = entropy.Read("normproof", random, b[:])
		}
		root := new(big.Int).Sqrt(limit)
		return new(big.Int).Mod(new(big.Int).SetBytes(b[:]), root.Add(root, big.NewInt(1)))
	}
	for range tries {
		x := below(n)
		rest := new(big.Int).Sub(n, new(big.Int).Mul(x, x))
		y := below(rest)
		if err != nil {
			return out, err
		}
		rest.Sub(rest, new(big.Int).Mul(y, y))
		z, t, ok := twoSquares(rest)
		if !ok {
			continue
		}
		for i, v := range []*big.Int{x, y, z, t} {
			out[i] = v.Int64() << halvings
		}
		return out, nil
	}
	return out, errSquares
}

// twoSquares writes 0, 1, 2 and primes that are 1 modulo 4 as sums of two squares.
func twoSquares(p *big.Int) (a, b *big.Int, ok bool) {
	one := big.NewInt(1)
	switch {
	case p.Sign() == 0:
		return new(big.Int), new(big.Int), true
	case p.Cmp(one) == 0:
		return one, new(big.Int), true
	case p.Cmp(big.NewInt(2)) == 0:
		return one, one, true
	case p.Bit(0) == 0 || p.Bit(1) == 1 || !p.ProbablyPrime(10):
		return nil, nil, false
	}
	// r² = −1 from the first g that is no square, then Euclid's algorithm down to √p (Cornacchia
	// 1908; Brillhart 1972, "Note on representing a prime as a sum of two squares").
	r := new(big.Int)
	for g := int64(2); ; g++ {
		if big.Jacobi(big.NewInt(g), p) == -1 {
			quarter := new(big.Int).Rsh(p, 2)
			r.Exp(big.NewInt(g), quarter, p)
			break
		}
	}
	a, b = new(big.Int).Set(p), r
	for new(big.Int).Mul(b, b).Cmp(p) > 0 {
		a, b = b, new(big.Int).Mod(a, b)
	}
	a = new(big.Int).Mod(a, b)
	sum := new(big.Int).Mul(a, a)
	sum.Add(sum, new(big.Int).Mul(b, b))
	return a, b, sum.Cmp(p) == 0
}
