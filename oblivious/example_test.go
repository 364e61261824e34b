package oblivious_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oblivious"
	"github.com/hushsum/hushsum/protocol"
)

// roster returns identities for the given names, and their roster.
func roster(names ...string) ([]crypto.Signer, *keyexchange.Roster, error) {
	var identities []crypto.Signer
	var members []keyexchange.Entry
	for _, name := range names {
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, nil, err
		}
		identities = append(identities, key)
		members = append(members, keyexchange.Entry{Name: name, Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	return identities, roster, err
}

// pairSecrets is a key exchange for the option: each party signs a key for it, and
// shares a secret with each other party. Here all parties are in one process.
func pairSecrets(
	label string, identities []crypto.Signer, roster *keyexchange.Roster,
) ([][]keyexchange.PairSecret, error) {
	n := len(identities)
	config := sha256.Sum256([]byte("oblivious noise for " + label)) // not that of the sum's own keys
	keys, public := make([]*keyexchange.PrivateKey, n), make([]keyexchange.PublicKey, n)
	transcript := sha256.New()
	transcript.Write(config[:])
	for i, identity := range identities {
		var err error
		if keys[i], err = keyexchange.GenerateKey(nil); err != nil {
			return nil, err
		}
		if public[i], err = keys[i].Public(); err != nil {
			return nil, err
		}
		signature, err := keyexchange.SignKey(identity, config, i, public[i], nil)
		if err != nil {
			return nil, err
		}
		// Every party verifies what it is sent of the others.
		if err := keyexchange.VerifyKey(roster, config, i, public[i], nil, &signature); err != nil {
			return nil, err
		}
		transcript.Write(public[i][:])
	}
	secrets := make([][]keyexchange.PairSecret, n)
	for i := range secrets {
		secrets[i] = make([]keyexchange.PairSecret, n)
		for j := range secrets[i] {
			if i == j {
				continue
			}
			chain, err := keys[i].NewChain([32]byte(transcript.Sum(nil)), roster, i, j, public[j])
			if err != nil {
				return nil, err
			}
			secrets[i][j] = chain.Next()
			chain.Erase()
		}
	}
	return secrets, nil
}

// Four parties learn a sum with noise that none of them knows: each adds its
// correction to its input, and the private sum does the rest.
func Example() {
	if err := noisySum(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// against 3 colluders: ε = 0.25, δ = 0
	// within the noise bound: true
}

func noisySum() error {
	const label, bits = "census 2026-11-20", 20
	identities, roster, err := roster("ana", "ben", "eva", "tom")
	if err != nil {
		return err
	}
	secrets, err := pairSecrets(label, identities, roster)
	if err != nil {
		return err
	}

	config := &oblivious.Config{Label: label, Parties: 4, Length: 2, Bits: bits,
		Noise: oblivious.Noise{Scale: big.NewRat(8, 1)}}
	parties := make([]*oblivious.Transfer, config.Parties)
	for i := range parties {
		if parties[i], err = oblivious.NewTransfer(config, i, secrets[i], nil); err != nil {
			return err
		}
	}
	claim, err := parties[0].Claim(big.NewRat(2, 1)) // an input has an L1 norm of 2 at most
	if err != nil {
		return err
	}
	fmt.Printf("against 3 colluders: ε = %g, δ = %g\n", claim.Epsilon, claim.Delta)

	// No Recovery: the option needs every party.
	session, err := protocol.NewLocal(&protocol.Config{
		Label: label, Roster: roster, Layout: masking.Layout{{Length: 2, Bits: bits}},
	}, identities, nil)
	if err != nil {
		return err
	}
	inputs := [][]uint64{{1, 1}, {2, 0}, {0, 1}, {0, 2}}
	corrections, err := oblivious.Exchange(parties, 1)
	if err != nil {
		return err
	}
	var submissions [][][]uint64
	for i, input := range inputs {
		if err := oblivious.Add(input, corrections[i], bits); err != nil {
			return err
		}
		submissions = append(submissions, [][]uint64{input})
	}
	sum, err := session.Round(nil, submissions)
	if err != nil {
		return err
	}
	bound, err := config.NoiseBound()
	if err != nil {
		return err
	}
	within := true
	for k, want := range []int64{3, 4} {
		noise := int64(sum[0][k]<<(64-bits))>>(64-bits) - want
		within = within && max(noise, -noise) <= int64(bound)
	}
	fmt.Println("within the noise bound:", within)
	return nil
}

// How many coins a count among 20 parties needs if 19 of them collude and cheat.
func ExampleCoins() {
	unknown, err := oblivious.LeastCoins(1, 1, 1e-6)
	if err != nil {
		fmt.Println(err)
		return
	}
	coins, err := oblivious.Coins{Parties: 20, Colluders: 19, Malicious: true}.For(unknown)
	if err != nil {
		fmt.Println(err)
		return
	}
	share, _ := coins.UnknownShare()
	fmt.Println(unknown, "unknown coins,", coins.PerPair, "per pair, of which unknown:", share)
	// Output: 80 unknown coins, 5 per pair, of which unknown: 0.05
}

// What ten counts, of which a client changes each by one, spend with 817 unknown coins each.
func ExampleCoins_Epsilon() {
	coins := oblivious.Coins{Parties: 20, Colluders: 19, Malicious: true, PerPair: 43}
	epsilon, err := coins.Epsilon(1, 10, 1e-6)
	fmt.Printf("%.3f %v\n", epsilon.Upper, err)
	// Output: 0.930 <nil>
}

// The published protocol works, and shows receivers what it should not.
func ExamplePublished() {
	config := &oblivious.Config{Parties: 3, Length: 1, Bits: 16,
		Noise: oblivious.Noise{Scale: big.NewRat(4, 1)}}
	parties, _, err := oblivious.RunPublished(config, false, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	sent, received := parties[0].View().Terms[1], parties[1].View().Received[0]
	difference := received[0][0] - received[1][0]
	known := sent[0][0] - sent[1][0]
	fmt.Println("the receiver knows the terms' difference, but for its sign:",
		(difference-known)&0xffff == 0 || (difference+known)&0xffff == 0)
	_, err = parties[0].Claim(big.NewRat(1, 1))
	fmt.Println("bound:", !errors.Is(err, oblivious.ErrNoBound))
	// Output:
	// the receiver knows the terms' difference, but for its sign: true
	// bound: false
}

// Three hospitals count their cases in two wards, up to 100 each, so that nobody learns more of a
// count than ε = 1 allows, even if the two others pool what they know.
func ExampleJoint() {
	identities, roster, err := roster("north", "south", "west")
	if err != nil {
		fmt.Println(err)
		return
	}
	coins, err := oblivious.LeastJointCoins(1, 1, 1, 1e-6) // a patient changes one count by one
	if err != nil {
		fmt.Println(err)
		return
	}
	config := &oblivious.JointConfig{Label: "cases 2026-11", Roster: roster, Length: 2, Bound: 100,
		Coins: coins}
	var parties []*oblivious.Joint
	for i, counts := range [][]uint64{{31, 7}, {12, 0}, {57, 9}} {
		party, err := oblivious.NewJoint(config, identities[i], i, counts, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		parties = append(parties, party)
	}
	sum, err := oblivious.RunJoint(parties) // elsewhere Next and Receive, over a network
	if err != nil {
		fmt.Println(err)
		return
	}
	epsilon, err := config.Epsilon(1, 1, 1e-6)
	fmt.Printf("coins %v, variance %g, ε = %.2f, %v\n", coins, config.Variance(), epsilon.Upper, err)
	for k, counted := range []float64{100, 16} {
		noise := float64(sum[k]) - config.Centre() - counted
		fmt.Println("noise within 40:", noise >= -40 && noise <= 40)
	}
	for _, p := range parties {
		p.Erase()
	}
	// Output:
	// coins [80], variance 20, ε = 1.00, <nil>
	// noise within 40: true
	// noise within 40: true
}
