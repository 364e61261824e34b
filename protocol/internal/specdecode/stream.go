package specdecode

import (
	"bytes"
	"math/big"
)

// stream is where a party of the vectors has its randomness from (§14).
type stream struct {
	seed []byte
	next uint64
	rest []byte
}

func (s *stream) draw(n int) []byte {
	for len(s.rest) < n {
		s.rest = append(s.rest, hash("", s.seed, u64(s.next))...)
		s.next++
	}
	out := s.rest[:n]
	s.rest = s.rest[n:]
	return out
}

// scalar draws a secret or a coefficient (§6.1).
func (s *stream) scalar() *big.Int {
	x := new(big.Int).SetBytes(reversed(s.draw(64)))
	return x.Mod(x, order)
}

// checkDraws checks that a party drew a secret, the nonce and the polynomial in
// the order of §14, and shared the secret with that polynomial.
func (s *session) checkDraws(party, threshold int, secret, nonce []byte, shares []point) error {
	random := s.streams[party]
	coefficients := []*big.Int{random.scalar()}
	if !bytes.Equal(encodeScalar(coefficients[0]), secret) || !bytes.Equal(random.draw(24), nonce) {
		return fail("a secret or a nonce of party %d is not drawn from its stream", party)
	}
	for range threshold - 1 {
		coefficients = append(coefficients, random.scalar())
	}
	for _, p := range shares {
		value := new(big.Int)
		for i := len(coefficients) - 1; i >= 0; i-- { // Horner
			value.Mul(value, big.NewInt(int64(p.holder+1)))
			value.Mod(value.Add(value, coefficients[i]), order)
		}
		if !bytes.Equal(encodeScalar(value), p.value) {
			return fail("the share of party %d in a secret of party %d", p.holder, party)
		}
	}
	return nil
}
