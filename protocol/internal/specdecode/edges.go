package specdecode

import (
	"bytes"
	"crypto/mlkem"
	"crypto/sha3"
	"encoding/json"
	"fmt"
)

// VerifyEdges checks the vectors of cases that libraries treat differently (§14): ciphertexts
// that nobody made for the key, and signatures. It does not check identity keys, since this
// package has no curve arithmetic.
func VerifyEdges(data []byte) error {
	var e struct {
		Decapsulations []struct {
			Seed               octets `json:"mlkem_seed"`
			Ciphertext, Secret octets
			About              string
		}
		Signatures []struct {
			Key, Statement, Signature octets
			Label, Accepted, About    string
		}
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("specdecode: %w", err)
	}
	made := 0
	for _, d := range e.Decapsulations {
		key, err := mlkem.NewDecapsulationKey768(d.Seed)
		if err != nil {
			return err
		}
		secret, err := key.Decapsulate(d.Ciphertext)
		if (len(d.Ciphertext) == 1088) != (err == nil) || !bytes.Equal(secret, d.Secret) {
			return fail("ciphertext: %s", d.About)
		}
		// FIPS 203 §6.3: whatever was not made for the key gives J(z ‖ c).
		if err == nil && !bytes.Equal(secret, sha3.SumSHAKE256(join(d.Seed[32:], d.Ciphertext), 32)) {
			made++
		}
	}
	if made != 1 {
		return fail("%d ciphertexts were made for their keys, want one", made)
	}
	for _, s := range e.Signatures {
		valid := verify(s.Key, signed(s.Label, s.Statement), s.Signature)
		if s.Accepted != "yes" && s.Accepted != "no" && s.Accepted != "either" ||
			s.Accepted != "either" && valid != (s.Accepted == "yes") {
			return fail("signature: %s", s.About)
		}
	}
	return nil
}
