package keyexchange

import (
	"bytes"
	"crypto/hmac"
	"crypto/mlkem"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
)

// Both sides of a pair come to one chain, which is the schedule of SPEC.md §5.1 worked
// out by hand, and to another one if anything that it is bound to is another.
func TestHybridChain(t *testing.T) {
	_, roster := identities(t, 3)
	a, publicA := fixedKey(t, 1)
	b, publicB := fixedKey(t, 2)
	seed := bytes.Repeat([]byte{5}, DecapsulationKeySize)
	decapsulation, err := GenerateDecapsulationKey(bytes.NewReader(seed))
	if err != nil {
		t.Fatal(err)
	}
	public, err := decapsulation.Public()
	if err != nil {
		t.Fatal(err)
	}
	ek, err := ParseEncapsulationKey(public)
	if err != nil {
		t.Fatal(err)
	}
	agree := func(key *PrivateKey, peer PublicKey) *Agreement {
		agreed, err := key.Agree(peer)
		if err != nil {
			t.Fatal(err)
		}
		return agreed
	}
	low := agree(a, publicB)
	ct, err := low.Encapsulate(ek, bytes.NewReader(bytes.Repeat([]byte{7}, 32)))
	if err != nil || len(ct) != ciphertextSize {
		t.Fatal(err)
	}
	high := agree(b, publicA)
	if err := high.Decapsulate(decapsulation, ct); err != nil {
		t.Fatal(err)
	}
	session := [32]byte{7}
	chain := low.Chain(session, roster, 0, 2)
	if *chain != *high.Chain(session, roster, 2, 0) {
		t.Fatal("the two sides have different chains")
	}

	// HKDF from HMAC alone, and the secret from another instance of the key.
	reader, err := mlkem.NewDecapsulationKey768(seed)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := reader.Decapsulate(ct)
	if err != nil {
		t.Fatal(err)
	}
	x := agree(a, publicB).x25519
	mac := hmac.New(sha256.New, session[:])
	mac.Write(append(secret, x[:]...))
	digest := sha256.Sum256(ct)
	if want := reference(mac.Sum(nil), 32, []byte(labels.Chain), roster.Key(0), roster.Key(2),
		digest[:]); !bytes.Equal(chain.key[:], want) {
		t.Errorf("CK_1 is %x, want %x", chain.key, want)
	}

	// Either secret alone gives another chain, and so does anything else that is bound.
	classical := agree(a, publicB).Chain(session, roster, 0, 2)
	noX, noS, otherCT := low.Clone(), low.Clone(), low.Clone()
	noX.x25519, noS.kem, otherCT.ciphertext = [32]byte{}, [32]byte{}, [32]byte{}
	for name, other := range map[string]*Chain{
		"classical": classical, "without X25519": noX.Chain(session, roster, 0, 2),
		"without ML-KEM":     noS.Chain(session, roster, 0, 2),
		"another ciphertext": otherCT.Chain(session, roster, 0, 2),
		"another session":    low.Chain([32]byte{8}, roster, 0, 2),
		"another pair":       low.Chain(session, roster, 0, 1),
	} {
		if other.key == chain.key {
			t.Errorf("%s: the same chain", name)
		}
	}

	// A ciphertext that was changed decapsulates to a secret that nobody else has.
	changed := bytes.Clone(ct)
	changed[9] ^= 1
	wrong := agree(b, publicA)
	if err := wrong.Decapsulate(decapsulation, changed); err != nil || wrong.kem == high.kem {
		t.Errorf("a changed ciphertext: %v", err)
	}
	if err := wrong.Decapsulate(decapsulation, ct[1:]); !errors.Is(err, ErrCiphertext) {
		t.Errorf("a short ciphertext: %v", err)
	}
}

// Erasing leaves no secret behind, and what is erased says so.
func TestHybridErase(t *testing.T) {
	key, err := GenerateDecapsulationKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.Public()
	if err != nil {
		t.Fatal(err)
	}
	ek, err := ParseEncapsulationKey(public)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := fixedKey(t, 1)
	_, publicB := fixedKey(t, 2)
	agreed, err := a.Agree(publicB)
	if err != nil {
		t.Fatal(err)
	}
	ct, err := agreed.Encapsulate(ek, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := agreed.AppendBinary(nil)
	if err != nil || len(b) != AgreementSize {
		t.Fatal(err)
	}
	again, err := ParseAgreement(b)
	if err != nil || *again != *agreed {
		t.Errorf("an agreement comes back otherwise: %v", err)
	}
	if _, err := ParseAgreement(b[1:]); !errors.Is(err, ErrEncoding) {
		t.Errorf("a short agreement: %v", err)
	}
	agreed.Erase()
	if *agreed != (Agreement{}) {
		t.Error("an agreement is not erased")
	}
	key.Erase()
	if _, err := key.Public(); !errors.Is(err, ErrErased) {
		t.Errorf("Public: %v", err)
	}
	if _, err := key.AppendBinary(nil); !errors.Is(err, ErrErased) {
		t.Errorf("AppendBinary: %v", err)
	}
	if err := agreed.Decapsulate(key, ct); !errors.Is(err, ErrErased) {
		t.Errorf("Decapsulate: %v", err)
	}
	if _, err := ParseDecapsulationKey(make([]byte, 63)); !errors.Is(err, ErrEncoding) {
		t.Errorf("a short key: %v", err)
	}
	public[0], public[1] = 0xff, 0xff // a coefficient of 4095
	if _, err := ParseEncapsulationKey(public); !errors.Is(err, ErrEncapsulationKey) {
		t.Errorf("a coefficient that is not reduced: %v", err)
	}
	if _, err := ParseEncapsulationKey(public[1:]); !errors.Is(err, ErrEncapsulationKey) {
		t.Errorf("a short key: %v", err)
	}
	if _, err := agreed.Encapsulate(ek, bytes.NewReader(make([]byte, 31))); !errors.Is(err,
		ErrRandom) {
		t.Errorf("a source that ends: %v", err)
	}
}
