package shamir_test

import (
	"crypto/sha256"
	"fmt"

	"github.com/hushsum/hushsum/shamir"
)

func Example() {
	secret, err := shamir.GenerateSecret(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	commitment := sha256.Sum256(secret[:])
	holders := []uint32{1, 2, 3, 4, 5, 6, 7}
	shares, err := shamir.Split(nil, secret, 3, holders)
	if err != nil {
		fmt.Println(err)
		return
	}

	// Any three shares give the secret.
	got, err := shamir.Combine(3, shares[2:5])
	fmt.Println(got == secret, err)

	// Two holders hand in wrong shares; seven shares are enough to tell who.
	shares[0].Value = [32]byte{1}
	shares[5].Value = [32]byte{2}
	combiner, err := shamir.NewCombiner(3, holders)
	if err != nil {
		fmt.Println(err)
		return
	}
	got, wrong, err := combiner.CorrectVarTime(shares, func(s shamir.Secret) bool {
		return sha256.Sum256(s[:]) == commitment
	})
	fmt.Println(got == secret, wrong, err)
	// Output:
	// true <nil>
	// true [1 6] <nil>
}
