package textbook

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"

	"github.com/hushsum/hushsum/keyexchange"
)

// Signers returns the identities of n parties, the same in every session.
func Signers(n int) []crypto.Signer {
	signers := make([]crypto.Signer, n)
	for i := range signers {
		seed := sha256.Sum256(fmt.Appendf(nil, "identity %d", i))
		signers[i] = ed25519.NewKeyFromSeed(seed[:])
	}
	return signers
}

// RosterOf lists signers, whose keys are distinct and of Ed25519.
func RosterOf(name string, signers []crypto.Signer) *keyexchange.Roster {
	members := make([]keyexchange.Entry, len(signers))
	for i, signer := range signers {
		members[i] = keyexchange.Entry{
			Name: fmt.Sprintf("%s-%d", name, i),
			Key:  signer.Public().(ed25519.PublicKey),
		}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		panic("textbook: " + err.Error()) // the attacks' own identities
	}
	return roster
}
