package keyexchange_test

import (
	"crypto/ed25519"
	"fmt"

	"github.com/hushsum/hushsum/keyexchange"
)

// Two parties of a roster agree on a secret for the masks of each round.
func Example() {
	// Long-term identities and the roster, known to both before the session.
	ana, _ := keyexchange.GenerateIdentity(nil)
	ben, _ := keyexchange.GenerateIdentity(nil)
	roster, err := keyexchange.NewRoster([]keyexchange.Entry{
		{Name: "ana", Key: ana.Public().(ed25519.PublicKey)},
		{Name: "ben", Key: ben.Public().(ed25519.PublicKey)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	// Ben signs a key for this session; Ana verifies it.
	config := [32]byte{1} // a digest of what the session is about
	benKey, _ := keyexchange.GenerateKey(nil)
	benPublic, _ := benKey.Public()
	signature, _ := keyexchange.SignKey(ben, config, 1, benPublic, nil)
	fmt.Println("verifies:",
		keyexchange.VerifyKey(roster, config, 1, benPublic, nil, &signature) == nil)

	// With the keys swapped (Ana's own way is the same), both make the chain.
	anaKey, _ := keyexchange.GenerateKey(nil)
	anaPublic, _ := anaKey.Public()
	session := [32]byte{2} // a hash over everything said so far
	anaChain, _ := anaKey.NewChain(session, roster, 0, 1, benPublic)
	benChain, _ := benKey.NewChain(session, roster, 1, 0, anaPublic)
	fmt.Println("round 1 agrees:", anaChain.Next() == benChain.Next())
	fmt.Println("round 2 agrees:", anaChain.Next() == benChain.Next())
	// Output:
	// verifies: true
	// round 1 agrees: true
	// round 2 agrees: true
}
