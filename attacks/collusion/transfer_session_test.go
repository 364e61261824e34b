package collusion

import (
	"testing"

	"github.com/hushsum/hushsum/attacks"
)

// The terms of an exchange are repeated, and its offers rewritten, exactly: with
// equal candidates throughout, the sum of corrections is that of known terms.
func TestTransferSession(t *testing.T) {
	const n, d = 3, 64
	s, err := newTransferSession(n, d, attacks.Options{}.Rand(1))
	if err != nil {
		t.Fatal(err)
	}
	for round := uint64(1); round <= 2; round++ {
		s.carry = func(from, to int, message []byte) ([]byte, error) {
			if message[1] != transferOffer {
				return message, nil
			}
			return s.equalise(from, to, round, message)
		}
		corrections, own, err := s.round(round)
		if err != nil {
			t.Fatal(err)
		}
		for k := range d {
			left := uint64(0)
			for i := range n {
				left += corrections[i][k] - own[i][k]
				for j := range n {
					if j != i {
						left -= s.made[i][j][0][k]
					}
				}
			}
			if x := centred(left, obliviousBits); x != 0 {
				t.Fatalf("round %d, coordinate %d: %v is left", round, k, x)
			}
		}
	}
}
